//! Checks that our search finds the same files and lines as ripgrep.
#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "tests create files directly and fail by panicking"
)]

#[path = "../benches/support/mod.rs"]
mod support;

use std::collections::BTreeSet;
use support::{CHOICE, COMMON, RARE};
use windlass_tools::grep::search::GrepSearch;

#[test]
fn the_same_files_and_the_same_lines_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    if support::ripgrep(root, &["--version"]).status().is_err() {
        assert!(std::env::var_os("CI").is_none(), "ripgrep is not installed");
        eprintln!("skipped: ripgrep is not installed");
        return;
    }
    support::create_project(root, 2_000);
    let workspace = support::granted_workspace(root);
    for pattern in [RARE, COMMON, CHOICE, "^}", r"\bgröße\s+\w+ $", "(?i)SOME (none|ok)", r"\r"] {
        let found =
            support::own_matches(&support::search(&workspace, &GrepSearch::new(pattern).unwrap()));
        let expected = support::ripgrep_matches(root, pattern);
        assert!(!expected.is_empty(), "{pattern}");
        let differing: Vec<_> = found.symmetric_difference(&expected).take(5).collect();
        assert!(differing.is_empty(), "{pattern}: {differing:?}");
    }
    for glob in ["*.rs", "*.log", "keep*", "part00/unit01/**/*.ts", "!*.md", "*.{rs,md}"] {
        let found: BTreeSet<String> = support::own_files(&workspace, glob).into_iter().collect();
        let expected = support::ripgrep_files(root, glob);
        assert!(!expected.is_empty(), "{glob}");
        let differing: Vec<_> = found.symmetric_difference(&expected).take(5).collect();
        assert!(differing.is_empty(), "{glob}: {differing:?}");
    }
}
