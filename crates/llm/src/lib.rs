//! Client for language models: turns a [`ModelRequest`] into a stream of [`ModelEvent`]s, in the
//! wire format of the provider.
//!
//! The crate runs no tools and keeps no state between steps. It keeps these invariants: a step ends
//! exactly once, with [`ModelEvent::Ended`] or [`ModelEvent::Failed`]; a call is emitted only after
//! the provider reported it complete; calls count only if the step ends with
//! [`FinishReason::ToolCalls`]. Start reading at [`mod@format`], whose wire formats are pure
//! functions over bytes. [`adapt`] adapts a conversation to each of them, [`catalog`] lists the
//! providers, and [`client`] is the module that sends model requests over the network.

pub mod adapt;
pub mod catalog;
pub mod client;
pub mod inline_calls;
pub mod local_servers;
mod model_list;
mod otlp;
mod provider_error;
mod quirks;
pub mod wire_format;

pub use client::{ApiKey, Client, Endpoint, EndpointTimeouts, is_local_url};
pub use otlp::OtlpExporter;

use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_protocol::{
    BlobRef, Fault, FinishReason, Messages, ModelOptions, ModelToolDefinition, TokenUsage,
};

/// A request to a model: the conversation, the tools and the options of one step.
#[derive(Clone, Debug)]
pub struct ModelRequest {
    /// The `catalog` entry of the model.
    pub model: Arc<catalog::Model>,
    /// The model name as recorded in the log, `provider/model`. Provider signatures are sent back
    /// only to the model that produced them.
    pub model_name: Arc<str>,
    /// The system prompt.
    pub system_prompt: Arc<str>,
    /// The messages of the conversation.
    pub messages: Messages,
    /// The contents of the files in `messages`, by blob.
    pub file_bytes: BTreeMap<BlobRef, Arc<[u8]>>,
    /// The tools the model may call, in a stable order.
    pub tools: Vec<ModelToolDefinition>,
    /// Generation options, such as `effort` and `tool_choice`.
    pub options: Arc<ModelOptions>,
    /// Identifies the conversation to the provider's prompt cache.
    pub cache_key: Option<String>,
    /// The body written for earlier requests of this conversation, which later requests extend.
    pub incremental_body: Arc<wire_format::incremental_request_body::IncrementalRequestBody>,
}

impl ModelRequest {
    /// Returns `options.max_output`, capped at the limit of the model.
    pub(crate) fn max_output_tokens(&self) -> Option<u64> {
        let limit = self.model.output.unwrap_or(u64::MAX);
        self.options.max_output.map(|max| max.min(limit))
    }
}

/// An event of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelEvent {
    /// A piece of response text.
    Text(String),
    /// A piece of reasoning text.
    Reasoning(String),
    /// Completes the current text or reasoning block. The provider expects this signature back with
    /// the block, byte for byte.
    ProviderSignature(String),
    /// A piece of a tool call that the model is still writing. It is for display only: the call
    /// may never be completed, and `Call` repeats all of it.
    CallDelta {
        /// Distinguishes the calls of one response.
        index: u64,
        /// The tool name as the model wrote it.
        tool: String,
        /// The next piece of the arguments.
        arguments: String,
    },
    /// A complete tool call.
    Call {
        /// The call ID from the provider.
        reference: String,
        /// The tool name as the model wrote it.
        tool: String,
        /// The arguments as the model wrote them.
        arguments: String,
        /// The signature that the provider expects back with the call, byte for byte.
        provider_signature: Option<String>,
        /// Changes that were necessary to recognize the call.
        repairs: Vec<String>,
    },
    /// The step ended. No event follows.
    Ended {
        /// The reason the step ended.
        finish: FinishReason,
        /// The tokens used by the step.
        usage: TokenUsage,
    },
    /// The step failed. No event follows.
    Failed(Fault),
}

impl ModelEvent {
    /// Returns true for `Ended` and `Failed`, after which no event follows.
    pub fn is_last(&self) -> bool {
        match self {
            ModelEvent::Ended { .. } | ModelEvent::Failed(_) => true,
            ModelEvent::Text(_)
            | ModelEvent::Reasoning(_)
            | ModelEvent::ProviderSignature(_)
            | ModelEvent::CallDelta { .. }
            | ModelEvent::Call { .. } => false,
        }
    }
}
