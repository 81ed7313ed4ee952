//! A session as one file: its log and what it keeps outside of it, one JSON object a line.
//!
//! The first line says what the file is, then come the facts as `--output events` prints them, then
//! the blobs. What files held before and after a change is not among it: taking changes back works
//! where they were made.
//!
//! A file may come from anybody. Nothing of it is believed that matters: it is read strictly and
//! within bounds, only turns that have ended are taken over, nothing that was allowed in it is
//! allowed here, and it works in the folder it was brought to.

mod check;

use crate::care::{Point, beginning_of, cut};
use crate::driver;
use crate::host::{Engine, refused, storage};
use crate::session::Session;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use check::Check;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, Read};
use windlass_protocol::{BlobRef, Fact, Fault, Mode, Outcome, Record, SessionId};
use windlass_storage::{Error, read_all};

/// The version of the format.
const FORMAT: u32 = 1;

/// A line that is longer holds nothing of ours.
const LONGEST_LINE: u64 = 64 << 20;

/// All lines together.
const LONGEST_FILE: u64 = 1 << 30;

/// More facts than any session has.
const MOST_FACTS: u64 = 1_000_000;

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    windlass_export: u32,
    version: String,
    session: SessionId,
    facts: u64,
}

/// A line with bytes.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    blob: BlobRef,
    base64: String,
}

/// What was written to a file, or taken from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    /// The session, as it is called here.
    pub session: SessionId,
    /// How many facts.
    pub facts: usize,
    /// How many facts of a turn that had not ended were left out.
    pub dropped: usize,
    /// How many outputs and files the log names that are not there.
    pub missing: usize,
}

impl Engine {
    /// Gives a session line by line to whoever writes it down.
    pub async fn export(
        &self,
        session: SessionId,
        write: &mut (dyn FnMut(&str) -> std::io::Result<()> + Send),
    ) -> Result<Carried, Fault> {
        let records = read_all(&*self.log, session, 0).await.map_err(storage)?;
        if records.is_empty() {
            return Err(storage(Error::NoSession { session }));
        }
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let facts = records.len();
        let header = Header { windlass_export: FORMAT, version, session, facts: facts as u64 };
        line(&header, write)?;
        for record in &records {
            line(record, write)?;
        }
        let mut missing = 0;
        for blob in blobs(&records) {
            match self.log.get_blob(&blob).await {
                Ok(bytes) => line(&Kept { blob, base64: STANDARD.encode(bytes) }, write)?,
                Err(_) => missing += 1,
            }
        }
        Ok(Carried { session, facts, dropped: 0, missing })
    }

    /// Takes a session from a file. It keeps its name if no session here has it.
    pub async fn import(&self, file: &mut (dyn BufRead + Send)) -> Result<Carried, Fault> {
        let mut lines = Lines { file, number: 0, left: LONGEST_FILE };
        let header = header(&mut lines)?;
        let mut check = Check::default();
        let mut records = Vec::new();
        for _ in 0..header.facts {
            let Some(text) = lines.next()? else {
                return Err(refused("the file ends early: some of it is missing. Export it again"));
            };
            let record = record(&text).and_then(|record| check.push(&record).map(|()| record));
            let record = record.map_err(|why| lines.wrong(why))?;
            if record.session != header.session {
                return Err(lines.wrong("it belongs to another session"));
            }
            records.push(record);
        }
        let facts = records.len();
        let Some(through) = cut(&records, Point::Last) else {
            return Err(refused(
                "no turn has ended in this session; there is nothing to take over",
            ));
        };
        let mut named = blobs(&records);
        records.iter_mut().for_each(|record| self.naturalise(&mut record.fact));
        let records = beginning_of(records, through, driver::stamp().at);
        if Session::replay(&records, self.settings.terms()).busy() {
            return Err(refused("the session is not in order; it cannot be taken over"));
        }
        while let Some(text) = lines.next()? {
            let kept: Kept = serde_json::from_str(&text).map_err(|error| lines.wrong(error))?;
            let bytes = STANDARD.decode(&kept.base64).map_err(|error| lines.wrong(error))?;
            if BlobRef::of(&bytes) != kept.blob || !named.remove(&kept.blob) {
                return Err(lines.wrong("these bytes are not what the log names"));
            }
            self.log.put_blob(bytes).await.map_err(storage)?;
        }
        let session = self.free(header.session).await?;
        let claim = self.log.claim(session).await.map_err(storage)?;
        self.log.restore(&claim, &records).await.map_err(storage)?;
        let dropped = facts.saturating_sub(through as usize);
        Ok(Carried { session, facts: through as usize, dropped, missing: named.len() })
    }

