//! The sandbox of a command: it can reach exactly what was granted.
//!
//! This module does not decide; it enforces. Three layers complement each other. Mounts or Landlock
//! determine which folders can be read and written. Seccomp filters remove system calls that a
//! command needs only to break out. The [`PathGuard`] makes every call
//! that creates or changes a path for the command, and refuses protected names, because a path that
//! does not exist yet cannot be mounted over. [`changed_since`] reports protected paths that changed
//! during the command.
//!
//! It keeps the invariant that a command runs in the requested sandbox or not at all: there is no
//! fallback at this level. Start reading at [`SandboxProfile::apply_to`].

#[cfg(target_os = "linux")]
mod bubblewrap;
#[cfg(target_os = "linux")]
mod cache_overlays;
#[cfg(target_os = "linux")]
mod change_capture;
#[cfg(target_os = "linux")]
mod descriptor_channel;
#[cfg(target_os = "linux")]
mod enter_sandbox;
mod explain_failure;
mod folder_listing;
#[cfg(target_os = "linux")]
mod hard_links;
#[cfg(target_os = "linux")]
mod home_paths;
#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "linux")]
mod path_broker_invariants;
#[cfg(target_os = "linux")]
mod path_guard;
#[cfg(target_os = "linux")]
mod path_policy;
mod path_serde;
#[cfg(target_os = "linux")]
mod perform_syscall;
mod probe;
mod protected_changes;
mod protected_names;
#[cfg(target_os = "linux")]
mod resolve_path;
#[cfg(any(not(target_os = "linux"), test))]
mod seatbelt;
#[cfg(target_os = "linux")]
mod seccomp;
#[cfg(target_os = "linux")]
mod seccomp_listener;
mod secret_paths;
#[cfg(target_os = "linux")]
mod session_namespaces;
#[cfg(target_os = "linux")]
mod syscall_request;
#[cfg(target_os = "linux")]
mod terminals;

#[cfg(target_os = "linux")]
pub(crate) use cache_overlays::{CacheStorage, prepare_storage, remove_folder};
#[cfg(target_os = "linux")]
pub use cache_overlays::{PackageCache, PackageCaches};
#[cfg(target_os = "linux")]
pub(crate) use change_capture::{
    CapturedFile, CapturedState, ChangeCapture, NotCapturedReason,
    read_record as read_capture_record,
};
#[cfg(target_os = "linux")]
pub use enter_sandbox::{PendingSandboxStart, ReceivedChildDescriptors};
pub use explain_failure::explain_failure;
#[cfg(target_os = "linux")]
pub(crate) use home_paths::readable_home_paths;
#[cfg(target_os = "linux")]
pub use path_broker_invariants::check_path_broker_invariants;
#[cfg(target_os = "linux")]
pub use path_guard::PathGuard;
#[cfg(target_os = "linux")]
pub(crate) use probe::system_program;
pub use probe::{SandboxProbeResult, probe};
pub use protected_changes::{ProtectedPathsSnapshot, changed_since, snapshot_protected};
pub use protected_names::protected_paths;
pub use secret_paths::secret_paths;
#[cfg(target_os = "linux")]
pub use session_namespaces::SessionNamespaces;

use crate::Error;
use serde::{Deserialize, Serialize};
use std::path::{Component, Path, PathBuf};
use std::process::Command;
#[cfg(target_os = "linux")]
use std::sync::Arc;

/// Folders in `/run` that contain programs on some systems.
#[cfg(target_os = "linux")]
const VISIBLE_RUN_FOLDERS: [&str; 2] = ["/run/current-system", "/run/booted-system"];

/// Folders, paths and network that a command may access, and the backend that enforces it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxProfile {
    pub backend: SandboxBackend,
    /// Canonical path of the workspace.
    #[serde(with = "path_serde::one")]
    pub root: PathBuf,
    /// Lets the command change the workspace at `root`.
    pub workspace_writable: bool,
    /// Canonical paths of further writable folders.
    #[serde(with = "path_serde::all")]
    pub extra_writable: Vec<PathBuf>,
    /// Canonical paths of folders that the command may change, whatever the names in them: the
    /// package caches.
    #[serde(with = "path_serde::all")]
    pub cache_folders: Vec<PathBuf>,
    /// A folder of the session with mode 0700, which the command sees as `/tmp`.
    #[serde(with = "path_serde::one")]
    pub temp_dir: PathBuf,
    /// Paths that the command cannot read. Nonexistent paths are skipped.
    #[serde(with = "path_serde::all")]
    pub hidden_paths: Vec<PathBuf>,
    /// Existing paths inside hidden ones that the command may read.
    #[serde(with = "path_serde::all")]
    pub readable_paths: Vec<PathBuf>,
    /// Paths that are never visible, wherever they are and whatever else is open. If they cannot be
    /// hidden, the command does not run.
    #[serde(with = "path_serde::all")]
    pub private_paths: Vec<PathBuf>,
    /// Existing paths from [`protected_paths`], which the command cannot change.
    #[serde(with = "path_serde::all")]
    pub protected_paths: Vec<PathBuf>,
    pub network: NetworkAccess,
    pub loopback: LoopbackScope,
}

