//! Repairs tool arguments as models write them: almost JSON, with almost the right types.
//!
//! [`parse_arguments`] accepts text that can be read in only one way, and lists the repairs. It
//! never completes truncated text and never changes the content of a string; it rejects everything
//! else. [`coerce`] then converts obvious types to what the tool's schema requires. Recursion is
//! limited to a fixed depth, however deep the text or the schema is.

mod coerce;
mod loose_json;
#[cfg(test)]
mod tests;

pub use coerce::coerce;

use serde_json::{Map, Value};
use windlass_protocol::display_text::truncate_chars;

/// The result of `parse_arguments`: the value and the repairs that were needed.
#[derive(Clone, Debug, PartialEq)]
pub struct RepairedArguments {
    pub value: Value,
    /// The repairs; empty if the text was plain JSON.
    pub changes: Vec<String>,
}

/// Parses arguments, or returns why they cannot be read without guessing.
pub fn parse_arguments(text: &str) -> Result<RepairedArguments, String> {
    let mut changes = Vec::new();
    if text.trim().is_empty() {
        return Ok(RepairedArguments { value: Value::Object(Map::new()), changes });
    }
    let mut value = parse_lenient(text, &mut changes)?;
    if let Value::String(inner) = &value
        && inner.trim_start().starts_with('{')
    {
        add_change(&mut changes, "the arguments were JSON inside a string");
        value = parse_lenient(&inner.clone(), &mut changes)
            .map_err(|error| format!("they are a string with invalid JSON: {error}"))?;
    }
    Ok(RepairedArguments { value, changes })
}

fn parse_lenient(text: &str, changes: &mut Vec<String>) -> Result<Value, String> {
    if let Ok(value) = serde_json::from_str(text) {
        return Ok(value);
    }
    let (start, end) = match fence_content(text) {
        None => (0, text.len()),
        Some(Some(range)) => {
            add_change(changes, "the code fence around the arguments was removed");
            range
        }
        Some(None) => {
            let error = "the code fence around them is not closed; they may be truncated";
            return Err(error.into());
        }
    };
    let body = text.get(start..end).unwrap_or_default();
    let strict = loose_json::to_strict_json(body).map_err(|offset| {
        let error = "invalid backslash before a line break or control character";
        format!("{error} at {}", describe_position(text, start + offset))
    })?;
    let truncated = |part: &str| format!("they end in the middle of {part}; they may be truncated");
    match serde_json::from_str(&strict.json) {
        // An unclosed comment may have swallowed anything.
        Ok(_) if strict.unfinished == Some("a comment") => Err(truncated("a comment")),
        Ok(value) => {
            strict.changes.into_iter().for_each(|change| add_change(changes, change));
            Ok(value)
        }
        Err(error) if error.is_eof() => Err(truncated(strict.unfinished.unwrap_or("a value"))),
        Err(error) => {
            let message = error.to_string();
            let message = message
                .split_once(" at line ")
                .map_or(message.as_str(), |(description, _)| description);
            let offset = start + strict.source_offset(error.column().saturating_sub(1));
            Err(format!("{message} at {}", describe_position(text, offset)))
        }
    }
}

/// Returns the range inside a code fence: `None` if there is no fence, `Some(None)` if it is not
/// closed.
fn fence_content(text: &str) -> Option<Option<(usize, usize)>> {
    const CODE_FENCE: &str = "```";
    let after_fence = text.trim_start().strip_prefix(CODE_FENCE)?;
    let body = after_fence.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
    let start = text.len() - body.len();
    let content = body.trim_end().strip_suffix(CODE_FENCE);
    Some(content.map(|content| (start, start + content.len())))
}

fn describe_position(text: &str, offset: usize) -> String {
    const MAX_CONTEXT_CHARS: usize = 20;
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    let context: String = text
        .get(offset..)
        .unwrap_or_default()
        .chars()
        .take_while(|c| *c != '\n')
        .take(MAX_CONTEXT_CHARS)
        .collect();
    if context.is_empty() {
        return format!("line {line}, column {column}");
    }
    format!("line {line}, column {column}, near `{context}`")
}

fn add_change(changes: &mut Vec<String>, change: &str) {
    if !changes.iter().any(|existing| existing == change) {
        changes.push(change.to_owned());
    }
}

/// Shortens a text for use in a message.
pub(crate) fn shorten(text: &str) -> String {
    const MAX_SHORTENED_CHARS: usize = 40;
    truncate_chars(text, MAX_SHORTENED_CHARS)
}
