//! Prompts that servers bring: asked for by name, and never read as anything but words.

use crate::call::{Broke, Terms, told};
use crate::link::Link;
use rmcp::model::{
    ClientRequest, ContentBlock, GetPromptRequest, GetPromptRequestParams, Prompt,
    ResourceContents, ServerResult,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::time::Duration;

/// How long a server may take to give one.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a prompt may be.
const LONGEST: usize = 256 << 10;

/// What is known of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptCard {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// What it is filled in with; those with a `*` must be.
    pub arguments: Vec<String>,
}

impl PromptCard {
    pub(crate) fn of(prompt: &Prompt) -> PromptCard {
        let arguments = prompt.arguments.iter().flatten().take(32);
        let arguments = arguments.map(|argument| {
            let star = if argument.required == Some(true) { "*" } else { "" };
            format!("{}{star}", told(&argument.name))
        });
        let description = prompt.description.as_deref().or(prompt.title.as_deref());
        PromptCard {
            name: prompt.name.chars().take(200).collect(),
            description: told(description.unwrap_or_default()),
            arguments: arguments.collect(),
        }
    }
}

/// Asks for a prompt.
pub(crate) async fn get(link: &Link, name: &str, arguments: &str) -> Result<String, Broke> {
    let mut params = GetPromptRequestParams::new(name);
    let filled = parse(arguments);
    if !filled.is_empty() {
        params.arguments = Some(filled);
    }
    let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(params));
    let ServerResult::GetPromptResult(result) =
        link.request(request, &Terms::quiet(PATIENCE)).await?
    else {
        return Err(Broke::Odd);
    };
    let mut text = String::new();
    for message in result.messages {
        let piece = match message.content {
            ContentBlock::Text(piece) => piece.text,
            ContentBlock::Resource(piece) => match piece.resource {
                ResourceContents::TextResourceContents { text, .. } => text,
                _ => continue,
            },
            _ => continue,
        };
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(&piece);
        if text.len() > LONGEST {
            return Err(Broke::Refused("the prompt is longer than what is taken".into()));
        }
    }
    Ok(text)
}

/// `a=1 b=two words`: a name, and everything up to the next one.
fn parse(arguments: &str) -> Map<String, Value> {
    let mut filled: Vec<(String, String)> = Vec::new();
    for word in arguments.split_whitespace() {
        let named = word.split_once('=').filter(|(name, _)| {
            let fits = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-');
            !name.is_empty() && name.chars().all(fits)
        });
        match (named, filled.last_mut()) {
            (Some((name, value)), _) => filled.push((name.to_owned(), value.to_owned())),
            (None, Some((_, value))) => {
                value.push(' ');
                value.push_str(word);
            }
            (None, None) => {}
        }
    }
    filled.into_iter().map(|(name, value)| (name, Value::String(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_names_and_the_words_after_them() {
        let filled = parse("lost a=1 b=two words c= =x d=p=q");
        let filled: Vec<_> =
            filled.iter().map(|(n, v)| (n.as_str(), v.as_str().unwrap())).collect();
        assert_eq!(filled, [("a", "1"), ("b", "two words"), ("c", " =x"), ("d", "p=q")]);
    }
}
