//! The first run: nothing is set up, and yet there is a way on.

use crate::place::say;
use crate::yard::Yard;

/// A machine without a config.
fn bare() -> Yard {
    let yard = Yard::new(&["say Hello."], "");
    std::fs::remove_file(yard.home().join(".config/windlass/windlass.jsonc")).unwrap();
    yard
}

#[test]
fn without_a_key_or_a_server_it_says_what_can_be_done() {
    let yard = bare();
    let terminal = yard.seat().start();
    terminal.wait_text("ANTHROPIC_API_KEY");
    assert!(terminal.text().contains("anthropic"), "{}", terminal.text());
}

#[test]
fn a_key_in_the_environment_is_found_and_its_model_offered() {
    let yard = bare();
    let terminal = yard.seat().set("ANTHROPIC_API_KEY", "sk-ant-very-secret").start();
    terminal.wait_text("ANTHROPIC_API_KEY");
    terminal.settle(crate::place::REST);
    let text = terminal.text();
    assert!(text.contains("anthropic/"), "{text}");
    assert!(!text.contains("very-secret"), "{text}");
}

#[test]
fn a_wrong_key_and_no_network_are_told_with_what_to_do_and_can_be_tried_again() {
    let replies =
        ["once status 401 {\"error\": {\"message\": \"bad key sk-very-secret\"}}\nsay Better."];
    let yard = Yard::new(&replies, "");
    let terminal = yard.seat().start();
    crate::place::ready(&terminal);
    say(&terminal, "hello");
    terminal.wait_text("key");
    terminal.settle(crate::place::REST);
    assert!(!terminal.text().contains("sk-very-secret"), "{}", terminal.text());
    say(&terminal, "again");
    terminal.wait_text("Better.");

    let yard = Yard::new(&[], "");
    yard.write_config(
        r#"{"model": "scripted/m", "provider": {"scripted": {"api": "openai-chat",
        "base_url": "http://127.0.0.1:9/v1", "api_key": "k", "models": {"m": {}}}}}"#,
    );
    let terminal = yard.seat().start();
    crate::place::ready(&terminal);
    say(&terminal, "hello");
    terminal.wait_text("127.0.0.1:9");
}
