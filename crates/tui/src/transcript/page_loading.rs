//! Paging of the transcript: requests pages near the viewport and drops distant facts.

use super::TranscriptView;
use super::blocks::TranscriptBlockKey;
use super::loaded_log_window::{LoadedLogWindow, PAGE_RECORDS};
use super::position::ViewAnchor;
use crate::ui_context::UiContext;
use windlass_protocol::frontend_messages::HostResponse;
use windlass_protocol::{FactRecord, Fault, LogSeq, QueryReply, SessionQuery};

/// The kind of a page request; all but `FullTranscript` send `SessionQuery::Events`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogPageRequest {
    /// The last page, when a session is opened.
    Opening,
    /// The page before the window.
    Before,
    /// The page after the window.
    After,
    /// The first page, to scroll there.
    First,
    /// The last page, to scroll there.
    Last,
    /// A page around a position, to scroll there.
    Around(LogSeq),
    /// The whole `Transcript`, for `SessionState` rather than this view.
    FullTranscript,
}

impl LogPageRequest {
    pub fn is_around(self) -> bool {
        matches!(self, LogPageRequest::Around(_))
    }

    /// Returns true if the page contains the end of the log.
    pub fn is_end(self) -> bool {
        match self {
            LogPageRequest::Opening | LogPageRequest::Last => true,
            LogPageRequest::Before
            | LogPageRequest::After
            | LogPageRequest::First
            | LogPageRequest::Around(_)
            | LogPageRequest::FullTranscript => false,
        }
    }
}

/// An end of the window is near if fewer screens of blocks, and fewer bytes, lie before it.
const NEAR_SCREENS: usize = 2;
const NEAR_BYTES: usize = 128 << 10;
/// Facts further away than this may be dropped.
const FAR_SCREENS: usize = 6;
const FAR_BYTES: usize = 512 << 10;

impl TranscriptView {
    /// Requests a page, unless the same `LogPageRequest` is under way.
    pub(super) fn request_page(&mut self, request: LogPageRequest, cx: &mut UiContext<'_>) {
        let Some(session) = self.session else { return };
        if self.page_requests.iter().any(|(_, pending)| *pending == request) {
            return;
        }
        let (first, last) = self.window.span().unwrap_or((self.window.head + 1, 0));
        let after = match request {
            LogPageRequest::Opening | LogPageRequest::Last => {
                self.window.head.saturating_sub(PAGE_RECORDS)
            }
            LogPageRequest::Before => first.saturating_sub(PAGE_RECORDS + 1),
            LogPageRequest::After => last,
            LogPageRequest::Around(seq) => seq.saturating_sub(PAGE_RECORDS / 2),
            LogPageRequest::First | LogPageRequest::FullTranscript => 0,
        };
        let limit = (!request.is_end()).then_some(PAGE_RECORDS as u32);
        let id = cx.send_query(SessionQuery::Events { session, after, limit });
        self.page_requests.push((id, request));
    }

    /// Handles the response with a page; returns false if it belongs to another request.
    pub(super) fn on_page(
        &mut self,
        id: u64,
        response: &Result<HostResponse, Fault>,
        cx: &mut UiContext<'_>,
    ) -> bool {
        let Some(index) = self.page_requests.iter().position(|(request_id, _)| *request_id == id)
        else {
            return false;
        };
        let (_, request) = self.page_requests.remove(index);
        if request == LogPageRequest::FullTranscript {
            return true;
        }
        let events = match response {
            Ok(HostResponse::Reply { reply: QueryReply::Events { events } }) => events,
            Ok(_) => return true,
            Err(fault) => {
                self.add_note(&format!(
                    "Could not read the session: {}",
                    crate::error_hints::describe(fault)
                ));
                return true;
            }
        };
        match request {
            LogPageRequest::Opening | LogPageRequest::Last => {
                self.replace_records(events);
                self.anchor = None;
            }
            LogPageRequest::First => {
                self.replace_records(
                    events.get(..events.len().min(PAGE_RECORDS as usize)).unwrap_or(events),
                );
                self.head_when_left = self.window.head;
                self.anchor = Some(ViewAnchor { key: TranscriptBlockKey(0, 0), row: 0 });
            }
            LogPageRequest::Around(seq) => {
                self.replace_records(
                    events.get(..events.len().min(PAGE_RECORDS as usize)).unwrap_or(events),
                );
                self.head_when_left = self.window.head;
                self.anchor = Some(ViewAnchor { key: TranscriptBlockKey(seq, 0), row: 0 });
            }
            LogPageRequest::Before => {
                self.window.prepend(events);
            }
            LogPageRequest::After => {
                for record in events.iter().take(PAGE_RECORDS as usize) {
                    self.window.push(record);
                }
            }
            LogPageRequest::FullTranscript => {}
        }
        self.blocks.rebuild(&self.window);
        self.drop_far_records(cx);
        if let LogPageRequest::Around(seq) = request {
            self.on_page_around(seq, cx);
        }
        match self.pending_scroll.take() {
            Some(target) => self.scroll(target, cx),
            None => self.request_nearby_pages(cx),
        }
        true
    }

