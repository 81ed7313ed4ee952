//! A person at a terminal: a yard, and the binary on its screen.

use crate::yard::Yard;
use std::time::Duration;
use windlass_testkit::terminal::Terminal;

/// Keys, as terminals send them.
pub const ENTER: &str = "\r";
pub const ESC: &str = "\x1b";
pub const ALT_ENTER: &str = "\x1b\r";
pub const ALT_J: &str = "\x1bj";
pub const CTRL_C: &str = "\x03";
pub const CTRL_D: &str = "\x04";
pub const CTRL_F: &str = "\x06";
pub const CTRL_X: &str = "\x18";

/// So long nothing is written once a screen has come to rest.
pub const REST: Duration = Duration::from_millis(120);
/// A question has the keys when nothing was typed for this long.
pub const CALM: Duration = Duration::from_millis(800);

/// A yard, and its screen, ready for a prompt.
pub fn open(replies: &[&str], settings: &str) -> (Yard, Terminal) {
    let yard = Yard::new(replies, settings);
    let terminal = yard.seat().start();
    ready(&terminal);
    (yard, terminal)
}

/// Waits until a prompt can be typed.
#[track_caller]
pub fn ready(terminal: &Terminal) {
    terminal.wait_text(" · m ");
}

/// Types a prompt and sends it.
#[track_caller]
pub fn say(terminal: &Terminal, text: &str) {
    terminal.press(text);
    terminal.wait_text(text);
    terminal.press(ENTER);
}

/// Waits for a question with this over it, until it has the keys, and answers it.
#[track_caller]
pub fn answer(terminal: &Terminal, question: &str, key: &str) {
    terminal.wait_text(question);
    std::thread::sleep(CALM);
    terminal.press(key);
    terminal.wait_gone(question);
}
