//! Decodes the stream of the OpenAI Responses API into `ModelEvent`s.

use crate::ModelEvent;
use crate::wire_format::stream_reader::{
    self, CallBufferLimiter, DecodeError, EventSink, InputTokenDetails, MAX_CALLS,
    OutputTokenDetails, parse_event, stream_error,
};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use windlass_protocol::{FinishReason, TokenUsage};

/// The decoder state of one response.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResponsesDecoder {
    has_calls: bool,
    /// Indexes of the items whose text or reasoning arrived in deltas.
    streamed_items: BTreeSet<u64>,
    /// Tools of the calls that the model is writing or has written, by the index of the item.
    call_tools: BTreeMap<u64, String>,
    /// True once any item has arrived in `response.output_item.done`.
    has_items: bool,
    limits: CallBufferLimiter,
}

#[derive(Deserialize)]
struct ResponsesEvent<'a> {
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

/// An event or item parsed only for its `type`.
#[derive(Deserialize)]
struct ResponsesTypeTag {
    #[serde(rename = "type", default)]
    kind: String,
}

#[derive(Deserialize)]
struct ResponsesItem {
    call_id: Option<String>,
    name: Option<String>,
    arguments: Option<String>,
    encrypted_content: Option<String>,
    phase: Option<String>,
    content: Option<Vec<ResponsesContent>>,
    summary: Option<Vec<ResponsesContent>>,
}

#[derive(Deserialize)]
struct ResponsesContent {
    text: Option<String>,
    refusal: Option<String>,
}

#[derive(Deserialize)]
struct ResponseObject<'a> {
    usage: Option<ResponsesUsage>,
    incomplete_details: Option<IncompleteDetails>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct IncompleteDetails {
    reason: Option<String>,
}

#[derive(Deserialize)]
struct ResponsesUsage {
    input_tokens: Option<u64>,
    input_tokens_details: Option<InputTokenDetails>,
    output_tokens: Option<u64>,
    output_tokens_details: Option<OutputTokenDetails>,
}

impl ResponsesUsage {
    fn into_usage(self) -> TokenUsage {
        let cached = self.input_tokens_details.as_ref();
        let reasoning = self.output_tokens_details.and_then(|details| details.reasoning_tokens);
        TokenUsage {
            input: self.input_tokens.unwrap_or_default(),
            output: self.output_tokens.unwrap_or_default(),
            cache_reads: cached.and_then(|details| details.cached_tokens).unwrap_or_default(),
            cache_writes: cached.and_then(|d| d.cache_write_tokens).unwrap_or_default(),
            reasoning: reasoning.unwrap_or_default(),
        }
    }
}

