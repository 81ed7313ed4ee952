//! Where a path leads, and what may be done there.
//!
//! A path counts as it is spelled and as it resolves; the stricter one holds. It opens nothing:
//! links are resolved by [`Places`].

use super::class::{Class, Finding};
use super::names::{device, is_public, is_system, straighten};
use super::{Places, opaque};
use crate::rules::{Level, Rules, Subject};
use crate::secrets::{Anchor, could_hold_secrets, could_name_secret, holds_secrets, names_secret};
use crate::shell::Word;
use crate::{Beneath, protected};
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is done to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Use {
    Read,
    Write,
}

/// The folders a command may run in: several, because a `cd` can fail; none, if nobody knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Folders(pub(super) Vec<PathBuf>);

/// The longest path that is followed; no system opens a longer one.
const LONGEST: usize = 4096;

/// Where everything is.
pub(super) struct Ground<'a> {
    places: &'a dyn Places,
    above: Vec<String>,
    pub(super) own: &'a Rules,
    pub(super) tighter: &'a [Arc<Rules>],
    /// What was seen beneath folders.
    pub(super) seen: RefCell<HashMap<PathBuf, Beneath>>,
    /// What was weighed already: a command may name a path thousands of times.
    weighed: RefCell<HashMap<(PathBuf, Use), Finding>>,
}

