//! Token estimation: the size of the next request, and the maximum that the model accepts.
//!
//! Each fact adds a heuristic estimate (`estimate_tokens`); the usage that the provider reports for
//! the last request corrects it, so only newer facts are estimated. It is a fold of the log, and
//! its cost does not depend on the length of the conversation.

use super::ContextWindow;
use windlass_protocol::{
    Attachment, CallAuthor, CallId, CallOutcome, Fact, Fault, FinishReason, Message, MessagePart,
    StepPurpose, TokenUsage, Transcript,
};

/// Approximate tokens of an image, independent of its bytes.
const IMAGE_TOKENS: u64 = 1_600;

/// Approximate tokens of any other file.
const DOCUMENT_TOKENS: u64 = 6_000;

/// Tokens of a message part in addition to its text.
pub(super) const PART_OVERHEAD_TOKENS: u64 = 4;

/// Tokens of the placeholder for a pruned output.
pub(super) const PRUNED_OUTPUT_TOKENS: u64 = 30;

/// Maximum tokens reserved for an answer.
const MAX_ANSWER_RESERVE_TOKENS: u64 = 32_000;

/// Number of failed summaries in a row after which no further one is tried.
const MAX_FAILED_SUMMARIES: u32 = 2;

/// Maximum number of context overflows in a row that are answered by shortening the conversation.
const MAX_OVERFLOWS: u32 = 2;

/// Estimates the tokens of a text.
pub(crate) fn estimate_tokens(text: &str) -> u64 {
    let ascii = text.bytes().filter(u8::is_ascii).count() as u64;
    ascii.div_ceil(4) + (text.len() as u64 - ascii).div_ceil(3)
}

fn file_tokens(file: &Attachment) -> u64 {
    if file.mime_type.starts_with("image/") { IMAGE_TOKENS } else { DOCUMENT_TOKENS }
}

/// Estimates the tokens of a call's outcome, including its `attachments`.
pub(super) fn outcome_tokens(outcome: &CallOutcome) -> u64 {
    estimate_tokens(outcome.text()) + outcome.attachments().iter().map(file_tokens).sum::<u64>()
}

/// Returns the maximum size of a request that leaves room for an answer, if the window is known.
pub(super) fn window_request_tokens(window: ContextWindow) -> Option<u64> {
    let ContextWindow { context, output } = window;
    let reserve = match output {
        0 => MAX_ANSWER_RESERVE_TOKENS,
        output => output.min(MAX_ANSWER_RESERVE_TOKENS),
    };
    (context > 0).then(|| context - reserve.min(context / 4))
}

/// Estimates the tokens of a message.
pub(super) fn message_tokens(message: &Message) -> u64 {
    message.parts.iter().map(part_tokens).sum()
}

pub(super) fn part_tokens(part: &MessagePart) -> u64 {
    match part {
        MessagePart::Text { text, .. } | MessagePart::Reasoning { text, .. } => {
            estimate_tokens(text) + PART_OVERHEAD_TOKENS
        }
        MessagePart::File(file) => file_tokens(file) + PART_OVERHEAD_TOKENS,
        // The output is part of the prompt that follows.
        MessagePart::Call(call) if call.author == CallAuthor::Command => 0,
        MessagePart::Call(call) => {
            let result_tokens = match &call.outcome {
                Some(_) if call.pruned => PRUNED_OUTPUT_TOKENS,
                Some(outcome) => outcome_tokens(outcome),
                None => 0,
            };
            estimate_tokens(&call.tool)
                + estimate_tokens(&call.arguments)
                + result_tokens
                + PART_OVERHEAD_TOKENS
        }
    }
}

/// Returns true for a call that a custom command made: the model gets its output with the prompt.
fn is_command_call(transcript: &Transcript, id: CallId) -> bool {
    let mut parts = transcript.messages.iter().rev().flat_map(|message| message.parts.iter().rev());
    let author = parts.find_map(|part| match part {
        MessagePart::Call(call) if call.call == id => Some(call.author),
        MessagePart::Call(_)
        | MessagePart::Text { .. }
        | MessagePart::Reasoning { .. }
        | MessagePart::File(_) => None,
    });
    author == Some(CallAuthor::Command)
}

