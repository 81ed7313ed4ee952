//! Decodes the stream of the OpenAI Chat Completions API into `ModelEvent`s.

use super::reasoning_details::{ReasoningDetail, ReasoningDetails};
use crate::ModelEvent;
use crate::wire_format::stream_reader::{
    self, CallBufferLimiter, DecodeError, EventSink, InputTokenDetails, OutputTokenDetails,
    parse_event, stream_error,
};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;
use windlass_protocol::{Fault, FinishReason, TokenUsage};

/// The decoder state of one response.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChatDecoder {
    calls: Vec<ChatToolCall>,
    details: ReasoningDetails,
    finish_reason: Option<String>,
    usage: TokenUsage,
    limits: CallBufferLimiter,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct ChatToolCall {
    index: Option<u64>,
    reference: String,
    tool: String,
    arguments: String,
}

#[derive(Deserialize)]
struct ChatChunk<'a> {
    choices: Option<Vec<ChatChoice>>,
    usage: Option<ChatUsage>,
    x_groq: Option<GroqExtension>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct GroqExtension {
    usage: Option<ChatUsage>,
}

#[derive(Deserialize)]
struct ChatChoice {
    delta: Option<ChatDelta>,
    finish_reason: Option<String>,
    error: Option<Box<RawValue>>,
}

#[derive(Default, Deserialize)]
struct ChatDelta {
    #[serde(default)]
    content: ChatContent,
    // Two names for the same content; some servers send both at once.
    reasoning_content: Option<String>,
    reasoning: Option<String>,
    reasoning_details: Option<Vec<ReasoningDetail>>,
    refusal: Option<String>,
    tool_calls: Option<Vec<ToolCallDelta>>,
}

/// Message content: text, or a list of blocks, some of them reasoning.
#[derive(Default)]
struct ChatContent {
    text: String,
    reasoning: String,
}

#[derive(Deserialize)]
struct ChatContentBlock {
    text: Option<String>,
    #[serde(default)]
    thinking: ChatContent,
}

impl<'de> Deserialize<'de> for ChatContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ChatContent, D::Error> {
        deserializer.deserialize_any(ChatContentVisitor)
    }
}

struct ChatContentVisitor;

impl<'de> Visitor<'de> for ChatContentVisitor {
    type Value = ChatContent;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text or a list of blocks")
    }

    fn visit_str<E>(self, text: &str) -> Result<ChatContent, E> {
        Ok(ChatContent { text: text.to_owned(), reasoning: String::new() })
    }

    fn visit_string<E>(self, text: String) -> Result<ChatContent, E> {
        Ok(ChatContent { text, reasoning: String::new() })
    }

    fn visit_unit<E>(self) -> Result<ChatContent, E> {
        Ok(ChatContent::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<ChatContent, A::Error> {
        let mut content = ChatContent::default();
        while let Some(block) = list.next_element::<ChatContentBlock>()? {
            content.text.push_str(&block.text.unwrap_or_default());
            content.reasoning.push_str(&block.thinking.text);
        }
        Ok(content)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ChatContent, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(ChatContent::default())
    }
}

#[derive(Deserialize)]
struct ToolCallDelta {
    index: Option<u64>,
    id: Option<String>,
    function: Option<FunctionDelta>,
}

#[derive(Deserialize)]
struct FunctionDelta {
    name: Option<String>,
    #[serde(default)]
    arguments: CallArguments,
}

/// Arguments of a call. They are a string, but some servers send the object itself.
#[derive(Default)]
struct CallArguments(String);

impl<'de> Deserialize<'de> for CallArguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<CallArguments, D::Error> {
        deserializer.deserialize_any(CallArgumentsVisitor)
    }
}

struct CallArgumentsVisitor;

