//! Renders tables: at natural width if they fit, with wrapped cells if they do not, and as a list
//! if columns would be too narrow to read.

use crate::safe_line::SafeLine;
use crate::theme::StyleRole;
use crate::ui_context::Appearance;
use crate::wrap::{WrapMode, wrap};
use pulldown_cmark::Alignment;
use ratatui::style::Style;

/// The smallest width to which a column is wrapped.
const MIN_COLUMN_WIDTH: usize = 6;
/// The width of the separator between columns.
const COLUMN_GAP: usize = 3;

/// A table that is being collected; the first record is its header.
pub(super) struct MarkdownTable {
    alignments: Vec<Alignment>,
    records: Vec<Vec<SafeLine>>,
}

impl MarkdownTable {
    pub(super) fn new(alignments: Vec<Alignment>) -> MarkdownTable {
        MarkdownTable { alignments, records: Vec::new() }
    }

    pub(super) fn begin_record(&mut self) {
        self.records.push(Vec::new());
    }

    pub(super) fn push_cell(&mut self, cell: SafeLine) {
        if let Some(record) = self.records.last_mut() {
            record.push(cell);
        }
    }

    /// Renders the table; the first record is its header.
    pub(super) fn render(mut self, width: usize, appearance: &Appearance) -> Vec<SafeLine> {
        if let Some(header) = self.records.first_mut() {
            let strong = appearance.style(StyleRole::Strong);
            let make_bold =
                |cell: &mut SafeLine| *cell = std::mem::take(cell).with_base_style(strong);
            header.iter_mut().for_each(make_bold);
        }
        match self.column_widths(width) {
            Some(widths) => self.render_grid(&widths, appearance),
            None => self.render_list(width, appearance),
        }
    }

    /// Returns the column widths, or `None` if not every column can have `MIN_COLUMN_WIDTH`.
    fn column_widths(&self, width: usize) -> Option<Vec<usize>> {
        let columns = self.alignments.len();
        let available = width.checked_sub(columns.saturating_sub(1) * COLUMN_GAP)?;
        let natural_width = |column: usize| {
            let cells = self.records.iter().filter_map(|record| record.get(column));
            cells.map(SafeLine::width).max().unwrap_or(0).max(1)
        };
        let mut widths: Vec<usize> = (0..columns).map(natural_width).collect();
        let min_total: usize = widths.iter().map(|width| (*width).min(MIN_COLUMN_WIDTH)).sum();
        if min_total > available {
            return None;
        }
        // Shrink the widest columns first, down to the next widest, until all fit.
        let mut excess = widths.iter().sum::<usize>().saturating_sub(available);
        while excess > 0 {
            let widest = *widths.iter().max()?;
            let widest_columns: Vec<usize> =
                (0..columns).filter(|index| widths.get(*index) == Some(&widest)).collect();
            let next_width = widths
                .iter()
                .filter(|width| **width < widest)
                .max()
                .copied()
                .unwrap_or(MIN_COLUMN_WIDTH);
            let step = (widest - next_width.max(MIN_COLUMN_WIDTH))
                .min(excess.div_ceil(widest_columns.len()))
                .max(1);
            for index in widest_columns {
                if let Some(width) = widths.get_mut(index) {
                    let step = step.min(excess);
                    *width -= step;
                    excess -= step;
                }
            }
        }
        Some(widths)
    }

    fn render_grid(&self, widths: &[usize], appearance: &Appearance) -> Vec<SafeLine> {
        let (bar, rule, cross) =
            if appearance.ascii { (" | ", "-", "-+-") } else { (" │ ", "─", "─┼─") };
        let border = appearance.style(StyleRole::Border);
        let mut rows = Vec::new();
        for (index, record) in self.records.iter().enumerate() {
            let cell = |column: usize, width: usize| {
                let cell = record.get(column).cloned().unwrap_or_default();
                wrap(&cell, width, WrapMode::Words, 0)
            };
            let cells: Vec<Vec<SafeLine>> =
                widths.iter().enumerate().map(|(column, width)| cell(column, *width)).collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(0);
            for line in 0..height {
                let mut row = SafeLine::default();
                for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
                    if column > 0 {
                        row.push_text(border, bar);
                    }
                    let empty = SafeLine::default();
                    let text = cell.get(line).unwrap_or(&empty);
                    let padding = width.saturating_sub(text.width());
                    let left_padding = match self.alignments.get(column) {
                        Some(Alignment::Right) => padding,
                        Some(Alignment::Center) => padding / 2,
                        Some(Alignment::Left | Alignment::None) | None => 0,
                    };
                    row.push_text(Style::default(), &" ".repeat(left_padding));
                    row.append(text);
                    if column + 1 < widths.len() {
                        row.push_text(Style::default(), &" ".repeat(padding - left_padding));
                    }
                }
                rows.push(row);
            }
            if index == 0 {
                let parts: Vec<String> = widths.iter().map(|width| rule.repeat(*width)).collect();
                rows.push(SafeLine::styled(border, &parts.join(cross)));
            }
        }
        rows
    }

    /// Renders one cell below the other, each after the name of its column.
    fn render_list(&self, width: usize, appearance: &Appearance) -> Vec<SafeLine> {
        let empty = Vec::new();
        let header = self.records.first().unwrap_or(&empty);
        let mut rows = Vec::new();
        for record in self.records.get(1..).unwrap_or_default() {
            if !rows.is_empty() {
                rows.push(SafeLine::default());
            }
            for (column, cell) in record.iter().enumerate() {
                let mut row = header.get(column).cloned().unwrap_or_default();
                row.push_text(
                    appearance.style(StyleRole::Dim),
                    if row.is_empty() { "" } else { ": " },
                );
                row.append(cell);
                rows.extend(wrap(&row, width, WrapMode::Words, 2));
            }
        }
        if rows.is_empty() {
            let each = header.iter().flat_map(|cell| wrap(cell, width, WrapMode::Words, 2));
            rows.extend(each);
        }
        rows
    }
}
