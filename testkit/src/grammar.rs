//! The event grammar: which logs can be. It is written apart from the engine, so that the two can
//! disagree.

use std::collections::{BTreeMap, BTreeSet};
use windlass_protocol::{Answer, Author, CallId, Fact, Outcome, PromptId};

/// Reads a log fact by fact, and objects to what cannot follow.
#[derive(Default)]
pub struct Reader {
    opened: bool,
    turns: u32,
    /// The turn under way, and whether it answers a prompt.
    turn: Option<(u32, bool)>,
    steps: u32,
    step_open: bool,
    prompts: BTreeSet<PromptId>,
    calls: BTreeMap<CallId, Call>,
    order: Vec<CallId>,
}

#[derive(Default)]
struct Call {
    asked: bool,
    answered: Option<bool>,
    attempts: u32,
    batches: u32,
    read_only: bool,
    settled: bool,
}

/// Checks a log, whole or cut off at any point between two appends.
pub fn check<'a>(facts: impl IntoIterator<Item = &'a Fact>) -> Result<(), String> {
    Reader::of(facts).map(|_| ())
}

/// Checks that a log is also complete: nothing is under way.
pub fn check_settled<'a>(facts: impl IntoIterator<Item = &'a Fact>) -> Result<(), String> {
    let reader = Reader::of(facts)?;
    ensure(reader.turn.is_none(), "a turn is still open")?;
    ensure(reader.prompts.is_empty(), "a prompt was never taken up")?;
    ensure(reader.calls.values().all(|call| call.settled), "a call was never settled")
}

fn ensure(holds: bool, otherwise: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise.to_owned()) }
}

