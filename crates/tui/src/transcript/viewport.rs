//! The visible part of the transcript: its top row and the rows below it.
//!
//! The view is fixed to an anchor, the block and row at its top, or it follows the end. All other
//! rows are found by walking from there, so that only nearby blocks are ever rendered.

use super::TranscriptView;
use super::block_render_data::BlockRenderData;
use super::block_rows;
use super::blocks::{TranscriptBlockKey, TranscriptBlockKind};
use super::call_rows;
use super::find::{self, SearchMatchMark, TranscriptSearch};
use super::position::{RowPosition, ViewAnchor};
use super::render_context::{LEFT_MARGIN, RenderContext};
use crate::keys::UiCommand;
use crate::safe_line::SafeLine;
use crate::theme::StyleRole;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::ops::Range;

/// The cached rows of a `TranscriptBlock`, and the settings they were rendered for.
#[derive(Debug)]
pub(super) struct RenderedBlock {
    revision: u64,
    width: usize,
    open: bool,
    rows: Vec<SafeLine>,
    /// The search marks in the rows, and the `TranscriptSearch::version` they belong to.
    marks: (u64, Vec<SearchMatchMark>),
}

impl RenderedBlock {
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns the search marks in the rows; computes them if they are stale.
    pub(super) fn marks(&mut self, search: &TranscriptSearch) -> &[SearchMatchMark] {
        if self.marks.0 != search.version {
            self.marks = (search.version, search.marks(&self.rows));
        }
        &self.marks.1
    }
}

/// The number of `rendered_rows` above which distant ones are dropped.
const MAX_RENDERED_ROWS: usize = 10_000;
/// The position of items that are not facts: after all of them.
const TAIL_SEQ: u64 = u64::MAX;

/// The kind of an item, which decides about the blank row between it and the next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TranscriptItemKind {
    Prompt,
    Text,
    Call,
    Remark,
    QueuedPrompt,
}

impl TranscriptView {
    /// Returns the number of items: blocks, streaming texts, partial calls and queued prompts.
    pub(super) fn item_count(&self, render_cx: &RenderContext<'_>) -> usize {
        match self.window.holds_end() {
            true => {
                self.blocks.blocks.len()
                    + self.live.streaming.len()
                    + self.live.partial_calls.len()
                    + render_cx.state.queued_prompts.len()
            }
            false => self.blocks.blocks.len(),
        }
    }

    fn item_kind(&self, item: usize) -> TranscriptItemKind {
        let blocks = self.blocks.blocks.len();
        match self.blocks.blocks.get(item).map(|block| &block.kind) {
            Some(TranscriptBlockKind::Prompt { .. }) => TranscriptItemKind::Prompt,
            Some(TranscriptBlockKind::ModelText) => TranscriptItemKind::Text,
            Some(TranscriptBlockKind::ToolCall(_) | TranscriptBlockKind::Reasoning) => {
                TranscriptItemKind::Call
            }
            Some(
                TranscriptBlockKind::TurnEnded { .. }
                | TranscriptBlockKind::ModeChanged(_)
                | TranscriptBlockKind::AgentChanged(_)
                | TranscriptBlockKind::ModelChanged(_)
                | TranscriptBlockKind::Compacted
                | TranscriptBlockKind::Forked
                | TranscriptBlockKind::Rewound
                | TranscriptBlockKind::HookDenied
                | TranscriptBlockKind::Retrying
                | TranscriptBlockKind::LostText
                | TranscriptBlockKind::FactsLost
                | TranscriptBlockKind::ModelNotice
                | TranscriptBlockKind::Note(_),
            ) => TranscriptItemKind::Remark,
            None => {
                let tail_index = item - blocks;
                match self.live.streaming.get(tail_index).map(|streaming| streaming.stream) {
                    Some(windlass_protocol::ModelStreamKind::Text) => TranscriptItemKind::Text,
                    Some(windlass_protocol::ModelStreamKind::Reasoning) => TranscriptItemKind::Call,
                    None if self.live.partial_call(tail_index).is_some() => {
                        TranscriptItemKind::Call
                    }
                    None => TranscriptItemKind::QueuedPrompt,
                }
            }
        }
    }

