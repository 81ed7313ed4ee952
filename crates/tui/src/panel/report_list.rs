//! The panel of a host report (`/mcp`, `/permissions`, `/lsp`, `/plugins`, `/stats`): a list of its
//! rows, the details of a row, and the actions on it.

use super::filter_list::{FilterList, ListItem, ListKeyOutcome, ListLoadState};
use super::pager::Pager;
use super::{Panel, PanelControlFlow, shared_rows};
use crate::keys::UiCommand;
use crate::render;
use crate::session_state::SessionState;
use crate::theme::StyleRole;
use crate::ui_context::{Appearance, UiContext};
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use windlass_protocol::Fault;
use windlass_protocol::display_text::truncate_chars;
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};
use windlass_protocol::report::{ReportAction, ReportKind, ReportRow, ReportRowState};

/// The longest name in a question and in the title.
const MAX_NAME_CHARS: usize = 40;

/// The report of a command; `arguments` is the text after its name. `None` if the command has none.
pub(crate) fn report_of(
    command: UiCommand,
    arguments: &str,
    state: &SessionState,
) -> Option<ReportKind> {
    Some(match command {
        UiCommand::McpServers => ReportKind::McpServers,
        UiCommand::Permissions => ReportKind::Permissions { session: state.session },
        UiCommand::LanguageServers => ReportKind::LanguageServers,
        UiCommand::Plugins => ReportKind::Plugins,
        UiCommand::Stats => ReportKind::Statistics { days: arguments.trim().parse().ok() },
        _ => return None,
    })
}

/// Returns the text for a report without rows, and the next step.
pub(crate) fn empty_text(report: ReportKind) -> &'static str {
    match report {
        ReportKind::McpServers => "No MCP servers. To add one: windlass mcp add NAME -- COMMAND",
        ReportKind::Permissions { .. } => {
            "No rules and no approvals: the mode decides (Shift+Tab, or /mode)"
        }
        ReportKind::LanguageServers => "No language server fits the files of this project",
        ReportKind::Plugins => "No plugins. To add one: windlass plugin add SOURCE",
        ReportKind::Statistics { .. } => "No usage in this period",
    }
}

/// The panel of one report.
#[derive(Debug)]
pub struct ReportListPanel {
    report: ReportKind,
    /// The value of a list row is an index into `rows`.
    list: FilterList<usize>,
    rows: Vec<ReportRow>,
    pending_request: Option<u64>,
    /// The request that is answered when no server is starting. The list can be used meanwhile.
    settled_request: Option<u64>,
    /// The row whose details are shown, with its name.
    open_details: Option<(String, String, Pager)>,
    /// The item and the action that await the user's confirmation.
    unconfirmed_action: Option<(String, ReportAction)>,
}

impl ReportListPanel {
    /// Requests a report and opens its panel. Text in `arguments` that is no number filters the
    /// list.
    pub fn open(report: ReportKind, arguments: &str, cx: &mut UiContext<'_>) -> ReportListPanel {
        let mut list = FilterList::loading("Loading", empty_text(report));
        if !matches!(report, ReportKind::Statistics { .. }) {
            list.set_filter(arguments.trim());
        }
        let request = FrontendRequest::Report { report, settled: false };
        let pending_request = Some(cx.send_request(request));
        ReportListPanel {
            report,
            list,
            rows: Vec::new(),
            pending_request,
            settled_request: None,
            open_details: None,
            unconfirmed_action: None,
        }
    }

    fn refresh_list(&mut self, ascii: bool) {
        let item = |(index, row): (usize, &ReportRow)| {
            let item = ListItem {
                columns: row.columns.clone(),
                mark: row.state.map(|state| state_mark(state, ascii)),
                searches_note: true,
                ..ListItem::new(&row.name).with_note(&row.note).in_group(row.group.title())
            };
            (item, index)
        };
        self.list.set_items(self.rows.iter().enumerate().map(item).collect());
    }

