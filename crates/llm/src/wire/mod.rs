//! Wire formats: how a request is written and how a stream of bytes is read, without any I/O.
//!
//! Each format is a folder: `body` writes a request, `step` reads one event of a stream. What
//! they have in common, framing and bounds, is in [`stream`]; [`draft`] writes a conversation that
//! has grown without writing it all again.

pub mod anthropic;
pub mod draft;
pub mod gemini;
mod lone;
pub mod openai_chat;
pub mod openai_responses;
pub mod stream;

use crate::adapt::{Turn, conversation, merged, schema};
use crate::catalog::Quirks;
use crate::sift::Sift;
use crate::{ModelEvent, Request};
use bytes::Bytes;
use serde_json::{Value, json};
use stream::Reader;
use windlass_protocol::Choice;

/// The wire formats there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// OpenAI Chat Completions, which most servers speak in some dialect.
    OpenaiChat,
    /// OpenAI Responses.
    OpenaiResponses,
    /// Anthropic Messages.
    Anthropic,
    /// Google Gemini, `streamGenerateContent`.
    Gemini,
}

impl Format {
    /// All of them, with the names a config may use.
    pub const NAMES: &[(&str, Format)] = &[
        ("openai-chat", Format::OpenaiChat),
        ("openai-responses", Format::OpenaiResponses),
        ("anthropic", Format::Anthropic),
        ("gemini", Format::Gemini),
    ];

    /// The format a config names.
    pub fn named(name: &str) -> Option<Format> {
        Format::NAMES.iter().find(|(known, _)| *known == name).map(|(_, format)| *format)
    }

    /// The path of a streaming request, below the base URL.
    pub fn path(self, model: &str) -> String {
        match self {
            Format::OpenaiChat => "/chat/completions".into(),
            Format::OpenaiResponses => "/responses".into(),
            Format::Anthropic => "/messages".into(),
            Format::Gemini => {
                // A model's name is part of the address here, so it must not be able to leave it.
                let safe = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
                let name: String =
                    model.chars().map(|c| if safe(c) { c.into() } else { escape(c) }).collect();
                format!("/models/{name}:streamGenerateContent?alt=sse")
            }
        }
    }

    /// A request's body. The same request gives the same bytes, and a longer conversation begins
    /// with the bytes of a shorter one, so that providers can cache it. [`draft::Draft`] writes the
    /// same, but only what it has not written before.
    pub fn body(self, request: &Request, quirks: &Quirks) -> Value {
        let mut body = self.frame(request, quirks);
        if !self.replaced(request) {
            let mut list = self.list(conversation(request, quirks), request, quirks);
            self.mark(&mut list, request, quirks);
            let opening = self.opening(request, quirks);
            let list: Value = opening.into_iter().chain(list).collect();
            set(&mut body, self.key(), list);
        }
        body
    }

    /// The body with the conversation left open.
    fn frame(self, request: &Request, quirks: &Quirks) -> Value {
        let mut frame = match self {
            Format::OpenaiChat => openai_chat::frame(request, quirks),
            Format::OpenaiResponses => openai_responses::frame(request, quirks),
            Format::Anthropic => anthropic::frame(request, quirks),
            Format::Gemini => gemini::frame(request, quirks),
        };
        for (key, value) in &request.options.extra {
            overlay(&mut frame, key, value);
        }
        frame
    }

    /// What the conversation is called in a body.
    fn key(self) -> &'static str {
        match self {
            Format::OpenaiChat | Format::Anthropic => "messages",
            Format::OpenaiResponses => "input",
            Format::Gemini => "contents",
        }
    }

    /// True if a person's own setting stands in the conversation's place.
    fn replaced(self, request: &Request) -> bool {
        request.options.extra.contains_key(self.key())
    }

    /// What comes before the conversation in its list.
    fn opening(self, request: &Request, quirks: &Quirks) -> Option<Value> {
        match self {
            Format::OpenaiChat => openai_chat::opening(request, quirks),
            Format::OpenaiResponses | Format::Anthropic | Format::Gemini => None,
        }
    }

    /// Turns as they are listed, without marks. Some servers refuse two messages of one side in a
    /// row, and none minds one.
    fn list(self, turns: Vec<Turn<'_>>, request: &Request, quirks: &Quirks) -> Vec<Value> {
        let mut list = Vec::new();
        match self {
            Format::OpenaiChat => {
                merged(turns).iter().for_each(|turn| openai_chat::write(turn, quirks, &mut list));
            }
            Format::OpenaiResponses => {
                turns.iter().for_each(|turn| openai_responses::write(turn, &mut list));
            }
            Format::Anthropic => list.extend(merged(turns).iter().map(anthropic::message)),
            Format::Gemini => {
                let turns = merged(turns);
                list.extend(turns.iter().map(|turn| gemini::content(turn, &request.model)));
            }
        }
        list
    }

    /// Marks where the provider's cache may end: behind each of our last two messages.
    fn mark(self, list: &mut [Value], request: &Request, quirks: &Quirks) {
        match self {
            Format::OpenaiChat => openai_chat::mark_last(list, request, quirks),
            Format::Anthropic => anthropic::mark_last(list, quirks),
            Format::OpenaiResponses | Format::Gemini => {}
        }
    }

    /// Something that reads the answer to a request.
    pub fn decoder(self, request: &Request, quirks: &Quirks) -> Decoder {
        // An answer that has a shape may look like a call, and a model that may not call does not.
        let calls = !request.tools.is_empty()
            && request.options.tool_choice != Some(Choice::None)
            && request.options.answer.is_none();
        let names = || request.tools.iter().map(|tool| tool.name.clone()).collect();
        let sift = quirks.text.then(|| Sift::new(true, calls.then(names)));
        Decoder { reader: self.reader(), sift }
    }

    fn reader(self) -> AnyReader {
        match self {
            Format::OpenaiChat => AnyReader::OpenaiChat(Reader::default()),
            Format::OpenaiResponses => AnyReader::OpenaiResponses(Reader::default()),
            Format::Anthropic => AnyReader::Anthropic(Reader::default()),
            Format::Gemini => AnyReader::Gemini(Reader::default()),
        }
    }
}

