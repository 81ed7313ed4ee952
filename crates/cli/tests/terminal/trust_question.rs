//! The trust question at the first start in a folder.

use crate::support::{TestEnv, is_attached};
use crate::tui_driver::{ENTER, ESC, QUESTION_DELAY, wait_until_ready};
use serde_json::json;

fn write_call(name: &str) -> String {
    format!("call write {}", json!({"filePath": name, "content": "made\n"}))
}

/// Starts the TUI in a folder with only an `AGENTS.md`, and waits for the trust question.
fn first_start(replies: &[&str]) -> (TestEnv, windlass_testkit::terminal::Terminal) {
    let env = TestEnv::new(replies, "");
    std::fs::write(env.root().join("AGENTS.md"), "Answer in Latin.\n").unwrap();
    let terminal = env.first_terminal().start();
    terminal.wait_text("Do you trust this folder?");
    std::thread::sleep(QUESTION_DELAY);
    (env, terminal)
}

#[test]
fn the_first_start_asks_once_and_names_the_instructions() {
    let (env, terminal) = first_start(&[]);
    let text = terminal.text();
    for words in [
        "AGENTS.md (instructions for the model)",
        "1. Trust this folder and work in mode auto (t)",
        "2. Trust this folder and keep asking (a)",
        "3. Do not trust this folder (n)",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    terminal.press(ENTER);
    std::thread::sleep(QUESTION_DELAY);
    assert!(terminal.text().contains("Do you trust"), "Enter alone answers nothing");
    terminal.press("3");
    terminal.wait_gone("Do you trust this folder?");
    let list = env.data().join("trust.json");
    terminal.wait_for("the saved decision", |_| list.exists());
    drop(terminal);
    let terminal = env.first_terminal().start();
    wait_until_ready(&terminal);
    terminal.settle(crate::tui_driver::QUIET_TIME);
    assert!(!terminal.text().contains("Do you trust"), "{}", terminal.text());
    drop(terminal);
    std::fs::write(env.root().join(".mcp.json"), "{}").unwrap();
    let terminal = env.first_terminal().start();
    terminal.wait_text("Do you trust this folder?");
    std::thread::sleep(QUESTION_DELAY);
    terminal.press(ESC);
    terminal.wait_gone("Do you trust this folder?");
    drop(terminal);
    let terminal = env.first_terminal().start();
    terminal.wait_text("Do you trust this folder?");
}

#[test]
fn trust_that_keeps_asking_reads_the_instructions_and_asks_before_an_edit() {
    let write = write_call("a.txt");
    let (env, terminal) = first_start(&[&write, "say Factum."]);
    terminal.press("a");
    terminal.wait_gone("Do you trust this folder?");
    crate::tui_driver::send_prompt(&terminal, "write it");
    crate::tui_driver::answer_question(&terminal, "Create a file", "y");
    terminal.wait_text("Factum.");
    assert!(env.read("a.txt").is_some());
    let request = env.model.requests()[0]["messages"].to_string();
    assert!(request.contains("Answer in Latin."), "{request}");
    let (_, _, stderr) = env.run(&["trust"]);
    assert!(stderr.contains("AGENTS.md (instructions for the model)"), "{stderr}");
}

#[test]
fn the_first_prompt_waits_for_the_answer() {
    let env = TestEnv::new(&["say Hello."], "");
    let terminal = env.first_terminal().with(&["--prompt", "greet me"]).start();
    terminal.wait_text("Do you trust this folder?");
    std::thread::sleep(QUESTION_DELAY);
    assert_eq!(env.model.requests().len(), 0);
    terminal.press("n");
    terminal.wait_text("Hello.");
}

/// The home folder is offered with a warning, and the answer no comes first.
#[test]
fn the_home_folder_is_never_trusted_without_a_warning() {
    let env = TestEnv::new(&[], "");
    let (_, _, stderr) = env.run(&["trust"]);
    assert!(!stderr.contains("your home folder"), "{stderr}");
    let mut command = env.windlass(&["trust"]);
    command.env("HOME", env.root());
    let (code, _, stderr) = crate::support::decode_output(&command.output().unwrap());
    assert!(stderr.contains("This is your home folder"), "{stderr}");
    assert_ne!(code, 0, "without a terminal and --yes, nothing is trusted");
}

#[test]
fn a_no_to_the_trust_command_is_saved_only_if_the_user_gave_it() {
    if is_attached() {
        // `windlass trust` takes no server.
        return;
    }
    let env = TestEnv::new(&[], "");
    std::fs::write(env.root().join("AGENTS.md"), "Answer in Latin.\n").unwrap();
    let list = env.data().join("trust.json");
    let (code, _, stderr) = env.run(&["trust"]);
    assert!(code != 0 && stderr.contains("not trusted; use --yes"), "{code} {stderr}");
    assert!(!list.exists(), "no user was asked");
    let answer = |key: &str| {
        let mut terminal = env.first_terminal().with(&["trust"]).start();
        terminal.wait_text("Trust this folder?");
        terminal.press(key);
        assert!(!terminal.end().success());
        terminal.text()
    };
    let text = answer("maybe\r");
    assert!(text.contains("not trusted; use --yes") && !list.exists(), "{text}");
    let text = answer("n\r");
    assert!(text.contains("N  Do not trust this folder"), "{text}");
    assert!(text.contains("Windlass asks again when"), "{text}");
    let terminal = env.first_terminal().start();
    wait_until_ready(&terminal);
    terminal.settle(crate::tui_driver::QUIET_TIME);
    assert!(!terminal.text().contains("Do you trust"), "{}", terminal.text());
    drop(terminal);
    // A folder that was trusted keeps its entry: the answer is "Not now".
    let (code, _, stderr) = env.run(&["trust", "--yes"]);
    assert_eq!(code, 0, "{stderr}");
    std::fs::write(env.root().join(".mcp.json"), "{}").unwrap();
    let before = std::fs::read_to_string(&list).unwrap();
    let text = answer("n\r");
    assert!(text.contains("N  Not now"), "{text}");
    assert_eq!(std::fs::read_to_string(&list).unwrap(), before);
}
