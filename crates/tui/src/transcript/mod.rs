//! The transcript view: the display of a session, loaded only near the viewport.
//!
//! It is a window over the log, folded from facts into blocks one page at a time. Scrolling near
//! the end of the window requests the next page; distant facts are dropped. So a session of any
//! length takes the same memory, and a frame the same time.
//!
//! [`log_window`] stores the facts, [`blocks`] folds them into blocks, [`block_rows`] and [`call`]
//! render a block, [`viewport`] finds the visible rows, [`page_loading`] and [`images`] request missing
//! data, and [`find`] searches for a text.

mod block_render_data;
mod block_rows;
mod blocks;
mod call_rows;
pub mod call_summary;
mod copyable_messages;
mod empty_state;
mod find;
mod images;
mod live_state;
mod loaded_log_window;
mod output_tail;
mod page_loading;
mod position;
mod prompt_content;
mod render_context;
mod selection;
mod structured_output_table;
#[cfg(test)]
mod tests;
mod viewport;

use crate::session_state::SessionState;
use crate::theme::Theme;
use crate::ui_context::{Appearance, UiContext};
pub(crate) use copyable_messages::CopyableMessage;

use blocks::{TranscriptBlockKey, TranscriptBlockKind, TranscriptBlockList};
use find::TranscriptSearch;
use images::ImageCache;
use live_state::{LiveSessionState, PartialCallState};
use loaded_log_window::LoadedLogWindow;
use page_loading::LogPageRequest;
use position::{RowPosition, ViewAnchor};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use render_context::RenderContext;
pub use selection::SelectionStep;
use std::collections::{HashMap, HashSet};
use viewport::RenderedBlock;
use windlass_protocol::frontend_messages::HostResponse;
use windlass_protocol::{
    Event, Fact, FactRecord, Fault, LiveEvent, LiveEventRecord, LogSeq, ModelStreamKind, SessionId,
    SessionQuery,
};

/// The target of [`TranscriptView::scroll`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScrollTarget {
    /// This many lines down; negative is up.
    Lines(i32),
    /// This many pages down; negative is up.
    Pages(i32),
    /// The start of the session.
    Top,
    /// The end of the session; the view then follows new content.
    End,
    PreviousPrompt,
    NextPrompt,
}

/// The blocks that [`TranscriptView::toggle_details`] opens or closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DetailsTarget {
    /// The block in the middle of the screen, or the last one while the view follows the end.
    MiddleBlock,
    All,
}

/// The scrollable view of a session; see the module for its parts.
#[derive(Debug, Default)]
pub struct TranscriptView {
    session: Option<SessionId>,
    window: LoadedLogWindow,
    blocks: TranscriptBlockList,
    live: LiveSessionState,
    /// The `LogPageRequest`s under way, by request id.
    page_requests: Vec<(u64, LogPageRequest)>,
    /// A scroll that continues when its page arrives.
    pending_scroll: Option<ScrollTarget>,
    /// The row at the top of the screen; `None` while the view follows the end.
    anchor: Option<ViewAnchor>,
    /// The last log position when the user scrolled away from the end.
    head_when_left: LogSeq,
    /// The size of the last frame.
    screen_size: (u16, u16),
    /// The block of each visible row.
    visible_blocks: Vec<TranscriptBlockKey>,
    /// The row in its block of each visible row; `usize::MAX` for a blank row between blocks.
    visible_block_rows: Vec<usize>,
    /// The block that Enter opens or closes.
    selected_block: Option<TranscriptBlockKey>,
    /// If true, all blocks are open except `toggled_blocks`; otherwise all are closed except those.
    all_open: bool,
    toggled_blocks: HashSet<TranscriptBlockKey>,
    rendered_blocks: HashMap<TranscriptBlockKey, RenderedBlock>,
    rendered_rows: usize,
    /// The theme and ASCII mode that `rendered_blocks` were rendered for.
    rendered_theme: (Theme, bool),
    /// The text of the model's last answer.
    answer_text: Option<String>,
    search: Option<TranscriptSearch>,
    images: ImageCache,
    /// The time of the last tick, in milliseconds since 1970.
    now_millis: u64,
}

impl TranscriptView {
    /// Opens a session whose log ends at `head`, and requests its last page.
    pub fn open(&mut self, session: SessionId, head: LogSeq, cx: &mut UiContext<'_>) {
        let previous = std::mem::take(self);
        let blocks = if previous.session.is_none() {
            TranscriptBlockList::with_notes_of(previous.blocks, head)
        } else {
            TranscriptBlockList::default()
        };
        *self = TranscriptView {
            session: Some(session),
            window: LoadedLogWindow::with_head(head),
            blocks,
            screen_size: previous.screen_size,
            now_millis: previous.now_millis,
            ..TranscriptView::default()
        };
        if head > 0 {
            self.request_page(LogPageRequest::Opening, cx);
        }
        if head > loaded_log_window::PAGE_RECORDS {
            let id = cx.send_query(SessionQuery::Transcript { session });
            self.page_requests.push((id, LogPageRequest::FullTranscript));
        }
    }

