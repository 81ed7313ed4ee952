//! `call_tool`: another way of writing the call of a tool that was found. It never runs: the road
//! takes it for the call it stands for before hooks, rules and records see it.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use windlass_protocol::{Access, Output};
use windlass_toolkit::{Cx, Definition, Failure, Part, Scene, Tool};

/// The tool.
pub struct CallTool;

/// What it is called with.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The tool.
    name: String,
    /// Its arguments.
    arguments: Map<String, Value>,
}

#[async_trait]
impl Tool for CallTool {
    type Input = Input;

    fn name(&self) -> &str {
        "call_tool"
    }

    /// Where a model is told of everything, it calls it by name.
    fn offered(&self, scene: &Scene) -> bool {
        !scene.elsewhere.is_empty()
    }

    async fn describe(&self, _scene: &Scene) -> Definition {
        Definition::of::<Input>(include_str!("description.md"))
    }

    fn stands_for(&self, input: &Input) -> Option<Part> {
        let arguments = Value::Object(input.arguments.clone()).to_string();
        Some(Part { tool: input.name.clone(), arguments })
    }

    fn access(&self, _input: &Input) -> Vec<Access> {
        Vec::new()
    }

    async fn run(&self, _input: Input, _cx: &Cx<'_>) -> Result<Output, Failure> {
        Err(Failure::new("this stands for a call of another tool, which was not understood"))
    }
}

#[cfg(test)]
mod tests;
