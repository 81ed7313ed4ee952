//! Renders each `TranscriptBlock` as rows.

use super::block_render_data::BlockRenderData;
use super::blocks::{TranscriptBlock, TranscriptBlockKind};
use super::call_rows;
use super::call_summary;
use super::images;
use super::live_state::StreamingText;
use super::prompt_content::PromptContent;
use super::render_context::{LEFT_MARGIN, RenderContext, indent_rows};
use crate::app::status::format_cost;
use crate::error_hints;
use crate::keys::UiCommand;
use crate::render;
use crate::safe_line::SafeLine;
use crate::theme::StyleRole;
use crate::wrap;
use windlass_protocol::display_text::{format_duration, pluralize};
use windlass_protocol::{
    ContextChange, Fact, FactRecord, Fault, HookVerdict, ModelStreamKind, PromptDelivery,
    StepPurpose, TurnEndReason, command_of_prompt,
};

/// The rows of a closed prompt that are shown.
const MAX_CLOSED_PROMPT_ROWS: usize = 16;

/// Renders a block as rows, opened or closed; the texts come from the facts in `source`.
pub(super) fn render_block(
    block: &TranscriptBlock,
    open: bool,
    source: BlockRenderData<'_>,
    render_cx: &RenderContext<'_>,
) -> Vec<SafeLine> {
    let fact = source.window.get(block.key.0);
    let rows = match &block.kind {
        TranscriptBlockKind::Note(text) => render_note(text, render_cx),
        TranscriptBlockKind::Prompt { content, steered } => {
            render_prompt(content.as_deref(), *steered, open, source, render_cx)
        }
        TranscriptBlockKind::ModeChanged(mode) => {
            render_cx.quiet_row(StyleRole::Dim, &format!("mode: {mode}"))
        }
        TranscriptBlockKind::AgentChanged(agent) => {
            render_cx.quiet_row(StyleRole::Dim, &format!("agent: {agent}"))
        }
        TranscriptBlockKind::ModelChanged(model) => {
            render_cx.quiet_row(StyleRole::Dim, &format!("model: {model}"))
        }
        TranscriptBlockKind::Rewound => render_cx.quiet_row(
            StyleRole::Dim,
            "Rewound to here. Later messages are hidden from the model.",
        ),
        TranscriptBlockKind::LostText => render_cx.quiet_row(
            StyleRole::Warning,
            "The model's text was lost here: windlass was stopped before it was saved.",
        ),
        TranscriptBlockKind::Forked => {
            render_cx.quiet_row(StyleRole::Dim, "Forked from another session here.")
        }
        TranscriptBlockKind::ToolCall(call) => fact
            .map(|fact| call_rows::render_call(call, fact, open, source, render_cx))
            .unwrap_or_default(),
        TranscriptBlockKind::TurnEnded { duration_ms, cost, lacks_answer, purpose } => fact
            .map(|fact| {
                let progress = (*purpose, *lacks_answer);
                render_turn_end(fact, (*duration_ms, *cost), progress, render_cx)
            })
            .unwrap_or_default(),
        TranscriptBlockKind::ModelText => {
            fact.map(|fact| render_model_text(fact, render_cx)).unwrap_or_default()
        }
        TranscriptBlockKind::Reasoning => fact
            .map(|fact| {
                let duration_ms = source.live.reasoning_millis.get(&fact.seq).copied();
                render_reasoning(fact, duration_ms, open, render_cx)
            })
            .unwrap_or_default(),
        TranscriptBlockKind::Compacted => {
            fact.map(|fact| render_compacted(fact, open, render_cx)).unwrap_or_default()
        }
        TranscriptBlockKind::HookDenied => {
            fact.map(|fact| render_hook_denial(fact, render_cx)).unwrap_or_default()
        }
        TranscriptBlockKind::Retrying => {
            fact.map(|fact| render_retry(fact, render_cx)).unwrap_or_default()
        }
        TranscriptBlockKind::FactsLost => {
            fact.map(|fact| render_lost_facts(fact, render_cx)).unwrap_or_default()
        }
        TranscriptBlockKind::ModelNotice => {
            fact.map(|fact| render_model_notice(fact, open, render_cx)).unwrap_or_default()
        }
    };
    // A block needs at least one row, so that the view can be anchored to it.
    if rows.is_empty() { vec![SafeLine::default()] } else { rows }
}

