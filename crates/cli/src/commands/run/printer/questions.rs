//! Prints user questions and todo lists during a turn.

use super::super::run_session::RunSession;
use super::TurnPrinter;
use crate::terminal::output;
use crate::terminal::question_queue::TerminalQuestion;
use crate::terminal::user_question::TerminalQuestionForm;
use windlass_protocol::{CallId, CallOutcome, LogSeq, OutputDisplay, SessionOp, UserQuestion};
use windlass_toolkit::UserPresence;

impl TurnPrinter {
    /// Puts the `QuestionAsked` of a tool to the user; without a user, prints a note.
    pub(super) async fn ask_user(
        &mut self,
        (call, asked): (CallId, LogSeq),
        questions: &[UserQuestion],
        session: &RunSession,
    ) {
        if output::user_presence(self.options.output) == UserPresence::Present {
            self.progress.end_line();
            self.questions.add(
                (call, asked),
                TerminalQuestion::UserQuestion(TerminalQuestionForm::new(
                    questions,
                    output::terminal_width(),
                )),
            );
            return;
        }
        if self.options.yes && questions.iter().all(|question| question.is_permission) {
            let answer = |question: &UserQuestion| {
                question.options.iter().take(1).map(|option| option.label.clone()).collect()
            };
            let answers = questions.iter().map(answer).collect();
            let op = SessionOp::AnswerQuestion { call, answers, asked: Some(asked) };
            session.queue_op(op).await;
            return;
        }
        let line = |question: &UserQuestion| {
            let question = windlass_protocol::display_text::to_one_line(&question.question);
            format!("not answered: {question} No user is available")
        };
        self.declined_lines.insert(call, questions.iter().map(line).collect());
        if self.declines_itself(session).await {
            let answers = Vec::new();
            let op = SessionOp::AnswerQuestion { call, answers, asked: Some(asked) };
            session.queue_op(op).await;
        }
    }

    /// Prints the current todo list, if the outcome displays as a `Checklist`.
    pub(super) fn print_todo_list(&mut self, outcome: &CallOutcome) {
        let CallOutcome::Completed { output } = outcome else { return };
        let OutputDisplay::Checklist { items } = &output.display else { return };
        if !self.is_direct_call {
            let lines: Vec<String> = items.iter().map(|item| format!("  {item}")).collect();
            self.print_line(&lines.join("\n"));
        }
    }
}
