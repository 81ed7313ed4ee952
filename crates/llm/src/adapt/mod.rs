//! Adapts a conversation to the rules that all wire formats share.
//!
//! Every call has a result and every result a call. IDs and names contain only characters that
//! providers allow. Nothing is empty. Files that the model cannot read are described in text.
//! Provider signatures of one model are not sent to another.

mod files;
pub mod schema;

pub(crate) use files::{FileOrDescription, ModelReadableFile};

use crate::ModelRequest;
use crate::quirks::{CallIdFormat, Quirks};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use windlass_protocol::{CallAuthor, CallOutcome, Message, MessagePart, MessageRole, ToolCallPart};

/// A turn of the conversation in provider-neutral form.
#[derive(Debug)]
pub(crate) enum AdaptedTurn<'a> {
    /// Input for the model: text, files and tool results. The results come first.
    User(Vec<TurnItem<'a>>),
    /// Output of the model.
    Model(Vec<TurnItem<'a>>),
}

/// An item of an `AdaptedTurn`.
#[derive(Debug)]
pub(crate) enum TurnItem<'a> {
    Text {
        text: Cow<'a, str>,
        provider_signature: Option<&'a str>,
    },
    Reasoning {
        text: &'a str,
        provider_signature: Option<&'a str>,
    },
    File(ModelReadableFile<'a>),
    Call {
        id: String,
        name: String,
        arguments: &'a str,
        provider_signature: Option<&'a str>,
    },
    Result {
        id: String,
        name: String,
        text: &'a str,
        failed: bool,
        files: Vec<FileOrDescription<'a>>,
    },
}

impl TurnItem<'_> {
    fn is_reasoning(&self) -> bool {
        match self {
            TurnItem::Reasoning { .. } => true,
            TurnItem::Text { .. }
            | TurnItem::File(_)
            | TurnItem::Call { .. }
            | TurnItem::Result { .. } => false,
        }
    }
}

fn text_item<'a>(text: impl Into<Cow<'a, str>>) -> TurnItem<'a> {
    TurnItem::Text { text: text.into(), provider_signature: None }
}

/// Adapts all messages of a request into `AdaptedTurn`s.
pub(crate) fn adapt_conversation<'a>(
    request: &'a ModelRequest,
    quirks: &Quirks,
) -> Vec<AdaptedTurn<'a>> {
    let adapted = adapt_messages(request, quirks, 0, &mut UsedCallIds::default());
    adapted.into_iter().flat_map(|adapted| adapted.turns).collect()
}

/// The `AdaptedTurn`s of one message.
#[derive(Debug)]
pub(crate) struct AdaptedMessage<'a> {
    pub(crate) turns: Vec<AdaptedTurn<'a>>,
    /// The IDs assigned to the calls of the message.
    pub(crate) call_ids: Vec<String>,
}

/// Adapts the messages of a request, starting at index `start`. The IDs in `used_ids` belong to
/// earlier messages and are not reused.
pub(crate) fn adapt_messages<'a>(
    request: &'a ModelRequest,
    quirks: &Quirks,
    start: usize,
    used_ids: &mut UsedCallIds,
) -> Vec<AdaptedMessage<'a>> {
    used_ids.provisional.clear();
    let messages = request.messages.iter().skip(start);
    let adapted = messages.map(|message| {
        let adapted = AdaptedMessage { turns: Vec::new(), call_ids: Vec::new() };
        let mut adapter = MessageAdapter {
            request,
            id_format: quirks.call_id_format,
            pdfs: quirks.pdfs,
            used_ids: &mut *used_ids,
            adapted,
        };
        match message.role {
            MessageRole::User => adapter.add_user_message(message, text_item),
            MessageRole::Context => adapter.add_user_message(message, |text| text_item(note(text))),
            MessageRole::Assistant => adapter.add_model_message(message),
        }
        adapter.adapted
    });
    adapted.collect()
}

