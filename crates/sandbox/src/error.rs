//! Errors of the sandbox. The model reads the messages, so they name an alternative.

use std::io::ErrorKind;

/// Reason for which a file, command or process could not be opened, changed or started. Unless
/// noted otherwise, `path` is the resolved path.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The path leads out of the workspace.
    #[error("{path} is outside the workspace; only files inside it can be used")]
    OutsideWorkspace {
        /// The path as the caller spelled it.
        path: String,
    },
    /// A tool call touched a path that its `Grant` does not cover, because it had not declared it.
    #[error("this call was not granted access to {path}")]
    NotGranted { path: String },
    /// A component of the path became a symbolic link after the check.
    #[error("{path} changed while it was being opened")]
    BecameSymlink { path: String },
    /// The path is neither a file nor a folder, such as a pipe or device.
    #[error("{path} is neither a file nor a folder")]
    SpecialFile { path: String },
    /// The glob is invalid and cannot match anything.
    #[error("invalid glob {glob:?}: {reason}. Examples of globs: *.rs, src/**/*.{{ts,tsx}}")]
    InvalidGlob {
        /// The glob as the caller spelled it.
        glob: String,
        reason: String,
    },
    /// The path is empty or contains control, hidden or bidirectional characters.
    #[error(
        "invalid path {path:?}: it is empty or contains a control or invisible character. Write each \
         byte of such a character as an octal escape, such as \\033"
    )]
    InvalidPath {
        /// The path as the caller spelled it.
        path: String,
    },
    /// The path is a folder where the operation needs a file.
    #[error("{path} is a folder")]
    IsFolder { path: String },
    /// The file no longer contains `FileWrite::before`: another program changed it since.
    #[error(
        "{path} has changed since it was read (by a command, a formatter or another program); \
         nothing was written. Read it again"
    )]
    Stale { path: String },
    /// The owner of the file has made it read-only.
    #[error("{path} is read-only; nothing was written. Its owner can make it writable")]
    ReadOnly { path: String },
    /// Another program saved the file repeatedly while it was being changed.
    #[error(
        "nothing was written, because another program kept saving the file. A previous version \
         of its content is in {kept_path}"
    )]
    ConcurrentSave {
        /// Path of the other program's content that the rollback kept.
        kept_path: String,
    },
    /// One `write_files` batch would change the path twice.
    #[error("{path} is listed twice; nothing was written")]
    DuplicatePath { path: String },
    /// The file exceeds `MAX_CHANGED_FILE_BYTES`, so its old content cannot be kept.
    #[error(
        "{path} is {bytes} bytes, but only files up to 32 MiB can be changed here, because the \
         old content is kept. Use a command instead"
    )]
    TooLarge { path: String, bytes: u64 },
    /// The `ChangeRecorder` could not record the change.
    #[error("nothing was written, because the change could not be recorded: {reason}")]
    NotRecorded { reason: String },
    /// The workspace folder was removed, or replaced by another one.
    #[error(
        "the folder {path} was removed or replaced since Windlass started in it. Tell the user to \
         restart Windlass there"
    )]
    WorkspaceReplaced { path: String },
    #[error("{path} does not exist")]
    NotFound { path: String },
    /// The operating system refused the operation.
    #[error("{path}: {source}")]
    Io {
        /// The resolved path, or the path as spelled if resolving it failed.
        path: String,
        source: std::io::Error,
    },
    /// The machine cannot enforce the sandbox that the command requires.
    #[error(
        "the command was not run, because its sandbox could not be set up: {reason}. Run \
         `windlass doctor` to see what this machine supports"
    )]
    SandboxUnavailable {
        /// The missing feature or the setting that rules the sandbox out.
        reason: String,
    },
    /// `run_helper` could not start the helper process, or its pipes failed.
    #[error("the helper process could not be started: {source}")]
    HelperFailed { source: std::io::Error },
    /// The helper process exceeded the time limit of `run_helper`.
    #[error("timed out after {seconds} s; the file may be damaged or too large")]
    HelperTimeout {
        /// The time limit.
        seconds: u64,
    },
    /// The helper process crashed or ran into its resource limits.
    #[error("the helper process crashed; the file may be damaged or too large")]
    HelperCrashed,
    /// The helper process rejected the input.
    #[error("{message}")]
    HelperRejected {
        /// The message of the helper process, verbatim.
        message: String,
    },
    /// The supervisor could not be started, or the connection to it failed.
    #[error("the command supervisor could not be started: {source}. Try again")]
    SupervisorFailed { source: std::io::Error },
    #[error("the command was not started: {reason}")]
    NotStarted { reason: String },
    /// A long-running process was not started.
    #[error("{process} was not started: {reason}")]
    ProcessNotStarted {
        /// Display name of the process.
        process: String,
        /// The cause, followed by a remedy.
        reason: String,
    },
    /// `open_page` could not open the page in a browser.
    #[error("the page could not be opened: {reason}. Open it yourself: {url}")]
    PageNotOpened { url: String, reason: String },
    /// Another program ended the supervisor, and the running commands with it.
    #[error(
        "the command supervisor was killed by another program, and its commands with it. Run the \
         command again"
    )]
    SupervisorLost,
    /// The command was started without `stdin`.
    #[error("the command has no stdin. Start it again with one")]
    NoStdin,
    /// The command does not read its `stdin`.
    #[error(
        "the command is not reading its stdin: {written} of {total} bytes were written. Read its \
         output, then send the rest"
    )]
    StdinNotRead { written: usize, total: usize },
    /// The command closed its `stdin`.
    #[error("the command has closed its stdin. Read its last output")]
    StdinClosed,
}

/// Converts an I/O error. An error without an OS error code comes from cap-std: a component of the
/// path has become a symbolic link since it was resolved.
pub(crate) fn io_error(real: &str, source: std::io::Error) -> Error {
    let path = real.to_owned();
    match source.kind() {
        ErrorKind::NotFound => Error::NotFound { path },
        _ if source.raw_os_error().is_none() => Error::BecameSymlink { path },
        _ => Error::Io { path, source },
    }
}
