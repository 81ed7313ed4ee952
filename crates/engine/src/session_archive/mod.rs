//! Export and import of a session as one file: its log and its blobs, one JSON object per line.
//!
//! The first line is the `ArchiveHeader`, then come the facts as `--output events` prints them,
//! then the blobs. The header and the facts end in a field `check`, a checksum of the line and all
//! lines before it; a blob is named by its digest. Copies of files from before and after a change
//! are not included: changes can be undone only where they were made.
//!
//! A file may come from any source, so import does not trust it. It parses strictly and within
//! limits, takes over only turns that have ended, drops the approvals, caps the mode, and sets the
//! workspace to the current folder.

mod validate_log;

use crate::clock_and_ids::new_stamp;
use crate::engine::Engine;
use crate::faults::{config_fault, storage_fault};
use crate::session::Session;
use crate::stored_sessions::{ForkPoint, find_turn_end, fork_records};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, Read};
use validate_log::LogValidator;
use windlass_protocol::{BlobRef, Fact, FactRecord, Fault, PermissionMode, RecordCheck, SessionId};
use windlass_storage::{PageLimit, StorageError, read_all};

const FORMAT_VERSION: u32 = 3;

/// The start of the last field of a line with a check.
const CHECK_FIELD: &str = ",\"check\":\"";

/// Maximum length of a line; Windlass writes no longer ones.
const MAX_LINE_BYTES: u64 = 64 << 20;

const MAX_FILE_BYTES: u64 = 1 << 30;

/// Maximum number of facts; no session has more.
const MAX_FACTS: u64 = 1_000_000;

/// First line of an export file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ArchiveHeader {
    windlass_export: u32,
    version: String,
    session: SessionId,
    facts: u64,
}

/// Line with the bytes of a blob.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ArchiveBlobLine {
    blob: BlobRef,
    base64: String,
}

/// Result of an export or import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExportImportReport {
    /// Id of the session in this log; `import` may assign a new one.
    pub session: SessionId,
    /// Number of facts written or imported.
    pub facts: usize,
    /// Number of facts left out because their turn had not ended.
    pub dropped_facts: usize,
    /// Number of blobs that the log references but that are missing or contain secrets.
    pub missing_blobs: usize,
}

impl Engine {
    /// Exports a session: calls `write` for each line. `redact` removes secrets from a text; blobs
    /// that contain secrets are left out.
    pub async fn export(
        &self,
        session: SessionId,
        redact: &(dyn Fn(&str) -> String + Sync),
        write: &mut (dyn FnMut(&str) -> std::io::Result<()> + Send),
    ) -> Result<ExportImportReport, Fault> {
        let records = read_all(&*self.log, session, 0).await.map_err(storage_fault)?;
        if records.is_empty() {
            return Err(storage_fault(StorageError::SessionNotFound { session }));
        }
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let facts = records.len();
        let header = ArchiveHeader {
            windlass_export: FORMAT_VERSION,
            version,
            session,
            facts: facts as u64,
        };
        let mut check = RecordCheck::before_first(session);
        write_line_with(&header, write, |text| add_check(text, &mut check))?;
        for record in &records {
            write_line_with(record, write, |text| add_check(redact(&text), &mut check))?;
        }
        let mut missing_blobs = 0;
        for blob in referenced_blobs(&records) {
            match self.log.get_blob(&blob).await {
                Ok(bytes) if !contains_secret(&bytes, redact) => {
                    write_line(&ArchiveBlobLine { blob, base64: STANDARD.encode(bytes) }, write)?
                }
                Ok(_) | Err(_) => missing_blobs += 1,
            }
        }
        Ok(ExportImportReport { session, facts, dropped_facts: 0, missing_blobs })
    }

