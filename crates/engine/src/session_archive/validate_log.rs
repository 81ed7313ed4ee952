//! Validates an imported log: `LogValidator` checks the rules that every log follows.
//!
//! It checks only what the folds rely on, so that it does not reject a log that an older or newer
//! version wrote differently.

use std::collections::{HashMap, HashSet};
use windlass_protocol::{CallId, Fact, FactRecord, LogSeq, PromptId};

/// The year 10000 in milliseconds; no real clock shows a later time.
const MAX_TIMESTAMP_MS: u64 = 253_402_300_800_000;

/// Checks a log fact by fact.
#[derive(Default)]
pub(super) struct LogValidator {
    head: LogSeq,
    last_turn: u32,
    open_turn: Option<u32>,
    prompts: HashSet<PromptId>,
    /// Calls of the log; true once a call has settled.
    calls: HashMap<CallId, bool>,
    /// Number of calls that have not settled.
    open_calls: usize,
}

impl LogValidator {
    /// Checks the next fact, or returns the reason why it cannot follow.
    pub(super) fn check_record(&mut self, record: &FactRecord) -> Result<(), String> {
        self.head += 1;
        if record.seq != self.head {
            return Err(format!("position {} is missing", self.head));
        }
        if record.at.0 >= MAX_TIMESTAMP_MS {
            return Err("invalid timestamp".into());
        }
        let is_opening = matches!(record.fact, Fact::SessionOpened { .. });
        if is_opening != (self.head == 1) {
            return Err("`session_opened` must be the first fact, and only the first".into());
        }
        self.check_fact(&record.fact)
    }

    fn check_fact(&mut self, fact: &Fact) -> Result<(), String> {
        match fact {
            Fact::PromptSubmitted { prompt, .. } => match self.prompts.insert(*prompt) {
                true => Ok(()),
                false => Err("duplicate prompt".into()),
            },
            Fact::TurnStarted { turn, prompt } => {
                if self.open_turn.is_some() || *turn != self.last_turn + 1 {
                    return Err(format!("turn {turn} cannot start here"));
                }
                (self.open_turn, self.last_turn) = (Some(*turn), *turn);
                prompt.map_or(Ok(()), |prompt| self.check_prompt_known(prompt))
            }
            Fact::PromptWithdrawn { prompt } => self.check_prompt_known(*prompt),
            Fact::PromptSteered { turn, prompt } => {
                self.check_turn_open(*turn)?;
                self.check_prompt_known(*prompt)
            }
            Fact::TurnEnded { turn, .. } => {
                self.check_turn_open(*turn)?;
                if self.open_calls > 0 {
                    return Err("the turn ends before its calls have ended".into());
                }
                self.open_turn = None;
                Ok(())
            }
            Fact::TurnInterrupted { turn } => self.check_turn_open(*turn),
            Fact::ToolCalled { call, .. } => {
                if self.open_turn.is_none() || self.calls.insert(*call, false).is_some() {
                    return Err("this call cannot start here".into());
                }
                self.open_calls += 1;
                Ok(())
            }
            Fact::CallSettled { call, .. } => match self.calls.get_mut(call) {
                Some(settled) if !*settled => {
                    (*settled, self.open_calls) = (true, self.open_calls - 1);
                    Ok(())
                }
                Some(_) | None => Err("this call cannot end here".into()),
            },
            Fact::HookRan { call: Some(call), .. }
            | Fact::PermissionAsked { call, .. }
            | Fact::PermissionAnswered { call, .. }
            | Fact::CallStarted { call, .. }
            | Fact::QuestionAsked { call, .. }
            | Fact::QuestionAnswered { call, .. }
            | Fact::SubagentStarted { call, .. }
            | Fact::FilesChanging { call, .. }
            | Fact::FilesUnchanged { call } => match self.calls.get(call) {
                Some(false) => Ok(()),
                Some(true) | None => Err("the call is unknown or has already ended".into()),
            },
            // If the log ended with this `Rewound`, an open turn would continue.
            Fact::Rewound { .. } if self.open_turn.is_some() => {
                Err("a rewind inside a turn is invalid".into())
            }
            Fact::ContextCompacted { through: seq, .. }
            | Fact::SessionForked { through: seq, .. }
            | Fact::Rewound { to: seq } => match *seq < self.head {
                true => Ok(()),
                false => Err(format!("it refers to the later position {seq}")),
            },
            Fact::SessionOpened { .. }
            | Fact::SystemPromptSet { .. }
            | Fact::ModeChanged { .. }
            | Fact::AgentChanged { .. }
            | Fact::ModelChanged { .. }
            | Fact::SessionRenamed { .. }
            | Fact::SideRequestEnded { .. }
            | Fact::OutputsPruned { .. }
            | Fact::ApprovalsRevoked
            | Fact::StepStarted { .. }
            | Fact::StepEnded { .. }
            | Fact::StepRetrying { .. }
            | Fact::ModelText { .. }
            | Fact::ModelReasoning { .. }
            | Fact::HookRan { call: None, .. }
            | Fact::ContextChanged { .. }
            | Fact::FactsLost { .. } => Ok(()),
        }
    }

    fn check_turn_open(&self, turn: u32) -> Result<(), String> {
        if self.open_turn == Some(turn) {
            Ok(())
        } else {
            Err(format!("turn {turn} is not running"))
        }
    }

    fn check_prompt_known(&self, prompt: PromptId) -> Result<(), String> {
        if self.prompts.contains(&prompt) { Ok(()) } else { Err("unknown prompt".into()) }
    }
}
