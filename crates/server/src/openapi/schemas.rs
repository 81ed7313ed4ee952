//! Schemas of the messages, with the variants of requests and responses on their own.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};
use windlass_protocol::SessionQuery;
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};

/// Place of the schemas in the document.
const DEFINITIONS_PATH: &str = "/components/schemas";

/// The schemas of all messages.
pub(super) struct MessageSchemas {
    generator: SchemaGenerator,
    requests: Vec<Value>,
    queries: Vec<Value>,
    responses: Vec<Value>,
}

impl MessageSchemas {
    pub(super) fn new() -> MessageSchemas {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = DEFINITIONS_PATH.into();
            settings.meta_schema = None;
        });
        let mut generator = settings.into_generator();
        let requests = variants::<FrontendRequest>(&mut generator);
        let queries = variants::<SessionQuery>(&mut generator);
        let responses = variants::<HostResponse>(&mut generator);
        MessageSchemas { generator, requests, queries, responses }
    }

    /// Returns the schema of a type.
    pub(super) fn of_type<T: JsonSchema>(&mut self) -> Value {
        self.of_function(|generator| generator.subschema_for::<T>())
    }

    /// Returns the schema that a function makes.
    pub(super) fn of_function(
        &mut self,
        schema: impl FnOnce(&mut SchemaGenerator) -> Schema,
    ) -> Value {
        let mut schema = schema(&mut self.generator).to_value();
        refine(&mut schema);
        schema
    }

    /// Returns the schema of a variant of `FrontendRequest`.
    pub(super) fn request(&self, name: &str) -> Option<Value> {
        find_variant(&self.requests, "request", name)
    }

    /// Returns the schema of a variant of `SessionQuery`.
    pub(super) fn query(&self, name: &str) -> Option<Value> {
        find_variant(&self.queries, "query", name)
    }

    /// Returns the schema of a variant of `HostResponse`.
    pub(super) fn response(&self, name: &str) -> Option<Value> {
        find_variant(&self.responses, "answered", name)
    }

    /// Returns the schemas that the paths refer to, directly or through others.
    pub(super) fn into_definitions(mut self, paths: &Value) -> Map<String, Value> {
        let mut unused = self.generator.take_definitions(true);
        let mut used = Map::new();
        let mut wanted = Vec::new();
        collect_references(paths, &mut wanted);
        while let Some(name) = wanted.pop() {
            let Some(mut definition) = unused.remove(&name) else { continue };
            refine(&mut definition);
            if let Some(blob) = definition.as_object_mut().filter(|_| name == "BlobRef") {
                blob.insert("pattern".to_owned(), Value::from(BLOB_PATTERN));
            }
            collect_references(&definition, &mut wanted);
            used.insert(name, definition);
        }
        used.sort_keys();
        used
    }
}

/// Collects the names of the schemas that a schema refers to.
fn collect_references(schema: &Value, names: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get("$ref") {
                names.extend(reference.rsplit('/').next().map(str::to_owned));
            }
            fields.values().for_each(|field| collect_references(field, names));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_references(item, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Form of a `BlobRef`.
pub(super) const BLOB_PATTERN: &str = "^[0-9a-f]{64}$";

/// Returns the schemas of an enum's variants.
fn variants<T: JsonSchema>(generator: &mut SchemaGenerator) -> Vec<Value> {
    match T::json_schema(generator).to_value() {
        Value::Object(mut schema) => match schema.remove("oneOf") {
            Some(Value::Array(variants)) => variants,
            Some(_) | None => Vec::new(),
        },
        _ => Vec::new(),
    }
}

fn find_variant(variants: &[Value], tag: &str, name: &str) -> Option<Value> {
    let is_wanted = |variant: &&Value| {
        let constant = variant.get("properties")?.get(tag)?.get("const")?;
        Some(constant == name)
    };
    let mut variant = variants.iter().find(|variant| is_wanted(variant) == Some(true))?.clone();
    refine(&mut variant);
    Some(variant)
}

/// Adds what the types check but schemars does not say, and removes the link syntax of comments.
fn refine(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let maximum = match fields.get("format").and_then(Value::as_str) {
                Some("uint32") => Some(u64::from(u32::MAX)),
                Some("uint64" | "uint") => Some(u64::MAX),
                Some(_) | None => None,
            };
            if let Some(maximum) = maximum {
                fields.entry("maximum").or_insert_with(|| json!(maximum));
            }
            if let Some(Value::String(text)) = fields.get_mut("description") {
                *text = text.replace("[`", "`").replace("`]", "`");
            }
            fields.values_mut().for_each(refine);
        }
        Value::Array(items) => items.iter_mut().for_each(refine),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
