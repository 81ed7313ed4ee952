//! Pictures, where the terminal has the colours for it: two pixels a cell, one above the other.
//!
//! It needs no protocol of any terminal, so it works over ssh and in tmux, and a picture cannot be a
//! way to send a terminal bytes.

use crate::cx::Look;
use crate::ink::Row;
use crate::theme::Depth;
use ratatui::style::{Color, Style};

/// The most columns that a picture takes.
const WIDEST: u16 = 60;

/// The pixels of a picture, three bytes each, row by row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pixels {
    /// How many there are in a row.
    pub width: usize,
    /// Red, green, blue.
    pub bytes: Vec<u8>,
}

/// How many pixels wide and high a copy has to be to fit into so many columns and rows; none if it
/// cannot be shown here, because there are too few colours or no half block.
pub fn wanted((columns, rows): (u16, u16), look: &Look) -> Option<(u32, u32)> {
    let shows = look.theme.depth >= Depth::Many && !look.ascii && columns >= 8;
    shows.then(|| (u32::from(columns.min(WIDEST)), u32::from(rows) * 2))
}

/// The picture in rows. What does not fit the width is cut off.
pub fn picture(pixels: &Pixels, width: usize, look: &Look) -> Vec<Row> {
    let Pixels { width: wide, bytes } = pixels;
    if *wide == 0 {
        return Vec::new();
    }
    let lines: Vec<&[u8]> = bytes.chunks_exact(wide * 3).collect();
    let color = |line: Option<&&[u8]>, column: usize| {
        let pixel = line.and_then(|line| line.get(column * 3..column * 3 + 3));
        match pixel {
            Some([red, green, blue]) => Some(shade(*red, *green, *blue, look.theme.depth)),
            Some(_) | None => None,
        }
    };
    let row = |pair: &[&[u8]]| {
        let mut row = Row::default();
        for column in 0..(*wide).min(width) {
            let (upper, lower) = (color(pair.first(), column), color(pair.get(1), column));
            let style = Style { fg: upper, bg: lower, ..Style::default() };
            row.push(style, "▀");
        }
        row
    };
    lines.chunks(2).map(row).collect()
}

/// The colour, or the nearest one of the cube that 256 colours have.
fn shade(red: u8, green: u8, blue: u8, depth: Depth) -> Color {
    if depth == Depth::True {
        return Color::Rgb(red, green, blue);
    }
    let step = |part: u8| match part {
        0..48 => 0,
        48..115 => 1,
        _ => (part - 35) / 40,
    };
    Color::Indexed(16 + 36 * step(red) + 6 * step(green) + step(blue))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::Theme;

    fn look(depth: Depth) -> Look {
        Look { theme: Theme { depth, ..Theme::default() }, ..Look::default() }
    }

    #[test]
    fn two_pixels_share_a_cell_and_an_odd_row_has_no_ground() {
        let bytes =
            [[255, 0, 0], [0, 255, 0], [0, 0, 255], [9, 9, 9], [1, 1, 1], [2, 2, 2]].concat();
        let rows = picture(&Pixels { width: 2, bytes }, 80, &look(Depth::True));
        let cells: Vec<Vec<_>> = rows
            .iter()
            .map(|row| row.pieces().map(|(style, text)| (style.fg, style.bg, text)).collect())
            .collect();
        let rgb = |red, green, blue| Some(Color::Rgb(red, green, blue));
        assert_eq!(
            cells,
            [
                vec![(rgb(255, 0, 0), rgb(0, 0, 255), "▀"), (rgb(0, 255, 0), rgb(9, 9, 9), "▀")],
                vec![(rgb(1, 1, 1), None, "▀"), (rgb(2, 2, 2), None, "▀")],
            ]
        );
    }

    #[test]
    fn with_256_colours_the_nearest_of_the_cube_is_taken() {
        assert_eq!(shade(255, 255, 255, Depth::Many), Color::Indexed(231));
        assert_eq!(shade(0, 0, 0, Depth::Many), Color::Indexed(16));
        assert_eq!(shade(95, 135, 0, Depth::Many), Color::Indexed(64));
    }

    #[test]
    fn where_there_are_few_colours_there_is_no_picture() {
        assert_eq!(wanted((80, 20), &look(Depth::Sixteen)), None);
        assert_eq!(wanted((80, 20), &look(Depth::None)), None);
        assert_eq!(wanted((80, 20), &look(Depth::True)), Some((60, 40)));
        assert_eq!(wanted((30, 10), &look(Depth::Many)), Some((30, 20)));
    }

    #[test]
    fn pixels_that_do_not_add_up_are_left_out() {
        for (width, bytes) in [(0, vec![1, 2, 3]), (3, vec![1; 8]), (1, vec![1, 2])] {
            assert_eq!(picture(&Pixels { width, bytes }, 80, &look(Depth::True)), []);
        }
    }
}
