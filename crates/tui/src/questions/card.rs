//! The question card: a headline rule, quoted content behind a margin, and the choices.

use super::answer_list::{self, AnswerRow, RowCursor};
use super::choices::{self, AnswerKeyChoice, KeyFocus};
use super::question_content::{self, INDENT_WIDTH, QuestionContentPart};
use crate::keys::UiCommand;
use crate::safe_line::SafeLine;
use crate::text_input::TextInput;
use crate::theme::{StyleRole, Theme};
use crate::ui_context::Appearance;
use crate::wrap::{self, WrapMode};

/// The number of spare rows from which a blank row precedes the choices.
const SPARE_ROWS_FOR_BLANK: usize = 4;
/// The rows of content that the answer list must leave, unless there is less content.
const MIN_CONTENT_ROWS: usize = 5;

/// Rendered `QuestionContentPart`s, with the inputs they were rendered for.
#[derive(Clone, Debug, Default)]
pub(crate) struct RenderedQuestionContent {
    rendered_for: Option<(usize, Theme, bool)>,
    parts: Vec<Vec<SafeLine>>,
    /// The same parts with diffs reduced to their changed lines.
    reduced_parts: Vec<Vec<SafeLine>>,
}

impl RenderedQuestionContent {
    /// Renders the parts, in full and reduced, or returns the cached rows if width, theme and ASCII
    /// mode are unchanged.
    pub(crate) fn render(
        &mut self,
        parts: &[QuestionContentPart],
        width: usize,
        appearance: &Appearance,
    ) -> [&[Vec<SafeLine>]; 2] {
        let render_key = Some((width, appearance.theme.clone(), appearance.ascii));
        if self.rendered_for != render_key {
            self.parts = parts.iter().map(|part| part.render(width, appearance)).collect();
            let reduced = parts.iter().zip(&self.parts).map(|(part, rows)| {
                part.reduced().map_or_else(|| rows.clone(), |part| part.render(width, appearance))
            });
            self.reduced_parts = reduced.collect();
            self.rendered_for = render_key;
        }
        [&self.parts, &self.reduced_parts]
    }
}

/// The content of a question card; `RenderedQuestionContent` are passed separately.
pub(crate) struct QuestionCard<'a> {
    pub(crate) headline: String,
    pub(crate) role: StyleRole,
    pub(crate) warning: Option<&'a str>,
    /// The position in the queue, such as `1 of 3`, if there are several.
    pub(crate) position_label: Option<String>,
    pub(crate) key_focus: KeyFocus,
    /// The rows of each option, and the index of the selected one.
    pub(crate) options: (Vec<Vec<SafeLine>>, usize),
    /// A note above the choices.
    pub(crate) note: Option<String>,
    /// The answers of the UI itself, as a list.
    pub(crate) answers: (Vec<AnswerRow>, RowCursor),
    pub(crate) choices: Vec<(&'static str, Vec<AnswerKeyChoice>)>,
    /// The open text input with its label.
    pub(crate) text_input: Option<(&'static str, &'a TextInput)>,
}

/// The rows of a question card.
pub(crate) struct RenderedCard {
    pub(crate) rows: Vec<SafeLine>,
    /// The position of the cursor as column and row, if there is a text input.
    pub(crate) cursor: Option<(usize, usize)>,
    /// True if the answers have numbers.
    pub(crate) shows_numbers: bool,
}

