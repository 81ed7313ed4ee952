//! What a pattern or a folder may hold besides what it names: private files, and what rules close.
//!
//! A pattern and a rule meet by their letters, whatever exists. Files like `.env` count where a
//! look finds one: to ask about every search because of what might be there would be to ask about
//! everyday work.

use super::class::{Class, Finding};
use super::grammar::Argument;
use super::names::straighten;
use super::operands::given;
use super::paths::{Ground, Use, keys, private};
use super::weigh::Spot;
use crate::glob::{Glob, overlap};
use crate::rules::{Level, Rules};
use crate::secrets::holds_secrets;
use crate::shell::Word;
use crate::{Beneath, protected};
use std::path::{Path, PathBuf};
use wildmatch::WildMatch;

/// How many folders are looked through for one command line.
const MOST_LOOKS: usize = 16;

/// Which files of a folder a search reads.
struct Sieve {
    /// Also those that are hidden.
    hidden: bool,
    /// Only those of these names, if there are any.
    names: Vec<WildMatch>,
}

impl Sieve {
    fn lets(&self, path: &Path) -> bool {
        let dotted = |part: &std::ffi::OsStr| part.to_string_lossy().starts_with('.');
        let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        (self.hidden || !path.iter().any(dotted))
            && (self.names.is_empty() || self.names.iter().any(|known| known.matches(&name)))
    }
}

impl Ground<'_> {
    /// What comes of everything that a pattern matches behind a folder.
    pub(super) fn weigh_matches(&self, folder: &Path, pattern: &str, how: Use) -> Finding {
        let mut finding = Finding::harmless();
        let real = self.places().real(folder);
        let spelled = straighten(folder);
        let spelled = (spelled != real).then_some(spelled);
        for folder in std::iter::once(&real).chain(&spelled) {
            let Ok(inner) = folder.strip_prefix(self.places().root()) else { continue };
            let start = match inner.to_string_lossy() {
                inner if inner.is_empty() => String::new(),
                inner => protected::fold(&format!("{inner}/")),
            };
            let glob = Glob::shell(&protected::fold(pattern)).after(&start);
            finding.add(self.could_be_ruled(&glob, pattern, how));
        }
        if how == Use::Write || !self.inside(&real) {
            return finding;
        }
        let Some(beneath) = self.look(&real) else {
            finding.add(too_much());
            return finding;
        };
        let glob = Glob::shell(pattern);
        for path in &beneath.paths {
            let shown = path.to_string_lossy();
            if holds_secrets(&shown) && overlap(&glob, &Glob::literal(&shown)) {
                finding.add(private(&real.join(path).display().to_string()));
            }
        }
        finding
    }

    /// What comes of reading everything beneath a folder.
    fn weigh_all(&self, folder: &Path, sieve: &Sieve) -> Finding {
        let mut finding = Finding::harmless();
        let Ok(inner) = folder.strip_prefix(self.places().root()) else { return finding };
        let Some(beneath) = self.look(folder) else { return too_much() };
        for path in beneath.paths.iter().filter(|path| sieve.lets(path)) {
            let inner = inner.join(path);
            let inner = inner.to_string_lossy();
            if holds_secrets(&inner) {
                finding.add(private(&inner));
            }
            finding.add(narrowed(self.ruled(&inner, Use::Read)));
        }
        if !beneath.whole {
            let inner = inner.to_string_lossy();
            let all = Glob::beneath(&protected::fold(&inner));
            finding.add(self.could_be_ruled(&all, &format!("{}/*", folder.display()), Use::Read));
        }
        finding
    }

    fn could_be_ruled(&self, glob: &Glob, shown: &str, how: Use) -> Finding {
        let mut finding = Finding::harmless();
        let rules = |rules: &Rules| -> Vec<(Level, String)> {
            let spoken = keys(how).iter().filter_map(|key| rules.could_speak(key, glob));
            spoken.map(|(level, written)| (level, written.to_owned())).collect()
        };
        for all in std::iter::once(self.own).chain(self.tighter.iter().map(AsRef::as_ref)) {
            for (level, written) in rules(all) {
                let class = match level {
                    Level::Allow => continue,
                    Level::Ask => Class::Beyond,
                    Level::Deny => Class::Near,
                };
                let reason = format!("{shown} can mean what the rule {written} says {level} to");
                finding.add(Finding { closed: true, ..Finding::new(class, reason) });
            }
        }
        finding
    }

    /// What stands beneath a folder; nothing if too many were looked through.
    fn look(&self, folder: &Path) -> Option<Beneath> {
        let mut seen = self.seen.borrow_mut();
        if let Some(known) = seen.get(folder) {
            return Some(known.clone());
        }
        if seen.len() >= MOST_LOOKS {
            return None;
        }
        let beneath = self.places().beneath(folder);
        seen.insert(folder.to_owned(), beneath.clone());
        Some(beneath)
    }

    /// The folders that a word leads to, as far as it is known.
    fn starts(&self, spot: &Spot<'_>, word: &Word) -> Vec<PathBuf> {
        let text = match word {
            Word::Plain(text) => Some(text.clone()),
            Word::Pattern(text) => self.at_home(text),
            Word::Opaque(_) => None,
        };
        let Some(text) = text else { return Vec::new() };
        let wild = |part: &&str| matches!(word, Word::Pattern(_)) && part.contains(['*', '?', '[']);
        let known: Vec<&str> = text.split('/').take_while(|part| !wild(part)).collect();
        let known = match (known.join("/"), text.starts_with('/')) {
            (known, true) if known.is_empty() => "/".to_owned(),
            (known, false) if known.is_empty() => ".".to_owned(),
            (known, _) => known,
        };
        let paths = self.spellings(spot.folders, &known).into_iter().flatten();
        paths.map(|path| self.places().real(&path)).collect()
    }
}

