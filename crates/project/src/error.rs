//! Why a config, the list of trusted folders or the keys could not be used at all.

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
    /// A file of keys is not as private as keys have to be.
    #[error("{path} is not used: {reason}. Keys need a file of your own that only you can read; {remedy} it", path = path.display())]
    Exposed {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: &'static str,
        /// What to do with it.
        remedy: &'static str,
    },
    /// The keyring has a key and does not give it.
    #[error("the key for `{provider}` is in the keyring, which cannot be used now: {reason}")]
    Keyring {
        /// Whose key.
        provider: String,
        /// Why not.
        reason: String,
    },
}
