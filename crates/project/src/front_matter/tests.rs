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
            "description": "Reviews: code # and more", "mode": "subagent", "temperature": 0.1,
            "tools": {"*": false, "read": true},
            "permission": {"edit": "deny", "bash": {"git diff *": "allow", "*": "ask"}},
            "about": "two lines\n", "kept": "one\n  two\n", "list": ["a", "it's"], "inline": ["a", "b"],
        })
    );
    let bash = front.settings["permission"]["bash"].as_object().unwrap();
    assert_eq!(bash.keys().collect::<Vec<_>>(), ["git diff *", "*"], "the last rule decides");
}

#[test]
fn a_text_that_needs_quotes_counts_as_quoted() {
    let text = "name: Writing: Rules\ndescription: Use when: it's needed. `x` #1\n\
                tools: *\nsteps: 5\nlist: [a, b]\npath: @src\nabout: |\n  a: b: c";
    let expected = json!({
        "name": "Writing: Rules", "description": "Use when: it's needed. `x` #1", "tools": "*",
        "steps": 5, "list": ["a", "b"], "path": "@src", "about": "a: b: c\n",
    });
    assert_eq!(settings(text), Ok(expected));
}

#[test]
fn yaml_of_other_agents_is_accepted() {
    let text = "description: plain text\n  over two lines\nhooks:\n  - matcher: Edit\n    \
                command: x\npermission: {edit: deny, bash: {\"git *\": allow}}";
    let expected = json!({
        "description": "plain text over two lines", "hooks": [{"matcher": "Edit", "command": "x"}],
        "permission": {"edit": "deny", "bash": {"git *": "allow"}},
    });
    assert_eq!(settings(text), Ok(expected));
}

#[test]
fn invalid_yaml_is_an_error_with_its_line() {
    let deep = format!("a: {}{}", "[".repeat(9_000), "]".repeat(9_000));
    for (yaml, line) in [
        ("a: 1\na: 2", 3),
        ("a: \"open", 2),
        ("a: 'x' y", 2),
        ("just words", 2),
        ("a: 1\n  b: 2", 3),
        ("a:\n    b: 1\n  c: 2", 4),
        ("a:\n\tb: 1", 3),
        ("- a", 2),
        (&deep, 2),
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
    fn a_quoted_text_parses_back(text in "[ -~\u{e0}-\u{2000}\u{4e00}-\u{9fff}]{0,20}") {
        let quoted = format!("a: '{}'", text.replace('\'', "''"));
        prop_assert_eq!(settings(&quoted), Ok(json!({"a": text})));
    }
}
