//! Renders a tool call: a headline with the action and its result, and the details when it is
//! opened.

use super::block_render_data::BlockRenderData;
use super::blocks::CallBlock;
use super::call_summary;
use super::live_state::PartialCallState;
use super::output_tail::render_output_tail;
use super::render_context::{LEFT_MARGIN, RenderContext, indent_rows};
use super::{images, structured_output_table};
use crate::keys::UiCommand;
use crate::render;
use crate::safe_line::SafeLine;
use crate::theme::StyleRole;
use crate::wrap;
use windlass_protocol::display_text::{format_bytes, format_duration, pluralize};
use windlass_protocol::{
    CallAuthor, CallDescription, CallOutcome, Fact, FactRecord, OutputDisplay,
};

/// The rows of a closed diff, and of the output of a running command, that are shown.
const MAX_CLOSED_DIFF_ROWS: usize = 12;
const MAX_CLOSED_OUTPUT_ROWS: usize = 6;
/// The output lines that are shown while a call is closed: of a user's own command, and of a
/// command of the model that failed.
const MAX_USER_OUTPUT_LINES: usize = 20;
const MAX_FAILED_OUTPUT_LINES: usize = 5;
/// The most lines that an opened call renders; `/export` has all of them.
const MAX_OPENED_LINES: usize = 2_000;
/// The shortest call, in milliseconds, whose duration is shown.
const MIN_SHOWN_CALL_MS: u64 = 1_000;

/// The status of a call, which determines its `marker`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallStatus {
    AwaitingUser,
    Requested,
    Running,
    Done,
    Failed,
    Denied,
    Stopped,
    Unknown,
}

impl CallStatus {
    fn from_call(
        call: &CallBlock,
        outcome: Option<&CallOutcome>,
        source: BlockRenderData<'_>,
    ) -> CallStatus {
        match outcome {
            Some(CallOutcome::Completed { output })
                if output.exit_code().is_some_and(|code| code != 0) =>
            {
                CallStatus::Failed
            }
            Some(CallOutcome::Completed { .. }) => CallStatus::Done,
            Some(CallOutcome::Failed { .. }) => CallStatus::Failed,
            Some(CallOutcome::Denied { .. }) => CallStatus::Denied,
            Some(CallOutcome::Interrupted { .. }) => CallStatus::Stopped,
            Some(CallOutcome::ResultUnknown) => CallStatus::Unknown,
            // The `CallSettled` fact may lie after the window.
            None if !source.window.holds_end() => CallStatus::Requested,
            None if call.is_awaiting_user() => CallStatus::AwaitingUser,
            None if call.started.is_some() => CallStatus::Running,
            None => CallStatus::Requested,
        }
    }

    fn marker(self, render_cx: &RenderContext<'_>) -> (&'static str, StyleRole) {
        match self {
            CallStatus::AwaitingUser => ("?", StyleRole::Warning),
            CallStatus::Requested => (render_cx.symbol("·", "."), StyleRole::Dim),
            CallStatus::Running => (render_cx.symbol("·", "."), StyleRole::Accent),
            CallStatus::Done => (render_cx.symbol("✓", "+"), StyleRole::Success),
            CallStatus::Failed => (render_cx.symbol("✗", "x"), StyleRole::Error),
            CallStatus::Denied => (render_cx.symbol("⊘", "-"), StyleRole::Warning),
            CallStatus::Stopped => (render_cx.symbol("⊘", "-"), StyleRole::Dim),
            CallStatus::Unknown => ("!", StyleRole::Warning),
        }
    }
}

