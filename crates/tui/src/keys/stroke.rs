//! A key press, normalized across terminals.
//!
//! Terminals differ: without the kitty protocol, Ctrl+/ arrives as Ctrl+7, Ctrl+M as Enter, Alt as
//! a preceding Esc, and a capital letter with or without Shift. `KeyStroke` maps each of them to
//! one value.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::fmt;

/// A key with its modifiers, in normalized form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyStroke {
    code: KeyCode,
    modifiers: KeyModifiers,
}

/// The names of the keys that do not type a character, plus `space`, as written in the config.
const KEY_NAMES: [(&str, KeyCode); 16] = [
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

const MODIFIER_NAMES: [(&str, &str, KeyModifiers); 4] = [
    ("ctrl", "Ctrl", KeyModifiers::CONTROL),
    ("alt", "Alt", KeyModifiers::ALT),
    ("shift", "Shift", KeyModifiers::SHIFT),
    ("super", "Super", KeyModifiers::SUPER),
];

impl KeyStroke {
    /// Normalizes a terminal event; returns `None` for a key that has no name here.
    pub fn from_event(key: &KeyEvent) -> Option<KeyStroke> {
        let all_modifiers =
            MODIFIER_NAMES.iter().fold(KeyModifiers::NONE, |all, (.., modifier)| all | *modifier);
        if key.modifiers.intersects(KeyModifiers::HYPER | KeyModifiers::META) {
            return None;
        }
        let (mut code, mut modifiers) = (key.code, key.modifiers & all_modifiers);
        match code {
            KeyCode::BackTab => {
                code = KeyCode::Tab;
                modifiers |= KeyModifiers::SHIFT;
            }
            KeyCode::Char(letter) if modifiers.contains(KeyModifiers::CONTROL) => {
                (code, modifiers) = control_key(letter, modifiers);
            }
            KeyCode::Char(letter) if letter.is_uppercase() => {
                code = KeyCode::Char(lowercase_letter(letter));
                modifiers |= KeyModifiers::SHIFT;
            }
            // A symbol stays the same symbol whether or not typing it needed Shift.
            KeyCode::Char(letter) if !letter.is_alphabetic() && letter != ' ' => {
                modifiers -= KeyModifiers::SHIFT;
            }
            KeyCode::Char(' ') if modifiers == KeyModifiers::SHIFT => {
                modifiers = KeyModifiers::NONE;
            }
            _ => {}
        }
        let has_name = matches!(code, KeyCode::Char(_) | KeyCode::F(_))
            || KEY_NAMES.iter().any(|(_, named_code)| *named_code == code);
        has_name.then_some(KeyStroke { code, modifiers })
    }

    /// Parses the written form of a key: `ctrl+s`, `shift+tab`, `f1`.
    pub fn parse(text: &str) -> Option<KeyStroke> {
        let mut modifiers = KeyModifiers::NONE;
        let mut rest = text.trim();
        while let Some((modifier, key)) = rest.split_once('+').filter(|(_, key)| !key.is_empty()) {
            let entry =
                MODIFIER_NAMES.iter().find(|(name, ..)| modifier.eq_ignore_ascii_case(name));
            modifiers |= entry.map(|(.., modifier)| *modifier)?;
            rest = key;
        }
        let name = rest.to_lowercase();
        let named_code = KEY_NAMES.iter().find(|(key, _)| *key == name).map(|(_, code)| *code);
        let number = name.strip_prefix('f').and_then(|number| number.parse().ok());
        let mut characters = rest.chars();
        let code = match (named_code, number, characters.next(), characters.next()) {
            (Some(code), ..) => code,
            (None, Some(number @ 1..=24), ..) => KeyCode::F(number),
            // `Ctrl+S` names the key cap, so it means no Shift; a capital letter alone does mean
            // Shift.
            (None, _, Some(letter), None) if modifiers.is_empty() => KeyCode::Char(letter),
            (None, _, Some(letter), None) => KeyCode::Char(lowercase_letter(letter)),
            (None, ..) => return None,
        };
        KeyStroke::from_event(&KeyEvent::new(code, modifiers))
    }

    /// Returns the key as a `KeyEvent`.
    pub fn to_event(&self) -> KeyEvent {
        KeyEvent::new(self.code, self.modifiers)
    }

    /// Returns true if the key types a character.
    pub fn is_text(&self) -> bool {
        matches!(self.code, KeyCode::Char(_)) && !self.modifiers.intersects(!(KeyModifiers::SHIFT))
    }

    /// Returns true for Enter with any modifiers.
    pub fn is_enter(&self) -> bool {
        self.code == KeyCode::Enter
    }
}

/// Normalizes Ctrl plus a character. Early terminals had few codes for these combinations, and
/// current ones still send the same codes.
fn control_key(letter: char, modifiers: KeyModifiers) -> (KeyCode, KeyModifiers) {
    let other_modifiers = modifiers - KeyModifiers::CONTROL;
    let letter = match letter {
        'm' | 'M' if other_modifiers.is_empty() => return (KeyCode::Enter, other_modifiers),
        'i' | 'I' if other_modifiers.is_empty() => return (KeyCode::Tab, other_modifiers),
        '[' => return (KeyCode::Esc, other_modifiers - KeyModifiers::SHIFT),
        '4' => '\\',
        '5' => ']',
        '6' => '^',
        '7' => '_',
        '-' if other_modifiers.contains(KeyModifiers::SHIFT) => '_',
        other => other,
    };
    match letter.is_alphabetic() || letter == ' ' {
        true if letter.is_uppercase() => {
            (KeyCode::Char(lowercase_letter(letter)), modifiers | KeyModifiers::SHIFT)
        }
        true => (KeyCode::Char(letter), modifiers),
        false => (KeyCode::Char(letter), modifiers - KeyModifiers::SHIFT),
    }
}

fn lowercase_letter(letter: char) -> char {
    letter.to_lowercase().next().unwrap_or(letter)
}

impl fmt::Display for KeyStroke {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (_, name, modifier) in MODIFIER_NAMES {
            if self.modifiers.contains(modifier) {
                write!(f, "{name}+")?;
            }
        }
        match self.code {
            KeyCode::PageUp => f.write_str("PageUp"),
            KeyCode::PageDown => f.write_str("PageDown"),
            KeyCode::F(number) => write!(f, "F{number}"),
            // Alone, a letter is shown as typed; with modifiers, as on the key cap.
            KeyCode::Char(letter) if letter != ' ' => match self.modifiers.is_empty() {
                true => write!(f, "{letter}"),
                false => write!(f, "{}", letter.to_uppercase()),
            },
            code => {
                let named = KEY_NAMES.iter().find(|(_, named_code)| *named_code == code);
                let mut characters = named.map_or("", |(name, _)| *name).chars();
                let first = characters.next().map(|first| first.to_ascii_uppercase());
                first.into_iter().chain(characters).try_for_each(|letter| write!(f, "{letter}"))
            }
        }
    }
}

/// Returns true if a key types a character and has no other meaning.
pub fn is_text_key(key: &KeyEvent) -> bool {
    KeyStroke::from_event(key).is_some_and(|stroke| stroke.is_text())
}

/// Returns the key in the notation of the table and the config; empty for a key without a name.
pub fn key_name(key: &KeyEvent) -> String {
    KeyStroke::from_event(key).map(|stroke| stroke.to_string().to_lowercase()).unwrap_or_default()
}

/// Returns the display label of a written key: `Ctrl+S` for `ctrl+s`.
pub fn key_label(text: &str) -> String {
    KeyStroke::parse(text).map_or_else(|| text.to_owned(), |stroke| stroke.to_string())
}
