//! `windlass permission`: rules and approvals are listed, explained and revoked; a managed policy
//! overrides everything.
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

use serde_json::Value;
use std::time::{Duration, Instant};
use support::{TestEnv, decode_output};
use windlass_project::{ApprovalStore, Dirs};
use windlass_protocol::{
    CallAuthor, CallDescription, CallId, CallOutcome, Fact, SessionId, ToolAccess, UnixMillis,
};
use windlass_storage::{Log, SqliteLog};

fn approvals(env: &TestEnv) -> ApprovalStore {
    let dirs = Dirs {
        home: env.home(),
        config: env.home().join(".config/windlass"),
        data: env.data(),
        cache: env.home().join(".cache/windlass"),
        plugins: env.home().join(".local/share/windlass-plugins"),
        managed_policy: None,
        tenant_policy: None,
        checkouts: std::collections::BTreeMap::new(),
    };
    ApprovalStore::read(&dirs).unwrap()
}

#[test]
fn approvals_are_listed_and_revoked_by_number() {
    let env = TestEnv::new(&[], r#""permission": {"edit": {"docs/*": "allow"}, "read": "allow"}"#);
    let (code, out, stderr) = env.run(&["permission", "list"]);
    assert_eq!(code, 0);
    assert!(out.contains("edit docs/* = allow  (") && out.contains("windlass.jsonc:2:"), "{out}");
    assert!(stderr.contains("no saved approvals for this project"), "{stderr}");
    let mut store = approvals(&env);
    for subject in ["cargo test", "printf '\u{1b}[2J'\n   2  bash  fake", "cargo doc"] {
        store.add(&env.root(), "bash", subject, UnixMillis(0)).unwrap();
    }
    let (_, out, _) = env.run(&["permission", "list"]);
    assert!(out.contains("   1  bash  cargo test  ("), "{out}");
    assert!(out.contains("   2  bash  printf '"), "{out}");
    assert!(!out.contains('\u{1b}') && !out.contains("\n   2  bash  fake"), "{out}");
    let (_, json, _) = env.run(&["permission", "list", "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["approvals"][2]["subject"], "cargo doc");
    assert_eq!(json["rules"][0]["level"], "allow");

    for (number, code) in [("2", 0), ("7", 2), ("0", 2), ("-1", 2), ("x", 2)] {
        assert_eq!(env.run(&["permission", "revoke", number]).0, code, "{number}");
    }
    assert_eq!(env.run(&["permission", "revoke"]).0, 2, "a number is required");
    let left: Vec<String> = approvals(&env)
        .for_project(&env.root())
        .into_iter()
        .map(|approval| approval.subject)
        .collect();
    assert_eq!(left, ["cargo test", "cargo doc"]);
    let (code, _, stderr) = env.run(&["permission", "revoke", "--all"]);
    assert!(code == 0 && stderr.contains("2 revoked"), "{stderr}");
    assert!(approvals(&env).for_project(&env.root()).is_empty());
}

#[test]
fn a_command_is_explained_and_not_run() {
    let env = TestEnv::new(&[], r#""permission": {"bash": {"touch *": "deny"}}"#);
    let command = "touch pwned; echo 'a\nb'";
    let (code, out, _) = env.run(&["permission", "explain", command, "--output", "json"]);
    assert_eq!(code, 0);
    let out: Value = serde_json::from_str(&out).unwrap();
    assert!(["allow", "ask", "deny"].contains(&out["verdict"].as_str().unwrap()), "{out}");
    for name in ["text", "words", "verdict", "reason", "rule"] {
        assert!(out["segments"][0].get(name).is_some(), "{name}: {out}");
    }
    assert!(out["rules"][0].as_str().unwrap().contains("bash touch *"), "{out}");
    assert_eq!(env.read("pwned"), None);
    let elsewhere = env.home().join("other");
    std::fs::create_dir(&elsewhere).unwrap();
    let folder = elsewhere.to_str().unwrap();
    let explain = ["permission", "explain", "ls", "--mode", "plan", "--workspace"];
    assert_eq!(env.run(&[&explain[..], &[folder]].concat()).0, 0);
    assert_eq!(
        env.run(&[&explain[..], &["nowhere"]].concat()).0,
        0,
        "the folder does not have to exist"
    );
    let (code, _, stderr) = env.run(&[&explain[..], &["README.md"]].concat());
    assert!(code == 2 && stderr.contains("README.md is not a folder"), "{stderr}");
}

#[test]
fn without_rules_the_list_describes_the_mode() {
    for (mode, description) in [
        ("plan", "nothing in the project is changed"),
        ("ask", "everything else requires approval"),
        ("auto", "allows reading and edits in the project"),
        ("full", "allows everything that no rule denies and that is not protected"),
    ] {
        let env = TestEnv::new(&[], &format!(r#""mode": "{mode}""#));
        let (code, _, stderr) = env.run(&["permission", "list"]);
        assert!(code == 0 && stderr.contains(&format!("no rules; {mode} mode ")), "{stderr}");
        assert!(stderr.contains(description), "{stderr}");
    }
    let (_, help, _) = TestEnv::new(&[], "").run(&["run", "--help"]);
    for text in ["except leaving the sandbox", "WARNING: with `off`", "otherwise `ask`"] {
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(help.contains(text), "{text}: {help}");
    }
}

#[test]
fn only_known_modes_and_sandbox_values_are_accepted() {
    let env = TestEnv::new(&[], "");
    let read = r#"{"filePath": "README.md"}"#;
    for (flag, value, code) in [
        ("--mode", "plan", 0),
        ("--mode", "full", 0),
        ("--mode", "yolo", 2),
        ("--mode", "", 2),
        ("--sandbox", "on", 0),
        ("--sandbox", "off", 0),
        ("--sandbox", "maybe", 2),
    ] {
        let (got, _, stderr) = env.run(&["tool", "call", flag, value, "read", read]);
        assert_eq!(got, code, "{flag} {value}: {stderr}");
    }
    assert!(env.run(&["completions", "bash"]).1.contains("plan ask auto full"));
}

#[test]
fn doctor_lists_programs_and_runs_nothing_of_the_project() {
    use std::os::unix::fs::PermissionsExt;
    let env = TestEnv::new(&[], "");
    let fake = env.root().join("git");
    std::fs::write(&fake, "#!/bin/sh\ntouch pwned\n").unwrap();
    std::fs::set_permissions(&fake, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    let path = format!(".:{}::{path}", env.root().display());
    let (code, out, stderr) =
        decode_output(&env.windlass(&["doctor"]).env("PATH", path).output().unwrap());
    assert_eq!(code, 0, "{stderr}");
    assert!(out.contains("git version") && out.contains("GNU bash"), "{out}");
    assert!(out.contains(&env.data().display().to_string()), "{out}");
    assert_eq!(env.read("pwned"), None);
    env.write_config("{");
    let (code, out, stderr) = env.run(&["doctor"]);
    assert!(
        code == 1 && out.contains("git version") && stderr.contains("invalid JSON"),
        "{stderr}"
    );
}

/// Runs the binary with `policy` as the managed policy; `mode` is that of its file.
fn run_with_managed_policy(
    env: &TestEnv,
    policy: &str,
    mode: u32,
    arguments: &[&str],
) -> (i32, String, String) {
    use std::os::unix::fs::PermissionsExt;
    let folder = env.home().join("policy");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    let file = folder.join("managed.jsonc");
    std::fs::write(&file, policy).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    let folder = folder.to_str().unwrap();
    #[rustfmt::skip]
    let wrapper = [
        "bwrap", "--unshare-user", "--uid", "0", "--gid", "0", "--dev-bind", "/", "/",
        "--tmpfs", "/etc", "--ro-bind-try", "/etc/ssl", "/etc/ssl",
        "--ro-bind", folder, "/etc/windlass", "--",
    ];
    let output = env.wrapped(&wrapper, arguments).output();
    decode_output(&output.expect("bwrap is needed: apt-get install bubblewrap"))
}

#[test]
fn the_managed_policy_overrides_config_and_flags() {
    let own = r#""permission": "allow", "mode": "full", "sandbox": {"enabled": false, "network": ["own.example"]}"#;
    let env = TestEnv::new(&["say Done."], own);
    let policy = r#"{"mode": "ask", "sandbox": {"enabled": true, "network": ["corp.example"]},
        "permission": {"read": {"README.md": "deny"}}, "model": "corp/m"}"#;
    let read = [
        "tool",
        "call",
        "--mode",
        "full",
        "--sandbox",
        "off",
        "read",
        r#"{"filePath": "README.md"}"#,
    ];
    assert_eq!(env.run(&read).0, 0, "the read is denied without a policy");
    let (code, _, stderr) = run_with_managed_policy(&env, policy, 0o644, &read);
    assert_eq!(code, 3, "the user's `allow` overrides the policy: {stderr}");
    assert_eq!(
        stderr.matches("is less restrictive than the policy of this machine allows").count(),
        2,
        "{stderr}"
    );
    assert_eq!(
        stderr.matches("the policy of this machine requires the sandbox").count(),
        2,
        "{stderr}"
    );
    assert!(stderr.contains("the managed policy can only set `permission`"), "{stderr}");
    let (_, shown, _) = run_with_managed_policy(&env, policy, 0o644, &["config", "show"]);
    for line in [
        "mode = ask  (/etc/windlass/managed.jsonc:1:2)",
        "sandbox.enabled = true  (/etc/windlass/managed.jsonc:",
        "sandbox.network = [\"corp.example\"]  (/etc/windlass/managed.jsonc:",
        "permission.read README.md = deny  (/etc/windlass/managed.jsonc:",
        "model = scripted/m  (",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    let (code, _, stderr) = run_with_managed_policy(&env, policy, 0o644, &["run", "p"]);
    assert_eq!(code, 0, "{stderr}");

    for (policy, mode, message) in [
        (policy, 0o664, "is writable by users other than root"),
        (policy, 0o646, "is writable by users other than root"),
        ("{", 0o644, "invalid JSON"),
        (r#"{"mode": "strict"}"#, 0o644, "`mode` must be"),
        (r#"{"permission": {"read": "never"}}"#, 0o644, "expected \"allow\""),
    ] {
        let (code, out, stderr) = run_with_managed_policy(&env, policy, mode, &read);
        assert!(code == 2 && out.is_empty() && stderr.contains(message), "{policy}: {stderr}");
    }
}

#[test]
fn a_rule_without_effect_is_reported_with_what_to_write_instead() {
    let env = TestEnv::new(
        &["say Hello."],
        r#""permission": {"bash": {"git push *": "ask", "*": "allow"}, "bahs": "deny",
        "edit": {"*": "deny", "docs/*": "allow"}, "process": {"git": "deny"}}"#,
    );
    let agent =
        "---\ndescription: d\npermission:\n  bash:\n    \"*\": deny\n    \"git *\": allow\n---\n";
    std::fs::create_dir_all(env.config_folder().join("agents")).unwrap();
    std::fs::write(env.config_folder().join("agents/x.md"), agent).unwrap();
    let reports = [
        (r#""bash": "git push *" = ask"#, r#"Move this rule below "bash": "*""#),
        (r#""bahs": "*" = deny"#, "Did you mean bash"),
        (
            r#""edit": "docs/*" = allow"#,
            r#""edit": "*" as {"level": "deny", "except": ["docs/*"]}"#,
        ),
        (r#""process": "git" = deny"#, r#"Write "process": {"mcp/git": "deny"}"#),
    ];
    let (code, _, stderr) = env.run(&["run", "go"]);
    assert_eq!(code, 0, "{stderr}");
    let expected = "agent x: the rule \"bash\": \"git *\" = allow has no effect";
    assert!(stderr.contains(expected), "{stderr}");
    let (_, doctor, _) = env.run(&["doctor"]);
    for (rule, advice) in reports {
        for text in [&stderr, &doctor] {
            let line = text.lines().find(|line| line.contains(rule)).unwrap_or_default();
            assert!(line.contains(advice) && line.contains("windlass.jsonc:"), "{rule}: {text}");
        }
    }
    let (_, list, _) = env.run(&["permission", "list"]);
    assert_eq!(list.matches("; no effect, because ").count(), 4, "{list}");
    let (_, explained, _) = env.run(&["permission", "explain", "git push"]);
    assert!(explained.contains("rule: bash git push * = ask ("), "{explained}");
    assert_eq!(explained.matches("; no effect, because ").count(), 4, "{explained}");
    let (_, json, _) = env.run(&["permission", "list", "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    let dead =
        json["rules"].as_array().unwrap().iter().filter(|rule| rule["no_effect"].is_string());
    assert_eq!(dead.count(), 4, "{json}");
}

/// A rule under each key, the call it is about, and a text of the result with and without the rule.
#[test]
fn rules_under_every_key_of_other_agents_work() {
    let todo =
        r#"call todowrite {"todos": [{"content": "c", "status": "pending", "priority": "low"}]}"#;
    let outside = r#"call read {"filePath": "OUTSIDE/notes.txt"}"#;
    let skill = r#"call skill {"name": "deploy"}"#;
    let task = r#"call task {"description": "d", "prompt": "p", "subagent_type": "explore"}"#;
    let grep = r#"call grep {"pattern": "Hello"}"#;
    let repeated = r#"repeat call grep {"pattern": "Hello"}"#;
    for (rules, call, expected) in [
        (r#"{}"#, todo, "[ ] c"),
        (r#"{"todowrite": "allow"}"#, todo, "[ ] c"),
        (r#"{"todowrite": "ask"}"#, todo, r#"the rule "todowrite": "*" requires approval"#),
        (r#"{"todowrite": "deny"}"#, todo, "a rule denies todowrite"),
        (r#"{"todo*": {"*": "deny"}}"#, todo, "a rule denies todowrite"),
        (r#"{"*": "ask"}"#, todo, "[ ] c"),
        (r#"{"grep": "ask"}"#, grep, r#"the rule "grep": "*" requires approval"#),
        (r#"{"grep": "ask", "*": "allow"}"#, grep, "Hello"),
        (r#"{}"#, outside, "is outside the workspace"),
        (r#"{"external_directory": {"OUTSIDE/*": "allow"}}"#, outside, "a note"),
        (r#"{"external_directory": {"~/outside/*": "allow"}}"#, outside, "a note"),
        (r#"{"external_directory": {"~/outside/*": "deny"}}"#, outside, "denies it"),
        (r#"{"external_directory": {"~/*": "allow", "*.txt": "deny"}}"#, outside, "denies it"),
        (r#"{"external_directory": "allow"}"#, outside, "a note"),
        (r#"{}"#, repeated, "repeated"),
        (r#"{"doom_loop": {"bash": "deny", "gr*": "allow"}}"#, repeated, "found it"),
        (r#"{"doom_loop": {"gr*": "deny"}}"#, repeated, "the same calls were repeated too often"),
        (r#"{}"#, skill, "Ship it"),
        (r#"{"skill": {"dep*": "deny"}}"#, skill, "denies it"),
        (r#"{"skill": {"*": "ask", "deploy": "allow"}}"#, skill, "Ship it"),
        (r#"{"skill": {"deploy": "ask"}}"#, skill, "requires approval"),
        (r#"{"skill": "deny"}"#, skill, "a rule denies skill"),
        (r#"{"task": {"expl*": "deny"}}"#, task, "denies it"),
        (r#"{"task": {"*": "ask", "explore": "allow"}}"#, task, "subagent_started"),
        (r#"{"task": {"explore": "ask"}}"#, task, "requires approval"),
        (r#"{"task": "deny"}"#, task, "a rule denies task"),
    ] {
        let env = TestEnv::outside_temp_folder(&[], "");
        let outside_folder = env.home().join("outside");
        std::fs::create_dir_all(&outside_folder).unwrap();
        std::fs::write(outside_folder.join("notes.txt"), "a note").unwrap();
        let skill_folder = env.config_folder().join("skills/deploy");
        std::fs::create_dir_all(&skill_folder).unwrap();
        let text = "---\nname: deploy\ndescription: Deploys\n---\nShip it";
        std::fs::write(skill_folder.join("SKILL.md"), text).unwrap();
        let fill = |text: &str| text.replace("OUTSIDE", outside_folder.to_str().unwrap());
        let call = fill(call);
        let mut replies: Vec<&str> = match call.strip_prefix("repeat ") {
            Some(call) => vec![call; 8],
            None => vec![&call],
        };
        replies.extend(["say found it", "say end"]);
        let script = windlass_testkit::ModelScript::new(replies);
        let model = windlass_testkit::ScriptedModel::start(script);
        env.write_config(&format!(
            r#"{{"model": "scripted/m", "provider": {{"scripted": {{"api": "openai-chat",
            "base_url": "{}", "api_key": "k", "models": {{"m": {{}}}}}}}}, "permission": {}}}"#,
            model.url(),
            fill(rules)
        ));
        let (_, _, stderr) = env.run(&["run", "--mode", "auto", "go"]);
        let results: Vec<String> = env
            .facts()
            .iter()
            .filter(|fact| !fact["kind"].as_str().unwrap().starts_with("session"))
            .map(|fact| fact.to_string().replace("\\\"", "\""))
            .collect();
        let found = results.iter().any(|text| text.contains(expected)) || stderr.contains(expected);
        assert!(found, "{rules} {call}: no {expected} in {results:#?}\n{stderr}");
    }
}

/// Returns the recorded bash calls of a session that ran them with approval.
fn env_with_calls(settings: &str) -> TestEnv {
    let env = TestEnv::new(
        &[
            "call bash {\"command\": \"git status\"}",
            "call bash {\"command\": \"touch a.txt\"}",
            "call bash {\"command\": \"touch b.txt\"}",
            "call read {\"filePath\": \"README.md\"}",
            "call bash {\"command\": \"rm -rf /\"}",
            "say Done.",
        ],
        settings,
    );
    let (code, _, stderr) = env.run(&["run", "--yes", "--mode", "ask", "go"]);
    assert_eq!(code, 0, "{stderr}");
    env
}

#[test]
fn a_rehearsal_shows_what_other_rules_would_change() {
    let env = env_with_calls(r#""mode": "ask""#);
    let facts = env.facts();
    let rules = env.root().join("rules.jsonc");
    let rehearse = |text: &str, arguments: &[&str]| {
        std::fs::write(&rules, text).unwrap();
        let all = [&["permission", "rehearse", rules.to_str().unwrap()], arguments].concat();
        env.run(&all)
    };
    let (code, out, stderr) = rehearse(
        r#"{"permission": {"bash": {"touch *": "allow"}, "read": {"*.md": "deny"}}} // new"#,
        &[],
    );
    assert_eq!(code, 0, "{stderr}");
    assert!(out.starts_with("5 calls in 1 session; 3 would be decided differently\n"), "{out}");
    assert!(out.contains("      2  ask → allow\n"), "{out}");
    assert!(out.contains("      1  allow → deny\n"), "{out}");
    assert!(out.contains("ask → allow, 2 calls: \"bash\": \"touch *\"\n"), "{out}");
    assert!(out.contains("    bash: touch a.txt  (approved)\n"), "{out}");
    assert!(
        out.contains("allow → deny, 1 call: \"read\": \"*.md\"\n    read: README.md  (allowed)"),
        "{out}"
    );

    let (_, json, _) = rehearse(r#"{"permission": {"bash": "deny"}}"#, &["--project", "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["calls"], 5);
    assert_eq!(json["changes"][0], serde_json::json!({"from": "allow", "to": "deny", "count": 1}));
    assert_eq!(json["changes"][1], serde_json::json!({"from": "ask", "to": "deny", "count": 3}));
    assert_eq!(json["groups"][0]["examples"][0]["tool"], "bash");

    let (_, out, _) = rehearse(r#"{"permission": {}}"#, &[]);
    assert!(out.starts_with("5 calls in 1 session; 0 would be decided differently"), "{out}");
    let (code, _, stderr) = rehearse(r#"{"mode": "ask"}"#, &[]);
    assert!(code != 0 && stderr.contains("contains no `permission`"), "{stderr}");
    let (code, _, stderr) = rehearse(r#"{"permission": {"bash": "no"}}"#, &[]);
    assert!(code != 0 && stderr.contains("permission/bash"), "{stderr}");
    assert_eq!(env.facts(), facts, "a session was changed");
    assert!(!env.root().join("c.txt").exists());
}

/// Stores a session with this many calls, each of its own command.
async fn store_calls(env: &TestEnv, count: usize) {
    let log = SqliteLog::open(&env.data()).await.unwrap();
    let session = SessionId(uuid::Uuid::now_v7());
    let claim = log.claim(session).await.unwrap();
    let workspace = env.root().canonicalize().unwrap().display().to_string();
    let (version, agent) = ("0".to_owned(), "build".to_owned());
    let opened = Fact::SessionOpened { workspace, version, agent, parent: None };
    let mut last = log.append(&claim, 0, UnixMillis(1), &[opened]).await.unwrap();
    let call_facts = |number: usize| {
        let call = CallId(uuid::Uuid::now_v7());
        let command = format!("cargo test -p crate-{number} && git log -n {number} | head -3");
        let accesses = vec![ToolAccess::RunCommand { command, folder: ".".into() }];
        [
            Fact::ToolCalled {
                call,
                provider_call_id: "c".into(),
                tool: "bash".into(),
                arguments: "{}".into(),
                author: CallAuthor::Model,
                description: CallDescription::default(),
                repair: Vec::new(),
                provider_signature: None,
            },
            Fact::CallStarted { call, attempt: 1, accesses, read_only: false, repair: None },
            Fact::CallSettled {
                call,
                outcome: CallOutcome::Failed { text: "no".into() },
                seen_files: Vec::new(),
            },
        ]
    };
    for start in (0..count).step_by(100) {
        let facts: Vec<Fact> = (start..count.min(start + 100)).flat_map(call_facts).collect();
        last = log.append(&claim, last, UnixMillis(2), &facts).await.unwrap();
    }
}

#[test]
fn a_rehearsal_of_ten_thousand_calls_takes_seconds() {
    let env = TestEnv::new(&[], r#""mode": "ask""#);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(store_calls(&env, 10_000));
    let rules = env.root().join("rules.json");
    std::fs::write(&rules, r#"{"permission": {"bash": {"cargo test *": "allow"}}}"#).unwrap();
    let start = Instant::now();
    let (code, out, stderr) = env.run(&["permission", "rehearse", rules.to_str().unwrap()]);
    let elapsed = start.elapsed();
    assert_eq!(code, 0, "{stderr}");
    assert!(
        out.starts_with("10000 calls in 1 session; 10000 would be decided differently"),
        "{out}"
    );
    eprintln!("10000 calls took {elapsed:?}");
    assert!(elapsed < Duration::from_secs(60), "{elapsed:?}");
}
