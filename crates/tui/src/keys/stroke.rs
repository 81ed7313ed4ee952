//! One press of a key, the same for every terminal that can tell of it.
//!
//! Terminals differ: without the kitty protocol Ctrl+/ arrives as Ctrl+7, Ctrl+M as Enter, Alt as an
//! Esc in front, and a capital with or without Shift. Here each of them is one thing.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::fmt;

/// A press of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stroke {
    code: KeyCode,
    modifiers: KeyModifiers,
}

/// The names of keys that are no letters.
const NAMES: [(&str, KeyCode); 16] = [
    ("enter", KeyCode::Enter),
    ("esc", KeyCode::Esc),
    ("tab", KeyCode::Tab),
    ("space", KeyCode::Char(' ')),
    ("backspace", KeyCode::Backspace),
    ("delete", KeyCode::Delete),
    ("insert", KeyCode::Insert),
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
    ("pageup", KeyCode::PageUp),
    ("pagedown", KeyCode::PageDown),
    ("menu", KeyCode::Menu),
];

const MODIFIERS: [(&str, &str, KeyModifiers); 4] = [
    ("ctrl", "Ctrl", KeyModifiers::CONTROL),
    ("alt", "Alt", KeyModifiers::ALT),
    ("shift", "Shift", KeyModifiers::SHIFT),
    ("super", "Super", KeyModifiers::SUPER),
];

impl Stroke {
    /// What was pressed; nothing for a key that has no name here.
    pub fn of(key: &KeyEvent) -> Option<Stroke> {
        let known = MODIFIERS.iter().fold(KeyModifiers::NONE, |all, (.., one)| all | *one);
        if key.modifiers.intersects(KeyModifiers::HYPER | KeyModifiers::META) {
            return None;
        }
        let (mut code, mut modifiers) = (key.code, key.modifiers & known);
        match code {
            KeyCode::BackTab => {
                code = KeyCode::Tab;
                modifiers |= KeyModifiers::SHIFT;
            }
            KeyCode::Char(letter) if modifiers.contains(KeyModifiers::CONTROL) => {
                (code, modifiers) = with_control(letter, modifiers);
            }
            KeyCode::Char(letter) if letter.is_uppercase() => {
                code = KeyCode::Char(lower(letter));
                modifiers |= KeyModifiers::SHIFT;
            }
            // A sign is what it is, whichever key it took.
            KeyCode::Char(letter) if !letter.is_alphabetic() && letter != ' ' => {
                modifiers -= KeyModifiers::SHIFT;
            }
            KeyCode::Char(' ') if modifiers == KeyModifiers::SHIFT => {
                modifiers = KeyModifiers::NONE;
            }
            _ => {}
        }
        let named = matches!(code, KeyCode::Char(_) | KeyCode::F(_))
            || NAMES.iter().any(|(_, known)| *known == code);
        named.then_some(Stroke { code, modifiers })
    }

    /// A key as it is written: `ctrl+s`, `shift+tab`, `f1`.
    pub fn parse(text: &str) -> Option<Stroke> {
        let mut modifiers = KeyModifiers::NONE;
        let mut rest = text.trim();
        while let Some((modifier, key)) = rest.split_once('+').filter(|(_, key)| !key.is_empty()) {
            let known = MODIFIERS.iter().find(|(name, ..)| modifier.eq_ignore_ascii_case(name));
            modifiers |= known.map(|(.., modifier)| *modifier)?;
            rest = key;
        }
        let name = rest.to_lowercase();
        let named = NAMES.iter().find(|(known, _)| *known == name).map(|(_, code)| *code);
        let number = name.strip_prefix('f').and_then(|number| number.parse().ok());
        let mut letters = rest.chars();
        let code = match (named, number, letters.next(), letters.next()) {
            (Some(code), ..) => code,
            (None, Some(number @ 1..=24), ..) => KeyCode::F(number),
            // `Ctrl+S` is what stands on the keys; a capital alone is one.
            (None, _, Some(letter), None) if modifiers.is_empty() => KeyCode::Char(letter),
            (None, _, Some(letter), None) => KeyCode::Char(lower(letter)),
            (None, ..) => return None,
        };
        Stroke::of(&KeyEvent::new(code, modifiers))
    }

    /// The press as a terminal tells of it.
    pub fn event(&self) -> KeyEvent {
        KeyEvent::new(self.code, self.modifiers)
    }

    /// True if it writes a letter.
    pub fn writes(&self) -> bool {
        matches!(self.code, KeyCode::Char(_)) && !self.modifiers.intersects(!(KeyModifiers::SHIFT))
    }

    /// True for Enter, whatever is held with it.
    pub fn is_enter(&self) -> bool {
        self.code == KeyCode::Enter
    }
}

/// What Ctrl and a letter are. The first terminals had few codes for them, and today's send the same.
fn with_control(letter: char, modifiers: KeyModifiers) -> (KeyCode, KeyModifiers) {
    let bare = modifiers - KeyModifiers::CONTROL;
    let letter = match letter {
        'm' | 'M' if bare.is_empty() => return (KeyCode::Enter, bare),
        'i' | 'I' if bare.is_empty() => return (KeyCode::Tab, bare),
        '[' => return (KeyCode::Esc, bare - KeyModifiers::SHIFT),
        '4' => '\\',
        '5' => ']',
        '6' => '^',
        '7' => '_',
        '-' if bare.contains(KeyModifiers::SHIFT) => '_',
        other => other,
    };
    match letter.is_alphabetic() || letter == ' ' {
        true if letter.is_uppercase() => {
            (KeyCode::Char(lower(letter)), modifiers | KeyModifiers::SHIFT)
        }
        true => (KeyCode::Char(letter), modifiers),
        false => (KeyCode::Char(letter), modifiers - KeyModifiers::SHIFT),
    }
}

fn lower(letter: char) -> char {
    letter.to_lowercase().next().unwrap_or(letter)
}

impl fmt::Display for Stroke {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (_, name, modifier) in MODIFIERS {
            if self.modifiers.contains(modifier) {
                write!(f, "{name}+")?;
            }
        }
        match self.code {
            KeyCode::PageUp => f.write_str("PageUp"),
            KeyCode::PageDown => f.write_str("PageDown"),
            KeyCode::F(number) => write!(f, "F{number}"),
            // Alone, a letter is shown as it is typed; with others, as it stands on the key.
            KeyCode::Char(letter) if letter != ' ' => match self.modifiers.is_empty() {
                true => write!(f, "{letter}"),
                false => write!(f, "{}", letter.to_uppercase()),
            },
            code => {
                let named = NAMES.iter().find(|(_, known)| *known == code);
                let mut letters = named.map_or("", |(name, _)| *name).chars();
                let first = letters.next().map(|first| first.to_ascii_uppercase());
                first.into_iter().chain(letters).try_for_each(|letter| write!(f, "{letter}"))
            }
        }
    }
}

/// True if a key writes a letter, and means nothing else.
pub fn writes(key: &KeyEvent) -> bool {
    Stroke::of(key).is_some_and(|stroke| stroke.writes())
}

/// A key as it is written in the table and in config; nothing for one that has no name.
pub fn written(key: &KeyEvent) -> String {
    Stroke::of(key).map(|stroke| stroke.to_string().to_lowercase()).unwrap_or_default()
}

/// A key of the table as a person reads it: `Ctrl+S`.
pub fn shown(text: &str) -> String {
    Stroke::parse(text).map_or_else(|| text.to_owned(), |stroke| stroke.to_string())
}
