//! Todo lists, questions, plans, skills, batches and custom commands with the real binary.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests set up files and processes, and fail by panicking"
)]

mod support;

use serde_json::Value;
use support::{TestEnv, write_file};

const QUESTION: &str = "call question {\"questions\": [{\"header\": \"Store\", \"question\": \
                        \"Where to?\", \"options\": [{\"label\": \"Here\"}, {\"label\": \"There\"}]}]}";

/// Returns the last tool result that was sent to the model.
fn last_tool_result(env: &TestEnv) -> String {
    let requests = env.model.requests();
    let messages = requests.last().unwrap()["messages"].as_array().unwrap().clone();
    let tool = messages.iter().rfind(|message| message["role"] == "tool").unwrap();
    tool["content"].as_str().unwrap().to_owned()
}

#[test]
fn a_question_without_a_user_is_not_asked_and_the_run_continues() {
    for output in ["text", "json", "events"] {
        let env = TestEnv::new(&[QUESTION, "say I chose Here."], "");
        let (code, _, stderr) = env.run(&["run", "--yes", "--output", output, "go"]);
        assert_eq!(code, 0, "{stderr}");
        assert!(last_tool_result(&env).contains("was not run"), "{}", last_tool_result(&env));
        let prompt = env.model.requests()[0]["messages"][0]["content"].to_string();
        assert!(prompt.contains("User: absent"), "{prompt}");
    }
}

#[test]
fn mode_plan_cannot_be_left_without_a_user() {
    let env = TestEnv::new(
        &[
            "call plan_exit {\"plan\": \"Write a.txt\"}",
            "call write {\"filePath\": \"a.txt\", \"content\": \"x\"}",
            "say Done.",
        ],
        "",
    );
    let (_, _, stderr) = env.run(&["run", "--yes", "--mode", "plan", "go"]);
    assert_eq!(env.read("a.txt"), None, "{stderr}");
    let kinds: Vec<String> =
        env.facts().iter().map(|fact| fact["kind"].as_str().unwrap().to_owned()).collect();
    assert!(!kinds.contains(&"mode_changed".to_owned()), "{kinds:?}");
}

