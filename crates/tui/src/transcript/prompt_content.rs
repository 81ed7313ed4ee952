//! The content of a user's prompt.

use windlass_protocol::Attachment;

/// The content of a user's prompt.
#[derive(Debug, PartialEq)]
pub(super) struct PromptContent {
    pub text: String,
    pub attachments: Vec<Attachment>,
}
