//! Rules for every source file and manifest.

use super::Files;
use std::path::Path;

/// Maximum length of a file's production part.
const MAX_FILE_LINES: usize = 500;

/// Files that are longer, each with a reason. The list only gets shorter.
const LONGER_FILES: &[(&str, &str)] = &[];

/// Files that may allow disallowed methods, besides tests.
const ALLOWED_FILES: &[&str] = &[
    "crates/cli/src/checkouts/checkout.rs",
    "crates/cli/src/checkouts/folders.rs",
    "crates/cli/src/checkouts/git.rs",
    "crates/cli/src/checkouts/mod.rs",
    "crates/cli/src/checkouts/repository_checks.rs",
    "crates/cli/src/terminal/question_queue.rs",
    "crates/cli/src/main.rs",
    "crates/cli/src/terminal/output.rs",
    "crates/cli/src/setup/machine.rs",
    "crates/cli/src/setup/mod.rs",
    "crates/cli/src/telemetry.rs",
    "crates/engine/src/clock_and_ids.rs",
    "crates/engine/src/driver/mod.rs",
    "crates/mcp/examples/",
    "crates/project/src/config/managed_policy.rs",
    "crates/project/src/config/sandbox.rs",
    "crates/project/src/config/edit.rs",
    "crates/project/src/config/file_parser.rs",
    "crates/project/src/import/mod.rs",
    "crates/project/src/import/source_files.rs",
    "crates/project/src/instructions/mod.rs",
    "crates/project/src/instructions/glob.rs",
    "crates/cli/src/log_file.rs",
    "crates/project/src/server_files.rs",
    "crates/project/src/server_logs.rs",
    "crates/project/src/api_keys/",
    "crates/project/src/dirs.rs",
    "crates/project/src/plugins/mod.rs",
    "crates/project/src/plugins/contents/mod.rs",
    "crates/project/src/private_files.rs",
    "crates/project/src/skills/mod.rs",
    "crates/project/src/custom_tools/",
    "crates/project/src/trust/command_files.rs",
    "crates/project/src/trust/mod.rs",
    "crates/project/src/trust/scan.rs",
    "crates/sandbox/src/confine/",
    "crates/sandbox/src/process/start.rs",
    "crates/sandbox/src/helper_process/mod.rs",
    "crates/sandbox/src/path_lookup.rs",
    "crates/sandbox/src/restricted_paths.rs",
    "crates/sandbox/src/fs/ignore_file_checks.rs",
    "crates/sandbox/src/supervisor/client.rs",
    "crates/sandbox/src/supervisor/mod.rs",
    "crates/sandbox/src/editor_and_clipboard.rs",
    "crates/sandbox/src/open_in_browser.rs",
    "crates/sandbox/src/terminal_watch.rs",
    "crates/sandbox/src/network/proxy/host_gate.rs",
    "crates/sandbox/src/network/proxy/token.rs",
    "crates/sandbox/src/command/output_reader.rs",
    "crates/sandbox/src/command/package_caches.rs",
    "crates/sandbox/src/command/start.rs",
    "crates/sandbox/src/network/command_network.rs",
    "crates/sandbox/src/working_folder.rs",
    "crates/sandbox/src/workspace.rs",
    "crates/storage/src/blob.rs",
    "crates/storage/src/data_folder.rs",
    "crates/storage/src/file_copies.rs",
    "crates/storage/src/file_lock.rs",
    "crates/storage/src/repair.rs",
    "crates/tools/src/undo/diff3.rs",
    "crates/tui/src/linear/mod.rs",
    "crates/tui/src/terminal/clipboard_reader.rs",
    "crates/tui/src/terminal/mod.rs",
    "crates/tui/src/terminal/modes.rs",
    "crates/tui/src/terminal/stdin_state.rs",
    "testkit/",
    "xtask/",
];

/// Files that may print.
const PRINTING_FILES: &[&str] =
    &["crates/cli/src/terminal/output.rs", "testkit/src/test_main.rs", "xtask/"];

/// File names that say nothing.
const EMPTY_NAMES: &[&str] = &["core", "utils", "util", "common", "types", "helpers", "manager"];

/// Returns true for the fixture projects of language server tests.
pub(super) fn is_fixture(path: &Path) -> bool {
    path.starts_with("crates/lsp/tests/projects")
}

