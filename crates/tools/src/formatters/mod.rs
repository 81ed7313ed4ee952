//! Runs the project's formatters on files before they are written.
//!
//! A formatter reads a file and writes it back to us, never to the disk: the log, the written file,
//! the content the model has seen, and an undo all use the same bytes. It keeps the invariant that
//! a file which was not kept formatted keeps every byte outside of an edit, and that the model's
//! own bytes can be written whatever a formatter does. Start reading at
//! [`Formatters::format_file`]; `config` maps files to formatters, `run` makes one run.

mod config;
mod format_files;
mod run;

pub use config::{FormatterConfig, builtin_formatters};
pub(crate) use format_files::{FileToFormat, format_files};

use config::{FormatterCommand, FormatterProgram};
use run::{FormatterError, FormatterRunSpec, formatter_process};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use windlass_protocol::BlobRef;
use windlass_sandbox::CallWorkspace;
use windlass_toolkit::ProcessLauncher;

const MAX_FILE_BYTES: usize = 1 << 20;

/// Entries kept in `FormatterState::formatted_files`.
const MAX_REMEMBERED_FILES: usize = 256;

/// Consecutive `FormatterError::Misbehaved` errors after which a formatter is disabled.
const MAX_CONSECUTIVE_FAILURES: u32 = 3;

const BYTE_ORDER_MARK: &str = "\u{feff}";

/// The formatters of a workspace, with the files known to be formatted and the formatters that
/// failed.
#[derive(Debug)]
pub struct Formatters {
    configs: Arc<[FormatterConfig]>,
    launcher: ProcessLauncher,
    state: Mutex<FormatterState>,
}

#[derive(Debug, Default)]
struct FormatterState {
    /// Digests of content known to be kept formatted, by path, the newest last. Content that the
    /// formatter could not read counts if the content before it did: its error is the model's.
    formatted_files: VecDeque<(String, BlobRef)>,
    /// Consecutive failures, by index in `configs`.
    failures: BTreeMap<usize, u32>,
    /// Disabled formatters, by index in `configs`, with the message about it until that was
    /// delivered.
    disabled: BTreeMap<usize, Option<String>>,
}

/// The result of formatting content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FormatResult {
    /// Nothing to change or report.
    Unchanged,
    Changed {
        formatter: String,
        /// The content to write instead of the requested one.
        bytes: Arc<[u8]>,
    },
    /// The requested content is written unformatted, for this reason.
    NotFormatted(String),
}

impl Formatters {
    /// Creates the formatters of a workspace, in order of preference. Starts no process.
    pub fn new(configs: Vec<FormatterConfig>, launcher: ProcessLauncher) -> Formatters {
        Formatters { configs: configs.into(), launcher, state: Mutex::default() }
    }

    /// Formats content before it is written, if the file is new or if the formatter would have left
    /// its previous content unchanged.
    pub(crate) async fn format_file(
        &self,
        workspace: &Arc<CallWorkspace>,
        path: &str,
        original: Option<&[u8]>,
        after: &[u8],
    ) -> FormatResult {
        let Some((mark, body)) = decode_for_formatter(after) else {
            return FormatResult::Unchanged;
        };
        if !self.configs.iter().any(|config| config.matches_file(path)) {
            return FormatResult::Unchanged;
        }
        let Some((index, command)) = self.pick_formatter(workspace, path).await else {
            return FormatResult::Unchanged;
        };
        let Some(config) = self.configs.get(index) else { return FormatResult::Unchanged };
        if let Some(notice) = self.lock_state().disabled.get(&index) {
            return notice.clone().map_or(FormatResult::Unchanged, FormatResult::NotFormatted);
        }
        let original_is_formatted = async {
            let Some(original) = original else { return Ok(true) };
            if self.is_known_formatted(path, original) {
                return Ok(true);
            }
            let Some((_, body)) = decode_for_formatter(original) else { return Ok(false) };
            let is_same = self.run_formatter(config, &command, body).await? == body;
            if is_same {
                self.remember_formatted(path, original);
            }
            Ok(is_same)
        };
        let (original_is_formatted, formatted) =
            tokio::join!(original_is_formatted, self.run_formatter(config, &command, body));
        let was_formatted = matches!(original_is_formatted, Ok(true));
        match (original_is_formatted, formatted) {
            (Ok(false), _) => FormatResult::Unchanged,
            (Ok(true), Ok(text)) => {
                self.lock_state().failures.remove(&index);
                let bytes = [mark.as_bytes(), text.as_bytes()].concat();
                self.remember_formatted(path, &bytes);
                match bytes == after {
                    true => FormatResult::Unchanged,
                    false => FormatResult::Changed {
                        formatter: config.name.clone(),
                        bytes: bytes.into(),
                    },
                }
            }
            // The formatter could not read the previous content, so it is unknown whether the file
            // was kept formatted.
            (Err(error), Ok(_)) => {
                if !matches!(error, FormatterError::Rejected(_)) {
                    self.record_failure(index, config, path, error);
                }
                FormatResult::Unchanged
            }
            (Ok(true) | Err(_), Err(error)) => {
                if was_formatted {
                    self.remember_formatted(path, after);
                }
                FormatResult::NotFormatted(self.record_failure(index, config, path, error))
            }
        }
    }

