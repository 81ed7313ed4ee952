//! Tests of the command table, of key names in different terminals, and of user bindings.

use super::*;
use crossterm::event::{KeyCode, KeyModifiers};
use std::collections::BTreeSet;

fn user_key_map(bindings: &[(&str, &str)]) -> (KeyMap, Vec<String>) {
    let overrides = bindings.iter().map(|(name, keys)| ((*name).to_owned(), (*keys).to_owned()));
    KeyMap::new(overrides.collect())
}

fn key(code: KeyCode, modifiers: KeyModifiers) -> KeyEvent {
    KeyEvent::new(code, modifiers)
}

fn char_key(character: char, modifiers: KeyModifiers) -> KeyEvent {
    key(KeyCode::Char(character), modifiers)
}

const CTRL: KeyModifiers = KeyModifiers::CONTROL;
const ALT: KeyModifiers = KeyModifiers::ALT;
const SHIFT: KeyModifiers = KeyModifiers::SHIFT;

#[test]
fn every_default_key_parses_and_prints_the_same() {
    for entry in COMMAND_TABLE {
        for text in entry.default_keys.split_whitespace() {
            let stroke = KeyStroke::parse(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(stroke.to_string().to_lowercase(), text, "{}", entry.name);
            assert_eq!(parse_binding(entry, text), Ok(stroke), "{}", entry.name);
        }
    }
}

#[test]
fn no_key_has_two_meanings_in_one_scope() {
    let mut seen = BTreeSet::new();
    for entry in COMMAND_TABLE {
        for text in entry.default_keys.split_whitespace() {
            assert!(seen.insert((entry.scope, text)), "{text} in {:?}", entry.scope);
        }
    }
}

#[test]
fn every_command_is_in_the_table_once_with_a_unique_name() {
    let names: BTreeSet<&str> = COMMAND_TABLE.iter().map(|entry| entry.name).collect();
    let commands: BTreeSet<UiCommand> = COMMAND_TABLE.iter().map(|entry| entry.command).collect();
    assert_eq!((names.len(), commands.len()), (COMMAND_TABLE.len(), COMMAND_TABLE.len()));
    assert!(names.iter().all(|name| name.chars().all(|c| c.is_ascii_lowercase() || c == '-')));
    let mut slash_names: BTreeSet<&str> = BTreeSet::new();
    for entry in COMMAND_TABLE.iter().filter(|entry| entry.is_slash_command) {
        assert!(slash_names.insert(entry.name), "{}", entry.name);
        assert!(entry.aliases.iter().all(|alias| slash_names.insert(alias)), "{}", entry.name);
    }
}

#[test]
fn keys_reserved_by_terminals_are_not_bound() {
    for reserved in ["ctrl+b", "ctrl+i", "ctrl+m", "ctrl+q"] {
        let is_bound = |entry: &&CommandEntry| {
            entry.default_keys.split_whitespace().any(|key| key == reserved)
        };
        assert_eq!(COMMAND_TABLE.iter().find(is_bound).map(|entry| entry.name), None, "{reserved}");
    }
}

#[test]
fn a_global_command_with_only_an_alt_key_is_a_slash_command_or_scrolls() {
    for entry in COMMAND_TABLE.iter().filter(|entry| entry.scope == KeyScope::Global) {
        let keys: Vec<&str> = entry.default_keys.split_whitespace().collect();
        let alt_only = !keys.is_empty() && keys.iter().all(|key| key.starts_with("alt+"));
        let scrolls =
            [UiCommand::ToggleAllDetails, UiCommand::PreviousPrompt, UiCommand::NextPrompt];
        assert!(
            !alt_only || entry.is_slash_command || scrolls.contains(&entry.command),
            "{}",
            entry.name
        );
    }
}

#[test]
fn a_scope_takes_precedence_over_the_global_scope() {
    let keys = KeyMap::default();
    let tab = key(KeyCode::Tab, KeyModifiers::NONE);
    assert_eq!(keys.command_for(KeyScope::Prompt, &tab), Some(UiCommand::AcceptCompletion));
    assert_eq!(keys.command_for(KeyScope::Panel, &tab), Some(UiCommand::FocusQuestion));
    assert_eq!(
        keys.command_for(KeyScope::Panel, &char_key('s', CTRL)),
        Some(UiCommand::ChooseAndSave)
    );
    assert_eq!(keys.command_for(KeyScope::Global, &char_key('s', CTRL)), Some(UiCommand::Sessions));
    assert_eq!(keys.command_for(KeyScope::Prompt, &char_key('x', KeyModifiers::NONE)), None);
}

#[test]
fn different_reports_of_a_key_have_the_same_name() {
    let cases = [
        (char_key('7', CTRL), "ctrl+_"),
        (char_key('_', CTRL), "ctrl+_"),
        (char_key('-', CTRL | SHIFT), "ctrl+_"),
        (char_key('/', CTRL), "ctrl+/"),
        (char_key('m', CTRL), "enter"),
        (char_key('i', CTRL), "tab"),
        (char_key('[', CTRL), "esc"),
        (char_key('j', CTRL), "ctrl+j"),
        (char_key('h', CTRL), "ctrl+h"),
        (char_key('S', CTRL | SHIFT), "ctrl+shift+s"),
        (char_key('s', CTRL | SHIFT), "ctrl+shift+s"),
        (key(KeyCode::BackTab, SHIFT), "shift+tab"),
        (key(KeyCode::BackTab, KeyModifiers::NONE), "shift+tab"),
        (key(KeyCode::Tab, SHIFT), "shift+tab"),
        (char_key('K', SHIFT), "shift+k"),
        (char_key('K', KeyModifiers::NONE), "shift+k"),
        (char_key('k', SHIFT), "shift+k"),
        (char_key('?', SHIFT), "?"),
        (char_key('?', KeyModifiers::NONE), "?"),
        (char_key(' ', SHIFT), "space"),
        (char_key(' ', CTRL), "ctrl+space"),
        (char_key('E', ALT | SHIFT), "alt+shift+e"),
        (char_key('E', ALT), "alt+shift+e"),
        (key(KeyCode::Enter, ALT), "alt+enter"),
        (key(KeyCode::Enter, SHIFT), "shift+enter"),
        (char_key('+', CTRL), "ctrl++"),
        (char_key('ü', CTRL), "ctrl+ü"),
        (key(KeyCode::F(12), KeyModifiers::NONE), "f12"),
        (key(KeyCode::CapsLock, KeyModifiers::NONE), ""),
        (char_key('c', KeyModifiers::HYPER), ""),
    ];
    for (key, text) in cases {
        assert_eq!(key_name(&key), text, "{key:?}");
    }
}

#[test]
fn keys_are_shown_with_readable_labels() {
    let labels = ["ctrl+s", "shift+tab", "pageup", "alt+enter", "f1", "y", "shift+k", "ctrl+_"]
        .map(super::key_label);
    let expected = ["Ctrl+S", "Shift+Tab", "PageUp", "Alt+Enter", "F1", "y", "Shift+K", "Ctrl+_"];
    assert_eq!(labels, expected);
    assert_eq!(KeyMap::default().key_hint(UiCommand::Sessions), "Ctrl+S");
    assert_eq!(KeyMap::default().key_hint(UiCommand::Fork), "");
}

#[test]
fn user_bindings_take_precedence_over_the_defaults() {
    let (keys, problems) =
        user_key_map(&[("new", "ctrl+s ctrl+shift+n"), ("todos", "none"), ("copy", "")]);
    assert_eq!(problems, Vec::<String>::new());
    assert_eq!(
        keys.command_for(KeyScope::Global, &char_key('s', CTRL)),
        Some(UiCommand::NewSession)
    );
    assert_eq!(
        keys.command_for(KeyScope::Global, &char_key('n', CTRL | SHIFT)),
        Some(UiCommand::NewSession)
    );
    assert_eq!(keys.key_hint(UiCommand::Sessions), "", "its only key was bound to another command");
    assert_eq!(keys.command_for(KeyScope::Global, &char_key('t', CTRL)), None);
    let (keys, problems) = user_key_map(&[("sessions", "Ctrl+S")]);
    assert_eq!((keys.key_hint(UiCommand::Sessions).as_str(), problems.len()), ("Ctrl+S", 0));
}

#[test]
fn invalid_bindings_are_reported_and_the_rest_are_used() {
    let bindings = [
        ("sesions", "ctrl+s"),
        ("fork", "ctrl+forward alt+k"),
        ("new", "ctrl+g"),
        ("tasks", "ctrl+g"),
        ("once", "enter"),
        ("copy", "c"),
    ];
    let (keys, problems) = user_key_map(&bindings);
    expect_test::expect![[r#"
        unknown command `sesions` in the key bindings; /help lists the commands
        invalid key `ctrl+forward` for `fork`; write it like ctrl+s, alt+enter or f1
        Ctrl+G is bound to both `new` and `tasks`; the first one is used
        cannot bind c to `copy`: it is needed for typing; add ctrl or alt
        cannot bind Enter to `once`: this key never answers a question"#]]
    .assert_eq(&problems.join("\n"));
    assert_eq!(keys.key_hint(UiCommand::Fork), "Alt+K");
    assert_eq!(
        keys.command_for(KeyScope::Global, &char_key('g', CTRL)),
        Some(UiCommand::NewSession)
    );
    assert_eq!(
        keys.command_for(KeyScope::Question, &key(KeyCode::Enter, KeyModifiers::NONE)),
        None
    );
}
