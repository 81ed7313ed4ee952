//! Decodes the server-sent events of the Anthropic Messages API into `ModelEvent`s.

use crate::ModelEvent;
use crate::wire_format::stream_reader::{
    self, CallBufferLimiter, DecodeError, EventSink, parse_event, stream_error,
};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use std::borrow::Cow;
use windlass_protocol::{FinishReason, TokenUsage};

/// The decoder state of one Anthropic response.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AnthropicDecoder {
    block: Option<AnthropicBlock>,
    has_calls: bool,
    stop_reason: Option<String>,
    tokens: AnthropicUsage,
    limits: CallBufferLimiter,
}

/// The open content block. Only one block is open at a time.
#[derive(Clone, Debug, PartialEq)]
enum AnthropicBlock {
    Text,
    Reasoning {
        has_no_text: bool,
        signature: String,
    },
    Call {
        index: u64,
        reference: String,
        tool: String,
        start: String,
        arguments: String,
    },
    /// A block of a tool that the provider runs itself.
    ServerTool,
}

#[derive(Deserialize)]
struct AnthropicEvent<'a> {
    #[serde(rename = "type", default, borrow)]
    kind: Cow<'a, str>,
    message: Option<MessageStart>,
    content_block: Option<ContentBlockStart>,
    delta: Option<AnthropicDelta>,
    usage: Option<AnthropicUsage>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// An event parsed only for its `type`.
#[derive(Deserialize)]
struct AnthropicEventKind {
    #[serde(rename = "type", default)]
    kind: String,
    content_block: Option<ContentBlockKind>,
}

#[derive(Deserialize)]
struct ContentBlockKind {
    #[serde(rename = "type", default)]
    kind: String,
}

#[derive(Deserialize)]
struct MessageStart {
    usage: Option<AnthropicUsage>,
}

#[derive(Deserialize)]
struct ContentBlockStart {
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
struct AnthropicDelta {
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    partial_json: Option<String>,
    stop_reason: Option<String>,
}

/// Token counts. The provider counts cached tokens separately from the other input, and may send
/// each count again.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
struct AnthropicUsage {
    input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

impl AnthropicUsage {
    fn update(&mut self, newer: AnthropicUsage) {
        self.input_tokens = newer.input_tokens.or(self.input_tokens);
        self.cache_creation_input_tokens =
            newer.cache_creation_input_tokens.or(self.cache_creation_input_tokens);
        self.cache_read_input_tokens =
            newer.cache_read_input_tokens.or(self.cache_read_input_tokens);
        self.output_tokens = newer.output_tokens.or(self.output_tokens);
    }

