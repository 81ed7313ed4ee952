//! A question whether a call may be made: what it would do, why it asks, and what a yes can mean.

use super::choices::Choice;
use super::line::Line;
use super::sheet::{Part, Source};
use super::words;
use crate::cx::Look;
use crate::keys::{Command, Place};
use crossterm::event::{KeyCode, KeyEvent};
use windlass_protocol::text::one_line;
use windlass_protocol::{Access, Answer, Lasting, Repair};

/// What can be answered, besides yes for this time and no.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answers {
    /// Nothing: it is for a person to say, each time.
    Once,
    /// A yes that lasts.
    Lasting,
    /// The same, also for every command of a kind.
    Kind,
}

/// A question as it stands in the log.
pub(crate) struct Told<'a> {
    pub(crate) accesses: &'a [Access],
    pub(crate) reason: &'a str,
    pub(crate) preview: Option<&'a str>,
    pub(crate) offer: Option<&'a str>,
    pub(crate) repaired: Option<&'a Repair>,
    /// The agent that asks, if it is another one than the person talks to.
    pub(crate) agent: Option<&'a str>,
}

/// A question as it is put.
#[derive(Clone, Debug)]
pub(crate) struct Permission {
    pub(crate) headline: String,
    /// What a yes would give away, where that is everything.
    pub(crate) alarm: Option<&'static str>,
    pub(crate) parts: Vec<Part>,
    answers: Answers,
    /// Why not, while it is being written.
    pub(crate) reason: Option<Line>,
}

/// What becomes of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Heard<T> {
    /// It means nothing here.
    Unused,
    /// It was used.
    Used,
    /// All of it is to be shown.
    Whole,
    /// This is the answer.
    Said(T),
}

impl<T> Heard<T> {
    /// The same with another answer.
    pub(crate) fn map<U>(self, answer: impl FnOnce(T) -> U) -> Heard<U> {
        match self {
            Heard::Unused => Heard::Unused,
            Heard::Used => Heard::Used,
            Heard::Whole => Heard::Whole,
            Heard::Said(said) => Heard::Said(answer(said)),
        }
    }
}

impl Permission {
    /// The question.
    pub(crate) fn new(told: &Told<'_>) -> Permission {
        let leaves = told.accesses.iter().any(|access| matches!(access, Access::Leave { .. }));
        let answers = match (leaves, told.offer) {
            (true, _) => Answers::Once,
            (false, None) => Answers::Lasting,
            (false, Some(_)) => Answers::Kind,
        };
        let mut parts = words::parts(told.accesses, told.preview);
        let mut row = |label, text: &str| {
            parts.push(Part::new(label, Source::Words(one_line(text))));
        };
        if let (Answers::Kind, Some(kind)) = (answers, told.offer) {
            row("kind", kind);
        }
        row("why", told.reason);
        if let Some(agent) = told.agent {
            row("who", if agent.is_empty() { "an agent" } else { agent });
        }
        parts.extend(told.repaired.map(words::repaired));
        Permission {
            headline: Access::headline(told.accesses),
            alarm: leaves.then_some("This command gets all your rights: no sandbox holds it."),
            parts,
            answers,
            reason: None,
        }
    }

    /// What can be chosen.
    pub(crate) fn choices(&self, look: &Look) -> Vec<(&'static str, Vec<Choice>)> {
        let keys = &look.keys;
        if self.reason.is_some() {
            let choices = vec![
                Choice::by("Enter", "says no, and why", "says no"),
                Choice::by("Esc", "goes back", "back"),
            ];
            return vec![("", choices)];
        }
        let of = |command, words, fewer| Choice::of(keys, command, words, fewer);
        let mut yes = vec![of(Command::Once, "once", "once")];
        if self.answers != Answers::Once {
            yes.push(of(Command::ForSession, "for this session", "session"));
            yes.push(of(Command::ForProject, "in this project", "project"));
        }
        let no = vec![
            of(Command::No, "and stop", "stop"),
            of(Command::Reason, "and say why", "say why"),
            of(Command::Whole, "show all", "show all"),
        ];
        let mut groups = vec![("yes", yes)];
        if self.answers == Answers::Kind {
            let kind = vec![
                of(Command::KindForSession, "all of this kind, for this session", "kind, session"),
                of(Command::KindForProject, "in this project", "kind, project"),
            ];
            groups.push(("", kind));
        }
        groups.push(("no", no));
        groups
    }

    /// Takes in a key. Enter is never a yes.
    pub(crate) fn key(&mut self, key: &KeyEvent, look: &Look) -> Heard<Answer> {
        if let Some(line) = &mut self.reason {
            match key.code {
                KeyCode::Esc => self.reason = None,
                // An empty reason is none: the turn would end, and nobody asked for that.
                KeyCode::Enter if line.text().trim().is_empty() => {}
                KeyCode::Enter => {
                    let reason = Some(line.text().trim().to_owned());
                    return Heard::Said(Answer::No { reason });
                }
                _ if line.key(key, look) => {}
                _ => return Heard::Unused,
            }
            return Heard::Used;
        }
        if key.code == KeyCode::Enter {
            return Heard::Used;
        }
        let answer = match look.keys.find(Place::Asked, key) {
            Some(Command::Once) => Answer::Once,
            Some(Command::ForSession) => Answer::Session,
            Some(Command::ForProject) => Answer::Project,
            Some(Command::KindForSession) => Answer::Like { lasts: Lasting::Session },
            Some(Command::KindForProject) => Answer::Like { lasts: Lasting::Project },
            Some(Command::No) => Answer::No { reason: None },
            Some(Command::Reason) => {
                self.reason = Some(Line::default());
                return Heard::Used;
            }
            Some(Command::Whole) => return Heard::Whole,
            _ => return Heard::Unused,
        };
        if self.takes(&answer) { Heard::Said(answer) } else { Heard::Unused }
    }

    /// True if this can be answered.
    pub(crate) fn takes(&self, answer: &Answer) -> bool {
        match answer {
            Answer::Once | Answer::No { .. } => true,
            Answer::Session | Answer::Project => self.answers != Answers::Once,
            Answer::Like { .. } => self.answers == Answers::Kind,
        }
    }
}
