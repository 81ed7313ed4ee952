//! Tests of the schema, the parsed input and the rendered answers. `crates/lsp/tests/real` tests
//! with real servers.

use super::{LspInput, LspTool, render_answer};
use crate::case_runner;
use serde_json::{Value, json};
use windlass_lsp::{CodeLocation, CodeQueryAnswer};
use windlass_protocol::ToolAccess;
use windlass_toolkit::{StepContext, Tool};

fn input(value: Value) -> LspInput {
    serde_json::from_value(value).unwrap()
}

#[test]
fn the_schema_is_current() {
    case_runner::check_schema(
        &LspTool { language_servers: None },
        expect_test::expect_file!["schema.json"],
    );
}

#[test]
fn missing_fields_are_reported_with_an_example() {
    for (value, expected) in [
        (json!({"operation": "hover"}), "hover requires filePath, line and character"),
        (
            json!({"operation": "hover", "filePath": "a.rs", "line": 0, "character": 1}),
            "counted from 1",
        ),
        (
            json!({"operation": "incomingCalls", "filePath": "", "line": 1, "character": 1}),
            "\"line\": 12",
        ),
        (
            json!({"operation": "documentSymbol"}),
            "for example {\"operation\": \"documentSymbol\", \"filePath\"",
        ),
        (json!({"operation": "workspaceSymbol", "filePath": "a.rs"}), "requires query"),
        (json!({"operation": "symbols", "query": "  "}), "\"query\": \"parse\""),
    ] {
        let message = input(value.clone()).to_code_query().unwrap_err().text;
        assert!(message.contains(expected), "{value}: {message}");
    }
}

#[test]
fn access_covers_only_the_queried_file() {
    let lsp = LspTool { language_servers: None };
    let access = |value: Value| lsp.access(&input(value));
    let read = ToolAccess::Read { path: "a.rs".into() };
    let search = ToolAccess::Search { path: ".".into() };
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

fn location(path: &str, line: u32, label: &str, source_line: &str) -> CodeLocation {
    CodeLocation {
        path: path.to_owned(),
        line,
        character: 5,
        label: label.to_owned(),
        source_line: source_line.to_owned(),
        depth: 0,
    }
}

#[test]
fn answers_are_rendered_like_the_output_of_other_tools() {
    let render = |operation: &str, locations: Vec<CodeLocation>, notes: &[&str]| {
        let notes = notes.iter().map(|note| (*note).to_owned()).collect();
        let answer = CodeQueryAnswer { locations, prose: String::new(), notes };
        render_answer(&input(json!({"operation": operation, "query": "parse"})), &answer)
    };
    let references = vec![
        location("a.rs", 3, "", "f();"),
        location("/usr/vec.rs", 9, "", ""),
        location("jdt:x", 1, "", ""),
    ];
    assert_eq!(
        render("findReferences", references, &["and 3 more; narrow the query"]),
        "a.rs:3:5: f();\n/usr/vec.rs:9:5 (outside the project)\njdt:x:1:5\n[and 3 more; narrow \
         the query]"
    );
    assert_eq!(
        render("incomingCalls", vec![location("a.rs", 3, "in fn main", "f();")], &[]),
        "a.rs:3:5: in fn main\n    f();"
    );
    let inner = CodeLocation { depth: 1, ..location("a.rs", 4, "method f", "") };
    assert_eq!(
        render("documentSymbol", vec![location("a.rs", 3, "class A", ""), inner], &[]),
        "3: class A\n  4: method f"
    );
    assert_eq!(
        render("workspaceSymbol", vec![location("a.rs", 3, "fn parse", "x")], &[]),
        "a.rs:3: fn parse"
    );
    let locations = vec![
        location("b.rs", 1, "", "one"),
        location("a.rs", 2, "fn parse", ""),
        location("b.rs", 9, "", "two"),
    ];
    assert_eq!(render("symbols", locations, &[]), "b.rs\n1: one\n9: two\na.rs\n2: fn parse");
    assert_eq!(
        render("hover", Vec::new(), &["pyright found no hover result there"]),
        "pyright found no hover result there"
    );
    assert_eq!(
        render("symbols", Vec::new(), &[]),
        "No symbol matches parse. Try part of the name, or grep."
    );
}

#[test]
fn it_is_not_offered_without_language_servers() {
    assert!(!LspTool { language_servers: None }.is_offered(&StepContext::default()));
}

#[test]
fn the_name_at_a_position_is_found() {
    for (line, index, expected) in [
        ("let größe_2 = 1;", 4, Some("größe_2")),
        ("let größe_2 = 1;", 11, Some("größe_2")),
        ("let größe_2 = 1;", 12, None),
        ("", 0, None),
        ("a", 9, None),
    ] {
        assert_eq!(super::name_at(line, index).as_deref(), expected, "{line} {index}");
    }
}
