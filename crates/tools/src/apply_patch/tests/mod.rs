//! Patches on files in memory, by the pure functions alone.

mod made_up;
mod placing;
mod planning;
mod reading;
mod scenarios;

use super::{Change, Files, Refusal, parse, plan};
use crate::text::Splice;
use std::collections::BTreeMap;

/// Files by their paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Disk(BTreeMap<String, String>);

impl Disk {
    fn of(files: &[(&str, &str)]) -> Disk {
        Disk(files.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect())
    }

    /// Applies all of a patch or nothing.
    fn patch(&mut self, text: &str) -> Result<Vec<Change>, Refusal> {
        let changes = plan(&parse(text)?, self)?;
        for change in changes.clone() {
            match change {
                Change::Create { path, content } => {
                    assert_eq!(self.0.insert(path, content), None);
                }
                Change::Overwrite { path, content } => {
                    let before = self.0.insert(path, content);
                    assert!(before.is_some());
                }
                Change::Delete { path } => {
                    let before = self.0.remove(&path);
                    assert!(before.is_some());
                }
                Change::Update { path, splices } => {
                    assert!(!splices.is_empty());
                    let text = splice(&self.0[&path], &splices);
                    self.0.insert(path, text);
                }
                Change::Move { path, to, splices, replaces } => {
                    let text = splice(&self.0.remove(&path).unwrap(), &splices);
                    assert_eq!(self.0.insert(to, text).is_some(), replaces);
                }
            }
        }
        Ok(changes)
    }
}

impl Files for Disk {
    fn view(&mut self, path: &str) -> Result<Option<String>, Refusal> {
        Ok(self.holds(path)?.then(|| view(&self.0[path]).0))
    }

    fn holds(&mut self, path: &str) -> Result<bool, Refusal> {
        let folder = format!("{path}/");
        if self.0.keys().any(|known| known.starts_with(&folder)) {
            return Err(Refusal::new(format!("{path} is a folder")));
        }
        Ok(self.0.contains_key(path))
    }
}

/// A text with its line ends as LF, and for each byte of that where it comes from.
fn view(text: &str) -> (String, Vec<usize>) {
    let (mut view, mut origins) = (Vec::new(), Vec::new());
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        if *byte == b'\n' && at > 0 && bytes[at - 1] == b'\r' {
            continue;
        }
        view.push(if *byte == b'\r' { b'\n' } else { *byte });
        origins.push(at);
    }
    origins.push(bytes.len());
    (String::from_utf8(view).unwrap(), origins)
}

/// Splices into the text as it is; new lines end as most lines of it do.
fn splice(text: &str, splices: &[Splice]) -> String {
    let (_, origins) = view(text);
    let crlf = text.matches("\r\n").count();
    let lone = |mark| text.matches(mark).count() - crlf;
    let end = match (crlf, lone('\n'), lone('\r')) {
        (crlf, lf, cr) if crlf > lf && crlf > cr => "\r\n",
        (_, lf, cr) if cr > lf => "\r",
        _ => "\n",
    };
    let (mut spliced, mut done) = (String::new(), 0);
    for splice in splices {
        let range = origins[splice.range.start]..origins[splice.range.end];
        assert!(range.start >= done && range.start <= range.end, "sorted and apart: {splices:?}");
        spliced.push_str(&text[done..range.start]);
        spliced.push_str(&splice.new.replace('\n', end));
        done = range.end;
    }
    spliced.push_str(&text[done..]);
    spliced
}

/// A patch of one file, `f`, whose update has these lines.
fn update(lines: &str) -> String {
    format!("*** Begin Patch\n*** Update File: f\n{lines}\n*** End Patch\n")
}

/// What becomes of a file, or the words of the refusal.
fn change(before: &str, lines: &str) -> Result<String, String> {
    let mut disk = Disk::of(&[("f", before)]);
    match disk.patch(&update(lines)) {
        Ok(_) => Ok(disk.0["f"].clone()),
        Err(refusal) => {
            assert_eq!(disk.0["f"], before);
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
);

#[test]
fn the_schema_is_current() {
    crate::harness::check_schema(&super::ApplyPatch, expect_test::expect_file!["../schema.json"]);
}
