//! Sanitizes the schemas and descriptions of external tools. Pure: takes a schema and returns one
//! that is safe.
//!
//! A schema is sent to models, used for validation and walked by `repair`, so it must be small,
//! shallow and self-contained: it has no external and no recursive references, and no regex takes more than linear
//! time. Checks that are removed here are left to the server.

mod references;

use crate::truncate_output;
use crate::validate_arguments::compile_schema;
use references::{NAMED_SCHEMA_KEYWORDS, SCHEMA_KEYWORDS, cut_recursion, resolve_reference};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use windlass_protocol::BlobRef;

/// Deeper schemas are rejected.
const MAX_SCHEMA_DEPTH: usize = 32;
/// Limits the values of a schema, also after its references are expanded.
const MAX_SCHEMA_VALUES: usize = 5_000;
/// Longer schemas are rejected.
const MAX_SCHEMA_BYTES: usize = 64 << 10;
/// Limits the length of a regex; `MAX_PATTERNS` limits their number.
const MAX_PATTERN_BYTES: usize = 1 << 10;
const MAX_PATTERNS: usize = 30;
/// The longest tool name that providers accept.
const MAX_TOOL_NAME_BYTES: usize = 64;
/// Longer descriptions are cut.
const MAX_DESCRIPTION_BYTES: usize = 4 << 10;
/// Limits the preview of a call.
const MAX_PREVIEW_BYTES: usize = 16 << 10;

/// The JSON Schema drafts that a schema may select.
const ALLOWED_DRAFTS: [&str; 5] = [
    "json-schema.org/draft-04/schema",
    "json-schema.org/draft-06/schema",
    "json-schema.org/draft-07/schema",
    "json-schema.org/draft/2019-09/schema",
    "json-schema.org/draft/2020-12/schema",
];

