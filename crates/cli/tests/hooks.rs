//! Hooks with the real binary: what they say holds, whatever else they do is a no, and none grants.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

mod yard;

use serde_json::{Value, json};
use std::time::{Duration, Instant};
use windlass_testkit::{Model, Script};
use yard::{Yard, told};

const WRITE: &str = r#"call write {"filePath": "a.txt", "content": "x"}"#;
const READ: &str = r#"call read {"filePath": "README.md"}"#;

/// The setting for one hook, written as a line of shell.
fn hook(point: &str, line: &str, more: &Value) -> String {
    let mut entry = json!({"name": "guard", "command": line});
    entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    format!(r#""hooks": {}"#, json!({ point: [entry] }))
}

fn hooked(facts: &[Value]) -> Vec<Value> {
    facts.iter().filter(|fact| fact["kind"] == "hooked").cloned().collect()
}

fn outcome(facts: &[Value]) -> Value {
    facts.iter().find(|fact| fact["kind"] == "settled").unwrap()["outcome"].clone()
}

/// The blocks of the book's page that are to be run.
fn book() -> Vec<String> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/book/src/hooks.md");
    let page = std::fs::read_to_string(page).unwrap();
    let blocks = page.split("```sh test\n").skip(1);
    blocks.map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// A line of shell that says what comes of an expression in Python about what it is asked.
fn python(said: &str) -> String {
    let said = said.replace('\n', " ");
    format!("python3 -c 'import json, sys; ask = json.load(sys.stdin); print(json.dumps({said}))'")
}

/// What a model was sent, whole.
fn sent(yard: &Yard) -> Vec<Value> {
    yard.model.requests()
}

#[test]
fn what_a_model_is_told_first_is_what_a_hook_made_of_it() {
    let line = python(r#"{"system": ask["system"] + "\nSpeak like a pirate."}"#);
    let yard = Yard::new(&["say Done.", "say Done."], &hook("system", &line, &json!({})));
    assert_eq!(yard.run(&["run", "Hello"]).0, 0);
    let brief = sent(&yard)[0]["messages"][0]["content"].to_string();
    assert!(brief.contains("Speak like a pirate."), "{brief}");
    let facts = yard.facts();
    assert_eq!(hooked(&facts)[0]["verdict"], "rewrote");
    let briefed = facts.iter().find(|fact| fact["kind"] == "briefed").unwrap();
    assert!(briefed["text"].as_str().unwrap().contains("pirate"), "{briefed}");
    // The same again: nothing has changed, so nothing is said of a change.
    assert_eq!(yard.run(&["run", "--continue", "And now?"]).0, 0);
    let (first, second) = (&sent(&yard)[0], &sent(&yard)[1]);
    assert_eq!(first["messages"][0], second["messages"][0]);
    assert!(!yard.facts().iter().any(|fact| fact["kind"] == "context_changed"), "told anew");
}

#[test]
fn a_model_that_may_not_be_briefed_is_not_asked() {
    let yard = Yard::new(&["say Done."], &hook("system", "exit 7", &json!({})));
    let (code, _, notes) = yard.run(&["run", "Hello"]);
    assert_eq!((code, sent(&yard).len()), (3, 0), "{notes}");
    assert!(notes.contains("guard"), "{notes}");
    let facts = serde_json::to_string(&yard.facts()).unwrap();
    assert!(facts.contains("[withheld by the hook guard: ") && !facts.contains("Hello"), "{facts}");
}

#[test]
fn how_a_model_answers_is_what_a_hook_made_of_it_and_a_no_ends_the_turn() {
    let line = python(r#"{"params": {**ask["params"], "temperature": 0.25, "max_output": 123}}"#);
    let yard = Yard::new(&["say Done."], &hook("chat.params", &line, &json!({})));
    let (code, _, notes) = yard.run(&["run", "Hello"]);
    assert_eq!(code, 0, "{notes}");
    assert_eq!(sent(&yard)[0]["temperature"], 0.25, "{}", sent(&yard)[0]);
    for line in ["echo '{\"params\": {\"temperatur\": 1}}'", "echo too hot >&2; exit 2", "sleep 60"]
    {
        let more = json!({"timeout": 500});
        let yard = Yard::new(&["say Done."], &hook("params", line, &more));
        let (code, _, notes) = yard.run(&["run", "Hello"]);
        assert!(code != 0 && sent(&yard).is_empty(), "{line}: {code} {notes}");
        assert!(notes.contains("guard") || notes.contains("hook"), "{line}: {notes}");
    }
}

#[test]
fn what_a_model_is_told_of_a_tool_is_what_a_hook_made_of_it() {
    let line = python(
        r#"{"bash": {"verdict": "refuse", "reason": "no shell"},
            "read": {"description": "Reads, said the hook."}}[ask["tool"]]"#,
    );
    let bash = r#"call bash {"command": "true", "description": "d"}"#;
    let more = json!({"match": "bash|read"});
    let yard = Yard::new(&[READ, bash, "say Done."], &hook("tool.definition", &line, &more));
    let (code, _, notes) = yard.run(&["run", "Look"]);
    assert_eq!(code, 0, "{notes}");
    let requests = sent(&yard);
    let told = requests[0]["tools"].as_array().unwrap();
    let named = |name: &str| told.iter().find(|tool| tool["function"]["name"] == name);
    let read = named("read").unwrap()["function"]["description"].as_str().unwrap();
    assert_eq!(read, "Reads, said the hook.");
    assert!(named("bash").is_none() && named("write").is_some());
    assert!(requests.iter().all(|request| request["tools"] == requests[0]["tools"]));
    // Each definition was shown once, however many requests there were.
    assert_eq!(hooked(&yard.facts()).len(), 2);
    let settled: Vec<Value> =
        yard.facts().into_iter().filter(|fact| fact["kind"] == "settled").collect();
    assert_eq!(settled[0]["outcome"]["status"], "completed");
    assert_eq!(settled[1]["outcome"]["status"], "failed", "there is no such tool: {}", settled[1]);
}

#[test]
fn the_books_hook_keeps_a_file_from_being_edited() {
    let changelog = r#"call write {"filePath": "CHANGELOG.md", "content": "mine"}"#;
    let yard = Yard::new(&[changelog, WRITE, "say Done."], "");
    let bin = yard.home().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_windlass"), bin.join("windlass")).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let blocks = book();
    assert!(!blocks.is_empty(), "the page has something to try");
    for block in blocks {
        let output = std::process::Command::new("bash")
            .args(["-euc", &block])
            .current_dir(yard.root())
            .env_clear()
            .env("HOME", yard.home())
            .env("PATH", &path)
            .output()
            .unwrap();
        assert!(output.status.success(), "{block}\n{output:?}");
    }
    let (code, _, notes) = yard.run(&["run", "write it down"]);
    assert_eq!(code, 0, "{notes}");
    assert_eq!(yard.read("CHANGELOG.md"), None);
    assert_eq!(yard.read("a.txt").as_deref(), Some("x"), "{notes}");
    let facts = yard.facts();
    let text = outcome(&facts)["text"].as_str().unwrap().to_owned();
    assert!(text.starts_with("The hook guard refused: "), "{text}");
    let verdicts: Vec<Value> = hooked(&facts).iter().map(|f| f["verdict"].clone()).collect();
    assert_eq!(verdicts, ["refused", "passed"]);
    assert!(notes.contains("guard"), "{notes}");

    // What was trusted is what runs, or nothing does.
    std::fs::write(yard.root().join(".windlass/hooks/guard.py"), "print('{}')").unwrap();
    let (_, _, notes) = yard.run(&["run", "write it down"]);
    assert!(notes.contains("has changed since you trusted it"), "{notes}");
    assert_eq!(yard.read("CHANGELOG.md"), None, "the mode of a folder that is not trusted is ask");
}

#[test]
fn a_hook_rewrites_arguments_before_anything_is_decided() {
    let line = r#"echo '{"arguments": {"filePath": "b.txt", "content": "y"}}'"#;
    let settings = hook("before_tool", line, &json!({"match": "write"}));
    let yard = Yard::new(&[WRITE, "say Done."], &settings);
    let (code, _, notes) = yard.run(&["run", "--yes", "go"]);
    assert_eq!(code, 0, "{notes}");
    assert_eq!((yard.read("a.txt"), yard.read("b.txt").as_deref()), (None, Some("y")));
    let facts = yard.facts();
    assert_eq!(hooked(&facts)[0]["verdict"], "rewrote");
    let started = facts.iter().find(|fact| fact["kind"] == "started").unwrap();
    assert!(started["accesses"].to_string().contains("b.txt"), "{started}");

    // The rules decide on what the hook made of it.
    let rules = format!(r#"{settings}, "permission": {{"edit": {{"b.txt": "deny"}}}}"#);
    let yard = Yard::new(&[WRITE, "say Done."], &rules);
    yard.run(&["run", "--yes", "go"]);
    assert_eq!((yard.read("a.txt"), yard.read("b.txt")), (None, None));
}

#[test]
fn a_hook_has_a_person_asked_where_nobody_would_be() {
    let line = r#"echo '{"verdict": "ask", "reason": "is that right?"}'"#;
    let settings = hook("before_tool", line, &json!({"match": "read"}));
    let yard = Yard::new(&[READ, "say Done."], &settings);
    let (code, _, notes) = yard.run(&["run", "go"]);
    assert_eq!(code, 3, "nobody is there to be asked: {notes}");
    let facts = yard.facts();
    let asked = facts.iter().find(|fact| fact["kind"] == "asked").unwrap();
    let reason = asked["reason"].as_str().unwrap();
    assert!(reason.contains("the hook guard asks: is that right?"), "{asked}");
    let yard = Yard::new(&[READ, "say Done."], &settings);
    assert_eq!(yard.run(&["run", "--mode", "full", "go"]).0, 0);
    assert_eq!(outcome(&yard.facts())["status"], "denied", "in mode full nobody is asked");
}

#[test]
fn a_hook_withholds_or_rewrites_what_a_call_gave() {
    let line = r#"echo '{"output": "nothing to see"}'"#;
    let yard = Yard::new(&[READ, "say Done."], &hook("after_tool", line, &json!({})));
    assert_eq!(yard.run(&["run", "go"]).0, 0);
    let second = yard.model.requests()[1].to_string();
    assert!(second.contains("nothing to see") && !second.contains("A small project"), "{second}");

    let line = "grep -q 'small project' && echo 'too small' >&2 && exit 2";
    let yard = Yard::new(&[READ, "say Done."], &hook("after_tool", line, &json!({})));
    assert_eq!(yard.run(&["run", "go"]).0, 0);
    let second = yard.model.requests()[1].to_string();
    assert!(second.contains("the hook guard withheld its result: too small"), "{second}");
    assert!(!second.contains("A small project"), "{second}");
    assert_eq!(hooked(&yard.facts())[0]["point"], "after_tool");
}

#[test]
fn a_hook_refuses_rewrites_and_adds_to_a_prompt() {
    let line = r#"grep -q sk-live && echo 'that is a key' >&2 && exit 2; exit 0"#;
    let yard = Yard::new(&["say Done."], &hook("prompt", line, &json!({})));
    let (code, _, notes) = yard.run(&["run", "use sk-live-123"]);
    assert_eq!(code, 3, "{notes}");
    assert!(notes.contains("guard") && notes.contains("that is a key"), "{notes}");
    assert!(yard.model.requests().is_empty(), "the model was asked");
    let facts = yard.facts();
    assert!(!json!(facts).to_string().contains("sk-live"), "{facts:?}");
    let kept = facts.iter().find(|fact| fact["kind"] == "prompted").unwrap();
    assert_eq!(kept["text"], "[withheld by the hook guard: that is a key]");
    assert_eq!(yard.run(&["run", "an honest one"]).0, 0);

    let line = r#"echo '{"prompt": "be kind", "context": "it is raining"}'"#;
    let yard = Yard::new(&["say Done."], &hook("prompt", line, &json!({})));
    assert_eq!(yard.run(&["run", "be rude"]).0, 0);
    let first = yard.model.requests()[0].to_string();
    assert!(first.contains("be kind") && first.contains("it is raining"), "{first}");
    assert!(!first.contains("be rude"), "{first}");
    assert_eq!(hooked(&yard.facts())[0]["verdict"], "rewrote");
}

#[test]
fn a_hook_that_does_not_work_refuses_in_time_and_is_named() {
    for (line, words) in [
        ("sleep 100", "did not answer within 700 ms"),
        ("exit 1", "exited with code 1"),
        ("kill -9 $$", "hook/guard "),
        ("yes | head -c 1000000000", "more than 64 KiB"),
        ("echo yes", "not understood"),
        (r#"echo '{"verdict": "allow"}'"#, "allow"),
    ] {
        let settings = hook("before_tool", line, &json!({"timeout": 700}));
        let yard = Yard::new(&[WRITE, "say Done."], &settings);
        let since = Instant::now();
        let (code, _, notes) = yard.run(&["run", "--yes", "go"]);
        let took = since.elapsed();
        assert_eq!(code, 0, "{notes}");
        assert!(took < Duration::from_secs(8), "{line}: {took:?}");
        assert_eq!(yard.read("a.txt"), None, "{line}");
        let facts = yard.facts();
        let fired = &hooked(&facts)[0];
        assert_eq!(fired["verdict"], "failed", "{line}: {fired}");
        assert!(fired["took_ms"].as_u64().unwrap() <= 1_000, "{fired}");
        assert!(fired["reason"].as_str().unwrap().contains(words), "{line}: {fired}");
        let text = outcome(&facts)["text"].as_str().unwrap().to_owned();
        assert!(text.starts_with("The hook guard refused: ") && text.contains(words), "{text}");
        assert!(notes.contains("guard") && notes.contains(words), "{line}: {notes}");
    }
}

#[test]
fn no_hook_grants_what_a_rule_denies() {
    let allow = r#"echo '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}, "decision": "approve"}'"#;
    let entry = json!([{"matcher": "Write", "hooks": [{"type": "command", "command": allow}]}]);
    for (rules, code) in [(r#"{"edit": "deny"}"#, 0), (r#"{"edit": "ask"}"#, 3)] {
        let hooks = json!({"PreToolUse": entry, "PermissionRequest": entry});
        let settings = format!(r#""hooks": {hooks}, "permission": {rules}"#);
        let yard = Yard::new(&[WRITE, "say Done."], &settings);
        let (got, _, notes) = yard.run(&["run", "go"]);
        assert_eq!(got, code, "{rules}: {notes}");
        assert_eq!(yard.read("a.txt"), None, "{rules}");
        let facts = yard.facts();
        let passed = |fact: &Value| fact["verdict"] == "passed";
        // What a rule denies as such is not even shown to a hook.
        assert!(hooked(&facts).iter().all(passed), "{rules}: {facts:?}");
    }
}

#[test]
fn a_hook_in_claudes_form_is_told_claudes_names() {
    let check = r#"python3 -c '
import json, os, sys
ask = json.load(sys.stdin)
assert ask["tool_name"] == "Write" and ask["hook_event_name"] == "PreToolUse"
assert ask["tool_input"]["file_path"] == os.path.join(os.environ["CLAUDE_PROJECT_DIR"], "a.txt")
ask["tool_input"]["content"] = "theirs"
print(json.dumps({"hookSpecificOutput": {"updatedInput": ask["tool_input"]}}))'"#;
    let entry =
        json!([{"matcher": "Write|Edit", "hooks": [{"type": "command", "command": check}]}]);
    let settings = format!(r#""hooks": {}"#, json!({"PreToolUse": entry}));
    let yard = Yard::new(&[WRITE, "say Done."], &settings);
    let (code, _, notes) = yard.run(&["run", "--yes", "go"]);
    assert_eq!(code, 0, "{notes}");
    assert_eq!(yard.read("a.txt").as_deref(), Some("theirs"), "{notes}");
}

#[test]
fn what_is_around_a_session_is_told_to_hooks() {
    let settings = format!(
        r#""hooks": {}"#,
        json!({
            "session_start": [{"name": "hello", "command": r#"grep -q startup && echo '{"context": "the moon is full"}'"#}],
            "turn_end": [{"name": "done", "command": "sleep 0.3; grep -q '\"end\"'"}],
            "session_end": [{"name": "bye", "command": "exit 1"}],
            "event": [{"name": "all", "match": "said", "command": "true"}],
        })
    );
    let yard = Yard::new(&["say Done."], &settings);
    let (code, _, notes) = yard.run(&["run", "go"]);
    assert_eq!(code, 0, "{notes}");
    let first = yard.model.requests()[0].to_string();
    assert!(first.contains("the moon is full"), "{first}");
    let said: Vec<(String, String)> = hooked(&yard.facts())
        .iter()
        .map(|fact| {
            (fact["hook"].as_str().unwrap().into(), fact["verdict"].as_str().unwrap().into())
        })
        .collect();
    let expected = [("hello", "passed"), ("done", "passed"), ("bye", "failed")];
    assert_eq!(said, expected.map(|(hook, verdict)| (hook.to_owned(), verdict.to_owned())));
}

#[test]
fn a_hook_of_a_folder_nobody_trusts_is_never_run() {
    let yard = Yard::new(&[WRITE, "say Done."], "");
    let root = yard.root();
    std::fs::create_dir_all(root.join(".windlass/hooks")).unwrap();
    let evil = root.join(".windlass/hooks/evil");
    std::fs::write(&evil, "#!/bin/sh\nexit 0\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&evil, mode).unwrap();
    let points =
        ["prompt", "session_start", "before_tool", "after_tool", "turn_end", "session_end"];
    let entries = points.map(|point| (point.to_owned(), json!([{"command": [evil]}])));
    let hooks = Value::Object(entries.into_iter().collect());
    for name in ["windlass.jsonc", ".windlass/windlass.jsonc"] {
        std::fs::write(root.join(name), json!({ "hooks": hooks }).to_string()).unwrap();
    }
    let log = yard.home().join("trace");
    let log_name = log.to_str().unwrap();
    let wrapper =
        ["strace", "-f", "-s", "4096", "-e", "trace=execve,execveat,openat", "-o", log_name];
    for (arguments, code) in [(&["run", "--yes", "go"][..], 0), (&["tool", "list"], 0)] {
        let (got, _, notes) = told(&yard.wrapped(&wrapper, arguments).output().unwrap());
        assert_eq!(got, code, "{notes}");
        let trace = std::fs::read_to_string(&log).unwrap();
        assert!(trace.contains("execve("), "nothing was traced");
        assert!(!trace.contains(".windlass/hooks"), "{arguments:?}");
    }
    assert!(hooked(&yard.facts()).is_empty());

    // The same hooks are asked once somebody trusts the folder, which shows that they would have run.
    assert_eq!(yard.run(&["trust", "--yes"]).0, 0);
    yard.run(&["run", "--yes", "go"]);
    assert!(!hooked(&yard.facts()).is_empty());
}

#[test]
fn an_agent_below_has_the_same_hooks() {
    let task = r#"call task {"description": "d", "prompt": "do it", "subagent_type": "helper"}"#;
    let yard = Yard::new(&[task, "say Over."], "");
    let child = Model::start(Script::new([WRITE, "say Over."]));
    let provider = |url: String| json!({"api": "openai-chat", "base_url": url, "api_key": "k", "models": {"m": {}}});
    let line = "echo 'not by anybody' >&2; exit 2";
    yard.write_config(
        &json!({
            "model": "scripted/m",
            "provider": {"scripted": provider(yard.model.url()), "child": provider(child.url())},
            "hooks": {"before_tool": [{"name": "guard", "match": "write", "command": line}]},
        })
        .to_string(),
    );
    let agents = yard.home().join(".config/windlass/agents");
    std::fs::create_dir_all(&agents).unwrap();
    let text = "---\ndescription: Helps\nmode: subagent\nmodel: child/m\npermission:\n  \"*\": \
                allow\n---\nYou help.\n";
    std::fs::write(agents.join("helper.md"), text).unwrap();
    let (code, _, notes) = yard.run(&["run", "go", "--yes"]);
    assert_eq!(code, 0, "{notes}");
    assert_eq!(yard.read("a.txt"), None);
    let (_, list, _) = yard.run(&["session", "list", "--all", "--json"]);
    let list: Value = serde_json::from_str(&list).unwrap();
    let row = list.as_array().unwrap().iter().find(|row| row["parent"].is_string()).unwrap();
    let facts = yard.facts_of(row["session"].as_str().unwrap());
    assert_eq!(hooked(&facts)[0]["verdict"], "refused");
    assert!(outcome(&facts)["text"].as_str().unwrap().contains("not by anybody"), "{facts:?}");
}

#[test]
fn a_hook_that_cannot_be_read_keeps_everything_from_starting() {
    for hooks in [
        r#"{"before_tool": [{"command": "true", "match": "("}]}"#,
        r#"{"before_tol": [{"command": "true"}]}"#,
        r#"{"before_tool": [{"command": "true", "grants": "everything"}]}"#,
    ] {
        let yard = Yard::new(&["say Done."], &format!(r#""hooks": {hooks}"#));
        let (code, _, notes) = yard.run(&["run", "go"]);
        assert_eq!(code, 2, "{hooks}: {notes}");
        assert!(yard.model.requests().is_empty(), "{hooks}");
    }
}
