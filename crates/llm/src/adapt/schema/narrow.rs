//! What a provider does not know, taken away.
//!
//! It works on a schema that was written out before. Every place it leaves has a type or
//! alternatives, except in `Subset::Plain`.

use super::keyword::{self, Schema, schema_of};
use super::meet::fold;
use super::union::Form;
use super::{Subset, note, object, tell};
use serde_json::{Value, json};
use std::collections::HashSet;

/// What stands for a value of any type.
const ANYTHING: &str = "Any JSON value.";

/// A schema being narrowed to a subset.
pub(super) struct Narrow {
    pub(super) subset: Subset,
    /// Something could not be told but in words.
    pub lost: bool,
}

impl Narrow {
    pub(super) fn new(subset: Subset) -> Self {
        Narrow { subset, lost: false }
    }

    pub(super) fn schema(&mut self, schema: Schema) -> Schema {
        let mut schema = self.folded(schema);
        loop {
            let Some(branches) = keyword::take_list(&mut schema, "anyOf") else {
                return self.single(schema);
            };
            match self.form(schema, branches) {
                Form::One(one) => schema = self.folded(one),
                Form::Many { about, branches, null } => return self.union(about, branches, null),
            }
        }
    }

    /// Without `allOf`, `oneOf` and `const`, which other keywords can say.
    pub(super) fn folded(&mut self, schema: Schema) -> Schema {
        let (mut schema, dropped) = fold(schema);
        for (key, value) in dropped {
            self.lost = true;
            tell(&mut schema, &note(&key, &value));
        }
        for (old, new) in [("oneOf", "anyOf"), ("const", "enum")] {
            let Some(value) = schema.shift_remove(old) else { continue };
            let value = if old == "const" { json!([value]) } else { value };
            if schema.contains_key(new) {
                self.lost = true;
                tell(&mut schema, &note(old, &value));
            } else {
                schema.insert(new.into(), value);
            }
        }
        schema
    }

    /// Lets a narrowed schema accept null.
    pub(super) fn allow_null(&self, schema: &mut Schema) {
        if self.subset != Subset::Gemini {
            keyword::allow_null(schema);
        } else if !schema.contains_key("nullable") {
            let at = schema.keys().position(|key| key == "type").map_or(0, |at| at + 1);
            schema.shift_insert(at, "nullable".into(), true.into());
        }
    }

    /// What is said of alternatives as a whole.
    pub(super) fn about(&mut self, about: Schema) -> Schema {
        let mut kept = Schema::new();
        let mut notes = Vec::new();
        for (key, value) in about {
            if self.keeps(&key) {
                kept.insert(key, value);
            } else {
                notes.extend(self.dropping(&key, &value));
            }
        }
        notes.iter().for_each(|note| tell(&mut kept, note));
        kept
    }

    pub(super) fn single(&mut self, mut schema: Schema) -> Schema {
        let mut notes: Vec<String> = Vec::new();
        let mut types = reconcile(&mut schema);
        if self.subset == Subset::Gemini && types.iter().filter(|name| **name != "null").count() > 1
        {
            return self.split(schema, types);
        }
        if types.is_empty() && self.subset != Subset::Plain {
            self.lost = true;
            notes.push(ANYTHING.to_owned());
            types = match self.subset {
                Subset::Strict => vec!["string", "number", "boolean", "null"],
                Subset::Gemini | Subset::Full | Subset::Plain => vec!["string"],
            };
        }
        keyword::set_types(&mut schema, &types);
        if types.contains(&"array")
            && let Some(prefix) = keyword::take_list(&mut schema, "prefixItems")
        {
            self.lost = true;
            notes.push(tuple(&mut schema, prefix));
        }
        let object = Object::new(&schema);
        self.lost |= self.subset == Subset::Strict && types.contains(&"object") && object.free;
        let null = types.contains(&"null")
            && schema
                .get("enum")
                .and_then(Value::as_array)
                .is_none_or(|values| values.contains(&Value::Null));
        let mut out = Schema::new();
        for (key, value) in schema {
            if !keyword::concerns(&key, &types) {
                continue;
            }
            let nullable = null && key == "type" && self.subset == Subset::Gemini;
            if let Some(value) = self.value(&key, value, &types, &object, &mut notes) {
                out.insert(key, value);
            }
            if nullable {
                out.insert("nullable".into(), true.into());
            }
        }
        notes.iter().for_each(|note| tell(&mut out, note));
        self.complete(&types, &object, &mut out);
        out
    }

