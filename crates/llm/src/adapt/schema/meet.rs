//! Two schemas in one: what fits both, or what fits either.
//!
//! Where the two cannot be said in one schema, one of their keywords is dropped and handed back.
//! That loosens, and never narrows.

use super::keyword::{self, Kind, Schema, kind, schema_of};
use super::tell;
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::HashSet;

/// Keywords that could not be kept.
pub(super) type Dropped = Vec<(String, Value)>;

/// What fits both.
pub(super) fn meet(mut first: Schema, second: Schema) -> (Schema, Dropped) {
    let mut dropped = Dropped::new();
    let conditional =
        |schema: &Schema, group: &[&str]| group.iter().any(|key| schema.contains_key(*key));
    let groups: [&[&str]; 2] =
        [&["if", "then", "else"], &["contains", "minContains", "maxContains"]];
    let clashing: Vec<&str> = groups
        .into_iter()
        .filter(|group| conditional(&first, group) && conditional(&second, group))
        .flatten()
        .copied()
        .collect();
    for (key, theirs) in second {
        if clashing.contains(&key.as_str()) {
            dropped.push((key, theirs));
            continue;
        }
        match first.get_mut(&key) {
            None => {
                first.insert(key, theirs);
            }
            Some(mine) if *mine == theirs => {}
            Some(mine) => {
                let taken = std::mem::take(mine);
                *mine = meet_values(&key, taken, theirs, &mut dropped);
            }
        }
    }
    (first, dropped)
}

/// One keyword that both have.
fn meet_values(key: &str, mine: Value, theirs: Value, dropped: &mut Dropped) -> Value {
    match (key, mine, theirs) {
        ("description", Value::String(mine), Value::String(theirs)) => {
            if mine.contains(&theirs) {
                mine.into()
            } else {
                format!("{mine}\n{theirs}").into()
            }
        }
        (key, Value::Object(mine), Value::Object(theirs)) if kind(key) == Some(Kind::Named) => {
            meet_named(mine, theirs, dropped).into()
        }
        ("required" | "allOf", Value::Array(mut mine), Value::Array(theirs)) => {
            let known: HashSet<Value> = mine.iter().cloned().collect();
            mine.extend(theirs.into_iter().filter(|one| !known.contains(one)));
            mine.into()
        }
        ("enum", Value::Array(mine), Value::Array(theirs)) => {
            let known: HashSet<&Value> = theirs.iter().collect();
            let common: Vec<Value> =
                mine.iter().filter(|one| known.contains(one)).cloned().collect();
            if common.is_empty() {
                dropped.push((key.to_owned(), theirs.into()));
                return mine.into();
            }
            common.into()
        }
        ("type", mine, theirs) => match keyword::written(&common_types(&mine, &theirs)) {
            Some(types) => types,
            None => {
                dropped.push((key.to_owned(), theirs));
                mine
            }
        },
        (
            "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties",
            mine,
            theirs,
        ) => std::cmp::max_by(mine, theirs, by_size),
        (
            "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties",
            mine,
            theirs,
        ) => std::cmp::min_by(mine, theirs, by_size),
        ("uniqueItems", mine, theirs) => (mine == true || theirs == true).into(),
        (key, mine, theirs) if kind(key) == Some(Kind::SchemaOrFlag) => match (mine, theirs) {
            (Value::Bool(false), _) | (_, Value::Bool(false)) => false.into(),
            (Value::Bool(true), other) | (other, Value::Bool(true)) => other,
            (mine, theirs) => both(mine, theirs, dropped),
        },
        (key, mine, theirs) => {
            if !keyword::annotates(key) {
                dropped.push((key.to_owned(), theirs));
            }
            mine
        }
    }
}

fn by_size(one: &Value, other: &Value) -> Ordering {
    one.as_f64().partial_cmp(&other.as_f64()).unwrap_or(Ordering::Equal)
}

fn meet_named(mut mine: Schema, theirs: Schema, dropped: &mut Dropped) -> Schema {
    for (name, schema) in theirs {
        let met = match mine.get_mut(&name).map(Value::take) {
            None => schema,
            Some(known) => both(known, schema, dropped),
        };
        mine.insert(name, met);
    }
    mine
}

fn both(mine: Value, theirs: Value, dropped: &mut Dropped) -> Value {
    if mine == theirs {
        return mine;
    }
    let (met, more) = meet(schema_of(mine), schema_of(theirs));
    dropped.extend(more);
    met.into()
}

fn common_types(mine: &Value, theirs: &Value) -> Vec<&'static str> {
    let (mine, theirs) = (keyword::named_types(mine), keyword::named_types(theirs));
    let mut common: Vec<&str> = Vec::new();
    for name in keyword::TYPES {
        let has = |types: &[&str]| {
            types.contains(&name) || (name == "integer" && types.contains(&"number"))
        };
        if has(&mine) && has(&theirs) {
            common.push(name);
        }
    }
    if common.contains(&"number") {
        common.retain(|name| *name != "integer");
    }
    // The order they were written in.
    common.sort_by_key(|name| mine.iter().position(|other| other == name));
    common
}

/// A schema with its `allOf` written into it.
pub(super) fn fold(mut schema: Schema) -> (Schema, Dropped) {
    let mut dropped = Dropped::new();
    for part in keyword::take_list(&mut schema, "allOf").unwrap_or_default() {
        let (part, more) = fold(part);
        dropped.extend(more);
        let (met, more) = meet(schema, part);
        dropped.extend(more);
        schema = met;
    }
    (schema, dropped)
}

/// Alternatives that only list values, in one list. What is said of a value is kept.
pub(super) fn join_values(branches: &[Schema]) -> Option<Schema> {
    let plain =
        |key: &String| matches!(key.as_str(), "type" | "enum" | "const" | "description" | "title");
    let (first, rest) = branches.split_first()?;
    let types = keyword::infer(first);
    if !rest.iter().all(|branch| keyword::infer(branch) == types) || types.is_empty() {
        return None;
    }
    let (mut values, mut notes) = (Vec::new(), Vec::new());
    for branch in branches {
        let listed = match (branch.get("enum"), branch.get("const")) {
            (Some(Value::Array(listed)), None) => listed.as_slice(),
            (None, Some(one)) => std::slice::from_ref(one),
            _ => return None,
        };
        if !branch.keys().all(plain) {
            return None;
        }
        if let Some(Value::String(text)) = branch.get("description") {
            notes.push(match listed {
                [one] => format!("{one}: {text}"),
                _ => text.clone(),
            });
        }
        values.extend(listed.iter().cloned());
    }
    let mut seen = HashSet::new();
    values.retain(|value| seen.insert(value.clone()));
    let mut joined = Schema::new();
    keyword::set_types(&mut joined, &types);
    joined.insert("enum".into(), values.into());
    if !notes.is_empty() {
        tell(&mut joined, &notes.join("\n"));
    }
    Some(joined)
}
