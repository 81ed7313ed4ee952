//! Screenshots of an emulated terminal as PNG files with at most 256 colors.
//!
//! The font is DejaVu Sans Mono (`fonts-dejavu-core`). Box lines and blocks are drawn here, so that
//! they connect from cell to cell as in terminals.

use crate::terminal::EmulatedBackground;
use ab_glyph::{Font, FontVec, PxScale, ScaleFont};
use std::collections::HashMap;
use std::path::Path;
use vt100::{Color, Screen};

/// Folder of the fonts.
const FONT_FOLDER: &str = "/usr/share/fonts/truetype/dejavu";
const FONT_SIZE_PX: f32 = 15.0;
const CELL_HEIGHT_PX: u32 = 19;
/// Margin around the screen.
const MARGIN_PX: u32 = 12;

type Rgb = [u8; 3];

/// The sixteen ANSI colors of modern terminals, on dark and on light background.
const DARK_COLORS: [Rgb; 16] = [
    [0x1c, 0x1f, 0x26],
    [0xe0, 0x6c, 0x75],
    [0x8f, 0xc0, 0x7a],
    [0xd9, 0xb3, 0x6c],
    [0x6a, 0xa9, 0xe9],
    [0xc0, 0x8a, 0xdb],
    [0x5f, 0xb8, 0xc0],
    [0xc8, 0xcc, 0xd4],
    [0x6b, 0x72, 0x80],
    [0xf0, 0x86, 0x8f],
    [0xa8, 0xd6, 0x93],
    [0xe8, 0xc8, 0x8a],
    [0x8a, 0xc0, 0xf5],
    [0xd4, 0xa8, 0xea],
    [0x82, 0xd0, 0xd6],
    [0xf2, 0xf4, 0xf8],
];
const LIGHT_COLORS: [Rgb; 16] = [
    [0x24, 0x29, 0x2f],
    [0xb3, 0x24, 0x2c],
    [0x1f, 0x7a, 0x37],
    [0x8a, 0x5a, 0x00],
    [0x0a, 0x5c, 0xb8],
    [0x7b, 0x3f, 0xa8],
    [0x0f, 0x6f, 0x7a],
    [0x6e, 0x77, 0x81],
    [0x57, 0x60, 0x6a],
    [0xcf, 0x22, 0x2e],
    [0x1a, 0x7f, 0x37],
    [0x9a, 0x67, 0x00],
    [0x09, 0x69, 0xda],
    [0x82, 0x50, 0xdf],
    [0x1b, 0x7c, 0x83],
    [0x8c, 0x95, 0x9f],
];

struct ColorScheme {
    background: Rgb,
    foreground: Rgb,
    ansi: [Rgb; 16],
}

impl ColorScheme {
    fn for_background(background: EmulatedBackground) -> ColorScheme {
        match background {
            EmulatedBackground::Light => ColorScheme {
                background: [0xfa, 0xfa, 0xf8],
                foreground: [0x24, 0x29, 0x2f],
                ansi: LIGHT_COLORS,
            },
            EmulatedBackground::Dark | EmulatedBackground::Unknown => ColorScheme {
                background: [0x10, 0x12, 0x16],
                foreground: [0xd6, 0xd9, 0xe0],
                ansi: DARK_COLORS,
            },
        }
    }

    fn rgb(&self, color: Color, default: Rgb) -> Rgb {
        match color {
            Color::Default => default,
            Color::Rgb(red, green, blue) => [red, green, blue],
            Color::Idx(index @ 0..16) => self.ansi[usize::from(index)],
            Color::Idx(index @ 232..) => [8 + (index - 232) * 10; 3],
            Color::Idx(index) => {
                let level = |step: u8| if step == 0 { 0 } else { 55 + step * 40 };
                let cube = index - 16;
                [level(cube / 36), level(cube / 6 % 6), level(cube % 6)]
            }
        }
    }
}

fn mix_colors(from: Rgb, to: Rgb, share: f32) -> Rgb {
    let mix = |a: u8, b: u8| (f32::from(a) + (f32::from(b) - f32::from(a)) * share).round() as u8;
    [mix(from[0], to[0]), mix(from[1], to[1]), mix(from[2], to[2])]
}

struct Canvas {
    width: u32,
    height: u32,
    pixels: Vec<Rgb>,
    /// Width of a cell.
    cell_width: u32,
}