    /// Imports a session from a file written by `export`. It keeps its id unless a session here
    /// already has it.
    pub async fn import(
        &self,
        file: &mut (dyn BufRead + Send),
    ) -> Result<ExportImportReport, Fault> {
        let mut lines =
            ArchiveLineReader { file, line_number: 0, bytes_left: MAX_FILE_BYTES, check: None };
        let header = read_header(&mut lines)?;
        let mut validator = LogValidator::default();
        let mut records = Vec::new();
        for _ in 0..header.facts {
            let Some(text) = lines.next_checked_line()? else {
                return Err(config_fault(
                    "the file ends early, so part of the session is missing. Export it again",
                ));
            };
            let record = parse_record(&text)
                .and_then(|record| validator.check_record(&record).map(|()| record))
                .map_err(|reason| lines.line_fault(reason))?;
            if record.session != header.session {
                return Err(lines.line_fault("it belongs to another session"));
            }
            records.push(record);
        }
        let facts = records.len();
        let Some(through) = find_turn_end(&records, ForkPoint::LastTurn) else {
            return Err(config_fault("no turn of this session has ended; nothing to import"));
        };
        let mut expected_blobs = referenced_blobs(&records);
        records.iter_mut().for_each(|record| self.localize_fact(&mut record.fact));
        let records = fork_records(records, through, new_stamp().at);
        if Session::replay(&records, self.settings.session_config(&self.runtime)).is_busy() {
            return Err(config_fault("the session is inconsistent and cannot be imported"));
        }
        while let Some(text) = lines.next_line()? {
            let line: ArchiveBlobLine =
                serde_json::from_str(&text).map_err(|error| lines.line_fault(error))?;
            let bytes = STANDARD.decode(&line.base64).map_err(|error| lines.line_fault(error))?;
            if BlobRef::for_bytes(&bytes) != line.blob || !expected_blobs.remove(&line.blob) {
                return Err(lines.line_fault(
                    "these bytes do not match a blob that the log \
                                             references",
                ));
            }
            self.log.put_blob(bytes).await.map_err(storage_fault)?;
        }
        let session = self.unused_session_id(header.session).await?;
        let claim = self.log.claim(session).await.map_err(storage_fault)?;
        self.log.append_records(&claim, 0, &records).await.map_err(storage_fault)?;
        Ok(ExportImportReport {
            session,
            facts: through as usize,
            dropped_facts: facts.saturating_sub(through as usize),
            missing_blobs: expected_blobs.len(),
        })
    }

    /// Sets the workspace to the current folder, and limits recorded modes to `Mode::Ask`.
    fn localize_fact(&self, fact: &mut Fact) {
        if let Fact::SessionOpened { workspace, .. } = fact {
            *workspace = self.workspace_path();
        }
        if let Fact::ModeChanged { mode } = fact {
            *mode = (*mode).min(PermissionMode::Ask);
        }
    }

    /// Returns `session` if no session here has this id, otherwise a new id.
    async fn unused_session_id(&self, session: SessionId) -> Result<SessionId, Fault> {
        let first = self.log.read_page(session, 0, PageLimit::facts(1)).await;
        let is_taken = !first.map_err(storage_fault)?.is_empty();
        Ok(if is_taken { SessionId(new_stamp().id) } else { session })
    }
}

fn write_line(
    value: &impl Serialize,
    write: &mut (dyn FnMut(&str) -> std::io::Result<()> + Send),
) -> Result<(), Fault> {
    write_line_with(value, write, |text| text)
}

fn write_line_with(
    value: &impl Serialize,
    write: &mut (dyn FnMut(&str) -> std::io::Result<()> + Send),
    finish: impl FnOnce(String) -> String,
) -> Result<(), Fault> {
    let text = serde_json::to_string(value)
        .map_err(|error| Fault::Internal { message: error.to_string() })?;
    write(&finish(text)).map_err(|error| config_fault(format!("could not write the file: {error}")))
}

fn contains_secret(bytes: &[u8], redact: &(dyn Fn(&str) -> String + Sync)) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| redact(text) != text)
}

/// Adds the field `check` to the end of a line, and updates `check` to it.
fn add_check(text: String, check: &mut RecordCheck) -> String {
    *check = check.next(&[text.as_bytes()]);
    let fields = text.strip_suffix('}').unwrap_or(&text);
    format!("{fields}{CHECK_FIELD}{}\"}}", check.to_hex())
}

/// Collects the blobs that facts reference: attachments and full outputs.
fn referenced_blobs(records: &[FactRecord]) -> BTreeSet<BlobRef> {
    records.iter().flat_map(|record| record.fact.named_blobs()).cloned().collect()
}

