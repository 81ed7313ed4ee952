//! Expands a JSON Schema: converts it to draft 2020-12, inlines references, drops malformed
//! keywords and bounds the size.

use super::keyword::{self, SchemaKeywordKind, SchemaObject};
use super::{
    MAX_SCHEMA_DEPTH, TOO_DEEP_NOTE, append_description, description_schema, merge, truncate,
};
use serde_json::{Value, json};
use std::collections::HashSet;

/// Bounds the size that references add. Each schema and each value costs 1, plus the length of long
/// text.
const MAX_EXPANSION_COST: usize = 10_000;
/// The bytes of text that cost 1 of `MAX_EXPANSION_COST`.
const TEXT_BYTES_PER_COST: usize = 64;

/// Keywords that refer to another schema.
const REFERENCE_KEYWORDS: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// The position of a schema: it describes a value of its own (`Own`) or adds constraints to its
/// parent's value (`Shared`).
#[derive(Clone, Copy, PartialEq, Eq)]
enum SubschemaTarget {
    Own,
    Shared,
}

/// The state of expanding one schema, with the rest of its `MAX_EXPANSION_COST`.
pub(super) struct SchemaExpander<'a> {
    root: &'a Value,
    /// JSON pointers of the references being expanded. The first entry is the root.
    reference_stack: Vec<String>,
    remaining_cost: usize,
    /// True if the expansion lost information.
    pub is_lossy: bool,
}

impl<'a> SchemaExpander<'a> {
    pub(super) fn new(root: &'a Value) -> Self {
        SchemaExpander {
            root,
            reference_stack: vec![String::new()],
            remaining_cost: MAX_EXPANSION_COST,
            is_lossy: false,
        }
    }

    pub(super) fn expand_root(&mut self) -> SchemaObject {
        self.expand_schema(self.root, 0, SubschemaTarget::Own)
    }

    fn loosen_with_note(&mut self, note: &str) -> SchemaObject {
        self.is_lossy = true;
        description_schema(note)
    }

    /// Deducts `cost` from the budget; returns false when the budget is used up. Content outside
    /// references is free, because its size is bounded by the input. So an adapted schema, which
    /// has no references, is never cut for its size again.
    fn spend_cost(&mut self, cost: usize) -> bool {
        if self.reference_stack.len() == 1 {
            return true;
        }
        let remaining = self.remaining_cost.checked_sub(cost);
        self.remaining_cost = remaining.unwrap_or(0);
        remaining.is_some()
    }

    fn expand_schema(
        &mut self,
        value: &Value,
        depth: usize,
        position: SubschemaTarget,
    ) -> SchemaObject {
        if depth > MAX_SCHEMA_DEPTH {
            return self.loosen_with_note(TOO_DEEP_NOTE);
        }
        if !self.spend_cost(1) {
            return self.loosen_with_note("Any value: the whole schema is too large to show.");
        }
        let Value::Object(map) = value else {
            return keyword::to_schema(Value::Bool(value.as_bool().unwrap_or(true)));
        };
        let reference = REFERENCE_KEYWORDS.iter().find_map(|key| map.get(*key)?.as_str());
        match reference {
            Some(reference) => self.expand_reference(reference, map, depth, position),
            None => self.expand_keywords(map, depth, position),
        }
    }

    fn expand_reference(
        &mut self,
        name: &str,
        map: &SchemaObject,
        depth: usize,
        position: SubschemaTarget,
    ) -> SchemaObject {
        let mut siblings = self.expand_keywords(map, depth, SubschemaTarget::Shared);
        let mut target = match self.resolve_target(name, depth, position) {
            Ok(target) => target,
            Err(mut placeholder) => {
                if let Some(text) = siblings.shift_remove("description") {
                    let note = placeholder.insert("description".into(), text);
                    append_description(
                        &mut placeholder,
                        note.as_ref().and_then(Value::as_str).unwrap_or_default(),
                    );
                }
                placeholder
            }
        };
        if siblings.keys().all(|key| keyword::is_annotation(key)) {
            target.extend(siblings);
            return target;
        }
        let (mut merged, dropped) = merge::intersect(target.clone(), siblings.clone());
        if dropped.is_empty() {
            infer_type(&mut merged, position);
            return merged;
        }
        SchemaObject::from_iter([("allOf".to_owned(), Value::from_iter([target, siblings]))])
    }

