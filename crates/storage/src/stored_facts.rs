//! Decodes and verifies facts as the database returns them: one text, with facts separated by
//! characters that JSON does not contain.
//!
//! A fact that is missing or does not match its checksum is replaced by `Fact::FactsLost`, so that
//! damage costs that fact and not the session.

use crate::StorageError;
use crate::fact_rows::{FACT_FORMAT_VERSION, FactHeader};
use std::collections::BTreeMap;
use uuid::Uuid;
use windlass_protocol::event::DEFAULT_AGENT;
use windlass_protocol::{
    BlobRef, CallId, Fact, FactOrigin, FactRecord, LogPosition, LogSeq, ParentCall, RecordCheck,
    SessionId, SessionSummary, UnixMillis,
};

/// Separates facts; `FIELD_SEPARATOR` separates the fields of a fact: position, epoch, time, kind,
/// format, check, blob, origin, body.
const FACT_SEPARATOR: u8 = 0x1e;
const FIELD_SEPARATOR: u8 = 0x1f;

/// The columns of a fact as one text, for queries.
macro_rules! fact_text {
    () => {
        "concat_ws(char(31), seq, epoch, at, kind, format, lower(hex(\"check\")), \
         ifnull(blob, ''), ifnull(origin, ''), body)"
    };
}

/// Selects the facts from position ?2 to ?3 as one value, the session's `head`, and its last
/// stored position. It is one row: each row is a message between two threads, and a long session
/// has a hundred thousand facts. The value is a BLOB because damaged text may not be valid UTF-8.
pub(crate) const FACTS_QUERY: &str = concat!(
    "SELECT (SELECT head FROM session WHERE id = ?1),
            (SELECT max(seq) FROM event WHERE session = ?1),
            CAST(group_concat(",
    fact_text!(),
    ", char(30)) AS BLOB)
     FROM event WHERE session = ?1 AND seq BETWEEN ?2 AND ?3"
);

/// Selects one fact, in the same format. Used where a damaged page of the database makes
/// `FACTS_QUERY` fail.
pub(crate) const ONE_FACT_QUERY: &str =
    concat!("SELECT CAST(", fact_text!(), " AS BLOB) FROM event WHERE session = ?1 AND seq = ?2");

/// Selects the facts with row ids from ?1 to ?2 and their sessions, without an index.
pub(crate) const SCAN_QUERY: &str = concat!(
    "SELECT session, CAST(",
    fact_text!(),
    " AS BLOB) FROM event NOT INDEXED WHERE rowid BETWEEN ?1 AND ?2"
);

/// Selects the last ?2 facts about prompts and turns, in the same format.
pub(crate) const TURN_FACTS_QUERY: &str = concat!(
    "SELECT CAST(group_concat(text, char(30)) AS BLOB) FROM (SELECT ",
    fact_text!(),
    " AS text FROM event INDEXED BY event_turns
      WHERE kind IN ('prompt_submitted', 'turn_started', 'turn_ended', 'rewound')
        AND session = ?1 ORDER BY seq DESC LIMIT ?2)"
);

/// The start of the query of `Log::search`, in the same format, one fact per row.
pub(crate) const SEARCH_QUERY: &str = concat!(
    "SELECT CAST(",
    fact_text!(),
    " AS BLOB) FROM event WHERE kind IN ('prompt_submitted', 'model_text', 'session_renamed', \
     'tool_called', 'call_settled') AND session = "
);

/// A part of a log that is missing or damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogDamage {
    /// The position of the fact.
    pub seq: LogSeq,
    pub reason: String,
}

/// The blobs of facts that are too large for a row.
pub(crate) trait FactBlobs {
    /// Returns the size of a blob; `None` if it is missing.
    fn blob_bytes(&self, blob: &BlobRef) -> Option<usize>;

    /// Returns a blob; `None` if it is missing or damaged.
    fn read_blob(&self, blob: &BlobRef) -> Option<Vec<u8>>;
}

/// Facts of a page: one for each position, and what was found to be damaged.
#[derive(Default)]
pub(crate) struct FactPage {
    pub(crate) records: Vec<FactRecord>,
    pub(crate) damage: Vec<LogDamage>,
}

