//! Model output: collects the streamed blocks of an answer, and records the answer as a whole or
//! not at all.

use super::active_turn::{ActiveTurn, ModelOutputBlock};
use super::step_model::is_failure_of_model;
use super::{EffectList, InputTimeAndId, Session, SessionEffect};
use std::collections::BTreeSet;
use windlass_llm::ModelEvent;
use windlass_protocol::{
    CallAuthor, CallId, Fact, Fault, FinishReason, LiveEvent, ModelStreamKind, RetryState,
    StepPurpose, TokenUsage, TurnEndReason,
};

/// Bytes counted per output block in addition to its text, so that many tiny blocks are limited
/// too.
const BLOCK_OVERHEAD_BYTES: usize = 16;

/// `ContextChanged` text for a model that gave an empty answer.
pub(super) const EMPTY_ANSWER_NUDGE: &str =
    "The last answer was empty. Continue with the task; if it is done, say so in one sentence.";

impl Session {
    pub(super) fn on_model_event(
        &mut self,
        stamp: InputTimeAndId,
        event: ModelEvent,
        out: &mut EffectList,
    ) {
        let Some(turn) = &mut self.turn else { return };
        match event {
            ModelEvent::Text(text) => self.append_output(stamp, ModelStreamKind::Text, text, out),
            ModelEvent::Reasoning(text) => {
                self.append_output(stamp, ModelStreamKind::Reasoning, text, out)
            }
            ModelEvent::ProviderSignature(signature) => {
                let size = signature.len() + BLOCK_OVERHEAD_BYTES;
                if let Some(ModelOutputBlock::Text { provider_signature: missing @ None, .. }) =
                    turn.output_blocks.last_mut()
                {
                    *missing = Some(signature);
                }
                self.count_output(stamp, size, out);
            }
            ModelEvent::CallDelta { index, tool, arguments } => {
                self.on_call_delta(stamp, index, tool, &arguments, out)
            }
            ModelEvent::Call { reference, tool, arguments, provider_signature, repairs } => {
                let signature_bytes = provider_signature.as_ref().map_or(0, String::len);
                let size = reference.len()
                    + tool.len()
                    + arguments.len()
                    + signature_bytes
                    + BLOCK_OVERHEAD_BYTES;
                let description = self.config.call_describer.describe(&tool, &arguments);
                turn.output_blocks.push(ModelOutputBlock::Call(Fact::ToolCalled {
                    call: CallId(stamp.id),
                    provider_call_id: reference,
                    tool,
                    arguments,
                    author: CallAuthor::Model,
                    description,
                    repair: repairs,
                    provider_signature,
                }));
                self.count_output(stamp, size, out);
            }
            ModelEvent::Ended { finish, usage } => self.end_step(finish, usage, out),
            ModelEvent::Failed(fault) => self.fail_step(stamp, fault, out),
        }
    }

    /// Appends streamed text; a block with a provider signature is complete and not extended.
    fn append_output(
        &mut self,
        stamp: InputTimeAndId,
        stream: ModelStreamKind,
        text: String,
        out: &mut EffectList,
    ) {
        let Some(turn) = &mut self.turn else { return };
        let size = text.len() + BLOCK_OVERHEAD_BYTES;
        match turn.output_blocks.last_mut() {
            Some(ModelOutputBlock::Text {
                stream: last,
                text: block,
                provider_signature: None,
            }) if *last == stream => {
                block.push_str(&text);
            }
            _ => turn.output_blocks.push(ModelOutputBlock::Text {
                stream,
                text: text.clone(),
                provider_signature: None,
            }),
        }
        // A summary is for the model, so watchers get no `ModelDelta` of it.
        if !text.is_empty() && turn.purpose == StepPurpose::Answer {
            out.0.push(SessionEffect::Emit(LiveEvent::ModelDelta { stream, text }));
        }
        self.count_output(stamp, size, out);
    }

    /// Counts the output of this step, and stops a model that exceeds `answer_bytes`.
    fn count_output(&mut self, stamp: InputTimeAndId, bytes: usize, out: &mut EffectList) {
        let Some(turn) = &mut self.turn else { return };
        turn.output_bytes += bytes;
        if turn.output_bytes > self.config.limits.answer_bytes {
            out.0.push(SessionEffect::CancelModel);
            let fault = Fault::from_provider(Some(200), "the answer exceeds the size limit");
            self.fail_step(stamp, fault, out);
        }
    }

