//! The choices below a question: keys and labels, wrapped to as many rows as needed.

use super::question_content::INDENT_WIDTH;
use crate::keys::{KeyMap, UiCommand};
use crate::safe_line::SafeLine;
use crate::theme::StyleRole;
use crate::ui_context::Appearance;

/// A choice: its key as displayed, a label and a shorter label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AnswerKeyChoice {
    key: String,
    label: String,
    short_label: &'static str,
}

impl AnswerKeyChoice {
    /// Creates a choice with the key of a `UiCommand`.
    pub(crate) fn for_command(
        keys: &KeyMap,
        command: UiCommand,
        label: &str,
        short_label: &'static str,
    ) -> AnswerKeyChoice {
        let key = pressed_key_label(&keys.key_hint(command));
        AnswerKeyChoice { key, label: label.to_owned(), short_label }
    }

    /// Creates a choice with a fixed key.
    pub(crate) fn for_key(key: &str, label: &str, short_label: &'static str) -> AnswerKeyChoice {
        AnswerKeyChoice { key: key.to_owned(), label: label.to_owned(), short_label }
    }
}

/// Returns the key as it is pressed: `K` for `Shift+K`.
pub(crate) fn pressed_key_label(key_label: &str) -> String {
    match key_label.strip_prefix("Shift+") {
        Some(letter) if letter.chars().count() == 1 => letter.to_uppercase(),
        _ => key_label.to_owned(),
    }
}

/// The component that receives the keys; `render_choices` dims the choices unless it is the
/// question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum KeyFocus {
    /// The question receives them.
    Here,
    /// The prompt receives them.
    #[default]
    Prompt,
    /// A panel or list in front receives them, and must be closed first.
    Covered,
}

/// Renders groups of choices; each group starts on a new row after its label.
pub(crate) fn render_choices(
    groups: &[(&str, Vec<AnswerKeyChoice>)],
    width: usize,
    key_focus: KeyFocus,
    appearance: &Appearance,
) -> Vec<SafeLine> {
    let (key_style, text_role) = match key_focus {
        KeyFocus::Here => (
            appearance.style(StyleRole::Accent).patch(appearance.style(StyleRole::Strong)),
            StyleRole::Text,
        ),
        KeyFocus::Prompt | KeyFocus::Covered => (appearance.style(StyleRole::Dim), StyleRole::Dim),
    };
    let (text_style, dim) = (appearance.style(text_role), appearance.style(StyleRole::Dim));
    let group_label = |label: &str| {
        SafeLine::styled(dim, &format!(" {label:<label_width$}", label_width = INDENT_WIDTH - 1))
    };
    let mut rows = Vec::new();
    for (name, choices) in groups {
        let widths =
            choices.iter().map(|choice| choice.key.chars().count() + 1 + choice.label.len() + 3);
        let use_short = INDENT_WIDTH + widths.sum::<usize>() > width + 3;
        let gap = if use_short { 2 } else { 3 };
        let mut row = group_label(name);
        let mut first = true;
        for choice in choices {
            let text = if use_short { choice.short_label } else { choice.label.as_str() };
            let choice_width = choice.key.chars().count() + 1 + text.len();
            if !first && row.width() + gap + choice_width > width {
                rows.push(std::mem::replace(&mut row, group_label("")));
                first = true;
            }
            if !first {
                row.push_text(text_style, &" ".repeat(gap));
            }
            row.push_text(key_style, &choice.key);
            row.push_text(text_style, &format!(" {text}"));
            first = false;
        }
        rows.push(row);
    }
    rows
}
