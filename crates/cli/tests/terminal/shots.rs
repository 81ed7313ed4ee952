//! The book's pictures: eight states of real runs. `cargo xtask shots` makes them anew.

use crate::place::{ENTER, REST, ready, say};
use crate::yard::Yard;
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;
use windlass_testkit::terminal::{Ground, Seat, Terminal};
use windlass_testkit::{Model, Script, picture};

const CODE: &str = "say `greet` is called once, from `main`. To give it a name:\\n\\n```rust\\n/// Says hello to somebody.\\nfn greet(name: &str) {\\n    println!(\"hello, {name}\");\\n}\\n```\\n\\n1. **Pass the name** from the command line.\\n2. Fall back to `world`.\\n\\nShall I change it?";

fn folder() -> PathBuf {
    std::env::var_os("WINDLASS_SHOTS").expect("WINDLASS_SHOTS says where the pictures go").into()
}

fn shoot(terminal: &Terminal, ground: Ground, name: &str) {
    terminal.settle(REST * 3);
    println!("{name}\n{}", terminal.text());
    picture::draw(&terminal.screen(), ground, &folder().join(format!("{name}.png")));
}

/// Where it is: in the person's home, so that it is written as they write it.
fn place(yard: &Yard) -> PathBuf {
    yard.home().join("code/harbour")
}

/// A project one would like to work on, in a folder with a name.
fn project(replies: &[&str], settings: &str) -> Yard {
    let yard = Yard::new(replies, settings);
    let root = place(&yard);
    std::fs::create_dir_all(root.join("src")).unwrap();
    let main = "fn main() {\n    greet();\n}\n\nfn greet() {\n    println!(\"hello\");\n}\n";
    std::fs::write(root.join("src/main.rs"), main).unwrap();
    yard
}

/// In full colour.
fn coloured(yard: &Yard) -> Seat {
    let seat = Seat { folder: place(yard), ..yard.seat() };
    seat.set("COLORTERM", "truecolor").sized(88, 26)
}

fn opened(yard: &Yard) -> Terminal {
    let terminal = coloured(yard).start();
    ready(&terminal);
    terminal
}

#[test]
#[ignore = "draws the book's pictures: cargo xtask shots"]
fn shots_of_the_first_run() {
    let yard = project(&[], "");
    std::fs::remove_file(yard.home().join(".config/windlass/windlass.jsonc")).unwrap();
    let terminal = coloured(&yard).set("ANTHROPIC_API_KEY", "sk-ant-none").start();
    terminal.wait_text("ask");
    std::thread::sleep(Duration::from_secs(2));
    shoot(&terminal, Ground::Dark, "first-run");
}

#[test]
#[ignore = "draws the book's pictures: cargo xtask shots"]
fn shots_of_an_answer_on_dark_and_light() {
    for (ground, name) in [(Ground::Dark, "answer"), (Ground::Light, "light")] {
        let yard = project(&["call read {\"filePath\": \"src/main.rs\"}", CODE], "");
        let terminal = coloured(&yard).on(ground).start();
        ready(&terminal);
        say(&terminal, "Where is greet called, and how would it take a name?");
        terminal.wait_text("Shall I change it?");
        shoot(&terminal, ground, name);
    }
}

#[test]
#[ignore = "draws the book's pictures: cargo xtask shots"]
fn shots_of_a_question_and_a_command() {
    let edit = json!({"filePath": "src/main.rs",
        "oldString": "fn greet() {\n    println!(\"hello\");",
        "newString": "fn greet(name: &str) {\n    println!(\"hello, {name}\");"});
    let run = json!({"command": "for i in 1 2 3 4 5 6 7; do echo \"test part_$i ... ok\"; sleep 0.2; done; sleep 30",
        "description": "Runs the tests"});
    let replies = [
        "say I look at it first.\ncall read {\"filePath\": \"src/main.rs\"}".to_owned(),
        format!("call edit {edit}"),
        format!("call bash {run}"),
    ];
    let yard = project(&replies.each_ref().map(String::as_str), "");
    let terminal = opened(&yard);
    say(&terminal, "Give greet a name, and run the tests.");
    terminal.wait_text("Change a file");
    std::thread::sleep(Duration::from_millis(900));
    shoot(&terminal, Ground::Dark, "edit");
    terminal.press("y");
    terminal.wait_text("Run a command");
    std::thread::sleep(Duration::from_millis(900));
    terminal.press("y");
    terminal.wait_text("part_5");
    terminal.settle(Duration::from_millis(400));
    shoot(&terminal, Ground::Dark, "command");
}

#[test]
#[ignore = "draws the book's pictures: cargo xtask shots"]
fn shots_of_an_agent_at_work() {
    let work = r#"call task {"description": "find callers of greet", "prompt": "do it", "subagent_type": "helper"}"#;
    let yard = project(&[work, "say Over."], "");
    let child = Model::start(Script::new([
        "call grep {\"pattern\": \"greet\"}\ncall read {\"filePath\": \"src/main.rs\"}",
        "say One caller so far.\ngate look",
    ]));
    let provider = |url: String| json!({"api": "openai-chat", "base_url": url, "api_key": "k", "models": {"m": {}}});
    let config = json!({"model": "scripted/m", "permission": "allow",
        "provider": {"scripted": provider(yard.model.url()), "child": provider(child.url())}});
    yard.write_config(&config.to_string());
    let agents = yard.home().join(".config/windlass/agents");
    std::fs::create_dir_all(&agents).unwrap();
    let text = "---\ndescription: Helps\nmode: subagent\nmodel: child/m\n---\nYou help.\n";
    std::fs::write(agents.join("helper.md"), text).unwrap();
    let terminal = opened(&yard);
    say(&terminal, "Who calls greet? Have it found.");
    child.wait_at_gate("look");
    shoot(&terminal, Ground::Dark, "agent");
}

#[test]
#[ignore = "draws the book's pictures: cargo xtask shots"]
fn shots_of_sessions_and_context() {
    let replies = ["call read {\"filePath\": \"src/main.rs\"}", CODE];
    let yard = project(&replies, "");
    for prompt in
        ["Explain the parser", "Why does the build fail on Windows?", "Add a test for empty input"]
    {
        let run = yard.windlass(&["run", prompt]).current_dir(place(&yard)).output().unwrap();
        assert!(run.status.success(), "{run:?}");
    }
    let terminal = opened(&yard);
    say(&terminal, "/sessions");
    terminal.wait_text("Explain the parser");
    shoot(&terminal, Ground::Dark, "sessions");
    terminal.press(ENTER);
    terminal.wait_text("Shall I change it?");
    say(&terminal, "/context");
    terminal.settle(REST * 3);
    shoot(&terminal, Ground::Dark, "context");
}
