//! Types: a value of the wrong type becomes what the schema wants, where only one thing can be
//! meant. What fits is left alone, and so is what nobody can be sure of; validation speaks later.

#[cfg(test)]
mod tests;

use super::short;
use crate::name;
use serde_json::{Map, Number, Value};
use std::cell::Cell;
use std::collections::BTreeMap;

/// How many changes are listed.
const MOST: usize = 8;
/// How deep arguments are looked at.
const DEEPEST: usize = 32;
/// How many values are compared with a schema: alternatives within alternatives add up fast.
const PATIENCE: usize = 50_000;
/// How many alternatives a schema may have, and how many references lead to one.
const ALTERNATIVES: usize = 64;
const REFERENCES: usize = 8;

/// What a schema allows whose reference leads nowhere.
static ANYTHING: Value = Value::Bool(true);

/// Changes obvious types to what the schema wants, and names the changes.
pub fn coerce(schema: &Value, value: &mut Value, changes: &mut Vec<String>) {
    let mut mender =
        Mender { root: schema, changes, more: 0, path: Vec::new(), patience: Cell::new(PATIENCE) };
    mender.mend(schema, value);
    if mender.more > 0 {
        let more = format!("and {} more", mender.more);
        mender.changes.push(more);
    }
}

struct Mender<'a, 'c> {
    root: &'a Value,
    changes: &'c mut Vec<String>,
    more: usize,
    path: Vec<String>,
    patience: Cell<usize>,
}

