//! What comes of taking back, beyond the merging of one file.
#![allow(clippy::disallowed_methods, reason = "the tests arrange the world from outside")]

use crate::harness::{self, Folder};
use windlass_protocol::{Change, Outcome, Version, View};

#[test]
fn the_schema_is_current() {
    harness::check_schema(&super::Undo::default(), expect_test::expect_file!["schema.json"]);
}

/// Takes changes back: path, before and after, oldest first.
fn undo(folder: &Folder, changes: &[(&str, Option<&str>, Option<&str>)]) -> Outcome {
    let version = |content: &&str| Version { copy: folder.keep(content), mode: Some(0o755) };
    let change = |(path, before, after): &(&str, Option<&str>, Option<&str>)| Change {
        path: (*path).to_owned(),
        before: before.as_ref().map(version),
        after: after.as_ref().map(version),
    };
    let changes = changes.iter().map(change).collect();
    let input = windlass_protocol::Undo { facts: vec![1], changes, view: View::Back };
    folder.undo(&serde_json::to_string(&input).unwrap())
}

fn left(outcome: &Outcome) -> Vec<String> {
    let Outcome::Completed { output } = outcome else { panic!("{outcome:?}") };
    serde_json::from_value(output.metadata["left"].clone()).unwrap()
}

#[test]
fn files_are_changed_made_and_removed_again() {
    let folder = Folder::new(&[("a", "2\n"), ("made", "new\n")]);
    let outcome = undo(
        &folder,
        &[
            ("a", Some("0\n"), Some("1\n")),
            ("made", None, Some("new\n")),
            ("gone", Some("old\n"), None),
            ("a", Some("1\n"), Some("2\n")),
        ],
    );
    assert_eq!(left(&outcome), [""; 0]);
    assert_eq!(folder.read("a").as_deref(), Some("0\n"));
    assert_eq!(folder.read("made"), None);
    assert_eq!(folder.read("gone").as_deref(), Some("old\n"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode =
            |path: &str| std::fs::metadata(folder.path(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode("gone"), 0o755, "what comes back comes back as it was");
        assert_eq!(mode("a"), 0o644, "what is there keeps what somebody gave it");
    }
}

#[test]
fn what_cannot_be_taken_back_is_named_and_the_rest_is() {
    let folder = Folder::new(&[("a", "1\n"), ("made", "new, and edited by hand\n")]);
    let outcome = undo(&folder, &[("a", Some("0\n"), Some("1\n")), ("made", None, Some("new\n"))]);
    assert_eq!(left(&outcome), ["made"]);
    assert!(outcome.text().contains("made was left as it is"), "{}", outcome.text());
    assert_eq!(folder.read("a").as_deref(), Some("0\n"));
    assert_eq!(folder.read("made").as_deref(), Some("new, and edited by hand\n"));
}

#[test]
fn if_nothing_can_be_taken_back_it_failed() {
    let folder = Folder::new(&[("made", "edited\n")]);
    let outcome = undo(&folder, &[("made", None, Some("new\n"))]);
    assert!(matches!(&outcome, Outcome::Failed { text } if text.contains("Nothing was changed")));
}

#[test]
fn a_version_that_is_no_longer_kept_leaves_its_file_alone() {
    let folder = Folder::new(&[("a", "1\n"), ("b", "1\n")]);
    let lost = Version { copy: windlass_protocol::BlobRef::of(b"lost"), mode: None };
    let kept = |content: &str| Some(Version { copy: folder.keep(content), mode: None });
    let changes = vec![
        Change { path: "a".into(), before: Some(lost), after: kept("1\n") },
        Change { path: "b".into(), before: kept("0\n"), after: kept("1\n") },
    ];
    let input = windlass_protocol::Undo { facts: vec![1], changes, view: View::Back };
    let outcome = folder.undo(&serde_json::to_string(&input).unwrap());
    assert_eq!(left(&outcome), ["a"]);
    assert_eq!(folder.read("a").as_deref(), Some("1\n"));
    assert_eq!(folder.read("b").as_deref(), Some("0\n"));
}

#[test]
fn what_is_as_it_was_already_needs_no_change() {
    let folder = Folder::new(&[("a", "0\n")]);
    let outcome = undo(&folder, &[("a", Some("0\n"), Some("1\n"))]);
    assert!(outcome.text().contains("already as they were"), "{outcome:?}");
    assert_eq!(folder.recorded(), 0, "nothing that could be done again");
}
