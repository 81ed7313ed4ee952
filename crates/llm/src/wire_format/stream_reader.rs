//! Shared stream decoding: server-sent events with one JSON text each, within limits.

use super::lone_surrogates::replace_lone_surrogates;
use crate::ModelEvent;
use crate::provider_error::ProviderError;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use sse_core::{SseDecoder, SseEvent};
use std::num::NonZeroUsize;
use windlass_protocol::{Fault, FinishReason, TokenUsage};

/// Bounds the size of an event. A whole response may arrive as one event.
const MAX_EVENT_BYTES: NonZeroUsize = NonZeroUsize::new(16 << 20).unwrap();

/// Bounds the number of calls in one response.
pub(super) const MAX_CALLS: usize = 1_000;

/// Decodes the events of one wire format.
pub trait StreamDecoder: Default {
    /// Decodes the data of one event; returns true if it advanced the response.
    fn decode_event(&mut self, data: &str, out: &mut EventSink) -> Result<bool, DecodeError>;
    /// Returns the final events if the response may end here, else `None`.
    fn end_of_stream(&self) -> Option<Vec<ModelEvent>>;
}

/// The reason a stream cannot be decoded further.
#[derive(Debug)]
pub enum DecodeError {
    /// The provider reported an error.
    Fault(Fault),
    /// The data is malformed.
    Malformed(String),
}

impl From<serde_json::Error> for DecodeError {
    fn from(error: serde_json::Error) -> DecodeError {
        DecodeError::Malformed(error.to_string())
    }
}

impl From<Fault> for DecodeError {
    fn from(fault: Fault) -> DecodeError {
        DecodeError::Fault(fault)
    }
}

/// Collects the `ModelEvent`s decoded from the stream.
#[derive(Debug, Default)]
pub struct EventSink {
    pub(super) events: Vec<ModelEvent>,
    is_over: bool,
}

impl EventSink {
    pub(super) fn push_text(&mut self, text: String) {
        if !text.is_empty() {
            self.events.push(ModelEvent::Text(text));
        }
    }

    pub(super) fn push_reasoning(&mut self, text: String) {
        if !text.is_empty() {
            self.events.push(ModelEvent::Reasoning(text));
        }
    }

    /// Appends a piece of a call whose tool is known.
    pub(super) fn push_call_delta(&mut self, index: u64, tool: &str, arguments: &str) {
        if !tool.is_empty() {
            let (tool, arguments) = (tool.to_owned(), arguments.to_owned());
            self.events.push(ModelEvent::CallDelta { index, tool, arguments });
        }
    }

    /// Appends `ModelEvent::Ended` and marks the response as over.
    pub(super) fn push_end(&mut self, finish: FinishReason, usage: TokenUsage) {
        self.events.push(ModelEvent::Ended { finish, usage });
        self.is_over = true;
    }
}

/// Reads a stream of one wire format with its `StreamDecoder`.
#[derive(Clone, Debug)]
pub struct StreamReader<S> {
    sse: SseDecoder,
    progress: u64,
    is_over: bool,
    decoder: S,
    held_events: HeldEvents,
}

impl<S: StreamDecoder> Default for StreamReader<S> {
    fn default() -> StreamReader<S> {
        let sse = SseDecoder::with_limit(MAX_EVENT_BYTES);
        StreamReader {
            sse,
            progress: 0,
            is_over: false,
            decoder: S::default(),
            held_events: HeldEvents::default(),
        }
    }
}

impl<S: StreamDecoder> StreamReader<S> {
    /// Decodes the next bytes of the stream.
    pub fn feed_bytes(&mut self, mut bytes: Bytes) -> Vec<ModelEvent> {
        let mut out = EventSink::default();
        while !self.is_over {
            let error = match self.sse.next(&mut bytes) {
                None => break,
                Some(Ok(SseEvent::Message(message))) => {
                    match self
                        .decoder
                        .decode_event(&replace_lone_surrogates(&message.data), &mut out)
                    {
                        Ok(advanced) => {
                            self.progress += u64::from(advanced);
                            self.is_over = out.is_over;
                            continue;
                        }
                        Err(error) => error,
                    }
                }
                Some(Ok(_)) => continue,
                Some(Err(_)) => DecodeError::Malformed("an event is too large".into()),
            };
            self.is_over = true;
            out.events.push(ModelEvent::Failed(match error {
                DecodeError::Fault(fault) => fault,
                DecodeError::Malformed(reason) => {
                    Fault::from_provider(None, format!("it sent an invalid response: {reason}"))
                }
            }));
        }
        self.held_events.pass_or_hold(out.events)
    }

    /// Returns the number of events that advanced the response.
    pub fn progress(&self) -> u64 {
        self.progress
    }

