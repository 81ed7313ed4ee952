//! Formatters with the real binary: in a trusted folder files are formatted before they are
//! written, and in an untrusted one no formatter runs.
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
use std::process::Command;
use support::{TestEnv, decode_output};
use windlass_protocol::BlobRef;

const ALLOW_ALL: &str = r#""permission": "allow""#;
const FILE: &str = "src/a.rs";
const FIRST: &str = "async fn f() -> u8 {\n    1\n}\n";

fn edit(old: &str, new: &str) -> String {
    format!("call edit {}", json!({"filePath": FILE, "oldString": old, "newString": new}))
}

/// Returns a PATH on which rustfmt is not the rustup proxy, which needs the user's home folder.
fn path_with_rustfmt() -> String {
    let rustc = Command::new("rustc").args(["--print", "sysroot"]).output().unwrap();
    let sysroot = PathBuf::from(String::from_utf8(rustc.stdout).unwrap().trim());
    format!("{}:{}", sysroot.join("bin").display(), std::env::var("PATH").unwrap())
}

fn run(env: &TestEnv, arguments: &[&str]) -> (i32, String, String) {
    decode_output(&env.windlass(arguments).env("PATH", path_with_rustfmt()).output().unwrap())
}

/// Creates a crate and a model that makes two edits. The second one edits a formatted line.
fn create_env() -> TestEnv {
    let read = format!("call read {}", json!({"filePath": FILE}));
    let (first, second) = (edit("1\n", "g( 1,2 )\n"), edit("    g(1, 2)\n", "g( 3 )\n"));
    let env = TestEnv::new(&[&read, &first, &second, "say Done."], ALLOW_ALL);
    std::fs::create_dir_all(env.root().join("src")).unwrap();
    let manifest = "[package]\nname = \"a\"\nedition = \"2024\"\n";
    std::fs::write(env.root().join("Cargo.toml"), manifest).unwrap();
    std::fs::write(env.root().join(FILE), FIRST).unwrap();
    // Language servers of this machine are not used.
    std::fs::write(env.root().join("windlass.jsonc"), r#"{"lsp": false}"#).unwrap();
    env
}

fn facts_of_kind(facts: &[Value], kind: &str) -> Vec<Value> {
    facts.iter().filter(|fact| fact["kind"] == kind).cloned().collect()
}

#[test]
fn the_formatted_text_is_recorded_and_one_undo_reverts_it() {
    let env = create_env();
    assert_eq!(run(&env, &["trust", "--yes"]).0, 0);
    let (code, _, stderr) = run(&env, &["run", "change it"]);
    assert_eq!(code, 0, "{stderr}");
    let last = "async fn f() -> u8 {\n    g(3)\n}\n";
    assert_eq!(env.read(FILE).as_deref(), Some(last));
    let facts = env.facts();
    let changing = facts_of_kind(&facts, "files_changing");
    assert_eq!(changing.len(), 2, "one change per call");
    let digest = serde_json::to_value(BlobRef::for_bytes(last.as_bytes())).unwrap();
    assert!(changing[1].to_string().contains(digest.as_str().unwrap()), "{}", changing[1]);
    let settled = facts_of_kind(&facts, "call_settled");
    let text = settled[1]["outcome"]["output"]["text"].as_str().unwrap();
    assert!(text.contains("Formatted by rustfmt") && text.contains("+    g(1, 2)"), "{text}");
    let (_, list, _) = env.run(&["session", "list", "--json"]);
    let list: Value = serde_json::from_str(&list).unwrap();
    let session = list[0]["session"].as_str().unwrap();
    let (code, _, stderr) = run(&env, &["session", "undo", "--yes", session]);
    assert_eq!((code, env.read(FILE).as_deref()), (0, Some(FIRST)), "{stderr}");
    let (code, _, stderr) = run(&env, &["session", "redo", "--yes", session]);
    assert_eq!((code, env.read(FILE).as_deref()), (0, Some(last)), "{stderr}");
}

#[test]
fn in_an_untrusted_folder_nothing_is_formatted() {
    let env = create_env();
    let (code, ..) = run(&env, &["run", "change it"]);
    assert_eq!(code, 0);
    let wanted = "async fn f() -> u8 {\n    g( 1,2 )\n}\n";
    assert_eq!(env.read(FILE).as_deref(), Some(wanted), "the second edit does not match");
}

#[test]
fn formatters_can_be_disabled() {
    let env = create_env();
    std::fs::write(
        env.root().join("windlass.jsonc"),
        r#"{"lsp": false, "formatter": {"rustfmt": {"enabled": false}}}"#,
    )
    .unwrap();
    assert_eq!(run(&env, &["trust", "--yes"]).0, 0);
    assert_eq!(run(&env, &["run", "change it"]).0, 0);
    assert!(env.read(FILE).unwrap().contains("g( 1,2 )"));
}

#[test]
fn the_formatter_in_the_book_works() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/book/src/formatters.md");
    let page = std::fs::read_to_string(page).unwrap();
    let block = page.split("```sh test\n").nth(1).unwrap().split("```").next().unwrap();
    let env = TestEnv::new(&[], ALLOW_ALL);
    let bin = env.home().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_windlass"), bin.join("windlass")).unwrap();
    let output = Command::new("bash")
        .args(["-euc", block])
        .current_dir(env.root())
        .env_clear()
        .env("HOME", env.home())
        .env("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()))
        .output()
        .unwrap();
    let (code, out, stderr) = decode_output(&output);
    assert_eq!(code, 0, "{out}{stderr}");
    assert_eq!(env.read("a.prose").as_deref(), Some("It works.\n"), "{out}{stderr}");
}
