//! The side panel beside the transcript: session, model, context, cost, todos, changed files and
//! servers.

use super::App;
use super::status::session_facts;
use crate::layout_settings::SidePanelSetting;
use crate::panel::report_list::state_mark;
use crate::render;
use crate::safe_line::SafeLine;
use crate::session_state::SessionState;
use crate::theme::StyleRole;
use crate::ui_context::Appearance;
use crate::wrap::{self, WrapMode};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use windlass_protocol::frontend_messages::{ServerKind, ServerStatus};
use windlass_protocol::report::ReportRowState;

/// The width of the panel, including its border.
const PANEL_COLUMNS: u16 = 38;
/// The narrowest screen that shows the panel by itself: a diff in two columns fits beside it.
const MIN_AUTO_COLUMNS: u16 = 176;
/// The narrowest screen that shows the panel at all.
const MIN_COLUMNS: u16 = 90;
/// The border and the space after it.
const BORDER_COLUMNS: usize = 2;
const MAX_TITLE_ROWS: usize = 3;
const MAX_CHANGED_FILES: usize = 12;
const MAX_SERVERS: usize = 8;
/// The kinds of servers with their headings.
pub(crate) const SERVER_HEADINGS: [(ServerKind, &str); 2] =
    [(ServerKind::Language, "Language servers"), (ServerKind::Mcp, "MCP servers")];

impl App {
    /// Returns the width of the side panel on a screen of this width; 0 if it is hidden.
    pub(super) fn side_panel_width(&self, screen_columns: u16) -> u16 {
        let setting = self.appearance.layout.side_panel;
        let is_shown = match (self.side_panel_choice, setting) {
            (Some(is_shown), _) => is_shown,
            (None, SidePanelSetting::Auto) => {
                screen_columns >= MIN_AUTO_COLUMNS && self.state.session.is_some()
            }
            (None, SidePanelSetting::On) => true,
            (None, SidePanelSetting::Off) => false,
        };
        if is_shown && screen_columns >= MIN_COLUMNS { PANEL_COLUMNS } else { 0 }
    }

    /// Shows the side panel if it is hidden, and hides it otherwise.
    pub(super) fn toggle_side_panel(&mut self) {
        let columns = self.screen_columns;
        let is_shown = self.side_panel_width(columns) > 0;
        self.side_panel_choice = Some(!is_shown);
        if !is_shown && columns < MIN_COLUMNS {
            self.show_hint(&format!("The side panel needs {MIN_COLUMNS} columns"));
        }
    }

    pub(super) fn draw_side_panel(&self, area: Rect, buffer: &mut Buffer) {
        if area.is_empty() {
            return;
        }
        let border = if self.appearance.ascii { "|" } else { "│" };
        let border = SafeLine::styled(self.appearance.style(StyleRole::Border), border);
        let width = usize::from(area.width).saturating_sub(BORDER_COLUMNS + 1);
        let rows = render_side_panel(width, &self.appearance, &self.state);
        let mut rows = rows.iter();
        for y in area.y..area.bottom() {
            border.draw(Rect { y, height: 1, ..area }, buffer);
            if let Some(row) = rows.next() {
                let indent = BORDER_COLUMNS as u16;
                let row_area =
                    Rect { x: area.x + indent, y, width: area.width - indent, height: 1 };
                row.draw(row_area, buffer);
            }
        }
    }
}

fn render_side_panel(width: usize, appearance: &Appearance, state: &SessionState) -> Vec<SafeLine> {
    let styled = |role: StyleRole, text: &str| SafeLine::styled(appearance.style(role), text);
    let mut rows = Vec::new();
    let title = match (state.title.as_str(), state.head) {
        ("", 0) => "New session",
        ("", _) => "Untitled session",
        (title, _) => title,
    };
    let title = styled(StyleRole::Strong, title);
    rows.extend(wrap::wrap(&title, width, WrapMode::Words, 0).into_iter().take(MAX_TITLE_ROWS));
    rows.push(SafeLine::default());
    for (label, value) in session_facts(state) {
        let row = styled(StyleRole::Dim, &format!("{label:<9}"))
            .with_text(appearance.style(StyleRole::Text), &value);
        rows.push(wrap::truncate(&row, width, appearance));
    }
    if !state.todos.is_empty() {
        let done = state.todos.iter().filter(|todo| !todo.status.is_open()).count();
        push_heading(&mut rows, &format!("Todo {done}/{}", state.todos.len()), appearance);
        rows.extend(render::render_todos(&state.todos, width, appearance));
    }
    let changed: Vec<&str> = state.changed_files().collect();
    if !changed.is_empty() {
        push_heading(&mut rows, "Changed files", appearance);
        for path in changed.iter().take(MAX_CHANGED_FILES) {
            rows.push(truncate_start(path, width, appearance));
        }
        push_more(&mut rows, changed.len(), MAX_CHANGED_FILES, appearance);
    }
    for (kind, heading) in SERVER_HEADINGS {
        let of_kind = state.host_status.servers.iter().filter(|server| server.kind == kind);
        let servers: Vec<&ServerStatus> = of_kind.collect();
        if !servers.is_empty() {
            push_heading(&mut rows, heading, appearance);
        }
        for server in servers.iter().take(MAX_SERVERS) {
            let (mark, role) = state_mark(server.state, appearance.ascii);
            let row = styled(role, &format!("{mark} "))
                .with_text(appearance.style(StyleRole::Text), &server.name)
                .with_text(appearance.style(StyleRole::Dim), state_note(server.state));
            rows.push(wrap::truncate(&row, width, appearance));
        }
        push_more(&mut rows, servers.len(), MAX_SERVERS, appearance);
    }
    rows
}

