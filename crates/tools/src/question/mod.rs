//! `question`: what only the person can say, asked while the work goes on.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use windlass_protocol::{Access, Inquiry, Output, Suggestion};
use windlass_toolkit::bound::plain;
use windlass_toolkit::{Cx, Definition, Failure, NOBODY, Scene, Stake, Tool};

/// How long what is asked may be, in characters, and how long what is chosen from.
const LONGEST: usize = 1_000;
const LONGEST_LABEL: usize = 80;

/// The tool.
pub struct Question;

/// What it is called with.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Input {
    /// The questions.
    #[schemars(length(min = 1, max = 4))]
    questions: Vec<Asked>,
}

/// One question.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Asked {
    /// One to three words.
    header: String,
    /// The question.
    question: String,
    /// The one you advise comes first.
    #[schemars(length(min = 2, max = 6))]
    options: Vec<Choice>,
    /// Several may be chosen.
    #[serde(default)]
    multiple: bool,
    /// Own words will do, too; true if not given.
    custom: Option<bool>,
}

/// One possible answer.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Choice {
    /// One to five words.
    label: String,
    /// What choosing it means.
    #[serde(default)]
    description: String,
}

#[async_trait]
impl Tool for Question {
    type Input = Input;

    fn name(&self) -> &str {
        "question"
    }

    fn batched(&self) -> bool {
        false
    }

    async fn describe(&self, _scene: &Scene) -> Definition {
        Definition::of::<Input>(include_str!("description.md"))
    }

    fn access(&self, _input: &Input) -> Vec<Access> {
        Vec::new()
    }

    async fn run(&self, input: Input, cx: &Cx<'_>) -> Result<Output, Failure> {
        let inquiries: Result<Vec<Inquiry>, Failure> =
            input.questions.into_iter().map(inquiry).collect();
        let inquiries = inquiries?;
        let replies = cx.caller.inquire(inquiries.clone(), Stake::Words).await?;
        if replies.is_empty() {
            return Err(Failure::new(NOBODY));
        }
        let mut lines = Vec::new();
        for (inquiry, reply) in inquiries.iter().zip(&replies) {
            let said = match reply.as_slice() {
                [] => "(no answer; decide yourself)".to_owned(),
                said => said.join(", "),
            };
            lines.push(format!("{} → {said}", inquiry.question));
        }
        let title = match inquiries.as_slice() {
            [only] => only.header.clone(),
            several => format!("{} questions", several.len()),
        };
        Ok(Output { title, text: lines.join("\n"), ..Output::default() })
    }
}

/// A question as a person gets to see it.
fn inquiry(asked: Asked) -> Result<Inquiry, Failure> {
    let Asked { header, question, options, multiple, custom } = asked;
    let header = within(line(&header), LONGEST_LABEL, "a header")?;
    let question = within(plain(&question), LONGEST, "a question")?;
    let mut suggestions: Vec<Suggestion> = Vec::new();
    for Choice { label, description } in options {
        let label = within(line(&label), LONGEST_LABEL, "a label")?;
        let same = |other: &Suggestion| other.label.to_lowercase() == label.to_lowercase();
        if suggestions.iter().any(same) {
            let text = format!("the answer `{label}` is there twice; make each one different");
            return Err(Failure::new(text));
        }
        let description = match description.is_empty() {
            true => description,
            false => within(line(&description), LONGEST, "a description")?,
        };
        suggestions.push(Suggestion { label, description });
    }
    let custom = custom.unwrap_or(true);
    Ok(Inquiry { header, question, options: suggestions, multiple, custom })
}

/// A text that is one line and steers no terminal.
fn line(text: &str) -> String {
    plain(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn within(text: String, longest: usize, what: &str) -> Result<String, Failure> {
    match text.chars().count() {
        0 => Err(Failure::new(format!("{what} says nothing; fill it in"))),
        count if count > longest => {
            Err(Failure::new(format!("{what} is longer than {longest} characters; shorten it")))
        }
        _ => Ok(text),
    }
}

#[cfg(test)]
mod tests;
