//! What every log keeps to, checked before one from elsewhere is taken in.
//!
//! It checks what the folds rely on and no more: a log that an older or newer version wrote in its
//! own way is not turned away for that.

use std::collections::{HashMap, HashSet};
use windlass_protocol::{CallId, Fact, PromptId, Record, Seq};

/// The year 10000, in milliseconds: no clock shows a later time.
const LATEST: u64 = 253_402_300_800_000;

/// Reads a log fact by fact.
#[derive(Default)]
pub(super) struct Check {
    head: Seq,
    turns: u32,
    turn: Option<u32>,
    prompts: HashSet<PromptId>,
    /// The calls, and whether each is settled.
    calls: HashMap<CallId, bool>,
    /// How many calls are not settled.
    open: usize,
}

impl Check {
    /// Takes in the next fact, or says why it cannot follow.
    pub(super) fn push(&mut self, record: &Record) -> Result<(), String> {
        self.head += 1;
        if record.seq != self.head {
            return Err(format!("position {} is missing", self.head));
        }
        if record.at.0 >= LATEST {
            return Err("its time is not one".into());
        }
        let opens = matches!(record.fact, Fact::Opened { .. });
        if opens != (self.head == 1) {
            return Err("a log begins with `opened`, once".into());
        }
        self.fact(&record.fact)
    }

    fn fact(&mut self, fact: &Fact) -> Result<(), String> {
        match fact {
            Fact::Prompted { prompt, .. } => match self.prompts.insert(*prompt) {
                true => Ok(()),
                false => Err("this prompt was there before".into()),
            },
            Fact::TurnStarted { turn, prompt } => {
                if self.turn.is_some() || *turn != self.turns + 1 {
                    return Err(format!("turn {turn} cannot begin here"));
                }
                (self.turn, self.turns) = (Some(*turn), *turn);
                prompt.map_or(Ok(()), |prompt| self.prompted(prompt))
            }
            Fact::Withdrawn { prompt } => self.prompted(*prompt),
            Fact::Steered { turn, prompt } => {
                self.within(*turn)?;
                self.prompted(*prompt)
            }
            Fact::TurnEnded { turn, .. } => {
                self.within(*turn)?;
                if self.open > 0 {
                    return Err("the turn ends before its calls".into());
                }
                self.turn = None;
                Ok(())
            }
            Fact::Interrupted { turn } => self.within(*turn),
            Fact::Called { call, .. } => {
                if self.turn.is_none() || self.calls.insert(*call, false).is_some() {
                    return Err("this call cannot be made here".into());
                }
                self.open += 1;
                Ok(())
            }
            Fact::Settled { call, .. } => match self.calls.get_mut(call) {
                Some(settled) if !*settled => {
                    (*settled, self.open) = (true, self.open - 1);
                    Ok(())
                }
                Some(_) | None => Err("this call cannot end here".into()),
            },
            Fact::Hooked { call: Some(call), .. }
            | Fact::Asked { call, .. }
            | Fact::Answered { call, .. }
            | Fact::Started { call, .. }
            | Fact::Inquired { call, .. }
            | Fact::Replied { call, .. }
            | Fact::Spawned { call, .. }
            | Fact::Changing { call, .. }
            | Fact::Unchanged { call } => match self.calls.get(call) {
                Some(false) => Ok(()),
                Some(true) | None => Err("there is no such call under way".into()),
            },
            // Where it ends a log, no turn may be under way that would go on.
            Fact::Reverted { .. } if self.turn.is_some() => {
                Err("nobody steps back inside a turn".into())
            }
            Fact::Compacted { through: seq, .. }
            | Fact::Forked { through: seq, .. }
            | Fact::Reverted { to: seq } => match *seq < self.head {
                true => Ok(()),
                false => Err(format!("position {seq} comes later")),
            },
            Fact::Opened { .. }
            | Fact::Briefed { .. }
            | Fact::ModeChanged { .. }
            | Fact::Renamed { .. }
            | Fact::Pruned { .. }
            | Fact::StepStarted { .. }
            | Fact::StepEnded { .. }
            | Fact::Retrying { .. }
            | Fact::Said { .. }
            | Fact::Reasoned { .. }
            | Fact::Hooked { call: None, .. }
            | Fact::ContextChanged { .. } => Ok(()),
        }
    }

    fn within(&self, turn: u32) -> Result<(), String> {
        if self.turn == Some(turn) { Ok(()) } else { Err(format!("turn {turn} is not under way")) }
    }

    fn prompted(&self, prompt: PromptId) -> Result<(), String> {
        if self.prompts.contains(&prompt) { Ok(()) } else { Err("nobody asked for this".into()) }
    }
}
