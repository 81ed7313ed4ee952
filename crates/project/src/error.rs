//! Errors that make a config, the list of trusted folders or the stored API keys unusable.

use std::path::PathBuf;

/// An error in one of the user's own files.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// The home folder is unknown: `HOME` is not set to an absolute path.
    #[error("home folder not found; set HOME to its absolute path")]
    NoHome,
    #[error("{path}: {source}", path = path.display())]
    File { path: PathBuf, source: std::io::Error },
    /// A file that Windlass wrote cannot be parsed.
    #[error("{path} is invalid: {reason}; fix or remove it", path = path.display())]
    Corrupt { path: PathBuf, reason: String },
    /// A program listens at the socket of the server, and is not one.
    #[error("another program listens at {path}. Choose another path with --socket",
            path = path.display())]
    SocketInUse { path: PathBuf },
    /// The file of API keys, trusted folders or approvals is not private enough.
    #[error("cannot use {path}: {reason}. It must be a regular file that only you can access; \
             {remedy} it", path = path.display())]
    NotPrivate {
        path: PathBuf,
        reason: &'static str,
        /// The action that fixes it, for example `remove`.
        remedy: &'static str,
    },
    /// The keyring has an API key but does not return it.
    #[error(
        "the API key for `{provider}` is in the keyring, but the keyring is unavailable: \
             {reason}"
    )]
    Keyring { provider: String, reason: String },
    /// A folder cannot be trusted because of a file in it.
    #[error("cannot trust this folder because of {path}: {reason}", path = path.display())]
    CannotTrust {
        /// The file that prevents it.
        path: PathBuf,
        reason: String,
    },
    /// A folder or an archive is not a usable plugin.
    #[error("cannot add {name} as a plugin: {reason}")]
    Plugin {
        /// The folder or archive, or one of its files.
        name: String,
        reason: String,
    },
    #[error("cannot save this approval in {path}: {reason}", path = path.display())]
    ApprovalNotSaved { path: PathBuf, reason: &'static str },
    /// The managed policy can be written by others than the administrator, so its author is
    /// unknown.
    #[error("cannot use the managed policy of this machine, {path}: {reason}. Windlass does not \
             start until an administrator fixes or removes it", path = path.display())]
    InsecureManagedPolicy { path: PathBuf, reason: &'static str },
}
