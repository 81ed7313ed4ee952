//! Withdrawing queued prompts, and rewinding a session to an earlier position.
//!
//! A rewind is a `Rewound` fact: the removed facts stay in the log, and no effect is undone. Its
//! target is a position without an open turn, so that no call lacks its outcome and no answer its
//! prompt. [`RewindPoints`] is a fold of the log that knows these positions.

use super::{EffectList, Session};
use std::ops::Bound;
use windlass_protocol::{ContextChange, Fact, LogSeq, OpError, PromptId};

/// Positions of a log that a rewind may target.
#[derive(Clone, Debug, Default)]
pub(crate) struct RewindPoints {
    /// First and last position of the ranges that are not valid targets: a turn was under way, or
    /// an earlier rewind removed them. Invariant: sorted and disjoint.
    blocked_ranges: Vec<(LogSeq, LogSeq)>,
    turn_start: Option<LogSeq>,
}

impl RewindPoints {
    /// Applies the fact at a position. Facts other than `TurnStarted`, `TurnEnded` and `Rewound`
    /// may be omitted.
    pub(crate) fn push(&mut self, seq: LogSeq, fact: &Fact) {
        match fact {
            Fact::TurnStarted { .. } => self.turn_start = Some(seq),
            Fact::TurnEnded { .. } => {
                // An omitted start lies before all known positions.
                let first = self.turn_start.take().unwrap_or(1);
                self.block_range(first, seq.saturating_sub(1));
            }
            Fact::Rewound { to } => {
                self.blocked_ranges.retain(|(first, _)| first <= to);
                self.block_range(to.saturating_add(1), seq.saturating_sub(1));
            }
            _ => {}
        }
    }

    fn block_range(&mut self, first: LogSeq, last: LogSeq) {
        if first <= last {
            self.blocked_ranges.push((first, last));
        }
    }

    /// Returns true if no turn was under way at this position, and no rewind removed it.
    pub(crate) fn can_rewind_to(&self, seq: LogSeq) -> bool {
        let next = self.blocked_ranges.partition_point(|(first, _)| *first <= seq);
        let range = next.checked_sub(1).and_then(|index| self.blocked_ranges.get(index));
        let in_open_turn = self.turn_start.is_some_and(|start| start <= seq);
        seq > 0 && !in_open_turn && range.is_none_or(|(_, last)| *last < seq)
    }
}

impl Session {
    /// Withdraws a prompt that no turn has taken up yet.
    pub(super) fn withdraw_prompt(
        &mut self,
        prompt: PromptId,
        out: &mut EffectList,
    ) -> Result<(), OpError> {
        if !self.transcript.queued_prompts.iter().any(|queued| queued.id == prompt) {
            let text = "The model has already read this prompt; it cannot be withdrawn.";
            return Err(OpError::Gone { text: text.to_owned() });
        }
        self.emit(Fact::PromptWithdrawn { prompt }, out);
        Ok(())
    }

    /// Rewinds to a position, if no turn is under way.
    pub(super) fn rewind(&mut self, to: LogSeq, out: &mut EffectList) -> Result<(), OpError> {
        if self.turn.is_some() {
            let text = "A turn is running. Interrupt it, then rewind.".to_owned();
            return Err(OpError::TurnRunning { text });
        }
        if to >= self.head || !self.rewind_points.can_rewind_to(to) {
            let text = "Cannot rewind there: no turn starts at that position. Choose another one.";
            return Err(OpError::Invalid { text: text.to_owned() });
        }
        self.emit(Fact::Rewound { to }, out);
        Ok(())
    }

    /// Returns true if the remaining conversation does not state the current mode.
    pub(super) fn is_mode_forgotten(&self) -> bool {
        let Some(mode) = self.transcript.mode else { return false };
        let summary_mode = self.transcript.summary.as_ref().and_then(|summary| summary.mode);
        let announced = self.visible_changes().rev().find_map(|(_, change)| match change {
            ContextChange::Mode { mode } => Some(*mode),
            _ => None,
        });
        announced.or(summary_mode) != Some(mode)
    }

    /// Returns the recorded changes whose messages the model still sees, oldest first.
    pub(super) fn visible_changes(
        &self,
    ) -> impl DoubleEndedIterator<Item = (LogSeq, &ContextChange)> {
        let through = self.transcript.summary.as_ref().map_or(0, |summary| summary.through);
        let after = (Bound::Excluded(through), Bound::Unbounded);
        self.context_changes.range(after).map(|(seq, change)| (*seq, change))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::TurnEndReason;

    fn rewind_points(facts: &[(LogSeq, Fact)]) -> RewindPoints {
        let mut points = RewindPoints::default();
        for (seq, fact) in facts {
            points.push(*seq, fact);
        }
        points
    }

    fn turn_started(turn: u32) -> Fact {
        Fact::TurnStarted { turn, prompt: None }
    }

    fn turn_ended(turn: u32) -> Fact {
        Fact::TurnEnded { turn, end: TurnEndReason::Completed }
    }

    fn valid_positions(points: &RewindPoints, through: LogSeq) -> Vec<LogSeq> {
        (0..=through).filter(|seq| points.can_rewind_to(*seq)).collect()
    }

    #[test]
    fn a_rewind_goes_to_a_position_between_turns() {
        let mut points = rewind_points(&[
            (3, turn_started(1)),
            (6, turn_ended(1)),
            (8, turn_started(2)),
            (9, turn_ended(2)),
        ]);
        assert_eq!(valid_positions(&points, 9), [1, 2, 6, 7, 9]);
        points.push(12, &turn_started(3));
        assert_eq!(valid_positions(&points, 14), [1, 2, 6, 7, 9, 10, 11]);
    }

    #[test]
    fn a_rewind_cannot_go_to_a_rewound_position() {
        let mut points = rewind_points(&[
            (3, turn_started(1)),
            (6, turn_ended(1)),
            (8, turn_started(2)),
            (12, turn_ended(2)),
        ]);
        points.push(13, &Fact::Rewound { to: 6 });
        assert_eq!(valid_positions(&points, 13), [1, 2, 6, 13]);
        points.push(15, &turn_started(3));
        points.push(17, &turn_ended(3));
        assert_eq!(valid_positions(&points, 17), [1, 2, 6, 13, 14, 17]);
        // Further back, past the first rewind.
        points.push(18, &Fact::Rewound { to: 2 });
        assert_eq!(valid_positions(&points, 18), [1, 2, 18]);
    }

    #[test]
    fn without_the_start_of_the_log_the_first_position_is_a_turn_end() {
        let points =
            rewind_points(&[(40, turn_ended(7)), (42, turn_started(8)), (44, turn_ended(8))]);
        assert_eq!(valid_positions(&points, 44), [40, 41, 44]);
    }
}
