//! Delays between attempts to reach a server.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// First delay: a server that restarts is back soon.
const FIRST_DELAY_MS: u64 = 250;
/// Longest delay, so that a user who waits sees the server at once.
const MAX_DELAY_MS: u64 = 10_000;

/// A delay that doubles with each attempt, 25 % more or less, so that clients that lost the same
/// server do not come back together.
#[derive(Default)]
pub(super) struct ReconnectDelay {
    attempts: u32,
    jitter: RandomState,
}

impl ReconnectDelay {
    /// Returns the delay before the next attempt.
    pub(super) fn next_delay(&mut self) -> Duration {
        let delay = FIRST_DELAY_MS << self.attempts.min(10);
        let delay = delay.min(MAX_DELAY_MS);
        self.attempts = self.attempts.saturating_add(1);
        let spread = delay / 2;
        let jitter = self.jitter.hash_one(self.attempts) % (spread + 1);
        Duration::from_millis(delay - spread / 2 + jitter)
    }

    /// Starts again with the first delay.
    pub(super) fn reset(&mut self) {
        self.attempts = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_ten_seconds_and_differ_between_clients() {
        let delays = || {
            let mut delay = ReconnectDelay::default();
            (0..8).map(|_| delay.next_delay()).collect::<Vec<_>>()
        };
        let expected = [250, 500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000];
        let clients: Vec<_> = (0..4).map(|_| delays()).collect();
        for delays in &clients {
            for (delay, expected) in delays.iter().zip(expected) {
                let millis = u64::try_from(delay.as_millis()).unwrap();
                assert!((expected * 3 / 4..=expected * 5 / 4).contains(&millis), "{millis}");
            }
        }
        assert!(clients.windows(2).any(|pair| pair[0] != pair[1]));
    }
}
