//! Drawing of a `FilterList`.

use super::super::shared_rows;
use super::{FilterList, ListItem, ListLoadState};
use crate::safe_line::SafeLine;
use crate::theme::StyleRole;
use crate::ui_context::Appearance;
use crate::wrap::{self, WrapMode};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
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
/// The minimum width of a note that is wrapped beside the name; otherwise it is below the name.
const MIN_WRAPPED_NOTE_WIDTH: usize = 24;
/// The indentation of a wrapped note below its name.
const WRAPPED_NOTE_INDENT: usize = 5;

#[derive(Clone, Copy, Debug)]
enum ListLine {
    Blank,
    Heading(&'static str),
    /// An index into `FilterList::shown`, and a row of that item.
    Item(usize, usize),
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
        let has_note_rows = !self.wraps_notes
            && area.height >= MIN_BODY_ROWS
            && self.items.iter().any(is_truncated);
        let note_rows = if has_note_rows { FULL_NOTE_ROWS } else { 0 };
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
        let width = usize::from(area.width);
        let lines = self
            .layout_lines(|number| self.render_item_rows(number, columns, width, appearance).len());
        let is_selected =
            |line: &ListLine| matches!(line, ListLine::Item(index, _) if *index == self.selected);
        let first_selected = lines.iter().position(is_selected).unwrap_or_default();
        let selected_line = lines.iter().rposition(is_selected).unwrap_or_default();
        // Scroll far enough to show the heading above the first row.
        let first_visible = if self.selected == 0 { 0 } else { first_selected };
        let min_top = |lines: usize| lines.saturating_sub(visible_rows);
        self.top_row = self
            .top_row
            .min(first_visible)
            .max(min_top(selected_line + 1))
            .min(min_top(lines.len()));
        let visible = lines.iter().skip(self.top_row).take(visible_rows);
        for (number, line) in visible.enumerate() {
            let row = match line {
                ListLine::Blank => continue,
                ListLine::Heading(group) => {
                    SafeLine::styled(appearance.style(StyleRole::Strong), &format!(" {group}"))
                }
                ListLine::Item(number, row) => {
                    let rows = self.render_item_rows(*number, columns, width, appearance);
                    rows.into_iter().nth(*row).unwrap_or_default()
                }
            };
            let row_area = shared_rows::area_at(area, 0, number);
            wrap::truncate(&row, width, appearance).draw(row_area, buffer);
        }
    }

    /// Renders the rows of an item: one, or several if its note is wrapped.
    fn render_item_rows(
        &self,
        number: usize,
        columns: &BTreeMap<&str, ColumnWidths>,
        width: usize,
        appearance: &Appearance,
    ) -> Vec<SafeLine> {
        let Some(shown) = self.shown.get(number) else { return Vec::new() };
        let Some((item, _)) = self.items.get(shown.item_index) else { return Vec::new() };
        let Some(columns) = columns.get(item.group) else { return Vec::new() };
        let is_selected = number == self.selected;
        let dim = appearance.style(dim_role(is_selected));
        let name = render_name((item, &shown.matched_clusters), dim, appearance);
        let note = SafeLine::styled(dim, &item.note);
        let has_room = columns.max_name <= columns.name && columns.note >= MIN_WRAPPED_NOTE_WIDTH;
        let render_row = |name: &SafeLine, note: &SafeLine, columns: &ColumnWidths| {
            render_item_row((item, is_selected), name, note, columns, appearance)
        };
        let continued_row = |text: &SafeLine, indent: usize| {
            let row = shared_rows::indent_row(text, indent);
            match is_selected {
                true => row.with_base_style(appearance.style(StyleRole::Selected)),
                false => row,
            }
        };
        if !self.wraps_notes {
            return vec![render_row(&name, &note, columns)];
        }
        if has_room {
            let notes = wrap::wrap(&note, columns.note.saturating_sub(2), WrapMode::Words, 0);
            // The marks, the space after them, and two columns before the note.
            let indent = columns.name + shared_rows::PANEL_MARGIN + 2;
            let rows = notes.iter().enumerate().map(|(index, note)| match index {
                0 => render_row(&name, note, columns),
                _ => continued_row(note, indent),
            });
            return rows.collect();
        }
        let columns = columns.without_note();
        let names = wrap::wrap(&name, columns.name.max(1), WrapMode::Words, 0);
        let names = names.iter().enumerate().map(|(index, name)| match index {
            0 => render_row(name, &SafeLine::default(), &columns),
            _ => continued_row(name, shared_rows::PANEL_MARGIN),
        });
        let note_width = width.saturating_sub(WRAPPED_NOTE_INDENT + 1);
        let notes = wrap::wrap(&note, note_width, WrapMode::Words, 0);
        let notes = notes.iter().filter(|_| !item.note.is_empty());
        names.chain(notes.map(|note| continued_row(note, WRAPPED_NOTE_INDENT))).collect()
    }