    /// A keyword's value, if it is kept.
    fn value(
        &mut self,
        key: &str,
        value: Value,
        types: &[&str],
        object: &Object,
        notes: &mut Vec<String>,
    ) -> Option<Value> {
        let (strict, gemini) = (self.subset == Subset::Strict, self.subset == Subset::Gemini);
        match (key, value) {
            ("type", _) if gemini => match types.iter().find(|name| **name != "null") {
                Some(name) => Some(Value::from(*name)),
                None => {
                    notes.push("Always null.".to_owned());
                    Some("string".into())
                }
            },
            ("enum", Value::Array(mut values)) if gemini => {
                values.retain(|value| !value.is_null());
                if values.iter().all(|value| value.as_str().is_some_and(|text| !text.is_empty())) {
                    return (!values.is_empty()).then(|| values.into());
                }
                notes.push(note("enum", &values.into()));
                None
            }
            ("properties", Value::Object(map)) => self.properties(map, object),
            ("required", _) if strict => Some(object.names.clone().into()),
            ("required", Value::Array(mut names)) if gemini => {
                names.retain(|name| name.as_str().is_some_and(|name| object.has(name)));
                (!names.is_empty()).then(|| names.into())
            }
            ("additionalProperties", value) => {
                if value.is_object() {
                    notes.extend(self.dropping(key, &value));
                }
                strict.then(|| false.into())
            }
            ("items", Value::Object(items)) => Some(self.schema(items).into()),
            ("items", _) => None,
            ("format", Value::String(format)) => {
                if self.knows_format(&format, types) {
                    return Some(format.into());
                }
                if types.contains(&"string") && format != "enum" {
                    notes.push(note(key, &format.into()));
                }
                None
            }
            ("pattern", Value::String(pattern)) if strict && pattern.contains("(?") => {
                notes.push(note(key, &pattern.into()));
                None
            }
            (key, value) if self.keeps(key) => Some(value),
            (key, value) => {
                notes.extend(self.dropping(key, &value));
                None
            }
        }
    }

    fn properties(&mut self, map: Schema, object: &Object) -> Option<Value> {
        let strict = self.subset == Subset::Strict;
        let mut properties = Schema::new();
        for (name, schema) in map {
            if !object.has(&name) {
                continue;
            }
            let mut narrowed = self.schema(schema_of(schema));
            if strict && !object.required.contains(&name) {
                keyword::allow_null(&mut narrowed);
            }
            properties.insert(name, narrowed.into());
        }
        let dropped = properties.is_empty() && self.subset == Subset::Gemini;
        (!dropped).then(|| properties.into())
    }

    /// Adds what the provider will not do without.
    fn complete(&mut self, types: &[&str], object: &Object, out: &mut Schema) {
        let strict = self.subset == Subset::Strict;
        if strict && types.contains(&"object") {
            out.entry("properties").or_insert_with(|| json!({}));
            out.entry("required").or_insert_with(|| object.names.clone().into());
            out.entry("additionalProperties").or_insert(false.into());
        }
        let listed = strict || self.subset == Subset::Gemini;
        if listed && types.contains(&"array") && !out.contains_key("items") {
            out.insert("items".into(), self.schema(Schema::new()).into());
        }
    }

