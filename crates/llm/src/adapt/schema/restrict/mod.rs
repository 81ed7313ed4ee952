//! Restricts a schema to the subset that a provider supports.
//!
//! The input is an expanded schema. Every schema in the output has a type or alternatives, except
//! in `SchemaSubset::Basic`.

mod union;

use super::keyword::{self, SchemaObject, to_schema};
use super::merge::inline_all_of;
use super::{SchemaSubset, append_description, keyword_note, object_alternatives};
use serde_json::{Value, json};
use std::collections::HashSet;
use union::SimplifiedUnion;

/// The `description` of a value of any type.
const ANY_VALUE_NOTE: &str = "Any JSON value.";

/// The state of restricting one schema to a `SchemaSubset`.
pub(super) struct SchemaRestrictor {
    subset: SchemaSubset,
    /// True if a constraint survives only in a `description`.
    pub is_lossy: bool,
}

impl SchemaRestrictor {
    pub(super) fn new(subset: SchemaSubset) -> Self {
        SchemaRestrictor { subset, is_lossy: false }
    }

    pub(super) fn restrict(&mut self, schema: SchemaObject) -> SchemaObject {
        let mut schema = self.normalize_combinators(schema);
        loop {
            let Some(branches) = keyword::take_schemas(&mut schema, "anyOf") else {
                return self.restrict_single(schema);
            };
            match self.simplify_union(schema, branches) {
                SimplifiedUnion::Single(single) => schema = self.normalize_combinators(single),
                SimplifiedUnion::Alternatives { annotations, branches, accepts_null } => {
                    return self.restrict_union(annotations, branches, accepts_null);
                }
            }
        }
    }

    /// Rewrites `allOf`, `oneOf` and `const` into other keywords.
    fn normalize_combinators(&mut self, schema: SchemaObject) -> SchemaObject {
        let (mut schema, dropped) = inline_all_of(schema);
        for (key, value) in dropped {
            self.is_lossy = true;
            append_description(&mut schema, &keyword_note(&key, &value));
        }
        for (old, new) in [("oneOf", "anyOf"), ("const", "enum")] {
            let Some(value) = schema.shift_remove(old) else { continue };
            let value = if old == "const" { json!([value]) } else { value };
            if schema.contains_key(new) {
                self.is_lossy = true;
                append_description(&mut schema, &keyword_note(old, &value));
            } else {
                schema.insert(new.into(), value);
            }
        }
        schema
    }

    /// Makes a restricted schema accept null.
    fn allow_null(&self, schema: &mut SchemaObject) {
        if self.subset != SchemaSubset::Gemini {
            keyword::allow_null(schema);
        } else if !schema.contains_key("nullable") {
            let index = schema.keys().position(|key| key == "type").map_or(0, |index| index + 1);
            schema.shift_insert(index, "nullable".into(), true.into());
        }
    }

    /// Restricts the annotations that apply to all alternatives.
    fn restrict_annotations(&mut self, annotations: SchemaObject) -> SchemaObject {
        let mut supported = SchemaObject::new();
        let mut notes = Vec::new();
        for (key, value) in annotations {
            if self.supports_keyword(&key) {
                supported.insert(key, value);
            } else {
                notes.extend(self.drop_keyword(&key, &value));
            }
        }
        notes.iter().for_each(|note| append_description(&mut supported, note));
        supported
    }

    fn restrict_single(&mut self, mut schema: SchemaObject) -> SchemaObject {
        let mut notes: Vec<String> = Vec::new();
        let mut types = reconcile_types(&mut schema);
        if self.subset == SchemaSubset::Gemini
            && types.iter().filter(|name| **name != "null").count() > 1
        {
            return self.split_by_type(schema, types);
        }
        if types.is_empty() && self.subset != SchemaSubset::Basic {
            self.is_lossy = true;
            notes.push(ANY_VALUE_NOTE.to_owned());
            types = match self.subset {
                SchemaSubset::Strict => vec!["string", "number", "boolean", "null"],
                SchemaSubset::Gemini | SchemaSubset::Full | SchemaSubset::Basic => vec!["string"],
            };
        }
        keyword::set_types(&mut schema, &types);
        if types.contains(&"array")
            && let Some(prefix) = keyword::take_schemas(&mut schema, "prefixItems")
        {
            self.is_lossy = true;
            notes.push(tuple_to_list(&mut schema, prefix));
        }
        let object = ObjectProperties::new(&schema);
        self.is_lossy |= self.subset == SchemaSubset::Strict
            && types.contains(&"object")
            && object.allows_additional;
        let accepts_null = types.contains(&"null")
            && schema
                .get("enum")
                .and_then(Value::as_array)
                .is_none_or(|values| values.contains(&Value::Null));
        let mut out = SchemaObject::new();
        for (key, value) in schema {
            if !keyword::applies_to(&key, &types) {
                continue;
            }
            let nullable = accepts_null && key == "type" && self.subset == SchemaSubset::Gemini;
            if let Some(value) = self.restrict_keyword(&key, value, &types, &object, &mut notes) {
                out.insert(key, value);
            }
            if nullable {
                out.insert("nullable".into(), true.into());
            }
        }
        notes.iter().for_each(|note| append_description(&mut out, note));
        self.add_required_keywords(&types, &object, &mut out);
        out
    }

