//! The table holds together, and keys are the same in every terminal.

use super::*;
use crossterm::event::{KeyCode, KeyModifiers};
use std::collections::BTreeSet;

fn own(bindings: &[(&str, &str)]) -> (Keys, Vec<String>) {
    let own = bindings.iter().map(|(name, keys)| ((*name).to_owned(), (*keys).to_owned()));
    Keys::new(own.collect())
}

fn key(code: KeyCode, modifiers: KeyModifiers) -> KeyEvent {
    KeyEvent::new(code, modifiers)
}

fn letter(letter: char, modifiers: KeyModifiers) -> KeyEvent {
    key(KeyCode::Char(letter), modifiers)
}

const CTRL: KeyModifiers = KeyModifiers::CONTROL;
const ALT: KeyModifiers = KeyModifiers::ALT;
const SHIFT: KeyModifiers = KeyModifiers::SHIFT;

#[test]
fn every_key_of_the_table_can_be_read_and_is_written_the_same() {
    for entry in TABLE {
        for text in entry.keys.split_whitespace() {
            let stroke = Stroke::parse(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(stroke.to_string().to_lowercase(), text, "{}", entry.name);
            assert_eq!(usable(entry, text), Ok(stroke), "{}", entry.name);
        }
    }
}

#[test]
fn no_key_has_two_meanings_in_one_place() {
    let mut seen = BTreeSet::new();
    for entry in TABLE {
        for text in entry.keys.split_whitespace() {
            assert!(seen.insert((entry.place, text)), "{text} in {:?}", entry.place);
        }
    }
}

#[test]
fn every_command_stands_in_the_table_once_under_a_name_of_its_own() {
    let names: BTreeSet<&str> = TABLE.iter().map(|entry| entry.name).collect();
    let commands: BTreeSet<Command> = TABLE.iter().map(|entry| entry.command).collect();
    assert_eq!((names.len(), commands.len()), (TABLE.len(), TABLE.len()));
    assert!(names.iter().all(|name| name.chars().all(|c| c.is_ascii_lowercase() || c == '-')));
}

#[test]
fn the_keys_that_others_take_are_left_to_them() {
    for taken in ["ctrl+b", "ctrl+i", "ctrl+m", "ctrl+q"] {
        let uses = |entry: &&Entry| entry.keys.split_whitespace().any(|key| key == taken);
        assert_eq!(TABLE.iter().find(uses).map(|entry| entry.name), None, "{taken}");
    }
}

#[test]
fn what_has_a_key_with_alt_only_can_be_typed_too_unless_it_edits_or_scrolls() {
    for entry in TABLE.iter().filter(|entry| entry.place == Place::Everywhere) {
        let keys: Vec<&str> = entry.keys.split_whitespace().collect();
        let alt_only = !keys.is_empty() && keys.iter().all(|key| key.starts_with("alt+"));
        let scrolls = [Command::DetailsAll, Command::PreviousPrompt, Command::NextPrompt];
        assert!(!alt_only || entry.slash || scrolls.contains(&entry.command), "{}", entry.name);
    }
}

#[test]
fn a_place_has_its_own_meaning_before_the_one_everywhere() {
    let keys = Keys::default();
    let tab = key(KeyCode::Tab, KeyModifiers::NONE);
    assert_eq!(keys.find(Place::Prompt, &tab), Some(Command::Complete));
    assert_eq!(keys.find(Place::Panel, &tab), Some(Command::Answer));
    assert_eq!(keys.find(Place::Panel, &letter('s', CTRL)), Some(Command::KeepRow));
    assert_eq!(keys.find(Place::Everywhere, &letter('s', CTRL)), Some(Command::Sessions));
    assert_eq!(keys.find(Place::Prompt, &letter('x', KeyModifiers::NONE)), None);
}

#[test]
fn terminals_that_say_it_differently_mean_the_same() {
    let same = [
        (letter('7', CTRL), "ctrl+_"),
        (letter('_', CTRL), "ctrl+_"),
        (letter('-', CTRL | SHIFT), "ctrl+_"),
        (letter('/', CTRL), "ctrl+/"),
        (letter('m', CTRL), "enter"),
        (letter('i', CTRL), "tab"),
        (letter('[', CTRL), "esc"),
        (letter('j', CTRL), "ctrl+j"),
        (letter('h', CTRL), "ctrl+h"),
        (letter('S', CTRL | SHIFT), "ctrl+shift+s"),
        (letter('s', CTRL | SHIFT), "ctrl+shift+s"),
        (key(KeyCode::BackTab, SHIFT), "shift+tab"),
        (key(KeyCode::BackTab, KeyModifiers::NONE), "shift+tab"),
        (key(KeyCode::Tab, SHIFT), "shift+tab"),
        (letter('K', SHIFT), "shift+k"),
        (letter('K', KeyModifiers::NONE), "shift+k"),
        (letter('k', SHIFT), "shift+k"),
        (letter('?', SHIFT), "?"),
        (letter('?', KeyModifiers::NONE), "?"),
        (letter(' ', SHIFT), "space"),
        (letter(' ', CTRL), "ctrl+space"),
        (letter('E', ALT | SHIFT), "alt+shift+e"),
        (letter('E', ALT), "alt+shift+e"),
        (key(KeyCode::Enter, ALT), "alt+enter"),
        (key(KeyCode::Enter, SHIFT), "shift+enter"),
        (letter('+', CTRL), "ctrl++"),
        (letter('ü', CTRL), "ctrl+ü"),
        (key(KeyCode::F(12), KeyModifiers::NONE), "f12"),
        (key(KeyCode::CapsLock, KeyModifiers::NONE), ""),
        (letter('c', KeyModifiers::HYPER), ""),
    ];
    for (key, text) in same {
        assert_eq!(written(&key), text, "{key:?}");
    }
}

#[test]
fn keys_are_shown_in_words() {
    let shown = ["ctrl+s", "shift+tab", "pageup", "alt+enter", "f1", "y", "shift+k", "ctrl+_"]
        .map(super::shown);
    let read = ["Ctrl+S", "Shift+Tab", "PageUp", "Alt+Enter", "F1", "y", "Shift+K", "Ctrl+_"];
    assert_eq!(shown, read);
    assert_eq!(Keys::default().hint(Command::Sessions), "Ctrl+S");
    assert_eq!(Keys::default().hint(Command::Fork), "");
}

#[test]
fn what_a_person_binds_counts_for_more_than_the_table() {
    let (keys, told) = own(&[("new", "ctrl+s ctrl+shift+n"), ("todos", "none"), ("copy", "")]);
    assert_eq!(told, Vec::<String>::new());
    assert_eq!(keys.find(Place::Everywhere, &letter('s', CTRL)), Some(Command::New));
    assert_eq!(keys.find(Place::Everywhere, &letter('n', CTRL | SHIFT)), Some(Command::New));
    assert_eq!(keys.hint(Command::Sessions), "", "its only key was taken");
    assert_eq!(keys.find(Place::Everywhere, &letter('t', CTRL)), None);
    let (keys, told) = own(&[("sessions", "Ctrl+S")]);
    assert_eq!((keys.hint(Command::Sessions).as_str(), told.len()), ("Ctrl+S", 0));
}

#[test]
fn what_cannot_be_used_is_said_and_the_rest_is_used() {
    let bindings = [
        ("sesions", "ctrl+s"),
        ("fork", "ctrl+forward alt+k"),
        ("new", "ctrl+g"),
        ("agents", "ctrl+g"),
        ("once", "enter"),
        ("copy", "c"),
    ];
    let (keys, told) = own(&bindings);
    expect_test::expect![[r#"
        there is no command `sesions` to give a key to; /help names those there are
        `ctrl+forward` for `fork` is no key; write it like ctrl+s, alt+enter or f1
        Ctrl+G cannot mean both `new` and `agents`; it means the first
        c cannot be `copy`: it is needed to write; add ctrl or alt
        Enter cannot be `once`: it never answers a question"#]]
    .assert_eq(&told.join("\n"));
    assert_eq!(keys.hint(Command::Fork), "Alt+K");
    assert_eq!(keys.find(Place::Everywhere, &letter('g', CTRL)), Some(Command::New));
    assert_eq!(keys.find(Place::Asked, &key(KeyCode::Enter, KeyModifiers::NONE)), None);
}
