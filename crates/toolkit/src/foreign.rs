//! What a stranger's tool may say of itself. Pure: a schema in, one that cannot harm out.
//!
//! A schema is sent to models, checked against and walked by repairs, so it has to be small, shallow
//! and whole: nothing in it leads elsewhere, and no pattern costs more than reading the text. What a
//! check here leaves out, the stranger checks itself.

use crate::bound;
use crate::schema::compiled;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use windlass_protocol::BlobRef;

/// How deep a schema may be.
const DEEPEST: usize = 32;
/// How many values it may have, also with everything in place that it refers to.
const WIDEST: usize = 5_000;
/// How long it may be, in bytes.
const LONGEST: usize = 64 << 10;
/// How long a pattern may be, in bytes, and how many there may be.
const PATTERN: usize = 1 << 10;
const PATTERNS: usize = 100;
/// How long a name may be for a provider.
const NAME: usize = 64;
/// How long a description may be, in bytes.
const DESCRIPTION: usize = 4 << 10;
/// How much a person is shown before a call, in bytes.
const PREVIEW: usize = 16 << 10;

/// The drafts whose rules a schema may choose.
const DRAFTS: [&str; 5] = [
    "json-schema.org/draft-04/schema",
    "json-schema.org/draft-06/schema",
    "json-schema.org/draft-07/schema",
    "json-schema.org/draft/2019-09/schema",
    "json-schema.org/draft/2020-12/schema",
];

