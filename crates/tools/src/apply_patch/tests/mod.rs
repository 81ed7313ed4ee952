//! Tests of the pure functions of `apply_patch`, with files in memory.

mod generated_patches;
mod locating;
mod parsing;
mod planning;
mod scenarios;

use super::{PatchError, PatchFileSource, PlannedChange, parse_patch, plan_changes};
use std::collections::BTreeMap;
use std::sync::Arc;

/// File contents in memory, by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct TestPatchFiles(BTreeMap<String, Arc<[u8]>>);

impl TestPatchFiles {
    fn new(files: &[(&str, &str)]) -> TestPatchFiles {
        TestPatchFiles(
            files.iter().map(|(path, text)| (path.to_string(), text.as_bytes().into())).collect(),
        )
    }

    fn text(&self, path: &str) -> &str {
        std::str::from_utf8(&self.0[path]).unwrap()
    }

    /// Applies a patch completely or not at all.
    fn patch(&mut self, text: &str) -> Result<Vec<PlannedChange>, PatchError> {
        let changes = plan_changes(&parse_patch(text)?, self)?;
        for change in changes.clone() {
            match change {
                PlannedChange::Create { path, after } => {
                    assert_eq!(self.0.insert(path, after), None);
                }
                PlannedChange::Overwrite { path, after, .. }
                | PlannedChange::Update { path, after, .. } => {
                    let before = self.0.insert(path, after.clone());
                    assert!(before.is_some_and(|before| before != after));
                }
                PlannedChange::Delete { path } => {
                    let before = self.0.remove(&path);
                    assert!(before.is_some());
                }
                PlannedChange::Move { path, move_to, after, replaces_target, .. } => {
                    let before = self.0.remove(&path);
                    assert!(before.is_some());
                    assert_eq!(self.0.insert(move_to, after).is_some(), replaces_target);
                }
            }
        }
        Ok(changes)
    }
}

impl PatchFileSource for TestPatchFiles {
    fn bytes(&mut self, path: &str) -> Result<Option<Arc<[u8]>>, PatchError> {
        let folder = format!("{path}/");
        if self.0.keys().any(|known| known.starts_with(&folder)) {
            return Err(PatchError::new(format!("{path} is a folder")));
        }
        Ok(self.0.get(path).cloned())
    }
}

/// Returns a patch that updates the file `f` with these lines.
fn update(lines: &str) -> String {
    format!("*** Begin Patch\n*** Update File: f\n{lines}\n*** End Patch\n")
}

/// Returns the file after an update with these lines, or the error.
fn apply_update(before: &str, lines: &str) -> Result<String, String> {
    let mut files = TestPatchFiles::new(&[("f", before)]);
    match files.patch(&update(lines)) {
        Ok(_) => Ok(files.text("f").to_owned()),
        Err(error) => {
            assert_eq!(files.text("f"), before);
            Err(error.to_string())
        }
    }
}

windlass_testkit::cases!(crate::case_runner::run_case, "apply_patch/cases":
    files_are_added_updated_moved_and_deleted,
    a_patch_that_does_not_match_changes_nothing,
    the_approval_shows_the_change,
    the_first_hunk_needs_no_anchor,
    two_sections_for_one_file_are_both_applied,
    a_blank_line_is_context,
    an_anchor_selects_the_match,
    an_ambiguous_hunk_is_refused,
    end_of_file_is_an_anchor,
    line_endings_are_kept,
    the_encoding_is_kept,
    a_move_may_replace_a_file,
    a_truncated_patch_is_not_applied,
    a_file_changed_since_it_was_read_is_not_deleted,
    a_protected_file_denies_the_patch,
    other_models_are_not_offered_apply_patch,
    patch_models_are_not_offered_edit,
    concurrent_writes_are_not_overwritten,
    a_binary_file_may_be_moved,
    adding_identical_content_is_not_a_change,
    a_replaced_file_keeps_its_encoding,
    a_character_missing_in_the_encoding_changes_it,
    an_unread_file_is_not_replaced,
    an_unread_file_is_not_replaced_by_a_move,
    a_file_can_be_patched_through_a_linked_folder,
    two_spellings_of_one_file_are_refused,
    a_move_to_the_same_file_is_refused,
    a_loose_match_shows_the_change,
    context_lines_may_lack_their_mark,
    a_repeated_anchor_is_ambiguous,
    nested_anchors_select_the_match,
);

#[test]
fn the_schema_is_current() {
    crate::case_runner::check_schema(
        &super::ApplyPatchTool::default(),
        expect_test::expect_file!["../schema.json"],
    );
}
