//! Loads a file, checks it against the content the caller has seen, and writes changes to it.
//!
//! A file is not overwritten if the model has not read it, or if it changed since; only an edit
//! whose text matches exactly needs no such check. The digest of the content decides, so touching a
//! file is not a change. Content is formatted by the project's
//! formatter before it is written, and language servers are notified.

use crate::ToolIntegrations;
use crate::file_diff::{FileDiff, diff};
use crate::formatters::{FileToFormat, format_files};
use crate::nearby_instructions::instructions_after_change;
use crate::text::FileText;
use serde_json::json;
use std::sync::Arc;
use windlass_lsp::{DiagnosticsReport, LanguageServers};
use windlass_protocol::{BlobRef, CallAuthor, OutputDisplay, ToolOutput};
use windlass_sandbox::{FileContent, FileWrite};
use windlass_toolkit::{CallContext, CallFailure};

/// The longest diff that still counts as having shown the file to the model.
const MAX_SEEN_DIFF_BYTES: usize = 16 * 1024;

/// The metadata key under which front ends find the number of errors a change introduced.
const DIAGNOSTICS_METADATA_KEY: &str = "diagnostics";

/// A file that may be changed.
pub(crate) struct FileToChange {
    /// The resolved path.
    pub(crate) path: String,
    pub(crate) content: Option<FileContent>,
}

/// The new content of a file, before it is written.
pub(crate) struct ProposedEdit {
    pub(crate) path: String,
    pub(crate) before: Option<Arc<[u8]>>,
    pub(crate) after: Arc<[u8]>,
    /// The diff shown to the user.
    pub(crate) diff: String,
    /// Notes for the model about the change.
    pub(crate) notes: Vec<String>,
}

impl FileToChange {
    /// Loads a file without checking that the caller has seen it.
    pub(crate) async fn load(
        cx: &CallContext<'_>,
        path: &str,
    ) -> Result<FileToChange, CallFailure> {
        let path = path.to_owned();
        cx.run_blocking(move |workspace| {
            let content = workspace.load_file(&path)?;
            Ok(FileToChange { path: workspace.resolve_path(&path)?, content })
        })
        .await
    }

    /// Loads a file for a change: the caller must have seen its current content.
    pub(crate) async fn load_seen(
        cx: &CallContext<'_>,
        path: &str,
    ) -> Result<FileToChange, CallFailure> {
        let target = FileToChange::load(cx, path).await?;
        target.check_seen(cx).await?;
        Ok(target)
    }

    /// Fails if the model has not seen the current content of the file. If the failure can show the
    /// difference, the content counts as seen from then on. Calls of the user are not checked.
    pub(crate) async fn check_seen(&self, cx: &CallContext<'_>) -> Result<(), CallFailure> {
        let Some(content) = self.content.as_ref().filter(|_| cx.author == CallAuthor::Model) else {
            return Ok(());
        };
        let path = &self.path;
        let Some(seen) = cx.caller.last_seen(path) else {
            let text = format!("{path} has not been read in this session. Read it first");
            return Err(CallFailure::new(text));
        };
        let changed = match seen.is_changed_by_command {
            true => "was changed by your own command after you last saw it",
            false => "has changed since you last saw it",
        };
        let (name, bytes) = (path.clone(), Arc::clone(&content.bytes));
        let comparison = cx.run_blocking(move |_| {
            if seen.digest == BlobRef::for_bytes(&bytes) {
                return Ok(None);
            }
            let diff_text = match seen.bytes.map(|before| diff(&name, &before, &bytes)) {
                Some(FileDiff::Unified(diff_text)) if diff_text.len() <= MAX_SEEN_DIFF_BYTES => {
                    Some(diff_text)
                }
                Some(FileDiff::Unified(_) | FileDiff::Omitted(_)) | None => None,
            };
            Ok(Some(diff_text))
        });
        Err(CallFailure::new(match comparison.await? {
            None => return Ok(()),
            Some(Some(diff_text)) => {
                cx.caller.mark_seen(path, &content.bytes);
                format!(
                    "{path} {changed}; nothing was written. Review this change and try \
                     again:\n{diff_text}"
                )
            }
            Some(None) => format!("{path} {changed}; nothing was written. Read it again"),
        }))
    }
}

impl ProposedEdit {
    /// Creates a change of a loaded file; `None` if the content would stay the same.
    pub(crate) fn new(
        path: String,
        before: Option<Arc<[u8]>>,
        after: Vec<u8>,
    ) -> Option<ProposedEdit> {
        if before.as_deref() == Some(after.as_slice()) {
            return None;
        }
        let diff = diff(&path, before.as_deref().unwrap_or_default(), &after).into_text();
        Some(ProposedEdit { path, before, after: after.into(), diff, notes: Vec::new() })
    }

