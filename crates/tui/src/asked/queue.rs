//! The questions that wait: one fold of what sessions ask and what was answered, however it is shown.

use super::form::Form;
use super::permission::{Permission, Told};
use crate::known::Known;
use std::collections::VecDeque;
use windlass_protocol::files::UNDO;
use windlass_protocol::wire::Answered;
use windlass_protocol::{Access, Author, CallId, Fact, Fault, Op, Record, SessionId, Verdict};

/// What is asked.
#[derive(Clone, Debug)]
pub(crate) enum Posed {
    /// Whether a call may be made.
    Permission(Box<Permission>),
    /// What a call wants to know.
    Inquiry(Box<Form>),
}

/// A question that waits.
#[derive(Debug)]
pub(crate) struct Waiting {
    session: SessionId,
    pub(crate) call: CallId,
    pub(crate) posed: Posed,
    /// No other question has it, not even a later one about the same call.
    number: u64,
}

/// What the person has said yes to before it is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Agreed {
    /// Changes to be taken back, as they were shown.
    Undo(String),
    /// A command that the person typed.
    Command(String),
}

impl Agreed {
    /// True if this call is the one that was meant.
    fn means(&self, tool: &str, arguments: &str) -> bool {
        match self {
            Agreed::Undo(_) => tool == UNDO,
            Agreed::Command(command) => {
                let (tool, arguments) = (tool.to_owned(), arguments.to_owned());
                Op::shell(command) == Op::Call { tool, arguments }
            }
        }
    }

    /// True if exactly this is asked about. A command that would leave its sandbox, or reach a host,
    /// is more than what was typed, and one that was rewritten is another.
    fn covers(&self, accesses: &[Access], preview: Option<&str>) -> bool {
        match self {
            Agreed::Undo(change) => preview == Some(change),
            Agreed::Command(typed) => {
                matches!(accesses, [Access::Run { command, .. }] if command == typed)
            }
        }
    }
}

/// What an event means for who shows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// Nothing more than that some may be gone.
    None,
    /// One came.
    Posed,
    /// One came that the person has said yes to beforehand.
    Agreed(CallId),
}

/// The questions, in the order they came.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: VecDeque<Waiting>,
    /// What was answered, until it is known that it was heard.
    sent: Vec<(u64, Waiting)>,
    /// How many were answered since there was none.
    done: usize,
    posed: u64,
    /// What the person said yes to, until it is asked about or the turn is over.
    agreed: Option<Agreed>,
    /// The person's own call that it is about.
    own: Option<CallId>,
}

impl Queue {
    /// The one to be answered.
    pub(crate) fn first(&self) -> Option<&Waiting> {
        self.waiting.front()
    }

    pub(crate) fn first_mut(&mut self) -> Option<&mut Waiting> {
        self.waiting.front_mut()
    }

