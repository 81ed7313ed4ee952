//! Keys of the kitty protocol, the mouse, focus reports and the vi keys.

use crate::tui_driver::{ENTER, ESC, QUIET_TIME, open_tui, send_prompt, wait_until_ready};

/// Shift+Enter, as terminals with the kitty protocol or `modifyOtherKeys` send it.
const SHIFT_ENTER: &str = "\x1b[13;2u";

/// Returns the report of a mouse button at a cell, counted from 0.
fn mouse_report(button: u8, (column, row): (usize, usize)) -> String {
    format!("\x1b[<{button};{};{}M", column + 1, row + 1)
}

#[test]
fn shift_enter_begins_a_new_line_and_alt_enter_queues() {
    let (env, terminal) = open_tui(&["say Two lines."], "");
    terminal.press("first");
    terminal.press(SHIFT_ENTER);
    terminal.press("second");
    terminal.wait_text("second");
    assert!(env.model.requests().is_empty(), "Shift+Enter does not send");
    terminal.press("\x1b[13;3u");
    terminal.wait_text("Two lines.");
    let request = env.model.requests()[0]["messages"].to_string();
    assert!(request.contains("first\\nsecond"), "{request}");
}

#[test]
fn keys_of_the_kitty_protocol_keep_their_meaning() {
    let (_env, terminal) = open_tui(&[], "");
    terminal.press("word");
    terminal.wait_text("word");
    // Ctrl+A, then Ctrl+C.
    terminal.press("\x1b[97;5ux");
    terminal.wait_text("xword");
    terminal.press("\x1b[99;5u");
    terminal.wait_gone("xword");
    terminal.press("@R");
    terminal.wait_text("README.md");
    terminal.press("\x1b[27u");
    terminal.wait_gone("README.md");
}

#[test]
fn the_wheel_scrolls_and_a_click_opens_a_call() {
    let lines: String = (1..=60).map(|number| format!("row {number}\\n\\n")).collect();
    let replies =
        ["call bash {\"command\": \"echo hidden-output\"}", &format!("say {lines}the end")];
    let (_env, terminal) = open_tui(&replies, r#""permission": "allow""#);
    send_prompt(&terminal, "go");
    terminal.wait_text("the end");
    assert!(!terminal.text().contains("Run echo"), "{}", terminal.text());
    for _ in 0..60 {
        terminal.press(&mouse_report(64, (10, 5)));
    }
    terminal.wait_text("Run echo");
    terminal.settle(QUIET_TIME);
    let row = terminal.text().lines().position(|line| line.contains("Run echo")).unwrap();
    let rows_before = terminal.text().matches("hidden-output").count();
    terminal.press(&mouse_report(0, (10, row)));
    terminal.wait_for("the output of the call", |screen| {
        screen.contents().matches("hidden-output").count() > rows_before
    });
    for _ in 0..60 {
        terminal.press(&mouse_report(65, (10, 5)));
    }
    terminal.wait_text("the end");
}

#[test]
fn the_mouse_can_be_left_to_the_terminal() {
    let mode = |terminal: &windlass_testkit::terminal::Terminal| {
        terminal.look(|screen| format!("{:?}", screen.mouse_protocol_mode()))
    };
    let (_env, terminal) = open_tui(&[], "");
    assert_ne!(mode(&terminal), "None");
    let (_env, terminal) = open_tui(&[], r#""tui": {"mouse": false}"#);
    assert_eq!(mode(&terminal), "None");
}

#[test]
fn the_user_is_notified_only_while_the_terminal_is_not_focused() {
    let (env, terminal) = open_tui(&["say Done one.", "gate two\nsay Done two."], "");
    terminal.press("\x1b[I");
    send_prompt(&terminal, "first");
    terminal.wait_text("Done one.");
    terminal.settle(QUIET_TIME);
    assert_eq!(terminal.effects().bells, 0);
    send_prompt(&terminal, "second");
    env.model.wait_at_gate("two");
    terminal.press("\x1b[O");
    terminal.settle(QUIET_TIME);
    env.model.open_gate("two");
    terminal.wait_text("Done two.");
    terminal.settle(QUIET_TIME);
    let effects = terminal.effects();
    assert_eq!(effects.bells, 1);
    assert!(effects.titles.iter().any(|title| title.starts_with("● ")), "{:?}", effects.titles);
    assert!(effects.titles.last().is_some_and(|title| !title.starts_with("● ")));
}

#[test]
fn vi_keys_edit_the_prompt_if_they_are_switched_on() {
    let (env, terminal) = open_tui(&["say Edited."], r#""tui": {"vim": true}"#);
    wait_until_ready(&terminal);
    terminal.wait_text("INSERT");
    terminal.press("delete this word");
    terminal.wait_text("delete this word");
    terminal.press(ESC);
    terminal.wait_text("NORMAL");
    terminal.press("0wdw");
    terminal.wait_text("delete word");
    terminal.press(ENTER);
    terminal.wait_text("Edited.");
    let request = env.model.requests()[0]["messages"].to_string();
    assert!(request.contains("delete word"), "{request}");
}
