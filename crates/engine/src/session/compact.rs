//! Compaction: a conversation that would not fit is made shorter, and goes on.
//!
//! First what old calls gave is no longer told; if that is not enough, the model sums up what came
//! before the last few steps. What must not be lost stands in the summary by construction (see
//! `outline`). Each summary reaches further than the one before, and those that come to nothing
//! are counted, so this ends.

use super::gauge::{self, PRUNED, tokens, weigh};
use super::{Effect, Out, Session, notice};
use std::sync::Arc;
use windlass_protocol::{
    CallId, Fact, Fault, Finish, Message, Messages, Outcome, Part, Purpose, Role, TurnEnd, Usage,
};

/// What was given last is not pruned, up to so many tokens.
const RECENT: u64 = 40_000;

/// So much is kept word for word behind a summary: tokens, and prompts.
const TAIL: u64 = 20_000;
const TAIL_PROMPTS: usize = 2;

/// Outputs below this stay: leaving them out saves nothing.
const SMALL: u64 = 100;

/// How much of what a call gave a summary is made from, in bytes.
const GAVE: usize = 2_000;

/// Tokens for the instruction to sum up.
const INSTRUCTION: u64 = 300;

/// The most that is taken over of a summary, in bytes.
const LONGEST_SUMMARY: usize = 32_000;

/// Tools whose results are instructions, or state, rather than findings.
const KEPT: [&str; 3] = ["todowrite", "todoread", "skill"];

/// Whether there is room for the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// There is, or nothing can be done about it.
    Enough,
    /// It is being made.
    Made,
    /// There is none, and the provider has said so.
    None,
}

/// Which outputs may be pruned.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Old,
    All,
}

impl Session {
    /// Sees to it that the next request fits.
    pub(super) fn make_room(&mut self, out: &mut Out) -> Room {
        let Some(room) = self.gauge.room(self.terms.window) else { return Room::Enough };
        let estimate = self.gauge.estimate();
        if estimate <= room {
            return Room::Enough;
        }
        if self.gauge.hopeless() {
            return Room::None;
        }
        let rest = &self.rest();
        let (old, freed) = prunable(rest, Reach::Old, room);
        if estimate.saturating_sub(freed) <= room / 4 * 3 {
            self.decide(Fact::Pruned { calls: old }, out);
            return Room::Enough;
        }
        let cut = rest.get(..tail(rest, room)).unwrap_or_default();
        let worth = cut.iter().map(|message| weigh(message)).sum::<u64>();
        let spoken = cut.len() < rest.len() || cut.iter().any(|m| m.role == Role::Assistant);
        if spoken && worth > 0 && worth >= room / 16 {
            let count = cut.len();
            self.sum_up(count, out);
            return Room::Made;
        }
        let (all, freed) = prunable(rest, Reach::All, room);
        if freed > 0 {
            self.decide(Fact::Pruned { calls: all }, out);
            return Room::Enough;
        }
        if self.gauge.refused() { Room::None } else { Room::Enough }
    }

    /// The messages that no summary stands for yet.
    fn rest(&self) -> Vec<Arc<Message>> {
        let through = self.transcript.summary.as_ref().map_or(0, |summary| summary.through);
        let late = |message: &&Arc<Message>| message.seq > through;
        self.transcript.messages.iter().filter(late).cloned().collect()
    }

    /// Sums up because a person wants it.
    pub(super) fn compact(&mut self, out: &mut Out) {
        if self.turn.is_some() {
            return notice("A turn is under way. Sum up when it is done.", out);
        }
        if !self.rest().iter().any(|message| message.role == Role::Assistant) {
            return notice("There is nothing to sum up yet.", out);
        }
        self.decide(Fact::TurnStarted { turn: self.turns + 1, prompt: None }, out);
        self.compact_on(out);
    }

    /// Goes on with that until nothing is left to sum up.
    pub(super) fn compact_on(&mut self, out: &mut Out) {
        let rest = self.rest().len();
        if rest == 0 {
            return self.end(TurnEnd::Done, out);
        }
        if self.gauge.hopeless() {
            return self.too_long(out);
        }
        self.brief(out);
        self.sum_up(rest, out);
    }

    /// Has the model sum up the first so many messages, or as many of them as it takes in.
    fn sum_up(&mut self, count: usize, out: &mut Out) {
        let brief = self.transcript.brief.as_ref().map_or(0, |brief| tokens(brief));
        let before = self.transcript.summary.as_ref().map(|summary| {
            let parts = vec![Part::text(&summary.text)];
            Arc::new(Message { role: Role::Context, seq: summary.through, model: None, parts })
        });
        let fixed = brief + INSTRUCTION + before.as_ref().map_or(0, |message| weigh(message));
        let room = self.gauge.room(self.terms.window).unwrap_or(u64::MAX);
        let budget = room.saturating_sub(fixed).max(room / 4);
        let mut messages: Messages = before.into_iter().collect();
        let (mut through, mut sum) = (0, 0);
        for message in self.rest().iter().take(count) {
            let plain = plainly(message, budget);
            sum += weigh(&plain);
            if through > 0 && sum > budget {
                break;
            }
            through = message.seq;
            if !plain.parts.is_empty() {
                messages.push(Arc::new(plain));
            }
        }
        if let Some(turn) = &mut self.turn {
            turn.summing = through;
        }
        self.start_step(Purpose::Summary, messages, out);
    }

