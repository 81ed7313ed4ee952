//! The `edit` tool: replaces one piece of text in a file.
//!
//! [`replace`] finds the piece, even if the model's copy of it is slightly off. All bytes outside
//! it stay the same.

pub mod replace;

use crate::ToolIntegrations;
use crate::file_edit::{FileToChange, ProposedEdit};
use crate::text::FileText;
use async_trait::async_trait;
use replace::{MatchStrategy, ReplaceCount, replace};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use windlass_protocol::display_text::pluralize;
use windlass_protocol::{CallDescription, ToolAccess, ToolOutput};
use windlass_sandbox::WorkingFolder;
use windlass_toolkit::{
    CallContext, CallFailure, StepContext, Tool, ToolDefinition, relative_path,
};

/// The `edit` tool.
#[derive(Default)]
pub struct EditTool {
    pub(crate) integrations: ToolIntegrations,
}

/// Arguments of `edit`.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EditInput {
    /// The file.
    file_path: String,
    /// Empty creates a new file.
    old_string: String,
    /// The replacement.
    new_string: String,
    /// All matches
    replace_all: Option<bool>,
}

#[async_trait]
impl Tool for EditTool {
    type Input = EditInput;

    fn name(&self) -> &str {
        "edit"
    }

    fn is_served(&self) -> bool {
        true
    }

    fn claude_names(&self) -> &'static [&'static str] {
        &["Edit", "MultiEdit"]
    }

    fn claude_arguments(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("filePath", "file_path"),
            ("oldString", "old_string"),
            ("newString", "new_string"),
            ("replaceAll", "replace_all"),
        ]
    }

    fn describe_call(&self, input: &EditInput, root: &str) -> Option<CallDescription> {
        Some(CallDescription::new("Edit", "editing", relative_path(&input.file_path, root)))
    }

    fn is_offered(&self, context: &StepContext) -> bool {
        !crate::prefers_patches(context)
    }

    async fn describe(&self, _context: &StepContext) -> ToolDefinition {
        ToolDefinition::for_input::<EditInput>(include_str!("description.md"))
    }

    fn resolve_paths(&self, input: &mut EditInput, folder: &WorkingFolder) {
        input.file_path = folder.resolve(&input.file_path).into_owned();
    }

    fn access(&self, input: &EditInput) -> Vec<ToolAccess> {
        vec![ToolAccess::Edit { path: input.file_path.clone() }]
    }

    async fn preview(
        &self,
        input: &EditInput,
        cx: &CallContext<'_>,
    ) -> Result<Option<String>, CallFailure> {
        let proposal = propose_edit(input, cx).await?;
        Ok(Some(proposal.apply_formatter(&self.integrations, cx).await?.diff))
    }

    async fn run(&self, input: EditInput, cx: &CallContext<'_>) -> Result<ToolOutput, CallFailure> {
        let proposal =
            propose_edit(&input, cx).await?.apply_formatter(&self.integrations, cx).await?;
        let verb = if proposal.before.is_some() { "Edited" } else { "Created" };
        let summary = format!("{verb} {}.", proposal.path);
        proposal.apply(&self.integrations, cx, summary).await
    }
}

/// Computes the new content. `run` computes it again after the approval, from the content at that
/// time. The model must have seen the current content of the file, unless its text matches exactly
/// and once: then the edit means that place, and changes nothing else.
async fn propose_edit(
    input: &EditInput,
    cx: &CallContext<'_>,
) -> Result<ProposedEdit, CallFailure> {
    let target = FileToChange::load(cx, &input.file_path).await?;
    if target.content.is_none() && !input.old_string.is_empty() {
        return Err(crate::path_not_found(cx, &target.path).await);
    }
    let (input, path) = (input.clone(), target.path.clone());
    let bytes = target.content.as_ref().map(|content| Arc::clone(&content.bytes));
    let computed = cx.run_blocking(move |_| compute_edit(input, path, bytes)).await;
    match computed {
        Ok((proposal, MatchStrategy::Exact)) => Ok(proposal),
        // The failure shows the nearest text, which says more than that the file was not read.
        Err(failure) if cx.caller.last_seen(&target.path).is_none() => Err(failure),
        other => {
            target.check_seen(cx).await?;
            other.map(|(proposal, _)| proposal)
        }
    }
}

fn compute_edit(
    input: EditInput,
    path: String,
    before: Option<Arc<[u8]>>,
) -> Result<(ProposedEdit, MatchStrategy), CallFailure> {
    let unchanged = || CallFailure::new("the file already has this content; nothing changed");
    let Some(bytes) = &before else {
        let proposal = ProposedEdit::new(path, None, input.new_string.into_bytes());
        return Ok((proposal.ok_or_else(unchanged)?, MatchStrategy::Exact));
    };
    if input.old_string.is_empty() {
        let text = format!(
            "An empty oldString creates a new file, but {path} already exists. Set oldString to \
             the text to replace, or use write to replace the whole file"
        );
        return Err(CallFailure::new(text));
    }
    let to_failure = |error: &dyn std::fmt::Display| CallFailure::new(format!("{path}: {error}"));
    let text = FileText::decode(bytes.to_vec()).map_err(|error| to_failure(&error))?;
    let count = if input.replace_all == Some(true) { ReplaceCount::All } else { ReplaceCount::One };
    let replaced = replace(text.view(), &input.old_string, &input.new_string, count);
    let replaced = replaced.map_err(|error| to_failure(&error))?;
    let after = text.splice(&replaced.splices).map_err(|error| to_failure(&error))?;
    let mut proposal = ProposedEdit::new(path, before, after).ok_or_else(unchanged)?;
    if replaced.splices.len() > 1 {
        let places = pluralize(replaced.splices.len(), "place");
        proposal.notes.push(format!("Replaced in {places}."));
    }
    if !matches!(replaced.strategy, MatchStrategy::Exact | MatchStrategy::MultiOccurrence) {
        proposal.notes.push(format!(
            "oldString did not match exactly; matched with the {} strategy. What changed:\n{}",
            replaced.strategy, proposal.diff
        ));
    }
    Ok((proposal, replaced.strategy))
}

#[cfg(test)]
mod tests;