    /// Returns the number of blank rows before an item, whose height must have been computed. Calls
    /// are one below the other, unless the first one shows more than its headline.
    fn space_before(&self, item: usize) -> usize {
        let Some(previous) = item.checked_sub(1) else { return 0 };
        match (self.item_kind(previous), self.item_kind(item)) {
            (TranscriptItemKind::Call, TranscriptItemKind::Call) => {
                let rendered = self.rendered_blocks.get(&self.item_key(previous));
                usize::from(rendered.is_some_and(|rendered| rendered.len() > 1))
            }
            (TranscriptItemKind::Remark, TranscriptItemKind::Remark) => 0,
            (TranscriptItemKind::QueuedPrompt, TranscriptItemKind::QueuedPrompt) => 0,
            _ => 1,
        }
    }

    pub(super) fn item_key(&self, item: usize) -> TranscriptBlockKey {
        let blocks = self.blocks.blocks.len();
        match self.blocks.blocks.get(item) {
            Some(block) => block.key,
            None => TranscriptBlockKey(TAIL_SEQ, u32::try_from(item - blocks).unwrap_or(u32::MAX)),
        }
    }

    pub(super) fn is_open(&self, key: TranscriptBlockKey) -> bool {
        self.all_open ^ self.toggled_blocks.contains(&key)
    }

    /// Renders an item if necessary, and returns its height including the blank rows before it.
    pub(super) fn item_height(&mut self, item: usize, render_cx: &RenderContext<'_>) -> usize {
        if let Some(previous) = item.checked_sub(1) {
            self.render_item(previous, render_cx);
        }
        let height = self.render_item(item, render_cx);
        self.space_before(item) + height
    }

    /// Renders an item if necessary, and returns the number of its rows.
    fn render_item(&mut self, item: usize, render_cx: &RenderContext<'_>) -> usize {
        let key = self.item_key(item);
        let open = self.is_open(key);
        let Some(block) = self.blocks.blocks.get(item) else {
            let tail_index = item - self.blocks.blocks.len();
            return match self.live.streaming.get_mut(tail_index) {
                Some(streaming) => block_rows::streaming_height(streaming, open, render_cx),
                None => 1,
            };
        };
        let fits = |rendered: &&RenderedBlock| {
            rendered.revision == block.revision
                && rendered.width == render_cx.width
                && rendered.open == open
        };
        if let Some(rendered) = self.rendered_blocks.get(&key).filter(fits) {
            return rendered.rows.len();
        }
        let source =
            BlockRenderData { window: &self.window, live: &self.live, images: &self.images };
        let rows = block_rows::render_block(block, open, source, render_cx);
        let (revision, width, count) = (block.revision, render_cx.width, rows.len());
        let previous = self
            .rendered_blocks
            .insert(key, RenderedBlock { revision, width, open, rows, marks: (0, Vec::new()) });
        let removed_rows = previous.map_or(0, |previous| previous.rows.len());
        self.rendered_rows = (self.rendered_rows + count).saturating_sub(removed_rows);
        count
    }

    /// Returns the rows in `range` of an item, counting the blank rows before it.
    fn item_rows(
        &mut self,
        item: usize,
        range: Range<usize>,
        render_cx: &RenderContext<'_>,
    ) -> Vec<SafeLine> {
        let space = self.space_before(item);
        let blank_rows = space.saturating_sub(range.start).min(range.len());
        let inner_range = range.start.saturating_sub(space)..range.end.saturating_sub(space);
        let key = self.item_key(item);
        let open = self.is_open(key);
        let rows = match self
            .rendered_blocks
            .get_mut(&key)
            .filter(|_| item < self.blocks.blocks.len())
        {
            Some(rendered) => match &self.search {
                None => {
                    rendered.rows.get(inner_range).map(<[SafeLine]>::to_vec).unwrap_or_default()
                }
                Some(search) => {
                    let marks = rendered.marks(search).to_vec();
                    let row = |row_index: usize| {
                        let row_marks = marks.iter().filter_map(|mark| {
                            Some((
                                mark.range_in_row(row_index)?,
                                search.mark_style(key, mark, render_cx.appearance),
                            ))
                        });
                        Some(find::highlight_row(rendered.rows.get(row_index)?.clone(), row_marks))
                    };
                    inner_range.filter_map(row).collect()
                }
            },
            None => {
                let tail_index = item - self.blocks.blocks.len();
                let live_count = self.live.streaming.len() + self.live.partial_calls.len();
                let queued = tail_index.checked_sub(live_count);
                let queued =
                    queued.and_then(|row_index| render_cx.state.queued_prompts.get(row_index));
                if let Some(call) = self.live.partial_call(tail_index) {
                    let row = call_rows::render_partial_call(call, render_cx);
                    let rows = [row].into_iter().skip(inner_range.start).take(inner_range.len());
                    return std::iter::repeat_n(SafeLine::default(), blank_rows)
                        .chain(rows)
                        .collect();
                }
                match (self.live.streaming.get_mut(tail_index), queued) {
                    (Some(streaming), _) => {
                        block_rows::render_streaming(streaming, open, render_cx, inner_range)
                    }
                    (None, Some(prompt)) => {
                        let rows = block_rows::render_queued_prompt(
                            &prompt.text,
                            prompt.delivery,
                            render_cx,
                        );
                        rows.into_iter().skip(inner_range.start).take(inner_range.len()).collect()
                    }
                    (None, None) => Vec::new(),
                }
            }
        };
        std::iter::repeat_n(SafeLine::default(), blank_rows).chain(rows).collect()
    }

