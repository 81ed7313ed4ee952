//! The model's answer: written piece by piece, recorded whole, or not at all.

use super::turn::{Block, Turn};
use super::{Effect, Out, Session, Stamp};
use std::collections::BTreeSet;
use windlass_llm::ModelEvent;
use windlass_protocol::{
    Author, CallId, Fact, Fault, Finish, Live, Purpose, Stream, Tries, TurnEnd, Usage,
};

/// What a piece of an answer counts besides its text, so that countless tiny ones have a bound.
const BLOCK: usize = 16;

/// What a model hears that answered with nothing.
pub(super) const NUDGE: &str =
    "The last answer was empty. Go on with the task; if it is done, say so in a sentence.";

impl Session {
    pub(super) fn model(&mut self, stamp: Stamp, event: ModelEvent, out: &mut Out) {
        let Some(turn) = &mut self.turn else { return };
        match event {
            ModelEvent::Text(text) => self.write(stamp, Stream::Text, text, out),
            ModelEvent::Reasoning(text) => self.write(stamp, Stream::Reasoning, text, out),
            ModelEvent::Sealed(sealed) => {
                let size = sealed.len() + BLOCK;
                if let Some(Block::Written { seal: seal @ None, .. }) = turn.draft.last_mut() {
                    *seal = Some(sealed);
                }
                self.grow(stamp, size, out);
            }
            ModelEvent::Call { reference, tool, arguments, seal, repaired } => {
                let sealed = seal.as_ref().map_or(0, String::len);
                let size = reference.len() + tool.len() + arguments.len() + sealed + BLOCK;
                let (call, by) = (CallId(stamp.id), Author::Model);
                turn.draft.push(Block::Called(Fact::Called {
                    call,
                    reference,
                    tool,
                    arguments,
                    by,
                    repaired,
                    seal,
                }));
                self.grow(stamp, size, out);
            }
            ModelEvent::Ended { finish, usage } => self.step_ended(finish, usage, out),
            ModelEvent::Failed(fault) => self.step_failed(stamp, fault, out),
        }
    }

    /// Adds to what the model is writing; what is sealed is complete.
    fn write(&mut self, stamp: Stamp, stream: Stream, text: String, out: &mut Out) {
        let Some(turn) = &mut self.turn else { return };
        let size = text.len() + BLOCK;
        match turn.draft.last_mut() {
            Some(Block::Written { stream: same, text: draft, seal: None }) if *same == stream => {
                draft.push_str(&text);
            }
            _ => turn.draft.push(Block::Written { stream, text: text.clone(), seal: None }),
        }
        // A summary is for the model, not for whoever watches.
        if !text.is_empty() && turn.purpose == Purpose::Answer {
            out.0.push(Effect::Show(Live::Delta { stream, text }));
        }
        self.grow(stamp, size, out);
    }

    /// Counts what the model has sent in this step, and stops it where there is no end.
    fn grow(&mut self, stamp: Stamp, bytes: usize, out: &mut Out) {
        let Some(turn) = &mut self.turn else { return };
        turn.draft_size += bytes;
        if turn.draft_size > self.terms.limits.answer {
            out.0.push(Effect::CancelModel);
            let fault = Fault::provider(Some(200), "its answer has no end");
            self.step_failed(stamp, fault, out);
        }
    }

    /// Records what the model said. The whole step is one append: it is all there or not at all.
    pub(super) fn step_ended(&mut self, finish: Finish, usage: Usage, out: &mut Out) {
        let Some(turn) = &mut self.turn else { return };
        if turn.purpose == Purpose::Summary {
            return self.summed_up(finish, usage, out);
        }
        let (number, step) = (turn.number, turn.steps);
        let with_calls = finish == Finish::Calls;
        let mut references = BTreeSet::new();
        for block in std::mem::take(&mut turn.draft) {
            match block {
                Block::Written { text, seal: None, .. } if text.is_empty() => {}
                Block::Written { stream: Stream::Text, text, seal } => {
                    self.decide(Fact::Said { text, seal }, out);
                }
                Block::Written { stream: Stream::Reasoning, text, seal } => {
                    self.decide(Fact::Reasoned { text, seal }, out);
                }
                Block::Called(_) if !with_calls => {}
                Block::Called(called) => self.decide(referred(called, &mut references), out),
            }
        }
        let cost = self.terms.cost(&usage);
        let ended = Fact::StepEnded { turn: number, step, finish: finish.clone(), usage, cost };
        self.decide(ended, out);
        if self.turn.as_ref().is_some_and(|turn| !turn.calls.is_empty()) {
            return match self.over() {
                Some(what) => self.expire(what, out),
                None => self.launch(out),
            };
        }
        self.conclude(finish, out);
    }

    /// Ends the turn after a step without calls.
    pub(super) fn conclude(&mut self, finish: Finish, out: &mut Out) {
        let nothing = |turn: &Turn| turn.empty == 1 && !turn.spoke;
        if matches!(finish, Finish::Stop | Finish::Calls) && self.turn.as_ref().is_some_and(nothing)
        {
            self.decide(Fact::ContextChanged { text: NUDGE.to_owned() }, out);
            return self.ask_model(out);
        }
        let end = match finish {
            Finish::Interrupted => self.expired().unwrap_or(TurnEnd::Interrupted),
            Finish::Filtered => {
                let message = "the provider withheld the answer".to_owned();
                TurnEnd::Failed { fault: Fault::Refused { message } }
            }
            Finish::Length => TurnEnd::Limit { what: "the model's output limit".to_owned() },
            Finish::Failed { fault } => TurnEnd::Failed { fault },
            Finish::Stop | Finish::Calls | Finish::Lost => TurnEnd::Done,
        };
        self.end(end, out);
    }

    /// A request failed: what was said so far does not count, and it is made again if that helps.
    fn step_failed(&mut self, stamp: Stamp, fault: Fault, out: &mut Out) {
        let Some(open) = &mut self.turn else { return };
        open.draft.clear();
        let (turn, step, attempt) = (open.number, open.steps, open.failures + 1);
        let since = *open.failing_since.get_or_insert(stamp.at);
        let tries = Tries {
            failed: attempt,
            spent_ms: stamp.at.0.saturating_sub(since.0),
            chance: stamp.chance(),
        };
        let finish = Finish::Failed { fault: fault.clone() };
        let (usage, cost) = (Usage::default(), None);
        self.decide(Fact::StepEnded { turn, step, finish, usage, cost }, out);
        if matches!(fault, Fault::Overflow { .. }) {
            return self.overflowed(out);
        }
        match fault.retry_after(&tries) {
            Some(wait_ms) => {
                self.decide(Fact::Retrying { turn, step, attempt, fault, wait_ms }, out);
                out.0.push(Effect::Wake { turn, step, after_ms: wait_ms });
            }
            None => self.end(TurnEnd::Failed { fault }, out),
        }
    }
}

/// A call under a name that no other call of its step has: a provider may name two the same, or
/// not at all.
fn referred(called: Fact, taken: &mut BTreeSet<String>) -> Fact {
    let Fact::Called { call, reference, tool, arguments, by, repaired, seal } = called else {
        return called;
    };
    let base = if reference.is_empty() { "call".to_owned() } else { reference };
    let mut reference = base.clone();
    // The count begins where it is most likely free, so that thousands take no longer than few.
    for count in taken.len() + 1.. {
        if taken.insert(reference.clone()) {
            break;
        }
        reference = format!("{base}_{count}");
    }
    Fact::Called { call, reference, tool, arguments, by, repaired, seal }
}
