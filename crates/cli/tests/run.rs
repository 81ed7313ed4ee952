//! `windlass run`, `tool call`, `session` and `config show` with the real binary: output, exit
//! codes, permissions and secrets.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests set up files and processes, and fail by panicking"
)]

mod support;

use serde_json::Value;
use std::io::{BufRead, Write};
use std::process::Stdio;
use std::time::{Duration, Instant};
use support::{TestEnv, decode_output};

const READS: &[&str] =
    &["say Let me look.\ncall read {\"filePath\": \"README.md\"}", "say It is a small project."];

const WRITES: &[&str] =
    &["call write {\"filePath\": \"a.txt\", \"content\": \"written\\n\"}", "say Done."];

fn kinds(events: &[Value]) -> Vec<&str> {
    let facts = events.iter().filter(|event| event.get("seq").is_some());
    facts.map(|event| event["kind"].as_str().unwrap()).collect()
}

#[test]
fn a_prompt_is_answered_after_a_tool_call() {
    let env = TestEnv::new(READS, "");
    let (code, answer, stderr) = env.run(&["run", "what is in README.md?"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(answer, "Let me look.\nIt is a small project.\n");
    assert!(stderr.contains("• read README.md: 2 lines ("), "{stderr}");

    // The second request contains the file.
    let requests = env.model.requests();
    assert_eq!(requests.len(), 2);
    let result = requests[1]["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(result["role"], "tool");
    assert_eq!(result["content"], "1: # Hello\n2: A small project.\n");
    let tools = requests[0]["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|t| t["function"]["name"].as_str().unwrap()).collect();
    let offered =
        ["bash", "edit", "glob", "grep", "job", "read", "task", "todowrite", "webfetch", "write"];
    assert_eq!(names, offered, "tools for the user are not offered, the order is stable");
}

#[test]
fn the_event_stream_matches_its_schema_and_the_log() {
    let env = TestEnv::new(READS, "");
    let (code, stream, _) = env.run(&["run", "--output", "events", "what is in README.md?"]);
    assert_eq!(code, 0);
    let events: Vec<Value> =
        stream.lines().map(|line| serde_json::from_str(line).unwrap()).collect();

    let published = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/events.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(published).unwrap()).unwrap();
    let (_, printed, _) = env.run(&["schema", "events"]);
    let printed: Value = serde_json::from_str(&printed).unwrap();
    assert!(printed == schema, "`windlass schema events` differs from docs/schema");
    let validator = jsonschema::validator_for(&schema).unwrap();
    for event in &events {
        let errors: Vec<String> = validator.iter_errors(event).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{event}\n{errors:?}");
    }
    assert!(!validator.is_valid(&serde_json::json!({"kind": "model_text", "text": 7, "seq": 1})));
    assert!(!validator.is_valid(&serde_json::json!({"kind": "unheard_of"})));

    assert_eq!(
        kinds(&events),
        [
            "session_opened",
            "prompt_submitted",
            "turn_started",
            "system_prompt_set",
            "step_started",
            "model_text",
            "tool_called",
            "step_ended",
            "call_started",
            "call_settled",
            "step_started",
            "model_text",
            "step_ended",
            "turn_ended"
        ]
    );
    let facts: Vec<Value> = events.iter().filter(|e| e.get("seq").is_some()).cloned().collect();
    assert_eq!(facts, env.facts(), "the stream differs from the log");
    assert!(events.iter().any(|event| event["kind"] == "model_delta"));
}

#[test]
fn a_call_is_in_the_event_stream_while_the_model_writes_it() {
    let chunk = |call: &str| {
        format!("raw data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{call}]}}}}]}}\\n\\n\n")
    };
    let head = chunk(r#"{"index":0,"id":"c","function":{"name":"write","arguments":""}}"#);
    let piece =
        chunk(r#"{"index":0,"function":{"arguments":"{\"filePath\":\"a.txt\",\"content\":\"x"}}"#);
    let end = chunk(r#"{"index":0,"function":{"arguments":"y\"}"}}"#);
    // The gates stay closed until the events that precede them were printed. The connection then
    // breaks once, so the first call never comes to be.
    let reply = format!("{head}gate name\nstall 150\n{piece}gate path\nonce cut\n{end}");
    let env = TestEnv::new(&[&reply, "say Done."], "");
    let mut command = env.windlass(&["run", "--yes", "--output", "events", "p"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = |kind: &str| {
        let event = |line: std::io::Result<String>| serde_json::from_str(&line.unwrap()).unwrap();
        let found: Option<Value> = lines.by_ref().map(event).find(|e: &Value| e["kind"] == kind);
        found.unwrap_or_else(|| panic!("no {kind}"))
    };
    let first = next("partial_call");
    assert_eq!((&first["tool"], &first["argument_bytes"]), (&"write".into(), &0.into()));
    assert!(first.get("path").is_none() && first.get("seq").is_none(), "{first}");
    env.model.open_gate("name");
    let second = next("partial_call");
    assert_eq!((&second["path"], &second["argument_bytes"]), (&"a.txt".into(), &32.into()));
    env.model.open_gate("path");
    assert_eq!(next("step_ended")["finish_reason"]["reason"], "failed");
    assert_eq!(next("tool_called")["tool"], "write");
    assert_eq!(next("turn_ended")["end"]["end"], "completed");
    assert!(child.wait().unwrap().success());
    assert_eq!(env.read("a.txt").as_deref(), Some("xy"));
    assert!(!env.facts().iter().any(|fact| fact["kind"] == "partial_call"));
}

#[test]
fn each_end_has_its_own_exit_code() {
    // Completed.
    assert_eq!(TestEnv::new(READS, "").run(&["run", "p"]).0, 0);

    // Failed, with a hint.
    let env =
        TestEnv::new(&["status 401 {\"error\": {\"message\": \"bad key sk-very-secret\"}}"], "");
    let (code, _, stderr) = env.run(&["run", "p"]);
    assert_eq!(code, 1, "{stderr}");
    assert!(
        stderr.contains("rejected the API key from") && stderr.contains("windlass.jsonc:2:"),
        "{stderr}"
    );
    assert!(!stderr.contains("sk-very-secret"), "the key is shown: {stderr}");

    // Denied: no user is available to approve.
    let env = TestEnv::new(WRITES, "");
    let (code, _, stderr) = env.run(&["run", "p"]);
    assert_eq!((code, env.read("a.txt")), (3, None), "{stderr}");
    assert!(stderr.contains("--yes"), "{stderr}");

    // Everything is approved.
    let env = TestEnv::new(WRITES, "");
    let (code, _, _) = env.run(&["run", "--yes", "p"]);
    assert_eq!((code, env.read("a.txt").as_deref()), (0, Some("written\n")));

    // A rule still denies, and the turn continues.
    let env = TestEnv::new(WRITES, r#""permission": {"*": "allow", "edit": {"*.txt": "deny"}}"#);
    let (code, answer, _) = env.run(&["run", "--yes", "p"]);
    assert_eq!((code, answer.as_str(), env.read("a.txt")), (0, "Done.\n", None));

    // Not started.
    let env = TestEnv::new(READS, r#""permission": {"edit": "perhaps"}"#);
    let (code, _, stderr) = env.run(&["run", "p"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("windlass.jsonc:2:") && stderr.contains("perhaps"), "{stderr}");
    assert_eq!(TestEnv::new(READS, "").run(&["run"]).0, 2, "a prompt is required");
    assert_eq!(TestEnv::new(READS, "").run(&["run", "--colour"]).0, 2);
}

#[cfg(unix)]
#[test]
fn an_interrupted_session_can_be_continued() {
    let env = TestEnv::new(&["say One two \ngate never", "say Welcome back."], "");
    let child = env.windlass(&["run", "p"]).spawn().unwrap();
    env.model.wait_at_gate("never");
    let started = Instant::now();
    let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.unwrap().success());
    let (code, answer, stderr) = decode_output(&child.wait_with_output().unwrap());
    assert_eq!((code, answer.as_str()), (130, "One two \n"), "{stderr}");
    assert!(started.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(2)));
    let facts = env.facts();
    assert_eq!(facts.last().unwrap()["end"]["end"], "interrupted");
    assert!(facts.iter().any(|fact| fact["kind"] == "model_text" && fact["text"] == "One two "));

    let (code, answer, _) = env.run(&["run", "--continue", "go on"]);
    assert_eq!((code, answer.as_str()), (0, "Welcome back.\n"));
    let requests = env.model.requests();
    let last = requests.last().unwrap()["messages"].as_array().unwrap();
    let roles: Vec<&str> = last.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"]);
}

#[test]
fn a_prompt_may_come_from_standard_input() {
    for arguments in [&["run"][..], &["run", "-"]] {
        let env = TestEnv::new(&["say Yes."], "");
        let mut child = env.windlass(arguments).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"is it?\n").unwrap();
        let (code, answer, _) = decode_output(&child.wait_with_output().unwrap());
        assert_eq!((code, answer.as_str()), (0, "Yes.\n"));
        let requests = env.model.requests();
        assert_eq!(requests[0]["messages"][1]["content"], "is it?\n");
    }
}

#[test]
fn standard_input_is_added_to_the_prompt() {
    for (input, expected) in
        [("+ line\n", "review this\n\nStandard input:\n```\n+ line\n```\n"), ("", "review this")]
    {
        let env = TestEnv::new(&["say Fine."], "");
        let mut command = env.windlass(&["run", "review this"]);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let (code, answer, stderr) = decode_output(&child.wait_with_output().unwrap());
        assert_eq!((code, answer.as_str()), (0, "Fine.\n"), "{stderr}");
        assert_eq!(env.model.requests()[0]["messages"][1]["content"], expected);
    }
}

#[test]
fn a_turn_that_did_not_end_by_itself_is_resumed_without_a_prompt() {
    let env = TestEnv::new(&["call todoread {}", "say Done."], "");
    let (code, ..) = env.run(&["run", "--max-steps", "1", "p"]);
    assert_eq!(code, 4);
    let (code, answer, stderr) = env.run(&["run", "--continue"]);
    assert_eq!((code, answer.as_str()), (0, "Done.\n"), "{stderr}");
    let (code, _, stderr) = env.run(&["run", "--continue"]);
    assert!(code == 2 && stderr.contains("has nothing to resume. Give it a prompt"), "{stderr}");
}

#[test]
fn a_prompt_that_is_too_large_or_not_text_is_refused_and_not_cut() {
    for (prompt, message) in [
        (vec![b'a'; (16 << 20) + 1], "larger than 16 MiB"),
        (b"caf\xe9".to_vec(), "not valid UTF-8"),
    ] {
        let env = TestEnv::new(&["say Yes."], "");
        let mut child = env.windlass(&["run"]).stdin(Stdio::piped()).spawn().unwrap();
        // Fails if the reader stops early.
        let _ = child.stdin.take().unwrap().write_all(&prompt);
        let (code, _, stderr) = decode_output(&child.wait_with_output().unwrap());
        assert!(code == 2 && stderr.contains(message), "{code} {stderr}");
        assert!(env.model.requests().is_empty());
    }
}

#[test]
fn an_empty_answer_is_reported() {
    let env = TestEnv::new(&["say "], "");
    let (code, answer, stderr) = env.run(&["run", "p"]);
    assert_eq!((code, answer.trim()), (0, ""));
    assert!(stderr.contains("without an answer"), "{stderr}");
    let env = TestEnv::new(&["say Yes."], "");
    assert!(!env.run(&["run", "p"]).2.contains("without an answer"));
}

#[test]
fn json_output_is_one_object_with_the_result() {
    let env = TestEnv::new(READS, "");
    let (code, output, _) = env.run(&["run", "--output", "json", "p"]);
    let result: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(code, 0);
    assert_eq!(result["result"], "It is a small project.");
    assert_eq!(result["end"]["end"], "completed");
    assert_eq!(result["usage"]["input"], 200);
    assert_eq!((&result["exit"], &result["cost"]), (&0.into(), &0.into()));
    assert_eq!(result["files"], serde_json::json!({"added": [], "modified": [], "removed": []}));
}

#[test]
fn json_output_lists_the_files_that_the_run_changed() {
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
    let env = TestEnv::new(&replies.each_ref().map(String::as_str), "");
    let (code, output, stderr) = env.run(&["run", "--yes", "-o", "json", "p"]);
    let result: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(code, 0, "{stderr}");
    let files = serde_json::json!({"added": ["a.txt"], "modified": ["README.md"], "removed": []});
    assert_eq!(result["files"], files, "{stderr}");
    let (_, output, _) = env.run(&["run", "--yes", "-c", "-o", "json", "q"]);
    let result: Value = serde_json::from_str(&output).unwrap();
    let files = serde_json::json!({"added": [], "modified": ["a.txt"], "removed": []});
    assert_eq!((&result["files"], &result["usage"]["input"]), (&files, &200.into()), "{output}");
}

#[test]
fn text_of_the_user_is_added_to_the_system_prompt_of_a_new_session() {
    let env = TestEnv::new(&["say Yes.", "say Yes."], "");
    std::fs::write(env.root().join("more.md"), "Answer in rhyme.\n").unwrap();
    for (argument, words) in [("Be brief.", "Be brief."), ("@more.md", "Answer in rhyme.")] {
        assert_eq!(env.run(&["run", "--system", argument, "p"]).0, 0);
        let prompt = env.model.requests().last().unwrap()["messages"][0]["content"].to_string();
        assert!(prompt.contains(words), "{prompt}");
    }
    let (code, _, stderr) = env.run(&["run", "--system", "@gone.md", "p"]);
    assert!(code == 2 && stderr.contains("cannot read gone.md"), "{stderr}");
}

#[test]
fn a_response_that_is_cut_off_is_discarded_and_retried() {
    let env = TestEnv::new(&["once say Half an\nonce cut\nsay Whole."], "");
    let (code, output, _) = env.run(&["run", "--output", "json", "p"]);
    let result: Value = serde_json::from_str(&output).unwrap();
    assert_eq!((code, result["result"].as_str().unwrap()), (0, "Whole."));
    assert_eq!(env.model.requests().len(), 2);
    assert!(kinds(&env.facts()).contains(&"step_retrying"));
}

#[test]
fn output_of_a_model_cannot_control_the_terminal() {
    let env = TestEnv::new(&["say \u{1b}]52;c;ZXZpbA==\u{7}\u{1b}[2Jhello"], "");
    let (_, answer, _) = env.run(&["run", "p"]);
    assert!(!answer.contains('\u{1b}') && !answer.contains('\u{7}'), "{answer:?}");
    assert_eq!(answer, "␛]52;c;ZXZpbA==␇␛[2Jhello\n");
    let (_, stream, _) = env.run(&["run", "--output", "events", "p\u{9b}2J\u{202e}"]);
    assert!(!stream.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{stream:?}");
    assert!(stream.contains("p\\u009b2J\\u202e"), "{stream}");
}

#[test]
fn a_pipe_gets_only_complete_texts() {
    let env = TestEnv::new(&["once say Half an\nonce cut\nsay Whole."], "");
    let (code, answer, stderr) = env.run(&["run", "p"]);
    assert_eq!((code, answer.as_str()), (0, "Whole.\n"), "{stderr}");
}

#[test]
fn an_answer_cut_off_at_the_output_limit_is_not_reported_as_completed() {
    let env = TestEnv::new(&["say Once upon a\nfinish length"], "");
    let (code, answer, stderr) = env.run(&["run", "p"]);
    assert_eq!((code, answer.as_str()), (4, "Once upon a\n"), "{stderr}");
    assert!(stderr.contains("the model's output limit was reached"), "{stderr}");
}

/// Runs in a terminal and types each answer of `dialogue` once its text appears. Returns the
/// output.
#[cfg(target_os = "linux")]
fn run_in_terminal(env: &TestEnv, dialogue: &[(&str, &str)]) -> String {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use std::io::Read;
    let pty = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&pty).unwrap();
    unlockpt(&pty).unwrap();
    let name = ptsname(&pty, Vec::new()).unwrap().into_string().unwrap();
    let terminal = std::fs::File::options().read(true).write(true).open(name).unwrap();
    let mut command = env.windlass(&["run", "p"]);
    command.stdin(terminal.try_clone().unwrap()).stdout(terminal.try_clone().unwrap());
    let mut child = command.stderr(terminal).spawn().unwrap();
    // The command's copies of the terminal would keep it open.
    drop(command);
    let mut pty = std::fs::File::from(pty);
    let (mut output, mut piece) = (Vec::new(), [0; 4096]);
    let mut left = dialogue.to_vec();
    // Reading fails once the last process has closed the terminal.
    while let Ok(read @ 1..) = pty.read(&mut piece) {
        output.extend_from_slice(&piece[..read]);
        let has_appeared = |text: &str| String::from_utf8_lossy(&output).contains(text);
        if let Some(at) = left.iter().position(|(wanted, _)| has_appeared(wanted)) {
            pty.write_all(left.remove(at).1.as_bytes()).unwrap();
        }
    }
    child.wait().unwrap();
    String::from_utf8_lossy(&output).into_owned()
}

#[cfg(target_os = "linux")]
#[test]
fn permission_questions_are_asked_one_at_a_time() {
    let write = |path: &str| format!("call write {{\"filePath\": \"{path}\", \"content\": \"x\"}}");
    let both = format!("{}\n{}", write("first"), write("second"));
    let env = TestEnv::new(&[&both, "say Done."], "");
    let dialogue = [("│ edit first", "Y\n"), ("│ edit second", "no, rather not\n")];
    let shown = run_in_terminal(&env, &dialogue);
    assert_eq!(env.read("first").as_deref(), Some("x"), "{shown}");
    assert_eq!(env.read("second"), None, "{shown}");
    // The second question is not shown before the first is answered.
    let (one, two) = (shown.find("│ edit first"), shown.find("│ edit second"));
    let between = &shown[one.min(two).unwrap()..one.max(two).unwrap()];
    assert!(between.contains("Y\r\n") || between.contains("rather not\r\n"), "{shown}");
    assert!(shown.contains("+x") && shown.contains("Done."), "the change is not shown: {shown}");
    let has_reason = env.facts().iter().any(|fact| fact.to_string().contains("no, rather not"));
    assert!(has_reason, "the reason is not in the log");
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let env = TestEnv::new(&["say Yes."], "");
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = env.windlass(&["schema", "events"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let pipe = "exec \"$0\" \"$@\" | head -c 1";
    let output = env.wrapped(&["bash", "-o", "pipefail", "-c", pipe], &["schema", "events"]);
    assert_eq!(decode_output(&{ output }.output().unwrap()).0, 0, "a closed pipe is not a failure");
}

#[test]
fn files_of_windlass_are_protected_even_inside_the_workspace() {
    let env = TestEnv::new(&[], r#""permission": "allow""#);
    let config = r#"{"filePath": ".config/windlass/windlass.jsonc"}"#;
    let trust = r#"{"filePath": ".local/share/windlass/trust.json", "content": "{}"}"#;
    for call in [["read", config], ["write", trust]] {
        let mut command = env.windlass(&["tool", "call", "--yes", call[0], call[1]]);
        let (code, text, stderr) =
            decode_output(&command.current_dir(env.home()).output().unwrap());
        assert_eq!(code, 3, "{stderr}");
        assert!(!text.contains("sk-very-secret") && !stderr.contains("sk-very-secret"));
    }
    let mut command = env.windlass(&["tool", "call", "read", r#"{"filePath": "windlass.jsonc"}"#]);
    let inside = command.current_dir(env.home().join(".config/windlass")).output().unwrap();
    assert_eq!(decode_output(&inside).0, 2, "the config folder cannot be the workspace");
}

#[test]
fn sessions_are_listed_shown_exported_and_deleted() {
    let env = TestEnv::new(READS, "");
    assert!(env.run(&["session", "list"]).2.contains("no sessions in this folder"));
    env.run(&["run", "what is in README.md?"]);
    let (_, list, _) = env.run(&["session", "list"]);
    assert!(list.contains("done") && list.contains("what is in README.md?"), "{list}");
    let id = list.split_whitespace().next().unwrap();
    let tail = &id[id.len() - 6..];
    let (code, shown, _) = env.run(&["session", "show", tail]);
    assert_eq!(code, 0);
    for words in ["> what is in README.md?", "• read README.md: 2 lines", "It is a small project."]
    {
        assert!(shown.contains(words), "{shown}");
    }
    assert_eq!(env.run(&["session", "export", id]).1.lines().count(), 1 + env.facts().len());
    // Without an ID, the last session; the name of the file decides the format.
    for (name, words) in [
        ("talk.md", "# what is in README.md?\n"),
        ("talk.html", "<!doctype html>"),
        ("talk.jsonl", "{\""),
        ("talk.json", "{\""),
    ] {
        let (code, _, stderr) = env.run(&["session", "export", "--file", name]);
        assert_eq!(code, 0, "{stderr}");
        let text = env.read(name).unwrap();
        assert!(text.to_lowercase().starts_with(&words.to_lowercase()), "{name}: {text}");
        let (code, _, stderr) = env.run(&["session", "export", "--file", name]);
        assert_eq!(code, 2, "no file is overwritten: {stderr}");
    }
    let (code, _, stderr) = env.run(&["session", "export", "--file", "talk.pdf"]);
    assert!(code == 2 && stderr.contains(".md"), "{stderr}");
    assert_eq!(env.run(&["session", "delete", id]).0, 0);
    for command in ["show", "export", "delete"] {
        let (code, _, stderr) = env.run(&["session", command, id]);
        assert_eq!(code, 2, "{command}");
        assert!(stderr.contains("not found"), "{stderr}");
    }
    assert_eq!(env.run(&["session", "list"]).1, "");
}

#[test]
fn a_tool_call_of_the_user_is_subject_to_the_same_rules() {
    let env = TestEnv::new(&[], r#""permission": {"read": {"secret.txt": "deny"}}"#);
    std::fs::write(env.root().join("secret.txt"), "s").unwrap();
    let call = |arguments: &[&str]| env.run(&[&["tool", "call"], arguments].concat());
    let read = |path: &str| format!("{{\"filePath\": \"{path}\"}}");

    let (code, text, _) = call(&["read", &read("README.md")]);
    assert_eq!((code, text.as_str()), (0, "1: # Hello\n2: A small project.\n"));
    assert_eq!(call(&["read", &read("secret.txt")]).0, 3);
    assert_eq!(call(&["--yes", "read", &read("secret.txt")]).0, 3, "a rule still denies");
    assert_eq!(call(&["read", &read("../home/.config/windlass/windlass.jsonc")]).0, 3);
    assert_eq!(call(&["read", &read("none.txt")]).0, 1);
    assert_eq!(
        call(&["-y", "write", r#"{"filePath": "a? (x)\nAllow read b", "content": ""}"#]).0,
        3
    );
    assert_eq!(call(&["raed", "{}"]).0, 1);
    let write = r#"{"filePath": "b.txt", "content": "b"}"#;
    assert_eq!((call(&["write", write]).0, env.read("b.txt")), (3, None));
    assert_eq!((call(&["-y", "write", write]).0, env.read("b.txt").as_deref()), (0, Some("b")));
    let (_, names, _) = env.run(&["tool", "list"]);
    assert!(names.starts_with("bash ") && names.contains("\nwrite "), "{names}");
    assert_eq!(kinds(&env.facts()).last(), Some(&"turn_ended"), "the call is not recorded");
}

#[test]
fn config_show_names_the_origin_of_values_and_never_shows_keys() {
    let env = TestEnv::new(&[], "");
    let (code, shown, _) = env.run(&["config", "show"]);
    assert_eq!(code, 0);
    assert!(
        shown.contains("model = scripted/m  (") && shown.contains("windlass.jsonc:1:2)"),
        "{shown}"
    );
    assert!(shown.contains("api_key = (set)") && !shown.contains("sk-very-secret"), "{shown}");
}

#[test]
fn a_secret_never_reaches_the_log_or_the_request_body() {
    let env = TestEnv::new(READS, "");
    env.run(&["run", "p"]);
    let log: String = env.facts().iter().map(Value::to_string).collect();
    let requests: String = env.model.requests().iter().map(Value::to_string).collect();
    assert!(!log.contains("sk-very-secret") && !requests.contains("sk-very-secret"));
    let found = list_files(&env.data()).iter().any(|path| {
        let bytes = std::fs::read(path).unwrap();
        bytes.windows(14).any(|window| window == b"sk-very-secret")
    });
    assert!(!found, "the key is on disk");
}

fn list_files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { list_files(&path) } else { vec![path] }).collect()
}

#[test]
fn processes_share_the_store_and_a_session_is_open_in_only_one() {
    let env = TestEnv::new(&["gate go\nsay Done."], "");
    let first = env.windlass(&["run", "p"]).spawn().unwrap();
    env.model.wait_at_gate("go");
    let (code, _, stderr) = env.run(&["run", "--continue", "q"]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("open in another Windlass process"), "{stderr}");
    let others: Vec<_> = (0..3).map(|_| env.windlass(&["run", "other"]).spawn().unwrap()).collect();
    env.model.open_gate("go");
    for child in others.into_iter().chain([first]) {
        let (code, answer, stderr) = decode_output(&child.wait_with_output().unwrap());
        assert_eq!((code, answer.as_str()), (0, "Done.\n"), "{stderr}");
    }
}

#[test]
fn a_long_tool_output_is_stored_and_can_be_read_in_parts() {
    let env = TestEnv::new(&[], "");
    let deep = ["a", "b", "c"].map(|name| name.repeat(220)).join("/");
    std::fs::create_dir_all(env.root().join(&deep)).unwrap();
    for n in 0..100 {
        std::fs::write(env.root().join(format!("{deep}/file-{n:02}")), "").unwrap();
    }

    let (code, output, _) =
        env.run(&["tool", "call", "--output", "json", "glob", "{\"pattern\": \"file-*\"}"]);
    let result: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(code, 0);
    let output = &result["outcome"]["output"];
    let text = output["text"].as_str().unwrap();
    assert!(text.len() <= 21 * 1024 && text.contains("bytes omitted"), "{}", text.len());
    let blob = output["full_text"].as_str().unwrap();
    let call = format!("{{\"filePath\": \"blob:{blob}\", \"offset\": 50, \"limit\": 1}}");
    let (code, text, _) = env.run(&["tool", "call", "read", &call]);
    assert_eq!(code, 0);
    assert!(text.starts_with("50: aaa") && text.contains("/file-"), "{text}");
    let call = format!("{{\"path\": \"blob:{blob}\", \"pattern\": \"file-4[12]$\"}}");
    let (code, text, _) = env.run(&["tool", "call", "grep", &call]);
    assert_eq!(code, 0);
    assert!(text.starts_with(&format!("blob:{blob}\n")), "{text}");
    assert_eq!(text.matches("file-4").count(), 2, "{text}");
}

#[test]
fn help_completions_and_the_manual_page_come_from_one_definition() {
    let env = TestEnv::new(&[], "");
    let (_, help, _) = env.run(&["--help"]);
    for command in ["run", "session", "tool", "config", "trust"] {
        assert!(help.contains(&format!("  {command} ")), "{help}");
    }
    assert!(env.run(&["run", "--help"]).1.contains("130  interrupted"));
    assert!(env.run(&["completions", "bash"]).1.contains("--continue"));
    assert!(env.run(&["man"]).1.contains(".TH windlass"));
}

#[test]
fn an_api_key_that_a_model_or_tool_says_is_redacted() {
    let script = [
        "call write {\"filePath\":\"k.txt\",\"content\":\"sk-very-secret\\n\"}",
        "say The key is sk-very-secret!",
    ];
    let env = TestEnv::new(&script, "");
    let (code, out, stderr) = env.run(&["run", "--yes", "go"]);
    assert_eq!((code, out.as_str()), (0, "The key is [redacted]!\n"), "{stderr}");
    assert!(!stderr.contains("very-secret"), "{stderr}");
    for output in ["json", "events"] {
        let env = TestEnv::new(&script, "");
        let (_, out, stderr) = env.run(&["run", "--yes", "--output", output, "go"]);
        assert!(out.contains("[redacted]") && !out.contains("very-secret"), "{out}");
        assert!(!stderr.contains("very-secret"), "{stderr}");
    }
    let list = env.run(&["session", "list", "--json"]).1;
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    let id = list[0]["session"].as_str().unwrap();
    for command in ["show", "export", "share"] {
        let (code, out, stderr) = env.run(&["session", command, id]);
        assert_eq!(code, 0, "{stderr}");
        assert!(out.contains("[redacted]") && !out.contains("very-secret"), "{command}: {out}");
    }
    assert_eq!(env.read("k.txt").as_deref(), Some("sk-very-secret\n"), "files are not changed");
    let (_, export, _) = env.run(&["session", "export", id]);
    std::fs::write(env.root().join("export"), export).unwrap();
    assert_eq!(env.run(&["session", "import", "export"]).0, 0, "its checksums are valid");
}

#[test]
fn the_files_that_a_prompt_mentions_are_attached() {
    let env = TestEnv::new(
        &["say One.", "say Two.", "say Three."],
        r#""permission": {"read": {"*.key": "deny"}}"#,
    );
    std::fs::write(env.root().join("a.key"), "hush").unwrap();
    let pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let pixel = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, pixel).unwrap();
    std::fs::write(env.root().join("shot.png"), pixel).unwrap();
    let (code, _, stderr) = env.run(&["run", "explain @README.md and @a.key"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("note: @a.key is not attached"), "{stderr}");
    let request = env.model.requests()[0].to_string();
    assert!(request.contains("Content of README.md") && !request.contains("hush"), "{request}");
    // Resumed, with an image that the model does not accept.
    let (code, _, stderr) = env.run(&["-cp", "and @shot.png?"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("is not known to accept images: shot.png would not"), "{stderr}");
    // Standard input is not the user's own text.
    let mut command = env.windlass(&["run", "summarize"]);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"see @README.md\n").unwrap();
    assert!(child.wait().unwrap().success());
    let request = env.model.requests()[2].to_string();
    assert!(request.contains("see @README.md") && !request.contains("Content of"), "{request}");
}

/// A name that does not resolve is a wrong name, or the machine is offline.
#[test]
fn a_server_whose_name_does_not_resolve_is_tried_less_often() {
    let env = TestEnv::new(&[], "");
    env.write_config(
        r#"{"model": "lost/m", "provider": {"lost": {"api": "openai-chat", "api_key": "k",
        "base_url": "http://does-not-exist.invalid/v1", "models": {"m": {}}}}}"#,
    );
    let (code, _, stderr) = env.run(&["run", "hello"]);
    assert_eq!(code, 1, "{stderr}");
    let retries: Vec<&str> = stderr.lines().filter(|line| line.contains("; retrying in")).collect();
    assert_eq!(retries.len(), 2, "{stderr}");
    for line in retries {
        assert!(line.contains("server was not found: does-not-exist.invalid: "), "{line}");
    }
    assert!(stderr.contains("Check the network and `base_url`"), "{stderr}");
}

#[test]
fn the_exit_code_of_a_command_is_in_the_metadata_of_its_result() {
    let replies = [r#"call bash {"command": "exit 3"}"#, "say Done."];
    let env = TestEnv::new(&replies, r#""mode": "auto""#);
    let (code, out, stderr) = env.run(&["run", "Try it"]);
    assert_eq!(code, 0, "{out}\n{stderr}");
    let facts = env.facts();
    let settled = facts.iter().find(|fact| fact["kind"] == "call_settled").unwrap();
    assert_eq!(settled["outcome"]["output"]["metadata"]["exit"], 3, "{settled}");
}
