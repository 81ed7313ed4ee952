//! How a stream is read.

use super::details::{Detail, Details};
use crate::ModelEvent;
use crate::wire::stream::{self, Bound, Cached, Out, Reasoning, Stop, complaint, parse};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;
use windlass_protocol::{Fault, Finish, Usage};

/// Reads a stream step by step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    calls: Vec<Call>,
    details: Details,
    finish: Option<String>,
    usage: Usage,
    bound: Bound,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Call {
    index: Option<u64>,
    reference: String,
    tool: String,
    arguments: String,
}

#[derive(Deserialize)]
struct Chunk<'a> {
    choices: Option<Vec<Choice>>,
    usage: Option<Tokens>,
    x_groq: Option<Groq>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Groq {
    usage: Option<Tokens>,
}

#[derive(Deserialize)]
struct Choice {
    delta: Option<Delta>,
    finish_reason: Option<String>,
    error: Option<Box<RawValue>>,
}

#[derive(Default, Deserialize)]
struct Delta {
    #[serde(default)]
    content: Content,
    // Two names for one thing; some servers send both at once.
    reasoning_content: Option<String>,
    reasoning: Option<String>,
    reasoning_details: Option<Vec<Detail>>,
    refusal: Option<String>,
    tool_calls: Option<Vec<CallDelta>>,
}

/// Text, or a list of blocks some of which are thoughts.
#[derive(Default)]
struct Content {
    text: String,
    thought: String,
}

#[derive(Deserialize)]
struct Block {
    text: Option<String>,
    #[serde(default)]
    thinking: Content,
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Content, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text or a list of blocks")
    }

    fn visit_str<E>(self, text: &str) -> Result<Content, E> {
        Ok(Content { text: text.to_owned(), thought: String::new() })
    }

    fn visit_string<E>(self, text: String) -> Result<Content, E> {
        Ok(Content { text, thought: String::new() })
    }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(Content::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Content, A::Error> {
        let mut content = Content::default();
        while let Some(block) = list.next_element::<Block>()? {
            content.text.push_str(&block.text.unwrap_or_default());
            content.thought.push_str(&block.thinking.text);
        }
        Ok(content)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Content, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Content::default())
    }
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
    #[serde(default)]
    arguments: Arguments,
}

/// Arguments come as text; some servers send them as the object they are.
#[derive(Default)]
struct Arguments(String);

impl<'de> Deserialize<'de> for Arguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Arguments, D::Error> {
        deserializer.deserialize_any(ArgumentsVisitor)
    }
}

struct ArgumentsVisitor;