    /// Moves a position by rows, down or, if negative, up, as far as rows exist. Also returns the
    /// number of missing rows.
    pub(super) fn move_by_rows(
        &mut self,
        start: RowPosition,
        rows: isize,
        render_cx: &RenderContext<'_>,
    ) -> (RowPosition, usize) {
        let item_count = self.item_count(render_cx);
        let mut position = start;
        let mut remaining = rows.unsigned_abs();
        while remaining > 0 && rows < 0 {
            let step = remaining.min(position.row);
            position.row -= step;
            remaining -= step;
            if remaining > 0 {
                if position.item == 0 {
                    break;
                }
                position.item -= 1;
                position.row = self.item_height(position.item, render_cx);
            }
        }
        while remaining > 0 && rows > 0 {
            let height = self.item_height(position.item, render_cx);
            if position.row + remaining < height {
                position.row += remaining;
                return (position, 0);
            }
            if position.item + 1 >= item_count {
                remaining -= height.saturating_sub(1 + position.row);
                position.row = height.saturating_sub(1);
                break;
            }
            remaining -= height - position.row;
            position = RowPosition { item: position.item + 1, row: 0 };
        }
        (position, remaining)
    }

    /// Returns the top row of a screen of this height that shows the end.
    pub(super) fn last_screen_top(
        &mut self,
        height: usize,
        render_cx: &RenderContext<'_>,
    ) -> RowPosition {
        let Some(last) = self.item_count(render_cx).checked_sub(1) else {
            return RowPosition { item: 0, row: 0 };
        };
        let end = RowPosition { item: last, row: self.item_height(last, render_cx) };
        self.move_by_rows(end, -isize::try_from(height).unwrap_or(isize::MAX), render_cx).0
    }

    /// Returns the top row of the screen.
    pub(super) fn viewport_top(&mut self, render_cx: &RenderContext<'_>) -> RowPosition {
        let end = self.last_screen_top(usize::from(self.screen_size.1), render_cx);
        let Some(anchor) = self.anchor else { return end };
        let item = match anchor.key.0 {
            TAIL_SEQ => self.blocks.blocks.len() + anchor.key.1 as usize,
            _ => self.blocks.position_of(anchor.key).unwrap_or_else(|insertion| insertion),
        };
        let item = item.min(self.item_count(render_cx).saturating_sub(1));
        let height = self.item_height(item, render_cx);
        let row = isize::try_from(self.space_before(item)).unwrap_or_default() + anchor.row;
        let row = usize::try_from(row).unwrap_or_default().min(height.saturating_sub(1));
        RowPosition { item, row }
    }

    /// Sets the `anchor` to a row.
    pub(super) fn anchor_at(&mut self, position: RowPosition) {
        let space = isize::try_from(self.space_before(position.item)).unwrap_or_default();
        let row = isize::try_from(position.row).unwrap_or_default() - space;
        self.anchor = Some(ViewAnchor { key: self.item_key(position.item), row });
    }

    /// Returns true if a screen that begins at this row shows the end.
    pub(super) fn reaches_end(
        &mut self,
        position: RowPosition,
        render_cx: &RenderContext<'_>,
    ) -> bool {
        self.window.holds_end()
            && position >= self.last_screen_top(usize::from(self.screen_size.1), render_cx)
    }

