//! Front ends of a session, as the log names them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A front end of a session, as the log and other front ends name it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClientInfo {
    /// Name of the user, or of the token that the client has.
    pub name: String,
    /// Kind of the client.
    pub kind: ClientKind,
}

/// Kind of a front end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClientKind {
    /// The terminal UI.
    Terminal,
    /// A command such as `windlass run`.
    CommandLine,
    /// A web page.
    WebPage,
    /// An editor.
    Editor,
    /// Another program.
    Program,
}

impl fmt::Display for ClientKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ClientKind::Terminal => "terminal",
            ClientKind::CommandLine => "command line",
            ClientKind::WebPage => "web page",
            ClientKind::Editor => "editor",
            ClientKind::Program => "program",
        })
    }
}

impl fmt::Display for ClientInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.as_str() {
            "" => write!(f, "another {}", self.kind),
            name => write!(f, "{name} ({})", self.kind),
        }
    }
}