fn render_model_text(record: &FactRecord, render_cx: &RenderContext<'_>) -> Vec<SafeLine> {
    let Fact::ModelText { text, .. } = &record.fact else { return Vec::new() };
    indent_rows(
        render::render_markdown(text, render_cx.text_width(), render_cx.appearance),
        LEFT_MARGIN,
    )
}

fn render_compacted(
    record: &FactRecord,
    open: bool,
    render_cx: &RenderContext<'_>,
) -> Vec<SafeLine> {
    let Fact::ContextCompacted { summary, .. } = &record.fact else { return Vec::new() };
    let count = pluralize(summary.split_whitespace().count(), "word");
    let key = render_cx.key_hint(UiCommand::ToggleDetails);
    let mut rows = render_cx.quiet_row(
        StyleRole::Dim,
        &format!("Conversation compacted: summary of {count} ({key} to view)"),
    );
    if open {
        rows.extend(indent_rows(
            render::render_markdown(summary, render_cx.inner_prose_width(), render_cx.appearance),
            2 * LEFT_MARGIN,
        ));
    }
    rows
}

fn render_hook_denial(record: &FactRecord, render_cx: &RenderContext<'_>) -> Vec<SafeLine> {
    let Fact::HookRan { hook, point, verdict, .. } = &record.fact else { return Vec::new() };
    let text = match verdict {
        HookVerdict::Refused { reason } => {
            format!("The hook `{hook}` denied this ({point}): {reason}")
        }
        HookVerdict::Failed { reason } => {
            format!("The hook `{hook}` failed ({point}): {reason}")
        }
        HookVerdict::Passed | HookVerdict::Rewrote | HookVerdict::Asks { .. } => return Vec::new(),
    };
    render_cx.quiet_row(StyleRole::Warning, &text)
}

fn render_retry(record: &FactRecord, render_cx: &RenderContext<'_>) -> Vec<SafeLine> {
    let Fact::StepRetrying { attempt, fault, model, .. } = &record.fact else { return Vec::new() };
    let message = fault.without_wait().to_string();
    let message = capitalize(message.strip_suffix('.').unwrap_or(&message));
    // The line stays, so it tells only what has happened; the status line counts the wait down.
    let text = match model {
        Some(model) => format!("{message}. Continued with {model}"),
        None => format!("{message} (attempt {attempt} of {})", fault.max_attempts()),
    };
    render_cx.quiet_row(StyleRole::Warning, &text)
}

fn render_lost_facts(record: &FactRecord, render_cx: &RenderContext<'_>) -> Vec<SafeLine> {
    let Fact::FactsLost { count, reason } = &record.fact else { return Vec::new() };
    let count = pluralize(*count as usize, "event");
    render_cx.quiet_row(StyleRole::Warning, &format!("{count} of this session lost: {reason}"))
}

fn render_model_notice(
    record: &FactRecord,
    open: bool,
    render_cx: &RenderContext<'_>,
) -> Vec<SafeLine> {
    let Fact::ContextChanged { text, change } = &record.fact else { return Vec::new() };
    if !open {
        let key = render_cx.key_hint(UiCommand::ToggleDetails);
        let brief = match describe_context_change(change) {
            Some(headline) => format!("{headline} ({key} to view)"),
            None => format!("The model was told: {}", call_summary::first_line(text)),
        };
        let row = SafeLine::styled(
            render_cx.appearance.style(StyleRole::Dim),
            &render_cx.ascii_fallback(&brief),
        );
        return indent_rows(
            vec![wrap::truncate(&row, render_cx.prose_width(), render_cx.appearance)],
            LEFT_MARGIN,
        );
    }
    let mut rows = render_cx.quiet_row(StyleRole::Dim, "The model was told:");
    rows.extend(indent_rows(
        render::render_plain(
            text,
            render_cx.inner_prose_width(),
            StyleRole::Dim,
            render_cx.appearance,
        ),
        2 * LEFT_MARGIN,
    ));
    rows
}

