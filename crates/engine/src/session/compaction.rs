//! Compaction: shortens a conversation that would not fit the context window, so that it can
//! continue.
//!
//! First it prunes the outputs of old calls; if that is not enough, the model summarizes everything
//! before the last few steps. Facts that must not be lost are part of the summary by construction
//! (see `summary_outline`). It terminates, because each summary covers more than the previous one
//! and failed attempts are counted.

use super::token_estimate::{
    self, PRUNED_OUTPUT_TOKENS, estimate_tokens, message_tokens, window_request_tokens,
};
use super::{EffectList, Session, SessionEffect};
use std::sync::Arc;
use windlass_protocol::{
    CallAuthor, CallId, CallOutcome, Fact, Fault, FinishReason, LogSeq, Message, MessagePart,
    MessageRole, Messages, OpError, StepPurpose, TokenUsage, TurnEndReason,
};

/// Number of recent tokens that are protected from pruning.
const PRUNE_PROTECTED_TOKENS: u64 = 40_000;

/// Limits of the messages kept verbatim after a summary: tokens and user prompts.
const MAX_TAIL_TOKENS: u64 = 20_000;
const MAX_TAIL_PROMPTS: usize = 2;

/// Smallest output worth pruning; below this, pruning saves nothing.
const MIN_PRUNABLE_TOKENS: u64 = 100;

/// Maximum bytes of a call's arguments and of its output in a `StepPurpose::Summary` request.
const MAX_CALL_TEXT_BYTES: usize = 2_000;

/// Estimated tokens of the summary instruction in `prompt/summary.md`.
const SUMMARY_INSTRUCTION_TOKENS: u64 = 300;

/// Maximum bytes of a summary; longer ones are truncated in the middle.
const MAX_SUMMARY_BYTES: usize = 32_000;

/// Result of making room for the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CompactionResult {
    /// The request fits, or nothing can be done about it.
    NotNeeded,
    /// A summary is being created.
    Running,
    /// There is no room, and the provider has rejected the conversation.
    Impossible,
}

/// The messages of a summary request.
struct SummaryRequest {
    messages: Messages,
    /// Last log position that they cover.
    through: LogSeq,
    /// All messages to summarize fit.
    is_complete: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum OutputPruneScope {
    Old,
    All,
}

impl Session {
    /// Makes room for the next request: prunes outputs or starts a summary if necessary.
    pub(super) fn ensure_room(&mut self, out: &mut EffectList) -> CompactionResult {
        let Some(max_tokens) = self.max_answer_request_tokens() else {
            return CompactionResult::NotNeeded;
        };
        let estimate = self.token_estimator.estimate();
        if estimate <= max_tokens {
            return CompactionResult::NotNeeded;
        }
        if self.token_estimator.has_exhausted_retries() {
            return CompactionResult::Impossible;
        }
        let messages = &self.uncompacted_messages();
        let (old, freed) = prunable_calls(messages, OutputPruneScope::Old, max_tokens);
        if estimate.saturating_sub(freed) <= max_tokens / 4 * 3 {
            self.emit(Fact::OutputsPruned { calls: old }, out);
            return CompactionResult::NotNeeded;
        }
        let head = messages.get(..tail_start(messages, max_tokens)).unwrap_or_default();
        let head_tokens = head.iter().map(|message| message_tokens(message)).sum::<u64>();
        let is_useful = head.len() < messages.len()
            || head.iter().any(|message| message.role == MessageRole::Assistant);
        if is_useful && head_tokens > 0 && head_tokens >= max_tokens / 16 {
            let count = head.len();
            self.start_summary(count, out);
            return CompactionResult::Running;
        }
        let (all, freed) = prunable_calls(messages, OutputPruneScope::All, max_tokens);
        if freed > 0 {
            self.emit(Fact::OutputsPruned { calls: all }, out);
            return CompactionResult::NotNeeded;
        }
        if self.token_estimator.has_overflowed() {
            CompactionResult::Impossible
        } else {
            CompactionResult::NotNeeded
        }
    }

    /// Returns the messages after `summary.through`, which no summary covers yet.
    fn uncompacted_messages(&self) -> Vec<Arc<Message>> {
        let through = self.transcript.summary.as_ref().map_or(0, |summary| summary.through);
        let is_later = |message: &&Arc<Message>| message.seq > through;
        self.transcript.messages.iter().filter(is_later).cloned().collect()
    }

    /// Starts a compaction that the user requested with `SessionOp::Compact`.
    pub(super) fn compact(&mut self, out: &mut EffectList) -> Result<(), OpError> {
        if self.turn.is_some() {
            let text = "A turn is running. Compact when it has finished.".to_owned();
            return Err(OpError::TurnRunning { text });
        }
        if !self.uncompacted_messages().iter().any(|message| message.role == MessageRole::Assistant)
        {
            return Err(OpError::Invalid { text: "Nothing to compact yet.".to_owned() });
        }
        self.emit(Fact::TurnStarted { turn: self.turn_count + 1, prompt: None }, out);
        self.continue_compaction(out);
        Ok(())
    }