/// Renders a call as rows, opened or closed.
pub(super) fn render_call(
    call: &CallBlock,
    record: &FactRecord,
    open: bool,
    source: BlockRenderData<'_>,
    render_cx: &RenderContext<'_>,
) -> Vec<SafeLine> {
    let Fact::ToolCalled { tool, arguments, author, description, .. } = &record.fact else {
        return Vec::new();
    };
    let settled = call.settled.and_then(|seq| source.window.get(seq));
    let outcome = settled.and_then(|settled| {
        let Fact::CallSettled { outcome, .. } = &settled.fact else { return None };
        Some(outcome)
    });
    let status = CallStatus::from_call(call, outcome, source);
    let description = call_summary::describe_call(description, tool, arguments);
    let duration_ms = call_duration(call, settled, source);
    let suffix = headline_suffix(
        call,
        &description,
        (status, outcome, duration_ms),
        source,
        render_cx.now_millis,
    );
    let mut rows = vec![render_headline(&description, *author, status, &suffix, render_cx)];
    rows.extend(match outcome {
        Some(outcome) => {
            render_outcome((*author, &description, arguments), outcome, open, source, render_cx)
        }
        None => render_progress(call, arguments, (status, open), source, render_cx),
    });
    if open && let Some(child) = call.subagent.and_then(|child| source.live.subagents.get(&child)) {
        for line in &child.recent_lines {
            let row = SafeLine::styled(render_cx.appearance.style(StyleRole::Dim), line);
            rows.extend(indent_rows(
                vec![wrap::truncate(&row, render_cx.full_width(), render_cx.appearance)],
                2 * LEFT_MARGIN,
            ));
        }
    }
    rows
}

/// Renders a call that the model is still writing.
pub(super) fn render_partial_call(
    call: &PartialCallState,
    render_cx: &RenderContext<'_>,
) -> SafeLine {
    let path = call.path.as_deref().unwrap_or_default();
    let description = CallDescription::new(&call.tool, "", path);
    let suffix = format!(" … {}", format_bytes(call.argument_bytes));
    render_headline(&description, CallAuthor::Model, CallStatus::Requested, &suffix, render_cx)
}

fn call_duration(
    call: &CallBlock,
    settled: Option<&FactRecord>,
    source: BlockRenderData<'_>,
) -> Option<u64> {
    let started = call.started.and_then(|seq| source.window.get(seq))?;
    Some(settled?.at.0.saturating_sub(started.at.0))
}

/// Returns the running time of a call that has not settled, in milliseconds.
fn running_duration(call: &CallBlock, source: BlockRenderData<'_>, now: u64) -> Option<u64> {
    let started = call.started.and_then(|seq| source.window.get(seq))?;
    now.checked_sub(started.at.0)
}

/// Renders the headline of a call.
fn render_headline(
    description: &CallDescription,
    author: CallAuthor,
    status: CallStatus,
    suffix: &str,
    render_cx: &RenderContext<'_>,
) -> SafeLine {
    let appearance = render_cx.appearance;
    let (mark, role) = status.marker(render_cx);
    let verb = match author {
        CallAuthor::Model => description.verb.clone(),
        CallAuthor::User | CallAuthor::Command => format!("You: {}", description.verb),
        CallAuthor::Goal => format!("Goal: {}", description.verb),
    };
    let dim = appearance.style(StyleRole::Dim);
    let mut row = SafeLine::styled(appearance.style(role), mark).with_text(dim, " ");
    row.push_text(appearance.style(StyleRole::ToolCall), &verb);
    let suffix = render_cx.ascii_fallback(suffix);
    if !description.object.is_empty() {
        // The result is worth more than the end of a long command.
        let suffix_width = suffix.chars().count().min(render_cx.width / 2);
        let object_width = render_cx.width.saturating_sub(row.width() + 1 + suffix_width).max(8);
        let object = wrap::truncate(
            &SafeLine::styled(appearance.style(StyleRole::Text), &description.object),
            object_width,
            appearance,
        );
        row.push_text(dim, " ");
        row.append(&object);
    }
    row.push_text(dim, &suffix);
    wrap::truncate(&row, render_cx.width, appearance)
}

