//! Drawing of a `FilterList`.

use super::super::shared_rows;
use super::{FilterList, ListItem, ListLoadState};
use crate::safe_line::SafeLine;
use crate::theme::StyleRole;
use crate::ui_context::Appearance;
use crate::wrap;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use std::collections::BTreeMap;
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// Below this width, only the last column at the right is shown.
const NARROW_WIDTH: usize = 60;
/// The width from which on rows become no wider than their longest texts: a key at the far end of
/// a wide row is hard to follow.
const WIDE_ROW_WIDTH: usize = 110;
/// The minimum width of a note; a narrower one would say nothing.
const MIN_NOTE_WIDTH: usize = 12;
/// Rows for the full note of the selected row, including a blank one.
const FULL_NOTE_ROWS: u16 = 3;
/// The minimum body height for the full note (`FULL_NOTE_ROWS`) of the selected row.
const MIN_BODY_ROWS: u16 = 8;

#[derive(Clone, Copy, Debug)]
enum ListLine {
    Blank,
    Heading(&'static str),
    /// An index into `FilterList::shown`.
    Item(usize),
}

impl<T> FilterList<T> {
    /// Draws the list and returns the cursor position. `hints` is the text of the key hints.
    pub fn draw(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        appearance: &Appearance,
        hints: &str,
    ) -> Option<Position> {
        let area = Rect { width: self.row_width(area.width), ..area };
        let [head, body, footer] = shared_rows::split_area(area);
        let cursor = self.draw_filter(head, buffer, appearance);
        match &self.state {
            ListLoadState::Loading(loading_text) => {
                shared_rows::dim_row(loading_text, appearance).draw(body, buffer)
            }
            ListLoadState::Failed(fault) => {
                shared_rows::draw_fault(fault, body, buffer, appearance)
            }
            ListLoadState::Ready if self.shown.is_empty() => {
                let message = if self.items.is_empty() { self.empty_text } else { "No matches" };
                shared_rows::dim_row(message, appearance).draw(body, buffer);
            }
            ListLoadState::Ready => self.draw_body(body, buffer, appearance),
        }
        if let Some((label, input)) = &self.text_input {
            let mut row = shared_rows::dim_row(&format!("{label} "), appearance);
            let start = row.width();
            let width = usize::from(footer.width).saturating_sub(start);
            let (input_row, column) = input.render(width, appearance);
            shared_rows::append_row(&mut row, &input_row);
            row.draw(footer, buffer);
            let column = u16::try_from(start + column).unwrap_or(u16::MAX);
            return Some(Position::new(footer.x.saturating_add(column), footer.y));
        }
        match &self.confirmation {
            Some(question) => {
                let row = SafeLine::styled(appearance.style(StyleRole::Warning), question);
                let row = shared_rows::indent_row(&row, shared_rows::PANEL_MARGIN);
                wrap::truncate(&row, usize::from(footer.width), appearance).draw(footer, buffer);
                None
            }
            None => {
                shared_rows::hint_row(hints, appearance, footer.width).draw(footer, buffer);
                Some(cursor)
            }
        }
    }

    /// Returns the width of the rows; see `WIDE_ROW_WIDTH`.
    fn row_width(&self, available: u16) -> u16 {
        let max_width = |width: &dyn Fn(&ListItem) -> usize| {
            self.items.iter().map(|(item, _)| width(item)).max().unwrap_or_default()
        };
        let text_width = max_width(&|item| item.prefix.width() + item.name.width())
            + max_width(&|item| item.note.width())
            + max_width(&|item| item.columns.iter().map(|column| column.width() + 2).sum());
        let width = (text_width + 6).max(WIDE_ROW_WIDTH);
        u16::try_from(width).unwrap_or(u16::MAX).min(available)
    }