impl Canvas {
    fn put(&mut self, x: u32, y: u32, color: Rgb, share: f32) {
        if x < self.width && y < self.height {
            let at = (y * self.width + x) as usize;
            // Few shades keep the file small.
            let share = (share * 8.0).round() / 8.0;
            self.pixels[at] = mix_colors(self.pixels[at], color, share);
        }
    }

    fn fill(&mut self, (x, y): (u32, u32), (width, height): (u32, u32), color: Rgb) {
        for row in y..y + height {
            for column in x..x + width {
                self.put(column, row, color, 1.0);
            }
        }
    }

    /// Draws a box line or block; returns false if the symbol is neither.
    fn draw_box_symbol(&mut self, symbol: char, (x, y): (u32, u32), color: Rgb) -> bool {
        let (width, height) = (self.cell_width, CELL_HEIGHT_PX);
        let (middle, center) = (x + width / 2, y + height / 2);
        let eighth = |n: u32, of: u32| (of * n).div_ceil(8);
        // Left, right, up, down.
        let arms = match symbol {
            '─' | '━' => [1, 1, 0, 0],
            '│' | '┃' => [0, 0, 1, 1],
            '┌' | '╭' => [0, 1, 0, 1],
            '┐' | '╮' => [1, 0, 0, 1],
            '└' | '╰' => [0, 1, 1, 0],
            '┘' | '╯' => [1, 0, 1, 0],
            '├' => [0, 1, 1, 1],
            '┤' => [1, 0, 1, 1],
            '┬' => [1, 1, 0, 1],
            '┴' => [1, 1, 1, 0],
            '┼' => [1, 1, 1, 1],
            '█' => {
                self.fill((x, y), (width, height), color);
                return true;
            }
            '▀' => {
                self.fill((x, y), (width, height / 2), color);
                return true;
            }
            '▐' => {
                self.fill((middle, y), (width - width / 2, height), color);
                return true;
            }
            '▁'..='▇' => {
                let part = eighth(symbol as u32 - '▁' as u32 + 1, height);
                self.fill((x, y + height - part), (width, part), color);
                return true;
            }
            '▉'..='▏' => {
                let part = eighth('▏' as u32 - symbol as u32 + 1, width);
                self.fill((x, y), (part, height), color);
                return true;
            }
            '░' | '▒' | '▓' => {
                let share = [0.25, 0.5, 0.75][symbol as usize - '░' as usize];
                for row in y..y + height {
                    for column in x..x + width {
                        self.put(column, row, color, share);
                    }
                }
                return true;
            }
            _ => return false,
        };
        let thick = if matches!(symbol, '━' | '┃') { 2 } else { 1 };
        let [left, right, up, down] = arms.map(|arm| arm == 1);
        if left {
            self.fill((x, center), (width / 2 + thick, thick), color)
        }
        if right {
            self.fill((middle, center), (width - width / 2, thick), color)
        }
        if up {
            self.fill((middle, y), (thick, height / 2 + thick), color)
        }
        if down {
            self.fill((middle, center), (thick, height - height / 2), color)
        }
        true
    }
}

/// The fonts of a screenshot.
struct Fonts {
    plain: FontVec,
    bold: FontVec,
    /// Font for symbols that the other two lack.
    fallback: FontVec,
}

impl Fonts {
    fn load() -> Fonts {
        let load = |name: &str| {
            let bytes = std::fs::read(format!("{FONT_FOLDER}/{name}.ttf"));
            let bytes = bytes.expect("fonts-dejavu-core is not installed");
            FontVec::try_from_vec(bytes).expect("the font must be valid")
        };
        Fonts {
            plain: load("DejaVuSansMono"),
            bold: load("DejaVuSansMono-Bold"),
            fallback: load("DejaVuSans"),
        }
    }

    fn draw(&self, canvas: &mut Canvas, symbol: char, (x, y): (u32, u32), bold: bool, color: Rgb) {
        let preferred = if bold { &self.bold } else { &self.plain };
        let font = if preferred.glyph_id(symbol).0 == 0 { &self.fallback } else { preferred };
        let scale = PxScale::from(FONT_SIZE_PX);
        let scaled = font.as_scaled(scale);
        let base = y as f32 + (CELL_HEIGHT_PX as f32 - scaled.height()) / 2.0 + scaled.ascent();
        let at = ab_glyph::point(x as f32, base.round());
        let glyph = font.glyph_id(symbol).with_scale_and_position(scale, at);
        let Some(outline) = font.outline_glyph(glyph) else { return };
        let bounds = outline.px_bounds();
        outline.draw(|right, down, share| {
            let (column, row) =
                (bounds.min.x as i64 + i64::from(right), bounds.min.y as i64 + i64::from(down));
            if let (Ok(column), Ok(row)) = (u32::try_from(column), u32::try_from(row)) {
                canvas.put(column, row, color, share);
            }
        });
    }
}

