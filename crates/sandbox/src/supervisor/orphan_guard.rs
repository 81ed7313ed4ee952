//! A process that cleans up after a supervisor that was killed.
//!
//! A command dies with the supervisor, by its parent-death signal. Processes that it started do
//! not, and neither does the first process of bubblewrap's PID namespace. The owner of a supervisor
//! ends them, but it may be killed at the same moment. So the supervisor forks this process before
//! it starts any command. The guard waits until the supervisor is gone, kills every process that
//! carries a [`JobMark`](super::job_mark::JobMark) of the supervisor, and removes the folders of
//! the session.

use super::process_tree;
use crate::confine::remove_folder;
use crate::fork::{exit_process, fork};
use rustix::fd::OwnedFd;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, kill_process, setsid};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Interval between two searches for processes.
const SEARCH_INTERVAL: Duration = Duration::from_millis(10);
/// Longest time for killing processes.
const KILL_TIMEOUT: Duration = Duration::from_secs(30);
/// The last byte of a supervisor that has cleaned up itself.
const DISMISSAL: u8 = b'\n';

/// A folder to remove, with the device and inode that it had, so that another folder which later
/// has its name is not removed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FolderToRemove {
    pub(super) path: PathBuf,
    device: u64,
    inode: u64,
}

impl FolderToRemove {
    /// Returns `None` if the path is not a folder.
    pub(super) fn new(path: PathBuf) -> Option<FolderToRemove> {
        let metadata = fs::symlink_metadata(&path).ok().filter(|metadata| metadata.is_dir())?;
        Some(FolderToRemove { path, device: metadata.dev(), inode: metadata.ino() })
    }

    /// Removes the folder. Removes symbolic links inside it without following them.
    pub(super) fn remove(&self) {
        let metadata = fs::symlink_metadata(&self.path).ok();
        if metadata.is_some_and(|metadata| {
            metadata.is_dir() && (metadata.dev(), metadata.ino()) == (self.device, self.inode)
        }) {
            // Others may remove it at the same time, so it can be gone already.
            let _ = remove_folder(&self.path);
        }
    }

    /// Encodes the folder for the guard: device, inode and path, with a zero byte at the end.
    fn encode(&self) -> Vec<u8> {
        let mut bytes = format!("{} {} ", self.device, self.inode).into_bytes();
        bytes.extend(self.path.as_os_str().as_bytes());
        bytes.push(0);
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<FolderToRemove> {
        let mut parts = bytes.splitn(3, |byte| *byte == b' ');
        let mut number = || std::str::from_utf8(parts.next()?).ok()?.parse().ok();
        let (device, inode) = (number()?, number()?);
        Some(FolderToRemove {
            path: Path::new(OsStr::from_bytes(parts.next()?)).into(),
            device,
            inode,
        })
    }
}

/// The supervisor's end of the pipe to its guard.
#[derive(Debug)]
pub(super) struct OrphanGuard {
    pipe: fs::File,
}

impl OrphanGuard {
    /// Forks the guard. Call it before the process becomes a subreaper, which would make the guard
    /// its child and therefore one of its orphans. The guard closes its copy of `socket`.
    pub(super) fn start(socket: &OwnedFd) -> io::Result<OrphanGuard> {
        let (read_end, write_end) = pipe_with(PipeFlags::CLOEXEC)?;
        let supervisor_pid = std::process::id();
        // Two forks, so that the supervisor does not have to reap the guard.
        if let Some(child) = fork()? {
            drop(read_end);
            let _ = rustix::process::waitpid(Some(child), rustix::process::WaitOptions::empty());
            return Ok(OrphanGuard { pipe: fs::File::from(write_end) });
        }
        if !matches!(fork(), Ok(None)) {
            exit_process();
        }
        drop(write_end);
        #[allow(unsafe_code, reason = "the guard closes a descriptor that it only borrows")]
        // SAFETY: the guard never returns to the owner of the descriptor.
        unsafe {
            libc::close(socket.as_raw_fd());
        }
        run_guard(supervisor_pid, read_end);
        exit_process();
    }

    /// Lets the guard remove a folder if the supervisor is killed.
    pub(super) fn add_folder(&mut self, folder: &FolderToRemove) {
        // Without a guard, the folder stays for the cleaning of temporary files.
        let _ = self.pipe.write_all(&folder.encode());
    }

    /// Ends the guard, because the supervisor has cleaned up.
    pub(super) fn dismiss(mut self) {
        let _ = self.pipe.write_all(&[DISMISSAL]);
    }
}

/// Waits for the end of the supervisor and cleans up unless it has done so.
fn run_guard(supervisor_pid: u32, pipe: OwnedFd) {
    // Fails only if this process already leads a group, and it does not.
    let _ = setsid();
    let _ = rustix::thread::set_name(c"windlass-guard");
    let mut received = Vec::new();
    if fs::File::from(pipe).read_to_end(&mut received).is_err()
        || received.last() == Some(&DISMISSAL)
    {
        return;
    }
    kill_marked(supervisor_pid);
    let folders = received.split(|byte| *byte == 0).filter_map(FolderToRemove::decode);
    folders.for_each(|folder| folder.remove());
}

/// Kills the processes of all jobs of a supervisor until none is left.
pub(super) fn kill_marked(supervisor_pid: u32) {
    let start = Instant::now();
    // A process that forks during the search can be missed once.
    let mut empty_searches = 0;
    let mut killed = HashSet::new();
    while empty_searches < 2 && start.elapsed() < KILL_TIMEOUT {
        let mut orphans = process_tree::find_marked(supervisor_pid);
        // A killed process keeps its mark until its parent reaps it, which can take seconds.
        orphans.retain(|pid| killed.insert(*pid) || process_tree::living_process(*pid).is_some());
        empty_searches = if orphans.is_empty() { empty_searches + 1 } else { 0 };
        for pid in orphans.into_iter().filter_map(Pid::from_raw) {
            // Fails only if it has exited.
            let _ = kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(SEARCH_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_encoded_and_decoded_and_only_the_same_one_is_removed() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("a b\nc");
        fs::create_dir(&path).unwrap();
        let folder = FolderToRemove::new(path.clone()).unwrap();
        let bytes = [folder.encode(), folder.encode()].concat();
        let decoded: Vec<_> =
            bytes.split(|byte| *byte == 0).filter_map(FolderToRemove::decode).collect();
        assert_eq!(decoded.len(), 2);
        assert_eq!(decoded[0], folder);
        fs::rename(&path, base.path().join("other")).unwrap();
        fs::create_dir(&path).unwrap();
        folder.remove();
        assert!(path.exists(), "it is another folder");
        FolderToRemove::new(path.clone()).unwrap().remove();
        assert!(!path.exists());
        assert_eq!(FolderToRemove::new(path), None);
    }
}
