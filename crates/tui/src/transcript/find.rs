//! Text search in the session: a search bar at the bottom and marks in the transcript.
//!
//! The host returns the facts that contain the text, with the number of matches in each. The view
//! scrolls there, opens a block that hides the match, and marks the matches in the rendered rows.
//! If fewer are visible than the host counted, the count is corrected.

use super::TranscriptView;
use super::block_render_data::BlockRenderData;
use super::block_rows;
use super::blocks::TranscriptBlockKey;
use super::page_loading::LogPageRequest;
use super::position::RowPosition;
use super::render_context::RenderContext;
use crate::keys::{KeyScope, UiCommand};
use crate::safe_line::SafeLine;
use crate::text_input::TextInput;
use crate::theme::StyleRole;
use crate::ui_context::{Appearance, UiContext};
use crate::wrap;
use crossterm::event::KeyEvent;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Modifier, Style};
use std::ops::Range;
use windlass_protocol::frontend_messages::HostResponse;
use windlass_protocol::log_text_search::SOFT_BREAK;
use windlass_protocol::{Fault, LogSeq, MatchingFact, QueryReply, SearchPattern, SessionQuery};

/// The search text and its matches.
#[derive(Debug, Default)]
pub(super) struct TranscriptSearch {
    text_input: TextInput,
    pattern: Option<SearchPattern>,
    /// Increases with every change of the pattern; marks of an older version are stale.
    pub version: u64,
    /// The id, text and time of the request under way.
    pending_request: Option<(u64, String, u64)>,
    /// The facts with matches, oldest first; `None` before the first response.
    matches: Option<Vec<MatchingFact>>,
    /// The last fact that was searched.
    searched_through: LogSeq,
    /// The position at which the user started the search, or to which they moved since.
    origin: LogSeq,
    /// The fact of the current match and the index of the match in it; an index that is too large
    /// means the last one.
    current_match: Option<(LogSeq, usize)>,
    /// The block that was opened to show the match; it is closed again afterwards.
    opened_block: Option<TranscriptBlockKey>,
}

/// A part of a match: a row of a block, the byte range in it, and the index of the match in the
/// block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SearchMatchMark {
    row: usize,
    range: Range<usize>,
    match_index: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SearchDirection {
    Older,
    Newer,
}

impl TranscriptSearch {
    /// Returns the index in `matches` of the fact with the current match.
    fn current_index(&self) -> Option<usize> {
        let (seq, _) = self.current_match?;
        self.matches.as_ref()?.binary_search_by_key(&seq, |text_match| text_match.seq).ok()
    }

    /// Returns the number of the current match and the total, such as `3 of 12`.
    fn position_and_total(&self) -> (usize, usize) {
        let matches = self.matches.as_deref().unwrap_or_default();
        let sum = |matches: &[MatchingFact]| {
            matches.iter().map(|text_match| text_match.count as usize).sum::<usize>()
        };
        let Some((index, (_, match_index))) = self.current_index().zip(self.current_match) else {
            return (0, sum(matches));
        };
        let count_here = matches.get(index).map_or(0, |text_match| text_match.count as usize);
        let before = sum(matches.get(..index).unwrap_or_default());
        (before + match_index.saturating_add(1).min(count_here), sum(matches))
    }

    /// Returns the nearest fact with a match at or before `origin`, else the first one after it.
    fn nearest_match(&self) -> Option<MatchingFact> {
        let matches = self.matches.as_ref()?;
        let end = matches.partition_point(|text_match| text_match.seq <= self.origin);
        matches.get(end.saturating_sub(1)).copied()
    }

    /// Returns the next match in a direction, if any.
    fn next_match(&self, direction: SearchDirection) -> Option<(LogSeq, usize)> {
        let (seq, match_index) = self.current_match?;
        let (matches, index) = (self.matches.as_ref()?, self.current_index()?);
        let count_here = matches.get(index)?.count as usize;
        match direction {
            SearchDirection::Older if match_index > 0 => Some((seq, match_index - 1)),
            SearchDirection::Older => Some((matches.get(index.checked_sub(1)?)?.seq, usize::MAX)),
            SearchDirection::Newer if match_index.saturating_add(1) < count_here => {
                Some((seq, match_index + 1))
            }
            SearchDirection::Newer => Some((matches.get(index + 1)?.seq, 0)),
        }
    }

