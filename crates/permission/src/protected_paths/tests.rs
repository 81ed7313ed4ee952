//! Protected paths in every spelling, and similar paths that are not protected.

use super::*;
use proptest::prelude::*;

/// Returns the reason in a workspace whose own path has no influence.
fn reason_for(path: &str) -> Option<&'static str> {
    super::protection_reason(&[], path)
}

#[test]
fn every_rule_covers_its_examples() {
    for rule in PROTECTED_RULES {
        assert!(!rule.examples.is_empty() && !rule.counterexamples.is_empty(), "{}", rule.reason);
        for path in rule.examples {
            assert_eq!(reason_for(path), Some(rule.reason), "{path}");
        }
        for path in rule.counterexamples {
            assert_eq!(reason_for(path), None, "{path}");
        }
    }
}

#[test]
fn every_pattern_is_reachable_and_unique() {
    let mut all: Vec<&str> =
        PROTECTED_RULES.iter().flat_map(|rule| rule.patterns).copied().collect();
    for pattern in &all {
        assert_eq!(fold_name(pattern), *pattern, "patterns must be folded, because paths are");
        let example = pattern.replace('*', "x");
        for path in [example.clone(), format!("a/{example}/b"), example.to_uppercase()] {
            assert!(reason_for(&path).is_some(), "{path}");
        }
    }
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
}

#[test]
fn the_root_tail_is_long_enough_for_every_pattern() {
    for pattern in PROTECTED_RULES.iter().flat_map(|rule| rule.patterns) {
        let parts: Vec<&str> = pattern.split('/').collect();
        assert!(parts.len() <= MAX_ROOT_TAIL_PARTS + 1, "{pattern}");
        for path_parts in 1..=parts.len() {
            let (root, path) = parts.split_at(parts.len() - path_parts);
            let root = format!("/home/ada/{}", root.join("/").replace('*', "X").to_uppercase());
            let path = path.join("/").replace('*', "x");
            assert!(
                super::protection_reason(&root_tail(Path::new(&root)), &path).is_some(),
                "{root} {path}"
            );
        }
    }
}

#[test]
fn other_spellings_of_a_protected_name_are_protected() {
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
        #[cfg(unix)]
        r".g\342\200\214it/config",
        #[cfg(unix)]
        r"\056git/config",
        "./.git/config",
        "a//.git//config",
        "/home/ada/.ssh/config",
        "C:/Users/ada/.ssh/config",
    ] {
        assert!(reason_for(path).is_some(), "{path:?}");
    }
}

#[test]
fn similar_names_are_not_protected() {
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
        assert_eq!(reason_for(path), None, "{path:?}");
    }
}

proptest! {
    /// Text before or after a protected name does not make it unprotected.
    #[test]
    fn a_protected_name_is_protected_in_any_position(
        before in "[a-z./~: ]{0,12}", after in "\\PC{0,12}", upper in any::<bool>(),
    ) {
        let name = if upper { ".GIT" } else { ".git" };
        let path = format!("{before}/{name}/{after}");
        prop_assert!(reason_for(&path).is_some(), "{path:?}");
    }

    #[test]
    fn invisible_characters_do_not_hide_a_name(
        at in 0usize..=11,
        hidden in prop::sample::select(vec![
            '\u{200b}', '\u{200d}', '\u{202e}', '\u{2064}', '\u{206f}', '\u{feff}', '\u{7f}',
        ]),
    ) {
        let mut path: Vec<char> = ".git/config".chars().collect();
        path.insert(at, hidden);
        let path: String = path.into_iter().collect();
        prop_assert!(reason_for(&path).is_some(), "{path:?}");
    }

    #[test]
    fn folding_a_path_does_not_change_the_result(path in "\\PC{0,40}") {
        prop_assert_eq!(reason_for(&path), reason_for(&fold_name(&path)));
    }
}

#[test]
fn the_quick_check_agrees_with_the_full_check() {
    let hostile = ["GIT~1/config", ".g\u{200c}it/config", "A.CODE-WORKSPACE", "x/.GIT.", ".git:a"];
    let listed =
        PROTECTED_RULES.iter().flat_map(|rule| rule.examples.iter().chain(rule.counterexamples));
    for path in listed.copied().chain(hostile) {
        for spelled in [path.to_owned(), path.to_uppercase(), format!("a/b/{path} ")] {
            assert_eq!(
                workspace_protection_reason(&spelled),
                super::protection_reason(&[], &spelled),
                "{spelled}"
            );
        }
    }
}

#[test]
fn every_protected_key_is_a_secret_path() {
    use crate::secret_files::{SecretPathAnchor, is_secret_path};
    let keys = PROTECTED_RULES.iter().find(|rule| rule.reason.contains("contains keys")).unwrap();
    for pattern in keys.patterns {
        assert!(is_secret_path(Path::new(pattern), SecretPathAnchor::Home), "{pattern}");
    }
}
