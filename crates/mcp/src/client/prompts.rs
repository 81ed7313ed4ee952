//! Prompts of servers: fetched by name, and treated as plain text only.

use crate::client::connection::McpConnection;
use crate::client::request::{McpRequestError, McpRequestOptions};
use rmcp::model::{
    ClientRequest, ContentBlock, GetPromptRequest, GetPromptRequestParams, ResourceContents,
    ServerResult,
};
use serde_json::{Map, Value};
use std::time::Duration;

const PROMPT_TIMEOUT: Duration = Duration::from_secs(30);
/// Longer prompts are rejected.
const MAX_PROMPT_BYTES: usize = 256 << 10;

/// Fetches a prompt with `prompts/get` and returns its text.
pub(crate) async fn get_prompt(
    connection: &McpConnection,
    name: &str,
    arguments: &str,
) -> Result<String, McpRequestError> {
    let mut params = GetPromptRequestParams::new(name);
    let parsed = parse_arguments(arguments);
    if !parsed.is_empty() {
        params.arguments = Some(parsed);
    }
    let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(params));
    let ServerResult::GetPromptResult(result) =
        connection.send_request(request, &McpRequestOptions::unattended(PROMPT_TIMEOUT)).await?
    else {
        return Err(McpRequestError::InvalidAnswer);
    };
    let mut text = String::new();
    for message in result.messages {
        let part = match message.content {
            ContentBlock::Text(part) => part.text,
            ContentBlock::Resource(part) => match part.resource {
                ResourceContents::TextResourceContents { text, .. } => text,
                _ => continue,
            },
            _ => continue,
        };
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(&part);
        if text.len() > MAX_PROMPT_BYTES {
            return Err(McpRequestError::Rejected("the prompt is too large".into()));
        }
    }
    Ok(text)
}

/// Parses `a=1 b=two words`: a value extends to the next name.
fn parse_arguments(arguments: &str) -> Map<String, Value> {
    let mut parsed: Vec<(String, String)> = Vec::new();
    for word in arguments.split_whitespace() {
        let pair = word.split_once('=').filter(|(name, _)| {
            let is_name_char = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
            !name.is_empty() && name.chars().all(is_name_char)
        });
        match (pair, parsed.last_mut()) {
            (Some((name, value)), _) => parsed.push((name.to_owned(), value.to_owned())),
            (None, Some((_, value))) => {
                value.push(' ');
                value.push_str(word);
            }
            (None, None) => {}
        }
    }
    parsed.into_iter().map(|(name, value)| (name, Value::String(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_parsed_as_names_and_values() {
        let arguments = parse_arguments("lost a=1 b=two words c= =x d=p=q");
        let arguments: Vec<_> =
            arguments.iter().map(|(n, v)| (n.as_str(), v.as_str().unwrap())).collect();
        assert_eq!(arguments, [("a", "1"), ("b", "two words"), ("c", " =x"), ("d", "p=q")]);
    }
}
