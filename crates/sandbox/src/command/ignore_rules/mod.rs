//! The paths that git ignores, for single paths instead of a walk.

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{Mode, OFlags};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Limits a file with rules, and all of them: a matcher can be a thousand times as large.
const MAX_FILE_BYTES: u64 = 256 << 10;
const MAX_TOTAL_BYTES: u64 = 1 << 20;

/// The `.gitignore` files of a workspace, each read when it is first needed.
pub(super) struct IgnoreRules<'a> {
    root: &'a Path,
    /// Files that count with this content instead of their own.
    replaced: BTreeMap<PathBuf, Vec<u8>>,
    by_folder: BTreeMap<PathBuf, Gitignore>,
    total_bytes: u64,
}

impl IgnoreRules<'_> {
    pub(super) fn new(root: &Path, replaced: BTreeMap<PathBuf, Vec<u8>>) -> IgnoreRules<'_> {
        IgnoreRules { root, replaced, by_folder: BTreeMap::new(), total_bytes: 0 }
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
        let root = self.root;
        for folder in path.ancestors().skip(1).take_while(|folder| folder.starts_with(root)) {
            if !self.by_folder.contains_key(folder) {
                let rules = self.read_rules(folder);
                self.by_folder.insert(folder.to_owned(), rules);
            }
            let matched = self.by_folder.get(folder).map(|rules| rules.matched(path, is_folder));
            match matched {
                Some(Match::Ignore(_)) => return true,
                Some(Match::Whitelist(_)) => return false,
                Some(Match::None) | None => {}
            }
        }
        false
    }

    /// Reads the rules of a folder; an unusable file has none.
    fn read_rules(&mut self, folder: &Path) -> Gitignore {
        let path = folder.join(".gitignore");
        let text = match self.replaced.get(&path) {
            Some(text) => text.clone(),
            None => read_regular_file(&path).unwrap_or_default(),
        };
        self.total_bytes += text.len() as u64;
        let mut builder = GitignoreBuilder::new(folder);
        if self.total_bytes <= MAX_TOTAL_BYTES {
            for line in String::from_utf8_lossy(&text).lines() {
                // An invalid line has no effect.
                let _ = builder.add_line(None, line);
            }
        }
        builder.build().unwrap_or_else(|_| Gitignore::empty())
    }
}

/// Reads a regular file that is not too long. Neither a link nor a pipe in its place has an effect.
fn read_regular_file(path: &Path) -> std::io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let mut bytes = Vec::new();
    if file.metadata()?.is_file() {
        file.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
