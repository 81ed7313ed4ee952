//! The rendered options and answers of a user question form.

use super::UserQuestionForm;
use crate::questions::answer_list;
use crate::questions::question_content::{self, MARGIN_WIDTH, QuoteMarginStyle};
use crate::safe_line::SafeLine;
use crate::theme::StyleRole;
use crate::ui_context::Appearance;
use crate::wrap::{self, WrapMode};
use windlass_protocol::display_text::to_one_line;

impl UserQuestionForm {
    /// Renders the rows of each option, or of each answer on the review page.
    pub(crate) fn option_rows(&self, width: usize, appearance: &Appearance) -> Vec<Vec<SafeLine>> {
        let Some(user_question) = self.current_question() else {
            return self.review_rows(width, appearance);
        };
        let reply = self.replies.get(self.page).cloned().unwrap_or_default();
        let mut rows: Vec<Vec<SafeLine>> = Vec::new();
        for (index, option) in user_question.options.iter().enumerate() {
            let label = to_one_line(&option.label);
            let chosen = reply.chosen_options.contains(&index);
            let description = to_one_line(&option.description);
            rows.push(self.render_option(
                index,
                chosen,
                (&label, &description),
                (width, appearance),
            ));
        }
        if user_question.allow_custom {
            let own_text = to_one_line(reply.own_text.as_deref().unwrap_or_default());
            let chosen = reply.own_text.is_some();
            let index = user_question.options.len();
            rows.push(self.render_option(
                index,
                chosen,
                ("in your own words", &own_text),
                (width, appearance),
            ));
        }
        rows
    }

    fn render_option(
        &self,
        index: usize,
        chosen: bool,
        (label, description): (&str, &str),
        (width, appearance): (usize, &Appearance),
    ) -> Vec<SafeLine> {
        let is_selected = self.cursor.row == Some(index);
        let cursor = self.cursor.mark(index, appearance);
        let mark = match (
            chosen,
            self.current_question().is_some_and(|user_question| user_question.allow_multiple),
        ) {
            (true, _) => "x",
            (false, true) if appearance.ascii => ".",
            (false, true) => "·",
            (false, false) => " ",
        };
        let role = if is_selected { StyleRole::Strong } else { StyleRole::Text };
        let mut row = SafeLine::styled(appearance.style(role), label);
        if !description.is_empty() {
            let role = if is_selected { StyleRole::Text } else { StyleRole::Dim };
            row.push_text(appearance.style(role), &format!("  {description}"));
        }
        let text_width = width.saturating_sub(MARGIN_WIDTH).max(8);
        let lines = wrap::wrap(&row, text_width, WrapMode::Words, 2);
        let label = match mark {
            " " => format!("{cursor}{}.", index + 1),
            _ => format!("{cursor}{} {mark}", index + 1),
        };
        let number_style =
            appearance.style(StyleRole::Accent).patch(appearance.style(StyleRole::Strong));
        let rows = lines.iter().enumerate().map(|(line_index, line)| {
            let label = if line_index == 0 { label.as_str() } else { "" };
            let edge = QuoteMarginStyle::LineStart;
            let row = question_content::with_margin(label, edge, line, appearance)
                .with_range_style(1..1 + label.len(), number_style);
            if is_selected { answer_list::mark_selected(row, width, appearance) } else { row }
        });
        rows.collect()
    }

    /// Renders each question with its answer.
    fn review_rows(&self, width: usize, appearance: &Appearance) -> Vec<Vec<SafeLine>> {
        let text_width = width.saturating_sub(MARGIN_WIDTH).max(8);
        let numbered = self.questions.iter().zip(self.answers()).enumerate();
        let rows = numbered.map(|(index, (user_question, answers))| {
            let header = to_one_line(&user_question.header);
            let (text, role) = match answers.is_empty() {
                true => ("no answer".to_owned(), StyleRole::Dim),
                false => (to_one_line(&answers.join(", ")), StyleRole::Strong),
            };
            let row = SafeLine::styled(appearance.style(StyleRole::Text), &format!("{header}  "))
                .with_text(appearance.style(role), &text);
            let lines = wrap::wrap(&row, text_width, WrapMode::Words, 2);
            let rows = lines.iter().enumerate().map(|(line_index, line)| {
                let label = if line_index == 0 { format!(" {}", index + 1) } else { String::new() };
                question_content::with_margin(&label, QuoteMarginStyle::LineStart, line, appearance)
            });
            rows.collect()
        });
        rows.collect()
    }
}
