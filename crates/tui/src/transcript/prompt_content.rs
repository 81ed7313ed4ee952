//! The content of a user's prompt.

use windlass_protocol::{Attachment, FactRecord};

/// The content of a user's prompt.
#[derive(Debug, PartialEq)]
pub(super) struct PromptContent {
    pub text: String,
    pub attachments: Vec<Attachment>,
    /// Name of the user who sent it; empty if it is not recorded.
    pub author: String,
}

impl PromptContent {
    /// Creates the content of the prompt that `record` submits.
    pub fn new(record: &FactRecord, text: &str, attachments: &[Attachment]) -> PromptContent {
        let author = record.origin.as_ref().map(|origin| origin.client.name.clone());
        PromptContent {
            text: text.to_owned(),
            attachments: attachments.to_vec(),
            author: author.unwrap_or_default(),
        }
    }
}
