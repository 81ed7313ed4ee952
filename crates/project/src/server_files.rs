//! Files of the session server in the user's data folder: its lock, its socket, its tokens, and the
//! sessions that it goes on with after a crash.
//!
//! The folder is private, and every sandbox hides it with the rest of the data folder.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the project crate is the only one that accesses files of the data folder"
)]

use crate::ProjectError;
use crate::dirs::Dirs;
use crate::private_files::{
    corrupt_error, create_private_folder, private_options, read_private, replace_atomically,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use windlass_protocol::SessionId;

/// Limit for a file of the server.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Name of the file that a server locks while it runs.
const LOCK_NAME: &str = "server.lock";
/// Name of the file with a [`RunningServer`]. It counts only while the lock is held.
const RUNNING_NAME: &str = "running.json";
/// Number of attempts to take a lock, and the time between them.
const LOCK_ATTEMPTS: u32 = 10;
const LOCK_INTERVAL: Duration = Duration::from_millis(20);
/// Longest path of a socket that every system accepts.
pub const MAX_SOCKET_PATH_BYTES: usize = 100;

/// The files of the server of one user.
#[derive(Clone, Debug)]
pub struct ServerFiles {
    folder: PathBuf,
}

/// The lock of a running server, until it is dropped.
#[derive(Debug)]
pub struct ServerLock {
    /// File with the [`RunningServer`].
    running: PathBuf,
    _file: std::fs::File,
}

impl Drop for ServerLock {
    fn drop(&mut self) {
        // The next server replaces it, too.
        let _ = std::fs::remove_file(&self.running);
    }
}

/// The lock of the tokens, until it is dropped.
#[derive(Debug)]
pub struct TokensLock {
    _file: std::fs::File,
}

/// A server that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningServer {
    /// Id of its process.
    pub pid: u32,
    /// Path of its socket.
    pub socket: PathBuf,
}

/// A session that the server has open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedSession {
    /// Starts of the server in a row after which it crashed soon, with this session open.
    pub failed_starts: u32,
}

impl ServerFiles {
    /// Returns the files in the data folder. They may not exist.
    pub fn new(dirs: &Dirs) -> ServerFiles {
        ServerFiles { folder: dirs.data.join("server") }
    }

    /// Returns the path of the socket.
    pub fn socket_path(&self) -> PathBuf {
        self.folder.join("windlass.sock")
    }

    /// Takes the lock of the server, which will listen at `socket`; `None` if another one runs.
    pub fn try_lock(&self, socket: &Path) -> Result<Option<ServerLock>, ProjectError> {
        let Some(file) = self.try_lock_file(LOCK_NAME)? else { return Ok(None) };
        let lock = ServerLock { running: self.folder.join(RUNNING_NAME), _file: file };
        let running = RunningServer { pid: std::process::id(), socket: socket.to_owned() };
        self.write(RUNNING_NAME, &running)?;
        Ok(Some(lock))
    }

    /// Takes the lock of the tokens, which the process that changes them holds; `None` if another
    /// one does.
    pub fn try_lock_tokens(&self) -> Result<Option<TokensLock>, ProjectError> {
        let file = self.try_lock_file("tokens.lock")?;
        Ok(file.map(|file| TokensLock { _file: file }))
    }

    /// Locks a file without content. Others may hold the lock for a moment, to see if it is free.
    fn try_lock_file(&self, name: &str) -> Result<Option<std::fs::File>, ProjectError> {
        let path = self.folder.join(name);
        let lock = || -> std::io::Result<Option<std::fs::File>> {
            create_private_folder(&self.folder)?;
            set_private(&self.folder)?;
            let mut options = std::fs::OpenOptions::new();
            options.create(true).truncate(false).write(true);
            let file = private_options(&mut options).open(&path)?;
            for _ in 0..LOCK_ATTEMPTS {
                match file.try_lock() {
                    Ok(()) => return Ok(Some(file)),
                    Err(std::fs::TryLockError::WouldBlock) => std::thread::sleep(LOCK_INTERVAL),
                    Err(std::fs::TryLockError::Error(error)) => return Err(error),
                }
            }
            Ok(None)
        };
        lock().map_err(|source| ProjectError::File { path: path.clone(), source })
    }

