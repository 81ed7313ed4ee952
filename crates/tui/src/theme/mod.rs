//! Themes: the style of each part of the screen.
//!
//! A part names its [`StyleRole`], never a color. A theme defines the style of a role on a light
//! and a dark background, for each `ColorDepth` including none. It keeps the invariant that no
//! information is conveyed by color alone.

mod color;
mod palette;
mod popular_palettes;
mod terminal_detection;

pub use terminal_detection::TerminalEnvVars;

pub(crate) use color::{ansi_color, reduce_style};

use palette::{BUILTIN_THEMES, PackedRgb, Palette, ThemeDefinition};
use popular_palettes::POPULAR_THEMES;
use ratatui::style::{Color, Modifier, Style};
use std::collections::BTreeMap;

/// The role of a piece of text, which determines its style.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names are self-explanatory")]
pub enum StyleRole {
    Text,
    Dim,
    Strong,
    Accent,
    Success,
    Warning,
    Error,
    Border,
    Selected,
    User,
    Reasoning,
    ToolCall,
    Heading,
    Link,
    Quote,
    Literal,
    LineNumber,
    Added,
    Removed,
    AddedWord,
    RemovedWord,
    Keyword,
    String,
    Number,
    Comment,
    Function,
    Type,
    Variable,
    Operator,
}

/// All roles with their names in the config file.
pub const STYLE_ROLES: [(StyleRole, &str); 29] = [
    (StyleRole::Text, "text"),
    (StyleRole::Dim, "dim"),
    (StyleRole::Strong, "strong"),
    (StyleRole::Accent, "accent"),
    (StyleRole::Success, "success"),
    (StyleRole::Warning, "warning"),
    (StyleRole::Error, "error"),
    (StyleRole::Border, "border"),
    (StyleRole::Selected, "selected"),
    (StyleRole::User, "user"),
    (StyleRole::Reasoning, "reasoning"),
    (StyleRole::ToolCall, "call"),
    (StyleRole::Heading, "heading"),
    (StyleRole::Link, "link"),
    (StyleRole::Quote, "quote"),
    (StyleRole::Literal, "literal"),
    (StyleRole::LineNumber, "line_number"),
    (StyleRole::Added, "added"),
    (StyleRole::Removed, "removed"),
    (StyleRole::AddedWord, "added_word"),
    (StyleRole::RemovedWord, "removed_word"),
    (StyleRole::Keyword, "keyword"),
    (StyleRole::String, "string"),
    (StyleRole::Number, "number"),
    (StyleRole::Comment, "comment"),
    (StyleRole::Function, "function"),
    (StyleRole::Type, "type"),
    (StyleRole::Variable, "variable"),
    (StyleRole::Operator, "operator"),
];

/// The number of colors that a terminal supports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ColorDepth {
    /// No colors: only bold, dim, italic, underlined and reversed.
    Monochrome,
    /// The 16 ANSI colors, as the user configured them in the terminal.
    #[default]
    Ansi16,
    /// The 256 colors of xterm.
    Ansi256,
    /// 24-bit RGB.
    TrueColor,
}

/// The brightness class of the terminal's background.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TerminalBackground {
    #[default]
    Dark,
    Light,
}

/// A color theme, for one background and `ColorDepth`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Theme {
    pub name: String,
    pub background: TerminalBackground,
    pub color_depth: ColorDepth,
    /// The user's own styles, which take precedence; see [`Theme::with_overrides`].
    pub overrides: BTreeMap<StyleRole, Style>,
}

impl Theme {
    /// Returns the style of a role.
    pub fn style(&self, role: StyleRole) -> Style {
        if let Some(style) = self.overrides.get(&role) {
            return reduce_style(*style, self.color_depth);
        }
        match self.color_depth {
            ColorDepth::Monochrome => monochrome_style(role),
            ColorDepth::Ansi16 => match self.definition().and_then(|entry| entry.ansi_accents) {
                Some(accent) => ansi16_style(role, self.background, accent),
                None => monochrome_style(role),
            },
            ColorDepth::Ansi256 | ColorDepth::TrueColor => {
                let Some(entry) = self.definition() else { return monochrome_style(role) };
                let palette = match self.background {
                    TerminalBackground::Dark => &entry.dark,
                    TerminalBackground::Light => &entry.light,
                };
                let is_monochrome = entry.ansi_accents.is_none();
                let style = true_color_style(role, palette, self.background);
                match self.color_depth {
                    ColorDepth::Ansi256 if !is_monochrome => reduce_style(
                        ansi256_style(role, palette, self.background),
                        self.color_depth,
                    ),
                    ColorDepth::Ansi256 => reduce_style(style, self.color_depth),
                    ColorDepth::Monochrome | ColorDepth::Ansi16 | ColorDepth::TrueColor => style,
                }
            }
        }
    }

