//! What can go wrong for a person, closed so that every front end words each one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A reason a turn ended without an answer, for the person who asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub enum Fault {
    /// The provider did not accept the key.
    #[error("the provider did not accept the key ({message})")]
    Auth {
        /// What the provider said.
        message: String,
    },
    /// Too many requests.
    #[error("the provider asks to slow down")]
    RateLimited {
        /// How long the provider asked us to wait, if it said.
        wait_ms: Option<u64>,
    },
    /// The conversation no longer fits the model.
    #[error("the conversation is longer than the model can take ({message})")]
    Overflow {
        /// What the provider said.
        message: String,
    },
    /// The connection failed or the stream was cut.
    #[error("the connection to the model failed: {message}")]
    Network {
        /// What failed.
        message: String,
    },
    /// The model, or its provider, declined to answer.
    #[error("the model declined to answer: {message}")]
    Refused {
        /// What it said.
        message: String,
    },
    /// The provider failed or sent what nobody can read.
    #[error("the provider failed{}: {message}", status.map(|s| format!(" with status {s}")).unwrap_or_default())]
    Provider {
        /// The HTTP status, if there was one.
        status: Option<u16>,
        /// What it said.
        message: String,
    },
    /// The log could not be written; nothing more is started.
    #[error("the session's log failed: {message}")]
    Storage {
        /// What failed.
        message: String,
    },
    /// A setting is missing or wrong.
    #[error("{message}")]
    Config {
        /// What is wrong.
        message: String,
    },
    /// A defect of Windlass itself.
    #[error("windlass failed: {message}")]
    Internal {
        /// What happened.
        message: String,
    },
}

impl Fault {
    /// What to do next, in one sentence.
    pub fn hint(&self) -> &'static str {
        match self {
            Fault::Auth { .. } => "Check `api_key` of this provider in your windlass.jsonc.",
            Fault::RateLimited { .. } => "Wait a little, then run `windlass run --continue`.",
            Fault::Overflow { .. } => "Start a new session, or choose a model with more context.",
            Fault::Network { .. } => {
                "Check that `base_url` can be reached, then run `windlass run --continue`."
            }
            Fault::Refused { .. } => "Word the request differently.",
            Fault::Provider { .. } => "Try again with `windlass run --continue`.",
            Fault::Storage { .. } => {
                "Free some disk space or close the other windlass, then run `windlass run --continue`."
            }
            Fault::Config { .. } => {
                "`windlass config show` says what is set, `windlass session list` what there is."
            }
            Fault::Internal { .. } => "Please report this; WINDLASS_LOG=debug shows more.",
        }
    }

    /// The one retry policy: how long to wait before attempt `attempt + 1`, or `None` to give up.
    /// `attempt` counts from 1.
    pub fn retry_after(&self, attempt: u32) -> Option<u64> {
        const ATTEMPTS: u32 = 4;
        const LONGEST_WAIT_MS: u64 = 60_000;
        if attempt >= ATTEMPTS {
            return None;
        }
        let backoff = 500_u64 << attempt.min(6);
        match self {
            Fault::RateLimited { wait_ms: Some(wait) } if *wait > LONGEST_WAIT_MS => None,
            Fault::RateLimited { wait_ms } => Some(wait_ms.unwrap_or(0).max(backoff)),
            Fault::Network { .. } => Some(backoff),
            Fault::Provider { status: Some(408 | 409 | 425), .. } => Some(backoff),
            Fault::Provider { status: Some(status), .. } => (*status >= 500).then_some(backoff),
            Fault::Provider { status: None, .. }
            | Fault::Auth { .. }
            | Fault::Overflow { .. }
            | Fault::Refused { .. }
            | Fault::Storage { .. }
            | Fault::Config { .. }
            | Fault::Internal { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_are_bounded_in_number_and_in_time() {
        let cut = Fault::Network { message: "cut".into() };
        assert!(cut.retry_after(1).unwrap() < cut.retry_after(3).unwrap());
        assert_eq!(cut.retry_after(4), None);
        assert_eq!(Fault::RateLimited { wait_ms: Some(86_400_000) }.retry_after(1), None);
        assert_eq!(Fault::RateLimited { wait_ms: Some(30_000) }.retry_after(1), Some(30_000));
    }

    #[test]
    fn what_will_not_change_is_not_retried() {
        assert_eq!(Fault::Auth { message: String::new() }.retry_after(1), None);
        for (status, again) in [(400, false), (404, false), (408, true), (500, true), (529, true)] {
            let fault = Fault::Provider { status: Some(status), message: String::new() };
            assert_eq!(fault.retry_after(1).is_some(), again, "{status}");
        }
    }
}
