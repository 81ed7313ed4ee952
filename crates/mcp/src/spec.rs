//! What is said of a server before it is spoken to: how it is reached, what was known of it the last
//! time, and who keeps what is learnt. Plain data.

use crate::PromptCard;
use crate::tokens::Auth;
use crate::wire::Reach;
use rmcp::model::ProtocolVersion;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;
use windlass_sandbox::Servant;

/// A server.
#[derive(Clone)]
pub struct Spec {
    /// Its name, which its tools begin with.
    pub name: String,
    /// How it is reached.
    pub way: Way,
    /// How long it may take to start.
    pub timeout: Duration,
    /// The revision of the protocol to speak, if somebody says so.
    pub protocol: Option<Lifecycle>,
    /// What names what is started or reached. What was known of another one does not count.
    pub digest: String,
    /// What was known of it the last time.
    pub pins: Option<Pinned>,
}

/// How a server is reached.
#[derive(Clone)]
pub enum Way {
    /// It is a program.
    Local(Box<Servant>),
    /// It is at an address.
    Remote {
        /// The address.
        url: String,
        /// Headers that are sent with every request.
        headers: Vec<(String, SecretString)>,
        /// How to log in.
        auth: Auth,
        /// Where it may be.
        reach: Reach,
    },
}

/// Who keeps what is learnt of servers, and tells the person.
pub trait Keeping: Send + Sync {
    /// Keeps what is known of a server now.
    fn pin(&self, server: &str, pinned: &Pinned);
    /// Writes a line down that only somebody who looks for a fault wants to read.
    fn journal(&self, server: &str, line: &str);
    /// Tells the person something.
    fn notice(&self, text: String);
}

/// A revision of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Lifecycle {
    /// A connection begins with `initialize`.
    #[serde(rename = "2025-11-25")]
    Initialize,
    /// Every request stands for itself.
    #[serde(rename = "2026-07-28")]
    Discover,
}

impl Lifecycle {
    /// The revision of this date.
    pub fn named(date: &str) -> Option<Lifecycle> {
        match date {
            "2025-11-25" => Some(Lifecycle::Initialize),
            "2026-07-28" => Some(Lifecycle::Discover),
            _ => None,
        }
    }

    pub(crate) fn of(version: &ProtocolVersion) -> Lifecycle {
        if *version == ProtocolVersion::V_2026_07_28 {
            Lifecycle::Discover
        } else {
            Lifecycle::Initialize
        }
    }
}

/// What is known of a server: the definitions that somebody looked at, or the first that came.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pinned {
    /// The digest of what was started or reached.
    pub spec: String,
    /// The revision of the protocol it speaks.
    pub lifecycle: Lifecycle,
    /// Its tools.
    pub tools: Vec<PinnedTool>,
    /// Its prompts.
    #[serde(default)]
    pub prompts: Vec<PromptCard>,
    /// It has resources.
    #[serde(default)]
    pub resources: bool,
}

/// A tool as it was looked at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PinnedTool {
    /// What the server calls it.
    pub name: String,
    /// Names the definition.
    pub digest: String,
    /// The definition: name, title, description, inputSchema, annotations.
    pub definition: Value,
}
