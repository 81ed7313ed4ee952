//! How the screen begins: what comes first, and what is known when a session is opened.

use super::{App, Awaited};
use crate::cx::Act;
use crate::panel;
use crate::prompt::Saying;
use windlass_protocol::wire::{Answered, Request, Trusted};
use windlass_protocol::{Fault, Op, SessionId};

impl App {
    pub(super) fn take_standing(&mut self, answer: &Result<Answered, Fault>) {
        let Ok(Answered::Standing { standing }) = answer else { return };
        self.known.standing = (**standing).clone();
        self.known.model = standing.model.clone().unwrap_or_default();
        if self.known.session.is_none() {
            self.known.mode = standing.mode;
            self.known.agent.clone_from(&standing.agent);
        }
    }

    /// Asks whether the folder is trusted if it has something to run, and else only says so; before
    /// anything was said, the story does.
    pub(super) fn look_at_trust(&mut self, would: Vec<String>, since: Option<Vec<String>>) {
        if would.is_empty() {
            let comes = self.awaited.values().any(|it| matches!(it, Awaited::Opened(_)));
            if comes || self.known.session.is_some() {
                self.hint(panel::trust::NOTHING);
            }
            return;
        }
        self.panels.push(Box::new(panel::trust::Trust::found(would, since, self.now)));
    }

    /// What comes first, once it is known how things stand.
    pub(super) fn begin(&mut self, acts: &mut Vec<Act>) {
        for note in std::mem::take(&mut self.known.standing.notes) {
            self.story.note(&note);
        }
        let panel = self.with(acts, |_, cx| panel::first(cx));
        self.panels.extend(panel);
        if matches!(self.known.standing.trust, Trusted::Unasked | Trusted::Changed) {
            self.ask(Request::LookAtTrust, Awaited::Trust, acts);
        }
        let first = self.first.take().map(Saying::prompt);
        match (self.begin.take(), first) {
            (Some(session), first) => {
                self.ask(Request::Open { session }, Awaited::Opened(first), acts);
            }
            (None, Some(first)) => self.say(first, acts),
            (None, None) => {}
        }
    }

    pub(super) fn opened(
        &mut self,
        session: SessionId,
        head: u64,
        saying: Option<Saying>,
        acts: &mut Vec<Act>,
    ) {
        let standing = std::mem::take(&mut self.known.standing);
        let (mode, model) = (self.known.mode, standing.model.clone().unwrap_or_default());
        self.known = crate::known::Known {
            mode: if head == 0 { mode } else { standing.mode },
            agent: standing.agent.clone(),
            standing,
            model,
            session: Some(session),
            head,
            early: (head > 0).then(Vec::new),
            ..Default::default()
        };
        self.asked = Default::default();
        self.with(acts, |parts, cx| parts.story.open(session, head, cx));
        if let Some(saying) = saying {
            if mode != self.known.standing.mode {
                self.op(Op::Mode { mode }, acts);
            }
            self.say(saying, acts);
        }
    }
}