    fn draw_filter(&self, area: Rect, buffer: &mut Buffer, appearance: &Appearance) -> Position {
        let width = usize::from(area.width);
        let count = match (self.filter.is_empty(), self.state == ListLoadState::Ready) {
            (_, false) => String::new(),
            (true, true) => format!("{} ", self.items.len()),
            (false, true) => format!("{} of {} ", self.shown.len(), self.items.len()),
        };
        let mut row = shared_rows::dim_row("", appearance);
        let filter_width = width.saturating_sub(row.width() + count.width() + 2);
        let cursor_column = if self.filter.is_empty() {
            let cursor_column = row.width();
            row.push_text(appearance.style(StyleRole::Dim), "type to filter");
            cursor_column
        } else {
            row.push_text(
                appearance.style(StyleRole::Text),
                shared_rows::tail_to_width(&self.filter, filter_width),
            );
            row.width()
        };
        let gap = width.saturating_sub(row.width() + count.width());
        row.push_text(appearance.style(StyleRole::Dim), &" ".repeat(gap));
        row.push_text(appearance.style(StyleRole::Dim), &count);
        wrap::truncate(&row, width, appearance).draw(area, buffer);
        Position::new(area.x.saturating_add(u16::try_from(cursor_column).unwrap_or(0)), area.y)
    }

    /// Draws the rows, and below them the full note of the selected row if notes are truncated.
    fn draw_body(&mut self, area: Rect, buffer: &mut Buffer, appearance: &Appearance) {
        let width = usize::from(area.width);
        let groups = self.items.iter().map(|(item, _)| item.group);
        let columns: BTreeMap<&str, ColumnWidths> =
            groups.map(|group| (group, ColumnWidths::measure(self, group, width))).collect();
        let is_truncated = |(item, _): &(ListItem, T)| {
            let note_width = columns.get(item.group).map_or(0, |columns| columns.note);
            !item.note.is_empty() && item.note.width() + 2 > note_width
        };
        let note_rows = match area.height >= MIN_BODY_ROWS && self.items.iter().any(is_truncated) {
            true => FULL_NOTE_ROWS,
            false => 0,
        };
        let rows_area = Rect { height: area.height - note_rows, ..area };
        self.draw_rows(rows_area, &columns, buffer, appearance);
        if let Some((item, _)) = self.selected().filter(|_| note_rows > 0) {
            let note = shared_rows::render_prose(&item.note, StyleRole::Dim, width, appearance);
            let area = Rect { y: rows_area.bottom() + 1, height: note_rows - 1, ..area };
            shared_rows::draw_rows(&note, area, buffer);
        }
    }

    fn draw_rows(
        &mut self,
        area: Rect,
        columns: &BTreeMap<&str, ColumnWidths>,
        buffer: &mut Buffer,
        appearance: &Appearance,
    ) {
        let visible_rows = usize::from(area.height).max(1);
        let lines = self.layout_lines();
        let is_selected =
            |line: &ListLine| matches!(line, ListLine::Item(index) if *index == self.selected);
        let selected_line = lines.iter().position(is_selected).unwrap_or_default();
        // Scroll far enough to show the heading above the first row.
        let first_visible = if self.selected == 0 { 0 } else { selected_line };
        let min_top = |lines: usize| lines.saturating_sub(visible_rows);
        self.top_row = self
            .top_row
            .min(first_visible)
            .max(min_top(selected_line + 1))
            .min(min_top(lines.len()));
        let width = usize::from(area.width);
        let visible = lines.iter().skip(self.top_row).take(visible_rows);
        for (number, line) in visible.enumerate() {
            let row = match line {
                ListLine::Blank => continue,
                ListLine::Heading(group) => {
                    SafeLine::styled(appearance.style(StyleRole::Strong), &format!(" {group}"))
                }
                ListLine::Item(number) => self.render_item(*number, columns, appearance),
            };
            let row_area = shared_rows::area_at(area, 0, number);
            wrap::truncate(&row, width, appearance).draw(row_area, buffer);
        }
    }

