//! What is allowed is listed, explained and taken back; a managed policy holds whatever is said.
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

use serde_json::Value;
use windlass_project::{Approvals, Places};
use windlass_protocol::Millis;
use yard::{Yard, told};

fn approvals(yard: &Yard) -> Approvals {
    let places = Places {
        home: yard.home(),
        config: yard.home().join(".config/windlass"),
        data: yard.data(),
        cache: yard.home().join(".cache/windlass"),
        plugins: yard.home().join(".local/share/windlass-plugins"),
        managed: None,
    };
    Approvals::read(&places).unwrap()
}

#[test]
fn what_was_allowed_is_listed_and_taken_back_by_its_number() {
    let yard = Yard::new(&[], r#""permission": {"edit": {"docs/*": "allow"}, "read": "allow"}"#);
    let (code, out, notes) = yard.run(&["permission", "list"]);
    assert_eq!(code, 0);
    assert!(out.contains("edit docs/* = allow  (") && out.contains("windlass.jsonc:2:"), "{out}");
    assert!(notes.contains("you allowed nothing here for good"), "{notes}");
    let mut known = approvals(&yard);
    for subject in ["cargo test", "printf '\u{1b}[2J'\n   2  bash  fake", "cargo doc"] {
        known.add(&yard.root(), "bash", subject, Millis(0)).unwrap();
    }
    let (_, out, _) = yard.run(&["permission", "list"]);
    assert!(out.contains("   1  bash  cargo test  ("), "{out}");
    assert!(out.contains("   2  bash  printf '"), "{out}");
    assert!(!out.contains('\u{1b}') && !out.contains("\n   2  bash  fake"), "{out}");
    let (_, json, _) = yard.run(&["permission", "list", "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["approvals"][2]["subject"], "cargo doc");
    assert_eq!(json["rules"][0]["level"], "allow");

    for (number, code) in [("2", 0), ("7", 2), ("0", 2), ("-1", 2), ("x", 2)] {
        assert_eq!(yard.run(&["permission", "revoke", number]).0, code, "{number}");
    }
    assert_eq!(yard.run(&["permission", "revoke"]).0, 2, "which one?");
    let left: Vec<String> =
        approvals(&yard).of(&yard.root()).into_iter().map(|approval| approval.subject).collect();
    assert_eq!(left, ["cargo test", "cargo doc"]);
    let (code, _, notes) = yard.run(&["permission", "revoke", "--all"]);
    assert!(code == 0 && notes.contains("2 taken back"), "{notes}");
    assert!(approvals(&yard).of(&yard.root()).is_empty());
}

#[test]
fn a_command_is_explained_and_not_run() {
    let yard = Yard::new(&[], r#""permission": {"bash": {"touch *": "deny"}}"#);
    let command = "touch pwned; echo 'a\nb'";
    let (code, out, _) = yard.run(&["permission", "explain", command, "--output", "json"]);
    assert_eq!(code, 0);
    let out: Value = serde_json::from_str(&out).unwrap();
    assert!(["allow", "ask", "deny"].contains(&out["verdict"].as_str().unwrap()), "{out}");
    for name in ["text", "words", "verdict", "reason", "rule"] {
        assert!(out["segments"][0].get(name).is_some(), "{name}: {out}");
    }
    assert!(out["rules"][0].as_str().unwrap().contains("bash touch *"), "{out}");
    assert_eq!(yard.read("pwned"), None);
    let elsewhere = yard.home().join("other");
    std::fs::create_dir(&elsewhere).unwrap();
    let folder = elsewhere.to_str().unwrap();
    let explain = ["permission", "explain", "ls", "--mode", "plan", "--workspace"];
    assert_eq!(yard.run(&[&explain[..], &[folder]].concat()).0, 0);
    assert_eq!(yard.run(&[&explain[..], &["nowhere"]].concat()).0, 0, "nothing has to be there");
    let (code, _, told) = yard.run(&[&explain[..], &["README.md"]].concat());
    assert!(code == 2 && told.contains("README.md is not a folder"), "{told}");
}

#[test]
fn what_holds_without_rules_is_told_by_mode() {
    for (mode, told) in [
        ("plan", "nothing in the project is changed"),
        ("ask", "everything else is asked about"),
        ("auto", "edits in the project are allowed"),
        ("full", "everything is allowed but what is protected"),
    ] {
        let yard = Yard::new(&[], &format!(r#""mode": "{mode}""#));
        let (code, _, notes) = yard.run(&["permission", "list"]);
        assert!(code == 0 && notes.contains(&format!("no rules; in mode {mode} ")), "{notes}");
        assert!(notes.contains(told), "{notes}");
    }
    let (_, help, _) = Yard::new(&[], "").run(&["run", "--help"]);
    for told in ["except to leaving the sandbox", "WARNING: with `off`", "`ask` elsewhere"] {
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(help.contains(told), "{told}: {help}");
    }
}

#[test]
fn a_mode_and_a_switch_are_among_those_there_are() {
    let yard = Yard::new(&[], "");
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
        let (got, _, notes) = yard.run(&["tool", "call", flag, value, "read", read]);
        assert_eq!(got, code, "{flag} {value}: {notes}");
    }
    assert!(yard.run(&["completions", "bash"]).1.contains("plan ask auto full"));
}

#[test]
fn the_doctor_says_what_there_is_and_runs_nothing_of_the_project() {
    use std::os::unix::fs::PermissionsExt;
    let yard = Yard::new(&[], "");
    let fake = yard.root().join("git");
    std::fs::write(&fake, "#!/bin/sh\ntouch pwned\n").unwrap();
    std::fs::set_permissions(&fake, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    let path = format!(".:{}::{path}", yard.root().display());
    let (code, out, notes) = told(&yard.windlass(&["doctor"]).env("PATH", path).output().unwrap());
    assert_eq!(code, 0, "{notes}");
    assert!(out.contains("git version") && out.contains("GNU bash"), "{out}");
    assert!(out.contains(&yard.data().display().to_string()), "{out}");
    assert_eq!(yard.read("pwned"), None);
    yard.write_config("{");
    let (code, out, notes) = yard.run(&["doctor"]);
    assert!(code == 1 && out.contains("git version") && notes.contains("not JSON"), "{notes}");
}

/// Runs the binary where this is the policy of the machine, with this mode.
fn managed(yard: &Yard, policy: &str, mode: u32, arguments: &[&str]) -> (i32, String, String) {
    use std::os::unix::fs::PermissionsExt;
    let folder = yard.home().join("policy");
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
    let output = yard.wrapped(&wrapper, arguments).output();
    told(&output.expect("bwrap is needed: apt-get install bubblewrap"))
}

#[test]
fn the_policy_of_a_machine_is_stronger_than_config_and_flags() {
    let own = r#""permission": "allow", "mode": "full", "sandbox": {"enabled": false, "network": ["own.example"]}"#;
    let yard = Yard::new(&["say Done."], own);
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
    assert_eq!(yard.run(&read).0, 0, "without a policy");
    let (code, _, notes) = managed(&yard, policy, 0o644, &read);
    assert_eq!(code, 3, "the person's `allow` counted: {notes}");
    assert_eq!(
        notes.matches("is laxer than the policy of this machine allows").count(),
        2,
        "{notes}"
    );
    assert_eq!(notes.matches("keeps the sandbox on").count(), 2, "{notes}");
    assert!(notes.contains("the managed policy sets `permission`"), "{notes}");
    let (_, shown, _) = managed(&yard, policy, 0o644, &["config", "show"]);
    for line in [
        "mode = ask  (/etc/windlass/managed.jsonc:1:2)",
        "sandbox.enabled = true  (/etc/windlass/managed.jsonc:",
        "sandbox.network = [\"corp.example\"]  (/etc/windlass/managed.jsonc:",
        "permission.read README.md = deny  (/etc/windlass/managed.jsonc:",
        "model = scripted/m  (",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    let (code, _, notes) = managed(&yard, policy, 0o644, &["run", "p"]);
    assert_eq!(code, 0, "{notes}");

    for (policy, mode, told) in [
        (policy, 0o664, "can be written by others"),
        (policy, 0o646, "can be written by others"),
        ("{", 0o644, "not JSON"),
        (r#"{"mode": "strict"}"#, 0o644, "a mode is"),
        (r#"{"permission": {"read": "never"}}"#, 0o644, "expected \"allow\""),
    ] {
        let (code, out, notes) = managed(&yard, policy, mode, &read);
        assert!(code == 2 && out.is_empty() && notes.contains(told), "{policy}: {notes}");
    }
}
