//! Operations of clients: each becomes an input of the session, is passed on to a subagent, or is
//! refused; and each is answered exactly once.

use super::SessionDriver;
use super::op_ledger::QueuedOp;
use crate::session::{SessionInput, SubmittedPrompt};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use windlass_protocol::{
    AccessRight, OpError, OpId, OpRequest, OpResult, PermissionMode, SessionOp, TurnEndReason,
};

impl SessionDriver {
    /// Returns the next input, with its operation, unless the operation is answered already or
    /// waits for something.
    pub(super) fn on_queued_op(
        &mut self,
        queued: QueuedOp,
    ) -> Option<(SessionInput, Option<OpId>)> {
        let request = self.ops.admit(queued)?;
        let id = request.id;
        if self.is_for_subagent(&request.op) {
            self.forward_answer(request);
            return None;
        }
        if let Some(input) = self.offer_prompt_model(&request.op) {
            let stamp = self.stamp(None);
            // It only adds a name to the config of the session: there are no effects.
            self.session.apply(stamp, input);
        }
        match self.on_op(request) {
            Ok(input) => input.map(|input| (input, Some(id))),
            Err(error) => {
                self.ops.answer(id, Err(error));
                None
            }
        }
    }

    /// Turns an operation into an input, or holds a prompt back until the hooks have checked it.
    fn on_op(&mut self, request: OpRequest) -> Result<Option<SessionInput>, OpError> {
        let OpRequest { id, op } = request;
        if let SessionOp::Prompt { settings, .. } = &op {
            self.session.check_prompt(settings)?;
        }
        Ok(Some(match op {
            SessionOp::Prompt { text, attachments, delivery, settings }
                if !self.session_hooks.start_answered
                    || self.session_hooks.stopped_by.is_some()
                    || !self.session_hooks.running.is_empty()
                    || self.has_prompt_hooks() =>
            {
                let prompt = SubmittedPrompt { text, attachments, delivery, settings };
                self.session_hooks.held_prompts.push_back((id, prompt));
                // An interrupt may have stopped the start hooks.
                if !self.session_hooks.start_answered && self.session_hooks.running.is_empty() {
                    self.run_start_hooks();
                }
                self.run_prompt_hooks();
                return Ok(None);
            }
            // A prompt that has not reached the model yet is dropped.
            SessionOp::Interrupt { turn: None }
                if !self.session.is_busy() && !self.session_hooks.held_prompts.is_empty() =>
            {
                self.session_hooks.running = JoinSet::new();
                let text = "[interrupted while hooks were running]";
                self.session_hooks.reject_held_prompts(text, &TurnEndReason::Interrupted);
                self.ops.answer(id, Ok(self.claim.head));
                return Ok(None);
            }
            // The agent or the config may permit less than the user asks for.
            SessionOp::SetMode { mode } => {
                let is_admin = self.ops.sender(id).is_none_or(|it| it.right >= AccessRight::Admin);
                if !is_admin && mode > self.configured_mode() {
                    return Err(OpError::Forbidden { needs: AccessRight::Admin });
                }
                let mode = self.runtime.policy.clone().with_mode(mode).mode();
                SessionInput::Op(SessionOp::SetMode { mode })
            }
            SessionOp::SetAgent { agent } => self.switch_agent(&agent)?,
            SessionOp::SetModel { model, effort } => self.choose_model(model, effort)?,
            // A client elsewhere must not let a command out of the sandbox of this machine.
            SessionOp::AnswerPermission { call, answer, .. }
                if answer.is_yes()
                    && self.session.asks_to_leave_sandbox(call)
                    && self.ops.sender(id).is_some_and(|it| it.right < AccessRight::Admin) =>
            {
                return Err(OpError::Forbidden { needs: AccessRight::Admin });
            }
            SessionOp::EndJob { job } if !self.is_job_running(job) => {
                return Err(OpError::Gone { text: format!("Job {job} is not running.") });
            }
            op => SessionInput::Op(op),
        }))
    }

    /// Returns the mode that the config sets for new sessions.
    fn configured_mode(&self) -> PermissionMode {
        let runtime = self.agent_base.as_ref().map_or(&self.runtime, |base| &base.runtime);
        runtime.policy.mode()
    }

    /// Returns true for an answer to a call that is not known here, if subagents are running.
    fn is_for_subagent(&self, op: &SessionOp) -> bool {
        match op {
            SessionOp::AnswerPermission { call, .. } | SessionOp::AnswerQuestion { call, .. } => {
                !self.session.knows_call(*call) && self.subagents.count() > 0
            }
            _ => false,
        }
    }

    /// Sends an answer to all subagents, of which at most one has asked for it, and answers the
    /// operation when all of them have.
    fn forward_answer(&mut self, request: OpRequest) {
        let id = request.id;
        let replies = self.subagents.forward(&request, self.ops.sender(id));
        let answers = self.forwarded_answers.clone();
        self.tasks.spawn(async move {
            let answer = answer_of_subagents(replies).await;
            let _ = answers.send((id, answer)).await;
        });
    }

    /// Returns an answer that declines an open question, if no user is present and the policy is not
    /// to wait for one.
    pub(super) fn unattended_answer(&self) -> Option<SessionOp> {
        let advice = self.lineage.attendance.declining_advice(&self.settings.unattended)?;
        self.session.declining_answer(advice)
    }

    /// Answers the operation that is the current input.
    pub(super) fn answer_op(&mut self, id: OpId, result: Result<(), OpError>) {
        let result = match result {
            Ok(()) => Ok(self.claim.head),
            Err(OpError::AlreadyAnswered { seq, .. }) => {
                Err(OpError::AlreadyAnswered { by: self.ops.author_of_answer(seq), seq })
            }
            Err(error) => Err(error),
        };
        self.ops.answer(id, result);
    }
}

/// Returns the answer of the subagent that the operation was for.
async fn answer_of_subagents(replies: Vec<oneshot::Receiver<OpResult>>) -> OpResult {
    let mut result = Err(OpError::NoQuestion);
    for reply in replies {
        match reply.await {
            // A subagent that ended, or that did not ask.
            Err(_) | Ok(Err(OpError::NoQuestion | OpError::Stopped)) => {}
            Ok(answer) => result = answer,
        }
    }
    result
}
