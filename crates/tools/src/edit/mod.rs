//! `edit`: a piece of a file, replaced.
//!
//! [`replace`] finds the piece, also where the model's memory of it is a little off; everything
//! outside of it keeps its very bytes.

use crate::Senses;
use crate::file::{Proposal, Standing};
use crate::text::Text;
use async_trait::async_trait;
use replace::{Count, Strategy, replace};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use windlass_protocol::text::counted;
use windlass_protocol::{Access, Output};
use windlass_toolkit::{Cx, Definition, Failure, Scene, Tool};

pub mod replace;

/// The tool.
#[derive(Default)]
pub struct Edit {
    pub(crate) senses: Senses,
}

/// What it is called with.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Input {
    /// The file.
    file_path: String,
    /// Empty to make a new file.
    old_string: String,
    /// The replacement.
    new_string: String,
    /// Everywhere.
    replace_all: Option<bool>,
}

#[async_trait]
impl Tool for Edit {
    type Input = Input;

    fn name(&self) -> &str {
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
        let verb = if proposal.before.is_some() { "Edited" } else { "Created" };
        let done = format!("{verb} {}.", proposal.path);
        proposal.carry_out(&self.senses, cx, done).await
    }
}

/// What the file would become. It is worked out anew after an approval, from what stands there
/// then.
async fn propose(input: &Input, cx: &Cx<'_>) -> Result<Proposal, Failure> {
    let Standing { path, content } = Standing::known(cx, &input.file_path).await?;
    if content.is_none() && !input.old_string.is_empty() {
        return Err(crate::missing(cx, &path).await);
    }
    let input = input.clone();
    cx.blocking(move |_| work_out(input, path, content.map(|content| content.bytes))).await
}

fn work_out(input: Input, path: String, before: Option<Arc<[u8]>>) -> Result<Proposal, Failure> {
    let same = || Failure::new("it already reads as you want it; nothing changed");
    let Some(bytes) = &before else {
        return Proposal::new(path, None, input.new_string.into_bytes()).ok_or_else(same);
    };
    if input.old_string.is_empty() {
        let text = format!(
            "An empty oldString makes a new file, but {path} is there already. Give the text to \
             replace, or use write to replace all of it"
        );
        return Err(Failure::new(text));
    }
    let failed = |error: &dyn std::fmt::Display| Failure::new(format!("{path}: {error}"));
    let text = Text::decode(bytes.to_vec()).map_err(|error| failed(&error))?;
    let wanted = if input.replace_all == Some(true) { Count::All } else { Count::One };
    let replaced = replace(text.view(), &input.old_string, &input.new_string, wanted);
    let replaced = replaced.map_err(|miss| failed(&miss))?;
    let after = text.splice(&replaced.splices).map_err(|error| failed(&error))?;
    let mut proposal = Proposal::new(path, before, after).ok_or_else(same)?;
    if replaced.splices.len() > 1 {
        let places = counted(replaced.splices.len(), "place");
        proposal.notes.push(format!("Replaced in {places}."));
    }
    if !matches!(replaced.strategy, Strategy::Exact | Strategy::MultiOccurrence) {
        proposal.notes.push(format!(
            "oldString does not stand there exactly; it was found by {}. What changed:\n{}",
            replaced.strategy, proposal.diff
        ));
    }
    Ok(proposal)
}

#[cfg(test)]
mod tests;
