//! A page of a log as it comes out of the database: one text, facts apart by characters that JSON
//! does not have.

use crate::Error;
use crate::blob::Blobs;
use crate::sqlite::FACT_FORMAT;
use windlass_protocol::{BlobRef, Fact, Millis, Record, Seq, SessionId};

/// The facts after a position, at most so many. A page is one row: each row is a message between two
/// threads, and a long session has a hundred thousand facts.
pub(crate) const AFTER: &str =
    "SELECT group_concat(concat_ws(char(31), seq, at, format, ifnull(blob, ''), body), char(30))
     FROM (SELECT seq, at, format, body, blob FROM event
           WHERE session = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3)";

/// The same of the last facts that say how turns follow each other.
pub(crate) const LANDMARKS: &str =
    "SELECT group_concat(concat_ws(char(31), seq, at, format, ifnull(blob, ''), body), char(30))
     FROM (SELECT seq, at, format, body, blob FROM event INDEXED BY event_landmark
           WHERE kind IN ('prompted', 'turn_started', 'turn_ended', 'reverted')
             AND session = ?1 AND seq > ?2 ORDER BY seq DESC LIMIT ?3)";

/// Between two facts, and between the fields of one: position, time, format, blob, body.
const FACTS: char = '\u{1e}';
const FIELDS: char = '\u{1f}';

/// The facts of a page, in order.
pub(crate) fn read(session: SessionId, page: &str, blobs: &Blobs) -> Result<Vec<Record>, Error> {
    let mut records = Vec::new();
    for row in page.split(FACTS) {
        records.push(record(session, row, blobs)?);
    }
    // The database gives them in order, but does not promise to.
    records.sort_by_key(|record| record.seq);
    Ok(records)
}

fn record(session: SessionId, row: &str, blobs: &Blobs) -> Result<Record, Error> {
    let mut fields = row.splitn(5, FIELDS);
    let seq: Seq = fields.next().and_then(|seq| seq.parse().ok()).unwrap_or_default();
    let unreadable = |reason: String| Error::Unreadable { session, seq, reason };
    let mut number = || fields.next().and_then(|number| number.parse::<i64>().ok());
    let (Some(at), Some(format)) = (number(), number()) else {
        return Err(unreadable("its row is damaged".into()));
    };
    if format > FACT_FORMAT {
        return Err(unreadable("a newer windlass wrote it".into()));
    }
    let (blob, body) = (fields.next().and_then(BlobRef::parse), fields.next());
    let fact: Result<Fact, serde_json::Error> = match (body, blob) {
        (Some(body), _) => serde_json::from_str(body),
        (None, Some(blob)) => serde_json::from_slice(&blobs.get(&blob)?),
        (None, None) => return Err(unreadable("its text is missing".into())),
    };
    let fact = fact.map_err(|error| unreadable(error.to_string()))?;
    Ok(Record { session, seq, at: Millis(at as u64), fact })
}
