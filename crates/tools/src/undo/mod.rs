//! The `undo` tool: reverts a session's file changes and nothing else.
//!
//! The user requests it, and the session lists the changes from its log. Later changes by the user
//! or other programs stay: [`merge`] removes only the session's changes. Reverting an undo works
//! the same way, so there is no separate redo.

mod diff3;
mod merge;

use crate::file_diff::diff;
use crate::file_edit::restore_files;
use async_trait::async_trait;
use merge::{AgentEdit, UndoResult, undo_edits};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use windlass_lsp::LanguageServers;
use windlass_protocol::display_text::pluralize;
use windlass_protocol::file_history::{SKIPPED_FILES_KEY, UNDO_TOOL};
use windlass_protocol::{
    CallDescription, DiffDirection, FileChange, FileVersion, OutputDisplay, ToolAccess, ToolOutput,
};
use windlass_sandbox::{FileContent, FileWrite};
use windlass_toolkit::{BeforeAfter, CallContext, CallFailure, StepContext, Tool, ToolDefinition};

/// The `undo` tool.
#[derive(Default)]
pub struct UndoTool {
    pub(crate) language_servers: Option<LanguageServers>,
}

#[async_trait]
impl Tool for UndoTool {
    type Input = windlass_protocol::UndoArguments;

    fn name(&self) -> &str {
        UNDO_TOOL
    }

    fn describe_call(
        &self,
        input: &windlass_protocol::UndoArguments,
        _root: &str,
    ) -> Option<CallDescription> {
        Some(match input.is_redo {
            true => CallDescription::new("Redo", "redoing", ""),
            false => CallDescription::new("Undo", "undoing", ""),
        })
    }

    fn permission_key(&self) -> &str {
        "edit"
    }

    /// Returns false, because only the user may undo.
    fn is_offered(&self, _context: &StepContext) -> bool {
        false
    }

    async fn describe(&self, _context: &StepContext) -> ToolDefinition {
        ToolDefinition::for_input::<windlass_protocol::UndoArguments>(include_str!(
            "description.md"
        ))
    }

    fn access(&self, input: &Self::Input) -> Vec<ToolAccess> {
        let paths: BTreeSet<&String> = input.changes.iter().map(|change| &change.path).collect();
        paths.into_iter().map(|path| ToolAccess::Edit { path: path.clone() }).collect()
    }

    async fn preview(
        &self,
        input: &Self::Input,
        cx: &CallContext<'_>,
    ) -> Result<Option<String>, CallFailure> {
        let plan = UndoPlan::build(input, cx).await?;
        Ok(Some(plan.diff + &plan.notes.concat()))
    }

    async fn run(
        &self,
        input: Self::Input,
        cx: &CallContext<'_>,
    ) -> Result<ToolOutput, CallFailure> {
        let UndoPlan { writes, diff, notes, skipped_files } = UndoPlan::build(&input, cx).await?;
        let paths: Vec<&str> = writes.iter().map(|write| write.path.as_str()).collect();
        let summary = match paths.as_slice() {
            [] if !skipped_files.is_empty() => {
                return Err(CallFailure::new(format!("Nothing was changed.\n{}", notes.concat())));
            }
            [] => "The files already have their earlier content.\n".to_owned(),
            paths => {
                format!("Restored {}: {}.\n", pluralize(paths.len(), "file"), paths.join(", "))
            }
        };
        if !writes.is_empty() {
            // The model learns that the files changed but not their contents, so it must read them
            // again.
            restore_files(self.language_servers.as_ref(), cx, writes).await?;
        }
        let display = OutputDisplay::Diff { unified_diff: diff };
        let (title, text) = (summary.trim().to_owned(), summary + &notes.concat());
        let metadata = [(SKIPPED_FILES_KEY.to_owned(), skipped_files.into())].into_iter().collect();
        Ok(ToolOutput { title, text, display, metadata, ..ToolOutput::default() })
    }
}

/// The `FileWrite`s of an undo, with their diff.
#[derive(Default)]
struct UndoPlan {
    writes: Vec<FileWrite>,
    diff: String,
    /// One line per point that the user must know.
    notes: Vec<String>,
    /// Paths of the files left unchanged, reported under `SKIPPED_FILES_KEY`.
    skipped_files: Vec<String>,
}

/// The modes of a file before the first change and after the last one.
struct FileModes {
    before: Option<u32>,
    after: Option<u32>,
}

