//! How a stream is read.

use crate::ModelEvent;
use crate::wire::stream::{self, Bound, Out, Stop, complaint, parse};
use serde::Deserialize;
use serde_json::value::RawValue;
use windlass_protocol::{Fault, Finish, Usage};

/// Reads a stream step by step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    calls: usize,
    finish: Option<String>,
    usage: Usage,
    bound: Bound,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk<'a> {
    candidates: Option<Vec<Candidate>>,
    usage_metadata: Option<Tokens>,
    prompt_feedback: Option<Feedback>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    content: Option<Content>,
    finish_reason: Option<String>,
    finish_message: Option<String>,
}

#[derive(Deserialize)]
struct Content {
    parts: Option<Vec<Part>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part {
    text: Option<String>,
    thought: Option<bool>,
    thought_signature: Option<String>,
    function_call: Option<Call>,
}

#[derive(Deserialize)]
struct Call {
    id: Option<String>,
    name: Option<String>,
    args: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    block_reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tokens {
    prompt_token_count: Option<u64>,
    tool_use_prompt_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
}

impl stream::Step for Step {
    fn event(&mut self, data: &str, out: &mut Out) -> Result<bool, Stop> {
        let chunk: Chunk<'_> = parse(data)?;
        if let Some(error) = chunk.error {
            return Err(complaint(error));
        }
        let mut went_on = false;
        if let Some(tokens) = chunk.usage_metadata {
            self.count(&tokens);
        }
        if let Some(reason) = chunk.prompt_feedback.and_then(|feedback| feedback.block_reason) {
            let message = format!("the prompt was blocked: {reason}");
            return Err(Fault::Refused { message }.into());
        }
        // Only one answer is asked for, so there is only one candidate.
        let Some(candidate) = chunk.candidates.and_then(|list| list.into_iter().next()) else {
            return Ok(went_on);
        };
        for part in candidate.content.and_then(|content| content.parts).unwrap_or_default() {
            went_on = true;
            self.part(part, out)?;
        }
        if let Some(reason) = candidate.finish_reason {
            went_on = true;
            if matches!(reason.as_str(), "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL") {
                let more = candidate.finish_message.unwrap_or_default();
                return Err(Stop::Senseless(format!("{reason} {more}").trim_end().to_owned()));
            }
            self.finish = Some(reason);
        }
        Ok(went_on)
    }

    fn ended(&self) -> Option<Vec<ModelEvent>> {
        let finish = match self.finish.as_deref()? {
            "MAX_TOKENS" => Finish::Length,
            "STOP" if self.calls > 0 => Finish::Calls,
            "STOP" | "FINISH_REASON_UNSPECIFIED" | "OTHER" => Finish::Stop,
            // Safety, recitation, block lists, and whatever else is withheld.
            _ => Finish::Filtered,
        };
        Some(vec![ModelEvent::Ended { finish, usage: self.usage }])
    }
}

impl Step {
    fn part(&mut self, part: Part, out: &mut Out) -> Result<(), Stop> {
        let (seal, thought) = (part.thought_signature, part.thought == Some(true));
        if let Some(call) = part.function_call {
            self.bound.call()?;
            // Calls come without a name of their own, or with one.
            let own = format!("call_{}", self.calls);
            self.calls += 1;
            let arguments = call.args.map_or_else(|| "{}".into(), |args| args.get().to_owned());
            self.bound.bytes(arguments.len())?;
            out.events.push(ModelEvent::Call {
                reference: call.id.filter(|id| !id.is_empty()).unwrap_or(own),
                tool: call.name.unwrap_or_default(),
                arguments,
                seal,
                repaired: Vec::new(),
            });
            return Ok(());
        }
        let text = part.text.unwrap_or_default();
        if text.is_empty() && seal.is_none() {
            return Ok(());
        }
        out.events.push(if thought { ModelEvent::Reasoning(text) } else { ModelEvent::Text(text) });
        out.events.extend(seal.map(ModelEvent::Sealed));
        Ok(())
    }

    fn count(&mut self, tokens: &Tokens) {
        let reasoning = tokens.thoughts_token_count.unwrap_or_default();
        let input = tokens.prompt_token_count.unwrap_or_default();
        let output = tokens.candidates_token_count.unwrap_or_default();
        let usage = Usage {
            input: input.saturating_add(tokens.tool_use_prompt_token_count.unwrap_or_default()),
            output: output.saturating_add(reasoning),
            cached: tokens.cached_content_token_count.unwrap_or_default(),
            cache_writes: 0,
            reasoning,
        };
        // Every chunk counts anew, and some leave out what an earlier one said.
        self.usage = Usage {
            input: usage.input.max(self.usage.input),
            output: usage.output.max(self.usage.output),
            cached: usage.cached.max(self.usage.cached),
            cache_writes: 0,
            reasoning: usage.reasoning.max(self.usage.reasoning),
        };
    }
}
