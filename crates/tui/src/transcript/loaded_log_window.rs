//! The loaded part of the log: contiguous facts near the viewport.

use std::collections::VecDeque;
use windlass_protocol::{CallOutcome, Fact, FactRecord, LogSeq, OutputDisplay};

/// The number of facts in a page.
pub(super) const PAGE_RECORDS: u64 = 400;
/// The number of facts, and of their bytes, above which distant facts are dropped.
pub(super) const MAX_RECORDS: usize = 2_400;
pub(super) const MAX_RECORD_BYTES: usize = 2 << 20;

/// The contiguous facts near the viewport, at most `MAX_RECORDS` if possible.
#[derive(Debug, Default)]
pub(super) struct LoadedLogWindow {
    records: VecDeque<(usize, FactRecord)>,
    bytes: usize,
    /// The last known position of the log.
    pub head: LogSeq,
    /// True if no facts precede the window, although its first position is not 1.
    no_earlier_records: bool,
}

impl LoadedLogWindow {
    /// Creates an empty window over a log that ends at `head`.
    pub fn with_head(head: LogSeq) -> LoadedLogWindow {
        LoadedLogWindow { head, ..LoadedLogWindow::default() }
    }

    /// Returns the first and last loaded position.
    pub fn span(&self) -> Option<(LogSeq, LogSeq)> {
        Some((self.records.front()?.1.seq, self.records.back()?.1.seq))
    }

    /// Returns true if no facts precede the window.
    pub fn holds_start(&self) -> bool {
        self.head == 0
            || self.no_earlier_records
            || self.span().is_some_and(|(first, _)| first <= 1)
    }

    /// Returns true if no facts follow the window.
    pub fn holds_end(&self) -> bool {
        self.span().map_or(0, |(_, last)| last) >= self.head
    }

    /// Returns the fact at a position, if it is loaded.
    pub fn get(&self, seq: LogSeq) -> Option<&FactRecord> {
        let index = self.records.partition_point(|(_, record)| record.seq < seq);
        self.records.get(index).map(|(_, record)| record).filter(|record| record.seq == seq)
    }

    /// Returns all loaded facts, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &FactRecord> {
        self.records.iter().map(|(_, record)| record)
    }

    /// Returns the number of loaded facts and their approximate size in bytes.
    #[cfg(test)]
    pub fn record_count_and_bytes(&self) -> (usize, usize) {
        (self.records.len(), self.bytes)
    }

    /// Returns the bytes before a position and from it on, each capped at `limit`.
    pub fn bytes_around(&self, seq: LogSeq, limit: usize) -> (usize, usize) {
        let index = self.records.partition_point(|(_, record)| record.seq < seq);
        let add = |total: usize, (bytes, _): &(usize, FactRecord)| {
            Some(total + bytes).filter(|total| *total < limit)
        };
        let before = self.records.range(..index).rev().try_fold(0, add);
        let after = self.records.range(index..).try_fold(0, add);
        (before.unwrap_or(limit), after.unwrap_or(limit))
    }

    /// Appends a fact if it is the next one; returns true if it was appended.
    pub fn push(&mut self, record: &FactRecord) -> bool {
        let is_next = match self.span() {
            Some((_, last)) => record.seq == last + 1,
            None => self.head == 0 || record.seq > self.head.saturating_sub(PAGE_RECORDS),
        };
        if is_next {
            let bytes = fact_bytes(&record.fact);
            self.bytes += bytes;
            self.records.push_back((bytes, record.clone()));
        }
        self.head = self.head.max(record.seq);
        is_next
    }

    /// Prepends facts that lead up to the window without a gap; returns true if there were any.
    pub fn prepend(&mut self, records: &[FactRecord]) -> bool {
        let Some((first, _)) = self.span() else { return false };
        let earlier = records.iter().rev().skip_while(|record| record.seq >= first);
        let mut next_seq = first;
        for record in earlier {
            if record.seq + 1 != next_seq {
                break;
            }
            next_seq = record.seq;
            let bytes = fact_bytes(&record.fact);
            self.bytes += bytes;
            self.records.push_front((bytes, record.clone()));
        }
        self.no_earlier_records |= next_seq == first;
        next_seq < first
    }

    /// Returns true if the window exceeds `MAX_RECORDS` or `MAX_RECORD_BYTES`.
    pub fn is_full(&self) -> bool {
        self.records.len() > MAX_RECORDS || self.bytes > MAX_RECORD_BYTES
    }

    /// Drops all facts before a position.
    pub fn drop_before(&mut self, seq: LogSeq) {
        while self.records.front().is_some_and(|(_, record)| record.seq < seq) {
            if let Some((bytes, _)) = self.records.pop_front() {
                self.bytes = self.bytes.saturating_sub(bytes);
            }
            self.no_earlier_records = false;
        }
    }

    /// Drops all facts after a position.
    pub fn drop_after(&mut self, seq: LogSeq) {
        while self.records.back().is_some_and(|(_, record)| record.seq > seq) {
            if let Some((bytes, _)) = self.records.pop_back() {
                self.bytes = self.bytes.saturating_sub(bytes);
            }
        }
    }
}

