//! The subagents panel: lists the subagents of this session and shows their transcripts.

use super::filter_list::{FilterList, ListItem, ListKeyOutcome};
use super::{Panel, PanelControlFlow, shared_rows};
use crate::app::status::format_cost;
use crate::keys::{KeyScope, UiCommand};
use crate::session_state::SessionState;
use crate::transcript::{DetailsTarget, ScrollTarget, TranscriptView};
use crate::ui_context::{Appearance, UiContext};
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use windlass_protocol::display_text::{format_age, pluralize};
use windlass_protocol::frontend_messages::HostResponse;
use windlass_protocol::{
    Event, Fault, QueryReply, SessionId, SessionQuery, SessionSummary, UnixMillis,
};

/// The list of subagents, and the transcript of the opened one.
#[derive(Debug)]
pub struct SubagentsPanel {
    list: FilterList<SessionId>,
    summaries: Vec<SessionSummary>,
    list_request: Option<u64>,
    open_transcript: Option<(String, Box<TranscriptView>)>,
}

impl SubagentsPanel {
    /// Opens the panel and requests the stored sessions with `SessionQuery::Sessions`.
    pub fn new(cx: &mut UiContext<'_>) -> SubagentsPanel {
        let list = FilterList::with_items(Vec::new(), "No subagents in this session");
        let mut panel = SubagentsPanel {
            list,
            summaries: Vec::new(),
            list_request: None,
            open_transcript: None,
        };
        if cx.state.session.is_some() {
            let workspace = Some(cx.state.host_status.root.clone()).filter(|root| !root.is_empty());
            panel.list_request = Some(cx.send_query(SessionQuery::Sessions { workspace }));
        }
        panel.refresh_list(cx);
        panel
    }

    /// Rebuilds the list from live events and from the stored sessions; a session that was just
    /// opened has no live events yet.
    fn refresh_list(&mut self, cx: &UiContext<'_>) {
        let mut rows = Vec::new();
        for (session, child) in cx.state.subagents.iter().rev() {
            let summary = self.summaries.iter().find(|summary| summary.session == *session);
            let note = match (summary, child.is_done) {
                (Some(summary), _) if !summary.title.is_empty() => summary.title.clone(),
                (Some(_) | None, true) => String::new(),
                (Some(_) | None, false) => child.activity.clone(),
            };
            let state = match child.is_done {
                true => "done".to_owned(),
                false if child.activity.is_empty() => "working".to_owned(),
                false => child.activity.clone(),
            };
            let item = ListItem::new(&child.agent)
                .with_note(note)
                .with_column(pluralize(child.call_count as usize, "call"))
                .with_column(state);
            rows.push((ListItem { is_current: !child.is_done, ..item }, *session));
        }
        for summary in &self.summaries {
            if !cx.state.subagents.contains_key(&summary.session) {
                let item = ListItem::new("agent")
                    .with_note(&summary.title)
                    .with_column(format_cost(summary.cost))
                    .with_column(format_age(summary.changed_at, UnixMillis(cx.now)));
                rows.push((item, summary.session));
            }
        }
        self.list.set_items(rows);
    }
}

impl Panel for SubagentsPanel {
    fn title(&self) -> String {
        match &self.open_transcript {
            Some((name, _)) => windlass_protocol::display_text::truncate_chars(name, 60),
            None => "Subagents".to_owned(),
        }
    }

