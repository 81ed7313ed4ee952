//! `edit`: a piece of a file, replaced.
//!
//! [`replace`] finds the piece, also where the model's memory of it is a little off; everything
//! outside of it keeps its very bytes.

use crate::file::{Proposal, Standing, count};
use crate::text::Text;
use async_trait::async_trait;
use replace::{Count, Strategy, replace};
use schemars::JsonSchema;
use serde::Deserialize;
use windlass_protocol::{Access, Output};
use windlass_toolkit::{Cx, Definition, Failure, Scene, Tool};

pub mod replace;

/// The tool.
pub struct Edit;

/// What it is called with.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Input {
    /// The file, relative to the workspace.
    file_path: String,
    /// The text to replace, exactly as it stands in the file, without line numbers; empty to make
    /// a new file.
    old_string: String,
    /// What to put in its place.
    new_string: String,
    /// Replace it everywhere, instead of in the one place where it stands.
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
        Ok(Some(propose(input, cx).await?.diff()))
    }

    async fn run(&self, input: Input, cx: &Cx<'_>) -> Result<Output, Failure> {
        let proposal = propose(&input, cx).await?;
        let verb = if proposal.before.is_some() { "Edited" } else { "Created" };
        let done = format!("{verb} {}.", proposal.path);
        proposal.carry_out(cx, done).await
    }
}

/// What the file would become. It is worked out anew after an approval, from what stands there
/// then.
async fn propose(input: &Input, cx: &Cx<'_>) -> Result<Proposal, Failure> {
    let Standing { path, content } = Standing::known(cx, &input.file_path).await?;
    let Some(content) = content else {
        if !input.old_string.is_empty() {
            return Err(crate::missing(cx, &path).await);
        }
        let after = input.new_string.as_bytes().into();
        return Ok(Proposal { path, before: None, after, notes: Vec::new() });
    };
    if input.old_string.is_empty() {
        let text = format!(
            "An empty oldString makes a new file, but {path} is there already. Give the text to \
             replace, or use write to replace all of it"
        );
        return Err(Failure::new(text));
    }
    let (input, shown) = (input.clone(), path.clone());
    let before = content.bytes.clone();
    let worked_out = cx.blocking(move |_| {
        let failed = |error: &dyn std::fmt::Display| Failure::new(format!("{shown}: {error}"));
        let text = Text::decode(content.bytes.to_vec()).map_err(|error| failed(&error))?;
        let all = input.replace_all == Some(true);
        let wanted = if all { Count::All } else { Count::One };
        let replaced = replace(text.view(), &input.old_string, &input.new_string, wanted);
        let replaced = replaced.map_err(|miss| failed(&miss))?;
        let after = text.splice(&replaced.splices).map_err(|error| failed(&error))?;
        Ok((after, replaced.splices.len(), replaced.strategy))
    });
    let (after, places, strategy) = worked_out.await?;
    if *after == *before {
        let text = format!("{path} already reads as you want it; nothing changed");
        return Err(Failure::new(text));
    }
    let mut proposal =
        Proposal { path, before: Some(before), after: after.into(), notes: Vec::new() };
    if places > 1 {
        proposal.notes.push(format!("Replaced in {}.", count(places, "place")));
    }
    if !matches!(strategy, Strategy::Exact | Strategy::MultiOccurrence) {
        proposal.notes.push(format!(
            "oldString does not stand there exactly; it was found by {strategy}. What changed:\n{}",
            proposal.diff()
        ));
    }
    Ok(proposal)
}

#[cfg(test)]
mod tests;
