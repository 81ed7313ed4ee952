//! Wire formats: encode requests and decode response streams, without any I/O.
//!
//! Each format is a folder: `request` encodes the body, `decoder` decodes the events of a stream.
//! [`stream_reader`] contains the shared framing and limits. [`incremental_request_body`] extends
//! the body of a growing conversation instead of rewriting it.

pub mod anthropic;
pub mod gemini;
pub mod incremental_request_body;
mod lone_surrogates;
pub mod openai_chat;
pub mod openai_responses;
pub mod stream_reader;

use crate::adapt::{AdaptedTurn, adapt_conversation, merge_roles, schema};
use crate::inline_calls::InlineCallParser;
use crate::quirks::Quirks;
use crate::{ModelEvent, ModelRequest};
use bytes::Bytes;
use serde_json::{Value, json};
use stream_reader::StreamReader;
use windlass_protocol::{ModelToolDefinition, ToolChoice};

/// The supported wire formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireFormat {
    /// OpenAI Chat Completions, `/chat/completions`. Most servers speak a dialect of it.
    OpenaiChat,
    /// The OpenAI Responses API, `/responses`.
    OpenaiResponses,
    /// The Anthropic Messages API, `/messages`.
    Anthropic,
    /// The Google Gemini API, `streamGenerateContent`.
    Gemini,
}

impl WireFormat {
    /// All formats with their names in the config.
    pub const NAMES: &[(&str, WireFormat)] = &[
        ("openai-chat", WireFormat::OpenaiChat),
        ("openai-responses", WireFormat::OpenaiResponses),
        ("anthropic", WireFormat::Anthropic),
        ("gemini", WireFormat::Gemini),
    ];

    /// Returns the format with this name in `WireFormat::NAMES`.
    pub fn from_name(name: &str) -> Option<WireFormat> {
        WireFormat::NAMES
            .iter()
            .find(|(format_name, _)| *format_name == name)
            .map(|(_, format)| *format)
    }

    /// Returns the path of a streaming request, relative to the base URL.
    pub fn request_path(self, model: &str) -> String {
        match self {
            WireFormat::OpenaiChat => "/chat/completions".into(),
            WireFormat::OpenaiResponses => "/responses".into(),
            WireFormat::Anthropic => "/messages".into(),
            WireFormat::Gemini => {
                // The model name is part of the path here, so encode it to keep it inside its
                // segment.
                let is_safe = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
                let name: String = model
                    .chars()
                    .map(|c| if is_safe(c) { c.into() } else { percent_encode(c) })
                    .collect();
                format!("/models/{name}:streamGenerateContent?alt=sse")
            }
        }
    }

    /// Encodes the body of a request. Equal requests give equal bytes, and the body of a longer
    /// conversation starts with the bytes of a shorter one, so that providers can cache it.
    /// [`incremental_request_body::IncrementalRequestBody`] produces the same bytes but writes only the new part.
    pub fn body(self, request: &ModelRequest, quirks: &Quirks) -> Value {
        let mut body = self.envelope(request, quirks);
        if !self.body_overrides_messages(request) {
            let mut list = self.messages(adapt_conversation(request, quirks), request, quirks);
            self.set_cache_marks(&mut list, request, quirks);
            let system_message = self.system_message(request, quirks);
            let list: Value = system_message.into_iter().chain(list).collect();
            set_field(&mut body, self.messages_key(), list);
        }
        body
    }

    /// Encodes the body without the message list.
    fn envelope(self, request: &ModelRequest, quirks: &Quirks) -> Value {
        let mut body = match self {
            WireFormat::OpenaiChat => openai_chat::envelope(request, quirks),
            WireFormat::OpenaiResponses => openai_responses::envelope(request, quirks),
            WireFormat::Anthropic => anthropic::envelope(request, quirks),
            WireFormat::Gemini => gemini::envelope(request, quirks),
        };
        for (key, value) in &request.options.extra {
            merge_override(&mut body, key, value);
        }
        body
    }