/// Mechanism that enforces the sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxBackend {
    /// Namespaces and mounts through bubblewrap.
    Bubblewrap {
        /// Path of the `bwrap` executable.
        #[serde(with = "path_serde::one")]
        program: PathBuf,
    },
    /// Landlock and seccomp filters, for machines where bubblewrap cannot run.
    Landlock,
    /// The sandbox of macOS. Untested.
    Seatbelt,
    /// No sandbox: the user chose that, or `probe` found no working backend.
    Off,
}

impl SandboxBackend {
    /// Returns true if commands have their own network namespace and their own `/tmp`.
    pub(crate) fn has_namespaces(&self) -> bool {
        match self {
            SandboxBackend::Bubblewrap { .. } => true,
            SandboxBackend::Landlock | SandboxBackend::Seatbelt | SandboxBackend::Off => false,
        }
    }
}

/// Network destinations that a command can reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkAccess {
    None,
    /// One loopback port, where the proxy listens.
    Proxy {
        port: u16,
    },
    /// All destinations; only valid with `SandboxBackend::Off`.
    Unrestricted,
}

/// The commands that reach each other's servers at 127.0.0.1. Only bubblewrap has a loopback
/// interface of its own; the other backends allow no connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopbackScope {
    /// No other command.
    Command,
    /// All commands of the session.
    Session,
}

impl SandboxProfile {
    /// Configures a command to start in the sandbox. Call it last, just before `spawn`: `pre_exec`
    /// closures added earlier run outside the sandbox, and closures added later may never run. The
    /// command gets only the environment variables set on it, and no descriptors except the
    /// standard streams. Those should be pipes or a terminal: the command can reopen a file by the
    /// name `/dev/stdout` with all access that the file's folder allows.
    #[cfg(target_os = "linux")]
    pub fn apply_to(&self, command: &mut Command) -> Result<PendingSandboxStart, Error> {
        self.apply_in_session(command, None)
    }

    /// Like `apply_to`, with the namespaces of the session. Without them, the command gets its own
    /// network namespace.
    #[cfg(target_os = "linux")]
    pub fn apply_in_session(
        &self,
        command: &mut Command,
        namespaces: Option<Arc<SessionNamespaces>>,
    ) -> Result<PendingSandboxStart, Error> {
        self.validate()?;
        match &self.backend {
            SandboxBackend::Off => {
                command.env("TMPDIR", &self.temp_dir);
                Ok(PendingSandboxStart::unsandboxed())
            }
            SandboxBackend::Bubblewrap { program } => {
                enter_sandbox::enter_bubblewrap(self, program, command, namespaces)
            }
            SandboxBackend::Landlock => enter_sandbox::enter_landlock(self, command),
            SandboxBackend::Seatbelt => {
                Err(sandbox_unavailable("Seatbelt is available on macOS only"))
            }
        }
    }

    /// Configures a command to start in the sandbox.
    #[cfg(not(target_os = "linux"))]
    pub fn apply_to(&self, command: &mut Command) -> Result<PendingSandboxStart, Error> {
        self.validate()?;
        match &self.backend {
            SandboxBackend::Off => Ok(PendingSandboxStart),
            SandboxBackend::Seatbelt => {
                seatbelt::enter_seatbelt(self, command);
                Ok(PendingSandboxStart)
            }
            SandboxBackend::Bubblewrap { .. } | SandboxBackend::Landlock => {
                Err(sandbox_unavailable("bubblewrap and Landlock are available on Linux only"))
            }
        }
    }

