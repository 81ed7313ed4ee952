//! One step with a model: a request in, model events out, over whatever wire its provider speaks.
//!
//! It runs no tools and remembers nothing. It keeps the invariant that a step ends exactly once,
//! with [`ModelEvent::Ended`] or [`ModelEvent::Failed`], and that a call is handed on only when
//! the provider said it was complete. Start reading at [`wire`], whose formats are pure functions
//! over bytes; [`client`] is the only part that touches the network.

pub mod client;
pub mod wire;

pub use client::{Client, Timers};

use secrecy::SecretString;
use std::sync::Arc;
use windlass_protocol::{Fault, Finish, Message, ToolSummary, Usage};

/// What a model is asked.
#[derive(Clone, Debug)]
pub struct Request {
    /// The model, as its provider calls it.
    pub model: String,
    /// What it is told before the conversation.
    pub system: Arc<str>,
    /// The conversation.
    pub messages: Vec<Arc<Message>>,
    /// The tools it may call, in a stable order.
    pub tools: Vec<ToolSummary>,
    /// How many tokens it may write, if somebody said.
    pub max_output: Option<u64>,
}

/// Where a model is, and how it is spoken to.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The wire format.
    pub format: wire::Format,
    /// The address all paths are added to.
    pub base_url: String,
    /// What the provider knows us by. Never printed.
    pub api_key: Option<SecretString>,
}

/// Something a model did.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelEvent {
    /// It wrote a piece of text.
    Text(String),
    /// It thought a piece of a thought.
    Reasoning(String),
    /// It made a call, whole.
    Call {
        /// The provider's own name for it.
        reference: String,
        /// The tool, as it was spelled.
        tool: String,
        /// The arguments, as they were written.
        arguments: String,
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
