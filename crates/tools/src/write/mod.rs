//! `write`: a file's whole content, replaced at once.
//!
//! A file that is there keeps its encoding, byte-order mark, line endings, mode and owner; only
//! what it says is new.

use crate::file::{Proposal, Standing, count};
use crate::text::Text;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use windlass_protocol::{Access, Output};
use windlass_toolkit::{Cx, Definition, Failure, Scene, Tool};

/// The tool.
pub struct Write;

/// What it is called with.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Input {
    /// The file, relative to the workspace. Folders are made as needed.
    file_path: String,
    /// Its whole new content.
    content: String,
}

#[async_trait]
impl Tool for Write {
    type Input = Input;

    fn name(&self) -> &str {
        "write"
    }

    fn key(&self) -> &str {
        "edit"
    }

    fn offered(&self, scene: &Scene) -> bool {
        !crate::patches(scene)
    }

    async fn describe(&self, _scene: &Scene) -> Definition {
        Definition::of::<Input>(include_str!("description.md"))
    }

    fn access(&self, input: &Input) -> Vec<Access> {
        vec![Access::Edit { path: input.file_path.clone() }]
    }

    async fn preview(&self, input: &Input, cx: &Cx<'_>) -> Result<Option<String>, Failure> {
        Ok(Some(propose(input, cx).await?.diff()))
    }

    async fn run(&self, input: Input, cx: &Cx<'_>) -> Result<Output, Failure> {
        let proposal = propose(&input, cx).await?;
        let verb = if proposal.before.is_some() { "Replaced" } else { "Created" };
        let lines = count(input.content.lines().count(), "line");
        let done = format!("{verb} {} ({lines}).", proposal.path);
        proposal.carry_out(cx, done).await
    }
}

async fn propose(input: &Input, cx: &Cx<'_>) -> Result<Proposal, Failure> {
    let Standing { path, content } = Standing::known(cx, &input.file_path).await?;
    let Some(content) = content else {
        let after = input.content.as_bytes().into();
        return Ok(Proposal { path, before: None, after, notes: Vec::new() });
    };
    let mut notes = Vec::new();
    let after: Arc<[u8]> = match Text::decode(content.bytes.to_vec()) {
        Ok(text) => {
            let after = text.rewrite(&input.content);
            let after = after.map_err(|error| Failure::new(error.to_string()))?;
            if *after != *input.content.as_bytes() {
                notes.push(
                    "It keeps its encoding, line endings and final newline, which differ from \
                     what you wrote."
                        .to_owned(),
                );
            }
            after.into()
        }
        // Nothing of what it was can be kept.
        Err(_) => input.content.as_bytes().into(),
    };
    if after == content.bytes {
        let text = format!("{path} already has this content; nothing changed");
        return Err(Failure::new(text));
    }
    Ok(Proposal { path, before: Some(content.bytes), after, notes })
}

#[cfg(test)]
mod tests;
