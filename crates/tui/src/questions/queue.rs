//! The queue of pending questions: folds `FactRecord`s into the open questions, independent of their
//! display.

use super::form::UserQuestionForm;
use super::permission::{PermissionDetails, PermissionQuestion};
use crate::session_state::SessionState;
use std::collections::VecDeque;
use windlass_protocol::file_history::UNDO_TOOL;
use windlass_protocol::frontend_messages::HostResponse;
use windlass_protocol::{
    CallAuthor, CallId, ClientInfo, Fact, FactRecord, Fault, HookVerdict, LogSeq, OpError,
    SessionId, SessionOp, ToolAccess,
};

/// A pending question of a call.
#[derive(Clone, Debug)]
pub(crate) enum PendingQuestion {
    Permission(Box<PermissionQuestion>),
    UserQuestion(Box<UserQuestionForm>),
}

/// A pending question with its session and call.
#[derive(Debug)]
pub(crate) struct QueuedQuestion {
    session: SessionId,
    pub(crate) call: CallId,
    /// Position of the fact that asked.
    pub(crate) asked: LogSeq,
    pub(crate) question: PendingQuestion,
    /// Unique per question, even for a later question about the same call.
    serial: u64,
}

/// An approval that the user gave before the permission request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PreApproval {
    /// The diff of an undo, as it was shown.
    Undo(String),
    /// A shell command that the user typed.
    Command(String),
}

impl PreApproval {
    /// Returns true if the call is the one that the user approved.
    fn matches_call(&self, tool: &str, arguments: &str) -> bool {
        match self {
            PreApproval::Undo(_) => tool == UNDO_TOOL,
            PreApproval::Command(command) => {
                let (tool, arguments) = (tool.to_owned(), arguments.to_owned());
                SessionOp::shell_command(command) == SessionOp::CallTool { tool, arguments }
            }
        }
    }

    /// Returns true if the request asks for exactly what the user approved. A command that would
    /// leave its sandbox or reach a host needs more than the user typed, and a rewritten command is
    /// a different one.
    fn covers(&self, accesses: &[ToolAccess], preview: Option<&str>) -> bool {
        match self {
            PreApproval::Undo(change) => preview == Some(change),
            PreApproval::Command(typed) => {
                matches!(accesses, [ToolAccess::RunCommand { command, .. }] if command == typed)
            }
        }
    }
}

/// The effect of a `FactRecord` on the display of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuestionQueueChange {
    /// No new question; some may be gone.
    None,
    QuestionAdded,
    /// A permission request at this position arrived that the user approved in advance.
    PreApproved(CallId, LogSeq),
}

/// The pending questions, in order of arrival.
#[derive(Debug, Default)]
pub(crate) struct PendingQuestionQueue {
    waiting: VecDeque<QueuedQuestion>,
    /// Answered questions, with the request id, until the answer is confirmed.
    sent_answers: Vec<(u64, QueuedQuestion)>,
    /// The number of questions answered since the queue was last empty.
    answered_count: usize,
    last_serial: u64,
    /// The user's `PreApproval`, until it is asked for or the turn ends.
    pre_approval: Option<PreApproval>,
    /// The user's own call that `pre_approval` belongs to.
    pre_approved_call: Option<CallId>,
}

impl PendingQuestionQueue {
    /// Returns the question to answer now.
    pub(crate) fn first(&self) -> Option<&QueuedQuestion> {
        self.waiting.front()
    }

    pub(crate) fn first_mut(&mut self) -> Option<&mut QueuedQuestion> {
        self.waiting.front_mut()
    }

