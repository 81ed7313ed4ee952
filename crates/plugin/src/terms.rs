//! What a program may have, whatever it says of itself.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use windlass_sandbox::{Hold, Hosts};

/// What a program may have.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The project's folder, where it runs.
    pub folder: PathBuf,
    /// The hosts that commands reach without being asked about.
    pub hosts: Hosts,
    /// What its own list of hosts is worth.
    pub wishes: Wishes,
    /// How long its calls may take, if it does not say.
    pub timeout: Option<Duration>,
    /// The most it may do with the project, whatever its tools declare.
    pub most: Hold,
    /// Folders besides the project that it may write to.
    pub write: Vec<PathBuf>,
    /// What it finds in its environment besides.
    pub env: Vec<(OsString, OsString)>,
}

/// What a program's own list of hosts is worth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wishes {
    /// It is the person's own: it reaches them.
    Granted,
    /// It comes with a plugin: it reaches what commands reach anyway, and these, which the person saw
    /// before they said yes.
    Shown(Vec<String>),
    /// It comes with a project: it reaches what commands reach anyway.
    Held,
}
