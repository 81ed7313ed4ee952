//! The scenarios of the reference: `input` and `patch.txt` give `expected`, byte by byte.
//!
//! A folder without `input` or `expected` has no files there. One scenario is ours: of a patch that
//! fails, nothing is applied.
#![allow(clippy::disallowed_methods, reason = "the scenarios are read from the repository")]

use super::Disk;
use std::collections::BTreeMap;
use std::path::Path;
use windlass_protocol::Outcome;

/// Those that change nothing because they are refused.
const REFUSED: &[&str] = &[
    "005_rejects_empty_patch",
    "006_rejects_missing_context",
    "007_rejects_missing_file_delete",
    "008_rejects_empty_update_hunk",
    "009_requires_existing_file_for_update",
    "012_delete_directory_fails",
    "013_rejects_invalid_hunk_header",
    "015_failure_after_partial_success_leaves_changes",
];

fn collect(folder: &Path, prefix: &str, disk: &mut Disk) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
        if entry.path().is_dir() {
            collect(&entry.path(), &format!("{name}/"), disk);
        } else {
            disk.0.insert(name, std::fs::read_to_string(entry.path()).unwrap());
        }
    }
}

fn files(folder: &Path) -> Disk {
    let mut disk = Disk::default();
    collect(folder, "", &mut disk);
    disk
}

/// Runs a scenario as a model would: down the road, with real files.
fn travel(input: &Path, patch: &str) -> (bool, BTreeMap<String, Vec<u8>>) {
    let folder = tempfile::tempdir().unwrap();
    for (path, content) in &files(input).0 {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    let arguments = serde_json::json!({"patchText": patch}).to_string();
    let outcome = crate::harness::call(folder.path(), "apply_patch", &arguments);
    (matches!(outcome, Outcome::Failed { .. }), crate::harness::files(folder.path()))
}

#[test]
fn every_scenario_ends_as_expected_with_real_files() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/apply_patch/scenarios");
    for entry in std::fs::read_dir(&root).unwrap() {
        let folder = entry.unwrap().path();
        if !folder.is_dir() {
            continue;
        }
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let patch = std::fs::read_to_string(folder.join("patch.txt")).unwrap();
        let (refused, after) = travel(&folder.join("input"), &patch);
        let expected = files(&folder.join("expected")).0.into_iter();
        let expected: BTreeMap<_, _> =
            expected.map(|(path, text)| (path, text.into_bytes())).collect();
        assert_eq!(after, expected, "{name}");
        assert_eq!(refused, REFUSED.contains(&name.as_str()), "{name}");
    }
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
        let mut disk = files(&folder.join("input"));
        let before = disk.clone();
        let patch = std::fs::read_to_string(folder.join("patch.txt")).unwrap();
        let result = disk.patch(&patch);
        assert_eq!(result.is_err(), REFUSED.contains(&name.as_str()), "{name}: {result:?}");
        assert_eq!(disk, files(&folder.join("expected")), "{name}");
        assert_eq!(disk == before, result.is_err(), "{name}");
    }
    assert_eq!(count, 25);
}
