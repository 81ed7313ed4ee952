//! A schema written out: the 2020-12 draft, no references, nothing malformed, and bounded.

use super::keyword::{self, Kind, Schema};
use super::{DEEPEST, TOO_DEEP, cut, meet, said, tell};
use serde_json::{Value, json};
use std::collections::HashSet;

/// How much references may add: schemas and values count one each, and long text by its length.
const MOST_ADDED: usize = 10_000;
/// How much text counts one.
const TEXT: usize = 64;

/// The keywords that stand for another schema.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Whether a schema describes a value of its own, or adds to what its parent says of one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Own,
    Shared,
}

/// A schema being written out.
pub(super) struct Expand<'a> {
    root: &'a Value,
    /// The references we are inside of. The first is the root.
    within: Vec<String>,
    left: usize,
    /// Something could not be told.
    pub lost: bool,
}

impl<'a> Expand<'a> {
    pub(super) fn new(root: &'a Value) -> Self {
        Expand { root, within: vec![String::new()], left: MOST_ADDED, lost: false }
    }

    pub(super) fn root(&mut self) -> Schema {
        self.schema(self.root, 0, Place::Own)
    }

    fn loosen(&mut self, note: &str) -> Schema {
        self.lost = true;
        said(note)
    }

    /// What is written in the schema itself is free: it can only be as large as it came. So an
    /// adapted schema, which has no references, is never cut for its size again.
    fn spend(&mut self, cost: usize) -> bool {
        if self.within.len() == 1 {
            return true;
        }
        let left = self.left.checked_sub(cost);
        self.left = left.unwrap_or(0);
        left.is_some()
    }

    fn schema(&mut self, value: &Value, depth: usize, place: Place) -> Schema {
        if depth > DEEPEST {
            return self.loosen(TOO_DEEP);
        }
        if !self.spend(1) {
            return self.loosen("Any value: the whole schema is too large to be told.");
        }
        let Value::Object(map) = value else {
            return keyword::schema_of(Value::Bool(value.as_bool().unwrap_or(true)));
        };
        let reference = REFERENCES.iter().find_map(|key| map.get(*key)?.as_str());
        match reference {
            Some(reference) => self.reference(reference, map, depth, place),
            None => self.keywords(map, depth, place),
        }
    }

    fn reference(&mut self, name: &str, map: &Schema, depth: usize, place: Place) -> Schema {
        let mut beside = self.keywords(map, depth, Place::Shared);
        let mut target = match self.target(name, depth, place) {
            Ok(target) => target,
            Err(mut instead) => {
                if let Some(text) = beside.shift_remove("description") {
                    let note = instead.insert("description".into(), text);
                    tell(&mut instead, note.as_ref().and_then(Value::as_str).unwrap_or_default());
                }
                instead
            }
        };
        if beside.keys().all(|key| keyword::annotates(key)) {
            target.extend(beside);
            return target;
        }
        let (mut met, dropped) = meet::meet(target.clone(), beside.clone());
        if dropped.is_empty() {
            infer(&mut met, place);
            return met;
        }
        Schema::from_iter([("allOf".to_owned(), Value::from_iter([target, beside]))])
    }

    /// What a reference stands for, or else what stands for that.
    fn target(&mut self, name: &str, depth: usize, place: Place) -> Result<Schema, Schema> {
        let id = self.root.get("$id").and_then(Value::as_str).unwrap_or_default();
        let local = name.strip_prefix(id).unwrap_or(name).strip_prefix('#');
        let pointer = local.map(percent_decoded);
        let found = pointer.as_ref().and_then(|pointer| self.root.pointer(pointer));
        let (Some(pointer), Some(target @ (Value::Object(_) | Value::Bool(_)))) = (pointer, found)
        else {
            let note = format!("Any value: its schema {} was not found.", cut(name, 100));
            return Err(self.loosen(&note));
        };
        if self.within.contains(&pointer) {
            return Err(self.again(&pointer, target));
        }
        if self.within.len() > DEEPEST {
            return Err(self.loosen(TOO_DEEP));
        }
        self.within.push(pointer);
        let schema = self.schema(target, depth, place);
        self.within.pop();
        Ok(schema)
    }

    /// A schema inside itself.
    fn again(&mut self, pointer: &str, target: &Value) -> Schema {
        let name = pointer.rsplit('/').next().unwrap_or_default();
        let mut schema = match name {
            "" => self.loosen("The whole again, nested in itself."),
            name => self.loosen(&format!("Another {}, nested in itself.", cut(name, 100))),
        };
        if let Value::Object(target) = target {
            let mut types = keyword::types(target);
            if types.is_empty() && target.contains_key("properties") {
                types.push("object");
            }
            keyword::set_types(&mut schema, &types);
        }
        schema
    }

