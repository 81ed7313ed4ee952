//! Why a config, the list of trusted folders or the keys could not be used at all.

use std::path::PathBuf;

/// What went wrong with a file of the person's own.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody knows where the person's files are.
    #[error("your home folder could not be found; set HOME to its absolute path")]
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
    /// A file of keys, of trusted folders or of what was allowed is not as private as it has to be.
    #[error("{path} is not used: {reason}. It has to be a file of your own that only you can get at; {remedy} it", path = path.display())]
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
    /// A folder cannot be trusted, because of something in it.
    #[error("{path} keeps this folder from being trusted: {reason}", path = path.display())]
    Untrustable {
        /// Because of which file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A folder or an archive is no plugin that can be used.
    #[error("{what} is no plugin that can be added: {reason}")]
    Plugin {
        /// Which, or which file of it.
        what: String,
        /// Why.
        reason: String,
    },
    /// An approval could not be kept.
    #[error("this approval cannot be kept in {path}: {reason}", path = path.display())]
    NotKept {
        /// Where.
        path: PathBuf,
        /// Why.
        reason: &'static str,
    },
    /// The managed policy is not the administrator's alone, so nobody knows whose it is.
    #[error("{path} is the managed policy of this machine and cannot be used: {reason}. Nothing starts until an administrator mends or removes it", path = path.display())]
    Managed {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: &'static str,
    },
}
