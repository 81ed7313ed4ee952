//! What all streams have in common: server-sent events, one JSON text each, bounded.

use super::lone::mended;
use crate::ModelEvent;
use crate::trouble::Complaint;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use sse_core::{SseDecoder, SseEvent};
use std::num::NonZeroUsize;
use windlass_protocol::{Fault, Finish, Usage};

/// The longest event we take in. A whole answer may come as one.
const LONGEST: NonZeroUsize = NonZeroUsize::new(16 << 20).unwrap();

/// The most calls we take in from one answer.
const MOST_CALLS: usize = 1_000;

/// Reads the events of one format.
pub trait Step: Default {
    /// Takes in the data of one event, and says whether the answer went on.
    fn event(&mut self, data: &str, out: &mut Out) -> Result<bool, Stop>;
    /// How the answer ended, if it may have ended here.
    fn ended(&self) -> Option<Vec<ModelEvent>>;
}

/// Why a stream cannot be read any further.
#[derive(Debug)]
pub enum Stop {
    /// The provider says so.
    Fault(Fault),
    /// It makes no sense.
    Senseless(String),
}

impl From<serde_json::Error> for Stop {
    fn from(error: serde_json::Error) -> Stop {
        Stop::Senseless(error.to_string())
    }
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Stop {
        Stop::Fault(fault)
    }
}

/// What an event gave.
#[derive(Debug, Default)]
pub struct Out {
    pub(super) events: Vec<ModelEvent>,
    over: bool,
}

impl Out {
    pub(super) fn text(&mut self, text: String) {
        if !text.is_empty() {
            self.events.push(ModelEvent::Text(text));
        }
    }

    pub(super) fn reasoning(&mut self, text: String) {
        if !text.is_empty() {
            self.events.push(ModelEvent::Reasoning(text));
        }
    }

    /// The answer is over.
    pub(super) fn end(&mut self, finish: Finish, usage: Usage) {
        self.events.push(ModelEvent::Ended { finish, usage });
        self.over = true;
    }
}

/// Reads a stream of one format.
#[derive(Clone, Debug)]
pub struct Reader<S> {
    sse: SseDecoder,
    progress: u64,
    over: bool,
    step: S,
    held: Held,
}

impl<S: Step> Default for Reader<S> {
    fn default() -> Reader<S> {
        let sse = SseDecoder::with_limit(LONGEST);
        Reader { sse, progress: 0, over: false, step: S::default(), held: Held::default() }
    }
}

impl<S: Step> Reader<S> {
    /// Takes in the next bytes.
    pub fn step(&mut self, mut bytes: Bytes) -> Vec<ModelEvent> {
        let mut out = Out::default();
        while !self.over {
            let stop = match self.sse.next(&mut bytes) {
                None => break,
                Some(Ok(SseEvent::Message(message))) => {
                    match self.step.event(&mended(&message.data), &mut out) {
                        Ok(went_on) => {
                            self.progress += u64::from(went_on);
                            self.over = out.over;
                            continue;
                        }
                        Err(stop) => stop,
                    }
                }
                Some(Ok(_)) => continue,
                Some(Err(_)) => Stop::Senseless("an event is too long".into()),
            };
            self.over = true;
            out.events.push(ModelEvent::Failed(match stop {
                Stop::Fault(fault) => fault,
                Stop::Senseless(why) => {
                    Fault::provider(None, format!("it sent what we cannot read: {why}"))
                }
            }));
        }
        self.held.pass(out.events)
    }

    /// How often the answer has gone on so far.
    pub fn progress(&self) -> u64 {
        self.progress
    }

    /// What it means if no more bytes come.
    pub fn end(&self) -> Vec<ModelEvent> {
        if self.over {
            return Vec::new();
        }
        let ended = self.step.ended().unwrap_or_else(|| {
            let message = "the stream ended before the answer did".to_owned();
            vec![ModelEvent::Failed(Fault::Network { message })]
        });
        self.held.clone().pass(ended)
    }
}

/// The calls of an answer, and what came after the first of them. Only the end says whether they
/// count: an answer that was cut off may have cut a call.
#[derive(Clone, Debug, Default, PartialEq)]
struct Held {
    events: Vec<ModelEvent>,
    bytes: usize,
}

impl Held {
    fn pass(&mut self, events: Vec<ModelEvent>) -> Vec<ModelEvent> {
        let plain =
            |event: &ModelEvent| !event.is_last() && !matches!(event, ModelEvent::Call { .. });
        if self.events.is_empty() && events.iter().all(plain) {
            return events;
        }
        let mut out = Vec::with_capacity(events.len());
        for event in events {
            let call = matches!(event, ModelEvent::Call { .. });
            if event.is_last() {
                let count = matches!(event, ModelEvent::Ended { finish: Finish::Calls, .. });
                let held = std::mem::take(&mut self.events).into_iter();
                out.extend(held.filter(|held| count || !matches!(held, ModelEvent::Call { .. })));
                out.push(event);
            } else if call || !self.events.is_empty() {
                self.bytes += size(&event);
                // Text without end after a call is of no use to anybody.
                if call || self.bytes <= LONGEST.get() {
                    self.events.push(event);
                }
            } else {
                out.push(event);
            }
        }
        out
    }
}

fn size(event: &ModelEvent) -> usize {
    const AT_LEAST: usize = 32;
    AT_LEAST
        + match event {
            ModelEvent::Text(text) | ModelEvent::Reasoning(text) | ModelEvent::Sealed(text) => {
                text.len()
            }
            ModelEvent::Call { .. } | ModelEvent::Ended { .. } | ModelEvent::Failed(_) => 0,
        }
}

#[cfg(test)]
impl<S: PartialEq> Reader<S> {
    /// True if both would go on in the same way, as far as we can see into the framing.
    pub(super) fn same(&self, other: &Reader<S>) -> bool {
        (self.progress, self.over, &self.step, &self.held)
            == (other.progress, other.over, &other.step, &other.held)
    }
}

/// Reads one event's JSON.
pub(super) fn parse<'a, T: Deserialize<'a>>(data: &'a str) -> Result<T, Stop> {
    Ok(serde_json::from_str(data)?)
}

/// What an error object in the middle of a stream means.
pub(super) fn complaint(error: &RawValue) -> Stop {
    let value = serde_json::from_str::<Value>(error.get()).unwrap_or_default();
    Stop::Fault(Complaint::read(&value).fault())
}

/// What OpenAI's formats count beside the tokens that are read.
#[derive(Deserialize)]
pub(super) struct Cached {
    pub(super) cached_tokens: Option<u64>,
    pub(super) cache_write_tokens: Option<u64>,
}

/// And beside those that are written.
#[derive(Deserialize)]
pub(super) struct Reasoning {
    pub(super) reasoning_tokens: Option<u64>,
}

/// A bound on what is gathered before it can be handed on.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Bound {
    calls: usize,
    bytes: usize,
}

impl Bound {
    pub(super) fn call(&mut self) -> Result<(), Stop> {
        self.calls += 1;
        self.check()
    }

    pub(super) fn bytes(&mut self, more: usize) -> Result<(), Stop> {
        self.bytes += more;
        self.check()
    }

    fn check(&self) -> Result<(), Stop> {
        if self.calls > MOST_CALLS || self.bytes > LONGEST.get() {
            return Err(Fault::provider(Some(200), "its calls have no end").into());
        }
        Ok(())
    }
}
