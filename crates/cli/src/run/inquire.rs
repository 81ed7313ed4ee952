//! What a call wants to know, and the list of what is to be done, as a turn shows them.

use super::Show;
use crate::args::Output;
use crate::ask::Posed;
use crate::inquiry::Form;
use crate::screen;
use windlass_engine::Handle;
use windlass_protocol::{CallId, Display, Inquiry, Op, Outcome};

impl Show {
    /// Puts what a call wants to know to the person, or says that nobody is there.
    pub(super) async fn inquire(&mut self, call: CallId, inquiries: &[Inquiry], handle: &Handle) {
        if screen::is_interactive() && self.manner.output == Output::Text {
            self.stage.end_line();
            self.questions.add(call, Posed::Inquiry(Form::new(inquiries, screen::width())));
            return;
        }
        for inquiry in inquiries {
            let question = windlass_protocol::text::one_line(&inquiry.question);
            screen::note(&format!("not answered: {question} Nobody is here to ask"));
        }
        handle.send(Op::Reply { call, replies: Vec::new() }).await;
    }

    /// Shows a list of what is to be done, as it stands now.
    pub(super) fn tell_list(&mut self, outcome: &Outcome) {
        let Outcome::Completed { output } = outcome else { return };
        let Display::Checklist { items } = &output.display else { return };
        if !self.direct {
            let lines: Vec<String> = items.iter().map(|item| format!("  {item}")).collect();
            self.tell(&lines.join("\n"));
        }
    }
}
