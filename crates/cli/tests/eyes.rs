//! A model that edits code, with real language servers: what it hears in the result of its edit.
//!
//! The servers are found in the folder that `WINDLASS_EYES` names, as `.ci/run` lays it out.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

mod yard;

use serde_json::{Value, json};
use std::path::PathBuf;
use yard::{Yard, told};

/// What calls of a tool gave, in order.
fn given(facts: &[Value], tool: &str) -> Vec<String> {
    let called = facts.iter().filter(|fact| fact["kind"] == "called" && fact["tool"] == tool);
    let text = |call: &Value| {
        let settled = facts.iter().find(|fact| fact["kind"] == "settled" && fact["call"] == *call);
        let outcome = &settled.unwrap()["outcome"];
        assert_eq!(outcome["status"], "completed", "{outcome}");
        outcome["output"]["text"].as_str().unwrap().to_owned()
    };
    called.map(|fact| text(&fact["call"])).collect()
}

/// A session that breaks a file and mends it again, in a trusted folder with these files.
fn story(files: &[(&str, &str)], path: &str, (good, bad): (&str, &str)) -> Vec<Value> {
    let call = |tool: &str, arguments: Value| format!("call {tool} {arguments}");
    let edit = |old: &str, new: &str| {
        call("edit", json!({"filePath": path, "oldString": old, "newString": new}))
    };
    let replies = [
        call("read", json!({"filePath": path})),
        call("lsp", json!({"operation": "documentSymbol", "filePath": path})),
        edit(good, bad),
        edit(bad, good),
        "say Done.".to_owned(),
    ];
    let yard = Yard::new(&replies.each_ref().map(String::as_str), "");
    for (name, text) in files {
        std::fs::write(yard.root().join(name), text).unwrap();
    }
    assert_eq!(yard.run(&["trust", "--yes"]).0, 0);
    let eyes = PathBuf::from(std::env::var_os("WINDLASS_EYES").expect("WINDLASS_EYES is needed"));
    let own = std::env::var("PATH").unwrap();
    let search = ["eyes/bin", "npm/node_modules/.bin"].map(|name| eyes.join(name));
    let search = format!("{}:{}:{own}", search[0].display(), search[1].display());
    let output = yard.windlass(&["run", "Break it, and mend it."]).env("PATH", search).output();
    let (code, _, notes) = told(&output.unwrap());
    assert_eq!(code, 0, "{notes}");
    let whole = files.iter().find(|(name, _)| *name == path).unwrap().1;
    assert_eq!(yard.read(path).as_deref(), Some(whole), "it is as it was");
    yard.facts()
}

const PYTHON: &str = "def twice(number: int) -> int:\n    return number * 2\n\n\nprint(twice(2))\n";

#[test]
#[ignore = "needs pyright, which CI installs"]
fn a_type_error_is_told_with_the_edit_that_brings_it_and_so_is_its_end() {
    let files = [("main.py", PYTHON), ("pyproject.toml", "[project]\nname = \"a\"\n")];
    let facts = story(&files, "main.py", ("twice(2)", "twice(\"2\")"));
    let outline = given(&facts, "lsp");
    assert!(outline[0].contains("twice"), "{outline:?}");
    let edits = given(&facts, "edit");
    assert!(edits[0].contains("This brings 1 new error (pyright):"), "{}", edits[0]);
    assert!(edits[0].contains("main.py:5:13: ") && edits[0].contains("[reportArgumentType]"));
    assert!(edits[0].contains("\n    print(twice(\"2\"))"), "{}", edits[0]);
    assert!(edits[1].contains("main.py has no errors any more (pyright)."), "{}", edits[1]);
    let settled = facts.iter().filter(|fact| fact["kind"] == "settled");
    let counted: Vec<&Value> = settled
        .map(|fact| &fact["outcome"]["output"]["metadata"]["diagnostics"]["new"])
        .filter(|new| !new.is_null())
        .collect();
    assert_eq!(counted, [&json!(1), &json!(0)], "front ends are told, too");
}

#[test]
#[ignore = "needs clangd and clang-format, which CI installs"]
fn an_edit_is_formatted_first_and_judged_as_it_is_written() {
    let text = "int twice(int number) { return number * 2; }\nint main() { return twice(2); }\n";
    let files = [
        ("main.cpp", text),
        ("compile_flags.txt", "-std=c++17\n"),
        (".clang-format", "BasedOnStyle: LLVM\n"),
    ];
    let facts = story(&files, "main.cpp", ("return twice(2);", "return twice(\"2\");"));
    let edits = given(&facts, "edit");
    assert!(edits[0].contains("(clangd)") && edits[0].contains("main.cpp:2:"), "{}", edits[0]);
    assert!(edits[1].contains("main.cpp has no errors any more (clangd)."), "{}", edits[1]);
    assert!(edits.iter().all(|text| !text.contains("Formatted by")), "it is formatted already");
}

/// A server that only the person's config knows is used, and one that it switches off is not.
#[test]
fn a_row_of_ones_own_is_used() {
    let yard = Yard::new(&[], "");
    let rogue = concat!(env!("CARGO_MANIFEST_DIR"), "/../lsp/tests/rogue.py");
    std::fs::copy(rogue, yard.root().join("rogue.py")).unwrap();
    std::fs::write(yard.root().join("a.mine"), "some text\n").unwrap();
    assert_eq!(yard.run(&["trust", "--yes"]).0, 0);
    let hover = r#"{"operation": "hover", "filePath": "a.mine", "line": 1, "character": 1}"#;
    let configured = |row: &str| {
        yard.write_config(&format!(r#"{{"lsp": {{"mine": {{{row}}}}}}}"#));
        let (_, out, notes) = yard.run(&["tool", "call", "lsp", hover]);
        format!("{out}{notes}")
    };
    let server = r#""command": ["python3", "rogue.py", "good"], "extensions": {".mine": "mine"}"#;
    let said = configured(server);
    assert!(said.contains("mine knows nothing for hover there"), "{said}");
    let said = configured(&format!(r#"{server}, "enabled": false"#));
    assert!(
        said.contains("no language server for .mine files") && !said.contains("knows nothing"),
        "{said}"
    );
    let said = configured(r#""command": ["python3", "rogue.py", "good"]"#);
    assert!(said.contains("lsp.mine is left out: a new row needs"), "{said}");
    let said = configured(
        r#""command": ["no-such-server"], "extensions": {".mine": "mine"}, "install": "`get it`""#,
    );
    assert!(said.contains("mine is not installed") && said.contains("`get it`"), "{said}");
}
