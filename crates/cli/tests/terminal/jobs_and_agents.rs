//! Work of a model in the TUI: answers, edits, undo, commands, subagents and background jobs.

use crate::support::{TestEnv, write_file};
use crate::tui_driver::{
    ALT_J, CTRL_C, CTRL_X, ENTER, ESC, answer_question, open_tui, send_prompt, wait_until_ready,
};
use serde_json::json;
use windlass_testkit::terminal::Terminal;
use windlass_testkit::{ModelScript, ScriptedModel};

#[test]
fn a_prompt_is_answered_and_its_markdown_is_drawn() {
    let (_env, terminal) =
        open_tui(&["say It is **small**:\\n\\n```rust\\nfn main() {}\\n```\\n"], "");
    send_prompt(&terminal, "what is here?");
    terminal.wait_text("fn main() {}");
    let text = terminal.text();
    assert!(text.contains("It is small:") && !text.contains("```"), "{text}");
}

#[test]
fn an_edit_is_shown_before_approval_and_can_be_undone_after_confirmation() {
    let edit = json!({"filePath": "README.md", "oldString": "A small", "newString": "A large"});
    let edit = format!("call edit {edit}");
    let replies = ["call read {\"filePath\": \"README.md\"}", &edit, "say Changed."];
    let (env, terminal) = open_tui(&replies, "");
    send_prompt(&terminal, "make it large");
    terminal.wait_for("both lines of the change", |screen| {
        let text = screen.contents();
        text.contains("A small project.") && text.contains("A large project.")
    });
    assert_eq!(
        env.read("README.md").unwrap(),
        "# Hello\nA small project.\n",
        "the edit was made before approval"
    );
    answer_question(&terminal, "Edit a file", "y");
    terminal.wait_text("Changed.");
    assert_eq!(env.read("README.md").unwrap(), "# Hello\nA large project.\n");

    send_prompt(&terminal, "/undo");
    terminal.wait_text("undo these changes");
    terminal.press(ENTER);
    terminal.settle(crate::tui_driver::QUIET_TIME);
    assert_eq!(
        env.read("README.md").unwrap(),
        "# Hello\nA large project.\n",
        "the undo was not confirmed"
    );
    send_prompt(&terminal, "/undo");
    terminal.wait_text("undo these changes");
    // After the confirmation there is no permission question.
    terminal.press("y");
    let is_undone = || env.read("README.md").unwrap() == "# Hello\nA small project.\n";
    terminal.wait_for("the file as it was", |_| is_undone());
}

/// The turns after it use the model of the session.
#[test]
fn the_model_of_a_command_answers_its_turn() {
    let env = TestEnv::new(&["say First.", "say Looked.", "say Last."], "");
    env.write_config(&format!(
        r#"{{"model": "scripted/m", "provider": {{"scripted": {{"api": "openai-chat",
        "base_url": "{}", "api_key": "k", "models": {{"m": {{}}, "large": {{}}}}}}}}}}"#,
        env.model.url()
    ));
    let command = env.config_folder().join("commands/look.md");
    write_file(&command, "---\nmodel: scripted/large\n---\nLook.");
    let lost = env.config_folder().join("commands/lost.md");
    write_file(&lost, "---\nmodel: nowhere/large\n---\nLook.");
    let terminal = env.terminal().start();
    wait_until_ready(&terminal);
    for (prompt, answer) in [("hello", "First."), ("/look", "Looked."), ("bye", "Last.")] {
        send_prompt(&terminal, prompt);
        terminal.wait_text(answer);
    }
    let conversation = |request: &&serde_json::Value| request.get("tools").is_some();
    let requests = env.model.requests();
    let models: Vec<&str> =
        requests.iter().filter(conversation).map(|it| it["model"].as_str().unwrap()).collect();
    assert_eq!(models, ["m", "large", "m"]);
    // A model that is not available is reported, and nothing is sent.
    send_prompt(&terminal, "/lost");
    terminal.wait_text("nowhere");
    assert_eq!(env.model.requests().iter().filter(conversation).count(), 3);
}