    /// Rejects profiles that would not contain a command, such as `/` as the workspace.
    fn validate(&self) -> Result<(), Error> {
        if self.backend == SandboxBackend::Off {
            return Ok(());
        }
        let folders = [&self.root, &self.temp_dir].into_iter().chain(&self.extra_writable);
        let folders = folders.chain(&self.cache_folders);
        let others = self.hidden_paths.iter().chain(&self.readable_paths);
        let others = others.chain(&self.private_paths).chain(&self.protected_paths);
        for folder in folders.clone().chain(others) {
            let is_normalized = folder
                .components()
                .all(|part| matches!(part, Component::Normal(_) | Component::RootDir));
            if !folder.is_absolute() || !is_normalized {
                return Err(sandbox_unavailable(format!(
                    "{} is not a normalized absolute path",
                    folder.display()
                )));
            }
        }
        for folder in folders {
            if folder.parent().is_none() {
                return Err(sandbox_unavailable(
                    "the folder is the root of the file system; start in a folder below it",
                ));
            }
        }
        if self.is_private(&self.root) {
            return Err(sandbox_unavailable(
                "the workspace is one of Windlass's own folders; work in another folder",
            ));
        }
        let is_exposed =
            |private: &PathBuf| self.visible_folders().any(|folder| private.starts_with(folder));
        match (&self.backend, self.network) {
            (_, NetworkAccess::Unrestricted) => {
                Err(sandbox_unavailable("a sandbox cannot have unrestricted network access"))
            }
            (SandboxBackend::Landlock, NetworkAccess::Proxy { .. }) => Err(sandbox_unavailable(
                "Landlock restricts ports, not addresses, so it cannot limit a command to the \
                 proxy",
            )),
            (SandboxBackend::Landlock, NetworkAccess::None)
                if self.private_paths.iter().any(is_exposed) =>
            {
                Err(sandbox_unavailable(
                    "the workspace or a writable folder contains Windlass's own config or \
                     sessions, which Landlock cannot hide there. Work in another folder, or \
                     install bubblewrap",
                ))
            }
            (_, NetworkAccess::None | NetworkAccess::Proxy { .. }) => Ok(()),
        }
    }

    /// Returns the hidden path that contains this path, unless a visible one inside it does.
    fn hiding_path(&self, path: &Path) -> Option<&Path> {
        let length = |folder: &Path| folder.as_os_str().len();
        let containing = |folder: &&Path| path.starts_with(folder);
        let hidden = self.hidden_paths.iter().chain(&self.private_paths).map(PathBuf::as_path);
        let hidden = hidden.filter(containing).max_by_key(|folder| length(folder))?;
        let visible = self.shown_paths().filter(containing).map(length).max();
        (visible < Some(length(hidden))).then_some(hidden)
    }

    fn is_private(&self, folder: &Path) -> bool {
        self.private_paths.iter().any(|private| folder.starts_with(private))
    }

    /// Returns the workspace and `extra_writable`, without private folders.
    fn visible_folders(&self) -> impl Iterator<Item = &Path> {
        let folders = [&self.root].into_iter().chain(&self.extra_writable).map(PathBuf::as_path);
        folders.filter(|folder| !self.is_private(folder))
    }

    /// Returns the paths that stay visible inside hidden ones: `visible_folders`, `readable_paths`
    /// and `cache_folders`.
    fn shown_paths(&self) -> impl Iterator<Item = &Path> {
        let more = self.readable_paths.iter().chain(&self.cache_folders);
        self.visible_folders().chain(more.map(PathBuf::as_path))
    }

    /// Returns all folders that the command may change.
    fn changeable_folders(&self) -> impl Iterator<Item = &Path> {
        self.writable_folders().chain(self.scratch_folders())
    }

    /// Returns the folders in which no name is protected: `temp_dir` and `cache_folders`.
    fn scratch_folders(&self) -> impl Iterator<Item = &Path> {
        [&self.temp_dir].into_iter().chain(&self.cache_folders).map(PathBuf::as_path)
    }

    /// Returns the folders that the command may change, except `scratch_folders`.
    fn writable_folders(&self) -> impl Iterator<Item = &Path> {
        self.visible_folders().filter(|folder| self.workspace_writable || *folder != self.root)
    }
}

/// Counterpart of the Linux type. On this platform a started command hands nothing back.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
pub struct PendingSandboxStart;

fn sandbox_unavailable(reason: impl Into<String>) -> Error {
    Error::SandboxUnavailable { reason: reason.into() }
}

/// Removes `.` and `..` components without accessing the disk.
fn normalize_path(path: &Path) -> PathBuf {
    let mut result = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                result.pop();
            }
            Component::CurDir => {}
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => result.push(part),
        }
    }
    result
}

#[cfg(unix)]
#[cfg(test)]
mod tests;