/// The events that this decoder handles.
const KNOWN_EVENTS: &[&str] = &[
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

impl stream_reader::StreamDecoder for ResponsesDecoder {
    fn decode_event(&mut self, data: &str, out: &mut EventSink) -> Result<bool, DecodeError> {
        let event: ResponsesEvent<'_> = match parse_event(data) {
            Ok(event) => event,
            // Events of tools that the provider runs itself may have any form.
            Err(error) => match parse_event::<ResponsesTypeTag>(data) {
                Ok(ResponsesTypeTag { kind }) if !KNOWN_EVENTS.contains(&kind.as_str()) => {
                    return Ok(true);
                }
                Ok(_) | Err(_) => return Err(error),
            },
        };
        let index = event.output_index.unwrap_or_default();
        let delta = event.delta.unwrap_or_default();
        match &*event.kind {
            "response.output_text.delta" | "response.refusal.delta" => {
                self.streamed_items.insert(index);
                out.push_text(delta);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.streamed_items.insert(index);
                out.push_reasoning(delta);
            }
            "response.reasoning_summary_part.added"
                if event.summary_index.unwrap_or_default() > 0 =>
            {
                out.push_reasoning("\n\n".into());
            }
            "response.output_item.added" => {
                if let Some(item) = event.item {
                    self.start_item(item, index, out);
                }
            }
            "response.function_call_arguments.delta" => {
                if let Some(tool) = self.call_tools.get(&index) {
                    out.push_call_delta(index, tool, &delta);
                }
            }
            "response.output_item.done" => {
                if let Some(item) = event.item {
                    self.finish_item(item, index, out)?;
                }
            }
            "response.completed" | "response.incomplete" | "response.done" => {
                self.finish_response(event.response, out)?;
            }
            "response.failed" => {
                let response =
                    event.response.map(|raw| parse_event::<ResponseObject<'_>>(raw.get()));
                let error = response.transpose()?.and_then(|response| response.error);
                return Err(error.map_or_else(
                    || DecodeError::Malformed("the response failed without a reason".into()),
                    stream_error,
                ));
            }
            "error" => {
                let raw_event = parse_event::<&RawValue>(data)?;
                return Err(stream_error(event.error.unwrap_or(raw_event)));
            }
            "" => match event.error {
                Some(error) => return Err(stream_error(error)),
                None => return Ok(false),
            },
            "keepalive" | "ping" => return Ok(false),
            _ => {}
        }
        Ok(true)
    }

    fn end_of_stream(&self) -> Option<Vec<ModelEvent>> {
        None
    }
}

impl ResponsesDecoder {
    /// Handles the start of an item. Only the tool of a call matters here, and only for display, so
    /// an item of an unknown form is ignored.
    fn start_item(&mut self, raw: &RawValue, index: u64, out: &mut EventSink) {
        let Ok(ResponsesTypeTag { kind }) = parse_event(raw.get()) else { return };
        if kind != "function_call" || self.call_tools.len() >= MAX_CALLS {
            return;
        }
        let item = parse_event::<ResponsesItem>(raw.get()).ok();
        let tool = item.and_then(|item| item.name).unwrap_or_default();
        out.push_call_delta(index, &tool, "");
        self.call_tools.insert(index, tool);
    }

    /// Handles a completed item. Its text has usually arrived in deltas before.
    fn finish_item(
        &mut self,
        raw: &RawValue,
        index: u64,
        out: &mut EventSink,
    ) -> Result<(), DecodeError> {
        self.has_items = true;
        let is_new = !self.streamed_items.contains(&index);
        let ResponsesTypeTag { kind } = parse_event(raw.get())?;
        // Items of tools that the provider runs itself may have any form.
        if !["message", "reasoning", "function_call"].contains(&kind.as_str()) {
            return Ok(());
        }
        let item: ResponsesItem = parse_event(raw.get())?;
        match kind.as_str() {
            "message" => {
                for content in item.content.into_iter().flatten().filter(|_| is_new) {
                    out.push_text(content.text.or(content.refusal).unwrap_or_default());
                }
                if let Some(phase) = item.phase {
                    out.events
                        .push(ModelEvent::ProviderSignature(json!({"phase": phase}).to_string()));
                }
            }
            "reasoning" => {
                let contents = item.summary.into_iter().chain(item.content).flatten();
                let texts: Vec<String> =
                    contents.filter(|_| is_new).filter_map(|content| content.text).collect();
                out.push_reasoning(texts.join("\n\n"));
                // Without `encrypted_content` the item refers to data stored at the provider, and
                // we store nothing there.
                if item.encrypted_content.is_some() {
                    if is_new && texts.is_empty() {
                        out.events.push(ModelEvent::Reasoning(String::new()));
                    }
                    out.events.push(ModelEvent::ProviderSignature(raw.get().to_owned()));
                }
            }
            _ => {
                self.limits.count_call()?;
                self.has_calls = true;
                let arguments = item.arguments.unwrap_or_default();
                self.limits.count_bytes(arguments.len())?;
                out.events.push(ModelEvent::Call {
                    reference: item.call_id.unwrap_or_default(),
                    tool: item.name.unwrap_or_default(),
                    arguments,
                    provider_signature: None,
                    repairs: Vec::new(),
                });
            }
        }
        Ok(())
    }

    fn finish_response(
        &mut self,
        response: Option<&RawValue>,
        out: &mut EventSink,
    ) -> Result<(), DecodeError> {
        let response =
            response.map(|raw| parse_event::<ResponseObject<'_>>(raw.get())).transpose()?;
        let Some(response) = response else {
            out.push_end(self.finish_reason(None), TokenUsage::default());
            return Ok(());
        };
        // Some servers send the whole output in the final event only.
        if !self.has_items {
            for (index, item) in (0..).zip(response.output.unwrap_or_default()) {
                self.finish_item(item, index, out)?;
            }
        }
        let reason = response.incomplete_details.and_then(|details| details.reason);
        let usage = response.usage.map(ResponsesUsage::into_usage).unwrap_or_default();
        out.push_end(self.finish_reason(reason.as_deref()), usage);
        Ok(())
    }

    fn finish_reason(&self, reason: Option<&str>) -> FinishReason {
        match reason {
            Some("content_filter") => FinishReason::ContentFiltered,
            Some(_) => FinishReason::Length,
            None if self.has_calls => FinishReason::ToolCalls,
            None => FinishReason::Stop,
        }
    }
}
