//! The session picker (`/sessions`): find, resume, fork, rename or delete a session of this folder.
//! Forks stand below their source, and subagents below the session that started them.

use super::PanelResult;
use super::filter_list::{FilterList, ListItem, ListKeyOutcome};
use super::list_panel::{ListController, ListControllerDecision, ListPanel};
use super::session_tree::{self, SessionTreeNode};
use crate::app::status::format_cost;
use crate::keys::UiCommand;
use crate::text_input::TextInput;
use crate::ui_context::UiContext;
use std::collections::BTreeSet;
use windlass_protocol::display_text::{format_age, pluralize};
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};
use windlass_protocol::session_stream::{OpenSessionActivity, OpenSessionState};
use windlass_protocol::{
    Fault, QueryReply, SessionId, SessionQuery, SessionSearchHit, SessionSummary, TurnEndReason,
    UnixMillis,
};

/// The shortest filter that also searches the content of the sessions (`SessionQuery::SearchSessions`).
const MIN_SEARCH_CHARS: usize = 3;
/// The heading of the content search results.
const CONTENT_GROUP: &str = "Found in the conversation";

/// `ListController` of the session picker.
#[derive(Debug)]
pub struct SessionPicker {
    /// All sessions of the folder, also those of subagents.
    sessions: Vec<SessionSummary>,
    open_request: Option<u64>,
    /// The sessions that are open in the host or in the server of this machine.
    open_sessions: Vec<OpenSessionState>,
    /// The sessions whose subagents are shown.
    expanded: BTreeSet<SessionId>,
    hits: Vec<SessionSearchHit>,
    list_request: u64,
    search_request: Option<u64>,
    delete_request: Option<(u64, SessionId)>,
    /// The session that awaits the user's confirmation to delete.
    session_to_delete: Option<SessionId>,
    /// The pending `RenameSession`, with the session and its new title.
    rename_request: Option<(u64, SessionId, String)>,
}

impl SessionPicker {
    /// Requests the sessions of this folder and opens the picker.
    pub fn open(filter: &str, cx: &mut UiContext<'_>) -> ListPanel<SessionPicker> {
        let open_request = Some(cx.send_request(FrontendRequest::ListOpenSessions));
        let workspace = Some(cx.state.host_status.root.clone()).filter(|root| !root.is_empty());
        let list_request = cx.send_query(SessionQuery::Sessions { workspace });
        let mut list = FilterList::loading("Loading sessions", "No sessions in this folder yet");
        list.set_filter(filter.trim());
        let picker = SessionPicker {
            sessions: Vec::new(),
            open_request,
            open_sessions: Vec::new(),
            expanded: BTreeSet::new(),
            hits: Vec::new(),
            list_request,
            search_request: None,
            delete_request: None,
            session_to_delete: None,
            rename_request: None,
        };
        ListPanel::new(list, picker)
    }

