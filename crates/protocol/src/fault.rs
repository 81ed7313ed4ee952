//! What can go wrong for a person, closed so that every front end says of each one what to do there.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A reason a turn ended without an answer, for the person who asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub enum Fault {
    /// The provider did not accept the key, or there is none.
    #[error("{message}")]
    Auth {
        /// Whose key, where it came from, and what the provider said.
        message: String,
    },
    /// Too many requests.
    #[error("the provider asks to slow down: {message}")]
    RateLimited {
        /// What it said.
        #[serde(default)]
        message: String,
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
        /// How long it asked us to wait, if it said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wait_ms: Option<u64>,
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
    /// A provider's failure, in its words.
    pub fn provider(status: Option<u16>, message: impl Into<String>) -> Fault {
        Fault::Provider { status, message: message.into(), wait_ms: None }
    }

    /// The one retry policy: how long to wait before the next try, or `None` to give up.
    pub fn retry_after(&self, tries: &Tries) -> Option<u64> {
        let asked = match self {
            Fault::RateLimited { wait_ms, .. } => *wait_ms,
            Fault::Network { .. } => None,
            // What cannot be read may have been cut or garbled on its way.
            Fault::Provider { status: None | Some(408 | 409 | 425), wait_ms, .. } => *wait_ms,
            Fault::Provider { status: Some(500..=599), wait_ms, .. } => *wait_ms,
            Fault::Provider { .. }
            | Fault::Auth { .. }
            | Fault::Overflow { .. }
            | Fault::Refused { .. }
            | Fault::Storage { .. }
            | Fault::Config { .. }
            | Fault::Internal { .. } => return None,
        };
        // Spread, so that those who failed together do not come back together; never earlier than
        // the provider asked.
        let usual = 1_000 << (tries.failed.clamp(1, 6) - 1);
        let base = asked.filter(|asked| *asked > 0).unwrap_or(usual);
        let wait = base.saturating_add(tries.chance % (base / 4 + 1));
        let in_time = base <= Tries::LONGEST_WAIT_MS
            && tries.spent_ms.saturating_add(base) <= Tries::LONGEST_MS;
        (tries.failed < Tries::MOST && in_time).then_some(wait)
    }
}

/// How often and how long something has been tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tries {
    /// How many tries in a row have failed.
    pub failed: u32,
    /// How long it is since the first of them failed.
    pub spent_ms: u64,
    /// A number nobody can foresee.
    pub chance: u64,
}

impl Tries {
    /// After so many failures there is no further try.
    pub const MOST: u32 = 5;
    /// A provider that asks for more is not waited for.
    pub const LONGEST_WAIT_MS: u64 = 90_000;
    /// Nor is anything tried for longer than this in all.
    pub const LONGEST_MS: u64 = 300_000;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tries(failed: u32) -> Tries {
        Tries { failed, ..Tries::default() }
    }

    fn limited(wait_ms: Option<u64>) -> Fault {
        Fault::RateLimited { message: String::new(), wait_ms }
    }

    #[test]
    fn retries_are_bounded_in_number_and_in_time() {
        let cut = Fault::Network { message: "cut".into() };
        let waits: Vec<Option<u64>> = (1..=5).map(|n| cut.retry_after(&tries(n))).collect();
        assert_eq!(waits, [Some(1_000), Some(2_000), Some(4_000), Some(8_000), None]);
        assert_eq!(cut.retry_after(&Tries { spent_ms: 299_500, ..tries(1) }), None);
        assert_eq!(limited(Some(86_400_000)).retry_after(&tries(1)), None);
    }

    #[test]
    fn waits_are_spread_and_never_shorter_than_was_asked() {
        let mut seen = std::collections::BTreeSet::new();
        for chance in [0, 1, 77_777, 123_456_789, u64::MAX] {
            let tries = Tries { chance, ..tries(1) };
            let wait = limited(Some(30_000)).retry_after(&tries).unwrap();
            assert!((30_000..=37_500).contains(&wait), "{wait}");
            seen.insert(wait);
        }
        assert!(seen.len() > 2, "{seen:?}");
        assert_eq!(limited(Some(5)).retry_after(&tries(1)), Some(5));
        assert_eq!(limited(Some(0)).retry_after(&tries(1)), Some(1_000), "now is too soon");
        let late = Tries { chance: u64::MAX, ..tries(1) };
        assert!(limited(Some(90_000)).retry_after(&late).is_some(), "spreading is not asking");
        let down = Fault::Provider { status: Some(503), message: String::new(), wait_ms: Some(7) };
        assert_eq!(down.retry_after(&tries(1)), Some(7));
    }

    #[test]
    fn what_will_not_change_is_not_retried() {
        assert_eq!(Fault::Auth { message: String::new() }.retry_after(&tries(1)), None);
        for (status, again) in [
            (200, false),
            (400, false),
            (404, false),
            (408, true),
            (409, true),
            (422, false),
            (500, true),
            (529, true),
        ] {
            let fault = Fault::provider(Some(status), "");
            assert_eq!(fault.retry_after(&tries(1)).is_some(), again, "{status}");
        }
    }
}