    /// Returns the `SearchMatchMark`s of all matches in rendered rows.
    pub fn marks(&self, rows: &[SafeLine]) -> Vec<SearchMatchMark> {
        self.pattern.as_ref().map(|pattern| find_marks(pattern, rows)).unwrap_or_default()
    }

    /// Returns the style of a mark; the current match is reversed.
    pub fn mark_style(
        &self,
        key: TranscriptBlockKey,
        mark: &SearchMatchMark,
        appearance: &Appearance,
    ) -> Style {
        let is_current = self.current_match == Some((key.0, mark.match_index)) && key.1 == 0;
        let modifier = if is_current { Modifier::REVERSED } else { Modifier::UNDERLINED };
        appearance.style(StyleRole::Accent).add_modifier(modifier)
    }
}

impl SearchMatchMark {
    /// Returns the marked range if the mark is in this row.
    pub fn range_in_row(&self, row: usize) -> Option<Range<usize>> {
        (self.row == row).then(|| self.range.clone())
    }
}

/// Finds the matches in rendered rows; a match may span a wrapped line, which is joined with
/// `SOFT_BREAK`.
fn find_marks(pattern: &SearchPattern, rows: &[SafeLine]) -> Vec<SearchMatchMark> {
    let mut text = String::new();
    // For each row: its offset in `text`, the bytes of its indent left out, and its length.
    let mut row_starts = Vec::with_capacity(rows.len());
    for row in rows {
        let trimmed = row.as_str().trim_end();
        let content = trimmed.trim_start();
        row_starts.push((text.len(), trimmed.len() - content.len(), content.len()));
        text.push_str(content);
        text.push(SOFT_BREAK);
    }
    let mut marks = Vec::new();
    for (match_index, range) in pattern.find_all(&text).into_iter().enumerate() {
        let first = row_starts
            .partition_point(|(row_start, ..)| *row_start <= range.start)
            .saturating_sub(1);
        for (row, (row_start, margin, length)) in row_starts.iter().enumerate().skip(first) {
            if *row_start >= range.end {
                break;
            }
            let start = range.start.max(*row_start) - row_start;
            let end = range.end.min(row_start + length) - row_start;
            if start < end {
                marks.push(SearchMatchMark {
                    row,
                    range: margin + start..margin + end,
                    match_index,
                });
            }
        }
    }
    marks
}

impl TranscriptView {
    /// Starts a search for a text, or adds the text to the search under way.
    pub fn start_search(&mut self, text: &str, cx: &mut UiContext<'_>) {
        if self.search.is_none() {
            let last_visible = self.visible_blocks.last().map_or(LogSeq::MAX, |key| key.0);
            let origin = if self.anchor.is_none() { LogSeq::MAX } else { last_visible };
            self.search = Some(TranscriptSearch { origin, ..TranscriptSearch::default() });
        }
        if let Some(search) = &mut self.search {
            search.text_input.insert(text);
        }
        self.update_search(cx);
    }

    /// Returns true while the search bar is open and receives the keys.
    pub fn is_finding(&self) -> bool {
        self.search.is_some()
    }

    /// Closes the search bar; the view stays at the match.
    pub fn end_search(&mut self) {
        self.search = None;
    }

    /// Handles a key of the search bar; returns false if it has no meaning there.
    pub fn on_search_key(&mut self, key: &KeyEvent, cx: &mut UiContext<'_>) -> bool {
        let Some(search) = &mut self.search else { return false };
        match cx.appearance.key_map.command_for(KeyScope::Panel, key) {
            Some(UiCommand::Escape | UiCommand::Interrupt) => self.end_search(),
            Some(UiCommand::ChooseRow | UiCommand::RowUp | UiCommand::FindText) => {
                self.go_to_match(SearchDirection::Older, cx)
            }
            Some(UiCommand::RowDown) => self.go_to_match(SearchDirection::Newer, cx),
            _ if search.text_input.on_key(key, cx.appearance) => self.update_search(cx),
            _ => return false,
        }
        true
    }

