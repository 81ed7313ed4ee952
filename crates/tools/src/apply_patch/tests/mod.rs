//! Patches on files in memory, by the pure functions alone.

mod made_up;
mod placing;
mod planning;
mod reading;
mod scenarios;

use super::{Change, Files, Refusal, parse, plan};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What files hold, by their paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Disk(BTreeMap<String, Arc<[u8]>>);

impl Disk {
    fn of(files: &[(&str, &str)]) -> Disk {
        Disk(files.iter().map(|(path, text)| (path.to_string(), text.as_bytes().into())).collect())
    }

    fn text(&self, path: &str) -> &str {
        std::str::from_utf8(&self.0[path]).unwrap()
    }

    /// Applies all of a patch or nothing.
    fn patch(&mut self, text: &str) -> Result<Vec<Change>, Refusal> {
        let changes = plan(&parse(text)?, self)?;
        for change in changes.clone() {
            match change {
                Change::Create { path, after } => {
                    assert_eq!(self.0.insert(path, after), None);
                }
                Change::Overwrite { path, after, .. } | Change::Update { path, after, .. } => {
                    let before = self.0.insert(path, after.clone());
                    assert!(before.is_some_and(|before| before != after));
                }
                Change::Delete { path } => {
                    let before = self.0.remove(&path);
                    assert!(before.is_some());
                }
                Change::Move { path, to, after, replaces, .. } => {
                    let before = self.0.remove(&path);
                    assert!(before.is_some());
                    assert_eq!(self.0.insert(to, after).is_some(), replaces);
                }
            }
        }
        Ok(changes)
    }
}

impl Files for Disk {
    fn bytes(&mut self, path: &str) -> Result<Option<Arc<[u8]>>, Refusal> {
        let folder = format!("{path}/");
        if self.0.keys().any(|known| known.starts_with(&folder)) {
            return Err(Refusal::new(format!("{path} is a folder")));
        }
        Ok(self.0.get(path).cloned())
    }
}

/// A patch of one file, `f`, whose update has these lines.
fn update(lines: &str) -> String {
    format!("*** Begin Patch\n*** Update File: f\n{lines}\n*** End Patch\n")
}

/// What becomes of a file, or the words of the refusal.
fn change(before: &str, lines: &str) -> Result<String, String> {
    let mut disk = Disk::of(&[("f", before)]);
    match disk.patch(&update(lines)) {
        Ok(_) => Ok(disk.text("f").to_owned()),
        Err(refusal) => {
            assert_eq!(disk.text("f"), before);
            Err(refusal.to_string())
        }
    }
}

windlass_testkit::cases!(crate::harness::run, "apply_patch/cases":
    files_are_added_updated_moved_and_deleted,
    a_patch_that_does_not_fit_changes_nothing,
    what_is_asked_is_shown_first,
    a_section_without_a_head_is_fine,
    two_sections_for_one_file_both_count,
    blank_lines_are_context_too,
    a_head_leads_to_the_place,
    two_places_are_not_chosen_between,
    an_end_of_file_is_an_anchor,
    line_endings_stay,
    the_encoding_stays,
    a_move_may_replace_a_file,
    a_patch_that_is_cut_off_is_not_applied,
    what_was_changed_since_is_not_deleted,
    a_protected_file_is_refused,
    other_models_are_not_offered_it,
    models_that_know_patches_have_no_edit,
    a_change_after_the_approval_survives,
    a_picture_may_be_moved,
    the_same_content_again_is_no_change,
    an_added_file_keeps_how_the_old_one_was_stored,
    an_encoding_without_the_character_gives_way,
    an_unread_file_is_not_replaced,
    an_unread_file_is_not_moved_over,
    a_file_through_a_link_is_the_file_itself,
    two_spellings_of_one_file_are_refused,
    a_move_onto_itself_by_another_name_is_refused,
    what_fits_loosely_is_shown,
    kept_lines_without_their_space_are_understood,
    a_head_in_two_places_is_not_chosen_between,
    heads_that_nest_choose_the_place,
);

#[test]
fn the_schema_is_current() {
    crate::harness::check_schema(
        &super::ApplyPatch::default(),
        expect_test::expect_file!["../schema.json"],
    );
}
