//! How a stream is read.

use crate::ModelEvent;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use sse_core::{SseDecoder, SseEvent};
use std::num::NonZeroUsize;
use windlass_protocol::{Fault, Finish, Usage};

/// The longest event we take in. A whole answer may come as one.
const LONGEST: NonZeroUsize = NonZeroUsize::new(16 << 20).unwrap();

/// The most calls we take in from one answer.
const MOST_CALLS: usize = 1_000;

/// Reads a stream step by step.
pub struct Step {
    sse: SseDecoder,
    /// How many events there were, whatever they held.
    heard: u64,
    calls: Vec<Call>,
    /// Bytes of arguments in `calls`.
    gathered: usize,
    finish: Option<String>,
    usage: Usage,
    over: bool,
}

#[derive(Default)]
struct Call {
    index: Option<u64>,
    reference: String,
    tool: String,
    arguments: String,
}

#[derive(Deserialize)]
struct Chunk {
    choices: Option<Vec<Choice>>,
    usage: Option<Tokens>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    delta: Option<Delta>,
    finish_reason: Option<String>,
}

#[derive(Default, Deserialize)]
struct Delta {
    content: Option<String>,
    // Two names for one thing; some servers send both at once.
    reasoning_content: Option<String>,
    reasoning: Option<String>,
    refusal: Option<String>,
    tool_calls: Option<Vec<CallDelta>>,
}

#[derive(Deserialize)]
struct CallDelta {
    index: Option<u64>,
    id: Option<String>,
    function: Option<FunctionDelta>,
}

#[derive(Deserialize)]
struct FunctionDelta {
    name: Option<String>,
    arguments: Option<String>,
}

#[derive(Deserialize)]
struct Tokens {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<TokenDetails>,
}

#[derive(Deserialize)]
struct TokenDetails {
    cached_tokens: Option<u64>,
}

impl Default for Step {
    fn default() -> Step {
        Step {
            sse: SseDecoder::with_limit(LONGEST),
            heard: 0,
            calls: Vec::new(),
            gathered: 0,
            finish: None,
            usage: Usage::default(),
            over: false,
        }
    }
}

impl Step {
    /// Takes in the next bytes.
    pub fn step(&mut self, bytes: &[u8]) -> Vec<ModelEvent> {
        let mut events = Vec::new();
        let mut bytes = Bytes::copy_from_slice(bytes);
        while !self.over {
            match self.sse.next(&mut bytes) {
                None => break,
                Some(Ok(SseEvent::Message(message))) => self.read(&message.data, &mut events),
                Some(Ok(_)) => {}
                Some(Err(_)) => self.fail("it sent an event that is too long", &mut events),
            }
        }
        events
    }

    /// Takes in that there are no more bytes.
    pub fn end(&mut self) -> Vec<ModelEvent> {
        let mut events = Vec::new();
        if self.over {
            return events;
        }
        if self.finish.is_some() {
            self.finish(&mut events);
        } else {
            self.over = true;
            let message = "the stream ended before the answer did".into();
            events.push(ModelEvent::Failed(Fault::Network { message }));
        }
        events
    }

    /// How many events there were so far. Comments that keep a connection alive do not count.
    pub fn heard(&self) -> u64 {
        self.heard
    }

    fn read(&mut self, data: &str, events: &mut Vec<ModelEvent>) {
        self.heard += 1;
        if data.trim() == "[DONE]" {
            events.extend(self.end());
            return;
        }
        let chunk: Chunk = match serde_json::from_str(data) {
            Ok(chunk) => chunk,
            Err(error) => {
                return self.fail(&format!("it sent what we cannot read: {error}"), events);
            }
        };
        if let Some(error) = chunk.error {
            let message = error.get("message").and_then(Value::as_str).map(str::to_owned);
            return self.fail(&message.unwrap_or_else(|| error.to_string()), events);
        }
        if let Some(tokens) = chunk.usage {
            let cached = tokens.prompt_tokens_details.and_then(|details| details.cached_tokens);
            self.usage = Usage {
                input: tokens.prompt_tokens.unwrap_or_default(),
                output: tokens.completion_tokens.unwrap_or_default(),
                cached: cached.unwrap_or_default(),
            };
        }
        // Only one answer is asked for, so there is only one choice.
        let choices = chunk.choices.unwrap_or_default();
        let Some(choice) = choices.into_iter().next() else { return };
        let delta = choice.delta.unwrap_or_default();
        let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
        let thought = filled(delta.reasoning_content).or_else(|| filled(delta.reasoning));
        events.extend(thought.map(ModelEvent::Reasoning));
        events.extend(filled(delta.content).map(ModelEvent::Text));
        events.extend(filled(delta.refusal).map(ModelEvent::Text));
        for call in delta.tool_calls.into_iter().flatten() {
            self.gather(call);
        }
        if self.gathered > LONGEST.get() || self.calls.len() > MOST_CALLS {
            return self.fail("its calls have no end", events);
        }
        if choice.finish_reason.is_some() {
            self.finish = choice.finish_reason;
        }
    }

    /// Adds a piece to the call it belongs to. A piece with a new id begins a new call, also where
    /// a server repeats or leaves out the index.
    fn gather(&mut self, delta: CallDelta) {
        let id = delta.id.filter(|id| !id.is_empty());
        let same = |call: &Call| match (&id, delta.index) {
            (Some(id), _) => call.reference == *id,
            (None, Some(index)) => call.index == Some(index),
            (None, None) => true,
        };
        let at = match self.calls.iter().rposition(same) {
            Some(at) => at,
            None => {
                let reference = id.clone().unwrap_or_else(|| format!("call_{}", self.calls.len()));
                self.calls.push(Call { index: delta.index, reference, ..Call::default() });
                self.calls.len() - 1
            }
        };
        let Some(call) = self.calls.get_mut(at) else { return };
        if let Some(function) = delta.function {
            if call.tool.is_empty() {
                call.tool = function.name.unwrap_or_default();
            }
            let arguments = function.arguments.unwrap_or_default();
            self.gathered += arguments.len();
            call.arguments.push_str(&arguments);
        }
    }

    fn finish(&mut self, events: &mut Vec<ModelEvent>) {
        self.over = true;
        let calls = std::mem::take(&mut self.calls);
        let finish = match self.finish.take().unwrap_or_default().as_str() {
            // The last call may be cut off, and which others are complete is not said.
            "length" | "max_tokens" => Finish::Length,
            "content_filter" => Finish::Filtered,
            _ if calls.is_empty() => Finish::Stop,
            _ => Finish::Calls,
        };
        if finish == Finish::Calls {
            events.extend(calls.into_iter().map(|call| ModelEvent::Call {
                reference: call.reference,
                tool: call.tool,
                arguments: call.arguments,
            }));
        }
        events.push(ModelEvent::Ended { finish, usage: self.usage });
    }

    fn fail(&mut self, message: &str, events: &mut Vec<ModelEvent>) {
        self.over = true;
        let fault = Fault::Provider { status: None, message: message.to_owned() };
        events.push(ModelEvent::Failed(fault));
    }
}