    /// Returns true if the request loads the history of a session being opened: its first page, or
    /// its whole `Transcript`.
    pub fn is_opening_request(&self, id: u64) -> bool {
        self.page_requests.contains(&(id, LogPageRequest::Opening))
            || self.page_requests.contains(&(id, LogPageRequest::FullTranscript))
    }

    /// Updates the clock; running calls show their duration.
    pub fn tick(&mut self, now: u64) {
        let seconds = std::mem::replace(&mut self.now_millis, now) / 1_000;
        if seconds != now / 1_000 {
            self.blocks.mark_running_changed();
        }
    }

    /// Returns the current `RenderContext`.
    fn render_context<'a>(
        &self,
        appearance: &'a Appearance,
        state: &'a SessionState,
    ) -> RenderContext<'a> {
        RenderContext {
            width: usize::from(self.screen_size.0),
            appearance,
            state,
            now_millis: self.now_millis,
        }
    }

    /// Applies an `Event` of the session or of its subagents.
    pub fn on_event(&mut self, event: &Event, cx: &mut UiContext<'_>) {
        self.tick(cx.now);
        match event {
            Event::Fact(record) if Some(record.session) == self.session => {
                self.on_fact(record, cx);
            }
            Event::Fact(record) => {
                if let Some(call) = self.live.on_subagent_fact(record.session, &record.fact) {
                    self.blocks.mark_call_changed(call);
                }
            }
            Event::Live(live_record) if Some(live_record.session) == self.session => {
                self.on_live_record(live_record)
            }
            Event::Live(_) => {}
        }
    }

    fn on_fact(&mut self, record: &FactRecord, cx: &mut UiContext<'_>) {
        self.settle_live(record);
        let is_loaded = self.window.span().is_some_and(|(_, last)| record.seq <= last);
        let loads_end = self.page_requests.iter().any(|(_, request)| request.is_end());
        if is_loaded || (loads_end && self.window.span().is_none()) {
            self.window.head = self.window.head.max(record.seq);
            return;
        }
        let is_rewind = matches!(record.fact, Fact::Rewound { .. });
        if self.window.push(record) {
            self.blocks.push_record(record);
            if is_rewind {
                self.rendered_blocks.clear();
                self.rendered_rows = 0;
            }
            self.drop_far_records(cx);
        }
        self.request_nearby_pages(cx);
    }

    /// Removes the `LiveSessionState` that a recorded fact replaces.
    fn settle_live(&mut self, record: &FactRecord) {
        let stream = if let Fact::ModelText { text, .. } = &record.fact {
            self.answer_text = Some(text.clone());
            ModelStreamKind::Text
        } else if let Fact::ModelReasoning { .. } = &record.fact {
            ModelStreamKind::Reasoning
        } else {
            let ends_streaming = |fact| {
                matches!(
                    fact,
                    &Fact::StepStarted { .. } | Fact::StepEnded { .. } | Fact::TurnEnded { .. }
                )
            };
            if ends_streaming(&record.fact) {
                self.live.streaming.clear();
            }
            if ends_streaming(&record.fact) || matches!(record.fact, Fact::ToolCalled { .. }) {
                self.live.partial_calls.clear();
            }
            if let Fact::CallSettled { call, .. } = &record.fact {
                self.live.call_outputs.remove(call);
            }
            if let Fact::SubagentStarted { call, session, .. } = &record.fact {
                self.live.subagents.entry(*session).or_default().call = Some(*call);
            }
            return;
        };
        let Some(index) = self.live.finish_text(stream, record.seq) else { return };
        // A user who reads a streaming text keeps their place when it becomes a fact.
        if let Some(anchor) = &mut self.anchor
            && anchor.key.0 == LogSeq::MAX
        {
            match (anchor.key.1 as usize).cmp(&index) {
                std::cmp::Ordering::Equal => anchor.key = TranscriptBlockKey(record.seq, 0),
                std::cmp::Ordering::Greater => anchor.key.1 -= 1,
                std::cmp::Ordering::Less => {}
            }
        }
    }

    fn on_live_record(&mut self, LiveEventRecord { at, event, .. }: &LiveEventRecord) {
        match event {
            LiveEvent::ModelDelta { stream, text } => self.live.append_text(*stream, text, *at),
            LiveEvent::PartialCall { index, tool, path, argument_bytes } => {
                let (tool, path, argument_bytes) = (tool.clone(), path.clone(), *argument_bytes);
                let call = PartialCallState { tool, path, argument_bytes };
                self.live.partial_calls.insert(*index, call);
            }
            LiveEvent::PartialStep { texts, calls } => {
                self.live.set_partial_step(texts, calls, *at)
            }
            LiveEvent::CallProgress { call, text } => {
                self.live.call_outputs.entry(*call).or_default().progress.clone_from(text);
                self.blocks.mark_call_changed(*call);
            }
            LiveEvent::CommandOutput { call, text } => {
                self.live.append_output(*call, text);
                self.blocks.mark_call_changed(*call);
            }
            LiveEvent::HostAccess { call, host, refusal: Some(_) } => {
                self.live.call_outputs.entry(*call).or_default().refused_host = Some(host.clone());
                self.blocks.mark_call_changed(*call);
            }
            LiveEvent::HostAccess { .. }
            | LiveEvent::JobUpdate { .. }
            | LiveEvent::HookRan { .. } => {}
        }
    }

    /// Handles a response; returns false if it belongs to another component.
    pub fn on_response(
        &mut self,
        id: u64,
        response: &Result<HostResponse, Fault>,
        cx: &mut UiContext<'_>,
    ) -> bool {
        self.on_matches(id, response, cx)
            || self.on_image(id, response)
            || self.on_page(id, response, cx)
    }

    /// Adds a note that is not part of the session, such as a hint.
    pub fn add_note(&mut self, text: &str) {
        self.blocks.add_note(self.window.head, text);
    }

    /// Scrolls the view; requests another page near the end of the window.
    pub fn scroll(&mut self, target: ScrollTarget, cx: &mut UiContext<'_>) {
        // Add the rest of an earlier scroll that waits for a page.
        let remaining_lines = match self.pending_scroll.take() {
            Some(ScrollTarget::Lines(lines)) => lines,
            Some(_) | None => 0,
        };
        let appearance = cx.appearance.clone();
        let render_cx = self.render_context(&appearance, cx.state);
        self.on_appearance_change(&appearance);
        let page_lines = i32::from(self.screen_size.1.saturating_sub(2).max(1));
        match target {
            ScrollTarget::Lines(lines) => {
                self.scroll_by(lines.saturating_add(remaining_lines), &render_cx)
            }
            ScrollTarget::Pages(pages) => {
                self.scroll_by(
                    pages.saturating_mul(page_lines).saturating_add(remaining_lines),
                    &render_cx,
                );
            }
            ScrollTarget::Top if self.window.holds_start() => {
                self.scroll_to(RowPosition { item: 0, row: 0 }, &render_cx)
            }
            ScrollTarget::Top => self.request_page(LogPageRequest::First, cx),
            ScrollTarget::End if self.window.holds_end() => self.anchor = None,
            ScrollTarget::End => self.request_page(LogPageRequest::Last, cx),
            ScrollTarget::PreviousPrompt => {
                let top = self.viewport_top(&render_cx);
                let earlier = self.blocks.blocks.iter().take(top.item + usize::from(top.row > 1));
                let prompt = earlier.enumerate().rev().find(|(_, block)| block.kind.is_prompt());
                match prompt.map(|(item, _)| item) {
                    Some(item) => self.scroll_to_item(item, &render_cx),
                    None if self.window.holds_start() => {
                        self.scroll_to(RowPosition { item: 0, row: 0 }, &render_cx);
                    }
                    None => self.pending_scroll = Some(target),
                }
            }
            ScrollTarget::NextPrompt => {
                let top = self.viewport_top(&render_cx);
                let later = self.blocks.blocks.iter().enumerate().skip(top.item + 1);
                let prompt = later.into_iter().find(|(_, block)| block.kind.is_prompt());
                match prompt.map(|(item, _)| item) {
                    _ if self.anchor.is_none() => {}
                    Some(item) => self.scroll_to_item(item, &render_cx),
                    None if self.window.holds_end() => self.anchor = None,
                    None => self.pending_scroll = Some(target),
                }
            }
        }
        self.request_nearby_pages(cx);
    }

    fn scroll_by(&mut self, lines: i32, render_cx: &RenderContext<'_>) {
        if self.item_count(render_cx) == 0 || (lines > 0 && self.anchor.is_none()) {
            return;
        }
        let top = self.viewport_top(render_cx);
        let (position, missing) =
            self.move_by_rows(top, isize::try_from(lines).unwrap_or_default(), render_cx);
        if position != top {
            self.scroll_to(position, render_cx);
        }
        let missing = i32::try_from(missing).unwrap_or(i32::MAX);
        let is_at_edge =
            if lines < 0 { self.window.holds_start() } else { self.window.holds_end() };
        if missing > 0 && !is_at_edge {
            self.pending_scroll = Some(ScrollTarget::Lines(missing * lines.signum()));
        }
    }

    /// Shows the first row of an item at the top, without the blank row before it.
    fn scroll_to_item(&mut self, item: usize, render_cx: &RenderContext<'_>) {
        self.anchor_at(RowPosition { item, row: 0 });
        if let Some(anchor) = &mut self.anchor {
            anchor.row = 0;
        }
        let position = self.viewport_top(render_cx);
        self.scroll_to(position, render_cx);
    }

    fn scroll_to(&mut self, position: RowPosition, render_cx: &RenderContext<'_>) {
        if self.anchor.is_none() {
            self.head_when_left = self.window.head;
        }
        if self.item_count(render_cx) == 0 || self.reaches_end(position, render_cx) {
            self.anchor = None;
        } else {
            self.anchor_at(position);
        }
    }

    /// Opens or closes the details of blocks.
    pub fn toggle_details(&mut self, target: DetailsTarget) {
        let can_open = |key: &&TranscriptBlockKey| self.can_open(**key);
        let key = match target {
            DetailsTarget::All => {
                self.all_open = !self.all_open;
                self.toggled_blocks.clear();
                return;
            }
            DetailsTarget::MiddleBlock if self.anchor.is_none() => {
                let streaming_keys = (0..self.live.streaming.len())
                    .map(|index| self.item_key(self.blocks.blocks.len() + index));
                let keys: Vec<TranscriptBlockKey> = self
                    .blocks
                    .blocks
                    .iter()
                    .map(|block| block.key)
                    .chain(streaming_keys)
                    .collect();
                keys.iter().rev().find(can_open).copied()
            }
            DetailsTarget::MiddleBlock => {
                let middle = self.visible_blocks.len() / 2;
                let candidates =
                    self.visible_blocks.iter().enumerate().filter(|(_, key)| can_open(key));
                candidates.min_by_key(|(index, _)| index.abs_diff(middle)).map(|(_, key)| *key)
            }
        };
        if let Some(key) = key {
            self.toggle_block(key);
        }
    }

    fn toggle_block(&mut self, key: TranscriptBlockKey) {
        if !self.toggled_blocks.remove(&key) {
            self.toggled_blocks.insert(key);
        }
    }

    fn can_open(&self, key: TranscriptBlockKey) -> bool {
        let block =
            self.blocks.position_of(key).ok().and_then(|index| self.blocks.blocks.get(index));
        match block {
            Some(block) => block.kind.can_open(),
            None => self.live.streaming.get(key.1 as usize).is_some_and(|streaming| {
                key.0 == LogSeq::MAX && streaming.stream == ModelStreamKind::Reasoning
            }),
        }
    }

    /// Returns true if the view shows the end and follows it.
    pub fn is_following(&self) -> bool {
        self.anchor.is_none() && self.window.holds_end()
    }

    /// Draws the visible rows, and returns the cursor position if the search bar is open.
    pub fn draw(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        appearance: &Appearance,
        state: &SessionState,
    ) -> Option<Position> {
        let search_rows = u16::from(self.search.is_some() && area.height > 1);
        let full_area = area;
        let area = Rect { height: area.height - search_rows, ..area };
        self.screen_size = (area.width, area.height);
        self.on_appearance_change(appearance);
        if area.is_empty() {
            return None;
        }
        let render_cx = self.render_context(appearance, state);
        let has_facts = self
            .blocks
            .blocks
            .iter()
            .any(|block| !matches!(block.kind, TranscriptBlockKind::Note(_)));
        match has_facts
            || self.item_count(&render_cx) > self.blocks.blocks.len()
            || self.window.head > 0
        {
            true => self.draw_rows(area, buffer, &render_cx),
            false => self.draw_empty_state(area, buffer, &render_cx),
        }
        let search_area = Rect { y: area.bottom(), height: search_rows, ..full_area };
        self.draw_search_bar(search_area, buffer, &render_cx)
    }

    /// Discards the `rendered_blocks` if the theme changed.
    fn on_appearance_change(&mut self, appearance: &Appearance) {
        if self.rendered_theme.0 != appearance.theme || self.rendered_theme.1 != appearance.ascii {
            self.rendered_theme = (appearance.theme.clone(), appearance.ascii);
            self.rendered_blocks.clear();
            self.rendered_rows = 0;
        }
    }
}
