//! Prompts while the model works: interrupt, steering, queueing, and continuing a session.

use crate::support::is_attached;
use crate::tui_driver::{ALT_ENTER, CTRL_X, ENTER, ESC, open_tui, send_prompt, wait_until_ready};

#[test]
fn escape_interrupts_the_model_and_keeps_its_text() {
    let (env, terminal) = open_tui(&["say One two \ngate never", "say Welcome back."], "");
    send_prompt(&terminal, "count");
    terminal.wait_text("One two");
    terminal.press(ESC);
    env.model.wait_until_disconnected();
    terminal.wait_text("nterrupted");
    assert!(terminal.text().contains("One two"));
    assert!(!terminal.text().contains("cut off"), "the text was saved: {}", terminal.text());
    drop(terminal);
    let terminal = env.terminal().with(&["--continue"]).start();
    terminal.wait_text("One two");
    send_prompt(&terminal, "go on");
    terminal.wait_text("Welcome back.");
}

#[test]
fn a_steering_prompt_is_sent_at_the_next_step_and_shown_as_queued_before() {
    let replies =
        ["say Reading.\ngate step\ncall read {\"filePath\": \"README.md\"}", "say Heard."];
    let (env, terminal) = open_tui(&replies, "");
    send_prompt(&terminal, "read it");
    env.model.wait_at_gate("step");
    send_prompt(&terminal, "only the title");
    // The prompt is shown separately until it is sent.
    terminal.wait_text("Up: edit queued");
    assert!(terminal.text().contains("only the title"));
    assert_eq!(env.model.requests().len(), 1);
    env.model.open_gate("step");
    terminal.wait_text("Heard.");
    let requests = env.model.requests();
    assert_eq!(requests.len(), 2, "the prompt was not sent in the same turn");
    assert!(requests[1]["messages"].to_string().contains("only the title"));
}

#[test]
fn a_queued_prompt_waits_for_the_end_of_the_turn() {
    let replies = [
        "say Reading.\ngate step\ncall read {\"filePath\": \"README.md\"}",
        "say Read.",
        "say Now the rest.",
    ];
    let (env, terminal) = open_tui(&replies, "");
    send_prompt(&terminal, "read it");
    env.model.wait_at_gate("step");
    terminal.press("then the rest");
    terminal.wait_text("then the rest");
    terminal.press(ALT_ENTER);
    terminal.wait_text("Up: edit queued");
    env.model.open_gate("step");
    terminal.wait_text("Now the rest.");
    let requests = env.model.requests();
    assert!(
        !requests[1]["messages"].to_string().contains("then the rest"),
        "the prompt was sent too early"
    );
    assert!(requests[2]["messages"].to_string().contains("then the rest"));
}

#[test]
fn a_session_continues_after_its_process_was_killed() {
    if is_attached() {
        // The terminal is not the process of the session.
        return;
    }
    let (env, mut terminal) =
        open_tui(&["say One two \nonce gate never\nsay three.", "say And four."], "");
    send_prompt(&terminal, "count");
    terminal.wait_text("One two");
    terminal.signal(rustix::process::Signal::KILL);
    terminal.end();
    let terminal = env.terminal().with(&["--continue"]).start();
    wait_until_ready(&terminal);
    terminal.wait_text("count");
    terminal.wait_text("/retry continues");
    // The log has no text that the model was still writing.
    assert!(!terminal.text().contains("One two"), "{}", terminal.text());
    terminal.wait_text("The answer was cut off; /retry tries again");
    assert_eq!(env.model.requests().len(), 1, "no request is sent before the user asks for it");
    send_prompt(&terminal, "/retry");
    terminal.wait_text("three.");
    send_prompt(&terminal, "more");
    terminal.wait_text("And four.");
}

#[test]
fn a_resumed_session_keeps_its_mode() {
    let (env, terminal) = open_tui(&["say Hello."], r#""mode": "ask""#);
    terminal.press("\x1b[Z");
    terminal.wait_text("auto · m");
    send_prompt(&terminal, "hi");
    terminal.wait_text("Hello.");
    drop(terminal);
    let terminal = env.terminal().with(&["--continue"]).start();
    terminal.wait_text("Hello.");
    terminal.wait_text("auto · m");
}

#[test]
fn a_prompt_can_be_written_in_the_users_editor() {
    let (env, terminal) = {
        let env = crate::support::TestEnv::new(&["say Written."], "");
        let editor = env.home().join("editor");
        std::fs::write(&editor, "#!/bin/sh\nprintf '%s and more' \"$(cat \"$1\")\" > \"$1\"\n")
            .unwrap();
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&editor, executable).unwrap();
        let terminal = env.terminal().set("EDITOR", editor).start();
        wait_until_ready(&terminal);
        (env, terminal)
    };
    terminal.press("this");
    terminal.wait_text("this");
    terminal.press(CTRL_X);
    terminal.wait_text("this and more");
    terminal.press(ENTER);
    terminal.wait_text("Written.");
    let request = env.model.requests()[0]["messages"].to_string();
    assert!(request.contains("this and more"), "{request}");
}

#[test]
fn a_paste_with_line_breaks_is_not_sent() {
    let (env, terminal) = open_tui(&["say Pasted."], "");
    terminal.paste("first line\nsecond line");
    terminal.wait_text("second line");
    assert!(env.model.requests().is_empty());
    terminal.press(ENTER);
    terminal.wait_text("Pasted.");
    let request = env.model.requests()[0]["messages"].to_string();
    assert!(request.contains("first line\\nsecond line"), "{request}");
}
