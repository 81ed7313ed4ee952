//! The two status rows around the prompt: the rule above it, which shows the current activity, and
//! the status line at the bottom.

use super::connection::{connection_text, folder_with_host};
use crate::keys::UiCommand;
use crate::layout_settings::{StatusItem, StatusLineSetting};
use crate::questions::QuestionKind;
use crate::safe_line::SafeLine;
use crate::session_state::SessionState;
use crate::theme::StyleRole;
use crate::ui_context::Appearance;
use crate::wrap;
use windlass_protocol::display_text::{format_duration, pluralize};
use windlass_protocol::frontend_messages::ServerKind;
use windlass_protocol::report::ReportRowState;
use windlass_protocol::{Cost, PermissionMode};

/// The smallest gap between the left and the right part of the status line.
const MIN_GAP_COLUMNS: usize = 2;

/// The content of the rule above the `PromptEditor`.
pub(super) struct PromptSeparatorLine<'a> {
    /// A temporary message; it replaces the activity.
    pub(super) hint: Option<&'a str>,
    /// The duration of the current turn so far, in milliseconds.
    pub(super) turn_millis: Option<u64>,
    /// The current time, in milliseconds.
    pub(super) now: u64,
    /// The question that waits for the user.
    pub(super) question: Option<QuestionKind>,
}

impl PromptSeparatorLine<'_> {
    /// Renders the rule over the whole width of the screen.
    pub(super) fn render(
        &self,
        width: usize,
        appearance: &Appearance,
        state: &SessionState,
    ) -> SafeLine {
        let (border, dim) = (appearance.style(StyleRole::Border), appearance.style(StyleRole::Dim));
        let line = if appearance.ascii { "-" } else { "─" };
        let (mark, dot) = if appearance.ascii { ("*", "-") } else { ("●", "·") };
        let (mut content, mut time) = (SafeLine::default(), String::new());
        match (self.hint, self.turn_millis) {
            (Some(hint), _) => content.push_text(appearance.style(StyleRole::Text), hint),
            (None, Some(millis)) => {
                content.push_text(appearance.style(StyleRole::Accent), mark);
                let retry_wait = state.retry_at.and_then(|at| at.checked_sub(self.now));
                let activity = match (state.stop_requested, self.question, retry_wait) {
                    (true, ..) => "stopping".to_owned(),
                    (false, Some(_), _) => "waiting for your answer".to_owned(),
                    // Rounded up, so that it ends at 1 s.
                    (false, None, Some(wait)) => {
                        format!("retrying in {}", format_duration(wait.saturating_add(999)))
                    }
                    (false, None, None) if state.retry_at.is_some() => "retrying".to_owned(),
                    (false, None, None) => state.activity.clone(),
                };
                content.push_text(appearance.style(StyleRole::Text), &format!(" {activity}"));
                if retry_wait.is_none() {
                    time = format!(" {dot} {}", format_duration(millis));
                }
            }
            (None, None) if state.can_retry() => {
                let key = appearance.key_map.key_hint(UiCommand::SendPrompt);
                let text = format!("press {key} to try again");
                content.push_text(appearance.style(StyleRole::Warning), &text);
            }
            (None, None) if state.can_continue() => {
                content.push_text(dim, "interrupted; /retry continues")
            }
            (None, None) => return SafeLine::styled(border, &line.repeat(width)),
        }
        let stop_command = match self.question {
            Some(QuestionKind::UserQuestion) => UiCommand::Interrupt,
            Some(QuestionKind::Permission) | None => UiCommand::Escape,
        };
        let stop_hint = match (self.hint, state.stop_requested) {
            (Some(_), _) => String::new(),
            (None, _) if self.turn_millis.is_none() => String::new(),
            (None, false) => {
                format!(" {} to stop ", appearance.key_map.key_hint(stop_command))
            }
            (None, true) => {
                format!(" {} again: stop now ", appearance.key_map.key_hint(UiCommand::Escape))
            }
        };
        let stop_hint = if width < 40 { String::new() } else { stop_hint };
        let available = width.saturating_sub(stop_hint.chars().count() + 3 + 3);
        // The activity text is truncated, the time never.
        let content =
            wrap::truncate(&content, available.saturating_sub(time.chars().count()), appearance)
                .with_text(dim, &time);
        let fill_width =
            width.saturating_sub(3 + content.width() + 1 + stop_hint.chars().count() + 2);
        let mut row = SafeLine::styled(border, &format!("{} ", line.repeat(2)));
        for (style, text) in content.spans() {
            row.push_text(style, text);
        }
        row.push_text(border, &format!(" {}", line.repeat(fill_width)));
        row.push_text(dim, &stop_hint);
        row.push_text(border, &line.repeat(2));
        wrap::truncate(&row, width, appearance)
    }
}

