//! `invalid`: where a call ends that names no tool, or whose arguments are not JSON. It is never
//! offered to a model; the road leads such calls here so that they are recorded like any other.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use windlass_protocol::{Access, Output};
use windlass_toolkit::{Cx, Definition, Failure, Scene, Tool};

/// The tool.
pub struct Invalid;

/// What was wrong.
#[derive(Deserialize, JsonSchema)]
pub struct Input {
    /// The tool that was called, as it was spelled.
    tool: String,
    /// What was wrong with the call.
    error: String,
}

#[async_trait]
impl Tool for Invalid {
    type Input = Input;

    fn name(&self) -> &str {
        windlass_toolkit::road::INVALID
    }

    fn offered(&self, _scene: &Scene) -> bool {
        false
    }

    async fn describe(&self, _scene: &Scene) -> Definition {
        Definition::of::<Input>(include_str!("description.md"))
    }

    fn access(&self, _input: &Input) -> Vec<Access> {
        Vec::new()
    }

    async fn run(&self, input: Input, _cx: &Cx<'_>) -> Result<Output, Failure> {
        Err(Failure::new(format!("The call of {} was not run. {}", input.tool, input.error)))
    }
}

#[cfg(test)]
mod tests;
