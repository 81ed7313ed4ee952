//! The messages of a session that the user can copy.

use super::TranscriptView;
use windlass_protocol::Fact;

/// Limits the messages that are offered for copying.
const MAX_COPYABLE_MESSAGES: usize = 50;

/// A message that can be copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CopyableMessage {
    /// True for an answer of the model, false for a prompt.
    pub(crate) is_answer: bool,
    pub(crate) text: String,
}

impl TranscriptView {
    /// Returns the answers and prompts that are loaded: the last answer, then the others, newest
    /// first.
    pub(crate) fn copyable_messages(&self) -> Vec<CopyableMessage> {
        let mut messages: Vec<CopyableMessage> = Vec::new();
        for record in self.window.iter().rev() {
            let (is_answer, text) = match &record.fact {
                Fact::ModelText { text, .. } => (true, text),
                Fact::PromptSubmitted { text, .. } => (false, text),
                _ => continue,
            };
            if !text.trim().is_empty() {
                messages.push(CopyableMessage { is_answer, text: text.clone() });
            }
        }
        let loaded = messages.iter().position(|message| message.is_answer);
        let loaded = loaded.map(|index| messages.remove(index));
        // The last answer may be outside the window that is loaded.
        let last = self.answer_text.clone().filter(|text| !text.trim().is_empty());
        let last = last.map(|text| CopyableMessage { is_answer: true, text });
        let earlier = loaded.clone().filter(|loaded| last.as_ref().is_some_and(|it| it != loaded));
        let first = last.or(loaded);
        first.into_iter().chain(earlier).chain(messages).take(MAX_COPYABLE_MESSAGES).collect()
    }
}
