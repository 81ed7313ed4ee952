//! Signs in folders, with rules, links and files that nobody should look into.
#![allow(clippy::disallowed_methods, reason = "a test arranges the world from outside")]

use super::*;
use windlass_permission::{Decision, Policy, Rules};
use windlass_protocol::Access;
use windlass_sandbox::Workspace;

/// A folder with these files, and what a call sees of it that edits one.
fn world(files: &[(&str, &str)], rules: serde_json::Value) -> (tempfile::TempDir, World) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("w");
    for (path, content) in files {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    let policy = Policy::new(Rules::parse(&rules).unwrap());
    let access = Access::Edit { path: "a.rs".into() };
    let grant = match policy.decide(vec![access.clone()], &[access]) {
        Decision::Allowed(grant) => grant,
        Decision::Ask(_) | Decision::Denied { .. } => panic!("it is allowed"),
    };
    let world = Workspace::at(&root).unwrap().look(grant);
    (folder, world)
}

fn allowed() -> serde_json::Value {
    serde_json::json!({"edit": "allow"})
}

fn sign(json: serde_json::Value) -> Sign {
    serde_json::from_value(json).unwrap()
}

#[test]
fn the_nearest_folder_is_found_and_none_outside() {
    let files = [("a/b/my.toml", ""), ("my.toml", ""), ("a/other", ""), ("../outside.toml", "")];
    let (_folder, world) = world(&files, allowed());
    let found =
        |name: &str, folder: &'static str| Sign::File(name.to_owned()).found(&world, folder);
    assert_eq!(found("my.toml", "a/b/c/d"), Some("a/b"));
    assert_eq!(found("my.toml", "a/bc"), Some("."), "a name that only begins alike");
    assert_eq!(found("my.toml", "."), Some("."));
    assert_eq!(found("a", "."), None, "a folder is no file");
    assert_eq!(found("outside.toml", "a/b"), None);
    assert_eq!(found("../outside.toml", "."), None);
    let any = sign(serde_json::json!(["nowhere", "my.toml", "other"]));
    assert_eq!(any.found(&world, "a/c"), Some("a"));
    assert_eq!(any.found(&world, "a/b"), Some("a/b"));
    assert_eq!(sign(serde_json::json!([])).found(&world, "a"), None);
    let deep = vec!["x"; 40].join("/");
    assert_eq!(Sign::File("my.toml".into()).found(&world, &deep), None, "too far down");
}

#[test]
fn what_a_file_holds_is_looked_for_upwards() {
    let large = format!("{}[tool.ruff]", "#\n".repeat(1 << 20));
    let files = [
        ("a/pyproject.toml", "[project]\n"),
        ("pyproject.toml", "[x]\n[tool.ruff]\n"),
        ("l/pyproject.toml", large.as_str()),
        (".env", "[tool.ruff]"),
    ];
    let (_folder, world) = world(&files, allowed());
    let holds = |file: &str, holds: &str| sign(serde_json::json!({"file": file, "holds": holds}));
    let ruff = holds("pyproject.toml", r"^\[tool\.ruff");
    assert_eq!(ruff.found(&world, "a"), Some("."));
    assert_eq!(ruff.found(&world, "l"), Some("."), "one that is too large is passed by");
    assert!(!holds("pyproject.toml", "[").holds(&world, "."), "no expression");
    assert!(!holds("pyproject.toml", r"(\w{9999}){9999}").holds(&world, "."), "a huge one");
    assert!(!holds(".env", "ruff").holds(&world, "."), "secrets are not looked into");
}

#[test]
fn what_the_rules_keep_is_not_looked_into() {
    let rules = serde_json::json!({"edit": "allow", "read": {"*": "allow", "p.json": "deny"}});
    let (_folder, world) = world(&[("p.json", r#"{"v": 9}"#)], rules);
    let version = serde_json::json!({"file": "p.json", "pointer": "/v", "least": 1});
    assert!(!sign(version).holds(&world, "."));
}

#[test]
fn a_version_is_what_its_first_number_says() {
    let files = [
        ("seven/p.json", r#"{"version": "7.0.2"}"#),
        ("six/p.json", r#"{"version": "6.9"}"#),
        ("number/p.json", r#"{"version": 12}"#),
        ("odd/p.json", r#"{"version": ["7"]}"#),
        ("huge/p.json", r#"{"version": "99999999999999999999999"}"#),
        ("broken/p.json", "{"),
        ("p.json", r#"{"version": "7.0.0"}"#),
    ];
    let (_folder, world) = world(&files, allowed());
    let seven = serde_json::json!({"file": "p.json", "pointer": "/version", "least": 7});
    let seven = sign(seven);
    for (folder, expected) in [
        ("seven", true),
        ("six", false),
        ("number", true),
        ("odd", false),
        ("huge", false),
        ("broken", false),
        ("none", true),
    ] {
        assert_eq!(seven.holds(&world, folder), expected, "{folder}");
    }
}

#[cfg(unix)]
#[test]
fn a_link_leads_to_a_file_but_never_outside() {
    let (folder, world) = world(&[("real.toml", "x"), ("../out.toml", "x")], allowed());
    let link = |to: &str, name: &str| {
        std::os::unix::fs::symlink(to, folder.path().join("w").join(name)).unwrap();
    };
    link("real.toml", "in.toml");
    link("../out.toml", "out.toml");
    assert!(Sign::File("in.toml".into()).holds(&world, "."));
    assert!(sign(serde_json::json!({"file": "in.toml", "holds": "x"})).holds(&world, "."));
    assert!(!Sign::File("out.toml".into()).holds(&world, "."));
}

#[test]
fn what_is_no_sign_is_refused() {
    for odd in [
        serde_json::json!({"file": "a"}),
        serde_json::json!({"file": "a", "holds": "x", "more": 1}),
        serde_json::json!(7),
        serde_json::json!({}),
    ] {
        assert!(serde_json::from_value::<Sign>(odd.clone()).is_err(), "{odd}");
    }
}
