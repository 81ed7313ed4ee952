//! Paths outside the workspace: file tools and commands get the same verdict.

use super::commands::FakePathLookup;
use super::{Decision, PermissionLevel, policy};
use crate::{Policy, SandboxStatus};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use windlass_protocol::{PermissionMode, ToolAccess};

fn policy_for(rules: Value, mode: PermissionMode) -> Policy {
    let path_lookup = FakePathLookup {
        sandbox_status: SandboxStatus::Active,
        unhideable_paths: Vec::new(),
        additional_folders: vec![PathBuf::from("/home/u/lib")],
        private_paths: vec![PathBuf::from("/data/windlass")],
    };
    policy(rules).with_mode(mode).with_path_lookup(Arc::new(path_lookup))
}

fn level(policy: &Policy, access: ToolAccess) -> PermissionLevel {
    match policy.decide(vec![access], &[]) {
        Decision::Allowed(_) => PermissionLevel::Allow,
        Decision::Ask(_) => PermissionLevel::Ask,
        Decision::Denied { .. } => PermissionLevel::Deny,
    }
}

fn read(path: &str) -> ToolAccess {
    ToolAccess::Read { path: path.to_owned() }
}

fn edit(path: &str) -> ToolAccess {
    ToolAccess::Edit { path: path.to_owned() }
}

fn run(command: String) -> ToolAccess {
    ToolAccess::RunCommand { command, folder: ".".to_owned() }
}

#[test]
fn tools_and_commands_get_the_same_verdict_on_paths_outside() {
    use PermissionLevel::{Allow, Ask, Deny};
    let rules = json!({
        "*": "allow", "read": {"/srv/hidden/*": "deny"},
        "external_directory": {"/srv/*": "allow", "~/notes/*": "allow", "/srv/closed/*": "deny"},
    });
    let policy = policy_for(rules, PermissionMode::Auto);
    for (path, read_level, edit_level) in [
        ("/usr/include/stdio.h", Allow, Ask),
        ("/home/u/.cargo/registry/src/x/lib.rs", Allow, Ask),
        ("/home/u/go/pkg/mod/x/y.go", Allow, Ask),
        ("/home/u/plan.txt", Ask, Ask),
        ("/etc/fstab", Ask, Ask),
        ("/etc/passwd", Ask, Deny),
        ("/home/u/.ssh/id_rsa", Deny, Deny),
        ("/home/u/.bashrc", Ask, Deny),
        ("/data/windlass/windlass.db", Deny, Deny),
        ("/srv/a", Allow, Allow),
        ("/srv/.env", Ask, Ask),
        ("/srv/closed/a", Deny, Deny),
        ("/home/u/notes/a", Allow, Allow),
        ("/home/u/notes/.git/config", Allow, Deny),
        ("/home/u/lib/src/a.rs", Allow, Allow),
        ("/home/u/lib/.git/hooks/pre-commit", Allow, Deny),
        ("/home/u/library/a.rs", Ask, Ask),
    ] {
        assert_eq!(level(&policy, read(path)), read_level, "read {path}");
        assert_eq!(level(&policy, ToolAccess::Search { path: path.into() }), read_level, "{path}");
        assert_eq!(level(&policy, edit(path)), edit_level, "edit {path}");
        let restricted = policy_for(
            json!({"external_directory": {"/srv/*": "allow", "~/notes/*": "allow", "/srv/closed/*": "deny"}}),
            PermissionMode::Auto,
        );
        assert_eq!(level(&restricted, run(format!("cat {path}"))), read_level, "cat {path}");
        assert_eq!(level(&restricted, run(format!("touch {path}"))), edit_level, "touch {path}");
    }
    assert_eq!(level(&policy, read("/srv/hidden/a")), Deny, "a rule about reading is stricter");
    assert_eq!(level(&policy, read("/proc/self/environ")), Deny);
    assert_eq!(level(&policy, read("/tmp/x")), Ask, "it may belong to another program");
    assert_eq!(level(&policy, read("/run/secrets/key")), Deny);
    let spelled = [read("/srv/closed/link")];
    let decided = policy.decide(vec![read("/srv/a")], &spelled);
    assert!(matches!(decided, Decision::Denied { .. }), "a rule about the path as written");
}