/// The items of `StatusLineSetting::Automatic` at the left and at the right, each with its rank.
/// Those with the highest rank are left out first.
const LEFT_ITEMS: [(StatusItem, u8); 11] = [
    (StatusItem::Mode, 0),
    (StatusItem::Model, 1),
    (StatusItem::Context, 2),
    (StatusItem::Cost, 3),
    (StatusItem::Agents, 2),
    (StatusItem::Jobs, 2),
    (StatusItem::Todos, 4),
    (StatusItem::Agent, 3),
    (StatusItem::Clients, 3),
    (StatusItem::McpServers, 5),
    (StatusItem::LanguageServers, 5),
];
const RIGHT_ITEMS: [(StatusItem, u8); 3] =
    [(StatusItem::Title, 6), (StatusItem::Branch, 5), (StatusItem::Folder, 7)];
/// The columns of the session title; longer ones are cut.
const MAX_TITLE_COLUMNS: usize = 40;

/// Texts for the status line that are not in the `SessionState`.
#[derive(Clone, Copy, Default)]
pub(super) struct StatusTexts<'a> {
    /// The editing mode of the prompt, if it has modes; it comes first.
    pub(super) editing_mode: Option<&'a str>,
    /// The output of the user's own command.
    pub(super) command_output: &'a str,
}

/// Renders the bottom row. Items that do not fit are left out, the least important first.
pub(super) fn render_status_line(
    width: usize,
    texts: StatusTexts<'_>,
    appearance: &Appearance,
    state: &SessionState,
) -> SafeLine {
    let segments = |items: &[(StatusItem, u8)]| -> Vec<(u8, SafeLine)> {
        let segment = |(item, rank): &(StatusItem, u8)| {
            Some((*rank, render_status_item(*item, appearance, state)?))
        };
        items.iter().filter_map(segment).collect()
    };
    let (mut left, right) = match &appearance.layout.status_line {
        StatusLineSetting::Automatic => (segments(&LEFT_ITEMS), segments(&RIGHT_ITEMS)),
        StatusLineSetting::Items(items) => {
            let ranked: Vec<(StatusItem, u8)> = items.iter().copied().zip(0..=u8::MAX).collect();
            (segments(&ranked), Vec::new())
        }
        StatusLineSetting::Command => {
            // Colors are kept, other control sequences are dropped.
            let rows =
                crate::render::render_terminal_output(texts.command_output, width, appearance);
            (rows.into_iter().take(1).map(|row| (0, row)).collect(), Vec::new())
        }
    };
    // Whatever the user chose to see: nothing works as usual then.
    if let Some(text) = connection_text(state) {
        left.insert(0, (0, SafeLine::styled(appearance.style(StyleRole::Warning), text)));
    }
    if let Some(editing_mode) = texts.editing_mode {
        let style = appearance.style(StyleRole::Strong);
        left.insert(0, (0, SafeLine::styled(style, editing_mode)));
    }
    fit_segments(left, right, width, appearance)
}

