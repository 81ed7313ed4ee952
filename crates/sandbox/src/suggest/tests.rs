//! What is suggested for paths that lead nowhere.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "the tests arrange the world from outside")]

use crate::world::tests::Yard;
use windlass_protocol::Access;

fn suggest(yard: &Yard, path: &str) -> Vec<String> {
    yard.granting(&[Access::Read { path: path.into() }]).suggest(path)
}

#[test]
fn the_same_name_elsewhere_comes_first_then_similar_names() {
    let yard = Yard::new();
    for path in ["lib/config.rs", "lib/confug.rs", "deep/er/Config.rs", "unrelated.md"] {
        yard.put(path, "");
    }
    assert_eq!(
        suggest(&yard, "src/config.rs"),
        ["lib/config.rs", "deep/er/Config.rs", "lib/confug.rs"]
    );
    assert_eq!(suggest(&yard, "src/A.TXT"), ["src/a.txt"]);
    assert_eq!(suggest(&yard, "sr/").first().map(String::as_str), Some("src"));
    assert_eq!(suggest(&yard, "src/ocnfig.rs").len(), 3);
}

#[test]
fn nothing_near_is_nothing_suggested() {
    let yard = Yard::new();
    for path in ["", "/", "zzzzzz.py", "x", "\u{1f600}", "a/b/c/"] {
        assert!(suggest(&yard, path).is_empty(), "{path}");
    }
}

#[test]
fn what_is_hidden_ignored_secret_or_a_link_is_not_suggested() {
    let yard = Yard::new();
    yard.put(".git/HEAD", "");
    yard.put(".gitignore", "built\n");
    yard.put("built/notes.txt", "");
    yard.put(".hidden/notes.txt", "");
    yard.put("notes.env", "");
    std::os::unix::fs::symlink(yard.outside(), yard.root().join("notes.tx")).unwrap();
    assert!(suggest(&yard, "notes.txt").is_empty());
    assert!(suggest(&yard, "notes.env2").is_empty());
}

#[test]
fn at_most_three_are_suggested() {
    let yard = Yard::new();
    for n in 0..10 {
        yard.put(&format!("{n}/same.rs"), "");
    }
    assert_eq!(suggest(&yard, "same.rs"), ["0/same.rs", "1/same.rs", "2/same.rs"]);
}

#[test]
fn long_names_and_long_paths_are_compared_in_bounded_time() {
    let yard = Yard::new();
    let folder = vec!["d".repeat(200); 15].join("/");
    for n in 0..400 {
        yard.put(&format!("{folder}/{n:03}{}", "n".repeat(240)), "");
    }
    let started = std::time::Instant::now();
    let wanted = format!("{folder}/{}", "n".repeat(243));
    assert_eq!(suggest(&yard, &wanted).len(), 3);
    assert!(suggest(&yard, &"n".repeat(1_000_000)).is_empty());
    assert!(started.elapsed() < std::time::Duration::from_secs(10), "{:?}", started.elapsed());
}
