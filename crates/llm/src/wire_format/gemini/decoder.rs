//! Decodes the stream of the Gemini API into `ModelEvent`s.

use crate::ModelEvent;
use crate::wire_format::stream_reader::{
    self, CallBufferLimiter, DecodeError, EventSink, parse_event, stream_error,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use windlass_protocol::{Fault, FinishReason, TokenUsage};

/// The decoder state of one response.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GeminiDecoder {
    calls: usize,
    finish_reason: Option<String>,
    usage: TokenUsage,
    limits: CallBufferLimiter,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiChunk<'a> {
    candidates: Option<Vec<GeminiCandidate>>,
    usage_metadata: Option<GeminiUsage>,
    prompt_feedback: Option<GeminiPromptFeedback>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiCandidate {
    content: Option<GeminiContent>,
    finish_reason: Option<String>,
    finish_message: Option<String>,
}

#[derive(Deserialize)]
struct GeminiContent {
    parts: Option<Vec<GeminiPart>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiPart {
    text: Option<String>,
    thought: Option<bool>,
    thought_signature: Option<String>,
    function_call: Option<GeminiFunctionCall>,
}

#[derive(Deserialize)]
struct GeminiFunctionCall {
    id: Option<String>,
    name: Option<String>,
    args: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiPromptFeedback {
    block_reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiUsage {
    prompt_token_count: Option<u64>,
    tool_use_prompt_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
}

impl stream_reader::StreamDecoder for GeminiDecoder {
    fn decode_event(&mut self, data: &str, out: &mut EventSink) -> Result<bool, DecodeError> {
        let chunk: GeminiChunk<'_> = parse_event(data)?;
        if let Some(error) = chunk.error {
            return Err(stream_error(error));
        }
        let mut advanced = false;
        if let Some(tokens) = chunk.usage_metadata {
            self.record_usage(&tokens);
        }
        if let Some(reason) = chunk.prompt_feedback.and_then(|feedback| feedback.block_reason) {
            let message = format!("the prompt was blocked: {reason}");
            return Err(Fault::ModelRefused { message }.into());
        }
        // The request asks for one response, so `candidates` has one entry.
        let Some(candidate) = chunk.candidates.and_then(|list| list.into_iter().next()) else {
            return Ok(advanced);
        };
        for part in candidate.content.and_then(|content| content.parts).unwrap_or_default() {
            advanced = true;
            self.decode_part(part, out)?;
        }
        if let Some(reason) = candidate.finish_reason {
            advanced = true;
            if matches!(reason.as_str(), "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL") {
                let detail = candidate.finish_message.unwrap_or_default();
                return Err(DecodeError::Malformed(
                    format!("{reason} {detail}").trim_end().to_owned(),
                ));
            }
            self.finish_reason = Some(reason);
        }
        Ok(advanced)
    }

    fn end_of_stream(&self) -> Option<Vec<ModelEvent>> {
        let finish = match self.finish_reason.as_deref()? {
            "MAX_TOKENS" => FinishReason::Length,
            "STOP" if self.calls > 0 => FinishReason::ToolCalls,
            "STOP" | "FINISH_REASON_UNSPECIFIED" | "OTHER" => FinishReason::Stop,
            // Safety, recitation, blocklists and any other reason for withheld content.
            _ => FinishReason::ContentFiltered,
        };
        Some(vec![ModelEvent::Ended { finish, usage: self.usage }])
    }
}

impl GeminiDecoder {
    fn decode_part(&mut self, part: GeminiPart, out: &mut EventSink) -> Result<(), DecodeError> {
        let provider_signature = part.thought_signature;
        let is_thought = part.thought == Some(true);
        if let Some(call) = part.function_call {
            let index = self.limits.count_call()?;
            // The call `id` is optional, so generate one as a fallback.
            let generated_id = format!("call_{}", self.calls);
            self.calls += 1;
            let arguments = call.args.map_or_else(|| "{}".into(), |args| args.get().to_owned());
            self.limits.count_bytes(arguments.len())?;
            let tool = call.name.unwrap_or_default();
            // A call arrives in one piece, but counts only when the response ends.
            out.push_call_delta(index, &tool, &arguments);
            out.events.push(ModelEvent::Call {
                reference: call.id.filter(|id| !id.is_empty()).unwrap_or(generated_id),
                tool,
                arguments,
                provider_signature,
                repairs: Vec::new(),
            });
            return Ok(());
        }
        let text = part.text.unwrap_or_default();
        if text.is_empty() && provider_signature.is_none() {
            return Ok(());
        }
        out.events.push(if is_thought {
            ModelEvent::Reasoning(text)
        } else {
            ModelEvent::Text(text)
        });
        out.events.extend(provider_signature.map(ModelEvent::ProviderSignature));
        Ok(())
    }

    fn record_usage(&mut self, tokens: &GeminiUsage) {
        let reasoning = tokens.thoughts_token_count.unwrap_or_default();
        let input = tokens.prompt_token_count.unwrap_or_default();
        let output = tokens.candidates_token_count.unwrap_or_default();
        let usage = TokenUsage {
            input: input.saturating_add(tokens.tool_use_prompt_token_count.unwrap_or_default()),
            output: output.saturating_add(reasoning),
            cache_reads: tokens.cached_content_token_count.unwrap_or_default(),
            cache_writes: 0,
            reasoning,
        };
        // Every chunk repeats the totals, and some omit counts of an earlier chunk.
        self.usage = TokenUsage {
            input: usage.input.max(self.usage.input),
            output: usage.output.max(self.usage.output),
            cache_reads: usage.cache_reads.max(self.usage.cache_reads),
            cache_writes: 0,
            reasoning: usage.reasoning.max(self.usage.reasoning),
        };
    }
}
