//! The cases of `todowrite`, and tests that a case file cannot express.

use crate::case_runner;
use serde_json::json;
use windlass_protocol::CallOutcome;

windlass_testkit::cases!(case_runner::run_case, "todowrite/cases":
    a_list_is_stored_and_shown,
    an_unknown_field_is_ignored,
    no_approval_is_needed_in_plan_mode,
    an_empty_item_is_refused,
    gpt_models_are_not_offered_todowrite,
);

#[test]
fn the_schema_is_current() {
    case_runner::check_schema(&super::TodoWriteTool, expect_test::expect_file!["schema.json"]);
}

fn write(todos: &[String]) -> CallOutcome {
    let folder = tempfile::tempdir().unwrap();
    let to_item =
        |content: &String| json!({"content": content, "status": "pending", "priority": "low"});
    let todos: Vec<_> = todos.iter().map(to_item).collect();
    case_runner::call_tool_as(
        folder.path(),
        "x/m",
        "todowrite",
        &json!({"todos": todos}).to_string(),
    )
}

#[test]
fn lists_within_the_limits_are_stored_completely() {
    let is_accepted = |todos: &[String]| {
        let outcome = write(todos);
        let list = windlass_protocol::todo_list::todos_in_outcome(&outcome);
        assert!(list.as_ref().is_none_or(|list| list.len() == todos.len()), "{outcome:?}");
        list.is_some()
    };
    assert!(is_accepted(&[]));
    assert!(is_accepted(&vec!["x".repeat(300); 100]));
    assert!(!is_accepted(&vec!["x".to_owned(); 101]), "too many");
    assert!(is_accepted(&["é".repeat(500)]));
    assert!(!is_accepted(&["é".repeat(501)]), "too long");
    // A truncated list could not be parsed again.
    assert!(!is_accepted(&vec!["é".repeat(500); 100]), "too long in total");
}

#[test]
fn control_characters_are_removed_from_items() {
    let outcome = write(&["a\u{1b}[2J\nb\u{202e}c".to_owned()]);
    let list = windlass_protocol::todo_list::todos_in_outcome(&outcome).unwrap();
    assert!(!list[0].content.contains(['\n', '\u{1b}']), "{:?}", list[0].content);
}
