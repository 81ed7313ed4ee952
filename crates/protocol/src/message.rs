//! Messages and their parts: the conversation as the model and the user read it.

use crate::call_approval_and_outcome::{Attachment, CallAuthor, CallOutcome};
use crate::call_description::CallDescription;
use crate::ids_and_timestamps::{CallId, LogSeq};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageRole {
    /// The user.
    User,
    /// The model.
    Assistant,
    /// Windlass, with information for the model that is not part of the conversation.
    Context,
}

/// One message of the conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// Author of the message.
    pub role: MessageRole,
    /// Position of the fact that started the message.
    pub seq: LogSeq,
    /// Model that wrote the message, as `provider/model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Parts of the message, in order.
    pub parts: Vec<MessagePart>,
}

/// A part of a [`Message`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "part", rename_all = "snake_case")]
pub enum MessagePart {
    /// Plain text.
    Text {
        /// The text itself.
        text: String,
        /// Opaque data to send back to the provider with the text, byte for byte.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_signature: Option<String>,
    },
    /// Reasoning of the model (`ModelReasoning`).
    Reasoning {
        /// Text of the reasoning.
        text: String,
        /// Opaque data to send back to the provider with the reasoning, byte for byte.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_signature: Option<String>,
    },
    /// A file attached to a prompt (`PromptSubmitted`).
    File(Attachment),
    /// A tool call and its outcome.
    Call(Box<ToolCallPart>),
}

impl MessagePart {
    /// Returns a `Text` part without a `provider_signature`.
    pub fn text(text: impl Into<String>) -> MessagePart {
        MessagePart::Text { text: text.into(), provider_signature: None }
    }
}

/// A tool call in a [`Message`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCallPart {
    /// Call ID from `ToolCalled`.
    pub call: CallId,
    /// The provider's ID of the call.
    pub provider_call_id: String,
    /// Name of the tool, as the model spelled it.
    pub tool: String,
    /// Arguments, as the model wrote them or as `CallRepair` repaired them.
    pub arguments: String,
    /// Author of the call.
    pub author: CallAuthor,
    /// The call in words, from its tool.
    #[serde(default, skip_serializing_if = "CallDescription::is_empty")]
    pub description: CallDescription,
    /// Opaque data to send back to the provider with the call, byte for byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_signature: Option<String>,
    /// Outcome from `CallSettled`; absent while the call is in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<CallOutcome>,
    /// True if the model no longer receives the output of the call (`OutputsPruned`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pruned: bool,
}
