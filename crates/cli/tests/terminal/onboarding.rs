//! The first run, without a config or a key.

use crate::support::TestEnv;
use crate::tui_driver::send_prompt;

/// Creates a [`TestEnv`] without a config.
fn env_without_config() -> TestEnv {
    let env = TestEnv::new(&["say Hello."], "");
    std::fs::remove_file(env.home().join(".config/windlass/windlass.jsonc")).unwrap();
    env
}

#[test]
fn without_a_key_or_a_local_server_the_possible_keys_are_shown() {
    let env = env_without_config();
    let terminal = env.terminal().start();
    terminal.wait_text("ANTHROPIC_API_KEY");
    assert!(terminal.text().contains("Anthropic"), "{}", terminal.text());
}

#[test]
fn a_key_in_the_environment_is_found_and_its_model_is_offered() {
    let env = env_without_config();
    let terminal = env.terminal().set("ANTHROPIC_API_KEY", "sk-ant-very-secret").start();
    terminal.wait_text("ANTHROPIC_API_KEY");
    terminal.settle(crate::tui_driver::QUIET_TIME);
    let text = terminal.text();
    assert!(text.contains("anthropic/"), "{text}");
    assert!(!text.contains("very-secret"), "{text}");
}

#[test]
fn an_invalid_key_and_an_unreachable_server_are_reported_and_can_be_retried() {
    let replies =
        ["once status 401 {\"error\": {\"message\": \"bad key sk-very-secret\"}}\nsay Better."];
    let env = TestEnv::new(&replies, "");
    let terminal = env.terminal().start();
    crate::tui_driver::wait_until_ready(&terminal);
    send_prompt(&terminal, "hello");
    terminal.wait_text("key");
    terminal.settle(crate::tui_driver::QUIET_TIME);
    assert!(!terminal.text().contains("sk-very-secret"), "{}", terminal.text());
    send_prompt(&terminal, "again");
    terminal.wait_text("Better.");

    let env = TestEnv::new(&[], "");
    env.write_config(
        r#"{"model": "scripted/m", "provider": {"scripted": {"api": "openai-chat",
        "base_url": "http://127.0.0.1:9/v1", "api_key": "k", "models": {"m": {}}}}}"#,
    );
    let terminal = env.terminal().start();
    crate::tui_driver::wait_until_ready(&terminal);
    send_prompt(&terminal, "hello");
    terminal.wait_text("127.0.0.1:9");
}
