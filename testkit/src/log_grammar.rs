//! The grammar of event logs. It is independent of the engine, so that the two can disagree.

use std::collections::{BTreeMap, BTreeSet};
use windlass_protocol::{
    ApprovalScope, CallAuthor, CallId, CallOutcome, Fact, FinishReason, LogSeq, PermissionAnswer,
    PromptDelivery, PromptId, StepPurpose,
};

/// Reads a log fact by fact, and rejects a fact that cannot follow.
#[derive(Default)]
pub struct LogGrammarChecker {
    is_opened: bool,
    has_system_prompt: bool,
    turns: u32,
    /// The open turn, and whether it answers a prompt.
    turn: Option<(u32, bool)>,
    steps: u32,
    step_open: bool,
    /// Purpose of the open step, or of the last one.
    purpose: StepPurpose,
    /// State of the summary after the previous fact.
    summary: LogSummaryState,
    /// Number of facts so far.
    seq: LogSeq,
    /// Last fact that each valid summary covers.
    through: Vec<LogSeq>,
    /// State after each fact.
    positions: Vec<LogPositionState>,
    prompts: BTreeMap<PromptId, PromptDelivery>,
    pruned: BTreeSet<CallId>,
    calls: BTreeMap<CallId, LogCallState>,
    /// Provider ids of the calls of the open step.
    references: BTreeSet<String>,
    order: Vec<CallId>,
    /// Number of settled calls.
    settled: usize,
}

/// State of a log at a position.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LogPositionState {
    /// No turn is open.
    Idle,
    /// A turn is open.
    InTurn,
    /// The position was removed by a rewind.
    Rewound,
}

/// State of a summary after a fact.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum LogSummaryState {
    #[default]
    Absent,
    Complete,
}

#[derive(Default)]
struct LogCallState {
    permission_asked: bool,
    permission_answer: Option<bool>,
    attempts: u32,
    question_open: bool,
    change_batches: u32,
    read_only: bool,
    settled: bool,
}

/// Checks a log, complete or cut off between two appends.
pub fn check<'a>(facts: impl IntoIterator<Item = &'a Fact>) -> Result<(), String> {
    LogGrammarChecker::from_facts(facts).map(|_| ())
}

/// Checks that a log is also complete: no turn, prompt or call is open.
pub fn check_settled<'a>(facts: impl IntoIterator<Item = &'a Fact>) -> Result<(), String> {
    let checker = LogGrammarChecker::from_facts(facts)?;
    ensure(checker.turn.is_none(), "a turn is still open")?;
    ensure(checker.prompts.is_empty(), "a prompt was never started")?;
    ensure(checker.calls.values().all(|call| call.settled), "a call was never settled")
}

fn ensure(condition: bool, message: &str) -> Result<(), String> {
    if condition { Ok(()) } else { Err(message.to_owned()) }
}

