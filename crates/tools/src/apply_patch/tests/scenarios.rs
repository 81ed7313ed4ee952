//! The scenarios of the reference implementation: `input` and `patch.txt` give `expected`, byte by
//! byte.
//!
//! A folder without `input` or `expected` has no files there. One scenario differs from the
//! reference: a patch that fails changes nothing.
#![allow(clippy::disallowed_methods, reason = "the scenarios are read from the repository")]

use crate::case_runner::read_all_files;
use std::collections::BTreeMap;
use std::path::Path;
use windlass_protocol::CallOutcome;

/// Scenarios whose patch is rejected, so that nothing changes.
const REJECTED: &[&str] = &[
    "005_rejects_empty_patch",
    "006_rejects_missing_context",
    "007_rejects_missing_file_delete",
    "008_rejects_empty_update_hunk",
    "009_requires_existing_file_for_update",
    "012_delete_directory_fails",
    "013_rejects_invalid_hunk_header",
    "015_failure_after_partial_success_leaves_changes",
];

/// Runs a scenario through the tool pipeline with real files, all of them read by the model.
fn run_scenario(
    input: &BTreeMap<String, Vec<u8>>,
    patch: &str,
) -> (bool, BTreeMap<String, Vec<u8>>) {
    let folder = tempfile::tempdir().unwrap();
    for (path, content) in input {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    let read: Vec<&str> = input.keys().map(String::as_str).collect();
    let arguments = serde_json::json!({"patchText": patch}).to_string();
    let outcome = crate::case_runner::call_tool(folder.path(), &read, "apply_patch", &arguments);
    (matches!(outcome, CallOutcome::Failed { .. }), read_all_files(folder.path()))
}

#[test]
fn every_scenario_ends_as_expected() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/apply_patch/scenarios");
    let mut count = 0;
    for entry in std::fs::read_dir(&root).unwrap() {
        let folder = entry.unwrap().path();
        if !folder.is_dir() {
            continue;
        }
        count += 1;
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let before = read_all_files(&folder.join("input"));
        let patch = std::fs::read_to_string(folder.join("patch.txt")).unwrap();
        let (rejected, after) = run_scenario(&before, &patch);
        assert_eq!(after, read_all_files(&folder.join("expected")), "{name}");
        assert_eq!(rejected, REJECTED.contains(&name.as_str()), "{name}");
        assert_eq!(rejected, after == before, "{name}");
    }
    assert_eq!(count, 25);
}
