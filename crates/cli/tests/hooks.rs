//! Hooks with the real binary: a hook denies or rewrites, a failing hook denies, and none grants.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests set up files and processes, and fail by panicking"
)]

mod support;

use serde_json::{Value, json};
use std::time::{Duration, Instant};
use support::{TestEnv, decode_output};
use windlass_testkit::{ModelScript, ScriptedModel};

const WRITE: &str = r#"call write {"filePath": "a.txt", "content": "x"}"#;
const READ: &str = r#"call read {"filePath": "README.md"}"#;

/// Returns the setting for one hook, which is a line of shell.
fn hook(point: &str, line: &str, more: &Value) -> String {
    let mut entry = json!({"name": "guard", "command": line});
    entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    format!(r#""hooks": {}"#, json!({ point: [entry] }))
}

/// Returns the facts about hooks that ran.
fn hook_facts(facts: &[Value]) -> Vec<Value> {
    facts.iter().filter(|fact| fact["kind"] == "hook_ran").cloned().collect()
}

/// Returns the outcome of the first settled call.
fn first_outcome(facts: &[Value]) -> Value {
    facts.iter().find(|fact| fact["kind"] == "call_settled").unwrap()["outcome"].clone()
}

/// Returns the blocks of the book's page that are marked as tests.
fn book_blocks() -> Vec<String> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/book/src/hooks.md");
    let page = std::fs::read_to_string(page).unwrap();
    let blocks = page.split("```sh test\n").skip(1);
    blocks.map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// Returns a line of shell that prints the value of a Python expression. In it, `ask` is the input
/// of the hook.
fn python_hook(expression: &str) -> String {
    let expression = expression.replace('\n', " ");
    format!(
        "python3 -c 'import json, sys; ask = json.load(sys.stdin); print(json.dumps({expression}))'"
    )
}

/// Returns the bodies of all requests.
fn sent_requests(env: &TestEnv) -> Vec<Value> {
    env.model.requests()
}

#[test]
fn a_hook_rewrites_the_system_prompt() {
    let line = python_hook(r#"{"system": ask["system"] + "\nSpeak like a pirate."}"#);
    let env = TestEnv::new(&["say Done.", "say Done."], &hook("system", &line, &json!({})));
    assert_eq!(env.run(&["run", "Hello"]).0, 0);
    let system_prompt = sent_requests(&env)[0]["messages"][0]["content"].to_string();
    assert!(system_prompt.contains("Speak like a pirate."), "{system_prompt}");
    let facts = env.facts();
    assert_eq!(hook_facts(&facts)[0]["verdict"], "rewrote");
    let system_prompt_set = facts.iter().find(|fact| fact["kind"] == "system_prompt_set").unwrap();
    assert!(system_prompt_set["text"].as_str().unwrap().contains("pirate"), "{system_prompt_set}");
    // The second turn has the same system prompt, so no change is reported.
    assert_eq!(env.run(&["run", "--continue", "And now?"]).0, 0);
    let (first, second) = (&sent_requests(&env)[0], &sent_requests(&env)[1]);
    assert_eq!(first["messages"][0], second["messages"][0]);
    assert!(
        !env.facts().iter().any(|fact| fact["kind"] == "context_changed"),
        "a change was reported"
    );
}

#[test]
fn a_failing_system_hook_prevents_the_request() {
    let env = TestEnv::new(&["say Done."], &hook("system", "exit 7", &json!({})));
    let (code, _, stderr) = env.run(&["run", "Hello"]);
    assert_eq!((code, sent_requests(&env).len()), (3, 0), "{stderr}");
    assert!(stderr.contains("guard"), "{stderr}");
    let facts = serde_json::to_string(&env.facts()).unwrap();
    assert!(facts.contains("[blocked by the hook guard: ") && !facts.contains("Hello"), "{facts}");
}

#[test]
fn a_hook_rewrites_request_parameters_and_a_denial_ends_the_turn() {
    let line =
        python_hook(r#"{"params": {**ask["params"], "temperature": 0.25, "max_output": 123}}"#);
    let env = TestEnv::new(&["say Done."], &hook("chat.params", &line, &json!({})));
    let (code, _, stderr) = env.run(&["run", "Hello"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(sent_requests(&env)[0]["temperature"], 0.25, "{}", sent_requests(&env)[0]);
    for line in ["echo '{\"params\": {\"temperatur\": 1}}'", "echo too hot >&2; exit 2", "sleep 60"]
    {
        let more = json!({"timeout": 500});
        let env = TestEnv::new(&["say Done."], &hook("params", line, &more));
        let (code, _, stderr) = env.run(&["run", "Hello"]);
        assert!(code != 0 && sent_requests(&env).is_empty(), "{line}: {code} {stderr}");
        assert!(stderr.contains("guard") || stderr.contains("hook"), "{line}: {stderr}");
    }
}

#[test]
fn a_hook_rewrites_and_removes_tool_definitions() {
    let line = python_hook(
        r#"{"bash": {"verdict": "refuse", "reason": "no shell"},
            "read": {"description": "Reads, said the hook."}}[ask["tool"]]"#,
    );
    let bash = r#"call bash {"command": "true", "description": "d"}"#;
    let more = json!({"match": "bash|read"});
    let env = TestEnv::new(&[READ, bash, "say Done."], &hook("tool.definition", &line, &more));
    let (code, _, stderr) = env.run(&["run", "Look"]);
    assert_eq!(code, 0, "{stderr}");
    let requests = sent_requests(&env);
    let tools = requests[0]["tools"].as_array().unwrap();
    let named = |name: &str| tools.iter().find(|tool| tool["function"]["name"] == name);
    let read = named("read").unwrap()["function"]["description"].as_str().unwrap();
    assert_eq!(read, "Reads, said the hook.");
    assert!(named("bash").is_none() && named("write").is_some());
    assert!(requests.iter().all(|request| request["tools"] == requests[0]["tools"]));
    // The hook ran once for each definition, not for each request.
    assert_eq!(hook_facts(&env.facts()).len(), 2);
    let settled: Vec<Value> =
        env.facts().into_iter().filter(|fact| fact["kind"] == "call_settled").collect();
    assert_eq!(settled[0]["outcome"]["status"], "completed");
    assert_eq!(
        settled[1]["outcome"]["status"], "failed",
        "the removed tool was called: {}",
        settled[1]
    );
}

#[test]
fn the_hook_in_the_book_protects_a_file() {
    let changelog = r#"call write {"filePath": "CHANGELOG.md", "content": "mine"}"#;
    let env = TestEnv::new(&[changelog, WRITE, "say Done."], "");
    let bin = env.home().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_windlass"), bin.join("windlass")).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let blocks = book_blocks();
    assert!(!blocks.is_empty(), "the page has no test");
    for block in blocks {
        let output = std::process::Command::new("bash")
            .args(["-euc", &block])
            .current_dir(env.root())
            .env_clear()
            .env("HOME", env.home())
            .env("PATH", &path)
            .output()
            .unwrap();
        assert!(output.status.success(), "{block}\n{output:?}");
    }
    let (code, _, stderr) = env.run(&["run", "write it down"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(env.read("CHANGELOG.md"), None);
    assert_eq!(env.read("a.txt").as_deref(), Some("x"), "{stderr}");
    let facts = env.facts();
    let text = first_outcome(&facts)["text"].as_str().unwrap().to_owned();
    assert!(text.starts_with("The hook `guard` denied this: "), "{text}");
    let verdicts: Vec<Value> = hook_facts(&facts).iter().map(|f| f["verdict"].clone()).collect();
    assert_eq!(verdicts, ["refused", "passed"]);
    assert!(stderr.contains("guard"), "{stderr}");

    // A hook that has changed since the folder was trusted does not run.
    std::fs::write(env.root().join(".windlass/hooks/guard.py"), "print('{}')").unwrap();
    let (_, _, stderr) = env.run(&["run", "write it down"]);
    assert!(stderr.contains("has changed since you trusted it"), "{stderr}");
    assert_eq!(env.read("CHANGELOG.md"), None, "the mode of an untrusted folder is ask");
}

#[test]
fn a_hook_rewrites_arguments_before_permissions_are_checked() {
    let line = r#"echo '{"arguments": {"filePath": "b.txt", "content": "y"}}'"#;
    let settings = hook("before_tool", line, &json!({"match": "write"}));
    let env = TestEnv::new(&[WRITE, "say Done."], &settings);
    let (code, _, stderr) = env.run(&["run", "--yes", "go"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!((env.read("a.txt"), env.read("b.txt").as_deref()), (None, Some("y")));
    let facts = env.facts();
    assert_eq!(hook_facts(&facts)[0]["verdict"], "rewrote");
    let started = facts.iter().find(|fact| fact["kind"] == "call_started").unwrap();
    assert!(started["accesses"].to_string().contains("b.txt"), "{started}");

    // Rules apply to the rewritten arguments.
    let rules = format!(r#"{settings}, "permission": {{"edit": {{"b.txt": "deny"}}}}"#);
    let env = TestEnv::new(&[WRITE, "say Done."], &rules);
    env.run(&["run", "--yes", "go"]);
    assert_eq!((env.read("a.txt"), env.read("b.txt")), (None, None));
}

#[test]
fn a_hook_can_require_approval_for_an_allowed_call() {
    let line = r#"echo '{"verdict": "ask", "reason": "is that right?"}'"#;
    let settings = hook("before_tool", line, &json!({"match": "read"}));
    let env = TestEnv::new(&[READ, "say Done."], &settings);
    let (code, _, stderr) = env.run(&["run", "go"]);
    assert_eq!(code, 3, "no user is available to approve: {stderr}");
    let facts = env.facts();
    let request = facts.iter().find(|fact| fact["kind"] == "permission_asked").unwrap();
    let reason = request["reason"].as_str().unwrap();
    assert!(reason.contains("the hook `guard` requires approval: is that right?"), "{request}");
    let env = TestEnv::new(&[READ, "say Done."], &settings);
    assert_eq!(env.run(&["run", "--mode", "full", "go"]).0, 0);
    assert_eq!(first_outcome(&env.facts())["status"], "denied", "mode full never asks the user");
}

#[test]
fn a_hook_withholds_or_rewrites_the_output_of_a_call() {
    let line = r#"echo '{"output": "nothing to see"}'"#;
    let env = TestEnv::new(&[READ, "say Done."], &hook("after_tool", line, &json!({})));
    assert_eq!(env.run(&["run", "go"]).0, 0);
    let second = env.model.requests()[1].to_string();
    assert!(second.contains("nothing to see") && !second.contains("A small project"), "{second}");

    let line = "grep -q 'small project' && echo 'too small' >&2 && exit 2";
    let env = TestEnv::new(&[READ, "say Done."], &hook("after_tool", line, &json!({})));
    assert_eq!(env.run(&["run", "go"]).0, 0);
    let second = env.model.requests()[1].to_string();
    assert!(second.contains("the hook `guard` withheld its result: too small"), "{second}");
    assert!(!second.contains("A small project"), "{second}");
    assert_eq!(hook_facts(&env.facts())[0]["point"], "after_tool");
}

#[test]
fn a_hook_denies_rewrites_and_extends_a_prompt() {
    let line = r#"grep -q sk-live && echo 'that is a key' >&2 && exit 2; exit 0"#;
    let env = TestEnv::new(&["say Done."], &hook("prompt", line, &json!({})));
    let (code, _, stderr) = env.run(&["run", "use sk-live-123"]);
    assert_eq!(code, 3, "{stderr}");
    assert!(stderr.contains("guard") && stderr.contains("that is a key"), "{stderr}");
    assert!(env.model.requests().is_empty(), "a request was sent");
    let facts = env.facts();
    assert!(!json!(facts).to_string().contains("sk-live"), "{facts:?}");
    let submitted = facts.iter().find(|fact| fact["kind"] == "prompt_submitted").unwrap();
    assert_eq!(submitted["text"], "[blocked by the hook guard: that is a key]");
    assert_eq!(env.run(&["run", "an honest one"]).0, 0);

    let line = r#"echo '{"prompt": "be kind", "context": "it is raining"}'"#;
    let env = TestEnv::new(&["say Done."], &hook("prompt", line, &json!({})));
    assert_eq!(env.run(&["run", "be rude"]).0, 0);
    let first = env.model.requests()[0].to_string();
    assert!(first.contains("be kind") && first.contains("it is raining"), "{first}");
    assert!(!first.contains("be rude"), "{first}");
    assert_eq!(hook_facts(&env.facts())[0]["verdict"], "rewrote");
}

#[test]
fn a_failing_hook_denies_in_time_and_is_named() {
    for (line, words) in [
        ("sleep 100", "did not answer within 700 ms"),
        ("exit 1", "exited with code 1"),
        ("kill -9 $$", "hook/guard "),
        ("yes | head -c 1000000000", "more than 64 KiB"),
        ("echo yes", "invalid output"),
        (r#"echo '{"verdict": "allow"}'"#, "allow"),
    ] {
        let settings = hook("before_tool", line, &json!({"timeout": 700}));
        let env = TestEnv::new(&[WRITE, "say Done."], &settings);
        let start = Instant::now();
        let (code, _, stderr) = env.run(&["run", "--yes", "go"]);
        let duration = start.elapsed();
        assert_eq!(code, 0, "{stderr}");
        assert!(duration < Duration::from_secs(8), "{line}: {duration:?}");
        assert_eq!(env.read("a.txt"), None, "{line}");
        let facts = env.facts();
        let hook_fact = &hook_facts(&facts)[0];
        assert_eq!(hook_fact["verdict"], "failed", "{line}: {hook_fact}");
        assert!(hook_fact["duration_ms"].as_u64().unwrap() <= 1_000, "{hook_fact}");
        assert!(hook_fact["reason"].as_str().unwrap().contains(words), "{line}: {hook_fact}");
        let text = first_outcome(&facts)["text"].as_str().unwrap().to_owned();
        assert!(
            text.starts_with("The hook `guard` denied this: ") && text.contains(words),
            "{text}"
        );
        assert!(stderr.contains("guard") && stderr.contains(words), "{line}: {stderr}");
    }
}

#[test]
fn no_hook_grants_what_a_rule_denies() {
    let allow = r#"echo '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}, "decision": "approve"}'"#;
    let entry = json!([{"matcher": "Write", "hooks": [{"type": "command", "command": allow}]}]);
    for (rules, code) in [(r#"{"edit": "deny"}"#, 0), (r#"{"edit": "ask"}"#, 3)] {
        let hooks = json!({"PreToolUse": entry, "PermissionRequest": entry});
        let settings = format!(r#""hooks": {hooks}, "permission": {rules}"#);
        let env = TestEnv::new(&[WRITE, "say Done."], &settings);
        let (got, _, stderr) = env.run(&["run", "go"]);
        assert_eq!(got, code, "{rules}: {stderr}");
        assert_eq!(env.read("a.txt"), None, "{rules}");
        let facts = env.facts();
        let passed = |fact: &Value| fact["verdict"] == "passed";
        // A hook does not run for a tool that a rule denies completely.
        assert!(hook_facts(&facts).iter().all(passed), "{rules}: {facts:?}");
    }
}

#[test]
fn a_hook_in_the_format_of_claude_gets_names_of_claude() {
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
    let env = TestEnv::new(&[WRITE, "say Done."], &settings);
    let (code, _, stderr) = env.run(&["run", "--yes", "go"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(env.read("a.txt").as_deref(), Some("theirs"), "{stderr}");
}

#[test]
fn hooks_run_at_the_start_and_end_of_sessions_and_turns() {
    let settings = format!(
        r#""hooks": {}"#,
        json!({
            "session_start": [{"name": "hello", "command": r#"grep -q startup && echo '{"context": "the moon is full"}'"#}],
            "turn_end": [{"name": "done", "command": "sleep 0.3; grep -q '\"end\"'"}],
            "session_end": [{"name": "bye", "command": "exit 1"}],
            "event": [{"name": "all", "match": "model_text", "command": "true"}],
        })
    );
    let env = TestEnv::new(&["say Done."], &settings);
    let (code, _, stderr) = env.run(&["run", "go"]);
    assert_eq!(code, 0, "{stderr}");
    let first = env.model.requests()[0].to_string();
    assert!(first.contains("the moon is full"), "{first}");
    let verdicts: Vec<(String, String)> = hook_facts(&env.facts())
        .iter()
        .map(|fact| {
            (fact["hook"].as_str().unwrap().into(), fact["verdict"].as_str().unwrap().into())
        })
        .collect();
    let expected = [("hello", "passed"), ("done", "passed"), ("bye", "failed")];
    assert_eq!(verdicts, expected.map(|(hook, verdict)| (hook.to_owned(), verdict.to_owned())));
}

#[test]
fn hooks_of_an_untrusted_folder_never_run() {
    let env = TestEnv::new(&[WRITE, "say Done."], "");
    let root = env.root();
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
    let log = env.home().join("trace");
    let log_name = log.to_str().unwrap();
    let wrapper =
        ["strace", "-f", "-s", "4096", "-e", "trace=execve,execveat,openat", "-o", log_name];
    for (arguments, code) in [(&["run", "--yes", "go"][..], 0), (&["tool", "list"], 0)] {
        let (got, _, stderr) = decode_output(&env.wrapped(&wrapper, arguments).output().unwrap());
        assert_eq!(got, code, "{stderr}");
        let trace = std::fs::read_to_string(&log).unwrap();
        assert!(trace.contains("execve("), "nothing was traced");
        assert!(!trace.contains(".windlass/hooks"), "{arguments:?}");
    }
    assert!(hook_facts(&env.facts()).is_empty());

    // The same hooks run once the folder is trusted, so the trace would have shown them.
    assert_eq!(env.run(&["trust", "--yes"]).0, 0);
    env.run(&["run", "--yes", "go"]);
    assert!(!hook_facts(&env.facts()).is_empty());
}

#[test]
fn a_subagent_has_the_same_hooks() {
    let task = r#"call task {"description": "d", "prompt": "do it", "subagent_type": "helper"}"#;
    let env = TestEnv::new(&[task, "say Over."], "");
    let child = ScriptedModel::start(ModelScript::new([WRITE, "say Over."]));
    let provider = |url: String| json!({"api": "openai-chat", "base_url": url, "api_key": "k", "models": {"m": {}}});
    let line = "echo 'not by anybody' >&2; exit 2";
    env.write_config(
        &json!({
            "model": "scripted/m",
            "provider": {"scripted": provider(env.model.url()), "child": provider(child.url())},
            "hooks": {"before_tool": [{"name": "guard", "match": "write", "command": line}]},
        })
        .to_string(),
    );
    let agents = env.home().join(".config/windlass/agents");
    std::fs::create_dir_all(&agents).unwrap();
    let text = "---\ndescription: Helps\nmode: subagent\nmodel: child/m\npermission:\n  \"*\": \
                allow\n---\nYou help.\n";
    std::fs::write(agents.join("helper.md"), text).unwrap();
    let (code, _, stderr) = env.run(&["run", "go", "--yes"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(env.read("a.txt"), None);
    let (_, list, _) = env.run(&["session", "list", "--all", "--json"]);
    let list: Value = serde_json::from_str(&list).unwrap();
    let row = list.as_array().unwrap().iter().find(|row| row["parent"].is_string()).unwrap();
    let facts = env.facts_of(row["session"].as_str().unwrap());
    assert_eq!(hook_facts(&facts)[0]["verdict"], "refused");
    assert!(
        first_outcome(&facts)["text"].as_str().unwrap().contains("not by anybody"),
        "{facts:?}"
    );
}

#[test]
fn an_invalid_hook_prevents_the_start() {
    for hooks in [
        r#"{"before_tool": [{"command": "true", "match": "("}]}"#,
        r#"{"before_tol": [{"command": "true"}]}"#,
        r#"{"before_tool": [{"command": "true", "grants": "everything"}]}"#,
    ] {
        let env = TestEnv::new(&["say Done."], &format!(r#""hooks": {hooks}"#));
        let (code, _, stderr) = env.run(&["run", "go"]);
        assert_eq!(code, 2, "{hooks}: {stderr}");
        assert!(env.model.requests().is_empty(), "{hooks}");
    }
}
