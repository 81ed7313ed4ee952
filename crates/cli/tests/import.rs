//! What was set up for other programs is shown, asked about, taken over once, and works.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

mod yard;

use yard::{Yard, told};

fn write(yard: &Yard, name: &str, text: &str) {
    let path = yard.root().parent().unwrap().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn config(yard: &Yard) -> String {
    std::fs::read_to_string(yard.home().join(".config/windlass/windlass.jsonc")).unwrap_or_default()
}

const OPENCODE: &str = r#"{
  "theme": "nord",
  "mcp": {"docs": {"type": "remote", "url": "https://docs.example.com/mcp", "headers": {"X-Key": "hush-hush"}}},
  "agent": {"review": {"description": "Reviews", "mode": "subagent", "prompt": "Look."}}
}"#;

#[test]
fn it_is_shown_asked_about_and_taken_over_once() {
    let yard = Yard::new(&[], "");
    write(&yard, "home/.config/opencode/opencode.json", OPENCODE);
    write(&yard, "home/.config/opencode/command/mend.md", "Mend $1");
    let before = config(&yard);

    let (code, dry, said) = yard.run(&["import", "opencode", "--dry-run"]);
    assert_eq!(code, 0, "{said}");
    assert!(dry.contains("mcp.docs: at https://docs.example.com/mcp"), "{dry}");
    assert!(dry.contains("theme: Windlass has no themes"), "{dry}");
    assert!(dry.contains("~/.config/windlass/commands/mend.md"), "{dry}");
    assert!(!dry.contains("hush") && !said.contains("hush"), "{dry}{said}");

    let (code, asked, said) = yard.run(&["import", "opencode"]);
    assert_eq!(code, 3, "nobody said yes: {said}");
    assert_eq!(asked, dry, "what is asked about is what was shown");
    assert_eq!(config(&yard), before);
    assert!(!yard.home().join(".config/windlass/commands").exists());

    let (code, done, said) = yard.run(&["import", "opencode", "--yes"]);
    assert_eq!((code, &done), (0, &dry), "{said}");
    let (_, list, said) = yard.run(&["mcp", "list"]);
    assert!(list.contains("https://docs.example.com/mcp"), "{list}{said}");
    let (_, list, said) = yard.run(&["agent", "list"]);
    assert!(list.contains("review"), "{list}{said}");
    assert!(!said.contains("note:"), "what was taken over is not complained about: {said}");

    let after = config(&yard);
    let (code, again, said) = yard.run(&["import", "opencode", "--yes"]);
    assert_eq!(code, 0);
    assert!(said.contains("nothing new") && again.contains("There already"), "{again}{said}");
    assert_eq!(config(&yard), after);
}

#[test]
fn a_project_counts_once_it_is_trusted_and_only_tightens() {
    let yard = Yard::new(&[], "");
    write(
        &yard,
        "project/.claude/settings.json",
        r#"{"permissions": {"allow": ["Bash(curl:*)"], "deny": ["Bash(terraform:*)"]},
            "hooks": {"PreToolUse": [{"matcher": "Edit", "hooks": [{"type": "command", "command": "true"}]}]}}"#,
    );
    write(
        &yard,
        "project/.claude/agents/rev.md",
        "---\nname: rev\ndescription: Looks\ntools: Read\n---\nLook.",
    );
    let (code, said, err) = yard.run(&["import", "claude", "--project", "--yes"]);
    assert_eq!(code, 0, "{err}");
    assert!(said.contains("permissions.allow (1 rule)"), "{said}");
    assert!(err.contains("windlass trust"), "{err}");
    let (_, list, _) = yard.run(&["agent", "list"]);
    assert!(!list.contains("rev "), "not before it is trusted: {list}");
    let (code, _, err) = yard.run(&["trust", "--yes"]);
    assert_eq!(code, 0, "{err}");
    let (_, list, err) = yard.run(&["agent", "list"]);
    assert!(list.contains("rev") && !err.contains("note:"), "{list}{err}");
    let (_, rules, _) = yard.run(&["permission", "list"]);
    assert!(rules.contains("terraform *") && !rules.contains("curl"), "{rules}");
}

#[test]
fn where_there_is_nothing_or_no_project_that_is_said() {
    let yard = Yard::new(&[], "");
    for program in ["opencode", "claude"] {
        let (code, _, said) = yard.run(&["import", program]);
        assert_eq!(code, 0);
        assert!(said.contains("there is nothing of"), "{said}");
    }
    let mut home = yard.windlass(&["import", "claude", "--project"]);
    let (code, _, said) = told(&home.current_dir(yard.home()).output().unwrap());
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("is no project"), "{said}");
    yard.write_config("{ broken");
    write(&yard, "home/.claude/settings.json", r#"{"model": "claude-x"}"#);
    let (code, _, said) = yard.run(&["import", "claude", "--yes"]);
    assert_eq!(code, 2, "{said}");
    assert_eq!(config(&yard), "{ broken");
}
