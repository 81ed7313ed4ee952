//! The window: the facts that lie near the screen, without gaps, and which of the others are wanted.

use std::collections::VecDeque;
use windlass_protocol::{Display, Fact, Outcome, Record, Seq};

/// How many facts are asked for at a time.
pub(super) const PAGE: u64 = 400;
/// How many facts, and how many bytes of them, are held where there is a choice.
pub(super) const MOST: usize = 2_400;
pub(super) const MOST_BYTES: usize = 2 << 20;

/// The facts near the screen.
#[derive(Debug, Default)]
pub(super) struct Window {
    records: VecDeque<(usize, Record)>,
    bytes: usize,
    /// The last position there is, as far as that was heard.
    pub head: Seq,
    /// True if nothing comes before, although the first position is another.
    bottomless: bool,
}

impl Window {
    /// A window over a session of this length that holds nothing yet.
    pub fn over(head: Seq) -> Window {
        Window { head, ..Window::default() }
    }

    /// The first and the last position it holds.
    pub fn span(&self) -> Option<(Seq, Seq)> {
        Some((self.records.front()?.1.seq, self.records.back()?.1.seq))
    }

    /// True if nothing comes before it.
    pub fn holds_start(&self) -> bool {
        self.head == 0 || self.bottomless || self.span().is_some_and(|(first, _)| first <= 1)
    }

    /// True if nothing comes behind it.
    pub fn holds_end(&self) -> bool {
        self.span().map_or(0, |(_, last)| last) >= self.head
    }

    /// A fact, if it is held.
    pub fn get(&self, seq: Seq) -> Option<&Record> {
        let at = self.records.partition_point(|(_, record)| record.seq < seq);
        self.records.get(at).map(|(_, record)| record).filter(|record| record.seq == seq)
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Record> {
        self.records.iter().map(|(_, record)| record)
    }

    /// How many there are, and how many bytes they take, roughly.
    #[cfg(test)]
    pub fn size(&self) -> (usize, usize) {
        (self.records.len(), self.bytes)
    }

    /// How many bytes lie before a position, and how many from it on; as far as `most`.
    pub fn bytes_around(&self, seq: Seq, most: usize) -> (usize, usize) {
        let at = self.records.partition_point(|(_, record)| record.seq < seq);
        let sum = |sum: usize, weight: usize| Some(sum + weight).filter(|sum| *sum < most);
        let before = self.records.range(..at).rev().try_fold(0, |all, (one, _)| sum(all, *one));
        let behind = self.records.range(at..).try_fold(0, |all, (one, _)| sum(all, *one));
        (before.unwrap_or(most), behind.unwrap_or(most))
    }

    /// Adds a fact behind the others, if it is the next one.
    pub fn push(&mut self, record: &Record) -> bool {
        let next = match self.span() {
            Some((_, last)) => record.seq == last + 1,
            None => self.head == 0 || record.seq > self.head.saturating_sub(PAGE),
        };
        if next {
            let weight = weight(&record.fact);
            self.bytes += weight;
            self.records.push_back((weight, record.clone()));
        }
        self.head = self.head.max(record.seq);
        next
    }

    /// Puts facts before the others, if they lead up to them. Says whether there were any.
    pub fn prepend(&mut self, records: &[Record]) -> bool {
        let Some((first, _)) = self.span() else { return false };
        let before = records.iter().rev().skip_while(|record| record.seq >= first);
        let mut next = first;
        for record in before {
            if record.seq + 1 != next {
                break;
            }
            next = record.seq;
            let weight = weight(&record.fact);
            self.bytes += weight;
            self.records.push_front((weight, record.clone()));
        }
        self.bottomless |= next == first;
        next < first
    }

    /// True if it holds more than it should.
    pub fn is_full(&self) -> bool {
        self.records.len() > MOST || self.bytes > MOST_BYTES
    }

    /// Lets go of everything before a position.
    pub fn drop_before(&mut self, seq: Seq) {
        while self.records.front().is_some_and(|(_, record)| record.seq < seq) {
            if let Some((weight, _)) = self.records.pop_front() {
                self.bytes = self.bytes.saturating_sub(weight);
            }
            self.bottomless = false;
        }
    }

    /// Lets go of everything behind a position.
    pub fn drop_behind(&mut self, seq: Seq) {
        while self.records.back().is_some_and(|(_, record)| record.seq > seq) {
            if let Some((weight, _)) = self.records.pop_back() {
                self.bytes = self.bytes.saturating_sub(weight);
            }
        }
    }
}

/// How many bytes a fact takes, roughly.
fn weight(fact: &Fact) -> usize {
    const FRAME: usize = 300;
    let texts = match fact {
        Fact::Said { text, seal } | Fact::Reasoned { text, seal } => {
            text.len() + seal.as_ref().map_or(0, String::len)
        }
        Fact::Prompted { text, .. } | Fact::Briefed { text } | Fact::ContextChanged { text } => {
            text.len()
        }
        Fact::Compacted { summary, .. } => summary.len(),
        Fact::Called { arguments, seal, .. } => {
            arguments.len() + seal.as_ref().map_or(0, String::len)
        }
        Fact::Asked { preview, .. } => preview.as_ref().map_or(0, String::len),
        Fact::Changing { changes, .. } => changes.len() * 250,
        Fact::Settled { outcome, seen, .. } => heft(outcome) + seen.len() * 150,
        Fact::Opened { .. }
        | Fact::ModeChanged { .. }
        | Fact::Renamed { .. }
        | Fact::Forked { .. }
        | Fact::Pruned { .. }
        | Fact::Reverted { .. }
        | Fact::Withdrawn { .. }
        | Fact::TurnStarted { .. }
        | Fact::Steered { .. }
        | Fact::StepStarted { .. }
        | Fact::StepEnded { .. }
        | Fact::Retrying { .. }
        | Fact::Interrupted { .. }
        | Fact::TurnEnded { .. }
        | Fact::Answered { .. }
        | Fact::Started { .. }
        | Fact::Inquired { .. }
        | Fact::Replied { .. }
        | Fact::Spawned { .. }
        | Fact::Unchanged { .. }
        | Fact::Hooked { .. } => 0,
    };
    FRAME + texts
}

fn heft(outcome: &Outcome) -> usize {
    let display = match outcome {
        Outcome::Completed { output } => match &output.display {
            Display::Diff { unified } => unified.len(),
            Display::Checklist { items } => items.len() * 100,
            Display::Terminal { coloured } => coloured.as_ref().map_or(0, String::len),
            Display::Text => 0,
        },
        Outcome::Failed { .. }
        | Outcome::Denied { .. }
        | Outcome::Interrupted { .. }
        | Outcome::Unknown => 0,
    };
    outcome.text().len() + display
}
