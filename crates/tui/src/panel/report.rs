//! The report panel: loads something once for the user to read or to approve.

use super::pager::Pager;
use super::{Panel, PanelControlFlow, report_rows, shared_rows};
use crate::keys::UiCommand;
use crate::render;
use crate::safe_line::SafeLine;
use crate::session_state::SessionState;
use crate::theme::StyleRole;
use crate::ui_context::{Appearance, UiContext};
use crate::wrap;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};
use windlass_protocol::{
    ContextUsagePart, Cost, DiffDirection, Fault, LogSeq, QueryReply, SessionId, SessionOp,
    SessionQuery, TodoItem, TokenUsage, UndoScope, frontend_messages,
};

/// Diffs with more lines are taller than any screen.
const TALL_DIFF_LINES: usize = 200;

/// Content of a `ReportPanel`.
#[derive(Debug)]
enum ReportContent {
    /// A sentence, shown if there is nothing to report.
    Message(&'static str),
    /// A request is pending; the text says so.
    Loading(&'static str),
    Failed(Fault),
    Changes {
        facts: Vec<LogSeq>,
        diff: String,
    },
    Todos(Vec<TodoItem>),
    Cost {
        usage: TokenUsage,
        cost: Cost,
        agents: (usize, Cost),
    },
    Context {
        window: Option<u64>,
        reserve: u64,
        parts: Vec<ContextUsagePart>,
    },
    Doctor(Vec<frontend_messages::ListRow>),
}

/// The purpose of a report: read it, or approve an undo or redo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReportPurpose {
    View,
    Undo,
    Redo,
}

/// A panel that shows one report.
#[derive(Debug)]
pub struct ReportPanel {
    title: &'static str,
    purpose: ReportPurpose,
    session: Option<SessionId>,
    content: ReportContent,
    pending_requests: Vec<u64>,
    subagent_costs: (usize, Cost),
    pager: Pager,
    approved_change: Option<String>,
}

impl ReportPanel {
    fn new(
        title: &'static str,
        content: ReportContent,
        pending_requests: Vec<u64>,
        cx: &UiContext<'_>,
    ) -> ReportPanel {
        ReportPanel {
            title,
            purpose: ReportPurpose::View,
            session: cx.state.session,
            content,
            pending_requests,
            subagent_costs: (0, Cost(0)),
            pager: Pager::default(),
            approved_change: None,
        }
    }

    /// Creates a report from queries about the session; without a session it shows a sentence
    /// instead.
    fn for_session(
        title: &'static str,
        loading_text: &'static str,
        cx: &mut UiContext<'_>,
        queries: impl FnOnce(SessionId) -> Vec<SessionQuery>,
    ) -> ReportPanel {
        let Some(session) = cx.state.session else {
            return ReportPanel::new(
                title,
                ReportContent::Message("No session yet"),
                Vec::new(),
                cx,
            );
        };
        let pending_requests =
            queries(session).into_iter().map(|query| cx.send_query(query)).collect();
        ReportPanel::new(title, ReportContent::Loading(loading_text), pending_requests, cx)
    }

    /// Opens a preview of undoing the changes of the last turn (`UndoScope::LastTurn`).
    pub fn undo(cx: &mut UiContext<'_>) -> ReportPanel {
        let (scope, direction) = (UndoScope::LastTurn, DiffDirection::Reverse);
        let report_panel = ReportPanel::for_session("Undo", "Loading changes", cx, |session| {
            vec![SessionQuery::Changes { session, scope, direction }]
        });
        ReportPanel { purpose: ReportPurpose::Undo, ..report_panel }
    }

    /// Opens a preview of redoing the last undo (`UndoScope::LastUndo`).
    pub fn redo(cx: &mut UiContext<'_>) -> ReportPanel {
        let (scope, direction) = (UndoScope::LastUndo, DiffDirection::Reverse);
        let report_panel =
            ReportPanel::for_session("Redo", "Loading the undone changes", cx, |session| {
                vec![SessionQuery::Changes { session, scope, direction }]
            });
        ReportPanel { purpose: ReportPurpose::Redo, ..report_panel }
    }

    /// Opens the diff of all changes of the session (`UndoScope::All`).
    pub fn diff(cx: &mut UiContext<'_>) -> ReportPanel {
        let (scope, direction) = (UndoScope::All, DiffDirection::Forward);
        ReportPanel::for_session("Changes in this session", "Loading changes", cx, |session| {
            vec![SessionQuery::Changes { session, scope, direction }]
        })
    }

