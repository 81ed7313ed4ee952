//! Themes: what colour each part of the screen has.
//!
//! A part names its [`Role`], never a colour. A theme says what a role looks like on a light and on a
//! dark ground, in as many colours as the terminal has, or in none. Nothing is told by colour alone.

mod colour;
mod detect;
mod palette;

pub use detect::Facts;

pub(crate) use colour::{fit, sixteen};

use palette::{Entry, Palette, Rgb, THEMES};
use ratatui::style::{Color, Modifier, Style};
use std::collections::BTreeMap;

/// What a piece of text is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Role {
    Text,
    Dim,
    Strong,
    Accent,
    Good,
    Warn,
    Bad,
    Border,
    Selected,
    Person,
    Reasoning,
    Call,
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

/// All roles, and what config calls them.
pub const ROLES: [(Role, &str); 29] = [
    (Role::Text, "text"),
    (Role::Dim, "dim"),
    (Role::Strong, "strong"),
    (Role::Accent, "accent"),
    (Role::Good, "good"),
    (Role::Warn, "warn"),
    (Role::Bad, "bad"),
    (Role::Border, "border"),
    (Role::Selected, "selected"),
    (Role::Person, "person"),
    (Role::Reasoning, "reasoning"),
    (Role::Call, "call"),
    (Role::Heading, "heading"),
    (Role::Link, "link"),
    (Role::Quote, "quote"),
    (Role::Literal, "literal"),
    (Role::LineNumber, "line_number"),
    (Role::Added, "added"),
    (Role::Removed, "removed"),
    (Role::AddedWord, "added_word"),
    (Role::RemovedWord, "removed_word"),
    (Role::Keyword, "keyword"),
    (Role::String, "string"),
    (Role::Number, "number"),
    (Role::Comment, "comment"),
    (Role::Function, "function"),
    (Role::Type, "type"),
    (Role::Variable, "variable"),
    (Role::Operator, "operator"),
];

/// How many colours there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// None: only bold, underlined and reversed.
    None,
    /// The sixteen that a person chose for their terminal.
    #[default]
    Sixteen,
    /// The 256 of xterm.
    Many,
    /// All of them.
    True,
}

/// Whether the ground is light or dark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ground {
    /// Dark.
    #[default]
    Dark,
    /// Light.
    Light,
}

/// How the screen looks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Theme {
    /// Its name.
    pub name: String,
    /// The ground it is for.
    pub ground: Ground,
    /// The colours there are.
    pub depth: Depth,
    /// What a person wants otherwise.
    pub own: BTreeMap<Role, Style>,
}

impl Theme {
    /// The style of a role.
    pub fn style(&self, role: Role) -> Style {
        if let Some(style) = self.own.get(&role) {
            return fit(*style, self.depth);
        }
        match self.depth {
            Depth::None => bare(role),
            Depth::Sixteen => match self.entry().and_then(|entry| entry.sixteen) {
                Some(accent) => few(role, self.ground, accent),
                None => bare(role),
            },
            Depth::Many | Depth::True => {
                let Some(entry) = self.entry() else { return bare(role) };
                let palette = match self.ground {
                    Ground::Dark => &entry.dark,
                    Ground::Light => &entry.light,
                };
                let colourless = entry.sixteen.is_none();
                let style = full(role, palette);
                match self.depth {
                    Depth::Many if !colourless => fit(many(role, palette, self.ground), self.depth),
                    Depth::Many => fit(style, self.depth),
                    Depth::None | Depth::Sixteen | Depth::True => style,
                }
            }
        }
    }

    fn entry(&self) -> Option<&'static Entry> {
        THEMES.iter().find(|entry| entry.name == self.name).or(THEMES.first())
    }

    /// The names of the themes there are.
    pub fn names() -> Vec<&'static str> {
        THEMES.iter().map(|entry| entry.name).collect()
    }

    /// A theme by its name.
    pub fn find(name: &str, ground: Ground, depth: Depth) -> Option<Theme> {
        let name = Theme::names().into_iter().find(|known| *known == name)?;
        Some(Theme { name: name.to_owned(), ground, depth, own: BTreeMap::new() })
    }

    /// The theme of another name on the same ground, with a person's own looks laid over it.
    pub fn called(&self, name: &str) -> Option<Theme> {
        let found = Theme::find(name, self.ground, self.depth)?;
        Some(Theme { own: self.own.clone(), ..found })
    }

    /// The same with looks of a person's own, such as `"accent": "bold #d08770"`, and what could not
    /// be understood of them.
    pub fn with(mut self, looks: &BTreeMap<String, String>) -> (Theme, Vec<String>) {
        let mut problems = Vec::new();
        for (name, spelled) in looks {
            let Some((role, _)) = ROLES.iter().find(|(_, known)| known == name) else {
                let known: Vec<&str> = ROLES.iter().map(|(_, name)| *name).collect();
                problems.push(format!("a theme has no {name:?}. It has {}", known.join(", ")));
                continue;
            };
            match colour::look(spelled) {
                Some(style) => {
                    self.own.insert(*role, style);
                }
                None => problems.push(format!(
                    "{spelled:?} is no look for {name:?}. Write a colour as #rrggbb, 0 to 255, or \
                     red, light-blue and so on, with `on` before a ground, and bold, dim, italic, \
                     underline or reverse"
                )),
            }
        }
        (self, problems)
    }
}

