//! The definition of a tool for the model: description and schema.

use schemars::JsonSchema;
use serde_json::Value;

/// The definition of a tool for the model, from `Tool::describe`.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDefinition {
    pub description: String,
    /// The JSON Schema of the arguments.
    pub schema: Value,
}

impl ToolDefinition {
    /// Creates a definition whose schema is derived from the `Input` type.
    pub fn for_input<Input: JsonSchema>(description: &str) -> ToolDefinition {
        let mut schema = schemars::schema_for!(Input);
        // The model does not need these keys, and every byte costs tokens.
        for key in ["$schema", "title", "description"] {
            schema.remove(key);
        }
        ToolDefinition { description: description.trim().to_owned(), schema: schema.to_value() }
    }
}
