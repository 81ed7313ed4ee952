//! The way through a command line: one simple command after the other, with the folder each runs
//! in, and wrappers taken off.

use super::class::{Class, Finding};
use super::paths::{Folders, Ground, Stranger, Use};
use super::weigh::{self, Spot};
use super::wrappers::{self, Input, Peeled};
use super::{Judged, Setting, ruling, tails};
use crate::Level;
use crate::shell::{self, Item, Reading, RedirectKind, Segment, Word};
use std::path::Path;
use windlass_protocol::Mode;

/// How many wrappers may stand around a program.
const DEEPEST: usize = 8;

/// How many words and redirections a command may have.
const LONGEST: usize = 4_000;

/// Variables that change only how much a program says.
#[rustfmt::skip]
const HARMLESS: &[&str] = &[
    "RUST_BACKTRACE", "RUST_LOG", "CI", "NODE_ENV", "DEBUG", "PYTHONUNBUFFERED",
    "PYTHONDONTWRITEBYTECODE", "FORCE_COLOR", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "LANG",
    "LANGUAGE", "TZ", "TERM", "COLUMNS", "LINES", "CARGO_TERM_COLOR", "CARGO_INCREMENTAL",
    "VERBOSE", "RUST_TEST_THREADS", "PROPTEST_CASES", "INSTA_UPDATE",
];

/// What was seen on the way.
pub(super) struct Walk<'a> {
    ground: &'a Ground<'a>,
    setting: &'a Setting<'a>,
    /// The folders of each open scope.
    scopes: Vec<Folders>,
    pub(super) judged: Vec<Judged>,
    pub(super) doubts: Vec<String>,
    pub(super) connects: bool,
    /// There is more than was read.
    pub(super) beyond: bool,
}

/// A simple command while it is looked at.
struct Look {
    finding: Finding,
    /// Its words with every wrapper still on, and with each one taken off.
    forms: Vec<Vec<String>>,
    /// Those that are run by no other.
    effective: Vec<String>,
    documents: Vec<Word>,
    piped: bool,
}

