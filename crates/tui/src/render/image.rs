//! Renders images with half blocks, if the terminal has enough colors: two pixels per cell, one
//! above the other.
//!
//! This needs no image protocol of a terminal, so it works over ssh and in tmux, and an image
//! cannot smuggle bytes to the terminal.

use crate::safe_line::SafeLine;
use crate::theme::ColorDepth;
use crate::ui_context::Appearance;
use ratatui::style::{Color, Style};

const MAX_IMAGE_COLUMNS: u16 = 60;

/// The pixels of an image, three bytes each, row by row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImagePixels {
    /// The number of pixels in a row.
    pub width: usize,
    /// Red, green and blue of each pixel.
    pub bytes: Vec<u8>,
}

/// Returns the width and height in pixels of a thumbnail that fits into `columns` and `rows`, or
/// `None` if images cannot be shown: too few colors, or no half block character.
pub fn target_pixel_size(
    (columns, rows): (u16, u16),
    appearance: &Appearance,
) -> Option<(u32, u32)> {
    let can_show =
        appearance.theme.color_depth >= ColorDepth::Ansi256 && !appearance.ascii && columns >= 8;
    can_show.then(|| (u32::from(columns.min(MAX_IMAGE_COLUMNS)), u32::from(rows) * 2))
}

/// Renders an image as rows of `▀`; columns beyond `width` are cut off.
pub fn render_image(pixels: &ImagePixels, width: usize, appearance: &Appearance) -> Vec<SafeLine> {
    let ImagePixels { width: image_width, bytes } = pixels;
    if *image_width == 0 {
        return Vec::new();
    }
    let lines: Vec<&[u8]> = bytes.chunks_exact(image_width * 3).collect();
    let color = |line: Option<&&[u8]>, column: usize| {
        let pixel = line.and_then(|line| line.get(column * 3..column * 3 + 3));
        match pixel {
            Some([red, green, blue]) => {
                Some(to_terminal_color(*red, *green, *blue, appearance.theme.color_depth))
            }
            Some(_) | None => None,
        }
    };
    let render_row = |pair: &[&[u8]]| {
        let mut row = SafeLine::default();
        for column in 0..(*image_width).min(width) {
            let (upper, lower) = (color(pair.first(), column), color(pair.get(1), column));
            let style = Style { fg: upper, bg: lower, ..Style::default() };
            row.push_text(style, "▀");
        }
        row
    };
    lines.chunks(2).map(render_row).collect()
}

/// Returns the color itself in `TrueColor`, else the nearest one in the 256-color cube.
fn to_terminal_color(red: u8, green: u8, blue: u8, depth: ColorDepth) -> Color {
    if depth == ColorDepth::TrueColor {
        return Color::Rgb(red, green, blue);
    }
    let step = |channel: u8| match channel {
        0..48 => 0,
        48..115 => 1,
        _ => (channel - 35) / 40,
    };
    Color::Indexed(16 + 36 * step(red) + 6 * step(green) + step(blue))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::Theme;

    fn appearance(depth: ColorDepth) -> Appearance {
        Appearance {
            theme: Theme { color_depth: depth, ..Theme::default() },
            ..Appearance::default()
        }
    }

    #[test]
    fn two_pixels_share_a_cell_and_an_odd_row_has_no_background() {
        let bytes =
            [[255, 0, 0], [0, 255, 0], [0, 0, 255], [9, 9, 9], [1, 1, 1], [2, 2, 2]].concat();
        let rows =
            render_image(&ImagePixels { width: 2, bytes }, 80, &appearance(ColorDepth::TrueColor));
        let cells: Vec<Vec<_>> = rows
            .iter()
            .map(|row| row.spans().map(|(style, text)| (style.fg, style.bg, text)).collect())
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
    fn with_256_colors_the_nearest_cube_color_is_used() {
        assert_eq!(to_terminal_color(255, 255, 255, ColorDepth::Ansi256), Color::Indexed(231));
        assert_eq!(to_terminal_color(0, 0, 0, ColorDepth::Ansi256), Color::Indexed(16));
        assert_eq!(to_terminal_color(95, 135, 0, ColorDepth::Ansi256), Color::Indexed(64));
    }

    #[test]
    fn an_image_needs_at_least_256_colors() {
        assert_eq!(target_pixel_size((80, 20), &appearance(ColorDepth::Ansi16)), None);
        assert_eq!(target_pixel_size((80, 20), &appearance(ColorDepth::Monochrome)), None);
        assert_eq!(target_pixel_size((80, 20), &appearance(ColorDepth::TrueColor)), Some((60, 40)));
        assert_eq!(target_pixel_size((30, 10), &appearance(ColorDepth::Ansi256)), Some((30, 20)));
    }

    #[test]
    fn an_image_with_inconsistent_pixels_is_not_drawn() {
        for (width, bytes) in [(0, vec![1, 2, 3]), (3, vec![1; 8]), (1, vec![1, 2])] {
            assert_eq!(
                render_image(&ImagePixels { width, bytes }, 80, &appearance(ColorDepth::TrueColor)),
                []
            );
        }
    }
}
