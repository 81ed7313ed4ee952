//! What can go wrong with a log.

use windlass_protocol::{BlobRef, Seq, SessionId};

/// Why a log could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another process has this session open.
    #[error("session {session} is open in another windlass")]
    Busy {
        /// The session.
        session: SessionId,
    },
    /// Somebody claimed the session after us, or wrote behind our back.
    #[error("session {session} was taken over by another windlass")]
    Fenced {
        /// The session.
        session: SessionId,
    },
    /// No such session.
    #[error("there is no session {session}")]
    NoSession {
        /// The session.
        session: SessionId,
    },
    /// The database was written by a newer version.
    #[error("the database has format {found}, this windlass knows {known}; use a newer windlass")]
    TooNew {
        /// What the file says.
        found: i64,
        /// What we know.
        known: i64,
    },
    /// A stored fact cannot be read.
    #[error("fact {seq} of session {session} cannot be read: {reason}")]
    Unreadable {
        /// The session.
        session: SessionId,
        /// Its place.
        seq: Seq,
        /// Why.
        reason: String,
    },
    /// A blob is gone or is not what its name says.
    #[error("the stored output {} is lost or damaged", blob.as_str())]
    BlobLost {
        /// The blob.
        blob: BlobRef,
    },
    /// A copy made room for newer ones, or is damaged.
    #[error(
        "this earlier version of the file ({}) is no longer kept; look for it in version control \
         or a backup",
        copy.as_str().get(..12).unwrap_or_default()
    )]
    CopyGone {
        /// The copy.
        copy: BlobRef,
    },
    /// A file is too large for undo.
    #[error(
        "the file has {size} bytes, and undo keeps copies of files up to {largest} bytes; change \
         it by other means, or keep a copy of your own first"
    )]
    CopyTooLarge {
        /// How large it is.
        size: usize,
        /// How large it may be.
        largest: usize,
    },
    /// The store of copies failed.
    #[error(
        "{path}, which keeps earlier versions of files, cannot be used: {source}. If the disk is \
         not full, move that file away: a new one is made, without the earlier versions"
    )]
    Copies {
        /// Where it is.
        path: String,
        /// Why.
        source: sqlx::Error,
    },
    /// A fact could not be written as JSON.
    #[error("a fact could not be encoded: {0}")]
    Encode(#[from] serde_json::Error),
    /// The database failed.
    #[error("the database failed: {0}")]
    Database(#[from] sqlx::Error),
    /// A file beside the database failed.
    #[error("{what}: {source}")]
    File {
        /// What was being done.
        what: String,
        /// Why it failed.
        source: std::io::Error,
    },
}

impl Error {
    /// Says what was being done when a file operation failed.
    pub(crate) fn file(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Error {
        let what = what.into();
        move |source| Error::File { what, source }
    }
}
