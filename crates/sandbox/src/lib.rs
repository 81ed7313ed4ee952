//! The only access to files, commands and processes on the model's behalf, limited to exactly what
//! a `Grant` covers.
//!
//! This crate does not decide; `permission` does. It keeps two invariants. An opened path is the
//! granted path: the crate resolves a path beneath the workspace's directory handle, checks it
//! against the grant, and opens it component by component without following a single symbolic link,
//! so that replacing a folder by a link in between leads nowhere. And nothing changes before the
//! change is recorded. Start reading at [`Workspace`].

mod call_workspace;
mod command;
mod confine;
pub mod editor_and_clipboard;
mod error;
#[cfg(target_os = "linux")]
mod fork;
mod fs;
mod heap_trim;
mod helper_process;
mod network;
mod open_in_browser;
mod path_lookup;
mod process;
mod restricted_paths;
#[cfg(target_os = "linux")]
mod supervisor;
pub mod terminal_watch;
mod working_folder;
mod workspace;

pub use call_workspace::{CallWorkspace, OpenedPath};
pub use command::command_types::{
    CapturedOutput, CommandChanges, CommandSandboxConfig, ExitReport, HostAttempt, JobSpec,
    LeftoverProcess, OutputChunk, OutputPreview, ProcessExit, StdinMode,
};
pub use command::environment::{CommandEnvironmentOptions, GitHookMode, command_environment};
#[cfg(target_os = "linux")]
pub use command::job::Job;
pub use command::job_events::{JobEvent, JobEvents};
#[cfg(not(target_os = "linux"))]
pub use command::unsupported::{Job, ProcessHandle, run_supervisor};
#[cfg(target_os = "linux")]
#[doc(hidden)]
pub use confine::check_path_broker_invariants;
pub use confine::{
    LoopbackScope, NetworkAccess, PendingSandboxStart, ProtectedPathsSnapshot, SandboxBackend,
    SandboxProbeResult, SandboxProfile, changed_since, explain_failure, probe, protected_paths,
    secret_paths, snapshot_protected,
};
#[cfg(target_os = "linux")]
pub use confine::{
    PackageCache, PackageCaches, PathGuard, ReceivedChildDescriptors, SessionNamespaces,
};
pub use error::Error;
pub use fs::file_change::{
    ChangeRecorder, FileContent, FileWrite, MAX_CHANGED_FILE_BYTES, PendingFileChange,
    WriteBatchOutcome,
};
pub use fs::walk::{FileFilter, FileWalk, FoundFile};
pub use fs::write_batch::wait_for_writes;
pub use helper_process::{HELPER_ARGUMENT, git_status, program_version, run_helper};
pub use network::host_route::HostRoute;
pub use network::policy::NetworkPolicy;
#[doc(hidden)]
pub use network::proxy::NameResolver;
#[doc(hidden)]
pub use network::proxy::check_proxy_head_invariants;
pub use network::proxy::{HostAllowlist, HostAllowlistError, HostDecision, HostRuling, Proxy};
pub use network::proxy::{UpstreamProxy, is_public, is_public_or_fake};
pub use open_in_browser::open_page;
pub use path_lookup::{MachinePathLookup, SandboxMode};
#[cfg(target_os = "linux")]
pub use process::handle::ProcessHandle;
pub use process::spec::{
    ProcessIo, ProcessSandboxAccess, ProcessSpec, ProcessStdin, ProcessStdout, WorkspaceAccess,
};
#[cfg(target_os = "linux")]
pub use supervisor::client::{SpawnSpec, SupervisedProcess, SupervisorClient};
#[cfg(target_os = "linux")]
pub use supervisor::limits::JobLimits;
#[cfg(target_os = "linux")]
#[doc(hidden)]
pub use supervisor::messages::decode_request;
#[cfg(target_os = "linux")]
pub use supervisor::run_supervisor;
pub use working_folder::WorkingFolder;
pub use workspace::{FileStat, Workspace};
