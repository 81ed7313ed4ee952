//! What a terminal can show, told from what is known of it. Pure: the caller looks around.

use super::{Depth, Ground, Theme};

/// What is known of a terminal before anything is drawn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// `NO_COLOR`.
    pub no_color: Option<String>,
    /// `COLORTERM`.
    pub colorterm: Option<String>,
    /// `TERM`.
    pub term: Option<String>,
    /// `COLORFGBG`, which counts until the terminal itself answers.
    pub colorfgbg: Option<String>,
}

impl Theme {
    /// The usual theme, as this terminal can show it.
    pub fn detect(facts: &Facts) -> Theme {
        let name = Theme::names().into_iter().next().unwrap_or_default().to_owned();
        Theme { name, ground: ground(facts), depth: depth(facts), ..Theme::default() }
    }
}

fn depth(facts: &Facts) -> Depth {
    let term = facts.term.as_deref().unwrap_or_default();
    // As the convention has it, an empty one says nothing.
    if facts.no_color.as_deref().is_some_and(|value| !value.is_empty()) {
        return Depth::None;
    }
    if matches!(term, "" | "dumb" | "unknown") || term.starts_with("vt") || term.ends_with("-mono")
    {
        return Depth::None;
    }
    let many = facts.colorterm.as_deref().unwrap_or_default();
    // `screen` itself passes on no more than 256, whatever the terminal around it has.
    let screen = term == "screen" || term.starts_with("screen.") || term.starts_with("screen-");
    if matches!(many, "truecolor" | "24bit") && !screen || term.ends_with("-direct") {
        return Depth::True;
    }
    let known = ["kitty", "ghostty", "alacritty", "wezterm", "foot", "contour"];
    if known.iter().any(|name| term.contains(name)) {
        return Depth::True;
    }
    if term.contains("256color") || !many.is_empty() { Depth::Many } else { Depth::Sixteen }
}

impl Ground {
    /// What a ground of this colour is: red, green, blue.
    pub fn of((red, green, blue): (u8, u8, u8)) -> Ground {
        let light = 299 * u32::from(red) + 587 * u32::from(green) + 114 * u32::from(blue);
        if light > 127_500 { Ground::Light } else { Ground::Dark }
    }
}

fn ground(facts: &Facts) -> Ground {
    let spelled = facts.colorfgbg.as_deref().unwrap_or_default();
    match spelled.rsplit(';').next().and_then(|last| last.parse::<u8>().ok()) {
        Some(7 | 9..=15) => Ground::Light,
        Some(_) | None => Ground::Dark,
    }
}