/// Keywords that would change the targets of references in the schema.
const ANCHOR_KEYWORDS: [&str; 7] =
    ["$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "$comment"];

/// Returns a safe version of an argument schema, or why there is none.
pub fn sanitize_schema(schema: &Value) -> Result<Value, String> {
    if !is_within_limits(schema) {
        return Err(format!(
            "its schema is nested deeper than {MAX_SCHEMA_DEPTH} levels or has more than \
             {MAX_SCHEMA_VALUES} values"
        ));
    }
    let length = schema.to_string().len();
    if length > MAX_SCHEMA_BYTES {
        return Err(format!("its schema has {length} bytes; the limit is {MAX_SCHEMA_BYTES}"));
    }
    let Value::Object(top) = schema else { return Err("its schema is not an object".into()) };
    match top.get("type") {
        None => {}
        Some(kind) if kind == "object" => {}
        Some(_) => return Err("the `type` of its schema is not `object`".into()),
    }
    let mut sanitized = schema.clone();
    let draft = top.get("$schema").and_then(Value::as_str).and_then(canonical_draft);
    SchemaSanitizer { root: schema, patterns_left: MAX_PATTERNS }.sanitize(&mut sanitized);
    if cut_recursion(&mut sanitized).is_none() {
        return Err(format!(
            "its schema has more than {MAX_SCHEMA_VALUES} values when its references are expanded"
        ));
    }
    if let Value::Object(top) = &mut sanitized {
        top.insert("type".into(), "object".into());
        if let Some(draft) = draft {
            top.insert("$schema".into(), draft.into());
        }
    }
    compile_schema(&sanitized).map_err(|failure| failure.text)?;
    Ok(sanitized)
}

/// Returns the canonical URI of the draft that a schema names.
fn canonical_draft(uri: &str) -> Option<String> {
    let trimmed = uri.trim_end_matches('#');
    let (scheme, rest) = trimmed.split_once("://")?;
    let is_allowed = matches!(scheme, "http" | "https") && ALLOWED_DRAFTS.contains(&rest);
    let is_older = rest.contains("draft-0");
    is_allowed.then(|| if is_older { format!("http://{rest}#") } else { format!("https://{rest}") })
}

/// Returns true if a value exceeds neither the depth nor the size limit. Not recursive.
fn is_within_limits(value: &Value) -> bool {
    let (mut stack, mut count) = (vec![(value, 0)], 0);
    while let Some((value, depth)) = stack.pop() {
        count += 1;
        if depth > MAX_SCHEMA_DEPTH || count > MAX_SCHEMA_VALUES {
            return false;
        }
        match value {
            Value::Object(map) => stack.extend(map.values().map(|inner| (inner, depth + 1))),
            Value::Array(list) => stack.extend(list.iter().map(|inner| (inner, depth + 1))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    true
}

struct SchemaSanitizer<'a> {
    root: &'a Value,
    /// The number of further regexes that are allowed.
    patterns_left: usize,
}

impl SchemaSanitizer<'_> {
    /// Sanitizes a schema and its subschemas. Values that are not schemas stay: `enum` may contain
    /// anything, and a field may be named `$ref`.
    fn sanitize(&mut self, schema: &mut Value) {
        let Value::Object(map) = schema else { return };
        let is_unsafe_reference = |(key, value): (&String, &Value)| match key.as_str() {
            "$ref" => value
                .as_str()
                .is_none_or(|reference| resolve_reference(self.root, reference).is_none()),
            "$dynamicRef" | "$recursiveRef" => true,
            _ => false,
        };
        if map.iter().any(is_unsafe_reference) {
            *schema = json!({});
            return;
        }
        map.retain(|key, _| !ANCHOR_KEYWORDS.contains(&key.as_str()) && key != "$schema");
        if map.get("pattern").is_some_and(|pattern| !self.is_safe_pattern(pattern.as_str())) {
            map.shift_remove("pattern");
        }
        if let Some(Value::Object(patterns)) = map.get_mut("patternProperties") {
            patterns.retain(|pattern, _| self.is_safe_pattern(Some(pattern)));
        }
        for (key, inner) in map.iter_mut() {
            match key.as_str() {
                key if NAMED_SCHEMA_KEYWORDS.contains(&key) => self.sanitize_named(inner),
                key if SCHEMA_KEYWORDS.contains(&key) => self.sanitize_list(inner),
                _ => {}
            }
        }
    }

    fn sanitize_named(&mut self, schemas: &mut Value) {
        if let Value::Object(map) = schemas {
            map.values_mut().for_each(|schema| self.sanitize(schema));
        }
    }

    fn sanitize_list(&mut self, schemas: &mut Value) {
        match schemas {
            Value::Array(list) => list.iter_mut().for_each(|schema| self.sanitize(schema)),
            schema => self.sanitize(schema),
        }
    }

    /// Returns true for regexes that match in linear time. Patterns that our engine does not
    /// support are left to the server.
    fn is_safe_pattern(&mut self, pattern: Option<&str>) -> bool {
        let Some(pattern) = pattern.filter(|pattern| pattern.len() <= MAX_PATTERN_BYTES) else {
            return false;
        };
        let is_safe =
            self.patterns_left > 0 && compile_schema(&json!({"pattern": pattern})).is_ok();
        self.patterns_left = self.patterns_left.saturating_sub(1);
        is_safe
    }
}

/// Returns the local name of an external tool, which every provider accepts.
pub fn tool_name(server: &str, tool: &str) -> String {
    let full_name = format!("{server}_{tool}");
    let to_allowed = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = full_name.chars().map(to_allowed).collect();
    if name.len() <= MAX_TOOL_NAME_BYTES {
        return name;
    }
    let digest = BlobRef::for_bytes(full_name.as_bytes());
    let short: String = name.chars().take(MAX_TOOL_NAME_BYTES - 9).collect();
    let suffix: String = digest.as_str().chars().take(8).collect();
    format!("{short}_{suffix}")
}

/// Returns the digest of a definition; it does not depend on the order of fields.
pub fn definition_digest(definition: &Value) -> String {
    BlobRef::for_bytes(sort_keys(definition).to_string().as_bytes()).as_str().to_owned()
}

/// Sorts the keys of all objects in a value.
fn sort_keys(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let names: BTreeSet<&String> = map.keys().collect();
            let fields = names
                .into_iter()
                .filter_map(|name| map.get(name).map(|inner| (name.clone(), sort_keys(inner))));
            Value::Object(fields.collect::<Map<String, Value>>())
        }
        Value::Array(list) => Value::Array(list.iter().map(sort_keys).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// Cuts a description to `MAX_DESCRIPTION_BYTES`.
pub fn truncate_description(description: &str) -> &str {
    description.get(..description.floor_char_boundary(MAX_DESCRIPTION_BYTES)).unwrap_or_default()
}

/// Returns the preview of a call for the user: `prefix`, which may be empty, then the arguments.
pub fn call_preview(prefix: &str, arguments: &Map<String, Value>) -> String {
    let arguments = serde_json::to_string_pretty(arguments).unwrap_or_default();
    let text = format!("{prefix}{arguments}");
    truncate_output::strip_controls(
        text.get(..text.floor_char_boundary(MAX_PREVIEW_BYTES)).unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests;
