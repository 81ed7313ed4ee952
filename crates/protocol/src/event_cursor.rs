//! Positions in the log that survive the loss of its end: [`LogPosition`] and [`EventCursor`].
//!
//! A fact that needed no disk sync can be lost when the machine loses power, and its `LogSeq` is then
//! used again for another fact. The epoch of the writer tells both apart: it grows with every claim,
//! and is a time, so that a lost claim does not repeat it.

use crate::event::FactRecord;
use crate::ids_and_timestamps::{LogSeq, SessionId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// Maximum bytes of the text form of an [`EventCursor`].
pub const MAX_CURSOR_BYTES: usize = 4096;

/// A position in the log of one session, with the epoch of the claim that wrote it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct LogPosition {
    /// Position in the log; 0 is before the first fact.
    pub seq: LogSeq,
    /// Epoch of the fact at this position; `None` if unknown, which matches every epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
}

impl LogPosition {
    /// The position before the first fact.
    pub const START: LogPosition = LogPosition { seq: 0, epoch: None };

    /// Returns a position whose epoch is not checked.
    pub fn unchecked(seq: LogSeq) -> LogPosition {
        LogPosition { seq, epoch: None }
    }

    /// Returns the position of a fact.
    pub fn of(record: &FactRecord) -> LogPosition {
        LogPosition { seq: record.seq, epoch: Some(record.epoch).filter(|epoch| *epoch > 0) }
    }
}

/// The events that a client of a session has received: the last fact of the session and of each of
/// its running subagents. Text form: `SEQ.EPOCH`, then `~SESSION:SEQ.EPOCH` for each subagent. A
/// bare `SEQ` has no epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventCursor {
    /// Position in the log of the session.
    pub position: LogPosition,
    /// Positions in the logs of its subagents.
    pub subagents: BTreeMap<SessionId, LogPosition>,
}

impl From<LogPosition> for EventCursor {
    fn from(position: LogPosition) -> EventCursor {
        EventCursor { position, subagents: BTreeMap::new() }
    }
}

impl fmt::Display for LogPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.epoch {
            Some(epoch) => write!(f, "{}.{epoch}", self.seq),
            None => write!(f, "{}", self.seq),
        }
    }
}

impl fmt::Display for EventCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.position)?;
        for (session, position) in &self.subagents {
            write!(f, "~{session}:{position}")?;
        }
        Ok(())
    }
}

/// The text is not an [`EventCursor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidCursor;

impl fmt::Display for InvalidCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this is not a cursor; use the `id` of an event, or the number of a fact")
    }
}

impl std::error::Error for InvalidCursor {}

/// Parses digits without sign or leading zeros, so that every number has one text form.
fn parse_number(text: &str) -> Result<u64, InvalidCursor> {
    let has_leading_zero = text.len() > 1 && text.starts_with('0');
    match !has_leading_zero && text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => text.parse().map_err(|_| InvalidCursor),
        false => Err(InvalidCursor),
    }
}

impl FromStr for LogPosition {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<LogPosition, InvalidCursor> {
        Ok(match text.split_once('.') {
            Some((seq, epoch)) => {
                LogPosition { seq: parse_number(seq)?, epoch: Some(parse_number(epoch)?) }
            }
            None => LogPosition::unchecked(parse_number(text)?),
        })
    }
}

impl FromStr for EventCursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<EventCursor, InvalidCursor> {
        if text.len() > MAX_CURSOR_BYTES {
            return Err(InvalidCursor);
        }
        let mut parts = text.split('~');
        let position = parts.next().ok_or(InvalidCursor)?.parse()?;
        let mut subagents = BTreeMap::new();
        for part in parts {
            let (session, position) = part.split_once(':').ok_or(InvalidCursor)?;
            let id: SessionId = session.parse().map_err(|_| InvalidCursor)?;
            if id.to_string() != session || subagents.insert(id, position.parse()?).is_some() {
                return Err(InvalidCursor);
            }
        }
        Ok(EventCursor { position, subagents })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use uuid::Uuid;

    fn position() -> impl Strategy<Value = LogPosition> {
        (any::<u64>(), any::<Option<u64>>()).prop_map(|(seq, epoch)| LogPosition { seq, epoch })
    }

    proptest! {
        #[test]
        fn a_cursor_survives_its_text_form(
            position in position(),
            subagents in prop::collection::btree_map(any::<u128>(), self::position(), 0..12),
        ) {
            let id = |(id, position)| (SessionId(Uuid::from_u128(id)), position);
            let cursor = EventCursor { position, subagents: subagents.into_iter().map(id).collect() };
            prop_assert_eq!(cursor.to_string().parse::<EventCursor>(), Ok(cursor));
        }

        #[test]
        fn a_text_is_the_form_of_its_cursor_or_no_cursor(text in "[0-9a-f.~:-]{0,60}") {
            if let Ok(cursor) = text.parse::<EventCursor>() {
                prop_assert_eq!(cursor.to_string(), text);
            }
        }
    }

    #[test]
    fn unreadable_cursors_are_refused() {
        for text in ["", ".", "1.", ".1", "+1", "-1", "01", "1.2.3", "1~", "1~x:1", " 1", "1.2~:3"]
        {
            assert_eq!(text.parse::<EventCursor>(), Err(InvalidCursor), "{text:?}");
        }
        let id = Uuid::from_u128(7);
        assert!(format!("5.9~{id}:1.2").parse::<EventCursor>().is_ok());
        assert!(format!("5.9~{id}:1.2~{id}:1.2").parse::<EventCursor>().is_err());
        assert!("1".repeat(MAX_CURSOR_BYTES + 1).parse::<EventCursor>().is_err());
    }
}
