//! The TUI in a terminal: how to start it, type prompts and answer questions.

use crate::support::TestEnv;
use std::time::Duration;
use windlass_testkit::terminal::Terminal;

// Keys, as terminals send them.
pub const ENTER: &str = "\r";
pub const ESC: &str = "\x1b";
pub const ALT_ENTER: &str = "\x1b\r";
pub const ALT_J: &str = "\x1bj";
pub const CTRL_C: &str = "\x03";
pub const CTRL_D: &str = "\x04";
pub const CTRL_F: &str = "\x06";
pub const CTRL_X: &str = "\x18";

/// The screen is complete when nothing was written for this time.
pub const QUIET_TIME: Duration = Duration::from_millis(120);
/// A question accepts keys when it was visible for this time.
pub const QUESTION_DELAY: Duration = Duration::from_millis(300);

/// Starts the TUI and waits until a prompt can be typed.
pub fn open_tui(replies: &[&str], settings: &str) -> (TestEnv, Terminal) {
    let env = TestEnv::new(replies, settings);
    let terminal = env.terminal().start();
    wait_until_ready(&terminal);
    (env, terminal)
}

/// Waits until a prompt can be typed.
#[track_caller]
pub fn wait_until_ready(terminal: &Terminal) {
    terminal.wait_text(" · m ");
}

/// Types a prompt and sends it.
#[track_caller]
pub fn send_prompt(terminal: &Terminal, text: &str) {
    terminal.press(text);
    terminal.wait_text(text);
    terminal.press(ENTER);
}

/// Waits for the question with this title, until it accepts keys, and answers it.
#[track_caller]
pub fn answer_question(terminal: &Terminal, question: &str, key: &str) {
    terminal.wait_text(question);
    std::thread::sleep(QUESTION_DELAY);
    terminal.press(key);
    terminal.wait_gone(question);
}