/// A deny of something beneath a folder is no deny of the folder.
fn narrowed(finding: Finding) -> Finding {
    match finding.class {
        Class::Forbidden => Finding { class: Class::Near, closed: true, ..finding },
        Class::Beyond => Finding { closed: true, ..finding },
        Class::Read
        | Class::Work
        | Class::Network
        | Class::Guard
        | Class::Unknown
        | Class::Unseen
        | Class::Near => finding,
    }
}

fn too_much() -> Finding {
    Finding::new(Class::Beyond, "it looks through more folders than anybody can follow")
}

/// What comes of the paths of a program that reads everything beneath a folder.
pub(super) fn judge_search(
    spot: &Spot<'_>,
    program: &str,
    arguments: &[Argument],
    paths: &[&Word],
) -> Finding {
    let mut finding = Finding::harmless();
    let Some(sieve) = sieve(program, arguments) else { return finding };
    let here = Word::Plain(".".to_owned());
    let fed = program == "diff" || (program == "rg" && spot.piped);
    let paths = match paths {
        [] if fed => &[],
        [] => &[&here] as &[&Word],
        paths => paths,
    };
    for word in paths {
        for folder in spot.ground.starts(spot, word) {
            finding.add(spot.ground.weigh_all(&folder, &sieve));
        }
    }
    finding
}

/// Which files a program reads of a folder; nothing if it does not go through folders.
fn sieve(program: &str, arguments: &[Argument]) -> Option<Sieve> {
    let values = |names: &[&str]| -> Vec<&str> {
        let values = arguments.iter().filter_map(|argument| match argument {
            Argument::Option { name, value: Some(value), .. } if names.contains(&name.as_str()) => {
                Some(value.text())
            }
            Argument::Option { .. }
            | Argument::Operand(_)
            | Argument::Loose(_)
            | Argument::Opaque(_) => None,
        });
        values.collect()
    };
    match program {
        "grep" | "egrep" | "fgrep" => {
            let recursive = ["-r", "-R", "--recursive", "--dereference-recursive"];
            let named = values(&["-d"]).contains(&"recurse");
            let names = values(&["--include"]).into_iter().map(name).collect();
            (named || given(arguments, &recursive)).then_some(Sieve { hidden: true, names })
        }
        "diff" => given(arguments, &["-r", "--recursive"])
            .then_some(Sieve { hidden: true, names: Vec::new() }),
        "rg" => {
            if given(arguments, &["--files", "--type-list", "--version", "--help", "-V", "-h"]) {
                return None;
            }
            let lax = |argument: &&Argument| {
                matches!(argument, Argument::Option { name, .. }
                    if matches!(name.as_str(), "-u" | "--unrestricted"))
            };
            let globs = values(&["-g", "--glob", "--iglob"]);
            let names: Vec<WildMatch> =
                globs.into_iter().filter(|glob| !glob.starts_with('!')).map(name).collect();
            // What a pattern names is searched, hidden or not.
            let hidden = given(arguments, &["--hidden", "-."])
                || !names.is_empty()
                || arguments.iter().filter(lax).count() > 1;
            Some(Sieve { hidden, names })
        }
        _ => None,
    }
}

/// The last part of a pattern; one that is more than stars means every name.
fn name(pattern: &str) -> WildMatch {
    let last = pattern.trim_end_matches('/').rsplit('/').next().unwrap_or(pattern);
    match last.contains(['{', '[', '\\']) || pattern.ends_with('/') {
        true => WildMatch::new("*"),
        false => WildMatch::new(last),
    }
}