#[test]
fn modes_apply_outside_as_they_do_inside() {
    use PermissionLevel::{Allow, Ask, Deny};
    for (mode, in_added_folder, elsewhere) in [
        (PermissionMode::Plan, Deny, Deny),
        (PermissionMode::Ask, Ask, Ask),
        (PermissionMode::Auto, Allow, Ask),
        (PermissionMode::Full, Allow, Deny),
    ] {
        let policy = policy_for(json!({}), mode);
        assert_eq!(level(&policy, edit("/home/u/lib/a.rs")), in_added_folder, "{mode}");
        assert_eq!(level(&policy, edit("/home/u/x")), elsewhere, "{mode}");
        assert_eq!(level(&policy, read("/usr/include/stdio.h")), Allow, "{mode}");
    }
}

#[test]
fn a_repository_can_close_paths_outside_but_not_open_them() {
    let repository = json!({"external_directory": {"/usr/*": "deny", "/home/u/x": "allow"}});
    let policy = policy_for(json!({}), PermissionMode::Auto);
    let policy = policy.restricted_by(crate::PermissionRules::parse(&repository).unwrap());
    assert_eq!(level(&policy, read("/usr/include/stdio.h")), PermissionLevel::Deny);
    assert_eq!(level(&policy, read("/home/u/x")), PermissionLevel::Ask);
}

#[test]
fn a_search_outside_reveals_nothing_that_needs_approval() {
    let policy = policy_for(json!({}), PermissionMode::Auto);
    let Decision::Ask(question) =
        policy.decide(vec![ToolAccess::Search { path: "/home/u".into() }], &[])
    else {
        panic!("the home folder needs approval");
    };
    let grant = question.resolve(&windlass_protocol::PermissionAnswer::Once).unwrap();
    assert!(grant.reveals("/home/u/plan.txt"));
    for path in ["/home/u/.ssh/id_rsa", "/home/u/code/.env", "/home/other/a", "src/a.rs"] {
        assert!(!grant.reveals(path), "{path}");
    }
}

/// What a program asks for while it runs is decided like an access, and never allowed by a pattern
/// that does not see where the path leads.
#[test]
fn a_program_that_asks_gets_the_answer_of_the_rules() {
    let rules = json!({
        "read": {"*": "allow", "secret/*": "deny"},
        "edit": {"docs/*": "allow"},
        "webfetch": {"*": "allow", "evil.example": "deny"},
        "deploy": {"*": "ask", "staging": "allow", "prod": "deny"},
        "external_directory": {"/srv/*": "allow", "/srv/keys/*": "deny"},
    });
    let policy = policy(rules).with_path_lookup(Arc::new(FakePathLookup::default()));
    for (key, subject, expected) in [
        ("read", "a.txt", PermissionLevel::Allow),
        ("read", "/w/a.txt", PermissionLevel::Allow),
        ("read", "secret/a", PermissionLevel::Deny),
        ("read", "../a.txt", PermissionLevel::Ask),
        ("read", "/w/../etc/hosts", PermissionLevel::Ask),
        ("read", "~/.bashrc", PermissionLevel::Ask),
        ("edit", "docs/a.md", PermissionLevel::Allow),
        ("edit", "docs/../../x.txt", PermissionLevel::Ask),
        ("edit", "docs/../../.bashrc", PermissionLevel::Deny),
        ("edit", "a.txt", PermissionLevel::Ask),
        ("webfetch", "https://docs.example/x", PermissionLevel::Allow),
        ("webfetch", "https://EVIL.example:443/x", PermissionLevel::Deny),
        ("webfetch", "evil.example.", PermissionLevel::Deny),
        ("webfetch", "https://me@evil.example/x", PermissionLevel::Ask),
        ("webfetch", "https://evil.example\\@docs.example/", PermissionLevel::Ask),
        ("webfetch", "https:evil.example/://docs.example/", PermissionLevel::Ask),
        ("read", "secret/../../x", PermissionLevel::Deny),
        ("deploy", "staging", PermissionLevel::Allow),
        ("deploy", "prod", PermissionLevel::Deny),
        ("deploy", "other", PermissionLevel::Ask),
        ("external_directory", "/srv/x", PermissionLevel::Allow),
        ("external_directory", "/srv/keys/x", PermissionLevel::Deny),
        ("external_directory", "/srv/../etc", PermissionLevel::Ask),
        ("external_directory", "/etc/x", PermissionLevel::Ask),
    ] {
        assert_eq!(policy.requested_level(key, subject), expected, "{key} {subject}");
    }
}