    /// Which one that is: another number is another question.
    pub(crate) fn number(&self) -> Option<u64> {
        self.first().map(|first| first.number)
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Which one this is of how many, if there are several.
    pub(crate) fn place(&self) -> Option<String> {
        let all = self.done + self.waiting.len();
        (all > 1).then(|| format!("{} of {all}", self.done + 1))
    }

    /// The person has said yes to something. Asked about exactly that, they are not asked twice.
    pub(crate) fn agree(&mut self, agreed: Agreed) {
        (self.agreed, self.own) = (Some(agreed), None);
    }

    /// True if a question is about what the person just said yes to, in a call of their own.
    fn is_agreed(&mut self, asked: CallId, accesses: &[Access], preview: Option<&str>) -> bool {
        if self.own != Some(asked) {
            return false;
        }
        self.agreed.take().is_some_and(|agreed| agreed.covers(accesses, preview))
    }

    /// Takes in what happens: questions, answers, and what makes them pointless.
    pub(crate) fn hear(&mut self, record: &Record, known: &Known) -> News {
        let session = record.session;
        let ours = Some(session) == known.session;
        let child = known.children.get(&session);
        let agent = child.map_or("", |child| child.agent.as_str());
        let agent = (!ours).then_some(agent);
        let mut news = News::None;
        match &record.fact {
            Fact::Called { call, tool, arguments, by: Author::Person, .. } if ours => {
                let meant = self.agreed.as_ref().is_some_and(|it| it.means(tool, arguments));
                self.own = meant.then_some(*call);
            }
            // What a hook wants asked, the person has not answered.
            Fact::Hooked { call: Some(call), verdict: Verdict::Asks { .. }, .. }
                if self.own == Some(*call) =>
            {
                (self.agreed, self.own) = (None, None);
            }
            Fact::Asked { call, accesses, preview, .. }
                if self.is_agreed(*call, accesses, preview.as_deref()) =>
            {
                news = News::Agreed(*call);
            }
            Fact::Asked { call, accesses, reason, preview, offer, repaired } => {
                let permission = Permission::new(&Told {
                    accesses,
                    reason,
                    preview: preview.as_deref(),
                    offer: offer.as_deref(),
                    repaired: repaired.as_ref(),
                    agent,
                });
                news = self.pose((session, *call), Posed::Permission(Box::new(permission)));
            }
            Fact::Inquired { call, inquiries } => {
                let form = Form::new(inquiries, agent);
                news = self.pose((session, *call), Posed::Inquiry(Box::new(form)));
            }
            Fact::Answered { call, .. }
            | Fact::Replied { call, .. }
            | Fact::Settled { call, .. } => self.settle(*call),
            Fact::Interrupted { .. } | Fact::TurnEnded { .. } | Fact::Reverted { .. } => {
                if ours {
                    (self.agreed, self.own) = (None, None);
                }
                self.stop(session, known);
            }
            Fact::Opened { .. }
            | Fact::Briefed { .. }
            | Fact::ModeChanged { .. }
            | Fact::Renamed { .. }
            | Fact::Forked { .. }
            | Fact::Compacted { .. }
            | Fact::Pruned { .. }
            | Fact::Prompted { .. }
            | Fact::Withdrawn { .. }
            | Fact::TurnStarted { .. }
            | Fact::Steered { .. }
            | Fact::StepStarted { .. }
            | Fact::StepEnded { .. }
            | Fact::Retrying { .. }
            | Fact::Said { .. }
            | Fact::Reasoned { .. }
            | Fact::Called { .. }
            | Fact::Started { .. }
            | Fact::Spawned { .. }
            | Fact::Changing { .. }
            | Fact::Unchanged { .. }
            | Fact::Hooked { .. }
            | Fact::ContextChanged { .. } => {}
        }
        self.count();
        news
    }

    /// Nothing of a session waits any more, and if it is the one on the screen nothing at all.
    pub(crate) fn stop(&mut self, session: SessionId, known: &Known) {
        let stays =
            |waiting: &Waiting| Some(session) != known.session && waiting.session != session;
        self.waiting.retain(stays);
        self.sent.retain(|(_, waiting)| stays(waiting));
        self.count();
    }

    fn pose(&mut self, (session, call): (SessionId, CallId), posed: Posed) -> News {
        self.settle(call);
        self.posed += 1;
        self.waiting.push_back(Waiting { session, call, posed, number: self.posed });
        News::Posed
    }

    fn settle(&mut self, call: CallId) {
        let before = self.waiting.len();
        self.waiting.retain(|waiting| waiting.call != call);
        self.done += before - self.waiting.len();
        self.sent.retain(|(_, waiting)| waiting.call != call);
    }

    /// Counting begins anew when none waits.
    fn count(&mut self) {
        if self.waiting.is_empty() {
            self.done = 0;
        }
    }

    /// The first one was answered, by the request of this number.
    pub(crate) fn answered(&mut self, id: u64) {
        if let Some(first) = self.waiting.pop_front() {
            self.sent.push((id, first));
            self.done += 1;
        }
    }

    /// Takes in what came of a request; true if it answered a question. One whose answer nobody heard
    /// waits again.
    pub(crate) fn heard(&mut self, id: u64, answer: &Result<Answered, Fault>) -> bool {
        let Some(at) = self.sent.iter().position(|(sent, _)| *sent == id) else { return false };
        if answer.is_err() {
            let (_, waiting) = self.sent.remove(at);
            self.waiting.push_front(waiting);
            self.done = self.done.saturating_sub(1);
        }
        true
    }
}
