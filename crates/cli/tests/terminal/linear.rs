//! The linear mode: everything as lines, from the first prompt to the last.

use crate::place::{CTRL_C, CTRL_D, ENTER};
use crate::yard::Yard;
use serde_json::json;
use windlass_testkit::terminal::Terminal;

fn open(yard: &Yard) -> Terminal {
    let terminal = yard.seat().with(&["--linear"]).sized(100, 120).start();
    terminal.wait_text("ready");
    terminal
}

/// Types a line, and waits for what comes of it.
#[track_caller]
fn say(terminal: &Terminal, line: &str, awaited: &str) {
    terminal.press(line);
    terminal.press(ENTER);
    terminal.wait_text(awaited);
}

#[test]
fn a_task_with_questions_an_edit_and_its_undo_is_all_lines() {
    let asks = json!({"questions": [
        {"header": "Store", "question": "Where?", "options": [{"label": "Here"}, {"label": "There"}],
         "custom": false},
        {"header": "Checks", "question": "Which?", "multiple": true,
         "options": [{"label": "Format"}, {"label": "Lint"}, {"label": "Tests", "description": "slow"}]},
    ]});
    let write = json!({"filePath": "a.txt", "content": "made\n"});
    let replies =
        [format!("call question {asks}"), format!("call write {write}"), "say Done.".into()];
    let yard = Yard::new(&replies.each_ref().map(String::as_str), "");
    std::fs::write(yard.root().join("windlass.jsonc"), r#"{"titles": true}"#).unwrap();
    let terminal = open(&yard);
    say(&terminal, "do it", "question: The model asks, 1 of 2");
    say(&terminal, "3", "that is none of the answers");
    say(&terminal, "2", "  3. Tests: slow");
    say(&terminal, "1, 3", "  a.txt: 1 line added, 0 removed");
    assert_eq!(yard.read("a.txt"), None);
    say(&terminal, "yes", "  Done.");
    assert_eq!(yard.read("a.txt").as_deref(), Some("made\n"));
    let heard = yard.model.requests()[1]["messages"].to_string();
    assert!(heard.contains("There") && heard.contains("Format, Tests"), "{heard}");

    say(&terminal, "/undo", "answer y to have this done");
    say(&terminal, "no", "everything stays as it is");
    assert!(yard.read("a.txt").is_some());
    terminal.press("/undo\r");
    terminal.wait_for("the change once more", |screen| {
        screen.contents().matches("answer y to have this done").count() == 2
    });
    terminal.press("y\r");
    terminal.wait_for("the file taken back", |_| yard.read("a.txt").is_none());
    say(&terminal, "/sessions", "  1. do it");
    say(&terminal, "/trust", "/trust yes trusts it");
    assert!(terminal.text().contains("windlass.jsonc"), "{}", terminal.text());
    say(&terminal, "/trust yes", "this folder is trusted");
    let raw = String::from_utf8_lossy(&terminal.raw()).into_owned();
    assert!(!raw.contains('\x1b'), "nothing is drawn: {raw:?}");
    assert!(!raw.contains(['│', '─', '●']), "{raw}");
    let asked = yard.facts().iter().filter(|fact| fact["kind"] == "answered").count();
    assert_eq!(asked, 2, "one edit, and its undo, which is not asked about twice");
}

#[test]
fn a_stop_a_word_in_between_and_the_ways_out() {
    let replies = ["say One.\\n\\n\ngate first", "say Two.\ngate second", "say Three."];
    let yard = Yard::new(&replies, "");
    let mut terminal = open(&yard);
    terminal.press("go\r");
    yard.model.wait_at_gate("first");
    terminal.wait_text("One.");
    terminal.press(CTRL_C);
    terminal.wait_text("stopped");
    terminal.press("on\r");
    yard.model.wait_at_gate("second");
    say(&terminal, "and this", "the model hears it before its next step");
    yard.model.open_gate("second");
    terminal.wait_for("the end", |screen| screen.contents().contains("  Three.\nready"));
    terminal.press(CTRL_C);
    terminal.wait_text("once more leaves");
    terminal.press(CTRL_D);
    assert!(terminal.end().success());
}
