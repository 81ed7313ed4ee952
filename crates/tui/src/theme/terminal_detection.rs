//! Detects the capabilities of a terminal from its environment variables. Pure: the caller reads
//! them.

use super::{ColorDepth, TerminalBackground, Theme};

/// The environment variables that describe a terminal, for [`Theme::detect`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TerminalEnvVars {
    /// The value of `NO_COLOR`.
    pub no_color: Option<String>,
    /// The value of `COLORTERM`.
    pub colorterm: Option<String>,
    /// The value of `TERM`.
    pub term: Option<String>,
    /// The value of `COLORFGBG`, which applies until the terminal itself reports its background.
    pub colorfgbg: Option<String>,
    /// The value of `TERM_PROGRAM`.
    pub term_program: Option<String>,
    /// True if `TMUX` is set.
    pub in_tmux: bool,
    /// True if `WT_SESSION` is set.
    pub in_windows_terminal: bool,
}

impl Theme {
    /// Returns the default theme, with the background and `ColorDepth` of this terminal.
    pub fn detect(info: &TerminalEnvVars) -> Theme {
        let name = Theme::names().into_iter().next().unwrap_or_default().to_owned();
        Theme {
            name,
            background: detect_background(info),
            color_depth: detect_color_depth(info),
            ..Theme::default()
        }
    }
}

fn detect_color_depth(info: &TerminalEnvVars) -> ColorDepth {
    let term = info.term.as_deref().unwrap_or_default();
    // By convention, an empty `NO_COLOR` means nothing.
    if info.no_color.as_deref().is_some_and(|value| !value.is_empty()) {
        return ColorDepth::Monochrome;
    }
    if matches!(term, "" | "dumb" | "unknown") || term.starts_with("vt") || term.ends_with("-mono")
    {
        return ColorDepth::Monochrome;
    }
    let colorterm = info.colorterm.as_deref().unwrap_or_default();
    // `screen` itself passes on at most 256 colors, whatever the outer terminal supports.
    let is_screen = term == "screen" || term.starts_with("screen.") || term.starts_with("screen-");
    if matches!(colorterm, "truecolor" | "24bit") && !is_screen || term.ends_with("-direct") {
        return ColorDepth::TrueColor;
    }
    let true_color_terms = ["kitty", "ghostty", "alacritty", "wezterm", "foot", "contour"];
    if true_color_terms.iter().any(|name| term.contains(name)) {
        return ColorDepth::TrueColor;
    }
    if term.contains("256color") || !colorterm.is_empty() {
        ColorDepth::Ansi256
    } else {
        ColorDepth::Ansi16
    }
}

impl TerminalBackground {
    /// Classifies a background color, given as red, green, blue, by its luminance as `Light` or
    /// `Dark`.
    pub fn from_rgb((red, green, blue): (u8, u8, u8)) -> TerminalBackground {
        let luminance = 299 * u32::from(red) + 587 * u32::from(green) + 114 * u32::from(blue);
        if luminance > 127_500 { TerminalBackground::Light } else { TerminalBackground::Dark }
    }
}

fn detect_background(info: &TerminalEnvVars) -> TerminalBackground {
    let value = info.colorfgbg.as_deref().unwrap_or_default();
    match value.rsplit(';').next().and_then(|last| last.parse::<u8>().ok()) {
        Some(7 | 9..=15) => TerminalBackground::Light,
        Some(_) | None => TerminalBackground::Dark,
    }
}
