//! Habits of users of other agents: commands, help, the palette, Tab, and `@`.

use crate::support::{TestEnv, is_attached};
use crate::transcript::FLAG_PNG;
use crate::tui_driver::{ENTER, ESC, open_tui, send_prompt, wait_until_ready};
use base64::Engine as _;

const TAB: &str = "\t";
const CTRL_P: &str = "\x10";

#[test]
fn a_mistyped_command_is_not_sent_and_help_is_one_key_away() {
    let (env, terminal) = open_tui(&["say Fine."], "");
    terminal.press("/modle");
    terminal.wait_text("Did you mean /model?");
    terminal.press(ENTER);
    terminal.wait_text("Press Enter again");
    assert_eq!(env.model.requests().len(), 0, "a mistyped command was sent");
    terminal.press("\x15");
    terminal.wait_gone("modle");
    terminal.press("?");
    terminal.wait_text("Rewind to an earlier prompt");
    terminal.press(ESC);
    terminal.wait_gone("Rewind to an earlier prompt");
    terminal.press(CTRL_P);
    terminal.wait_text("type to filter");
    terminal.press("context win");
    terminal.wait_text("/context");
    terminal.press(ENTER);
    terminal.wait_text("No session yet");
    terminal.press(ESC);
    terminal.wait_gone("No session yet");
    send_prompt(&terminal, "/models");
    terminal.wait_text("use for now");
}

#[test]
fn the_prompt_of_the_command_line_attaches_files_in_a_resumed_session() {
    if is_attached() {
        // The word after `attach` is the address of a server.
        return;
    }
    let env = TestEnv::new(&["say First.", "say Second.", "say Third."], "");
    assert_eq!(env.run(&["run", "hello"]).0, 0);
    let arguments = ["--continue", "explain @README.md"];
    let terminal = env.terminal().with(&arguments).start();
    terminal.wait_text("Second.");
    drop(terminal);
    let terminal = env.terminal().with(&["--linear"]).with(&arguments).start();
    terminal.wait_text("attached: README.md");
    terminal.wait_text("Third.");
    let is_with_file = |count| {
        let requests = env.model.requests();
        let conversations = requests.iter().map(|request| request["messages"].to_string());
        conversations.filter(|text| text.matches("Content of README.md").count() == count).count()
    };
    assert!(is_with_file(1) >= 1 && is_with_file(2) >= 1, "{:?}", env.model.requests());
}

#[test]
fn a_mention_in_a_pasted_block_stays_text_when_the_prompt_is_recalled() {
    let (env, terminal) = open_tui(&["say First.", "say Second."], "");
    terminal.press("why? ");
    terminal.paste("1\nsee @README.md\n3\n4");
    terminal.wait_text("[pasted 4 lines]");
    terminal.press(ENTER);
    terminal.wait_text("First.");
    terminal.press("\x1b[A");
    terminal.wait_text("[pasted 4 lines]");
    terminal.press(ENTER);
    terminal.wait_text("Second.");
    for request in env.model.requests() {
        let text = request.to_string();
        assert!(text.contains("see @README.md") && !text.contains("Content of"), "{text}");
    }
}