    /// Returns the server that runs, if any.
    pub fn running_server(&self) -> Result<Option<RunningServer>, ProjectError> {
        let path = self.folder.join(LOCK_NAME);
        let to_error = |source| ProjectError::File { path: path.clone(), source };
        let mut options = std::fs::OpenOptions::new();
        let file = match private_options(options.read(true)).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(to_error(error)),
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(None),
            Err(std::fs::TryLockError::WouldBlock) => self.read(RUNNING_NAME),
            Err(std::fs::TryLockError::Error(error)) => Err(to_error(error)),
        }
    }

    /// Removes the socket of a server that no longer runs. The caller holds the lock.
    pub fn remove_stale_socket(&self, _lock: &ServerLock, path: &Path) -> Result<(), ProjectError> {
        let to_error = |source| ProjectError::File { path: path.to_owned(), source };
        match path.symlink_metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(to_error(error)),
            Ok(metadata) if !is_socket(&metadata) => Err(ProjectError::NotPrivate {
                path: path.to_owned(),
                reason: "it is not a socket",
                remedy: "remove",
            }),
            Ok(_) if is_in_use(path) => Err(ProjectError::SocketInUse { path: path.to_owned() }),
            Ok(_) => std::fs::remove_file(path).map_err(to_error),
        }
    }

    /// Reads the tokens, as JSON; `None` if there are none.
    pub fn read_tokens<T: DeserializeOwned>(&self) -> Result<Option<T>, ProjectError> {
        self.read("tokens.json")
    }

    /// Saves the tokens.
    pub fn write_tokens<T: Serialize>(&self, tokens: &T) -> Result<(), ProjectError> {
        self.write("tokens.json", tokens)
    }

    /// Reads the sessions that the server had open.
    pub fn read_sessions(&self) -> Result<BTreeMap<SessionId, ServedSession>, ProjectError> {
        Ok(self.read("sessions.json")?.unwrap_or_default())
    }

    /// Saves the sessions that the server has open.
    pub fn write_sessions(
        &self,
        sessions: &BTreeMap<SessionId, ServedSession>,
    ) -> Result<(), ProjectError> {
        self.write("sessions.json", sessions)
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, ProjectError> {
        let path = self.folder.join(name);
        let Some(text) = read_private(&path, MAX_FILE_BYTES)? else { return Ok(None) };
        serde_json::from_str(&text).map(Some).map_err(|error| corrupt_error(&path, &error))
    }

    fn write<T: Serialize>(&self, name: &str, value: &T) -> Result<(), ProjectError> {
        let path = self.folder.join(name);
        let write = || {
            create_private_folder(&self.folder)?;
            let text = serde_json::to_vec_pretty(value).map_err(std::io::Error::other)?;
            replace_atomically(&path, &text)
        };
        write().map_err(|source| ProjectError::File { path: path.clone(), source })
    }
}

/// Sets the permissions of a folder that may have existed before.
fn set_private(folder: &Path) -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))?;
    }
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}

fn is_socket(metadata: &std::fs::Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        metadata.file_type().is_socket()
    }
    #[cfg(not(unix))]
    {
        let _ = metadata;
        false
    }
}

/// Returns true if a program accepts connections at a socket.
fn is_in_use(path: &Path) -> bool {
    #[cfg(unix)]
    {
        std::os::unix::net::UnixStream::connect(path).is_ok()
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> (tempfile::TempDir, ServerFiles) {
        let folder = tempfile::tempdir().unwrap();
        let files = ServerFiles { folder: folder.path().join("server") };
        (folder, files)
    }

    #[test]
    fn only_one_server_has_the_lock() {
        let (_folder, files) = files();
        let socket = files.socket_path();
        let lock = files.try_lock(&socket).unwrap();
        assert!(lock.is_some());
        assert!(files.try_lock(&socket).unwrap().is_none());
        let running = RunningServer { pid: std::process::id(), socket: socket.clone() };
        assert_eq!(files.running_server().unwrap(), Some(running));
        drop(lock);
        assert_eq!(files.running_server().unwrap(), None);
        assert!(files.try_lock(&socket).unwrap().is_some());
    }

    #[test]
    fn a_command_that_changes_tokens_is_no_server() {
        let (_folder, files) = files();
        let tokens = files.try_lock_tokens().unwrap();
        assert!(tokens.is_some());
        assert!(files.try_lock_tokens().unwrap().is_none());
        assert_eq!(files.running_server().unwrap(), None);
        assert!(files.try_lock(&files.socket_path()).unwrap().is_some());
    }

    #[test]
    fn a_server_starts_while_a_command_looks_for_one_and_after_one_that_was_killed() {
        let (_folder, files) = files();
        let socket = files.socket_path();
        drop(files.try_lock(&socket).unwrap());
        // A killed server leaves its file.
        let old = RunningServer { pid: 1, socket: socket.clone() };
        files.write(RUNNING_NAME, &old).unwrap();
        assert_eq!(files.running_server().unwrap(), None);
        let lock_file = std::fs::File::open(files.folder.join(LOCK_NAME)).unwrap();
        lock_file.lock_shared().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(50));
                drop(lock_file);
            });
            let lock = files.try_lock(&socket).unwrap();
            assert!(lock.is_some());
            assert_eq!(files.running_server().unwrap().unwrap().pid, std::process::id());
        });
        assert!(!files.folder.join(RUNNING_NAME).exists());
    }

    #[test]
    fn the_sessions_survive_a_restart() {
        let (_folder, files) = files();
        assert!(files.read_sessions().unwrap().is_empty());
        let session: SessionId = "0192f0c4-7e2a-7d1b-8a34-1f2e3d4c5b6a".parse().unwrap();
        let sessions = BTreeMap::from([(session, ServedSession { failed_starts: 2 })]);
        files.write_sessions(&sessions).unwrap();
        assert_eq!(files.read_sessions().unwrap(), sessions);
    }

    #[cfg(unix)]
    #[test]
    fn a_file_in_the_place_of_the_socket_is_kept() {
        let (_folder, files) = files();
        let path = files.socket_path();
        let lock = files.try_lock(&path).unwrap().unwrap();
        std::fs::write(&path, "mine").unwrap();
        assert!(files.remove_stale_socket(&lock, &path).is_err());
        assert!(path.exists());
        std::fs::remove_file(&path).unwrap();
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let in_use = files.remove_stale_socket(&lock, &path);
        assert!(matches!(in_use, Err(ProjectError::SocketInUse { .. })), "{in_use:?}");
        drop(listener);
        assert!(path.symlink_metadata().is_ok());
        files.remove_stale_socket(&lock, &path).unwrap();
        assert!(path.symlink_metadata().is_err());
    }
}
