//! `write`: replaces the whole content of a file at once.
//!
//! An existing file keeps its encoding, byte-order mark, line endings, mode and owner; only its
//! text is new.

use crate::ToolIntegrations;
use crate::file_edit::{FileToChange, ProposedEdit};
use crate::text::FileText;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use windlass_protocol::display_text::pluralize;
use windlass_protocol::{CallDescription, ToolAccess, ToolOutput};
use windlass_sandbox::WorkingFolder;
use windlass_toolkit::{
    CallContext, CallFailure, StepContext, Tool, ToolDefinition, relative_path,
};

/// The `write` tool.
#[derive(Default)]
pub struct WriteTool {
    pub(crate) integrations: ToolIntegrations,
}

/// Input of the `write` tool.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WriteInput {
    /// The file.
    file_path: String,
    /// The whole new content.
    content: String,
}

#[async_trait]
impl Tool for WriteTool {
    type Input = WriteInput;

    fn name(&self) -> &str {
        "write"
    }

    fn is_served(&self) -> bool {
        true
    }

    fn claude_names(&self) -> &'static [&'static str] {
        &["Write"]
    }

    fn claude_arguments(&self) -> &'static [(&'static str, &'static str)] {
        &[("filePath", "file_path")]
    }

    fn describe_call(&self, input: &WriteInput, root: &str) -> Option<CallDescription> {
        Some(CallDescription::new("Write", "writing", relative_path(&input.file_path, root)))
    }

    fn permission_key(&self) -> &str {
        "edit"
    }

    fn is_offered(&self, context: &StepContext) -> bool {
        !crate::prefers_patches(context)
    }

    async fn describe(&self, _context: &StepContext) -> ToolDefinition {
        ToolDefinition::for_input::<WriteInput>(include_str!("description.md"))
    }

    fn resolve_paths(&self, input: &mut WriteInput, folder: &WorkingFolder) {
        input.file_path = folder.resolve(&input.file_path).into_owned();
    }

    fn access(&self, input: &WriteInput) -> Vec<ToolAccess> {
        vec![ToolAccess::Edit { path: input.file_path.clone() }]
    }

    async fn preview(
        &self,
        input: &WriteInput,
        cx: &CallContext<'_>,
    ) -> Result<Option<String>, CallFailure> {
        let proposal = propose_write(input, cx).await?;
        Ok(Some(proposal.apply_formatter(&self.integrations, cx).await?.diff))
    }

    async fn run(
        &self,
        input: WriteInput,
        cx: &CallContext<'_>,
    ) -> Result<ToolOutput, CallFailure> {
        let proposal =
            propose_write(&input, cx).await?.apply_formatter(&self.integrations, cx).await?;
        let verb = if proposal.before.is_some() { "Replaced" } else { "Created" };
        let lines = pluralize(input.content.lines().count(), "line");
        let message = format!("{verb} {} ({lines}).", proposal.path);
        proposal.apply(&self.integrations, cx, message).await
    }
}

async fn propose_write(
    input: &WriteInput,
    cx: &CallContext<'_>,
) -> Result<ProposedEdit, CallFailure> {
    let FileToChange { path, content } = FileToChange::load_seen(cx, &input.file_path).await?;
    let new_content = input.content.clone();
    cx.run_blocking(move |_| {
        let before = content.map(|content| content.bytes);
        let (after, note) = match &before {
            Some(before) => encode_like_existing(before, new_content),
            None => (new_content.into_bytes(), None),
        };
        let unchanged = format!("{path} already has this content; nothing changed");
        let proposal = ProposedEdit::new(path, before, after);
        let mut proposal = proposal.ok_or_else(|| CallFailure::new(unchanged))?;
        proposal.notes.extend(note);
        Ok(proposal)
    })
    .await
}

/// Encodes the new content like the existing file: only its text changes. Returns a note if that
/// differs from `new_content`.
fn encode_like_existing(before: &[u8], new_content: String) -> (Vec<u8>, Option<String>) {
    // A file that is not text has nothing to preserve.
    let Ok(text) = FileText::decode(before.to_vec()) else {
        return (new_content.into_bytes(), None);
    };
    match text.rewrite(&new_content) {
        Ok(after) if after == new_content.as_bytes() => (after, None),
        Ok(after) => {
            let note = "It keeps its encoding, line endings and final newline, which differ from \
                        what you wrote.";
            (after, Some(note.to_owned()))
        }
        Err(_) => {
            let note = format!("It was in {} and is now in UTF-8.", text.encoding_name());
            (text.rewrite_in_utf8(&new_content), Some(note))
        }
    }
}

#[cfg(test)]
mod tests;