    fn selected_row(&self) -> Option<&ReportRow> {
        self.list.selected().and_then(|(_, index)| self.rows.get(*index))
    }

    fn run_action(&mut self, item: String, action: ReportAction, cx: &mut UiContext<'_>) {
        let report = self.report;
        let request = FrontendRequest::RunReportAction { report, item, action };
        self.pending_request = Some(cx.send_request(request));
        self.list.state = ListLoadState::Loading(match action {
            ReportAction::Restart => "Restarting the server",
            ReportAction::Revoke => "Revoking the approval",
        });
    }

    fn on_action(&mut self, command: UiCommand, cx: &mut UiContext<'_>) {
        let Some(row) = self.selected_row() else { return };
        let action = match command {
            UiCommand::RestartRow => ReportAction::Restart,
            UiCommand::DeleteRow => ReportAction::Revoke,
            _ => return,
        };
        if !row.actions.contains(&action) {
            return;
        }
        let (id, name) = (row.id.clone(), truncate_chars(&row.name, MAX_NAME_CHARS));
        match action {
            ReportAction::Restart => self.run_action(id, action, cx),
            ReportAction::Revoke => {
                self.list.confirmation = Some(format!("Press y to revoke: {name}"));
                self.unconfirmed_action = Some((id, action));
            }
        }
    }

    fn key_hints(&self, appearance: &Appearance) -> String {
        let row = self.selected_row();
        let has_action = |action| row.is_some_and(|row: &ReportRow| row.actions.contains(&action));
        let mut keys = Vec::new();
        if row.is_some_and(|row| !row.details.is_empty()) {
            keys.push((UiCommand::ChooseRow, "details"));
        }
        if has_action(ReportAction::Restart) {
            keys.push((UiCommand::RestartRow, "restart"));
        }
        if has_action(ReportAction::Revoke) {
            keys.push((UiCommand::DeleteRow, "revoke"));
        }
        keys.push((UiCommand::Escape, "close"));
        shared_rows::describe_keys(appearance, &keys)
    }
}

/// Returns the mark of a state and its `StyleRole`.
pub(crate) fn state_mark(state: ReportRowState, ascii: bool) -> (&'static str, StyleRole) {
    match (state, ascii) {
        (ReportRowState::Active, false) => ("●", StyleRole::Success),
        (ReportRowState::Active, true) => ("*", StyleRole::Success),
        (ReportRowState::Idle | ReportRowState::Starting, false) => ("○", StyleRole::Dim),
        (ReportRowState::Idle | ReportRowState::Starting, true) => ("o", StyleRole::Dim),
        (ReportRowState::Warning, _) => ("!", StyleRole::Warning),
        (ReportRowState::Failed, false) => ("✗", StyleRole::Error),
        (ReportRowState::Failed, true) => ("x", StyleRole::Error),
        (ReportRowState::Off, _) => ("-", StyleRole::Dim),
    }
}

impl Panel for ReportListPanel {
    fn title(&self) -> String {
        if let Some((name, ..)) = &self.open_details {
            return truncate_chars(name, MAX_NAME_CHARS);
        }
        match self.report {
            ReportKind::McpServers => "MCP servers".to_owned(),
            ReportKind::Permissions { .. } => "Permissions".to_owned(),
            ReportKind::LanguageServers => "Language servers".to_owned(),
            ReportKind::Plugins => "Plugins".to_owned(),
            ReportKind::Statistics { days: None } => "Usage".to_owned(),
            ReportKind::Statistics { days: Some(1) } => "Usage of today".to_owned(),
            ReportKind::Statistics { days: Some(days) } => format!("Usage of the last {days} days"),
        }
    }