impl<'de> Visitor<'de> for CallArgumentsVisitor {
    type Value = CallArguments;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text or an object")
    }

    fn visit_str<E>(self, text: &str) -> Result<CallArguments, E> {
        Ok(CallArguments(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<CallArguments, E> {
        Ok(CallArguments(text))
    }

    fn visit_unit<E>(self) -> Result<CallArguments, E> {
        Ok(CallArguments::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<CallArguments, A::Error> {
        let object = serde::de::value::MapAccessDeserializer::new(map);
        Ok(CallArguments(serde_json::Value::deserialize(object)?.to_string()))
    }
}

#[derive(Deserialize)]
struct ChatUsage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<InputTokenDetails>,
    completion_tokens_details: Option<OutputTokenDetails>,
    /// Cached tokens, from providers that send no `prompt_tokens_details`.
    prompt_cache_hit_tokens: Option<u64>,
    cached_tokens: Option<u64>,
}

impl ChatUsage {
    fn into_usage(self) -> TokenUsage {
        let details = self.prompt_tokens_details.as_ref();
        let cached = details.and_then(|details| details.cached_tokens);
        let cached = cached.or(self.prompt_cache_hit_tokens).or(self.cached_tokens);
        let reasoning = self.completion_tokens_details.and_then(|d| d.reasoning_tokens);
        TokenUsage {
            input: self.prompt_tokens.unwrap_or_default(),
            output: self.completion_tokens.unwrap_or_default(),
            cache_reads: cached.unwrap_or_default(),
            cache_writes: details.and_then(|d| d.cache_write_tokens).unwrap_or_default(),
            reasoning: reasoning.unwrap_or_default(),
        }
    }
}

impl stream_reader::StreamDecoder for ChatDecoder {
    fn decode_event(&mut self, data: &str, out: &mut EventSink) -> Result<bool, DecodeError> {
        if data == "[DONE]" {
            if self.finish_reason.is_none() && !self.calls.is_empty() {
                let message = "the stream ended before the response was complete".to_owned();
                return Err(Fault::Network { message }.into());
            }
            for event in self.end_events() {
                match event {
                    ModelEvent::Ended { finish, usage } => out.push_end(finish, usage),
                    event => out.events.push(event),
                }
            }
            return Ok(true);
        }
        let chunk: ChatChunk<'_> = parse_event(data)?;
        if let Some(error) = chunk.error {
            return Err(stream_error(error));
        }
        let mut advanced = false;
        if let Some(tokens) = chunk.usage.or(chunk.x_groq.and_then(|groq| groq.usage)) {
            self.usage = tokens.into_usage();
            advanced = true;
        }
        // The request asks for one response, so `choices` has one entry.
        let Some(choice) = chunk.choices.and_then(|choices| choices.into_iter().next()) else {
            return Ok(advanced);
        };
        if let Some(error) = choice.error {
            return Err(stream_error(&error));
        }
        advanced |= self.apply_delta(choice.delta.unwrap_or_default(), out)?;
        match choice.finish_reason.as_deref() {
            None | Some("") => {}
            Some("error" | "insufficient_system_resource" | "network_error" | "abort") => {
                return Err(Fault::from_provider(Some(503), "it aborted the response").into());
            }
            Some(_) => {
                self.finish_reason = choice.finish_reason;
                advanced = true;
            }
        }
        Ok(advanced)
    }

    fn end_of_stream(&self) -> Option<Vec<ModelEvent>> {
        self.finish_reason.is_some().then(|| self.end_events())
    }
}

impl ChatDecoder {
    fn apply_delta(&mut self, delta: ChatDelta, out: &mut EventSink) -> Result<bool, DecodeError> {
        let event_count = out.events.len();
        let non_empty = |text: Option<String>| text.filter(|text| !text.is_empty());
        let reasoning = non_empty(delta.reasoning_content).or_else(|| non_empty(delta.reasoning));
        out.push_reasoning(reasoning.unwrap_or(delta.content.reasoning));
        for detail in delta.reasoning_details.into_iter().flatten() {
            self.limits.count_bytes(detail.text_bytes())?;
            self.details.add(detail);
        }
        let text = delta.content.text + &delta.refusal.unwrap_or_default();
        let calls = delta.tool_calls.unwrap_or_default();
        // Reasoning ends as soon as other content arrives.
        if !text.is_empty() || !calls.is_empty() {
            out.events.extend(self.details.take_signature_events(false));
        }
        out.push_text(text);
        let mut advanced = out.events.len() > event_count;
        for call in calls {
            advanced = true;
            self.add_call_delta(call, out)?;
        }
        Ok(advanced)
    }

    /// Appends a delta to the call it belongs to. A new ID starts a new call, even if the server
    /// repeats or omits the index. A delta with a new ID but no tool name continues the call of its
    /// index.
    fn add_call_delta(
        &mut self,
        delta: ToolCallDelta,
        out: &mut EventSink,
    ) -> Result<(), DecodeError> {
        let id = delta.id.filter(|id| !id.is_empty());
        let name = delta.function.as_ref().and_then(|function| function.name.as_deref());
        let has_name = name.is_some_and(|name| !name.is_empty());
        let is_same_call = |call: &ChatToolCall| match (&id, delta.index) {
            (Some(id), Some(index)) if call.index == Some(index) => {
                call.reference == *id || !has_name
            }
            (Some(id), Some(_)) => call.index.is_none() && call.reference == *id,
            (Some(id), None) => call.reference == *id,
            (None, Some(index)) => call.index == Some(index),
            (None, None) => true,
        };
        let index = match self.calls.iter().rposition(is_same_call) {
            Some(index) => index,
            None => {
                self.limits.count_call()?;
                let reference = id.clone().unwrap_or_else(|| format!("call_{}", self.calls.len()));
                self.calls.push(ChatToolCall {
                    index: delta.index,
                    reference,
                    ..ChatToolCall::default()
                });
                self.calls.len() - 1
            }
        };
        let Some(call) = self.calls.get_mut(index) else { return Ok(()) };
        if let Some(function) = delta.function {
            if call.tool.is_empty() {
                call.tool = function.name.unwrap_or_default();
            }
            let CallArguments(arguments) = function.arguments;
            self.limits.count_bytes(arguments.len())?;
            call.arguments.push_str(&arguments);
            out.push_call_delta(index as u64, &call.tool, &arguments);
        }
        Ok(())
    }

    fn end_events(&self) -> Vec<ModelEvent> {
        let finish = match self.finish_reason.as_deref().unwrap_or_default() {
            // The last call may be truncated, and the server does not say which of the others are
            // complete.
            "length" | "max_tokens" | "model_length" | "model_context_window_exceeded" => {
                FinishReason::Length
            }
            "content_filter" | "sensitive" => FinishReason::ContentFiltered,
            _ if self.calls.is_empty() => FinishReason::Stop,
            _ => FinishReason::ToolCalls,
        };
        let mut events = self.details.clone().take_signature_events(true);
        if finish == FinishReason::ToolCalls {
            events.extend(self.calls.iter().map(|call| ModelEvent::Call {
                reference: call.reference.clone(),
                tool: call.tool.clone(),
                arguments: call.arguments.clone(),
                provider_signature: None,
                repairs: Vec::new(),
            }));
        }
        events.push(ModelEvent::Ended { finish, usage: self.usage });
        events
    }
}
