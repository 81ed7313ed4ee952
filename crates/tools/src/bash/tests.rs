//! What a model is sent. What commands do is tried with the real keeper, in `crates/tools/tests`.

use super::{Input, ending_of, last_line};
use crate::harness;
use serde_json::json;
use windlass_toolkit::Tool;

fn refused(input: serde_json::Value) -> Option<String> {
    let input: Input = serde_json::from_value(input).unwrap();
    input.check().err().map(|failure| failure.text)
}

#[test]
fn what_cannot_be_done_is_refused_before_anything_runs() {
    for (input, words) in [
        (json!({"command": " \n"}), "no command"),
        (json!({"command": "x", "terminal": true}), "set background, too"),
        (json!({"command": "x", "background": true, "outside": true}), "more could be written"),
        (json!({"command": "x", "timeout": 600_001}), "at most 600000"),
    ] {
        let why = refused(input.clone()).unwrap_or_default();
        assert!(why.contains(words), "{input}: {why}");
    }
    for input in [
        json!({"command": "x", "timeout": 600_000}),
        json!({"command": "x", "background": true, "terminal": true}),
        json!({"command": "x", "outside": true}),
    ] {
        assert_eq!(refused(input.clone()), None, "{input}");
    }
}

#[test]
fn an_empty_line_is_no_command_and_anything_else_is() {
    for (text, judged) in
        [("", 0), ("\n", 0), ("\r\n\n", 0), (" ", 1), ("rm -rf .\n", 1), ("\n;x", 1)]
    {
        let input = json!({"id": 1, "action": "write", "input": text});
        let input = serde_json::from_value(input).unwrap();
        assert_eq!(crate::job::Job.access(&input).len(), judged, "{text:?}");
    }
}

#[test]
fn the_last_line_that_says_something_is_shown() {
    assert_eq!(last_line("one\ntwo\n \n\n").as_deref(), Some("two"));
    assert_eq!(last_line("\n \n"), None);
    assert_eq!(last_line(&"ü".repeat(5_000)).unwrap().chars().count(), 200);
}

#[test]
fn a_flood_is_shown_from_where_a_line_begins() {
    assert_eq!(ending_of("one\ntwo".into()), "one\ntwo");
    let shown = ending_of("ünd so\n".repeat(100_000));
    assert!(shown.len() <= super::PIECE && shown.starts_with("ünd"), "{}", shown.len());
    assert_eq!(ending_of("ü".repeat(100_000)).len(), super::PIECE);
}

#[test]
fn the_schema_is_current() {
    harness::check_schema(&super::Bash, expect_test::expect_file!["schema.json"]);
}