impl LogGrammarChecker {
    /// Checks a whole log.
    pub fn from_facts<'a>(
        facts: impl IntoIterator<Item = &'a Fact>,
    ) -> Result<LogGrammarChecker, String> {
        let mut checker = LogGrammarChecker::default();
        for (index, fact) in facts.into_iter().enumerate() {
            checker
                .read(fact)
                .map_err(|why| format!("fact {}, {}: {why}", index + 1, fact.kind()))?;
        }
        Ok(checker)
    }

    /// Reads the next fact.
    pub fn read(&mut self, fact: &Fact) -> Result<(), String> {
        ensure(
            self.is_opened || matches!(fact, Fact::SessionOpened { .. }),
            "before the session opened",
        )?;
        self.seq += 1;
        let summary = std::mem::take(&mut self.summary);
        match fact {
            Fact::SessionOpened { .. } => {
                ensure(!self.is_opened, "a second time")?;
                self.is_opened = true;
            }
            Fact::SessionRenamed { .. }
            | Fact::SideRequestEnded { .. }
            | Fact::ModeChanged { .. }
            | Fact::ApprovalsRevoked
            | Fact::AgentChanged { .. }
            | Fact::ModelChanged { .. }
            | Fact::SessionForked { .. }
            | Fact::ContextChanged { .. }
            | Fact::FactsLost { .. } => {}
            Fact::Rewound { to } => self.read_rewind(*to)?,
            Fact::PromptSubmitted { prompt, delivery: when, .. } => {
                let new = self.prompts.insert(*prompt, *when).is_none();
                ensure(new, "the same prompt twice")?;
            }
            Fact::PromptWithdrawn { prompt } => {
                ensure(self.prompts.remove(prompt).is_some(), "a prompt that does not wait")?;
            }
            Fact::TurnStarted { turn, prompt } => {
                ensure(self.turn.is_none(), "inside another turn")?;
                ensure(*turn == self.turns + 1, "the turns do not count up")?;
                if let Some(prompt) = prompt {
                    ensure(
                        self.prompts.remove(prompt).is_some(),
                        "for a prompt that does not wait",
                    )?;
                }
                (self.turns, self.turn, self.steps) = (*turn, Some((*turn, prompt.is_some())), 0);
            }
            Fact::SystemPromptSet { .. } => {
                ensure(!self.has_system_prompt, "a second time")?;
                self.has_system_prompt = true;
            }
            Fact::StepRetrying { .. } => {
                ensure(!self.step_open && self.turn.is_some(), "not between steps")?
            }
            Fact::TurnInterrupted { turn } => {
                self.ensure_turn_open(*turn)?;
            }
            Fact::TurnEnded { turn, .. } => {
                self.ensure_turn_open(*turn)?;
                ensure(!self.step_open, "inside a step")?;
                ensure(self.calls.values().all(|call| call.settled), "before all calls settled")?;
                self.turn = None;
            }
            Fact::OutputsPruned { .. }
            | Fact::ContextCompacted { .. }
            | Fact::PromptSteered { .. }
            | Fact::StepStarted { .. }
            | Fact::StepEnded { .. }
            | Fact::ModelText { .. }
            | Fact::ModelReasoning { .. } => self.read_step(fact, summary)?,
            Fact::HookRan { call, .. } => {
                // It may stand between any two facts, and does not affect them.
                self.summary = summary;
                let is_running = |id| self.calls.get(id).is_some_and(|call| !call.settled);
                ensure(call.iter().all(is_running), "about a call that is not open")?;
            }
            Fact::ToolCalled { .. }
            | Fact::PermissionAsked { .. }
            | Fact::PermissionAnswered { .. }
            | Fact::CallStarted { .. }
            | Fact::QuestionAsked { .. }
            | Fact::QuestionAnswered { .. }
            | Fact::SubagentStarted { .. }
            | Fact::FilesChanging { .. }
            | Fact::FilesUnchanged { .. }
            | Fact::CallSettled { .. } => self.read_call(fact)?,
        }
        self.positions.push(if self.turn.is_some() {
            LogPositionState::InTurn
        } else {
            LogPositionState::Idle
        });
        Ok(())
    }

    fn ensure_turn_open(&self, turn: u32) -> Result<(), String> {
        ensure(self.turn.is_some_and(|open| open.0 == turn), "of a turn that is not open")
    }

    /// Reads a rewind, which removes all facts after a position.
    fn read_rewind(&mut self, to: LogSeq) -> Result<(), String> {
        ensure(self.turn.is_none(), "inside a turn")?;
        ensure(to >= 1 && to + 1 < self.seq, "to a position without facts after it")?;
        let (kept, rewound) =
            self.positions.split_at_mut(usize::try_from(to).unwrap_or(usize::MAX));
        ensure(
            kept.last() == Some(&LogPositionState::Idle),
            "to a position inside a turn, or removed by a rewind",
        )?;
        rewound.fill(LogPositionState::Rewound);
        self.through.retain(|through| *through <= to);
        Ok(())
    }

    /// Reads a fact of a step, or between two steps.
    fn read_step(&mut self, fact: &Fact, summary: LogSummaryState) -> Result<(), String> {
        match fact {
            Fact::OutputsPruned { calls } => {
                ensure(!self.step_open && !calls.is_empty(), "nothing, or inside a step")?;
                for call in calls {
                    let settled = self.calls.get(call).is_some_and(|call| call.settled);
                    ensure(settled, "a call that gave nothing")?;
                    ensure(self.pruned.insert(*call), "the same call twice")?;
                }
            }
            Fact::ContextCompacted { through, .. } => {
                ensure(summary == LogSummaryState::Complete, "without a summary")?;
                let advances = self.through.last().is_none_or(|before| through > before);
                ensure(advances, "not after the last summary")?;
                ensure(*through < self.seq, "after the last fact")?;
                self.through.push(*through);
            }
            Fact::PromptSteered { turn, prompt } => {
                ensure(self.turn == Some((*turn, true)), "outside its turn")?;
                ensure(!self.step_open, "inside a step")?;
                ensure(self.calls.values().all(|call| call.settled), "before all calls settled")?;
                let delivery = self.prompts.remove(prompt);
                ensure(
                    delivery == Some(PromptDelivery::Steer),
                    "a prompt that does not wait to steer",
                )?;
            }
            Fact::StepStarted { turn, step, purpose, .. } => {
                // The user may request a summary without a prompt.
                let open =
                    self.turn.filter(|(_, prompted)| *prompted || *purpose == StepPurpose::Summary);
                ensure(open.is_some_and(|open| open.0 == *turn), "outside its turn")?;
                self.purpose = *purpose;
                ensure(!self.step_open, "inside another step")?;
                ensure(self.calls.values().all(|call| call.settled), "before all calls settled")?;
                ensure(*step == self.steps + 1, "the steps do not count up")?;
                (self.steps, self.step_open) = (*step, true);
                self.references.clear();
            }
            Fact::StepEnded { turn, step, finish_reason: finish, .. } => {
                ensure(self.step_open && self.steps == *step, "of a step that is not open")?;
                ensure(self.turn.is_some_and(|open| open.0 == *turn), "outside its turn")?;
                self.step_open = false;
                let succeeded = matches!(
                    finish,
                    FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Length
                );
                if succeeded && self.purpose == StepPurpose::Summary {
                    self.summary = LogSummaryState::Complete;
                }
            }
            Fact::ModelText { .. } | Fact::ModelReasoning { .. } => {
                ensure(self.step_open && self.purpose == StepPurpose::Answer, "outside an answer")?;
            }
            _ => {}
        }
        Ok(())
    }

    fn read_call(&mut self, fact: &Fact) -> Result<(), String> {
        if let Fact::ToolCalled { call, author: by, provider_call_id: reference, .. } = fact {
            let position = match by {
                CallAuthor::Model => self.step_open && self.purpose == StepPurpose::Answer,
                CallAuthor::User | CallAuthor::Command => {
                    self.turn.is_some_and(|(_, prompted)| !prompted)
                }
                // It checks the goal of a prompt, between two steps.
                CallAuthor::Goal => self.turn.is_some_and(|(_, prompted)| {
                    prompted
                        && !self.step_open
                        && self.steps > 0
                        && self.calls.values().all(|call| call.settled)
                }),
            };
            ensure(position, "outside a step or turn of its author")?;
            let has_unique_id =
                *by != CallAuthor::Model || self.references.insert(reference.clone());
            ensure(
                has_unique_id && !reference.is_empty(),
                "with an empty id, or with the id of another call",
            )?;
            self.order.push(*call);
            return ensure(
                self.calls.insert(*call, LogCallState::default()).is_none(),
                "the same call twice",
            );
        }
        ensure(!self.step_open, "inside a step")?;
        let id = match fact {
            Fact::PermissionAsked { call, .. }
            | Fact::PermissionAnswered { call, .. }
            | Fact::CallStarted { call, .. }
            | Fact::QuestionAsked { call, .. }
            | Fact::QuestionAnswered { call, .. }
            | Fact::SubagentStarted { call, .. }
            | Fact::FilesChanging { call, .. }
            | Fact::FilesUnchanged { call }
            | Fact::CallSettled { call, .. } => *call,
            _ => return Ok(()),
        };
        if matches!(fact, Fact::CallSettled { .. }) {
            let first = self.order.get(self.settled);
            ensure(first == Some(&id), "not in the order of the calls, or a second time")?;
            self.settled += 1;
        }
        if let Fact::CallStarted { read_only, .. } = fact {
            let position = |id: &CallId| self.order.iter().position(|other| other == id);
            let is_running = |(other, call): (&CallId, &LogCallState)| {
                // A later call that only reads, and had started, died with its process before the
                // outcome of this one was recorded. It will be started again.
                let died = call.read_only && position(other) > position(&id);
                *other != id
                    && call.attempts > 0
                    && !call.settled
                    && !(*read_only && call.read_only)
                    && !died
            };
            ensure(
                !self.calls.iter().any(is_running),
                "while a call runs that it cannot run beside",
            )?;
        }
        self.calls.get_mut(&id).ok_or("of an unknown call")?.read(fact)
    }
}

