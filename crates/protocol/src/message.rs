//! Messages and their parts: a conversation as a model and a person read it.

use crate::call::{Attachment, Author, Outcome};
use crate::event::Seq;
use crate::id::CallId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A person.
    User,
    /// The model.
    Assistant,
    /// Windlass, telling the model something besides the conversation.
    Context,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// The fact that began it.
    pub seq: Seq,
    /// The model that wrote it, as `provider/model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What it consists of, in order.
    pub parts: Vec<Part>,
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "part", rename_all = "snake_case")]
pub enum Part {
    /// Text.
    Text {
        /// The text.
        text: String,
        /// What the provider wants back with it, byte for byte.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seal: Option<String>,
    },
    /// The model's thoughts.
    Reasoning {
        /// The text.
        text: String,
        /// What the provider wants back with it, byte for byte.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seal: Option<String>,
    },
    /// A file that came with a prompt.
    File(Attachment),
    /// A tool call, with what became of it.
    Call(Box<CallPart>),
}

impl Part {
    /// Plain text.
    pub fn text(text: impl Into<String>) -> Part {
        Part::Text { text: text.into(), seal: None }
    }
}

/// A tool call in a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallPart {
    /// Names the call.
    pub call: CallId,
    /// The provider's own name for it.
    pub reference: String,
    /// The tool, as the model spelled it.
    pub tool: String,
    /// The arguments, as the model wrote them, or as they were repaired.
    pub arguments: String,
    /// Who made it.
    pub by: Author,
    /// What the provider wants back with it, byte for byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<String>,
    /// What became of it; absent while it is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// What it gave is no longer told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pruned: bool,
}