impl<'a> Ground<'a> {
    pub(super) fn new(
        places: &'a dyn Places,
        own: &'a Rules,
        tighter: &'a [Arc<Rules>],
    ) -> Ground<'a> {
        let above = protected::above(places.root());
        let (seen, weighed) = (RefCell::default(), RefCell::default());
        Ground { places, above, own, tighter, seen, weighed }
    }

    pub(super) fn places(&self) -> &'a dyn Places {
        self.places
    }

    /// What comes of reading or writing where a word says.
    pub(super) fn weigh(&self, folders: &Folders, word: &Word, how: Use) -> Finding {
        let text = word.text();
        match word {
            Word::Plain(path) => self.weigh_path(folders, path, how),
            Word::Pattern(_) => self.weigh_pattern(folders, text, how),
            Word::Opaque(_) => match opaque::known(text, self.places.home()) {
                Some(Word::Plain(path)) => self.weigh_path(folders, &path, how),
                Some(Word::Pattern(path)) => self.weigh_pattern(folders, &path, how),
                Some(Word::Opaque(path)) if opaque::leaves(&path) => {
                    Finding::new(Class::Beyond, format!("nobody knows where {text} is"))
                }
                Some(Word::Opaque(_)) | None => match how {
                    Use::Read => Finding::new(Class::Work, format!("nobody knows what {text} is")),
                    Use::Write => {
                        Finding::new(Class::Beyond, format!("nobody knows where {text} is"))
                    }
                },
            },
        }
    }

    fn weigh_path(&self, folders: &Folders, path: &str, how: Use) -> Finding {
        if path.is_empty() || path == "-" {
            return Finding::harmless();
        }
        if path.len() > LONGEST {
            return Finding::new(Class::Beyond, "a path is too long");
        }
        if let Some(finding) = device(path, how) {
            return finding;
        }
        let mut finding = Finding::harmless();
        for path in self.spellings(folders, path) {
            match path {
                Some(path) => finding.add(self.weigh_absolute(&path, how)),
                None => finding
                    .add(Finding::new(Class::Beyond, "a cd before it goes where nobody knows")),
            }
        }
        finding
    }

    /// Where a path leads from each of the folders; nothing stands for an unknown one.
    pub(super) fn spellings(&self, folders: &Folders, path: &str) -> Vec<Option<PathBuf>> {
        if path.starts_with('/') {
            return vec![Some(PathBuf::from(path))];
        }
        match folders.0.is_empty() {
            true => vec![None],
            false => folders.0.iter().map(|folder| Some(folder.join(path))).collect(),
        }
    }

    /// What comes of a path with wildcards or a tilde. What stands before the first wildcard is
    /// known; what follows could be anything that it matches.
    fn weigh_pattern(&self, folders: &Folders, text: &str, how: Use) -> Finding {
        let Some(text) = self.at_home(text) else {
            return Finding::new(Class::Beyond, format!("{text} is somebody's home"));
        };
        let wild = |part: &str| part.contains(['*', '?', '[']);
        if !wild(&text) {
            return self.weigh_path(folders, &text, how);
        }
        let parts: Vec<&str> = text.split('/').collect();
        let known = parts.iter().position(|part| wild(part)).unwrap_or(parts.len());
        let mut before = parts.iter().take(known).copied().collect::<Vec<_>>().join("/");
        if before.is_empty() {
            before.push_str(if text.starts_with('/') { "/" } else { "." });
        }
        let mut finding = self.weigh_path(folders, &before, how);
        if how == Use::Write {
            finding.add(Finding::new(Class::Work, format!("it changes {text}")));
        }
        let near_home = self.places.home().is_some_and(|home| home.starts_with(self.places.root()));
        for part in parts.iter().skip(known) {
            let hidden = part.starts_with('.');
            let secret = could_hold_secrets(part) || (near_home && could_name_secret(part));
            if *part == ".." || (hidden && (how == Use::Write || secret)) {
                let reason = format!("{text} can mean files that are private or run later");
                finding.add(Finding::new(Class::Beyond, reason));
            }
        }
        if parts.last().is_some_and(|last| holds_secrets(last)) {
            finding.add(private(&text));
        }
        let tail = parts.iter().skip(known).copied().collect::<Vec<_>>().join("/");
        for before in self.spellings(folders, &before).into_iter().flatten() {
            finding.add(self.weigh_matches(&before, &tail, how));
        }
        finding
    }

    /// The text with the home folder in the place of a tilde; nothing for another's home.
    pub(super) fn at_home(&self, text: &str) -> Option<String> {
        let Some(rest) = text.strip_prefix('~') else { return Some(text.to_owned()) };
        let home = self.places.home()?.to_str()?;
        (rest.is_empty() || rest.starts_with('/')).then(|| format!("{home}{rest}"))
    }

    /// The folders after `cd` to a word.
    pub(super) fn enter(&self, folders: &Folders, word: &Word) -> Folders {
        let text = match word {
            Word::Plain(text) => Some(text.clone()),
            Word::Pattern(text) => {
                self.at_home(text).filter(|text| !text.contains(['*', '?', '[']))
            }
            Word::Opaque(_) => None,
        };
        let Some(text) = text.filter(|text| text != "-") else { return Folders(Vec::new()) };
        let mut entered = Vec::new();
        for path in self.spellings(folders, &text) {
            let Some(path) = path else { return Folders(Vec::new()) };
            // A shell follows `..` by name, and programs by what is there.
            for path in [straighten(&path), self.places.real(&path)] {
                if path.as_os_str().len() > LONGEST {
                    return Folders(Vec::new());
                }
                if !entered.contains(&path) {
                    entered.push(path);
                }
            }
        }
        for old in &folders.0 {
            if !entered.contains(old) {
                entered.push(old.clone());
            }
        }
        match entered.len() {
            0..=4 => Folders(entered),
            _ => Folders(Vec::new()),
        }
    }

    /// True if a path is the root, the home, what holds them, or beyond the root.
    pub(super) fn precious(&self, folders: &Folders, word: &Word) -> bool {
        let text = match word {
            Word::Plain(text) => Some(text.clone()),
            Word::Pattern(text) => self.at_home(text),
            Word::Opaque(_) => None,
        };
        let Some(text) = text else { return true };
        let parts = text.split('/').take_while(|part| !part.contains(['*', '?', '[']));
        let known = parts.collect::<Vec<_>>().join("/");
        let known = match (known.is_empty(), text.starts_with('/')) {
            (true, true) => "/".to_owned(),
            (true, false) => ".".to_owned(),
            (false, _) => known,
        };
        self.spellings(folders, &known).into_iter().any(|path| {
            let Some(path) = path else { return true };
            let path = self.places.real(&path);
            let root = self.places.root();
            !path.starts_with(root) || path == root || self.places.home() == Some(path.as_path())
        })
    }

    /// True if it lies in the workspace.
    pub(super) fn inside(&self, path: &Path) -> bool {
        self.places.real(path).starts_with(self.places.root())
    }

    fn weigh_absolute(&self, path: &Path, how: Use) -> Finding {
        let key = (path.to_path_buf(), how);
        if let Some(finding) = self.weighed.borrow().get(&key) {
            return finding.clone();
        }
        let finding = self.weigh_anew(path, how);
        self.weighed.borrow_mut().insert(key, finding.clone());
        finding
    }

    fn weigh_anew(&self, path: &Path, how: Use) -> Finding {
        let real = self.places.real(path);
        let spelled = straighten(path);
        let mut finding = self.weigh_one(&real, how);
        if spelled != real {
            let found = self.weigh_one(&spelled, how);
            if found.class == Class::Forbidden || holds_secrets(&spelled.to_string_lossy()) {
                finding.add(found);
            }
        }
        finding
    }

    fn weigh_one(&self, path: &Path, how: Use) -> Finding {
        let shown = path.display();
        if let Some(finding) = device(&path.to_string_lossy(), how) {
            return finding;
        }
        let inner = path.strip_prefix(self.places.root()).ok();
        let relative = inner.map(|path| path.to_string_lossy());
        let mut finding = match how {
            Use::Read => Finding::harmless(),
            Use::Write => Finding::new(Class::Work, format!("it changes {shown}")),
        };
        if let Some(path) = &relative {
            finding.add(self.ruled(path, how));
        }
        if how == Use::Write {
            let subject = relative.as_deref().unwrap_or_default();
            let absolute = path.to_string_lossy();
            let why = match relative.is_some() {
                true => protected::protected(&self.above, subject),
                false => protected::protected(&[], &absolute),
            };
            let opened = relative.is_some() && self.own.names("edit", subject);
            if let Some(why) = why.filter(|_| !opened) {
                let reason = format!("{shown} is protected, because {why}");
                finding.add(Finding::new(Class::Forbidden, reason));
            }
            if is_system(path) {
                let reason = format!("{shown} is protected, because the system believes it");
                finding.add(Finding::new(Class::Forbidden, reason));
            }
        }
        if self.is_secret(path, inner.is_some()) {
            let reason = format!("{shown} holds keys or sessions of the person");
            finding.add(Finding::new(Class::Forbidden, reason));
        }
        if holds_secrets(&path.to_string_lossy()) {
            finding.add(private(&shown.to_string()));
        }
        if inner.is_none() && !(how == Use::Read && is_public(path, self.places.home())) {
            let reason = format!("{shown} lies outside of the workspace");
            finding.add(Finding::new(Class::Beyond, reason));
        }
        finding
    }

    /// What the rules of the file tools say about the same path. They only tighten here.
    pub(super) fn ruled(&self, path: &str, how: Use) -> Finding {
        let keys = keys(how);
        let mut finding = Finding::harmless();
        let subject = Subject::new(path);
        for rules in std::iter::once(self.own).chain(self.tighter.iter().map(AsRef::as_ref)) {
            for rule in keys.iter().filter_map(|key| rules.level(key, &subject)) {
                let class = match rule.level {
                    Level::Allow => continue,
                    Level::Ask => Class::Beyond,
                    Level::Deny => Class::Forbidden,
                };
                finding.add(Finding::new(class, rule.says("the")));
            }
        }
        finding
    }

    /// True for what only the person reads. Where the workspace itself is such a place, what
    /// stands in it is the work.
    fn is_secret(&self, path: &Path, inside: bool) -> bool {
        match (inside, self.places.home()) {
            (true, Some(home)) => {
                path.strip_prefix(home).is_ok_and(|path| names_secret(path, Anchor::Home))
                    && !names_secret(self.places.root(), Anchor::Anywhere)
            }
            (true, None) => false,
            (false, _) => names_secret(path, Anchor::Anywhere),
        }
    }

    /// What comes of a word that some program may take for a path. Only what no program should be
    /// told of counts, and what lies beyond if the program is not known.
    pub(super) fn mention(&self, folders: &Folders, word: &Word, stranger: Stranger) -> Finding {
        let known = match word {
            Word::Opaque(text) => opaque::known(text, self.places.home()),
            Word::Plain(_) | Word::Pattern(_) => Some(word.clone()),
        };
        let Some(word) = known else { return Finding::harmless() };
        let text = word.text();
        let mut finding = Finding::harmless();
        if matches!(word, Word::Opaque(_)) || text.contains(char::is_whitespace) {
            return finding;
        }
        if text.contains("docker.sock") {
            let reason = "the socket of docker gives the rights of root";
            finding.add(Finding::new(Class::Forbidden, reason));
        }
        let glued = text.strip_prefix('-').and_then(|rest| rest.get(1..));
        let parts = text.split(['=', '@', ',', ':']).map(Some).chain([glued, Some(text)]);
        for part in parts.flatten() {
            let far = part.starts_with('/') || part.starts_with('~') || part.starts_with("..");
            if part.starts_with("//") || !(far || part.contains('/')) {
                continue;
            }
            let word = match part.contains(['~', '*', '?', '[']) {
                true => Word::Pattern(part.to_owned()),
                false => Word::Plain(part.to_owned()),
            };
            let found = self.weigh(folders, &word, Use::Read);
            let counts = match stranger {
                Stranger::Yes => found.class >= Class::Beyond,
                Stranger::No => found.class == Class::Forbidden,
            };
            if counts {
                finding.add(found);
            }
        }
        finding
    }
}

/// The keys of the rules that speak about what is done to a file.
pub(super) fn keys(how: Use) -> &'static [&'static str] {
    match how {
        Use::Read => &["read"],
        Use::Write => &["edit", "read"],
    }
}

/// Whether nothing is known about a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stranger {
    Yes,
    No,
}

pub(super) fn private(path: &str) -> Finding {
    let reason = format!("{path} is made to hold secrets");
    Finding { private: true, ..Finding::new(Class::Beyond, reason) }
}
