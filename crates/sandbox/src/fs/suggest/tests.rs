//! Tests of suggestions for paths that do not exist.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "tests create files and run programs directly")]

use crate::call_workspace::tests::TestWorkspace;
use windlass_protocol::ToolAccess;

fn suggest(env: &TestWorkspace, path: &str) -> Vec<String> {
    env.grant(&[ToolAccess::Read { path: path.into() }]).suggest_paths(path)
}

#[test]
fn the_same_name_elsewhere_comes_first_then_similar_names() {
    let env = TestWorkspace::new();
    for path in ["lib/config.rs", "lib/confug.rs", "deep/er/Config.rs", "unrelated.md"] {
        env.put(path, "");
    }
    assert_eq!(
        suggest(&env, "src/config.rs"),
        ["lib/config.rs", "deep/er/Config.rs", "lib/confug.rs"]
    );
    assert_eq!(suggest(&env, "src/A.TXT"), ["src/a.txt"]);
    assert_eq!(suggest(&env, "sr/").first().map(String::as_str), Some("src"));
    assert_eq!(suggest(&env, "src/ocnfig.rs").len(), 3);
}

#[test]
fn without_a_similar_name_nothing_is_suggested() {
    let env = TestWorkspace::new();
    for path in ["", "/", "zzzzzz.py", "x", "\u{1f600}", "a/b/c/"] {
        assert!(suggest(&env, path).is_empty(), "{path}");
    }
}

#[test]
fn hidden_ignored_secret_and_symlinked_files_are_not_suggested() {
    let env = TestWorkspace::new();
    env.put(".git/HEAD", "");
    env.put(".gitignore", "built\n");
    env.put("built/notes.txt", "");
    env.put(".hidden/notes.txt", "");
    env.put("notes.env", "");
    std::os::unix::fs::symlink(env.outside(), env.root().join("notes.tx")).unwrap();
    assert!(suggest(&env, "notes.txt").is_empty());
    assert!(suggest(&env, "notes.env2").is_empty());
}

#[test]
fn at_most_three_paths_are_suggested() {
    let env = TestWorkspace::new();
    for n in 0..10 {
        env.put(&format!("{n}/same.rs"), "");
    }
    assert_eq!(suggest(&env, "same.rs"), ["0/same.rs", "1/same.rs", "2/same.rs"]);
}

#[test]
fn long_names_and_long_paths_are_compared_in_bounded_time() {
    let env = TestWorkspace::new();
    let folder = vec!["d".repeat(200); 15].join("/");
    for n in 0..400 {
        env.put(&format!("{folder}/{n:03}{}", "n".repeat(240)), "");
    }
    let started = std::time::Instant::now();
    let wanted = format!("{folder}/{}", "n".repeat(243));
    assert_eq!(suggest(&env, &wanted).len(), 3);
    assert!(suggest(&env, &"n".repeat(1_000_000)).is_empty());
    assert!(
        started.elapsed()
            < windlass_testkit::time_limits::limit(std::time::Duration::from_secs(10)),
        "{:?}",
        started.elapsed()
    );
}
