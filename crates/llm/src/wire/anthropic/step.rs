//! How a stream is read.

use crate::ModelEvent;
use crate::wire::stream::{self, Bound, Out, Stop, complaint, parse};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use std::borrow::Cow;
use windlass_protocol::{Finish, Usage};

/// Reads a stream step by step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    block: Option<Block>,
    called: bool,
    stop: Option<String>,
    tokens: Tokens,
    bound: Bound,
}

/// The block under way. There is one at a time.
#[derive(Clone, Debug, PartialEq)]
enum Block {
    Text,
    Thought {
        silent: bool,
        signature: String,
    },
    Call {
        reference: String,
        tool: String,
        start: String,
        arguments: String,
    },
    /// What only a provider's own tools write.
    Foreign,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", default, borrow)]
    kind: Cow<'a, str>,
    message: Option<Message>,
    content_block: Option<Start>,
    delta: Option<Delta>,
    usage: Option<Tokens>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// An event of which only the kind is known.
#[derive(Deserialize)]
struct Kind {
    #[serde(rename = "type", default)]
    kind: String,
    content_block: Option<Inner>,
}

#[derive(Deserialize)]
struct Inner {
    #[serde(rename = "type", default)]
    kind: String,
}

#[derive(Deserialize)]
struct Message {
    usage: Option<Tokens>,
}

#[derive(Deserialize)]
struct Start {
    #[serde(rename = "type", default)]
    kind: String,
    text: Option<String>,
    thinking: Option<String>,
    data: Option<String>,
    id: Option<String>,
    name: Option<String>,
    input: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Delta {
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    partial_json: Option<String>,
    stop_reason: Option<String>,
}

/// The provider counts cached tokens beside the others, and each count may come again.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
struct Tokens {
    input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

impl Tokens {
    fn update(&mut self, newer: Tokens) {
        self.input_tokens = newer.input_tokens.or(self.input_tokens);
        self.cache_creation_input_tokens =
            newer.cache_creation_input_tokens.or(self.cache_creation_input_tokens);
        self.cache_read_input_tokens =
            newer.cache_read_input_tokens.or(self.cache_read_input_tokens);
        self.output_tokens = newer.output_tokens.or(self.output_tokens);
    }

