//! Tests of formatter configs. Tests with real processes are in `tests/formatters`.

use super::*;
use std::collections::BTreeSet;
use windlass_lsp::ProjectMarker;

#[test]
fn builtin_formatters_are_valid() {
    let text = include_str!("formatters.json");
    let configs: Vec<FormatterConfig> = serde_json::from_str(text).unwrap();
    assert_eq!(builtin_formatters().len(), configs.len());
    assert!(configs.len() >= 20);
    let mut names = BTreeSet::new();
    for config in &configs {
        let name = &config.name;
        assert!(names.insert(name), "{name} is listed twice");
        let is_plain =
            |character: char| character.is_ascii_alphanumeric() || "-_".contains(character);
        assert!(!name.is_empty() && name.chars().all(is_plain), "{name}");
        let program = config.command.first().expect(name);
        assert!(program.chars().all(is_plain), "{name}: the program must be a bare name");
        let shell = ['|', '&', ';', '<', '>', '$', '`', '\\', '"', '\'', ' ', '*', '~'];
        assert!(!config.command.iter().any(|argument| argument.contains(shell)), "{name}");
        for argument in &config.command {
            let rest = argument.replace("{file}", "").replace("{edition}", "");
            assert!(!rest.contains(['{', '}']), "{name}: {argument}");
        }
        assert!(!config.extensions.is_empty() || !config.files.is_empty(), "{name}");
        assert!(config.extensions.iter().all(|extension| extension.starts_with('.')), "{name}");
        assert!(!config.install.is_empty() && !config.requires.is_empty(), "{name}");
        assert!((1_000..=5_000).contains(&config.timeout), "{name}");
    }
}

#[test]
fn a_formatter_matches_files_by_name() {
    let config: FormatterConfig = serde_json::from_str(
        r#"{"name": "a", "command": ["a"], "extensions": [".rs"], "files": ["Makefile"],
            "timeout": 99999999}"#,
    )
    .unwrap();
    for path in ["a.rs", "a/b.c.rs", "x/Makefile", "Makefile"] {
        assert!(config.matches_file(path), "{path}");
    }
    for path in ["a.rss", ".rs", "a/.rs", "rs", "a.RS", "xMakefile", "a.rs/b", ""] {
        assert!(!config.matches_file(path), "{path}");
    }
    assert_eq!(config.timeout(), std::time::Duration::from_secs(10), "the timeout is limited");
    assert!(
        serde_json::from_str::<FormatterConfig>(r#"{"name": "a", "command": ["a"], "comand": 1}"#)
            .is_err()
    );
    assert_eq!(config.requires, Vec::<ProjectMarker>::new());
}

#[test]
fn only_utf_8_text_is_formatted() {
    assert_eq!(decode_for_formatter("\u{feff}a".as_bytes()), Some((BYTE_ORDER_MARK, "a")));
    assert_eq!(decode_for_formatter(b"a\r\n"), Some(("", "a\r\n")));
    assert_eq!(decode_for_formatter(b"\xff"), None);
    assert_eq!(decode_for_formatter(&vec![b'a'; MAX_FILE_BYTES + 1]), None);
    assert!(decode_for_formatter(&vec![b'a'; MAX_FILE_BYTES]).is_some());
}
