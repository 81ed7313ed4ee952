//! Data types for long-running processes that answer calls, the same on every platform.
//!
//! No tool call starts a process, so its sandbox is as wide as the user's configuration for it, and
//! never wider than the mode of the session that starts it. Start reading at [`ProcessSpec`], then
//! at [`Workspace::start_process`].

use crate::{HostAllowlist, ProcessHandle, SandboxMode, Workspace};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windlass_permission::quote;
use windlass_protocol::{PermissionMode, ToolAccess};

/// Folder in the cache that contains one folder per process; see [`Workspace::process_folder`].
const PROCESS_CACHE_FOLDER: &str = "processes";

/// A long-running program to start.
#[derive(Clone, Debug)]
pub struct ProcessSpec {
    /// Name of the process, such as `mcp/git`.
    pub name: String,
    /// Absolute path, path relative to `folder`, or bare name. A bare name is looked up in `PATH`,
    /// but never in the workspace.
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    /// Working folder, as an absolute path.
    pub folder: PathBuf,
    /// Variables added to the environment of a command. They come last, so they take precedence.
    pub env: Vec<(OsString, OsString)>,
    pub sandbox_access: ProcessSandboxAccess,
}

/// The files and hosts that a process may access; part of a [`ProcessSpec`].
#[derive(Clone, Debug)]
pub struct ProcessSandboxAccess {
    pub workspace: WorkspaceAccess,
    /// Folders outside the workspace that the process may change. Ignored in plan mode.
    pub writable_folders: Vec<PathBuf>,
    /// Hosts that the process may reach. If the policy of this machine enforces a list, only those
    /// that are also on it.
    pub hosts: HostAllowlist,
    /// Overrides the `SandboxMode` of commands. Only the user's own configuration may set
    /// [`SandboxMode::Off`], and it is refused in plan mode.
    pub sandbox_mode: Option<SandboxMode>,
}

/// Access of a process to the workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkspaceAccess {
    Read,
    /// Reads and writes. In plan mode this becomes `Read`.
    Write,
}

impl WorkspaceAccess {
    /// Returns the access that is left in `mode`.
    #[must_use]
    pub fn in_mode(self, mode: PermissionMode) -> WorkspaceAccess {
        match mode {
            PermissionMode::Plan => WorkspaceAccess::Read,
            PermissionMode::Ask | PermissionMode::Auto | PermissionMode::Full => self,
        }
    }
}

impl ProcessSpec {
    /// Returns the program and its arguments as one readable, quoted line.
    pub fn command_line(&self) -> String {
        let program = self.program.to_string_lossy();
        let arguments = self.arguments.iter().map(|argument| argument.to_string_lossy());
        quote(std::iter::once(program).chain(arguments))
    }

    /// Returns the `ToolAccess` that a grant must cover to start the process.
    pub fn required_access(&self) -> ToolAccess {
        ToolAccess::StartProcess { process: self.name.clone(), command: self.command_line() }
    }
}

/// The writer to a process's stdin.
#[cfg(unix)]
pub type ProcessStdin = tokio::net::unix::pipe::Sender;
/// The reader of a process's stdout.
#[cfg(unix)]
pub type ProcessStdout = tokio::net::unix::pipe::Receiver;
/// The writer to a process's stdin.
#[cfg(not(unix))]
pub type ProcessStdin = tokio::io::DuplexStream;
/// The reader of a process's stdout.
#[cfg(not(unix))]
pub type ProcessStdout = tokio::io::DuplexStream;

/// The streams of a started process. Its stderr goes to its [`ProcessHandle`].
#[derive(Debug)]
pub struct ProcessIo {
    /// Stdin of the process. Dropping it asks most programs to end.
    pub stdin: ProcessStdin,
    pub stdout: ProcessStdout,
    pub(crate) handle: Arc<ProcessHandle>,
}

impl ProcessIo {
    /// Splits into stdin, stdout and the handle. The process ends when its last handle is dropped.
    pub fn split(self) -> (ProcessStdin, ProcessStdout, Arc<ProcessHandle>) {
        (self.stdin, self.stdout, self.handle)
    }

    /// Returns the handle that keeps the process running.
    pub fn handle(&self) -> &Arc<ProcessHandle> {
        &self.handle
    }
}

impl Workspace {
    /// Sets the folder in which processes cache their downloads. Without it they cache nothing.
    #[must_use]
    pub fn with_cache(mut self, cache: &Path) -> Workspace {
        self.process_cache = Some(cache.into());
        self
    }

    /// Returns the cache folder that only the process of this name may change. It is created when
    /// the process starts.
    pub fn process_folder(&self, name: &str) -> Option<PathBuf> {
        Some(self.process_cache.as_ref()?.join(PROCESS_CACHE_FOLDER).join(encode_file_name(name)))
    }
}

/// Encodes a name as one path component, so that no two names share one.
fn encode_file_name(name: &str) -> String {
    let mut encoded = String::new();
    for byte in name.bytes() {
        match byte {
            b'/' => encoded.push('+'),
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'-' => encoded.push(char::from(byte)),
            other => {
                // Writing to a `String` cannot fail.
                let _ = write!(encoded, "={other:02x}");
            }
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
    use std::path::Component;

    proptest! {
        #[test]
        fn every_name_maps_to_its_own_single_folder(
            one in any::<String>(),
            two in any::<String>(),
        ) {
            prop_assert_eq!(encode_file_name(&one) == encode_file_name(&two), one == two);
            let path = PathBuf::from(encode_file_name(&one));
            let parts: Vec<_> = path.components().collect();
            prop_assert!(one.is_empty() || matches!(parts.as_slice(), [Component::Normal(_)]));
        }
    }

    #[test]
    fn a_grant_covers_only_the_exact_command_line() {
        let process_spec = |arguments: &[&str]| ProcessSpec {
            name: "mcp/git".to_owned(),
            program: "/bin/git server".into(),
            arguments: arguments.iter().map(OsString::from).collect(),
            folder: "/".into(),
            env: Vec::new(),
            sandbox_access: ProcessSandboxAccess {
                workspace: WorkspaceAccess::Read,
                writable_folders: Vec::new(),
                hosts: HostAllowlist::none(),
                sandbox_mode: None,
            },
        };
        assert_eq!(process_spec(&["a", "b c", ""]).command_line(), "'/bin/git server' a 'b c' ''");
        assert_ne!(
            process_spec(&["a b"]).required_access(),
            process_spec(&["a", "b"]).required_access()
        );
        assert_eq!(encode_file_name("mcp/git"), "mcp+git");
        assert_eq!(encode_file_name("../.."), "=2e=2e+=2e=2e");
    }
}
