//! Keys and commands: one table defines the key map, the `/` commands and the help.
//!
//! A key maps to a [`UiCommand`] within a [`KeyScope`]; bindings in the user's config override the
//! table.

mod command;
mod command_table;
mod focus_commands;
mod global_commands;
mod stroke;
#[cfg(test)]
mod tests;

pub use command::{CommandEntry, KeyScope, UiCommand};
pub use command_table::COMMAND_TABLE;
pub use stroke::{KeyStroke, is_text_key, key_label, key_name};

use crossterm::event::KeyEvent;
use std::collections::{BTreeMap, HashMap};

/// The key map: the defaults of `COMMAND_TABLE` with the user's overrides.
#[derive(Clone, Debug)]
pub struct KeyMap {
    /// The keys of each bound command, in the order they are written.
    keys_by_command: HashMap<UiCommand, Vec<KeyStroke>>,
    bindings: HashMap<(KeyScope, KeyStroke), UiCommand>,
}

impl Default for KeyMap {
    fn default() -> KeyMap {
        KeyMap::new(BTreeMap::new()).0
    }
}

impl KeyMap {
    /// Builds the key map from the user's bindings: command name to space-separated keys, where an
    /// empty value or `none` unbinds the command. Returns a message for each binding that cannot be
    /// used.
    pub fn new(overrides: BTreeMap<String, String>) -> (KeyMap, Vec<String>) {
        let mut notes = Vec::new();
        for name in overrides.keys().filter(|name| find_entry(name).is_none()) {
            notes.push(format!(
                "unknown command `{name}` in the key bindings; /help lists the commands"
            ));
        }
        let mut key_map = KeyMap { keys_by_command: HashMap::new(), bindings: HashMap::new() };
        for entry in COMMAND_TABLE {
            let Some(strokes) = overrides.get(entry.name) else { continue };
            for text in strokes.split_whitespace().filter(|text| *text != "none") {
                match parse_binding(entry, text) {
                    Ok(stroke) => key_map.bind(entry, stroke, &mut notes),
                    Err(problem) => notes.push(problem),
                }
            }
        }
        // The user's bindings come first: a default key does not replace one of them.
        for entry in COMMAND_TABLE.iter().filter(|entry| !overrides.contains_key(entry.name)) {
            for stroke in entry.default_keys.split_whitespace().filter_map(KeyStroke::parse) {
                if !key_map.bindings.contains_key(&(entry.scope, stroke)) {
                    key_map.bind(entry, stroke, &mut notes);
                }
            }
        }
        (key_map, notes)
    }

    fn bind(&mut self, entry: &CommandEntry, stroke: KeyStroke, notes: &mut Vec<String>) {
        let other = self.bindings.get(&(entry.scope, stroke));
        if let Some(other) = other.filter(|other| **other != entry.command) {
            let other = COMMAND_TABLE.iter().find(|entry| entry.command == *other);
            notes.push(format!(
                "{stroke} is bound to both `{}` and `{}`; the first one is used",
                other.map_or("", |other| other.name),
                entry.name
            ));
            return;
        }
        let keys = self.keys_by_command.entry(entry.command).or_default();
        if !keys.contains(&stroke) {
            keys.push(stroke);
            self.bindings.insert((entry.scope, stroke), entry.command);
        }
    }

    /// Returns the display labels of a command's keys, such as `Ctrl+S`.
    pub fn keys_for(&self, entry: &CommandEntry) -> Vec<String> {
        let keys = self.keys_by_command.get(&entry.command);
        keys.into_iter().flatten().map(KeyStroke::to_string).collect()
    }

    /// Looks up the command of a key in a scope, then in `KeyScope::Global`.
    pub fn command_for(&self, scope: KeyScope, key: &KeyEvent) -> Option<UiCommand> {
        let stroke = KeyStroke::from_event(key)?;
        let in_scope = self.bindings.get(&(scope, stroke));
        in_scope.or_else(|| self.bindings.get(&(KeyScope::Global, stroke))).copied()
    }

    /// Returns the label of a command's first key; empty if it has none.
    pub fn key_hint(&self, command: UiCommand) -> String {
        let keys = self.keys_by_command.get(&command);
        keys.and_then(|keys| keys.first()).map(KeyStroke::to_string).unwrap_or_default()
    }
}

/// Returns the command that `/NAME` runs, by its name or an alias.
pub fn find_slash_command(name: &str) -> Option<&'static CommandEntry> {
    COMMAND_TABLE.iter().find(|entry| entry.is_called(name))
}

fn find_entry(name: &str) -> Option<&'static CommandEntry> {
    COMMAND_TABLE.iter().find(|entry| entry.name == name)
}

/// Parses a key for a command, or returns the reason it cannot be bound.
fn parse_binding(entry: &CommandEntry, text: &str) -> Result<KeyStroke, String> {
    let name = entry.name;
    let Some(stroke) = KeyStroke::parse(text) else {
        return Err(format!(
            "invalid key `{text}` for `{name}`; write it like ctrl+s, alt+enter or f1"
        ));
    };
    match entry.scope {
        // Enter sends a prompt, so it must never approve a permission request.
        KeyScope::Question if stroke.is_enter() => {
            Err(format!("cannot bind {stroke} to `{name}`: this key never answers a question"))
        }
        KeyScope::Global | KeyScope::Prompt if stroke.is_text() => Err(format!(
            "cannot bind {stroke} to `{name}`: it is needed for typing; add ctrl or alt"
        )),
        KeyScope::Question | KeyScope::Global | KeyScope::Prompt | KeyScope::Panel => Ok(stroke),
    }
}
