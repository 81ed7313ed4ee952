//! A call that a model wrote as a JSON object in its text.

use super::json_scan::{parse_members, split_closed, split_key, split_value, unquote};

/// A parsed call: the tool name and the arguments as the model wrote them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct InlineCall {
    pub(super) tool: String,
    pub(super) arguments: String,
}

fn is_arguments_key(key: &str) -> bool {
    matches!(key, "arguments" | "parameters")
}

/// Parses the call in a complete object.
pub(super) fn parse_call(object: &str) -> Option<InlineCall> {
    let members = parse_members(object)?;
    let inner = members.iter().find(|(key, value)| key == "function" && value.starts_with('{'));
    match inner {
        Some((_, value)) => call_from_members(&parse_members(value)?),
        None => call_from_members(&members),
    }
}

fn call_from_members(members: &[(String, &str)]) -> Option<InlineCall> {
    let find = |predicate: fn(&str) -> bool| {
        members.iter().find(|(key, _)| predicate(key)).map(|(_, value)| *value)
    };
    let name = find(|key| key == "name").or_else(|| find(|key| key == "function"))?;
    let tool = unquote(name).filter(|tool| !tool.is_empty())?;
    Some(InlineCall { tool, arguments: find(is_arguments_key).unwrap_or("{}").to_owned() })
}

/// Parses the call in a malformed object. The name must come first; the rest is taken as the
/// arguments, however malformed.
pub(super) fn parse_broken_call(object: &str) -> Option<InlineCall> {
    let mut rest = object.strip_prefix('{')?.trim_start();
    let mut name = None;
    loop {
        let (key, after_key) = split_key(rest)?;
        if is_arguments_key(&key) {
            let tool = name.filter(|name: &String| !name.is_empty())?;
            return Some(InlineCall { tool, arguments: trailing_arguments(after_key).to_owned() });
        }
        let (value, after) = split_value(after_key)?;
        if key == "name" {
            name = unquote(value);
        }
        rest = after.trim_start().strip_prefix(',')?.trim_start();
    }
}

/// Returns the arguments at the end of an object that has too few or too many braces, or is not
/// JSON at all.
fn trailing_arguments(text: &str) -> &str {
    let text = text.trim_end();
    match split_closed(text) {
        Some((value, after)) if after.chars().all(|c| c == '}' || c.is_whitespace()) => value,
        _ if split_value(text).is_none() => text,
        _ => text.strip_suffix('}').unwrap_or(text).trim_end(),
    }
}
