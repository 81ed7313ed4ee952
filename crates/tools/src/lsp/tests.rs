//! What a model is sent, and what answers look like. What servers know is tried with real ones, in
//! `crates/lsp/tests/real`.

use super::{Input, Lsp, render};
use crate::harness;
use serde_json::{Value, json};
use windlass_lsp::{Answer, Located};
use windlass_protocol::Access;
use windlass_toolkit::{Scene, Tool};

fn input(value: Value) -> Input {
    serde_json::from_value(value).unwrap()
}

#[test]
fn the_schema_is_what_a_model_is_sent() {
    harness::check_schema(&Lsp { code: None }, expect_test::expect_file!["schema.json"]);
}

#[test]
fn what_is_missing_is_asked_for_with_an_example() {
    for (value, words) in [
        (json!({"operation": "hover"}), "hover needs filePath, line and character"),
        (
            json!({"operation": "hover", "filePath": "a.rs", "line": 0, "character": 1}),
            "count from 1",
        ),
        (
            json!({"operation": "incomingCalls", "filePath": "", "line": 1, "character": 1}),
            "\"line\": 12",
        ),
        (
            json!({"operation": "documentSymbol"}),
            "such as {\"operation\": \"documentSymbol\", \"filePath\"",
        ),
        (json!({"operation": "workspaceSymbol", "filePath": "a.rs"}), "needs query"),
        (json!({"operation": "symbols", "query": "  "}), "\"query\": \"parse\""),
    ] {
        let why = input(value.clone()).question().unwrap_err().text;
        assert!(why.contains(words), "{value}: {why}");
    }
}

#[test]
fn it_touches_the_file_it_is_asked_about_and_no_other() {
    let lsp = Lsp { code: None };
    let access = |value: Value| lsp.access(&input(value));
    let read = Access::Read { path: "a.rs".into() };
    let search = Access::Search { path: ".".into() };
    assert_eq!(
        access(json!({"operation": "hover", "filePath": "a.rs"})),
        std::slice::from_ref(&read)
    );
    assert_eq!(
        access(json!({"operation": "symbols", "query": "x", "filePath": "a.rs"})),
        std::slice::from_ref(&search)
    );
    assert_eq!(
        access(json!({"operation": "workspaceSymbol", "query": "x", "filePath": "a.rs"})),
        [search, read]
    );
}

fn located(path: &str, line: u32, what: &str, source: &str) -> Located {
    let (what, source) = (what.to_owned(), source.to_owned());
    Located { path: path.to_owned(), line, character: 5, what, source, depth: 0 }
}

#[test]
fn answers_look_like_what_is_known_from_other_tools() {
    let shown = |operation: &str, found: Vec<Located>, notes: &[&str]| {
        let notes = notes.iter().map(|note| (*note).to_owned()).collect();
        let answer = Answer { found, prose: String::new(), notes };
        render(&input(json!({"operation": operation, "query": "parse"})), &answer)
    };
    let places = vec![
        located("a.rs", 3, "", "f();"),
        located("/usr/vec.rs", 9, "", ""),
        located("jdt:x", 1, "", ""),
    ];
    assert_eq!(
        shown("findReferences", places, &["and 3 more; narrow the question"]),
        "a.rs:3:5: f();\n/usr/vec.rs:9:5 (outside of the project)\njdt:x:1:5\n[and 3 more; narrow the question]"
    );
    assert_eq!(
        shown("incomingCalls", vec![located("a.rs", 3, "in fn main", "f();")], &[]),
        "a.rs:3:5: in fn main\n    f();"
    );
    let inner = Located { depth: 1, ..located("a.rs", 4, "method f", "") };
    assert_eq!(
        shown("documentSymbol", vec![located("a.rs", 3, "class A", ""), inner], &[]),
        "3: class A\n  4: method f"
    );
    assert_eq!(
        shown("workspaceSymbol", vec![located("a.rs", 3, "fn parse", "x")], &[]),
        "a.rs:3: fn parse"
    );
    let found = vec![
        located("b.rs", 1, "", "one"),
        located("a.rs", 2, "fn parse", ""),
        located("b.rs", 9, "", "two"),
    ];
    assert_eq!(shown("symbols", found, &[]), "b.rs\n1: one\n9: two\na.rs\n2: fn parse");
    assert_eq!(
        shown("hover", Vec::new(), &["pyright knows nothing for hover there"]),
        "pyright knows nothing for hover there"
    );
    assert_eq!(
        shown("symbols", Vec::new(), &[]),
        "Nothing is called parse. Try a part of the name, or grep."
    );
}

#[test]
fn it_is_not_offered_where_there_are_no_servers() {
    assert!(!Lsp { code: None }.offered(&Scene::default()));
}
