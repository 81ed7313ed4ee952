//! Talking while the model works: stopping it, steering it, asking for more, and coming back.

use crate::place::{ALT_ENTER, CTRL_X, ENTER, ESC, open, ready, say};

#[test]
fn escape_stops_the_model_in_mid_sentence_and_what_it_said_stays() {
    let (yard, terminal) = open(&["say One two \ngate never", "say Welcome back."], "");
    say(&terminal, "count");
    terminal.wait_text("One two");
    terminal.press(ESC);
    yard.model.wait_until_nobody_listens();
    terminal.wait_text("nterrupted");
    assert!(terminal.text().contains("One two"));
    say(&terminal, "go on");
    terminal.wait_text("Welcome back.");
}

#[test]
fn a_word_in_between_is_heard_at_the_next_step_and_shown_as_such() {
    let replies =
        ["say Reading.\ngate step\ncall read {\"filePath\": \"README.md\"}", "say Heard."];
    let (yard, terminal) = open(&replies, "");
    say(&terminal, "read it");
    yard.model.wait_at_gate("step");
    say(&terminal, "only the title");
    // It is not yet with the model, and stands apart until it is.
    terminal.wait_text("Up takes back");
    assert!(terminal.text().contains("only the title"));
    assert_eq!(yard.model.requests().len(), 1);
    yard.model.open_gate("step");
    terminal.wait_text("Heard.");
    let requests = yard.model.requests();
    assert_eq!(requests.len(), 2, "it was a step of the same turn");
    assert!(requests[1]["messages"].to_string().contains("only the title"));
}

#[test]
fn what_is_queued_waits_for_the_end_of_the_turn() {
    let replies = [
        "say Reading.\ngate step\ncall read {\"filePath\": \"README.md\"}",
        "say Read.",
        "say Now the rest.",
    ];
    let (yard, terminal) = open(&replies, "");
    say(&terminal, "read it");
    yard.model.wait_at_gate("step");
    terminal.press("then the rest");
    terminal.wait_text("then the rest");
    terminal.press(ALT_ENTER);
    terminal.wait_text("Up takes back");
    yard.model.open_gate("step");
    terminal.wait_text("Now the rest.");
    let requests = yard.model.requests();
    assert!(!requests[1]["messages"].to_string().contains("then the rest"), "it came too early");
    assert!(requests[2]["messages"].to_string().contains("then the rest"));
}

#[test]
fn a_session_goes_on_after_its_process_was_killed() {
    let (yard, mut terminal) =
        open(&["say One two \nonce gate never\nsay three.", "say And four."], "");
    say(&terminal, "count");
    terminal.wait_text("One two");
    terminal.signal(rustix::process::Signal::KILL);
    terminal.end();
    let terminal = yard.seat().with(&["--continue"]).start();
    ready(&terminal);
    terminal.wait_text("count");
    terminal.wait_text("three.");
    say(&terminal, "more");
    terminal.wait_text("And four.");
}

#[test]
fn a_prompt_can_be_written_in_the_persons_editor() {
    let (yard, terminal) = {
        let yard = crate::yard::Yard::new(&["say Written."], "");
        let editor = yard.home().join("editor");
        std::fs::write(&editor, "#!/bin/sh\nprintf '%s and more' \"$(cat \"$1\")\" > \"$1\"\n")
            .unwrap();
        let run = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&editor, run).unwrap();
        let terminal = yard.seat().set("EDITOR", editor).start();
        ready(&terminal);
        (yard, terminal)
    };
    terminal.press("this");
    terminal.wait_text("this");
    terminal.press(CTRL_X);
    terminal.wait_text("this and more");
    terminal.press(ENTER);
    terminal.wait_text("Written.");
    let said = yard.model.requests()[0]["messages"].to_string();
    assert!(said.contains("this and more"), "{said}");
}

#[test]
fn a_paste_is_one_piece_and_sends_nothing() {
    let (yard, terminal) = open(&["say Pasted."], "");
    terminal.paste("first line\nsecond line");
    terminal.wait_text("second line");
    assert!(yard.model.requests().is_empty());
    terminal.press(ENTER);
    terminal.wait_text("Pasted.");
    let said = yard.model.requests()[0]["messages"].to_string();
    assert!(said.contains("first line\\nsecond line"), "{said}");
}
