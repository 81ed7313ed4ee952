//! `windlass` without a terminal, `doctor --json` and `init`, as a person or a script meets them.
#![cfg(unix)]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

mod yard;

use serde_json::Value;
use yard::Yard;

#[test]
fn without_a_terminal_the_screen_points_to_run() {
    let yard = Yard::new(&[], "");
    for arguments in [&[][..], &["--continue"], &["--model", "a/b", "--mode", "plan"]] {
        let (code, out, told) = yard.run(arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{told}");
        assert!(told.contains("windlass run"), "{told}");
    }
}

#[test]
fn options_of_the_screen_do_not_go_before_a_command() {
    let yard = Yard::new(&[], "");
    assert_eq!(yard.run(&["--model", "a/b", "doctor"]).0, 2);
    assert_eq!(yard.run(&["--continue", "--session", "abcd"]).0, 2);
    let (code, help, _) = yard.run(&["--help"]);
    assert_eq!(code, 0);
    for option in ["--continue", "--session", "--linear", "--sandbox", "--agent"] {
        assert!(help.contains(option), "{option}: {help}");
    }
}

#[test]
fn the_doctor_gives_rows_to_a_program() {
    let yard = Yard::new(&[], r#""tui": {"theme": 7}"#);
    let (code, out, told) = yard.run(&["doctor", "--json"]);
    assert_eq!(code, 0, "{told}");
    let rows: Vec<Value> = serde_json::from_str(&out).unwrap();
    let row = |name: &str| rows.iter().filter(|row| row["name"] == name).collect::<Vec<_>>();
    for name in ["windlass", "terminal", "project", "config", "disk", "keys", "model", "git"] {
        assert!(!row(name).is_empty(), "{name}: {out}");
    }
    assert!(row("config").iter().any(|row| row["health"] == "less"), "the wrong theme: {out}");
    assert_eq!(row("model")[0]["note"].as_str().unwrap().split(',').next(), Some("scripted/m"));
    assert!(!out.contains("sk-very-secret"), "{out}");
    yard.write_config("{}");
    let out = yard.run(&["doctor", "--json"]).1;
    let rows: Vec<Value> = serde_json::from_str(&out).unwrap();
    let model = rows.iter().find(|row| row["name"] == "model").unwrap();
    assert_eq!(model["health"], "less", "{out}");
}

#[test]
fn init_writes_agents_md_and_nothing_else() {
    let replies = [
        r##"call write {"filePath": "AGENTS.md", "content": "# Yard\n\nTest with `make`.\n"}"##,
        r#"call write {"filePath": "README.md", "content": "mine now\n"}"#,
        r#"call bash {"command": "touch pwned", "description": "x"}"#,
        "say It holds the command to test.",
    ];
    let yard = Yard::new(&replies, "");
    let (code, out, told) = yard.run(&["init", "mention the tests"]);
    assert!(out.contains("It holds the command"), "{code} {out} {told}");
    assert_eq!(yard.read("AGENTS.md").as_deref(), Some("# Yard\n\nTest with `make`.\n"), "{told}");
    assert_eq!(yard.read("README.md").as_deref(), Some("# Hello\nA small project.\n"));
    assert_eq!(yard.read("pwned"), None);
    let asked = yard.model.requests()[0].to_string();
    assert!(asked.contains("Besides: mention the tests"), "{asked}");
}

#[test]
fn init_that_wrote_nothing_says_so() {
    let yard = Yard::new(&["say I would rather not."], "");
    let (code, _, told) = yard.run(&["init"]);
    assert!(code == 1 && told.contains("was not written"), "{code} {told}");
}