    /// Returns the restricted value of a keyword, or `None` if the keyword is dropped.
    fn restrict_keyword(
        &mut self,
        key: &str,
        value: Value,
        types: &[&str],
        object: &ObjectProperties,
        notes: &mut Vec<String>,
    ) -> Option<Value> {
        let is_strict = self.subset == SchemaSubset::Strict;
        let is_gemini = self.subset == SchemaSubset::Gemini;
        match (key, value) {
            ("type", _) if is_gemini => match types.iter().find(|name| **name != "null") {
                Some(name) => Some(Value::from(*name)),
                None => {
                    notes.push("Always null.".to_owned());
                    Some("string".into())
                }
            },
            ("enum", Value::Array(mut values)) if is_gemini => {
                values.retain(|value| !value.is_null());
                if values.iter().all(|value| value.as_str().is_some_and(|text| !text.is_empty())) {
                    return (!values.is_empty()).then(|| values.into());
                }
                notes.push(keyword_note("enum", &values.into()));
                None
            }
            ("properties", Value::Object(map)) => self.restrict_properties(map, object),
            ("required", _) if is_strict => Some(object.names.clone().into()),
            ("required", Value::Array(mut names)) if is_gemini => {
                names.retain(|name| name.as_str().is_some_and(|name| object.has_property(name)));
                (!names.is_empty()).then(|| names.into())
            }
            ("additionalProperties", value) => {
                if value.is_object() {
                    notes.extend(self.drop_keyword(key, &value));
                }
                is_strict.then(|| false.into())
            }
            ("items", Value::Object(items)) => Some(self.restrict(items).into()),
            ("items", _) => None,
            ("format", Value::String(format)) => {
                if self.supports_format(&format, types) {
                    return Some(format.into());
                }
                if types.contains(&"string") && format != "enum" {
                    notes.push(keyword_note(key, &format.into()));
                }
                None
            }
            ("pattern", Value::String(pattern)) if is_strict && pattern.contains("(?") => {
                notes.push(keyword_note(key, &pattern.into()));
                None
            }
            (key, value) if self.supports_keyword(key) => Some(value),
            (key, value) => {
                notes.extend(self.drop_keyword(key, &value));
                None
            }
        }
    }

    fn restrict_properties(
        &mut self,
        map: SchemaObject,
        object: &ObjectProperties,
    ) -> Option<Value> {
        let is_strict = self.subset == SchemaSubset::Strict;
        let mut properties = SchemaObject::new();
        for (name, schema) in map {
            if !object.has_property(&name) {
                continue;
            }
            let mut restricted = self.restrict(to_schema(schema));
            if is_strict && !object.required.contains(&name) {
                keyword::allow_null(&mut restricted);
            }
            properties.insert(name, restricted.into());
        }
        let is_dropped = properties.is_empty() && self.subset == SchemaSubset::Gemini;
        (!is_dropped).then(|| properties.into())
    }

    /// Adds the keywords that the provider requires, such as `items` of an array.
    fn add_required_keywords(
        &mut self,
        types: &[&str],
        object: &ObjectProperties,
        out: &mut SchemaObject,
    ) {
        let is_strict = self.subset == SchemaSubset::Strict;
        if is_strict && types.contains(&"object") {
            out.entry("properties").or_insert_with(|| json!({}));
            out.entry("required").or_insert_with(|| object.names.clone().into());
            out.entry("additionalProperties").or_insert(false.into());
        }
        let needs_items = is_strict || self.subset == SchemaSubset::Gemini;
        if needs_items && types.contains(&"array") && !out.contains_key("items") {
            out.insert("items".into(), self.restrict(SchemaObject::new()).into());
        }
    }