/// Renders an item of the status line; `None` if there is nothing to show.
fn render_status_item(
    item: StatusItem,
    appearance: &Appearance,
    state: &SessionState,
) -> Option<SafeLine> {
    let dim = |text: &str| Some(SafeLine::styled(appearance.style(StyleRole::Dim), text));
    let count_row = |count: usize, noun: &str| {
        let style = appearance.style(StyleRole::Accent);
        (count > 0).then(|| SafeLine::styled(style, &pluralize(count, noun)))
    };
    match item {
        StatusItem::Mode => {
            Some(SafeLine::styled(appearance.style(mode_role(state.mode)), state.mode.name()))
        }
        StatusItem::Model if state.model.is_empty() => None,
        StatusItem::Model => dim(&model_and_effort(state)),
        StatusItem::Context => {
            let used = context_usage(state)?;
            let nearly_full = state
                .host_status
                .context_window
                .is_some_and(|window| state.context_tokens * 10 > window * 8);
            let role = if nearly_full { StyleRole::Warning } else { StyleRole::Dim };
            Some(SafeLine::styled(appearance.style(role), &used))
        }
        StatusItem::Cost if state.cost.0 == 0 => None,
        StatusItem::Cost => dim(&format_cost(state.cost)),
        StatusItem::Agents => {
            count_row(state.subagents.values().filter(|child| !child.is_done).count(), "agent")
        }
        StatusItem::Jobs => count_row(state.jobs.values().filter(|job| job.running).count(), "job"),
        StatusItem::Todos => {
            let open_todos = state.todos.iter().filter(|todo| todo.status.is_open()).count();
            let done = state.todos.len() - open_todos;
            (open_todos > 0).then(|| dim(&format!("{done}/{} done", state.todos.len())))?
        }
        StatusItem::Agent => {
            let is_default = state.agent == windlass_protocol::DEFAULT_AGENT;
            (!is_default && !state.agent.is_empty()).then(|| dim(&state.agent))?
        }
        StatusItem::Title if state.title.is_empty() => None,
        StatusItem::Title => {
            Some(wrap::truncate(&dim(&state.title)?, MAX_TITLE_COLUMNS, appearance))
        }
        StatusItem::Branch => dim(state.host_status.branch.as_deref()?),
        StatusItem::Folder if state.host_status.workspace.is_empty() => None,
        StatusItem::Folder => dim(&folder_with_host(&state.host_status)),
        StatusItem::Clients => count_row(state.other_client_count(), "other client"),
        StatusItem::McpServers => server_count(ServerKind::Mcp, "MCP", appearance, state),
        StatusItem::LanguageServers => server_count(ServerKind::Language, "LSP", appearance, state),
    }
}

/// Returns the name of the model, with its effort or variant if one is set.
fn model_and_effort(state: &SessionState) -> String {
    let model = state.model.rsplit('/').next().unwrap_or_default();
    match &state.host_status.effort {
        Some(effort) => format!("{model} {effort}"),
        None => model.to_owned(),
    }
}

/// Renders the number of servers that failed or else of those that need the user, such as for a
/// login, or else of those that run; `None` if there are none of them.
fn server_count(
    kind: ServerKind,
    label: &str,
    appearance: &Appearance,
    state: &SessionState,
) -> Option<SafeLine> {
    let servers = state.host_status.servers.iter().filter(|server| server.kind == kind);
    let count = |state| servers.clone().filter(|server| server.state == state).count();
    let failed = count(ReportRowState::Failed);
    let (warnings, running) = (count(ReportRowState::Warning), count(ReportRowState::Active));
    let (role, text) = match (failed, warnings, running) {
        (0, 0, 0) => return None,
        (0, 0, _) => (StyleRole::Dim, format!("{running} {label}")),
        (0, 1, _) => (StyleRole::Warning, format!("1 {label} needs attention")),
        (0, ..) => (StyleRole::Warning, format!("{warnings} {label} need attention")),
        _ => (StyleRole::Warning, format!("{failed} {label} failed")),
    };
    Some(SafeLine::styled(appearance.style(role), &text))
}