/// Draws a screen into a PNG file.
pub fn draw(screen: &Screen, background: EmulatedBackground, file: &Path) {
    let fonts = Fonts::load();
    let colors = ColorScheme::for_background(background);
    let cell_width = fonts.plain.as_scaled(PxScale::from(FONT_SIZE_PX));
    let cell_width = cell_width.h_advance(fonts.plain.glyph_id('m')).round() as u32;
    let (rows, columns) = screen.size();
    let (width, height) = (
        u32::from(columns.get()) * cell_width + 2 * MARGIN_PX,
        u32::from(rows.get()) * CELL_HEIGHT_PX + 2 * MARGIN_PX,
    );
    let pixels = vec![colors.background; (width * height) as usize];
    let mut canvas = Canvas { width, height, pixels, cell_width };
    let cursor = (!screen.hide_cursor()).then(|| screen.cursor_position());
    for row in 0..rows.get() {
        for column in 0..columns.get() {
            let Some(cell) = screen.cell(row, column) else { continue };
            if cell.is_wide_continuation() {
                continue;
            }
            let at = (
                MARGIN_PX + u32::from(column) * cell_width,
                MARGIN_PX + u32::from(row) * CELL_HEIGHT_PX,
            );
            let span = if cell.is_wide() { 2 * cell_width } else { cell_width };
            let mut foreground = colors.rgb(cell.fgcolor(), colors.foreground);
            let mut cell_background = colors.rgb(cell.bgcolor(), colors.background);
            if cell.inverse() != (cursor == Some((row, column))) {
                (foreground, cell_background) = (cell_background, foreground);
            }
            if cell.dim() {
                foreground = mix_colors(cell_background, foreground, 0.6);
            }
            if cell_background != colors.background {
                canvas.fill(at, (span, CELL_HEIGHT_PX), cell_background);
            }
            for symbol in cell.contents().chars() {
                if symbol != ' ' && !canvas.draw_box_symbol(symbol, at, foreground) {
                    fonts.draw(&mut canvas, symbol, at, cell.bold(), foreground);
                }
            }
            if cell.underline() {
                canvas.fill((at.0, at.1 + CELL_HEIGHT_PX - 3), (span, 1), foreground);
            }
        }
    }
    write_png(&canvas, file);
}

/// Writes the file with a palette of the most used colors. Other colors become the nearest one.
fn write_png(canvas: &Canvas, file: &Path) {
    let mut uses: HashMap<Rgb, usize> = HashMap::new();
    for pixel in &canvas.pixels {
        *uses.entry(*pixel).or_default() += 1;
    }
    let mut palette: Vec<(Rgb, usize)> = uses.into_iter().collect();
    palette.sort_by_key(|(color, uses)| (std::cmp::Reverse(*uses), *color));
    let palette: Vec<Rgb> = palette.into_iter().map(|(color, _)| color).take(256).collect();
    let mut nearest: HashMap<Rgb, u8> = HashMap::new();
    let distance = |a: &Rgb, b: &Rgb| -> u32 {
        a.iter().zip(b).map(|(a, b)| u32::from(a.abs_diff(*b)).pow(2)).sum()
    };
    let indexed: Vec<u8> = canvas
        .pixels
        .iter()
        .map(|pixel| {
            *nearest.entry(*pixel).or_insert_with(|| {
                let best = (0..palette.len()).min_by_key(|&at| distance(&palette[at], pixel));
                best.unwrap_or(0) as u8
            })
        })
        .collect();
    let out = std::io::BufWriter::new(std::fs::File::create(file).unwrap());
    let mut encoder = png::Encoder::new(out, canvas.width, canvas.height);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_palette(palette.concat());
    encoder.set_compression(png::Compression::High);
    encoder.write_header().unwrap().write_image_data(&indexed).unwrap();
}