/// Without colours.
fn bare(role: Role) -> Style {
    let style = Style::default();
    match role {
        Role::Strong | Role::Heading | Role::Accent | Role::Person | Role::Bad | Role::Warn => {
            style.add_modifier(Modifier::BOLD)
        }
        Role::Keyword => style.add_modifier(Modifier::BOLD),
        Role::Selected => style.add_modifier(Modifier::REVERSED),
        Role::Dim | Role::Border | Role::LineNumber | Role::Comment | Role::Quote | Role::Call => {
            style.add_modifier(Modifier::DIM)
        }
        Role::Reasoning => style.add_modifier(Modifier::DIM | Modifier::ITALIC),
        Role::Link => style.add_modifier(Modifier::UNDERLINED),
        Role::AddedWord | Role::RemovedWord => {
            style.add_modifier(Modifier::BOLD | Modifier::UNDERLINED)
        }
        Role::Removed => style.add_modifier(Modifier::DIM),
        Role::Text
        | Role::Good
        | Role::Literal
        | Role::Added
        | Role::String
        | Role::Number
        | Role::Function
        | Role::Type
        | Role::Variable
        | Role::Operator => style,
    }
}

/// With the sixteen that a person chose for their terminal. No ground is coloured, and no gray is
/// used: in many palettes it cannot be read.
fn few(role: Role, ground: Ground, (on_dark, on_light): (Color, Color)) -> Style {
    let style = bare(role);
    let either = |dark: Color, light: Color| match ground {
        Ground::Dark => style.fg(dark),
        Ground::Light => style.fg(light),
    };
    match role {
        Role::Accent | Role::Heading | Role::Person => either(on_dark, on_light),
        Role::Good | Role::AddedWord | Role::String => style.fg(Color::Green),
        Role::Added => style.fg(Color::Green),
        Role::Warn => either(Color::Yellow, Color::Magenta),
        Role::Bad | Role::RemovedWord => style.fg(Color::Red),
        Role::Removed => Style::default().fg(Color::Red),
        Role::Link | Role::Function => either(Color::Cyan, Color::Blue),
        Role::Literal | Role::Type => style.fg(Color::Cyan),
        Role::Number => either(Color::Yellow, Color::Red),
        Role::Keyword => Style::default().fg(Color::Magenta),
        Role::Text
        | Role::Dim
        | Role::Strong
        | Role::Border
        | Role::Selected
        | Role::Reasoning
        | Role::Call
        | Role::Quote
        | Role::LineNumber
        | Role::Comment
        | Role::Variable
        | Role::Operator => style,
    }
}

/// With 256: there are no grounds among them that are faint enough for whole lines.
fn many(role: Role, palette: &Palette, ground: Ground) -> Style {
    let word = |(ink, _): (Rgb, Rgb), dark: u8, light: u8| match ground {
        Ground::Dark => foreground(ink).bg(Color::Indexed(dark)),
        Ground::Light => foreground(ink).bg(Color::Indexed(light)),
    };
    let otherwise = [
        (Role::Added, foreground(palette.good)),
        (Role::Removed, foreground(palette.bad)),
        (Role::AddedWord, word(palette.added_word, 22, 194)),
        (Role::RemovedWord, word(palette.removed_word, 52, 224)),
    ];
    let known = otherwise.into_iter().find(|(known, _)| *known == role);
    known.map_or_else(|| full(role, palette), |(_, style)| style)
}

fn foreground(rgb: Rgb) -> Style {
    let (red, green, blue) = colour::parts(rgb);
    Style::default().fg(Color::Rgb(red, green, blue))
}

/// With all of them.
fn full(role: Role, palette: &Palette) -> Style {
    let both = |(ink, ground): (Rgb, Rgb)| {
        let (red, green, blue) = colour::parts(ground);
        foreground(ink).bg(Color::Rgb(red, green, blue))
    };
    match role {
        Role::Text | Role::Variable | Role::Operator => Style::default(),
        Role::Strong => Style::default().add_modifier(Modifier::BOLD),
        Role::Dim | Role::LineNumber | Role::Quote | Role::Call => foreground(palette.dim),
        Role::Reasoning => foreground(palette.dim).add_modifier(Modifier::ITALIC),
        Role::Border => foreground(palette.faint),
        Role::Accent | Role::Person => foreground(palette.accent),
        Role::Heading => foreground(palette.accent).add_modifier(Modifier::BOLD),
        Role::Good => foreground(palette.good),
        Role::Warn => foreground(palette.warn),
        Role::Bad => foreground(palette.bad),
        Role::Selected => both(palette.selected),
        Role::Link => foreground(palette.function).add_modifier(Modifier::UNDERLINED),
        Role::Literal => foreground(palette.literal),
        Role::Added => both(palette.added),
        Role::Removed => both(palette.removed),
        Role::AddedWord => both(palette.added_word),
        Role::RemovedWord => both(palette.removed_word),
        Role::Keyword => foreground(palette.keyword),
        Role::String => foreground(palette.string),
        Role::Number => foreground(palette.number),
        Role::Comment => foreground(palette.comment).add_modifier(Modifier::ITALIC),
        Role::Function => foreground(palette.function),
        Role::Type => foreground(palette.kind),
    }
}

#[cfg(test)]
mod tests;