/// Drops the segments with the highest rank number until the rest fits.
fn fit_segments(
    mut left: Vec<(u8, SafeLine)>,
    mut right: Vec<(u8, SafeLine)>,
    width: usize,
    appearance: &Appearance,
) -> SafeLine {
    let dim = appearance.style(StyleRole::Dim);
    let separator = if appearance.ascii { " | " } else { " · " };
    let join_segments = |rows: &[(u8, SafeLine)]| {
        let mut joined = SafeLine::default();
        for (_, row) in rows {
            if joined.width() > 0 {
                joined.push_text(dim, separator);
            }
            row.spans().for_each(|(style, text)| joined.push_text(style, text));
        }
        joined
    };
    loop {
        let (start, end) = (join_segments(&left), join_segments(&right));
        let gap = if end.width() > 0 { MIN_GAP_COLUMNS } else { 0 };
        let used = 1 + start.width() + gap + end.width() + 1;
        let rest = left.len() + right.len();
        if used <= width || rest <= 1 {
            let mut row = SafeLine::styled(dim, " ");
            start.spans().for_each(|(style, text)| row.push_text(style, text));
            let gap_width = width.saturating_sub(row.width() + end.width() + 1);
            row.push_text(dim, &" ".repeat(gap_width));
            end.spans().for_each(|(style, text)| row.push_text(style, text));
            return wrap::truncate(&row, width, appearance);
        }
        let max_rank = left.iter().chain(&right).map(|(rank, _)| *rank).max().unwrap_or_default();
        left.retain(|(rank, _)| *rank < max_rank);
        right.retain(|(rank, _)| *rank < max_rank);
    }
}

fn mode_role(mode: PermissionMode) -> StyleRole {
    match mode {
        PermissionMode::Plan => StyleRole::Accent,
        PermissionMode::Ask => StyleRole::Strong,
        PermissionMode::Auto => StyleRole::Success,
        PermissionMode::Full => StyleRole::Error,
    }
}

/// Formats the used share of the context window, or the token count if the size of the window is
/// unknown.
fn context_usage(state: &SessionState) -> Option<String> {
    if state.context_tokens == 0 {
        return None;
    }
    let window = state.host_status.context_window.filter(|window| *window > 0);
    Some(match window {
        Some(window) => {
            format!("{} % full", (state.context_tokens * 100).div_ceil(window).min(100))
        }
        None => format!("{} tokens", format_count(state.context_tokens)),
    })
}

/// Returns the labelled facts about the session; those that are unknown are left out.
pub(crate) fn session_facts(state: &SessionState) -> Vec<(&'static str, String)> {
    let mut facts = vec![("Mode", state.mode.name().to_owned())];
    if !state.model.is_empty() {
        facts.push(("Model", state.model.rsplit('/').next().unwrap_or_default().to_owned()));
    }
    if let Some(effort) = &state.host_status.effort {
        facts.push(("Effort", effort.clone()));
    }
    if !state.agent.is_empty() {
        facts.push(("Agent", state.agent.clone()));
    }
    if state.context_tokens > 0 {
        let used = format_count(state.context_tokens);
        facts.push((
            "Context",
            match state.host_status.context_window.filter(|window| *window > 0) {
                Some(window) => {
                    let percent = (state.context_tokens * 100).div_ceil(window).min(100);
                    format!("{used} of {} ({percent} %)", format_count(window))
                }
                None => format!("{used} tokens"),
            },
        ));
    }
    if state.cost.0 > 0 {
        facts.push(("Cost", format_cost(state.cost)));
    }
    if let Some(branch) = &state.host_status.branch {
        facts.push(("Branch", branch.clone()));
    }
    if let Some(host) = &state.host_status.host {
        facts.push(("Server", host.clone()));
    }
    if state.other_client_count() > 0 {
        facts.push(("Clients", pluralize(state.other_client_count(), "other client")));
    }
    if let Some(text) = connection_text(state) {
        facts.push(("State", text.to_owned()));
    }
    facts
}

/// Formats a number in short form: `950`, `12k`, `1.2M`.
pub(crate) fn format_count(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => format!("{}k", number / 1_000),
        _ => format!("{}.{}M", number / 1_000_000, number % 1_000_000 / 100_000),
    }
}

/// Formats a cost in dollars, with enough digits that a small amount does not look like zero.
pub(crate) fn format_cost(cost: Cost) -> String {
    let dollars = cost.0 as f64 / 1e6;
    match cost.0 {
        0..10_000 => format!("${dollars:.4}"),
        _ => format!("${dollars:.2}"),
    }
}

#[cfg(test)]
mod tests;