    fn to_usage(&self) -> TokenUsage {
        let cache_reads = self.cache_read_input_tokens.unwrap_or_default();
        let cache_writes = self.cache_creation_input_tokens.unwrap_or_default();
        let input = self.input_tokens.unwrap_or_default();
        TokenUsage {
            input: input.saturating_add(cache_reads).saturating_add(cache_writes),
            output: self.output_tokens.unwrap_or_default(),
            cache_reads,
            cache_writes,
            reasoning: 0,
        }
    }
}

/// The `content_block` types that this decoder handles.
const KNOWN_BLOCK_TYPES: &[&str] = &["text", "thinking", "redacted_thinking", "tool_use"];

impl stream_reader::StreamDecoder for AnthropicDecoder {
    fn decode_event(&mut self, data: &str, out: &mut EventSink) -> Result<bool, DecodeError> {
        let event: AnthropicEvent<'_> = match parse_event(data) {
            Ok(event) => event,
            Err(error) => return self.skip_server_tool_event(data, error),
        };
        match &*event.kind {
            "message_start" => {
                let usage = event.message.and_then(|message| message.usage);
                self.tokens.update(usage.unwrap_or_default());
            }
            "content_block_start" => {
                if let Some(start) = event.content_block {
                    self.start_block(start, out)?;
                }
            }
            "content_block_delta" => {
                if let Some(delta) = event.delta {
                    self.apply_delta(delta, out)?;
                }
            }
            "content_block_stop" => self.stop_block(out),
            "message_delta" => {
                self.tokens.update(event.usage.unwrap_or_default());
                let reason = event.delta.and_then(|delta| delta.stop_reason);
                self.stop_reason = reason.or(self.stop_reason.take());
            }
            "message_stop" => out.push_end(self.finish_reason(), self.tokens.to_usage()),
            // Some servers send an error without a `type`.
            _ => {
                if let Some(error) = event.error {
                    return Err(stream_error(error));
                }
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn end_of_stream(&self) -> Option<Vec<ModelEvent>> {
        self.stop_reason.as_ref().filter(|_| self.block.is_none())?;
        Some(vec![ModelEvent::Ended {
            finish: self.finish_reason(),
            usage: self.tokens.to_usage(),
        }])
    }
}

impl AnthropicDecoder {
    /// Handles an event that does not parse. Events of tools that the provider runs itself may have
    /// any form and are skipped; others are an error.
    fn skip_server_tool_event(
        &mut self,
        data: &str,
        error: DecodeError,
    ) -> Result<bool, DecodeError> {
        let Ok(AnthropicEventKind { kind, content_block }) =
            parse_event::<AnthropicEventKind>(data)
        else {
            return Err(error);
        };
        let block = content_block.map(|block| block.kind).unwrap_or_default();
        match kind.as_str() {
            "content_block_start" if !KNOWN_BLOCK_TYPES.contains(&block.as_str()) => {
                self.block = Some(AnthropicBlock::ServerTool);
                Ok(true)
            }
            "content_block_delta" if self.block == Some(AnthropicBlock::ServerTool) => Ok(true),
            "content_block_start"
            | "content_block_delta"
            | "message_start"
            | "message_delta"
            | "error" => Err(error),
            _ => Ok(false),
        }
    }

    fn start_block(
        &mut self,
        start: ContentBlockStart,
        out: &mut EventSink,
    ) -> Result<(), DecodeError> {
        self.block = Some(match start.kind.as_str() {
            "text" => {
                out.push_text(start.text.unwrap_or_default());
                AnthropicBlock::Text
            }
            "thinking" => {
                let text = start.thinking.unwrap_or_default();
                let has_no_text = text.is_empty();
                out.push_reasoning(text);
                AnthropicBlock::Reasoning { has_no_text, signature: String::new() }
            }
            "redacted_thinking" => {
                let provider_signature =
                    json!({"redacted": start.data.unwrap_or_default()}).to_string();
                out.events.push(ModelEvent::Reasoning(String::new()));
                out.events.push(ModelEvent::ProviderSignature(provider_signature));
                AnthropicBlock::ServerTool
            }
            "tool_use" => {
                let index = self.limits.count_call()?;
                let input = start.input.map(|input| input.get().to_owned()).unwrap_or_default();
                let tool = start.name.unwrap_or_default();
                out.push_call_delta(index, &tool, "");
                AnthropicBlock::Call {
                    index,
                    reference: start.id.unwrap_or_default(),
                    tool,
                    start: input,
                    arguments: String::new(),
                }
            }
            _ => AnthropicBlock::ServerTool,
        });
        Ok(())
    }

    fn apply_delta(
        &mut self,
        delta: AnthropicDelta,
        out: &mut EventSink,
    ) -> Result<(), DecodeError> {
        match &mut self.block {
            Some(AnthropicBlock::Text) => out.push_text(delta.text.unwrap_or_default()),
            Some(AnthropicBlock::Reasoning { has_no_text, signature }) => {
                let text = delta.thinking.unwrap_or_default();
                *has_no_text &= text.is_empty();
                out.push_reasoning(text);
                let added = delta.signature.unwrap_or_default();
                self.limits.count_bytes(added.len())?;
                signature.push_str(&added);
            }
            Some(AnthropicBlock::Call { index, tool, arguments, .. }) => {
                let added = delta.partial_json.unwrap_or_default();
                self.limits.count_bytes(added.len())?;
                out.push_call_delta(*index, tool, &added);
                arguments.push_str(&added);
            }
            Some(AnthropicBlock::ServerTool) | None => {}
        }
        Ok(())
    }

    fn stop_block(&mut self, out: &mut EventSink) {
        match self.block.take() {
            Some(AnthropicBlock::Reasoning { has_no_text, signature }) if !signature.is_empty() => {
                if has_no_text {
                    out.events.push(ModelEvent::Reasoning(String::new()));
                }
                let provider_signature = json!({"signature": signature}).to_string();
                out.events.push(ModelEvent::ProviderSignature(provider_signature));
            }
            Some(AnthropicBlock::Call { reference, tool, start, arguments, .. }) => {
                self.has_calls = true;
                let arguments = if arguments.is_empty() { start } else { arguments };
                out.events.push(ModelEvent::Call {
                    reference,
                    tool,
                    arguments,
                    provider_signature: None,
                    repairs: Vec::new(),
                });
            }
            Some(
                AnthropicBlock::Reasoning { .. }
                | AnthropicBlock::Text
                | AnthropicBlock::ServerTool,
            )
            | None => {}
        }
    }

    fn finish_reason(&self) -> FinishReason {
        match self.stop_reason.as_deref() {
            Some("max_tokens" | "model_context_window_exceeded") => FinishReason::Length,
            Some("refusal") => FinishReason::ContentFiltered,
            _ if self.has_calls => FinishReason::ToolCalls,
            _ => FinishReason::Stop,
        }
    }
}