    /// Opens the todo list. If the state has none, for example after a resume, it sends a
    /// `SessionQuery::Transcript`.
    pub fn todos(cx: &mut UiContext<'_>) -> ReportPanel {
        if cx.state.todos.is_empty() {
            return ReportPanel::for_session("Todos", "Loading the session", cx, |session| {
                vec![SessionQuery::Transcript { session }]
            });
        }
        let todos = cx.state.todos.clone();
        ReportPanel::new("Todos", ReportContent::Todos(todos), Vec::new(), cx)
    }

    /// Opens the token usage and cost of the session.
    pub fn cost(cx: &mut UiContext<'_>) -> ReportPanel {
        let workspace = Some(cx.state.host_status.root.clone()).filter(|root| !root.is_empty());
        ReportPanel::for_session("Cost", "Adding up the usage", cx, |session| {
            vec![SessionQuery::Sessions { workspace }, SessionQuery::Transcript { session }]
        })
    }

    /// Opens the breakdown of the context window (`SessionQuery::Context`).
    pub fn context(cx: &mut UiContext<'_>) -> ReportPanel {
        ReportPanel::for_session("Context", "Measuring", cx, |session| {
            vec![SessionQuery::Context { session }]
        })
    }

    /// Opens the check of the installation (`FrontendRequest::Doctor`).
    pub fn doctor(cx: &mut UiContext<'_>) -> ReportPanel {
        let pending_requests = vec![cx.send_request(FrontendRequest::Doctor)];
        ReportPanel::new(
            "Doctor",
            ReportContent::Loading("Checking the installation"),
            pending_requests,
            cx,
        )
    }

    fn on_reply(&mut self, reply: &QueryReply) {
        let content = match reply {
            QueryReply::Changes { facts, .. } if facts.is_empty() => {
                ReportContent::Message(match self.purpose {
                    ReportPurpose::View => "This session has not changed any files",
                    ReportPurpose::Undo => "Nothing to undo",
                    ReportPurpose::Redo => "Nothing to redo",
                })
            }
            QueryReply::Changes { facts, diff } => {
                ReportContent::Changes { facts: facts.clone(), diff: diff.clone() }
            }
            QueryReply::Sessions { sessions } => {
                let children = sessions.iter().filter(|summary| summary.parent == self.session);
                for summary in children.filter(|summary| summary.parent.is_some()) {
                    self.subagent_costs.0 += 1;
                    self.subagent_costs.1 += summary.cost;
                }
                return;
            }
            QueryReply::Transcript { transcript } if self.title == "Todos" => {
                let todos = transcript.todos();
                match todos.is_empty() {
                    true => ReportContent::Message("The todo list is empty"),
                    false => ReportContent::Todos(todos),
                }
            }
            QueryReply::Transcript { transcript } => ReportContent::Cost {
                usage: transcript.usage,
                cost: transcript.cost,
                agents: self.subagent_costs,
            },
            QueryReply::Context { context_window: window, output_reserve: reserve, parts } => {
                ReportContent::Context { window: *window, reserve: *reserve, parts: parts.clone() }
            }
            QueryReply::Events { .. }
            | QueryReply::Prompts { .. }
            | QueryReply::Jobs { .. }
            | QueryReply::SearchHits { .. }
            | QueryReply::TextMatches { .. }
            | QueryReply::Tools { .. } => return,
        };
        self.content = content;
    }

    fn key_hints(&self, appearance: &Appearance) -> String {
        let effect = match (&self.content, self.purpose) {
            (ReportContent::Changes { .. }, ReportPurpose::Undo) => Some("y undo these changes"),
            (ReportContent::Changes { .. }, ReportPurpose::Redo) => Some("y redo these changes"),
            _ => None,
        };
        let close_hint = shared_rows::describe_keys(appearance, &[(UiCommand::Escape, "close")]);
        let scroll_hint =
            shared_rows::describe_keys(appearance, &[(UiCommand::PageDown, "scroll")]);
        let position = self.pager.position_label();
        let mut hints: Vec<String> = effect.map(str::to_owned).into_iter().collect();
        if !position.is_empty() {
            hints.push(scroll_hint);
        }
        hints.extend([close_hint, position].into_iter().filter(|text| !text.is_empty()));
        hints.join(shared_rows::item_separator(appearance))
    }
}

fn render_content(content: &ReportContent, width: usize, appearance: &Appearance) -> Vec<SafeLine> {
    let inner = width.saturating_sub(shared_rows::PANEL_MARGIN + 1).max(1);
    let indent = |rows: Vec<SafeLine>| {
        rows.iter().map(|row| shared_rows::indent_row(row, shared_rows::PANEL_MARGIN)).collect()
    };
    match content {
        ReportContent::Message(text) | ReportContent::Loading(text) => {
            shared_rows::render_prose(text, StyleRole::Dim, width, appearance)
        }
        ReportContent::Failed(fault) => shared_rows::fault_rows(fault, width, appearance),
        ReportContent::Changes { diff, .. } => indent(render::render_diff(diff, inner, appearance)),
        ReportContent::Todos(todos) => indent(render::render_todos(todos, inner, appearance)),
        ReportContent::Cost { usage, cost, agents } => {
            indent(report_rows::render_cost(usage, *cost, *agents, inner, appearance))
        }
        ReportContent::Context { window, reserve, parts } => {
            indent(report_rows::render_context_usage(*window, *reserve, parts, inner, appearance))
        }
        ReportContent::Doctor(rows) => report_rows::render_doctor(rows, width, appearance),
    }
}

impl Panel for ReportPanel {
    fn title(&self) -> String {
        self.title.to_owned()
    }