    fn on_key(&mut self, key: &KeyEvent, cx: &mut UiContext<'_>) -> PanelControlFlow {
        if let Some((_, transcript)) = &mut self.open_transcript {
            if transcript.is_finding() && transcript.on_search_key(key, cx) {
                return PanelControlFlow::Stay;
            }
            let target = match (cx.appearance.key_map.command_for(KeyScope::Panel, key), key.code) {
                (Some(UiCommand::RowUp | UiCommand::LineUp), _) => ScrollTarget::Lines(-1),
                (Some(UiCommand::RowDown | UiCommand::LineDown), _) => ScrollTarget::Lines(1),
                (Some(UiCommand::PageUp), _) => ScrollTarget::Pages(-1),
                (Some(UiCommand::PageDown | UiCommand::ToggleMark), _) => ScrollTarget::Pages(1),
                (Some(UiCommand::ScrollToTop), _) | (None, KeyCode::Home) => ScrollTarget::Top,
                (Some(UiCommand::ScrollToEnd), _) | (None, KeyCode::End) => ScrollTarget::End,
                (Some(UiCommand::ToggleDetails), _) => {
                    transcript.toggle_details(DetailsTarget::MiddleBlock);
                    return PanelControlFlow::Stay;
                }
                (Some(UiCommand::ToggleAllDetails), _) => {
                    transcript.toggle_details(DetailsTarget::All);
                    return PanelControlFlow::Stay;
                }
                (Some(UiCommand::FindText), _) => {
                    transcript.start_search("", cx);
                    return PanelControlFlow::Stay;
                }
                _ => return PanelControlFlow::Stay,
            };
            transcript.scroll(target, cx);
            return PanelControlFlow::Stay;
        }
        if self.list.on_key(key, &cx.appearance.key_map) == ListKeyOutcome::RowChosen
            && let Some((item, session)) = self.list.selected()
        {
            let summary = self.summaries.iter().find(|summary| summary.session == *session);
            let live_head = cx.state.subagents.get(session).map_or(0, |child| child.head);
            let head = summary.map_or(0, |summary| summary.fact_count).max(live_head);
            let mut transcript = Box::new(TranscriptView::default());
            transcript.open(*session, head, cx);
            self.open_transcript = Some((format!("{}: {}", item.name, item.note), transcript));
        }
        PanelControlFlow::Stay
    }

    fn on_escape(&mut self, _: &mut UiContext<'_>) -> PanelControlFlow {
        match &mut self.open_transcript {
            Some((_, transcript)) if transcript.is_finding() => transcript.end_search(),
            Some(_) => self.open_transcript = None,
            None => return PanelControlFlow::Close,
        }
        PanelControlFlow::Stay
    }

    fn on_paste(&mut self, text: &str, cx: &mut UiContext<'_>) {
        if let Some((_, transcript)) =
            self.open_transcript.as_mut().filter(|(_, transcript)| transcript.is_finding())
        {
            transcript.start_search(text, cx);
        }
    }

    fn on_wheel(&mut self, lines: i32, cx: &mut UiContext<'_>) {
        match &mut self.open_transcript {
            Some((_, transcript)) => transcript.scroll(ScrollTarget::Lines(lines), cx),
            None => self.list.move_selection(lines),
        }
    }

    fn on_event(&mut self, event: &Event, cx: &mut UiContext<'_>) {
        match &mut self.open_transcript {
            Some((_, transcript)) => transcript.on_event(event, cx),
            None => self.refresh_list(cx),
        }
    }

    fn on_response(
        &mut self,
        id: u64,
        response: &Result<HostResponse, Fault>,
        cx: &mut UiContext<'_>,
    ) -> bool {
        if let Some((_, transcript)) = &mut self.open_transcript
            && transcript.on_response(id, response, cx)
        {
            return true;
        }
        if self.list_request.take_if(|pending| *pending == id).is_none() {
            return false;
        }
        match response {
            Err(fault) => self.list.set_failed(fault),
            Ok(HostResponse::Reply { reply: QueryReply::Sessions { sessions } }) => {
                let is_own_subagent = |summary: &&SessionSummary| {
                    summary.parent.is_some() && summary.parent == cx.state.session
                };
                self.summaries = sessions.iter().filter(is_own_subagent).cloned().collect();
                self.refresh_list(cx);
            }
            Ok(_) => {}
        }
        true
    }

    fn height(&self, _: u16, _: &SessionState) -> u16 {
        match &self.open_transcript {
            Some(_) => u16::MAX,
            None => self.list.height(),
        }
    }

    fn draw(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        appearance: &Appearance,
        state: &SessionState,
    ) -> Option<Position> {
        let Some((_, transcript)) = &mut self.open_transcript else {
            let keys = [(UiCommand::ChooseRow, "show transcript"), (UiCommand::Escape, "close")];
            return self.list.draw(
                area,
                buffer,
                appearance,
                &shared_rows::describe_keys(appearance, &keys),
            );
        };
        let (body, footer) = shared_rows::split_footer(area);
        let cursor = transcript.draw(body, buffer, appearance, state);
        let keys = [
            (UiCommand::PageUp, "scroll"),
            (UiCommand::ToggleDetails, "expand a call"),
            (UiCommand::Escape, "back to the list"),
        ];
        shared_rows::hint_row(
            &shared_rows::describe_keys(appearance, &keys),
            appearance,
            footer.width,
        )
        .draw(footer, buffer);
        cursor
    }
}