/// Names a change that the model was informed of; `None` if only the message itself does.
fn describe_context_change(change: &ContextChange) -> Option<String> {
    let headline = match change {
        ContextChange::Note => return None,
        ContextChange::Mode { mode } => format!("mode: {mode}"),
        ContextChange::TurnConditions => "Goal or allowed calls of this turn stated".to_owned(),
        ContextChange::TurnContinued => "Turn continued".to_owned(),
        ContextChange::Prompt { state } if state.instructions.is_empty() => {
            "Environment updated".to_owned()
        }
        ContextChange::Prompt { .. } => "Instructions updated".to_owned(),
        ContextChange::Todos { .. } => "Todo list restated".to_owned(),
        ContextChange::JobEnded { job } => format!("Job {job} ended"),
    };
    Some(headline)
}

/// Renders a `TranscriptBlockKind::Note`, which is not part of the session.
pub(super) fn render_note(text: &str, render_cx: &RenderContext<'_>) -> Vec<SafeLine> {
    indent_rows(
        render::render_plain(
            text,
            render_cx.prose_width(),
            StyleRole::Warning,
            render_cx.appearance,
        ),
        LEFT_MARGIN,
    )
}

fn render_prompt(
    content: Option<&PromptContent>,
    steered: bool,
    open: bool,
    source: BlockRenderData<'_>,
    render_cx: &RenderContext<'_>,
) -> Vec<SafeLine> {
    let mark =
        if steered { render_cx.symbol("↳ ", "+>") } else { render_cx.symbol("› ", "> ") };
    let Some(content) = content else {
        let row = SafeLine::styled(
            render_cx.appearance.style(StyleRole::Dim),
            "(the prompt is further up)",
        );
        return with_margin_mark(mark, vec![row], render_cx);
    };
    // Opened, all of a prompt of Windlass is shown.
    let command = command_of_prompt(&content.text).filter(|_| !open);
    let text = command.unwrap_or_else(|| content.text.clone());
    let mut rows = render::render_plain(
        text.trim_end(),
        render_cx.prose_width(),
        StyleRole::User,
        render_cx.appearance,
    );
    let (row_count, key) = (rows.len(), render_cx.key_hint(UiCommand::ToggleDetails));
    if !open && row_count > MAX_CLOSED_PROMPT_ROWS {
        rows.truncate(MAX_CLOSED_PROMPT_ROWS - 2);
        let more =
            format!("… {} more lines ({key} to expand)", row_count.saturating_sub(rows.len()));
        rows.push(SafeLine::styled(
            render_cx.appearance.style(StyleRole::Dim),
            &render_cx.ascii_fallback(&more),
        ));
    }
    let rows = with_margin_mark(mark, rows, render_cx);
    let mut rows = fill_background(rows, StyleRole::User, render_cx);
    for file in &content.attachments {
        rows.extend(images::render_attachment(file, open, source.images, render_cx));
    }
    let user = render_cx.state.host_status.client.as_ref().map(|client| &client.name);
    if !content.author.is_empty() && user.is_some_and(|user| *user != content.author) {
        let style = render_cx.appearance.style(StyleRole::Dim);
        let author = SafeLine::styled(style, &format!("from {}", content.author));
        rows.extend(indent_rows(vec![author], LEFT_MARGIN));
    }
    rows
}

