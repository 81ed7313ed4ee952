//! `todoread`: the list of what is to be done, as it was last written.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use windlass_protocol::{Access, Display, Output};
use windlass_toolkit::{Cx, Definition, Failure, Scene, Tool};

/// The tool.
pub struct TodoRead;

/// What it is called with.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {}

#[async_trait]
impl Tool for TodoRead {
    type Input = Input;

    fn name(&self) -> &str {
        "todoread"
    }

    fn offered(&self, scene: &Scene) -> bool {
        !crate::patches(scene)
    }

    /// What `todowrite` gives is the list. One that knows this tool can call it all the same.
    fn listed(&self) -> bool {
        false
    }

    async fn describe(&self, _scene: &Scene) -> Definition {
        Definition::of::<Input>(include_str!("description.md"))
    }

    fn access(&self, _input: &Input) -> Vec<Access> {
        Vec::new()
    }

    async fn run(&self, _input: Input, cx: &Cx<'_>) -> Result<Output, Failure> {
        let items = cx.caller.todos();
        let title = crate::todowrite::progress(&items);
        let lines: Vec<String> = items.iter().map(ToString::to_string).collect();
        let text = match lines.as_slice() {
            [] => "The list is empty.".to_owned(),
            lines => lines.join("\n"),
        };
        Ok(Output { title, text, display: Display::Checklist { items }, ..Output::default() })
    }
}

#[cfg(test)]
mod tests;