    fn on_key(&mut self, key: &KeyEvent, cx: &mut UiContext<'_>) -> PanelControlFlow {
        if self.pager.on_key(key, &cx.appearance.key_map) {
            return PanelControlFlow::Stay;
        }
        match (&self.content, self.purpose) {
            (ReportContent::Changes { facts, diff }, ReportPurpose::Undo | ReportPurpose::Redo) => {
                if key.code == KeyCode::Char('y') {
                    self.approved_change = Some(diff.clone());
                    cx.send_op(SessionOp::Undo { facts: facts.clone() });
                }
                PanelControlFlow::Close
            }
            // There is nothing to approve yet, so a key pressed too early must not close the panel.
            (ReportContent::Loading(_), ReportPurpose::Undo | ReportPurpose::Redo) => {
                PanelControlFlow::Stay
            }
            (
                ReportContent::Changes { .. }
                | ReportContent::Loading(_)
                | ReportContent::Message(_)
                | ReportContent::Failed(_)
                | ReportContent::Todos(_)
                | ReportContent::Cost { .. }
                | ReportContent::Context { .. }
                | ReportContent::Doctor(_),
                _,
            ) => match key.code {
                KeyCode::Enter => PanelControlFlow::Close,
                // There is nothing to type here, so text is the start of a prompt.
                KeyCode::Char(_) if (key.modifiers - KeyModifiers::SHIFT).is_empty() => {
                    PanelControlFlow::CloseAndType
                }
                _ => PanelControlFlow::Stay,
            },
        }
    }

    fn on_wheel(&mut self, lines: i32, _: &mut UiContext<'_>) {
        self.pager.scroll_by(lines);
    }

    fn take_approved_change(&mut self) -> Option<String> {
        self.approved_change.take()
    }

    fn on_event(&mut self, _: &windlass_protocol::Event, cx: &mut UiContext<'_>) {
        if let ReportContent::Todos(todos) = &mut self.content
            && *todos != cx.state.todos
            && !cx.state.todos.is_empty()
        {
            todos.clone_from(&cx.state.todos);
            self.pager.invalidate();
        }
    }

    fn on_response(
        &mut self,
        id: u64,
        response: &Result<HostResponse, Fault>,
        _: &mut UiContext<'_>,
    ) -> bool {
        if !self.pending_requests.contains(&id) {
            return false;
        }
        match response {
            Ok(HostResponse::Reply { reply }) => self.on_reply(reply),
            Ok(HostResponse::Rows { rows }) => self.content = ReportContent::Doctor(rows.clone()),
            Ok(_) => {}
            Err(fault) => self.content = ReportContent::Failed(fault.clone()),
        }
        self.pager.invalidate();
        true
    }

    fn height(&self, width: u16, _: &SessionState) -> u16 {
        let rows = match &self.content {
            // Do not lay out more rows than any screen has, only to count them.
            ReportContent::Changes { diff, .. } if diff.lines().nth(TALL_DIFF_LINES).is_some() => {
                return u16::MAX;
            }
            content => render_content(content, usize::from(width), &Appearance::default()).len(),
        };
        u16::try_from(rows + 2).unwrap_or(u16::MAX)
    }

    fn draw(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        appearance: &Appearance,
        _: &SessionState,
    ) -> Option<Position> {
        let (body, footer) = shared_rows::split_footer(area);
        let content = &self.content;
        self.pager
            .draw(body, buffer, appearance, |width| render_content(content, width, appearance));
        let row = shared_rows::hint_row(&self.key_hints(appearance), appearance, footer.width);
        wrap::truncate(&row, usize::from(footer.width), appearance).draw(footer, buffer);
        None
    }
}
