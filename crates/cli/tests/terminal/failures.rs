//! Failed commands and failed turns.

use crate::support::TestEnv;
use crate::tui_driver::{ENTER, open_tui, send_prompt};
use serde_json::json;

/// The reason is on the screen at once, and the turn ends soon.
#[test]
fn a_server_whose_name_does_not_resolve_is_reported_at_once() {
    let env = TestEnv::new(&[], "");
    env.write_config(
        r#"{"model": "lost/m", "provider": {"lost": {"api": "openai-chat", "api_key": "k",
        "base_url": "http://does-not-exist.invalid/v1", "models": {"m": {}}}}}"#,
    );
    let terminal = env.terminal().start();
    crate::tui_driver::wait_until_ready(&terminal);
    crate::tui_driver::send_prompt(&terminal, "hello");
    terminal.wait_text("retrying in 1 s");
    assert!(terminal.text().contains("not found: does-not-exist.invalid"), "{}", terminal.text());
    terminal.wait_text("then use /retry");
}

#[test]
fn a_failed_command_shows_its_exit_code_and_its_last_lines() {
    let command = "for i in 1 2 3 4 5 6 7 8; do echo line-$i; done; echo broken >&2; false";
    let call = format!("call bash {}", json!({"command": command, "description": "Fail"}));
    let (_env, terminal) = open_tui(&[&call, "say It failed."], "");
    send_prompt(&terminal, "run it");
    terminal.wait_text("It failed.");
    let text = terminal.text();
    let headline = text.lines().find(|line| line.contains("exit 1"));
    assert!(headline.is_some_and(|line| line.contains('✗')), "{text}");
    assert!(text.contains("broken") && text.contains("line-8"), "{text}");
    assert!(!text.contains("  line-2\n"), "only the last lines are shown: {text}");
}

#[test]
fn a_failed_turn_is_tried_again_with_enter() {
    let replies = ["once status 400 {\"error\": {\"message\": \"overloaded\"}}\nsay Better now."];
    let (env, terminal) = open_tui(&replies, "");
    send_prompt(&terminal, "hello");
    terminal.wait_text("press Enter to try again");
    terminal.press(ENTER);
    terminal.wait_text("Better now.");
    let messages = env.model.requests().last().unwrap()["messages"].to_string();
    assert!(messages.contains("continue"), "{messages}");
    terminal.wait_gone("press Enter to try again");
}

#[test]
fn the_commands_of_a_run_name_the_exit_code() {
    let call = format!("call bash {}", json!({"command": "ls missing-file", "description": "x"}));
    let env = crate::support::TestEnv::new(&[&call, "say Done."], "");
    let (_, _, stderr) = env.run(&["run", "list it"]);
    assert!(
        stderr.lines().any(|line| line.starts_with("✗ bash") && line.contains("exit ")),
        "{stderr}"
    );
}