    /// Returns the serial of the current question; a different serial means a different question.
    pub(crate) fn current_serial(&self) -> Option<u64> {
        self.first().map(|first| first.serial)
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the position of the current question, such as `1 of 3`, if there are several.
    pub(crate) fn position_label(&self) -> Option<String> {
        let total = self.answered_count + self.waiting.len();
        (total > 1).then(|| format!("{} of {total}", self.answered_count + 1))
    }

    /// Records an advance approval, so that the user is not asked again for exactly that.
    pub(crate) fn pre_approve(&mut self, pre_approval: PreApproval) {
        (self.pre_approval, self.pre_approved_call) = (Some(pre_approval), None);
    }

    /// Takes the advance approval for a call of the user; returns true if it covers the request.
    fn consume_pre_approval(
        &mut self,
        call: CallId,
        accesses: &[ToolAccess],
        preview: Option<&str>,
    ) -> bool {
        if self.pre_approved_call != Some(call) {
            return false;
        }
        self.pre_approval.take().is_some_and(|pre_approval| pre_approval.covers(accesses, preview))
    }

    /// Updates the queue from a `FactRecord`: new questions, answers, and facts that make questions
    /// obsolete.
    pub(crate) fn on_record(
        &mut self,
        record: &FactRecord,
        state: &SessionState,
    ) -> QuestionQueueChange {
        let session = record.session;
        let is_own_session = Some(session) == state.session;
        let child = state.subagents.get(&session);
        let agent = child.map_or("", |child| child.agent.as_str());
        let agent = (!is_own_session).then_some(agent);
        let mut change = QuestionQueueChange::None;
        match &record.fact {
            Fact::ToolCalled { call, tool, arguments, author: CallAuthor::User, .. }
                if is_own_session =>
            {
                let is_approved = self
                    .pre_approval
                    .as_ref()
                    .is_some_and(|approval| approval.matches_call(tool, arguments));
                self.pre_approved_call = is_approved.then_some(*call);
            }
            // A hook asks for approval, which the user has not given.
            Fact::HookRan { call: Some(call), verdict: HookVerdict::Asks { .. }, .. }
                if self.pre_approved_call == Some(*call) =>
            {
                (self.pre_approval, self.pre_approved_call) = (None, None);
            }
            Fact::PermissionAsked { call, accesses, preview, .. }
                if self.consume_pre_approval(*call, accesses, preview.as_deref()) =>
            {
                change = QuestionQueueChange::PreApproved(*call, record.seq);
            }
            Fact::PermissionAsked {
                call,
                accesses,
                reason,
                danger,
                preview,
                approval_kind,
                repair,
            } => {
                let permission = PermissionQuestion::new(&PermissionDetails {
                    accesses,
                    reason,
                    danger: *danger,
                    preview: preview.as_deref(),
                    approval_kind: approval_kind.as_ref(),
                    repair: repair.as_ref(),
                    agent,
                });
                let question = PendingQuestion::Permission(Box::new(permission));
                change = self.enqueue(session, (*call, record.seq), question);
            }
            Fact::QuestionAsked { call, questions } => {
                let form = UserQuestionForm::new(questions, agent);
                let question = PendingQuestion::UserQuestion(Box::new(form));
                change = self.enqueue(session, (*call, record.seq), question);
            }
            Fact::PermissionAnswered { call, .. }
            | Fact::QuestionAnswered { call, .. }
            | Fact::CallSettled { call, .. } => self.remove_call(*call),
            Fact::TurnInterrupted { .. } | Fact::TurnEnded { .. } | Fact::Rewound { .. } => {
                if is_own_session {
                    (self.pre_approval, self.pre_approved_call) = (None, None);
                }
                self.remove_session(session, state);
            }
            Fact::SessionOpened { .. }
            | Fact::SystemPromptSet { .. }
            | Fact::ModeChanged { .. }
            | Fact::AgentChanged { .. }
            | Fact::ModelChanged { .. }
            | Fact::SessionRenamed { .. }
            | Fact::SideRequestEnded { .. }
            | Fact::SessionForked { .. }
            | Fact::ContextCompacted { .. }
            | Fact::OutputsPruned { .. }
            | Fact::PromptSubmitted { .. }
            | Fact::PromptWithdrawn { .. }
            | Fact::TurnStarted { .. }
            | Fact::PromptSteered { .. }
            | Fact::StepStarted { .. }
            | Fact::StepEnded { .. }
            | Fact::StepRetrying { .. }
            | Fact::ModelText { .. }
            | Fact::ModelReasoning { .. }
            | Fact::ToolCalled { .. }
            | Fact::CallStarted { .. }
            | Fact::ApprovalsRevoked
            | Fact::SubagentStarted { .. }
            | Fact::FilesChanging { .. }
            | Fact::FilesUnchanged { .. }
            | Fact::HookRan { .. }
            | Fact::ContextChanged { .. }
            | Fact::FactsLost { .. } => {}
        }
        self.reset_count_if_empty();
        change
    }

    /// Returns the client that answered a question with this fact, if the question waits here.
    pub(crate) fn answered_by<'a>(&self, record: &'a FactRecord) -> Option<&'a ClientInfo> {
        let (Fact::PermissionAnswered { call, .. } | Fact::QuestionAnswered { call, .. }) =
            &record.fact
        else {
            return None;
        };
        let origin = record.origin.as_ref()?;
        self.waiting.iter().any(|question| question.call == *call).then_some(&origin.client)
    }

    /// Removes the questions of a session; all questions, if it is the session on the screen.
    pub(crate) fn remove_session(&mut self, session: SessionId, state: &SessionState) {
        let keep = |question: &QueuedQuestion| {
            Some(session) != state.session && question.session != session
        };
        self.waiting.retain(keep);
        self.sent_answers.retain(|(_, question)| keep(question));
        self.reset_count_if_empty();
    }

    fn enqueue(
        &mut self,
        session: SessionId,
        (call, asked): (CallId, LogSeq),
        question: PendingQuestion,
    ) -> QuestionQueueChange {
        self.remove_call(call);
        self.last_serial += 1;
        self.waiting.push_back(QueuedQuestion {
            session,
            call,
            asked,
            question,
            serial: self.last_serial,
        });
        QuestionQueueChange::QuestionAdded
    }

    fn remove_call(&mut self, call: CallId) {
        let before = self.waiting.len();
        self.waiting.retain(|question| question.call != call);
        self.answered_count += before - self.waiting.len();
        self.sent_answers.retain(|(_, question)| question.call != call);
    }

    fn reset_count_if_empty(&mut self) {
        if self.waiting.is_empty() {
            self.answered_count = 0;
        }
    }

    /// Marks the first question as answered by the request with this id.
    pub(crate) fn mark_answered(&mut self, id: u64) {
        if let Some(first) = self.waiting.pop_front() {
            self.sent_answers.push((id, first));
            self.answered_count += 1;
        }
    }

    /// Handles the response to a sent answer; returns false if `id` is not its own. A question
    /// whose answer failed is pending again.
    pub(crate) fn on_response(&mut self, id: u64, response: &Result<HostResponse, Fault>) -> bool {
        let Some(index) = self.sent_answers.iter().position(|(sent_id, _)| *sent_id == id) else {
            return false;
        };
        let is_still_open = match response {
            Ok(HostResponse::OpRejected { error }) => match error {
                // A session that is gone for good is reported by `SessionStopped`.
                OpError::Invalid { .. } | OpError::Forbidden { .. } | OpError::Stopped => true,
                OpError::AlreadyAnswered { .. }
                | OpError::NoQuestion
                | OpError::TurnRunning { .. }
                | OpError::NoTurn
                | OpError::Gone { .. } => false,
            },
            Ok(_) => false,
            Err(_) => true,
        };
        if is_still_open {
            let (_, question) = self.sent_answers.remove(index);
            self.waiting.push_front(question);
            self.answered_count = self.answered_count.saturating_sub(1);
        }
        true
    }
}
