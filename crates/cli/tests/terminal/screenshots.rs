//! The screenshots of the book, from real runs. `cargo xtask shots` draws them.

use crate::support::TestEnv;
use crate::tui_driver::{ENTER, QUIET_TIME, send_prompt, wait_until_ready};
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;
use windlass_testkit::terminal::{EmulatedBackground, Terminal, TerminalCommand};
use windlass_testkit::{ModelScript, ScriptedModel, screenshot};

const CODE: &str = "say `greet` is called once, from `main`. To give it a name:\\n\\n```rust\\n/// Says hello to somebody.\\nfn greet(name: &str) {\\n    println!(\"hello, {name}\");\\n}\\n```\\n\\n1. **Pass the name** from the command line.\\n2. Fall back to `world`.\\n\\nShall I change it?";

fn screenshots_folder() -> PathBuf {
    std::env::var_os("WINDLASS_SHOTS")
        .expect("WINDLASS_SHOTS is needed: the folder of the screenshots")
        .into()
}

fn save_screenshot(terminal: &Terminal, background: EmulatedBackground, name: &str) {
    terminal.settle(QUIET_TIME * 3);
    println!("{name}\n{}", terminal.text());
    screenshot::draw(
        &terminal.screen(),
        background,
        &screenshots_folder().join(format!("{name}.png")),
    );
}

/// Returns the project folder, which is in the home folder so that it is shown with `~`.
fn project_folder(env: &TestEnv) -> PathBuf {
    env.home().join("code/harbour")
}

/// Creates a small project.
fn create_project(replies: &[&str], settings: &str) -> TestEnv {
    let env = TestEnv::new(replies, settings);
    let root = project_folder(&env);
    std::fs::create_dir_all(root.join("src")).unwrap();
    let main = "fn main() {\n    greet();\n}\n\nfn greet() {\n    println!(\"hello\");\n}\n";
    std::fs::write(root.join("src/main.rs"), main).unwrap();
    env
}

/// Returns the binary in a terminal with true color.
fn truecolor_terminal(env: &TestEnv) -> TerminalCommand {
    env.decline_trust(&project_folder(env));
    let command = TerminalCommand { folder: project_folder(env), ..env.first_terminal() };
    command.set("COLORTERM", "truecolor").sized(88, 26)
}

fn open_truecolor(env: &TestEnv) -> Terminal {
    let terminal = truecolor_terminal(env).start();
    wait_until_ready(&terminal);
    terminal
}

#[test]
#[ignore = "draws the screenshots of the book: cargo xtask shots"]
fn shots_of_the_first_run() {
    let env = create_project(&[], "");
    std::fs::remove_file(env.home().join(".config/windlass/windlass.jsonc")).unwrap();
    let terminal = truecolor_terminal(&env).set("ANTHROPIC_API_KEY", "sk-ant-none").start();
    terminal.wait_text("ask");
    std::thread::sleep(Duration::from_secs(2));
    save_screenshot(&terminal, EmulatedBackground::Dark, "first-run");
}

#[test]
#[ignore = "draws the screenshots of the book: cargo xtask shots"]
fn shots_of_an_answer_on_dark_and_light() {
    for (background, name) in
        [(EmulatedBackground::Dark, "answer"), (EmulatedBackground::Light, "light")]
    {
        let env = create_project(&["call read {\"filePath\": \"src/main.rs\"}", CODE], "");
        let terminal = truecolor_terminal(&env).on(background).start();
        wait_until_ready(&terminal);
        send_prompt(&terminal, "Where is greet called, and how would it take a name?");
        terminal.wait_text("Shall I change it?");
        save_screenshot(&terminal, background, name);
    }
}

#[test]
#[ignore = "draws the screenshots of the book: cargo xtask shots"]
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
    let env = create_project(&replies.each_ref().map(String::as_str), "");
    let terminal = open_truecolor(&env);
    send_prompt(&terminal, "Give greet a name, and run the tests.");
    terminal.wait_text("Edit a file");
    std::thread::sleep(Duration::from_millis(900));
    save_screenshot(&terminal, EmulatedBackground::Dark, "edit");
    terminal.press("y");
    // A command that only reads needs no approval.
    terminal.wait_text("part_5");
    terminal.settle(Duration::from_millis(400));
    save_screenshot(&terminal, EmulatedBackground::Dark, "command");
}

#[test]
#[ignore = "draws the screenshots of the book: cargo xtask shots"]
fn shots_of_an_agent_at_work() {
    let work = r#"call task {"description": "find callers of greet", "prompt": "do it", "subagent_type": "helper"}"#;
    let env = create_project(&[work, "say Over."], "");
    let child = ScriptedModel::start(ModelScript::new([
        "call grep {\"pattern\": \"greet\"}\ncall read {\"filePath\": \"src/main.rs\"}",
        "say One caller so far.\ngate look",
    ]));
    let provider = |url: String| json!({"api": "openai-chat", "base_url": url, "api_key": "k", "models": {"m": {}}});
    let config = json!({"model": "scripted/m", "permission": "allow",
        "provider": {"scripted": provider(env.model.url()), "child": provider(child.url())}});
    env.write_config(&config.to_string());
    let agents = env.home().join(".config/windlass/agents");
    std::fs::create_dir_all(&agents).unwrap();
    let text = "---\ndescription: Helps\nmode: subagent\nmodel: child/m\n---\nYou help.\n";
    std::fs::write(agents.join("helper.md"), text).unwrap();
    let terminal = open_truecolor(&env);
    send_prompt(&terminal, "Who calls greet? Have it found.");
    child.wait_at_gate("look");
    save_screenshot(&terminal, EmulatedBackground::Dark, "agent");
}

#[test]
#[ignore = "draws the screenshots of the book: cargo xtask shots"]
fn shots_of_sessions_and_context() {
    let replies = ["call read {\"filePath\": \"src/main.rs\"}", CODE];
    let env = create_project(&replies, "");
    for prompt in
        ["Explain the parser", "Why does the build fail on Windows?", "Add a test for empty input"]
    {
        let run =
            env.windlass(&["run", prompt]).current_dir(project_folder(&env)).output().unwrap();
        assert!(run.status.success(), "{run:?}");
    }
    let terminal = open_truecolor(&env);
    send_prompt(&terminal, "/sessions");
    terminal.wait_text("Explain the parser");
    save_screenshot(&terminal, EmulatedBackground::Dark, "sessions");
    terminal.press(ENTER);
    terminal.wait_text("Shall I change it?");
    send_prompt(&terminal, "/context");
    terminal.settle(QUIET_TIME * 3);
    save_screenshot(&terminal, EmulatedBackground::Dark, "context");
}