impl<'a> Mender<'a, '_> {
    fn mend(&mut self, schema: &'a Value, value: &mut Value) {
        if self.path.len() > DEEPEST {
            return;
        }
        let alternatives = self.alternatives(schema);
        match value {
            Value::Object(map) if alternatives.iter().any(|one| admits(one, "object")) => {
                if let Some(one) = self.meant(&alternatives, map) {
                    self.mend_object(one, map);
                }
            }
            Value::Array(items) if alternatives.iter().any(|one| admits(one, "array")) => {
                let mut arrays = alternatives.iter().filter(|one| admits(one, "array"));
                if let (Some(one), None) = (arrays.next(), arrays.next()) {
                    self.mend_items(one, items);
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

    /// The one alternative an object can be meant as; none if it fits one already.
    fn meant(&self, alternatives: &[&'a Value], map: &Map<String, Value>) -> Option<&'a Value> {
        let objects: Vec<&Value> =
            alternatives.iter().copied().filter(|one| admits(one, "object")).collect();
        if let [one] = objects.as_slice() {
            return Some(one);
        }
        if objects.iter().any(|one| self.fits_object(one, map, DEEPEST)) {
            return None;
        }
        let tagged = |one: &&&Value| {
            let fields = properties(one).into_iter().flatten();
            let mut tags = fields.filter(|(_, field)| field.get("const").is_some()).peekable();
            tags.peek().is_some() && tags.all(|(name, tag)| map.get(name) == tag.get("const"))
        };
        let mut tagged = objects.iter().filter(tagged);
        match (tagged.next(), tagged.next()) {
            (Some(one), None) => Some(one),
            _ => None,
        }
    }

    fn mend_object(&mut self, schema: &'a Value, map: &mut Map<String, Value>) {
        let Some(fields) = properties(schema) else {
            return self.mend_fields(schema, None, map);
        };
        if !matches!(schema.get("additionalProperties"), Some(Value::Object(_)))
            && schema.get("patternProperties").is_none()
        {
            self.rename(fields, map);
        }
        let needed = |name: &str| {
            let required = schema.get("required").and_then(Value::as_array);
            required.is_some_and(|required| required.iter().any(|one| one == name))
        };
        let spare: Vec<String> = map
            .iter()
            .filter(|(name, value)| value.is_null() && !needed(name))
            .filter(|(name, value)| fields.get(*name).is_some_and(|one| !self.fits(one, value)))
            .map(|(name, _)| name.clone())
            .collect();
        for name in spare {
            map.shift_remove(&name);
            self.note(|path| format!("{}: null was left out", spot(path, &name)));
        }
        self.mend_fields(schema, Some(fields), map);
    }

    fn mend_fields(
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
            self.mend(field, value);
            self.path.pop();
        }
    }

    /// Gives a field the name the schema has for it, if both can only mean each other.
    fn rename(&mut self, fields: &Map<String, Value>, map: &mut Map<String, Value>) {
        if map.keys().all(|name| fields.contains_key(name)) {
            return;
        }
        let mut known: BTreeMap<String, Vec<&String>> = BTreeMap::new();
        fields.keys().for_each(|name| known.entry(name::plain(name)).or_default().push(name));
        let mut spelled: BTreeMap<String, usize> = BTreeMap::new();
        let strange = |name: &&String| !fields.contains_key(*name);
        map.keys().filter(strange).for_each(|name| {
            *spelled.entry(name::plain(name)).or_default() += 1;
        });
        let meant = |name: &String| {
            let plain = Some(name::plain(name)).filter(|plain| !plain.is_empty())?;
            match (known.get(&plain)?.as_slice(), spelled.get(&plain)) {
                ([one], Some(1)) if !map.contains_key(*one) => Some((*one).clone()),
                _ => None,
            }
        };
        let renamed: Vec<Option<String>> =
            map.keys().map(|name| if strange(&name) { meant(name) } else { None }).collect();
        let old = std::mem::take(map);
        for ((name, value), meant) in old.into_iter().zip(renamed) {
            let Some(meant) = meant else {
                map.insert(name, value);
                continue;
            };
            self.note(|path| format!("{} was read as `{meant}`", spot(path, &name)));
            map.insert(meant, value);
        }
    }

    fn mend_items(&mut self, schema: &'a Value, items: &mut [Value]) {
        let first = schema.get("prefixItems").and_then(Value::as_array);
        for (index, item) in items.iter_mut().enumerate() {
            let own = first.and_then(|first| first.get(index));
            let Some(schema) = own.or_else(|| schema.get("items")) else { return };
            self.path.push(index.to_string());
            self.mend(schema, item);
            self.path.pop();
        }
    }

    /// Turns a value that does not fit into one that does.
    fn convert(&mut self, schema: &'a Value, alternatives: &[&'a Value], value: &mut Value) {
        if let Some(scalar) = scalars(value).into_iter().find(|one| self.fits(schema, one)) {
            return self.replace(value, scalar);
        }
        let encoded = encoded(value).filter(|inner| {
            let kind = if inner.is_array() { "array" } else { "object" };
            alternatives.iter().any(|one| wants(one, kind))
        });
        let fits = encoded.as_ref().is_some_and(|inner| self.fits(schema, inner));
        if !fits && let Some(list) = self.wrapped(alternatives, value) {
            return self.replace(value, list);
        }
        if let Some(inner) = encoded {
            self.replace(value, inner);
            self.mend(schema, value);
        }
    }

    /// A list of just this value, where a list is wanted and it fits in.
    fn wrapped(&mut self, alternatives: &[&'a Value], value: &Value) -> Option<Value> {
        let mut arrays = alternatives.iter().filter(|one| wants(one, "array"));
        let (Some(one), None) = (arrays.next(), arrays.next()) else { return None };
        let (listed, more) = (self.changes.len(), self.more);
        let mut list = vec![value.clone()];
        self.mend_items(one, &mut list);
        let list = Value::Array(list);
        if self.fits(one, &list) {
            return Some(list);
        }
        self.changes.truncate(listed);
        self.more = more;
        None
    }

    fn replace(&mut self, value: &mut Value, with: Value) {
        let old = std::mem::replace(value, with);
        self.note(|path| {
            let at = match path.split_last() {
                Some((name, path)) => spot(path, name),
                None => "the arguments".to_owned(),
            };
            format!("{at}: {} was read as {}", short(&old.to_string()), short(&value.to_string()))
        });
    }

    fn note(&mut self, change: impl FnOnce(&[String]) -> String) {
        if self.changes.len() < MOST {
            self.changes.push(change(&self.path));
        } else {
            self.more += 1;
        }
    }

    /// The plain schemas a schema allows, references followed.
    fn alternatives(&self, schema: &'a Value) -> Vec<&'a Value> {
        let mut found = Vec::new();
        self.collect(schema, REFERENCES, &mut found);
        found
    }

    fn collect(&self, schema: &'a Value, depth: usize, found: &mut Vec<&'a Value>) {
        if found.len() >= ALTERNATIVES {
            return;
        }
        let Some(depth) = depth.checked_sub(1) else { return found.push(schema) };
        if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
            let target = target.strip_prefix('#').and_then(|path| self.root.pointer(path));
            return self.collect(target.unwrap_or(&ANYTHING), depth, found);
        }
        if ["type", "properties", "enum", "const"].iter().any(|key| schema.get(key).is_some()) {
            return found.push(schema);
        }
        let list = |key: &str| schema.get(key).and_then(Value::as_array);
        if let Some(any) = list("anyOf").or_else(|| list("oneOf")) {
            return any.iter().for_each(|one| self.collect(one, depth, found));
        }
        match list("allOf").map(Vec::as_slice) {
            Some([one]) => self.collect(one, depth, found),
            _ => found.push(schema),
        }
    }

    /// True if a value has the shape a schema wants. Limits and patterns are not looked at: what
    /// breaks them is of the right type.
    fn fits(&self, schema: &'a Value, value: &Value) -> bool {
        self.fits_within(schema, value, DEEPEST)
    }

    fn fits_within(&self, schema: &'a Value, value: &Value, depth: usize) -> bool {
        let (Some(depth), Some(patience)) =
            (depth.checked_sub(1), self.patience.get().checked_sub(1))
        else {
            return true;
        };
        self.patience.set(patience);
        self.alternatives(schema).into_iter().any(|one| {
            if !admits(one, kind(value)) || one == &Value::Bool(false) {
                return false;
            }
            let listed = one.get("enum").and_then(Value::as_array);
            if listed.is_some_and(|listed| !listed.contains(value))
                || one.get("const").is_some_and(|only| only != value)
            {
                return false;
            }
            match value {
                Value::Object(map) => self.fits_object(one, map, depth),
                Value::Array(items) => {
                    let first = one.get("prefixItems").and_then(Value::as_array);
                    items.iter().enumerate().all(|(index, item)| {
                        let own = first.and_then(|first| first.get(index));
                        let schema = own.or_else(|| one.get("items"));
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

/// The type of a value. A float is no integer, even if it is whole: whoever wants an integer
/// cannot take it.
fn kind(value: &Value) -> &'static str {
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

/// True if a plain schema allows a type.
fn admits(schema: &Value, kind: &str) -> bool {
    let same = |name: &str| name == kind || (name == "number" && kind == "integer");
    match schema.get("type") {
        Some(Value::String(name)) => same(name),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).any(same),
        _ => true,
    }
}

/// True if a plain schema names a type.
fn wants(schema: &Value, kind: &str) -> bool {
    schema.get("type").is_some() && admits(schema, kind)
}

/// What else a single value could be meant as. A float is never made a string: how it was written
/// is lost, and `1.10` is not `1.1` to whoever wanted a string.
fn scalars(value: &Value) -> Vec<Value> {
    match value {
        Value::String(text) => match serde_json::from_str(text.trim()) {
            Ok(Value::Number(number)) => {
                let whole = whole(&number).map(Value::Number);
                whole.into_iter().chain([Value::Number(number)]).collect()
            }
            Ok(flag @ Value::Bool(_)) => vec![flag],
            _ => match text.trim() {
                "True" => vec![Value::Bool(true)],
                "False" => vec![Value::Bool(false)],
                _ => Vec::new(),
            },
        },
        Value::Number(number) if number.is_f64() => {
            whole(number).map(Value::Number).into_iter().collect()
        }
        Value::Number(_) | Value::Bool(_) => vec![Value::String(value.to_string())],
        Value::Null | Value::Array(_) | Value::Object(_) => Vec::new(),
    }
}

/// A number as an integer, if it is one exactly.
fn whole(number: &Number) -> Option<Number> {
    if !number.is_f64() {
        return Some(number.clone());
    }
    /// Up to here a float holds every integer.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() <= EXACT)?;
    format!("{float:.0}").parse::<i64>().ok().map(Number::from)
}

/// The list or object a string holds as JSON.
fn encoded(value: &Value) -> Option<Value> {
    let text = value.as_str()?;
    let inner: Value = serde_json::from_str(text).ok()?;
    (inner.is_array() || inner.is_object()).then_some(inner)
}

fn spot(path: &[String], name: &str) -> String {
    let whole = path.iter().map(String::as_str).chain([name]).collect::<Vec<_>>().join(".");
    format!("`{}`", short(&whole))
}
