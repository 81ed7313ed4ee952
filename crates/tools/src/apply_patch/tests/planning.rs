//! What sections mean together, and which do not go together.

use super::Disk;
use crate::apply_patch::{Change, parse, paths};

fn on(files: &[(&str, &str)], sections: &str) -> (Disk, Result<Vec<Change>, String>) {
    let mut disk = Disk::of(files);
    let before = disk.clone();
    let result = disk.patch(&format!("*** Begin Patch\n{sections}\n*** End Patch"));
    let result = result.map_err(|refusal| refusal.to_string());
    assert!(result.is_ok() || disk == before);
    (disk, result)
}

const FILES: &[(&str, &str)] = &[("a", "1\n2\n3\n"), ("b", "b\n"), ("dir/c", "c\n")];

#[test]
fn two_sections_for_one_file_change_the_file_as_it_was() {
    let both = "*** Update File: a\n@@\n-3\n+three\n*** Delete File: b\n\
                *** Update File: a\n@@\n-1\n+3\n+1";
    let (disk, result) = on(FILES, both);
    assert_eq!(disk.text("a"), "3\n1\n2\nthree\n");
    assert_eq!(result.unwrap().len(), 2);
    let moved = "*** Update File: a\n-3\n+three\n*** Update File: a\n*** Move to: d\n-1";
    let (disk, _) = on(FILES, moved);
    assert_eq!(disk.text("d"), "2\nthree\n");
    assert!(!disk.0.contains_key("a"));
}

#[test]
fn a_move_says_whether_it_replaces_a_file() {
    let (disk, result) = on(FILES, "*** Update File: a\n*** Move to: b");
    assert_eq!(disk, Disk::of(&[("b", "1\n2\n3\n"), ("dir/c", "c\n")]));
    let (path, to) = ("a".to_owned(), "b".to_owned());
    let after = (*b"1\n2\n3\n").into();
    assert_eq!(result.unwrap(), [Change::Move { path, to, after, loosely: false, replaces: true }]);
    let (_, result) = on(FILES, "*** Update File: a\n*** Move to: new/a\n@@\n-1");
    assert!(
        matches!(&result.unwrap()[..], [Change::Move { replaces: false, after, .. }] if **after == *b"2\n3\n")
    );
    let (_, result) = on(FILES, "*** Update File: a\n*** Move to: dir");
    assert_eq!(result.unwrap_err(), "dir is a folder");
}

#[test]
fn a_file_that_is_deleted_and_then_added_is_replaced() {
    let (disk, result) = on(FILES, "*** Delete File: a\n*** Add File: a\n+new");
    assert_eq!(disk.text("a"), "new\n");
    let (path, after) = ("a".to_owned(), (*b"new\n").into());
    assert_eq!(result.unwrap(), [Change::Overwrite { path, after, keeps: false }]);
}

#[test]
fn what_does_not_go_together_is_refused() {
    for (sections, words) in [
        (
            "*** Add File: n\n+x\n*** Add File: n\n+y",
            "n is added twice. Keep the section that has its whole content.",
        ),
        (
            "*** Add File: n\n+x\n*** Update File: n\n-x\n+y",
            "n is both added and updated. Write its whole content in \"*** Add File:\", or only \
             update it.",
        ),
        (
            "*** Update File: a\n-1\n*** Add File: a\n+x",
            "a is both added and updated. Write its whole content in \"*** Add File:\", or only \
             update it.",
        ),
        (
            "*** Add File: n\n+x\n*** Delete File: n",
            "n is added and then deleted. Leave one of the two out.",
        ),
        (
            "*** Delete File: a\n*** Delete File: a",
            "a is deleted twice. Leave one of the sections out.",
        ),
        (
            "*** Delete File: a\n*** Update File: a\n-1",
            "a is both updated and deleted. Leave one of the two out.",
        ),
        ("*** Update File: a\n*** Move to: a", "a is moved to where it is. Leave the section out."),
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
            "a is moved to b, which has a section of its own. A move replaces what stands at its \
             target: leave that section out, or send it as a second patch.",
        ),
        (
            "*** Delete File: a\n*** Add File: a/b\n+x",
            "a cannot be a file and the folder of a/b at once. Send two patches, the one that \
             makes room first.",
        ),
        ("*** Add File: dir\n+x", "dir is a folder"),
        ("*** Delete File: n", "n does not exist, so it cannot be deleted. Look for where it is."),
        (
            "*** Delete File: n\n*** Add File: n\n+x",
            "n does not exist, so it cannot be deleted. Look for where it is.",
        ),
        (
            "*** Update File: n\n*** Move to: m",
            "n does not exist, so it cannot be moved. Look for where it is.",
        ),
        (
            "*** Add File: first\n+x\n*** Update File: n\n-x",
            "n does not exist, so it cannot be updated. Look for where it is, or use \
             \"*** Add File: n\" to make it.",
        ),
        (
            "*** Update File: a\n-1\n+1",
            "the files already read as the patch wants them. Go on, or read them to be sure.",
        ),
        (
            "*** Update File: a\n 1\n-2\n*** Update File: a\n-2\n+two",
            "the hunks at lines 3 and 6 of the patch both change line 2 of a. All hunks are about \
             the file as it is now: make one of the two.",
        ),
    ] {
        assert_eq!(on(FILES, sections).1.unwrap_err(), words, "{sections}");
    }
}

#[test]
fn a_file_that_already_has_the_content_is_no_change() {
    let add = "*** Add File: a\n+1\n+2\n+3";
    for sections in [add.to_owned(), format!("*** Delete File: a\n{add}")] {
        let words = on(FILES, &sections).1.unwrap_err();
        assert!(words.starts_with("the files already read"), "{words}");
    }
    // Stored in another way, it is still the same content.
    let (_, result) = on(&[("a", "\u{feff}1\r\n2\r\n3\r\n")], add);
    assert!(result.unwrap_err().starts_with("the files already read"));
    let (disk, result) = on(&[("a", "1\n2\n3")], add);
    assert!(matches!(&result.unwrap()[..], [Change::Overwrite { keeps: false, .. }]));
    assert_eq!(disk.text("a"), "1\n2\n3\n");
}

#[test]
fn a_change_of_nothing_beside_another_is_left_out() {
    let (disk, result) =
        on(FILES, "*** Update File: a\n-1\n+1\n*** Add File: dir/c\n+c\n*** Delete File: b");
    assert_eq!(result.unwrap(), [Change::Delete { path: "b".into() }]);
    assert_eq!(disk.text("a"), "1\n2\n3\n");
}

#[test]
fn names_that_only_begin_alike_are_no_folders_of_each_other() {
    let (disk, result) =
        on(FILES, "*** Add File: ab\n+x\n*** Add File: a.d/x\n+y\n*** Delete File: a");
    assert_eq!(result.unwrap().len(), 3);
    assert_eq!(disk.text("a.d/x"), "y\n");
}

#[test]
fn sources_and_targets_need_permission_once_each() {
    let sections = "*** Begin Patch\n*** Update File: a\n*** Move to: b\n-x\n*** Update File: a\n-y\n\
                    *** Delete File: c\n*** Add File: d\n+x\n*** End Patch";
    assert_eq!(paths(&parse(sections).unwrap()), ["a", "b", "c", "d"]);
}
