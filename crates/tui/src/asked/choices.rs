//! The choices under a question: their keys and what they mean, in as many rows as they take.

use super::sheet::INDENT;
use crate::cx::Look;
use crate::ink::Row;
use crate::keys::{Command, Keys};
use crate::theme::Role;

/// A choice: its key, as it is shown, and what it means in a few words and in fewer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    key: String,
    words: &'static str,
    fewer: &'static str,
}

impl Choice {
    /// A choice by a command's key.
    pub(crate) fn of(
        keys: &Keys,
        command: Command,
        words: &'static str,
        fewer: &'static str,
    ) -> Choice {
        Choice { key: shown(&keys.hint(command)), words, fewer }
    }

    /// A choice by a key that is always the same.
    pub(crate) fn by(key: &str, words: &'static str, fewer: &'static str) -> Choice {
        Choice { key: key.to_owned(), words, fewer }
    }
}

/// A key as it is pressed: `K` for `Shift+K`.
pub(crate) fn shown(written: &str) -> String {
    match written.strip_prefix("Shift+") {
        Some(letter) if letter.chars().count() == 1 => letter.to_uppercase(),
        _ => written.to_owned(),
    }
}

/// Whether the keys mean the choices now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Keyed {
    /// They do.
    Here,
    /// They are the prompt's.
    #[default]
    Elsewhere,
    /// They are a panel's or a list's, which has to be closed first.
    Behind,
}

/// Groups of choices, each beginning in a row of its own behind its label.
pub(crate) fn rows(
    groups: &[(&str, Vec<Choice>)],
    width: usize,
    keyed: Keyed,
    look: &Look,
) -> Vec<Row> {
    let (key, word) = match keyed {
        Keyed::Here => (look.style(Role::Accent).patch(look.style(Role::Strong)), Role::Text),
        Keyed::Elsewhere | Keyed::Behind => (look.style(Role::Dim), Role::Dim),
    };
    let (word, dim) = (look.style(word), look.style(Role::Dim));
    let label = |label: &str| Row::of(dim, &format!(" {label:<rest$}", rest = INDENT - 1));
    let mut rows = Vec::new();
    for (name, choices) in groups {
        let wide = |words: fn(&Choice) -> &'static str, gap: usize| -> usize {
            let each = choices.iter().map(|it| it.key.chars().count() + 1 + words(it).len() + gap);
            INDENT + each.sum::<usize>()
        };
        let few = wide(|it| it.words, 3) > width + 3;
        let gap = if few { 2 } else { 3 };
        let mut row = label(name);
        let mut first = true;
        for choice in choices {
            let words = if few { choice.fewer } else { choice.words };
            let takes = choice.key.chars().count() + 1 + words.len();
            if !first && row.width() + gap + takes > width {
                rows.push(std::mem::replace(&mut row, label("")));
                first = true;
            }
            if !first {
                row.push(word, &" ".repeat(gap));
            }
            row.push(key, &choice.key);
            row.push(word, &format!(" {words}"));
            first = false;
        }
        rows.push(row);
    }
    rows
}
