//! What is worth seeing as it happens, and is not kept.

use crate::hook::{Point, Verdict};
use crate::id::CallId;
use crate::rows::JobRow;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something worth seeing as it happens. Never stored; dropping it changes no fact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Live {
    /// A piece of what the model is writing.
    Delta {
        /// Which of its streams.
        stream: Stream,
        /// The piece.
        text: String,
    },
    /// What a running call says of itself.
    Progress {
        /// The call.
        call: CallId,
        /// One line.
        text: String,
    },
    /// A piece of what a running command prints. Some may be left out; a reader who missed nothing
    /// knows no more than the tail of it.
    Output {
        /// The call that runs it.
        call: CallId,
        /// The piece, as it was printed: it may hold anything.
        text: String,
    },
    /// A command wanted to reach a host.
    Reached {
        /// The call that runs it.
        call: CallId,
        /// The host, and the port behind a colon.
        host: String,
        /// Whether it could, and why not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refused: Option<String>,
    },
    /// A command in the background began, said something or ended. While it speaks this comes now and
    /// then, with its last lines; of its beginning and its end it comes at once.
    Job {
        /// How it is with it now.
        job: JobRow,
    },
    /// A hook that only watches was told of something.
    Hooked {
        /// The call it was about, if it was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// The hook.
        hook: String,
        /// What it was told of.
        point: Point,
        /// How long it took.
        took_ms: u64,
        /// What it said.
        #[serde(flatten)]
        verdict: Verdict,
    },
    /// Something a person should know that is not part of the conversation.
    Noticed {
        /// One sentence.
        text: String,
    },
}

/// The streams of a model's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// Its text.
    Text,
    /// Its thoughts.
    Reasoning,
}
