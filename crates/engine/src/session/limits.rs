//! Limits on a turn: requests, time, tokens and money.
//!
//! They are checked before the model is asked and when it has answered, so that a turn goes over a
//! budget by one step at most. Time is also watched in between, by an alarm.

use super::turn::Stage;
use super::{Effect, Out, Session, Terms};
use windlass_protocol::{Cost, Finish, TurnEnd, Usage};

/// How long calls that were told to stop because time is up may take to do so.
const GRACE_MS: u64 = 5_000;

impl Terms {
    /// What tokens cost, where the price is known.
    pub(crate) fn cost(&self, usage: &Usage) -> Option<Cost> {
        let price = &self.price;
        let (read, written) = (price.input?, price.output?);
        let fresh = usage.input.saturating_sub(usage.cached).saturating_sub(usage.cache_writes);
        // Dollars for a million tokens are millionths of a dollar for one.
        let cost = fresh as f64 * read
            + usage.cached as f64 * price.cache_read.unwrap_or(read)
            + usage.cache_writes as f64 * price.cache_write.unwrap_or(read)
            + usage.output as f64 * written;
        Some(Cost(cost.round() as u64))
    }
}

/// Money, for people.
fn dollars(cost: Cost) -> String {
    let cents = format!("{:.2}", cost.0 as f64 / 1e6);
    let exact = format!("{}", cost.0 as f64 / 1e6);
    if exact.len() > cents.len() { exact } else { cents }
}

impl Session {
    /// The limit that the turn has reached, if it has; requests are not counted here.
    pub(super) fn over(&self) -> Option<String> {
        let turn = self.turn.as_ref().filter(|turn| turn.prompted)?;
        let limits = &self.terms.limits;
        if let Some(most) = limits.tokens.filter(|most| turn.tokens >= *most) {
            return Some(format!("the limit of {most} tokens in one turn"));
        }
        if let Some(most) = limits.cost.filter(|most| turn.cost >= *most) {
            return Some(format!("the limit of ${} in one turn", dollars(most)));
        }
        let most = limits.time_ms.filter(|_| self.time_left() == Some(0))?;
        Some(format!("the limit of {} s in one turn", most as f64 / 1e3))
    }

    /// How long the turn may still take, in milliseconds; `None` without a limit.
    fn time_left(&self) -> Option<u64> {
        let turn = self.turn.as_ref().filter(|turn| turn.prompted)?;
        let spent = self.now.0.saturating_sub(turn.began.0);
        Some(self.terms.limits.time_ms?.saturating_sub(spent))
    }

    /// Asks to be told when the turn's time is up.
    pub(super) fn arm(&self, out: &mut Out) {
        if let (Some(turn), Some(after_ms)) = (&self.turn, self.time_left()) {
            out.0.push(Effect::Alarm { turn: turn.number, after_ms });
        }
    }

    /// The time while nobody worked on the turn, because the process was gone, does not count.
    pub(super) fn skip_to(&mut self, now: windlass_protocol::Millis) {
        let gone = now.0.saturating_sub(self.now.0);
        if let Some(turn) = &mut self.turn {
            turn.began.0 = turn.began.0.saturating_add(gone);
        }
    }

    pub(super) fn rang(&mut self, turn: u32, out: &mut Out) {
        let Some(open) = self.turn.as_ref().filter(|open| open.number == turn) else { return };
        if open.expired.is_some() {
            return self.abandon(out);
        }
        match self.over() {
            Some(_) if open.interrupted => {}
            Some(what) => self.expire(what, out),
            None => self.arm(out),
        }
    }

    /// Ends a turn that has reached a limit, wherever it stands. What runs is told to stop, what
    /// does not is not begun.
    pub(super) fn expire(&mut self, what: String, out: &mut Out) {
        let Some(turn) = &mut self.turn else { return };
        turn.expired = Some(what);
        if turn.step_open {
            out.0.push(Effect::CancelModel);
            return self.step_ended(Finish::Interrupted, Usage::default(), out);
        }
        let number = turn.number;
        let runs = |stage: &Stage| matches!(stage, Stage::Running(_));
        if turn.open().iter().any(|call| runs(&call.stage)) {
            out.0.push(Effect::Alarm { turn: number, after_ms: GRACE_MS });
        }
        self.stop_calls(&self.never_ran(), out);
    }

    /// The end of a turn that reached a limit.
    pub(super) fn expired(&self) -> Option<TurnEnd> {
        let what = self.turn.as_ref()?.expired.clone()?;
        Some(TurnEnd::Limit { what })
    }
}