impl FactPage {
    /// Returns true if the page has the first fact of its log, and it is lost.
    pub(crate) fn lacks_first_fact(&self) -> bool {
        let first = self.records.first().filter(|record| record.seq == 1);
        first.is_some_and(|record| matches!(record.fact, Fact::FactsLost { .. }))
    }

    /// Replaces a lost first fact by what the session's row says, because nothing works without
    /// it.
    pub(crate) fn restore_first_fact(&mut self, summary: SessionSummary) {
        if let Some(FactRecord { seq: 1, fact: fact @ Fact::FactsLost { .. }, .. }) =
            self.records.first_mut()
        {
            let parent = |session| ParentCall { session, call: CallId(Uuid::nil()) };
            *fact = Fact::SessionOpened {
                workspace: summary.workspace,
                version: "unknown".to_owned(),
                agent: DEFAULT_AGENT.to_owned(),
                parent: summary.parent.map(parent),
            };
        }
    }
}

/// Returns the last position that the log and a reader have in common. `found` is the last fact up
/// to the reader's position, in its epoch or an earlier one.
pub(crate) fn common_position(position: LogPosition, found: Option<(i64, i64)>) -> LogPosition {
    let Some((seq, epoch)) = found else { return LogPosition::START };
    let found = LogPosition { seq: seq as LogSeq, epoch: Some(epoch as u64) };
    // An earlier epoch at the same position: the clock was set back after the end of the log was
    // lost, so epochs do not say where both histories part.
    let is_other = position.epoch.is_some() && found.epoch != position.epoch;
    if is_other && found.seq == position.seq { LogPosition::START } else { found }
}

/// Joins facts selected one by one into the format of `FACTS_QUERY`.
pub(crate) fn join_facts(facts: &[Vec<u8>]) -> Vec<u8> {
    facts.join(&FACT_SEPARATOR)
}

/// Decodes the facts after `after` up to `through`. `text` also contains the fact at `after`,
/// because its check is part of the next one. Stops after `max_bytes`, which the size of a fact in a
/// blob may exceed, but returns at least one fact.
pub(crate) fn decode_page(
    session: SessionId,
    (after, through): (LogSeq, LogSeq),
    text: &[u8],
    max_bytes: usize,
    blobs: &impl FactBlobs,
) -> Result<FactPage, StorageError> {
    let rows: BTreeMap<LogSeq, StoredFact<'_>> =
        parse_facts(text).map(|fact| (fact.seq, fact)).collect();
    let mut previous = match after {
        0 => Some(RecordCheck::before_first(session)),
        after => rows.get(&after).and_then(|fact| fact.check),
    };
    let mut is_previous_intact = previous.is_some();
    let mut page = FactPage::default();
    let mut bytes = 0_usize;
    for seq in after + 1..=through {
        let row = rows.get(&seq);
        bytes = bytes.saturating_add(row.map_or(0, |row| row.stored_bytes(blobs)));
        if bytes > max_bytes && !page.records.is_empty() {
            break;
        }
        let decoded = match row {
            None => Err("it is missing".to_owned()),
            Some(row) => match row.is_intact(session, previous.as_ref(), is_previous_intact) {
                true => row.decode(session, blobs)?,
                false => Err("it does not match its checksum".to_owned()),
            },
        };
        is_previous_intact = decoded.is_ok();
        previous = row.and_then(|row| row.check);
        let intact_row = row.filter(|_| is_previous_intact);
        let (epoch, origin) = intact_row.map_or((0, None), |row| (row.epoch as u64, row.origin()));
        let (at, fact) = match decoded {
            Ok(fact) => (row.map_or(UnixMillis(0), |row| row.at), fact),
            Err(reason) => {
                page.damage.push(LogDamage { seq, reason: reason.clone() });
                let at = page.records.last().map_or(UnixMillis(0), |record| record.at);
                (at, Fact::FactsLost { count: 1, reason })
            }
        };
        page.records.push(FactRecord { session, seq, epoch, at, origin, fact });
    }
    Ok(page)
}

