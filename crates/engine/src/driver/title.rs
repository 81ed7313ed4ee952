//! Generated session titles: the model is asked once, after the first turn completes.
//!
//! The request is separate from the conversation: it has a short system prompt of its own, no
//! tools, no provider cache key, and a single attempt. The session does not wait for it, and
//! unusable answers are dropped.

use super::SessionDriver;
use crate::model_handle::ModelHandle;
use crate::session::SessionInput;
use crate::stored_sessions::to_one_line;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use windlass_llm::{ModelEvent, ModelRequest};
use windlass_protocol::display_text::{is_hidden_or_bidi, truncate_chars};
use windlass_protocol::{
    Fault, FinishReason, Message, MessagePart, MessageRole, Messages, ModelOptions,
    ReasoningEffort, TokenUsage, Transcript,
};

const TITLE_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum bytes of the prompt and of the answer in `build_title_messages`.
const MAX_EXCERPT_BYTES: usize = 2_000;

/// Maximum characters of a title; longer answers are rejected.
const MAX_TITLE_CHARS: usize = 50;

/// Output token limits of the title request; models that cannot turn reasoning off need the larger
/// one.
const MAX_OUTPUT_TOKENS: u64 = 100;
const MAX_THINKING_OUTPUT_TOKENS: u64 = 2_000;

/// Maximum bytes of the answer that are read.
const MAX_ANSWER_BYTES: usize = 4_000;

impl SessionDriver {
    /// Requests a title if this session should get one. It arrives as `SessionInput::TitleFound`,
    /// like any other input.
    pub(super) fn request_title(&mut self) {
        let transcript = self.session.transcript();
        let is_subagent = !self.lineage.ancestors.is_empty() || transcript.parent.is_some();
        if !self.settings.generate_titles || is_subagent || self.session.has_title() {
            return;
        }
        let (Some(handle), Some(messages)) =
            (self.settings.model.clone(), build_title_messages(transcript))
        else {
            return;
        };
        let (inputs, budget) = (self.inputs.clone(), Arc::clone(&self.lineage.budget));
        let (model_name, config) =
            (Arc::clone(&self.settings.model_name), self.settings.session_config(&self.runtime));
        self.tasks.spawn(async move {
            let Ok(permit) = budget.acquire_request().await else { return };
            let request = ask_for_title(handle, model_name, messages);
            let (reply, usage) = match tokio::time::timeout(TITLE_TIMEOUT, request).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(fault)) => return tracing::debug!(%fault, "title generation failed"),
                Err(_) => return tracing::debug!("title generation timed out"),
            };
            budget.spend(&usage, config.cost(&usage));
            drop(permit);
            match clean_title(&reply) {
                Some(title) => drop(inputs.send(SessionInput::TitleFound { title, usage }).await),
                None => tracing::debug!(?usage, "the generated title is invalid"),
            }
        });
    }
}

/// Builds the title request from the start of the first prompt and of the answer.
fn build_title_messages(transcript: &Transcript) -> Option<Messages> {
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
    let text = format!(
        "<prompt>\n{}\n</prompt>\n<answer>\n{}\n</answer>",
        excerpt(&prompt),
        excerpt(&answer.unwrap_or_default())
    );
    let parts = vec![MessagePart::text(text)];
    Some(
        [Arc::new(Message { role: MessageRole::User, seq: 0, model: None, parts })]
            .into_iter()
            .collect(),
    )
}

fn excerpt(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_EXCERPT_BYTES)).unwrap_or_default()
}

async fn ask_for_title(
    handle: ModelHandle,
    model_name: Arc<str>,
    messages: Messages,
) -> Result<(String, TokenUsage), Fault> {
    let ModelHandle { client, model, options } = handle;
    let always_reasons = model.reasons && !model.efforts.contains(&ReasoningEffort::None);
    let options = ModelOptions {
        max_output: Some(if always_reasons {
            MAX_THINKING_OUTPUT_TOKENS
        } else {
            MAX_OUTPUT_TOKENS
        }),
        effort: Some(ReasoningEffort::None),
        tool_choice: None,
        parallel_calls: None,
        answer: None,
        ..(*options).clone()
    };
    let request = ModelRequest {
        model,
        model_name,
        system_prompt: include_str!("../prompt/title.md").into(),
        messages,
        file_bytes: Default::default(),
        tools: Vec::new(),
        options: Arc::new(options),
        cache_key: None,
        incremental_body: Arc::default(),
    };
    let (sink, mut events) = mpsc::channel(16);
    let collect = async move {
        let mut answer = String::new();
        while let Some(event) = events.recv().await {
            match event {
                ModelEvent::Text(text) if answer.len() <= MAX_ANSWER_BYTES => {
                    answer.push_str(&text)
                }
                ModelEvent::Ended { finish: FinishReason::Stop, usage } => {
                    return Ok((answer, usage));
                }
                // A truncated answer is not a title, but its usage counts.
                ModelEvent::Ended { usage, .. } => return Ok((String::new(), usage)),
                ModelEvent::Failed(fault) => return Err(fault),
                ModelEvent::Text(_)
                | ModelEvent::Reasoning(_)
                | ModelEvent::ProviderSignature(_)
                | ModelEvent::Call { .. } => {}
            }
        }
        Err(Fault::Internal { message: "the answer is incomplete".to_owned() })
    };
    let ((), result) = tokio::join!(client.run_step(&request, &sink), collect);
    result
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
