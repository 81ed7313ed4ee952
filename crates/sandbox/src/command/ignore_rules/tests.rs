//! Tests of the paths that git ignores.
#![allow(clippy::disallowed_methods, reason = "the test creates files directly")]

use super::*;

#[test]
fn the_nearest_rule_decides_and_an_ignored_folder_ignores_all_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    std::fs::create_dir_all(root.join("app/keep")).unwrap();
    std::fs::write(root.join(".gitignore"), "dist/\n*.log\n.env.local\n").unwrap();
    std::fs::write(root.join("app/.gitignore"), "!wanted.log\n/out\n").unwrap();
    let mut rules = IgnoreRules::new(root, BTreeMap::new());
    for (path, with_file, expected) in [
        ("src/a.rs", true, false),
        ("dist/a.js", false, true),
        ("app/dist/x/a.js", false, true),
        ("a.log", true, true),
        ("a.log", false, false),
        ("app/wanted.log", true, false),
        ("app/other.log", true, true),
        ("app/out/x", false, true),
        ("out/x", true, false),
        (".env.local", false, false),
    ] {
        let actual = rules.is_ignored(&root.join(path), with_file);
        assert_eq!(actual, expected, "{path} {with_file}");
    }
    assert!(!rules.is_ignored(Path::new("/elsewhere/dist/a"), true));
}

#[test]
fn an_earlier_content_counts_instead_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    std::fs::write(root.join(".gitignore"), "src/\n").unwrap();
    let earlier = BTreeMap::from([(root.join(".gitignore"), b"dist/\n".to_vec())]);
    let mut rules = IgnoreRules::new(root, earlier);
    assert!(!rules.is_ignored(&root.join("src/a.rs"), true));
    assert!(rules.is_ignored(&root.join("dist/a.js"), true));
}