    /// Replaces the content of the window.
    fn replace_records(&mut self, events: &[FactRecord]) {
        let last_seq = events.last().map_or(0, |record| record.seq);
        let head = self.window.head.max(last_seq);
        self.window = LoadedLogWindow::with_head(0);
        for record in events {
            self.window.push(record);
        }
        self.window.head = head;
        self.page_requests.retain(|(_, request)| *request == LogPageRequest::FullTranscript);
    }

    /// Returns the index of the block at the viewport, and the most blocks that a screen shows.
    fn viewport_blocks(&self) -> (usize, usize) {
        let height = usize::from(self.screen_size.1).max(10);
        let blocks = self.blocks.blocks.len();
        let index = match self.anchor {
            Some(anchor) => {
                self.blocks.position_of(anchor.key).unwrap_or_else(|insertion| insertion)
            }
            None => blocks,
        };
        (index.min(blocks), height)
    }

    fn block_seq(&self, block: usize) -> LogSeq {
        self.blocks.blocks.get(block).map_or(LogSeq::MAX, |block| block.key.0)
    }

    /// Requests the pages that the viewport comes near to.
    pub(super) fn request_nearby_pages(&mut self, cx: &mut UiContext<'_>) {
        if self.window.span().is_none() {
            // The window is empty: its page is requested already, or the session is empty.
            if !self.window.holds_end() && self.page_requests.is_empty() {
                self.request_page(LogPageRequest::Last, cx);
            }
            return;
        }
        let (index, height) = self.viewport_blocks();
        let (bytes_before, _) = self.window.bytes_around(self.block_seq(index), NEAR_BYTES);
        let is_near =
            index == 0 || bytes_before < NEAR_BYTES && index < (NEAR_SCREENS + 1) * height;
        if !self.window.holds_start() && (is_near || self.pending_scroll.is_some()) {
            self.request_page(LogPageRequest::Before, cx);
        }
        let blocks_below = self.blocks.blocks.len() - index;
        let (_, bytes_after) = self.window.bytes_around(self.block_seq(index + height), NEAR_BYTES);
        let is_near = blocks_below <= height
            || bytes_after < NEAR_BYTES && blocks_below < (NEAR_SCREENS + 1) * height;
        if !self.window.holds_end() && (is_near || self.pending_scroll.is_some()) {
            self.request_page(LogPageRequest::After, cx);
        }
    }

    /// Drops facts far from the viewport if `LoadedLogWindow::is_full`.
    pub(super) fn drop_far_records(&mut self, cx: &mut UiContext<'_>) {
        let _ = cx;
        if !self.window.is_full() {
            return;
        }
        let (index, height) = self.viewport_blocks();
        let (mut low, mut high) =
            (index.saturating_sub(FAR_SCREENS * height), index + (FAR_SCREENS + 1) * height);
        // Cut closer if blocks are large, but never what the next scroll step can show.
        while low + height * (NEAR_SCREENS + 1) < index && self.exceeds_far_bytes(low, index) {
            low += height;
        }
        while index + height * (NEAR_SCREENS + 1) < high && self.exceeds_far_bytes(index, high) {
            high -= height;
        }
        let has_far_blocks = low > 0 || high < self.blocks.blocks.len();
        if low > 0 {
            self.window.drop_before(self.block_seq(low));
        }
        if high < self.blocks.blocks.len() {
            // Keep everything up to the fact before the first dropped block.
            self.window.drop_after(self.block_seq(high).saturating_sub(1));
        }
        if has_far_blocks {
            self.blocks.rebuild(&self.window);
            self.rendered_blocks.retain(|key, _| self.blocks.position_of(*key).is_ok());
            self.count_rendered_rows();
        }
    }

    fn exceeds_far_bytes(&self, start: usize, end: usize) -> bool {
        let (_, bytes_from_start) = self.window.bytes_around(self.block_seq(start), FAR_BYTES);
        let (_, bytes_from_end) = self.window.bytes_around(self.block_seq(end), FAR_BYTES);
        bytes_from_start.saturating_sub(bytes_from_end) >= FAR_BYTES
    }
}