pub(crate) fn check(files: &Files) -> Vec<String> {
    let mut faults = Vec::new();
    for (path, text) in files.with_extension("rs").filter(|(path, _)| !is_fixture(path)) {
        let at = path.display().to_string();
        if !text.starts_with("//!") {
            faults.push(format!("{at}: a module opens with `//!` and says what it is"));
        }
        let lines = production(text).lines().count();
        let excused = LONGER_FILES.iter().any(|(excused, _)| *excused == at);
        if lines > MAX_FILE_LINES && !excused && !is_test(path) {
            faults.push(format!("{at}: {lines} lines; at most {MAX_FILE_LINES}, so split it"));
        }
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if EMPTY_NAMES.contains(&stem.as_str()) {
            faults.push(format!("{at}: `{stem}` says nothing; name what it holds"));
        }
        let allowed =
            |files: &[&str]| files.iter().any(|file| at.starts_with(file)) || is_test(path);
        if text.contains("clippy::disallowed_methods") && !allowed(ALLOWED_FILES) {
            faults.push(format!("{at}: this file may not allow disallowed methods"));
        }
        if (text.contains("clippy::print_stdout") || text.contains("clippy::print_stderr"))
            && !allowed(PRINTING_FILES)
        {
            faults.push(format!("{at}: only the listed files print"));
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
    for (path, text) in files.with_extension("toml").filter(|(path, _)| !is_fixture(path)) {
        // A fuzzer is not part of the workspace and cannot use its lints.
        let is_fuzzer = text.contains("cargo-fuzz = true");
        let crate_manifest =
            path.ends_with("Cargo.toml") && text.contains("[package]") && !is_fuzzer;
        if crate_manifest && !text.contains("[lints]\nworkspace = true") {
            faults.push(format!("{}: it does not use the workspace's lints", path.display()));
        }
    }
    faults
}

/// Returns the part of a file before its inline tests.
pub(super) fn production(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text)
}

/// Returns true for test code, which may use disallowed methods.
pub(super) fn is_test(path: &Path) -> bool {
    let part = |name: &str| path.components().any(|part| part.as_os_str() == name);
    part("tests")
        || part("benches")
        || path.ends_with("tests.rs")
        || path.ends_with("case_runner.rs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_source_rule_is_checked() {
        let long = format!("//! Long.\n{}", "fn f() {}\n".repeat(600));
        // Concatenated, so that this file does not violate the rule that it tests.
        let disallowed_methods = ["#![allow(clippy::", "disallowed_methods)]"].concat();
        let print_stdout = ["#![allow(clippy::", "print_stdout)]"].concat();
        let allow_unsafe = ["#![allow(", "unsafe", "_code)]"].concat();
        let lint_group = ["#![allow(", "clippy::style, reason = \"\")]"].concat();
        let cases: Vec<(&str, String, &str)> = vec![
            ("crates/a/src/lib.rs", "fn f() {}".into(), "a module opens with"),
            ("crates/a/src/lib.rs", long, "601 lines"),
            ("crates/a/src/utils.rs", "//! U.".into(), "`utils` says nothing"),
            (
                "crates/tools/src/a.rs",
                format!("//! A.\n{disallowed_methods}"),
                "may not allow disallowed methods",
            ),
            (
                "crates/engine/src/a.rs",
                format!("//! A.\n{print_stdout}"),
                "only the listed files print",
            ),
            (
                "crates/tools/src/a.rs",
                format!("//! A.\n{allow_unsafe}"),
                "`unsafe` is for `sandbox` only",
            ),
            ("crates/a/src/b.rs", format!("//! B.\n{lint_group}"), "never allowed as a whole"),
            ("crates/a/Cargo.toml", "[package]\nname = \"a\"\n".into(), "the workspace's lints"),
        ];
        for (path, text, expected) in cases {
            let found = check(&Files::fixture(&[(path, &text)]));
            assert!(found.iter().any(|fault| fault.contains(expected)), "{path}: {found:?}");
        }
        let fine = Files::fixture(&[
            ("crates/a/src/lib.rs", "//! Fine.\n"),
            ("crates/a/tests/all.rs", &format!("//! Tests.\n{disallowed_methods}")),
        ]);
        assert_eq!(check(&fine), Vec::<String>::new());
    }
}