    fn on_key(&mut self, key: &KeyEvent, cx: &mut UiContext<'_>) -> PanelControlFlow {
        if let Some((.., pager)) = &mut self.open_details {
            pager.on_key(key, &cx.appearance.key_map);
            return PanelControlFlow::Stay;
        }
        // Keys pressed during a request do not run a second one.
        if self.pending_request.is_some() {
            return PanelControlFlow::Stay;
        }
        if self.list.confirmation.take().is_some() {
            if let (Some((id, action)), KeyCode::Char('y')) =
                (self.unconfirmed_action.take(), key.code)
            {
                self.run_action(id, action, cx);
            }
            return PanelControlFlow::Stay;
        }
        match self.list.on_key(key, &cx.appearance.key_map) {
            ListKeyOutcome::RowCommand(command) => self.on_action(command, cx),
            ListKeyOutcome::RowChosen => {
                let row = self.selected_row().filter(|row| !row.details.is_empty());
                self.open_details =
                    row.map(|row| (row.name.clone(), row.details.clone(), Pager::default()));
            }
            _ => {}
        }
        PanelControlFlow::Stay
    }

    fn on_escape(&mut self, _: &mut UiContext<'_>) -> PanelControlFlow {
        self.unconfirmed_action = None;
        match self.open_details.take().is_some() | self.list.confirmation.take().is_some() {
            true => PanelControlFlow::Stay,
            false => PanelControlFlow::Close,
        }
    }

    fn on_paste(&mut self, text: &str, _: &mut UiContext<'_>) {
        if self.open_details.is_none() {
            self.list.on_paste(text);
        }
    }

    fn on_wheel(&mut self, lines: i32, _: &mut UiContext<'_>) {
        match &mut self.open_details {
            Some((.., pager)) => pager.scroll_by(lines),
            None => self.list.move_selection(lines),
        }
    }

    fn on_response(
        &mut self,
        id: u64,
        response: &Result<HostResponse, Fault>,
        cx: &mut UiContext<'_>,
    ) -> bool {
        let is_settled = self.settled_request.take_if(|pending| *pending == id).is_some();
        if !is_settled && self.pending_request.take_if(|pending| *pending == id).is_none() {
            return false;
        }
        match response {
            // A request of the user is under way, and its response is newer.
            _ if is_settled && self.pending_request.is_some() => {}
            Ok(HostResponse::Report { rows }) => {
                self.rows.clone_from(rows);
                self.refresh_list(cx.appearance.ascii);
                let is_starting = |row: &ReportRow| row.state == Some(ReportRowState::Starting);
                if !is_settled && rows.iter().any(is_starting) {
                    let request = FrontendRequest::Report { report: self.report, settled: true };
                    self.settled_request = Some(cx.send_request(request));
                }
            }
            Ok(_) => {}
            Err(fault) => self.list.set_failed(fault),
        }
        true
    }

    fn height(&self, _: u16, _: &SessionState) -> u16 {
        match &self.open_details {
            Some(_) => u16::MAX,
            None => self.list.height(),
        }
    }

    fn draw(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        appearance: &Appearance,
        _: &SessionState,
    ) -> Option<Position> {
        let hints = self.key_hints(appearance);
        let Some((_, details, pager)) = &mut self.open_details else {
            return self.list.draw(area, buffer, appearance, &hints);
        };
        let (body, footer) = shared_rows::split_footer(area);
        pager.draw(body, buffer, appearance, |width| {
            let inner = width.saturating_sub(shared_rows::PANEL_MARGIN + 1).max(1);
            let rows = render::render_plain(details, inner, StyleRole::Text, appearance);
            rows.iter().map(|row| shared_rows::indent_row(row, shared_rows::PANEL_MARGIN)).collect()
        });
        let back = shared_rows::describe_keys(appearance, &[(UiCommand::Escape, "back")]);
        let position = Some(pager.position_label()).filter(|position| !position.is_empty());
        let hints: Vec<String> = [back].into_iter().chain(position).collect();
        let hints = hints.join(shared_rows::item_separator(appearance));
        shared_rows::hint_row(&hints, appearance, footer.width).draw(footer, buffer);
        None
    }
}
