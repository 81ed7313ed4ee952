//! Keys of the kitty protocol, the mouse, focus reports and the vi keys.

use crate::support::TestEnv;
use crate::tui_driver::{ENTER, ESC, QUIET_TIME, open_tui, send_prompt, wait_until_ready};

/// Shift+Enter, as terminals with the kitty protocol or `modifyOtherKeys` send it.
const SHIFT_ENTER: &str = "\x1b[13;2u";
const CTRL_V: &str = "\x16";
/// The request for the image in the clipboard of the terminal.
const READ_REQUEST: &str = "\x1b]5522;type=read;aW1hZ2UvcG5n\x1b\\";

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

/// Waits until the TUI has written a sequence after `start` bytes.
#[track_caller]
fn wait_for_sequence(terminal: &windlass_testkit::terminal::Terminal, start: usize, text: &str) {
    let is_written = || {
        std::thread::sleep(std::time::Duration::from_millis(5));
        let raw = terminal.raw();
        String::from_utf8_lossy(raw.get(start..).unwrap_or_default()).contains(text)
    };
    assert!((0..1_000).any(|_| is_written()), "{text:?} was not written");
}

#[test]
fn an_image_is_read_from_the_clipboard_of_the_terminal() {
    let env = TestEnv::new(&["say Seen."], "");
    let terminal = env.terminal().knowing_clipboard().start();
    wait_until_ready(&terminal);
    terminal.settle(QUIET_TIME);
    let raw = String::from_utf8_lossy(&terminal.raw()).into_owned();
    assert!(!raw.contains("5522"), "the terminal is not asked before the key");
    let start = terminal.raw().len();
    terminal.press(CTRL_V);
    wait_for_sequence(&terminal, start, READ_REQUEST);
    terminal.press("\x1b]5522;type=read:status=OK\x1b\\");
    let (first, second) = crate::transcript::FLAG_PNG.split_at(40);
    for part in [first, second] {
        terminal.press(&format!("\x1b]5522;type=read:status=DATA:mime=aW1hZ2UvcG5n;{part}\x1b\\"));
    }
    terminal.press("\x1b]5522;type=read:status=DONE\x1b\\");
    terminal.wait_text("[image:");
    // A reply that was not asked for is not typed.
    terminal.press("\x1b]5522;type=read:status=DATA;aGVsbG8=\x1b\\");
    terminal.press("really");
    terminal.wait_text("really");
    assert!(!terminal.text().contains("5522"), "{}", terminal.text());
}

/// Returns a folder for `PATH` that contains only `setsid`, with which the terminal starts Windlass.
fn folder_without_clipboard_programs(env: &TestEnv) -> std::path::PathBuf {
    let folder = env.home().join("programs");
    std::fs::create_dir(&folder).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    let mut programs = std::env::split_paths(&path).map(|folder| folder.join("setsid"));
    let setsid = programs.find(|program| program.exists()).unwrap();
    std::os::unix::fs::symlink(setsid, folder.join("setsid")).unwrap();
    folder
}

#[test]
fn a_terminal_that_cannot_send_images_leaves_the_reason_of_this_machine() {
    for (display, reason) in [("", "no clipboard available"), (":0", "this needs xclip")] {
        let env = TestEnv::new(&[], "");
        let programs = folder_without_clipboard_programs(&env);
        let terminal = env.terminal().set("DISPLAY", display).set("PATH", programs).start();
        wait_until_ready(&terminal);
        terminal.press(CTRL_V);
        terminal.wait_text(reason);
        terminal.press("still alive");
        terminal.wait_text("still alive");
        assert!(String::from_utf8_lossy(&terminal.raw()).contains("5522"), "it was asked");
    }
}

#[test]
fn the_terminal_is_not_asked_if_a_clipboard_program_ran() {
    use std::os::unix::fs::PermissionsExt as _;
    let env = TestEnv::new(&[], "");
    let programs = folder_without_clipboard_programs(&env);
    let program = programs.join("xclip");
    std::fs::write(&program, "#!/bin/sh\nexit 1\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
    let command = env.terminal().set("DISPLAY", ":0").set("PATH", programs);
    let terminal = command.knowing_clipboard().start();
    wait_until_ready(&terminal);
    terminal.press(CTRL_V);
    terminal.wait_text("the clipboard contains no image");
    assert!(!String::from_utf8_lossy(&terminal.raw()).contains("5522"), "it was asked");
}

#[test]
fn reading_the_clipboard_survives_a_resize_and_ends_with_esc() {
    // Esc as a byte and in the form of kitty, and Ctrl+C.
    for key in [ESC, "\x1b[27u", "\x03"] {
        let env = TestEnv::new(&[], "");
        let terminal = env.terminal().knowing_clipboard().start();
        wait_until_ready(&terminal);
        let start = terminal.raw().len();
        terminal.press(CTRL_V);
        wait_for_sequence(&terminal, start, READ_REQUEST);
        terminal.resize(100, 30);
        terminal.press("dropped");
        std::thread::sleep(2 * QUIET_TIME);
        terminal.press(key);
        // Far less than the time that the terminal has for its answer.
        let time = std::time::Duration::from_secs(5);
        let is_cancelled =
            terminal.reaches(time, |screen| screen.contents().contains("was cancelled"));
        assert!(is_cancelled, "{key:?}: {}", terminal.text());
        terminal.press("still alive");
        terminal.wait_text("still alive");
        assert!(!terminal.text().contains("dropped"), "{}", terminal.text());
    }
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
