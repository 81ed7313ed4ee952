//! IDs, log positions and timestamps; all sort chronologically.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// A UUIDv7: 48 bits of milliseconds lead, so ids sort by time as bytes and as text, and
        /// do not wrap before the year 10889.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, uuid::Error> {
                Uuid::parse_str(text).map($name)
            }
        }
    )*};
}

ids! {
    /// ID of a session.
    SessionId;
    /// Permanent ID of a tool call: a call that runs again keeps it and counts its attempts
    /// (`CallStarted::attempt`).
    CallId;
    /// ID of a prompt of the user.
    PromptId;
    /// ID of an operation (`OpRequest`), which its sender chooses.
    OpId;
}

/// A position in the log of one session: 1, 2, 3, without gaps.
pub type LogSeq = u64;

/// Milliseconds since 1970, UTC.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct UnixMillis(pub u64);

impl UnixMillis {
    pub const PER_DAY: u64 = 24 * 60 * 60 * 1000;
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::{NoContext, Timestamp};

    fn id_at(seconds: u64) -> SessionId {
        SessionId(Uuid::new_v7(Timestamp::from_unix(NoContext, seconds, 0)))
    }

    #[test]
    fn ids_sort_by_time_as_bytes_and_as_text_across_centuries() {
        let timestamps = [1, 1_700_000_000, 1_786_700_000, 4_102_444_800, 253_402_300_799];
        for pair in timestamps.windows(2) {
            let (earlier, later) = (id_at(pair[0]), id_at(pair[1]));
            assert!(earlier < later);
            assert!(earlier.to_string() < later.to_string());
        }
    }

    #[test]
    fn an_id_survives_its_text_form() {
        let id = id_at(1_786_700_000);
        assert_eq!(id.to_string().parse::<SessionId>().unwrap(), id);
        assert!("not-an-id".parse::<SessionId>().is_err());
    }
}
