//! The cage that a command runs in: exactly as wide as what was granted.
//!
//! It does not decide, it encloses. Three layers hold, each where the one before it ends: mounts
//! or Landlock say which folders can be read and written; filters of system calls take away what
//! a command needs for nothing but breaking out; and the [`Door`] asks for every name that is made
//! whether it is protected, because a name that does not exist yet cannot be mounted over. What
//! slips through the door is told by [`changed`].
//!
//! It keeps the invariant that a command runs in the cage that was asked for or not at all: there
//! is no step down at this level. Start reading at [`Cage::enter`].

#[cfg(target_os = "linux")]
mod bwrap;
#[cfg(target_os = "linux")]
mod door;
#[cfg(target_os = "linux")]
mod entry;
mod explain;
#[cfg(target_os = "linux")]
mod landlock;
mod names;
#[cfg(target_os = "linux")]
mod place;
mod probe;
#[cfg(any(not(target_os = "linux"), test))]
mod seatbelt;
#[cfg(target_os = "linux")]
mod seccomp;
mod secrets;
mod spelled;
mod witness;

#[cfg(target_os = "linux")]
pub use door::Door;
#[cfg(target_os = "linux")]
pub use entry::{Entered, Inside};
pub use explain::explain;
pub use names::guarded;
#[cfg(target_os = "linux")]
pub(crate) use probe::system_program;
pub use probe::{Probe, probe};
pub use secrets::secrets;
pub use witness::{Snapshot, changed, snapshot};

use crate::Error;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a command may touch, and what holds it to that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cage {
    /// What encloses it.
    pub backend: Backend,
    /// The workspace, as a real path.
    #[serde(with = "spelled::one")]
    pub root: PathBuf,
    /// Whether the workspace may be changed.
    pub writable: bool,
    /// More folders that may be changed, as real paths.
    #[serde(with = "spelled::all")]
    pub write: Vec<PathBuf>,
    /// A folder of the session's own, mode 0700: what the command takes for `/tmp`.
    #[serde(with = "spelled::one")]
    pub temp: PathBuf,
    /// What cannot be read; what does not exist is passed over.
    #[serde(with = "spelled::all")]
    pub hidden: Vec<PathBuf>,
    /// What is never seen, wherever it lies, whatever else is opened. A command is rather not run.
    #[serde(with = "spelled::all")]
    pub private: Vec<PathBuf>,
    /// Protected paths that exist, from [`guarded`]: they cannot be changed.
    #[serde(with = "spelled::all")]
    pub guarded: Vec<PathBuf>,
    /// What can be reached.
    pub network: Network,
}

/// What encloses a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// Namespaces and mounts, by bubblewrap.
    Bubblewrap {
        /// Where it is.
        #[serde(with = "spelled::one")]
        program: PathBuf,
    },
    /// Landlock and filters, where bubblewrap cannot run.
    Landlock,
    /// The sandbox of macOS. Untested.
    Seatbelt,
    /// Nothing. A person chose that.
    Off,
}

/// What a command can reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// Nothing.
    None,
    /// One port of the loopback, where the proxy listens.
    Proxy {
        /// The port.
        port: u16,
    },
    /// Everything. Only without a cage.
    Open,
}

impl Cage {
    /// Puts a command in the cage. Call it last, just before `spawn`: closures that were added to
    /// the command before run outside of the cage, those that are added later may never run. The
    /// command gets the variables that were set on it and no others, and no descriptors but the
    /// standard three. Those should be pipes or a terminal: a file can be opened again by the name
    /// `/dev/stdout`, as wide as its own folder allows.
    #[cfg(target_os = "linux")]
    pub fn enter(&self, command: &mut Command) -> Result<Entered, Error> {
        self.check()?;
        match &self.backend {
            Backend::Off => {
                command.env("TMPDIR", &self.temp);
                Ok(Entered::outside())
            }
            Backend::Bubblewrap { program } => entry::wrap(self, program, command),
            Backend::Landlock => entry::lock(self, command),
            Backend::Seatbelt => Err(no("Seatbelt is a part of macOS")),
        }
    }

    /// Puts a command in the cage.
    #[cfg(not(target_os = "linux"))]
    pub fn enter(&self, command: &mut Command) -> Result<Entered, Error> {
        self.check()?;
        match &self.backend {
            Backend::Off => Ok(Entered),
            Backend::Seatbelt => {
                seatbelt::wrap(self, command);
                Ok(Entered)
            }
            Backend::Bubblewrap { .. } | Backend::Landlock => {
                Err(no("bubblewrap and Landlock are parts of Linux"))
            }
        }
    }

    /// Refuses what would be no cage.
    fn check(&self) -> Result<(), Error> {
        if self.backend == Backend::Off {
            return Ok(());
        }
        let folders = [&self.root, &self.temp].into_iter().chain(&self.write);
        let others = self.hidden.iter().chain(&self.private).chain(&self.guarded);
        for folder in folders.clone().chain(others) {
            let plain = folder.components().all(|part| {
                matches!(part, std::path::Component::Normal(_) | std::path::Component::RootDir)
            });
            if !folder.is_absolute() || !plain {
                return Err(no(format!("{} is not a whole path", folder.display())));
            }
        }
        for folder in folders {
            if folder.parent().is_none() {
                return Err(no("the folder is the whole disk; start in a folder beneath it"));
            }
        }
        if self.is_private(&self.root) {
            return Err(no("the workspace is a folder of Windlass's own; work in another one"));
        }
        let holds = |private: &PathBuf| self.opened().any(|folder| private.starts_with(folder));
        match (&self.backend, self.network) {
            (_, Network::Open) => Err(no("a cage with an open network is none")),
            (Backend::Landlock, Network::Proxy { .. }) => {
                Err(no("Landlock limits ports, not addresses, so it cannot lead to a proxy alone"))
            }
            (Backend::Landlock, Network::None) if self.private.iter().any(holds) => {
                Err(no("the workspace, or a folder that may be changed, holds Windlass's own \
                        config or sessions, which Landlock cannot hide there. Work in another \
                        folder, or install bubblewrap"))
            }
            (_, Network::None | Network::Proxy { .. }) => Ok(()),
        }
    }

    fn is_private(&self, folder: &Path) -> bool {
        self.private.iter().any(|private| folder.starts_with(private))
    }

    /// The workspace and the other folders, but for those that are never seen.
    fn opened(&self) -> impl Iterator<Item = &Path> {
        let folders = [&self.root].into_iter().chain(&self.write).map(PathBuf::as_path);
        folders.filter(|folder| !self.is_private(folder))
    }

    /// Folders that may be changed, apart from the temporary one.
    fn writes(&self) -> impl Iterator<Item = &Path> {
        self.opened().filter(|folder| self.writable || *folder != self.root)
    }
}

/// What a command that is about to start hands back. Nothing, here.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
pub struct Entered;

fn no(reason: impl Into<String>) -> Error {
    Error::NoCage { reason: reason.into() }
}

#[cfg(unix)]
#[cfg(test)]
mod tests;