    /// Records the model's answer. The whole step is one `Append`, so it is recorded completely or
    /// not at all.
    pub(super) fn end_step(
        &mut self,
        finish: FinishReason,
        usage: TokenUsage,
        out: &mut EffectList,
    ) {
        let Some(turn) = &mut self.turn else { return };
        if turn.purpose == StepPurpose::Summary {
            return self.finish_summary(finish, usage, out);
        }
        let (number, step) = (turn.number, turn.steps);
        let has_calls = finish == FinishReason::ToolCalls;
        let mut references = BTreeSet::new();
        for block in std::mem::take(&mut turn.output_blocks) {
            match block {
                ModelOutputBlock::Text { text, provider_signature: None, .. }
                    if text.is_empty() => {}
                ModelOutputBlock::Text {
                    stream: ModelStreamKind::Text,
                    text,
                    provider_signature,
                } => {
                    self.emit(Fact::ModelText { text, provider_signature }, out);
                }
                ModelOutputBlock::Text {
                    stream: ModelStreamKind::Reasoning,
                    text,
                    provider_signature,
                } => {
                    self.emit(Fact::ModelReasoning { text, provider_signature }, out);
                }
                ModelOutputBlock::Call(_) if !has_calls => {}
                ModelOutputBlock::Call(fact) => {
                    self.emit(with_unique_reference(fact, &mut references), out)
                }
            }
        }
        let cost = self.step_cost(&usage);
        let ended =
            Fact::StepEnded { turn: number, step, finish_reason: finish.clone(), usage, cost };
        self.emit(ended, out);
        if self.turn.as_ref().is_some_and(|turn| !turn.calls.is_empty()) {
            return match self.limit_reached() {
                Some(limit) => self.stop_at_limit(limit, out),
                None => self.start_calls(out),
            };
        }
        self.conclude_turn(finish, out);
    }

    /// Ends the turn after a step without calls, or asks again after the first empty answer.
    pub(super) fn conclude_turn(&mut self, finish: FinishReason, out: &mut EffectList) {
        let is_first_empty = |turn: &ActiveTurn| turn.empty_answers == 1 && !turn.had_output;
        if matches!(finish, FinishReason::Stop | FinishReason::ToolCalls)
            && self.turn.as_ref().is_some_and(is_first_empty)
        {
            self.emit(Fact::context_note(EMPTY_ANSWER_NUDGE), out);
            return self.ask_model(out);
        }
        let end = match finish {
            FinishReason::Interrupted => {
                self.limit_turn_end().unwrap_or(TurnEndReason::Interrupted)
            }
            FinishReason::ContentFiltered => {
                let message = "the provider blocked the answer".to_owned();
                TurnEndReason::Failed { fault: Fault::ModelRefused { message } }
            }
            FinishReason::Length => {
                TurnEndReason::LimitReached { limit: "the model's output limit".to_owned() }
            }
            FinishReason::Failed { fault } => TurnEndReason::Failed { fault },
            FinishReason::Stop | FinishReason::ToolCalls | FinishReason::ProcessDied => {
                return self.complete_turn(out);
            }
        };
        self.end_turn(end, out);
    }

    /// Handles a failed request: drops the partial output, and retries if `retry_delay_ms` allows
    /// it.
    fn fail_step(&mut self, stamp: InputTimeAndId, fault: Fault, out: &mut EffectList) {
        let Some(open) = &mut self.turn else { return };
        open.output_blocks.clear();
        let (turn, step, attempt) = (open.number, open.steps, open.failures + 1);
        let since = *open.failing_since.get_or_insert(stamp.at);
        let retry_state = RetryState {
            failed_attempts: attempt,
            elapsed_ms: stamp.at.0.saturating_sub(since.0),
            jitter_seed: stamp.random_bits(),
        };
        let finish_reason = FinishReason::Failed { fault: fault.clone() };
        let (usage, cost) = (TokenUsage::default(), None);
        self.emit(Fact::StepEnded { turn, step, finish_reason, usage, cost }, out);
        if self.is_small_model_step() {
            let model = self.answer_model().name;
            return self.retry_with_model(model, fault, out);
        }
        if matches!(fault, Fault::ContextOverflow { .. }) {
            return self.on_context_overflow(out);
        }
        match fault.retry_delay_ms(&retry_state) {
            Some(wait_ms) => {
                let model = None;
                self.emit(Fact::StepRetrying { turn, step, attempt, fault, wait_ms, model }, out);
                out.0.push(SessionEffect::RetryAfter { turn, step, after_ms: wait_ms });
            }
            None => match self.next_fallback().filter(|_| is_failure_of_model(&fault)) {
                Some(next) => self.retry_with_model(next.name, fault, out),
                None => self.end_turn(TurnEndReason::Failed { fault }, out),
            },
        }
    }
}

/// Makes the `provider_call_id` unique within its step: a provider may repeat or omit ids.
fn with_unique_reference(mut fact: Fact, taken: &mut BTreeSet<String>) -> Fact {
    let Fact::ToolCalled { provider_call_id, .. } = &mut fact else { return fact };
    let base = match provider_call_id.as_str() {
        "" => "call".to_owned(),
        reference => reference.to_owned(),
    };
    let mut reference = base.clone();
    // Counting starts where a free number is most likely, so that thousands of calls stay fast.
    for count in taken.len() + 1.. {
        if taken.insert(reference.clone()) {
            break;
        }
        reference = format!("{base}_{count}");
    }
    *provider_call_id = reference;
    fact
}