    /// Returns the name of the body field that contains the messages.
    fn messages_key(self) -> &'static str {
        match self {
            WireFormat::OpenaiChat | WireFormat::Anthropic => "messages",
            WireFormat::OpenaiResponses => "input",
            WireFormat::Gemini => "contents",
        }
    }

    /// Returns true if a user setting in `options.extra` replaces the whole message list.
    fn body_overrides_messages(self, request: &ModelRequest) -> bool {
        request.options.extra.contains_key(self.messages_key())
    }

    /// Returns the message that precedes the conversation in the list, if the format has one.
    fn system_message(self, request: &ModelRequest, quirks: &Quirks) -> Option<Value> {
        match self {
            WireFormat::OpenaiChat => openai_chat::system_message(request, quirks),
            WireFormat::OpenaiResponses | WireFormat::Anthropic | WireFormat::Gemini => None,
        }
    }

    /// Encodes turns as a message list, without cache marks. Turns of one role are merged: some
    /// servers reject consecutive messages of one role, and none rejects a merged one.
    fn messages(
        self,
        turns: Vec<AdaptedTurn<'_>>,
        request: &ModelRequest,
        quirks: &Quirks,
    ) -> Vec<Value> {
        let mut list = Vec::new();
        match self {
            WireFormat::OpenaiChat => {
                merge_roles(turns)
                    .iter()
                    .for_each(|turn| openai_chat::write_turn(turn, quirks, &mut list));
            }
            WireFormat::OpenaiResponses => {
                turns.iter().for_each(|turn| openai_responses::write_turn(turn, &mut list));
            }
            WireFormat::Anthropic => {
                list.extend(merge_roles(turns).iter().map(anthropic::turn_message))
            }
            WireFormat::Gemini => {
                let turns = merge_roles(turns);
                list.extend(turns.iter().map(|turn| gemini::turn_content(turn, &request.model)));
            }
        }
        list
    }

    /// Sets cache marks after each of the last two user messages.
    fn set_cache_marks(self, list: &mut [Value], request: &ModelRequest, quirks: &Quirks) {
        match self {
            WireFormat::OpenaiChat => openai_chat::mark_last_messages(list, request, quirks),
            WireFormat::Anthropic => anthropic::mark_last_messages(list, quirks),
            WireFormat::OpenaiResponses | WireFormat::Gemini => {}
        }
    }

    /// Returns a decoder for the response to a request.
    pub fn decoder(self, request: &ModelRequest, quirks: &Quirks) -> ResponseDecoder {
        // A structured response may look like a call, and with `ToolChoice::None` the model makes
        // no calls.
        let may_call = !request.tools.is_empty()
            && request.options.tool_choice != Some(ToolChoice::None)
            && request.options.answer.is_none();
        let names = || request.tools.iter().map(|tool| tool.name.clone()).collect();
        let names = (quirks.inline_calls && may_call).then(names);
        let parser =
            (quirks.inline_calls || quirks.think_tags).then(|| InlineCallParser::new(true, names));
        ResponseDecoder { reader: self.new_reader(), inline_calls: parser }
    }

    fn new_reader(self) -> AnyStreamReader {
        match self {
            WireFormat::OpenaiChat => AnyStreamReader::OpenaiChat(StreamReader::default()),
            WireFormat::OpenaiResponses => {
                AnyStreamReader::OpenaiResponses(StreamReader::default())
            }
            WireFormat::Anthropic => AnyStreamReader::Anthropic(StreamReader::default()),
            WireFormat::Gemini => AnyStreamReader::Gemini(StreamReader::default()),
        }
    }
}

