//! Colours: how they are spelled, and which one a terminal with fewer of them has instead.

use super::Depth;
use super::palette::Rgb;
use ratatui::style::{Color, Modifier, Style};

/// The sixteen as xterm has them, to measure others against.
const SIXTEEN: [(Color, Rgb); 16] = [
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

/// What the sixteen are called, in their order.
const NAMES: [&str; 16] = [
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

/// One of the sixteen by its number.
pub(crate) fn sixteen(number: u8) -> Color {
    SIXTEEN.get(usize::from(number)).map_or(Color::Reset, |(color, _)| *color)
}

pub(super) fn parts(rgb: Rgb) -> (u8, u8, u8) {
    let [_, red, green, blue] = rgb.to_be_bytes();
    (red, green, blue)
}

fn whole((red, green, blue): (u8, u8, u8)) -> Rgb {
    Rgb::from_be_bytes([0, red, green, blue])
}

fn distance(one: Rgb, other: Rgb) -> u32 {
    let ((r, g, b), (red, green, blue)) = (parts(one), parts(other));
    let square = |one: u8, other: u8| u32::from(one.abs_diff(other)).pow(2);
    square(r, red) + square(g, green) + square(b, blue)
}

/// The colour of a number between 16 and 255.
pub(super) fn of_index(index: u8) -> Rgb {
    const LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    match index.checked_sub(16) {
        None => SIXTEEN.get(usize::from(index)).map_or(0, |(_, rgb)| *rgb),
        Some(cube) if cube < 216 => {
            let level = |at: u8| LEVELS.get(usize::from(at)).copied().unwrap_or(0);
            whole((level(cube / 36), level(cube / 6 % 6), level(cube % 6)))
        }
        Some(_) => {
            let gray = index.saturating_sub(232).saturating_mul(10).saturating_add(8);
            whole((gray, gray, gray))
        }
    }
}

/// The one of 256 that comes nearest.
pub(super) fn nearest(rgb: Rgb) -> u8 {
    (16..=255).min_by_key(|index| distance(of_index(*index), rgb)).unwrap_or(16)
}

/// A colour as far as a terminal has it.
pub(crate) fn reduce(color: Color, depth: Depth) -> Color {
    let rgb = match (color, depth) {
        (_, Depth::None) => return Color::Reset,
        (_, Depth::True) => return color,
        (Color::Rgb(red, green, blue), _) => whole((red, green, blue)),
        (Color::Indexed(index), Depth::Sixteen) if index < 16 => return sixteen(index),
        (Color::Indexed(index), Depth::Sixteen) => of_index(index),
        (other, Depth::Sixteen | Depth::Many) => return other,
    };
    let few = || SIXTEEN.iter().min_by_key(|(_, known)| distance(*known, rgb));
    match depth {
        Depth::Many => Color::Indexed(nearest(rgb)),
        Depth::None | Depth::Sixteen | Depth::True => few().map_or(Color::Reset, |(near, _)| *near),
    }
}

/// A style whose colours a terminal has.
pub(crate) fn fit(style: Style, depth: Depth) -> Style {
    let fit = |color: Option<Color>| match depth {
        Depth::None => None,
        Depth::Sixteen | Depth::Many | Depth::True => color.map(|color| reduce(color, depth)),
    };
    Style { fg: fit(style.fg), bg: fit(style.bg), ..style }
}

/// Reads a look such as `bold #d08770 on black`.
pub(super) fn look(spelled: &str) -> Option<Style> {
    let mut style = Style::default();
    let mut words = spelled.split_whitespace().peekable();
    words.peek()?;
    while let Some(word) = words.next() {
        style = match word {
            "bold" => style.add_modifier(Modifier::BOLD),
            "dim" => style.add_modifier(Modifier::DIM),
            "italic" => style.add_modifier(Modifier::ITALIC),
            "underline" => style.add_modifier(Modifier::UNDERLINED),
            "reverse" => style.add_modifier(Modifier::REVERSED),
            "on" => style.bg(color(words.next()?)?),
            other => style.fg(color(other)?),
        };
    }
    Some(style)
}

fn color(word: &str) -> Option<Color> {
    if let Some(hex) = word.strip_prefix('#') {
        let long = hex.len() == 6 && hex.bytes().all(|digit| digit.is_ascii_hexdigit());
        let (red, green, blue) = parts(Rgb::from_str_radix(hex, 16).ok().filter(|_| long)?);
        return Some(Color::Rgb(red, green, blue));
    }
    if let Ok(index) = word.parse::<u8>() {
        return Some(Color::Indexed(index));
    }
    if word == "default" {
        return Some(Color::Reset);
    }
    let at = NAMES.iter().position(|name| *name == word)?;
    SIXTEEN.get(at).map(|(color, _)| *color)
}