    /// Returns the expanded target of a reference, or as the error a placeholder schema.
    fn resolve_target(
        &mut self,
        name: &str,
        depth: usize,
        position: SubschemaTarget,
    ) -> Result<SchemaObject, SchemaObject> {
        let id = self.root.get("$id").and_then(Value::as_str).unwrap_or_default();
        let fragment = name.strip_prefix(id).unwrap_or(name).strip_prefix('#');
        let pointer = fragment.map(percent_decode);
        let value = pointer.as_ref().and_then(|pointer| self.root.pointer(pointer));
        let (Some(pointer), Some(target @ (Value::Object(_) | Value::Bool(_)))) = (pointer, value)
        else {
            let note = format!("Any value: its schema {} was not found.", truncate(name, 100));
            return Err(self.loosen_with_note(&note));
        };
        if self.reference_stack.contains(&pointer) {
            return Err(self.recursive_schema(&pointer, target));
        }
        if self.reference_stack.len() > MAX_SCHEMA_DEPTH {
            return Err(self.loosen_with_note(TOO_DEEP_NOTE));
        }
        self.reference_stack.push(pointer);
        let schema = self.expand_schema(target, depth, position);
        self.reference_stack.pop();
        Ok(schema)
    }

    /// Returns a placeholder for a schema that refers to itself; it keeps the `type`.
    fn recursive_schema(&mut self, pointer: &str, target: &Value) -> SchemaObject {
        let name = pointer.rsplit('/').next().unwrap_or_default();
        let mut schema = match name {
            "" => self.loosen_with_note("The whole schema again (recursive)."),
            name => self.loosen_with_note(&format!("Another {} (recursive).", truncate(name, 100))),
        };
        if let Value::Object(target) = target {
            let mut types = keyword::declared_types(target);
            if types.is_empty() && target.contains_key("properties") {
                types.push("object");
            }
            keyword::set_types(&mut schema, &types);
        }
        schema
    }

    fn expand_keywords(
        &mut self,
        map: &SchemaObject,
        depth: usize,
        position: SubschemaTarget,
    ) -> SchemaObject {
        let mut schema = SchemaObject::new();
        for (key, value) in map {
            let (key, value) = match (key.as_str(), value) {
                ("items", Value::Array(_)) if !map.contains_key("prefixItems") => {
                    ("prefixItems", value)
                }
                ("additionalItems", _) if map.get("items").is_some_and(Value::is_array) => {
                    ("items", value)
                }
                ("minimum", _) if map.get("exclusiveMinimum") == Some(&Value::Bool(true)) => {
                    ("exclusiveMinimum", value)
                }
                ("maximum", _) if map.get("exclusiveMaximum") == Some(&Value::Bool(true)) => {
                    ("exclusiveMaximum", value)
                }
                ("dependencies", Value::Object(dependencies)) => {
                    self.expand_dependencies(dependencies, depth, &mut schema);
                    continue;
                }
                (key, value) => (key, value),
            };
            if let Some(value) = self.expand_value(key, value, depth) {
                schema.insert(key.to_owned(), value);
            }
        }
        infer_type(&mut schema, position);
        if map.get("nullable") == Some(&Value::Bool(true)) {
            return convert_nullable(schema);
        }
        schema
    }

    /// Expands the value of a keyword; returns `None` if the keyword does not accept it.
    fn expand_value(&mut self, key: &str, value: &Value, depth: usize) -> Option<Value> {
        let position = match key {
            "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" | "dependentSchemas" => {
                SubschemaTarget::Shared
            }
            _ => SubschemaTarget::Own,
        };
        match (keyword::keyword_kind(key)?, value) {
            (SchemaKeywordKind::SchemaOrFlag, Value::Bool(flag)) => Some(Value::Bool(*flag)),
            (
                SchemaKeywordKind::Schema | SchemaKeywordKind::SchemaOrFlag,
                Value::Object(_) | Value::Bool(_),
            ) => Some(self.expand_schema(value, depth + 1, position).into()),
            (SchemaKeywordKind::Schemas, Value::Array(values)) if !values.is_empty() => Some(
                values.iter().map(|value| self.expand_schema(value, depth + 1, position)).collect(),
            ),
            (SchemaKeywordKind::SchemasByName, Value::Object(map)) => {
                let mut expanded = SchemaObject::new();
                for (name, value) in map {
                    self.spend_cost(name.len() / TEXT_BYTES_PER_COST);
                    expanded.insert(
                        name.clone(),
                        self.expand_schema(value, depth + 1, position).into(),
                    );
                }
                Some(expanded.into())
            }
            (SchemaKeywordKind::Names, value) => self.expand_names(value),
            (SchemaKeywordKind::NamesByName, Value::Object(map)) => {
                let expand_entry = |(name, value): (&String, &Value)| {
                    Some((name.clone(), self.expand_names(value)?))
                };
                Some(Value::Object(map.iter().filter_map(expand_entry).collect()))
            }
            (SchemaKeywordKind::Types, _) => keyword::type_value(&keyword::parse_types(value)),
            (SchemaKeywordKind::Number, Value::Number(number)) => {
                let is_valid =
                    key != "multipleOf" || number.as_f64().is_some_and(|step| step > 0.0);
                is_valid.then(|| value.clone())
            }
            (SchemaKeywordKind::Count, Value::Number(_)) => {
                value.as_u64().map(Value::from).or_else(|| {
                    let float = value.as_f64()?;
                    (float.fract() == 0.0 && (0.0..1e15).contains(&float))
                        .then(|| (float as u64).into())
                })
            }
            (SchemaKeywordKind::Values, Value::Array(values)) if values.is_empty() => None,
            (SchemaKeywordKind::Text, Value::String(_))
            | (SchemaKeywordKind::Flag, Value::Bool(_))
            | (SchemaKeywordKind::Value, _)
            | (SchemaKeywordKind::Values, Value::Array(_)) => self.copy_value(value, 0),
            _ => None,
        }
    }

