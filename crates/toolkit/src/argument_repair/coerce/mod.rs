//! Type coercion: converts a value of the wrong type to what the schema requires, if only one
//! meaning is possible. Values that fit stay, and so do ambiguous ones; validation reports those
//! later.

#[cfg(test)]
mod tests;

use super::shorten;
use crate::registry::tool_name_match;
use serde_json::{Map, Number, Value};
use std::cell::Cell;
use std::collections::BTreeMap;

/// Further changes are only counted.
const MAX_LISTED_CHANGES: usize = 8;
/// Deeper arguments stay unchanged.
const MAX_ARGUMENT_DEPTH: usize = 32;
/// Bounds the comparisons with a schema, because nested alternatives multiply.
const MAX_COMPARED_VALUES: usize = 50_000;
/// Limits the alternatives of a schema; `MAX_REFERENCES` limits the references that lead to one.
const MAX_ALTERNATIVES: usize = 64;
const MAX_REFERENCES: usize = 8;

/// The schema in place of a reference without a target: it allows everything.
static ANY_SCHEMA: Value = Value::Bool(true);

/// Converts obvious types to what the schema requires, and lists the changes.
pub fn coerce(schema: &Value, value: &mut Value, changes: &mut Vec<String>) {
    let mut coercer = ArgumentCoercer {
        root: schema,
        changes,
        unlisted_changes: 0,
        path: Vec::new(),
        comparisons_left: Cell::new(MAX_COMPARED_VALUES),
    };
    coercer.coerce_value(schema, value);
    if coercer.unlisted_changes > 0 {
        let more = format!("and {} more", coercer.unlisted_changes);
        coercer.changes.push(more);
    }
}

struct ArgumentCoercer<'a, 'c> {
    root: &'a Value,
    changes: &'c mut Vec<String>,
    unlisted_changes: usize,
    path: Vec<String>,
    comparisons_left: Cell<usize>,
}

/// Names of arguments, normalized, with the names that models use for the same in other tools.
const SYNONYMS: &[(&str, &[&str])] = &[
    ("filepath", &["path", "file", "filename", "targetfile", "absolutepath"]),
    ("path", &["filepath", "file", "dir", "directory", "folder"]),
    ("command", &["cmd", "script", "shellcommand", "commandline"]),
    ("pattern", &["glob", "globpattern", "regex", "query", "search"]),
    ("patchtext", &["input", "patch", "diff"]),
    ("include", &["glob", "globpattern", "filepattern"]),
    ("workdir", &["cwd", "directory", "dir", "workingdirectory"]),
    ("content", &["contents", "text", "filetext"]),
    ("oldstring", &["old", "oldstr", "oldtext", "search"]),
    ("newstring", &["new", "newstr", "newtext", "replace", "replacement"]),
];

fn is_synonym(name: &str, field: &str) -> bool {
    SYNONYMS.iter().any(|(known, others)| *known == field && others.contains(&name))
}

fn is_required_field(schema: &Value, name: &str) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    required.is_some_and(|required| required.iter().any(|field| field == name))
}