    fn keywords(&mut self, map: &Schema, depth: usize, place: Place) -> Schema {
        let mut schema = Schema::new();
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
                    self.dependencies(dependencies, depth, &mut schema);
                    continue;
                }
                (key, value) => (key, value),
            };
            if let Some(value) = self.value(key, value, depth) {
                schema.insert(key.to_owned(), value);
            }
        }
        infer(&mut schema, place);
        if map.get("nullable") == Some(&Value::Bool(true)) {
            return nullable(schema);
        }
        schema
    }

    /// A keyword's value; none when it is not what the keyword takes.
    fn value(&mut self, key: &str, value: &Value, depth: usize) -> Option<Value> {
        let place = match key {
            "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" | "dependentSchemas" => {
                Place::Shared
            }
            _ => Place::Own,
        };
        match (keyword::kind(key)?, value) {
            (Kind::SchemaOrFlag, Value::Bool(flag)) => Some(Value::Bool(*flag)),
            (Kind::Schema | Kind::SchemaOrFlag, Value::Object(_) | Value::Bool(_)) => {
                Some(self.schema(value, depth + 1, place).into())
            }
            (Kind::Schemas, Value::Array(values)) if !values.is_empty() => {
                Some(values.iter().map(|value| self.schema(value, depth + 1, place)).collect())
            }
            (Kind::Named, Value::Object(map)) => {
                let mut named = Schema::new();
                for (name, value) in map {
                    self.spend(name.len() / TEXT);
                    named.insert(name.clone(), self.schema(value, depth + 1, place).into());
                }
                Some(named.into())
            }
            (Kind::Names, value) => self.names(value),
            (Kind::NamesByName, Value::Object(map)) => {
                let names =
                    |(name, value): (&String, &Value)| Some((name.clone(), self.names(value)?));
                Some(Value::Object(map.iter().filter_map(names).collect()))
            }
            (Kind::Types, _) => keyword::written(&keyword::named_types(value)),
            (Kind::Number, Value::Number(number)) => {
                let fits = key != "multipleOf" || number.as_f64().is_some_and(|step| step > 0.0);
                fits.then(|| value.clone())
            }
            (Kind::Count, Value::Number(_)) => value.as_u64().map(Value::from).or_else(|| {
                let float = value.as_f64()?;
                (float.fract() == 0.0 && (0.0..1e15).contains(&float))
                    .then(|| (float as u64).into())
            }),
            (Kind::Values, Value::Array(values)) if values.is_empty() => None,
            (Kind::Text, Value::String(_))
            | (Kind::Flag, Value::Bool(_))
            | (Kind::Value, _)
            | (Kind::Values, Value::Array(_)) => self.copy(value, 0),
            _ => None,
        }
    }

    fn names(&mut self, value: &Value) -> Option<Value> {
        let mut names: Vec<Value> = Vec::new();
        let mut seen = HashSet::new();
        for name in value.as_array()?.iter().filter_map(Value::as_str) {
            if seen.insert(name) {
                names.push(self.copy(&Value::from(name), 0)?);
            }
        }
        Some(names.into())
    }

    /// What older drafts wrote in one keyword is two today.
    fn dependencies(&mut self, map: &Schema, depth: usize, schema: &mut Schema) {
        let (mut required, mut schemas) = (Schema::new(), Schema::new());
        for (name, value) in map {
            match value {
                Value::Array(_) => {
                    required.extend(self.names(value).map(|names| (name.clone(), names)));
                }
                _ => {
                    let inner = self.schema(value, depth + 1, Place::Shared);
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

    /// A value that is no schema, as it is; none when it is too deep or too large.
    fn copy(&mut self, value: &Value, depth: usize) -> Option<Value> {
        let size = value.as_str().map_or(0, str::len) / TEXT;
        if depth > DEEPEST || !self.spend(1 + size) {
            return None;
        }
        match value {
            Value::Array(values) => {
                values.iter().map(|value| self.copy(value, depth + 1)).collect()
            }
            Value::Object(map) => {
                let entry = |(name, value): (&String, &Value)| {
                    let name = self.spend(name.len() / TEXT).then(|| name.clone())?;
                    Some((name, self.copy(value, depth + 1)?))
                };
                map.iter().map(entry).collect::<Option<Schema>>().map(Value::Object)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                Some(value.clone())
            }
        }
    }
}

/// Says the type of a schema that only implies it.
fn infer(schema: &mut Schema, place: Place) {
    let combined = ["allOf", "anyOf", "oneOf"].iter().any(|key| schema.contains_key(*key));
    if schema.contains_key("type") || combined {
        return;
    }
    let structured = ["properties", "items", "prefixItems"];
    if schema.contains_key("enum")
        || (place == Place::Own && structured.iter().any(|key| schema.contains_key(*key)))
    {
        let types = keyword::infer(schema);
        keyword::set_types(schema, &types);
    }
}

/// What OpenAPI says with a keyword of its own.
fn nullable(mut schema: Schema) -> Schema {
    let typed = !keyword::infer(&schema).is_empty();
    let combined = ["const", "allOf", "oneOf", "not"].iter().any(|key| schema.contains_key(*key));
    if !combined && typed != schema.contains_key("anyOf") {
        keyword::allow_null(&mut schema);
        return schema;
    }
    let (mut said, constraints): (Schema, Schema) =
        schema.into_iter().partition(|(key, _)| keyword::annotates(key));
    if !constraints.is_empty() {
        said.insert("anyOf".into(), json!([constraints, {"type": "null"}]));
    }
    said
}

/// A reference is part of an address, where some characters are written as numbers.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let mut ahead = rest.clone();
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        match (byte, digit(ahead.next()), digit(ahead.next())) {
            (b'%', Some(high), Some(low)) => {
                bytes.extend(u8::try_from(high * 16 + low));
                rest = ahead;
            }
            _ => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
