//! Numbers as rows: what was used, what fills the window, what there is to work with.

use super::say;
use crate::app::status::{money, thousands};
use crate::cx::Look;
use crate::ink::Row;
use crate::theme::Role;
use unicode_width::UnicodeWidthStr as _;
use windlass_protocol::text::counted;
use windlass_protocol::wire::{self, Health};
use windlass_protocol::{ContextPart, Cost, Usage};

/// What a session used and cost.
pub fn cost(
    usage: &Usage,
    cost: Cost,
    agents: (usize, Cost),
    width: usize,
    look: &Look,
) -> Vec<Row> {
    let (text, dim) = (look.style(Role::Text), look.style(Role::Dim));
    let fresh = usage.input.saturating_sub(usage.cached);
    let answers = usage.output.saturating_sub(usage.reasoning);
    let lines = [
        ("read anew", fresh, true),
        ("read from the cache", usage.cached, usage.cached > 0),
        ("put into the cache", usage.cache_writes, usage.cache_writes > 0),
        ("written", answers, true),
        ("thought", usage.reasoning, usage.reasoning > 0),
    ];
    let mut rows: Vec<Row> = lines
        .into_iter()
        .filter(|(.., shown)| *shown)
        .map(|(name, tokens, _)| {
            let row = Row::of(dim, &format!("{name:<19}"));
            row.and(text, &format!("{:>10}", say::digits(tokens))).and(dim, " tokens")
        })
        .collect();
    let amount = |name: &str, cost: Cost| {
        let row = Row::of(dim, &format!("{name:<19}"));
        row.and(look.style(Role::Strong), &format!("{:>10}", money(cost)))
    };
    rows.push(Row::default());
    match cost.0 {
        0 => {
            let text = "what it cost is not known, or it was free";
            rows.extend(crate::lay::plain(text, width, Role::Dim, look));
        }
        _ => rows.push(amount("cost", cost)),
    }
    if agents.0 > 0 {
        rows.push(amount(&format!("and {}", counted(agents.0, "agent")), agents.1));
    }
    rows
}

/// What fills the window, as bars.
pub fn context(
    window: Option<u64>,
    reserve: u64,
    parts: &[ContextPart],
    width: usize,
    look: &Look,
) -> Vec<Row> {
    let (text, dim) = (look.style(Role::Text), look.style(Role::Dim));
    let used: u64 = parts.iter().map(|part| part.tokens).sum();
    let whole = window.filter(|window| *window > 0).unwrap_or(used).max(1);
    let widest = parts.iter().map(|part| part.name.width()).max().unwrap_or_default();
    let name_width = widest.clamp(4, (width / 3).max(4));
    // The name, the number and the share, with two columns between.
    let room = width.saturating_sub(name_width + 2 + 6 + 2 + 4 + 2).min(60);
    let line = |name: &str, tokens: u64, style| {
        let share = (tokens * 100).checked_div(whole).unwrap_or_default();
        let share = if share == 0 && tokens > 0 { "<1 %".to_owned() } else { format!("{share} %") };
        let mut row = Row::default();
        let name = crate::wrap::cut(&Row::of(text, name), name_width, look);
        say::push(&mut row, &name, name_width + 2);
        row.push(dim, &format!("{:>6}  {share:>4}", thousands(tokens)));
        row.push(dim, "  ");
        row.and(style, &bar(tokens, whole, room, look))
    };
    let mut rows = match window {
        Some(window) => {
            vec![Row::of(text, &format!("{} of {} tokens", say::digits(used), say::digits(window)))]
        }
        None => vec![Row::of(text, &format!("{} tokens", say::digits(used)))],
    };
    rows.push(Row::default());
    let accent = look.style(Role::Accent);
    rows.extend(parts.iter().map(|part| line(&part.name, part.tokens, accent)));
    if let Some(window) = window {
        rows.push(line("free", window.saturating_sub(used), dim));
        rows.push(Row::default());
        let left = window.saturating_sub(reserve).saturating_sub(used);
        let told = match left {
            0 => "the conversation is summed up before the next answer".to_owned(),
            _ => format!("{} more, and the conversation is summed up", thousands(left)),
        };
        rows.extend(crate::lay::plain(&told, width, Role::Dim, look));
    }
    rows
}

/// A bar: halves of a cell where they can be drawn, and thin, so that rows stay apart.
fn bar(part: u64, whole: u64, width: usize, look: &Look) -> String {
    let halves = u64::try_from(width).unwrap_or(0) * 2;
    let filled = part.saturating_mul(halves).checked_div(whole).unwrap_or_default().min(halves);
    let filled = filled.max(u64::from(part > 0 && halves > 0));
    let full = usize::try_from(filled / 2).unwrap_or(0);
    if look.ascii {
        return "#".repeat(full.max(usize::from(filled > 0)));
    }
    "━".repeat(full) + if filled % 2 == 1 { "╸" } else { "" }
}

/// What was looked at, and how it is.
pub fn doctor(found: &[wire::Row], width: usize, look: &Look) -> Vec<Row> {
    let widest = found.iter().map(|row| row.name.width()).max().unwrap_or_default();
    let name_width = widest.min((width / 3).max(8));
    let mut rows = Vec::new();
    for one in found {
        let (mark, role) = match (one.health, look.ascii) {
            (Health::Good, false) => ("✓", Role::Good),
            (Health::Good, true) => ("+", Role::Good),
            (Health::Less, _) => ("!", Role::Warn),
            (Health::Bad, false) => ("✗", Role::Bad),
            (Health::Bad, true) => ("x", Role::Bad),
        };
        let mut row = Row::of(look.style(role), &format!(" {mark} "));
        let name = crate::wrap::cut(&Row::of(look.style(Role::Text), &one.name), name_width, look);
        say::push(&mut row, &name, name_width + 2);
        let left = row.width();
        let room = width.saturating_sub(left + 1).max(1);
        let notes = crate::lay::plain(&one.note, room, Role::Dim, look);
        let mut notes = notes.iter();
        if let Some(first) = notes.next() {
            say::append(&mut row, first);
        }
        rows.push(row);
        rows.extend(notes.map(|note| say::indented(note, left)));
    }
    rows
}