#[test]
fn output_of_a_command_is_shown_while_it_runs_and_an_interrupt_stops_it() {
    let command = json!({"command": "echo begun; sleep 60007", "description": "d"});
    let (_env, terminal) =
        open_tui(&[&format!("call bash {command}"), "say On."], r#""permission": "allow""#);
    send_prompt(&terminal, "go");
    terminal.wait_text("begun");
    terminal.press(CTRL_C);
    terminal.wait_text("nterrupted");
    send_prompt(&terminal, "and now?");
    terminal.wait_text("On.");
}

#[test]
fn a_subagent_is_shown_and_its_session_can_be_viewed() {
    let work = r#"call task {"description": "count things", "prompt": "do it", "subagent_type": "helper"}"#;
    let env = TestEnv::new(&[work, "say Over."], "");
    let child = ScriptedModel::start(ModelScript::new([
        "call read {\"filePath\": \"README.md\"}",
        "say Two lines.\ngate look\nsay  Yes.",
    ]));
    let provider = |url: String| json!({"api": "openai-chat", "base_url": url, "api_key": "k", "models": {"m": {}}});
    let config = json!({"model": "scripted/m", "permission": "allow",
        "provider": {"scripted": provider(env.model.url()), "child": provider(child.url())}});
    env.write_config(&config.to_string());
    let agents = env.home().join(".config/windlass/agents");
    std::fs::create_dir_all(&agents).unwrap();
    let text = "---\ndescription: Helps\nmode: subagent\nmodel: child/m\n---\nYou help.\n";
    std::fs::write(agents.join("helper.md"), text).unwrap();
    let terminal = env.terminal().start();
    wait_until_ready(&terminal);
    send_prompt(&terminal, "have it counted");
    child.wait_at_gate("look");
    terminal.wait_text("count things");
    send_prompt(&terminal, "/tasks");
    terminal.wait_text("do it");
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
    let (_env, terminal) =
        open_tui(&replies.each_ref().map(String::as_str), r#""permission": "allow""#);
    send_prompt(&terminal, "start it");
    terminal.wait_text("It runs.");
    terminal.wait_text("1 job");
    send_prompt(&terminal, "/jobs");
    terminal.wait_text("sleep 60008");
}

/// Types a line after a prefix such as `/` or `!`, which the TUI shows separately, and sends it.
#[track_caller]
fn send_with_prefix(terminal: &Terminal, prefix: &str, line: &str) {
    terminal.press(&format!("{prefix}{line}"));
    terminal.wait_text(line);
    terminal.press(ENTER);
}

/// Returns the ids of processes whose command line contains `word`.
pub(crate) fn find_processes(word: &str) -> Vec<String> {
    let named = |entry: &std::fs::DirEntry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ").contains(word)
    };
    let found = std::fs::read_dir("/proc").unwrap().flatten().filter(named);
    found.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn a_job_can_be_followed_and_stopped_in_the_list() {
    let seconds = format!("6{:06}", std::process::id());
    let line = format!("echo begun; read word; echo heard $word; sleep {seconds}");
    let job = json!({"command": line, "background": true});
    let write = json!({"id": 1, "action": "write", "input": "you\n"});
    let (begin, write) = (format!("call bash {job}"), format!("call job {write}"));
    let replies = [begin.as_str(), "say It is up.", write.as_str(), "say Said.", "say I know."];
    let (_env, terminal) = open_tui(&replies, r#""permission": "allow""#);
    send_prompt(&terminal, "start it");
    terminal.wait_text("It is up.");
    terminal.wait_text("1 job");
    send_prompt(&terminal, "tell it");
    terminal.wait_text("Said.");
    terminal.press(ALT_J);
    // New output appears without a key press.
    terminal.wait_text("heard you");
    let pids = || find_processes(&seconds);
    terminal.wait_for("its process", |_| !pids().is_empty());
    terminal.press(CTRL_X);
    terminal.wait_text("Press y to stop");
    terminal.press("n");
    terminal.settle(crate::tui_driver::QUIET_TIME);
    assert!(!pids().is_empty(), "the job was stopped without confirmation");
    terminal.press(CTRL_X);
    terminal.wait_text("Press y to stop");
    terminal.press("y");
    terminal.wait_for("the end of its processes", |_| pids().is_empty());
    terminal.wait_text("ended");
    terminal.wait_gone("running");
    terminal.wait_gone("1 job");
}

#[test]
fn a_revoked_approval_is_asked_about_again_and_a_job_lives_on() {
    let seconds = format!("7{:06}", std::process::id());
    let job = json!({"command": format!("sleep {seconds}"), "background": true});
    let write = format!("call write {}", json!({"filePath": "a.txt", "content": "made\n"}));
    let begin = format!("call bash {job}");
    let replies = [
        write.as_str(),
        "say Saved.",
        begin.as_str(),
        "say It is up.",
        write.as_str(),
        "say Asked.",
    ];
    let (env, terminal) = open_tui(&replies, r#""permission": {"bash": "allow"}"#);
    send_prompt(&terminal, "write it");
    answer_question(&terminal, "Create a file", "p");
    terminal.wait_text("Saved.");
    drop(terminal);
    let remove = || std::fs::remove_file(env.root().join("a.txt")).unwrap();
    remove();
    let terminal = env.terminal().start();
    wait_until_ready(&terminal);
    // The script starts again in a new session, and the policy has the saved approval.
    send_prompt(&terminal, "write again");
    terminal.wait_text("Saved.");
    remove();
    send_prompt(&terminal, "start it");
    terminal.wait_text("It is up.");
    let pids = || find_processes(&seconds);
    terminal.wait_for("its process", |_| !pids().is_empty());
    let before = pids();
    send_prompt(&terminal, "/permissions");
    terminal.wait_text("Always approved in this project");
    terminal.press(CTRL_X);
    terminal.wait_text("Press y to revoke");
    terminal.press("y");
    terminal.wait_gone("Always approved in this project");
    terminal.press(ESC);
    terminal.wait_gone("type to filter");
    send_prompt(&terminal, "write once more");
    answer_question(&terminal, "Create a file", "y");
    terminal.wait_text("Asked.");
    // The last process of the job may have started after `before`.
    let after = pids();
    assert!(before.iter().all(|pid| after.contains(pid)), "{before:?} {after:?}");
    assert!(terminal.text().contains("1 job"), "{}", terminal.text());
}

#[test]
fn shell_commands_of_a_custom_command_need_approval_and_their_output_is_in_the_prompt() {
    let (env, terminal) = open_tui(&["say It is small."], r#""permission": {"bash": "ask"}"#);
    let commands = env.config_folder().join("commands");
    std::fs::create_dir_all(&commands).unwrap();
    let text = "Judge this: !`cat README.md` and !`echo $((6 * 7))` about $ARGUMENTS";
    std::fs::write(commands.join("judge.md"), text).unwrap();
    send_with_prefix(&terminal, "/", "judge size");
    for command in ["cat README.md", "echo $((6 * 7))"] {
        terminal.wait_for(command, |screen| {
            let text = screen.contents();
            text.contains("Run a command") && text.contains(command)
        });
        std::thread::sleep(crate::tui_driver::QUESTION_DELAY);
        terminal.press("y");
    }
    terminal.wait_text("It is small.");
    let request = env.model.requests().last().unwrap()["messages"].to_string();
    let expected = "Judge this: # Hello\\nA small project. and 42 about size";
    assert!(request.contains(expected), "{request}");

    // If a command is denied, the prompt is not sent.
    send_with_prefix(&terminal, "/", "judge size");
    answer_question(&terminal, "Run a command", "n");
    terminal.wait_text("prompt not sent");
    assert_eq!(env.model.requests().len(), 1);
}

#[test]
fn a_command_typed_by_the_user_runs_without_approval() {
    let (env, terminal) = open_tui(&[], "");
    send_with_prefix(&terminal, "!", "touch made; echo over $((40 + 2))");
    terminal.wait_text("over 42");
    terminal.wait_text("exit 0");
    assert!(env.root().join("made").exists());
    // The sandbox still denies writes outside the workspace.
    send_with_prefix(&terminal, "!", "touch /usr/made || echo kept $((40 + 3))");
    terminal.wait_text("kept 43");
}

#[test]
fn revoking_trust_disables_the_hooks_of_the_folder() {
    let env = TestEnv::new(&[], r#""permission": "allow""#);
    let refuse = r#"echo '{"verdict": "refuse", "reason": "the folder says no"}'"#;
    let hooks = json!({"hooks": {"before_tool": [{"name": "guard", "command": refuse}]}});
    std::fs::write(env.root().join("windlass.jsonc"), hooks.to_string()).unwrap();
    env.run(&["trust", "--yes"]);
    let terminal = env.terminal().start();
    wait_until_ready(&terminal);
    send_with_prefix(&terminal, "!", "echo first $((40 + 1))");
    terminal.wait_text("the folder says no");
    send_prompt(&terminal, "/trust");
    answer_question(&terminal, "revoke trust", "r");
    terminal.wait_text("This folder is no longer trusted");
    send_with_prefix(&terminal, "!", "echo second $((40 + 2))");
    terminal.wait_text("second 42");
    drop(terminal);
    // The user has decided, so the next start does not ask again.
    let terminal = env.terminal().start();
    wait_until_ready(&terminal);
    terminal.settle(crate::tui_driver::QUIET_TIME);
    assert!(!terminal.text().contains("Do you trust"), "{}", terminal.text());
}

#[test]
fn a_session_can_be_resumed_from_the_list() {
    let (env, terminal) = open_tui(&["say First answer."], "");
    send_prompt(&terminal, "about whales");
    terminal.wait_text("First answer.");
    drop(terminal);
    let terminal = env.terminal().start();
    wait_until_ready(&terminal);
    assert!(!terminal.text().contains("First answer."));
    send_prompt(&terminal, "/sessions");
    terminal.wait_text("about whales");
    terminal.press(ENTER);
    terminal.wait_text("First answer.");
}
