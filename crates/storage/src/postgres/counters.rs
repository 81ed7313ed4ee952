//! Counters of a node, for its metrics.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the buckets of a `TimeHistogram`, in seconds.
pub const TIME_BOUNDS: [f64; 13] =
    [0.001, 0.002, 0.005, 0.01, 0.015, 0.02, 0.05, 0.1, 0.5, 2.0, 10.0, 30.0, f64::MAX];

/// The numbers of a node since its start.
#[derive(Default)]
pub struct NodeCounters {
    /// Appends whose commit was flushed to the disk.
    pub(super) flushed_appends: TimeHistogram,
    /// Appends that are flushed by a later commit.
    pub(super) other_appends: TimeHistogram,
    pub(super) fenced_appends: AtomicU64,
    /// Sessions of which the database has lost facts.
    pub(super) shortened_logs: AtomicU64,
    /// Appends without an answer that had been written.
    pub(super) lost_answers_written: AtomicU64,
    /// Appends without an answer that had to be repeated.
    pub(super) lost_answers_repeated: AtomicU64,
    /// Sessions that were claimed because a client opened them.
    pub(super) opened_claims: AtomicU64,
    /// Times for which sessions waited for a node before this one claimed them.
    pub(super) due_claims: TimeHistogram,
}

/// A copy of `NodeCounters`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeCounts {
    pub flushed_appends: TimeCounts,
    pub other_appends: TimeCounts,
    pub fenced_appends: u64,
    pub shortened_logs: u64,
    pub lost_answers_written: u64,
    pub lost_answers_repeated: u64,
    pub opened_claims: u64,
    pub due_claims: TimeCounts,
}

/// Counts times by `TIME_BOUNDS`.
#[derive(Default)]
pub(super) struct TimeHistogram {
    buckets: [AtomicU64; TIME_BOUNDS.len()],
    micros: AtomicU64,
}

/// A copy of a histogram: its buckets are not cumulative.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TimeCounts {
    pub buckets: [u64; TIME_BOUNDS.len()],
    pub seconds: f64,
}

impl NodeCounters {
    /// Returns the numbers as they are now.
    pub fn counts(&self) -> NodeCounts {
        let number = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        NodeCounts {
            flushed_appends: self.flushed_appends.counts(),
            other_appends: self.other_appends.counts(),
            fenced_appends: number(&self.fenced_appends),
            shortened_logs: number(&self.shortened_logs),
            lost_answers_written: number(&self.lost_answers_written),
            lost_answers_repeated: number(&self.lost_answers_repeated),
            opened_claims: number(&self.opened_claims),
            due_claims: self.due_claims.counts(),
        }
    }
}

impl TimeHistogram {
    pub(super) fn add(&self, time: Duration) {
        let seconds = time.as_secs_f64();
        let bucket = TIME_BOUNDS.iter().zip(&self.buckets).find(|(bound, _)| seconds <= **bound);
        if let Some((_, bucket)) = bucket {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    fn counts(&self) -> TimeCounts {
        let buckets = self.buckets.each_ref().map(|bucket| bucket.load(Ordering::Relaxed));
        TimeCounts { buckets, seconds: self.micros.load(Ordering::Relaxed) as f64 / 1e6 }
    }
}

/// Adds one to a counter.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::TimeHistogram;
    use std::time::Duration;

    #[test]
    fn a_time_is_counted_in_the_first_bucket_that_it_fits_into() {
        let histogram = TimeHistogram::default();
        for millis in [0, 1, 3, 5, 31_000] {
            histogram.add(Duration::from_millis(millis));
        }
        let counts = histogram.counts();
        assert_eq!(counts.buckets, [2, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert!((counts.seconds - 31.009).abs() < 1e-9);
    }
}
