//! How a stream is read.

use crate::ModelEvent;
use crate::wire::stream::{self, Bound, Cached, Out, Reasoning, Stop, complaint, parse};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeSet;
use windlass_protocol::{Finish, Usage};

/// Reads a stream step by step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    called: bool,
    /// The items whose text or thought has come in pieces.
    heard: BTreeSet<u64>,
    /// An item has come at all.
    any: bool,
    bound: Bound,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", default, borrow)]
    kind: Cow<'a, str>,
    delta: Option<String>,
    output_index: Option<u64>,
    summary_index: Option<u64>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// An event or an item of which only the kind is known.
#[derive(Deserialize)]
struct Kind {
    #[serde(rename = "type", default)]
    kind: String,
}

#[derive(Deserialize)]
struct Item {
    call_id: Option<String>,
    name: Option<String>,
    arguments: Option<String>,
    encrypted_content: Option<String>,
    phase: Option<String>,
    content: Option<Vec<Content>>,
    summary: Option<Vec<Content>>,
}

#[derive(Deserialize)]
struct Content {
    text: Option<String>,
    refusal: Option<String>,
}

#[derive(Deserialize)]
struct Response<'a> {
    usage: Option<Tokens>,
    incomplete_details: Option<Incomplete>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct Incomplete {
    reason: Option<String>,
}

#[derive(Deserialize)]
struct Tokens {
    input_tokens: Option<u64>,
    input_tokens_details: Option<Cached>,
    output_tokens: Option<u64>,
    output_tokens_details: Option<Reasoning>,
}

impl Tokens {
    fn usage(self) -> Usage {
        let cached = self.input_tokens_details.as_ref();
        let reasoning = self.output_tokens_details.and_then(|details| details.reasoning_tokens);
        Usage {
            input: self.input_tokens.unwrap_or_default(),
            output: self.output_tokens.unwrap_or_default(),
            cached: cached.and_then(|details| details.cached_tokens).unwrap_or_default(),
            cache_writes: cached.and_then(|d| d.cache_write_tokens).unwrap_or_default(),
            reasoning: reasoning.unwrap_or_default(),
        }
    }
}

/// The events that mean something to us.
const KNOWN: &[&str] = &[
    "",
    "error",
    "response.output_text.delta",
    "response.refusal.delta",
    "response.reasoning_summary_text.delta",
    "response.reasoning_text.delta",
    "response.reasoning_summary_part.added",
    "response.output_item.done",
    "response.completed",
    "response.incomplete",
    "response.done",
    "response.failed",
];

impl stream::Step for Step {
    fn event(&mut self, data: &str, out: &mut Out) -> Result<bool, Stop> {
        let event: Event<'_> = match parse(data) {
            Ok(event) => event,
            // What only a provider's own tools send may have any shape.
            Err(stop) => match parse::<Kind>(data) {
                Ok(Kind { kind }) if !KNOWN.contains(&kind.as_str()) => return Ok(true),
                Ok(_) | Err(_) => return Err(stop),
            },
        };
        let index = event.output_index.unwrap_or_default();
        let delta = event.delta.unwrap_or_default();
        match &*event.kind {
            "response.output_text.delta" | "response.refusal.delta" => {
                self.heard.insert(index);
                out.text(delta);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.heard.insert(index);
                out.reasoning(delta);
            }
            "response.reasoning_summary_part.added"
                if event.summary_index.unwrap_or_default() > 0 =>
            {
                out.reasoning("\n\n".into());
            }
            "response.output_item.done" => {
                if let Some(item) = event.item {
                    self.item(item, index, out)?;
                }
            }
            "response.completed" | "response.incomplete" | "response.done" => {
                self.complete(event.response, out)?;
            }
            "response.failed" => {
                let response = event.response.map(|raw| parse::<Response<'_>>(raw.get()));
                let error = response.transpose()?.and_then(|response| response.error);
                return Err(error.map_or_else(
                    || Stop::Senseless("it failed and does not say why".into()),
                    complaint,
                ));
            }
            "error" => {
                let whole = parse::<&RawValue>(data)?;
                return Err(complaint(event.error.unwrap_or(whole)));
            }
            "" => match event.error {
                Some(error) => return Err(complaint(error)),
                None => return Ok(false),
            },
            "keepalive" | "ping" => return Ok(false),
            _ => {}
        }
        Ok(true)
    }

    fn ended(&self) -> Option<Vec<ModelEvent>> {
        None
    }
}

impl Step {
    /// An item is complete. Its text has usually come in pieces before.
    fn item(&mut self, raw: &RawValue, index: u64, out: &mut Out) -> Result<(), Stop> {
        self.any = true;
        let fresh = !self.heard.contains(&index);
        let Kind { kind } = parse(raw.get())?;
        // What only a provider's own tools write has any shape.
        if !["message", "reasoning", "function_call"].contains(&kind.as_str()) {
            return Ok(());
        }
        let item: Item = parse(raw.get())?;
        match kind.as_str() {
            "message" => {
                for content in item.content.into_iter().flatten().filter(|_| fresh) {
                    out.text(content.text.or(content.refusal).unwrap_or_default());
                }
                if let Some(phase) = item.phase {
                    out.events.push(ModelEvent::Sealed(json!({"phase": phase}).to_string()));
                }
            }
            "reasoning" => {
                let thoughts = item.summary.into_iter().chain(item.content).flatten();
                let thought: Vec<String> =
                    thoughts.filter(|_| fresh).filter_map(|thought| thought.text).collect();
                out.reasoning(thought.join("\n\n"));
                // Without this it names something that is kept at the provider's, where we keep
                // nothing.
                if item.encrypted_content.is_some() {
                    if fresh && thought.is_empty() {
                        out.events.push(ModelEvent::Reasoning(String::new()));
                    }
                    out.events.push(ModelEvent::Sealed(raw.get().to_owned()));
                }
            }
            _ => {
                self.bound.call()?;
                self.called = true;
                let arguments = item.arguments.unwrap_or_default();
                self.bound.bytes(arguments.len())?;
                out.events.push(ModelEvent::Call {
                    reference: item.call_id.unwrap_or_default(),
                    tool: item.name.unwrap_or_default(),
                    arguments,
                    seal: None,
                    repaired: Vec::new(),
                });
            }
        }
        Ok(())
    }

    fn complete(&mut self, response: Option<&RawValue>, out: &mut Out) -> Result<(), Stop> {
        let response = response.map(|raw| parse::<Response<'_>>(raw.get())).transpose()?;
        let Some(response) = response else {
            out.end(self.finish(None), Usage::default());
            return Ok(());
        };
        // Some servers send everything at the end and nothing before.
        if !self.any {
            for (index, item) in (0..).zip(response.output.unwrap_or_default()) {
                self.item(item, index, out)?;
            }
        }
        let reason = response.incomplete_details.and_then(|details| details.reason);
        let usage = response.usage.map(Tokens::usage).unwrap_or_default();
        out.end(self.finish(reason.as_deref()), usage);
        Ok(())
    }

    fn finish(&self, incomplete: Option<&str>) -> Finish {
        match incomplete {
            Some("content_filter") => Finish::Filtered,
            Some(_) => Finish::Length,
            None if self.called => Finish::Calls,
            None => Finish::Stop,
        }
    }
}