    fn usage(&self) -> Usage {
        let cached = self.cache_read_input_tokens.unwrap_or_default();
        let cache_writes = self.cache_creation_input_tokens.unwrap_or_default();
        let input = self.input_tokens.unwrap_or_default();
        Usage {
            input: input.saturating_add(cached).saturating_add(cache_writes),
            output: self.output_tokens.unwrap_or_default(),
            cached,
            cache_writes,
            reasoning: 0,
        }
    }
}

/// The blocks that mean something to us.
const OWN_BLOCKS: &[&str] = &["text", "thinking", "redacted_thinking", "tool_use"];

impl stream::Step for Step {
    fn event(&mut self, data: &str, out: &mut Out) -> Result<bool, Stop> {
        let event: Event<'_> = match parse(data) {
            Ok(event) => event,
            Err(stop) => return self.foreign(data, stop),
        };
        match &*event.kind {
            "message_start" => {
                let usage = event.message.and_then(|message| message.usage);
                self.tokens.update(usage.unwrap_or_default());
            }
            "content_block_start" => {
                if let Some(start) = event.content_block {
                    self.start(start, out)?;
                }
            }
            "content_block_delta" => {
                if let Some(delta) = event.delta {
                    self.delta(delta, out)?;
                }
            }
            "content_block_stop" => self.stop_block(out),
            "message_delta" => {
                self.tokens.update(event.usage.unwrap_or_default());
                let reason = event.delta.and_then(|delta| delta.stop_reason);
                self.stop = reason.or(self.stop.take());
            }
            "message_stop" => out.end(self.finish(), self.tokens.usage()),
            // Some servers send an error without a name.
            _ => {
                if let Some(error) = event.error {
                    return Err(complaint(error));
                }
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn ended(&self) -> Option<Vec<ModelEvent>> {
        self.stop.as_ref().filter(|_| self.block.is_none())?;
        Some(vec![ModelEvent::Ended { finish: self.finish(), usage: self.tokens.usage() }])
    }
}

impl Step {
    /// An event of another shape than ours. What only a provider's own tools send may have any.
    fn foreign(&mut self, data: &str, stop: Stop) -> Result<bool, Stop> {
        let Ok(Kind { kind, content_block }) = parse::<Kind>(data) else { return Err(stop) };
        let block = content_block.map(|block| block.kind).unwrap_or_default();
        match kind.as_str() {
            "content_block_start" if !OWN_BLOCKS.contains(&block.as_str()) => {
                self.block = Some(Block::Foreign);
                Ok(true)
            }
            "content_block_delta" if self.block == Some(Block::Foreign) => Ok(true),
            "content_block_start"
            | "content_block_delta"
            | "message_start"
            | "message_delta"
            | "error" => Err(stop),
            _ => Ok(false),
        }
    }

    fn start(&mut self, start: Start, out: &mut Out) -> Result<(), Stop> {
        self.block = Some(match start.kind.as_str() {
            "text" => {
                out.text(start.text.unwrap_or_default());
                Block::Text
            }
            "thinking" => {
                let thought = start.thinking.unwrap_or_default();
                let silent = thought.is_empty();
                out.reasoning(thought);
                Block::Thought { silent, signature: String::new() }
            }
            "redacted_thinking" => {
                let seal = json!({"redacted": start.data.unwrap_or_default()}).to_string();
                out.events.push(ModelEvent::Reasoning(String::new()));
                out.events.push(ModelEvent::Sealed(seal));
                Block::Foreign
            }
            "tool_use" => {
                self.bound.call()?;
                let input = start.input.map(|input| input.get().to_owned()).unwrap_or_default();
                Block::Call {
                    reference: start.id.unwrap_or_default(),
                    tool: start.name.unwrap_or_default(),
                    start: input,
                    arguments: String::new(),
                }
            }
            _ => Block::Foreign,
        });
        Ok(())
    }

    fn delta(&mut self, delta: Delta, out: &mut Out) -> Result<(), Stop> {
        match &mut self.block {
            Some(Block::Text) => out.text(delta.text.unwrap_or_default()),
            Some(Block::Thought { silent, signature }) => {
                let thought = delta.thinking.unwrap_or_default();
                *silent &= thought.is_empty();
                out.reasoning(thought);
                let more = delta.signature.unwrap_or_default();
                self.bound.bytes(more.len())?;
                signature.push_str(&more);
            }
            Some(Block::Call { arguments, .. }) => {
                let more = delta.partial_json.unwrap_or_default();
                self.bound.bytes(more.len())?;
                arguments.push_str(&more);
            }
            Some(Block::Foreign) | None => {}
        }
        Ok(())
    }

    fn stop_block(&mut self, out: &mut Out) {
        match self.block.take() {
            Some(Block::Thought { silent, signature }) if !signature.is_empty() => {
                if silent {
                    out.events.push(ModelEvent::Reasoning(String::new()));
                }
                let seal = json!({"signature": signature}).to_string();
                out.events.push(ModelEvent::Sealed(seal));
            }
            Some(Block::Call { reference, tool, start, arguments }) => {
                self.called = true;
                let arguments = if arguments.is_empty() { start } else { arguments };
                let (seal, repaired) = (None, Vec::new());
                let call = ModelEvent::Call { reference, tool, arguments, seal, repaired };
                out.events.push(call);
            }
            Some(Block::Thought { .. } | Block::Text | Block::Foreign) | None => {}
        }
    }

    fn finish(&self) -> Finish {
        match self.stop.as_deref() {
            Some("max_tokens" | "model_context_window_exceeded") => Finish::Length,
            Some("refusal") => Finish::Filtered,
            _ if self.called => Finish::Calls,
            _ => Finish::Stop,
        }
    }
}
