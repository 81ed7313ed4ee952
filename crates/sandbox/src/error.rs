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
    /// The glob cannot match anything.
    #[error("{glob:?} is not a glob: {reason}. A glob looks like *.rs or src/**/*.{{ts,tsx}}")]
    Glob {
        /// As it was spelled.
        glob: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The path cannot name anything.
    #[error("{path:?} is not a path")]
    Malformed {
        /// As it was spelled.
        path: String,
    },
    /// It is a folder.
    #[error("{path} is a folder")]
    Folder {
        /// The resolved path.
        path: String,
    },
    /// Somebody else has changed it since.
    #[error(
        "{path} has been changed by somebody else in the meantime; nothing was written. Read it again"
    )]
    Stale {
        /// The resolved path.
        path: String,
    },
    /// Its owner has made it read-only.
    #[error("{path} is read-only; nothing was written. Its owner can make it writable")]
    ReadOnly {
        /// The resolved path.
        path: String,
    },
    /// Somebody else saved it again and again while it was being changed.
    #[error(
        "somebody else was saving the file at the same moment; nothing was written. An older state of theirs is in {kept}"
    )]
    Kept {
        /// Where it is.
        kept: String,
    },
    /// One batch would change it twice.
    #[error("{path} is named twice; nothing was written")]
    Twice {
        /// The resolved path.
        path: String,
    },
    /// It is larger than what can be kept.
    #[error(
        "{path} is {bytes} bytes, and only files up to 32 MiB are changed here, because their old content is kept; use a command"
    )]
    TooLarge {
        /// The resolved path.
        path: String,
        /// How large it is.
        bytes: u64,
    },
    /// The change could not be put on record.
    #[error("nothing was written, because the change could not be recorded: {reason}")]
    Unrecorded {
        /// Why.
        reason: String,
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
    /// A command cannot be contained as it should be.
    #[error(
        "the command was not run, because its sandbox could not be set up: {reason}. `windlass doctor` says what this machine has"
    )]
    NoCage {
        /// What is missing.
        reason: String,
    },
    /// An errand could not be started or spoken to.
    #[error("the part of Windlass that reads such files could not be started: {source}")]
    NoErrand {
        /// What the system said.
        source: std::io::Error,
    },
    /// An errand took too long.
    #[error(
        "it took longer than {seconds} s and was stopped; the file may be damaged or too large"
    )]
    Slow {
        /// How long it had.
        seconds: u64,
    },
    /// An errand crashed, or ran into its limits.
    #[error("it could not be read to the end; the file may be damaged or too large")]
    Broke,
    /// An errand said why it cannot.
    #[error("{words}")]
    Refused {
        /// In its words.
        words: String,
    },
    /// What starts commands could not be started or spoken to.
    #[error("the part of Windlass that runs commands could not be started: {source}. Try again")]
    NoKeeper {
        /// What the system said.
        source: std::io::Error,
    },
    /// A command was not started.
    #[error("the command was not started: {why}")]
    NotStarted {
        /// What stood in the way.
        why: String,
    },
    /// A program that was to be kept running was not started.
    #[error("{servant} was not started: {why}")]
    NotEngaged {
        /// What it is known by.
        servant: String,
        /// What stood in the way, then what to do.
        why: String,
    },
    /// A page could not be shown.
    #[error("the page was not opened, because {why}. Open it yourself: {url}")]
    NoPage {
        /// Its address.
        url: String,
        /// What stood in the way.
        why: String,
    },
    /// What started commands was ended by somebody.
    #[error(
        "the part of Windlass that runs commands was ended from outside, and its commands with it. Run the command again"
    )]
    Lost,
    /// A command was started without an input.
    #[error("the command has no input that could be written to. Start it again with one")]
    NoInput,
    /// A command does not read what is written to it.
    #[error(
        "the command does not read: {taken} of {whole} bytes were taken. Read what it says, then send the rest"
    )]
    Unread {
        /// How many bytes were written.
        taken: usize,
        /// Of how many.
        whole: usize,
    },
    /// A command closed its input.
    #[error("the command no longer reads its input. Read what it said last")]
    Deaf,
}
