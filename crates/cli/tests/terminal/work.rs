//! A task from the first word to the last: answers, edits, commands, agents, jobs, undo.

use crate::place::{CTRL_C, ENTER, ESC, answer, open, ready, say, seat};
use crate::yard::Yard;
use serde_json::json;
use windlass_testkit::{Model, Script};

#[test]
fn a_prompt_is_answered_and_its_markdown_is_drawn() {
    let (_yard, terminal) =
        open(&["say It is **small**:\\n\\n```rust\\nfn main() {}\\n```\\n"], "");
    say(&terminal, "what is here?");
    terminal.wait_text("fn main() {}");
    let text = terminal.text();
    assert!(text.contains("It is small:") && !text.contains("```"), "{text}");
}

#[test]
fn an_edit_is_shown_before_it_is_made_and_can_be_taken_back_after_a_look() {
    let edit = json!({"filePath": "README.md", "oldString": "A small", "newString": "A large"});
    let edit = format!("call edit {edit}");
    let replies = ["call read {\"filePath\": \"README.md\"}", &edit, "say Changed."];
    let (yard, terminal) = open(&replies, "");
    say(&terminal, "make it large");
    terminal.wait_for("both lines of the change", |screen| {
        let text = screen.contents();
        text.contains("A small project.") && text.contains("A large project.")
    });
    assert_eq!(
        yard.read("README.md").unwrap(),
        "# Hello\nA small project.\n",
        "it was made already"
    );
    answer(&terminal, "Change a file", "y");
    terminal.wait_text("Changed.");
    assert_eq!(yard.read("README.md").unwrap(), "# Hello\nA large project.\n");

    say(&terminal, "/undo");
    terminal.wait_text("takes this back");
    terminal.press(ENTER);
    terminal.settle(crate::place::REST);
    assert_eq!(yard.read("README.md").unwrap(), "# Hello\nA large project.\n", "nobody said yes");
    say(&terminal, "/undo");
    terminal.wait_text("takes this back");
    // Who said yes to what they saw is not asked again.
    terminal.press("y");
    let back = || yard.read("README.md").unwrap() == "# Hello\nA small project.\n";
    terminal.wait_for("the file as it was", |_| back());
}

#[test]
fn a_command_is_seen_while_it_runs_and_stopped_with_the_turn() {
    let command = json!({"command": "echo begun; sleep 60007", "description": "d"});
    let (_yard, terminal) =
        open(&[&format!("call bash {command}"), "say On."], r#""permission": "allow""#);
    say(&terminal, "go");
    terminal.wait_text("begun");
    terminal.press(CTRL_C);
    terminal.wait_text("nterrupted");
    say(&terminal, "and now?");
    terminal.wait_text("On.");
}

#[test]
fn what_an_agent_does_is_seen_and_can_be_looked_into() {
    let work = r#"call task {"description": "count things", "prompt": "do it", "subagent_type": "helper"}"#;
    let yard = Yard::new(&[work, "say Over."], "");
    let child = Model::start(Script::new([
        "call read {\"filePath\": \"README.md\"}",
        "say Two lines.\ngate look\nsay  Yes.",
    ]));
    let provider = |url: String| json!({"api": "openai-chat", "base_url": url, "api_key": "k", "models": {"m": {}}});
    let config = json!({"model": "scripted/m", "permission": "allow",
        "provider": {"scripted": provider(yard.model.url()), "child": provider(child.url())}});
    yard.write_config(&config.to_string());
    let agents = yard.home().join(".config/windlass/agents");
    std::fs::create_dir_all(&agents).unwrap();
    let text = "---\ndescription: Helps\nmode: subagent\nmodel: child/m\n---\nYou help.\n";
    std::fs::write(agents.join("helper.md"), text).unwrap();
    let terminal = seat(&yard).start();
    ready(&terminal);
    say(&terminal, "have it counted");
    child.wait_at_gate("look");
    terminal.wait_text("count things");
    say(&terminal, "/agents");
    terminal.wait_text("helper");
    terminal.press(ENTER);
    terminal.wait_text("Read README.md");
    child.open_gate("look");
    terminal.wait_text("Two lines. Yes.");
    terminal.press(ESC);
    terminal.wait_text("Over.");
}

#[test]
fn a_job_in_the_background_is_counted_and_listed() {
    let job = json!({"command": "echo job begun; sleep 60008", "background": true});
    let replies = [format!("call bash {job}"), "say It runs.".to_owned()];
    let (_yard, terminal) =
        open(&replies.each_ref().map(String::as_str), r#""permission": "allow""#);
    say(&terminal, "start it");
    terminal.wait_text("It runs.");
    terminal.wait_text("1 job");
    say(&terminal, "/jobs");
    terminal.wait_text("sleep 60008");
}

#[test]
fn a_session_is_found_again_in_the_list() {
    let (yard, terminal) = open(&["say First answer."], "");
    say(&terminal, "about whales");
    terminal.wait_text("First answer.");
    drop(terminal);
    let terminal = seat(&yard).start();
    ready(&terminal);
    assert!(!terminal.text().contains("First answer."));
    say(&terminal, "/sessions");
    terminal.wait_text("about whales");
    terminal.press(ENTER);
    terminal.wait_text("First answer.");
}
