//! Real language servers with the real binary: diagnostics in the results of edits.
//!
//! `WINDLASS_LANGUAGE_SERVERS` is the folder with the servers; `.ci/run` creates it.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests set up files and processes, and fail by panicking"
)]

mod support;

use serde_json::{Value, json};
use std::path::PathBuf;
use support::{TestEnv, decode_output};

/// Returns the outputs of the calls of a tool, in order.
fn outputs_of(facts: &[Value], tool: &str) -> Vec<String> {
    let called = facts.iter().filter(|fact| fact["kind"] == "tool_called" && fact["tool"] == tool);
    let text = |call: &Value| {
        let settled =
            facts.iter().find(|fact| fact["kind"] == "call_settled" && fact["call"] == *call);
        let outcome = &settled.unwrap()["outcome"];
        assert_eq!(outcome["status"], "completed", "{outcome}");
        outcome["output"]["text"].as_str().unwrap().to_owned()
    };
    called.map(|fact| text(&fact["call"])).collect()
}

/// Runs a session in a trusted folder with `files` that adds an error to a file and fixes it again.
/// Returns its facts.
fn run_edit_session(files: &[(&str, &str)], path: &str, (good, bad): (&str, &str)) -> Vec<Value> {
    let call = |tool: &str, arguments: Value| format!("call {tool} {arguments}");
    let edit = |old: &str, new: &str| {
        call("edit", json!({"filePath": path, "oldString": old, "newString": new}))
    };
    let replies = [
        call("read", json!({"filePath": path})),
        call("lsp", json!({"operation": "documentSymbol", "filePath": path})),
        // The server checks the file first.
        format!("late 3000\n{}", edit(good, bad)),
        edit(bad, good),
        "say Done.".to_owned(),
    ];
    let env = TestEnv::new(&replies.each_ref().map(String::as_str), "");
    for (name, text) in files {
        std::fs::write(env.root().join(name), text).unwrap();
    }
    assert_eq!(env.run(&["trust", "--yes"]).0, 0);
    let servers_folder = PathBuf::from(
        std::env::var_os("WINDLASS_LANGUAGE_SERVERS").expect("WINDLASS_LANGUAGE_SERVERS is needed"),
    );
    let system_path = std::env::var("PATH").unwrap();
    let search =
        ["language-servers/bin", "npm/node_modules/.bin"].map(|name| servers_folder.join(name));
    let search = format!("{}:{}:{system_path}", search[0].display(), search[1].display());
    let output = env.windlass(&["run", "Break it, and mend it."]).env("PATH", search).output();
    let (code, _, stderr) = decode_output(&output.unwrap());
    assert_eq!(code, 0, "{stderr}");
    let whole = files.iter().find(|(name, _)| *name == path).unwrap().1;
    assert_eq!(env.read(path).as_deref(), Some(whole), "the file is not restored");
    env.facts()
}

const PYTHON: &str = "def twice(number: int) -> int:\n    return number * 2\n\n\nprint(twice(2))\n";

#[test]
#[ignore = "needs pyright, which CI installs"]
fn an_edit_reports_new_type_errors_and_fixed_ones() {
    let files = [("main.py", PYTHON), ("pyproject.toml", "[project]\nname = \"a\"\n")];
    let facts = run_edit_session(&files, "main.py", ("twice(2)", "twice(\"2\")"));
    let outline = outputs_of(&facts, "lsp");
    assert!(outline[0].contains("twice"), "{outline:?}");
    let edits = outputs_of(&facts, "edit");
    assert!(edits[0].contains("This introduces 1 new error (pyright):"), "{}", edits[0]);
    assert!(edits[0].contains("main.py:5:13: ") && edits[0].contains("[reportArgumentType]"));
    assert!(edits[0].contains("\n    print(twice(\"2\"))"), "{}", edits[0]);
    assert!(edits[1].contains("main.py no longer has errors (pyright)."), "{}", edits[1]);
    let settled = facts.iter().filter(|fact| fact["kind"] == "call_settled");
    let counted: Vec<&Value> = settled
        .map(|fact| &fact["outcome"]["output"]["metadata"]["diagnostics"]["new"])
        .filter(|new| !new.is_null())
        .collect();
    assert_eq!(counted, [&json!(1), &json!(0)], "the metadata has no counts");
}

