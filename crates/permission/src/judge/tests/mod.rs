//! The judge on a machine of words: the corpora, what stands around a command, and single cases.

mod beneath;
mod cases;
mod corpus;
mod metamorphic;

use super::class::Class;
use super::{Judgement, Setting, judge, programs};
use crate::{Beneath, Level, Places, Rules, Shelter};
use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use windlass_protocol::Mode;

/// A machine with the workspace `/w` and the home `/home/u`.
#[derive(Debug, Default)]
struct Machine {
    links: HashMap<PathBuf, PathBuf>,
    programs: HashMap<String, PathBuf>,
    /// Files, relative to the workspace.
    files: Vec<&'static str>,
    /// There are more than these.
    more: bool,
}

impl Machine {
    fn linked(from: &str, to: &str) -> Machine {
        let links = HashMap::from([(PathBuf::from(from), PathBuf::from(to))]);
        Machine { links, ..Machine::default() }
    }

    fn with(files: &[&'static str]) -> Machine {
        Machine { files: files.to_vec(), ..Machine::default() }
    }
}

impl Places for Machine {
    fn real(&self, path: &Path) -> PathBuf {
        let mut real = PathBuf::from("/");
        for part in path.components() {
            match part {
                Component::ParentDir => {
                    real.pop();
                }
                Component::Normal(name) => {
                    real.push(name);
                    if let Some(target) = self.links.get(&real) {
                        real = target.clone();
                    }
                }
                _ => {}
            }
        }
        real
    }

    fn program(&self, name: &str) -> Option<PathBuf> {
        self.programs.get(name).cloned()
    }

    fn beneath(&self, folder: &Path) -> Beneath {
        let all = self.files.iter().map(|file| Path::new("/w").join(file));
        let inner = all.filter_map(|file| file.strip_prefix(folder).map(Path::to_owned).ok());
        Beneath { paths: inner.collect(), whole: !self.more }
    }

    fn shelter(&self) -> Shelter {
        Shelter::Standing
    }

    fn home(&self) -> Option<&Path> {
        Some(Path::new("/home/u"))
    }

    fn root(&self) -> &Path {
        Path::new("/w")
    }
}

fn rules(text: &str) -> Rules {
    Rules::parse(&serde_json::from_str(text).unwrap()).unwrap()
}

fn judged_on(machine: &Machine, own: &str, others: &[&str], mode: Mode, text: &str) -> Judgement {
    let own = rules(own);
    let tighter: Vec<_> = others.iter().map(|text| Arc::new(rules(text))).collect();
    let shelter = machine.shelter();
    judge(text, "", &Setting { own: &own, tighter: &tighter, places: machine, mode, shelter })
}

fn judged(mode: Mode, text: &str) -> Judgement {
    judged_on(&Machine::default(), "{}", &[], mode, text)
}

fn level(mode: Mode, text: &str) -> Level {
    judged(mode, text).level
}

/// The class that the strictest command of a line has.
fn class(text: &str) -> Class {
    match (level(Mode::Ask, text), level(Mode::Auto, text)) {
        (Level::Allow, _) => Class::Read,
        (Level::Deny, _) => Class::Forbidden,
        (_, Level::Allow) => Class::Work,
        _ => Class::Beyond,
    }
}

#[test]
fn every_row_means_its_examples_and_not_the_others() {
    let mut wrong = Vec::new();
    for row in programs::all() {
        assert!(!row.matches.is_empty() && !row.passes.is_empty(), "{} has no examples", row.name);
        // Modes tell three classes apart; what asks in both is one to them.
        let wanted = row.class.min(Class::Beyond);
        for text in row.matches {
            if class(text) != wanted {
                wrong.push(format!(
                    "{text}: {:?}, not {wanted:?}: {:?}",
                    class(text),
                    judged(Mode::Ask, text).segments
                ));
            }
        }
        for text in row.passes {
            let (found, connects) = (class(text), judged(Mode::Ask, text).connects);
            let same = match row.class {
                Class::Read | Class::Work => found == row.class,
                Class::Network => connects && found != Class::Forbidden,
                _ => found == Class::Beyond && !connects,
            };
            if same {
                wrong.push(format!("{text} is taken for {:?}", row.class));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
