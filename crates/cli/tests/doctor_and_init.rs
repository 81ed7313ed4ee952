//! `windlass` without a terminal, `windlass doctor --json` and `windlass init`.
#![cfg(unix)]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests set up files and processes, and fail by panicking"
)]

mod support;

use serde_json::Value;
use support::{TestEnv, decode_output};

#[test]
fn without_a_terminal_the_error_points_to_run() {
    let env = TestEnv::new(&[], "");
    for arguments in [&[][..], &["--continue"], &["--model", "a/b", "--mode", "plan"]] {
        let (code, out, stderr) = env.run(arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{stderr}");
        assert!(stderr.contains("windlass run"), "{stderr}");
    }
}

#[test]
fn options_of_the_tui_are_not_allowed_before_a_subcommand() {
    let env = TestEnv::new(&[], "");
    assert_eq!(env.run(&["--model", "a/b", "doctor"]).0, 2);
    assert_eq!(env.run(&["--continue", "--session", "abcd"]).0, 2);
    let (code, help, _) = env.run(&["--help"]);
    assert_eq!(code, 0);
    for option in ["--continue", "--session", "--linear", "--sandbox", "--agent"] {
        assert!(help.contains(option), "{option}: {help}");
    }
}

#[test]
fn doctor_prints_json() {
    let env = TestEnv::new(&[], r#""tui": {"theme": 7}"#);
    let (code, out, stderr) = env.run(&["doctor", "--json"]);
    assert_eq!(code, 0, "{stderr}");
    let rows: Vec<Value> = serde_json::from_str(&out).unwrap();
    let row = |name: &str| rows.iter().filter(|row| row["name"] == name).collect::<Vec<_>>();
    for name in ["windlass", "terminal", "project", "config", "disk", "keys", "model", "git"] {
        assert!(!row(name).is_empty(), "{name}: {out}");
    }
    assert!(
        row("config").iter().any(|row| row["status"] == "degraded"),
        "the invalid theme is not reported: {out}"
    );
    assert_eq!(row("model")[0]["note"].as_str().unwrap().split(',').next(), Some("scripted/m"));
    assert!(!out.contains("sk-very-secret"), "{out}");
    env.write_config("{}");
    let out = env.run(&["doctor", "--json"]).1;
    let rows: Vec<Value> = serde_json::from_str(&out).unwrap();
    let model = rows.iter().find(|row| row["name"] == "model").unwrap();
    assert_eq!(model["status"], "degraded", "{out}");
}

#[test]
fn doctor_marks_each_line_with_its_status() {
    let env = TestEnv::new(&[], r#""tui": {"theme": 7}"#);
    let marks = |env: &TestEnv, lang: &str| {
        let mut command = env.windlass(&["doctor"]);
        let (_, out, stderr) = decode_output(&command.env("LANG", lang).output().unwrap());
        let mark_of = |name: &str| {
            let words =
                |line: &'_ str| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
            let mut lines = out.lines().map(words);
            let line = lines.find(|line| line.ends_with(&format!(" {name}")));
            line.unwrap_or_else(|| panic!("{name}: {out}{stderr}")).replace(&format!(" {name}"), "")
        };
        ["windlass", "model"].map(mark_of)
    };
    assert_eq!(marks(&env, "C.UTF-8"), ["✓", "✓"]);
    assert_eq!(marks(&env, "en_US.ISO-8859-1"), ["+", "+"]);
    env.write_config("{}");
    assert_eq!(marks(&env, "C.UTF-8"), ["✓", "!"]);
    env.write_config(r#"{"model": "nowhere/m"}"#);
    assert_eq!(marks(&env, "C.UTF-8"), ["✓", "✗"]);
    assert_eq!(marks(&env, "en_US.ISO-8859-1"), ["+", "x"]);
}

#[test]
fn doctor_names_the_providers_that_have_a_key() {
    let env = TestEnv::new(&[], "");
    let provider = |key: &str| {
        format!(
            r#"{{"api": "openai-chat", "base_url": "{}", {key} "models": {{"m": {{}}}}}}"#,
            env.model.url()
        )
    };
    let keys = |providers: &str| {
        env.write_config(&format!(r#"{{"model": "gw/m", "provider": {{{providers}}}}}"#));
        let (_, out, stderr) = env.run(&["doctor", "--json"]);
        let rows: Vec<Value> = serde_json::from_str(&out).unwrap();
        let row = rows.iter().find(|row| row["name"] == "keys");
        row.unwrap_or_else(|| panic!("{stderr}"))["note"].as_str().unwrap().to_owned()
    };
    let (with, without) = (provider(r#""api_key": "k","#), provider(""));
    assert_eq!(
        keys(&format!(r#""gw": {without}, "mine": {without}"#)),
        "none for gw, mine (no key needed or set)"
    );
    assert_eq!(keys(&format!(r#""gw": {with}, "mine": {without}"#)), "gw");
}

#[test]
fn init_writes_agents_md_and_nothing_else() {
    let replies = [
        r##"call write {"filePath": "AGENTS.md", "content": "# Project\n\nTest with `make`.\n"}"##,
        r#"call write {"filePath": "README.md", "content": "mine now\n"}"#,
        r#"call bash {"command": "touch pwned", "description": "x"}"#,
        "say It holds the command to test.",
    ];
    let env = TestEnv::new(&replies, "");
    let (code, out, stderr) = env.run(&["init", "mention the tests"]);
    assert!(out.contains("It holds the command"), "{code} {out} {stderr}");
    assert_eq!(
        env.read("AGENTS.md").as_deref(),
        Some("# Project\n\nTest with `make`.\n"),
        "{stderr}"
    );
    assert_eq!(env.read("README.md").as_deref(), Some("# Hello\nA small project.\n"));
    assert_eq!(env.read("pwned"), None);
    let request = env.model.requests()[0].to_string();
    assert!(request.contains("Besides: mention the tests"), "{request}");
}

#[test]
fn init_that_wrote_nothing_fails() {
    let env = TestEnv::new(&["say I would rather not."], "");
    let (code, _, stderr) = env.run(&["init"]);
    assert!(code == 1 && stderr.contains("was not written"), "{code} {stderr}");
}
