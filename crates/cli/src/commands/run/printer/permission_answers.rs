//! Answers to permission requests: by the user, by `--yes`, or none.

use super::super::run_session::RunSession;
use super::TurnPrinter;
use crate::terminal::output;
use crate::terminal::permission_question::{RecordedPermissionRequest, describe_request};
use crate::terminal::question_queue::TerminalQuestion;
use windlass_protocol::{CallId, Fact, FactRecord, LogSeq, PermissionAnswer, SessionOp};
use windlass_toolkit::UserPresence;

impl TurnPrinter {
    /// Handles a permission request, with an introduction to its reason.
    pub(super) async fn on_permission_asked(
        &mut self,
        record: &FactRecord,
        introduction: &str,
        session: &RunSession,
    ) {
        let Fact::PermissionAsked {
            call, accesses, reason, preview, repair, approval_kind, ..
        } = &record.fact
        else {
            return;
        };
        let preview = describe_request(preview.as_deref(), repair.as_ref());
        let request = RecordedPermissionRequest {
            accesses,
            reason: &format!("{introduction}{reason}"),
            preview,
            approval_kind: approval_kind.as_ref(),
        };
        self.answer_permission((*call, record.seq), &request, session).await;
    }

    /// Answers a permission request: yes with `--yes`, otherwise by asking the user. Without a user,
    /// the session declines it, unless a user of another client answers.
    async fn answer_permission(
        &mut self,
        (call, asked): (CallId, LogSeq),
        request: &RecordedPermissionRequest<'_>,
        session: &RunSession,
    ) {
        if self.options.yes && !request.leaves_sandbox() {
            let answer = PermissionAnswer::Once;
            let op = SessionOp::AnswerPermission { call, answer, asked: Some(asked) };
            session.queue_op(op).await;
            return;
        }
        if output::user_presence(self.options.output) == UserPresence::Present {
            self.progress.end_line();
            let question = request.to_prompt(output::terminal_width());
            self.questions.add((call, asked), TerminalQuestion::Permission(question));
            return;
        }
        let hint = match request.leaves_sandbox() {
            true => "only a user at the terminal can allow it to leave the sandbox",
            false => "use --yes, or allow it in the config",
        };
        let accesses = request.access_lines().join("\n        ");
        let reason = windlass_protocol::display_text::to_one_line(request.reason);
        let line =
            format!("denied: {accesses} ({reason}). No user is available to approve it: {hint}");
        self.declined_lines.insert(call, vec![line]);
        if self.declines_itself(session).await {
            let hint = format!("It needs approval because {reason}.");
            let answer = PermissionAnswer::Unavailable { hint };
            let op = SessionOp::AnswerPermission { call, answer, asked: Some(asked) };
            session.queue_op(op).await;
        }
    }

    /// Returns true if this run declines what it cannot answer. With `--yes` it counts as a user, so
    /// the session declines nothing; but a user of another client may still answer.
    pub(super) async fn declines_itself(&mut self, session: &RunSession) -> bool {
        if !self.options.yes && !self.options.is_attached {
            return false;
        }
        match session.other_user().await {
            Some(client) => {
                self.print_line(&format!("waiting for an answer of {client}"));
                false
            }
            // The session declines for a run without a user.
            None => self.options.yes,
        }
    }

    /// Reports a question that no user has answered.
    pub(super) fn on_answered(&mut self, call: CallId, is_declined: bool) {
        let lines = self.declined_lines.remove(&call).filter(|_| is_declined);
        for line in lines.unwrap_or_default() {
            output::print_note(&line);
            self.lacks_approval = true;
        }
    }
}
