//! Permission requests and user questions as text. Only a complete word answers one; Enter alone
//! never does.

use super::state::{LinearPendingResponse, LinearUi, MAX_READ_LINES};
use crate::questions::form::{UserQuestionForm, is_plan_approval};
use crate::questions::permission::{PermissionQuestion, QuestionKeyOutcome};
use crate::questions::question_content::{QuestionContentPart, QuotedText};
use crate::questions::queue::{PendingQuestion, QuestionQueueChange};
use crate::render;
use windlass_protocol::display_text::pluralize;
use windlass_protocol::frontend_messages::FrontendRequest;
use windlass_protocol::{ApprovalScope, FactRecord, PermissionAnswer, SessionOp};

impl LinearUi {
    /// Updates the question queue from a `FactRecord`: a new question, or an answer given elsewhere.
    pub(super) fn on_question_record(&mut self, record: &FactRecord) {
        let previous_serial = self.questions.current_serial();
        match self.questions.on_record(record, &self.state) {
            QuestionQueueChange::None => {}
            QuestionQueueChange::PreApproved(call, asked) => {
                let (answer, asked) = (PermissionAnswer::Once, Some(asked));
                self.send_op(SessionOp::AnswerPermission { call, answer, asked });
            }
            QuestionQueueChange::QuestionAdded
                if self.questions.current_serial() == previous_serial =>
            {
                let more = pluralize(self.questions.len() - 1, "more question");
                self.print(&format!("{more} after this one"));
            }
            QuestionQueueChange::QuestionAdded => {}
        }
        self.announce_next_question(previous_serial);
    }

    /// Reads out the current question if it differs from the one with serial `previous_serial`.
    pub(super) fn announce_next_question(&mut self, previous_serial: Option<u64>) {
        if self.questions.current_serial() == previous_serial {
            return;
        }
        if previous_serial.is_some() {
            self.print("The previous question no longer needs an answer.");
        }
        self.read_question();
    }

    /// Reads out the question to answer now, if there is one. An empty input line repeats it.
    pub(super) fn read_question(&mut self) {
        let Some(question) = self.questions.first().map(|first| first.question.clone()) else {
            return;
        };
        let position = self
            .questions
            .position_label()
            .map_or(String::new(), |position| format!(" {position}"));
        match question {
            PendingQuestion::Permission(permission) => self.read_permission(&permission, &position),
            PendingQuestion::UserQuestion(form) => self.read_form(&form, &position),
        }
    }

    fn read_permission(&mut self, permission: &PermissionQuestion, position: &str) {
        self.print(&format!("question{position}: {}?", permission.headline));
        if let Some(warning) = &permission.warning {
            self.print(warning);
        }
        permission.parts.iter().for_each(|part| self.read_part(part, MAX_READ_LINES));
        let scope = permission.lasting_scope();
        let lasting_choices = match permission.accepts(&PermissionAnswer::Session) {
            true => format!(
                "; s to allow {scope} this session; p to always allow {scope} in this project"
            ),
            false => String::new(),
        };
        self.print(&format!("Answer y to allow once{lasting_choices}"));
        let accepts_kind = |scope| permission.accepts(&PermissionAnswer::Kind { scope });
        let kind = permission.describe_kind();
        match (accepts_kind(ApprovalScope::Session), accepts_kind(ApprovalScope::Project)) {
            (true, true) => self.print(&format!("k to allow {kind}; kp always in this project")),
            (true, false) => self.print(&format!("k to allow {kind}")),
            (false, true) => self.print(&format!("kp to allow {kind}")),
            (false, false) => {}
        }
        self.print("n to deny; n and a reason to tell the model why; all to read the full request");
    }