#[derive(Clone, Debug, Default)]
pub(super) struct TokenEstimator {
    /// Heuristic estimate of the conversation.
    rough_tokens: u64,
    /// At the last request: `rough_tokens` and the corrected estimate.
    last_request: (u64, u64),
    purpose: StepPurpose,
    /// Model of the conversation, which all other values are about.
    model: String,
    /// The last request was a summary by another model.
    is_other_model: bool,
    /// Difference between the provider's last count and `rough_tokens`.
    correction: i64,
    /// The `correction` at the first request, which was short: mostly the tool definitions.
    overhead: Option<i64>,
    /// Upper limit learned from a size that the provider rejected.
    learned_limit: Option<u64>,
    /// Number of `ContextOverflow` rejections since the last answer.
    overflows: u32,
    /// Number of failed summaries in a row.
    failed_summaries: u32,
}

impl TokenEstimator {
    /// Applies a fact that the transcript has already applied.
    pub(super) fn apply_fact(&mut self, fact: &Fact, transcript: &Transcript) {
        match fact {
            Fact::SystemPromptSet { text, .. } | Fact::ContextChanged { text, .. } => {
                self.rough_tokens += estimate_tokens(text)
            }
            Fact::ModelText { text, .. } | Fact::ModelReasoning { text, .. } => {
                self.rough_tokens += estimate_tokens(text) + PART_OVERHEAD_TOKENS;
            }
            Fact::ToolCalled { author: CallAuthor::Command, .. } => {}
            Fact::ToolCalled { tool, arguments, .. } => {
                self.rough_tokens +=
                    estimate_tokens(tool) + estimate_tokens(arguments) + PART_OVERHEAD_TOKENS;
            }
            Fact::CallSettled { call, outcome, .. } => {
                if !is_command_call(transcript, *call) {
                    self.rough_tokens += outcome_tokens(outcome);
                }
            }
            Fact::TurnStarted { prompt, .. } => {
                // A new turn may retry attempts that failed before.
                (self.overflows, self.failed_summaries) = (0, 0);
                let started_by = transcript.messages.last().filter(|_| prompt.is_some());
                self.rough_tokens += started_by.map_or(0, |message| message_tokens(message));
            }
            Fact::PromptSteered { .. } => {
                self.rough_tokens +=
                    transcript.messages.last().map_or(0, |message| message_tokens(message));
            }
            Fact::ContextCompacted { .. } => {
                self.failed_summaries = 0;
                self.recount(transcript);
            }
            Fact::OutputsPruned { .. } | Fact::Rewound { .. } | Fact::FactsLost { .. } => {
                self.recount(transcript)
            }
            Fact::StepRetrying { model: Some(model), .. } if *model != self.model => {
                self.set_model(model);
                // The next model may accept what the last one rejected.
                (self.overflows, self.failed_summaries) = (0, 0);
            }
            Fact::StepStarted { model, purpose, .. } => {
                self.is_other_model = *purpose == StepPurpose::Summary
                    && *model != self.model
                    && !self.model.is_empty();
                if *model != self.model && !self.is_other_model {
                    self.set_model(model);
                }
                (self.last_request, self.purpose) =
                    ((self.rough_tokens, self.estimate()), *purpose);
            }
            Fact::StepEnded { finish_reason, usage, .. } => {
                self.on_step_ended(finish_reason, usage)
            }
            Fact::SessionOpened { .. }
            | Fact::ModeChanged { .. }
            | Fact::AgentChanged { .. }
            | Fact::ModelChanged { .. }
            | Fact::SessionRenamed { .. }
            | Fact::SideRequestEnded { .. }
            | Fact::SessionForked { .. }
            | Fact::PromptSubmitted { .. }
            | Fact::PromptWithdrawn { .. }
            | Fact::StepRetrying { .. }
            | Fact::TurnInterrupted { .. }
            | Fact::TurnEnded { .. }
            | Fact::PermissionAsked { .. }
            | Fact::PermissionAnswered { .. }
            | Fact::ApprovalsRevoked
            | Fact::CallStarted { .. }
            | Fact::QuestionAsked { .. }
            | Fact::QuestionAnswered { .. }
            | Fact::SubagentStarted { .. }
            | Fact::HookRan { .. }
            | Fact::FilesChanging { .. }
            | Fact::FilesUnchanged { .. } => {}
        }
    }

