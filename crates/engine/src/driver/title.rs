//! Generated session titles: a model is asked once, after the first turn completes.
//!
//! The request is separate from the conversation (`side_request`). The session does not wait for
//! it, and unusable answers are dropped.

use super::SessionDriver;
use super::side_request::SideRequest;
use crate::session::SessionInput;
use crate::settings::TitleGeneration;
use crate::stored_sessions::to_one_line;
use std::sync::Arc;
use std::time::Duration;
use windlass_protocol::display_text::{is_hidden_or_bidi, truncate_chars};
use windlass_protocol::{Message, MessagePart, MessageRole, SideRequestPurpose, Transcript};

const TITLE_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum bytes of the prompt and of the answer in `title_prompt`.
const MAX_EXCERPT_BYTES: usize = 2_000;

/// Maximum characters of a title; longer answers are rejected.
const MAX_TITLE_CHARS: usize = 50;

/// Output token limit of the title request.
const MAX_OUTPUT_TOKENS: u64 = 100;

impl SessionDriver {
    /// Requests a title if this session should get one. It arrives as `SessionInput::TitleFound`,
    /// like any other input.
    pub(super) fn request_title(&mut self) {
        let transcript = self.session.transcript();
        let is_subagent = !self.lineage.ancestors.is_empty() || transcript.parent.is_some();
        let is_hosted = || self.settings.model.as_ref().is_some_and(|m| !m.client.is_local());
        let is_wanted = match self.settings.titles {
            TitleGeneration::Off => false,
            TitleGeneration::HostedModels => is_hosted(),
            TitleGeneration::On => true,
        };
        if !is_wanted || is_subagent || self.session.has_title() {
            return;
        }
        let Some(text) = title_prompt(transcript) else { return };
        let request = SideRequest {
            purpose: SideRequestPurpose::Title,
            system_prompt: include_str!("../prompt/title.md"),
            text,
            max_output_tokens: MAX_OUTPUT_TOKENS,
            timeout: TITLE_TIMEOUT,
            answer_schema: None,
        };
        let (inputs, models) = (self.inputs.clone(), self.side_request_models());
        self.tasks.spawn(async move {
            match models.ask(request).await.map(|answer| clean_title(&answer)) {
                Ok(Some(title)) => drop(inputs.send(SessionInput::TitleFound { title }).await),
                Ok(None) => tracing::debug!("the generated title is invalid"),
                Err(fault) => tracing::debug!(%fault, "title generation failed"),
            }
        });
    }
}

/// Returns the text of the title request: the start of the first prompt and of the answer.
fn title_prompt(transcript: &Transcript) -> Option<String> {
    let message_text = |message: &Arc<Message>| {
        let text = |part: &MessagePart| match part {
            MessagePart::Text { text, .. } => Some(text.clone()),
            MessagePart::Reasoning { .. } | MessagePart::File(_) | MessagePart::Call(_) => None,
        };
        message.parts.iter().filter_map(text).collect::<String>()
    };
    let has_role = |role| move |message: &&Arc<Message>| message.role == role;
    let messages = &transcript.messages;
    let prompt = messages.iter().find(has_role(MessageRole::User)).map(message_text)?;
    let answer = messages.iter().rfind(has_role(MessageRole::Assistant)).map(message_text);
    Some(format!(
        "<prompt>\n{}\n</prompt>\n<answer>\n{}\n</answer>",
        excerpt(&prompt),
        excerpt(&answer.unwrap_or_default())
    ))
}

fn excerpt(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_EXCERPT_BYTES)).unwrap_or_default()
}

/// Returns the model's answer as a title, if it fits on one line of a list.
fn clean_title(answer: &str) -> Option<String> {
    // Escape characters stay for now: `to_one_line` removes them together with their whole
    // sequence.
    let is_control = |c: char| c.is_control() && !c.is_whitespace() && c != '\u{1b}';
    let plain: String =
        answer.chars().filter(|c| !is_hidden_or_bidi(*c) && !is_control(*c)).collect();
    let line = to_one_line(&plain);
    let title = line.trim_matches(['"', '\'', '`', '*', '#', '“', '”', ' ']);
    let fits = !title.is_empty() && truncate_chars(title, MAX_TITLE_CHARS) == title;
    fits.then(|| title.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_one_short_visible_line() {
        for (reply, expected) in [
            ("Mend the roof", Some("Mend the roof")),
            (" \"Mend the roof\"\n", Some("Mend the roof")),
            ("**Mend\nthe\troof**", Some("Mend the roof")),
            ("Mend \u{202e}foor\u{202c} \u{1b}[31mred\u{200b}", Some("Mend foor red")),
            ("", None),
            ("\u{200b} \n\u{7}", None),
            ("\"\"", None),
        ] {
            let title = clean_title(reply);
            assert_eq!(title.as_deref(), expected, "{reply:?}");
        }
        assert_eq!(clean_title(&"é".repeat(MAX_TITLE_CHARS)), Some("é".repeat(MAX_TITLE_CHARS)));
        assert_eq!(clean_title(&"é".repeat(MAX_TITLE_CHARS + 1)), None);
    }

    #[test]
    fn an_excerpt_is_truncated_between_characters() {
        assert_eq!(excerpt("é"), "é");
        let long = "é".repeat(MAX_EXCERPT_BYTES);
        assert_eq!(excerpt(&long).len(), MAX_EXCERPT_BYTES);
        assert_eq!(excerpt(&format!("x{long}")).len(), MAX_EXCERPT_BYTES - 1);
    }
}