    /// Draws the visible rows.
    pub(super) fn draw_rows(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        render_cx: &RenderContext<'_>,
    ) {
        let top = self.viewport_top(render_cx);
        if self.anchor.is_some() && self.reaches_end(top, render_cx) {
            self.anchor = None;
        }
        let is_following = self.anchor.is_none();
        let top = if is_following {
            self.last_screen_top(usize::from(area.height), render_cx)
        } else {
            top
        };
        // The search bar replaces the position row.
        let shows_position = !is_following && self.search.is_none();
        let bottom = area.bottom().saturating_sub(u16::from(shows_position));
        self.visible_blocks.clear();
        self.visible_block_rows.clear();
        self.clear_visible_images();
        let (mut y, item_count) = (area.y, self.item_count(render_cx));
        let mut position = top;
        while y < bottom && position.item < item_count {
            self.note_visible_images(position.item, render_cx);
            let height = self.item_height(position.item, render_cx);
            let available = usize::from(bottom - y);
            let range = position.row..height.min(position.row + available);
            let (key, space) = (self.item_key(position.item), self.space_before(position.item));
            for (index, row) in
                self.item_rows(position.item, range.clone(), render_cx).iter().enumerate()
            {
                let block_row = (range.start + index).checked_sub(space).unwrap_or(usize::MAX);
                self.visible_blocks.push(key);
                self.visible_block_rows.push(block_row);
                let row_area = Rect { y, height: 1, ..area };
                row.draw(row_area, buffer);
                if block_row == 0 && self.selected_block == Some(key) {
                    let style = render_cx.appearance.style(StyleRole::Selected);
                    buffer.set_style(row_area, style);
                }
                y = y.saturating_add(1);
            }
            position = RowPosition { item: position.item + 1, row: 0 };
        }
        if shows_position {
            self.draw_position(
                Rect { y: bottom, height: 1, ..area }.intersection(area),
                buffer,
                render_cx,
            );
        }
        self.drop_far_rows(top.item);
    }

    /// Draws the position row, shown while the view is not at the end.
    fn draw_position(&self, area: Rect, buffer: &mut Buffer, render_cx: &RenderContext<'_>) {
        let key = self.anchor.map_or(0, |anchor| anchor.key.0).min(self.window.head);
        let percent = (100 * key).checked_div(self.window.head).unwrap_or_default();
        let first_new =
            self.blocks.blocks.partition_point(|block| block.key.0 <= self.head_when_left);
        let new = match (self.blocks.blocks.len() - first_new, self.window.holds_end()) {
            _ if self.head_when_left >= self.window.head => String::new(),
            (_, false) => " · more below".to_owned(),
            (0, true) => String::new(),
            (new, true) => format!(" · ↓ {new} new"),
        };
        let end = render_cx.key_hint(UiCommand::ScrollToEnd);
        let text = render_cx
            .ascii_fallback(&format!(" {percent} %{new} · {end} to jump to the end "))
            .into_owned();
        let rule = render_cx.symbol("─", "-");
        let (style, width) =
            (render_cx.appearance.style(StyleRole::Border), usize::from(area.width));
        let label = SafeLine::styled(render_cx.appearance.style(StyleRole::Dim), &text);
        let fill_width = width.saturating_sub(label.width() + LEFT_MARGIN);
        let mut row = SafeLine::styled(style, &rule.repeat(fill_width));
        row.append(&label);
        row.push_text(style, &rule.repeat(LEFT_MARGIN));
        row.draw(area, buffer);
    }

    /// Drops rendered rows far from the screen.
    fn drop_far_rows(&mut self, top: usize) {
        if self.rendered_rows < MAX_RENDERED_ROWS
            && self.rendered_blocks.len() < MAX_RENDERED_ROWS / 8
        {
            return;
        }
        let margin = 3 * usize::from(self.screen_size.1);
        let (first, last) = (top.saturating_sub(margin), top.saturating_add(margin));
        let (first, last) =
            (self.item_key(first), self.item_key(last.min(self.blocks.blocks.len())));
        self.rendered_blocks.retain(|key, _| (first..=last).contains(key));
        self.count_rendered_rows();
    }

    /// Recounts `rendered_rows`.
    pub(super) fn count_rendered_rows(&mut self) {
        self.rendered_rows =
            self.rendered_blocks.values().map(|rendered| rendered.rows.len()).sum();
    }
}
