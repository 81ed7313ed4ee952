//! The end of a command's output, shown while its call is closed.

use super::render_context::{LEFT_MARGIN, RenderContext, indent_rows};
use crate::keys::UiCommand;
use crate::render;
use crate::safe_line::SafeLine;
use crate::theme::StyleRole;
use windlass_protocol::display_text::pluralize;

/// Renders the last `max_lines` lines of a command's output, without the `(exit code …)` line if the headline already
/// says all of it.
pub(super) fn render_output_tail(
    text: &str,
    (exit_code, max_lines): (Option<i64>, usize),
    render_cx: &RenderContext<'_>,
) -> Vec<SafeLine> {
    let mut lines: Vec<&str> = text.trim_end().lines().collect();
    let exit_prefix = exit_code.map(|code| format!("(exit code {code}"));
    lines.pop_if(|last| {
        let rest = exit_prefix.as_deref().and_then(|exit_prefix| last.strip_prefix(exit_prefix));
        rest.is_some_and(|rest| rest.ends_with(')') && !rest.contains(';'))
    });
    if lines == ["(no output)"] {
        return Vec::new();
    }
    let omitted = lines.len().saturating_sub(max_lines);
    let tail = lines.get(omitted..).unwrap_or_default().join("\n");
    let mut rows = Vec::new();
    if omitted > 0 {
        let (count, key) =
            (pluralize(omitted, "line"), render_cx.key_hint(UiCommand::ToggleDetails));
        let text = format!("… {count} above ({key} to expand)");
        rows.extend(indent_rows(render_cx.quiet_row(StyleRole::Dim, &text), LEFT_MARGIN));
    }
    let output_rows =
        render::render_terminal_output(&tail, render_cx.full_width(), render_cx.appearance);
    let hidden = output_rows.len().saturating_sub(2 * max_lines);
    rows.extend(indent_rows(output_rows.into_iter().skip(hidden).collect(), 2 * LEFT_MARGIN));
    rows
}
