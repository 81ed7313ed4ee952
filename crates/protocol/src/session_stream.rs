//! The event stream of a session between a host and a client in another process.
//!
//! Facts come in order and without gaps; [`SessionStreamItem::Fact`] carries the cursor from which
//! the stream goes on after a lost connection. Start reading at [`SessionStreamItem`].

use crate::client_info::ClientInfo;
use crate::event::FactRecord;
use crate::event_cursor::{EventCursor, LogPosition};
use crate::fault::Fault;
use crate::ids_and_timestamps::{CallId, LogSeq, SessionId};
use crate::live_event::LiveEventRecord;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An item of the event stream of a session.
#[derive(Clone, Debug, PartialEq)]
pub enum SessionStreamItem {
    /// The first item of every connection.
    Opened(StreamOpening),
    /// The next fact, and the cursor after it.
    Fact(Box<FactRecord>, EventCursor),
    /// A live event; it may be missing.
    Live(Box<LiveEventRecord>),
    /// The client fell behind and missed live events. Facts follow from the log.
    Lagged(StreamLag),
    /// Facts that the client has no longer exist.
    Reset(StreamReset),
    /// The session stopped by itself. No further item follows.
    Stopped(Fault),
    /// The host ends the stream. No further item follows.
    Closing(StreamClosing),
    /// The client lost the connection, and connects again. Only clients produce it.
    Disconnected(String),
}

/// The state of a session when a stream of its events begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamOpening {
    /// ID of the session.
    pub session: SessionId,
    /// Last position of its log.
    pub head: LogSeq,
    /// Epoch of that position, so that a client which begins there notices when it is lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// True while a turn is under way.
    pub is_busy: bool,
    /// False if another process runs the session: facts arrive late, and live events never.
    pub is_live: bool,
    /// Facts that ask the user something and have no answer, of the session and its subagents.
    #[serde(default)]
    pub open_questions: Vec<FactRecord>,
    /// Clients that watch the session, with this one.
    #[serde(default)]
    pub clients: Vec<ClientInfo>,
}

/// The number of events that a client missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StreamLag {
    /// Number of events that could not be sent in time, including facts, which follow.
    pub events: u64,
}

/// The end of a log was lost: forget all facts of the session after a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StreamReset {
    /// The session, or a subagent of it.
    pub session: SessionId,
    /// Last position that is still valid.
    pub to: LogPosition,
}

/// The end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StreamClosing {
    /// The reason.
    pub reason: StreamClosingReason,
    /// Time after which it is worth connecting again; absent if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_ms: Option<u64>,
}

/// The reason why the host ends a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StreamClosingReason {
    /// The server stops.
    ServerStopping,
    /// The token of the client was revoked or has expired.
    TokenRevoked,
    /// The session was closed or deleted.
    SessionClosed,
    /// The turn that the client asked to wait for has ended.
    TurnEnded,
}

/// A sign of life on an idle stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StreamHeartbeat {
    /// Last position of the log that was sent.
    pub head: LogSeq,
}

/// An item of the event stream of a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "host", rename_all = "snake_case")]
pub enum HostStreamItem {
    /// A session was opened or changed its state.
    Session {
        /// The new state.
        state: Box<OpenSessionState>,
    },
    /// A session is no longer open.
    SessionClosed {
        /// ID of the session.
        session: SessionId,
    },
    /// A notice for the user.
    Notice {
        /// Folder that it is about.
        workspace: String,
        /// Text of the notice, one or a few sentences.
        text: String,
    },
    /// The states of the MCP and language servers of a folder have changed.
    Servers {
        /// The folder.
        workspace: String,
        /// All its servers.
        servers: Vec<crate::frontend_messages::ServerStatus>,
    },
}

/// The activity of an open session: the first of these that applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpenSessionActivity {
    /// It waits for an answer of the user.
    Waiting,
    /// A turn is under way.
    Working,
    /// Only background jobs or subagents run.
    Background,
    /// Nothing runs.
    Idle,
}

/// State of a session that is open in the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OpenSessionState {
    /// ID of the session.
    pub session: SessionId,
    /// Folder that the session works in.
    pub workspace: String,
    /// Title of the session; may be empty.
    pub title: String,
    /// True while a turn is under way.
    pub is_busy: bool,
    /// Calls that wait for an answer of the user.
    #[serde(default)]
    pub open_questions: Vec<CallId>,
    /// Number of background jobs and subagents that run.
    pub background_count: u32,
    /// Last position of the log.
    pub head: LogSeq,
    /// Clients that watch the session.
    #[serde(default)]
    pub clients: Vec<ClientInfo>,
    /// True if the session is open in the server of this machine, and the host is another process.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_in_server: bool,
}

impl OpenSessionState {
    /// Returns what the session does.
    pub fn activity(&self) -> OpenSessionActivity {
        match (self.open_questions.is_empty(), self.is_busy, self.background_count) {
            (false, _, _) => OpenSessionActivity::Waiting,
            (true, true, _) => OpenSessionActivity::Working,
            (true, false, 1..) => OpenSessionActivity::Background,
            (true, false, 0) => OpenSessionActivity::Idle,
        }
    }
}
