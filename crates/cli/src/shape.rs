//! The shape an answer has to have: `--output-schema`.

use crate::setup::Setup;
use anyhow::Context;
use serde_json::Value;

/// A schema has no business being longer.
const LONGEST: u64 = 1 << 20;

/// How often a model that misses the shape is asked again.
const TRIES: u32 = 2;

/// A JSON Schema, and how often it may still be missed.
pub(crate) struct Shape {
    pub(crate) schema: Value,
    left: u32,
}

impl Shape {
    /// Reads a schema from a file.
    pub(crate) fn read(path: &str) -> anyhow::Result<Shape> {
        let bytes = Setup::file(path, LONGEST)?;
        let schema =
            serde_json::from_slice(&bytes).with_context(|| format!("{path} is not JSON"))?;
        windlass_toolkit::fits(&schema, &Value::Null)
            .map(|_| ())
            .with_context(|| format!("{path} is not a JSON Schema"))?;
        Ok(Shape { schema, left: TRIES })
    }

    /// The answer as JSON, or what is wrong with it.
    pub(crate) fn fit(&self, answer: &str) -> Result<Value, String> {
        let read = windlass_toolkit::repair::read(answer)
            .map_err(|why| format!("the answer is not JSON: {why}"))?;
        match windlass_toolkit::fits(&self.schema, &read.value) {
            Ok(faults) if faults.is_empty() => Ok(read.value),
            Ok(faults) => Err(faults.join("\n")),
            Err(failure) => Err(failure.to_string()),
        }
    }

    /// What to ask after a miss; `None` if it has been asked often enough.
    pub(crate) fn again(&mut self, why: &str) -> Option<String> {
        self.left = self.left.checked_sub(1)?;
        Some(format!(
            "Your answer does not fit the schema it has to fit:\n{why}\nAnswer again, with the JSON \
             alone. The schema: {}",
            self.schema
        ))
    }
}