    fn definition(&self) -> Option<&'static ThemeDefinition> {
        let named = all_definitions().find(|entry| entry.name == self.name);
        named.or(BUILTIN_THEMES.first())
    }

    /// Returns the names of all themes, the default first.
    pub fn names() -> Vec<&'static str> {
        all_definitions().map(|entry| entry.name).collect()
    }

    /// Finds a built-in theme by name.
    pub fn find(name: &str, background: TerminalBackground, depth: ColorDepth) -> Option<Theme> {
        let name = Theme::names().into_iter().find(|builtin| *builtin == name)?;
        Some(Theme {
            name: name.to_owned(),
            background,
            color_depth: depth,
            overrides: BTreeMap::new(),
        })
    }

    /// Returns the theme of another name, with the same background, color depth and overrides.
    pub fn with_name(&self, name: &str) -> Option<Theme> {
        let theme = Theme::find(name, self.background, self.color_depth)?;
        Some(Theme { overrides: self.overrides.clone(), ..theme })
    }

    /// Adds the user's own styles, such as `"accent": "bold #d08770"`; also returns a message for
    /// each that is invalid.
    pub fn with_overrides(mut self, styles: &BTreeMap<String, String>) -> (Theme, Vec<String>) {
        let mut problems = Vec::new();
        for (name, text) in styles {
            let Some((role, _)) = STYLE_ROLES.iter().find(|(_, role_name)| role_name == name)
            else {
                let names: Vec<&str> = STYLE_ROLES.iter().map(|(_, name)| *name).collect();
                problems
                    .push(format!("unknown theme style {name:?}; available: {}", names.join(", ")));
                continue;
            };
            match color::parse_style(text) {
                Some(style) => {
                    self.overrides.insert(*role, style);
                }
                None => problems.push(format!(
                    "invalid style {text:?} for {name:?}. Write a color as #rrggbb, 0 to 255, \
                     or a name such as red or light-blue, with `on` before a background color, \
                     and bold, dim, italic, underline or reverse"
                )),
            }
        }
        (self, problems)
    }
}

fn all_definitions() -> impl Iterator<Item = &'static ThemeDefinition> {
    BUILTIN_THEMES.iter().chain(&POPULAR_THEMES)
}

/// Returns the style of a role in `ColorDepth::Monochrome`.
fn monochrome_style(role: StyleRole) -> Style {
    let style = Style::default();
    match role {
        StyleRole::Strong
        | StyleRole::Heading
        | StyleRole::Accent
        | StyleRole::User
        | StyleRole::Error
        | StyleRole::Warning => style.add_modifier(Modifier::BOLD),
        StyleRole::Keyword => style.add_modifier(Modifier::BOLD),
        StyleRole::Selected => style.add_modifier(Modifier::REVERSED),
        StyleRole::Dim
        | StyleRole::Border
        | StyleRole::LineNumber
        | StyleRole::Comment
        | StyleRole::Quote
        | StyleRole::ToolCall => style.add_modifier(Modifier::DIM),
        StyleRole::Reasoning => style.add_modifier(Modifier::DIM | Modifier::ITALIC),
        StyleRole::Link => style.add_modifier(Modifier::UNDERLINED),
        StyleRole::AddedWord | StyleRole::RemovedWord => {
            style.add_modifier(Modifier::BOLD | Modifier::UNDERLINED)
        }
        StyleRole::Removed => style.add_modifier(Modifier::DIM),
        StyleRole::Text
        | StyleRole::Success
        | StyleRole::Literal
        | StyleRole::Added
        | StyleRole::String
        | StyleRole::Number
        | StyleRole::Function
        | StyleRole::Type
        | StyleRole::Variable
        | StyleRole::Operator => style,
    }
}

/// Returns the style of a role in `Ansi16`, with the colors that the user configured. It sets no
/// background and no gray: gray is unreadable in many palettes.
fn ansi16_style(
    role: StyleRole,
    background: TerminalBackground,
    (on_dark, on_light): (Color, Color),
) -> Style {
    let style = monochrome_style(role);
    let for_background = |dark: Color, light: Color| match background {
        TerminalBackground::Dark => style.fg(dark),
        TerminalBackground::Light => style.fg(light),
    };
    match role {
        StyleRole::Accent | StyleRole::Heading | StyleRole::User => {
            for_background(on_dark, on_light)
        }
        StyleRole::Success | StyleRole::AddedWord | StyleRole::String => style.fg(Color::Green),
        StyleRole::Added => style.fg(Color::Green),
        StyleRole::Warning => for_background(Color::Yellow, Color::Magenta),
        StyleRole::Error | StyleRole::RemovedWord => style.fg(Color::Red),
        StyleRole::Removed => Style::default().fg(Color::Red),
        StyleRole::Link | StyleRole::Function => for_background(Color::Cyan, Color::Blue),
        StyleRole::Literal | StyleRole::Type => style.fg(Color::Cyan),
        StyleRole::Number => for_background(Color::Yellow, Color::Red),
        StyleRole::Keyword => Style::default().fg(Color::Magenta),
        StyleRole::Text
        | StyleRole::Dim
        | StyleRole::Strong
        | StyleRole::Border
        | StyleRole::Selected
        | StyleRole::Reasoning
        | StyleRole::ToolCall
        | StyleRole::Quote
        | StyleRole::LineNumber
        | StyleRole::Comment
        | StyleRole::Variable
        | StyleRole::Operator => style,
    }
}

