//! Limits on a program, independent of what it declares.

use async_trait::async_trait;
use std::ffi::OsString;
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use windlass_protocol::{FactRecord, SessionId};
use windlass_sandbox::{HostAllowlist, WorkspaceAccess};

/// Limits on a program and its environment.
#[derive(Clone, Debug)]
pub struct ProgramLimits {
    /// The project folder, in which the program runs.
    pub folder: PathBuf,
    /// The hosts that commands may reach without approval.
    pub hosts: HostAllowlist,
    /// The treatment of the hosts that the program declares.
    pub host_allowance: DeclaredHostPolicy,
    /// The timeout of calls, unless the tool declares one.
    pub timeout: Option<Duration>,
    /// The maximum access to the workspace, independent of the `access` that the tools declare.
    pub max_access: WorkspaceAccess,
    /// Writable folders outside the project.
    pub writable_dirs: Vec<PathBuf>,
    /// Additional environment variables.
    pub env: Vec<(OsString, OsString)>,
    /// The reader of the session for which the program is called, if it may read it.
    pub sessions: Option<Arc<dyn SessionReader>>,
}

/// A reader of recorded sessions, for programs that ask for the one they work for.
#[async_trait]
pub trait SessionReader: Debug + Send + Sync {
    /// Returns the facts of a session, in order. If they are too many or too long, the oldest are
    /// left out.
    async fn read_session(&self, session: SessionId) -> Result<Vec<FactRecord>, String>;
}

/// The treatment of the hosts that a program declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeclaredHostPolicy {
    /// The program belongs to the user and may reach the hosts it declares.
    Own,
    /// The program comes with a plugin. It may reach the hosts that commands may reach, and these,
    /// which the user saw and approved.
    Approved(Vec<String>),
    /// The program comes with a project. It may reach only the hosts that commands may reach.
    Default,
}