#[test]
fn mentioned_files_are_attached_and_new_ones_are_found() {
    let write = r#"call write {"filePath": "fresh.txt", "content": "Written just now."}"#;
    let env = TestEnv::new(&[write, "say Done.", "say Read."], r#""permission": "allow""#);
    std::fs::write(env.root().join("notes.md"), "The heron sleeps.\n").unwrap();
    let flag = base64::engine::general_purpose::STANDARD.decode(FLAG_PNG).unwrap();
    std::fs::write(env.root().join("shot.png"), flag).unwrap();
    let terminal = env.terminal().start();
    wait_until_ready(&terminal);
    terminal.press("sum up @notes.md");
    terminal.press(" please");
    terminal.press(ENTER);
    terminal.wait_text("Done.");
    let request = env.model.requests()[0].to_string();
    assert!(request.contains("The heron sleeps."), "{request}");
    assert!(request.contains("sum up @notes.md please"), "{request}");
    // A file that the model has just written is found.
    terminal.press("and @fres");
    terminal.wait_text("\n  fresh.txt");
    terminal.press(TAB);
    terminal.press(ENTER);
    terminal.wait_text("Read.");
    let requests = env.model.requests();
    let last = requests.last().unwrap()["messages"].as_array().unwrap().last().unwrap();
    assert!(last.to_string().contains("Written just now."), "{last}");
    // An image that the model is not known to accept is reported before anything is sent.
    let sent = requests.len();
    terminal.press("what is on @shot.png ?");
    terminal.press(ENTER);
    terminal.wait_text("is not known to accept images");
    assert_eq!(env.model.requests().len(), sent);
}

#[test]
fn a_mentioned_image_goes_along_to_a_model_that_accepts_images() {
    let env = TestEnv::new(&["say A flag."], "");
    env.write_config(&format!(
        r#"{{"model": "scripted/m", "provider": {{"scripted": {{"api": "openai-chat",
        "base_url": "{}", "api_key": "k", "models": {{"m": {{"images": true}}}}}}}}}}"#,
        env.model.url()
    ));
    let flag = base64::engine::general_purpose::STANDARD.decode(FLAG_PNG).unwrap();
    std::fs::write(env.root().join("shot.png"), flag).unwrap();
    let terminal = env.terminal().start();
    wait_until_ready(&terminal);
    send_prompt(&terminal, "what is on @shot.png ?");
    terminal.wait_text("A flag.");
    let request = env.model.requests()[0].to_string();
    assert!(request.contains(&format!("data:image/png;base64,{}", &FLAG_PNG[..40])), "{request}");
}

#[test]
fn a_folder_on_the_command_line_is_the_project() {
    if is_attached() {
        // The word after `attach` is the address of a server.
        return;
    }
    let env = TestEnv::new(&["say Here."], "");
    let other = env.root().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("inside.txt"), "Found it.").unwrap();
    env.decline_trust(&other);
    let terminal = env.first_terminal().with(&["other"]).start();
    wait_until_ready(&terminal);
    send_prompt(&terminal, "read @inside.txt now");
    terminal.wait_text("Here.");
    // The file has this path only in that folder.
    let request = env.model.requests()[0].to_string();
    assert!(request.contains("Found it."), "{request}");
}

#[test]
fn tab_switches_the_agent_within_the_session() {
    let env = TestEnv::new(&["say One.", "say Two."], "");
    let agents = env.home().join(".config/windlass/agents");
    std::fs::create_dir_all(&agents).unwrap();
    let judge =
        "---\ndescription: Judges.\nmode: primary\ntools:\n  bash: false\n---\nYou are a judge.";
    std::fs::write(agents.join("judge.md"), judge).unwrap();
    let terminal = env.terminal().start();
    wait_until_ready(&terminal);
    send_prompt(&terminal, "first");
    // The agent can be switched only between turns.
    terminal.wait_for("the end of the turn", |screen| {
        let text = screen.contents();
        text.contains("One.") && !text.contains("Esc to stop")
    });
    terminal.press(TAB);
    terminal.wait_text("agent: judge");
    send_prompt(&terminal, "second");
    terminal.wait_text("Two.");
    let requests = env.model.requests();
    let has_bash = |index: usize| requests[index]["tools"].to_string().contains("\"bash\"");
    assert!(has_bash(0) && !has_bash(1), "the tools are those of the agent");
    assert!(requests[1].to_string().contains("You are a judge."));
    drop(terminal);
    let facts = env.facts();
    let kinds: Vec<&str> = facts.iter().filter_map(|fact| fact["kind"].as_str()).collect();
    let session_count = kinds.iter().filter(|kind| **kind == "session_opened").count();
    assert_eq!((session_count, kinds.contains(&"agent_changed")), (1, true), "{kinds:?}");
}

#[test]
fn words_on_the_command_line_are_the_first_prompt() {
    if is_attached() {
        // The word after `attach` is the address of a server.
        return;
    }
    let env = TestEnv::new(&["say Hello to you."], "");
    let terminal = env.terminal().with(&["say hello please"]).start();
    terminal.wait_text("Hello to you.");
    assert!(env.model.requests()[0].to_string().contains("say hello please"));
}
