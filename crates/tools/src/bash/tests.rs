//! Tests of the input and the progress of `bash`. Tests that run commands are in
//! `crates/cli/tests/shell.rs`.

use super::{BashInput, last_line, truncate_to_tail};
use crate::case_runner;
use serde_json::json;
use windlass_toolkit::Tool;

fn validation_error(input: serde_json::Value) -> Option<String> {
    let input: BashInput = serde_json::from_value(input).unwrap();
    input.validate().err().map(|failure| failure.text)
}

#[test]
fn invalid_input_is_rejected() {
    for (input, expected) in [
        (json!({"command": " \n"}), "command is empty"),
        (json!({"command": "x", "terminal": true}), "set background too"),
        (
            json!({"command": "x", "background": true, "outside": true}),
            "input that the user did not see",
        ),
        (json!({"command": "x", "timeout": 600_001}), "the maximum is 600000"),
    ] {
        let error = validation_error(input.clone()).unwrap_or_default();
        assert!(error.contains(expected), "{input}: {error}");
    }
    for input in [
        json!({"command": "x", "timeout": 600_000}),
        json!({"command": "x", "background": true, "terminal": true}),
        json!({"command": "x", "outside": true}),
    ] {
        assert_eq!(validation_error(input.clone()), None, "{input}");
    }
}

#[test]
fn an_empty_line_of_input_needs_no_permission() {
    for (text, access_count) in
        [("", 0), ("\n", 0), ("\r\n\n", 0), (" ", 1), ("rm -rf .\n", 1), ("\n;x", 1)]
    {
        let input = json!({"id": 1, "action": "write", "input": text});
        let input = serde_json::from_value(input).unwrap();
        assert_eq!(crate::job::JobTool.access(&input).len(), access_count, "{text:?}");
    }
}

#[test]
fn the_last_line_that_is_not_blank_is_shown() {
    assert_eq!(last_line("one\ntwo\n \n\n").as_deref(), Some("two"));
    assert_eq!(last_line("\n \n"), None);
    assert_eq!(last_line(&"ü".repeat(5_000)).unwrap().chars().count(), 200);
}

#[test]
fn long_output_is_cut_at_the_start_of_a_line() {
    assert_eq!(truncate_to_tail("one\ntwo".into()), "one\ntwo");
    let shown = truncate_to_tail("ünd so\n".repeat(100_000));
    assert!(
        shown.len() <= super::MAX_OUTPUT_CHUNK_BYTES && shown.starts_with("ünd"),
        "{}",
        shown.len()
    );
    assert_eq!(truncate_to_tail("ü".repeat(100_000)).len(), super::MAX_OUTPUT_CHUNK_BYTES);
}

#[test]
fn the_schema_is_current() {
    case_runner::check_schema(&super::BashTool, expect_test::expect_file!["schema.json"]);
}