    /// Replaces the content with the output of the project's formatter. Previews do this too, so
    /// the content written is the content shown.
    pub(crate) async fn apply_formatter(
        mut self,
        integrations: &ToolIntegrations,
        cx: &CallContext<'_>,
    ) -> Result<ProposedEdit, CallFailure> {
        let (path, original, after) = (self.path.clone(), self.before.clone(), self.after.clone());
        let formatted =
            format_files(integrations, cx, vec![FileToFormat { path, original, after }]).await?;
        for formatted in formatted {
            if let Some(after) = formatted.after {
                if self.before.as_ref() == Some(&after) {
                    return Err(CallFailure::new(formatter_undid_change(&self.path)));
                }
                let (path, before) = (self.path.clone(), self.before.clone().unwrap_or_default());
                self.after = Arc::clone(&after);
                let rendering =
                    cx.run_blocking(move |_| Ok(diff(&path, &before, &after).into_text()));
                self.diff = rendering.await?;
            }
            self.notes.extend(formatted.note);
        }
        Ok(self)
    }

    /// Writes the change, unless the file has changed in the meantime.
    pub(crate) async fn apply(
        self,
        integrations: &ToolIntegrations,
        cx: &CallContext<'_>,
        summary: String,
    ) -> Result<ToolOutput, CallFailure> {
        let ProposedEdit { path, before, after, diff, notes } = self;
        let rewrite = FileWrite { path: path.clone(), before, after: Some(after), mode: None };
        let review = write_and_review(integrations, cx, vec![rewrite]).await?;
        let text = std::iter::once(summary).chain(notes).collect::<Vec<_>>().join("\n");
        let display = OutputDisplay::Diff { unified_diff: diff };
        Ok(with_review(ToolOutput { text, display, ..ToolOutput::default() }, review))
    }
}

/// Returns the error for a change that the formatter undoes completely.
pub(crate) fn formatter_undid_change(path: &str) -> String {
    format!(
        "{path} would be unchanged after formatting; nothing changed. Leave its layout to the \
         formatter"
    )
}

/// Notes for the model about files that it changed.
#[derive(Default)]
pub(crate) struct WriteReview {
    diagnostics: Option<DiagnosticsReport>,
    /// Instructions for the files that the model had not seen.
    instructions: String,
}

/// Adds the review of a change to an output.
pub(crate) fn with_review(mut output: ToolOutput, review: WriteReview) -> ToolOutput {
    if let Some(DiagnosticsReport { text, new_errors, remaining_errors, .. }) = review.diagnostics {
        output.metadata.insert(
            DIAGNOSTICS_METADATA_KEY.to_owned(),
            json!({"new": new_errors, "left": remaining_errors}),
        );
        if !text.is_empty() {
            output.text.push('\n');
            output.text.push_str(&text);
        }
    }
    output.text.push_str(&review.instructions);
    output
}

/// Writes files, all or none.
pub(crate) async fn write_files(
    cx: &CallContext<'_>,
    writes: Vec<FileWrite>,
) -> Result<Vec<FileWrite>, CallFailure> {
    if cx.cancel.is_cancelled() {
        return Err(CallFailure::new("interrupted before anything was written"));
    }
    cx.run_blocking(move |workspace| {
        workspace.write_files(&writes)?;
        Ok(writes)
    })
    .await
}

/// Returns true if the caller has seen this content of a file, or the file is new.
fn has_seen(cx: &CallContext<'_>, path: &str, content: Option<&[u8]>) -> bool {
    content.is_none_or(|content| {
        let seen = cx.caller.last_seen(path);
        seen.is_some_and(|seen| seen.digest == BlobRef::for_bytes(content))
    })
}