fn escape(c: char) -> String {
    let mut bytes = [0; 4];
    c.encode_utf8(&mut bytes).bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Adds a person's own setting to a body; objects are merged, everything else is replaced.
fn overlay(body: &mut Value, key: &str, value: &Value) {
    let Value::Object(map) = body else { return };
    match (map.get_mut(key), value) {
        (Some(Value::Object(inner)), Value::Object(more)) => {
            inner.extend(more.iter().map(|(key, value)| (key.clone(), value.clone())));
        }
        _ => {
            map.insert(key.to_owned(), value.clone());
        }
    }
}

/// Sets a field of an object.
fn set(object: &mut Value, key: &str, value: impl Into<Value>) {
    if let Value::Object(map) = object {
        map.insert(key.to_owned(), value.into());
    }
}

/// The shape an answer has to have, strictly where strictness can express it.
fn shape(answer: &Value) -> Value {
    let strict = schema::fits_strict(answer);
    let subset = if strict { schema::Subset::Strict } else { schema::Subset::Full };
    json!({"name": "answer", "schema": schema::adapt(answer, subset), "strict": strict})
}

#[derive(Clone, Debug)]
enum AnyReader {
    OpenaiChat(Reader<openai_chat::Step>),
    OpenaiResponses(Reader<openai_responses::Step>),
    Anthropic(Reader<anthropic::Step>),
    Gemini(Reader<gemini::Step>),
}

/// Reads a stream, however it is cut into pieces. Pure.
#[derive(Clone, Debug)]
pub struct Decoder {
    reader: AnyReader,
    sift: Option<Sift>,
}

impl Decoder {
    /// A decoder of a format, without anything besides.
    pub fn plain(format: Format) -> Decoder {
        Decoder { reader: format.reader(), sift: None }
    }

    /// Takes in the next bytes.
    pub fn step(&mut self, bytes: Bytes) -> Vec<ModelEvent> {
        let events = match &mut self.reader {
            AnyReader::OpenaiChat(reader) => reader.step(bytes),
            AnyReader::OpenaiResponses(reader) => reader.step(bytes),
            AnyReader::Anthropic(reader) => reader.step(bytes),
            AnyReader::Gemini(reader) => reader.step(bytes),
        };
        sifted(&mut self.sift, events)
    }

    /// How often the answer has gone on so far. Heartbeats do not count.
    pub fn progress(&self) -> u64 {
        match &self.reader {
            AnyReader::OpenaiChat(reader) => reader.progress(),
            AnyReader::OpenaiResponses(reader) => reader.progress(),
            AnyReader::Anthropic(reader) => reader.progress(),
            AnyReader::Gemini(reader) => reader.progress(),
        }
    }

    /// What it means if no more bytes come.
    pub fn end(&self) -> Vec<ModelEvent> {
        let events = match &self.reader {
            AnyReader::OpenaiChat(reader) => reader.end(),
            AnyReader::OpenaiResponses(reader) => reader.end(),
            AnyReader::Anthropic(reader) => reader.end(),
            AnyReader::Gemini(reader) => reader.end(),
        };
        sifted(&mut self.sift.clone(), events)
    }
}

fn sifted(sift: &mut Option<Sift>, events: Vec<ModelEvent>) -> Vec<ModelEvent> {
    let Some(sift) = sift else { return events };
    let mut out = Vec::with_capacity(events.len());
    for event in events {
        sift.take(event, &mut out);
    }
    out
}

#[cfg(test)]
pub(crate) mod tests;