impl<'de> Visitor<'de> for ArgumentsVisitor {
    type Value = Arguments;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text or an object")
    }

    fn visit_str<E>(self, text: &str) -> Result<Arguments, E> {
        Ok(Arguments(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Arguments, E> {
        Ok(Arguments(text))
    }

    fn visit_unit<E>(self) -> Result<Arguments, E> {
        Ok(Arguments::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Arguments, A::Error> {
        let object = serde::de::value::MapAccessDeserializer::new(map);
        Ok(Arguments(serde_json::Value::deserialize(object)?.to_string()))
    }
}

#[derive(Deserialize)]
struct Tokens {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<Cached>,
    completion_tokens_details: Option<Reasoning>,
    /// Where others have the details.
    prompt_cache_hit_tokens: Option<u64>,
    cached_tokens: Option<u64>,
}

impl Tokens {
    fn usage(self) -> Usage {
        let details = self.prompt_tokens_details.as_ref();
        let cached = details.and_then(|details| details.cached_tokens);
        let cached = cached.or(self.prompt_cache_hit_tokens).or(self.cached_tokens);
        let reasoning = self.completion_tokens_details.and_then(|d| d.reasoning_tokens);
        Usage {
            input: self.prompt_tokens.unwrap_or_default(),
            output: self.completion_tokens.unwrap_or_default(),
            cached: cached.unwrap_or_default(),
            cache_writes: details.and_then(|d| d.cache_write_tokens).unwrap_or_default(),
            reasoning: reasoning.unwrap_or_default(),
        }
    }
}

impl stream::Step for Step {
    fn event(&mut self, data: &str, out: &mut Out) -> Result<bool, Stop> {
        if data == "[DONE]" {
            if self.finish.is_none() && !self.calls.is_empty() {
                let message = "the stream ended before the answer did".to_owned();
                return Err(Fault::Network { message }.into());
            }
            for event in self.end() {
                match event {
                    ModelEvent::Ended { finish, usage } => out.end(finish, usage),
                    event => out.events.push(event),
                }
            }
            return Ok(true);
        }
        let chunk: Chunk<'_> = parse(data)?;
        if let Some(error) = chunk.error {
            return Err(complaint(error));
        }
        let mut went_on = false;
        if let Some(tokens) = chunk.usage.or(chunk.x_groq.and_then(|groq| groq.usage)) {
            self.usage = tokens.usage();
            went_on = true;
        }
        // Only one answer is asked for, so there is only one choice.
        let Some(choice) = chunk.choices.and_then(|choices| choices.into_iter().next()) else {
            return Ok(went_on);
        };
        if let Some(error) = choice.error {
            return Err(complaint(&error));
        }
        went_on |= self.delta(choice.delta.unwrap_or_default(), out)?;
        match choice.finish_reason.as_deref() {
            None | Some("") => {}
            Some("error" | "insufficient_system_resource" | "network_error" | "abort") => {
                return Err(Fault::provider(Some(503), "it broke off its answer").into());
            }
            Some(_) => {
                (self.finish, went_on) = (choice.finish_reason, true);
            }
        }
        Ok(went_on)
    }

    fn ended(&self) -> Option<Vec<ModelEvent>> {
        self.finish.is_some().then(|| self.end())
    }
}

impl Step {
    fn delta(&mut self, delta: Delta, out: &mut Out) -> Result<bool, Stop> {
        let before = out.events.len();
        let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
        let thought = filled(delta.reasoning_content).or_else(|| filled(delta.reasoning));
        out.reasoning(thought.unwrap_or(delta.content.thought));
        for detail in delta.reasoning_details.into_iter().flatten() {
            self.bound.bytes(detail.size())?;
            self.details.add(detail);
        }
        let text = delta.content.text + &delta.refusal.unwrap_or_default();
        let calls = delta.tool_calls.unwrap_or_default();
        // The thought is over as soon as something else comes.
        if !text.is_empty() || !calls.is_empty() {
            out.events.extend(self.details.seal(false));
        }
        out.text(text);
        let mut went_on = out.events.len() > before;
        for call in calls {
            went_on = true;
            self.gather(call)?;
        }
        Ok(went_on)
    }

    /// Adds a piece to the call it belongs to. A new id begins a new call, also where a server
    /// repeats or leaves out the index; one that names no tool goes on with the call of its index.
    fn gather(&mut self, delta: CallDelta) -> Result<(), Stop> {
        let id = delta.id.filter(|id| !id.is_empty());
        let named = delta.function.as_ref().and_then(|function| function.name.as_deref());
        let named = named.is_some_and(|name| !name.is_empty());
        let same = |call: &Call| match (&id, delta.index) {
            (Some(id), Some(index)) if call.index == Some(index) => call.reference == *id || !named,
            (Some(id), Some(_)) => call.index.is_none() && call.reference == *id,
            (Some(id), None) => call.reference == *id,
            (None, Some(index)) => call.index == Some(index),
            (None, None) => true,
        };
        let at = match self.calls.iter().rposition(same) {
            Some(at) => at,
            None => {
                self.bound.call()?;
                let reference = id.clone().unwrap_or_else(|| format!("call_{}", self.calls.len()));
                self.calls.push(Call { index: delta.index, reference, ..Call::default() });
                self.calls.len() - 1
            }
        };
        let Some(call) = self.calls.get_mut(at) else { return Ok(()) };
        if let Some(function) = delta.function {
            if call.tool.is_empty() {
                call.tool = function.name.unwrap_or_default();
            }
            let Arguments(arguments) = function.arguments;
            self.bound.bytes(arguments.len())?;
            call.arguments.push_str(&arguments);
        }
        Ok(())
    }

    fn end(&self) -> Vec<ModelEvent> {
        let finish = match self.finish.as_deref().unwrap_or_default() {
            // The last call may be cut off, and which others are complete is not said.
            "length" | "max_tokens" | "model_length" | "model_context_window_exceeded" => {
                Finish::Length
            }
            "content_filter" | "sensitive" => Finish::Filtered,
            _ if self.calls.is_empty() => Finish::Stop,
            _ => Finish::Calls,
        };
        let mut events = self.details.clone().seal(true);
        if finish == Finish::Calls {
            events.extend(self.calls.iter().map(|call| ModelEvent::Call {
                reference: call.reference.clone(),
                tool: call.tool.clone(),
                arguments: call.arguments.clone(),
                seal: None,
                repaired: Vec::new(),
            }));
        }
        events.push(ModelEvent::Ended { finish, usage: self.usage });
        events
    }
}
