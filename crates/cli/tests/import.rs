//! `windlass import`: settings of other programs are previewed, confirmed, imported once, and work.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests set up files and processes, and fail by panicking"
)]

mod support;

use support::{TestEnv, decode_output, write_file};

fn write_setup_file(env: &TestEnv, name: &str, text: &str) {
    write_file(&env.root().parent().unwrap().join(name), text);
}

fn config(env: &TestEnv) -> String {
    std::fs::read_to_string(env.home().join(".config/windlass/windlass.jsonc")).unwrap_or_default()
}

const OPENCODE: &str = r#"{
  "theme": "zenburn-x",
  "mcp": {"docs": {"type": "remote", "url": "https://docs.example.com/mcp", "headers": {"X-Key": "hush-hush"}}},
  "agent": {"review": {"description": "Reviews", "mode": "subagent", "prompt": "Look."}}
}"#;

#[test]
fn settings_are_previewed_confirmed_and_imported_once() {
    let env = TestEnv::new(&[], "");
    write_setup_file(&env, "home/.config/opencode/opencode.json", OPENCODE);
    write_setup_file(&env, "home/.config/opencode/command/mend.md", "Mend $1");
    let before = config(&env);

    let (code, dry_run, stderr) = env.run(&["import", "opencode", "--dry-run"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(dry_run.contains("mcp.docs: at https://docs.example.com/mcp"), "{dry_run}");
    assert!(dry_run.contains("theme zenburn-x: Windlass has no theme of this name"), "{dry_run}");
    assert!(dry_run.contains("~/.config/windlass/commands/mend.md"), "{dry_run}");
    assert!(!dry_run.contains("hush") && !stderr.contains("hush"), "{dry_run}{stderr}");

    let (code, preview, stderr) = env.run(&["import", "opencode"]);
    assert_eq!(code, 3, "the import was not confirmed: {stderr}");
    assert_eq!(preview, dry_run, "the preview differs from the dry run");
    assert_eq!(config(&env), before);
    assert!(!env.home().join(".config/windlass/commands").exists());

    let (code, done, stderr) = env.run(&["import", "opencode", "--yes"]);
    assert_eq!((code, &done), (0, &dry_run), "{stderr}");
    let (_, list, stderr) = env.run(&["mcp", "list"]);
    assert!(list.contains("https://docs.example.com/mcp"), "{list}{stderr}");
    let (_, list, stderr) = env.run(&["agent", "list"]);
    assert!(list.contains("review"), "{list}{stderr}");
    assert!(!stderr.contains("note:"), "an imported setting causes a note: {stderr}");

    let after = config(&env);
    let (code, again, stderr) = env.run(&["import", "opencode", "--yes"]);
    assert_eq!(code, 0);
    assert!(stderr.contains("nothing new") && again.contains("Already exists"), "{again}{stderr}");
    assert_eq!(config(&env), after);
}

#[test]
fn imported_project_settings_apply_after_trust_and_only_tighten() {
    let env = TestEnv::new(&[], "");
    write_setup_file(
        &env,
        "project/.claude/settings.json",
        r#"{"permissions": {"allow": ["Bash(curl:*)"], "deny": ["Bash(terraform:*)"]},
            "hooks": {"PreToolUse": [{"matcher": "Edit", "hooks": [{"type": "command", "command": "true"}]}]}}"#,
    );
    write_setup_file(
        &env,
        "project/.claude/agents/rev.md",
        "---\nname: rev\ndescription: Looks\ntools: Read\n---\nLook.",
    );
    let (code, out, stderr) = env.run(&["import", "claude", "--project", "--yes"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(out.contains("permissions.allow (1 rule)"), "{out}");
    assert!(stderr.contains("windlass trust"), "{stderr}");
    let (_, list, _) = env.run(&["agent", "list"]);
    assert!(!list.contains("rev "), "the agent is listed before trust: {list}");
    let (code, _, stderr) = env.run(&["trust", "--yes"]);
    assert_eq!(code, 0, "{stderr}");
    let (_, list, stderr) = env.run(&["agent", "list"]);
    assert!(list.contains("rev") && !stderr.contains("note:"), "{list}{stderr}");
    let (_, rules, _) = env.run(&["permission", "list"]);
    assert!(rules.contains("terraform *") && !rules.contains("curl"), "{rules}");
}

#[test]
fn missing_settings_and_missing_projects_are_reported() {
    let env = TestEnv::new(&[], "");
    for program in ["opencode", "claude"] {
        let (code, _, stderr) = env.run(&["import", program]);
        assert_eq!(code, 0);
        assert!(stderr.contains("settings found in"), "{stderr}");
    }
    let mut home = env.windlass(&["import", "claude", "--project"]);
    let (code, _, stderr) = decode_output(&home.current_dir(env.home()).output().unwrap());
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("is not a project"), "{stderr}");
    env.write_config("{ broken");
    write_setup_file(&env, "home/.claude/settings.json", r#"{"model": "claude-x"}"#);
    let (code, _, stderr) = env.run(&["import", "claude", "--yes"]);
    assert_eq!(code, 2, "{stderr}");
    assert_eq!(config(&env), "{ broken");
}
