//! Color parsing, and the reduction of colors to those a terminal has.

use super::ColorDepth;
use super::palette::PackedRgb;
use ratatui::style::{Color, Modifier, Style};

/// The 16 ANSI colors with their xterm values, for measuring distances.
const ANSI_COLORS: [(Color, PackedRgb); 16] = [
    (Color::Black, 0x000000),
    (Color::Red, 0xcd0000),
    (Color::Green, 0x00cd00),
    (Color::Yellow, 0xcdcd00),
    (Color::Blue, 0x0000ee),
    (Color::Magenta, 0xcd00cd),
    (Color::Cyan, 0x00cdcd),
    (Color::Gray, 0xe5e5e5),
    (Color::DarkGray, 0x7f7f7f),
    (Color::LightRed, 0xff0000),
    (Color::LightGreen, 0x00ff00),
    (Color::LightYellow, 0xffff00),
    (Color::LightBlue, 0x5c5cff),
    (Color::LightMagenta, 0xff00ff),
    (Color::LightCyan, 0x00ffff),
    (Color::White, 0xffffff),
];

/// The names of `ANSI_COLORS`, in the same order.
const ANSI_COLOR_NAMES: [&str; 16] = [
    "black",
    "red",
    "green",
    "yellow",
    "blue",
    "magenta",
    "cyan",
    "gray",
    "dark-gray",
    "light-red",
    "light-green",
    "light-yellow",
    "light-blue",
    "light-magenta",
    "light-cyan",
    "white",
];

/// Returns one of the 16 `ANSI_COLORS` by number.
pub(crate) fn ansi_color(number: u8) -> Color {
    ANSI_COLORS.get(usize::from(number)).map_or(Color::Reset, |(color, _)| *color)
}

pub(super) fn unpack_rgb(rgb: PackedRgb) -> (u8, u8, u8) {
    let [_, red, green, blue] = rgb.to_be_bytes();
    (red, green, blue)
}

fn pack_rgb((red, green, blue): (u8, u8, u8)) -> PackedRgb {
    PackedRgb::from_be_bytes([0, red, green, blue])
}

fn color_distance(first: PackedRgb, second: PackedRgb) -> u32 {
    let ((r, g, b), (red, green, blue)) = (unpack_rgb(first), unpack_rgb(second));
    let square = |first: u8, second: u8| u32::from(first.abs_diff(second)).pow(2);
    square(r, red) + square(g, green) + square(b, blue)
}

/// Returns the RGB value of a 256-color index; below 16 that of `ANSI_COLORS`.
pub(super) fn rgb_of_index(index: u8) -> PackedRgb {
    const CUBE_LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    match index.checked_sub(16) {
        None => ANSI_COLORS.get(usize::from(index)).map_or(0, |(_, rgb)| *rgb),
        Some(cube) if cube < 216 => {
            let level = |index: u8| CUBE_LEVELS.get(usize::from(index)).copied().unwrap_or(0);
            pack_rgb((level(cube / 36), level(cube / 6 % 6), level(cube % 6)))
        }
        Some(_) => {
            let gray = index.saturating_sub(232).saturating_mul(10).saturating_add(8);
            pack_rgb((gray, gray, gray))
        }
    }
}

/// The smallest difference between the channels of a color that is not gray.
const MIN_CHROMA: u8 = 40;

/// Returns the difference between the strongest and the weakest channel.
pub(super) fn chroma(rgb: PackedRgb) -> u8 {
    let (red, green, blue) = unpack_rgb(rgb);
    red.max(green).max(blue) - red.min(green).min(blue)
}

/// Returns the index, from 16 to 255, of the nearest of the 256 colors. A gray is never chosen for
/// a color, although it is often the nearest: success would look like ordinary text.
pub(super) fn nearest_index(rgb: PackedRgb) -> u8 {
    let is_colored = chroma(rgb) >= MIN_CHROMA;
    (16..=255)
        .filter(|index| !is_colored || chroma(rgb_of_index(*index)) >= MIN_CHROMA)
        .min_by_key(|index| color_distance(rgb_of_index(*index), rgb))
        .unwrap_or(16)
}

/// Reduces a color to the nearest one of a `ColorDepth`.
pub(crate) fn reduce_color(color: Color, depth: ColorDepth) -> Color {
    let rgb = match (color, depth) {
        (_, ColorDepth::Monochrome) => return Color::Reset,
        (_, ColorDepth::TrueColor) => return color,
        (Color::Rgb(red, green, blue), _) => pack_rgb((red, green, blue)),
        (Color::Indexed(index), ColorDepth::Ansi16) if index < 16 => return ansi_color(index),
        (Color::Indexed(index), ColorDepth::Ansi16) => rgb_of_index(index),
        (other, ColorDepth::Ansi16 | ColorDepth::Ansi256) => return other,
    };
    let nearest_ansi =
        || ANSI_COLORS.iter().min_by_key(|(_, ansi_rgb)| color_distance(*ansi_rgb, rgb));
    match depth {
        ColorDepth::Ansi256 => Color::Indexed(nearest_index(rgb)),
        ColorDepth::Monochrome | ColorDepth::Ansi16 | ColorDepth::TrueColor => {
            nearest_ansi().map_or(Color::Reset, |(nearest, _)| *nearest)
        }
    }
}

/// Reduces the colors of a style to a `ColorDepth`.
pub(crate) fn reduce_style(style: Style, depth: ColorDepth) -> Style {
    let reduce = |color: Option<Color>| match depth {
        ColorDepth::Monochrome => None,
        ColorDepth::Ansi16 | ColorDepth::Ansi256 | ColorDepth::TrueColor => {
            color.map(|color| reduce_color(color, depth))
        }
    };
    Style { fg: reduce(style.fg), bg: reduce(style.bg), ..style }
}

/// Parses a style such as `bold #d08770 on black`.
pub(super) fn parse_style(text: &str) -> Option<Style> {
    let mut style = Style::default();
    let mut words = text.split_whitespace().peekable();
    words.peek()?;
    while let Some(word) = words.next() {
        style = match word {
            "bold" => style.add_modifier(Modifier::BOLD),
            "dim" => style.add_modifier(Modifier::DIM),
            "italic" => style.add_modifier(Modifier::ITALIC),
            "underline" => style.add_modifier(Modifier::UNDERLINED),
            "reverse" => style.add_modifier(Modifier::REVERSED),
            "on" => style.bg(parse_color(words.next()?)?),
            other => style.fg(parse_color(other)?),
        };
    }
    Some(style)
}

fn parse_color(word: &str) -> Option<Color> {
    if let Some(hex) = word.strip_prefix('#') {
        let is_valid = hex.len() == 6 && hex.bytes().all(|digit| digit.is_ascii_hexdigit());
        let (red, green, blue) =
            unpack_rgb(PackedRgb::from_str_radix(hex, 16).ok().filter(|_| is_valid)?);
        return Some(Color::Rgb(red, green, blue));
    }
    if let Ok(index) = word.parse::<u8>() {
        return Some(Color::Indexed(index));
    }
    if word == "default" {
        return Some(Color::Reset);
    }
    let position = ANSI_COLOR_NAMES.iter().position(|name| *name == word)?;
    ANSI_COLORS.get(position).map(|(color, _)| *color)
}