/// Extends the background of a role over the whole width of the rows, if it has one.
fn fill_background(
    rows: Vec<SafeLine>,
    role: StyleRole,
    render_cx: &RenderContext<'_>,
) -> Vec<SafeLine> {
    let style = render_cx.appearance.style(role);
    if style.bg.is_none() {
        return rows;
    }
    let fill = |row: SafeLine| {
        let mut row = row.with_base_style(style);
        row.pad_to(style, render_cx.width);
        row
    };
    rows.into_iter().map(fill).collect()
}

/// Puts a mark such as `›` into the margin of the first row.
fn with_margin_mark(
    mark: &str,
    rows: Vec<SafeLine>,
    render_cx: &RenderContext<'_>,
) -> Vec<SafeLine> {
    let mut rows = rows.into_iter();
    let mut first = SafeLine::styled(render_cx.appearance.style(StyleRole::Accent), mark);
    first.append(&rows.next().unwrap_or_default());
    std::iter::once(first).chain(indent_rows(rows.collect(), LEFT_MARGIN)).collect()
}

fn render_reasoning(
    record: &FactRecord,
    duration_ms: Option<u64>,
    open: bool,
    render_cx: &RenderContext<'_>,
) -> Vec<SafeLine> {
    let Fact::ModelReasoning { text, .. } = &record.fact else { return Vec::new() };
    let count = pluralize(text.split_whitespace().count(), "word");
    let duration =
        duration_ms.filter(|ms| *ms >= 1000).map(|ms| format!(" for {}", format_duration(ms)));
    let headline = format!("Thought{} ({count})", duration.unwrap_or_default());
    let mut rows = render_cx.quiet_row(StyleRole::Reasoning, &headline);
    if open {
        let text = render::render_plain(
            text.trim(),
            render_cx.inner_prose_width(),
            StyleRole::Reasoning,
            render_cx.appearance,
        );
        rows.extend(indent_rows(text, 2 * LEFT_MARGIN));
    }
    rows
}

fn render_turn_end(
    record: &FactRecord,
    (duration_ms, cost): (Option<u64>, windlass_protocol::Cost),
    (purpose, lacks_answer): (StepPurpose, bool),
    render_cx: &RenderContext<'_>,
) -> Vec<SafeLine> {
    let Fact::TurnEnded { end, .. } = &record.fact else { return Vec::new() };
    let cost = Some(cost).filter(|cost| cost.0 > 0).map(format_cost);
    let duration = duration_ms.map(format_duration);
    let summary = duration.into_iter().chain(cost).collect::<Vec<String>>().join(" · ");
    match end {
        TurnEndReason::Completed if lacks_answer => {
            render_cx.quiet_row(StyleRole::Warning, error_hints::NO_ANSWER)
        }
        TurnEndReason::Completed => {
            render_cx.quiet_row(StyleRole::Dim, &format!("Worked for {summary}"))
        }
        TurnEndReason::Denied => {
            render_cx.quiet_row(StyleRole::Warning, "Stopped: you denied permission.")
        }
        TurnEndReason::Interrupted => {
            let cut_off = lacks_answer.then(|| error_hints::CUT_OFF.to_owned());
            let summary = Some(summary).filter(|summary| !summary.is_empty());
            let parts = ["Interrupted".to_owned()].into_iter().chain(summary).chain(cut_off);
            let text = parts.collect::<Vec<String>>().join(" · ");
            render_cx.quiet_row(StyleRole::Warning, &text)
        }
        TurnEndReason::LoopDetected { repeated_action } => {
            let text =
                format!("Stopped: the model kept repeating the same action: {repeated_action}");
            render_cx.quiet_row(StyleRole::Warning, &text)
        }
        TurnEndReason::LimitReached { limit } => render_cx.quiet_row(
            StyleRole::Warning,
            &format!("Stopped at a limit: {limit}. Use /retry to continue."),
        ),
        TurnEndReason::Failed { fault } => render_fault(fault, purpose, render_cx),
    }
}

