//! What a command is started with and what is told of it: plain data, the same on every system.

use crate::{Hooks, Hosts, Task, Walls};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use windlass_protocol::SessionId;

/// How the commands of a workspace are run.
#[derive(Clone, Debug)]
pub struct Shell {
    /// What encloses them.
    pub walls: Walls,
    /// The environment that theirs is made from.
    pub inherited: Vec<(OsString, OsString)>,
    /// What they may reach without being asked about.
    pub reach: Reach,
    /// Folders besides the workspace that they may change.
    pub write: Vec<PathBuf>,
    /// The person's home, whose secrets they cannot read.
    pub home: Option<PathBuf>,
    /// What they never see, wherever it lies: our own config and sessions.
    pub private: Vec<PathBuf>,
    /// Whether git runs the project's hooks.
    pub hooks: Hooks,
}

/// The hosts that commands may reach.
#[derive(Clone, Debug)]
pub enum Reach {
    /// These; a yes opens more.
    Listed(Hosts),
    /// These and never more: the policy of this machine has the last word.
    Held(Hosts),
}

/// How a command is started.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// The session it belongs to.
    pub session: SessionId,
    /// What the shell is told.
    pub command: &'a str,
    /// Where, relative to the workspace.
    pub folder: &'a str,
    /// What it reads.
    pub stdin: Stdin,
}

/// What a command reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stdin {
    /// Nothing: its input is at its end from the start.
    Closed,
    /// What is written to it.
    Pipe,
    /// What is typed on a terminal of its own, which its output goes to as well.
    Terminal {
        /// Its height.
        rows: u16,
        /// Its width.
        cols: u16,
    },
}

/// Something that a session's commands have to tell it.
pub enum Word {
    /// What the model is to know, such as that one in the background ended.
    Tell(String),
    /// One in the background began, said something or ended.
    Job(Arc<Task>),
}

/// What a session's commands have to tell it. Whoever lets go of it has no commands any more: what
/// still runs of them is ended.
pub struct News {
    pub(crate) told: mpsc::UnboundedReceiver<Word>,
    /// What is to be done then.
    pub(crate) part: Option<Box<dyn FnOnce() + Send>>,
}

impl News {
    /// The next of it.
    pub async fn recv(&mut self) -> Option<Word> {
        self.told.recv().await
    }
}

impl Drop for News {
    fn drop(&mut self) {
        if let Some(part) = self.part.take() {
            part();
        }
    }
}

/// How a command ended, and what it left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// By itself or not.
    pub exit: Exit,
    /// What of it still runs.
    pub still: Vec<Running>,
    /// How much more than is named does.
    pub more: usize,
    /// How long it ran.
    pub took: Duration,
}

/// How a command ended.
#[derive(Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// It was ended because it had more than so many processes.
    Crowded(usize),
    /// What started it was ended by somebody, so nobody knows.
    Lost,
}

/// A process that outlives its command.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// Its number.
    pub pid: i32,
    /// Its name.
    pub name: String,
    /// How it was called, cut if that is long.
    pub line: String,
}

/// What was kept of what a command has said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// The beginning.
    pub head: Vec<u8>,
    /// The end, as far as it is not in the beginning. What is between them is not kept.
    pub tail: Vec<u8>,
    /// How many bytes it was in all.
    pub bytes: u64,
    /// How many lines, the last one also if it is not complete.
    pub lines: u64,
}

impl Heard {
    /// How many bytes between the beginning and the end are not kept.
    pub fn missing(&self) -> u64 {
        self.bytes.saturating_sub((self.head.len() + self.tail.len()) as u64)
    }
}

/// What a command has said since it was last asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// It, with a mark wherever it was not text.
    pub text: String,
    /// How many bytes before it are not kept.
    pub missed: u64,
    /// Where to go on.
    pub next: u64,
}

/// What a command is saying.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Glimpse {
    /// The last lines.
    pub last: String,
    /// How many bytes so far.
    pub bytes: u64,
    /// How many lines so far.
    pub lines: u64,
}

/// A host that a command wanted to reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    /// The host, and the port behind a colon.
    pub host: String,
    /// Why it could not, if so.
    pub refused: Option<String>,
    /// How often it got this answer.
    pub times: u64,
}
