//! The clock and the source of unique ids, for the `InputTimeAndId` of every input.

use crate::session::InputTimeAndId;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use windlass_protocol::{OpId, UnixMillis};

/// Returns the current time and a new unique id.
#[allow(clippy::disallowed_methods, reason = "the only place that reads the clock and creates ids")]
pub(crate) fn new_stamp() -> InputTimeAndId {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let at = UnixMillis(since.unwrap_or_default().as_millis() as u64);
    InputTimeAndId { at, id: uuid::Uuid::now_v7() }
}

/// Returns a new id for an operation.
pub fn new_op_id() -> OpId {
    OpId(new_stamp().id)
}

/// Returns the time of a clock that cannot be set, to measure durations.
#[allow(clippy::disallowed_methods, reason = "the only place that reads the clock")]
pub(crate) fn steady_now() -> Instant {
    Instant::now()
}

/// The clock of a session. During a turn it does not follow the machine's clock, so that setting
/// that clock neither ends nor extends the turn.
#[derive(Default)]
pub(crate) struct SessionClock {
    /// The machine's clock when the turn started, and the steady clock at the same time.
    anchor: Option<(UnixMillis, Instant)>,
}

impl SessionClock {
    /// Returns the current time and a new unique id.
    pub(crate) fn stamp(&mut self, is_turn_open: bool) -> InputTimeAndId {
        let stamp = new_stamp();
        InputTimeAndId { at: self.read(is_turn_open, stamp.at, steady_now()), ..stamp }
    }

    fn read(&mut self, is_turn_open: bool, machine: UnixMillis, steady: Instant) -> UnixMillis {
        match self.anchor.filter(|_| is_turn_open) {
            Some((start, steady_start)) => {
                let elapsed = steady.saturating_duration_since(steady_start);
                UnixMillis(start.0.saturating_add(duration_millis(elapsed)))
            }
            None => {
                self.anchor = Some((machine, steady));
                machine
            }
        }
    }
}

/// Returns a duration in milliseconds.
pub(crate) fn duration_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{SessionClock, steady_now};
    use std::time::Duration;
    use windlass_protocol::UnixMillis;

    #[test]
    fn the_clock_of_a_session_ignores_steps_of_the_machine_clock_during_a_turn() {
        let (mut clock, start) = (SessionClock::default(), steady_now());
        let later = |seconds| start + Duration::from_secs(seconds);
        let mut read = |is_turn_open, machine: u64, seconds| {
            clock.read(is_turn_open, UnixMillis(machine), later(seconds)).0
        };
        assert_eq!(read(false, 1_000_000, 0), 1_000_000);
        assert_eq!(read(true, 1_001_000, 1), 1_001_000);
        assert_eq!(read(true, 40_000_000_000, 2), 1_002_000, "set forward");
        assert_eq!(read(true, 5, 3), 1_003_000, "set back");
        assert_eq!(read(false, 5_000, 4), 5_000, "followed again between turns");
        assert_eq!(read(true, 6_000, 5), 6_000);
    }
}
