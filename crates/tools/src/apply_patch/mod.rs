//! The `apply_patch` tool: changes several files with one patch, all of them or none.
//!
//! [`parse_patch`] reads the patch and `plan_changes` decides from the current contents how each
//! file changes, before any file is touched. This module turns the plan into one batch of writes. A
//! patch that is truncated, ambiguous or does not fit is refused as a whole.

mod anchor;
mod line_search;
mod locate_hunks;
mod parse;
mod plan;
mod reindent;

pub use locate_hunks::{LocatedHunks, locate_hunks};
use parse::map_paths;
pub use parse::{HunkLine, PatchHunk, PatchSection, parse_patch};
pub(crate) use plan::{PatchFileSource, PlannedChange, patch_paths, plan_changes};

use crate::ToolIntegrations;
use crate::file_diff::diff;
use crate::file_edit::{FileToChange, formatter_undid_change, with_review, write_and_review};
use crate::formatters::{FileToFormat, format_files};

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use windlass_protocol::{CallDescription, OutputDisplay, ToolAccess, ToolOutput};
use windlass_sandbox::{FileContent, FileWrite, WorkingFolder};
use windlass_toolkit::{
    CallContext, CallFailure, StepContext, Tool, ToolDefinition, relative_path,
};

/// The `apply_patch` tool.
#[derive(Default)]
pub struct ApplyPatchTool {
    pub(crate) integrations: ToolIntegrations,
}

/// Arguments of `apply_patch`.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApplyPatchInput {
    /// The whole patch, from `*** Begin Patch` to `*** End Patch`.
    patch_text: String,
}

/// Names the files of a patch: the first two, and the number of the others.
fn summarize_files(patch: &str, root: &str) -> String {
    let paths = patch.lines().filter_map(|line| {
        let (action, path) = line.strip_prefix("*** ")?.split_once(" File: ")?;
        matches!(action, "Add" | "Update" | "Delete").then_some(relative_path(path.trim(), root))
    });
    let files: Vec<&str> = paths.collect();
    match files.as_slice() {
        [] => String::new(),
        [first] => (*first).to_owned(),
        [first, second] => format!("{first}, {second}"),
        [first, second, others @ ..] => format!("{first}, {second} and {} more", others.len()),
    }
}

#[async_trait]
impl Tool for ApplyPatchTool {
    type Input = ApplyPatchInput;

    fn name(&self) -> &str {
        "apply_patch"
    }

    fn is_served(&self) -> bool {
        true
    }

    fn claude_names(&self) -> &'static [&'static str] {
        &["apply_patch", "Edit", "MultiEdit", "Write"]
    }

    fn describe_call(&self, input: &ApplyPatchInput, root: &str) -> Option<CallDescription> {
        let files = summarize_files(&input.patch_text, root);
        Some(CallDescription::new("Patch", "patching", files))
    }

    fn permission_key(&self) -> &str {
        "edit"
    }

    fn is_offered(&self, context: &StepContext) -> bool {
        crate::prefers_patches(context)
    }

    async fn describe(&self, _context: &StepContext) -> ToolDefinition {
        ToolDefinition::for_input::<ApplyPatchInput>(include_str!("description.md"))
    }

    fn resolve_paths(&self, input: &mut ApplyPatchInput, folder: &WorkingFolder) {
        input.patch_text = map_paths(&input.patch_text, |path| folder.resolve(path));
    }

    /// Returns no access for a patch that cannot be parsed, because such a patch touches no file.
    fn access(&self, input: &ApplyPatchInput) -> Vec<ToolAccess> {
        let paths = parse_patch(&input.patch_text)
            .map(|sections| patch_paths(&sections))
            .unwrap_or_default();
        paths.into_iter().map(|path| ToolAccess::Edit { path }).collect()
    }

    async fn preview(
        &self,
        input: &ApplyPatchInput,
        cx: &CallContext<'_>,
    ) -> Result<Option<String>, CallFailure> {
        Ok(Some(
            PatchPlan::build(input, cx).await?.apply_formatters(&self.integrations, cx).await?.diff,
        ))
    }

    async fn run(
        &self,
        input: ApplyPatchInput,
        cx: &CallContext<'_>,
    ) -> Result<ToolOutput, CallFailure> {
        let plan =
            PatchPlan::build(&input, cx).await?.apply_formatters(&self.integrations, cx).await?;
        let PatchPlan { writes, summary_lines, notes, diff, .. } = plan;
        let review = write_and_review(&self.integrations, cx, writes).await?;
        let display = OutputDisplay::Diff { unified_diff: diff };
        let text = summary_lines.into_iter().chain(notes).collect::<Vec<_>>().join("\n");
        Ok(with_review(ToolOutput { text, display, ..ToolOutput::default() }, review))
    }
}

