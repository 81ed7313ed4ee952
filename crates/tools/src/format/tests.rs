//! What rows say. What formatters do is tried with real processes, in `tests/format`.

use super::*;
use std::collections::BTreeSet;
use windlass_lsp::Sign;

#[test]
fn rows_are_sound() {
    let text = include_str!("formatters.json");
    let rows: Vec<Row> = serde_json::from_str(text).unwrap();
    assert_eq!(known().len(), rows.len());
    assert!(rows.len() >= 20);
    let mut names = BTreeSet::new();
    for row in &rows {
        let name = &row.name;
        assert!(names.insert(name), "{name} stands there twice");
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
        assert!(!name.is_empty() && name.chars().all(plain), "{name}");
        let program = row.command.first().expect(name);
        assert!(program.chars().all(plain), "{name}: a bare name, looked for in PATH");
        let shell = ['|', '&', ';', '<', '>', '$', '`', '\\', '"', '\'', ' ', '*', '~'];
        assert!(!row.command.iter().any(|word| word.contains(shell)), "{name}");
        for word in &row.command {
            let rest = word.replace("{file}", "").replace("{edition}", "");
            assert!(!rest.contains(['{', '}']), "{name}: {word}");
        }
        assert!(!row.extensions.is_empty() || !row.files.is_empty(), "{name}");
        assert!(row.extensions.iter().all(|end| end.starts_with('.')), "{name}");
        assert!(!row.install.is_empty() && !row.when.is_empty(), "{name}");
        assert!((1_000..=5_000).contains(&row.timeout), "{name}");
    }
}

#[test]
fn a_formatter_knows_its_files_by_their_names() {
    let row: Row = serde_json::from_str(
        r#"{"name": "a", "command": ["a"], "extensions": [".rs"], "files": ["Makefile"],
            "timeout": 99999999}"#,
    )
    .unwrap();
    for known in ["a.rs", "a/b.c.rs", "x/Makefile", "Makefile"] {
        assert!(row.knows(known), "{known}");
    }
    for other in ["a.rss", ".rs", "a/.rs", "rs", "a.RS", "xMakefile", "a.rs/b", ""] {
        assert!(!row.knows(other), "{other}");
    }
    assert_eq!(row.timeout(), std::time::Duration::from_secs(10), "nobody waits for longer");
    assert!(
        serde_json::from_str::<Row>(r#"{"name": "a", "command": ["a"], "comand": 1}"#).is_err()
    );
    assert_eq!(row.when, Vec::<Sign>::new());
}

#[test]
fn only_text_in_utf_8_is_given_to_a_formatter() {
    assert_eq!(readable("\u{feff}a".as_bytes()), Some((MARK, "a")));
    assert_eq!(readable(b"a\r\n"), Some(("", "a\r\n")));
    assert_eq!(readable(b"\xff"), None);
    assert_eq!(readable(&vec![b'a'; LARGEST + 1]), None);
    assert!(readable(&vec![b'a'; LARGEST]).is_some());
}