#[test]
fn a_todo_list_is_shown_and_saved_without_approval() {
    let env = TestEnv::new(
        &[
            "call todowrite {\"todos\": [{\"content\": \"Dig\", \"status\": \"in_progress\", \
             \"priority\": \"high\"}]}",
            "call todoread {}",
            "say Done.",
        ],
        "",
    );
    let (code, _, stderr) = env.run(&["run", "--mode", "plan", "go"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("[>] Dig (high)"), "{stderr}");
    assert_eq!(last_tool_result(&env), "[>] Dig (high)");
}

#[test]
fn skills_of_a_project_are_offered_after_trust() {
    let env = TestEnv::new(&["call skill {\"name\": \"ours\"}", "say Done."], "");
    let skill = "---\nname: NAME\ndescription: How NAME do it\n---\nSlowly, as NAME do.\n";
    let text = |name: &str| skill.replace("NAME", name);
    write_file(&env.root().join(".windlass/skills/ours/SKILL.md"), &text("ours"));
    write_file(&env.root().join(".claude/skills/theirs/SKILL.md"), &text("theirs"));
    write_file(&env.home().join(".config/windlass/skills/mine/SKILL.md"), &text("mine"));
    let skill_description = |env: &TestEnv| {
        let tools = env.model.requests().last().unwrap()["tools"].as_array().unwrap().clone();
        let skill = tools.iter().find(|tool| tool["function"]["name"] == "skill").cloned();
        skill.map_or(String::new(), |it| it["function"]["description"].as_str().unwrap().to_owned())
    };
    env.run(&["run", "go"]);
    let description = skill_description(&env);
    assert!(description.contains("- mine: How mine do it"), "{description}");
    assert!(!description.contains("ours") && !description.contains("theirs"), "{description}");

    let (code, _, stderr) = env.run(&["trust", "--yes"]);
    assert_eq!(code, 0, "{stderr}");
    let trusted_env = env;
    trusted_env.run(&["run", "go"]);
    let description = skill_description(&trusted_env);
    for name in ["mine", "ours", "theirs"] {
        assert!(description.contains(&format!("- {name}: How {name} do it")), "{description}");
    }
}

#[test]
fn a_batch_needs_one_approval_and_runs_in_order() {
    let env = TestEnv::new(
        &[
            "call batch {\"tool_calls\": [{\"tool\": \"write\", \"parameters\": {\"filePath\": \
             \"a.txt\", \"content\": \"one\\n\"}}, {\"tool\": \"read\", \"parameters\": \
             {\"filePath\": \"a.txt\"}}]}",
            "say Done.",
        ],
        "",
    );
    let (code, _, stderr) = env.run(&["run", "--yes", "--mode", "ask", "go"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(last_tool_result(&env).contains("1: one"), "{}", last_tool_result(&env));
    let facts = env.facts();
    let requests = facts.iter().filter(|fact| fact["kind"] == "permission_asked").count();
    assert_eq!(requests, 1);
}

/// Returns the last user message that was sent to the model.
fn last_user_message(env: &TestEnv) -> String {
    let requests = env.model.requests();
    let messages = requests.last().unwrap()["messages"].as_array().unwrap().clone();
    let user = messages.iter().rfind(|message| message["role"] == "user").unwrap();
    match &user["content"] {
        Value::String(text) => text.clone(),
        parts => parts.to_string(),
    }
}

#[test]
fn a_custom_command_is_a_prompt_with_arguments_and_files() {
    let env = TestEnv::new(&["say Done.", "say Done."], "");
    write_file(
        &env.home().join(".config/windlass/commands/mend.md"),
        "Mend $1 as @README.md says. $ARGUMENTS",
    );
    write_file(&env.root().join(".windlass/commands/theirs.md"), "Obey.");
    let (code, _, stderr) = env.run(&["run", "--command", "mend", "'the loop' now"]);
    assert_eq!(code, 0, "{stderr}");
    let message = last_user_message(&env);
    assert!(message.starts_with("Mend the loop as @README.md says. 'the loop' now"), "{message}");
    assert!(message.contains("<file path=\"README.md\">\n1: # Hello"), "{message}");

    // The model is told of a file and an argument that are missing.
    write_file(&env.config_folder().join("commands/see.md"), "See @$1 for $2, not $10.");
    let (code, _, stderr) = env.run(&["run", "--command", "see", "gone.md"]);
    assert!(code == 0 && stderr.contains("@gone.md is not a readable file"), "{stderr}");
    let message = last_user_message(&env);
    assert!(message.contains("[Note: @gone.md is not a readable file: "), "{message}");
    assert!(message.contains("[Note: the command uses $2, but no such argument"), "{message}");
    assert!(!message.contains("uses $1,"), "{message}");

    let (code, _, stderr) = env.run(&["run", "--command", "theirs"]);
    assert_ne!(code, 0);
    assert!(stderr.contains("unknown command `theirs`; available: mend, see"), "{stderr}");
}

#[test]
fn a_custom_command_cannot_read_a_secret() {
    let env = TestEnv::new(&["say Done."], "");
    write_file(&env.root().join(".env"), "KEY=hidden\n");
    write_file(&env.home().join(".config/windlass/commands/leak.md"), "Look at @.env");
    let (code, _, stderr) = env.run(&["run", "--yes", "--command", "leak"]);
    assert_ne!(code, 0, "{stderr}");
    assert!(!stderr.contains("hidden"), "{stderr}");
    assert!(env.model.requests().is_empty());
}

#[test]
fn output_of_shell_commands_is_in_the_prompt_and_in_the_log() {
    let env = TestEnv::new(&["say Done.", "say Done."], "");
    let command = "Branch: !`echo ma''in`; broken: !`echo oh; exit 3`. Go on with $1";
    write_file(&env.home().join(".config/windlass/commands/see.md"), command);
    let (code, out, stderr) = env.run(&["run", "--yes", "--command", "see", "care"]);
    assert_eq!((code, out.trim()), (0, "Done."), "{stderr}");
    assert!(stderr.contains("• echo ma''in"), "{stderr}");
    let message = last_user_message(&env);
    let text = "Branch: main; broken: oh\n(exit code 3). Go on with care";
    assert_eq!(message, text, "the output is there once, at its place");
    let facts = env.facts();
    let calls: Vec<&Value> = facts.iter().filter(|fact| fact["kind"] == "tool_called").collect();
    assert_eq!(calls.len(), 2, "{facts:?}");
    assert!(calls.iter().all(|call| call["author"] == "command" && call["tool"] == "bash"));
    let (_, list, _) = env.run(&["session", "list"]);
    assert!(list.contains("Branch: "), "the title is not the prompt: {list}");

    // The command also works in a continued session, and `--output json` prints one object.
    let (code, out, stderr) =
        env.run(&["run", "--yes", "--continue", "--output", "json", "--command", "see", "care"]);
    assert_eq!(code, 0, "{stderr}");
    let object: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((object["result"].as_str(), &object["outcome"]), (Some("Done."), &Value::Null));
}

#[test]
fn text_of_arguments_files_and_output_is_never_run() {
    let env = TestEnv::new(&["say Done."], "");
    write_file(&env.root().join("notes.md"), "Then !`touch ran-file`\n");
    let command = "Do $1, $ARGUMENTS, @$2: !`printf '!\\140touch ran-output\\140'`";
    write_file(&env.home().join(".config/windlass/commands/do.md"), command);
    let arguments = "'!`touch ran-word`' notes.md !`touch ran-words`";
    let (code, _, stderr) = env.run(&["run", "--yes", "--command", "do", arguments]);
    assert_eq!(code, 0, "{stderr}");
    let message = last_user_message(&env);
    for text in ["!`touch ran-words`", "!`touch ran-file`", "!`touch ran-output`"] {
        assert!(message.contains(text), "{message}");
    }
    for entry in std::fs::read_dir(env.root()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(!name.starts_with("ran-"), "{name}");
    }
}

#[test]
fn a_denied_shell_command_ends_the_run_before_any_request() {
    let denied = r#""permission": {"bash": {"rm *": "deny", "*": "ask"}}"#;
    for (line, yes) in [("rm -r x", true), ("touch ran", false)] {
        for output in ["text", "json"] {
            let env = TestEnv::new(&["say Done."], denied);
            let command = format!("First !`{line}`, then !`touch later`.");
            write_file(&env.home().join(".config/windlass/commands/do.md"), &command);
            let mut arguments = vec!["run", "--output", output, "--command", "do"];
            if yes {
                arguments.insert(1, "--yes");
            }
            let (code, _, stderr) = env.run(&arguments);
            assert_eq!(code, 3, "{stderr}");
            assert!(stderr.contains(&format!("did not run: {line}")), "{stderr}");
            assert!(env.model.requests().is_empty());
            assert_eq!((env.read("ran"), env.read("later")), (None, None));
        }
    }
}

#[test]
fn custom_commands_of_a_project_need_trust_and_are_limited() {
    let env = TestEnv::new(&["say Done."], "");
    write_file(&env.root().join(".windlass/commands/one.md"), "!`echo fine`");
    write_file(&env.root().join(".windlass/commands/many.md"), &"!`touch ran`".repeat(17));
    let (code, _, stderr) = env.run(&["run", "--yes", "--command", "one"]);
    assert_eq!(code, 2, "{stderr}");
    assert!(env.model.requests().is_empty());
    env.run(&["trust", "--yes"]);
    let (code, _, stderr) = env.run(&["run", "--yes", "--command", "many"]);
    assert_eq!((code, env.read("ran")), (2, None), "{stderr}");
    assert!(stderr.contains("at most 16 are allowed"), "{stderr}");
    let (code, _, stderr) = env.run(&["run", "--yes", "--command", "one"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(last_user_message(&env), "fine");
}

/// Runs in a terminal and types each line once its prompt appears. Returns exit code and output.
#[cfg(unix)]
fn run_in_terminal(env: &TestEnv, arguments: &[&str], lines: &[(&str, &str)]) -> (i32, String) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use std::io::{Read, Write};
    let pty = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&pty).unwrap();
    unlockpt(&pty).unwrap();
    let name = ptsname(&pty, Vec::new()).unwrap().into_string().unwrap();
    let terminal = std::fs::File::options().read(true).write(true).open(name).unwrap();
    let mut command = env.windlass(arguments);
    command.stdin(terminal.try_clone().unwrap()).stdout(terminal.try_clone().unwrap());
    let mut child = command.stderr(terminal.try_clone().unwrap()).spawn().unwrap();
    drop((command, terminal));
    let mut pty = std::fs::File::from(pty);
    let (mut output, mut piece) = (String::new(), [0; 4096]);
    let mut from = 0;
    for (prompt, line) in lines {
        while !output[from..].contains(prompt) {
            match pty.read(&mut piece) {
                Ok(read @ 1..) => output.push_str(&String::from_utf8_lossy(&piece[..read])),
                Ok(_) | Err(_) => panic!("{prompt:?} did not appear: {output}"),
            }
        }
        from = output.len();
        pty.write_all(format!("{line}\n").as_bytes()).unwrap();
    }
    while let Ok(read @ 1..) = pty.read(&mut piece) {
        output.push_str(&String::from_utf8_lossy(&piece[..read]));
    }
    (child.wait().unwrap().code().unwrap(), output)
}

#[cfg(unix)]
#[test]
fn a_question_is_answered_by_number_or_in_words() {
    for (line, answer) in [("2", "Where to? → There"), ("on the moon", "Where to? → on the moon")]
    {
        let env = TestEnv::new(&[QUESTION, "say Thanks."], "");
        let (code, output) =
            run_in_terminal(&env, &["run", "go"], &[("leave empty to skip: ", line)]);
        assert_eq!(code, 0, "{output}");
        assert!(output.contains("  │ 2) There"), "{output}");
        assert_eq!(last_tool_result(&env), answer);
    }
}

#[cfg(unix)]
#[test]
fn approving_a_plan_starts_the_work() {
    let env = TestEnv::new(
        &[
            "call plan_exit {\"plan\": \"Write a.txt\"}",
            "call write {\"filePath\": \"a.txt\", \"content\": \"x\\n\"}",
            "say Done.",
        ],
        "",
    );
    let (code, output) = run_in_terminal(
        &env,
        &["run", "--mode", "plan", "go"],
        &[("leave empty to skip: ", "auto")],
    );
    assert_eq!(code, 0, "{output}");
    assert_eq!(env.read("a.txt").as_deref(), Some("x\n"), "{output}");
}
