//! Supported and unsupported front matter, and random input.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use super::*;
use proptest::prelude::*;
use serde_json::json;

fn settings(yaml: &str) -> Result<Value, FrontMatterError> {
    parse_front_matter(&format!("---\n{yaml}\n---\nBody\n")).map(|front| front.settings.into())
}

#[test]
fn settings_are_parsed_in_the_order_of_the_file() {
    let text = "\u{feff}---\r\ndescription: Reviews: code # and more\r\nmode: subagent\r\n\
                temperature: 0.1\r\n\r\n# a comment\r\ntools:\r\n  \"*\": false\r\n  read: true\r\n\
                permission:\r\n  edit: deny\r\n  bash:\r\n    \"git diff *\": allow\r\n    '*': ask\r\n\
                about: >\r\n  two\r\n  lines\r\nkept: |\r\n  one\r\n    two\r\nlist:\r\n- a\r\n- 'it''s'\r\n\
                inline: [a, b]\r\n---\r\n\r\nYou review.\r\n---\r\nReally.\r\n";
    let front = parse_front_matter(text).unwrap();
    assert_eq!(front.body, "You review.\n---\nReally.");
    assert_eq!(
        Value::Object(front.settings.clone()),
        json!({
            "description": "Reviews: code", "mode": "subagent", "temperature": 0.1,
            "tools": {"*": false, "read": true},
            "permission": {"edit": "deny", "bash": {"git diff *": "allow", "*": "ask"}},
            "about": "two lines", "kept": "one\n  two", "list": ["a", "it's"], "inline": ["a", "b"],
        })
    );
    let bash = front.settings["permission"]["bash"].as_object().unwrap();
    assert_eq!(bash.keys().collect::<Vec<_>>(), ["git diff *", "*"], "the last rule decides");
}

#[test]
fn unsupported_yaml_is_an_error_with_its_line() {
    for (yaml, line) in [
        ("a: 1\na: 2", 3),
        ("permission: {edit: deny}", 2),
        ("a: &anchor x", 2),
        ("a: *alias", 2),
        ("a: \"open", 2),
        ("a: 'x' y", 2),
        ("just words", 2),
        ("a: 1\n  b: 2", 3),
        ("a:\n    b: 1\n  c: 2", 4),
        ("a:\n\tb: 1", 3),
        ("- a", 2),
        ("a:\n b:\n  c:\n   d:\n    e:\n     f: 1", 7),
    ] {
        assert_eq!(settings(yaml).map_err(|error| error.line), Err(line), "{yaml}");
    }
    assert_eq!(
        parse_front_matter("---\na: 1\n").map_err(|error| error.line),
        Err(1),
        "front matter that is not closed"
    );
}

#[test]
fn a_file_without_front_matter_is_all_body() {
    for text in ["", "Hello\n---\na: 1\n---\n", " ---\na: 1\n---\n"] {
        let front = parse_front_matter(text).unwrap();
        assert_eq!((front.settings.len(), front.body.as_str()), (0, text.trim()));
    }
}

proptest! {
    #[test]
    fn no_text_panics(text in "(---\n)?([ \t\"':#|>*&\\[{}a-c\u{e9}-]{0,12}\n){0,8}(---\n)?") {
        let _ = parse_front_matter(&text);
    }

    #[test]
    fn a_quoted_text_parses_back(text in "[^\u{0}-\u{1f}]{0,20}") {
        let quoted = format!("a: '{}'", text.replace('\'', "''"));
        prop_assert_eq!(settings(&quoted), Ok(json!({"a": text})));
    }
}