    fn supports_format(&self, format: &str, types: &[&str]) -> bool {
        match self.subset {
            SchemaSubset::Full => true,
            SchemaSubset::Strict => {
                let formats = [
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
                types.contains(&"string") && formats.contains(&format)
            }
            SchemaSubset::Gemini => match format {
                "date-time" => types.contains(&"string"),
                "int32" | "int64" => types.contains(&"integer"),
                "float" | "double" => types.contains(&"number"),
                _ => false,
            },
            SchemaSubset::Basic => false,
        }
    }

    fn supports_keyword(&self, key: &str) -> bool {
        let is_common = matches!(
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
        let is_list_keyword = matches!(key, "pattern" | "minItems" | "maxItems");
        let is_number_keyword =
            matches!(key, "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf");
        let is_size_keyword =
            matches!(key, "minLength" | "maxLength" | "minProperties" | "maxProperties");
        is_common
            || match self.subset {
                SchemaSubset::Full => true,
                SchemaSubset::Strict => is_list_keyword || is_number_keyword || key == "title",
                SchemaSubset::Gemini => is_list_keyword || is_size_keyword,
                // Servers that compile the schema into a grammar fail on patterns and sizes.
                SchemaSubset::Basic => is_number_keyword || matches!(key, "title" | "uniqueItems"),
            }
    }

    /// Returns the note for a dropped keyword, if it needs one.
    fn drop_keyword(&mut self, key: &str, value: &Value) -> Option<String> {
        match key {
            "title" | "deprecated" | "readOnly" | "writeOnly" | "contentEncoding"
            | "contentMediaType" => None,
            "uniqueItems" | "unevaluatedProperties" | "unevaluatedItems" if value.is_boolean() => {
                (key == "uniqueItems" && value == true).then(|| keyword_note(key, value))
            }
            "default" | "examples" | "format" | "pattern" | "minLength" | "maxLength"
            | "minItems" | "maxItems" | "multipleOf" | "exclusiveMinimum" | "exclusiveMaximum"
            | "minProperties" | "maxProperties" => Some(keyword_note(key, value)),
            _ => {
                self.is_lossy = true;
                Some(keyword_note(key, value))
            }
        }
    }
}

/// The `properties` that an object schema declares.
struct ObjectProperties {
    names: Vec<String>,
    name_set: HashSet<String>,
    required: HashSet<String>,
    /// True if the object accepts undeclared properties (`additionalProperties`).
    allows_additional: bool,
}

impl ObjectProperties {
    fn new(schema: &SchemaObject) -> Self {
        let can_have_value = |(_, schema): &(&String, &Value)| {
            schema.as_object().is_none_or(|schema| !keyword::matches_nothing(schema))
        };
        let properties = schema.get("properties").and_then(Value::as_object);
        let names: Vec<String> = properties
            .into_iter()
            .flatten()
            .filter(can_have_value)
            .map(|(name, _)| name.clone())
            .collect();
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        let allows_additional = match schema.get("additionalProperties") {
            Some(Value::Bool(false)) => false,
            Some(_) => true,
            None => names.is_empty(),
        };
        ObjectProperties {
            name_set: names.iter().cloned().collect(),
            required: required.filter_map(Value::as_str).map(str::to_owned).collect(),
            names,
            allows_additional,
        }
    }

    /// Returns true if the object declares a property that can have a value.
    fn has_property(&self, name: &str) -> bool {
        self.name_set.contains(name)
    }
}

/// Returns the types of a schema, made consistent with its `enum` values.
fn reconcile_types(schema: &mut SchemaObject) -> Vec<&'static str> {
    let mut types = keyword::infer_types(schema);
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        if values.iter().any(|value| keyword::has_type(value, &types)) {
            values.retain(|value| keyword::has_type(value, &types));
        } else {
            types = keyword::types_of(values);
        }
    }
    types
}

/// Rewrites a tuple as a list of any of its item schemas; returns a note with the original form.
fn tuple_to_list(schema: &mut SchemaObject, prefix: Vec<SchemaObject>) -> String {
    let note = keyword_note("prefixItems", &prefix.iter().cloned().collect());
    let mut item_schemas = prefix;
    if let Some(Value::Object(rest)) = schema.get("items") {
        item_schemas.push(rest.clone());
    }
    schema.insert("items".into(), object_alternatives::any_of(item_schemas).into());
    note
}
