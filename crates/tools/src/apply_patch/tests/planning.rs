//! Tests of `plan_changes`: combinations of sections.

use super::TestPatchFiles;
use crate::apply_patch::{PlannedChange, parse_patch, patch_paths};

fn apply_sections(
    contents: &[(&str, &str)],
    sections: &str,
) -> (TestPatchFiles, Result<Vec<PlannedChange>, String>) {
    let mut files = TestPatchFiles::new(contents);
    let before = files.clone();
    let result = files.patch(&format!("*** Begin Patch\n{sections}\n*** End Patch"));
    let result = result.map_err(|error| error.to_string());
    assert!(result.is_ok() || files == before);
    (files, result)
}

const FILES: &[(&str, &str)] = &[("a", "1\n2\n3\n"), ("b", "b\n"), ("dir/c", "c\n")];

#[test]
fn two_sections_apply_to_the_original_file() {
    let both = "*** Update File: a\n@@\n-3\n+three\n*** Delete File: b\n\
                *** Update File: a\n@@\n-1\n+3\n+1";
    let (files, result) = apply_sections(FILES, both);
    assert_eq!(files.text("a"), "3\n1\n2\nthree\n");
    assert_eq!(result.unwrap().len(), 2);
    let moved = "*** Update File: a\n-3\n+three\n*** Update File: a\n*** Move to: d\n-1";
    let (files, _) = apply_sections(FILES, moved);
    assert_eq!(files.text("d"), "2\nthree\n");
    assert!(!files.0.contains_key("a"));
}

#[test]
fn a_move_reports_a_replaced_file() {
    let (files, result) = apply_sections(FILES, "*** Update File: a\n*** Move to: b");
    assert_eq!(files, TestPatchFiles::new(&[("b", "1\n2\n3\n"), ("dir/c", "c\n")]));
    let (path, move_to) = ("a".to_owned(), "b".to_owned());
    let after = (*b"1\n2\n3\n").into();
    assert_eq!(
        result.unwrap(),
        [PlannedChange::Move {
            path,
            move_to,
            after,
            is_loose_match: false,
            replaces_target: true
        }]
    );
    let (_, result) = apply_sections(FILES, "*** Update File: a\n*** Move to: new/a\n@@\n-1");
    assert!(
        matches!(&result.unwrap()[..], [PlannedChange::Move { replaces_target: false, after, .. }] if **after == *b"2\n3\n")
    );
    let (_, result) = apply_sections(FILES, "*** Update File: a\n*** Move to: dir");
    assert_eq!(result.unwrap_err(), "dir is a folder");
}

#[test]
fn a_file_that_is_deleted_and_then_added_is_replaced() {
    let (files, result) = apply_sections(FILES, "*** Delete File: a\n*** Add File: a\n+new");
    assert_eq!(files.text("a"), "new\n");
    let (path, after) = ("a".to_owned(), (*b"new\n").into());
    assert_eq!(result.unwrap(), [PlannedChange::Overwrite { path, after, keeps_encoding: false }]);
}

