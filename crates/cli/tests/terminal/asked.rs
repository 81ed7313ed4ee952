//! Being asked: every answer there is, and keys that were meant for something else.

use crate::place::{ENTER, answer, open, say};
use serde_json::json;

fn write(name: &str) -> String {
    format!("call write {}", json!({"filePath": name, "content": "made\n"}))
}

#[test]
fn a_yes_for_the_session_is_not_asked_for_again() {
    let replies = [write("a.txt"), write("a.txt"), "say Done.".to_owned()];
    let (yard, terminal) = open(&replies.each_ref().map(String::as_str), "");
    say(&terminal, "write it twice");
    answer(&terminal, "Change a file", "s");
    terminal.wait_text("Done.");
    assert_eq!(yard.read("a.txt").as_deref(), Some("made\n"));
    assert_eq!(yard.facts().iter().filter(|fact| fact["kind"] == "asked").count(), 1);
}

#[test]
fn a_yes_for_the_project_holds_for_the_next_session() {
    let replies = [write("a.txt"), "say Done.".to_owned()];
    let replies = replies.each_ref().map(String::as_str);
    let (yard, terminal) = open(&replies, "");
    say(&terminal, "write it");
    answer(&terminal, "Change a file", "p");
    terminal.wait_text("Done.");
    drop(terminal);
    std::fs::remove_file(yard.root().join("a.txt")).unwrap();
    let (code, _, told) = yard.run(&["run", "again"]);
    assert_eq!((code, yard.read("a.txt").as_deref()), (0, Some("made\n")), "{told}");
}

#[test]
fn a_no_ends_the_turn_and_a_reason_is_heard() {
    let replies = [write("a.txt"), write("b.txt"), "say I see.".to_owned()];
    let (yard, terminal) = open(&replies.each_ref().map(String::as_str), "");
    say(&terminal, "write it");
    answer(&terminal, "Change a file", "n");
    assert_eq!((yard.model.requests().len(), yard.read("a.txt")), (1, None));
    say(&terminal, "then write another");
    terminal.wait_text("Change a file");
    std::thread::sleep(std::time::Duration::from_millis(800));
    terminal.press("r");
    terminal.press("use tabs, yes");
    terminal.wait_text("use tabs, yes");
    terminal.press(ENTER);
    terminal.wait_text("I see.");
    let heard = yard.model.requests().last().unwrap()["messages"].to_string();
    assert!(heard.contains("use tabs, yes"), "{heard}");
    assert_eq!(yard.read("b.txt"), None);
}

#[test]
fn what_is_typed_for_the_prompt_answers_nothing() {
    let replies = ["say Wait.\ngate ask\n".to_owned() + &write("a.txt"), "say Done.".to_owned()];
    let (yard, terminal) = open(&replies.each_ref().map(String::as_str), "");
    say(&terminal, "write it");
    yard.model.wait_at_gate("ask");
    terminal.press("yes");
    yard.model.open_gate("ask");
    terminal.wait_text("Change a file");
    for key in ["y", "s", "p", " ", "y"] {
        terminal.press(key);
        std::thread::sleep(std::time::Duration::from_millis(60));
    }
    terminal.wait_text("yesysp y");
    std::thread::sleep(std::time::Duration::from_secs(1));
    // What stands in the prompt keeps the keys there.
    terminal.press("y");
    terminal.wait_text("yesysp yy");
    assert_eq!(yard.read("a.txt"), None);
    assert!(yard.facts().iter().all(|fact| fact["kind"] != "answered"));
}

#[test]
fn enter_is_never_a_yes() {
    let replies = [write("a.txt"), "say Done.".to_owned()];
    let (yard, terminal) = open(&replies.each_ref().map(String::as_str), "");
    say(&terminal, "write it");
    terminal.wait_text("Change a file");
    std::thread::sleep(std::time::Duration::from_millis(900));
    terminal.press(ENTER);
    terminal.press(" ");
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(yard.read("a.txt"), None);
}

#[test]
fn several_questions_wait_in_line() {
    let both = format!("{}\n{}", write("a.txt"), write("b.txt"));
    let (yard, terminal) = open(&[&both, "say Done."], "");
    say(&terminal, "write both");
    terminal.wait_text("│ a.txt  +1 -0");
    std::thread::sleep(std::time::Duration::from_millis(900));
    terminal.press("y");
    terminal.wait_text("│ b.txt  +1 -0");
    std::thread::sleep(std::time::Duration::from_millis(900));
    terminal.press("y");
    terminal.wait_text("Done.");
    assert!(yard.read("a.txt").is_some() && yard.read("b.txt").is_some());
}
