//! Arguments as models write them: almost JSON, and almost of the right types.
//!
//! [`read`] reads what can be read in one way only, and names what it had to change. It never
//! completes what was cut off, and never changes what a string says: what it cannot read like that
//! it refuses. [`coerce`] then changes obvious types to what a tool's schema wants. Nothing here
//! recurses further than a fixed depth, however deep the text or the schema is.

mod coerce;
mod loose;
#[cfg(test)]
mod tests;

pub use coerce::coerce;

use serde_json::{Map, Value};
use windlass_protocol::text::beginning;

/// Arguments as they were meant.
#[derive(Clone, Debug, PartialEq)]
pub struct Repaired {
    /// What they say.
    pub value: Value,
    /// What had to be changed to read them; nothing if they were plain JSON.
    pub changes: Vec<String>,
}

/// Reads arguments, or says why they cannot be read without guessing.
pub fn read(written: &str) -> Result<Repaired, String> {
    let mut changes = Vec::new();
    if written.trim().is_empty() {
        return Ok(Repaired { value: Value::Object(Map::new()), changes });
    }
    let mut value = any(written, &mut changes)?;
    if let Value::String(inner) = &value
        && inner.trim_start().starts_with('{')
    {
        note(&mut changes, "the arguments were JSON inside a string");
        value = any(&inner.clone(), &mut changes)
            .map_err(|why| format!("they are a string, and in what it holds {why}"))?;
    }
    Ok(Repaired { value, changes })
}

fn any(text: &str, changes: &mut Vec<String>) -> Result<Value, String> {
    if let Ok(value) = serde_json::from_str(text) {
        return Ok(value);
    }
    let (start, end) = match fenced(text) {
        None => (0, text.len()),
        Some(Some(inside)) => {
            note(changes, "the code fence around the arguments was removed");
            inside
        }
        Some(None) => {
            let why = "the code fence around them is not closed, as if they were cut off";
            return Err(why.into());
        }
    };
    let body = text.get(start..end).unwrap_or_default();
    let strict = loose::strict(body).map_err(|at| {
        let why = "a backslash stands before a line break or control character";
        format!("{why} at {}", place(text, start + at))
    })?;
    let cut = |part: &str| format!("they end in the middle of {part}, as if they were cut off");
    match serde_json::from_str(&strict.json) {
        // A comment that does not end may have swallowed anything.
        Ok(_) if strict.inside == Some("a comment") => Err(cut("a comment")),
        Ok(value) => {
            strict.changes.into_iter().for_each(|change| note(changes, change));
            Ok(value)
        }
        Err(error) if error.is_eof() => Err(cut(strict.inside.unwrap_or("a value"))),
        Err(error) => {
            let told = error.to_string();
            let told = told.split_once(" at line ").map_or(told.as_str(), |(what, _)| what);
            let at = start + strict.origin(error.column().saturating_sub(1));
            Err(format!("{told} at {}", place(text, at)))
        }
    }
}

/// What stands inside a code fence: `None` if there is no fence, `Some(None)` if it never closes.
fn fenced(text: &str) -> Option<Option<(usize, usize)>> {
    const FENCE: &str = "```";
    let opened = text.trim_start().strip_prefix(FENCE)?;
    let body = opened.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
    let start = text.len() - body.len();
    let inside = body.trim_end().strip_suffix(FENCE);
    Some(inside.map(|inside| (start, start + inside.len())))
}

fn place(text: &str, at: usize) -> String {
    const NEAR: usize = 20;
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    let near: String =
        text.get(at..).unwrap_or_default().chars().take_while(|c| *c != '\n').take(NEAR).collect();
    if near.is_empty() {
        return format!("line {line}, column {column}");
    }
    format!("line {line}, column {column}, near `{near}`")
}

fn note(changes: &mut Vec<String>, change: &str) {
    if !changes.iter().any(|noted| noted == change) {
        changes.push(change.to_owned());
    }
}

/// The beginning of a text, for a sentence about it.
pub(crate) fn short(text: &str) -> String {
    const LONGEST: usize = 40;
    beginning(text, LONGEST)
}
