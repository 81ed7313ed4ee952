//! Live events, which front ends show as they happen and which are not stored.

use crate::hook::{HookPoint, HookVerdict};
use crate::ids_and_timestamps::{CallId, SessionId, UnixMillis};
use crate::query_rows::JobRow;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An event to show as it happens. It is never stored, and dropping it changes no fact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LiveEvent {
    /// A piece of the model's output, before `ModelText` or `ModelReasoning` is complete.
    ModelDelta {
        /// Stream that the piece belongs to.
        stream: ModelStreamKind,
        /// Text of the piece.
        text: String,
    },
    /// A tool call that the model is still writing. The first event comes with the name of the
    /// tool, later ones follow at most ten times a second. `ToolCalled` replaces all of them; if
    /// the step ends without it, the call never came to be.
    PartialCall {
        /// Distinguishes the calls of one step.
        index: u64,
        /// Name of the tool, as the model wrote it.
        tool: String,
        /// Path of the file that the call is about, once the model has written it completely;
        /// relative to the workspace if it lies inside.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
        /// Bytes of the arguments so far.
        argument_bytes: u64,
    },
    /// The output so far of the model request under way, for a client that starts to watch in the
    /// middle of it or that missed live events. It replaces all earlier `ModelDelta`s and
    /// `PartialCall`s.
    PartialStep {
        /// Texts in the order in which the model began them.
        texts: Vec<StreamedText>,
        /// Calls that the model is still writing.
        calls: Vec<PartialCallProgress>,
    },
    /// Progress report of a running call.
    CallProgress {
        /// Call ID from `ToolCalled`.
        call: CallId,
        /// One line of text.
        text: String,
    },
    /// A piece of the output of a running command. Pieces may be dropped: even a reader that
    /// received all of them has only the tail of the output.
    CommandOutput {
        /// ID from `ToolCalled` of the call that runs the command.
        call: CallId,
        /// Raw text of the piece; it may contain any characters.
        text: String,
    },
    /// A command tried to connect to a host.
    HostAccess {
        /// ID from `ToolCalled` of the call that runs the command.
        call: CallId,
        /// Host and port, as `host:port`.
        host: String,
        /// Reason for the refusal; absent if the connection was allowed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refusal: Option<String>,
    },
    /// A background job started, printed output or ended. Start and end are reported at once;
    /// output is reported from time to time, with the last lines.
    JobUpdate {
        /// Current state of the job.
        job: JobRow,
    },
    /// A hook at `HookPoint::Event`, which only observes, was notified.
    HookRan {
        /// Call that the hook was about, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// Name of the hook.
        hook: String,
        /// Point at which the hook ran.
        point: HookPoint,
        /// Run time of the hook, in milliseconds.
        duration_ms: u64,
        /// Verdict of the hook.
        #[serde(flatten)]
        verdict: HookVerdict,
    },
}

/// A text of the model that is not complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StreamedText {
    /// Stream that the text belongs to.
    pub stream: ModelStreamKind,
    /// The text so far.
    pub text: String,
}

/// State of a call that the model is still writing, as in [`LiveEvent::PartialCall`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PartialCallProgress {
    /// Distinguishes the calls of one step.
    pub index: u64,
    /// Name of the tool, as the model wrote it.
    pub tool: String,
    /// Path of the file that the call is about, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Bytes of the arguments so far.
    pub argument_bytes: u64,
}

/// Streams of a model response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelStreamKind {
    /// Text of the answer (`ModelText`).
    Text,
    /// Reasoning of the model (`ModelReasoning`).
    Reasoning,
}

/// A [`LiveEvent`] with its session and time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveEventRecord {
    /// ID of the session.
    pub session: SessionId,
    /// Time of the event.
    pub at: UnixMillis,
    /// The event itself.
    #[serde(flatten)]
    pub event: LiveEvent,
}
