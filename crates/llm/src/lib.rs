//! One step with a model: a request in, model events out, over whatever wire its provider speaks.
//!
//! It runs no tools and remembers nothing. It keeps the invariant that a step ends exactly once,
//! with [`ModelEvent::Ended`] or [`ModelEvent::Failed`], that a call is handed on only when the
//! provider said it was complete, and that calls count only if the step ends with
//! [`Finish::Calls`]. Start reading at [`wire`], whose formats are pure functions over bytes;
//! [`adapt`] makes one conversation fit each of them, [`catalog`] knows the providers, and
//! [`client`] is the only part that touches the network.

pub mod adapt;
pub mod catalog;
pub mod client;
mod collector;
pub mod nearby;
pub mod sift;
mod trouble;
pub mod wire;

pub use client::{Client, Endpoint, Key, Timers, is_local};
pub use collector::Collector;

use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_protocol::{BlobRef, Fault, Finish, Messages, Options, ToolSummary, Usage};

/// What a model is asked.
#[derive(Clone, Debug)]
pub struct Request {
    /// The model.
    pub model: Arc<catalog::Model>,
    /// The model as it is recorded, `provider/model`: what it sealed is given back to it alone.
    pub name: Arc<str>,
    /// What it is told before the conversation.
    pub system: Arc<str>,
    /// The conversation.
    pub messages: Messages,
    /// The bytes of the files in it.
    pub files: BTreeMap<BlobRef, Arc<[u8]>>,
    /// The tools it may call, in a stable order.
    pub tools: Vec<ToolSummary>,
    /// How it is to answer.
    pub options: Arc<Options>,
    /// Names the conversation to the provider's cache.
    pub cache_key: Option<String>,
    /// What was written for the requests of this conversation before.
    pub draft: Arc<wire::draft::Draft>,
}

impl Request {
    /// How many tokens were asked for, never more than the model can write.
    pub(crate) fn max_output(&self) -> Option<u64> {
        let can = self.model.output.unwrap_or(u64::MAX);
        self.options.max_output.map(|most| most.min(can))
    }
}

/// Something a model did.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelEvent {
    /// It wrote a piece of text.
    Text(String),
    /// It thought a piece of a thought.
    Reasoning(String),
    /// The text or thought under way is complete, and its provider wants this back with it, byte
    /// for byte.
    Sealed(String),
    /// It made a call, whole.
    Call {
        /// The provider's own name for it.
        reference: String,
        /// The tool, as it was spelled.
        tool: String,
        /// The arguments, as they were written.
        arguments: String,
        /// What the provider wants back with it, byte for byte.
        seal: Option<String>,
        /// What had to be changed to see that it is a call.
        repaired: Vec<String>,
    },
    /// It ended. Nothing follows.
    Ended {
        /// How.
        finish: Finish,
        /// What it used.
        usage: Usage,
    },
    /// It failed. Nothing follows.
    Failed(Fault),
}

impl ModelEvent {
    /// True if nothing follows.
    pub fn is_last(&self) -> bool {
        match self {
            ModelEvent::Ended { .. } | ModelEvent::Failed(_) => true,
            ModelEvent::Text(_)
            | ModelEvent::Reasoning(_)
            | ModelEvent::Sealed(_)
            | ModelEvent::Call { .. } => false,
        }
    }
}
