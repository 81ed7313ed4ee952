//! Rows for numeric reports: token usage and cost, context window, installation check.

use super::shared_rows;
use crate::app::status::{format_cost, format_count};
use crate::safe_line::SafeLine;
use crate::theme::StyleRole;
use crate::ui_context::Appearance;
use unicode_width::UnicodeWidthStr as _;
use windlass_protocol::display_text::pluralize;
use windlass_protocol::frontend_messages::{self, DoctorCheckStatus};
use windlass_protocol::{ContextUsagePart, Cost, TokenUsage};

/// Renders the `TokenUsage` and cost of a session and its subagents.
pub fn render_cost(
    usage: &TokenUsage,
    cost: Cost,
    agents: (usize, Cost),
    width: usize,
    appearance: &Appearance,
) -> Vec<SafeLine> {
    let (text, dim) = (appearance.style(StyleRole::Text), appearance.style(StyleRole::Dim));
    let uncached_input = usage.input.saturating_sub(usage.cache_reads);
    let answer_tokens = usage.output.saturating_sub(usage.reasoning);
    let lines = [
        ("Input", uncached_input, true),
        ("Cached input", usage.cache_reads, usage.cache_reads > 0),
        ("Cache writes", usage.cache_writes, usage.cache_writes > 0),
        ("Output", answer_tokens, true),
        ("Reasoning", usage.reasoning, usage.reasoning > 0),
    ];
    let mut rows: Vec<SafeLine> = lines
        .into_iter()
        .filter(|(.., is_shown)| *is_shown)
        .map(|(name, tokens, _)| {
            let row = SafeLine::styled(dim, &format!("{name:<19}"));
            row.with_text(text, &format!("{:>10}", shared_rows::group_digits(tokens)))
                .with_text(dim, " tokens")
        })
        .collect();
    let cost_row = |name: &str, cost: Cost| {
        let row = SafeLine::styled(dim, &format!("{name:<19}"));
        row.with_text(appearance.style(StyleRole::Strong), &format!("{:>10}", format_cost(cost)))
    };
    rows.push(SafeLine::default());
    match cost.0 {
        0 => {
            let text = "Price unknown for this model, or free";
            rows.extend(crate::render::render_plain(text, width, StyleRole::Dim, appearance));
        }
        _ => rows.push(cost_row("Cost", cost)),
    }
    if agents.0 > 0 {
        rows.push(cost_row(&format!("And {}", pluralize(agents.0, "agent")), agents.1));
    }
    rows
}

/// Renders the parts of the context window as bars.
pub fn render_context_usage(
    window: Option<u64>,
    reserve: u64,
    parts: &[ContextUsagePart],
    width: usize,
    appearance: &Appearance,
) -> Vec<SafeLine> {
    let (text, dim) = (appearance.style(StyleRole::Text), appearance.style(StyleRole::Dim));
    let used: u64 = parts.iter().map(|part| part.tokens).sum();
    let total = window.filter(|window| *window > 0).unwrap_or(used).max(1);
    let widest = parts.iter().map(|part| part.name.width()).max().unwrap_or_default();
    let name_width = widest.clamp(4, (width / 3).max(4));
    // The bar gets the width that is left after the name, the count and the share, with two columns
    // between them.
    let bar_width = width.saturating_sub(name_width + 2 + 6 + 2 + 4 + 2).min(60);
    let part_row = |name: &str, tokens: u64, style| {
        let share = (tokens * 100).checked_div(total).unwrap_or_default();
        let share = if share == 0 && tokens > 0 { "<1 %".to_owned() } else { format!("{share} %") };
        let mut row = SafeLine::default();
        let name = crate::wrap::truncate(&SafeLine::styled(text, name), name_width, appearance);
        shared_rows::append_padded(&mut row, &name, name_width + 2);
        row.push_text(dim, &format!("{:>6}  {share:>4}", format_count(tokens)));
        row.push_text(dim, "  ");
        row.with_text(style, &render_bar(tokens, total, bar_width, appearance))
    };
    let mut rows = match window {
        Some(window) => {
            vec![SafeLine::styled(
                text,
                &format!(
                    "{} of {} tokens",
                    shared_rows::group_digits(used),
                    shared_rows::group_digits(window)
                ),
            )]
        }
        None => {
            vec![SafeLine::styled(text, &format!("{} tokens", shared_rows::group_digits(used)))]
        }
    };
    rows.push(SafeLine::default());
    let accent = appearance.style(StyleRole::Accent);
    rows.extend(parts.iter().map(|part| part_row(&part.name, part.tokens, accent)));
    if let Some(window) = window {
        rows.push(part_row("free", window.saturating_sub(used), dim));
        rows.push(SafeLine::default());
        let remaining = window.saturating_sub(reserve).saturating_sub(used);
        let message = match remaining {
            0 => "Compacts automatically before the next answer".to_owned(),
            _ => format!("Compacts automatically in {} tokens", format_count(remaining)),
        };
        rows.extend(crate::render::render_plain(&message, width, StyleRole::Dim, appearance));
    }
    rows
}

/// Renders a bar in half-cell steps where the terminal can draw them. The bar is thin, so that rows
/// stay apart.
fn render_bar(tokens: u64, total: u64, width: usize, appearance: &Appearance) -> String {
    let half_cells = u64::try_from(width).unwrap_or(0) * 2;
    let filled =
        tokens.saturating_mul(half_cells).checked_div(total).unwrap_or_default().min(half_cells);
    let filled = filled.max(u64::from(tokens > 0 && half_cells > 0));
    let full_cells = usize::try_from(filled / 2).unwrap_or(0);
    if appearance.ascii {
        return "#".repeat(full_cells.max(usize::from(filled > 0)));
    }
    "━".repeat(full_cells) + if filled % 2 == 1 { "╸" } else { "" }
}

/// Renders the checks of the installation with their `DoctorCheckStatus`.
pub fn render_doctor(
    checks: &[frontend_messages::ListRow],
    width: usize,
    appearance: &Appearance,
) -> Vec<SafeLine> {
    let widest = checks.iter().map(|row| row.name.width()).max().unwrap_or_default();
    let name_width = widest.min((width / 3).max(8));
    let mut rows = Vec::new();
    for check in checks {
        let (mark, role) = match (check.status, appearance.ascii) {
            (DoctorCheckStatus::Ok, false) => ("✓", StyleRole::Success),
            (DoctorCheckStatus::Ok, true) => ("+", StyleRole::Success),
            (DoctorCheckStatus::Degraded, _) => ("!", StyleRole::Warning),
            (DoctorCheckStatus::Broken, false) => ("✗", StyleRole::Error),
            (DoctorCheckStatus::Broken, true) => ("x", StyleRole::Error),
        };
        let mut row = SafeLine::styled(appearance.style(role), &format!(" {mark} "));
        let name = crate::wrap::truncate(
            &SafeLine::styled(appearance.style(StyleRole::Text), &check.name),
            name_width,
            appearance,
        );
        shared_rows::append_padded(&mut row, &name, name_width + 2);
        let name_end = row.width();
        let note_width = width.saturating_sub(name_end + 1).max(1);
        let notes =
            crate::render::render_plain(&check.note, note_width, StyleRole::Dim, appearance);
        let mut notes = notes.iter();
        if let Some(first) = notes.next() {
            shared_rows::append_row(&mut row, first);
        }
        rows.push(row);
        rows.extend(notes.map(|note| shared_rows::indent_row(note, name_end)));
    }
    rows
}
