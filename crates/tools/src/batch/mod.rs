//! `batch`: several calls in one, permitted as a whole and carried out in order. What is in it goes
//! down the road like any other call; this is only how it is written.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use windlass_protocol::{Access, Output};
use windlass_toolkit::{Cx, Definition, Failure, Part, Scene, Tool};

/// The tool.
pub struct Batch;

/// What it is called with.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The calls, in order.
    #[schemars(length(min = 1, max = 10))]
    tool_calls: Vec<Inner>,
}

/// One of them.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Inner {
    /// The tool.
    tool: String,
    /// Its arguments.
    parameters: Map<String, Value>,
}

#[async_trait]
impl Tool for Batch {
    type Input = Input;

    fn name(&self) -> &str {
        "batch"
    }

    fn batched(&self) -> bool {
        false
    }

    /// Models of today make several calls at once by themselves. One that knows this tool can call
    /// it all the same.
    fn listed(&self) -> bool {
        false
    }

    async fn describe(&self, _scene: &Scene) -> Definition {
        Definition::of::<Input>(include_str!("description.md"))
    }

    fn access(&self, _input: &Input) -> Vec<Access> {
        Vec::new()
    }

    fn parts(&self, input: &Input) -> Option<Vec<Part>> {
        let part = |inner: &Inner| Part {
            tool: inner.tool.clone(),
            arguments: Value::Object(inner.parameters.clone()).to_string(),
        };
        Some(input.tool_calls.iter().map(part).collect())
    }

    async fn run(&self, _input: Input, _cx: &Cx<'_>) -> Result<Output, Failure> {
        Err(Failure::new("a batch is carried out call by call"))
    }
}

#[cfg(test)]
mod tests;