/// Decodes facts that are not neighbors, in order, without those that are damaged.
pub(crate) fn decode_facts(
    session: SessionId,
    text: &[u8],
    blobs: &impl FactBlobs,
) -> Result<Vec<FactRecord>, StorageError> {
    let mut records = Vec::new();
    for row in parse_facts(text).filter(|row| row.is_intact(session, None, false)) {
        if let Ok(fact) = row.decode(session, blobs)? {
            let (epoch, origin) = (row.epoch as u64, row.origin());
            records.push(FactRecord { session, seq: row.seq, epoch, at: row.at, origin, fact });
        }
    }
    records.sort_by_key(|record| record.seq);
    Ok(records)
}

/// Returns the position of a fact, if it matches its checksum.
pub(crate) fn intact_position(session: SessionId, text: &[u8]) -> Option<LogSeq> {
    let fact = parse_facts(text).next()?;
    fact.is_intact(session, None, false).then_some(fact.seq)
}

/// The columns of a fact.
struct StoredFact<'a> {
    seq: LogSeq,
    epoch: i64,
    at: UnixMillis,
    kind: &'a str,
    format: i64,
    check: Option<RecordCheck>,
    blob: &'a str,
    origin: &'a str,
    body: Option<&'a [u8]>,
}

/// Parses the columns of facts. A fact whose numbers cannot be parsed is left out.
fn parse_facts(text: &[u8]) -> impl Iterator<Item = StoredFact<'_>> {
    text.split(|byte| *byte == FACT_SEPARATOR).filter_map(|row| {
        let mut fields = row.splitn(9, |byte| *byte == FIELD_SEPARATOR);
        let mut text = || fields.next().and_then(|field| std::str::from_utf8(field).ok());
        Some(StoredFact {
            seq: text()?.parse().ok()?,
            epoch: text()?.parse().ok()?,
            at: UnixMillis(text()?.parse::<i64>().ok()? as u64),
            kind: text()?,
            format: text()?.parse().ok()?,
            check: RecordCheck::parse(text()?),
            blob: text()?,
            origin: text()?,
            body: fields.next(),
        })
    })
}

impl StoredFact<'_> {
    /// Returns the operation that caused the fact.
    fn origin(&self) -> Option<FactOrigin> {
        serde_json::from_str(self.origin).ok()
    }

    /// Returns the size of the JSON; 0 if its blob is missing.
    fn stored_bytes(&self, blobs: &impl FactBlobs) -> usize {
        let blob_bytes = || BlobRef::parse(self.blob).and_then(|blob| blobs.blob_bytes(&blob));
        self.body.map_or_else(|| blob_bytes().unwrap_or(0), <[u8]>::len)
    }

    /// Returns true if the fact matches its check. If the fact before it is lost, a check that
    /// covers the fact alone is enough.
    fn is_intact(
        &self,
        session: SessionId,
        previous: Option<&RecordCheck>,
        is_previous_intact: bool,
    ) -> bool {
        let header = FactHeader {
            session,
            seq: self.seq,
            epoch: self.epoch,
            at: self.at,
            kind: self.kind,
            format: self.format,
            has_blob: self.body.is_none(),
            origin: Some(self.origin).filter(|origin| !origin.is_empty()),
        };
        let header = header.to_string();
        let parts = [header.as_bytes(), self.body.unwrap_or(self.blob.as_bytes())];
        let Some(check) = &self.check else { return false };
        check.matches(previous, &parts) || (!is_previous_intact && check.matches(None, &parts))
    }

    /// Decodes an intact fact. The inner error is the reason why a fact is lost; the outer one
    /// means that another version of Windlass wrote it.
    fn decode(
        &self,
        session: SessionId,
        blobs: &impl FactBlobs,
    ) -> Result<Result<Fact, String>, StorageError> {
        let unreadable =
            |reason: String| StorageError::Unreadable { session, seq: self.seq, reason };
        if self.format > FACT_FORMAT_VERSION {
            return Err(unreadable("a newer version of Windlass wrote it".into()));
        }
        let fact = match self.body {
            Some(body) => serde_json::from_slice(body),
            None => {
                let bytes = BlobRef::parse(self.blob).and_then(|blob| blobs.read_blob(&blob));
                let Some(bytes) = bytes else {
                    return Ok(Err("the blob that contains it is missing or damaged".into()));
                };
                serde_json::from_slice(&bytes)
            }
        };
        fact.map(Ok).map_err(|error| unreadable(error.to_string()))
    }
}
