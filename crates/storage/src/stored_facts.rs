//! Decodes a page of the log as the database returns it: one text, with facts separated by
//! characters that JSON does not contain.

use crate::StorageError;
use crate::blob::BlobStore;
use crate::fact_rows::FACT_FORMAT_VERSION;
use windlass_protocol::{BlobRef, Fact, FactRecord, LogSeq, SessionId, UnixMillis};

/// Selects the facts after a position, up to a limit, as one row. Each row is a message between two
/// threads, and a long session has a hundred thousand facts.
pub(crate) const FACTS_AFTER_QUERY: &str =
    "SELECT group_concat(concat_ws(char(31), seq, at, format, ifnull(blob, ''), body), char(30))
     FROM (SELECT seq, at, format, body, blob FROM event
           WHERE session = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3)";

/// Selects the last facts about prompts and turns, in the same format.
pub(crate) const TURN_FACTS_QUERY: &str =
    "SELECT group_concat(concat_ws(char(31), seq, at, format, ifnull(blob, ''), body), char(30))
     FROM (SELECT seq, at, format, body, blob FROM event INDEXED BY event_turns
           WHERE kind IN ('prompt_submitted', 'turn_started', 'turn_ended', 'rewound')
             AND session = ?1 AND seq > ?2 ORDER BY seq DESC LIMIT ?3)";

/// Separates facts; `FIELD_SEPARATOR` separates the fields of a fact: position, time, format, blob,
/// body.
const FACT_SEPARATOR: char = '\u{1e}';
const FIELD_SEPARATOR: char = '\u{1f}';

/// Parses the facts of a page, in order.
pub(crate) fn parse_page(
    session: SessionId,
    page: &str,
    blobs: &BlobStore,
) -> Result<Vec<FactRecord>, StorageError> {
    let mut records = Vec::new();
    for row in page.split(FACT_SEPARATOR) {
        records.push(parse_record(session, row, blobs)?);
    }
    // The query returns them in order, but `group_concat` does not guarantee it.
    records.sort_by_key(|record| record.seq);
    Ok(records)
}

fn parse_record(
    session: SessionId,
    row: &str,
    blobs: &BlobStore,
) -> Result<FactRecord, StorageError> {
    let mut fields = row.splitn(5, FIELD_SEPARATOR);
    let seq: LogSeq = fields.next().and_then(|seq| seq.parse().ok()).unwrap_or_default();
    let unreadable = |reason: String| StorageError::Unreadable { session, seq, reason };
    let mut number = || fields.next().and_then(|number| number.parse::<i64>().ok());
    let (Some(at), Some(format)) = (number(), number()) else {
        return Err(unreadable("its row is damaged".into()));
    };
    if format > FACT_FORMAT_VERSION {
        return Err(unreadable("a newer version of Windlass wrote it".into()));
    }
    let (blob, body) = (fields.next().and_then(BlobRef::parse), fields.next());
    let fact: Result<Fact, serde_json::Error> = match (body, blob) {
        (Some(body), _) => serde_json::from_str(body),
        (None, Some(blob)) => serde_json::from_slice(&blobs.get(&blob)?),
        (None, None) => return Err(unreadable("its text is missing".into())),
    };
    let fact = fact.map_err(|error| unreadable(error.to_string()))?;
    Ok(FactRecord { session, seq, at: UnixMillis(at as u64), fact })
}