/// Merges consecutive `AdaptedTurn`s of the same role.
pub(crate) fn merge_roles(turns: Vec<AdaptedTurn<'_>>) -> Vec<AdaptedTurn<'_>> {
    let mut merged: Vec<AdaptedTurn<'_>> = Vec::new();
    for turn in turns {
        match (merged.last_mut(), turn) {
            (Some(AdaptedTurn::User(items)), AdaptedTurn::User(more)) => items.extend(more),
            (Some(AdaptedTurn::Model(items)), AdaptedTurn::Model(more)) => items.extend(more),
            (_, turn) => merged.push(turn),
        }
    }
    merged
}

/// The call IDs in use within a conversation.
#[derive(Debug, Default)]
pub(crate) struct UsedCallIds {
    /// IDs in settled messages, added by `commit`.
    permanent: BTreeSet<String>,
    /// IDs of the messages that are being adapted.
    provisional: BTreeSet<String>,
    /// The next numeric suffix to try for each base ID. It avoids counting from 1 again when a
    /// model gives all its calls the same ID.
    next_suffix: BTreeMap<String, u32>,
}

impl UsedCallIds {
    /// Returns an unused ID that stays as close to `base` as possible.
    fn allocate(&mut self, base: &str, max_length: usize) -> String {
        let candidate = |count: u32| {
            let tail = if count > 1 { count.to_string() } else { String::new() };
            let head = max_length.min(base.len() + tail.len()).saturating_sub(tail.len());
            base.chars().take(head).collect::<String>() + &tail
        };
        let first = self.next_suffix.get(base).copied().unwrap_or(1);
        let mut count = first;
        while self.permanent.contains(&candidate(count)) {
            count += 1;
        }
        if count > first {
            self.next_suffix.insert(base.to_owned(), count);
        }
        while self.permanent.contains(&candidate(count))
            || self.provisional.contains(&candidate(count))
        {
            count += 1;
        }
        let id = candidate(count);
        self.provisional.insert(id.clone());
        id
    }

    /// Marks IDs as permanently used, so that `allocate` never returns them again.
    pub(crate) fn commit(&mut self, ids: Vec<String>) {
        self.permanent.extend(ids);
    }
}

/// Marks a text as a note from Windlass, because no provider has a role for it. The system prompt
/// explains the mark. A text cannot end its own note.
fn note(text: &str) -> String {
    let text = text.replace("</note", "&lt;/note");
    format!("<note from=\"windlass\">\n{}\n</note>", text.trim_end())
}

struct MessageAdapter<'a, 't> {
    request: &'a ModelRequest,
    id_format: CallIdFormat,
    pdfs: bool,
    used_ids: &'t mut UsedCallIds,
    adapted: AdaptedMessage<'a>,
}

impl<'a> MessageAdapter<'a, '_> {
    fn add_user_message(
        &mut self,
        message: &'a Message,
        to_item: impl Fn(&'a str) -> TurnItem<'a>,
    ) {
        let items: Vec<TurnItem<'a>> = message
            .parts
            .iter()
            .filter_map(|part| match part {
                MessagePart::Text { text, .. } => {
                    (!text.trim().is_empty()).then(|| to_item(text.as_str()))
                }
                MessagePart::File(file) => {
                    Some(match files::view_file(self.request, self.pdfs, file) {
                        FileOrDescription::File(file) => TurnItem::File(file),
                        FileOrDescription::Description(description) => text_item(description),
                    })
                }
                MessagePart::Reasoning { .. } | MessagePart::Call(_) => None,
            })
            .collect();
        if !items.is_empty() {
            self.adapted.turns.push(AdaptedTurn::User(items));
        }
    }

    fn add_model_message(&mut self, message: &'a Message) {
        // A provider signature is meaningless to another model, and some providers reject foreign
        // ones.
        let is_same_model = message.model.as_deref() == Some(&*self.request.model_name);
        let usable_signature = |provider_signature: &'a Option<String>| {
            provider_signature.as_deref().filter(|_| is_same_model)
        };
        let mut items = Vec::new();
        let mut results = Vec::new();
        for part in &message.parts {
            match part {
                MessagePart::Text { text, provider_signature } => {
                    let provider_signature = usable_signature(provider_signature);
                    if !text.trim().is_empty() || provider_signature.is_some() {
                        items.push(TurnItem::Text { text: text.into(), provider_signature });
                    }
                }
                MessagePart::Reasoning { text, provider_signature } => {
                    items.push(TurnItem::Reasoning {
                        text,
                        provider_signature: usable_signature(provider_signature),
                    });
                }
                MessagePart::File(_) => {}
                MessagePart::Call(call) => match call.author {
                    CallAuthor::Model => {
                        let (call, result) =
                            self.adapt_call(call, usable_signature(&call.provider_signature));
                        items.push(call);
                        results.push(result);
                    }
                    CallAuthor::User => results.push(describe_user_call(call)),
                    CallAuthor::Goal => results.push(describe_goal_check(call)),
                    // The output is part of the prompt that follows.
                    CallAuthor::Command => {}
                },
            }
        }
        // Some providers reject reasoning without following content, which is missing after a
        // cutoff.
        while items.last().is_some_and(TurnItem::is_reasoning) {
            items.pop();
        }
        if !items.is_empty() {
            self.adapted.turns.push(AdaptedTurn::Model(items));
        }
        if !results.is_empty() {
            self.adapted.turns.push(AdaptedTurn::User(results));
        }
    }

    fn adapt_call(
        &mut self,
        call: &'a ToolCallPart,
        provider_signature: Option<&'a str>,
    ) -> (TurnItem<'a>, TurnItem<'a>) {
        let id = self.allocate_call_id(&call.provider_call_id);
        let name = valid_tool_name(call);
        let files = call.outcome.as_ref().map_or(&[][..], CallOutcome::attachments);
        let files = if call.pruned {
            full_output_hint(call).map(FileOrDescription::Description).into_iter().collect()
        } else {
            files.iter().map(|file| files::view_file(self.request, self.pdfs, file)).collect()
        };
        let failed = match call.outcome {
            Some(CallOutcome::Completed { .. }) => false,
            Some(
                CallOutcome::Failed { .. }
                | CallOutcome::Denied { .. }
                | CallOutcome::Interrupted { .. }
                | CallOutcome::ResultUnknown,
            )
            | None => true,
        };
        let text = result_text(call);
        let result = TurnItem::Result { id: id.clone(), name: name.clone(), text, failed, files };
        (TurnItem::Call { id, name, arguments: object_arguments(call), provider_signature }, result)
    }

    /// Returns a unique call ID in the provider's `CallIdFormat`.
    fn allocate_call_id(&mut self, reference: &str) -> String {
        let (valid_id, max_length) = match self.id_format {
            CallIdFormat::Any => (reference.to_owned(), usize::MAX),
            CallIdFormat::Identifier64 => (keep_alphanumeric(reference, "_-"), 64),
            CallIdFormat::NineAlphanumeric => (keep_alphanumeric(reference, ""), 9),
        };
        let base = match self.id_format {
            // The ID needs exactly nine characters; an ID of any other form is replaced by its
            // digest.
            CallIdFormat::NineAlphanumeric if valid_id.len() != 9 || valid_id != reference => {
                nine_char_digest(reference)
            }
            CallIdFormat::Any | CallIdFormat::Identifier64 | CallIdFormat::NineAlphanumeric => {
                valid_id
            }
        };
        let base = if base.is_empty() { "call".to_owned() } else { base };
        let id = self.used_ids.allocate(&base, max_length);
        self.adapted.call_ids.push(id.clone());
        id
    }
}

