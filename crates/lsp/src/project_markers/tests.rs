//! Tests of project markers with permission rules, symlinks, and files that must not be read.
#![allow(clippy::disallowed_methods, reason = "tests create files and symlinks")]

use super::*;
use windlass_permission::{Decision, PermissionRules, Policy};
use windlass_protocol::ToolAccess;
use windlass_sandbox::Workspace;

/// Creates a workspace with these files and grants the edit of `a.rs`.
fn open_workspace(
    files: &[(&str, &str)],
    rules: serde_json::Value,
) -> (tempfile::TempDir, CallWorkspace) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("w");
    for (path, content) in files {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    let policy = Policy::new(PermissionRules::parse(&rules).unwrap());
    let access = ToolAccess::Edit { path: "a.rs".into() };
    let grant = match policy.decide(vec![access.clone()], &[access]) {
        Decision::Allowed(grant) => grant,
        Decision::Ask(_) | Decision::Denied { .. } => panic!("the edit must be allowed"),
    };
    let world = Workspace::open(&root).unwrap().open_read_only(grant);
    (folder, world)
}

fn edit_allowed() -> serde_json::Value {
    serde_json::json!({"edit": "allow"})
}

fn marker(json: serde_json::Value) -> ProjectMarker {
    serde_json::from_value(json).unwrap()
}

#[test]
fn the_nearest_folder_is_found_and_none_outside() {
    let files = [("a/b/my.toml", ""), ("my.toml", ""), ("a/other", ""), ("../outside.toml", "")];
    let (_folder, world) = open_workspace(&files, edit_allowed());
    let found = |name: &str, folder: &'static str| {
        ProjectMarker::File(name.to_owned()).find_folder(&world, folder)
    };
    assert_eq!(found("my.toml", "a/b/c/d"), Some("a/b"));
    assert_eq!(
        found("my.toml", "a/bc"),
        Some("."),
        "a sibling with the same prefix does not count"
    );
    assert_eq!(found("my.toml", "."), Some("."));
    assert_eq!(found("a", "."), None, "a folder does not count as a file");
    assert_eq!(found("outside.toml", "a/b"), None);
    assert_eq!(found("../outside.toml", "."), None);
    let any = marker(serde_json::json!(["nowhere", "my.toml", "other"]));
    assert_eq!(any.find_folder(&world, "a/c"), Some("a"));
    assert_eq!(any.find_folder(&world, "a/b"), Some("a/b"));
    assert_eq!(marker(serde_json::json!([])).find_folder(&world, "a"), None);
    let deep = vec!["x"; 40].join("/");
    assert_eq!(
        ProjectMarker::File("my.toml".into()).find_folder(&world, &deep),
        None,
        "the search stops at `MAX_PARENT_FOLDERS`"
    );
}

#[test]
fn ancestors_end_at_the_workspace_root() {
    let all = |folder| ancestors(folder).collect::<Vec<_>>();
    assert_eq!(all("a/b/c"), ["a/b/c", "a/b", "a", "."]);
    assert_eq!(all("."), ["."]);
    let deep = ["x"; 500].join("/");
    assert_eq!(ancestors(&deep).count(), MAX_PARENT_FOLDERS);
    assert_eq!((join_path(".", "b"), join_path("a", "b")), ("b".into(), "a/b".into()));
}

#[test]
fn file_contents_are_searched_upward() {
    let large = format!("{}[tool.ruff]", "#\n".repeat(1 << 20));
    let files = [
        ("a/pyproject.toml", "[project]\n"),
        ("pyproject.toml", "[x]\n[tool.ruff]\n"),
        ("l/pyproject.toml", large.as_str()),
        (".env", "[tool.ruff]"),
    ];
    let (_folder, world) = open_workspace(&files, edit_allowed());
    let contains =
        |file: &str, contains: &str| marker(serde_json::json!({"file": file, "holds": contains}));
    let ruff = contains("pyproject.toml", r"^\[tool\.ruff");
    assert_eq!(ruff.find_folder(&world, "a"), Some("."));
    assert_eq!(ruff.find_folder(&world, "l"), Some("."), "a file that is too large is skipped");
    assert!(!contains("pyproject.toml", "[").is_present(&world, "."), "an invalid regex");
    assert!(
        !contains("pyproject.toml", r"(\w{9999}){9999}").is_present(&world, "."),
        "a regex that is too large"
    );
    assert!(!contains(".env", "ruff").is_present(&world, "."), "secret files are not read");
}

#[test]
fn a_denied_file_is_not_read() {
    let rules = serde_json::json!({"edit": "allow", "read": {"*": "allow", "p.json": "deny"}});
    let (_folder, world) = open_workspace(&[("p.json", r#"{"v": 9}"#)], rules);
    let version = serde_json::json!({"file": "p.json", "pointer": "/v", "least": 1});
    assert!(!marker(version).is_present(&world, "."));
}

#[test]
fn a_version_is_compared_by_its_major_number() {
    let files = [
        ("seven/p.json", r#"{"version": "7.0.2"}"#),
        ("six/p.json", r#"{"version": "6.9"}"#),
        ("number/p.json", r#"{"version": 12}"#),
        ("odd/p.json", r#"{"version": ["7"]}"#),
        ("huge/p.json", r#"{"version": "99999999999999999999999"}"#),
        ("broken/p.json", "{"),
        ("p.json", r#"{"version": "7.0.0"}"#),
    ];
    let (_folder, world) = open_workspace(&files, edit_allowed());
    let seven = serde_json::json!({"file": "p.json", "pointer": "/version", "least": 7});
    let seven = marker(seven);
    for (folder, expected) in [
        ("seven", true),
        ("six", false),
        ("number", true),
        ("odd", false),
        ("huge", false),
        ("broken", false),
        ("none", true),
    ] {
        assert_eq!(seven.is_present(&world, folder), expected, "{folder}");
    }
}

#[cfg(unix)]
#[test]
fn a_symlink_counts_only_inside_the_workspace() {
    let (folder, world) =
        open_workspace(&[("real.toml", "x"), ("../out.toml", "x")], edit_allowed());
    let symlink = |to: &str, name: &str| {
        std::os::unix::fs::symlink(to, folder.path().join("w").join(name)).unwrap();
    };
    symlink("real.toml", "in.toml");
    symlink("../out.toml", "out.toml");
    assert!(ProjectMarker::File("in.toml".into()).is_present(&world, "."));
    assert!(marker(serde_json::json!({"file": "in.toml", "holds": "x"})).is_present(&world, "."));
    assert!(!ProjectMarker::File("out.toml".into()).is_present(&world, "."));
}

#[test]
fn an_invalid_marker_is_rejected() {
    for invalid in [
        serde_json::json!({"file": "a"}),
        serde_json::json!({"file": "a", "holds": "x", "more": 1}),
        serde_json::json!(7),
        serde_json::json!({}),
    ] {
        assert!(serde_json::from_value::<ProjectMarker>(invalid.clone()).is_err(), "{invalid}");
    }
}