/// Returns the style of a role in `Ansi256`. The backgrounds of a diff are fixed, because the
/// nearest ones to those of a palette are grays, or the same for a line and its words; so are those
/// of a prompt and of a selected row, which would become that of the terminal or of a removed line.
fn ansi256_style(role: StyleRole, palette: &Palette, background: TerminalBackground) -> Style {
    let fixed_style =
        |(foreground, _): (PackedRgb, PackedRgb), dark: u8, light: u8| match background {
            TerminalBackground::Dark => foreground_style(foreground).bg(Color::Indexed(dark)),
            TerminalBackground::Light => foreground_style(foreground).bg(Color::Indexed(light)),
        };
    // Only white has enough contrast to the stronger background of words.
    let word_colors = |colors: (PackedRgb, PackedRgb)| match background {
        TerminalBackground::Dark => (0xffffff, colors.1),
        TerminalBackground::Light => colors,
    };
    match role {
        StyleRole::Added => fixed_style(palette.added, 22, 194),
        StyleRole::Removed => fixed_style(palette.removed, 52, 224),
        StyleRole::AddedWord => fixed_style(word_colors(palette.added_word), 28, 157),
        StyleRole::RemovedWord => fixed_style(word_colors(palette.removed_word), 88, 217),
        StyleRole::Selected => fixed_style(palette.selected, 239, 252),
        StyleRole::User => fixed_style(palette.selected, 236, 254),
        _ => true_color_style(role, palette, background),
    }
}

fn foreground_style(rgb: PackedRgb) -> Style {
    let (red, green, blue) = color::unpack_rgb(rgb);
    Style::default().fg(Color::Rgb(red, green, blue))
}

/// Returns the background of the user's prompts: the border color, nearer to the background of the
/// terminal.
fn prompt_background(palette: &Palette, background: TerminalBackground) -> PackedRgb {
    let (red, green, blue) = color::unpack_rgb(palette.faint);
    let channel = |value: u8| match background {
        TerminalBackground::Dark => u32::from(value) * 9 / 16,
        TerminalBackground::Light => 255 - (255 - u32::from(value)) * 3 / 10,
    };
    channel(red) << 16 | channel(green) << 8 | channel(blue)
}

/// Returns the style of a role in `TrueColor`.
fn true_color_style(role: StyleRole, palette: &Palette, background: TerminalBackground) -> Style {
    let with_background = |(foreground, background): (PackedRgb, PackedRgb)| {
        let (red, green, blue) = color::unpack_rgb(background);
        foreground_style(foreground).bg(Color::Rgb(red, green, blue))
    };
    match role {
        StyleRole::Text | StyleRole::Variable | StyleRole::Operator => Style::default(),
        StyleRole::Strong => Style::default().add_modifier(Modifier::BOLD),
        StyleRole::Dim | StyleRole::LineNumber | StyleRole::Quote | StyleRole::ToolCall => {
            foreground_style(palette.dim)
        }
        StyleRole::Reasoning => foreground_style(palette.dim).add_modifier(Modifier::ITALIC),
        StyleRole::Border => foreground_style(palette.faint),
        StyleRole::Accent => foreground_style(palette.accent),
        StyleRole::User => {
            with_background((palette.selected.0, prompt_background(palette, background)))
        }
        StyleRole::Heading => foreground_style(palette.accent).add_modifier(Modifier::BOLD),
        StyleRole::Success => foreground_style(palette.success),
        StyleRole::Warning => foreground_style(palette.warning),
        StyleRole::Error => foreground_style(palette.error),
        StyleRole::Selected => with_background(palette.selected),
        StyleRole::Link => foreground_style(palette.function).add_modifier(Modifier::UNDERLINED),
        StyleRole::Literal => foreground_style(palette.literal),
        StyleRole::Added => with_background(palette.added),
        StyleRole::Removed => with_background(palette.removed),
        StyleRole::AddedWord => with_background(palette.added_word),
        StyleRole::RemovedWord => with_background(palette.removed_word),
        StyleRole::Keyword => foreground_style(palette.keyword),
        StyleRole::String => foreground_style(palette.string),
        StyleRole::Number => foreground_style(palette.number),
        StyleRole::Comment => foreground_style(palette.comment).add_modifier(Modifier::ITALIC),
        StyleRole::Function => foreground_style(palette.function),
        StyleRole::Type => foreground_style(palette.type_name),
    }
}

#[cfg(test)]
mod tests;
