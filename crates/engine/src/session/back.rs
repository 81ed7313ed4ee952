//! Taking back: a prompt that waits, or everything after an earlier position.
//!
//! A step back is a fact like any other: what it takes out stays in the log, and nothing of what was
//! done is undone. It leads to where no turn was under way, so that no call is left without its end
//! and no answer without its question. [`Track`] is a fold of the log and knows those places.

use super::{Out, Session, notice, steer};
use windlass_protocol::{Fact, Mode, Part, PromptId, Role, Seq};

/// Where a log can be stepped back to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Track {
    /// The first and the last of positions that cannot be gone to: a turn was under way, or they no
    /// longer count. In order, and apart from each other.
    barred: Vec<(Seq, Seq)>,
    /// Where the turn under way began.
    begun: Option<Seq>,
}

impl Track {
    /// Takes in the fact at a position. Those that say nothing of turns may be left out.
    pub(crate) fn push(&mut self, seq: Seq, fact: &Fact) {
        match fact {
            Fact::TurnStarted { .. } => self.begun = Some(seq),
            Fact::TurnEnded { .. } => {
                // If the beginning was left out, it is behind everything that is known.
                let first = self.begun.take().unwrap_or(1);
                self.bar(first, seq.saturating_sub(1));
            }
            Fact::Reverted { to } => {
                self.barred.retain(|(first, _)| first <= to);
                self.bar(to.saturating_add(1), seq.saturating_sub(1));
            }
            _ => {}
        }
    }

    fn bar(&mut self, first: Seq, last: Seq) {
        if first <= last {
            self.barred.push((first, last));
        }
    }

    /// True if nothing was under way there, and it still counts.
    pub(crate) fn leads_to(&self, seq: Seq) -> bool {
        let behind = self.barred.partition_point(|(first, _)| *first <= seq);
        let barred = behind.checked_sub(1).and_then(|at| self.barred.get(at));
        let under_way = self.begun.is_some_and(|begun| begun <= seq);
        seq > 0 && !under_way && barred.is_none_or(|(_, last)| *last < seq)
    }
}

impl Session {
    /// Takes back a prompt that no turn has taken up.
    pub(super) fn withdraw(&mut self, prompt: PromptId, out: &mut Out) {
        if !self.transcript.waiting.iter().any(|waits| waits.id == prompt) {
            return notice("The model has heard of this prompt; it is not taken back.", out);
        }
        self.decide(Fact::Withdrawn { prompt }, out);
    }

    /// Steps back to a position, if nothing is under way.
    pub(super) fn step_back(&mut self, to: Seq, out: &mut Out) {
        if self.turn.is_some() {
            return notice("A turn is under way. Interrupt it, then step back.", out);
        }
        if to >= self.head || !self.track.leads_to(to) {
            return notice("There is no turn that begins there. Look again.", out);
        }
        self.decide(Fact::Reverted { to }, out);
    }

    /// True if what is left of the conversation does not tell the mode.
    pub(super) fn forgot_mode(&self) -> bool {
        let Some(mode) = self.transcript.mode else { return false };
        let messages = self.transcript.for_model();
        let told = messages.iter().rev().filter(|message| message.role == Role::Context);
        let last = told.flat_map(|message| &message.parts).find_map(|part| match part {
            Part::Text { text, .. } => Mode::ALL.into_iter().find(|mode| tells(text, *mode)),
            Part::Reasoning { .. } | Part::File(_) | Part::Call(_) => None,
        });
        last != Some(mode)
    }
}

/// A summary tells it in a line of its own.
fn tells(text: &str, mode: Mode) -> bool {
    text.lines().any(|line| line == steer::sentence(mode))
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::TurnEnd;

    fn track(facts: &[(Seq, Fact)]) -> Track {
        let mut track = Track::default();
        for (seq, fact) in facts {
            track.push(*seq, fact);
        }
        track
    }

    fn begins(turn: u32) -> Fact {
        Fact::TurnStarted { turn, prompt: None }
    }

    fn ends(turn: u32) -> Fact {
        Fact::TurnEnded { turn, end: TurnEnd::Done }
    }

    fn open(track: &Track, through: Seq) -> Vec<Seq> {
        (0..=through).filter(|seq| track.leads_to(*seq)).collect()
    }

    #[test]
    fn one_steps_back_to_where_nothing_was_under_way() {
        let mut all = track(&[(3, begins(1)), (6, ends(1)), (8, begins(2)), (9, ends(2))]);
        assert_eq!(open(&all, 9), [1, 2, 6, 7, 9]);
        all.push(12, &begins(3));
        assert_eq!(open(&all, 14), [1, 2, 6, 7, 9, 10, 11]);
    }

    #[test]
    fn what_no_longer_counts_is_not_gone_back_to() {
        let mut all = track(&[(3, begins(1)), (6, ends(1)), (8, begins(2)), (12, ends(2))]);
        all.push(13, &Fact::Reverted { to: 6 });
        assert_eq!(open(&all, 13), [1, 2, 6, 13]);
        all.push(15, &begins(3));
        all.push(17, &ends(3));
        assert_eq!(open(&all, 17), [1, 2, 6, 13, 14, 17]);
        // Further back than before, over the first step back.
        all.push(18, &Fact::Reverted { to: 2 });
        assert_eq!(open(&all, 18), [1, 2, 18]);
    }

    #[test]
    fn where_the_beginning_is_not_known_nothing_before_an_end_is_gone_to() {
        let all = track(&[(40, ends(7)), (42, begins(8)), (44, ends(8))]);
        assert_eq!(open(&all, 44), [40, 41, 44]);
    }
}
