//! Tables: as wide as their cells where that fits, with broken cells where it does not, and as a
//! list where columns would be too narrow to read.

use crate::cx::Look;
use crate::ink::Row;
use crate::theme::Role;
use crate::wrap::{Break, wrap};
use pulldown_cmark::Alignment;
use ratatui::style::Style;

/// The least a column can be broken to.
const LEAST: usize = 6;
/// What stands between columns.
const BETWEEN: usize = 3;

/// A table while it is read.
pub(super) struct Table {
    alignments: Vec<Alignment>,
    records: Vec<Vec<Row>>,
}

impl Table {
    pub(super) fn new(alignments: Vec<Alignment>) -> Table {
        Table { alignments, records: Vec::new() }
    }

    /// Begins a record.
    pub(super) fn begin(&mut self) {
        self.records.push(Vec::new());
    }

    /// Adds a cell to it.
    pub(super) fn cell(&mut self, cell: Row) {
        if let Some(record) = self.records.last_mut() {
            record.push(cell);
        }
    }

    /// Lays it out; the first record is its head.
    pub(super) fn rows(mut self, width: usize, look: &Look) -> Vec<Row> {
        if let Some(head) = self.records.first_mut() {
            let strong = look.style(Role::Strong);
            let bold = |cell: &mut Row| *cell = std::mem::take(cell).over(strong);
            head.iter_mut().for_each(bold);
        }
        match self.widths(width) {
            Some(widths) => self.grid(&widths, look),
            None => self.list(width, look),
        }
    }

    /// How wide the columns are, if there is room for all.
    fn widths(&self, width: usize) -> Option<Vec<usize>> {
        let columns = self.alignments.len();
        let room = width.checked_sub(columns.saturating_sub(1) * BETWEEN)?;
        let natural = |column: usize| {
            let cells = self.records.iter().filter_map(|record| record.get(column));
            cells.map(Row::width).max().unwrap_or(0).max(1)
        };
        let mut widths: Vec<usize> = (0..columns).map(natural).collect();
        let least: usize = widths.iter().map(|width| (*width).min(LEAST)).sum();
        if least > room {
            return None;
        }
        // The widest one gives way first, down to the next one, until all fit.
        let mut over = widths.iter().sum::<usize>().saturating_sub(room);
        while over > 0 {
            let widest = *widths.iter().max()?;
            let wide: Vec<usize> =
                (0..columns).filter(|at| widths.get(*at) == Some(&widest)).collect();
            let next =
                widths.iter().filter(|width| **width < widest).max().copied().unwrap_or(LEAST);
            let step = (widest - next.max(LEAST)).min(over.div_ceil(wide.len())).max(1);
            for at in wide {
                if let Some(width) = widths.get_mut(at) {
                    let step = step.min(over);
                    *width -= step;
                    over -= step;
                }
            }
        }
        Some(widths)
    }

    fn grid(&self, widths: &[usize], look: &Look) -> Vec<Row> {
        let (bar, rule, cross) =
            if look.ascii { (" | ", "-", "-+-") } else { (" │ ", "─", "─┼─") };
        let edge = look.style(Role::Border);
        let mut rows = Vec::new();
        for (at, record) in self.records.iter().enumerate() {
            let cell = |column: usize, width: usize| {
                let cell = record.get(column).cloned().unwrap_or_default();
                wrap(&cell, width, Break::Words, 0)
            };
            let cells: Vec<Vec<Row>> =
                widths.iter().enumerate().map(|(column, width)| cell(column, *width)).collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(0);
            for line in 0..height {
                let mut row = Row::default();
                for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
                    if column > 0 {
                        row.push(edge, bar);
                    }
                    let empty = Row::default();
                    let text = cell.get(line).unwrap_or(&empty);
                    let free = width.saturating_sub(text.width());
                    let before = match self.alignments.get(column) {
                        Some(Alignment::Right) => free,
                        Some(Alignment::Center) => free / 2,
                        Some(Alignment::Left | Alignment::None) | None => 0,
                    };
                    row.push(Style::default(), &" ".repeat(before));
                    row.extend(text);
                    if column + 1 < widths.len() {
                        row.push(Style::default(), &" ".repeat(free - before));
                    }
                }
                rows.push(row);
            }
            if at == 0 {
                let parts: Vec<String> = widths.iter().map(|width| rule.repeat(*width)).collect();
                rows.push(Row::of(edge, &parts.join(cross)));
            }
        }
        rows
    }

    /// One cell below the other, each behind the name of its column.
    fn list(&self, width: usize, look: &Look) -> Vec<Row> {
        let empty = Vec::new();
        let head = self.records.first().unwrap_or(&empty);
        let mut rows = Vec::new();
        for record in self.records.get(1..).unwrap_or_default() {
            if !rows.is_empty() {
                rows.push(Row::default());
            }
            for (at, cell) in record.iter().enumerate() {
                let mut row = head.get(at).cloned().unwrap_or_default();
                row.push(look.style(Role::Dim), if row.is_empty() { "" } else { ": " });
                row.extend(cell);
                rows.extend(wrap(&row, width, Break::Words, 2));
            }
        }
        if rows.is_empty() {
            let each = head.iter().flat_map(|cell| wrap(cell, width, Break::Words, 2));
            rows.extend(each);
        }
        rows
    }
}