    /// Searches for the text in `text_input`. Only one request is under way at a time.
    fn update_search(&mut self, cx: &mut UiContext<'_>) {
        let Some(search) = &mut self.search else { return };
        let pattern = SearchPattern::new(&search.text_input.text());
        if pattern == search.pattern {
            return;
        }
        search.version += 1;
        (search.pattern, search.matches, search.current_match) = (pattern, None, None);
        self.request_matches(cx);
    }

    fn request_matches(&mut self, cx: &mut UiContext<'_>) {
        let (Some(search), Some(session)) = (&mut self.search, self.session) else { return };
        if search.pattern.is_some() && search.pending_request.is_none() {
            let text = search.text_input.text();
            let id = cx.send_query(SessionQuery::FindText { session, text: text.clone() });
            search.pending_request = Some((id, text, cx.now));
        }
    }

    /// Handles the response `TextMatches`; returns false if it belongs to another request.
    pub(super) fn on_matches(
        &mut self,
        id: u64,
        response: &Result<HostResponse, Fault>,
        cx: &mut UiContext<'_>,
    ) -> bool {
        let Some(search) = &mut self.search else { return false };
        let Some((_, text, _)) =
            search.pending_request.take_if(|(request_id, ..)| *request_id == id)
        else {
            return false;
        };
        if text != search.text_input.text() {
            self.request_matches(cx);
            return true;
        }
        match response {
            Ok(HostResponse::Reply { reply: QueryReply::TextMatches { matches, through } }) => {
                (search.matches, search.searched_through) = (Some(matches.clone()), *through);
                if search.current_index().is_none() {
                    search.current_match =
                        search.nearest_match().map(|text_match| (text_match.seq, usize::MAX));
                }
                self.show_current_match(cx);
            }
            Ok(_) => {}
            Err(fault) => {
                search.matches = Some(Vec::new());
                self.add_note(&format!(
                    "Could not search the session: {}",
                    crate::error_hints::describe(fault)
                ));
            }
        }
        true
    }

    fn go_to_match(&mut self, direction: SearchDirection, cx: &mut UiContext<'_>) {
        let head = self.window.head;
        let Some(search) = &mut self.search else { return };
        let is_stale = search.searched_through < head;
        if let Some(next) = search.next_match(direction) {
            (search.current_match, search.origin) = (Some(next), next.0);
            self.show_current_match(cx);
        }
        // Facts that arrived since the last search are searched too.
        if is_stale {
            self.request_matches(cx);
        }
    }

    /// Scrolls to the current match; requests its page if it is not loaded.
    pub(super) fn show_current_match(&mut self, cx: &mut UiContext<'_>) {
        let Some((seq, _)) = self.search.as_ref().and_then(|search| search.current_match) else {
            return;
        };
        match self.blocks.position_of(TranscriptBlockKey(seq, 0)) {
            Ok(item) => self.show_match_in_item(item, cx),
            // One page at a time: the current match may have changed when it arrives.
            Err(_) if self.page_requests.iter().any(|(_, request)| request.is_around()) => {}
            Err(_) => self.request_page(LogPageRequest::Around(seq), cx),
        }
    }

    /// Handles the arrival of a `LogPageRequest::Around` page.
    pub(super) fn on_page_around(&mut self, seq: LogSeq, cx: &mut UiContext<'_>) {
        let is_current = self
            .search
            .as_ref()
            .and_then(|search| search.current_match)
            .is_some_and(|(current_seq, _)| current_seq == seq);
        let is_loaded = self.blocks.position_of(TranscriptBlockKey(seq, 0)).is_ok();
        // If the user moved on meanwhile, show the new match; a match that the page does not
        // contain is not requested again.
        if is_loaded || !is_current {
            self.show_current_match(cx);
        }
    }