impl<'a> ArgumentCoercer<'a, '_> {
    fn coerce_value(&mut self, schema: &'a Value, value: &mut Value) {
        if self.path.len() > MAX_ARGUMENT_DEPTH {
            return;
        }
        let alternatives = self.alternatives(schema);
        match value {
            Value::Object(map)
                if alternatives.iter().any(|alternative| allows_type(alternative, "object")) =>
            {
                if let Some(alternative) = self.intended_alternative(&alternatives, map) {
                    self.coerce_object(alternative, map);
                }
            }
            Value::Array(items)
                if alternatives.iter().any(|alternative| allows_type(alternative, "array")) =>
            {
                let mut arrays =
                    alternatives.iter().filter(|alternative| allows_type(alternative, "array"));
                if let (Some(alternative), None) = (arrays.next(), arrays.next()) {
                    self.coerce_items(alternative, items);
                }
            }
            Value::Null => {}
            Value::Object(_)
            | Value::Array(_)
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_) => {
                if !self.fits(schema, value) {
                    self.convert(schema, &alternatives, value);
                }
            }
        }
    }

    /// Returns the only alternative that an object can mean; `None` if it fits one already.
    fn intended_alternative(
        &self,
        alternatives: &[&'a Value],
        map: &Map<String, Value>,
    ) -> Option<&'a Value> {
        let objects: Vec<&Value> = alternatives
            .iter()
            .copied()
            .filter(|alternative| allows_type(alternative, "object"))
            .collect();
        if let [alternative] = objects.as_slice() {
            return Some(alternative);
        }
        if objects.iter().any(|alternative| self.fits_object(alternative, map, MAX_ARGUMENT_DEPTH))
        {
            return None;
        }
        let has_matching_tags = |alternative: &&&Value| {
            let fields = properties(alternative).into_iter().flatten();
            let mut tags = fields.filter(|(_, field)| field.get("const").is_some()).peekable();
            tags.peek().is_some() && tags.all(|(name, tag)| map.get(name) == tag.get("const"))
        };
        let mut tagged = objects.iter().filter(has_matching_tags);
        match (tagged.next(), tagged.next()) {
            (Some(alternative), None) => Some(alternative),
            _ => None,
        }
    }

    fn coerce_object(&mut self, schema: &'a Value, map: &mut Map<String, Value>) {
        let Some(fields) = properties(schema) else {
            return self.coerce_fields(schema, None, map);
        };
        if !matches!(schema.get("additionalProperties"), Some(Value::Object(_)))
            && schema.get("patternProperties").is_none()
        {
            self.rename_field(schema, fields, map);
        }
        let is_required = |name: &str| is_required_field(schema, name);
        let removable: Vec<String> = map
            .iter()
            .filter(|(name, value)| value.is_null() && !is_required(name))
            .filter(|(name, value)| fields.get(*name).is_some_and(|field| !self.fits(field, value)))
            .map(|(name, _)| name.clone())
            .collect();
        for name in removable {
            map.shift_remove(&name);
            self.add_change(|path| format!("{}: null was removed", field_path(path, &name)));
        }
        self.coerce_fields(schema, Some(fields), map);
    }

    fn coerce_fields(
        &mut self,
        schema: &'a Value,
        fields: Option<&'a Map<String, Value>>,
        map: &mut Map<String, Value>,
    ) {
        for (name, value) in map {
            let field = fields.and_then(|fields| fields.get(name));
            let Some(field) = field.or_else(|| schema.get("additionalProperties")) else {
                continue;
            };
            self.path.push(name.clone());
            self.coerce_value(field, value);
            self.path.pop();
        }
    }

    /// Renames a field to its name in the schema, if the match is unambiguous in both directions: a
    /// name in another spelling, or a usual synonym of a required field that is missing.
    fn rename_field(
        &mut self,
        schema: &Value,
        fields: &Map<String, Value>,
        map: &mut Map<String, Value>,
    ) {
        if map.keys().all(|name| fields.contains_key(name)) {
            return;
        }
        let mut known_names: BTreeMap<String, Vec<&String>> = BTreeMap::new();
        fields.keys().for_each(|name| {
            known_names.entry(tool_name_match::normalize_name(name)).or_default().push(name)
        });
        let mut spelling_counts: BTreeMap<String, usize> = BTreeMap::new();
        let is_unknown = |name: &&String| !fields.contains_key(*name);
        map.keys().filter(is_unknown).for_each(|name| {
            *spelling_counts.entry(tool_name_match::normalize_name(name)).or_default() += 1;
        });
        let intended_name = |name: &String| {
            let normalized = Some(tool_name_match::normalize_name(name))
                .filter(|normalized| !normalized.is_empty())?;
            let Some(same_name) = known_names.get(&normalized) else {
                let is_meant = |field: &&String| {
                    !map.contains_key(*field)
                        && is_synonym(&normalized, &tool_name_match::normalize_name(field))
                };
                let (required, optional): (Vec<&String>, Vec<&String>) = fields
                    .keys()
                    .filter(is_meant)
                    .partition(|field| is_required_field(schema, field));
                return match (required.as_slice(), optional.as_slice()) {
                    ([field], _) | ([], [field]) => Some((*field).clone()),
                    _ => None,
                };
            };
            match (same_name.as_slice(), spelling_counts.get(&normalized)) {
                ([field], Some(1)) if !map.contains_key(*field) => Some((*field).clone()),
                _ => None,
            }
        };
        let new_names: Vec<Option<String>> = map
            .keys()
            .map(|name| if is_unknown(&name) { intended_name(name) } else { None })
            .collect();
        let is_unique = |new_name: &&String| {
            new_names.iter().flatten().filter(|other| other == new_name).count() == 1
        };
        let old_fields = std::mem::take(map);
        for ((name, value), new_name) in old_fields.into_iter().zip(&new_names) {
            let Some(new_name) = new_name.as_ref().filter(is_unique) else {
                map.insert(name, value);
                continue;
            };
            self.add_change(|path| format!("{} was read as `{new_name}`", field_path(path, &name)));
            map.insert(new_name.clone(), value);
        }
    }

    fn coerce_items(&mut self, schema: &'a Value, items: &mut [Value]) {
        let prefix_items = schema.get("prefixItems").and_then(Value::as_array);
        for (index, item) in items.iter_mut().enumerate() {
            let prefix_item = prefix_items.and_then(|prefix_items| prefix_items.get(index));
            let Some(schema) = prefix_item.or_else(|| schema.get("items")) else { return };
            self.path.push(index.to_string());
            self.coerce_value(schema, item);
            self.path.pop();
        }
    }

    /// Converts a value that does not fit into one that does.
    fn convert(&mut self, schema: &'a Value, alternatives: &[&'a Value], value: &mut Value) {
        if let Some(scalar) =
            scalar_candidates(value).into_iter().find(|candidate| self.fits(schema, candidate))
        {
            return self.replace_value(value, scalar);
        }
        let nested = parse_nested_json(value).filter(|inner| {
            let kind = if inner.is_array() { "array" } else { "object" };
            alternatives.iter().any(|alternative| names_type(alternative, kind))
        });
        let fits = nested.as_ref().is_some_and(|inner| self.fits(schema, inner));
        if !fits && let Some(list) = self.wrap_in_list(alternatives, value) {
            return self.replace_value(value, list);
        }
        if let Some(inner) = nested {
            self.replace_value(value, inner);
            self.coerce_value(schema, value);
        }
    }

    /// Wraps a value in a list, if the schema requires a list and the result fits.
    fn wrap_in_list(&mut self, alternatives: &[&'a Value], value: &Value) -> Option<Value> {
        let mut arrays = alternatives.iter().filter(|one| names_type(one, "array"));
        let (Some(array), None) = (arrays.next(), arrays.next()) else { return None };
        let (listed_count, unlisted_count) = (self.changes.len(), self.unlisted_changes);
        let mut list = vec![value.clone()];
        self.coerce_items(array, &mut list);
        let list = Value::Array(list);
        if self.fits(array, &list) {
            return Some(list);
        }
        self.changes.truncate(listed_count);
        self.unlisted_changes = unlisted_count;
        None
    }

    fn replace_value(&mut self, value: &mut Value, replacement: Value) {
        let old = std::mem::replace(value, replacement);
        self.add_change(|path| {
            let location = match path.split_last() {
                Some((name, path)) => field_path(path, name),
                None => "the arguments".to_owned(),
            };
            format!(
                "{location}: {} was read as {}",
                shorten(&old.to_string()),
                shorten(&value.to_string())
            )
        });
    }

    fn add_change(&mut self, change: impl FnOnce(&[String]) -> String) {
        if self.changes.len() < MAX_LISTED_CHANGES {
            self.changes.push(change(&self.path));
        } else {
            self.unlisted_changes += 1;
        }
    }

    /// Returns the plain schemas that a schema allows, with references resolved.
    fn alternatives(&self, schema: &'a Value) -> Vec<&'a Value> {
        let mut found = Vec::new();
        self.collect_alternatives(schema, MAX_REFERENCES, &mut found);
        found
    }

    fn collect_alternatives(&self, schema: &'a Value, depth: usize, found: &mut Vec<&'a Value>) {
        if found.len() >= MAX_ALTERNATIVES {
            return;
        }
        let Some(depth) = depth.checked_sub(1) else { return found.push(schema) };
        if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
            let target = target.strip_prefix('#').and_then(|path| self.root.pointer(path));
            return self.collect_alternatives(target.unwrap_or(&ANY_SCHEMA), depth, found);
        }
        if ["type", "properties", "enum", "const"].iter().any(|key| schema.get(key).is_some()) {
            return found.push(schema);
        }
        let list = |key: &str| schema.get(key).and_then(Value::as_array);
        if let Some(alternatives) = list("anyOf").or_else(|| list("oneOf")) {
            return alternatives
                .iter()
                .for_each(|alternative| self.collect_alternatives(alternative, depth, found));
        }
        match list("allOf").map(Vec::as_slice) {
            Some([alternative]) => self.collect_alternatives(alternative, depth, found),
            _ => found.push(schema),
        }
    }

    /// Returns true if a value has the shape that a schema requires. Limits and regexes are
    /// ignored: a value that violates them still has the right type.
    fn fits(&self, schema: &'a Value, value: &Value) -> bool {
        self.fits_within(schema, value, MAX_ARGUMENT_DEPTH)
    }

    fn fits_within(&self, schema: &'a Value, value: &Value, depth: usize) -> bool {
        let (Some(depth), Some(comparisons_left)) =
            (depth.checked_sub(1), self.comparisons_left.get().checked_sub(1))
        else {
            return true;
        };
        self.comparisons_left.set(comparisons_left);
        self.alternatives(schema).into_iter().any(|alternative| {
            if !allows_type(alternative, type_name(value)) || alternative == &Value::Bool(false) {
                return false;
            }
            let enum_values = alternative.get("enum").and_then(Value::as_array);
            if enum_values.is_some_and(|enum_values| !enum_values.contains(value))
                || alternative.get("const").is_some_and(|constant| constant != value)
            {
                return false;
            }
            match value {
                Value::Object(map) => self.fits_object(alternative, map, depth),
                Value::Array(items) => {
                    let prefix_items = alternative.get("prefixItems").and_then(Value::as_array);
                    items.iter().enumerate().all(|(index, item)| {
                        let prefix_item =
                            prefix_items.and_then(|prefix_items| prefix_items.get(index));
                        let schema = prefix_item.or_else(|| alternative.get("items"));
                        schema.is_none_or(|schema| self.fits_within(schema, item, depth))
                    })
                }
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
            }
        })
    }

    fn fits_object(&self, schema: &'a Value, map: &Map<String, Value>, depth: usize) -> bool {
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        let mut required = required.filter_map(Value::as_str);
        let fields = properties(schema);
        required.all(|name| map.contains_key(name))
            && map.iter().all(|(name, value)| {
                let field = fields.and_then(|fields| fields.get(name));
                let schema = match (field, schema.get("patternProperties")) {
                    (None, Some(_)) => None,
                    (field, _) => field.or_else(|| schema.get("additionalProperties")),
                };
                schema.is_none_or(|schema| self.fits_within(schema, value, depth))
            })
    }
}

fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties").and_then(Value::as_object)
}

/// Returns the JSON type of a value. A float is not an integer, even without a fraction: a tool
/// that requires an integer cannot read it.
fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Returns true if a plain schema allows a type.
fn allows_type(schema: &Value, kind: &str) -> bool {
    let is_match = |name: &str| name == kind || (name == "number" && kind == "integer");
    match schema.get("type") {
        Some(Value::String(name)) => is_match(name),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).any(is_match),
        _ => true,
    }
}

/// Returns true if a plain schema names a type explicitly.
fn names_type(schema: &Value, kind: &str) -> bool {
    schema.get("type").is_some() && allows_type(schema, kind)
}

/// Returns other readings of a scalar. A float never becomes a string: its spelling is lost, and
/// `1.10` differs from `1.1` as a string.
fn scalar_candidates(value: &Value) -> Vec<Value> {
    match value {
        Value::String(text) => match serde_json::from_str(text.trim()) {
            Ok(Value::Number(number)) => {
                let integer = exact_integer(&number).map(Value::Number);
                integer.into_iter().chain([Value::Number(number)]).collect()
            }
            Ok(flag @ Value::Bool(_)) => vec![flag],
            _ => match text.trim() {
                "True" => vec![Value::Bool(true)],
                "False" => vec![Value::Bool(false)],
                _ => Vec::new(),
            },
        },
        Value::Number(number) if number.is_f64() => {
            exact_integer(number).map(Value::Number).into_iter().collect()
        }
        Value::Number(_) | Value::Bool(_) => vec![Value::String(value.to_string())],
        Value::Null | Value::Array(_) | Value::Object(_) => Vec::new(),
    }
}

/// Converts a number to an integer, if that is exact.
fn exact_integer(number: &Number) -> Option<Number> {
    if !number.is_f64() {
        return Some(number.clone());
    }
    /// The largest float up to which every integer is exact.
    const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;
    let float =
        number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() <= MAX_EXACT_INTEGER)?;
    format!("{float:.0}").parse::<i64>().ok().map(Number::from)
}

/// Parses the list or object that a string contains as JSON.
fn parse_nested_json(value: &Value) -> Option<Value> {
    let text = value.as_str()?;
    let inner: Value = serde_json::from_str(text).ok()?;
    (inner.is_array() || inner.is_object()).then_some(inner)
}

fn field_path(path: &[String], name: &str) -> String {
    let full_path = path.iter().map(String::as_str).chain([name]).collect::<Vec<_>>().join(".");
    format!("`{}`", shorten(&full_path))
}