fn percent_encode(c: char) -> String {
    let mut bytes = [0; 4];
    c.encode_utf8(&mut bytes).bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Applies a setting of `options.extra` to the body: objects are merged, other values replaced.
fn merge_override(body: &mut Value, key: &str, value: &Value) {
    let Value::Object(map) = body else { return };
    match (map.get_mut(key), value) {
        (Some(Value::Object(inner)), Value::Object(overrides)) => {
            inner.extend(overrides.iter().map(|(key, value)| (key.clone(), value.clone())));
        }
        _ => {
            map.insert(key.to_owned(), value.clone());
        }
    }
}

fn set_field(object: &mut Value, key: &str, value: impl Into<Value>) {
    if let Value::Object(map) = object {
        map.insert(key.to_owned(), value.into());
    }
}

/// Encodes the parameters of a tool. The second value is true if the provider must follow them
/// strictly, which not every schema allows.
fn tool_parameters(tool: &ModelToolDefinition, quirks: &Quirks) -> (Value, bool) {
    let is_strict = quirks.strict_tools && schema::fits_strict(&tool.schema);
    let subset = if is_strict { schema::SchemaSubset::Strict } else { quirks.schema_subset };
    (schema::adapt_schema(&tool.schema, subset), is_strict)
}

/// Encodes the response schema, in strict mode if `fits_strict` allows it.
fn answer_schema(answer: &Value) -> Value {
    let is_strict = schema::fits_strict(answer);
    let subset = if is_strict { schema::SchemaSubset::Strict } else { schema::SchemaSubset::Full };
    json!({"name": "answer", "schema": schema::adapt_schema(answer, subset), "strict": is_strict})
}

#[derive(Clone, Debug)]
enum AnyStreamReader {
    OpenaiChat(StreamReader<openai_chat::ChatDecoder>),
    OpenaiResponses(StreamReader<openai_responses::ResponsesDecoder>),
    Anthropic(StreamReader<anthropic::AnthropicDecoder>),
    Gemini(StreamReader<gemini::GeminiDecoder>),
}

/// A decoder for a response stream. It does no I/O and accepts chunks split at any byte.
#[derive(Clone, Debug)]
pub struct ResponseDecoder {
    reader: AnyStreamReader,
    inline_calls: Option<InlineCallParser>,
}

impl ResponseDecoder {
    /// Creates a decoder for a plain format, without an `InlineCallParser`.
    pub fn without_quirks(format: WireFormat) -> ResponseDecoder {
        ResponseDecoder { reader: format.new_reader(), inline_calls: None }
    }

    /// Decodes the next bytes of the stream.
    pub fn decode(&mut self, bytes: Bytes) -> Vec<ModelEvent> {
        let events = match &mut self.reader {
            AnyStreamReader::OpenaiChat(reader) => reader.feed_bytes(bytes),
            AnyStreamReader::OpenaiResponses(reader) => reader.feed_bytes(bytes),
            AnyStreamReader::Anthropic(reader) => reader.feed_bytes(bytes),
            AnyStreamReader::Gemini(reader) => reader.feed_bytes(bytes),
        };
        parse_inline_calls(&mut self.inline_calls, events)
    }

    /// Returns the number of events that advanced the response. Heartbeats do not count.
    pub fn progress(&self) -> u64 {
        match &self.reader {
            AnyStreamReader::OpenaiChat(reader) => reader.progress(),
            AnyStreamReader::OpenaiResponses(reader) => reader.progress(),
            AnyStreamReader::Anthropic(reader) => reader.progress(),
            AnyStreamReader::Gemini(reader) => reader.progress(),
        }
    }

    /// Returns the final events for a stream that ends here.
    pub fn finish(&self) -> Vec<ModelEvent> {
        let events = match &self.reader {
            AnyStreamReader::OpenaiChat(reader) => reader.finish(),
            AnyStreamReader::OpenaiResponses(reader) => reader.finish(),
            AnyStreamReader::Anthropic(reader) => reader.finish(),
            AnyStreamReader::Gemini(reader) => reader.finish(),
        };
        parse_inline_calls(&mut self.inline_calls.clone(), events)
    }
}

fn parse_inline_calls(
    parser: &mut Option<InlineCallParser>,
    events: Vec<ModelEvent>,
) -> Vec<ModelEvent> {
    let Some(parser) = parser else { return events };
    let mut out = Vec::with_capacity(events.len());
    for event in events {
        parser.process_event(event, &mut out);
    }
    out
}

#[cfg(test)]
pub(crate) mod tests;
