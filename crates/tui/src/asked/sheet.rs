//! A sheet: what a question shows of what others wrote, in parts with a label each.
//!
//! Every row of it stands behind the same margin, in the same column, so that nothing a model wrote
//! looks like a line or a choice of ours.

use crate::cx::Look;
use crate::ink::Row;
use crate::lay;
use crate::theme::Role;
use crate::wrap::{self, Break};
use windlass_protocol::text::counted;

/// How wide a label is, and how wide everything is that stands before the text.
const LABEL: usize = 4;
pub(crate) const INDENT: usize = LABEL + 2;
pub(crate) const MARGIN: usize = INDENT + 2;

/// Wider than any line: for what is broken here, so that a line that goes on is marked.
const UNBROKEN: usize = 1 << 20;

/// A text of others, and how it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A command for a shell, kept line by line.
    Command(String),
    /// A change in unified form.
    Diff(String),
    /// A plan and the like.
    Markdown(String),
    /// Prose.
    Words(String),
}

/// A part of a sheet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// What it is, in at most four letters.
    pub(crate) label: &'static str,
    pub(crate) source: Source,
}

impl Part {
    pub(crate) fn new(label: &'static str, source: Source) -> Part {
        Part { label, source }
    }

    /// All its rows, each behind the margin.
    pub(crate) fn lay(&self, width: usize, look: &Look) -> Vec<Row> {
        let room = width.saturating_sub(MARGIN).max(8);
        let rows = match &self.source {
            Source::Command(text) => command(text, room, look),
            Source::Diff(text) => lay::diff(text, room, look),
            Source::Markdown(text) => lay::markdown(text, room, look),
            Source::Words(text) => words(text, room, look),
        };
        let mut behind = Vec::new();
        for row in rows {
            // A row is one row of the screen whatever laid it out.
            for (nth, piece) in wrap::wrap(&row, room, Break::Anywhere, 0).into_iter().enumerate() {
                let label = if behind.is_empty() { self.label } else { "" };
                behind.push(margin(label, goes_on(nth), &piece, look));
            }
        }
        if behind.is_empty() {
            behind.push(margin(self.label, Edge::Line, &Row::default(), look));
        }
        behind
    }
}

/// How the margin of a row looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    /// A line begins.
    Line,
    /// The line before goes on.
    GoesOn,
}

fn goes_on(nth: usize) -> Edge {
    if nth == 0 { Edge::Line } else { Edge::GoesOn }
}

/// A row of others behind the margin, with a label of ours.
pub(crate) fn margin(label: &str, edge: Edge, row: &Row, look: &Look) -> Row {
    let sign = match (edge, look.ascii) {
        (Edge::Line, false) => "│ ",
        (Edge::GoesOn, false) => "┊ ",
        (Edge::Line, true) => "| ",
        (Edge::GoesOn, true) => ": ",
    };
    let mut whole = Row::of(look.style(Role::Dim), &format!(" {label:<LABEL$} "))
        .and(look.style(Role::Border), sign);
    for (style, text) in row.pieces() {
        whole.push(style, text);
    }
    whole
}

/// A command, line by line; a line that is wider than the screen goes on in the next row.
fn command(text: &str, room: usize, look: &Look) -> Vec<Row> {
    let _ = room;
    lay::code(text.strip_suffix('\n').unwrap_or(text), "bash", UNBROKEN, look)
}

fn words(text: &str, room: usize, look: &Look) -> Vec<Row> {
    let style = look.style(Role::Text);
    let lines = text.trim_end().split('\n').map(|line| Row::of(style, line));
    lines.flat_map(|row| wrap::wrap(&row, room, Break::Words, 0)).collect()
}

/// As many rows of some parts as there is room for. The first part gives way first, down to three
/// rows; then the others, from the last; what is left out is said.
pub(crate) fn fit(parts: &[Vec<Row>], room: usize, more: &str, look: &Look) -> Vec<Row> {
    let all: usize = parts.iter().map(Vec::len).sum();
    if all <= room {
        return parts.iter().flatten().cloned().collect();
    }
    let room = room.saturating_sub(1);
    let mut takes: Vec<usize> = parts.iter().map(Vec::len).collect();
    let mut over = all.saturating_sub(room);
    let mut give = |takes: &mut [usize], at: usize, least: usize| {
        if let Some(take) = takes.get_mut(at) {
            let gives = take.saturating_sub(least).min(over);
            *take -= gives;
            over -= gives;
        }
    };
    give(&mut takes, 0, 3);
    for least in [2, 1] {
        (1..parts.len()).rev().for_each(|at| give(&mut takes, at, least));
    }
    give(&mut takes, 0, 1);
    (0..parts.len()).rev().for_each(|at| give(&mut takes, at, 0));
    let kept = parts.iter().zip(&takes).flat_map(|(rows, take)| rows.iter().take(*take));
    let mut rows: Vec<Row> = kept.cloned().collect();
    let left = all - rows.len();
    let behind = takes.first().copied().unwrap_or_default();
    let text = format!("{}{} more{more}", " ".repeat(INDENT), counted(left, "row"));
    rows.insert(behind.min(rows.len()), Row::of(look.style(Role::Dim), &text));
    rows
}