/// Writes files whose content comes from the caller: they count as seen if their earlier content
/// did, and a model receives a `WriteReview`.
pub(crate) async fn write_and_review(
    integrations: &ToolIntegrations,
    cx: &CallContext<'_>,
    writes: Vec<FileWrite>,
) -> Result<WriteReview, CallFailure> {
    let language_servers = integrations.language_servers.as_ref();
    let before = language_servers.map(|language_servers| {
        let paths: Vec<String> = writes.iter().map(|rewrite| rewrite.path.clone()).collect();
        language_servers.snapshot_before(&cx.world, &paths)
    });
    let writes = write_files(cx, writes).await?;
    for FileWrite { path, before, after, .. } in &writes {
        if let Some(after) = after.as_ref().filter(|_| has_seen(cx, path, before.as_deref())) {
            cx.caller.mark_seen(path, after);
        }
    }
    if let Some(formatters) = &integrations.formatters {
        formatters.clear_disabled_notices();
    }
    let instructions = match cx.author {
        CallAuthor::Model => {
            let is_written = |write: &&FileWrite| write.after.is_some();
            let paths = writes.iter().filter(is_written).map(|write| write.path.clone());
            instructions_after_change(&paths.collect::<Vec<_>>(), cx).await
        }
        CallAuthor::User | CallAuthor::Command | CallAuthor::Goal => String::new(),
    };
    let without_diagnostics = |instructions| WriteReview { diagnostics: None, instructions };
    let Some((language_servers, before)) = language_servers.zip(before) else {
        return Ok(without_diagnostics(instructions));
    };
    // The files are written: no error from here on may fail the call.
    let Ok(written) = decode_written_files(cx, writes).await else {
        return Ok(without_diagnostics(instructions));
    };
    let diagnostics = match cx.author {
        CallAuthor::Model => {
            let reviewing =
                language_servers.review_after(&cx.world, cx.session, before, written, &cx.cancel);
            tokio::select! {
                // `biased` polls the review first, so that servers are notified even if the call
                // is canceled and does not wait for their diagnostics.
                biased;
                review = reviewing => review,
                () = cx.cancel.cancelled() => None,
            }
        }
        CallAuthor::User | CallAuthor::Command | CallAuthor::Goal => {
            language_servers.notify_changed(&cx.world, written);
            None
        }
    };
    Ok(WriteReview { diagnostics, instructions })
}

/// Writes files whose content the caller did not write, and notifies language servers without
/// waiting for diagnostics.
pub(crate) async fn restore_files(
    language_servers: Option<&LanguageServers>,
    cx: &CallContext<'_>,
    writes: Vec<FileWrite>,
) -> Result<(), CallFailure> {
    let writes = write_files(cx, writes).await?;
    let Some(language_servers) = language_servers else { return Ok(()) };
    if let Ok(written) = decode_written_files(cx, writes).await {
        language_servers.notify_changed(&cx.world, written);
    }
    Ok(())
}

/// Returns the text that was written to each file; `None` for removed files. Files that are not
/// text are left out.
async fn decode_written_files(
    cx: &CallContext<'_>,
    writes: Vec<FileWrite>,
) -> Result<Vec<(String, Option<Arc<str>>)>, CallFailure> {
    cx.run_blocking(move |_| {
        let to_text = |FileWrite { path, after, .. }: FileWrite| match after {
            None => Some((path, None)),
            Some(bytes) => Some((path, Some(decode_text(&bytes)?))),
        };
        Ok(writes.into_iter().filter_map(to_text).collect())
    })
    .await
}

/// Decodes a file for language servers. UTF-8 text keeps its line endings but loses its byte-order
/// mark.
fn decode_text(bytes: &[u8]) -> Option<Arc<str>> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => {
            Some(text.strip_prefix('\u{feff}').unwrap_or(text).into())
        }
        Ok(_) | Err(_) => Some(FileText::decode(bytes.to_vec()).ok()?.view().into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_in_any_encoding_is_decoded_and_binary_is_not() {
        assert_eq!(decode_text("\u{feff}a\r\nä".as_bytes()).as_deref(), Some("a\r\nä"));
        assert_eq!(decode_text(b"\xff\xfea\0\n\0").as_deref(), Some("a\n"));
        assert_eq!(decode_text(b"").as_deref(), Some(""));
        assert_eq!(decode_text(&[0, 159, 146, 150, 0, 1, 2, 255]), None);
    }

    #[test]
    fn a_review_is_appended_and_counted() {
        let output = || ToolOutput { text: "Edited a.".into(), ..ToolOutput::default() };
        assert_eq!(with_review(output(), WriteReview::default()), output());
        let review = DiagnosticsReport {
            text: "This introduces 1 new error.".into(),
            new_errors: 1,
            remaining_errors: 2,
        };
        let instructions = "\nUse tabs.\n".to_owned();
        let reviewed =
            with_review(output(), WriteReview { diagnostics: Some(review), instructions });
        assert_eq!(reviewed.text, "Edited a.\nThis introduces 1 new error.\nUse tabs.\n");
        assert_eq!(reviewed.metadata.get("diagnostics"), Some(&json!({"new": 1, "left": 2})));
    }
}