    /// Continues a requested compaction until all messages are summarized.
    pub(super) fn continue_compaction(&mut self, out: &mut EffectList) {
        let count = self.uncompacted_messages().len();
        if count == 0 {
            return self.end_turn(TurnEndReason::Completed, out);
        }
        if self.token_estimator.has_exhausted_retries() {
            return self.end_with_overflow(out);
        }
        self.record_system_prompt(out);
        self.start_summary(count, out);
    }

    /// Asks for a summary of the first `count` messages, or of as many of them as fit. The small
    /// model writes it if all of them fit its window.
    fn start_summary(&mut self, count: usize, out: &mut EffectList) {
        let model = self.answer_model();
        let max_tokens = self.max_answer_request_tokens().unwrap_or(u64::MAX);
        let small = self.summary_model().map(|small| {
            let max_tokens = window_request_tokens(small.window).unwrap_or(max_tokens);
            (small.name, self.summary_request(count, max_tokens))
        });
        let (model, request) = match small.filter(|(_, request)| request.is_complete) {
            Some(small) => small,
            None => (model.name, self.summary_request(count, max_tokens)),
        };
        if let Some(turn) = &mut self.turn {
            turn.summary_through = request.through;
        }
        self.start_step(StepPurpose::Summary, model, request.messages, out);
    }

    /// Collects as many of the first `count` messages as fit a request of this size.
    fn summary_request(&self, count: usize, max_tokens: u64) -> SummaryRequest {
        let system_prompt = self
            .transcript
            .system_prompt
            .as_ref()
            .map_or(0, |system_prompt| estimate_tokens(system_prompt));
        let earlier = self.transcript.summary.as_ref().map(|summary| {
            let parts = vec![MessagePart::text(&summary.text)];
            Arc::new(Message {
                role: MessageRole::Context,
                seq: summary.through,
                model: None,
                parts,
            })
        });
        let fixed = system_prompt
            + SUMMARY_INSTRUCTION_TOKENS
            + earlier.as_ref().map_or(0, |message| message_tokens(message));
        let budget = max_tokens.saturating_sub(fixed).max(max_tokens / 4);
        let mut messages: Messages = earlier.into_iter().collect();
        let (mut through, mut sum) = (0, 0);
        let mut is_complete = true;
        for message in self.uncompacted_messages().iter().take(count) {
            let plain = to_plain_text(message, budget);
            sum += message_tokens(&plain);
            is_complete &= sum <= max_tokens.saturating_sub(fixed);
            if through > 0 && sum > budget {
                break;
            }
            through = message.seq;
            if !plain.parts.is_empty() {
                messages.push(Arc::new(plain));
            }
        }
        SummaryRequest { messages, through, is_complete }
    }

    /// Ends a summary step, and records `ContextCompacted` if the model wrote a summary.
    pub(super) fn finish_summary(
        &mut self,
        finish: FinishReason,
        usage: TokenUsage,
        out: &mut EffectList,
    ) {
        let Some(turn) = &mut self.turn else { return };
        let (number, step, through) = (turn.number, turn.steps, turn.summary_through);
        let summary = turn.take_text();
        let cost = self.step_cost(&usage);
        let finish_reason = finish.clone();
        self.emit(Fact::StepEnded { turn: number, step, finish_reason, usage, cost }, out);
        if finish == FinishReason::Interrupted {
            return self.conclude_turn(finish, out);
        }
        let is_complete =
            matches!(finish, FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Length);
        if is_complete && !summary.trim().is_empty() {
            let max_tokens = self.max_answer_request_tokens().unwrap_or(u64::MAX);
            let max_bytes =
                MAX_SUMMARY_BYTES.min(usize::try_from(max_tokens).unwrap_or(usize::MAX));
            let summary =
                self.compose_summary(through, &truncate_middle(summary.trim(), max_bytes));
            let (todos, mode) = (self.summary_outline.todos.clone(), self.transcript.mode);
            self.emit(Fact::ContextCompacted { through, summary, todos, mode }, out);
        }
        self.retry_step(out);
    }

    /// Handles a request that the provider rejected with `Fault::ContextOverflow`.
    pub(super) fn on_context_overflow(&mut self, out: &mut EffectList) {
        if self.token_estimator.has_exhausted_retries() {
            return self.end_with_overflow(out);
        }
        self.retry_step(out);
    }

    /// Handles a conversation that cannot be shortened enough: a fallback with a larger window
    /// takes over, or the turn ends with `ContextOverflow`.
    pub(super) fn end_with_overflow(&mut self, out: &mut EffectList) {
        let last_finish = self.turn.as_ref().and_then(|turn| turn.last_finish.clone());
        let fault = match last_finish {
            Some(FinishReason::Failed { fault: fault @ Fault::ContextOverflow { .. } }) => fault,
            _ => Fault::ContextOverflow { message: "it could not be compacted".to_owned() },
        };
        if let Some(next) = self.larger_fallback() {
            return self.retry_with_model(next.name, fault, out);
        }
        self.end_turn(TurnEndReason::Failed { fault }, out);
    }