    fn read_form(&mut self, form: &UserQuestionForm, position: &str) {
        let Some(user_question) = form.current_question() else { return };
        let page = form
            .page_label()
            .map_or(String::new(), |page| format!(", {}", page.replace('/', " of ")));
        self.print(&format!("question{position}: {}{page}", form.headline()));
        form.question_parts().iter().for_each(|part| self.read_part(part, usize::MAX));
        self.print("choices:");
        self.print_quoted(&form.numbered_options(), usize::MAX);
        let numbers = if user_question.allow_multiple { "one or more numbers" } else { "a number" };
        let custom = if user_question.allow_custom { ", or in your own words" } else { "" };
        let skip =
            if is_plan_approval(user_question) { "n to keep planning" } else { "n for no answer" };
        self.print(&format!("Answer with {numbers}{custom}; {skip}"));
    }

    /// Reads out a `QuestionContentPart` of a question. A labeled part with one line takes one line of
    /// output.
    fn read_part(&mut self, part: &QuestionContentPart, max_lines: usize) {
        let (text, label) = (spoken_text(&part.text), part.label);
        match (label, text.trim_end().lines().count()) {
            ("", _) => self.print_quoted(&text, max_lines),
            (_, 1) => self.print(&format!("{label}: {}", text.trim_end())),
            _ => {
                self.print(&format!("{label}:"));
                self.print_quoted(&text, max_lines);
            }
        }
    }

    /// Interprets a line as the answer to the current question; `all` reads out the full request.
    pub(super) fn answer_question(&mut self, line: &str) {
        let Some(first) = self.questions.first_mut() else { return };
        let (call, asked) = (first.call, Some(first.asked));
        let action = match &mut first.question {
            PendingQuestion::Permission(permission) if line == "all" => {
                let parts = permission.parts.clone();
                return parts.iter().for_each(|part| self.read_part(part, usize::MAX));
            }
            PendingQuestion::Permission(permission) => {
                let answer = parse_answer(line).filter(|answer| permission.accepts(answer));
                answer.map_or(QuestionKeyOutcome::Ignored, |answer| {
                    QuestionKeyOutcome::Answer(SessionOp::AnswerPermission { call, answer, asked })
                })
            }
            PendingQuestion::UserQuestion(form) => form
                .answer_from_line(line)
                .map(|answers| SessionOp::AnswerQuestion { call, answers, asked }),
        };
        match (action, self.state.session) {
            (QuestionKeyOutcome::Answer(op), Some(session)) => {
                let id = self.send_request_with_id(
                    FrontendRequest::SessionOp { session, id: None, op },
                    LinearPendingResponse::FailureOnly,
                );
                self.questions.mark_answered(id);
                self.read_question();
            }
            (QuestionKeyOutcome::Handled, _) => self.read_question(),
            _ => self
                .print("Invalid answer; nothing was sent. Press Enter to read the question again."),
        }
    }
}

/// Returns quoted text in a form suited to reading aloud: a diff goes through `describe_diff`.
fn spoken_text(quoted: &QuotedText) -> String {
    match quoted {
        QuotedText::Diff(text) => render::describe_diff(text),
        QuotedText::Command(text)
        | QuotedText::Markdown(text)
        | QuotedText::Question(text)
        | QuotedText::Prose(text) => text.clone(),
    }
}

/// Parses a typed line into a `PermissionAnswer`.
fn parse_answer(line: &str) -> Option<PermissionAnswer> {
    let (word, reason) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let reason = Some(reason.trim().to_owned()).filter(|reason| !reason.is_empty());
    match (word, reason) {
        ("y" | "yes", None) => Some(PermissionAnswer::Once),
        ("s", None) => Some(PermissionAnswer::Session),
        ("p", None) => Some(PermissionAnswer::Project),
        ("k", None) => Some(PermissionAnswer::Kind { scope: ApprovalScope::Session }),
        ("kp", None) => Some(PermissionAnswer::Kind { scope: ApprovalScope::Project }),
        ("n" | "no", reason) => Some(PermissionAnswer::No { reason }),
        _ => None,
    }
}
