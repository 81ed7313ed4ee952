//! Why a door stays shut. A model reads these, so they say what to do instead.

/// Why something could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The path leads out of the workspace.
    #[error("{path} is outside the workspace; only files inside it can be used")]
    Outside {
        /// As it was spelled.
        path: String,
    },
    /// A call touched what it had not declared.
    #[error("{path} was not part of what this call was permitted to touch")]
    NotGranted {
        /// The resolved path.
        path: String,
    },
    /// A part of the path became a symbolic link after it was checked.
    #[error("{path} changed while it was being opened")]
    Swapped {
        /// The resolved path.
        path: String,
    },
    /// It is neither a file nor a folder.
    #[error("{path} is neither a file nor a folder")]
    Special {
        /// The resolved path.
        path: String,
    },
    /// The path cannot name anything.
    #[error("{path:?} is not a path")]
    Malformed {
        /// As it was spelled.
        path: String,
    },
    /// It is not there.
    #[error("{path} does not exist")]
    Missing {
        /// The resolved path.
        path: String,
    },
    /// The system refused.
    #[error("{path}: {source}")]
    System {
        /// The resolved path.
        path: String,
        /// What it said.
        source: std::io::Error,
    },
}