    /// The session works here, and under the rules of this place.
    fn naturalise(&self, fact: &mut Fact) {
        if let Fact::Opened { workspace, .. } = fact {
            *workspace = self.workspace();
        }
        if let Fact::ModeChanged { mode } = fact {
            *mode = (*mode).min(Mode::Ask);
        }
    }

    /// A name nobody here has: this one, if possible.
    async fn free(&self, session: SessionId) -> Result<SessionId, Fault> {
        let taken = self.log.list().await.map_err(storage)?;
        let taken = taken.iter().any(|row| row.session == session);
        Ok(if taken { SessionId(driver::stamp().id) } else { session })
    }
}

fn line(
    value: &impl Serialize,
    write: &mut (dyn FnMut(&str) -> std::io::Result<()> + Send),
) -> Result<(), Fault> {
    let text = serde_json::to_string(value)
        .map_err(|error| Fault::Internal { message: error.to_string() })?;
    write(&text).map_err(|error| refused(format!("the file cannot be written: {error}")))
}

/// The outputs and files that facts name.
fn blobs(records: &[Record]) -> BTreeSet<BlobRef> {
    let mut blobs = BTreeSet::new();
    for record in records {
        if let Fact::Prompted { attachments, .. } = &record.fact {
            blobs.extend(attachments.iter().map(|file| file.blob.clone()));
        }
        if let Fact::Settled { outcome: Outcome::Completed { output }, .. } = &record.fact {
            blobs.extend(output.attachments.iter().map(|file| file.blob.clone()));
            blobs.extend(output.full.clone());
        }
    }
    blobs
}

fn header(lines: &mut Lines<'_>) -> Result<Header, Fault> {
    let alien = || refused("this is not a session that `windlass session export` wrote");
    let text = lines.next()?.ok_or_else(alien)?;
    let value: Value = serde_json::from_str(&text).map_err(|_| alien())?;
    match value.get("windlass_export").and_then(Value::as_u64) {
        Some(format) if format == u64::from(FORMAT) => {}
        Some(_) => return Err(refused("another windlass wrote this file; use a newer one")),
        None => return Err(alien()),
    }
    let header: Header = serde_json::from_value(value).map_err(|error| lines.wrong(error))?;
    if header.facts > MOST_FACTS {
        return Err(refused(format!("a session has at most {MOST_FACTS} facts")));
    }
    Ok(header)
}

/// Reads a fact. What it says that we do not know is not passed over: it might matter.
fn record(text: &str) -> Result<Record, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let record: Record = Record::deserialize(&value).map_err(|error| error.to_string())?;
    let ours = serde_json::to_value(&record).map_err(|error| error.to_string())?;
    match stranger(&value, &ours) {
        Some(name) => Err(format!("`{name}` is not known; use a newer windlass")),
        None => Ok(record),
    }
}

/// The first field that was not understood.
fn stranger(theirs: &Value, ours: &Value) -> Option<String> {
    match (theirs, ours) {
        (Value::Object(theirs), Value::Object(ours)) => {
            theirs.iter().find_map(|(name, value)| match ours.get(name) {
                Some(known) => stranger(value, known),
                None if is_nothing(value) => None,
                None => Some(name.clone()),
            })
        }
        (Value::Array(theirs), Value::Array(ours)) => {
            theirs.iter().zip(ours).find_map(|(theirs, ours)| stranger(theirs, ours))
        }
        _ => None,
    }
}

/// What is left out when it is written.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(true) | Value::Number(_) | Value::String(_) => false,
    }
}

/// The lines of a file, within bounds.
struct Lines<'a> {
    file: &'a mut (dyn BufRead + Send),
    number: u64,
    left: u64,
}

impl Lines<'_> {
    fn next(&mut self) -> Result<Option<String>, Fault> {
        let mut bytes = Vec::new();
        let most = LONGEST_LINE.min(self.left);
        let read = (&mut *self.file).take(most + 1).read_until(b'\n', &mut bytes);
        let read = read.map_err(|error| refused(format!("the file cannot be read: {error}")))?;
        self.number += 1;
        if read == 0 {
            return Ok(None);
        }
        if read as u64 > most {
            return Err(self.wrong("it is longer than anything windlass writes"));
        }
        self.left -= read as u64;
        let text = String::from_utf8(bytes).map_err(|_| self.wrong("it is not UTF-8"))?;
        Ok(Some(text))
    }

    /// Says that the line read last cannot be used.
    fn wrong(&self, why: impl std::fmt::Display) -> Fault {
        refused(format!("line {} of the file cannot be used: {why}", self.number))
    }
}
