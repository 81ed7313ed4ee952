//! A tool's JSON Schema, rewritten into what a provider accepts.
//!
//! A schema comes from our own tools or from a stranger's server: any draft, and possibly made to
//! do harm. It is first written out in the 2020-12 draft without references (`expand`), then its
//! top is made one plain object (`object`), then what the provider does not know is taken away
//! (`narrow`). What cannot be expressed is loosened and said in a `description`; nothing fails.
//!
//! The same schema always gives the same bytes, in the order it was written, and a schema that
//! was adapted once is not changed by adapting it again. Size is bounded: what references add is
//! counted, and nesting ends at a fixed depth.

mod expand;
mod keyword;
mod meet;
mod narrow;
mod object;
mod union;

use expand::Expand;
use keyword::{Kind, Schema};
use narrow::Narrow;
use serde_json::Value;

/// How deep schemas nest at most.
const DEEPEST: usize = 64;

/// What stands where a schema nested deeper.
const TOO_DEEP: &str = "Any value: its schema nests too deep to be told.";

/// The part of JSON Schema a provider understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subset {
    /// All of it, but references are inlined and the top is an object.
    Full,
    /// OpenAI's strict mode: every object is closed, every property required, and an optional one
    /// may be null instead.
    Strict,
    /// Google Gemini's, in the style of OpenAPI 3.
    Gemini,
    /// What every server knows, for those that refuse a schema over a keyword they do not.
    Plain,
}

/// Rewrites a schema. Whatever cannot be expressed is loosened and said in the description.
///
/// Strict mode alone may also narrow: a free-form map becomes an empty object there. Ask
/// [`fits_strict`] first.
pub fn adapt(schema: &Value, subset: Subset) -> Value {
    adapted(schema, subset).0
}

/// Whether a schema can be written in strict mode without losing meaning. Free-form maps, values
/// of any type and recursion cannot. A limit that is only said in the description is no loss.
pub fn fits_strict(schema: &Value) -> bool {
    let (strict, lost) = adapted(schema, Subset::Strict);
    let mut size = Size::default();
    size.measure(&strict, 0);
    !lost && size.depth <= 10 && size.properties <= 5_000 && size.values <= 1_000
}

/// Whether an adapted schema has no properties. Some versions of Gemini refuse a tool with such
/// parameters; it is declared without any instead.
pub fn takes_nothing(schema: &Value) -> bool {
    schema.get("properties").and_then(Value::as_object).is_none_or(serde_json::Map::is_empty)
}

fn adapted(schema: &Value, subset: Subset) -> (Value, bool) {
    let mut expand = Expand::new(schema);
    let whole = expand.root();
    let (whole, united) = object::top(whole, subset);
    let mut lost = expand.lost || united;
    let whole = match subset {
        Subset::Full => trim(whole, 0, &said(TOO_DEEP)),
        Subset::Strict | Subset::Gemini | Subset::Plain => {
            let mut narrow = Narrow::new(subset);
            let mut narrowed = narrow.schema(whole);
            lost |= narrow.lost;
            if !narrowed.contains_key("properties") {
                narrowed.insert("properties".into(), Schema::new().into());
            }
            trim(narrowed, 0, &Narrow::new(subset).schema(said(TOO_DEEP)))
        }
    };
    (whole.into(), lost)
}

/// A schema that only says something.
fn said(note: &str) -> Schema {
    Schema::from_iter([("description".to_owned(), note.into())])
}

/// Adds a sentence to the description.
fn tell(schema: &mut Schema, note: &str) {
    match schema.get_mut("description") {
        Some(Value::String(text)) if !text.is_empty() => {
            text.push('\n');
            text.push_str(note);
        }
        _ => {
            schema.insert("description".into(), note.into());
        }
    }
}

/// Text cut to a length, and marked when it was.
fn cut(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// A keyword that is not kept, as a note.
fn note(key: &str, value: &Value) -> String {
    let listed = |values: &[Value]| {
        values.iter().take(100).map(Value::to_string).collect::<Vec<_>>().join(", ")
    };
    let text = match (key, value) {
        ("default", value) => format!("Default: {value}"),
        ("format", Value::String(format)) => format!("Format: {format}"),
        ("pattern", Value::String(pattern)) => format!("Pattern: {pattern}"),
        ("enum", Value::Array(values)) => format!("One of: {}", listed(values)),
        ("examples", Value::Array(values)) => format!("Examples: {}", listed(values)),
        (key, value) => format!("{key}: {value}"),
    };
    cut(&text, 300)
}

/// Replaces what nests too deep.
fn trim(mut schema: Schema, depth: usize, leaf: &Schema) -> Schema {
    if depth > DEEPEST {
        return leaf.clone();
    }
    let inner = |value: &mut Value| {
        if let Value::Object(map) = value {
            *value = trim(std::mem::take(map), depth + 1, leaf).into();
        }
    };
    for (key, value) in &mut schema {
        match (keyword::kind(key), value) {
            (Some(Kind::Schema | Kind::SchemaOrFlag), value) => inner(value),
            (Some(Kind::Schemas), Value::Array(values)) => values.iter_mut().for_each(inner),
            (Some(Kind::Named), Value::Object(map)) => map.values_mut().for_each(inner),
            _ => {}
        }
    }
    schema
}

/// How large a strict schema is, in what OpenAI limits.
#[derive(Default)]
struct Size {
    depth: usize,
    properties: usize,
    values: usize,
}

impl Size {
    fn measure(&mut self, schema: &Value, objects: usize) {
        let mut objects = objects;
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            objects += 1;
            self.depth = self.depth.max(objects);
            self.properties += properties.len();
            properties.values().for_each(|inner| self.measure(inner, objects));
        }
        if let Some(items) = schema.get("items") {
            self.measure(items, objects);
        }
        self.values += schema.get("enum").and_then(Value::as_array).map_or(0, Vec::len);
        for branch in schema.get("anyOf").and_then(Value::as_array).into_iter().flatten() {
            self.measure(branch, objects);
        }
    }
}

#[cfg(test)]
mod tests;
