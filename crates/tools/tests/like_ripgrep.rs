//! We find what ripgrep finds: the same files, and the same lines in them.
#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

#[path = "../benches/yard/mod.rs"]
mod yard;

use std::collections::BTreeSet;
use windlass_tools::grep::search::Search;
use yard::{CHOICE, COMMON, RARE};

#[test]
fn the_same_files_and_the_same_lines_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    if yard::ripgrep(root, &["--version"]).status().is_err() {
        assert!(std::env::var_os("CI").is_none(), "ripgrep is not installed");
        eprintln!("skipped: ripgrep is not installed");
        return;
    }
    yard::make(root, 2_000);
    let world = yard::world(root);
    for pattern in [RARE, COMMON, CHOICE, "^}", r"\bgröße\s+\w+ $", "(?i)SOME (none|ok)", r"\r"] {
        let found = yard::our_places(&yard::search(&world, &Search::new(pattern).unwrap()));
        let expected = yard::their_places(root, pattern);
        assert!(!expected.is_empty(), "{pattern}");
        let differing: Vec<_> = found.symmetric_difference(&expected).take(5).collect();
        assert!(differing.is_empty(), "{pattern}: {differing:?}");
    }
    for glob in ["*.rs", "*.log", "keep*", "part00/unit01/**/*.ts", "!*.md", "*.{rs,md}"] {
        let found: BTreeSet<String> = yard::our_files(&world, glob).into_iter().collect();
        let expected = yard::their_files(root, glob);
        assert!(!expected.is_empty(), "{glob}");
        let differing: Vec<_> = found.symmetric_difference(&expected).take(5).collect();
        assert!(differing.is_empty(), "{glob}: {differing:?}");
    }
}
