//! A servant: a program that is kept running because calls are answered by it. Plain data here, the
//! same on every system.
//!
//! No call starts it, so its cage is as wide as what the person wrote about it, and never wider than
//! the mode of whoever engages it. Start reading at [`Servant`], then at [`Workspace::engage`].

use crate::{Held, Hosts, Walls, Workspace};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windlass_permission::quote;
use windlass_protocol::{Access, Mode};

/// Where the folders of servants are, in the cache.
const FOLDER: &str = "servants";

/// A program that is kept running.
#[derive(Clone, Debug)]
pub struct Servant {
    /// What it is known by, such as `mcp/git`.
    pub name: String,
    /// A whole path, one relative to its folder, or a bare name. A bare name is looked for where
    /// programs are found, but never in the workspace.
    pub program: PathBuf,
    /// What it is called with.
    pub arguments: Vec<OsString>,
    /// Where it runs, as a whole path.
    pub folder: PathBuf,
    /// What its environment has besides that of a command; it comes last, so it counts.
    pub env: Vec<(OsString, OsString)>,
    /// What it may touch.
    pub keep: Keep,
}

/// What a servant may touch.
#[derive(Clone, Debug)]
pub struct Keep {
    /// What it may do with the workspace.
    pub workspace: Hold,
    /// More folders that it may change, outside of the workspace. None in mode plan.
    pub write: Vec<PathBuf>,
    /// The hosts it may reach. Where the policy of this machine holds a list, only those on it.
    pub network: Hosts,
    /// What encloses it, if not what encloses commands. Only the person's own config may say
    /// [`Walls::Off`], and in mode plan nobody.
    pub walls: Option<Walls>,
}

/// What a servant may do with the workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hold {
    /// Look at it.
    Read,
    /// Change it, too. In mode plan this means looking.
    Write,
}

impl Hold {
    /// What is left of it in a mode.
    #[must_use]
    pub fn in_mode(self, mode: Mode) -> Hold {
        match mode {
            Mode::Plan => Hold::Read,
            Mode::Ask | Mode::Auto | Mode::Full => self,
        }
    }
}

impl Servant {
    /// How it is called, as one line that a person can read.
    pub fn command(&self) -> String {
        let program = self.program.to_string_lossy();
        let arguments = self.arguments.iter().map(|argument| argument.to_string_lossy());
        quote(std::iter::once(program).chain(arguments))
    }

    /// What a grant must cover so that it is started.
    pub fn access(&self) -> Access {
        Access::Engage { servant: self.name.clone(), command: self.command() }
    }
}

/// What is written to a servant.
#[cfg(unix)]
pub type Inlet = tokio::net::unix::pipe::Sender;
/// What a servant says.
#[cfg(unix)]
pub type Outlet = tokio::net::unix::pipe::Receiver;
/// What is written to a servant.
#[cfg(not(unix))]
pub type Inlet = tokio::io::DuplexStream;
/// What a servant says.
#[cfg(not(unix))]
pub type Outlet = tokio::io::DuplexStream;

/// A servant that was started. What it complains of goes to its [`Held`].
#[derive(Debug)]
pub struct Engaged {
    /// What it reads. Dropping it is how most are asked to end.
    pub input: Inlet,
    /// What it says.
    pub output: Outlet,
    pub(crate) hold: Arc<Held>,
}

impl Engaged {
    /// Its two ends, and what keeps it running: it ends when the last of these is dropped.
    pub fn split(self) -> (Inlet, Outlet, Arc<Held>) {
        (self.input, self.output, self.hold)
    }

    /// What keeps it running.
    pub fn held(&self) -> &Arc<Held> {
        &self.hold
    }
}

impl Workspace {
    /// Says where servants keep what they fetch. Without this they keep nothing.
    #[must_use]
    pub fn with_cache(mut self, cache: &Path) -> Workspace {
        self.cache = Some(cache.into());
        self
    }

    /// The folder in the cache that only the servant of this name may change. It is made when the
    /// servant is engaged.
    pub fn servant_folder(&self, name: &str) -> Option<PathBuf> {
        Some(self.cache.as_ref()?.join(FOLDER).join(file_name(name)))
    }
}

/// A name as one part of a path, so that no two names share one.
fn file_name(name: &str) -> String {
    let mut part = String::new();
    for byte in name.bytes() {
        match byte {
            b'/' => part.push('+'),
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'-' => part.push(char::from(byte)),
            other => {
                // It cannot fail.
                let _ = write!(part, "={other:02x}");
            }
        }
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
    use std::path::Component;

    proptest! {
        #[test]
        fn no_two_names_share_a_folder_and_none_leads_out(one in any::<String>(), two in any::<String>()) {
            prop_assert_eq!(file_name(&one) == file_name(&two), one == two);
            let path = PathBuf::from(file_name(&one));
            let parts: Vec<_> = path.components().collect();
            prop_assert!(one.is_empty() || matches!(parts.as_slice(), [Component::Normal(_)]));
        }
    }

    #[test]
    fn a_grant_is_for_the_very_words() {
        let servant = |arguments: &[&str]| Servant {
            name: "mcp/git".to_owned(),
            program: "/bin/git server".into(),
            arguments: arguments.iter().map(OsString::from).collect(),
            folder: "/".into(),
            env: Vec::new(),
            keep: Keep {
                workspace: Hold::Read,
                write: Vec::new(),
                network: Hosts::none(),
                walls: None,
            },
        };
        assert_eq!(servant(&["a", "b c", ""]).command(), "'/bin/git server' a 'b c' ''");
        assert_ne!(servant(&["a b"]).access(), servant(&["a", "b"]).access());
        assert_eq!(file_name("mcp/git"), "mcp+git");
        assert_eq!(file_name("../.."), "=2e=2e+=2e=2e");
    }
}