/// Returns the dim text after the `CallDescription`: note, progress, duration and result.
fn headline_suffix(
    call: &CallBlock,
    description: &CallDescription,
    (status, outcome, duration_ms): (CallStatus, Option<&CallOutcome>, Option<u64>),
    source: BlockRenderData<'_>,
    now: u64,
) -> String {
    let mut parts = vec![description.note.clone()];
    let call_output = source.live.call_outputs.get(&call.id);
    match status {
        CallStatus::AwaitingUser => parts.push("waiting for your answer".to_owned()),
        CallStatus::Running | CallStatus::Requested => {
            let child = call.subagent.and_then(|child| source.live.subagents.get(&child));
            match child {
                Some(child) if child.call_count > 0 => {
                    parts.push(pluralize(child.call_count as usize, "call"));
                    parts.push(child.activity.clone());
                }
                // Output is shown below the headline.
                _ if call_output.is_some_and(|call_output| !call_output.output_tail.is_empty()) => {
                }
                _ => parts.extend(
                    call_output.map(|call_output| call_summary::first_line(&call_output.progress)),
                ),
            }
            parts.extend(
                running_duration(call, source, now)
                    .filter(|duration| *duration >= MIN_SHOWN_CALL_MS)
                    .map(format_duration),
            );
            let refused = call_output.and_then(|call_output| call_output.refused_host.as_deref());
            parts.extend(refused.map(|host| format!("{host} blocked")));
        }
        CallStatus::Stopped => parts.push("interrupted".to_owned()),
        CallStatus::Unknown => parts.push("interrupted: result unknown".to_owned()),
        CallStatus::Done | CallStatus::Failed | CallStatus::Denied => {}
    }
    parts.extend(
        duration_ms.filter(|duration_ms| *duration_ms >= MIN_SHOWN_CALL_MS).map(format_duration),
    );
    if let Some(CallOutcome::Completed { output }) = outcome {
        parts.push(call_summary::summarize_output(output));
        let child = call.subagent.and_then(|child| source.live.subagents.get(&child));
        let calls = child.map(|child| pluralize(child.call_count as usize, "call"));
        parts.extend(calls);
    }
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.iter().map(|part| format!(" · {part}")).collect()
}