    fn knows_format(&self, format: &str, types: &[&str]) -> bool {
        match self.subset {
            Subset::Full => true,
            Subset::Strict => {
                let known = [
                    "date-time",
                    "time",
                    "date",
                    "duration",
                    "email",
                    "hostname",
                    "ipv4",
                    "ipv6",
                    "uuid",
                ];
                types.contains(&"string") && known.contains(&format)
            }
            Subset::Gemini => match format {
                "date-time" => types.contains(&"string"),
                "int32" | "int64" => types.contains(&"integer"),
                "float" | "double" => types.contains(&"number"),
                _ => false,
            },
            Subset::Plain => false,
        }
    }

    fn keeps(&self, key: &str) -> bool {
        let common = matches!(
            key,
            "type"
                | "description"
                | "properties"
                | "required"
                | "items"
                | "enum"
                | "anyOf"
                | "minimum"
                | "maximum"
        );
        let lists = matches!(key, "pattern" | "minItems" | "maxItems");
        let numbers = matches!(key, "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf");
        let sizes = matches!(key, "minLength" | "maxLength" | "minProperties" | "maxProperties");
        common
            || match self.subset {
                Subset::Full => true,
                Subset::Strict => lists || numbers || key == "title",
                Subset::Gemini => lists || sizes,
                // Servers that make a grammar of it fail on patterns and sizes.
                Subset::Plain => numbers || matches!(key, "title" | "uniqueItems"),
            }
    }

    /// What is said of a keyword that is not kept.
    fn dropping(&mut self, key: &str, value: &Value) -> Option<String> {
        match key {
            "title" | "deprecated" | "readOnly" | "writeOnly" | "contentEncoding"
            | "contentMediaType" => None,
            "uniqueItems" | "unevaluatedProperties" | "unevaluatedItems" if value.is_boolean() => {
                (key == "uniqueItems" && value == true).then(|| note(key, value))
            }
            "default" | "examples" | "format" | "pattern" | "minLength" | "maxLength"
            | "minItems" | "maxItems" | "multipleOf" | "exclusiveMinimum" | "exclusiveMaximum"
            | "minProperties" | "maxProperties" => Some(note(key, value)),
            _ => {
                self.lost = true;
                Some(note(key, value))
            }
        }
    }
}

/// What an object schema says of its properties.
struct Object {
    names: Vec<String>,
    known: HashSet<String>,
    required: HashSet<String>,
    /// It takes properties it does not name.
    free: bool,
}

impl Object {
    fn new(schema: &Schema) -> Self {
        let possible = |(_, schema): &(&String, &Value)| {
            schema.as_object().is_none_or(|schema| !keyword::is_never(schema))
        };
        let properties = schema.get("properties").and_then(Value::as_object);
        let names: Vec<String> = properties
            .into_iter()
            .flatten()
            .filter(possible)
            .map(|(name, _)| name.clone())
            .collect();
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        let free = match schema.get("additionalProperties") {
            Some(Value::Bool(false)) => false,
            Some(_) => true,
            None => names.is_empty(),
        };
        Object {
            known: names.iter().cloned().collect(),
            required: required.filter_map(Value::as_str).map(str::to_owned).collect(),
            names,
            free,
        }
    }

    /// Whether it has a property that can be there.
    fn has(&self, name: &str) -> bool {
        self.known.contains(name)
    }
}

/// The types of a schema, made to agree with the values it lists.
fn reconcile(schema: &mut Schema) -> Vec<&'static str> {
    let mut types = keyword::infer(schema);
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        if values.iter().any(|value| keyword::is_of(value, &types)) {
            values.retain(|value| keyword::is_of(value, &types));
        } else {
            types = keyword::types_of(values);
        }
    }
    types
}

/// Writes a tuple as a list of whatever it holds, and says what it was.
fn tuple(schema: &mut Schema, prefix: Vec<Schema>) -> String {
    let told = note("prefixItems", &prefix.iter().cloned().collect());
    let mut held = prefix;
    if let Some(Value::Object(rest)) = schema.get("items") {
        held.push(rest.clone());
    }
    schema.insert("items".into(), object::either(held).into());
    told
}
