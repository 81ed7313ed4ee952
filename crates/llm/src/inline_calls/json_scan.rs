//! Splits JSON as models write it by braces and strings, without validating it.

/// Tracks braces, brackets and strings, character by character.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct InlineJsonScanner {
    depth: usize,
    inside_string: bool,
    escaped: bool,
}

impl InlineJsonScanner {
    /// Adds the next character; returns true if it closes the outermost bracket.
    pub(super) fn push_char(&mut self, c: char) -> bool {
        if self.inside_string {
            if self.escaped {
                self.escaped = false;
            } else if c == '\\' {
                self.escaped = true;
            } else if c == '"' {
                self.inside_string = false;
            }
            return false;
        }
        match c {
            '"' => self.inside_string = true,
            '{' | '[' => self.depth += 1,
            '}' | ']' if self.depth > 0 => {
                self.depth -= 1;
                return self.depth == 0;
            }
            _ => {}
        }
        false
    }

    pub(super) fn is_in_string(&self) -> bool {
        self.inside_string
    }
}

/// Splits an object or array off the front, if it is closed.
pub(super) fn split_closed(text: &str) -> Option<(&str, &str)> {
    if !text.starts_with(['{', '[']) {
        return None;
    }
    let mut scan = InlineJsonScanner::default();
    let end = text
        .char_indices()
        .find(|(_, c)| scan.push_char(*c))
        .map(|(index, c)| index + c.len_utf8());
    text.split_at_checked(end?)
}

/// Splits a string, including its quotes, off the front.
fn split_string(text: &str) -> Option<(&str, &str)> {
    let mut escaped = false;
    for (index, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return text.split_at_checked(index + 1),
            _ => {}
        }
    }
    None
}

/// Splits any value off the front.
pub(super) fn split_value(text: &str) -> Option<(&str, &str)> {
    match text.chars().next()? {
        '"' => split_string(text),
        '{' | '[' => split_closed(text),
        _ => {
            let is_end = |c: char| c.is_whitespace() || matches!(c, ',' | '}' | ']');
            text.split_at_checked(text.find(is_end)?).filter(|(value, _)| !value.is_empty())
        }
    }
}

/// Returns the contents of a quoted string, even if its escapes are invalid.
pub(super) fn unquote(text: &str) -> Option<String> {
    let inner = || Some(text.strip_prefix('"')?.strip_suffix('"')?.to_owned());
    serde_json::from_str(text).ok().or_else(inner)
}

/// Splits a key and its colon off the front.
pub(super) fn split_key(text: &str) -> Option<(String, &str)> {
    let (key, rest) = split_string(text.strip_prefix('"').and(Some(text))?)?;
    Some((unquote(key)?, rest.trim_start().strip_prefix(':')?.trim_start()))
}

/// Parses the members of a complete object into keys and raw values.
pub(super) fn parse_members(object: &str) -> Option<Vec<(String, &str)>> {
    let mut rest = object.strip_prefix('{')?.trim_start();
    let mut members = Vec::new();
    loop {
        if let Some(after) = rest.strip_prefix('}') {
            return after.trim().is_empty().then_some(members);
        }
        let (key, after_key) = split_key(rest)?;
        let (value, after) = split_value(after_key)?;
        members.push((key, value));
        let after = after.trim_start();
        rest = match after.strip_prefix(',') {
            Some(next) => next.trim_start(),
            None if after.starts_with('}') => after,
            None => return None,
        };
    }
}

/// Returns the elements of an array of objects, or the single object.
pub(super) fn parse_objects(text: &str) -> Option<Vec<&str>> {
    let Some(mut rest) = text.strip_prefix('[') else { return Some(vec![text]) };
    let mut objects = Vec::new();
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        if let Some(after) = rest.strip_prefix(']') {
            return after.trim().is_empty().then_some(objects);
        }
        let (object, after) = split_closed(rest)?;
        objects.push(object);
        rest = after;
    }
}
