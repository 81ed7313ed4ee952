//! Context usage: estimates the next request part by part.
//!
//! Parts are estimated with the heuristic of `token_estimate`. Once a provider has reported a token
//! count, they are scaled so that their sum matches the calibrated estimate of the next request.

use super::Session;
use super::token_estimate::{self, PART_OVERHEAD_TOKENS, PRUNED_OUTPUT_TOKENS, estimate_tokens};
use std::collections::BTreeMap;
use windlass_protocol::{Message, MessagePart, MessageRole, ToolCallPart};

/// Fixed parts of a conversation, in display order.
const PART_NAMES: [&str; 8] =
    ["system prompt", "tools", "summary", "prompts", "answers", "reasoning", "files", "notes"];

impl Session {
    /// Returns `ContextWindow::context`, if known, and the tokens of it kept free for the answer.
    pub(crate) fn window_and_reserve(&self) -> (Option<u64>, u64) {
        let context_window = self.answer_model().window;
        let window = Some(context_window.context).filter(|context| *context > 0);
        let max_request = self.token_estimator.max_request_tokens(context_window);
        let reserve = window.zip(max_request).map(|(window, max)| window.saturating_sub(max));
        (window, reserve.unwrap_or_default())
    }

    /// Estimates the parts of the next request with these tools: the fixed parts, then the calls
    /// per tool, largest first.
    pub(crate) fn context_usage(&self, tools: &str) -> Vec<(String, u64)> {
        let mut fixed: BTreeMap<&str, u64> = BTreeMap::new();
        let mut calls: BTreeMap<String, u64> = BTreeMap::new();
        let system_prompt =
            self.transcript.system_prompt.as_deref().unwrap_or(self.config.system_prompt.text());
        fixed.insert("system prompt", estimate_tokens(system_prompt));
        fixed.insert("tools", estimate_tokens(tools));
        let messages = self.transcript.model_messages();
        let has_summary = self.transcript.summary.is_some();
        for (index, message) in messages.iter().enumerate() {
            for part in &message.parts {
                let name = match part {
                    MessagePart::Text { .. } if has_summary && index == 0 => "summary",
                    MessagePart::Text { .. } => role_part_name(message),
                    MessagePart::Reasoning { .. } => "reasoning",
                    MessagePart::File(_) => "files",
                    MessagePart::Call(call) => {
                        *calls.entry(call.tool.clone()).or_default() += call_tokens(call);
                        *fixed.entry("files").or_default() += attachment_tokens(call);
                        continue;
                    }
                };
                *fixed.entry(name).or_default() += token_estimate::part_tokens(part);
            }
        }
        let mut calls: Vec<(String, u64)> =
            calls.into_iter().map(|(tool, sum)| (format!("calls: {tool}"), sum)).collect();
        calls.sort_by_key(|(_, sum)| std::cmp::Reverse(*sum));
        let fixed_part = |name: &&str| fixed.get(name).map(|sum| ((*name).to_owned(), *sum));
        let mut parts: Vec<(String, u64)> =
            PART_NAMES.iter().filter_map(fixed_part).chain(calls).collect();
        let sum: u64 = parts.iter().map(|(_, tokens)| tokens).sum();
        if let Some(total) = self.token_estimator.calibrated_estimate().filter(|_| sum > 0) {
            for (_, tokens) in &mut parts {
                let share = u128::from(*tokens) * u128::from(total) / u128::from(sum);
                *tokens = u64::try_from(share).unwrap_or(u64::MAX);
            }
        }
        parts.retain(|(_, tokens)| *tokens > 0);
        parts
    }
}

fn role_part_name(message: &Message) -> &'static str {
    match message.role {
        MessageRole::User => "prompts",
        MessageRole::Assistant => "answers",
        MessageRole::Context => "notes",
    }
}

/// Estimates a call without its attachments.
fn call_tokens(call: &ToolCallPart) -> u64 {
    let outcome = match &call.outcome {
        Some(_) if call.pruned => PRUNED_OUTPUT_TOKENS,
        Some(outcome) => estimate_tokens(outcome.text()),
        None => 0,
    };
    estimate_tokens(&call.tool) + estimate_tokens(&call.arguments) + outcome + PART_OVERHEAD_TOKENS
}

fn attachment_tokens(call: &ToolCallPart) -> u64 {
    let outcome = call.outcome.as_ref().filter(|_| !call.pruned);
    outcome.map_or(0, |outcome| {
        token_estimate::outcome_tokens(outcome) - estimate_tokens(outcome.text())
    })
}