    /// Records `StepStarted`, and pushes `CallModel`.
    pub(super) fn start_step(
        &mut self,
        purpose: StepPurpose,
        model: String,
        messages: Messages,
        out: &mut EffectList,
    ) {
        let Some(turn) = &self.turn else { return };
        let (turn, step) = (turn.number, turn.steps + 1);
        self.emit(Fact::StepStarted { turn, step, model: model.clone(), purpose }, out);
        let system_prompt = self.transcript.system_prompt.clone().unwrap_or_default();
        out.0.push(SessionEffect::CallModel {
            turn,
            step,
            model,
            purpose,
            system_prompt,
            messages,
        });
    }
}

/// Returns the index of the first message that is kept verbatim.
fn tail_start(messages: &[Arc<Message>], max_tokens: u64) -> usize {
    let budget = MAX_TAIL_TOKENS.min(max_tokens / 4);
    let (mut sum, mut prompts, mut kept) = (0, 0, 0);
    for message in messages.iter().rev() {
        sum += message_tokens(message);
        // The model has not seen the last message yet, so it may use more than `budget`.
        let is_last = kept == 0 && sum <= max_tokens / 2;
        if prompts == MAX_TAIL_PROMPTS || (sum > budget && !is_last) {
            break;
        }
        kept += 1;
        prompts += usize::from(message.role == MessageRole::User);
    }
    messages.len() - kept
}

/// Returns the calls whose outputs may be pruned, and the tokens that this frees.
fn prunable_calls(
    messages: &[Arc<Message>],
    scope: OutputPruneScope,
    max_tokens: u64,
) -> (Vec<CallId>, u64) {
    let protected = PRUNE_PROTECTED_TOKENS.min(max_tokens / 2);
    let (mut sum, mut freed, mut calls) = (0, 0, Vec::new());
    for message in messages.iter().rev() {
        sum += message_tokens(message);
        if scope == OutputPruneScope::Old && sum <= protected {
            continue;
        }
        for part in &message.parts {
            let MessagePart::Call(call) = part else { continue };
            if call.author == CallAuthor::Command {
                continue;
            }
            let Some(outcome @ CallOutcome::Completed { output }) = &call.outcome else { continue };
            let size = token_estimate::outcome_tokens(outcome);
            if !call.pruned && size >= MIN_PRUNABLE_TOKENS && !output.retained {
                calls.push(call.call);
                freed += size.saturating_sub(PRUNED_OUTPUT_TOKENS);
            }
        }
    }
    calls.reverse();
    (calls, freed)
}

/// Converts a message to plain text, so that the summarizing model needs no tools and reads no more
/// than necessary.
fn to_plain_text(message: &Message, budget: u64) -> Message {
    let plain_text = |part: &MessagePart| match part {
        MessagePart::Text { text, .. } => Some(text.clone()),
        MessagePart::Reasoning { .. } => None,
        MessagePart::File(file) => Some(format!("[file {}]", file.name)),
        // The output is part of the prompt that follows.
        MessagePart::Call(call) if call.author == CallAuthor::Command => None,
        MessagePart::Call(call) => {
            let output = call.outcome.as_ref().map_or("", CallOutcome::text);
            let output = if call.pruned {
                "[omitted]".to_owned()
            } else {
                truncate_middle(output, MAX_CALL_TEXT_BYTES)
            };
            Some(format!(
                "[called {} {}]\n{output}",
                call.tool,
                truncate_middle(&call.arguments, MAX_CALL_TEXT_BYTES)
            ))
        }
    };
    let texts = message.parts.iter().filter_map(plain_text);
    let mut parts: Vec<String> = texts.filter(|text| !text.trim().is_empty()).collect();
    let sum: u64 = parts.iter().map(|text| estimate_tokens(text)).sum();
    if sum > budget {
        let bytes = usize::try_from(budget).unwrap_or(usize::MAX).saturating_mul(2);
        let share = bytes / parts.len().max(1);
        parts = parts.iter().map(|text| truncate_middle(text, share)).collect();
    }
    let parts = parts.into_iter().map(MessagePart::text).collect();
    Message { role: message.role, seq: message.seq, model: None, parts }
}

/// Returns the start and end of a text, together not much longer than `max_bytes`.
fn truncate_middle(text: &str, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(max_bytes / 4 * 3);
    let tail = text.ceil_char_boundary(text.len() - max_bytes / 4);
    let (head, tail) = (text.get(..head).unwrap_or_default(), text.get(tail..).unwrap_or_default());
    format!("{head}\n[…]\n{tail}")
}
