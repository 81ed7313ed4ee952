//! The head of a log, noted in the session's lock file.
//!
//! A damaged write-ahead log makes SQLite drop the last commits without an error. The note tells
//! how long the log was. It is written after each commit and never synced: a note that is older
//! than the log is normal.

use std::fs::File;
use std::io::{Read, Seek, Write};
use windlass_protocol::LogSeq;
use windlass_protocol::record_check::digest_parts;

/// Notes the last position of the log. An error is ignored: the log itself is complete.
pub(crate) fn write(mut file: &File, head: LogSeq) {
    let text = format!("{head:020}");
    let text = format!("{text} {:016x}\n", digest(&text));
    let _ = file.rewind().and_then(|()| file.write_all(text.as_bytes()));
}

/// Reads the noted position. Returns `None` if there is no valid note.
pub(crate) fn read(mut file: &File) -> Option<LogSeq> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(200).read_to_string(&mut text).ok()?;
    let (head, written) = text.trim_end().split_once(' ')?;
    let is_valid = written == format!("{:016x}", digest(head));
    is_valid.then(|| head.parse().ok()).flatten()
}

fn digest(text: &str) -> u64 {
    u64::from_be_bytes(digest_parts(&[text.as_bytes()]))
}
