//! Matches files by pattern: `*` and `?` within a name, `**` for any folders.
//!
//! It lists only folders that a pattern can reach, does not follow links to folders, and bounds the
//! number of names it reads for any pattern.
#![allow(
    clippy::disallowed_methods,
    reason = "the project crate is the only one that accesses config files"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const MAX_SCANNED_NAMES: usize = 10_000;
const MAX_MATCHED_FILES: usize = 32;
const MAX_DEPTH: usize = 12;

/// Returns the problem with a pattern, if any.
pub(crate) fn pattern_problem(pattern: &str) -> Option<&'static str> {
    const MAX_PATTERN_BYTES: usize = 256;
    let parts = || pattern.split('/');
    if pattern.is_empty() || pattern.len() > MAX_PATTERN_BYTES || pattern.contains('\0') {
        return Some("is empty or too long");
    }
    if Path::new(pattern).has_root() || pattern.starts_with('~') || pattern.contains('\\') {
        return Some("must be relative to the project folder, with `/` between names");
    }
    parts().any(|part| part == "..").then_some("points outside the project folder")
}

/// Returns the files that match a pattern, sorted, relative to the folder.
pub(super) fn matching_files(root: &Path, pattern: &str) -> Vec<PathBuf> {
    if pattern_problem(pattern).is_some() {
        return Vec::new();
    }
    let mut parts: Vec<&str> =
        pattern.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    parts.dedup_by(|one, other| *one == "**" && *other == "**");
    let mut walk = GlobWalk { root, scanned_names: 0, matches: BTreeSet::new() };
    walk.match_parts(Path::new(""), &parts, 0);
    walk.matches.into_iter().take(MAX_MATCHED_FILES).collect()
}

struct GlobWalk<'a> {
    root: &'a Path,
    scanned_names: usize,
    matches: BTreeSet<PathBuf>,
}

/// Kind of a directory entry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum GlobEntryKind {
    Folder,
    /// A file, or a link, which is checked when it is opened.
    File,
}

impl GlobWalk<'_> {
    fn match_parts(&mut self, folder: &Path, parts: &[&str], depth: usize) {
        let Some((part, rest)) = parts.split_first() else { return };
        if *part == "**" {
            let rest = if rest.is_empty() { &["*"] } else { rest };
            self.match_parts(folder, rest, depth);
            if depth < MAX_DEPTH {
                let is_skipped = |name: &str| name.starts_with('.') || name == "node_modules";
                for (name, kind) in self.list_entries(folder) {
                    if kind == GlobEntryKind::Folder && !is_skipped(&name) {
                        self.match_parts(&folder.join(name), parts, depth + 1);
                    }
                }
            }
            return;
        }
        let has_wildcard = part.contains(['*', '?']);
        let entries: Vec<(String, GlobEntryKind)> = match has_wildcard {
            true => self.list_entries(folder),
            false => {
                vec![(
                    (*part).to_owned(),
                    if rest.is_empty() { GlobEntryKind::File } else { GlobEntryKind::Folder },
                )]
            }
        };
        for (name, kind) in entries {
            let is_visible = !name.starts_with('.') || part.starts_with('.');
            if !is_visible || !matches_pattern(part, &name) {
                continue;
            }
            match (kind, rest.is_empty()) {
                (GlobEntryKind::File, true) => drop(self.matches.insert(folder.join(name))),
                (GlobEntryKind::Folder, false) => {
                    self.match_parts(&folder.join(name), rest, depth + 1)
                }
                (GlobEntryKind::File, false) | (GlobEntryKind::Folder, true) => {}
            }
        }
    }

    /// Lists a folder if its canonical path is below `root`.
    fn list_entries(&mut self, folder: &Path) -> Vec<(String, GlobEntryKind)> {
        let path = self.root.join(folder);
        let is_inside = path.canonicalize().is_ok_and(|real| real.starts_with(self.root));
        let Ok(entries) = std::fs::read_dir(&path) else { return Vec::new() };
        if !is_inside {
            return Vec::new();
        }
        let remaining = MAX_SCANNED_NAMES.saturating_sub(self.scanned_names);
        let names = entries.take(remaining).filter_map(|entry| {
            let entry = entry.ok()?;
            let kind = entry.file_type().ok()?;
            let kind = if kind.is_dir() { GlobEntryKind::Folder } else { GlobEntryKind::File };
            Some((entry.file_name().into_string().ok()?, kind))
        });
        let mut names: Vec<(String, GlobEntryKind)> = names.collect();
        self.scanned_names += names.len() + 1;
        names.sort_by(|(one, _), (other, _)| one.cmp(other));
        names
    }
}

/// Returns `true` if a name matches a pattern with `*` and `?`.
fn matches_pattern(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let mut pattern_index = 0;
    let mut name_index = 0;
    // The position of the last `*`, and the end of its match so far.
    let mut star: Option<(usize, usize)> = None;
    while let Some(c) = name.get(name_index) {
        match pattern.get(pattern_index) {
            Some('*') => {
                star = Some((pattern_index, name_index));
                pattern_index += 1;
            }
            Some(expected) if *expected == '?' || expected == c => {
                (pattern_index, name_index) = (pattern_index + 1, name_index + 1)
            }
            Some(_) | None => {
                let Some((star_index, match_end)) = star else { return false };
                star = Some((star_index, match_end + 1));
                (pattern_index, name_index) = (star_index + 1, match_end + 1);
            }
        }
    }
    pattern.iter().skip(pattern_index).all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches_naively(pattern: &[char], name: &[char]) -> bool {
        match (pattern.split_first(), name.split_first()) {
            (None, None) => true,
            (Some(('*', rest)), _) => {
                matches_naively(rest, name)
                    || (!name.is_empty() && matches_naively(pattern, &name[1..]))
            }
            (Some((p, pattern)), Some((n, name))) => {
                (*p == '?' || p == n) && matches_naively(pattern, name)
            }
            (Some(_), None) | (None, Some(_)) => false,
        }
    }

    proptest! {
        #[test]
        fn matching_agrees_with_a_naive_matcher(pattern in "[ab*?é]{0,7}", name in "[abé]{0,7}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            let expected = matches_naively(&chars(&pattern), &chars(&name));
            prop_assert_eq!(matches_pattern(&pattern, &name), expected);
        }
    }

    #[test]
    fn a_pattern_with_many_stars_is_matched_fast() {
        let pattern = "*a".repeat(100) + "b";
        assert!(!matches_pattern(&pattern, &"a".repeat(5_000)));
    }
}