/// The `FileWrite`s of a patch, with their summary and diff.
#[derive(Default)]
struct PatchPlan {
    writes: Vec<FileWrite>,
    /// Original contents of moved files, by target path.
    moved_contents: BTreeMap<String, Arc<[u8]>>,
    /// One sentence per changed file.
    summary_lines: Vec<String>,
    /// Points that the model should check again.
    notes: Vec<String>,
    diff: String,
}

/// Current state of the files that a patch names, by resolved path.
struct PatchFiles(BTreeMap<String, FileToChange>);

impl PatchFileSource for PatchFiles {
    fn bytes(&mut self, path: &str) -> Result<Option<Arc<[u8]>>, PatchError> {
        Ok(self.current_bytes(path))
    }
}

impl PatchFiles {
    /// Loads every file and replaces the paths in `sections` by resolved ones.
    async fn load(
        sections: &mut [PatchSection],
        cx: &CallContext<'_>,
    ) -> Result<PatchFiles, CallFailure> {
        let mut files = BTreeMap::new();
        let mut spellings: BTreeMap<String, String> = BTreeMap::new();
        for spelling in patch_paths(sections) {
            let target = FileToChange::load(cx, &spelling).await?;
            if let Some(other) = spellings.insert(target.path.clone(), spelling.clone()) {
                let message = format!(
                    "{other} and {spelling} are the same file. Use one spelling of its \
                             path."
                );
                return Err(patch_failure(PatchError::new(message)));
            }
            files.insert(target.path.clone(), target);
        }
        let resolved_paths: BTreeMap<String, String> =
            spellings.into_iter().map(|(resolved, spelling)| (spelling, resolved)).collect();
        for path in sections.iter_mut().flat_map(PatchSection::paths_mut) {
            if let Some(resolved) = resolved_paths.get(path) {
                resolved.clone_into(path);
            }
        }
        Ok(PatchFiles(files))
    }

    /// Refuses to destroy content that the model has not seen. A hunk itself proves knowledge of
    /// the text it changes. An overwritten file must have been read; a deleted file, if it was
    /// read, must be unchanged since.
    async fn check_seen(
        &self,
        sections: &[PatchSection],
        cx: &CallContext<'_>,
    ) -> Result<(), CallFailure> {
        for section in sections {
            let destroyed = match section {
                PatchSection::Add { path, .. } => Some(path),
                PatchSection::Delete { path } => {
                    Some(path).filter(|path| cx.caller.last_seen(path).is_some())
                }
                PatchSection::Update { path, move_to, .. } => {
                    move_to.as_ref().filter(|target| *target != path)
                }
            };
            if let Some(target) = destroyed.and_then(|path| self.0.get(path)) {
                target.check_seen(cx).await?;
            }
        }
        Ok(())
    }

    fn content(&self, path: &str) -> Option<&FileContent> {
        self.0.get(path)?.content.as_ref()
    }

    fn current_bytes(&self, path: &str) -> Option<Arc<[u8]>> {
        self.content(path).map(|content| Arc::clone(&content.bytes))
    }
}

impl PatchPlan {
    async fn build(
        input: &ApplyPatchInput,
        cx: &CallContext<'_>,
    ) -> Result<PatchPlan, CallFailure> {
        let mut sections = parse_patch(&input.patch_text).map_err(patch_failure)?;
        let mut files = PatchFiles::load(&mut sections, cx).await?;
        files.check_seen(&sections, cx).await?;
        let planning = cx.run_blocking(move |_| {
            let mut plan = PatchPlan::default();
            for change in plan_changes(&sections, &mut files).map_err(patch_failure)? {
                plan.add_change(change, &files);
            }
            Ok(plan)
        });
        planning.await
    }

