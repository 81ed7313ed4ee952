//! Validates the model's answer against the schema of `--output-schema`.

use crate::setup::LoadedProject;
use anyhow::Context;
use serde_json::Value;

/// Bounds the schema file; real schemas are far smaller.
const MAX_SCHEMA_BYTES: u64 = 1 << 20;

/// Number of times the model may correct an answer that does not match the schema.
const MAX_RETRIES: u32 = 2;

/// A JSON Schema for the answer, and the number of retries left.
pub(crate) struct OutputSchema {
    pub(crate) schema: Value,
    retries_left: u32,
}

impl OutputSchema {
    /// Reads a JSON Schema from the file of `--output-schema`, and checks it.
    pub(crate) fn read(path: &str) -> anyhow::Result<OutputSchema> {
        let bytes = LoadedProject::read_file(path, MAX_SCHEMA_BYTES)?;
        let schema =
            serde_json::from_slice(&bytes).with_context(|| format!("{path} is not JSON"))?;
        windlass_toolkit::schema_violations(&schema, &Value::Null)
            .map(|_| ())
            .with_context(|| format!("{path} is not a valid JSON Schema"))?;
        Ok(OutputSchema { schema, retries_left: MAX_RETRIES })
    }

    /// Parses the answer as JSON and validates it; an error lists the violations.
    pub(crate) fn validate(&self, answer: &str) -> Result<Value, String> {
        let parsed = windlass_toolkit::argument_repair::parse_arguments(answer)
            .map_err(|error| format!("the answer is not JSON: {error}"))?;
        match windlass_toolkit::schema_violations(&self.schema, &parsed.value) {
            Ok(violations) if violations.is_empty() => Ok(parsed.value),
            Ok(violations) => Err(violations.join("\n")),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Returns the prompt that asks for a corrected answer; `None` if no retries are left.
    pub(crate) fn retry_prompt(&mut self, violations: &str) -> Option<String> {
        self.retries_left = self.retries_left.checked_sub(1)?;
        Some(format!(
            "Your answer does not match the required schema:\n{violations}\nAnswer again with \
             only the JSON. Schema: {}",
            self.schema
        ))
    }
}
