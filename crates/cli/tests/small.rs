//! Lists, questions, plans, skills, batches and commands, as a person and a script meet them.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

mod yard;

use serde_json::Value;
use std::path::Path;
use yard::Yard;

const QUESTION: &str = "call question {\"questions\": [{\"header\": \"Store\", \"question\": \
                        \"Where to?\", \"options\": [{\"label\": \"Here\"}, {\"label\": \"There\"}]}]}";

fn place(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// What the model was last given as the result of a call.
fn result(yard: &Yard) -> String {
    let requests = yard.model.requests();
    let messages = requests.last().unwrap()["messages"].as_array().unwrap().clone();
    let tool = messages.iter().rfind(|message| message["role"] == "tool").unwrap();
    tool["content"].as_str().unwrap().to_owned()
}

#[test]
fn a_question_that_reaches_nobody_is_refused_and_the_run_goes_on() {
    for output in ["text", "json", "events"] {
        let yard = Yard::new(&[QUESTION, "say I chose Here."], "");
        let (code, _, told) = yard.run(&["run", "--yes", "--output", output, "go"]);
        assert_eq!(code, 0, "{told}");
        assert!(told.contains("Where to?"), "{told}");
        assert!(result(&yard).contains("Decide yourself"), "{}", result(&yard));
    }
}

#[test]
fn nobody_leaves_mode_plan_without_a_person() {
    let yard = Yard::new(
        &[
            "call plan_exit {\"plan\": \"Write a.txt\"}",
            "call write {\"filePath\": \"a.txt\", \"content\": \"x\"}",
            "say Done.",
        ],
        "",
    );
    let (_, _, told) = yard.run(&["run", "--yes", "--mode", "plan", "go"]);
    assert_eq!(yard.read("a.txt"), None, "{told}");
    let kinds: Vec<String> =
        yard.facts().iter().map(|fact| fact["kind"].as_str().unwrap().to_owned()).collect();
    assert!(kinds.contains(&"replied".to_owned()), "{kinds:?}");
    assert!(!kinds.contains(&"mode_changed".to_owned()), "{kinds:?}");
}

#[test]
fn a_list_is_shown_and_kept_without_asking() {
    let yard = Yard::new(
        &[
            "call todowrite {\"todos\": [{\"content\": \"Dig\", \"status\": \"in_progress\", \
             \"priority\": \"high\"}]}",
            "call todoread {}",
            "say Done.",
        ],
        "",
    );
    let (code, _, told) = yard.run(&["run", "--mode", "plan", "go"]);
    assert_eq!(code, 0, "{told}");
    assert!(told.contains("[>] Dig (high)"), "{told}");
    assert_eq!(result(&yard), "[>] Dig (high)");
}

#[test]
fn skills_of_a_project_count_once_it_is_trusted() {
    let yard = Yard::new(&["call skill {\"name\": \"ours\"}", "say Done."], "");
    let skill = "---\nname: NAME\ndescription: How NAME do it\n---\nSlowly, as NAME do.\n";
    let text = |name: &str| skill.replace("NAME", name);
    place(&yard.root(), ".windlass/skills/ours/SKILL.md", &text("ours"));
    place(&yard.root(), ".claude/skills/theirs/SKILL.md", &text("theirs"));
    place(&yard.home(), ".config/windlass/skills/mine/SKILL.md", &text("mine"));
    let offered = |yard: &Yard| {
        let tools = yard.model.requests().last().unwrap()["tools"].as_array().unwrap().clone();
        let skill = tools.iter().find(|tool| tool["function"]["name"] == "skill").cloned();
        skill.map_or(String::new(), |it| it["function"]["description"].as_str().unwrap().to_owned())
    };
    yard.run(&["run", "go"]);
    let told = offered(&yard);
    assert!(told.contains("- mine: How mine do it"), "{told}");
    assert!(!told.contains("ours") && !told.contains("theirs"), "{told}");

    let (code, _, told) = yard.run(&["trust", "--yes"]);
    assert_eq!(code, 0, "{told}");
    let yard_again = yard;
    yard_again.run(&["run", "go"]);
    let told = offered(&yard_again);
    for name in ["mine", "ours", "theirs"] {
        assert!(told.contains(&format!("- {name}: How {name} do it")), "{told}");
    }
}

#[test]
fn a_batch_is_asked_about_once_and_done_in_order() {
    let yard = Yard::new(
        &[
            "call batch {\"tool_calls\": [{\"tool\": \"write\", \"parameters\": {\"filePath\": \
             \"a.txt\", \"content\": \"one\\n\"}}, {\"tool\": \"read\", \"parameters\": \
             {\"filePath\": \"a.txt\"}}]}",
            "say Done.",
        ],
        "",
    );
    let (code, _, told) = yard.run(&["run", "--yes", "--mode", "ask", "go"]);
    assert_eq!(code, 0, "{told}");
    assert!(result(&yard).contains("1: one"), "{}", result(&yard));
    let facts = yard.facts();
    let asked = facts.iter().filter(|fact| fact["kind"] == "asked").count();
    assert_eq!(asked, 1);
}

fn prompted(yard: &Yard) -> String {
    let requests = yard.model.requests();
    let messages = requests.last().unwrap()["messages"].as_array().unwrap().clone();
    let user = messages.iter().rfind(|message| message["role"] == "user").unwrap();
    match &user["content"] {
        Value::String(text) => text.clone(),
        parts => parts.to_string(),
    }
}

#[test]
fn a_command_is_a_prompt_with_what_it_is_given() {
    let yard = Yard::new(&["say Done."], "");
    place(
        &yard.home(),
        ".config/windlass/commands/mend.md",
        "Mend $1 as @README.md says. $ARGUMENTS",
    );
    place(&yard.root(), ".windlass/commands/theirs.md", "Obey.");
    let (code, _, told) = yard.run(&["run", "--command", "mend", "'the loop' now"]);
    assert_eq!(code, 0, "{told}");
    let asked = prompted(&yard);
    assert!(asked.starts_with("Mend the loop as @README.md says. 'the loop' now"), "{asked}");
    assert!(asked.contains("<file path=\"README.md\">\n1: # Hello"), "{asked}");

    let (code, _, told) = yard.run(&["run", "--command", "theirs"]);
    assert_ne!(code, 0);
    assert!(told.contains("there is no command `theirs`; there is mend"), "{told}");
}

#[test]
fn a_command_reads_no_secret() {
    let yard = Yard::new(&["say Done."], "");
    place(&yard.root(), ".env", "KEY=hidden\n");
    place(&yard.home(), ".config/windlass/commands/leak.md", "Look at @.env");
    let (code, _, told) = yard.run(&["run", "--yes", "--command", "leak"]);
    assert_ne!(code, 0, "{told}");
    assert!(!told.contains("hidden"), "{told}");
    assert!(yard.model.requests().is_empty());
}

#[test]
fn what_commands_of_the_shell_give_stands_in_the_prompt_and_in_the_log() {
    let yard = Yard::new(&["say Done.", "say Done."], "");
    let command = "Branch: !`echo ma''in`; broken: !`echo oh; exit 3`. Go on with $1";
    place(&yard.home(), ".config/windlass/commands/see.md", command);
    let (code, told, notes) = yard.run(&["run", "--yes", "--command", "see", "care"]);
    assert_eq!((code, told.trim()), (0, "Done."), "{notes}");
    assert!(notes.contains("• echo ma''in"), "{notes}");
    let asked = prompted(&yard);
    let text = "Branch: main; broken: oh\n(exit code 3). Go on with care";
    assert!(asked.ends_with(&format!("\n\n{text}")), "{asked}");
    let facts = yard.facts();
    let calls: Vec<&Value> = facts.iter().filter(|fact| fact["kind"] == "called").collect();
    assert_eq!(calls.len(), 2, "{facts:?}");
    assert!(calls.iter().all(|call| call["by"] == "person" && call["tool"] == "bash"));
    let (_, list, _) = yard.run(&["session", "list"]);
    assert!(list.contains("Branch: "), "it is called after what is asked: {list}");

    // A session that is gone on with is, too; and a program gets its one object.
    let (code, told, notes) =
        yard.run(&["run", "--yes", "--continue", "--output", "json", "--command", "see", "care"]);
    assert_eq!(code, 0, "{notes}");
    let object: Value = serde_json::from_str(&told).unwrap();
    assert_eq!((object["result"].as_str(), &object["outcome"]), (Some("Done."), &Value::Null));
}

#[test]
fn what_was_said_or_read_is_never_run() {
    let yard = Yard::new(&["say Done."], "");
    place(&yard.root(), "notes.md", "Then !`touch ran-file`\n");
    let command = "Do $1, $ARGUMENTS, @$2: !`printf '!\\140touch ran-output\\140'`";
    place(&yard.home(), ".config/windlass/commands/do.md", command);
    let said = "'!`touch ran-word`' notes.md !`touch ran-words`";
    let (code, _, told) = yard.run(&["run", "--yes", "--command", "do", said]);
    assert_eq!(code, 0, "{told}");
    let asked = prompted(&yard);
    for text in ["!`touch ran-words`", "!`touch ran-file`", "!`touch ran-output`"] {
        assert!(asked.contains(text), "{asked}");
    }
    for entry in std::fs::read_dir(yard.root()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(!name.starts_with("ran-"), "{name}");
    }
}

#[test]
fn what_may_not_run_ends_the_run_before_the_model_hears_anything() {
    let denied = r#""permission": {"bash": {"rm *": "deny", "*": "ask"}}"#;
    for (line, yes) in [("rm -r x", true), ("touch ran", false)] {
        for output in ["text", "json"] {
            let yard = Yard::new(&["say Done."], denied);
            let command = format!("First !`{line}`, then !`touch later`.");
            place(&yard.home(), ".config/windlass/commands/do.md", &command);
            let mut arguments = vec!["run", "--output", output, "--command", "do"];
            if yes {
                arguments.insert(1, "--yes");
            }
            let (code, _, told) = yard.run(&arguments);
            assert_eq!(code, 3, "{told}");
            assert!(told.contains(&format!("did not run: {line}")), "{told}");
            assert!(yard.model.requests().is_empty());
            assert_eq!((yard.read("ran"), yard.read("later")), (None, None));
        }
    }
}

#[test]
fn commands_of_a_project_run_nothing_before_it_is_trusted_nor_too_much_after() {
    let yard = Yard::new(&["say Done."], "");
    place(&yard.root(), ".windlass/commands/one.md", "!`echo fine`");
    place(&yard.root(), ".windlass/commands/many.md", &"!`touch ran`".repeat(17));
    let (code, _, told) = yard.run(&["run", "--yes", "--command", "one"]);
    assert_eq!(code, 2, "{told}");
    assert!(yard.model.requests().is_empty());
    yard.run(&["trust", "--yes"]);
    let (code, _, told) = yard.run(&["run", "--yes", "--command", "many"]);
    assert_eq!((code, yard.read("ran")), (2, None), "{told}");
    assert!(told.contains("16 are the most"), "{told}");
    let (code, _, told) = yard.run(&["run", "--yes", "--command", "one"]);
    assert_eq!(code, 0, "{told}");
    assert!(prompted(&yard).ends_with("\n\nfine"), "{}", prompted(&yard));
}

/// What a person sees at a terminal who types these lines, each when they are asked.
#[cfg(unix)]
fn typed(yard: &Yard, arguments: &[&str], lines: &[(&str, &str)]) -> (i32, String) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use std::io::{Read, Write};
    let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&screen).unwrap();
    unlockpt(&screen).unwrap();
    let name = ptsname(&screen, Vec::new()).unwrap().into_string().unwrap();
    let keyboard = std::fs::File::options().read(true).write(true).open(name).unwrap();
    let mut command = yard.windlass(arguments);
    command.stdin(keyboard.try_clone().unwrap()).stdout(keyboard.try_clone().unwrap());
    let mut child = command.stderr(keyboard.try_clone().unwrap()).spawn().unwrap();
    drop((command, keyboard));
    let mut screen = std::fs::File::from(screen);
    let (mut seen, mut piece) = (String::new(), [0; 4096]);
    let mut from = 0;
    for (asked, line) in lines {
        while !seen[from..].contains(asked) {
            match screen.read(&mut piece) {
                Ok(read @ 1..) => seen.push_str(&String::from_utf8_lossy(&piece[..read])),
                Ok(_) | Err(_) => panic!("it ended before it asked {asked:?}: {seen}"),
            }
        }
        from = seen.len();
        screen.write_all(format!("{line}\n").as_bytes()).unwrap();
    }
    while let Ok(read @ 1..) = screen.read(&mut piece) {
        seen.push_str(&String::from_utf8_lossy(&piece[..read]));
    }
    (child.wait().unwrap().code().unwrap(), seen)
}

#[cfg(unix)]
#[test]
fn a_person_at_the_terminal_answers_by_number_or_in_words() {
    for (line, heard) in [("2", "Where to? → There"), ("on the moon", "Where to? → on the moon")]
    {
        let yard = Yard::new(&[QUESTION, "say Thanks."], "");
        let (code, seen) = typed(&yard, &["run", "go"], &[("for no answer: ", line)]);
        assert_eq!(code, 0, "{seen}");
        assert!(seen.contains("  │ 2) There"), "{seen}");
        assert_eq!(result(&yard), heard);
    }
}

#[cfg(unix)]
#[test]
fn a_yes_to_a_plan_lets_the_work_begin() {
    let yard = Yard::new(
        &[
            "call plan_exit {\"plan\": \"Write a.txt\"}",
            "call write {\"filePath\": \"a.txt\", \"content\": \"x\\n\"}",
            "say Done.",
        ],
        "",
    );
    let (code, seen) =
        typed(&yard, &["run", "--mode", "plan", "go"], &[("for no answer: ", "auto")]);
    assert_eq!(code, 0, "{seen}");
    assert_eq!(yard.read("a.txt").as_deref(), Some("x\n"), "{seen}");
}
