//! `question`: asks the user for decisions that only the user can make, while the turn continues.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use windlass_protocol::{CallDescription, QuestionOption, ToolAccess, ToolOutput, UserQuestion};
use windlass_toolkit::truncate_output::strip_controls;
use windlass_toolkit::{
    CallContext, CallFailure, NO_USER_TEXT, QuestionEffect, StepContext, Tool, ToolDefinition,
    UserPresence,
};

/// Limits in characters: of a question, and of a header or label.
const MAX_QUESTION_CHARS: usize = 1_000;
const MAX_LABEL_CHARS: usize = 80;

/// The `question` tool.
pub struct QuestionTool;

/// Input of the `question` tool.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct QuestionInput {
    /// The questions.
    #[schemars(length(min = 1, max = 4))]
    questions: Vec<QuestionItem>,
}

/// One question.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct QuestionItem {
    /// One to three words.
    header: String,
    /// The question.
    question: String,
    /// Put the recommended one first.
    #[schemars(length(min = 2, max = 6))]
    options: Vec<AnswerChoice>,
    /// Allow several choices.
    #[serde(default)]
    multiple: bool,
    /// Allow a custom answer; true if not given.
    custom: Option<bool>,
}

/// One possible answer.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AnswerChoice {
    /// One to five words.
    label: String,
    /// Effect of this choice.
    #[serde(default)]
    description: String,
}

#[async_trait]
impl Tool for QuestionTool {
    type Input = QuestionInput;

    fn name(&self) -> &str {
        "question"
    }

    fn ignores_unknown_fields(&self) -> bool {
        true
    }

    fn claude_names(&self) -> &'static [&'static str] {
        &["AskUserQuestion"]
    }

    fn describe_call(&self, input: &QuestionInput, _root: &str) -> Option<CallDescription> {
        let names = input.questions.iter().map(|question| match question.header.as_str() {
            "" => question.question.as_str(),
            header => header,
        });
        let names: Vec<&str> = names.collect();
        Some(CallDescription::new("Ask", "asking", names.join(", ")))
    }

    fn is_offered(&self, context: &StepContext) -> bool {
        context.user == UserPresence::Present
    }

    fn allows_batching(&self) -> bool {
        false
    }

    async fn describe(&self, _context: &StepContext) -> ToolDefinition {
        ToolDefinition::for_input::<QuestionInput>(include_str!("description.md"))
    }

    fn access(&self, _input: &QuestionInput) -> Vec<ToolAccess> {
        Vec::new()
    }

    async fn run(
        &self,
        input: QuestionInput,
        cx: &CallContext<'_>,
    ) -> Result<ToolOutput, CallFailure> {
        let questions: Result<Vec<UserQuestion>, CallFailure> =
            input.questions.into_iter().map(to_user_question).collect();
        let questions = questions?;
        let replies = cx.caller.ask_user(questions.clone(), QuestionEffect::None).await?;
        if replies.is_empty() {
            return Err(CallFailure::new(NO_USER_TEXT));
        }
        let (mut lines, mut answers) = (Vec::new(), Vec::new());
        for (question, reply) in questions.iter().zip(&replies) {
            let answer = match reply.as_slice() {
                [] => "(no answer; decide yourself)".to_owned(),
                answer => answer.join(", "),
            };
            lines.push(format!("{} → {answer}", question.question));
            answers.push(answer);
        }
        let title = to_single_line(&answers.join("; "));
        Ok(ToolOutput { title, text: lines.join("\n"), ..ToolOutput::default() })
    }
}

/// Converts a `QuestionItem` to the `UserQuestion` shown to the user, and checks its lengths.
fn to_user_question(item: QuestionItem) -> Result<UserQuestion, CallFailure> {
    let QuestionItem { header, question, options: choices, multiple, custom } = item;
    let header = check_length(to_single_line(&header), MAX_LABEL_CHARS, "a header")?;
    let question = check_length(strip_controls(&question), MAX_QUESTION_CHARS, "a question")?;
    let mut options: Vec<QuestionOption> = Vec::new();
    for AnswerChoice { label, description } in choices {
        let label = check_length(to_single_line(&label), MAX_LABEL_CHARS, "a label")?;
        let is_duplicate =
            |other: &QuestionOption| other.label.to_lowercase() == label.to_lowercase();
        if options.iter().any(is_duplicate) {
            let text = format!("the answer `{label}` occurs twice; make each one different");
            return Err(CallFailure::new(text));
        }
        let description = match description.is_empty() {
            true => description,
            false => {
                check_length(to_single_line(&description), MAX_QUESTION_CHARS, "a description")?
            }
        };
        options.push(QuestionOption { label, description });
    }
    Ok(UserQuestion {
        header,
        question,
        options,
        allow_multiple: multiple,
        allow_custom: custom.unwrap_or(true),
        asker: None,
        is_permission: false,
    })
}

/// Turns a text into one line without terminal control characters.
fn to_single_line(text: &str) -> String {
    strip_controls(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn check_length(text: String, max_chars: usize, noun: &str) -> Result<String, CallFailure> {
    match text.chars().count() {
        0 => Err(CallFailure::new(format!("{noun} is empty; fill it in"))),
        count if count > max_chars => Err(CallFailure::new(format!(
            "{noun} is longer than {max_chars} characters; shorten it"
        ))),
        _ => Ok(text),
    }
}

#[cfg(test)]
mod tests;