impl QuestionCard<'_> {
    /// Renders at most `max_rows` rows.
    pub(crate) fn render(
        &self,
        [parts, reduced_parts]: [&[Vec<SafeLine>]; 2],
        (width, max_rows): (usize, usize),
        appearance: &Appearance,
    ) -> RenderedCard {
        let mut rows = vec![self.headline_rule(width, appearance)];
        if let Some(warning) = self.warning {
            let mark = if appearance.ascii { "! " } else { "⚠ " };
            let style = appearance.style(self.role).patch(appearance.style(StyleRole::Strong));
            let row = SafeLine::styled(style, mark).with_text(style, warning);
            let wrapped = wrap::wrap(&row, width.saturating_sub(INDENT_WIDTH), WrapMode::Words, 0);
            rows.extend(wrapped.into_iter().map(|row| {
                let mut indented =
                    SafeLine::styled(appearance.style(self.role), &" ".repeat(INDENT_WIDTH));
                row.spans().for_each(|(style, text)| indented.push_text(style, text));
                indented
            }));
        }
        let content_rows: usize = parts.iter().chain(&self.options.0).map(Vec::len).sum();
        let (mut footer, shows_numbers) = self.render_answers(
            max_rows.saturating_sub(rows.len() + content_rows.min(MIN_CONTENT_ROWS)),
            width,
            appearance,
        );
        let mut cursor = None;
        if let Some((label, input)) = self.text_input {
            let label =
                SafeLine::styled(appearance.style(StyleRole::Dim), &format!(" {label:<4} "));
            let prompt_mark = if appearance.ascii { "> " } else { "› " };
            let mut row = label.with_text(appearance.style(StyleRole::Accent), prompt_mark);
            let start = row.width();
            let (input_row, column) = input.render(width.saturating_sub(start), appearance);
            input_row.spans().for_each(|(style, text)| row.push_text(style, text));
            footer.insert(0, row);
            cursor = Some(start + column);
        }
        if let Some(note) = &self.note {
            let row = SafeLine::styled(
                appearance.style(StyleRole::Warning),
                &format!("{}{note}", " ".repeat(INDENT_WIDTH)),
            );
            footer.splice(0..0, wrap::wrap(&row, width, WrapMode::Words, INDENT_WIDTH));
        }
        if rows.len() + content_rows + footer.len() + SPARE_ROWS_FOR_BLANK <= max_rows {
            footer.insert(0, SafeLine::default());
        }
        let available = max_rows.saturating_sub(rows.len() + footer.len());
        // Context lines of a diff give way to its changed lines.
        let parts = if content_rows > available { reduced_parts } else { parts };
        // The options take precedence over the full text of the question.
        let min_part_rows = available.saturating_sub(self.options.0.len()).clamp(2, 3);
        let min_part_rows = parts.iter().map(Vec::len).sum::<usize>().min(min_part_rows);
        let options =
            self.visible_options(available.saturating_sub(min_part_rows), width, appearance);
        let available = available.saturating_sub(options.len());
        let key = choices::pressed_key_label(&appearance.key_map.key_hint(UiCommand::ShowFullView));
        rows.extend(question_content::fit_parts(
            parts,
            available,
            &format!("; {key} to view all"),
            appearance,
        ));
        rows.extend(options);
        let blank = usize::from(footer.first().is_some_and(|row| row.width() == 0));
        let cursor = cursor.map(|column| (column, rows.len() + blank));
        rows.extend(footer);
        RenderedCard { rows, cursor, shows_numbers }
    }

    /// Renders the answers as a list, or in as few rows as possible if the list takes more than
    /// `max_rows`, and the other keys below. Returns true if the answers have numbers.
    fn render_answers(
        &self,
        max_rows: usize,
        width: usize,
        appearance: &Appearance,
    ) -> (Vec<SafeLine>, bool) {
        let (answers, cursor) = &self.answers;
        let focus = self.key_focus;
        let choices = choices::render_choices(&self.choices, width, focus, appearance);
        if answers.is_empty() {
            return (choices, false);
        }
        let mut rows = answer_list::render_rows(answers, *cursor, width, focus, appearance);
        if rows.len() + choices.len() <= max_rows {
            rows.extend(choices);
            return (rows, true);
        }
        (answer_list::render_compact(answers, *cursor, width, focus, appearance), false)
    }

    /// Returns as many option rows as fit, including the selected one. Omitted options are counted,
    /// and truncated ones are marked.
    fn visible_options(
        &self,
        max_rows: usize,
        width: usize,
        appearance: &Appearance,
    ) -> Vec<SafeLine> {
        let (options, selected) = &self.options;
        if options.iter().map(Vec::len).sum::<usize>() <= max_rows {
            return options.iter().flatten().cloned().collect();
        }
        let max_rows =
            if options.len() <= max_rows { max_rows } else { max_rows.saturating_sub(1).max(1) };
        let first = selected.saturating_sub(max_rows - 1);
        let ellipsis = wrap::ellipsis(appearance);
        let first_row = |rows: &Vec<SafeLine>| match rows.as_slice() {
            [] => None,
            [row] => Some(row.clone()),
            [row, ..] => Some(wrap::truncate(
                &row.clone().with_text(appearance.style(StyleRole::Dim), ellipsis),
                width,
                appearance,
            )),
        };
        let mut rows: Vec<SafeLine> =
            options.iter().skip(first).take(max_rows).filter_map(first_row).collect();
        let below = options.len().saturating_sub(first + rows.len());
        let omitted = [(first, "above"), (below, "below")];
        let omitted = omitted.iter().filter(|(count, _)| *count > 0);
        let omitted: Vec<String> =
            omitted.map(|(count, side)| format!("{count} more {side}")).collect();
        if !omitted.is_empty() {
            let text = format!("{}{}", " ".repeat(INDENT_WIDTH), omitted.join(", "));
            rows.push(SafeLine::styled(appearance.style(StyleRole::Warning), &text));
        }
        rows
    }

    fn headline_rule(&self, width: usize, appearance: &Appearance) -> SafeLine {
        let line = if appearance.ascii { "-" } else { "─" };
        let border = appearance.style(StyleRole::Border);
        let mut notes: Vec<String> = self.position_label.iter().cloned().collect();
        match self.key_focus {
            KeyFocus::Here => {}
            KeyFocus::Prompt => {
                notes.insert(
                    0,
                    format!(
                        "press {} to answer",
                        appearance.key_map.key_hint(UiCommand::FocusQuestion)
                    ),
                );
            }
            KeyFocus::Covered => notes.insert(0, "waiting".to_owned()),
        }
        let separator = if appearance.ascii { " - " } else { " · " };
        let notes = notes.join(separator);
        let style = appearance.style(self.role).patch(appearance.style(StyleRole::Strong));
        let row = SafeLine::styled(border, &format!("{line}{line} "))
            .with_text(style, &self.headline)
            .with_text(border, " ");
        let notes_width = if notes.is_empty() { 0 } else { notes.chars().count() + 4 };
        let fill = width.saturating_sub(row.width() + notes_width);
        let row = row.with_text(border, &line.repeat(fill));
        let row = match notes.is_empty() {
            true => row,
            false => row
                .with_text(appearance.style(StyleRole::Dim), &format!(" {notes} "))
                .with_text(border, &line.repeat(2)),
        };
        wrap::truncate(&row, width, appearance)
    }
}