    fn expand_names(&mut self, value: &Value) -> Option<Value> {
        let mut names: Vec<Value> = Vec::new();
        let mut seen = HashSet::new();
        for name in value.as_array()?.iter().filter_map(Value::as_str) {
            if seen.insert(name) {
                names.push(self.copy_value(&Value::from(name), 0)?);
            }
        }
        Some(names.into())
    }

    /// Splits the `dependencies` keyword of older drafts into `dependentRequired` and
    /// `dependentSchemas`.
    fn expand_dependencies(&mut self, map: &SchemaObject, depth: usize, schema: &mut SchemaObject) {
        let (mut required, mut schemas) = (SchemaObject::new(), SchemaObject::new());
        for (name, value) in map {
            match value {
                Value::Array(_) => {
                    required.extend(self.expand_names(value).map(|names| (name.clone(), names)));
                }
                _ => {
                    let inner = self.expand_schema(value, depth + 1, SubschemaTarget::Shared);
                    schemas.insert(name.clone(), inner.into());
                }
            }
        }
        for (key, map) in [("dependentRequired", required), ("dependentSchemas", schemas)] {
            if !map.is_empty() && !schema.contains_key(key) {
                schema.insert(key.into(), map.into());
            }
        }
    }

    /// Copies a value that is not a schema; returns `None` if it is too deep or too large.
    fn copy_value(&mut self, value: &Value, depth: usize) -> Option<Value> {
        let size = value.as_str().map_or(0, str::len) / TEXT_BYTES_PER_COST;
        if depth > MAX_SCHEMA_DEPTH || !self.spend_cost(1 + size) {
            return None;
        }
        match value {
            Value::Array(values) => {
                values.iter().map(|value| self.copy_value(value, depth + 1)).collect()
            }
            Value::Object(map) => {
                let copy_entry = |(name, value): (&String, &Value)| {
                    let name =
                        self.spend_cost(name.len() / TEXT_BYTES_PER_COST).then(|| name.clone())?;
                    Some((name, self.copy_value(value, depth + 1)?))
                };
                map.iter().map(copy_entry).collect::<Option<SchemaObject>>().map(Value::Object)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                Some(value.clone())
            }
        }
    }
}

/// Sets the `type` of a schema that only implies it.
fn infer_type(schema: &mut SchemaObject, position: SubschemaTarget) {
    let has_combinator = ["allOf", "anyOf", "oneOf"].iter().any(|key| schema.contains_key(*key));
    if schema.contains_key("type") || has_combinator {
        return;
    }
    let structured = ["properties", "items", "prefixItems"];
    if schema.contains_key("enum")
        || (position == SubschemaTarget::Own
            && structured.iter().any(|key| schema.contains_key(*key)))
    {
        let types = keyword::infer_types(schema);
        keyword::set_types(schema, &types);
    }
}

/// Converts the OpenAPI keyword `nullable` into a null type.
fn convert_nullable(mut schema: SchemaObject) -> SchemaObject {
    let has_type = !keyword::infer_types(&schema).is_empty();
    let has_combinator =
        ["const", "allOf", "oneOf", "not"].iter().any(|key| schema.contains_key(*key));
    if !has_combinator && has_type != schema.contains_key("anyOf") {
        keyword::allow_null(&mut schema);
        return schema;
    }
    let (mut annotations, constraints): (SchemaObject, SchemaObject) =
        schema.into_iter().partition(|(key, _)| keyword::is_annotation(key));
    if !constraints.is_empty() {
        annotations.insert("anyOf".into(), json!([constraints, {"type": "null"}]));
    }
    annotations
}

/// Decodes percent-encoded characters: a reference is part of a URI.
fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let mut lookahead = rest.clone();
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        match (byte, digit(lookahead.next()), digit(lookahead.next())) {
            (b'%', Some(high), Some(low)) => {
                bytes.extend(u8::try_from(high * 16 + low));
                rest = lookahead;
            }
            _ => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