impl<'a> Walk<'a> {
    pub(super) fn new(ground: &'a Ground<'a>, setting: &'a Setting<'a>, folder: &Path) -> Walk<'a> {
        let start = ground.places().real(folder);
        let scopes = vec![Folders(vec![start])];
        Walk {
            ground,
            setting,
            scopes,
            judged: Vec::new(),
            doubts: Vec::new(),
            connects: false,
            beyond: false,
        }
    }

    fn folders(&self) -> Folders {
        self.scopes.last().cloned().unwrap_or(Folders(Vec::new()))
    }

    /// Goes through a reading that stands inside so many others.
    pub(super) fn walk(&mut self, reading: Reading, depth: usize) {
        self.beyond |= reading.beyond;
        for doubt in reading.doubts {
            if !self.doubts.contains(&doubt) {
                self.doubts.push(doubt);
            }
        }
        let open = self.scopes.len();
        for item in reading.items {
            match item {
                Item::Enter => {
                    let folders = self.folders();
                    self.scopes.push(folders);
                }
                Item::Leave => {
                    if self.scopes.len() > open {
                        self.scopes.pop();
                    }
                }
                Item::Command(segment) => self.segment(&segment, depth),
            }
        }
        self.scopes.truncate(open);
    }

    fn segment(&mut self, segment: &Segment, depth: usize) {
        if segment.words.len().saturating_add(segment.redirects.len()) > LONGEST {
            self.beyond = true;
            return;
        }
        let mut look = Look {
            finding: Finding::harmless(),
            forms: Vec::new(),
            effective: Vec::new(),
            documents: Vec::new(),
            piped: segment.piped,
        };
        let alone = segment.words.is_empty();
        for (name, _) in &segment.assignments {
            look.finding.add(assign(name, if alone { Lasts::InShell } else { Lasts::InProgram }));
        }
        for redirect in &segment.redirects {
            let how = match &redirect.kind {
                RedirectKind::Read => Use::Read,
                RedirectKind::Write => Use::Write,
                RedirectKind::Document { body, .. } => {
                    look.documents.push(Word::Plain(body.clone()));
                    continue;
                }
                RedirectKind::Text => {
                    look.documents.push(redirect.target.clone());
                    continue;
                }
            };
            look.finding.add(self.ground.weigh(&self.folders(), &redirect.target, how));
        }
        if alone && segment.assignments.is_empty() && segment.redirects.is_empty() {
            look.finding.add(Finding::new(Class::Unknown, "it cannot be read"));
        }
        // What is nested stands behind what nests it.
        let place = self.judged.len();
        if !alone {
            self.run(&segment.words, &mut look, depth);
        }
        let plain = segment.assignments.is_empty()
            && segment.redirects.is_empty()
            && !segment.words.iter().any(|word| matches!(word, Word::Opaque(_)));
        self.settle(segment, look, plain, place);
    }

    /// Looks at words that are run, and at what they run in turn.
    fn run(&mut self, words: &[Word], look: &mut Look, depth: usize) {
        look.forms.push(words.iter().map(|word| word.text().to_owned()).collect());
        let Some((first, arguments)) = words.split_first() else { return };
        if depth > DEEPEST {
            look.finding.add(Finding::new(Class::Unknown, "it is wrapped too deep"));
            return;
        }
        let Word::Plain(written) = first else {
            let reason = format!("nobody knows which program {} is", first.text());
            look.finding.add(Finding::new(Class::Unknown, reason));
            return;
        };
        look.finding.add(self.identify(written));
        let program = written.rsplit('/').next().unwrap_or(written);
        let input = Input { piped: look.piped, documents: &look.documents };
        let whole = || words.iter().map(Word::text).collect::<Vec<_>>().join(" ");
        match wrappers::peel(program, arguments, &input) {
            Peeled::Program => {
                look.effective.push(whole());
                let found = self.program(program, arguments, look);
                look.finding.add(found);
                if tails::may_run(program, arguments) {
                    self.tails(arguments, look);
                }
            }
            Peeled::Words { words: inner, assignments, writes, floor } => {
                // A rule about what is run says nothing about a wrapper that does more.
                if floor.class > Class::Read || !assignments.is_empty() {
                    look.effective.push(whole());
                }
                look.finding.add(floor);
                for (name, _) in &assignments {
                    look.finding.add(assign(name, Lasts::InProgram));
                }
                let own = arguments.len().saturating_sub(inner.len()) + 1;
                for word in arguments.iter().take(own) {
                    look.finding.add(self.ground.mention(&self.folders(), word, Stranger::Yes));
                }
                self.write(&writes, look);
                self.run(&inner, look, depth + 1);
            }
            Peeled::Script { text, writes, floor } => {
                look.finding.add(floor);
                look.effective.push(whole());
                self.write(&writes, look);
                if program == "parallel" {
                    self.tails(arguments, look);
                }
                self.script(&text, look, depth + 1);
            }
            Peeled::Find { rest, commands } => {
                look.finding.add(Finding::new(Class::Work, "find runs another program"));
                look.effective.push(whole());
                let found = self.program(program, &rest, look);
                look.finding.add(found);
                for command in commands {
                    self.run(&command, look, depth + 1);
                }
            }
            Peeled::Nothing { reads, assignments, floor } => {
                look.effective.push(whole());
                look.finding.add(floor);
                for word in &reads {
                    look.finding.add(self.ground.weigh(&self.folders(), word, Use::Read));
                }
                for (name, _) in &assignments {
                    look.finding.add(assign(name, Lasts::InProgram));
                }
            }
        }
    }

    /// Looks at what a program may run that nothing is known about: whatever its words end with.
    fn tails(&self, arguments: &[Word], look: &mut Look) {
        let folders = self.folders();
        let spot = Spot { ground: self.ground, folders: &folders, piped: look.piped };
        for tail in tails::tails(arguments) {
            let Some((first, rest)) = tail.split_first() else { continue };
            let name = first.text().rsplit('/').next().unwrap_or_default();
            if tails::is_feared(name) {
                let found = weigh::weigh(&spot, name, rest);
                if found.class >= Class::Guard {
                    look.finding.add(found);
                }
            }
            look.forms.push(tail.iter().map(|word| word.text().to_owned()).collect());
        }
    }

    fn write(&self, paths: &[Word], look: &mut Look) {
        for path in paths {
            look.finding.add(self.ground.weigh(&self.folders(), path, Use::Write));
        }
    }

    /// Reads a text as a script and goes through it.
    fn script(&mut self, text: &Word, look: &mut Look, depth: usize) {
        let Word::Plain(text) = text else {
            let reason = format!("nobody knows what {} runs", text.text());
            look.finding.add(Finding::new(Class::Unseen, reason));
            return;
        };
        if depth > DEEPEST {
            look.finding.add(Finding::new(Class::Unknown, "it is wrapped too deep"));
            return;
        }
        let folders = self.folders();
        self.scopes.push(folders);
        self.walk(shell::read(text), depth);
        self.scopes.pop();
    }

    fn program(&mut self, program: &str, arguments: &[Word], look: &Look) -> Finding {
        let folders = self.folders();
        let spot = Spot { ground: self.ground, folders: &folders, piped: look.piped };
        let finding = weigh::weigh(&spot, program, arguments);
        let moves = matches!(program, "cd" | "pushd" | "popd" | "chdir");
        if let Some(last) = self.scopes.last_mut().filter(|_| moves) {
            let target = arguments.iter().find(|word| !matches!(word.text(), "-L" | "-P" | "--"));
            let home = Word::Pattern("~".to_owned());
            *last = match program {
                "popd" => Folders(Vec::new()),
                _ => self.ground.enter(&folders, target.unwrap_or(&home)),
            };
        }
        finding
    }

    /// What a program's name says about where it comes from. What the workspace brings along is
    /// not what it is called.
    fn identify(&self, written: &str) -> Finding {
        if written.contains('/') {
            let word = Word::Plain(written.to_owned());
            let mut finding = Finding::new(Class::Work, format!("{written} is run by its path"));
            let inside = self.folders().0.iter().all(|at| self.ground.inside(&at.join(written)));
            if !inside || self.folders().0.is_empty() {
                let reason = format!("{written} lies outside of the workspace");
                finding.add(Finding::new(Class::Beyond, reason));
            }
            finding.add(self.ground.weigh(&self.folders(), &word, Use::Read));
            return finding;
        }
        if written.is_empty() {
            return Finding::new(Class::Unknown, "a program has no name");
        }
        let found = self.ground.places().program(written);
        match found.is_some_and(|path| self.ground.inside(&path)) {
            true => Finding::new(Class::Work, format!("{written} comes from the workspace")),
            false => Finding::harmless(),
        }
    }

    fn settle(&mut self, segment: &Segment, look: Look, plain: bool, place: usize) {
        self.connects |= look.finding.connects;
        let default = look.finding.class.level(self.setting.mode, self.setting.shelter);
        let asked = ruling::Asked {
            text: &segment.text,
            forms: &look.forms,
            effective: &look.effective,
            plain: if plain { ruling::Plain::Yes } else { ruling::Plain::No },
        };
        // A wildcard that does not speak of secrets does not mean them.
        let (private, closed) = (look.finding.private, look.finding.closed);
        let meant = |ruled: &ruling::Ruled| {
            ruled.level != Level::Allow || (!closed && (!private || ruled.opens_secrets))
        };
        let class = look.finding.class;
        let planned = class.breaks_plan(self.setting.mode, self.setting.shelter);
        // Where some commands are denied, one that hides what it runs is not everything.
        let hidden = class.is_hidden() && ruling::denies_some(self.setting);
        let ruled = ruling::rule(self.setting, &asked)
            .filter(meant)
            .filter(|ruled| !hidden || ruled.level != Level::Allow);
        let (level, reason, rule) = match ruled {
            _ if class == Class::Forbidden || planned => (Level::Deny, look.finding.reason, None),
            None if hidden && self.setting.mode == Mode::Full => {
                let reason = format!("{}, and your rules deny some commands", look.finding.reason);
                (Level::Deny, reason, None)
            }
            Some(ruled) if ruled.level == Level::Allow || ruled.level > default => {
                (ruled.level, ruled.reason(), Some(ruled.written))
            }
            Some(ruled) if ruled.level == default => (default, ruled.reason(), Some(ruled.written)),
            Some(_) | None => (default, look.finding.reason, None),
        };
        let words = segment.words.iter().map(|word| word.text().to_owned()).collect();
        let judged = Judged { text: segment.text.clone(), words, level, reason, rule };
        self.judged.insert(place.min(self.judged.len()), judged);
    }
}

/// Who sees a variable.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lasts {
    InShell,
    InProgram,
}

/// What comes of setting a variable.
fn assign(name: &str, lasts: Lasts) -> Finding {
    let harmless = HARMLESS.contains(&name) || name.starts_with("LC_");
    let own = |name: &str| {
        let letters =
            |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
        lasts == Lasts::InShell && name.chars().all(letters) && !name.ends_with("_proxy")
    };
    match harmless || own(name) {
        true => Finding::new(Class::Work, format!("it sets {name}")),
        false => Finding::new(Class::Unknown, format!("{name} can change what runs")),
    }
}
