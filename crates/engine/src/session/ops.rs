//! Operations of clients: each is carried out or refused with an `OpError`, never both.

use super::active_turn::{ApprovalState, CallStage};
use super::approvals::ASKED_BEFORE;
use super::{EffectList, InputTimeAndId, Session, SessionEffect, SubmittedPrompt};
use serde_json::json;
use windlass_protocol::file_history::UNDO_TOOL;
use windlass_protocol::{
    CallAuthor, CallId, Fact, LiveEvent, LogSeq, OpError, OpId, PartialCallProgress,
    PermissionAnswer, PromptSettings, SessionOp, StepPurpose, StreamedText,
};

/// Number of answers and operations whose positions a session remembers.
const MAX_REMEMBERED_POSITIONS: usize = 1024;

impl Session {
    /// Carries out an operation. One that is refused has no effects.
    pub(super) fn on_op(
        &mut self,
        stamp: InputTimeAndId,
        op: SessionOp,
        out: &mut EffectList,
    ) -> Result<(), OpError> {
        match op {
            SessionOp::Prompt { text, attachments, delivery, settings } => {
                self.check_prompt(&settings)?;
                let prompt = SubmittedPrompt { text, attachments, delivery, settings };
                self.submit_prompt(stamp, prompt, out);
                Ok(())
            }
            SessionOp::CallTool { tool, .. } if tool == UNDO_TOOL => {
                let text = "To undo changes, run `windlass session undo`.".to_owned();
                Err(OpError::Invalid { text })
            }
            SessionOp::CallTool { tool, arguments } => {
                self.start_user_call(stamp, (CallAuthor::User, tool, arguments), out)
            }
            SessionOp::RunPromptCommand { command } => {
                let arguments = json!({ "command": command }).to_string();
                let call = (CallAuthor::Command, "bash".to_owned(), arguments);
                self.start_user_call(stamp, call, out)
            }
            SessionOp::Undo { facts } => {
                // The log already contains the changes, so the call only names the facts.
                let Some(undo) = self.files.undo_arguments(&facts) else {
                    let text = "Nothing to undo: these changes were already undone or \
                                overwritten. Run `windlass session diff` to see the current ones.";
                    return Err(OpError::Gone { text: text.to_owned() });
                };
                let arguments = match undo.is_redo {
                    true => json!({ "facts": facts, "is_redo": true }),
                    false => json!({ "facts": facts }),
                };
                let call = (CallAuthor::User, UNDO_TOOL.to_owned(), arguments.to_string());
                self.start_user_call(stamp, call, out)
            }
            SessionOp::AnswerPermission { call, answer, asked } => {
                self.on_permission_answer((call, asked), answer, out)
            }
            SessionOp::AnswerQuestion { call, answers, asked } => {
                self.on_question_answered((call, asked), answers, out)
            }
            SessionOp::Compact => self.compact(out),
            SessionOp::SetMode { mode } => self.change_mode(mode, out),
            // The driver knows the agents: see `SessionInput::AgentChanged`.
            SessionOp::SetAgent { .. } => Ok(()),
            // The driver knows the models: see `SessionInput::ModelChanged`.
            SessionOp::SetModel { .. } => Ok(()),
            SessionOp::Interrupt { turn } => {
                let current = self.turn.as_ref().map(|current| current.number);
                if current.is_none() || turn.is_some() && turn != current {
                    return Err(OpError::NoTurn);
                }
                self.interrupt(out);
                Ok(())
            }
            SessionOp::WithdrawPrompt { prompt } => self.withdraw_prompt(prompt, out),
            SessionOp::Rewind { to } => self.rewind(to, out),
            SessionOp::EndJob { job } => {
                out.0.push(SessionEffect::EndJob { job });
                Ok(())
            }
            SessionOp::RenameSession { title } => {
                self.emit(Fact::SessionRenamed { title }, out);
                Ok(())
            }
            SessionOp::RevokeApprovals => {
                self.emit(Fact::ApprovalsRevoked, out);
                Ok(())
            }
        }
    }

    /// Returns an answer that declines the first open question of a call, because no user is
    /// present. `advice` tells the model how the user can allow such calls.
    pub(crate) fn declining_answer(&self, advice: &str) -> Option<SessionOp> {
        let calls = self.turn.as_ref()?.open_calls();
        calls.iter().find_map(|call| {
            let (id, asked) = (call.id, call.asked_seq);
            match &call.stage {
                CallStage::AwaitingPermission(intent)
                    if call.approval_state == ApprovalState::Asked && call.answer.is_none() =>
                {
                    let reason = intent.ask_reason.as_deref().unwrap_or(ASKED_BEFORE);
                    let hint = format!("It needs approval because {reason}. {advice}");
                    let hint = hint.trim_end().to_owned();
                    let answer = PermissionAnswer::Unavailable { hint };
                    Some(SessionOp::AnswerPermission { call: id, answer, asked })
                }
                CallStage::Running(_) => {
                    let question = &call.question_state;
                    let is_open = question.effect.is_some() && question.answers.is_none();
                    is_open.then(|| SessionOp::AnswerQuestion {
                        call: id,
                        answers: Vec::new(),
                        asked,
                    })
                }
                CallStage::AwaitingPermission(_)
                | CallStage::NotStarted
                | CallStage::Preparing
                | CallStage::Reconciling
                | CallStage::Done(_) => None,
            }
        })
    }

