//! The first run, without a config or a key.

use crate::support::{TestEnv, is_attached};
use crate::tui_driver::{ENTER, QUESTION_DELAY, send_prompt};
use std::cell::Cell;
use windlass_testkit::terminal::Terminal;

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
    if is_attached() {
        // The server does not have the variables of the terminal.
        return;
    }
    let env = env_without_config();
    let terminal = env.terminal().set("ANTHROPIC_API_KEY", "sk-ant-very-secret").start();
    terminal.wait_text("ANTHROPIC_API_KEY");
    terminal.settle(crate::tui_driver::QUIET_TIME);
    let text = terminal.text();
    assert!(text.contains("anthropic/"), "{text}");
    assert!(!text.contains("very-secret"), "{text}");
}

/// A terminal that counts the keys pressed, apart from the text of the prompt.
struct CountedKeys {
    terminal: Terminal,
    count: Cell<u32>,
}

impl CountedKeys {
    /// Waits for a question, until it accepts keys, and presses a key.
    fn answer(&self, question: &str, key: &str) {
        self.terminal.wait_text(question);
        std::thread::sleep(QUESTION_DELAY);
        self.press(key);
        self.terminal.wait_gone(question);
    }

    fn press(&self, key: &str) {
        self.terminal.press(key);
        self.count.set(self.count.get() + 1);
    }

    /// Types a prompt and sends it, and waits for the answer.
    fn prompt(&self, text: &str, answer: &str) {
        self.terminal.press(text);
        self.terminal.wait_text(text);
        self.press(ENTER);
        self.terminal.wait_text(answer);
    }
}

/// Trust, the choice of the model, and sending: nothing else stands before the first answer.
#[test]
fn with_a_local_server_the_first_answer_takes_three_keys() {
    let env = env_without_config();
    env.write_config(&format!(
        r#"{{"provider": {{"ollama": {{"base_url": "{}"}}}}}}"#,
        env.model.url()
    ));
    let keys = CountedKeys { terminal: env.first_terminal().start(), count: Cell::new(0) };
    keys.answer("Do you trust this folder?", "t");
    keys.answer("Welcome to Windlass", ENTER);
    keys.prompt("hello there", "Hello.");
    assert_eq!(keys.count.get(), 3);
    assert_eq!(env.model.requests()[0]["model"], "qwen3-coder");
}

/// With one API key there is no choice to make: trust, and sending.
#[test]
fn with_an_api_key_the_first_answer_takes_two_keys() {
    if is_attached() {
        // The server does not have the variables of the terminal.
        return;
    }
    let env = env_without_config();
    env.write_config(&format!(
        r#"{{"provider": {{"anthropic": {{"base_url": "{}", "api_key": "{{env:ANTHROPIC_API_KEY}}"}}}}}}"#,
        env.model.url()
    ));
    let command = env.first_terminal().set("ANTHROPIC_API_KEY", "sk-ant-very-secret");
    let keys = CountedKeys { terminal: command.start(), count: Cell::new(0) };
    keys.answer("Do you trust this folder?", "t");
    keys.terminal.wait_text("anthropic/");
    keys.prompt("hello there", "Hello.");
    assert_eq!(keys.count.get(), 2);
    let head = &env.model.request_heads()[0];
    assert!(head.path.ends_with("/messages"), "{}", head.path);
    assert_eq!(head.header("x-api-key"), Some("sk-ant-very-secret"));
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
