//! What a call wants to know from a person: put on record, asked, answered once, and the answer on
//! record before it takes effect. A question that a crash left open is asked again; an answer that
//! was given before it still stands.
//!
//! The mode is changed here and by nothing a model says: only on a reply to a question that was put
//! for it.

use super::turn::{Call, Stage};
use super::{Effect, Out, Session, notice};
use windlass_protocol::{CallId, Fact, Inquiry, Mode};
use windlass_toolkit::Stake;

/// How many questions are put at once, and how many answers can be chosen from.
const MOST: usize = 16;

/// How long an answer in a person's own words may be, in bytes.
const LONGEST: usize = 16 << 10;

/// What a call asked last, as far as the log tells, and what came back.
#[derive(Clone, Debug, Default)]
pub(super) struct Inquest {
    pub(super) inquiries: Vec<Inquiry>,
    pub(super) replies: Option<Vec<Vec<String>>>,
    /// What hangs on it, while a call of this process waits.
    stake: Option<Stake>,
}

impl Inquest {
    /// Takes in a fact.
    pub(super) fn record(&mut self, fact: &Fact) {
        if let Fact::Inquired { inquiries, .. } = fact {
            (self.inquiries, self.replies) = (inquiries.clone(), None);
        }
        if let Fact::Replied { replies, .. } = fact {
            self.replies = Some(replies.clone());
        }
    }
}

impl Session {
    /// A call that runs asks something.
    pub(super) fn inquired(
        &mut self,
        (turn, id): (u32, CallId),
        inquiries: Vec<Inquiry>,
        stake: Stake,
        out: &mut Out,
    ) {
        let Some(open) = self.turn.as_mut().filter(|open| open.number == turn) else { return };
        let may = !open.interrupted;
        let runs = |call: &&mut Call| matches!(call.stage, Stage::Running(_)) && may;
        let Some(call) = open.call(id).filter(runs) else { return };
        // Somebody answered this before a crash; what hung on it was recorded with it.
        if let (true, Some(replies)) =
            (call.inquest.inquiries == inquiries, call.inquest.replies.clone())
        {
            return out.0.push(Effect::Reply { call: id, replies });
        }
        if inquiries.is_empty() || inquiries.len() > MOST {
            return out.0.push(Effect::Reply { call: id, replies: Vec::new() });
        }
        self.decide(Fact::Inquired { call: id, inquiries }, out);
        if let Some(call) = self.turn.as_mut().and_then(|turn| turn.call(id)) {
            call.inquest.stake = Some(stake);
        }
    }

    /// The person answers, or declines to: then there is no list at all.
    pub(super) fn replied(&mut self, id: CallId, replies: Vec<Vec<String>>, out: &mut Out) {
        let Some(call) = self.turn.as_mut().and_then(|turn| turn.call(id)) else { return };
        let Some(stake) = call.inquest.stake.filter(|_| call.inquest.replies.is_none()) else {
            return;
        };
        if let Err(why) = fits(&call.inquest.inquiries, &replies) {
            return notice(&format!("That is no answer to what was asked: {why}."), out);
        }
        let mode = chosen(stake, &call.inquest.inquiries, &replies);
        self.decide(Fact::Replied { call: id, replies: replies.clone() }, out);
        if let Some(mode) = mode {
            self.decide(Fact::ModeChanged { mode }, out);
        }
        out.0.push(Effect::Reply { call: id, replies });
    }
}

/// The mode that a person chose of those they were offered, if that is what was asked.
fn chosen(stake: Stake, inquiries: &[Inquiry], replies: &[Vec<String>]) -> Option<Mode> {
    let (Stake::Mode, [inquiry], [reply]) = (stake, inquiries, replies) else { return None };
    let [only] = reply.as_slice() else { return None };
    let offered = inquiry.options.iter().any(|option| option.label == *only);
    only.parse().ok().filter(|_| offered)
}

/// One list for each question, each of what could be chosen or said.
fn fits(inquiries: &[Inquiry], replies: &[Vec<String>]) -> Result<(), &'static str> {
    if replies.is_empty() {
        return Ok(());
    }
    if replies.len() != inquiries.len() {
        return Err("there is one list for each question, or none at all");
    }
    for (inquiry, reply) in inquiries.iter().zip(replies) {
        let known = |said: &String| inquiry.options.iter().any(|option| option.label == *said);
        if reply.len() > 1 && !inquiry.multiple || reply.len() > MOST {
            return Err("only one answer can be chosen");
        }
        if !inquiry.custom && !reply.iter().all(known) {
            return Err("it is none of the answers that can be chosen");
        }
        if reply.iter().any(|said| said.len() > LONGEST) {
            return Err("it is too long");
        }
    }
    Ok(())
}
