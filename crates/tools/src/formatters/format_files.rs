//! Formats all files of a call in parallel before any of them is written.

use super::{FormatResult, Formatters};
use crate::ToolIntegrations;
use crate::file_diff::{FileDiff, diff};
use futures_util::StreamExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use windlass_protocol::display_text::pluralize;
use windlass_sandbox::CallWorkspace;
use windlass_toolkit::{CallContext, CallFailure};

/// Limits of one call: files formatted in parallel, and total time.
const MAX_PARALLEL_FILES: usize = 4;
const TOTAL_FORMAT_TIMEOUT: Duration = Duration::from_secs(5);

/// The longest diffs shown to the model: per file, and for all files.
const MAX_FILE_DIFF_BYTES: usize = 4 << 10;
const MAX_TOTAL_DIFF_BYTES: usize = 16 << 10;

/// A file to write, not yet formatted.
pub(crate) struct FileToFormat {
    pub(crate) path: String,
    /// Its previous content, possibly at another path; `None` for a new file.
    pub(crate) original: Option<Arc<[u8]>>,
    pub(crate) after: Arc<[u8]>,
}

/// The result of formatting one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FormattedFile {
    /// The content to write instead of the requested one.
    pub(crate) after: Option<Arc<[u8]>>,
    /// A note for the model.
    pub(crate) note: Option<String>,
}

/// Formats files with the project's formatters and returns one result per file. Writes nothing.
pub(crate) async fn format_files(
    integrations: &ToolIntegrations,
    cx: &CallContext<'_>,
    unformatted: Vec<FileToFormat>,
) -> Result<Vec<FormattedFile>, CallFailure> {
    let Some(formatters) = &integrations.formatters else {
        return Ok(vec![FormattedFile::default(); unformatted.len()]);
    };
    let results = tokio::select! {
        biased;
        () = cx.cancel.cancelled() => {
            return Err(CallFailure::new("interrupted before anything was written"));
        }
        results = format_all(formatters, &cx.world, &unformatted) => results,
    };
    if results.iter().all(|result| *result == FormatResult::Unchanged) {
        return Ok(vec![FormattedFile::default(); unformatted.len()]);
    }
    cx.run_blocking(move |_| Ok(describe_results(unformatted, results))).await
}

async fn format_all(
    formatters: &Formatters,
    workspace: &Arc<CallWorkspace>,
    unformatted: &[FileToFormat],
) -> Vec<FormatResult> {
    let deadline = Instant::now() + TOTAL_FORMAT_TIMEOUT;
    let mut runs = Vec::with_capacity(unformatted.len());
    for file in unformatted {
        runs.push(format_one(formatters, workspace, file, deadline));
    }
    futures_util::stream::iter(runs).buffered(MAX_PARALLEL_FILES).collect().await
}

async fn format_one(
    formatters: &Formatters,
    workspace: &Arc<CallWorkspace>,
    file: &FileToFormat,
    deadline: Instant,
) -> FormatResult {
    let FileToFormat { path, original, after } = file;
    let formatting = formatters.format_file(workspace, path, original.as_deref(), after);
    tokio::time::timeout_at(deadline, formatting).await.unwrap_or_else(|_| {
        let limit = TOTAL_FORMAT_TIMEOUT.as_secs();
        FormatResult::NotFormatted(format!(
            "{path} was not formatted: the limit of {limit} s for all files was reached."
        ))
    })
}

/// Turns the formatters' results into content and notes for the model.
fn describe_results(
    unformatted: Vec<FileToFormat>,
    results: Vec<FormatResult>,
) -> Vec<FormattedFile> {
    let mut remaining = MAX_TOTAL_DIFF_BYTES;
    let describe = |(file, result): (FileToFormat, FormatResult)| {
        let FileToFormat { path, after, .. } = file;
        match result {
            FormatResult::Unchanged => FormattedFile::default(),
            FormatResult::NotFormatted(note) => FormattedFile { after: None, note: Some(note) },
            FormatResult::Changed { formatter, bytes } => {
                let note = match diff(&path, &after, &bytes) {
                    FileDiff::Unified(text) if text.len() <= MAX_FILE_DIFF_BYTES.min(remaining) => {
                        remaining -= text.len();
                        let text = text.trim_end_matches('\n');
                        format!("Formatted by {formatter}; its changes:\n{text}")
                    }
                    FileDiff::Unified(text) => {
                        let is_changed = |line: &&str| line.starts_with(['+', '-']);
                        // The two header lines of a diff begin with `+` and `-`, too.
                        let lines = text.lines().filter(is_changed).count().saturating_sub(2);
                        let lines = pluralize(lines, "line");
                        format!(
                            "{formatter} formatted {path} ({lines}); read it before you change it \
                             again."
                        )
                    }
                    FileDiff::Omitted(_) => {
                        format!("{formatter} formatted {path}; read it before you change it again.")
                    }
                };
                FormattedFile { after: Some(bytes), note: Some(note) }
            }
        }
    };
    unformatted.into_iter().zip(results).map(describe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reindented_file(lines: usize) -> (FileToFormat, FormatResult) {
        let text = |indent: &str| -> Arc<[u8]> {
            (0..lines).map(|n| format!("{indent}{n}\n")).collect::<String>().into_bytes().into()
        };
        let file = FileToFormat { path: "a.rs".into(), original: None, after: text("") };
        (file, FormatResult::Changed { formatter: "fmt".into(), bytes: text("    ") })
    }

    #[test]
    fn a_short_diff_is_shown_and_a_long_one_is_not() {
        let (file, result) = reindented_file(2);
        let [FormattedFile { after, note }] =
            describe_results(vec![file], vec![result]).try_into().unwrap();
        assert_eq!(after.as_deref(), Some(b"    0\n    1\n".as_slice()));
        let note = note.unwrap();
        assert!(note.starts_with("Formatted by fmt; its changes:\n--- a/a.rs\n"), "{note}");
        let (file, result) = reindented_file(1_000);
        let [FormattedFile { after, note }] =
            describe_results(vec![file], vec![result]).try_into().unwrap();
        assert!(after.is_some());
        let expected = "fmt formatted a.rs (2000 lines); read it before you change it again.";
        assert_eq!(note.unwrap(), expected);
    }

    #[test]
    fn notes_about_many_files_are_limited() {
        let (unformatted, results) = (0..100).map(|_| reindented_file(100)).unzip();
        let formatted = describe_results(unformatted, results);
        let all: usize =
            formatted.iter().map(|file_result| file_result.note.as_ref().unwrap().len()).sum();
        assert!(all < MAX_TOTAL_DIFF_BYTES + 100 * 100, "{all}");
        assert!(formatted.iter().all(|file_result| file_result.after.is_some()));
    }
}