impl LogCallState {
    /// Reads the next fact about the call.
    fn read(&mut self, fact: &Fact) -> Result<(), String> {
        ensure(!self.settled, "after it settled")?;
        match fact {
            Fact::PermissionAsked { .. } => {
                ensure(self.attempts == 0 || self.read_only, "after it started")?;
                // Asked again after a crash, perhaps with another question: the answer is open.
                (self.permission_asked, self.permission_answer) = (true, None);
            }
            Fact::PermissionAnswered { answer, .. } => {
                // An access that an earlier answer covers is not asked about.
                let is_earlier_answer = match answer {
                    PermissionAnswer::Session => true,
                    PermissionAnswer::Kind { scope } => *scope == ApprovalScope::Session,
                    _ => false,
                };
                let covered = !self.permission_asked && is_earlier_answer;
                let open = self.permission_asked && self.permission_answer.is_none();
                ensure(open || covered, "without a question")?;
                ensure(self.attempts == 0 || self.read_only, "after it started")?;
                self.permission_answer = Some(answer.is_yes());
            }
            Fact::CallStarted { attempt, read_only, .. } => {
                ensure(*attempt == self.attempts + 1, "the attempts do not count up")?;
                ensure(
                    !self.permission_asked || self.permission_answer == Some(true),
                    "without permission",
                )?;
                ensure(
                    self.attempts == 0 || self.read_only,
                    "again, although it may change something",
                )?;
                (self.attempts, self.read_only) = (*attempt, *read_only);
            }
            Fact::QuestionAsked { .. } => {
                ensure(self.attempts > 0, "by a call that has not started")?;
                // Asked again after a crash: the answer is open.
                self.question_open = true;
            }
            Fact::QuestionAnswered { .. } => {
                ensure(std::mem::take(&mut self.question_open), "without a question")?
            }
            Fact::SubagentStarted { .. } => {
                ensure(self.attempts > 0, "by a call that has not started")?
            }
            Fact::FilesChanging { .. } => {
                ensure(
                    self.attempts > 0 && !self.read_only,
                    "by a read-only call, or before it started",
                )?;
                self.change_batches += 1;
            }
            Fact::FilesUnchanged { .. } => {
                ensure(self.change_batches > 0, "without `FilesChanging`")?;
                self.change_batches -= 1;
            }
            Fact::CallSettled { outcome, .. } => {
                let ran =
                    matches!(outcome, CallOutcome::Completed { .. } | CallOutcome::ResultUnknown);
                ensure(!ran || self.attempts > 0, "with a result, but it never started")?;
                self.settled = true;
            }
            _ => {}
        }
        Ok(())
    }
}
