//! The event grammar: which logs can be. It is written apart from the engine, so that the two can
//! disagree.

use std::collections::{BTreeMap, BTreeSet};
use windlass_protocol::{
    Answer, Author, CallId, Delivery, Fact, Finish, Outcome, PromptId, Purpose, Seq,
};

/// Reads a log fact by fact, and objects to what cannot follow.
#[derive(Default)]
pub struct Reader {
    opened: bool,
    briefed: bool,
    turns: u32,
    /// The turn under way, and whether it answers a prompt.
    turn: Option<(u32, bool)>,
    steps: u32,
    step_open: bool,
    /// What the step under way, or the last one, is for.
    purpose: Purpose,
    /// What the fact before this one says of a summary.
    summed_up: Summed,
    /// The facts so far, and how far each summary that counts reaches.
    seq: Seq,
    through: Vec<Seq>,
    /// How it stood behind each fact.
    places: Vec<Place>,
    prompts: BTreeMap<PromptId, Delivery>,
    pruned: BTreeSet<CallId>,
    calls: BTreeMap<CallId, Call>,
    /// The names that the calls of the step under way have at the provider.
    references: BTreeSet<String>,
    order: Vec<CallId>,
    /// How many of them are settled.
    settled: usize,
}

/// How a log stands at a position.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Nothing is under way.
    Idle,
    /// A turn is.
    Busy,
    /// It no longer counts.
    Gone,
}

/// Whether a summary has just been made.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Summed {
    #[default]
    Not,
    Up,
}

#[derive(Default)]
struct Call {
    asked: bool,
    answered: Option<bool>,
    attempts: u32,
    inquired: bool,
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
        self.seq += 1;
        let summed_up = std::mem::take(&mut self.summed_up);
        match fact {
            Fact::Opened { .. } => {
                ensure(!self.opened, "a second time")?;
                self.opened = true;
            }
            Fact::Renamed { .. }
            | Fact::ModeChanged { .. }
            | Fact::Forked { .. }
            | Fact::ContextChanged { .. } => {}
            Fact::Reverted { to } => self.read_step_back(*to)?,
            Fact::Prompted { prompt, when, .. } => {
                let new = self.prompts.insert(*prompt, *when).is_none();
                ensure(new, "the same prompt twice")?;
            }
            Fact::Withdrawn { prompt } => {
                ensure(self.prompts.remove(prompt).is_some(), "a prompt that does not wait")?;
            }
            Fact::TurnStarted { turn, prompt } => {
                ensure(self.turn.is_none(), "inside another turn")?;
                ensure(*turn == self.turns + 1, "the turns do not count up")?;
                if let Some(prompt) = prompt {
                    ensure(
                        self.prompts.remove(prompt).is_some(),
                        "for a prompt that does not wait",
                    )?;
                }
                (self.turns, self.turn, self.steps) = (*turn, Some((*turn, prompt.is_some())), 0);
            }
            Fact::Briefed { .. } => {
                ensure(!self.briefed, "a second time")?;
                self.briefed = true;
            }
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
            Fact::Pruned { .. }
            | Fact::Compacted { .. }
            | Fact::Steered { .. }
            | Fact::StepStarted { .. }
            | Fact::StepEnded { .. }
            | Fact::Said { .. }
            | Fact::Reasoned { .. } => self.read_step(fact, summed_up)?,
            Fact::Hooked { call, .. } => {
                // It stands between any two facts, and changes nothing of what they are to each other.
                self.summed_up = summed_up;
                let under_way = |id| self.calls.get(id).is_some_and(|call| !call.settled);
                ensure(call.iter().all(under_way), "about a call that is not under way")?;
            }
            Fact::Called { .. }
            | Fact::Asked { .. }
            | Fact::Answered { .. }
            | Fact::Started { .. }
            | Fact::Inquired { .. }
            | Fact::Replied { .. }
            | Fact::Spawned { .. }
            | Fact::Changing { .. }
            | Fact::Unchanged { .. }
            | Fact::Settled { .. } => self.read_call(fact)?,
        }
        self.places.push(if self.turn.is_some() { Place::Busy } else { Place::Idle });
        Ok(())
    }

    /// Reads that everything after a position no longer counts.
    fn read_step_back(&mut self, to: Seq) -> Result<(), String> {
        ensure(self.turn.is_none(), "inside a turn")?;
        ensure(to >= 1 && to + 1 < self.seq, "to where there is nothing to step back over")?;
        let (kept, gone) = self.places.split_at_mut(usize::try_from(to).unwrap_or(usize::MAX));
        ensure(
            kept.last() == Some(&Place::Idle),
            "to where a turn was under way, or nothing counts",
        )?;
        gone.fill(Place::Gone);
        self.through.retain(|through| *through <= to);
        Ok(())
    }

    /// Reads what belongs to a step, or stands between two.
    fn read_step(&mut self, fact: &Fact, summed_up: Summed) -> Result<(), String> {
        match fact {
            Fact::Pruned { calls } => {
                ensure(!self.step_open && !calls.is_empty(), "nothing, or inside a step")?;
                for call in calls {
                    let settled = self.calls.get(call).is_some_and(|call| call.settled);
                    ensure(settled, "a call that gave nothing")?;
                    ensure(self.pruned.insert(*call), "the same call twice")?;
                }
            }
            Fact::Compacted { through, .. } => {
                ensure(summed_up == Summed::Up, "without having summed up")?;
                let further = self.through.last().is_none_or(|before| through > before);
                ensure(further, "no further than before")?;
                ensure(*through < self.seq, "further than there is anything")?;
                self.through.push(*through);
            }
            Fact::Steered { turn, prompt } => {
                ensure(self.turn == Some((*turn, true)), "outside its turn")?;
                ensure(!self.step_open, "inside a step")?;
                ensure(self.calls.values().all(|call| call.settled), "before all calls settled")?;
                let waited = self.prompts.remove(prompt);
                ensure(waited == Some(Delivery::Steer), "a prompt that does not wait to steer")?;
            }
            Fact::StepStarted { turn, step, purpose, .. } => {
                // A person may have a conversation summed up without a prompt.
                let open =
                    self.turn.filter(|(_, prompted)| *prompted || *purpose == Purpose::Summary);
                ensure(open.is_some_and(|open| open.0 == *turn), "outside its turn")?;
                self.purpose = *purpose;
                ensure(!self.step_open, "inside another step")?;
                ensure(self.calls.values().all(|call| call.settled), "before all calls settled")?;
                ensure(*step == self.steps + 1, "the steps do not count up")?;
                (self.steps, self.step_open) = (*step, true);
                self.references.clear();
            }
            Fact::StepEnded { turn, step, finish, .. } => {
                ensure(self.step_open && self.steps == *step, "of a step that is not open")?;
                ensure(self.turn.is_some_and(|open| open.0 == *turn), "outside its turn")?;
                self.step_open = false;
                let well = matches!(finish, Finish::Stop | Finish::Calls | Finish::Length);
                if well && self.purpose == Purpose::Summary {
                    self.summed_up = Summed::Up;
                }
            }
            Fact::Said { .. } | Fact::Reasoned { .. } => {
                ensure(self.step_open && self.purpose == Purpose::Answer, "outside an answer")?;
            }
            _ => {}
        }
        Ok(())
    }

    fn read_call(&mut self, fact: &Fact) -> Result<(), String> {
        if let Fact::Called { call, by, reference, .. } = fact {
            let place = match by {
                Author::Model => self.step_open && self.purpose == Purpose::Answer,
                Author::Person => self.turn.is_some_and(|(_, prompted)| !prompted),
            };
            ensure(place, "where its author cannot call")?;
            let named = *by == Author::Person || self.references.insert(reference.clone());
            ensure(named && !reference.is_empty(), "under a name that another call has, or none")?;
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
            | Fact::Inquired { call, .. }
            | Fact::Replied { call, .. }
            | Fact::Spawned { call, .. }
            | Fact::Changing { call, .. }
            | Fact::Unchanged { call }
            | Fact::Settled { call, .. } => *call,
            _ => return Ok(()),
        };
        if matches!(fact, Fact::Settled { .. }) {
            let first = self.order.get(self.settled);
            ensure(first == Some(&id), "not in the order of the calls, or a second time")?;
            self.settled += 1;
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
        self.calls.get_mut(&id).ok_or("of a call nobody made")?.read(fact)
    }
}

