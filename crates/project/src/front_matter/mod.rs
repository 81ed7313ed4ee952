//! Parses front matter: the YAML settings at the head of a Markdown file, between two lines of
//! `---`.
//!
//! Many files that other agents accept are not valid YAML, because a text such as `Use when: ...`
//! is not quoted. If the YAML is invalid, each top-level `key: text` line that is invalid by itself
//! counts as if its text were quoted. Everything else stays an error with its line, because the
//! settings may contain permission rules.

use serde_json::{Map, Value};
use serde_saphyr::options::DuplicateKeyPolicy;

/// A file split into `settings` and `body`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FrontMatter {
    /// The settings in the order they were written.
    pub(crate) settings: Map<String, Value>,
    /// The text below the front matter.
    pub(crate) body: String,
}

/// A parse error and its line in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FrontMatterError {
    pub(crate) line: usize,
    pub(crate) message: String,
}

/// Parses a file. One that does not begin with `---` has no settings.
pub(crate) fn parse_front_matter(text: &str) -> Result<FrontMatter, FrontMatterError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.lines();
    let is_fence = |line: &&str| line.trim_end() == "---";
    if !lines.next().as_ref().is_some_and(is_fence) {
        return Ok(FrontMatter { settings: Map::new(), body: text.trim().to_owned() });
    }
    let rest: Vec<&str> = lines.collect();
    let Some(end) = rest.iter().position(is_fence) else {
        let message = "the front matter is not closed; end it with ---".to_owned();
        return Err(FrontMatterError { line: 1, message });
    };
    let (head, body) = rest.split_at(end);
    let settings = parse_yaml(&head.join("\n")).or_else(|error| {
        let quoted: Vec<String> = head.iter().map(|line| quote_invalid_line(line)).collect();
        parse_yaml(&quoted.join("\n")).map_err(|_| error)
    })?;
    let body = body.get(1..).unwrap_or_default().join("\n");
    Ok(FrontMatter { settings, body: body.trim().to_owned() })
}

/// Parses the lines between the fences. The line of an error counts the first fence.
fn parse_yaml(text: &str) -> Result<Map<String, Value>, FrontMatterError> {
    let options = serde_saphyr::options! {
        strict_booleans: true,
        duplicate_keys: DuplicateKeyPolicy::Error,
        with_snippet: false,
    };
    match serde_saphyr::from_str_with_options(text, options) {
        Ok(Value::Object(settings)) => Ok(settings),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(_) => Err(FrontMatterError { line: 2, message: "expected `key: value`".to_owned() }),
        Err(error) => {
            let line = error.location().map_or(0, |location| location.line() as usize);
            let message = error.to_string();
            let message = message.lines().next().unwrap_or_default();
            // The parser begins its message with the place.
            let rest = message.split_once("column ").and_then(|(_, rest)| rest.split_once(": "));
            let message = format!("invalid YAML: {}", rest.map_or(message, |(_, rest)| rest));
            Err(FrontMatterError { line: line + 1, message })
        }
    }
}

/// Puts the text of a top-level `key: text` line in quotes, if the line is not valid YAML.
fn quote_invalid_line(line: &str) -> String {
    let quoted = line.split_once(": ").filter(|(key, text)| {
        let is_name_char = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
        let is_block = text.trim().starts_with(['|', '>', '"', '\'', '[', '{']);
        key.chars().all(is_name_char) && !is_block && parse_yaml(line).is_err()
    });
    match quoted {
        Some((key, text)) => format!("{key}: '{}'", text.trim().replace('\'', "''")),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests;
