//! Tests of the `undo` tool, beyond the merge of one file.
#![allow(clippy::disallowed_methods, reason = "tests create files directly")]

use crate::case_runner::{self, UndoTestFolder};
use windlass_protocol::{CallOutcome, DiffDirection, FileChange, FileVersion};
use windlass_toolkit::Tool;

#[test]
fn the_schema_is_current() {
    case_runner::check_schema(
        &super::UndoTool::default(),
        expect_test::expect_file!["schema.json"],
    );
}

#[test]
fn a_redo_is_described_as_a_redo() {
    for (is_redo, verb) in [(false, "Undo"), (true, "Redo")] {
        let input = windlass_protocol::UndoArguments {
            facts: vec![1],
            changes: Vec::new(),
            not_captured: Vec::new(),
            direction: DiffDirection::Forward,
            is_redo,
        };
        let description = super::UndoTool::default().describe_call(&input, "").unwrap();
        assert_eq!(description.verb, verb);
    }
}

/// Reverts changes, each with path, content before and content after, oldest first.
fn undo(folder: &UndoTestFolder, changes: &[(&str, Option<&str>, Option<&str>)]) -> CallOutcome {
    let version =
        |content: &&str| FileVersion { blob: folder.put_blob(content), unix_mode: Some(0o755) };
    let change = |(path, before, after): &(&str, Option<&str>, Option<&str>)| FileChange {
        path: (*path).to_owned(),
        before: before.as_ref().map(version),
        after: after.as_ref().map(version),
    };
    let changes = changes.iter().map(change).collect();
    let input = windlass_protocol::UndoArguments {
        facts: vec![1],
        changes,
        not_captured: Vec::new(),
        direction: DiffDirection::Reverse,
        is_redo: false,
    };
    folder.undo(&serde_json::to_string(&input).unwrap())
}

fn skipped_files(outcome: &CallOutcome) -> Vec<String> {
    let CallOutcome::Completed { output } = outcome else { panic!("{outcome:?}") };
    serde_json::from_value(output.metadata["left"].clone()).unwrap()
}

#[test]
fn changed_created_and_removed_files_are_restored() {
    let folder = UndoTestFolder::new(&[("a", "2\n"), ("created", "new\n")]);
    let outcome = undo(
        &folder,
        &[
            ("a", Some("0\n"), Some("1\n")),
            ("created", None, Some("new\n")),
            ("removed", Some("old\n"), None),
            ("a", Some("1\n"), Some("2\n")),
        ],
    );
    assert_eq!(skipped_files(&outcome), [""; 0]);
    assert_eq!(folder.read("a").as_deref(), Some("0\n"));
    assert_eq!(folder.read("created"), None);
    assert_eq!(folder.read("removed").as_deref(), Some("old\n"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode =
            |path: &str| std::fs::metadata(folder.path(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode("removed"), 0o755, "a recreated file gets the recorded mode");
        assert_eq!(mode("a"), 0o644, "an existing file keeps its mode");
    }
}

#[test]
fn unrevertable_files_are_listed_and_the_others_are_reverted() {
    let folder = UndoTestFolder::new(&[("a", "1\n"), ("created", "new, and edited by hand\n")]);
    let outcome =
        undo(&folder, &[("a", Some("0\n"), Some("1\n")), ("created", None, Some("new\n"))]);
    assert_eq!(skipped_files(&outcome), ["created"]);
    assert!(outcome.text().contains("created was left unchanged"), "{}", outcome.text());
    assert_eq!(folder.read("a").as_deref(), Some("0\n"));
    assert_eq!(folder.read("created").as_deref(), Some("new, and edited by hand\n"));
}

#[test]
fn undo_fails_if_nothing_can_be_reverted() {
    let folder = UndoTestFolder::new(&[("created", "edited\n")]);
    let outcome = undo(&folder, &[("created", None, Some("new\n"))]);
    assert!(
        matches!(&outcome, CallOutcome::Failed { text } if text.contains("Nothing was changed"))
    );
}

#[test]
fn a_file_with_a_missing_version_is_left_alone() {
    let folder = UndoTestFolder::new(&[("a", "1\n"), ("b", "1\n")]);
    let missing =
        FileVersion { blob: windlass_protocol::BlobRef::for_bytes(b"missing"), unix_mode: None };
    let stored =
        |content: &str| Some(FileVersion { blob: folder.put_blob(content), unix_mode: None });
    let changes = vec![
        FileChange { path: "a".into(), before: Some(missing), after: stored("1\n") },
        FileChange { path: "b".into(), before: stored("0\n"), after: stored("1\n") },
    ];
    let input = windlass_protocol::UndoArguments {
        facts: vec![1],
        changes,
        not_captured: Vec::new(),
        direction: DiffDirection::Reverse,
        is_redo: false,
    };
    let outcome = folder.undo(&serde_json::to_string(&input).unwrap());
    assert_eq!(skipped_files(&outcome), ["a"]);
    assert_eq!(folder.read("a").as_deref(), Some("1\n"));
    assert_eq!(folder.read("b").as_deref(), Some("0\n"));
}

#[test]
fn a_file_with_its_earlier_content_needs_no_change() {
    let folder = UndoTestFolder::new(&[("a", "0\n")]);
    let outcome = undo(&folder, &[("a", Some("0\n"), Some("1\n"))]);
    assert!(outcome.text().contains("already have their earlier content"), "{outcome:?}");
    assert_eq!(folder.recorded_change_count(), 0, "a change was recorded");
}
