//! Why a config or the list of trusted folders could not be used at all.

use std::path::PathBuf;

/// What went wrong with a file of the person's own.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody knows where the person's files are.
    #[error("your home folder could not be found; set HOME")]
    NoHome,
    /// A file could not be read or written.
    #[error("{path}: {source}", path = path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is not what we wrote.
    #[error("{path} cannot be understood: {reason}; mend or remove it", path = path.display())]
    Damaged {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}
