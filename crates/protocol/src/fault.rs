//! Failures that the user sees. `Fault` is a closed enum, so that every front end can say for each
//! variant what to do about it.

use crate::display_text::format_duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Reason why a turn ended without an answer, for the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub enum Fault {
    /// The provider rejected the API key, or no key is set.
    #[error("{message}")]
    Auth {
        /// Provider of the key, its source, and the provider's message.
        message: String,
    },
    /// The provider received too many requests.
    #[error("rate limited by the provider: {message}{}", describe_wait(*retry_after_ms))]
    RateLimited {
        /// Message of the provider.
        #[serde(default)]
        message: String,
        /// Wait time that the provider requested, if any.
        retry_after_ms: Option<u64>,
    },
    /// The conversation no longer fits the model's context window.
    #[error("the conversation exceeds the model's context window ({message})")]
    ContextOverflow {
        /// Message of the provider.
        message: String,
    },
    /// The connection failed or the stream was cut off.
    #[error("the connection to the model failed: {message}")]
    Network {
        /// Description of the failure.
        message: String,
    },
    /// The name of the model's server does not resolve.
    #[error("the model's server was not found: {message}")]
    HostNotFound {
        /// Description of the failure.
        message: String,
    },
    /// The model or its provider declined to answer.
    #[error("the model declined to answer: {message}")]
    ModelRefused {
        /// Message of the model or provider.
        message: String,
    },
    /// The provider failed or sent an unreadable response.
    #[error("the provider failed{}: {message}", status.map(|s| format!(" with status {s}")).unwrap_or_default())]
    Provider {
        /// HTTP status, if there is one.
        status: Option<u16>,
        /// Message of the provider.
        message: String,
        /// Wait time that the provider requested, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_ms: Option<u64>,
    },
    /// The log could not be written; Windlass starts nothing more.
    #[error("session log failure: {message}")]
    Storage {
        /// Description of the failure.
        message: String,
    },
    /// Another process has the session open.
    #[error("{message}")]
    SessionBusy {
        /// The session, and what to do.
        message: String,
    },
    /// Another process has taken the session over, and goes on with it.
    #[error("{message}")]
    SessionMoved {
        /// The session, and what to do.
        message: String,
    },
    /// A setting is missing or wrong.
    #[error("{message}")]
    Config {
        /// Description of the wrong setting.
        message: String,
    },
    /// The host refused a request.
    #[error("{message}")]
    Refused {
        /// The reason, and what to do.
        message: String,
    },
    /// A bug in Windlass itself.
    #[error("internal error: {message}")]
    Internal {
        /// Description of the bug.
        message: String,
    },
}

impl Fault {
    /// Returns a `Fault::Provider` with the provider's own message.
    pub fn from_provider(status: Option<u16>, message: impl Into<String>) -> Fault {
        Fault::Provider { status, message: message.into(), retry_after_ms: None }
    }

    /// Returns the fault without the requested wait, for a message that names the wait itself.
    pub fn without_wait(&self) -> Fault {
        let mut fault = self.clone();
        if let Fault::RateLimited { retry_after_ms, .. } = &mut fault {
            *retry_after_ms = None;
        }
        fault
    }

    /// Returns the delay before the next attempt, or `None` to give up. This is the only retry
    /// policy.
    pub fn retry_delay_ms(&self, state: &RetryState) -> Option<u64> {
        let requested = match self {
            Fault::RateLimited { retry_after_ms, .. } => *retry_after_ms,
            Fault::Network { .. } | Fault::HostNotFound { .. } => None,
            // An unreadable response may have been cut off or garbled in transit.
            Fault::Provider { status: None | Some(408 | 409 | 425), retry_after_ms, .. } => {
                *retry_after_ms
            }
            Fault::Provider { status: Some(500..=599), retry_after_ms, .. } => *retry_after_ms,
            Fault::Provider { .. }
            | Fault::Auth { .. }
            | Fault::ContextOverflow { .. }
            | Fault::ModelRefused { .. }
            | Fault::Storage { .. }
            | Fault::SessionBusy { .. }
            | Fault::SessionMoved { .. }
            | Fault::Config { .. }
            | Fault::Refused { .. }
            | Fault::Internal { .. } => return None,
        };
        // Jitter keeps clients that failed together from retrying together; the delay is never
        // shorter than the provider requested.
        let backoff = 1_000 << (state.failed_attempts.clamp(1, 6) - 1);
        let base = requested.filter(|requested| *requested > 0).unwrap_or(backoff);
        let delay = base.saturating_add(state.jitter_seed % (base / 4 + 1));
        let within_limits = base <= RetryState::MAX_WAIT_MS
            && state.elapsed_ms.saturating_add(base) <= RetryState::MAX_TOTAL_MS;
        (state.failed_attempts < self.max_attempts() && within_limits).then_some(delay)
    }