/// Returns a message with its first letter in upper case.
fn capitalize(message: &str) -> String {
    let mut characters = message.chars();
    let first = characters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(characters).collect()
}

/// Renders a `Fault` and the next step to take.
fn render_fault(
    fault: &Fault,
    purpose: StepPurpose,
    render_cx: &RenderContext<'_>,
) -> Vec<SafeLine> {
    let mark = render_cx.symbol("✗ ", "x ");
    let message = match purpose {
        StepPurpose::Answer => capitalize(&fault.to_string()),
        StepPurpose::Summary => format!("Could not compact the conversation: {fault}"),
    };
    let message_rows = render::render_plain(
        &message,
        render_cx.prose_width(),
        StyleRole::Error,
        render_cx.appearance,
    );
    let mut rows = with_margin_mark(mark, message_rows, render_cx);
    rows.extend(render_cx.quiet_row(StyleRole::Dim, error_hints::next_step(fault)));
    rows
}

/// Renders the rows in `range` of a text that the model is still writing.
pub(super) fn render_streaming(
    streaming: &mut StreamingText,
    open: bool,
    render_cx: &RenderContext<'_>,
    range: std::ops::Range<usize>,
) -> Vec<SafeLine> {
    match streaming.stream {
        ModelStreamKind::Text => indent_rows(
            streaming.markdown.rows(render_cx.text_width(), render_cx.appearance, range),
            LEFT_MARGIN,
        ),
        ModelStreamKind::Reasoning => {
            let rows = render_streaming_reasoning(streaming.markdown.text(), open, render_cx);
            rows.into_iter().skip(range.start).take(range.len()).collect()
        }
    }
}

/// Returns the number of rows that `render_streaming` gives for a streaming text.
pub(super) fn streaming_height(
    streaming: &mut StreamingText,
    open: bool,
    render_cx: &RenderContext<'_>,
) -> usize {
    match streaming.stream {
        ModelStreamKind::Text => {
            streaming.markdown.height(render_cx.text_width(), render_cx.appearance).max(1)
        }
        ModelStreamKind::Reasoning => {
            render_streaming_reasoning(streaming.markdown.text(), open, render_cx).len()
        }
    }
}

fn render_streaming_reasoning(
    text: &str,
    open: bool,
    render_cx: &RenderContext<'_>,
) -> Vec<SafeLine> {
    let count = pluralize(text.split_whitespace().count(), "word");
    let mut rows = render_cx.quiet_row(StyleRole::Reasoning, &format!("Thinking ({count})"));
    if open {
        let text = render::render_plain(
            text.trim(),
            render_cx.inner_prose_width(),
            StyleRole::Reasoning,
            render_cx.appearance,
        );
        rows.extend(indent_rows(text, 2 * LEFT_MARGIN));
    }
    rows
}

/// Renders a queued prompt on one row, with its `PromptDelivery`.
pub(super) fn render_queued_prompt(
    text: &str,
    delivery: PromptDelivery,
    render_cx: &RenderContext<'_>,
) -> Vec<SafeLine> {
    let (mark, status) = match delivery {
        PromptDelivery::Steer => (render_cx.symbol("↳ ", "+>"), "sent at the next step"),
        PromptDelivery::Queue => (render_cx.symbol("… ", ".."), "queued"),
    };
    let suffix = format!(" · {status}");
    let text_width = render_cx.width.saturating_sub(LEFT_MARGIN + suffix.chars().count()).max(8);
    let dim = render_cx.appearance.style(StyleRole::Dim);
    let row = wrap::truncate(
        &SafeLine::styled(dim, &render_cx.ascii_fallback(&call_summary::first_line(text))),
        text_width,
        render_cx.appearance,
    );
    let mut line = SafeLine::styled(dim, mark);
    line.append(&row);
    vec![wrap::truncate(
        &line.with_text(dim, &render_cx.ascii_fallback(&suffix)),
        render_cx.width,
        render_cx.appearance,
    )]
}
