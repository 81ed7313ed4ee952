//! Wildcards and recursive searches, which read files that the command does not name.

use super::{MockPathLookup, PermissionMode, evaluate_with};
use crate::PermissionLevel;

fn level(
    lookup: &MockPathLookup,
    user_rules: &str,
    mode: PermissionMode,
    text: &str,
) -> PermissionLevel {
    evaluate_with(lookup, user_rules, &[], mode, text).level
}

#[test]
fn a_wildcard_that_may_match_a_denied_path_is_not_allowed() {
    let lookup = MockPathLookup::default();
    let deny = r#"{"read": {"secret.txt": "deny", "a/*.pem": "deny"}, "bash": "allow"}"#;
    for text in [
        "cat s*.txt",
        "cat *",
        "cat ?ecret.txt",
        "cat [s]ecret.txt",
        "cat S*.TXT",
        "cat /w/s*",
        "cat b/../s*",
        "cd a && cat *.pem",
        "cat a/*",
        "cat */x.pem",
        "head -1 < s*.txt",
        "bash -c 'cat s*.txt'",
    ] {
        for mode in [PermissionMode::Ask, PermissionMode::Auto] {
            assert_eq!(level(&lookup, deny, mode, text), PermissionLevel::Ask, "{mode:?} {text}");
        }
        assert_eq!(
            level(&lookup, deny, PermissionMode::Full, text),
            PermissionLevel::Deny,
            "{text}"
        );
    }
    assert_eq!(level(&lookup, deny, PermissionMode::Full, "cat secret.txt"), PermissionLevel::Deny);
    for text in ["cat *.md", "cat b/*", "ls src/*.rs", "cat [a-r]*.md"] {
        assert_eq!(
            level(&lookup, deny, PermissionMode::Ask, text),
            PermissionLevel::Allow,
            "{text}"
        );
    }
    let restricted = evaluate_with(
        &lookup,
        "{}",
        &[r#"{"read": {"k/*": "ask"}}"#],
        PermissionMode::Ask,
        "cat k*/x",
    );
    assert_eq!(restricted.level, PermissionLevel::Ask);
    assert!(restricted.segments[0].reason.contains("k/*"), "{:?}", restricted.segments);
    let later = r#"{"read": {"*": "ask", "docs/*": "allow"}}"#;
    assert_eq!(level(&lookup, later, PermissionMode::Ask, "cat docs/*.md"), PermissionLevel::Allow);
    assert_eq!(level(&lookup, later, PermissionMode::Ask, "cat doc*/x"), PermissionLevel::Ask);
}

#[test]
fn an_existing_secret_file_requires_approval_however_it_is_reached() {
    let with_secrets = MockPathLookup::with_files(&["src/a.rs", "conf/.env", "conf/prod.env"]);
    for text in [
        "grep -r SECRET .",
        "grep -rn SECRET",
        "grep -R SECRET conf",
        "grep -d recurse SECRET .",
        "egrep --recursive x /w",
        "grep -r x *",
        "cd conf && grep -r x .",
        "rg --hidden SECRET",
        "rg -. SECRET .",
        "rg -uu SECRET",
        "rg -u -u SECRET conf",
        "rg -g '.env' SECRET",
        "rg SECRET",
        "diff -r conf src",
        "cat conf/*",
        "cat */prod*",
        "cat conf/p*",
        "ls && grep -r SECRET .",
    ] {
        assert_eq!(
            level(&with_secrets, "{}", PermissionMode::Ask, text),
            PermissionLevel::Ask,
            "{text}"
        );
        assert_eq!(
            level(&with_secrets, "{}", PermissionMode::Auto, text),
            PermissionLevel::Ask,
            "{text}"
        );
        let without_secrets = MockPathLookup::with_files(&["src/a.rs", "conf/.env.example"]);
        assert_eq!(
            level(&without_secrets, "{}", PermissionMode::Ask, text),
            PermissionLevel::Allow,
            "{text}"
        );
    }
    // A rule that does not name secrets does not allow them.
    let rule = r#"{"bash": {"grep *": "allow"}}"#;
    assert_eq!(
        level(&with_secrets, rule, PermissionMode::Ask, "grep -r SECRET ."),
        PermissionLevel::Ask
    );
    for text in [
        "grep -rn TODO src",
        "grep -r --include='*.rs' x .",
        "grep x src/a.rs",
        "rg -g '*.rs' x",
        "rg --hidden x src",
        "rg --files --hidden",
        "cat src/*",
        "ls | rg x",
    ] {
        assert_eq!(
            level(&with_secrets, "{}", PermissionMode::Ask, text),
            PermissionLevel::Allow,
            "{text}"
        );
    }
    let hidden = MockPathLookup::with_files(&[".env", ".cache/x.env"]);
    for text in ["rg TODO", "cat *", "rg -u TODO"] {
        assert_eq!(
            level(&hidden, "{}", PermissionMode::Ask, text),
            PermissionLevel::Allow,
            "{text}"
        );
    }
}

#[test]
fn a_search_over_a_denied_path_requires_approval() {
    let deny = r#"{"read": {"keys/*": "deny"}, "bash": {"grep *": "allow", "*": "allow"}}"#;
    let with_keys = MockPathLookup::with_files(&["keys/a.pem", "src/a.rs"]);
    assert_eq!(level(&with_keys, deny, PermissionMode::Ask, "grep -r x ."), PermissionLevel::Ask);
    assert_eq!(level(&with_keys, deny, PermissionMode::Full, "grep -r x ."), PermissionLevel::Deny);
    assert_eq!(
        level(&with_keys, deny, PermissionMode::Ask, "grep -r x src"),
        PermissionLevel::Allow
    );
    let without_keys = MockPathLookup::with_files(&["src/a.rs"]);
    assert_eq!(level(&without_keys, deny, PermissionMode::Ask, "rg x"), PermissionLevel::Allow);
    // A listing that is not complete may hide a match.
    let truncated =
        MockPathLookup { has_more_files: true, ..MockPathLookup::with_files(&["src/a.rs"]) };
    assert_eq!(level(&truncated, deny, PermissionMode::Ask, "rg x"), PermissionLevel::Ask);
    assert_eq!(level(&truncated, deny, PermissionMode::Ask, "rg x src"), PermissionLevel::Allow);
    assert_eq!(level(&truncated, "{}", PermissionMode::Ask, "grep -r x ."), PermissionLevel::Allow);
}

#[test]
fn a_search_of_too_many_folders_requires_approval() {
    let lookup = MockPathLookup::default();
    let searches = |count: usize| {
        (0..count).map(|at| format!("grep -r x d{at}")).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(level(&lookup, "{}", PermissionMode::Ask, &searches(16)), PermissionLevel::Allow);
    assert_eq!(level(&lookup, "{}", PermissionMode::Ask, &searches(17)), PermissionLevel::Ask);
    let repeated = "grep -r x .; ".repeat(200);
    assert_eq!(level(&lookup, "{}", PermissionMode::Ask, &repeated), PermissionLevel::Allow);
}

#[test]
fn a_text_without_a_command_has_a_reason() {
    for text in ["", " ", "\n"] {
        let verdict =
            evaluate_with(&MockPathLookup::default(), "{}", &[], PermissionMode::Auto, text);
        assert_eq!(verdict.level, PermissionLevel::Ask, "{text:?}");
        assert_eq!(verdict.segments[0].reason, "it is empty", "{text:?}");
    }
    let comment = evaluate_with(&MockPathLookup::default(), "{}", &[], PermissionMode::Ask, "# ls");
    assert!(comment.level == PermissionLevel::Ask && !comment.segments[0].reason.is_empty());
}

#[test]
fn a_program_that_a_file_of_an_untrusted_project_replaces_requires_approval() {
    let shim = std::path::PathBuf::from("/home/u/.asdf/shims/node");
    for (file, command) in [
        (".cargo/config.toml", "cargo tree"),
        (".cargo/config", "cargo metadata --no-deps"),
        ("rust-toolchain.toml", "cargo --version"),
        ("sub/rust-toolchain", "cd sub && rustc -vV"),
        (".mvn", "mvn -v"),
        ("global.json", "dotnet --version"),
        (".tool-versions", "node --version"),
    ] {
        let file: &'static str = file;
        let mut lookup = MockPathLookup::with_files(&[file]);
        lookup.programs.insert("node".to_owned(), shim.clone());
        assert_eq!(
            level(&lookup, "{}", PermissionMode::Ask, command),
            PermissionLevel::Ask,
            "{file}"
        );
        assert_eq!(
            level(&lookup, "{}", PermissionMode::Auto, command),
            PermissionLevel::Allow,
            "{file}"
        );
        let mut other = MockPathLookup::with_files(&["src/a.rs", ".tool-versions.md"]);
        other.programs.insert("node".to_owned(), shim.clone());
        assert_eq!(
            level(&other, "{}", PermissionMode::Ask, command),
            PermissionLevel::Allow,
            "{command}"
        );
    }
}