    fn render_item(
        &self,
        number: usize,
        columns: &BTreeMap<&str, ColumnWidths>,
        appearance: &Appearance,
    ) -> SafeLine {
        let Some(shown) = self.shown.get(number) else { return SafeLine::default() };
        let Some((item, _)) = self.items.get(shown.item_index) else { return SafeLine::default() };
        let Some(columns) = columns.get(item.group) else { return SafeLine::default() };
        let selected = number == self.selected;
        let (pointer, current) = if appearance.ascii { (">", "*") } else { ("›", "●") };
        // Dim text is hard to read on the background of the selected row.
        let dim_role = if selected { StyleRole::Text } else { StyleRole::Dim };
        let (text, dim) = (appearance.style(StyleRole::Text), appearance.style(dim_role));
        let mut row = SafeLine::default();
        row.push_text(appearance.style(StyleRole::Accent), if selected { pointer } else { " " });
        let current_mark = if item.is_current { current } else { " " };
        let (mark, role) = item.mark.unwrap_or((current_mark, StyleRole::Success));
        row.push_text(appearance.style(role), mark);
        let mut name = SafeLine::styled(dim, &format!(" {}", item.prefix));
        for (index, cluster) in item.name.graphemes(true).enumerate() {
            let is_match = u32::try_from(index)
                .is_ok_and(|index| shown.matched_clusters.binary_search(&index).is_ok());
            name.push_text(
                if is_match { appearance.style(StyleRole::Accent) } else { text },
                cluster,
            );
        }
        shared_rows::append_padded(
            &mut row,
            &wrap::truncate(&name, columns.name + 1, appearance),
            columns.name + 1,
        );
        if columns.note > 0 {
            let note = SafeLine::styled(dim, &format!("  {}", item.note));
            shared_rows::append_padded(
                &mut row,
                &wrap::truncate(&note, columns.note, appearance),
                columns.note,
            );
        }
        let column_texts = item.columns.iter().rev().take(columns.right_columns.len()).rev();
        let missing = columns.right_columns.len().saturating_sub(item.columns.len());
        for width in columns.right_columns.iter().take(missing) {
            row.push_text(dim, &" ".repeat(width + 2));
        }
        for (column, width) in column_texts.zip(columns.right_columns.iter().skip(missing)) {
            row.push_text(dim, &" ".repeat(2 + width.saturating_sub(column.width())));
            row.push_text(dim, column);
        }
        row.push_text(text, " ");
        if selected { row.with_base_style(appearance.style(StyleRole::Selected)) } else { row }
    }

    /// Lays out the shown items with their headings.
    fn layout_lines(&self) -> Vec<ListLine> {
        let mut lines = Vec::new();
        let mut last_group = "";
        for (number, shown) in self.shown.iter().enumerate() {
            let group = self.items.get(shown.item_index).map_or("", |(item, _)| item.group);
            if group != last_group {
                if !lines.is_empty() {
                    lines.push(ListLine::Blank);
                }
                lines.push(ListLine::Heading(group));
                last_group = group;
            }
            lines.push(ListLine::Item(number));
        }
        lines
    }
}

/// Column widths of one `ListItem::group`.
struct ColumnWidths {
    name: usize,
    note: usize,
    right_columns: Vec<usize>,
}

impl ColumnWidths {
    fn measure<T>(list: &FilterList<T>, group: &str, width: usize) -> ColumnWidths {
        let items = || list.items.iter().map(|(item, _)| item).filter(|item| item.group == group);
        let count = items().map(|item| item.columns.len()).max().unwrap_or_default();
        let widest = |column: usize| {
            let text =
                |item: &ListItem| item.columns.iter().rev().nth(column).map(|text| text.width());
            items().filter_map(text).max().unwrap_or_default()
        };
        let count = if width < NARROW_WIDTH { count.min(1) } else { count };
        let right_columns: Vec<usize> = (0..count).rev().map(widest).collect();
        let right_width: usize = right_columns.iter().map(|width| width + 2).sum();
        // Four columns go to the two marks, the space after them, and one at the end.
        let available = width.saturating_sub(4 + right_width);
        let name_width = |item: &ListItem| item.prefix.width() + item.name.width();
        let max_name_width = items().map(name_width).max().unwrap_or_default();
        let has_notes = items().any(|item| !item.note.is_empty());
        let name = if has_notes { max_name_width.min((available / 2).max(20)) } else { available }
            .min(available);
        let note = if has_notes { available - name } else { 0 };
        match note {
            0..MIN_NOTE_WIDTH => ColumnWidths { name: available, note: 0, right_columns },
            _ => ColumnWidths { name, note, right_columns },
        }
    }
}
