//! Linear mode: the whole conversation as plain lines.

use crate::support::TestEnv;
use crate::tui_driver::{CTRL_C, CTRL_D, ENTER};
use serde_json::json;
use windlass_testkit::terminal::Terminal;

fn open_linear(env: &TestEnv) -> Terminal {
    let terminal = env.terminal().with(&["--linear"]).sized(100, 120).start();
    terminal.wait_text("ready");
    terminal
}

/// Types a line and waits for a text.
#[track_caller]
fn send_line(terminal: &Terminal, line: &str, expected: &str) {
    terminal.press(line);
    terminal.press(ENTER);
    terminal.wait_text(expected);
}

#[test]
fn questions_an_edit_and_its_undo_work_in_linear_mode() {
    let questions = json!({"questions": [
        {"header": "Store", "question": "Where?", "options": [{"label": "Here"}, {"label": "There"}],
         "custom": false},
        {"header": "Checks", "question": "Which?", "multiple": true,
         "options": [{"label": "Format"}, {"label": "Lint"}, {"label": "Tests", "description": "slow"}]},
    ]});
    let write = json!({"filePath": "a.txt", "content": "made\n"});
    let replies =
        [format!("call question {questions}"), format!("call write {write}"), "say Done.".into()];
    let env = TestEnv::new(&replies.each_ref().map(String::as_str), "");
    std::fs::write(env.root().join("windlass.jsonc"), r#"{"titles": true}"#).unwrap();
    let terminal = open_linear(&env);
    send_line(&terminal, "do it", "question: The model asks, 1 of 2");
    send_line(&terminal, "3", "Invalid answer");
    send_line(&terminal, "2", "  3. Tests: slow");
    send_line(&terminal, "1, 3", "  a.txt: 1 line added, 0 removed");
    assert_eq!(env.read("a.txt"), None);
    send_line(&terminal, "yes", "  Done.");
    assert_eq!(env.read("a.txt").as_deref(), Some("made\n"));
    let request = env.model.requests()[1]["messages"].to_string();
    assert!(request.contains("There") && request.contains("Format, Tests"), "{request}");

    send_line(&terminal, "/undo", "Answer y to do this");
    send_line(&terminal, "no", "Canceled: nothing was changed");
    assert!(env.read("a.txt").is_some());
    terminal.press("/undo\r");
    terminal.wait_for("the change once more", |screen| {
        screen.contents().matches("Answer y to do this").count() == 2
    });
    terminal.press("y\r");
    terminal.wait_for("the file taken back", |_| env.read("a.txt").is_none());
    send_line(&terminal, "/sessions", "  1. do it");
    send_line(&terminal, "/trust", "/trust yes: Trust this folder");
    assert!(terminal.text().contains("windlass.jsonc"), "{}", terminal.text());
    send_line(&terminal, "/trust yes", "This folder is trusted.");
    let raw = String::from_utf8_lossy(&terminal.raw()).into_owned();
    assert!(!raw.contains('\x1b'), "an escape sequence was written: {raw:?}");
    assert!(!raw.contains(['│', '─', '●']), "{raw}");
    let answers = env.facts().iter().filter(|fact| fact["kind"] == "permission_answered").count();
    assert_eq!(answers, 2, "one for the edit and one for its undo");
}

/// Every panel of the screen has its text here.
#[test]
fn panels_are_printed_in_linear_mode() {
    let reply = "say Run this:\\n\\n```sh\\ncargo test\\n```\\nThat is all.";
    let settings = r#""mcp": {"ship": {"command": ["python3", "no-such-server.py"]}}"#;
    let env = TestEnv::new(&[reply], settings);
    let terminal = open_linear(&env);
    send_line(&terminal, "about whales", "That is all.");
    for (line, expected) in [
        ("/mcp", "1. ship"),
        ("/permissions", "the mode decides"),
        ("/lsp", "No language server"),
        ("/plugins", "No plugins"),
        ("/stats 1", "scripted/m"),
        ("/sessions", "1. about whales"),
        ("/copy", "code sh, 1 line: cargo test"),
        ("/copy 2", "\n  cargo test"),
        ("/export whales.md", "whales.md"),
        ("/rename Of whales", "Of whales"),
        ("/hooks", "No hooks"),
        ("/skills", "No skills"),
        ("/config", "mcp.ship"),
        ("/status", "sandbox"),
        ("/usage", "Tokens: "),
        ("/context", "context: "),
        ("/tasks", "No subagents."),
        ("/rewind", "1. about whales"),
        ("/find That", "1 line found"),
        ("/panel", "MCP servers: ship"),
        ("/commands reasoning", "/effort: "),
    ] {
        let before = terminal.raw().len();
        terminal.press(line);
        terminal.press(ENTER);
        let is_printed = || {
            std::thread::sleep(std::time::Duration::from_millis(20));
            let raw = terminal.raw();
            let added = String::from_utf8_lossy(raw.get(before..).unwrap_or_default()).into_owned();
            added.replace(line, "").replace('\r', "").contains(expected)
        };
        assert!((0..500).any(|_| is_printed()), "{line}: {expected}: {}", terminal.text());
    }
    assert!(env.read("whales.md").is_some_and(|text| text.contains("cargo test")));
    let raw = String::from_utf8_lossy(&terminal.raw()).into_owned();
    assert!(!raw.contains('\x1b'), "an escape sequence was written: {raw:?}");
}

#[test]
fn interrupt_steering_and_exit_work_in_linear_mode() {
    let replies = ["say One.\\n\\n\ngate first", "say Two.\ngate second", "say Three."];
    let env = TestEnv::new(&replies, "");
    let mut terminal = open_linear(&env);
    terminal.press("go\r");
    env.model.wait_at_gate("first");
    terminal.wait_text("One.");
    terminal.press(CTRL_C);
    terminal.wait_text("stopped");
    terminal.press("on\r");
    env.model.wait_at_gate("second");
    send_line(&terminal, "and this", "The model gets this at its next step.");
    env.model.open_gate("second");
    terminal.wait_for("the end", |screen| screen.contents().contains("  Three.\nready"));
    terminal.press(CTRL_C);
    terminal.wait_text("Press Ctrl-C again");
    terminal.press(CTRL_D);
    assert!(terminal.end().success());
}
