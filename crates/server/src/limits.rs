//! Limits on the number of requests and streams of each client, and on the time that it may take.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;
use windlass_protocol::RequestError;
use windlass_protocol::mutex_lock::lock;

/// Number of clients above which those that are below all limits are forgotten.
const MAX_IDLE_CLIENTS: usize = 1_024;

/// A limit on the rate of something, with bursts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateLimit {
    /// Number that is allowed at once.
    pub(crate) burst: u32,
    /// Time after which one more is allowed.
    pub(crate) interval: Duration,
}

/// Requests that a token may send: 50 a second, and 200 at once.
pub(crate) const REQUEST_RATE: RateLimit =
    RateLimit { burst: 200, interval: Duration::from_millis(20) };
/// Attempts of all pages together to log in: 10 a minute.
pub(crate) const LOGIN_RATE: RateLimit = RateLimit { burst: 10, interval: Duration::from_secs(6) };

/// Counts something against a [`RateLimit`], by client.
pub(crate) struct RateLimiter {
    limit: RateLimit,
    /// By client, the time at which its burst is available in full again.
    full_at: Mutex<HashMap<String, Instant>>,
}

impl RateLimiter {
    pub(crate) fn new(limit: RateLimit) -> RateLimiter {
        RateLimiter { limit, full_at: Mutex::default() }
    }

    /// Counts one more for a client, or returns the error that it must wait.
    pub(crate) fn count(&self, client: &str, now: Instant) -> Result<(), RequestError> {
        let mut clients = lock(&self.full_at);
        if clients.len() > MAX_IDLE_CLIENTS {
            clients.retain(|_, full_at| *full_at > now);
        }
        let full_at = clients.get(client).copied().unwrap_or(now).max(now);
        let full_at = full_at + self.limit.interval;
        let wait =
            full_at.duration_since(now).saturating_sub(self.limit.interval * self.limit.burst);
        if wait.is_zero() {
            clients.insert(client.to_owned(), full_at);
            return Ok(());
        }
        let retry_after_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1);
        let text = "Too many requests. Wait before the next one.".to_owned();
        Err(RequestError::TooMany { text, retry_after_ms })
    }
}

/// A limit on the number of something that clients have at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotLimit {
    /// Maximum number of a client.
    pub(crate) by_client: usize,
    /// Maximum number of all clients together.
    pub(crate) total: usize,
    /// Message to a client above the limit.
    pub(crate) text: &'static str,
    /// Time after which such a client may try again.
    pub(crate) retry_after_ms: u64,
}

/// The slots of all clients of a listener, below a [`SlotLimit`].
#[derive(Clone)]
pub(crate) struct ClientSlots {
    counts: Arc<Mutex<SlotCounts>>,
    limit: SlotLimit,
}

#[derive(Default)]
struct SlotCounts {
    by_client: HashMap<String, usize>,
    total: usize,
}

/// A slot of a client, which is free again when it is dropped.
pub(crate) struct ClientSlot {
    client: String,
    counts: Arc<Mutex<SlotCounts>>,
}

impl ClientSlots {
    pub(crate) fn new(limit: SlotLimit) -> ClientSlots {
        ClientSlots { counts: Arc::default(), limit }
    }

    /// Returns the number of slots that are taken.
    pub(crate) fn count(&self) -> usize {
        lock(&self.counts).total
    }

    /// Takes a slot.
    pub(crate) fn take(&self, client: &str) -> Result<ClientSlot, RequestError> {
        let mut counts = lock(&self.counts);
        let count = counts.by_client.get(client).copied().unwrap_or(0);
        if count >= self.limit.by_client || counts.total >= self.limit.total {
            let (text, retry_after_ms) = (self.limit.text.to_owned(), self.limit.retry_after_ms);
            return Err(RequestError::TooMany { text, retry_after_ms });
        }
        counts.by_client.insert(client.to_owned(), count + 1);
        counts.total += 1;
        Ok(ClientSlot { client: client.to_owned(), counts: Arc::clone(&self.counts) })
    }
}

impl Drop for ClientSlot {
    fn drop(&mut self) {
        let mut counts = lock(&self.counts);
        counts.total = counts.total.saturating_sub(1);
        let left = counts.by_client.get(&self.client).map_or(0, |count| count.saturating_sub(1));
        match left {
            0 => counts.by_client.remove(&self.client),
            left => counts.by_client.insert(self.client.clone(), left),
        };
    }
}

/// Lifts the time limit for a client to read, until it is dropped.
pub(crate) struct UnlimitedWrites(Arc<AtomicBool>);

impl UnlimitedWrites {
    /// Lifts the limit of a connection, which reads `is_unlimited`.
    pub(crate) fn new(is_unlimited: Arc<AtomicBool>) -> UnlimitedWrites {
        is_unlimited.store(true, Ordering::Relaxed);
        UnlimitedWrites(is_unlimited)
    }
}

impl Drop for UnlimitedWrites {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_may_use_its_burst_and_then_the_rate() {
        let limiter = RateLimiter::new(REQUEST_RATE);
        let now = Instant::now();
        let allowed = (0..300).filter(|_| limiter.count("a", now).is_ok()).count();
        assert_eq!(allowed, 200);
        assert!(limiter.count("b", now).is_ok(), "another client has its own burst");
        let later = now + Duration::from_secs(1);
        let allowed = (0..300).filter(|_| limiter.count("a", later).is_ok()).count();
        assert_eq!(allowed, 50);
        match limiter.count("a", later) {
            Err(RequestError::TooMany { retry_after_ms, .. }) => assert_eq!(retry_after_ms, 20),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn slots_are_limited_by_client_and_in_total_and_are_given_back() {
        let limit = SlotLimit { by_client: 2, total: 3, text: "Too many.", retry_after_ms: 5 };
        let slots = ClientSlots::new(limit);
        let first = slots.take("a").unwrap();
        let second = slots.take("a").unwrap();
        assert!(slots.take("a").is_err());
        let other = slots.take("b").unwrap();
        assert!(slots.take("b").is_err(), "the total is reached");
        drop(first);
        let third = slots.take("a").unwrap();
        drop((second, third, other));
        assert!(lock(&slots.counts).by_client.is_empty());
        assert_eq!(lock(&slots.counts).total, 0);
    }
}
