//! The paths that git ignores, for single paths instead of a walk.

use crate::fs::ignore_file_checks::{IgnoreFileKind, IgnoreFileOrigin};
use ignore::Match;
use ignore::gitignore::Gitignore;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The `.gitignore` files of a workspace, each read when it is first needed.
pub(super) struct IgnoreRules<'a> {
    root: &'a Path,
    by_folder: BTreeMap<PathBuf, Gitignore>,
}

impl IgnoreRules<'_> {
    pub(super) fn new(root: &Path) -> IgnoreRules<'_> {
        IgnoreRules { root, by_folder: BTreeMap::new() }
    }

    /// Returns true if git ignores a folder above the file or, with `includes_file`, the file
    /// itself.
    pub(super) fn is_ignored(&mut self, file: &Path, includes_file: bool) -> bool {
        if !file.starts_with(self.root) {
            return false;
        }
        let parents = file.ancestors().skip(1).take_while(|folder| *folder != self.root);
        let parents: Vec<&Path> = parents.collect();
        parents.into_iter().rev().any(|folder| self.matches(folder, true))
            || includes_file && self.matches(file, false)
    }

    /// Returns true if a rule ignores this path. The nearest file with a matching rule decides.
    fn matches(&mut self, path: &Path, is_folder: bool) -> bool {
        for folder in path.ancestors().skip(1).take_while(|folder| folder.starts_with(self.root)) {
            let rules =
                self.by_folder.entry(folder.to_owned()).or_insert_with(|| read_rules(folder));
            match rules.matched(path, is_folder) {
                Match::None => {}
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
            }
        }
        false
    }
}

/// Reads the rules of a folder; an unusable file has none.
fn read_rules(folder: &Path) -> Gitignore {
    let kind = IgnoreFileKind::GitIgnore;
    match kind.is_usable(folder, IgnoreFileOrigin::Workspace) {
        true => Gitignore::new(folder.join(kind.file_name())).0,
        false => Gitignore::empty(),
    }
}

#[cfg(test)]
mod tests;