/// Renders the `CallOutcome` of a settled call below its headline.
fn render_outcome(
    (author, description, arguments): (CallAuthor, &CallDescription, &str),
    outcome: &CallOutcome,
    open: bool,
    source: BlockRenderData<'_>,
    render_cx: &RenderContext<'_>,
) -> Vec<SafeLine> {
    let mut rows = Vec::new();
    match outcome {
        CallOutcome::Completed { output } => {
            match &output.display {
                OutputDisplay::Diff { unified_diff } => {
                    rows.extend(render_change(unified_diff, open, render_cx))
                }
                OutputDisplay::Checklist { items } => {
                    let list =
                        render::render_todos(items, render_cx.full_width(), render_cx.appearance);
                    rows.extend(truncate_rows(
                        indent_rows(list, 2 * LEFT_MARGIN),
                        items.len(),
                        open,
                        render_cx,
                    ));
                }
                OutputDisplay::Terminal { colored_text } if open => {
                    let text = colored_text.as_deref().unwrap_or(&output.text);
                    rows.extend(render_arguments(description, arguments, render_cx));
                    rows.extend(render_details(&output.display, text, render_cx));
                }
                // A user who types a command wants to see its output.
                OutputDisplay::Terminal { colored_text } if author != CallAuthor::Model => {
                    let text = colored_text.as_deref().unwrap_or(&output.text);
                    let limits = (output.exit_code(), MAX_USER_OUTPUT_LINES);
                    rows.extend(render_output_tail(text, limits, render_cx));
                }
                OutputDisplay::Terminal { colored_text }
                    if output.exit_code().is_some_and(|code| code != 0) =>
                {
                    let text = colored_text.as_deref().unwrap_or(&output.text);
                    let limits = (output.exit_code(), MAX_FAILED_OUTPUT_LINES);
                    rows.extend(render_output_tail(text, limits, render_cx));
                }
                OutputDisplay::Markdown if open => {
                    rows.extend(render_arguments(description, arguments, render_cx));
                    rows.extend(render_details(&output.display, &output.text, render_cx));
                }
                OutputDisplay::Text if open => rows.extend(
                    match structured_output_table::render_records(
                        output,
                        render_cx.full_width(),
                        render_cx.appearance,
                    ) {
                        Some(table) => indent_rows(table, 2 * LEFT_MARGIN),
                        None => {
                            let mut rows = render_arguments(description, arguments, render_cx);
                            rows.extend(render_details(&output.display, &output.text, render_cx));
                            rows
                        }
                    },
                ),
                OutputDisplay::Text | OutputDisplay::Markdown | OutputDisplay::Terminal { .. } => {}
            }
            for attachment in &output.attachments {
                rows.extend(indent_rows(
                    images::render_attachment(attachment, open, source.images, render_cx),
                    LEFT_MARGIN,
                ));
            }
        }
        CallOutcome::Failed { .. }
        | CallOutcome::Denied { .. }
        | CallOutcome::Interrupted { .. } => {
            let text = call_summary::text_for_user(outcome);
            let role = match outcome {
                CallOutcome::Failed { .. } => StyleRole::Error,
                CallOutcome::Denied { .. } => StyleRole::Warning,
                CallOutcome::Completed { .. }
                | CallOutcome::Interrupted { .. }
                | CallOutcome::ResultUnknown => StyleRole::Dim,
            };
            if open {
                rows.extend(render_arguments(description, arguments, render_cx));
                rows.extend(render_details(&OutputDisplay::Text, &text, render_cx));
            } else if role != StyleRole::Dim {
                let reason = SafeLine::styled(
                    render_cx.appearance.style(role),
                    &call_summary::failure_reason(outcome),
                );
                rows.extend(indent_rows(
                    vec![wrap::truncate(&reason, render_cx.full_width(), render_cx.appearance)],
                    2 * LEFT_MARGIN,
                ));
            }
        }
        CallOutcome::ResultUnknown => {}
    }
    rows
}

/// Renders the live output or, if opened, the arguments of a call that has not settled.
fn render_progress(
    call: &CallBlock,
    arguments: &str,
    (status, open): (CallStatus, bool),
    source: BlockRenderData<'_>,
    render_cx: &RenderContext<'_>,
) -> Vec<SafeLine> {
    let call_output =
        source.live.call_outputs.get(&call.id).filter(|_| status == CallStatus::Running);
    let output = call_output
        .map(|call_output| call_output.output_tail.as_str())
        .filter(|text| !text.is_empty());
    match output {
        Some(text) => {
            let rows = render::render_terminal_output(
                text.trim_end(),
                render_cx.full_width(),
                render_cx.appearance,
            );
            let hidden = if open { 0 } else { rows.len().saturating_sub(MAX_CLOSED_OUTPUT_ROWS) };
            indent_rows(rows.into_iter().skip(hidden).collect(), 2 * LEFT_MARGIN)
        }
        None if open => {
            let text = format_arguments(arguments);
            indent_rows(
                render::render_plain(
                    &text,
                    render_cx.full_width(),
                    StyleRole::Dim,
                    render_cx.appearance,
                ),
                2 * LEFT_MARGIN,
            )
        }
        None => Vec::new(),
    }
}

