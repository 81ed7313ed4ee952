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
use support::{TestEnv, decode_output};
use windlass_project::{ApprovalStore, Dirs};
use windlass_protocol::UnixMillis;

fn approvals(env: &TestEnv) -> ApprovalStore {
    let dirs = Dirs {
        home: env.home(),
        config: env.home().join(".config/windlass"),
        data: env.data(),
        cache: env.home().join(".cache/windlass"),
        plugins: env.home().join(".local/share/windlass-plugins"),
        managed_policy: None,
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
