//! The cases of `todowrite`, and what a case cannot hold.

use crate::harness;
use serde_json::json;
use windlass_protocol::Outcome;

windlass_testkit::cases!(harness::run, "todowrite/cases":
    a_list_is_kept_and_shown,
    nobody_is_asked_in_plan_mode,
    what_says_nothing_is_refused,
    models_that_plan_by_themselves_are_not_offered_it,
);

#[test]
fn the_schema_is_current() {
    harness::check_schema(&super::TodoWrite, expect_test::expect_file!["schema.json"]);
}

fn write(todos: &[String]) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    let row =
        |content: &String| json!({"content": content, "status": "pending", "priority": "low"});
    let todos: Vec<_> = todos.iter().map(row).collect();
    harness::call_as(folder.path(), "x/m", "todowrite", &json!({"todos": todos}).to_string())
}

#[test]
fn every_bound_holds_and_what_fits_is_kept_whole() {
    let fits = |todos: &[String]| {
        let outcome = write(todos);
        let list = windlass_protocol::todo::told(&outcome);
        assert!(list.as_ref().is_none_or(|list| list.len() == todos.len()), "{outcome:?}");
        list.is_some()
    };
    assert!(fits(&[]));
    assert!(fits(&vec!["x".repeat(300); 100]));
    assert!(!fits(&vec!["x".to_owned(); 101]), "too many");
    assert!(fits(&["é".repeat(500)]));
    assert!(!fits(&["é".repeat(501)]), "too long");
    // A list that were kept in part would be read back as none at all.
    assert!(!fits(&vec!["é".repeat(500); 100]), "too long altogether");
}

#[test]
fn nothing_in_a_list_reaches_the_screen_as_anything_but_text() {
    let outcome = write(&["a\u{1b}[2J\nb\u{202e}c".to_owned()]);
    let list = windlass_protocol::todo::told(&outcome).unwrap();
    assert!(!list[0].content.contains(['\n', '\u{1b}']), "{:?}", list[0].content);
}
