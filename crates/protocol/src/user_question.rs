//! Questions that the model, a tool or an MCP server asks the user.

use crate::display_text::to_one_line;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A question to the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UserQuestion {
    /// Topic in a few words.
    pub header: String,
    /// The complete question.
    pub question: String,
    /// Answers to choose from.
    pub options: Vec<QuestionOption>,
    /// True if the user may choose more than one option.
    #[serde(default)]
    pub allow_multiple: bool,
    /// True if the user may answer in their own words.
    #[serde(default)]
    pub allow_custom: bool,
    /// The program that asks and gets the answer, such as `MCP server github`. `None` if the model
    /// asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asker: Option<String>,
    /// True if a program asks for permission. `run --yes` answers such a question.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_permission: bool,
}

impl UserQuestion {
    /// Returns the line above the question, which says who asks and gets the answer.
    pub fn headline(&self) -> String {
        match self.asker.as_deref() {
            Some(asker) => format!("The {} asks, and gets your answer", to_one_line(asker)),
            None => "The model asks".to_owned(),
        }
    }
}

/// One possible answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionOption {
    /// The answer itself.
    pub label: String,
    /// Meaning of the choice.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}
