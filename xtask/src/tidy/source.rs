//! What every source file keeps to.

use super::Files;
use std::path::Path;

/// How long a file's production part may be.
const LONGEST: usize = 500;

/// Files that are longer, each with a reason. The list only gets shorter.
const LONGER: &[(&str, &str)] = &[];

/// The doors: where a disallowed method may be allowed, besides tests.
const DOORS: &[&str] = &[
    "crates/cli/src/ask.rs",
    "crates/cli/src/main.rs",
    "crates/cli/src/run.rs",
    "crates/cli/src/screen.rs",
    "crates/cli/src/setup.rs",
    "crates/cli/src/watching.rs",
    "crates/engine/src/driver.rs",
    "crates/mcp/examples/",
    "crates/project/src/config/managed.rs",
    "crates/project/src/config/bounds.rs",
    "crates/project/src/edit.rs",
    "crates/project/src/file.rs",
    "crates/project/src/import/mod.rs",
    "crates/project/src/import/source.rs",
    "crates/project/src/instructions.rs",
    "crates/project/src/instructions/names.rs",
    "crates/project/src/journal.rs",
    "crates/project/src/keys/",
    "crates/project/src/places.rs",
    "crates/project/src/plugins.rs",
    "crates/project/src/plugins/contents.rs",
    "crates/project/src/private.rs",
    "crates/project/src/skills.rs",
    "crates/project/src/tools.rs",
    "crates/project/src/trust.rs",
    "crates/project/src/trust/survey.rs",
    "crates/sandbox/src/cage/",
    "crates/sandbox/src/engage.rs",
    "crates/sandbox/src/errand.rs",
    "crates/sandbox/src/ground.rs",
    "crates/sandbox/src/ignored.rs",
    "crates/sandbox/src/jobs.rs",
    "crates/sandbox/src/keeper.rs",
    "crates/sandbox/src/own.rs",
    "crates/sandbox/src/page.rs",
    "crates/sandbox/src/proxy/token.rs",
    "crates/sandbox/src/shell.rs",
    "crates/sandbox/src/way.rs",
    "crates/sandbox/src/workspace.rs",
    "crates/storage/src/blob.rs",
    "crates/storage/src/copies.rs",
    "crates/tools/src/undo/lines.rs",
    "crates/tui/src/linear.rs",
    "crates/tui/src/shell.rs",
    "testkit/",
    "xtask/",
];

/// Where something may be printed.
const SCREENS: &[&str] = &["crates/cli/src/screen.rs", "testkit/src/checks.rs", "xtask/"];

/// Names that say nothing.
const EMPTY_NAMES: &[&str] = &["core", "utils", "util", "common", "types", "helpers", "manager"];

/// A project that a language server is asked about is nobody's code.
fn is_fixture(path: &Path) -> bool {
    path.starts_with("crates/lsp/tests/projects")
}

pub(crate) fn check(files: &Files) -> Vec<String> {
    let mut faults = Vec::new();
    for (path, text) in files.with_ending("rs").filter(|(path, _)| !is_fixture(path)) {
        let at = path.display().to_string();
        if !text.starts_with("//!") {
            faults.push(format!("{at}: a module opens with `//!` and says what it is"));
        }
        let production = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text);
        let lines = production.lines().count();
        let excused = LONGER.iter().any(|(excused, _)| *excused == at);
        if lines > LONGEST && !excused && !is_test(path) {
            faults.push(format!("{at}: {lines} lines; at most {LONGEST}, so split it"));
        }
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if EMPTY_NAMES.contains(&stem.as_str()) {
            faults.push(format!("{at}: `{stem}` says nothing; name what it holds"));
        }
        let door = |doors: &[&str]| doors.iter().any(|door| at.starts_with(door)) || is_test(path);
        if text.contains("clippy::disallowed_methods") && !door(DOORS) {
            faults.push(format!("{at}: this is not a door, so it cannot allow disallowed methods"));
        }
        if (text.contains("clippy::print_stdout") || text.contains("clippy::print_stderr"))
            && !door(SCREENS)
        {
            faults.push(format!("{at}: only the screen prints"));
        }
        let groups = ["clippy::all", "clippy::style", "clippy::restriction", "clippy::pedantic"];
        let sweeping = groups.iter().any(|group| text.contains(&format!("allow({group}")));
        if sweeping || text.contains(&["allow(", "warnings"].concat()) {
            faults.push(format!("{at}: a group of lints is never allowed as a whole"));
        }
        let unsafe_allowed = at.starts_with("crates/sandbox/");
        if text.contains(&["unsafe", "_code"].concat()) && !unsafe_allowed {
            faults.push(format!("{at}: `unsafe` is for `sandbox` only"));
        }
    }
    for (path, text) in files.with_ending("toml").filter(|(path, _)| !is_fixture(path)) {
        // A fuzzer stands outside the workspace and cannot take its lints.
        let outside = text.contains("cargo-fuzz = true");
        let crate_manifest = path.ends_with("Cargo.toml") && text.contains("[package]") && !outside;
        if crate_manifest && !text.contains("[lints]\nworkspace = true") {
            faults.push(format!("{}: it does not take the workspace's lints", path.display()));
        }
    }
    faults
}

/// Tests arrange the world from outside.
fn is_test(path: &Path) -> bool {
    let part = |name: &str| path.components().any(|part| part.as_os_str() == name);
    part("tests") || part("benches") || path.ends_with("tests.rs") || path.ends_with("harness.rs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_is_kept() {
        let long = format!("//! Long.\n{}", "fn f() {}\n".repeat(600));
        // Put together here, so that this file does not break the rule it tests.
        let method = ["#![allow(clippy::", "disallowed_methods)]"].concat();
        let printer = ["#![allow(clippy::", "print_stdout)]"].concat();
        let danger = ["#![allow(", "unsafe", "_code)]"].concat();
        let group = ["#![allow(", "clippy::style, reason = \"\")]"].concat();
        let cases: Vec<(&str, String, &str)> = vec![
            ("crates/a/src/lib.rs", "fn f() {}".into(), "a module opens with"),
            ("crates/a/src/lib.rs", long, "601 lines"),
            ("crates/a/src/utils.rs", "//! U.".into(), "`utils` says nothing"),
            ("crates/tools/src/a.rs", format!("//! A.\n{method}"), "this is not a door"),
            ("crates/engine/src/a.rs", format!("//! A.\n{printer}"), "only the screen prints"),
            (
                "crates/tools/src/a.rs",
                format!("//! A.\n{danger}"),
                "`unsafe` is for `sandbox` only",
            ),
            ("crates/a/src/b.rs", format!("//! B.\n{group}"), "never allowed as a whole"),
            ("crates/a/Cargo.toml", "[package]\nname = \"a\"\n".into(), "the workspace's lints"),
        ];
        for (path, text, words) in cases {
            let found = check(&Files::fixture(&[(path, &text)]));
            assert!(found.iter().any(|fault| fault.contains(words)), "{path}: {found:?}");
        }
        let fine = Files::fixture(&[
            ("crates/a/src/lib.rs", "//! Fine.\n"),
            ("crates/a/tests/all.rs", &format!("//! Tests.\n{method}")),
        ]);
        assert_eq!(check(&fine), Vec::<String>::new());
    }
}
