//! What is different from what was trusted, in lines for a person.
//!
//! Names and texts come from the repository. A name is escaped, so that it is one line and looks
//! like nothing else; a text is split at line feeds alone, so that every line of it has its sign in
//! front. Control characters are for the screen to show.

use super::survey::{Kind, Piece, Pieces, has_settings};
use crate::config::wishes;
use similar::TextDiff;
use std::time::Duration;

/// How long a comparison may look for the shortest way to say it.
const PATIENCE: Duration = Duration::from_millis(200);

/// A name as it is shown.
pub(super) fn shown(name: &str) -> String {
    name.escape_debug().to_string()
}

/// What a piece is called where all are listed.
pub(super) fn title(name: &str, piece: &Piece) -> String {
    let name = shown(name);
    match piece.kind {
        Kind::File => name,
        Kind::Program => format!("{name} (a program)"),
        Kind::Link => {
            let target = piece.text.as_deref().map_or_else(|| "elsewhere".to_owned(), shown);
            format!("{name} (a link to {target}, which is not followed)")
        }
    }
}

/// What a file with settings would set. A link sets nothing; of one that was not kept nobody knows.
fn settings(name: &str, piece: &Piece) -> Option<Vec<String>> {
    match piece.kind {
        Kind::Link => Some(Vec::new()),
        Kind::File | Kind::Program => Some(wishes(name, piece.text.as_deref()?)),
    }
}

/// The lines that are compared. Settings are compared as settings, never as a text: a key that
/// stands in a config is not shown.
fn compared(name: &str, piece: &Piece) -> Option<Vec<String>> {
    if has_settings(name) {
        return settings(name, piece);
    }
    Some(piece.text.as_deref()?.split('\n').map(str::to_owned).collect())
}

/// The difference, line by line.
pub(super) fn lines(before: &Pieces, now: &Pieces) -> Vec<String> {
    let mut lines = Vec::new();
    let removed = before.iter().filter(|(name, _)| !now.contains_key(*name));
    lines.extend(removed.map(|(name, piece)| format!("removed: {}", title(name, piece))));
    for (name, piece) in now {
        match before.get(name) {
            None => lines.push(format!("added: {}", title(name, piece))),
            Some(old) if old.kind == piece.kind && old.digest == piece.digest => {}
            Some(old) => changed(name, old, piece, &mut lines),
        }
    }
    lines
}

fn changed(name: &str, old: &Piece, new: &Piece, lines: &mut Vec<String>) {
    lines.push(match (old.kind, new.kind) {
        (old, new) if old == new => format!("changed: {}", shown(name)),
        (Kind::Link, Kind::File | Kind::Program) => {
            format!("changed: {} is no longer a link", shown(name))
        }
        (Kind::File | Kind::Program, Kind::Link) => format!("changed: {}", title(name, new)),
        (Kind::File, _) => format!("changed: {} can now be run as a program", shown(name)),
        (Kind::Program | Kind::Link, _) => {
            format!("changed: {} can no longer be run as a program", shown(name))
        }
    });
    if old.digest == new.digest {
        return;
    }
    let Some((before, now)) = compared(name, old).zip(compared(name, new)) else {
        lines.push("  (it is no text, or too long to be compared; look at it)".to_owned());
        return;
    };
    let told = unified(&slices(&before), &slices(&now));
    if told.is_empty() {
        lines.push("  (in what it does not set, such as comments, or in a key)".to_owned());
    }
    lines.extend(told.into_iter().map(|line| format!("  {line}")));
}

fn slices(lines: &[String]) -> Vec<&str> {
    lines.iter().map(String::as_str).collect()
}

fn unified(old: &[&str], new: &[&str]) -> Vec<String> {
    let diff =
        TextDiff::configure().newline_terminated(false).timeout(PATIENCE).diff_slices(old, new);
    let text = diff.unified_diff().context_radius(3).to_string();
    text.split_terminator('\n').map(str::to_owned).collect()
}