    fn add_change(&mut self, change: PlannedChange, files: &PatchFiles) {
        match change {
            PlannedChange::Create { path, after } => {
                self.summary_lines.push(format!("Added {path}."));
                self.push_write(files, path, Some(after), None);
            }
            PlannedChange::Overwrite { path, after, keeps_encoding } => {
                self.summary_lines.push(format!("Replaced {path}, which already existed."));
                if keeps_encoding {
                    self.notes.push(format!(
                        "{path} keeps its encoding and line endings, which differ from what you \
                         wrote."
                    ));
                }
                self.push_write(files, path, Some(after), None);
            }
            PlannedChange::Delete { path } => {
                self.summary_lines.push(format!("Deleted {path}."));
                self.push_write(files, path, None, None);
            }
            PlannedChange::Update { path, after, is_loose_match } => {
                self.summary_lines.push(format!("Updated {path}."));
                if is_loose_match {
                    self.warn_loose_match(&path, files.current_bytes(&path), &after);
                }
                let mode = files.content(&path).and_then(|content| content.mode);
                self.push_write(files, path, Some(after), mode);
            }
            PlannedChange::Move { path, move_to, after, is_loose_match, replaces_target } => {
                let replacing = if replaces_target { ", replacing the existing file" } else { "" };
                self.summary_lines.push(format!("Moved {path} to {move_to}{replacing}."));
                if is_loose_match {
                    self.warn_loose_match(&move_to, files.current_bytes(&path), &after);
                }
                let mode = files.content(&path).and_then(|content| content.mode);
                if let Some(before) = files.current_bytes(&path) {
                    self.moved_contents.insert(move_to.clone(), before);
                }
                self.push_write(files, path, None, None);
                self.push_write(files, move_to, Some(after), mode);
            }
        }
    }

    fn warn_loose_match(&mut self, path: &str, before: Option<Arc<[u8]>>, after: &Arc<[u8]>) {
        let changed = diff(path, &before.unwrap_or_default(), after).into_text();
        self.notes.push(format!(
            "The patch did not match {path} exactly; it matched when ignoring differences in \
             indentation and punctuation. What changed:\n{}",
            changed.trim_end_matches('\n')
        ));
    }

    fn push_write(
        &mut self,
        files: &PatchFiles,
        path: String,
        after: Option<Arc<[u8]>>,
        mode: Option<u32>,
    ) {
        let before = files.current_bytes(&path);
        let rewrite = FileWrite { path, before, after, mode };
        self.diff.push_str(&render_diff(&rewrite));
        self.writes.push(rewrite);
    }

    /// Runs the project's formatters on the planned contents.
    async fn apply_formatters(
        mut self,
        integrations: &ToolIntegrations,
        cx: &CallContext<'_>,
    ) -> Result<PatchPlan, CallFailure> {
        let to_unformatted = |rewrite: &FileWrite| {
            let original =
                self.moved_contents.get(&rewrite.path).or(rewrite.before.as_ref()).cloned();
            Some(FileToFormat {
                path: rewrite.path.clone(),
                original,
                after: rewrite.after.clone()?,
            })
        };
        let unformatted: Vec<FileToFormat> =
            self.writes.iter().filter_map(to_unformatted).collect();
        let formatted = format_files(integrations, cx, unformatted).await?;
        let (mut changed, mut undone_paths) = (false, Vec::new());
        let written = self.writes.iter_mut().filter(|rewrite| rewrite.after.is_some());
        for (rewrite, formatted) in written.zip(formatted) {
            if let Some(after) = formatted.after {
                changed = true;
                if rewrite.before.as_ref() == Some(&after) {
                    undone_paths.push(rewrite.path.clone());
                }
                rewrite.after = Some(after);
            }
            self.notes.extend(formatted.note);
        }
        if !changed {
            return Ok(self);
        }
        let mut writes = self.writes;
        writes.retain(|rewrite| !undone_paths.contains(&rewrite.path));
        let undone_notes: Vec<String> =
            undone_paths.iter().map(|path| formatter_undid_change(path)).collect();
        if writes.is_empty() {
            return Err(CallFailure::new(undone_notes.join("\n")));
        }
        self.notes.extend(undone_notes.into_iter().map(|note| note + "."));
        let rendering = cx.run_blocking(move |_| {
            let diff = writes.iter().map(render_diff).collect();
            Ok((writes, diff))
        });
        (self.writes, self.diff) = rendering.await?;
        Ok(self)
    }
}

/// Renders a `FileWrite` as the diff that the user sees.
fn render_diff(FileWrite { path, before, after, .. }: &FileWrite) -> String {
    let empty = <&[u8]>::default();
    let [old, new] = [before, after].map(|side| side.as_deref().unwrap_or(empty));
    diff(path, old, new).into_text()
}

fn patch_failure(error: PatchError) -> CallFailure {
    CallFailure::new(format!("Nothing was changed: {error}"))
}

/// The reason why a patch is refused, worded for the model that wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchError(String);

impl PatchError {
    pub(crate) fn new(text: impl Into<String>) -> PatchError {
        PatchError(text.into())
    }

    /// Creates an error about one line of the patch, counted from 1.
    pub(crate) fn at_line(line: usize, text: impl fmt::Display) -> PatchError {
        PatchError(format!("line {line} of the patch: {text}"))
    }
}

impl fmt::Display for PatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PatchError {}

#[cfg(test)]
mod tests;