    fn refresh_list(&self, list: &mut FilterList<SessionId>, cx: &UiContext<'_>) {
        let item = |node: SessionTreeNode<'_>| {
            let summary = node.summary;
            let title = if summary.title.is_empty() { "(untitled)" } else { &summary.title };
            let cost = if summary.cost.0 > 0 { format_cost(summary.cost) } else { String::new() };
            let relation = match (summary.parent.is_some(), node.subagent_count) {
                (true, _) => "subagent".to_owned(),
                (false, 0) if summary.forked_from.is_some() => "fork".to_owned(),
                (false, 0) => String::new(),
                (false, count) => pluralize(count, "subagent"),
            };
            let item = ListItem::new(title)
                .with_column(relation)
                .with_column(
                    describe_open_session(&self.open_sessions, summary.session)
                        .unwrap_or_else(|| describe_end(summary)),
                )
                .with_column(cost)
                .with_column(format_age(summary.changed_at, UnixMillis(cx.now)));
            let branch = if cx.appearance.ascii { "`- " } else { "└ " };
            let prefix = match node.depth {
                0 => String::new(),
                depth => format!("{}{branch}", "  ".repeat(depth - 1)),
            };
            let is_current = Some(summary.session) == cx.state.session;
            (ListItem { is_current, prefix, ..item }, summary.session)
        };
        let hit_item = |hit: &SessionSearchHit| {
            let item = ListItem::new(&hit.title).with_note(&hit.snippet).in_group(CONTENT_GROUP);
            (ListItem { always_shown: true, ..item }, hit.session)
        };
        // Only listed sessions count: a subagent's session is part of the session that started it.
        let is_listed = |hit: &&SessionSearchHit| {
            let mut sessions = self.sessions.iter();
            sessions.any(|summary| summary.session == hit.session && summary.parent.is_none())
        };
        let hits = self.hits.iter().filter(is_listed).map(hit_item);
        let nodes = session_tree::flatten_tree(&self.sessions, &self.expanded);
        list.set_items(nodes.into_iter().map(item).chain(hits).collect());
    }

    /// Shows or hides the subagents of the selected session; the selection stays on it.
    fn set_expanded(
        &mut self,
        list: &mut FilterList<SessionId>,
        is_expanded: bool,
        cx: &UiContext<'_>,
    ) {
        let Some((_, selected)) = list.selected() else { return };
        let summary = self.sessions.iter().find(|summary| summary.session == *selected);
        // On a subagent, collapsing hides it with the others.
        let parent = summary.and_then(|summary| summary.parent).filter(|_| !is_expanded);
        let session = parent.unwrap_or(*selected);
        let is_changed = match is_expanded {
            true => self.expanded.insert(session),
            false => self.expanded.remove(&session),
        };
        if is_changed {
            self.refresh_list(list, cx);
            list.select(|_, row| *row == session);
        }
    }

    /// Opens a text input with the title of the selected session.
    fn start_rename(&self, list: &mut FilterList<SessionId>) {
        let Some((_, selected)) = list.selected() else { return };
        let summary = self.sessions.iter().find(|summary| summary.session == *selected);
        let mut input = TextInput::default();
        input.insert(summary.map_or("", |summary| summary.title.as_str()));
        list.text_input = Some(("Title:", input));
    }

    fn rename(&mut self, list: &mut FilterList<SessionId>, cx: &mut UiContext<'_>) {
        let Some(title) = list.take_entered_text().filter(|title| !title.is_empty()) else {
            return;
        };
        let Some((_, session)) = list.selected() else { return };
        let session = *session;
        let request = FrontendRequest::RenameSession { session, title: title.clone() };
        self.rename_request = Some((cx.send_request(request), session, title));
    }

    fn search_content(&mut self, list: &mut FilterList<SessionId>, cx: &mut UiContext<'_>) {
        let words = list.filter().trim().to_owned();
        if words.chars().count() < MIN_SEARCH_CHARS {
            self.search_request = None;
            if !self.hits.is_empty() {
                self.hits.clear();
                self.refresh_list(list, cx);
            }
            return;
        }
        let workspace = Some(cx.state.host_status.root.clone()).filter(|root| !root.is_empty());
        self.search_request =
            Some(cx.send_query(SessionQuery::SearchSessions { words, workspace }));
    }

    fn confirm_delete(&mut self, list: &mut FilterList<SessionId>, cx: &UiContext<'_>) {
        let Some((item, session)) = list.selected() else { return };
        self.session_to_delete =
            Some(*session).filter(|session| Some(*session) != cx.state.session);
        let name = windlass_protocol::display_text::truncate_chars(&item.name, 30);
        list.confirmation = Some(match self.session_to_delete {
            Some(_) => format!("Press y to delete permanently: {name}"),
            None => "This session is open; use /new to leave it first".to_owned(),
        });
    }
}

fn open_session(request: FrontendRequest) -> ListControllerDecision {
    ListControllerDecision::Request(request, "Opening the session", PanelResult::Nothing)
}

/// Returns what an open session does; `None` if there is nothing to mention.
pub(crate) fn describe_open_session(
    open_sessions: &[OpenSessionState],
    session: SessionId,
) -> Option<&'static str> {
    let state = open_sessions.iter().find(|state| state.session == session)?;
    match state.activity() {
        OpenSessionActivity::Waiting => Some("waits for you"),
        OpenSessionActivity::Working => Some("working"),
        OpenSessionActivity::Background => Some("works in the background"),
        OpenSessionActivity::Idle => state.is_in_server.then_some("open in the server"),
    }
}

/// Returns how the last turn of a session ended (`TurnEndReason`); empty if there is nothing to mention.
fn describe_end(summary: &SessionSummary) -> &'static str {
    match &summary.last_turn_end {
        None if summary.fact_count <= 1 => "",
        None => "unfinished",
        Some(TurnEndReason::Completed) => "",
        Some(TurnEndReason::Denied) => "denied",
        Some(TurnEndReason::Interrupted) => "interrupted",
        Some(TurnEndReason::LoopDetected { .. } | TurnEndReason::LimitReached { .. }) => "stopped",
        Some(TurnEndReason::Failed { .. }) => "failed",
    }
}

impl ListController for SessionPicker {
    type RowValue = SessionId;

