//! What panels have in common to say: faults, what the keys do.

use crate::cx::Look;
use crate::ink::Row;
use crate::keys::Command;
use crate::lay;
use crate::theme::Role;
use crate::wrap;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;
use windlass_protocol::Fault;

/// A number with its thousands set apart.
pub fn digits(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// How far from the left edge things stand: two marks and a space.
pub const MARGIN: usize = 3;

/// The first row, the last one, and what is between them; with a blank row where there is room.
pub fn parts(area: Rect) -> [Rect; 3] {
    let air = u16::from(area.height > 7);
    let head = Rect { height: area.height.min(1), ..area };
    let foot = Rect {
        y: area.bottom().saturating_sub(1).max(area.y),
        height: u16::from(area.height > 1),
        ..area
    };
    let body = Rect { y: head.bottom(), height: area.height.saturating_sub(2 + air), ..area };
    [head, body, foot]
}

/// The last row, and what is above it.
pub fn body(area: Rect) -> (Rect, Rect) {
    let [_, _, foot] = parts(area);
    let air = u16::from(area.height > 3);
    (Rect { height: area.height.saturating_sub(foot.height + air), ..area }, foot)
}

/// A quiet row.
pub fn dim(text: &str, look: &Look) -> Row {
    Row::of(look.style(Role::Dim), &format!("{}{text}", " ".repeat(MARGIN)))
}

/// What went wrong, and what to do next.
pub fn fault(fault: &Fault, area: Rect, buffer: &mut Buffer, look: &Look) {
    draw(&fault_rows(fault, usize::from(area.width), look), area, buffer);
}

/// The same as rows.
pub fn fault_rows(fault: &Fault, width: usize, look: &Look) -> Vec<Row> {
    let inner = width.saturating_sub(MARGIN + 1).max(1);
    let mut rows = lay::plain(&fault.to_string(), inner, Role::Bad, look);
    rows.extend(lay::plain(crate::fault::hint(fault), inner, Role::Dim, look));
    rows.iter().map(|row| indented(row, MARGIN)).collect()
}

/// A row further to the right.
pub fn indented(row: &Row, by: usize) -> Row {
    let mut further = Row::of(ratatui::style::Style::default(), &" ".repeat(by));
    append(&mut further, row);
    further
}

/// A row of an area, from a column of it on.
pub fn at(area: Rect, column: usize, row: usize) -> Rect {
    let by = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
    let (x, y) = (area.x.saturating_add(by(column)), area.y.saturating_add(by(row)));
    Rect { x, y, width: area.width.saturating_sub(by(column)), height: 1 }.intersection(area)
}

/// Rows from the top of an area on.
pub fn draw(rows: &[Row], area: Rect, buffer: &mut Buffer) {
    for (row, y) in rows.iter().zip(area.y..area.bottom()) {
        row.draw(Rect { y, height: 1, ..area }, buffer);
    }
}

/// What keys do: `(command, what)`, as far as the commands have keys.
pub fn keys(look: &Look, commands: &[(Command, &str)]) -> String {
    let said = commands.iter().filter_map(|(command, what)| {
        let key = look.keys.hint(*command);
        (!key.is_empty()).then(|| format!("{key} {what}"))
    });
    said.collect::<Vec<_>>().join(between(look))
}

/// What stands between two things on one row.
pub fn between(look: &Look) -> &'static str {
    if look.ascii { " - " } else { " · " }
}

/// A row that says what the keys do; what does not fit is left out, not cut.
pub fn hints(text: &str, look: &Look, width: u16) -> Row {
    let mut row = dim("", look);
    let between = between(look);
    for (at, hint) in text.split(between).enumerate() {
        let between = if at == 0 { "" } else { between };
        if row.width() + between.width() + hint.width() > usize::from(width) {
            break;
        }
        row.push(look.style(Role::Dim), between);
        row.push(look.style(Role::Dim), hint);
    }
    row
}

/// The end of a text that fits.
pub fn tail(text: &str, width: usize) -> &str {
    let mut taken = 0;
    let mut start = text.len();
    for (at, cluster) in text.grapheme_indices(true).rev() {
        taken += cluster.width();
        if taken > width {
            break;
        }
        start = at;
    }
    text.get(start..).unwrap_or_default()
}

/// Puts a row behind another.
pub fn append(row: &mut Row, behind: &Row) {
    behind.pieces().for_each(|(style, text)| row.push(style, text));
}

/// Puts a row behind another, and fills up to a width.
pub fn push(row: &mut Row, behind: &Row, width: usize) {
    append(row, behind);
    let gap = width.saturating_sub(behind.width());
    row.push(ratatui::style::Style::default(), &" ".repeat(gap));
}

/// Text in the middle of a row, on several ones if it has to be.
pub fn prose(text: &str, role: Role, width: usize, look: &Look) -> Vec<Row> {
    let inner = width.saturating_sub(MARGIN + 1).max(1);
    let row = Row::of(look.style(role), text);
    let rows = wrap::wrap(&row, inner, wrap::Break::Words, 0);
    rows.iter().map(|row| indented(row, MARGIN)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!([7, 1_234, 12_345_678].map(digits), ["7", "1 234", "12 345 678"]);
    }

    #[test]
    fn a_hint_that_does_not_fit_is_left_out_whole() {
        let look = Look::default();
        let text = "Enter opens · Ctrl+K forks · Esc closes";
        assert_eq!(hints(text, &look, 30).text(), "   Enter opens · Ctrl+K forks");
        assert_eq!(hints(text, &look, 5).text(), "   ");
    }

    #[test]
    fn the_end_of_a_long_line_is_what_one_sees() {
        assert_eq!(tail("abc解析", 5), "c解析");
        assert_eq!(tail("abc", 9), "abc");
    }
}
