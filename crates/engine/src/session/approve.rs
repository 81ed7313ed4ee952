//! Questions to a person: put one at a time, answered once, and what a lasting yes covers. What
//! is covered is not asked about: the log has the answer alone.

use super::turn::{Call, Question, Stage};
use super::{Effect, Out, Session};
use windlass_protocol::{Access, Answer, Approval, CallId, Fact, Lasting};
use windlass_toolkit::Intent;

/// What a person has said yes to for the rest of the session.
#[derive(Clone, Debug, Default)]
pub(super) struct Approved {
    accesses: Vec<Access>,
    /// Kinds of commands, as they were offered.
    kinds: Vec<String>,
}

impl Approved {
    /// Takes in an answer that holds for more than its call. Leaving the sandbox is not among what
    /// can be allowed for more than one command.
    pub(super) fn record(&mut self, call: &Call, answer: &Answer) {
        let Some(accesses) = lasting(call, answer) else { return };
        if let (Answer::Like { .. }, Some(kind)) = (answer, &call.offer) {
            self.kinds.push(kind.clone());
        } else {
            let new = accesses.iter().filter(|access| !self.accesses.contains(access));
            let new: Vec<Access> = new.cloned().collect();
            self.accesses.extend(new);
        }
    }

    /// True if an earlier answer speaks for this call, too. None does for leaving the sandbox.
    pub(super) fn covers(&self, intent: &Intent) -> bool {
        if !intent.coverable || leaves(&intent.accesses) {
            return false;
        }
        let like = intent.offer.as_ref().is_some_and(|kind| self.kinds.contains(kind));
        like || intent.accesses.iter().all(|access| self.accesses.contains(access))
    }
}

fn leaves(accesses: &[Access]) -> bool {
    accesses.iter().any(|access| matches!(access, Access::Leave { .. }))
}

/// What an answer allows beyond its call.
fn lasting<'a>(call: &'a Call, answer: &Answer) -> Option<&'a [Access]> {
    answer.lasts()?;
    let accesses = call.asked.as_deref()?;
    (!leaves(accesses)).then_some(accesses)
}

/// What is to be kept for the project, beyond the session.
fn approvals(call: &Call, answer: &Answer) -> Vec<Approval> {
    let Some(accesses) = lasting(call, answer) else { return Vec::new() };
    match (answer, &call.offer) {
        (Answer::Like { lasts: Lasting::Project }, Some(kind)) => {
            vec![Approval { key: Approval::LIKE.to_owned(), subject: kind.clone() }]
        }
        (Answer::Project | Answer::Like { lasts: Lasting::Project }, _) => accesses
            .iter()
            // What a command may reach goes with the command.
            .filter(|access| !matches!(access, Access::Connect { .. }))
            .map(Approval::of)
            .collect(),
        (Answer::Once | Answer::Session | Answer::No { .. } | Answer::Like { .. }, _) => Vec::new(),
    }
}

impl Session {
    /// Asks about a call, with what it would do in front of whoever is asked.
    pub(super) fn looked(&mut self, turn: u32, id: CallId, preview: Option<String>, out: &mut Out) {
        let Some(open) = self.turn.as_mut().filter(|open| open.number == turn) else { return };
        let looks = |call: &&mut Call| call.question == Question::Looking;
        let Some(call) = open.call(id).filter(looks) else { return };
        call.question = Question::Posed;
        let Stage::Intended(intent) = call.stage.clone() else { return };
        let Intent { accesses, asking, repaired, offer, .. } = intent;
        let reason = asking.unwrap_or_else(|| "it was asked before".to_owned());
        self.decide(Fact::Asked { call: id, accesses, reason, preview, offer, repaired }, out);
        self.pump(out);
    }

    pub(super) fn answered(&mut self, id: CallId, answer: Answer, out: &mut Out) {
        let Some(call) = self.turn.as_mut().and_then(|turn| turn.call(id)) else { return };
        let Stage::Intended(intent) = &call.stage else { return };
        if call.question != Question::Posed || call.answered(intent).is_some() {
            return;
        }
        // The sandbox is left for one call, whatever was meant.
        // Nor does letting a loop go on allow anything for good.
        let once = answer.is_yes() && (leaves(&intent.accesses) || call.looping.is_some());
        let answer = if once { Answer::Once } else { answer };
        let approvals = approvals(call, &answer);
        self.decide(Fact::Answered { call: id, answer: answer.clone() }, out);
        if !approvals.is_empty() {
            out.0.push(Effect::Remember { approvals });
        }
        if !answer.is_yes() {
            out.0.push(Effect::Answer { call: id, answer });
        }
        self.pump(out);
    }

    /// Answers for a call what an earlier answer covers, before anybody is asked about it.
    pub(super) fn cover(&mut self, id: CallId, out: &mut Out) {
        self.decide(Fact::Answered { call: id, answer: Answer::Session }, out);
        if let Some(call) = self.turn.as_mut().and_then(|turn| turn.call(id)) {
            call.question = Question::Covered;
        }
    }
}