    fn show_match_in_item(&mut self, item: usize, cx: &mut UiContext<'_>) {
        let appearance = cx.appearance.clone();
        let render_cx = self.render_context(&appearance, cx.state);
        self.on_appearance_change(&appearance);
        let key = self.item_key(item);
        self.reveal_match(item, &render_cx);
        let height = self.item_height(item, &render_cx);
        let (Some(search), Some(rendered)) = (&mut self.search, self.rendered_blocks.get_mut(&key))
        else {
            return;
        };
        let marks = rendered.marks(search);
        let visible_count = marks.last().map_or(1, |mark| mark.match_index + 1);
        let match_index =
            search.current_match.map_or(0, |(_, match_index)| match_index).min(visible_count - 1);
        let row =
            marks.iter().find(|mark| mark.match_index == match_index).map_or(0, |mark| mark.row);
        search.current_match = Some((key.0, match_index));
        if let (Some(index), Some(matches)) = (search.current_index(), &mut search.matches)
            && let Some(text_match) = matches.get_mut(index)
        {
            text_match.count = u32::try_from(visible_count).unwrap_or(u32::MAX);
        }
        let rows = rendered.len();
        let position = RowPosition { item, row: height.saturating_sub(rows) + row };
        self.scroll_into_view(position, &render_cx);
        self.request_nearby_pages(cx);
    }

    /// Opens a block if that shows more matches, and closes the block opened before.
    fn reveal_match(&mut self, item: usize, render_cx: &RenderContext<'_>) {
        let (key, block) = (self.item_key(item), self.blocks.blocks.get(item).cloned());
        let (Some(search), Some(block)) = (&mut self.search, block) else { return };
        if let Some(previous) = search.opened_block.take_if(|previous| *previous != key)
            && !self.toggled_blocks.remove(&previous)
        {
            self.toggled_blocks.insert(previous);
        }
        if !block.kind.can_open() || self.is_open(key) {
            return;
        }
        let Some(search) = &mut self.search else { return };
        let source =
            BlockRenderData { window: &self.window, live: &self.live, images: &self.images };
        let count = |open: bool| {
            let marks = search.marks(&block_rows::render_block(&block, open, source, render_cx));
            marks.last().map_or(0, |mark| mark.match_index + 1)
        };
        if count(true) > count(false) {
            search.opened_block = Some(key);
            if !self.toggled_blocks.remove(&key) {
                self.toggled_blocks.insert(key);
            }
        }
    }

    /// Scrolls until a row is visible, unless it already is.
    fn scroll_into_view(&mut self, position: RowPosition, render_cx: &RenderContext<'_>) {
        let height = isize::try_from(self.screen_size.1).unwrap_or_default().max(1);
        let top = self.viewport_top(render_cx);
        let (bottom, _) = self.move_by_rows(top, height - 1, render_cx);
        if position < top || bottom < position {
            let (top, _) = self.move_by_rows(position, -(height / 3), render_cx);
            self.scroll_to(top, render_cx);
        }
    }

    /// Returns the time at which the search bar changes without an event.
    pub fn next_wakeup(&self, now: u64) -> Option<u64> {
        let (_, _, since) = self.search.as_ref()?.pending_request.as_ref()?;
        Some(since + (now.saturating_sub(*since) / 1_000 + 1) * 1_000)
    }