#[test]
fn conflicting_sections_are_rejected() {
    for (sections, expected) in [
        (
            "*** Add File: n\n+x\n*** Add File: n\n+y",
            "n is added twice. Keep only the section with its complete content.",
        ),
        (
            "*** Add File: n\n+x\n*** Update File: n\n-x\n+y",
            "n is both added and updated. Write its complete content in \"*** Add File:\", or \
             only update it.",
        ),
        (
            "*** Update File: a\n-1\n*** Add File: a\n+x",
            "a is both added and updated. Write its complete content in \"*** Add File:\", or \
             only update it.",
        ),
        (
            "*** Add File: n\n+x\n*** Delete File: n",
            "n is added and then deleted. Omit one of the two.",
        ),
        ("*** Delete File: a\n*** Delete File: a", "a is deleted twice. Omit one of the sections."),
        (
            "*** Delete File: a\n*** Update File: a\n-1",
            "a is both updated and deleted. Omit one of the two.",
        ),
        ("*** Update File: a\n*** Move to: a", "a is moved to its own path. Omit the section."),
        (
            "*** Update File: a\n*** Move to: x\n*** Update File: a\n*** Move to: y",
            "a is moved both to x and to y. Choose one.",
        ),
        (
            "*** Update File: a\n*** Move to: x\n*** Update File: b\n*** Move to: x",
            "a and b are both moved to x. Choose one.",
        ),
        (
            "*** Update File: a\n*** Move to: b\n*** Update File: b\n*** Move to: a",
            "a is moved to b, which has its own section. A move replaces the file at its target: \
             omit that section, or send it as a second patch.",
        ),
        (
            "*** Delete File: a\n*** Add File: a/b\n+x",
            "a cannot be both a file and the folder of a/b. Send two patches, first the one that \
             frees the path.",
        ),
        ("*** Add File: dir\n+x", "dir is a folder"),
        (
            "*** Delete File: n",
            "n does not exist, so it cannot be deleted. Search for the correct path.",
        ),
        (
            "*** Delete File: n\n*** Add File: n\n+x",
            "n does not exist, so it cannot be deleted. Search for the correct path.",
        ),
        (
            "*** Update File: n\n*** Move to: m",
            "n does not exist, so it cannot be moved. Search for the correct path.",
        ),
        (
            "*** Add File: first\n+x\n*** Update File: n\n-x",
            "n does not exist, so it cannot be updated. Search for the correct path, or use \"*** \
             Add File: n\" to create it.",
        ),
        (
            "*** Update File: a\n-1\n+1",
            "the files already have the content that the patch would write. Continue, or read \
             them to check.",
        ),
        (
            "*** Update File: a\n 1\n-2\n*** Update File: a\n-2\n+two",
            "the hunks at lines 3 and 6 of the patch both change line 2 of a. All hunks apply to \
             the file as it is now: merge these two into one.",
        ),
    ] {
        assert_eq!(apply_sections(FILES, sections).1.unwrap_err(), expected, "{sections}");
    }
}

#[test]
fn identical_content_is_not_a_change() {
    let add = "*** Add File: a\n+1\n+2\n+3";
    for sections in [add.to_owned(), format!("*** Delete File: a\n{add}")] {
        let error = apply_sections(FILES, &sections).1.unwrap_err();
        assert!(error.starts_with("the files already have the content"), "{error}");
    }
    // The same content in another encoding is not a change.
    let (_, result) = apply_sections(&[("a", "\u{feff}1\r\n2\r\n3\r\n")], add);
    assert!(result.unwrap_err().starts_with("the files already have the content"));
    let (files, result) = apply_sections(&[("a", "1\n2\n3")], add);
    assert!(matches!(
        &result.unwrap()[..],
        [PlannedChange::Overwrite { keeps_encoding: false, .. }]
    ));
    assert_eq!(files.text("a"), "1\n2\n3\n");
}

#[test]
fn a_section_without_effect_is_skipped() {
    let (files, result) = apply_sections(
        FILES,
        "*** Update File: a\n-1\n+1\n*** Add File: dir/c\n+c\n*** Delete File: b",
    );
    assert_eq!(result.unwrap(), [PlannedChange::Delete { path: "b".into() }]);
    assert_eq!(files.text("a"), "1\n2\n3\n");
}

#[test]
fn paths_with_a_common_prefix_do_not_conflict() {
    let (files, result) =
        apply_sections(FILES, "*** Add File: ab\n+x\n*** Add File: a.d/x\n+y\n*** Delete File: a");
    assert_eq!(result.unwrap().len(), 3);
    assert_eq!(files.text("a.d/x"), "y\n");
}

#[test]
fn each_source_and_target_path_is_listed_once() {
    let sections = "*** Begin Patch\n*** Update File: a\n*** Move to: b\n-x\n*** Update File: a\n-y\n\
                    *** Delete File: c\n*** Add File: d\n+x\n*** End Patch";
    assert_eq!(patch_paths(&parse_patch(sections).unwrap()), ["a", "b", "c", "d"]);
}
