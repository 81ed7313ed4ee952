//! `write`: a file's whole content, replaced at once.
//!
//! A file that is there keeps its encoding, byte-order mark, line endings, mode and owner; only
//! what it says is new.

use crate::Senses;
use crate::file::{Proposal, Standing};
use crate::text::Text;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use windlass_protocol::text::counted;
use windlass_protocol::{Access, Output};
use windlass_toolkit::{Cx, Definition, Failure, Scene, Tool};

/// The tool.
#[derive(Default)]
pub struct Write {
    pub(crate) senses: Senses,
}

/// What it is called with.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Input {
    /// The file.
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
        let proposal = propose(input, cx).await?;
        Ok(Some(proposal.groomed(&self.senses, cx).await?.diff))
    }

    async fn run(&self, input: Input, cx: &Cx<'_>) -> Result<Output, Failure> {
        let proposal = propose(&input, cx).await?.groomed(&self.senses, cx).await?;
        let verb = if proposal.before.is_some() { "Replaced" } else { "Created" };
        let lines = counted(input.content.lines().count(), "line");
        let done = format!("{verb} {} ({lines}).", proposal.path);
        proposal.carry_out(&self.senses, cx, done).await
    }
}

async fn propose(input: &Input, cx: &Cx<'_>) -> Result<Proposal, Failure> {
    let Standing { path, content } = Standing::known(cx, &input.file_path).await?;
    let wanted = input.content.clone();
    cx.blocking(move |_| {
        let before = content.map(|content| content.bytes);
        let (after, note) = match &before {
            Some(before) => rewritten(before, wanted),
            None => (wanted.into_bytes(), None),
        };
        let same = format!("{path} already has this content; nothing changed");
        let proposal = Proposal::new(path, before, after);
        let mut proposal = proposal.ok_or_else(|| Failure::new(same))?;
        proposal.notes.extend(note);
        Ok(proposal)
    })
    .await
}

/// The new content of a file as it is stored: a text stays what it is in all but its words.
fn rewritten(before: &[u8], wanted: String) -> (Vec<u8>, Option<String>) {
    // Of what is no text, nothing can be kept.
    let Ok(text) = Text::decode(before.to_vec()) else { return (wanted.into_bytes(), None) };
    match text.rewrite(&wanted) {
        Ok(after) if after == wanted.as_bytes() => (after, None),
        Ok(after) => {
            let note = "It keeps its encoding, line endings and final newline, which differ from \
                        what you wrote.";
            (after, Some(note.to_owned()))
        }
        Err(_) => {
            let note = format!("It was in {}, and is in UTF-8 now.", text.encoding());
            (text.rewrite_in_utf8(&wanted), Some(note))
        }
    }
}

#[cfg(test)]
mod tests;
