//! Wire formats: how a request is written and how a stream of bytes is read, without any I/O.

pub mod openai_chat;

use crate::{ModelEvent, Request};
use serde_json::Value;

/// The wire formats there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// OpenAI Chat Completions, which most servers speak in some dialect.
    OpenaiChat,
}

impl Format {
    /// The format a config names.
    pub fn named(name: &str) -> Option<Format> {
        match name {
            "openai-chat" => Some(Format::OpenaiChat),
            _ => None,
        }
    }

    /// The names a config may use.
    pub const NAMES: &[&str] = &["openai-chat"];

    /// The path of a streaming request, below the base URL.
    pub fn path(self) -> &'static str {
        match self {
            Format::OpenaiChat => "/chat/completions",
        }
    }

    /// A request's body.
    pub fn body(self, request: &Request) -> Value {
        match self {
            Format::OpenaiChat => openai_chat::body(request),
        }
    }

    /// Something that reads a response's body.
    pub fn decoder(self) -> Decoder {
        match self {
            Format::OpenaiChat => Decoder::OpenaiChat(openai_chat::Step::default()),
        }
    }
}

/// Reads a stream, however it is cut into pieces. Pure.
pub enum Decoder {
    /// Of [`Format::OpenaiChat`].
    OpenaiChat(openai_chat::Step),
}

impl Decoder {
    /// Takes in the next bytes.
    pub fn step(&mut self, bytes: &[u8]) -> Vec<ModelEvent> {
        match self {
            Decoder::OpenaiChat(step) => step.step(bytes),
        }
    }

    /// How many events there were so far, whatever they held.
    pub fn heard(&self) -> u64 {
        match self {
            Decoder::OpenaiChat(step) => step.heard(),
        }
    }

    /// Takes in that there are no more bytes.
    pub fn end(&mut self) -> Vec<ModelEvent> {
        match self {
            Decoder::OpenaiChat(step) => step.end(),
        }
    }
}
