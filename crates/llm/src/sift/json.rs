//! JSON as models write it: split by its braces and strings, without asking whether it is valid.

use super::call::Written;

/// Follows braces and strings, character by character.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Scan {
    depth: usize,
    string: bool,
    escaped: bool,
}

impl Scan {
    /// Takes in the next character. True if it closes what was opened first.
    pub(super) fn take(&mut self, c: char) -> bool {
        if self.string {
            if self.escaped {
                self.escaped = false;
            } else if c == '\\' {
                self.escaped = true;
            } else if c == '"' {
                self.string = false;
            }
            return false;
        }
        match c {
            '"' => self.string = true,
            '{' | '[' => self.depth += 1,
            '}' | ']' if self.depth > 0 => {
                self.depth -= 1;
                return self.depth == 0;
            }
            _ => {}
        }
        false
    }

    /// True inside a string.
    pub(super) fn in_string(&self) -> bool {
        self.string
    }
}

/// Splits an object or array off the front, if it is closed.
pub(super) fn closed(text: &str) -> Option<(&str, &str)> {
    if !text.starts_with(['{', '[']) {
        return None;
    }
    let mut scan = Scan::default();
    let end = text.char_indices().find(|(_, c)| scan.take(*c)).map(|(at, c)| at + c.len_utf8());
    text.split_at_checked(end?)
}

/// Splits a string off the front, with its quotes.
fn string(text: &str) -> Option<(&str, &str)> {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return text.split_at_checked(at + 1),
            _ => {}
        }
    }
    None
}

/// Splits any value off the front.
fn value(text: &str) -> Option<(&str, &str)> {
    match text.chars().next()? {
        '"' => string(text),
        '{' | '[' => closed(text),
        _ => {
            let ends = |c: char| c.is_whitespace() || matches!(c, ',' | '}' | ']');
            text.split_at_checked(text.find(ends)?).filter(|(value, _)| !value.is_empty())
        }
    }
}

/// What a string says.
fn said(text: &str) -> Option<String> {
    let inner = || Some(text.strip_prefix('"')?.strip_suffix('"')?.to_owned());
    serde_json::from_str(text).ok().or_else(inner)
}

/// Splits a key and its colon off the front.
fn key(text: &str) -> Option<(String, &str)> {
    let (key, rest) = string(text.strip_prefix('"').and(Some(text))?)?;
    Some((said(key)?, rest.trim_start().strip_prefix(':')?.trim_start()))
}

/// The members of an object that is whole.
pub(super) fn members(object: &str) -> Option<Vec<(String, &str)>> {
    let mut rest = object.strip_prefix('{')?.trim_start();
    let mut members = Vec::new();
    loop {
        if let Some(after) = rest.strip_prefix('}') {
            return after.trim().is_empty().then_some(members);
        }
        let (key, from) = key(rest)?;
        let (value, after) = value(from)?;
        members.push((key, value));
        let after = after.trim_start();
        rest = match after.strip_prefix(',') {
            Some(more) => more.trim_start(),
            None if after.starts_with('}') => after,
            None => return None,
        };
    }
}

/// The elements of an array of objects, or the one object there is.
pub(super) fn objects(text: &str) -> Option<Vec<&str>> {
    let Some(mut rest) = text.strip_prefix('[') else { return Some(vec![text]) };
    let mut objects = Vec::new();
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        if let Some(after) = rest.strip_prefix(']') {
            return after.trim().is_empty().then_some(objects);
        }
        let (object, after) = closed(rest)?;
        objects.push(object);
        rest = after;
    }
}

fn is_arguments(key: &str) -> bool {
    matches!(key, "arguments" | "parameters")
}

/// The call a whole object makes.
pub(super) fn call(object: &str) -> Option<Written> {
    let members = members(object)?;
    let inner = members.iter().find(|(key, value)| key == "function" && value.starts_with('{'));
    match inner {
        Some((_, value)) => named(&self::members(value)?),
        None => named(&members),
    }
}

fn named(members: &[(String, &str)]) -> Option<Written> {
    let find = |wanted: fn(&str) -> bool| {
        members.iter().find(|(key, _)| wanted(key)).map(|(_, value)| *value)
    };
    let name = find(|key| key == "name").or_else(|| find(|key| key == "function"))?;
    let tool = said(name).filter(|tool| !tool.is_empty())?;
    Some(Written { tool, arguments: find(is_arguments).unwrap_or("{}").to_owned() })
}

/// The call a broken object was meant to make: its name has to come first, and what follows is its
/// arguments, broken as they may be.
pub(super) fn broken(object: &str) -> Option<Written> {
    let mut rest = object.strip_prefix('{')?.trim_start();
    let mut name = None;
    loop {
        let (key, from) = key(rest)?;
        if is_arguments(&key) {
            let tool = name.filter(|name: &String| !name.is_empty())?;
            return Some(Written { tool, arguments: rest_of(from).to_owned() });
        }
        let (value, after) = value(from)?;
        if key == "name" {
            name = said(value);
        }
        rest = after.trim_start().strip_prefix(',')?.trim_start();
    }
}

/// Arguments with which an object ends that has too few braces, or too many, or is no JSON at all.
fn rest_of(text: &str) -> &str {
    let text = text.trim_end();
    match closed(text) {
        Some((value, after)) if after.chars().all(|c| c == '}' || c.is_whitespace()) => value,
        _ if value(text).is_none() => text,
        _ => text.strip_suffix('}').unwrap_or(text).trim_end(),
    }
}
