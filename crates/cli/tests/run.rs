//! The binary as a person and a script meet it.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

mod yard;

use serde_json::Value;
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};
use yard::{Yard, told};

const READS: &[&str] =
    &["say Let me look.\ncall read {\"filePath\": \"README.md\"}", "say It is a small project."];

const WRITES: &[&str] =
    &["call write {\"filePath\": \"a.txt\", \"content\": \"written\\n\"}", "say Done."];

fn kinds(events: &[Value]) -> Vec<&str> {
    let facts = events.iter().filter(|event| event.get("seq").is_some());
    facts.map(|event| event["kind"].as_str().unwrap()).collect()
}

#[test]
fn a_prompt_travels_the_whole_house() {
    let yard = Yard::new(READS, "");
    let (code, answer, happened) = yard.run(&["run", "what is in README.md?"]);
    assert_eq!(code, 0, "{happened}");
    assert_eq!(answer, "Let me look.\nIt is a small project.\n");
    assert!(happened.contains("• read README.md: 2 lines ("), "{happened}");

    // The model was given the file.
    let requests = yard.model.requests();
    assert_eq!(requests.len(), 2);
    let result = requests[1]["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(result["role"], "tool");
    assert_eq!(result["content"], "1: # Hello\n2: A small project.\n");
    let tools = requests[0]["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|t| t["function"]["name"].as_str().unwrap()).collect();
    let offered = [
        "bash",
        "edit",
        "glob",
        "grep",
        "job",
        "plan_exit",
        "question",
        "read",
        "task",
        "todowrite",
        "webfetch",
        "write",
    ];
    assert_eq!(names, offered, "`invalid` and `undo` are not offered, the order is stable");
}

#[test]
fn the_event_stream_follows_its_published_schema_and_is_the_log() {
    let yard = Yard::new(READS, "");
    let (code, stream, _) = yard.run(&["run", "--output", "events", "what is in README.md?"]);
    assert_eq!(code, 0);
    let events: Vec<Value> =
        stream.lines().map(|line| serde_json::from_str(line).unwrap()).collect();

    let published = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/events.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(published).unwrap()).unwrap();
    let (_, printed, _) = yard.run(&["schema", "events"]);
    assert_eq!(serde_json::from_str::<Value>(&printed).unwrap(), schema);
    let validator = jsonschema::validator_for(&schema).unwrap();
    for event in &events {
        let faults: Vec<String> = validator.iter_errors(event).map(|e| e.to_string()).collect();
        assert!(faults.is_empty(), "{event}\n{faults:?}");
    }
    assert!(!validator.is_valid(&serde_json::json!({"kind": "said", "text": 7, "seq": 1})));
    assert!(!validator.is_valid(&serde_json::json!({"kind": "unheard_of"})));

    assert_eq!(
        kinds(&events),
        [
            "opened",
            "prompted",
            "turn_started",
            "briefed",
            "step_started",
            "said",
            "called",
            "step_ended",
            "started",
            "settled",
            "step_started",
            "said",
            "step_ended",
            "turn_ended"
        ]
    );
    let facts: Vec<Value> = events.iter().filter(|e| e.get("seq").is_some()).cloned().collect();
    assert_eq!(facts, yard.facts(), "what was seen is what was stored");
    assert!(events.iter().any(|event| event["kind"] == "delta"));
}

#[test]
fn each_end_has_its_own_exit_code() {
    // Done.
    assert_eq!(Yard::new(READS, "").run(&["run", "p"]).0, 0);

    // Failed, with what to do.
    let yard =
        Yard::new(&["status 401 {\"error\": {\"message\": \"bad key sk-very-secret\"}}"], "");
    let (code, _, told) = yard.run(&["run", "p"]);
    assert_eq!(code, 1, "{told}");
    assert!(
        told.contains("did not accept the key from") && told.contains("windlass.jsonc:2:"),
        "{told}"
    );
    assert!(!told.contains("sk-very-secret"), "the key is told: {told}");

    // Denied: nobody is there to say yes.
    let yard = Yard::new(WRITES, "");
    let (code, _, told) = yard.run(&["run", "p"]);
    assert_eq!((code, yard.read("a.txt")), (3, None), "{told}");
    assert!(told.contains("--yes"), "{told}");

    // A yes to everything.
    let yard = Yard::new(WRITES, "");
    let (code, _, _) = yard.run(&["run", "--yes", "p"]);
    assert_eq!((code, yard.read("a.txt").as_deref()), (0, Some("written\n")));

    // A deny stays a deny, and the turn goes on.
    let yard = Yard::new(WRITES, r#""permission": {"*": "allow", "edit": {"*.txt": "deny"}}"#);
    let (code, answer, _) = yard.run(&["run", "--yes", "p"]);
    assert_eq!((code, answer.as_str(), yard.read("a.txt")), (0, "Done.\n", None));

    // Not started.
    let yard = Yard::new(READS, r#""permission": {"edit": "perhaps"}"#);
    let (code, _, told) = yard.run(&["run", "p"]);
    assert_eq!(code, 2);
    assert!(told.contains("windlass.jsonc:2:") && told.contains("perhaps"), "{told}");
    assert_eq!(Yard::new(READS, "").run(&["run"]).0, 2, "nothing was asked");
    assert_eq!(Yard::new(READS, "").run(&["run", "--colour"]).0, 2);
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_in_order_and_the_session_goes_on() {
    let yard = Yard::new(&["say One two \ngate never", "say Welcome back."], "");
    let child = yard.windlass(&["run", "p"]).spawn().unwrap();
    yard.model.wait_at_gate("never");
    let started = Instant::now();
    let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.unwrap().success());
    let (code, answer, happened) = told(&child.wait_with_output().unwrap());
    assert_eq!((code, answer.as_str()), (130, "One two \n"), "{happened}");
    assert!(started.elapsed() < Duration::from_secs(2));
    let facts = yard.facts();
    assert_eq!(facts.last().unwrap()["end"]["end"], "interrupted");
    assert!(facts.iter().any(|fact| fact["kind"] == "said" && fact["text"] == "One two "));

    let (code, answer, _) = yard.run(&["run", "--continue", "go on"]);
    assert_eq!((code, answer.as_str()), (0, "Welcome back.\n"));
    let requests = yard.model.requests();
    let last = requests.last().unwrap()["messages"].as_array().unwrap();
    let roles: Vec<&str> = last.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"]);
}

#[test]
fn a_prompt_may_come_from_standard_input() {
    for arguments in [&["run"][..], &["run", "-"]] {
        let yard = Yard::new(&["say Yes."], "");
        let mut child = yard.windlass(arguments).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"is it?\n").unwrap();
        let (code, answer, _) = told(&child.wait_with_output().unwrap());
        assert_eq!((code, answer.as_str()), (0, "Yes.\n"));
        let requests = yard.model.requests();
        assert_eq!(requests[0]["messages"][1]["content"], "is it?\n");
    }
}

#[test]
fn one_json_object_tells_the_end() {
    let yard = Yard::new(READS, "");
    let (code, output, _) = yard.run(&["run", "--output", "json", "p"]);
    let result: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(code, 0);
    assert_eq!(result["result"], "It is a small project.");
    assert_eq!(result["end"]["end"], "done");
    assert_eq!(result["usage"]["input"], 200);
    assert_eq!((&result["exit"], &result["cost"]), (&0.into(), &0.into()));
    assert_eq!(result["files"], serde_json::json!({"added": [], "changed": [], "removed": []}));
}

#[test]
fn one_json_object_tells_what_became_of_files_in_this_run() {
    let edit = |path: &str, old: &str, new: &str| {
        serde_json::json!({"filePath": path, "oldString": old, "newString": new}).to_string()
    };
    let replies = [
        "call read {\"filePath\": \"README.md\"}\ncall write {\"filePath\": \"a.txt\", \"content\": \"a\"}"
            .to_owned(),
        format!(
            "call edit {}\ncall edit {}",
            edit("README.md", "small", "large"),
            edit("a.txt", "a", "b")
        ),
        "say Done.".to_owned(),
        format!("call edit {}", edit("a.txt", "b", "c")),
        "say Again.".to_owned(),
    ];
    let yard = Yard::new(&replies.each_ref().map(String::as_str), "");
    let (code, output, told) = yard.run(&["run", "--yes", "-o", "json", "p"]);
    let result: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(code, 0, "{told}");
    let files = serde_json::json!({"added": ["a.txt"], "changed": ["README.md"], "removed": []});
    assert_eq!(result["files"], files, "{told}");
    let (_, output, _) = yard.run(&["run", "--yes", "-c", "-o", "json", "q"]);
    let result: Value = serde_json::from_str(&output).unwrap();
    let files = serde_json::json!({"added": [], "changed": ["a.txt"], "removed": []});
    assert_eq!((&result["files"], &result["usage"]["input"]), (&files, &200.into()), "{output}");
}

#[test]
fn what_a_person_adds_is_told_to_the_model_of_a_new_session() {
    let yard = Yard::new(&["say Yes.", "say Yes."], "");
    std::fs::write(yard.root().join("more.md"), "Answer in rhyme.\n").unwrap();
    for (argument, words) in [("Be brief.", "Be brief."), ("@more.md", "Answer in rhyme.")] {
        assert_eq!(yard.run(&["run", "--system", argument, "p"]).0, 0);
        let told = yard.model.requests().last().unwrap()["messages"][0]["content"].to_string();
        assert!(told.contains(words), "{told}");
    }
    let (code, _, told) = yard.run(&["run", "--system", "@gone.md", "p"]);
    assert!(code == 2 && told.contains("gone.md cannot be read"), "{told}");
    assert_eq!(yard.run(&["run", "-c", "--system", "x", "p"]).0, 2, "it is told at the beginning");
}

#[test]
fn a_flaky_provider_is_asked_again_and_its_half_answer_does_not_count() {
    let yard = Yard::new(&["once say Half an\nonce cut\nsay Whole."], "");
    let (code, output, _) = yard.run(&["run", "--output", "json", "p"]);
    let result: Value = serde_json::from_str(&output).unwrap();
    assert_eq!((code, result["result"].as_str().unwrap()), (0, "Whole."));
    assert_eq!(yard.model.requests().len(), 2);
    assert!(kinds(&yard.facts()).contains(&"retrying"));
}

#[test]
fn what_a_model_prints_cannot_steer_the_terminal() {
    let yard = Yard::new(&["say \u{1b}]52;c;ZXZpbA==\u{7}\u{1b}[2Jhello"], "");
    let (_, answer, _) = yard.run(&["run", "p"]);
    assert!(!answer.contains('\u{1b}') && !answer.contains('\u{7}'), "{answer:?}");
    assert_eq!(answer, "␛]52;c;ZXZpbA==␇hello\n");
    let (_, stream, _) = yard.run(&["run", "--output", "events", "p\u{9b}2J\u{202e}"]);
    assert!(!stream.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{stream:?}");
    assert!(stream.contains("p\\u009b2J\\u202e"), "{stream}");
}

#[test]
fn a_pipe_gets_only_whole_texts() {
    let yard = Yard::new(&["once say Half an\nonce cut\nsay Whole."], "");
    let (code, answer, told) = yard.run(&["run", "p"]);
    assert_eq!((code, answer.as_str()), (0, "Whole.\n"), "{told}");
}

#[test]
fn an_answer_cut_off_at_the_output_limit_is_not_called_done() {
    let yard = Yard::new(&["say Once upon a\nfinish length"], "");
    let (code, answer, told) = yard.run(&["run", "p"]);
    assert_eq!((code, answer.as_str()), (4, "Once upon a\n"), "{told}");
    assert!(told.contains("the model's output limit was reached"), "{told}");
}

/// What a person sees on a terminal who waits for some words and then types others.
#[cfg(target_os = "linux")]
fn on_a_terminal(yard: &Yard, dialogue: &[(&str, &str)]) -> String {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use std::io::Read;
    let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&screen).unwrap();
    unlockpt(&screen).unwrap();
    let name = ptsname(&screen, Vec::new()).unwrap().into_string().unwrap();
    let keyboard = std::fs::File::options().read(true).write(true).open(name).unwrap();
    let mut command = yard.windlass(&["run", "p"]);
    command.stdin(keyboard.try_clone().unwrap()).stdout(keyboard.try_clone().unwrap());
    let mut child = command.stderr(keyboard).spawn().unwrap();
    // What the command holds of the terminal would keep it open.
    drop(command);
    let mut screen = std::fs::File::from(screen);
    let (mut seen, mut piece) = (Vec::new(), [0; 4096]);
    let mut left = dialogue.to_vec();
    // A terminal that nobody holds any more ends with an error.
    while let Ok(read @ 1..) = screen.read(&mut piece) {
        seen.extend_from_slice(&piece[..read]);
        let words = |words: &str| String::from_utf8_lossy(&seen).contains(words);
        if let Some(at) = left.iter().position(|(wanted, _)| words(wanted)) {
            screen.write_all(left.remove(at).1.as_bytes()).unwrap();
        }
    }
    child.wait().unwrap();
    String::from_utf8_lossy(&seen).into_owned()
}

#[cfg(target_os = "linux")]
#[test]
fn on_a_terminal_questions_are_asked_one_at_a_time() {
    let write = |path: &str| format!("call write {{\"filePath\": \"{path}\", \"content\": \"x\"}}");
    let both = format!("{}\n{}", write("first"), write("second"));
    let yard = Yard::new(&[&both, "say Done."], "");
    let dialogue = [("│ change first", "Y\n"), ("│ change second", "no, rather not\n")];
    let shown = on_a_terminal(&yard, &dialogue);
    assert_eq!(yard.read("first").as_deref(), Some("x"), "{shown}");
    assert_eq!(yard.read("second"), None, "{shown}");
    // Whichever comes first, the other is not on the screen before it is answered.
    let (one, two) = (shown.find("│ change first"), shown.find("│ change second"));
    let between = &shown[one.min(two).unwrap()..one.max(two).unwrap()];
    assert!(between.contains("Y\r\n") || between.contains("rather not\r\n"), "{shown}");
    assert!(shown.contains("+x") && shown.contains("Done."), "the change is shown: {shown}");
    let told = yard.facts().iter().any(|fact| fact.to_string().contains("no, rather not"));
    assert!(told, "the reason reaches the model");
}

#[cfg(target_os = "linux")]
#[test]
fn an_output_that_nobody_takes_is_a_failure() {
    let yard = Yard::new(&["say Yes."], "");
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = yard.windlass(&["schema", "events"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let pipe = "exec \"$0\" \"$@\" | head -c 1";
    let output = yard.wrapped(&["bash", "-o", "pipefail", "-c", pipe], &["schema", "events"]);
    assert_eq!(told(&{ output }.output().unwrap()).0, 0, "whoever closes a pipe has seen enough");
}

#[test]
fn our_own_keys_and_sessions_are_out_of_bounds_even_inside_the_workspace() {
    let yard = Yard::new(&[], r#""permission": "allow""#);
    let config = r#"{"filePath": ".config/windlass/windlass.jsonc"}"#;
    let trust = r#"{"filePath": ".local/share/windlass/trust.json", "content": "{}"}"#;
    for call in [["read", config], ["write", trust]] {
        let mut command = yard.windlass(&["tool", "call", "--yes", call[0], call[1]]);
        let (code, text, told) = told(&command.current_dir(yard.home()).output().unwrap());
        assert_eq!(code, 3, "{told}");
        assert!(!text.contains("sk-very-secret") && !told.contains("sk-very-secret"));
    }
    let mut command = yard.windlass(&["tool", "call", "read", r#"{"filePath": "windlass.jsonc"}"#]);
    let inside = command.current_dir(yard.home().join(".config/windlass")).output().unwrap();
    assert_eq!(told(&inside).0, 2, "nobody works in that very folder");
}

#[test]
fn sessions_are_listed_shown_exported_and_deleted() {
    let yard = Yard::new(READS, "");
    assert!(yard.run(&["session", "list"]).2.contains("no sessions in this folder"));
    yard.run(&["run", "what is in README.md?"]);
    let (_, list, _) = yard.run(&["session", "list"]);
    assert!(list.contains("done") && list.contains("what is in README.md?"), "{list}");
    let id = list.split_whitespace().next().unwrap();
    let tail = &id[id.len() - 6..];
    let (code, shown, _) = yard.run(&["session", "show", tail]);
    assert_eq!(code, 0);
    for words in ["> what is in README.md?", "• read README.md: 2 lines", "It is a small project."]
    {
        assert!(shown.contains(words), "{shown}");
    }
    assert_eq!(yard.run(&["session", "export", id]).1.lines().count(), 1 + yard.facts().len());
    assert_eq!(yard.run(&["session", "delete", id]).0, 0);
    for command in ["show", "export", "delete"] {
        let (code, _, told) = yard.run(&["session", command, id]);
        assert_eq!(code, 2, "{command}");
        assert!(told.contains("there is no session"), "{told}");
    }
    assert_eq!(yard.run(&["session", "list"]).1, "");
}

#[test]
fn a_tool_can_be_called_under_the_same_rules() {
    let yard = Yard::new(&[], r#""permission": {"read": {"secret.txt": "deny"}}"#);
    std::fs::write(yard.root().join("secret.txt"), "s").unwrap();
    let call = |arguments: &[&str]| yard.run(&[&["tool", "call"], arguments].concat());
    let read = |path: &str| format!("{{\"filePath\": \"{path}\"}}");

    let (code, text, _) = call(&["read", &read("README.md")]);
    assert_eq!((code, text.as_str()), (0, "1: # Hello\n2: A small project.\n"));
    assert_eq!(call(&["read", &read("secret.txt")]).0, 3);
    assert_eq!(call(&["--yes", "read", &read("secret.txt")]).0, 3, "deny stays deny");
    assert_eq!(call(&["read", &read("../home/.config/windlass/windlass.jsonc")]).0, 3);
    assert_eq!(call(&["read", &read("none.txt")]).0, 1);
    assert_eq!(
        call(&["-y", "write", r#"{"filePath": "a? (x)\nAllow read b", "content": ""}"#]).0,
        3
    );
    assert_eq!(call(&["raed", "{}"]).0, 1);
    let write = r#"{"filePath": "b.txt", "content": "b"}"#;
    assert_eq!((call(&["write", write]).0, yard.read("b.txt")), (3, None));
    assert_eq!((call(&["-y", "write", write]).0, yard.read("b.txt").as_deref()), (0, Some("b")));
    let (_, names, _) = yard.run(&["tool", "list"]);
    assert!(names.starts_with("bash ") && names.contains("\nwrite "), "{names}");
    assert_eq!(kinds(&yard.facts()).last(), Some(&"turn_ended"), "it is on record like any other");
}

#[test]
fn config_show_says_where_values_come_from_and_never_shows_keys() {
    let yard = Yard::new(&[], "");
    let (code, shown, _) = yard.run(&["config", "show"]);
    assert_eq!(code, 0);
    assert!(
        shown.contains("model = scripted/m  (") && shown.contains("windlass.jsonc:1:2)"),
        "{shown}"
    );
    assert!(shown.contains("api_key = (set)") && !shown.contains("sk-very-secret"), "{shown}");
}

#[test]
fn a_secret_never_reaches_the_log_or_the_request_body() {
    let yard = Yard::new(READS, "");
    yard.run(&["run", "p"]);
    let log: String = yard.facts().iter().map(Value::to_string).collect();
    let requests: String = yard.model.requests().iter().map(Value::to_string).collect();
    assert!(!log.contains("sk-very-secret") && !requests.contains("sk-very-secret"));
    let found = walk(&yard.data()).iter().any(|path| {
        let bytes = std::fs::read(path).unwrap();
        bytes.windows(14).any(|window| window == b"sk-very-secret")
    });
    assert!(!found, "the key is on the disk");
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

#[test]
fn two_at_once_share_the_store_and_one_session_is_open_once() {
    let yard = Yard::new(&["gate go\nsay Done."], "");
    let first = yard.windlass(&["run", "p"]).spawn().unwrap();
    yard.model.wait_at_gate("go");
    let (code, _, told_second) = yard.run(&["run", "--continue", "q"]);
    assert_eq!(code, 2, "{told_second}");
    assert!(told_second.contains("open in another windlass"), "{told_second}");
    let others: Vec<_> =
        (0..3).map(|_| yard.windlass(&["run", "other"]).spawn().unwrap()).collect();
    yard.model.open_gate("go");
    for child in others.into_iter().chain([first]) {
        let (code, answer, happened) = told(&child.wait_with_output().unwrap());
        assert_eq!((code, answer.as_str()), (0, "Done.\n"), "{happened}");
    }
}

#[test]
fn a_long_answer_of_a_tool_is_kept_whole_and_can_be_read_on() {
    let yard = Yard::new(&[], "");
    let deep = ["a", "b", "c"].map(|name| name.repeat(220)).join("/");
    std::fs::create_dir_all(yard.root().join(&deep)).unwrap();
    for n in 0..100 {
        std::fs::write(yard.root().join(format!("{deep}/file-{n:02}")), "").unwrap();
    }

    let (code, output, _) =
        yard.run(&["tool", "call", "--output", "json", "glob", "{\"pattern\": \"file-*\"}"]);
    let result: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(code, 0);
    let output = &result["outcome"]["output"];
    let text = output["text"].as_str().unwrap();
    assert!(text.len() <= 52 * 1024 && text.contains("bytes left out"), "{}", text.len());
    let blob = output["full"].as_str().unwrap();
    let call = format!("{{\"filePath\": \"blob:{blob}\", \"offset\": 50, \"limit\": 1}}");
    let (code, text, _) = yard.run(&["tool", "call", "read", &call]);
    assert_eq!(code, 0);
    assert!(text.starts_with("50: aaa") && text.contains("/file-"), "{text}");
}

#[test]
fn help_completions_and_the_manual_page_come_from_one_definition() {
    let yard = Yard::new(&[], "");
    let (_, help, _) = yard.run(&["--help"]);
    for command in ["run", "session", "tool", "config", "trust"] {
        assert!(help.contains(&format!("  {command} ")), "{help}");
    }
    assert!(yard.run(&["run", "--help"]).1.contains("130  interrupted"));
    assert!(yard.run(&["completions", "bash"]).1.contains("--continue"));
    assert!(yard.run(&["man"]).1.contains(".TH windlass"));
}
