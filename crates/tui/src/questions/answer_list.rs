//! The answers to a question as a list: numbered rows with a label and a key, which the user can
//! walk through.
//!
//! No row is selected at first, so that Enter alone answers nothing.

use super::choices::{self, AnswerKeyChoice, KeyFocus};
use super::question_content::INDENT_WIDTH;
use crate::keys::{KeyScope, UiCommand};
use crate::safe_line::SafeLine;
use crate::theme::StyleRole;
use crate::ui_context::Appearance;
use crate::wrap::{self, WrapMode};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// One answer of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AnswerRow {
    /// The key that gives this answer, as displayed.
    pub(crate) key: String,
    /// The answer with its scope, in words.
    pub(crate) label: String,
    /// The label on a screen without room for the list.
    pub(crate) short_label: &'static str,
}

/// The row that the user walked to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowCursor {
    pub(crate) row: Option<usize>,
}

/// The effect of a key on a `RowCursor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowKeyOutcome {
    /// The key has no meaning here.
    Ignored,
    /// The cursor moved, or Enter was pressed with no row selected.
    Handled,
    /// The user chose this row, by its number or with Enter.
    Chosen(usize),
}

impl RowCursor {
    /// Handles a key: a number chooses a row, arrows walk, Enter chooses the row walked to.
    pub(crate) fn on_key(
        &mut self,
        key: &KeyEvent,
        row_count: usize,
        appearance: &Appearance,
    ) -> RowKeyOutcome {
        let last = row_count.saturating_sub(1);
        if let (KeyCode::Char(digit @ '1'..='9'), KeyModifiers::NONE) = (key.code, key.modifiers) {
            let index = digit.to_digit(10).and_then(|digit| usize::try_from(digit - 1).ok());
            let Some(index) = index.filter(|index| *index < row_count) else {
                return RowKeyOutcome::Ignored;
            };
            self.row = Some(index);
            return RowKeyOutcome::Chosen(index);
        }
        match appearance.key_map.command_for(KeyScope::Panel, key) {
            Some(UiCommand::RowUp) => {
                self.row = Some(self.row.map_or(last, |row| row.saturating_sub(1)));
                RowKeyOutcome::Handled
            }
            Some(UiCommand::RowDown) => {
                self.row = Some(self.row.map_or(0, |row| (row + 1).min(last)));
                RowKeyOutcome::Handled
            }
            Some(UiCommand::ChooseRow) => {
                self.row.map_or(RowKeyOutcome::Handled, RowKeyOutcome::Chosen)
            }
            _ => RowKeyOutcome::Ignored,
        }
    }

    /// Returns the mark in front of a row.
    pub(crate) fn mark(self, index: usize, appearance: &Appearance) -> &'static str {
        match (self.row == Some(index), appearance.ascii) {
            (true, false) => "›",
            (true, true) => ">",
            (false, _) => " ",
        }
    }
}

/// Renders the answers one per row: `› 1. Yes, once (y)`.
pub(crate) fn render_rows(
    rows: &[AnswerRow],
    cursor: RowCursor,
    width: usize,
    key_focus: KeyFocus,
    appearance: &Appearance,
) -> Vec<SafeLine> {
    let has_focus = key_focus == KeyFocus::Here;
    let dim = appearance.style(StyleRole::Dim);
    let key_style = match has_focus {
        true => appearance.style(StyleRole::Accent).patch(appearance.style(StyleRole::Strong)),
        false => dim,
    };
    let mut lines = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let role = match (has_focus, cursor.row == Some(index)) {
            (false, _) => StyleRole::Dim,
            (true, true) => StyleRole::Strong,
            (true, false) => StyleRole::Text,
        };
        let number = format!(" {} {}. ", cursor.mark(index, appearance), index + 1);
        let line = SafeLine::styled(if has_focus { key_style } else { dim }, &number)
            .with_text(appearance.style(role), &row.label)
            .with_text(dim, " (")
            .with_text(key_style, &row.key)
            .with_text(dim, ")");
        let rows = wrap::wrap(&line, width, WrapMode::Words, INDENT_WIDTH).into_iter();
        let is_selected = has_focus && cursor.row == Some(index);
        lines.extend(rows.map(|row| match is_selected {
            true => mark_selected(row, width, appearance),
            false => row,
        }));
    }
    lines
}

/// Returns a row of the selected answer, with the background of selected rows.
pub(crate) fn mark_selected(row: SafeLine, width: usize, appearance: &Appearance) -> SafeLine {
    let style = appearance.style(StyleRole::Selected);
    let mut row = row.with_base_style(style);
    row.pad_to(style, width);
    row
}

/// Renders the answers in as few rows as possible: `y once  n deny`.
pub(crate) fn render_compact(
    rows: &[AnswerRow],
    cursor: RowCursor,
    width: usize,
    key_focus: KeyFocus,
    appearance: &Appearance,
) -> Vec<SafeLine> {
    let choice = |(index, row): (usize, &AnswerRow)| {
        let key = format!("{}{}", cursor.mark(index, appearance).trim(), row.key);
        AnswerKeyChoice::for_key(&key, row.short_label, row.short_label)
    };
    let choices: Vec<AnswerKeyChoice> = rows.iter().enumerate().map(choice).collect();
    choices::render_choices(&[("", choices)], width, key_focus, appearance)
}
