//! What the model is told of changes to what it was told first.
//!
//! The brief of a session never changes. When the session is opened again with other instructions, or
//! on another day, the difference is told once, as a message behind everything that was said.

use super::{Out, Session};
use crate::brief::{Day, Said};
use windlass_protocol::{Fact, Usage};

impl Session {
    /// Tells what has become different since it was told, at the beginning of a turn and after
    /// anything that may have taken earlier messages away.
    pub(super) fn tell_changes(&mut self, out: &mut Out) {
        let begins = self.turn.as_ref().is_some_and(|turn| turn.steps == 0);
        if self.transcript.brief.is_none() || (self.told.is_some() && !begins) {
            return;
        }
        let mut now = Said::by(&self.terms.brief);
        if now.is_nothing() {
            return;
        }
        let mut told = self.told.take().unwrap_or_else(|| self.was_told());
        now.set_day(Day::of(self.now), &told);
        // A change of the mode in the session is told where it is made.
        if let Some(mode) = self.transcript.mode {
            told.set_mode(mode);
            now.set_mode(mode);
        }
        if let Some(text) = told.difference(&now) {
            self.decide(Fact::ContextChanged { text }, out);
        }
        self.told = Some(now);
    }

    /// True if somebody gave it a title.
    pub(crate) fn is_named(&self) -> bool {
        self.named
    }

    /// Takes in the title that a model found, unless somebody gave it another one meanwhile.
    pub(super) fn titled(&mut self, title: String, usage: Usage, out: &mut Out) {
        if !self.named {
            let cost = self.terms.cost(&usage);
            self.decide(Fact::Renamed { title, usage: Some(usage), cost }, out);
        }
    }

    /// What the messages that the model is still sent have told it.
    fn was_told(&self) -> Said {
        let mut said = Said::by(self.transcript.brief.as_deref().unwrap_or_default());
        for message in &self.transcript.for_model() {
            said.hear(message);
        }
        said
    }
}
