//! What is protected, in every spelling; and what only looks like it.

use super::*;
use proptest::prelude::*;

/// As in a workspace that says nothing itself.
fn protected(path: &str) -> Option<&'static str> {
    super::protected(&[], path)
}

#[test]
fn every_rule_means_its_examples() {
    for rule in RULES {
        assert!(!rule.matches.is_empty() && !rule.passes.is_empty(), "{}", rule.why);
        for path in rule.matches {
            assert_eq!(protected(path), Some(rule.why), "{path}");
        }
        for path in rule.passes {
            assert_eq!(protected(path), None, "{path}");
        }
    }
}

#[test]
fn every_pattern_can_be_met_and_stands_once() {
    let mut all: Vec<&str> = RULES.iter().flat_map(|rule| rule.patterns).copied().collect();
    for pattern in &all {
        assert_eq!(fold(pattern), *pattern, "a path is folded before it is compared");
        let example = pattern.replace('*', "x");
        for path in [example.clone(), format!("a/{example}/b"), example.to_uppercase()] {
            assert!(protected(&path).is_some(), "{path}");
        }
    }
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
}

#[test]
fn the_parts_above_a_path_are_enough_for_every_pattern() {
    for pattern in RULES.iter().flat_map(|rule| rule.patterns) {
        let parts: Vec<&str> = pattern.split('/').collect();
        assert!(parts.len() <= ABOVE + 1, "{pattern}");
        for cut in 1..=parts.len() {
            let (root, path) = parts.split_at(parts.len() - cut);
            let root = format!("/home/ada/{}", root.join("/").replace('*', "X").to_uppercase());
            let path = path.join("/").replace('*', "x");
            assert!(super::protected(&above(Path::new(&root)), &path).is_some(), "{root} {path}");
        }
    }
}

#[test]
fn another_spelling_of_a_name_is_that_name() {
    for path in [
        ".GIT/hooks/x",
        ".Git/Config",
        ".ｇｉｔ/config",
        "．git/config",
        ".git／config",
        ".git\\config",
        "a\\.git\\config",
        ".git /config",
        ".git./config",
        ".git. . ./config",
        ".git::$INDEX_ALLOCATION/config",
        ".git:x/config",
        ".git :x/config",
        "GIT~1/config",
        "git~2/hooks/post-checkout",
        "GIT~10/config",
        "GITMOD~1",
        "GI7EBA~1",
        "MCP~1.JSO",
        "WINDLA~1.JSO",
        "VSCODE~1/settings.json",
        "APP~1.COD",
        ".g\u{200c}it/config",
        "\u{feff}.git/config",
        ".gi\u{ad}t/config",
        ".g\u{206c}it/config",
        ".g\u{fe0f}it/config",
        ".gıt/config",
        ".ſſh/config",
        ".vſcode/settings.json",
        ".\u{212a}iro/x",
        "./.git/config",
        "a//.git//config",
        "/home/ada/.ssh/config",
        "C:/Users/ada/.ssh/config",
    ] {
        assert!(protected(path).is_some(), "{path:?}");
    }
}

#[test]
fn what_only_looks_like_it_is_left_alone() {
    for path in [
        "",
        ".",
        "/",
        "...",
        "src/main.rs",
        "git",
        "gitt/.gitt",
        ".git2/config",
        "x.git",
        ".gît/config",
        "git~/config",
        "git~a/config",
        "gi~1/config",
        "gitx~1",
        "report~1.doc",
        "mcp~1.txt",
        "notes~2024.md",
        "~/code/a.rs",
        ".config/settings.json",
        "fish/.config",
        "vscode~",
    ] {
        assert_eq!(protected(path), None, "{path:?}");
    }
}

proptest! {
    /// Nothing that is put in front of a protected name, or behind it, opens it.
    #[test]
    fn a_protected_name_stays_protected_wherever_it_stands(
        before in "[a-z./~: ]{0,12}", after in "\\PC{0,12}", upper in any::<bool>(),
    ) {
        let name = if upper { ".GIT" } else { ".git" };
        let path = format!("{before}/{name}/{after}");
        prop_assert!(protected(&path).is_some(), "{path:?}");
    }

    /// Characters nobody sees change nothing.
    #[test]
    fn what_cannot_be_seen_does_not_hide_a_name(
        at in 0usize..=11,
        hidden in prop::sample::select(vec!['\u{200b}', '\u{200d}', '\u{202e}', '\u{2064}', '\u{206f}', '\u{feff}', '\u{7f}']),
    ) {
        let mut path: Vec<char> = ".git/config".chars().collect();
        path.insert(at, hidden);
        let path: String = path.into_iter().collect();
        prop_assert!(protected(&path).is_some(), "{path:?}");
    }

    /// Any text has an answer, and folding it again changes nothing about that.
    #[test]
    fn any_text_has_one_answer(path in "\\PC{0,40}") {
        prop_assert_eq!(protected(&path), protected(&fold(&path)));
    }
}

#[test]
fn the_quick_look_finds_what_the_whole_look_finds() {
    let hostile = ["GIT~1/config", ".g\u{200c}it/config", "A.CODE-WORKSPACE", "x/.GIT.", ".git:a"];
    let listed = RULES.iter().flat_map(|rule| rule.matches.iter().chain(rule.passes));
    for path in listed.copied().chain(hostile) {
        for spelled in [path.to_owned(), path.to_uppercase(), format!("a/b/{path} ")] {
            assert_eq!(closed(&spelled), super::protected(&[], &spelled), "{spelled}");
        }
    }
}

#[test]
fn every_key_that_is_protected_is_also_hidden() {
    use crate::secrets::{Anchor, names_secret};
    let keys = RULES.iter().find(|rule| rule.why.contains("holds keys")).unwrap();
    for pattern in keys.patterns {
        assert!(names_secret(Path::new(pattern), Anchor::Home), "{pattern}");
    }
}
