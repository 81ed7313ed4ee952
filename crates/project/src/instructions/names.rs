//! Files by pattern: `*` and `?` within a name, `**` for any folders.
//!
//! Only folders that a pattern can lead to are listed, links to folders are not followed, and
//! whatever a pattern says, so many names are looked at and no more.
#![allow(clippy::disallowed_methods, reason = "project is the door to config files")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// How many names are looked at for one pattern.
const MOST_NAMES: usize = 10_000;
/// How many files one pattern names.
const MOST_FOUND: usize = 32;
/// How deep `**` goes.
const DEEPEST: usize = 12;

/// Why a pattern cannot be used, if it cannot.
pub(crate) fn objection(pattern: &str) -> Option<&'static str> {
    const LONGEST: usize = 256;
    let parts = || pattern.split('/');
    if pattern.is_empty() || pattern.len() > LONGEST || pattern.contains('\0') {
        return Some("is empty or too long");
    }
    if Path::new(pattern).has_root() || pattern.starts_with('~') || pattern.contains('\\') {
        return Some("has to be relative to the project's folder, with `/` between names");
    }
    parts().any(|part| part == "..").then_some("leads out of the project's folder")
}

/// The files that a pattern names, sorted, relative to the folder.
pub(super) fn matching(root: &Path, pattern: &str) -> Vec<PathBuf> {
    if objection(pattern).is_some() {
        return Vec::new();
    }
    let mut parts: Vec<&str> =
        pattern.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    parts.dedup_by(|one, other| *one == "**" && *other == "**");
    let mut walk = Walk { root, looked: 0, found: BTreeSet::new() };
    walk.follow(Path::new(""), &parts, 0);
    walk.found.into_iter().take(MOST_FOUND).collect()
}

struct Walk<'a> {
    root: &'a Path,
    looked: usize,
    found: BTreeSet<PathBuf>,
}

/// What stands under a name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Folder,
    /// A file, or a link, which is looked at when it is opened.
    File,
}

impl Walk<'_> {
    fn follow(&mut self, folder: &Path, parts: &[&str], depth: usize) {
        let Some((part, rest)) = parts.split_first() else { return };
        if *part == "**" {
            let rest = if rest.is_empty() { &["*"] } else { rest };
            self.follow(folder, rest, depth);
            if depth < DEEPEST {
                let hidden = |name: &str| name.starts_with('.') || name == "node_modules";
                for (name, kind) in self.entries(folder) {
                    if kind == Kind::Folder && !hidden(&name) {
                        self.follow(&folder.join(name), parts, depth + 1);
                    }
                }
            }
            return;
        }
        let wild = part.contains(['*', '?']);
        let named: Vec<(String, Kind)> = match wild {
            true => self.entries(folder),
            false => {
                vec![((*part).to_owned(), if rest.is_empty() { Kind::File } else { Kind::Folder })]
            }
        };
        for (name, kind) in named {
            let shown = !name.starts_with('.') || part.starts_with('.');
            if !shown || !fits(part, &name) {
                continue;
            }
            match (kind, rest.is_empty()) {
                (Kind::File, true) => drop(self.found.insert(folder.join(name))),
                (Kind::Folder, false) => self.follow(&folder.join(name), rest, depth + 1),
                (Kind::File, false) | (Kind::Folder, true) => {}
            }
        }
    }

    /// What is in a folder, if it is where it seems to be.
    fn entries(&mut self, folder: &Path) -> Vec<(String, Kind)> {
        let whole = self.root.join(folder);
        let inside = whole.canonicalize().is_ok_and(|real| real.starts_with(self.root));
        let Ok(entries) = std::fs::read_dir(&whole) else { return Vec::new() };
        if !inside {
            return Vec::new();
        }
        let left = MOST_NAMES.saturating_sub(self.looked);
        let named = entries.take(left).filter_map(|entry| {
            let entry = entry.ok()?;
            let kind = entry.file_type().ok()?;
            let kind = if kind.is_dir() { Kind::Folder } else { Kind::File };
            Some((entry.file_name().into_string().ok()?, kind))
        });
        let mut named: Vec<(String, Kind)> = named.collect();
        self.looked += named.len() + 1;
        named.sort_by(|(one, _), (other, _)| one.cmp(other));
        named
    }
}

/// True if a name fits a pattern with `*` and `?`.
fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut at, mut of) = (0, 0);
    // Where the last star stands, and where what it stands for ends so far.
    let mut star: Option<(usize, usize)> = None;
    while let Some(letter) = name.get(of) {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, of));
                at += 1;
            }
            Some(wanted) if *wanted == '?' || wanted == letter => (at, of) = (at + 1, of + 1),
            Some(_) | None => {
                let Some((stood, ended)) = star else { return false };
                star = Some((stood, ended + 1));
                (at, of) = (stood + 1, ended + 1);
            }
        }
    }
    pattern.iter().skip(at).all(|letter| *letter == '*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn slow(pattern: &[char], name: &[char]) -> bool {
        match (pattern.split_first(), name.split_first()) {
            (None, None) => true,
            (Some(('*', rest)), _) => {
                slow(rest, name) || (!name.is_empty() && slow(pattern, &name[1..]))
            }
            (Some((p, pattern)), Some((n, name))) => (*p == '?' || p == n) && slow(pattern, name),
            (Some(_), None) | (None, Some(_)) => false,
        }
    }

    proptest! {
        #[test]
        fn a_name_fits_as_the_plainest_reading_says(pattern in "[ab*?é]{0,7}", name in "[abé]{0,7}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(fits(&pattern, &name), slow(&chars(&pattern), &chars(&name)));
        }
    }

    #[test]
    fn a_pattern_that_could_take_for_ever_does_not() {
        let pattern = "*a".repeat(100) + "b";
        assert!(!fits(&pattern, &"a".repeat(5_000)));
    }
}
