//! A task from the first word to the last: answers, edits, commands, agents, jobs, undo.

use crate::place::{ALT_J, CTRL_C, CTRL_X, ENTER, ESC, answer, open, ready, say};
use crate::yard::Yard;
use serde_json::json;
use windlass_testkit::terminal::Terminal;
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
    let terminal = yard.seat().start();
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

/// Types a line behind a sign, which stands apart from it once it is understood, and sends it.
#[track_caller]
fn type_in(terminal: &Terminal, sign: &str, line: &str) {
    terminal.press(&format!("{sign}{line}"));
    terminal.wait_text(line);
    terminal.press(ENTER);
}

/// The processes whose command line names this.
fn alive(word: &str) -> Vec<String> {
    let named = |entry: &std::fs::DirEntry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ").contains(word)
    };
    let found = std::fs::read_dir("/proc").unwrap().flatten().filter(named);
    found.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn a_job_is_followed_and_ended_from_the_list() {
    let nap = format!("6{:06}", std::process::id());
    let line = format!("echo begun; read word; echo heard $word; sleep {nap}");
    let job = json!({"command": line, "background": true});
    let write = json!({"id": 1, "action": "write", "input": "you\n"});
    let (begin, write) = (format!("call bash {job}"), format!("call job {write}"));
    let replies = [begin.as_str(), "say It is up.", write.as_str(), "say Said.", "say I know."];
    let (_yard, terminal) = open(&replies, r#""permission": "allow""#);
    say(&terminal, "start it");
    terminal.wait_text("It is up.");
    terminal.wait_text("1 job");
    say(&terminal, "tell it");
    terminal.wait_text("Said.");
    terminal.press(ALT_J);
    // What it says comes by itself.
    terminal.wait_text("heard you");
    let pids = || alive(&nap);
    terminal.wait_for("its process", |_| !pids().is_empty());
    terminal.press(CTRL_X);
    terminal.wait_text("y ends it");
    terminal.press("n");
    terminal.settle(crate::place::REST);
    assert!(!pids().is_empty(), "nobody said yes");
    terminal.press(CTRL_X);
    terminal.wait_text("y ends it");
    terminal.press("y");
    terminal.wait_for("the end of its processes", |_| pids().is_empty());
    terminal.wait_text("ended");
    terminal.wait_gone("runs");
    terminal.wait_gone("1 job");
}

#[test]
fn what_a_command_wants_run_first_is_asked_about_and_goes_into_its_prompt() {
    let (yard, terminal) = open(&["say It is small."], r#""permission": {"bash": "ask"}"#);
    let commands = yard.config_folder().join("commands");
    std::fs::create_dir_all(&commands).unwrap();
    let text = "Judge this: !`cat README.md` and !`echo $((6 * 7))` about $ARGUMENTS";
    std::fs::write(commands.join("judge.md"), text).unwrap();
    type_in(&terminal, "/", "judge size");
    for command in ["cat README.md", "echo $((6 * 7))"] {
        terminal.wait_for(command, |screen| {
            let text = screen.contents();
            text.contains("Run a command") && text.contains(command)
        });
        std::thread::sleep(crate::place::CALM);
        terminal.press("y");
    }
    terminal.wait_text("It is small.");
    let asked = yard.model.requests().last().unwrap()["messages"].to_string();
    assert!(asked.contains("Judge this: # Hello\\nA small project. and 42 about size"), "{asked}");

    // What was not let run keeps the model from being asked.
    type_in(&terminal, "/", "judge size");
    answer(&terminal, "Run a command", "n");
    terminal.wait_text("the model was not asked");
    assert_eq!(yard.model.requests().len(), 1);
}

#[test]
fn a_command_that_was_typed_runs_without_a_question() {
    let (yard, terminal) = open(&[], "");
    type_in(&terminal, "!", "touch made; echo over $((40 + 2))");
    terminal.wait_text("over 42");
    terminal.wait_text("exit 0");
    assert!(yard.root().join("made").exists());
    // One that leads out of the workspace is denied as ever.
    type_in(&terminal, "!", "touch /usr/made || echo kept $((40 + 3))");
    terminal.wait_text("kept 43");
}

#[test]
fn trust_that_is_taken_back_ends_what_the_folder_had_us_obey() {
    let yard = Yard::new(&[], r#""permission": "allow""#);
    let refuse = r#"echo '{"verdict": "refuse", "reason": "the folder says no"}'"#;
    let hooks = json!({"hooks": {"before_tool": [{"name": "guard", "command": refuse}]}});
    std::fs::write(yard.root().join("windlass.jsonc"), hooks.to_string()).unwrap();
    yard.run(&["trust", "--yes"]);
    let terminal = yard.seat().start();
    ready(&terminal);
    type_in(&terminal, "!", "echo first $((40 + 1))");
    terminal.wait_text("the folder says no");
    say(&terminal, "/trust");
    answer(&terminal, "no longer trust it", "r");
    terminal.wait_text("this folder is no longer trusted");
    type_in(&terminal, "!", "echo second $((40 + 2))");
    terminal.wait_text("second 42");
    drop(terminal);
    let terminal = yard.seat().start();
    terminal.wait_text("Do you trust this folder?");
}

#[test]
fn a_session_is_found_again_in_the_list() {
    let (yard, terminal) = open(&["say First answer."], "");
    say(&terminal, "about whales");
    terminal.wait_text("First answer.");
    drop(terminal);
    let terminal = yard.seat().start();
    ready(&terminal);
    assert!(!terminal.text().contains("First answer."));
    say(&terminal, "/sessions");
    terminal.wait_text("about whales");
    terminal.press(ENTER);
    terminal.wait_text("First answer.");
}
