//! What a command does, from harmless to out of the question.

use crate::Level;
use crate::Shelter;
use windlass_protocol::Mode;

/// The kinds of commands, in the order of how strict they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    /// It is proven to look only.
    Read,
    /// It changes the workspace at most, where a sandbox holds it.
    Work,
    /// It touches what lies beyond the workspace, or what is private.
    Beyond,
    /// It wants the network.
    Network,
    /// It destroys or gains rights.
    Guard,
    /// Nobody can tell what it runs.
    Unknown,
    /// It runs text that nobody has seen.
    Unseen,
    /// It speaks to what runs on this machine and may steer an agent, or it may show what a rule
    /// denies. Where nobody is asked it is a no.
    Near,
    /// It is out of the question.
    Forbidden,
}

impl Class {
    /// True if only a sandbox could keep it from changing something while a plan is made. No rule
    /// lifts that.
    pub(super) fn breaks_plan(self, mode: Mode, shelter: Shelter) -> bool {
        mode == Mode::Plan && shelter != Shelter::Standing && self > Class::Read
    }

    /// True if nobody can tell what runs, so that a rule that denies could be missed.
    pub(super) fn is_hidden(self) -> bool {
        matches!(self, Class::Unknown | Class::Unseen)
    }

    /// What comes of it where no rule speaks.
    pub(super) fn level(self, mode: Mode, shelter: Shelter) -> Level {
        let allowed = match (mode, shelter) {
            // Without a sandbox nothing runs that nobody was asked about, not even a look.
            (_, Shelter::Missing) => None,
            (Mode::Plan | Mode::Ask, _) | (Mode::Auto, Shelter::Off) => Some(Class::Read),
            (Mode::Auto, Shelter::Standing) => Some(Class::Work),
            (Mode::Full, Shelter::Standing | Shelter::Off) => Some(Class::Unseen),
        };
        match self {
            Class::Forbidden => Level::Deny,
            Class::Near if mode == Mode::Full => Level::Deny,
            class if class.breaks_plan(mode, shelter) => Level::Deny,
            class if allowed.is_some_and(|allowed| class <= allowed) => Level::Allow,
            Class::Read
            | Class::Work
            | Class::Beyond
            | Class::Network
            | Class::Guard
            | Class::Unknown
            | Class::Unseen
            | Class::Near => Level::Ask,
        }
    }
}

/// A class and the reason for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) class: Class,
    pub(super) reason: String,
    /// It wants the network, whatever else it does.
    pub(super) connects: bool,
    /// It shows a file that is made to hold secrets.
    pub(super) private: bool,
    /// It may show what a rule about files closes, so that no rule about commands opens it.
    pub(super) closed: bool,
}

impl Finding {
    pub(super) fn harmless() -> Finding {
        Finding::new(Class::Read, "it only reads")
    }

    pub(super) fn new(class: Class, reason: impl Into<String>) -> Finding {
        let connects = class == Class::Network;
        Finding { class, reason: reason.into(), connects, private: false, closed: false }
    }

    /// Keeps the stricter one, and the first of two that are alike.
    pub(super) fn add(&mut self, other: Finding) {
        let connects = self.connects || other.connects;
        let private = self.private || other.private;
        let closed = self.closed || other.closed;
        if other.class > self.class {
            *self = other;
        }
        self.connects = connects;
        self.private = private;
        self.closed = closed;
    }
}
