//! Children: sessions that a call begins. They are on record before they start, and they share what
//! the turn may spend.

use super::turn::{Call, Stage};
use super::{Effect, Out, Session};
use windlass_protocol::{CallId, Fact, Finish, SessionId, TurnEnd, Usage};

/// A session that a call wants to begin, or to go on with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Birth {
    /// The call.
    pub call: CallId,
    /// The session.
    pub session: SessionId,
    /// The agent that works in it.
    pub agent: String,
}

impl Session {
    /// Lets a call have its session once that is on record. A call that had one before a crash goes
    /// on with that one.
    pub(super) fn spawning(&mut self, turn: u32, birth: Birth, out: &mut Out) {
        let Some(open) = self.turn.as_mut().filter(|open| open.number == turn) else { return };
        let runs = |call: &&mut Call| matches!(call.stage, Stage::Running(_));
        let may = !open.interrupted;
        let Some(call) = open.call(birth.call).filter(|call| may && runs(call)) else { return };
        let before = call.child;
        let Birth { call, session, agent } = birth;
        if before.is_none() {
            self.decide(Fact::Spawned { call, session, agent }, out);
        }
        let (session, again) = (before.unwrap_or(session), before.is_some());
        out.0.push(Effect::Spawn { call, session, again });
    }

    /// Ends a turn that has nothing left to spend: what it shares with others is used up.
    pub(super) fn broke(&mut self, turn: u32, step: u32, what: String, out: &mut Out) {
        let waits = |open: &&super::Turn| open.number == turn && open.steps == step;
        let Some(open) = self.turn.as_ref().filter(waits) else { return };
        if !open.step_open {
            return;
        }
        let (finish, usage, cost) = (Finish::Interrupted, Usage::default(), None);
        self.decide(Fact::StepEnded { turn, step, finish, usage, cost }, out);
        self.end(TurnEnd::Limit { what }, out);
    }
}