    /// Refuses a prompt whose limits cannot be checked.
    pub(crate) fn check_prompt(&self, settings: &PromptSettings) -> Result<(), OpError> {
        let own_model = settings
            .model
            .as_ref()
            .and_then(|model| self.config.prompt_models.iter().find(|known| known.name == *model));
        let price = own_model.map_or(&self.config.price, |model| &model.price);
        if settings.limits.cost.is_some() && price.input.is_none() {
            let text = "The price of this model is unknown, so its cost cannot be limited. \
                        Limit the tokens instead (`--max-tokens`), or use a model with a price.";
            return Err(OpError::Invalid { text: text.to_owned() });
        }
        Ok(())
    }

    /// Returns the calls that wait for an answer of the user, and the positions of their questions.
    pub(crate) fn open_questions(&self) -> Vec<(CallId, LogSeq)> {
        let Some(turn) = &self.turn else { return Vec::new() };
        let is_waiting = |call: &&super::active_turn::TurnCall| match &call.stage {
            CallStage::AwaitingPermission(_) => {
                call.approval_state == ApprovalState::Asked && call.answer.is_none()
            }
            CallStage::Running(_) => {
                let question = &call.question_state;
                question.effect.is_some() && question.answers.is_none()
            }
            CallStage::NotStarted
            | CallStage::Preparing
            | CallStage::Reconciling
            | CallStage::Done(_) => false,
        };
        let waiting = turn.open_calls().iter().filter(is_waiting);
        waiting.filter_map(|call| Some((call.id, call.asked_seq?))).collect()
    }

    /// Returns true while a call runs that would be cut off if the session ended.
    pub(crate) fn has_running_call(&self) -> bool {
        let is_running = |call: &super::active_turn::TurnCall| {
            let question = &call.question_state;
            let is_waiting = question.effect.is_some() && question.answers.is_none();
            matches!(call.stage, CallStage::Running(_)) && !is_waiting
        };
        self.turn.as_ref().is_some_and(|turn| turn.open_calls().iter().any(is_running))
    }

    /// Returns true if the call is or was one of this session, not of a subagent.
    pub(crate) fn knows_call(&self, call: CallId) -> bool {
        let is_open = |turn: &super::ActiveTurn| turn.open_calls().iter().any(|it| it.id == call);
        self.turn.as_ref().is_some_and(is_open) || self.answer_positions.contains_key(&call)
    }

    /// Returns the error for an answer to a call without an open question.
    pub(super) fn not_asked_error(&self, call: CallId) -> OpError {
        match self.answer_positions.get(&call) {
            Some(seq) => OpError::AlreadyAnswered { by: None, seq: *seq },
            None => OpError::NoQuestion,
        }
    }

    /// Remembers the position of an answer, or forgets it when the call asks again.
    pub(super) fn note_answer(&mut self, call: CallId, fact: &Fact) {
        match fact {
            Fact::PermissionAnswered { .. } | Fact::QuestionAnswered { .. } => {
                self.answer_positions.insert(call, self.head);
                if self.answer_positions.len() > MAX_REMEMBERED_POSITIONS {
                    self.answer_positions.pop_first();
                }
            }
            Fact::PermissionAsked { .. } | Fact::QuestionAsked { .. } => {
                self.answer_positions.remove(&call);
            }
            _ => {}
        }
    }

    /// Remembers the operation of a fact from the log. Those of one operation are neighbors.
    pub(super) fn add_recorded_op(&mut self, op: OpId, seq: LogSeq) {
        match self.recorded_ops.last_mut() {
            Some((last, through)) if *last == op => *through = seq,
            _ => self.recorded_ops.push((op, seq)),
        }
        if self.recorded_ops.len() >= 2 * MAX_REMEMBERED_POSITIONS {
            self.recorded_ops.drain(..MAX_REMEMBERED_POSITIONS);
        }
    }

    /// Removes and returns the last operations of the log with their last positions, oldest first.
    pub(crate) fn take_recorded_ops(&mut self) -> Vec<(OpId, LogSeq)> {
        std::mem::take(&mut self.recorded_ops)
    }

    /// Returns what the model has written of the current answer (`LiveEvent::PartialStep`).
    pub(crate) fn partial_step(&self) -> Option<LiveEvent> {
        let is_answer =
            |turn: &&super::ActiveTurn| turn.step_open && turn.purpose == StepPurpose::Answer;
        let turn = self.turn.as_ref().filter(is_answer)?;
        let mut texts: Vec<StreamedText> = Vec::new();
        for (stream, text) in turn.streamed_texts() {
            match texts.last_mut() {
                Some(last) if last.stream == stream => last.text.push_str(text),
                _ => texts.push(StreamedText { stream, text: text.to_owned() }),
            }
        }
        let calls = turn.partial_calls.iter();
        let calls: Vec<PartialCallProgress> =
            calls.map(|(index, call)| call.progress(*index)).collect();
        Some(LiveEvent::PartialStep { texts, calls })
    }
}
