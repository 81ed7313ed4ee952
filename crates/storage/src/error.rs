//! Errors of the log and its stores.

use crate::SessionHolder;
use windlass_protocol::{BlobRef, LogSeq, SessionId};

/// An error of a `Log` or its stores.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// Another process has the session open.
    #[error("session {session} is open in another Windlass process{}", address_suffix(holder.as_ref()))]
    Busy {
        session: SessionId,
        /// The node that has it open, if the backend knows it.
        holder: Option<SessionHolder>,
    },
    /// Another process claimed the session later, or wrote to it without a claim.
    #[error("session {session} was taken over by another Windlass process")]
    Fenced { session: SessionId },
    /// The database has lost the last facts of a session: it crashed before they were on the disk, or
    /// a standby took over that did not have them.
    #[error(
        "the database lost the last facts of session {session} in a crash or a fail-over: it has \
         {head} of {expected}. The session goes on from there"
    )]
    FactsGone {
        session: SessionId,
        /// The last position in the log.
        head: LogSeq,
        /// The last position that was written.
        expected: LogSeq,
    },
    /// A newer version has written facts of the session.
    #[error(
        "a newer version of Windlass has written session {session}. A node of that version goes on \
         with it"
    )]
    SessionTooNew { session: SessionId },
    /// The session does not exist.
    #[error("session {session} not found")]
    SessionNotFound { session: SessionId },
    /// A newer version wrote the database.
    #[error(
        "the database has format {found}, but this version of Windlass supports formats up to \
         {known}; use a newer version"
    )]
    TooNew {
        /// The format of the database.
        found: i64,
        /// The newest format that this version knows.
        known: i64,
    },
    /// An unreleased build wrote the database, with other names for facts.
    #[error(
        "the session log has format {found}, but this version of Windlass reads format {first} \
         and later. An older build wrote it. Move the folder away to start with an empty log"
    )]
    TooOld {
        /// The format in the file.
        found: i64,
        /// The oldest format that this build reads.
        first: i64,
    },
    /// The row of a session does not match its digest.
    #[error(
        "the database entry of session {session} is damaged. Run `windlass doctor --repair` to \
         restore it from the session's events"
    )]
    SessionDamaged { session: SessionId },
    /// The database as a whole is damaged.
    #[error(
        "{path} is damaged: {reason}. Restore it from a backup, or run `windlass doctor --repair`, \
         which saves everything that can be read"
    )]
    DatabaseDamaged {
        /// The path of the database.
        path: String,
        reason: String,
    },
    /// Another process holds a lock for too long.
    #[error(
        "another Windlass process has held {path} for {seconds} seconds. Wait for it or end it, \
         then try again"
    )]
    LockTimeout {
        /// The path of the lock file.
        path: String,
        seconds: u64,
    },
    /// A stored fact cannot be read.
    #[error("fact {seq} of session {session} cannot be read: {reason}")]
    Unreadable {
        session: SessionId,
        /// The position of the fact in the log.
        seq: LogSeq,
        reason: String,
    },
    /// A blob is missing, or its contents do not match its digest.
    #[error("the stored output {} is missing or damaged", blob.as_str())]
    BlobLost { blob: BlobRef },
    /// `get_copy` found no readable copy: it was removed in favor of newer ones, or is damaged.
    #[error(
        "this earlier version of the file ({}) is no longer stored; look for it in version \
         control or a backup",
        copy.as_str().get(..12).unwrap_or_default()
    )]
    CopyGone { copy: BlobRef },
    /// A file is too large for undo.
    #[error(
        "the file is too large for undo: it has {size} bytes, the limit is {largest}; change it \
         by other means, or make your own copy first"
    )]
    CopyTooLarge {
        /// The size of the file in bytes.
        size: usize,
        /// The largest allowed size in bytes.
        largest: usize,
    },
    /// The database of file copies, `copies.db`, failed.
    #[error(
        "{path}, which stores earlier versions of files, cannot be used: {source}. If the disk \
         is not full, move that file away: Windlass creates a new one, without the earlier \
         versions"
    )]
    CopyStore {
        /// The path of that database.
        path: String,
        source: sqlx::Error,
    },
    /// A blob is too large for the database.
    #[error("the output has {size} bytes, and the database stores at most {largest}")]
    BlobTooLarge {
        /// The size of the blob in bytes.
        size: usize,
        /// The largest allowed size in bytes.
        largest: usize,
    },
    /// The database of a fleet could not be reached for a while. It may have executed the last
    /// statement.
    #[error(
        "the database has not answered for {seconds} seconds: {source}. Check that PostgreSQL \
         runs and can be reached, then try again"
    )]
    Unavailable { seconds: u64, source: sqlx::Error },
    /// The object store of a fleet failed.
    #[error(
        "the object store, which has the large outputs, failed: {source}. Check that it can be \
         reached, then try again"
    )]
    ObjectStore { source: Box<object_store::Error> },
    /// A blob is in an object store, and this process uses none.
    #[error(
        "the stored output {} is in an object store, and this node uses none. Start all nodes with \
         the same `--object-store`",
        blob.as_str()
    )]
    NoObjectStore { blob: BlobRef },
    /// The lease of this node ran out, so other nodes may claim its sessions.
    #[error(
        "this node has not renewed its lease in time, so other nodes may go on with its sessions. \
         Try again"
    )]
    LeaseLost,
    /// The PostgreSQL database lacks tables or columns that this version needs.
    #[error(
        "the PostgreSQL database has schema version {found}, but this version of Windlass needs \
         {needed}. Run `windlass fleet migrate`, or start a node of this version"
    )]
    NotMigrated {
        /// The version of the schema; 0 for an empty database.
        found: i64,
        /// The version that this build needs.
        needed: i64,
    },
    /// A fact could not be encoded as JSON.
    #[error("could not encode a fact: {0}")]
    Encode(#[from] serde_json::Error),
    /// The main database, `windlass.db` or PostgreSQL, failed.
    #[error("database error: {0}")]
    Database(#[from] sqlx::Error),
    /// An operation on a file next to the database failed.
    #[error("{what}: {source}")]
    File {
        /// The operation that failed, in words.
        what: String,
        source: std::io::Error,
    },
}

impl StorageError {
    /// Returns true if SQLite found that its file is damaged.
    pub fn is_corruption(&self) -> bool {
        matches!(self, StorageError::Database(error) if is_corruption(error))
    }

    /// Returns true if there is no space left for the database.
    pub fn is_disk_full(&self) -> bool {
        const SQLITE_FULL: &str = "13";
        const POSTGRES_DISK_FULL: &str = "53100";
        let StorageError::Database(error) = self else { return false };
        let code = error.as_database_error().and_then(|error| error.code());
        code.is_some_and(|code| matches!(code.as_ref(), SQLITE_FULL | POSTGRES_DISK_FULL))
    }

    /// Names the database and the remedy if SQLite found that its file is damaged.
    pub(crate) fn in_database(self, path: &std::path::Path) -> StorageError {
        let path = path.display().to_string();
        match self {
            StorageError::Database(error) if is_corruption(&error) => {
                StorageError::DatabaseDamaged { path, reason: error.to_string() }
            }
            other => other,
        }
    }

    /// Creates a converter from `std::io::Error` that adds the purpose of the file operation.
    pub(crate) fn from_io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> StorageError {
        let what = what.into();
        move |source| StorageError::File { what, source }
    }
}

/// Returns true for the primary result codes `SQLITE_CORRUPT` and `SQLITE_NOTADB`.
fn is_corruption(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    let code = code.and_then(|code| code.parse::<u32>().ok());
    code.is_some_and(|code| matches!(code & 0xff, 11 | 26))
}

/// Returns the address of a holder as the end of a sentence.
fn address_suffix(holder: Option<&SessionHolder>) -> String {
    let address = holder.map_or("", |holder| holder.address.as_str());
    if address.is_empty() { String::new() } else { format!(", at {address}") }
}