    /// Returns the final events for a stream that ends here.
    pub fn finish(&self) -> Vec<ModelEvent> {
        if self.is_over {
            return Vec::new();
        }
        let events = self.decoder.end_of_stream().unwrap_or_else(|| {
            let message = "the stream ended before the response was complete".to_owned();
            vec![ModelEvent::Failed(Fault::Network { message })]
        });
        self.held_events.clone().pass_or_hold(events)
    }
}

/// The calls of a response and the events after the first call. They are held until the end of the
/// response decides whether the calls count: a response that was cut off may contain a truncated
/// call.
#[derive(Clone, Debug, Default, PartialEq)]
struct HeldEvents {
    events: Vec<ModelEvent>,
    bytes: usize,
}

impl HeldEvents {
    fn pass_or_hold(&mut self, events: Vec<ModelEvent>) -> Vec<ModelEvent> {
        let can_pass =
            |event: &ModelEvent| !event.is_last() && !matches!(event, ModelEvent::Call { .. });
        if self.events.is_empty() && events.iter().all(can_pass) {
            return events;
        }
        let mut out = Vec::with_capacity(events.len());
        for event in events {
            let is_call = matches!(event, ModelEvent::Call { .. });
            if event.is_last() {
                let keeps_calls =
                    matches!(event, ModelEvent::Ended { finish: FinishReason::ToolCalls, .. });
                let held = std::mem::take(&mut self.events).into_iter();
                out.extend(
                    held.filter(|held| keeps_calls || !matches!(held, ModelEvent::Call { .. })),
                );
                out.push(event);
            } else if matches!(event, ModelEvent::CallDelta { .. }) {
                // Only shown, so it need not wait.
                out.push(event);
            } else if is_call || !self.events.is_empty() {
                self.bytes += event_size(&event);
                // Endless text after a call is useless, so drop it beyond the limit.
                if is_call || self.bytes <= MAX_EVENT_BYTES.get() {
                    self.events.push(event);
                }
            } else {
                out.push(event);
            }
        }
        out
    }
}

fn event_size(event: &ModelEvent) -> usize {
    const MIN_EVENT_BYTES: usize = 32;
    MIN_EVENT_BYTES
        + match event {
            ModelEvent::Text(text)
            | ModelEvent::Reasoning(text)
            | ModelEvent::ProviderSignature(text) => text.len(),
            ModelEvent::CallDelta { .. }
            | ModelEvent::Call { .. }
            | ModelEvent::Ended { .. }
            | ModelEvent::Failed(_) => 0,
        }
}

#[cfg(test)]
impl<S: PartialEq> StreamReader<S> {
    /// Returns true if both readers are in the same state, except for the SSE framing, whose state
    /// is not visible.
    pub(super) fn is_same_state(&self, other: &StreamReader<S>) -> bool {
        (self.progress, self.is_over, &self.decoder, &self.held_events)
            == (other.progress, other.is_over, &other.decoder, &other.held_events)
    }
}

/// Parses the JSON of one event; a syntax error becomes `DecodeError::Malformed`.
pub(super) fn parse_event<'a, T: Deserialize<'a>>(data: &'a str) -> Result<T, DecodeError> {
    Ok(serde_json::from_str(data)?)
}

/// Converts an error object inside a stream into a `DecodeError`.
pub(super) fn stream_error(error: &RawValue) -> DecodeError {
    let value = serde_json::from_str::<Value>(error.get()).unwrap_or_default();
    DecodeError::Fault(ProviderError::from_json(&value).into_fault())
}

/// Details of the input token count in the OpenAI formats.
#[derive(Deserialize)]
pub(super) struct InputTokenDetails {
    pub(super) cached_tokens: Option<u64>,
    pub(super) cache_write_tokens: Option<u64>,
}

/// Details of the output token count in the OpenAI formats.
#[derive(Deserialize)]
pub(super) struct OutputTokenDetails {
    pub(super) reasoning_tokens: Option<u64>,
}

/// Bounds the calls and bytes buffered before they can be emitted.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct CallBufferLimiter {
    calls: usize,
    bytes: usize,
}

impl CallBufferLimiter {
    /// Counts a call and returns its index.
    pub(super) fn count_call(&mut self) -> Result<u64, DecodeError> {
        let index = self.calls as u64;
        self.calls += 1;
        self.check_limits()?;
        Ok(index)
    }

    pub(super) fn count_bytes(&mut self, added: usize) -> Result<(), DecodeError> {
        self.bytes += added;
        self.check_limits()
    }

    fn check_limits(&self) -> Result<(), DecodeError> {
        if self.calls > MAX_CALLS || self.bytes > MAX_EVENT_BYTES.get() {
            return Err(Fault::from_provider(Some(200), "its tool calls exceed the limit").into());
        }
        Ok(())
    }
}