#[test]
#[ignore = "needs clangd and clang-format, which CI installs"]
fn diagnostics_are_those_of_the_formatted_text() {
    let text = "int twice(int number) { return number * 2; }\nint main() { return twice(2); }\n";
    let files = [
        ("main.cpp", text),
        ("compile_flags.txt", "-std=c++17\n"),
        (".clang-format", "BasedOnStyle: LLVM\n"),
    ];
    let facts = run_edit_session(&files, "main.cpp", ("return twice(2);", "return twice(\"2\");"));
    let edits = outputs_of(&facts, "edit");
    assert!(edits[0].contains("(clangd)") && edits[0].contains("main.cpp:2:"), "{}", edits[0]);
    assert!(edits[1].contains("main.cpp no longer has errors (clangd)."), "{}", edits[1]);
    assert!(
        edits.iter().all(|text| !text.contains("Formatted by")),
        "a formatted file was formatted again"
    );
}

/// A server that only the user's config defines is used, and one that it disables is not.
#[test]
fn a_server_of_the_users_config_is_used() {
    let env = TestEnv::new(&[], "");
    let rogue = concat!(env!("CARGO_MANIFEST_DIR"), "/../lsp/tests/rogue.py");
    std::fs::copy(rogue, env.root().join("rogue.py")).unwrap();
    std::fs::write(env.root().join("a.mine"), "some text\n").unwrap();
    assert_eq!(env.run(&["trust", "--yes"]).0, 0);
    let hover = r#"{"operation": "hover", "filePath": "a.mine", "line": 1, "character": 1}"#;
    let call_with_config = |row: &str| {
        env.write_config(&format!(r#"{{"lsp": {{"mine": {{{row}}}}}}}"#));
        let (_, out, stderr) = env.run(&["tool", "call", "lsp", hover]);
        format!("{out}{stderr}")
    };
    let server = r#""command": ["python3", "rogue.py", "good"], "extensions": {".mine": "mine"}"#;
    let output = call_with_config(server);
    assert!(output.contains("mine found no hover result there"), "{output}");
    let output = call_with_config(&format!(r#"{server}, "enabled": false"#));
    assert!(
        output.contains("no language server is available for .mine files")
            && !output.contains("found no"),
        "{output}"
    );
    let output = call_with_config(r#""command": ["python3", "rogue.py", "good"]"#);
    assert!(output.contains("lsp.mine is skipped: a new entry needs"), "{output}");
    let output = call_with_config(
        r#""command": ["no-such-server"], "extensions": {".mine": "mine"}, "install": "`get it`""#,
    );
    assert!(output.contains("mine is not installed") && output.contains("`get it`"), "{output}");
}

/// A position in place of a query means the name that is there.
#[test]
fn symbols_of_the_workspace_are_found_by_position() {
    let env = TestEnv::new(&[], "");
    let rogue = concat!(env!("CARGO_MANIFEST_DIR"), "/../lsp/tests/rogue.py");
    std::fs::copy(rogue, env.root().join("rogue.py")).unwrap();
    std::fs::write(env.root().join("a.mine"), "let x = grand_total(y)\ndef grand_total\n").unwrap();
    env.write_config(
        r#"{"lsp": {"mine": {"command": ["python3", "rogue.py", "symbols"], "extensions": {".mine": "mine"}}}}"#,
    );
    assert_eq!(env.run(&["trust", "--yes"]).0, 0);
    let call = |line: u32, character: u32| {
        let arguments = json!({"operation": "workspaceSymbol", "filePath": "a.mine",
            "line": line, "character": character});
        let (_, out, stderr) = env.run(&["tool", "call", "lsp", &arguments.to_string()]);
        out + &stderr
    };
    let output = call(1, 12);
    assert!(output.contains("a.mine:2: fn grand_total"), "{output}");
    let output = call(1, 8);
    assert!(output.contains("workspaceSymbol requires query"), "no name is there: {output}");
}