fn keep_alphanumeric(text: &str, extra: &str) -> String {
    text.chars().filter(|c| c.is_ascii_alphanumeric() || extra.contains(*c)).collect()
}

/// Returns nine letters and digits that depend only on `text`.
fn nine_char_digest(text: &str) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    (0..9).fold(String::new(), |mut digest, index| {
        let digit = (hash >> (index * 5)) as u32 & 31;
        digest.extend(char::from_digit(digit, 32));
        digest
    })
}

/// Describes a call by `CallAuthor::User` as text. No model made it, so it must not appear as a model's
/// call.
fn describe_user_call(call: &ToolCallPart) -> TurnItem<'_> {
    text_item(format!(
        "I ran the tool {} myself with {}. Output:\n{}",
        call.tool,
        call.arguments,
        result_text(call)
    ))
}

/// Describes a command that checked the goal of the turn.
fn describe_goal_check(call: &ToolCallPart) -> TurnItem<'_> {
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    let command = arguments.get("command").and_then(Value::as_str).unwrap_or_default();
    text_item(format!("Windlass ran the goal's command `{command}`:\n{}", result_text(call)))
}

/// Returns the arguments of a call, or `{}` if they are not a JSON object. Some servers reject a
/// conversation with other arguments; the tool result tells the model what was wrong.
fn object_arguments(call: &ToolCallPart) -> &str {
    let is_object = |text: &str| {
        text.trim_start().starts_with('{')
            && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
    };
    if is_object(&call.arguments) { &call.arguments } else { "{}" }
}

/// Returns the tool name with invalid characters replaced. Otherwise one invented name would make
/// the provider reject every later request of the session.
fn valid_tool_name(call: &ToolCallPart) -> String {
    let to_valid_char =
        |c: char| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '_' };
    let name: String = call.tool.chars().take(64).map(to_valid_char).collect();
    if name.is_empty() { "invalid".into() } else { name }
}

/// Replaces the output of a call with `pruned` set.
const PRUNED_OUTPUT_TEXT: &str =
    "This output was removed to save context. Repeat the call if you still need it.";

/// Returns a note that names the blob with the full output of a pruned call.
fn full_output_hint(call: &ToolCallPart) -> Option<String> {
    let Some(CallOutcome::Completed { output }) = &call.outcome else { return None };
    output.full_text.as_ref().map(|blob| format!("The full output is in blob:{}.", blob.as_str()))
}

/// Returns the text of a tool result. It is never empty unless a file accompanies it.
fn result_text(call: &ToolCallPart) -> &str {
    if call.pruned {
        return PRUNED_OUTPUT_TEXT;
    }
    let text = call.outcome.as_ref().map_or("This call was not run.", CallOutcome::text);
    let files = call.outcome.as_ref().map_or(&[][..], CallOutcome::attachments);
    if text.trim().is_empty() && files.is_empty() { "(nothing)" } else { text }
}

#[cfg(test)]
mod tests;