    fn title(&self) -> &'static str {
        "Sessions"
    }

    fn key_hints(&self, list: &FilterList<SessionId>) -> Vec<(UiCommand, &'static str)> {
        let mut hints = vec![
            (UiCommand::ChooseRow, "open"),
            (UiCommand::ForkRow, "fork"),
            (UiCommand::RenameRow, "rename"),
            (UiCommand::DeleteRow, "delete"),
            (UiCommand::Escape, "close"),
        ];
        let selected = list.selected().map(|(_, session)| *session);
        let is_subagent = |summary: &SessionSummary| summary.parent.is_some();
        let mut subagents = self.sessions.iter().filter(|summary| is_subagent(summary));
        if subagents.any(|summary| summary.parent == selected) {
            hints.push((UiCommand::ExpandRow, "subagents"));
        }
        hints
    }

    fn on_action(
        &mut self,
        action: ListKeyOutcome,
        list: &mut FilterList<SessionId>,
        cx: &mut UiContext<'_>,
    ) -> ListControllerDecision {
        let selected = list.selected().map(|(_, session)| *session);
        match (action, selected) {
            (ListKeyOutcome::RowChosen, selected) if selected == cx.state.session => {
                return ListControllerDecision::Close(PanelResult::Nothing);
            }
            (ListKeyOutcome::RowChosen, Some(session)) => {
                return open_session(FrontendRequest::OpenSession { session, resume: false });
            }
            (ListKeyOutcome::RowCommand(UiCommand::ForkRow), Some(session)) => {
                return open_session(FrontendRequest::ForkSession { session, turn: None });
            }
            (ListKeyOutcome::RowCommand(UiCommand::DeleteRow), _) => self.confirm_delete(list, cx),
            (ListKeyOutcome::RowCommand(UiCommand::RenameRow), _) => self.start_rename(list),
            (ListKeyOutcome::TextEntered, _) => self.rename(list, cx),
            (ListKeyOutcome::RowCommand(UiCommand::ExpandRow), _) => {
                self.set_expanded(list, true, cx)
            }
            (ListKeyOutcome::RowCommand(UiCommand::CollapseRow), _) => {
                self.set_expanded(list, false, cx)
            }
            (ListKeyOutcome::FilterChanged, _) => self.search_content(list, cx),
            (ListKeyOutcome::Confirmed, _) => {
                let delete = |session| {
                    (cx.send_request(FrontendRequest::DeleteSession { session }), session)
                };
                self.delete_request = self.session_to_delete.take().map(delete);
            }
            _ => {}
        }
        ListControllerDecision::Stay
    }

    fn on_response(
        &mut self,
        id: u64,
        response: &Result<HostResponse, Fault>,
        list: &mut FilterList<SessionId>,
        cx: &mut UiContext<'_>,
    ) -> bool {
        if self.open_request.take_if(|request_id| *request_id == id).is_some() {
            // Without the states, the list is complete in all else.
            if let Ok(HostResponse::OpenSessions { sessions }) = response {
                self.open_sessions.clone_from(sessions);
                if !self.sessions.is_empty() {
                    self.refresh_list(list, cx);
                }
            }
            return true;
        }
        if let Some((_, session, title)) =
            self.rename_request.take_if(|(request_id, ..)| *request_id == id)
        {
            match response {
                Ok(_) => {
                    let renamed =
                        self.sessions.iter_mut().find(|summary| summary.session == session);
                    renamed.into_iter().for_each(|summary| summary.title.clone_from(&title));
                    self.refresh_list(list, cx);
                }
                Err(fault) => list.set_failed(fault),
            }
            return true;
        }
        let deleted = self.delete_request.take_if(|(request_id, _)| *request_id == id);
        if id != self.list_request && Some(id) != self.search_request && deleted.is_none() {
            return false;
        }
        match (response, deleted) {
            (Err(fault), _) => list.set_failed(fault),
            (Ok(HostResponse::Reply { reply: QueryReply::Sessions { sessions } }), _) => {
                self.sessions.clone_from(sessions);
                self.refresh_list(list, cx);
                self.search_content(list, cx);
            }
            (Ok(HostResponse::Reply { reply: QueryReply::SearchHits { hits } }), _) => {
                self.hits.clone_from(hits);
                self.refresh_list(list, cx);
            }
            (Ok(_), Some((_, session))) => {
                // Its subagents are deleted with it.
                self.sessions.retain(|summary| {
                    summary.session != session && summary.parent != Some(session)
                });
                self.hits.retain(|hit| hit.session != session);
                self.refresh_list(list, cx);
            }
            (Ok(_), None) => {}
        }
        true
    }
}
