//! What a model wants to know from a person.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A question to a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Inquiry {
    /// What it is about, in a few words.
    pub header: String,
    /// The question, whole.
    pub question: String,
    /// What could be answered.
    pub options: Vec<Suggestion>,
    /// More than one may be chosen.
    #[serde(default)]
    pub multiple: bool,
    /// Something else may be answered, in the person's own words.
    #[serde(default)]
    pub custom: bool,
}

/// One possible answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Suggestion {
    /// The answer itself.
    pub label: String,
    /// What choosing it means.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}