/// Returns the state of a server in words, if it is worth attention.
pub(crate) fn state_note(state: ReportRowState) -> &'static str {
    match state {
        ReportRowState::Active | ReportRowState::Idle | ReportRowState::Off => "",
        ReportRowState::Starting => " starting",
        ReportRowState::Warning => " needs attention",
        ReportRowState::Failed => " failed",
    }
}

/// Adds a row with the number of items beyond the limit.
fn push_more(rows: &mut Vec<SafeLine>, count: usize, limit: usize, appearance: &Appearance) {
    if count > limit {
        let text = format!("and {} more", count - limit);
        rows.push(SafeLine::styled(appearance.style(StyleRole::Dim), &text));
    }
}

fn push_heading(rows: &mut Vec<SafeLine>, text: &str, appearance: &Appearance) {
    rows.push(SafeLine::default());
    rows.push(SafeLine::styled(appearance.style(StyleRole::Heading), text));
}

/// Truncates a path at its start: its end tells more.
fn truncate_start(path: &str, width: usize, appearance: &Appearance) -> SafeLine {
    let style = appearance.style(StyleRole::Text);
    let row = SafeLine::styled(style, path);
    if row.width() <= width {
        return row;
    }
    let marker = wrap::ellipsis(appearance);
    let available = width.saturating_sub(marker.chars().count());
    let text = row.text();
    let mut used = 0;
    let fits = |(_, _, columns): &(usize, &str, usize)| {
        used += columns;
        used <= available
    };
    let clusters: Vec<(usize, &str, usize)> = crate::safe_line::clusters(&text).collect();
    let start = clusters.into_iter().rev().take_while(fits).last().map_or(0, |(start, ..)| start);
    SafeLine::styled(Style::default(), marker)
        .with_text(style, text.get(start..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::todo_list::{TodoPriority, TodoStatus};
    use windlass_protocol::{BlobRef, Cost, FileChange, FileVersion, TodoItem};

    fn changed_file(path: &str, exists: bool) -> FileChange {
        let blob = BlobRef::parse(&"0".repeat(64)).unwrap();
        let after = exists.then_some(FileVersion { blob, unix_mode: None });
        FileChange { path: path.into(), before: None, after }
    }

    #[test]
    fn the_panel_shows_what_is_known_and_nothing_wider() {
        let mut state = SessionState { title: "Fix the flaky test".into(), ..Default::default() };
        state.model = "anthropic/claude-opus-4".into();
        state.host_status.context_window = Some(200_000);
        state.host_status.branch = Some("main".into());
        (state.context_tokens, state.cost) = (24_000, Cost(420_000));
        state.todos = vec![TodoItem {
            content: "Read the log".into(),
            status: TodoStatus::Pending,
            priority: TodoPriority::Medium,
        }];
        state.note_changed_files(&[
            changed_file("a.rs", true),
            changed_file("undone.rs", false),
            changed_file("crates/a/very/long/path/to/some/module/file.rs", true),
        ]);
        state.host_status.effort = Some("high".into());
        let server = |kind, name: &str, state| ServerStatus { kind, name: name.into(), state };
        state.host_status.servers = vec![
            server(ServerKind::Mcp, "tickets", ReportRowState::Failed),
            server(ServerKind::Language, "rust-analyzer", ReportRowState::Active),
        ];
        let rows = render_side_panel(30, &Appearance::default(), &state);
        let text: Vec<String> = rows.iter().map(SafeLine::text).collect();
        let text = text.join("\n");
        for part in [
            "Fix the flaky test",
            "claude-opus-4",
            "24k of 200k (12 %)",
            "$0.42",
            "main",
            "Todo 0/1",
            "Read the log",
            "module/file.rs",
            "Effort   high",
            "Language servers\n● rust-analyzer",
            "MCP servers\n✗ tickets failed",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("undone.rs"), "{text}");
        assert!(rows.iter().all(|row| row.width() <= 30), "{text}");
    }

    #[test]
    fn the_number_of_further_servers_is_shown() {
        let mut state = SessionState::default();
        let server = |number: usize| ServerStatus {
            kind: ServerKind::Mcp,
            name: format!("server{number}"),
            state: ReportRowState::Active,
        };
        let last_rows = |state: &SessionState| {
            let rows = render_side_panel(30, &Appearance::default(), state);
            rows.iter().rev().take(2).map(SafeLine::text).collect::<Vec<String>>()
        };
        state.host_status.servers = (1..=MAX_SERVERS).map(server).collect();
        assert_eq!(last_rows(&state), ["● server8", "● server7"]);
        state.host_status.servers = (1..=MAX_SERVERS + 3).map(server).collect();
        assert_eq!(last_rows(&state), ["and 3 more", "● server8"]);
    }
}