impl UndoPlan {
    async fn build(
        input: &windlass_protocol::UndoArguments,
        cx: &CallContext<'_>,
    ) -> Result<UndoPlan, CallFailure> {
        let mut files: BTreeMap<&str, Vec<FileChange>> = BTreeMap::new();
        for change in &input.changes {
            let changes = files.entry(&change.path).or_default();
            // Most changes continue where the previous one ended; then only the first and last
            // version matter.
            match changes
                .last_mut()
                .filter(|last| version_blob(&last.after) == version_blob(&change.before))
            {
                Some(last) => last.after.clone_from(&change.after),
                None => changes.push(change.clone()),
            }
        }
        let mut plan = UndoPlan::default();
        plan.notes.extend(
            input
                .not_captured
                .iter()
                .map(|text| format!("Changed by a command and not restored: {text}\n")),
        );
        for (path, changes) in files {
            match load_versions(&changes, cx).await {
                Ok(versions) => {
                    let mode = |version: Option<&FileVersion>| version?.unix_mode;
                    let modes = FileModes {
                        before: mode(changes.first().and_then(|change| change.before.as_ref())),
                        after: mode(changes.last().and_then(|change| change.after.as_ref())),
                    };
                    plan.add_file(path.to_owned(), versions, (modes, input.direction), cx).await?;
                }
                Err(failure) => plan.skip_file(path, &failure.text),
            }
        }
        Ok(plan)
    }

    fn skip_file(&mut self, path: &str, reason: &str) {
        self.notes.push(format!("{path} was left unchanged: {reason}\n"));
        self.skipped_files.push(path.to_owned());
    }

    async fn add_file(
        &mut self,
        path: String,
        versions: Vec<BeforeAfter>,
        (modes, direction): (FileModes, DiffDirection),
        cx: &CallContext<'_>,
    ) -> Result<(), CallFailure> {
        let name = path.clone();
        let oldest = versions.first().and_then(|[before, _]| before.clone());
        let computed = cx
            .run_blocking(move |workspace| {
                let current = workspace.load_file(&name)?;
                let bytes = current.as_ref().map(|content| &*content.bytes);
                let edits: Vec<AgentEdit<'_>> = versions
                    .iter()
                    .map(|[before, after]| AgentEdit {
                        before: before.as_deref(),
                        after: after.as_deref(),
                    })
                    .collect();
                let result = undo_edits(bytes, &edits);
                Ok((current, result))
            })
            .await;
        let (current, result) = match computed {
            Ok(computed) => computed,
            // A folder or a link may have taken its place; the other files can be undone.
            Err(failure) => {
                self.skip_file(&path, &failure.text);
                return Ok(());
            }
        };
        // If the mode has changed since, the new one stays.
        let current_mode = current.as_ref().and_then(|content| content.mode);
        let mode = modes.before.filter(|mode| match &current {
            None => true,
            Some(_) => current_mode == modes.after && current_mode != Some(*mode),
        });
        if current_mode.is_some_and(|mode| mode & 0o200 == 0)
            && !matches!(result, UndoResult::Unchanged)
        {
            self.skip_file(&path, "it is read-only");
            return Ok(());
        }
        let after = match result {
            UndoResult::Unchanged if mode.is_none() || current.is_none() => return Ok(()),
            UndoResult::Unchanged => current.as_ref().map(|content| Arc::clone(&content.bytes)),
            UndoResult::Content(after) => after.map(Arc::from),
            UndoResult::Conflict { .. } if direction == DiffDirection::Forward => {
                self.notes.push(format!("{path} has other changes in the same places\n"));
                oldest
            }
            UndoResult::Conflict { content, conflicts, unreverted } => {
                let conflicts = pluralize(conflicts, "place");
                let more = match unreverted {
                    0 => String::new(),
                    unreverted => {
                        format!(
                            "; {} to it could not be undone",
                            pluralize(unreverted, "older change")
                        )
                    }
                };
                self.notes.push(format!(
                    "{path} has other changes in the same {conflicts}; both versions are marked \
                     there. Choose between them{more}\n"
                ));
                Some(content.into())
            }
            UndoResult::Unmergeable { reason } => {
                self.skip_file(&path, &reason);
                return Ok(());
            }
        };
        let before = current.map(|FileContent { bytes, .. }| bytes);
        let sides = (before.clone(), after.clone(), path.clone());
        let file_diff = cx.run_blocking(move |_| {
            let (current, restored, path) = sides;
            let [current, restored] =
                [&current, &restored].map(|side| side.as_deref().unwrap_or_default());
            Ok(match direction {
                DiffDirection::Reverse => diff(&path, current, restored),
                DiffDirection::Forward => diff(&path, restored, current),
            })
        });
        self.diff.push_str(&file_diff.await?.into_text());
        self.writes.push(FileWrite { path, before, after, mode });
        Ok(())
    }
}

fn version_blob(version: &Option<FileVersion>) -> Option<&windlass_protocol::BlobRef> {
    version.as_ref().map(|version| &version.blob)
}

async fn load_versions(
    changes: &[FileChange],
    cx: &CallContext<'_>,
) -> Result<Vec<BeforeAfter>, CallFailure> {
    let mut versions = Vec::with_capacity(changes.len());
    for change in changes {
        versions.push(cx.caller.file_versions(change).await?);
    }
    Ok(versions)
}

#[cfg(test)]
mod tests;