/// Words that would change what other words of the schema lead to.
const ANCHORS: [&str; 7] =
    ["$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "$comment"];

/// A schema of arguments that cannot harm, or why there is none.
pub fn tame(schema: &Value) -> Result<Value, String> {
    if !within(schema) {
        return Err(format!(
            "its schema is deeper than {DEEPEST} levels or has more than {WIDEST} values"
        ));
    }
    let length = schema.to_string().len();
    if length > LONGEST {
        return Err(format!("its schema has {length} bytes, and {LONGEST} are the most"));
    }
    let Value::Object(top) = schema else { return Err("its schema is no object".into()) };
    match top.get("type") {
        None => {}
        Some(kind) if kind == "object" => {}
        Some(_) => return Err("its schema is not that of an object".into()),
    }
    let mut tame = schema.clone();
    let draft = top.get("$schema").and_then(Value::as_str).and_then(draft);
    Tamer { root: schema, patterns: PATTERNS }.mend(&mut tame);
    if let Value::Object(top) = &mut tame {
        top.insert("type".into(), "object".into());
        if let Some(draft) = draft {
            top.insert("$schema".into(), draft.into());
        }
    }
    let mut room = WIDEST;
    if spread(&tame, &tame, &mut room, &mut Vec::new()).is_none() {
        return Err(format!("its schema has more than {WIDEST} values where it refers to itself"));
    }
    compiled(&tame).map_err(|failure| failure.text)?;
    Ok(tame)
}

/// The draft a schema names, as it is written everywhere.
fn draft(named: &str) -> Option<String> {
    let plain = named.trim_end_matches('#');
    let (scheme, rest) = plain.split_once("://")?;
    let known = matches!(scheme, "http" | "https") && DRAFTS.contains(&rest);
    let older = rest.contains("draft-0");
    known.then(|| if older { format!("http://{rest}#") } else { format!("https://{rest}") })
}

/// True if a value is neither too deep nor too wide. It is looked at without recursion.
fn within(value: &Value) -> bool {
    let (mut open, mut count) = (vec![(value, 0)], 0);
    while let Some((value, depth)) = open.pop() {
        count += 1;
        if depth > DEEPEST || count > WIDEST {
            return false;
        }
        match value {
            Value::Object(map) => open.extend(map.values().map(|inner| (inner, depth + 1))),
            Value::Array(list) => open.extend(list.iter().map(|inner| (inner, depth + 1))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    true
}

/// Goes through everything a schema means, references followed, until there is no room left. What
/// refers to something it is part of ends there.
fn spread<'a>(
    schema: &'a Value,
    root: &'a Value,
    room: &mut usize,
    within: &mut Vec<&'a str>,
) -> Option<()> {
    *room = room.checked_sub(1)?;
    match schema {
        Value::Object(map) => {
            for (key, inner) in map {
                match inner.as_str().filter(|_| key == "$ref") {
                    Some(reference) if within.contains(&reference) => {}
                    Some(reference) => {
                        if let Some(target) = target(root, reference) {
                            within.push(reference);
                            spread(target, root, room, within)?;
                            within.pop();
                        }
                    }
                    None => spread(inner, root, room, within)?,
                }
            }
            Some(())
        }
        Value::Array(list) => list.iter().try_for_each(|one| spread(one, root, room, within)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(()),
    }
}

/// What a reference within the schema leads to.
fn target<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let pointer = reference.strip_prefix('#')?;
    root.pointer(pointer).filter(|found| found.is_object() || found.is_boolean())
}

struct Tamer<'a> {
    root: &'a Value,
    /// How many more patterns there may be.
    patterns: usize,
}

impl Tamer<'_> {
    /// Goes through a schema. What stands where no schema is, is left alone: `enum` may hold
    /// anything, and a field may be called `$ref`.
    fn mend(&mut self, schema: &mut Value) {
        let Value::Object(map) = schema else { return };
        let leads_away = |(key, value): (&String, &Value)| match key.as_str() {
            "$ref" => value.as_str().is_none_or(|to| target(self.root, to).is_none()),
            "$dynamicRef" | "$recursiveRef" => true,
            _ => false,
        };
        if map.iter().any(leads_away) {
            *schema = json!({});
            return;
        }
        map.retain(|key, _| !ANCHORS.contains(&key.as_str()) && key != "$schema");
        if map.get("pattern").is_some_and(|pattern| !self.is_fit(pattern.as_str())) {
            map.shift_remove("pattern");
        }
        if let Some(Value::Object(by)) = map.get_mut("patternProperties") {
            by.retain(|pattern, _| self.is_fit(Some(pattern)));
        }
        for (key, inner) in map.iter_mut() {
            match key.as_str() {
                "properties" | "patternProperties" | "$defs" | "definitions"
                | "dependentSchemas" | "dependencies" => self.mend_named(inner),
                "items"
                | "additionalItems"
                | "additionalProperties"
                | "not"
                | "if"
                | "then"
                | "else"
                | "contains"
                | "propertyNames"
                | "unevaluatedItems"
                | "unevaluatedProperties"
                | "contentSchema"
                | "allOf"
                | "anyOf"
                | "oneOf"
                | "prefixItems" => self.mend_some(inner),
                _ => {}
            }
        }
    }

    fn mend_named(&mut self, schemas: &mut Value) {
        if let Value::Object(named) = schemas {
            named.values_mut().for_each(|schema| self.mend(schema));
        }
    }

    fn mend_some(&mut self, schemas: &mut Value) {
        match schemas {
            Value::Array(list) => list.iter_mut().for_each(|schema| self.mend(schema)),
            one => self.mend(one),
        }
    }

    /// True for a pattern that costs no more than reading the text. Others, and such as only other
    /// engines know, are the stranger's to check.
    fn is_fit(&mut self, pattern: Option<&str>) -> bool {
        let Some(pattern) = pattern.filter(|pattern| pattern.len() <= PATTERN) else {
            return false;
        };
        let room = self.patterns > 0 && compiled(&json!({"pattern": pattern})).is_ok();
        self.patterns = self.patterns.saturating_sub(1);
        room
    }
}

/// The name a stranger's tool has here: one that every provider takes.
pub fn sanitized(server: &str, tool: &str) -> String {
    let whole = format!("{server}_{tool}");
    let fit = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = whole.chars().map(fit).collect();
    if name.len() <= NAME {
        return name;
    }
    let digest = BlobRef::of(whole.as_bytes());
    let short: String = name.chars().take(NAME - 9).collect();
    let mark: String = digest.as_str().chars().take(8).collect();
    format!("{short}_{mark}")
}

/// What names a definition: the same for the same meaning, whatever order its fields come in.
pub fn digest(definition: &Value) -> String {
    BlobRef::of(sorted(definition).to_string().as_bytes()).as_str().to_owned()
}

/// A value with its fields in order.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let names: BTreeSet<&String> = map.keys().collect();
            let fields = names
                .into_iter()
                .filter_map(|name| map.get(name).map(|inner| (name.clone(), sorted(inner))));
            Value::Object(fields.collect::<Map<String, Value>>())
        }
        Value::Array(list) => Value::Array(list.iter().map(sorted).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// As much of a description as a model is told.
pub fn shortened(description: &str) -> &str {
    description.get(..description.floor_char_boundary(DESCRIPTION)).unwrap_or_default()
}

/// What a person is shown before a call: what came before it, if anything, and what it is called
/// with.
pub fn preview(happened: &str, arguments: &Map<String, Value>) -> String {
    let arguments = serde_json::to_string_pretty(arguments).unwrap_or_default();
    let whole = format!("{happened}{arguments}");
    bound::plain(whole.get(..whole.floor_char_boundary(PREVIEW)).unwrap_or_default())
}

#[cfg(test)]
mod tests;