    /// Clears the messages about disabled formatters after they were delivered.
    pub(crate) fn clear_disabled_notices(&self) {
        self.lock_state().disabled.values_mut().for_each(|notice| *notice = None);
    }

    /// Returns the first formatter that is set up for a file.
    async fn pick_formatter(
        &self,
        workspace: &Arc<CallWorkspace>,
        path: &str,
    ) -> Option<(usize, FormatterCommand)> {
        let (configs, workspace, path) =
            (Arc::clone(&self.configs), Arc::clone(workspace), path.to_owned());
        let search = tokio::task::spawn_blocking(move || {
            let mut configs =
                configs.iter().enumerate().filter(|(_, config)| config.matches_file(&path));
            configs
                .find_map(|(index, config)| Some((index, config.command_for(&workspace, &path)?)))
        });
        search.await.ok().flatten()
    }

    async fn run_formatter(
        &self,
        config: &FormatterConfig,
        command: &FormatterCommand,
        input: &str,
    ) -> Result<String, FormatterError> {
        let root = self.launcher.workspace().root();
        let program = match &command.program {
            FormatterProgram::InWorkspace(path) => root.join(path),
            FormatterProgram::System(name) => name.into(),
        };
        let mut process = formatter_process(&config.name, program, root.join(&command.folder));
        process.arguments = command.arguments.iter().map(Into::into).collect();
        process.env = config.env.iter().map(|(name, value)| (name.into(), value.into())).collect();
        FormatterRunSpec { launcher: &self.launcher, process, timeout: config.timeout() }
            .run(input)
            .await
    }

    /// Records a failure and returns the message about it. A formatter that keeps failing is
    /// disabled.
    fn record_failure(
        &self,
        index: usize,
        config: &FormatterConfig,
        path: &str,
        error: FormatterError,
    ) -> String {
        let name = &config.name;
        let mut state = self.lock_state();
        let (message, disable) = match error {
            FormatterError::Rejected(reason) => {
                return format!("{name} did not format {path}: {reason}");
            }
            FormatterError::Misbehaved(description) => {
                let failures = state.failures.entry(index).or_default();
                *failures = failures.saturating_add(1);
                (
                    format!("{name} {description}; {path} was not formatted."),
                    *failures >= MAX_CONSECUTIVE_FAILURES,
                )
            }
            FormatterError::NotStarted(reason) => {
                let hint = match config.install.as_str() {
                    "" => String::new(),
                    install => format!(" To install it: {install}."),
                };
                (format!("{path} was not formatted: {}.{hint}", reason.trim_end_matches('.')), true)
            }
        };
        if !disable {
            return message;
        }
        let message = format!("{message} From now on, {name} is disabled.");
        state.disabled.insert(index, Some(message.clone()));
        message
    }

    fn is_known_formatted(&self, path: &str, bytes: &[u8]) -> bool {
        let digest = BlobRef::for_bytes(bytes);
        self.lock_state()
            .formatted_files
            .iter()
            .any(|(name, known)| name == path && *known == digest)
    }

    fn remember_formatted(&self, path: &str, bytes: &[u8]) {
        let entry = (path.to_owned(), BlobRef::for_bytes(bytes));
        let mut state = self.lock_state();
        state.formatted_files.retain(|known| *known != entry);
        if state.formatted_files.len() >= MAX_REMEMBERED_FILES {
            state.formatted_files.pop_front();
        }
        state.formatted_files.push_back(entry);
    }

    fn lock_state(&self) -> MutexGuard<'_, FormatterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Splits content into its byte-order mark and its text; `None` if a formatter cannot take it.
fn decode_for_formatter(bytes: &[u8]) -> Option<(&'static str, &str)> {
    let text = std::str::from_utf8(bytes).ok().filter(|text| text.len() <= MAX_FILE_BYTES)?;
    Some(match text.strip_prefix(BYTE_ORDER_MARK) {
        Some(body) => (BYTE_ORDER_MARK, body),
        None => ("", text),
    })
}

#[cfg(test)]
mod tests;