    /// The model has summed up, or was to.
    pub(super) fn summed_up(&mut self, finish: Finish, usage: Usage, out: &mut Out) {
        let Some(turn) = &mut self.turn else { return };
        let (number, step, through) = (turn.number, turn.steps, turn.summing);
        let summary = turn.take_text();
        let cost = self.terms.cost(&usage);
        let ended = Fact::StepEnded { turn: number, step, finish: finish.clone(), usage, cost };
        self.decide(ended, out);
        if finish == Finish::Interrupted {
            return self.conclude(finish, out);
        }
        let told = matches!(finish, Finish::Stop | Finish::Calls | Finish::Length);
        if told && !summary.trim().is_empty() {
            let room = self.gauge.room(self.terms.window).unwrap_or(u64::MAX);
            let longest = LONGEST_SUMMARY.min(usize::try_from(room).unwrap_or(usize::MAX));
            let summary = self.outlined(through, &clip(summary.trim(), longest));
            self.decide(Fact::Compacted { through, summary }, out);
        }
        self.go_on(out);
    }

    /// The provider refused a conversation for its length.
    pub(super) fn overflowed(&mut self, out: &mut Out) {
        if self.gauge.hopeless() {
            return self.too_long(out);
        }
        self.go_on(out);
    }

    /// Ends a turn whose conversation cannot be made to fit.
    pub(super) fn too_long(&mut self, out: &mut Out) {
        let said = self.turn.as_ref().and_then(|turn| turn.finish.clone());
        let fault = match said {
            Some(Finish::Failed { fault: fault @ Fault::Overflow { .. } }) => fault,
            _ => Fault::Overflow { message: "it could not be summed up".to_owned() },
        };
        self.end(TurnEnd::Failed { fault }, out);
    }

    /// Asks the model for something.
    pub(super) fn start_step(&mut self, purpose: Purpose, messages: Messages, out: &mut Out) {
        let Some(turn) = &self.turn else { return };
        let (turn, step) = (turn.number, turn.steps + 1);
        let model = self.terms.model.clone();
        self.decide(Fact::StepStarted { turn, step, model, purpose }, out);
        let system = self.transcript.brief.clone().unwrap_or_default();
        out.0.push(Effect::CallModel { turn, step, purpose, system, messages });
    }
}

/// How many of the messages come before what is kept word for word.
fn tail(rest: &[Arc<Message>], room: u64) -> usize {
    let budget = TAIL.min(room / 4);
    let (mut sum, mut prompts, mut kept) = (0, 0, 0);
    for message in rest.iter().rev() {
        sum += weigh(message);
        // What the model has not seen yet is worth more than its share.
        let last = kept == 0 && sum <= room / 2;
        if prompts == TAIL_PROMPTS || (sum > budget && !last) {
            break;
        }
        kept += 1;
        prompts += usize::from(message.role == Role::User);
    }
    rest.len() - kept
}

/// The calls whose outputs may be pruned, and what that frees.
fn prunable(rest: &[Arc<Message>], reach: Reach, room: u64) -> (Vec<CallId>, u64) {
    let recent = RECENT.min(room / 2);
    let (mut passed, mut freed, mut calls) = (0, 0, Vec::new());
    for message in rest.iter().rev() {
        passed += weigh(message);
        if reach == Reach::Old && passed <= recent {
            continue;
        }
        for part in &message.parts {
            let Part::Call(call) = part else { continue };
            let Some(outcome @ Outcome::Completed { .. }) = &call.outcome else { continue };
            let size = gauge::outcome(outcome);
            if !call.pruned && size >= SMALL && !KEPT.contains(&call.tool.as_str()) {
                calls.push(call.call);
                freed += size.saturating_sub(PRUNED);
            }
        }
    }
    calls.reverse();
    (calls, freed)
}

/// A message in words alone, so that whoever sums it up needs no tools and reads no more than it
/// must.
fn plainly(message: &Message, budget: u64) -> Message {
    let words = |part: &Part| match part {
        Part::Text { text, .. } => Some(text.clone()),
        Part::Reasoning { .. } => None,
        Part::File(file) => Some(format!("[the file {}]", file.name)),
        Part::Call(call) => {
            let gave = call.outcome.as_ref().map_or("", Outcome::text);
            let gave = if call.pruned { "[left out]".to_owned() } else { clip(gave, GAVE) };
            Some(format!("[called {} {}]\n{gave}", call.tool, clip(&call.arguments, GAVE)))
        }
    };
    let words: Vec<String> = message.parts.iter().filter_map(words).collect();
    let words = words.into_iter().filter(|text| !text.trim().is_empty());
    let mut parts: Vec<String> = words.collect();
    let sum: u64 = parts.iter().map(|text| tokens(text)).sum();
    if sum > budget {
        let bytes = usize::try_from(budget).unwrap_or(usize::MAX).saturating_mul(2);
        let share = bytes / parts.len().max(1);
        parts = parts.iter().map(|text| clip(text, share)).collect();
    }
    let parts = parts.into_iter().map(Part::text).collect();
    Message { role: message.role, seq: message.seq, model: None, parts }
}

/// The beginning and the end of a text, together not much longer than so many bytes.
fn clip(text: &str, longest: usize) -> String {
    if text.len() <= longest {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(longest / 4 * 3);
    let tail = text.ceil_char_boundary(text.len() - longest / 4);
    let (head, tail) = (text.get(..head).unwrap_or_default(), text.get(tail..).unwrap_or_default());
    format!("{head}\n[…]\n{tail}")
}