    /// Draws the search bar and returns the cursor position in it.
    pub(super) fn draw_search_bar(
        &self,
        area: Rect,
        buffer: &mut Buffer,
        render_cx: &RenderContext<'_>,
    ) -> Option<Position> {
        let search = self.search.as_ref()?;
        let (border, dim) = (
            render_cx.appearance.style(StyleRole::Border),
            render_cx.appearance.style(StyleRole::Dim),
        );
        let rule = render_cx.symbol("─", "-");
        let mut row = SafeLine::styled(border, &format!("{} ", rule.repeat(2)))
            .with_text(render_cx.appearance.style(StyleRole::Strong), "Find ");
        let (up, down) =
            (render_cx.key_hint(UiCommand::RowUp), render_cx.key_hint(UiCommand::RowDown));
        let mut keys = match search.current_match {
            Some(_) => format!(" · {up} older · {down} newer"),
            None => String::new(),
        };
        keys.push_str(&format!(" · {} close", render_cx.key_hint(UiCommand::Escape)));
        if render_cx.width < 60 {
            keys.clear();
        }
        let status = render_cx
            .ascii_fallback(&format!(" {}{keys} ", search.status_text(render_cx.now_millis)))
            .into_owned();
        let status = SafeLine::styled(dim, &status);
        let input_width = render_cx.width.saturating_sub(row.width() + status.width() + 4).max(4);
        let (line, column) = search.text_input.render(input_width, render_cx.appearance);
        let x = area.x + u16::try_from(row.width() + column).unwrap_or(u16::MAX);
        row.append(&wrap::truncate(&line, input_width, render_cx.appearance));
        let fill_width = render_cx.width.saturating_sub(row.width() + 1 + status.width() + 2);
        row.push_text(border, &format!(" {}", rule.repeat(fill_width)));
        row.append(&status);
        row.push_text(border, &rule.repeat(2));
        wrap::truncate(&row, render_cx.width, render_cx.appearance).draw(area, buffer);
        Some(Position { x, y: area.y })
    }
}

impl TranscriptSearch {
    /// Returns the progress text of the search bar.
    fn status_text(&self, now: u64) -> String {
        let (_, total) = self.position_and_total();
        let (has_match, pending) = (self.current_match.is_some(), self.pending_request.as_ref());
        let seconds = pending.map(|(_, _, since)| now.saturating_sub(*since) / 1_000);
        match (seconds, &self.matches) {
            _ if self.pattern.is_none() => "type to search".to_owned(),
            (_, Some(_)) if has_match => format!("{} of {total}", self.position_and_total().0),
            (_, Some(_)) => "no matches".to_owned(),
            (None | Some(0), None) => "searching".to_owned(),
            (Some(seconds), None) => format!("searching, {seconds} s"),
        }
    }
}

/// Applies the styles of its `SearchMatchMark`s to a row.
pub(super) fn highlight_row(
    mut row: SafeLine,
    marks: impl Iterator<Item = (Range<usize>, Style)>,
) -> SafeLine {
    for (range, style) in marks {
        row = row.with_range_style(range, style);
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::safe_line::clusters;

    fn matched_texts(needle: &str, rows: &[&str]) -> Vec<(usize, usize, String)> {
        let lines: Vec<SafeLine> =
            rows.iter().map(|row| SafeLine::styled(Style::default(), row)).collect();
        let marks = find_marks(&SearchPattern::new(needle).unwrap(), &lines);
        let marked_text =
            |mark: &SearchMatchMark| lines[mark.row].as_str()[mark.range.clone()].to_owned();
        marks.iter().map(|mark| (mark.match_index, mark.row, marked_text(mark))).collect()
    }

    #[test]
    fn a_match_across_a_wrap_is_marked_in_both_rows() {
        let mark = |match_index, row, text: &str| (match_index, row, text.to_owned());
        assert_eq!(
            matched_texts("crane stands", &["  the crane", "  stands, the crane stands"]),
            [mark(0, 0, "crane"), mark(0, 1, "stands"), mark(1, 1, "crane stands")]
        );
        assert_eq!(
            matched_texts("harbour", &["  har", "  bour"]),
            [mark(0, 0, "har"), mark(0, 1, "bour")]
        );
        assert_eq!(matched_texts("港湾", &["  港", "", "  湾 港湾"]), [mark(0, 2, "港湾")]);
    }

    #[test]
    fn a_character_is_marked_with_its_combining_marks() {
        let row = SafeLine::styled(Style::default(), "ae\u{301}b漢字");
        let style = Style::default().add_modifier(Modifier::REVERSED);
        let marked_text = |range| {
            let row = row.with_range_style(range, style);
            assert_eq!(row.width(), 7);
            let spans = row.spans().filter(|(span_style, _)| *span_style == style);
            spans.map(|(_, text)| text.to_owned()).collect::<String>()
        };
        assert_eq!(marked_text(1..2), "e\u{301}");
        assert_eq!(marked_text(5..8), "漢");
        assert_eq!(marked_text(0..0), "");
        assert_eq!(clusters(row.as_str()).count(), 5);
    }
}