impl Call {
    /// Reads the next fact about it.
    fn read(&mut self, fact: &Fact) -> Result<(), String> {
        ensure(!self.settled, "after it settled")?;
        match fact {
            Fact::Asked { .. } => {
                ensure(self.attempts == 0 || self.read_only, "after it started")?;
                // Asked again after a crash, perhaps about something else: the answer is open.
                (self.asked, self.answered) = (true, None);
            }
            Fact::Answered { answer, .. } => {
                // What an earlier answer covers is not asked about.
                let covered = !self.asked && *answer == Answer::Session;
                let open = self.asked && self.answered.is_none();
                ensure(open || covered, "to what was not asked")?;
                ensure(self.attempts == 0 || self.read_only, "after it started")?;
                self.answered = Some(answer.is_yes());
            }
            Fact::Started { attempt, read_only, .. } => {
                ensure(*attempt == self.attempts + 1, "the attempts do not count up")?;
                ensure(!self.asked || self.answered == Some(true), "without a yes")?;
                ensure(self.attempts == 0 || self.read_only, "again, though it changes something")?;
                (self.attempts, self.read_only) = (*attempt, *read_only);
            }
            Fact::Inquired { .. } => {
                ensure(self.attempts > 0, "by a call that does not run")?;
                // Asked again after a crash: the answer is open.
                self.inquired = true;
            }
            Fact::Replied { .. } => {
                ensure(std::mem::take(&mut self.inquired), "to what was not asked")?
            }
            Fact::Spawned { .. } => ensure(self.attempts > 0, "by a call that does not run")?,
            Fact::Changing { .. } => {
                ensure(self.attempts > 0 && !self.read_only, "by a call that may not change")?;
                self.batches += 1;
            }
            Fact::Unchanged { .. } => {
                ensure(self.batches > 0, "of what was not on record")?;
                self.batches -= 1;
            }
            Fact::Settled { outcome, .. } => {
                let ran = matches!(outcome, Outcome::Completed { .. } | Outcome::Unknown);
                ensure(!ran || self.attempts > 0, "as if it had run, but it never started")?;
                self.settled = true;
            }
            _ => {}
        }
        Ok(())
    }
}