fn read_header(lines: &mut ArchiveLineReader<'_>) -> Result<ArchiveHeader, Fault> {
    let not_an_export =
        || config_fault("this is not a session file written by `windlass session export`");
    let text = lines.next_line()?.ok_or_else(not_an_export)?;
    let value: Value = serde_json::from_str(&text).map_err(|_| not_an_export())?;
    match value.get("windlass_export").and_then(Value::as_u64) {
        Some(format) if format == u64::from(FORMAT_VERSION) => {}
        Some(format) if format < u64::from(FORMAT_VERSION) => {
            return Err(config_fault(
                "an older build of windlass wrote this file; it cannot be read",
            ));
        }
        Some(_) => return Err(config_fault("a newer windlass wrote this file; update windlass")),
        None => return Err(not_an_export()),
    }
    let session: Option<SessionId> =
        value.get("session").and_then(|session| SessionId::deserialize(session).ok());
    lines.check = session.map(RecordCheck::before_first);
    let text = lines.verify(&text)?;
    let header: ArchiveHeader =
        serde_json::from_str(&text).map_err(|error| lines.line_fault(error))?;
    if header.facts > MAX_FACTS {
        return Err(config_fault(format!("a session has at most {MAX_FACTS} events")));
    }
    Ok(header)
}

/// Parses a `FactRecord`. Unknown fields are an error, because they might matter.
fn parse_record(text: &str) -> Result<FactRecord, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let record: FactRecord = FactRecord::deserialize(&value).map_err(|error| error.to_string())?;
    let known = serde_json::to_value(&record).map_err(|error| error.to_string())?;
    match find_unknown_field(&value, &known) {
        Some(name) => Err(format!("unknown field `{name}`; use a newer windlass")),
        None => Ok(record),
    }
}

/// Returns the first field of `value` that `known`, our own serialization, does not contain.
fn find_unknown_field(value: &Value, known: &Value) -> Option<String> {
    match (value, known) {
        (Value::Object(fields), Value::Object(known)) => {
            fields.iter().find_map(|(name, value)| match known.get(name) {
                Some(known) => find_unknown_field(value, known),
                None if is_default_value(value) => None,
                None => Some(name.clone()),
            })
        }
        (Value::Array(items), Value::Array(known)) => {
            items.iter().zip(known).find_map(|(item, known)| find_unknown_field(item, known))
        }
        _ => None,
    }
}

/// Returns true for values that `Serialize` omits.
fn is_default_value(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(true) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Reads the lines of an export file within the size limits.
struct ArchiveLineReader<'a> {
    file: &'a mut (dyn BufRead + Send),
    line_number: u64,
    bytes_left: u64,
    /// The check of the last line that has one.
    check: Option<RecordCheck>,
}

impl ArchiveLineReader<'_> {
    fn next_line(&mut self) -> Result<Option<String>, Fault> {
        let mut bytes = Vec::new();
        let max_bytes = MAX_LINE_BYTES.min(self.bytes_left);
        let length = (&mut *self.file)
            .take(max_bytes + 1)
            .read_until(b'\n', &mut bytes)
            .map_err(|error| config_fault(format!("could not read the file: {error}")))?;
        self.line_number += 1;
        if length == 0 {
            return Ok(None);
        }
        if length as u64 > max_bytes {
            return Err(self.line_fault("it is longer than any line that windlass writes"));
        }
        self.bytes_left -= length as u64;
        let text =
            String::from_utf8(bytes).map_err(|_| self.line_fault("it is not valid UTF-8"))?;
        Ok(Some(text))
    }

    /// Reads a line and verifies its check. Returns it without the check.
    fn next_checked_line(&mut self) -> Result<Option<String>, Fault> {
        let line = self.next_line()?;
        line.map(|line| self.verify(&line)).transpose()
    }

    /// Verifies the check of a line and removes it.
    fn verify(&mut self, line: &str) -> Result<String, Fault> {
        let split = || {
            let (fields, check) = line.trim_end().rsplit_once(CHECK_FIELD)?;
            let check = RecordCheck::parse(check.strip_suffix("\"}")?)?;
            Some((format!("{fields}}}"), check))
        };
        match split() {
            Some((text, check)) if check.matches(self.check.as_ref(), &[text.as_bytes()]) => {
                self.check = Some(check);
                Ok(text)
            }
            _ => {
                Err(self.line_fault("its checksum is wrong, so the file is damaged or was edited"))
            }
        }
    }

    /// Creates a fault that names the last line read.
    fn line_fault(&self, reason: impl std::fmt::Display) -> Fault {
        config_fault(format!("line {} of the file is invalid: {reason}", self.line_number))
    }
}