    /// Forgets what was learned about another model.
    fn set_model(&mut self, model: &str) {
        model.clone_into(&mut self.model);
        (self.correction, self.overhead, self.learned_limit) = (0, None, None);
    }

    fn recount(&mut self, transcript: &Transcript) {
        let system_prompt = transcript
            .system_prompt
            .as_ref()
            .map_or(0, |system_prompt| estimate_tokens(system_prompt));
        self.rough_tokens = system_prompt
            + transcript.model_messages().iter().map(|m| message_tokens(m)).sum::<u64>();
        self.correction = self.overhead.unwrap_or_default();
    }

    fn on_step_ended(&mut self, finish: &FinishReason, usage: &TokenUsage) {
        if self.is_other_model {
            return;
        }
        match (finish, self.purpose) {
            (
                FinishReason::Failed { fault: Fault::ContextOverflow { .. } },
                StepPurpose::Answer,
            ) => {
                let limit = self.last_request.1 / 4 * 3;
                self.learned_limit =
                    Some(self.learned_limit.map_or(limit, |known| known.min(limit)));
                self.overflows += 1;
            }
            (
                FinishReason::Failed { fault: Fault::ContextOverflow { .. } },
                StepPurpose::Summary,
            ) => {
                self.learned_limit = Some(self.learned_limit.unwrap_or(self.last_request.1) / 2);
                self.failed_summaries += 1;
            }
            (
                FinishReason::Failed { .. } | FinishReason::ProcessDied | FinishReason::Interrupted,
                _,
            ) => {}
            // If the summary is usable, the following `ContextCompacted` resets this.
            (_, StepPurpose::Summary) => self.failed_summaries += 1,
            (_, StepPurpose::Answer) => {
                (self.overflows, self.failed_summaries) = (0, 0);
                if usage.input > 0 {
                    self.correction = usage.input as i64 - self.last_request.0 as i64;
                    self.overhead.get_or_insert(self.correction.max(0));
                    self.learned_limit.take_if(|limit| *limit < usage.input);
                }
            }
        }
    }

    /// Estimates the tokens of the next request.
    pub(super) fn estimate(&self) -> u64 {
        self.rough_tokens.saturating_add_signed(self.correction)
    }

    /// Returns the `estimate` if the provider has reported a token count before.
    pub(super) fn calibrated_estimate(&self) -> Option<u64> {
        self.overhead.map(|_| self.estimate())
    }

    /// Returns the maximum size of a request, if known from the context window or from a rejection.
    pub(super) fn max_request_tokens(&self, window: ContextWindow) -> Option<u64> {
        window_request_tokens(window).into_iter().chain(self.learned_limit).min()
    }

    /// Returns true if the provider rejected the conversation, or a summary failed, since the last
    /// answer.
    pub(super) fn has_overflowed(&self) -> bool {
        self.overflows > 0 || self.failed_summaries > 0
    }

    /// Returns true if there were more than `MAX_OVERFLOWS` rejections or too many failed summaries
    /// to try again.
    pub(super) fn has_exhausted_retries(&self) -> bool {
        self.overflows > MAX_OVERFLOWS || self.failed_summaries >= MAX_FAILED_SUMMARIES
    }
}