impl Reader {
    /// Reads a whole log.
    pub fn of<'a>(facts: impl IntoIterator<Item = &'a Fact>) -> Result<Reader, String> {
        let mut reader = Reader::default();
        for (index, fact) in facts.into_iter().enumerate() {
            reader
                .read(fact)
                .map_err(|why| format!("fact {}, {}: {why}", index + 1, fact.kind()))?;
        }
        Ok(reader)
    }

    /// Reads the next fact.
    pub fn read(&mut self, fact: &Fact) -> Result<(), String> {
        ensure(self.opened || matches!(fact, Fact::Opened { .. }), "before the session opened")?;
        match fact {
            Fact::Opened { .. } => {
                ensure(!self.opened, "a second time")?;
                self.opened = true;
            }
            Fact::Renamed { .. }
            | Fact::Forked { .. }
            | Fact::Compacted { .. }
            | Fact::Reverted { .. }
            | Fact::ContextChanged { .. } => {}
            Fact::Prompted { prompt, .. } => {
                ensure(self.prompts.insert(*prompt), "the same prompt twice")?;
            }
            Fact::TurnStarted { turn, prompt } => {
                ensure(self.turn.is_none(), "inside another turn")?;
                ensure(*turn == self.turns + 1, "the turns do not count up")?;
                if let Some(prompt) = prompt {
                    ensure(self.prompts.remove(prompt), "for a prompt that does not wait")?;
                }
                (self.turns, self.turn, self.steps) = (*turn, Some((*turn, prompt.is_some())), 0);
            }
            Fact::StepStarted { turn, step, .. } => {
                ensure(self.turn == Some((*turn, true)), "outside its turn")?;
                ensure(!self.step_open, "inside another step")?;
                ensure(self.calls.values().all(|call| call.settled), "before all calls settled")?;
                ensure(*step == self.steps + 1, "the steps do not count up")?;
                (self.steps, self.step_open) = (*step, true);
            }
            Fact::StepEnded { turn, step, .. } => {
                ensure(self.step_open && self.steps == *step, "of a step that is not open")?;
                ensure(self.turn == Some((*turn, true)), "outside its turn")?;
                self.step_open = false;
            }
            Fact::Said { .. } | Fact::Reasoned { .. } => ensure(self.step_open, "outside a step")?,
            Fact::Retrying { .. } => {
                ensure(!self.step_open && self.turn.is_some(), "not between steps")?
            }
            Fact::Interrupted { turn } => {
                ensure(
                    self.turn.is_some_and(|open| open.0 == *turn),
                    "of a turn that is not open",
                )?;
            }
            Fact::TurnEnded { turn, .. } => {
                ensure(
                    self.turn.is_some_and(|open| open.0 == *turn),
                    "of a turn that is not open",
                )?;
                ensure(!self.step_open, "inside a step")?;
                ensure(self.calls.values().all(|call| call.settled), "before all calls settled")?;
                self.turn = None;
            }
            Fact::Called { .. }
            | Fact::Asked { .. }
            | Fact::Answered { .. }
            | Fact::Started { .. }
            | Fact::Changing { .. }
            | Fact::Unchanged { .. }
            | Fact::Settled { .. } => self.read_call(fact)?,
        }
        Ok(())
    }

    fn read_call(&mut self, fact: &Fact) -> Result<(), String> {
        if let Fact::Called { call, by, .. } = fact {
            let place = match by {
                Author::Model => self.step_open,
                Author::Person => self.turn.is_some_and(|(_, prompted)| !prompted),
            };
            ensure(place, "where its author cannot call")?;
            self.order.push(*call);
            return ensure(
                self.calls.insert(*call, Call::default()).is_none(),
                "the same call twice",
            );
        }
        ensure(!self.step_open, "inside a step")?;
        let id = match fact {
            Fact::Asked { call, .. }
            | Fact::Answered { call, .. }
            | Fact::Started { call, .. }
            | Fact::Changing { call, .. }
            | Fact::Unchanged { call }
            | Fact::Settled { call, .. } => *call,
            _ => return Ok(()),
        };
        if matches!(fact, Fact::Settled { .. }) {
            let first = self.order.iter().find(|id| !self.calls[id].settled);
            ensure(first == Some(&id), "not in the order of the calls, or a second time")?;
        }
        if let Fact::Started { read_only, .. } = fact {
            let place = |id: &CallId| self.order.iter().position(|other| other == id);
            let under_way = |(other, call): (&CallId, &Call)| {
                // A call behind this one that only looks, and had started, died with its process:
                // the outcome of this one was not yet on record. It will be started again.
                let died = call.read_only && place(other) > place(&id);
                *other != id
                    && call.attempts > 0
                    && !call.settled
                    && !(*read_only && call.read_only)
                    && !died
            };
            ensure(!self.calls.iter().any(under_way), "beside a call it cannot run beside")?;
        }
        let call = self.calls.get_mut(&id).ok_or("of a call nobody made")?;
        ensure(!call.settled, "after it settled")?;
        match fact {
            Fact::Asked { .. } => {
                ensure(call.attempts == 0 || call.read_only, "after it started")?;
                // Asked again after a crash, perhaps about something else: the answer is open.
                (call.asked, call.answered) = (true, None);
            }
            Fact::Answered { answer, .. } => {
                // What an earlier answer covers is not asked about.
                let covered = !call.asked && *answer == Answer::Session;
                let open = call.asked && call.answered.is_none();
                ensure(open || covered, "to what was not asked")?;
                ensure(call.attempts == 0 || call.read_only, "after it started")?;
                call.answered = Some(answer.is_yes());
            }
            Fact::Started { attempt, read_only, .. } => {
                ensure(*attempt == call.attempts + 1, "the attempts do not count up")?;
                ensure(!call.asked || call.answered == Some(true), "without a yes")?;
                ensure(call.attempts == 0 || call.read_only, "again, though it changes something")?;
                (call.attempts, call.read_only) = (*attempt, *read_only);
            }
            Fact::Changing { .. } => {
                ensure(call.attempts > 0 && !call.read_only, "by a call that may not change")?;
                call.batches += 1;
            }
            Fact::Unchanged { .. } => {
                ensure(call.batches > 0, "of what was not on record")?;
                call.batches -= 1;
            }
            Fact::Settled { outcome, .. } => {
                let ran = matches!(outcome, Outcome::Completed { .. } | Outcome::Unknown);
                ensure(!ran || call.attempts > 0, "as if it had run, but it never started")?;
                call.settled = true;
            }
            _ => {}
        }
        Ok(())
    }
}