    /// Lays out the shown items with their headings; `row_count` returns the rows of an item.
    fn layout_lines(&self, row_count: impl Fn(usize) -> usize) -> Vec<ListLine> {
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
            // Rows are counted only where they can differ: a long list is drawn often.
            let rows = if self.wraps_notes { row_count(number) } else { 1 };
            lines.extend((0..rows).map(|row| ListLine::Item(number, row)));
        }
        lines
    }
}

/// Returns the role of secondary text: dim text is hard to read on the background of the selected
/// row.
fn dim_role(is_selected: bool) -> StyleRole {
    if is_selected { StyleRole::Text } else { StyleRole::Dim }
}

/// Renders the name of an item with its matched clusters.
fn render_name(
    (item, matched_clusters): (&ListItem, &[u32]),
    dim: Style,
    appearance: &Appearance,
) -> SafeLine {
    let text = appearance.style(StyleRole::Text);
    let accent = appearance.style(StyleRole::Accent);
    let mut name = SafeLine::styled(dim, &item.prefix);
    for (index, cluster) in item.name.graphemes(true).enumerate() {
        let is_match =
            u32::try_from(index).is_ok_and(|index| matched_clusters.binary_search(&index).is_ok());
        name.push_text(if is_match { accent } else { text }, cluster);
    }
    name
}

/// Renders the row of an item with its marks and columns.
fn render_item_row(
    (item, selected): (&ListItem, bool),
    name: &SafeLine,
    note: &SafeLine,
    columns: &ColumnWidths,
    appearance: &Appearance,
) -> SafeLine {
    let (pointer, current) = if appearance.ascii { (">", "*") } else { ("›", "●") };
    let (text, dim) = (appearance.style(StyleRole::Text), appearance.style(dim_role(selected)));
    let mut row = SafeLine::default();
    row.push_text(appearance.style(StyleRole::Accent), if selected { pointer } else { " " });
    let current_mark = if item.is_current { current } else { " " };
    let (mark, role) = item.mark.unwrap_or((current_mark, StyleRole::Success));
    row.push_text(appearance.style(role), mark);
    row.push_text(dim, " ");
    let name = wrap::truncate(name, columns.name, appearance);
    shared_rows::append_padded(&mut row, &name, columns.name);
    if columns.note > 0 {
        let note = shared_rows::indent_row(note, 2);
        let note = wrap::truncate(&note, columns.note, appearance);
        shared_rows::append_padded(&mut row, &note, columns.note);
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

/// Column widths of one `ListItem::group`.
struct ColumnWidths {
    name: usize,
    note: usize,
    right_columns: Vec<usize>,
    /// The width of the longest name.
    max_name: usize,
}

impl ColumnWidths {
    /// Returns the widths for a row without a note, whose name gets the room.
    fn without_note(&self) -> ColumnWidths {
        ColumnWidths {
            name: self.name + self.note,
            note: 0,
            right_columns: self.right_columns.clone(),
            max_name: self.max_name,
        }
    }

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
        let (name, note) = if note < MIN_NOTE_WIDTH { (available, 0) } else { (name, note) };
        ColumnWidths { name, note, right_columns, max_name: max_name_width }
    }
}