/// Estimates the size of a fact in bytes.
fn fact_bytes(fact: &Fact) -> usize {
    const FACT_OVERHEAD_BYTES: usize = 300;
    let text_bytes = match fact {
        Fact::ModelText { text, provider_signature }
        | Fact::ModelReasoning { text, provider_signature } => {
            text.len() + provider_signature.as_ref().map_or(0, String::len)
        }
        Fact::PromptSubmitted { text, .. }
        | Fact::SystemPromptSet { text, .. }
        | Fact::ContextChanged { text, .. } => text.len(),
        Fact::ContextCompacted { summary, .. } => summary.len(),
        Fact::ToolCalled { arguments, provider_signature, .. } => {
            arguments.len() + provider_signature.as_ref().map_or(0, String::len)
        }
        Fact::PermissionAsked { preview, .. } => preview.as_ref().map_or(0, String::len),
        Fact::FilesChanging { changes, .. } => changes.len() * 250,
        Fact::CallSettled { outcome, seen_files, .. } => {
            outcome_bytes(outcome) + seen_files.len() * 150
        }
        Fact::FactsLost { reason, .. } => reason.len(),
        Fact::SessionOpened { .. }
        | Fact::ModeChanged { .. }
        | Fact::AgentChanged { .. }
        | Fact::ModelChanged { .. }
        | Fact::SessionRenamed { .. }
        | Fact::SideRequestEnded { .. }
        | Fact::SessionForked { .. }
        | Fact::OutputsPruned { .. }
        | Fact::Rewound { .. }
        | Fact::PromptWithdrawn { .. }
        | Fact::TurnStarted { .. }
        | Fact::PromptSteered { .. }
        | Fact::StepStarted { .. }
        | Fact::StepEnded { .. }
        | Fact::StepRetrying { .. }
        | Fact::TurnInterrupted { .. }
        | Fact::TurnEnded { .. }
        | Fact::PermissionAnswered { .. }
        | Fact::ApprovalsRevoked
        | Fact::CallStarted { .. }
        | Fact::QuestionAsked { .. }
        | Fact::QuestionAnswered { .. }
        | Fact::SubagentStarted { .. }
        | Fact::FilesUnchanged { .. }
        | Fact::HookRan { .. } => 0,
    };
    FACT_OVERHEAD_BYTES + text_bytes
}

fn outcome_bytes(outcome: &CallOutcome) -> usize {
    let display_bytes = match outcome {
        CallOutcome::Completed { output } => match &output.display {
            OutputDisplay::Diff { unified_diff } => unified_diff.len(),
            OutputDisplay::Checklist { items } => items.len() * 100,
            OutputDisplay::Terminal { colored_text } => {
                colored_text.as_ref().map_or(0, String::len)
            }
            OutputDisplay::Text | OutputDisplay::Markdown => 0,
        },
        CallOutcome::Failed { .. }
        | CallOutcome::Denied { .. }
        | CallOutcome::Interrupted { .. }
        | CallOutcome::ResultUnknown => 0,
    };
    outcome.text().len() + display_bytes
}