    /// Returns the number of failures after which `retry_delay_ms` gives up. A name that does not
    /// resolve is usually a wrong name, or the machine is offline.
    pub fn max_attempts(&self) -> u32 {
        match self {
            Fault::HostNotFound { .. } => RetryState::MAX_LOOKUP_ATTEMPTS,
            _ => RetryState::MAX_ATTEMPTS,
        }
    }
}

/// Number and duration of the failed attempts of a request, for `Fault::retry_delay_ms`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetryState {
    /// Number of consecutive failed attempts.
    pub failed_attempts: u32,
    /// Time since the first of them failed.
    pub elapsed_ms: u64,
    /// An unpredictable number, for the jitter of `retry_delay_ms`.
    pub jitter_seed: u64,
}

impl RetryState {
    const MAX_ATTEMPTS: u32 = 5;
    const MAX_LOOKUP_ATTEMPTS: u32 = 3;
    /// Longest wait that a provider may request; if it requests more, there is no retry.
    pub const MAX_WAIT_MS: u64 = 90_000;
    /// Total time after which `retry_delay_ms` gives up.
    pub const MAX_TOTAL_MS: u64 = 300_000;
}

/// Describes the wait time that a provider requested.
fn describe_wait(retry_after_ms: Option<u64>) -> String {
    match retry_after_ms {
        Some(wait) if wait >= 1000 => {
            format!(" (retry after {})", format_duration(wait))
        }
        Some(_) | None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retry_state(failed: u32) -> RetryState {
        RetryState { failed_attempts: failed, ..RetryState::default() }
    }

    fn rate_limited(wait_ms: Option<u64>) -> Fault {
        Fault::RateLimited { message: String::new(), retry_after_ms: wait_ms }
    }

    #[test]
    fn a_requested_wait_is_named() {
        let message = rate_limited(Some(3_600_000)).to_string();
        assert!(message.ends_with("(retry after 1 h 00 m)"), "{message}");
        assert!(!rate_limited(Some(20)).to_string().contains("after"));
        assert!(!rate_limited(None).to_string().contains("after"));
        assert!(!rate_limited(Some(3_600_000)).without_wait().to_string().contains("after"));
    }

    #[test]
    fn retries_are_bounded_in_number_and_in_time() {
        let cut = Fault::Network { message: "cut".into() };
        let waits: Vec<Option<u64>> =
            (1..=5).map(|n| cut.retry_delay_ms(&retry_state(n))).collect();
        assert_eq!(waits, [Some(1_000), Some(2_000), Some(4_000), Some(8_000), None]);
        let unknown = Fault::HostNotFound { message: "x.invalid".into() };
        let waits: Vec<Option<u64>> =
            (1..=3).map(|n| unknown.retry_delay_ms(&retry_state(n))).collect();
        assert_eq!(waits, [Some(1_000), Some(2_000), None]);
        assert_eq!(cut.retry_delay_ms(&RetryState { elapsed_ms: 299_500, ..retry_state(1) }), None);
        assert_eq!(rate_limited(Some(86_400_000)).retry_delay_ms(&retry_state(1)), None);
    }

    #[test]
    fn delays_have_jitter_and_are_never_shorter_than_requested() {
        let mut seen = std::collections::BTreeSet::new();
        for jitter_seed in [0, 1, 77_777, 123_456_789, u64::MAX] {
            let retry_state = RetryState { jitter_seed, ..retry_state(1) };
            let wait = rate_limited(Some(30_000)).retry_delay_ms(&retry_state).unwrap();
            assert!((30_000..=37_500).contains(&wait), "{wait}");
            seen.insert(wait);
        }
        assert!(seen.len() > 2, "{seen:?}");
        assert_eq!(rate_limited(Some(5)).retry_delay_ms(&retry_state(1)), Some(5));
        assert_eq!(
            rate_limited(Some(0)).retry_delay_ms(&retry_state(1)),
            Some(1_000),
            "a requested delay of 0 is ignored"
        );
        let late = RetryState { jitter_seed: u64::MAX, ..retry_state(1) };
        assert!(
            rate_limited(Some(90_000)).retry_delay_ms(&late).is_some(),
            "jitter does not count towards the limit"
        );
        let down =
            Fault::Provider { status: Some(503), message: String::new(), retry_after_ms: Some(7) };
        assert_eq!(down.retry_delay_ms(&retry_state(1)), Some(7));
    }

    #[test]
    fn permanent_failures_are_not_retried() {
        assert_eq!(Fault::Auth { message: String::new() }.retry_delay_ms(&retry_state(1)), None);
        for (status, retried) in [
            (200, false),
            (400, false),
            (404, false),
            (408, true),
            (409, true),
            (422, false),
            (500, true),
            (529, true),
        ] {
            let fault = Fault::from_provider(Some(status), "");
            assert_eq!(fault.retry_delay_ms(&retry_state(1)).is_some(), retried, "{status}");
        }
    }
}