/// Renders a diff. If closed, only the visible part is laid out.
fn render_change(unified_diff: &str, open: bool, render_cx: &RenderContext<'_>) -> Vec<SafeLine> {
    let lines = unified_diff.lines().count();
    let max_lines = if open { MAX_OPENED_LINES } else { 3 * MAX_CLOSED_DIFF_ROWS };
    let visible_lines = first_lines(unified_diff, max_lines);
    let mut rows = indent_rows(
        render::render_diff(visible_lines, render_cx.full_width(), render_cx.appearance),
        LEFT_MARGIN,
    );
    // The headline of the call already names the file and the size of the change.
    let is_single_file =
        unified_diff.starts_with("--- ") && unified_diff.matches("\n+++ ").count() == 1;
    if is_single_file && !rows.is_empty() {
        rows.remove(0);
    }
    truncate_rows(rows, lines.saturating_sub(if is_single_file { 3 } else { 0 }), open, render_cx)
}

/// Truncates the rows of a closed block to `MAX_CLOSED_DIFF_ROWS`, and adds a line with the number
/// of hidden lines.
fn truncate_rows(
    mut rows: Vec<SafeLine>,
    lines: usize,
    open: bool,
    render_cx: &RenderContext<'_>,
) -> Vec<SafeLine> {
    if open {
        return rows;
    }
    // A cut that would hide next to nothing is not made.
    if rows.len() > MAX_CLOSED_DIFF_ROWS + 2 {
        rows.truncate(MAX_CLOSED_DIFF_ROWS);
        let (more, key) = (
            lines.saturating_sub(MAX_CLOSED_DIFF_ROWS).max(1),
            render_cx.key_hint(UiCommand::ToggleDetails),
        );
        let text = format!("… {} ({key} to expand)", pluralize(more, "more line"));
        rows.extend(indent_rows(render_cx.quiet_row(StyleRole::Dim, &text), LEFT_MARGIN));
    }
    rows
}

/// Renders the arguments of an opened call, if they say more than the headline.
fn render_arguments(
    description: &CallDescription,
    arguments: &str,
    render_cx: &RenderContext<'_>,
) -> Vec<SafeLine> {
    if description.covers_arguments {
        return Vec::new();
    }
    let (text, width) = (format_arguments(arguments), render_cx.full_width());
    let rows = render::render_plain(&text, width, StyleRole::Dim, render_cx.appearance);
    indent_rows(rows, 2 * LEFT_MARGIN)
}

/// Renders the output of an opened call.
fn render_details(
    display: &OutputDisplay,
    text: &str,
    render_cx: &RenderContext<'_>,
) -> Vec<SafeLine> {
    let (width, appearance) = (render_cx.full_width(), render_cx.appearance);
    let visible_text = first_lines(text.trim_end(), MAX_OPENED_LINES);
    let mut rows = match display {
        OutputDisplay::Terminal { .. } => {
            render::render_terminal_output(visible_text, width, appearance)
        }
        OutputDisplay::Markdown => render::render_markdown(visible_text, width, appearance),
        OutputDisplay::Text | OutputDisplay::Diff { .. } | OutputDisplay::Checklist { .. } => {
            render::render_plain(visible_text, width, StyleRole::Dim, appearance)
        }
    };
    if visible_text.len() < text.trim_end().len() {
        let more = text.lines().count().saturating_sub(MAX_OPENED_LINES);
        rows.extend(
            render_cx
                .quiet_row(StyleRole::Dim, &format!("… {more} more lines; use /export to see all")),
        );
    }
    indent_rows(rows, 2 * LEFT_MARGIN)
}

/// Formats JSON arguments for reading, one per line.
fn format_arguments(arguments: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(arguments).unwrap_or_default();
    let Some(fields) = value.as_object() else { return arguments.to_owned() };
    let line = |(name, value): (&String, &serde_json::Value)| match value {
        serde_json::Value::String(text) => format!("{name}: {text}"),
        other => format!("{name}: {other}"),
    };
    fields.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn first_lines(text: &str, lines: usize) -> &str {
    let mut ends = text.match_indices('\n').map(|(offset, _)| offset);
    let end = ends.nth(lines.saturating_sub(1)).unwrap_or(text.len());
    text.get(..end).unwrap_or(text)
}
