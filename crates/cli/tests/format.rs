//! Formatters with the real binary: in a trusted folder what is written is what they make of it, and
//! in any other nothing of a project is run.
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
use std::process::Command;
use windlass_protocol::BlobRef;
use yard::{Yard, told};

const ALLOWED: &str = r#""permission": "allow""#;
const FILE: &str = "src/a.rs";
const FIRST: &str = "async fn f() -> u8 {\n    1\n}\n";

fn edit(old: &str, new: &str) -> String {
    format!("call edit {}", json!({"filePath": FILE, "oldString": old, "newString": new}))
}

/// A PATH on which rustfmt is no shim that looks for the person's own toolchains.
fn path() -> String {
    let rustc = Command::new("rustc").args(["--print", "sysroot"]).output().unwrap();
    let sysroot = PathBuf::from(String::from_utf8(rustc.stdout).unwrap().trim());
    format!("{}:{}", sysroot.join("bin").display(), std::env::var("PATH").unwrap())
}

fn run(yard: &Yard, arguments: &[&str]) -> (i32, String, String) {
    told(&yard.windlass(arguments).env("PATH", path()).output().unwrap())
}

/// A crate whose model makes two edits, the second of a line that only the formatter wrote.
fn yard() -> Yard {
    let read = format!("call read {}", json!({"filePath": FILE}));
    let (first, second) = (edit("1\n", "g( 1,2 )\n"), edit("    g(1, 2)\n", "g( 3 )\n"));
    let yard = Yard::new(&[&read, &first, &second, "say Done."], ALLOWED);
    std::fs::create_dir_all(yard.root().join("src")).unwrap();
    let manifest = "[package]\nname = \"a\"\nedition = \"2024\"\n";
    std::fs::write(yard.root().join("Cargo.toml"), manifest).unwrap();
    std::fs::write(yard.root().join(FILE), FIRST).unwrap();
    // No server of this machine has a say in it.
    std::fs::write(yard.root().join("windlass.jsonc"), r#"{"lsp": false}"#).unwrap();
    yard
}

fn of_kind(facts: &[Value], kind: &str) -> Vec<Value> {
    facts.iter().filter(|fact| fact["kind"] == kind).cloned().collect()
}

#[test]
fn what_is_on_record_is_what_was_formatted_and_one_step_takes_it_back() {
    let yard = yard();
    assert_eq!(run(&yard, &["trust", "--yes"]).0, 0);
    let (code, _, said) = run(&yard, &["run", "change it"]);
    assert_eq!(code, 0, "{said}");
    let last = "async fn f() -> u8 {\n    g(3)\n}\n";
    assert_eq!(yard.read(FILE).as_deref(), Some(last));
    let facts = yard.facts();
    let changing = of_kind(&facts, "changing");
    assert_eq!(changing.len(), 2, "one batch a call");
    let digest = serde_json::to_value(BlobRef::of(last.as_bytes())).unwrap();
    assert!(changing[1].to_string().contains(digest.as_str().unwrap()), "{}", changing[1]);
    let settled = of_kind(&facts, "settled");
    let said = settled[1]["outcome"]["output"]["text"].as_str().unwrap();
    assert!(said.contains("Formatted by rustfmt") && said.contains("+    g(1, 2)"), "{said}");
    let (_, list, _) = yard.run(&["session", "list", "--json"]);
    let list: Value = serde_json::from_str(&list).unwrap();
    let session = list[0]["session"].as_str().unwrap();
    let (code, _, said) = run(&yard, &["session", "undo", "--yes", session]);
    assert_eq!((code, yard.read(FILE).as_deref()), (0, Some(FIRST)), "{said}");
    let (code, _, said) = run(&yard, &["session", "redo", "--yes", session]);
    assert_eq!((code, yard.read(FILE).as_deref()), (0, Some(last)), "{said}");
}

#[test]
fn in_a_folder_that_nobody_trusts_nothing_is_formatted() {
    let yard = yard();
    let (code, ..) = run(&yard, &["run", "change it"]);
    assert_eq!(code, 0);
    let wanted = "async fn f() -> u8 {\n    g( 1,2 )\n}\n";
    assert_eq!(yard.read(FILE).as_deref(), Some(wanted), "the second edit stands nowhere");
}

#[test]
fn formatters_can_be_left_out() {
    let yard = yard();
    std::fs::write(
        yard.root().join("windlass.jsonc"),
        r#"{"lsp": false, "formatter": {"rustfmt": {"enabled": false}}}"#,
    )
    .unwrap();
    assert_eq!(run(&yard, &["trust", "--yes"]).0, 0);
    assert_eq!(run(&yard, &["run", "change it"]).0, 0);
    assert!(yard.read(FILE).unwrap().contains("g( 1,2 )"));
}

#[test]
fn the_books_formatter_works() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/book/src/formatters.md");
    let page = std::fs::read_to_string(page).unwrap();
    let block = page.split("```sh test\n").nth(1).unwrap().split("```").next().unwrap();
    let yard = Yard::new(&[], ALLOWED);
    let bin = yard.home().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_windlass"), bin.join("windlass")).unwrap();
    let output = Command::new("bash")
        .args(["-euc", block])
        .current_dir(yard.root())
        .env_clear()
        .env("HOME", yard.home())
        .env("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()))
        .output()
        .unwrap();
    let (code, out, said) = told(&output);
    assert_eq!(code, 0, "{out}{said}");
    assert_eq!(yard.read("a.prose").as_deref(), Some("It works.\n"), "{out}{said}");
}
