//! What servers answer, as places: whatever form they chose among those that the protocol allows.
//!
//! Answers are read leniently: an item that makes no sense is left out, and the others stay. Pure,
//! but for the lines of files, which are read from the world of the call.

use crate::Located;
use crate::judge::cut;
use crate::place::{Encoding, Point, Spot, Text, spot};
use crate::sweep;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use windlass_sandbox::World;

/// How many items of an answer are looked at.
const MOST: usize = 10_000;
/// How many places are shown.
pub(crate) const SHOWN: usize = 100;
/// From how many files lines are read.
const READ: usize = 50;
/// How deep symbols lie within each other.
const DEEPEST: usize = 16;
/// How long a hover is at most, in characters.
const PROSE: usize = 8 << 10;
/// How many characters of a line are shown.
const WIDTH: usize = 300;

/// A place as a server named it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Raw {
    pub(crate) uri: String,
    pub(crate) point: Point,
    pub(crate) what: String,
    pub(crate) depth: usize,
}

impl Raw {
    fn new(uri: &Value, range: Option<&Value>) -> Option<Raw> {
        let uri = uri.as_str()?.to_owned();
        let point = range.and_then(Point::start).unwrap_or_default();
        Some(Raw { uri, point, what: String::new(), depth: 0 })
    }

    fn named(self, what: String) -> Raw {
        Raw { what, ..self }
    }
}

fn items(answer: &Value) -> &[Value] {
    match answer {
        Value::Array(items) => items,
        Value::Null => &[],
        one => std::slice::from_ref(one),
    }
}

/// A location, several, or links to some.
pub(crate) fn locations(answer: &Value) -> Vec<Raw> {
    let one = |item: &Value| match item.get("targetUri") {
        Some(uri) => {
            Raw::new(uri, item.get("targetSelectionRange").or_else(|| item.get("targetRange")))
        }
        None => Raw::new(item.get("uri")?, item.get("range")),
    };
    items(answer).iter().take(MOST).filter_map(one).collect()
}

/// The symbols of a file: a tree, or a list.
pub(crate) fn outline(answer: &Value, uri: &str) -> Vec<Raw> {
    let mut all = Vec::new();
    for item in items(answer) {
        grow(item, uri, 0, &mut all);
    }
    all
}

fn grow(item: &Value, uri: &str, depth: usize, all: &mut Vec<Raw>) {
    if all.len() >= MOST || depth > DEEPEST {
        return;
    }
    if item.get("location").is_some() {
        all.extend(symbol(item));
        return;
    }
    let range = item.get("selectionRange").or_else(|| item.get("range"));
    if let (Some(what), Some(point)) = (name(item), range.and_then(Point::start)) {
        all.push(Raw { uri: uri.to_owned(), point, what, depth });
    }
    for child in item.get("children").map(items).unwrap_or_default() {
        grow(child, uri, depth + 1, all);
    }
}

/// The symbols of a workspace.
pub(crate) fn symbols(answer: &Value) -> Vec<Raw> {
    items(answer).iter().take(MOST).filter_map(symbol).collect()
}

fn symbol(item: &Value) -> Option<Raw> {
    let location = item.get("location")?;
    let raw = Raw::new(location.get("uri")?, location.get("range"))?;
    let inside = item.get("containerName").and_then(Value::as_str).unwrap_or_default();
    let inside = match word(inside) {
        inside if inside.is_empty() => String::new(),
        inside => format!("  (in {inside})"),
    };
    Some(raw.named(name(item)? + &inside))
}

/// What can call and be called.
pub(crate) fn callables(answer: &Value) -> Vec<Raw> {
    items(answer).iter().take(MOST).filter_map(callable).collect()
}

fn callable(item: &Value) -> Option<Raw> {
    let range = item.get("selectionRange").or_else(|| item.get("range"));
    Some(Raw::new(item.get("uri")?, range)?.named(name(item)?))
}

/// Who calls: every call, with what it stands in.
pub(crate) fn callers(answer: &Value) -> Vec<Raw> {
    let calls = items(answer).iter().filter_map(|call| {
        let from = callable(call.get("from")?)?;
        let ranges = call.get("fromRanges").map(items).unwrap_or_default();
        let points: Vec<Point> = ranges.iter().filter_map(Point::start).collect();
        let points = if points.is_empty() { vec![from.point] } else { points };
        let what = format!("in {}", from.what);
        let raw = move |point| Raw { point, what: what.clone(), uri: from.uri.clone(), depth: 0 };
        Some(points.into_iter().map(raw).collect::<Vec<_>>())
    });
    calls.flatten().take(MOST).collect()
}

/// Whom it calls.
pub(crate) fn callees(answer: &Value) -> Vec<Raw> {
    items(answer).iter().take(MOST).filter_map(|call| callable(call.get("to")?)).collect()
}

/// What is said of something, in prose.
pub(crate) fn hover(answer: &Value) -> String {
    let part = |part: &Value| match part {
        Value::String(text) => text.trim().to_owned(),
        part => {
            let value = part.get("value").and_then(Value::as_str).unwrap_or_default().trim();
            match part.get("language").and_then(Value::as_str) {
                Some(language) => format!("```{}\n{value}\n```", word(language)),
                None => value.to_owned(),
            }
        }
    };
    let parts = answer.get("contents").map(items).unwrap_or_default();
    let parts: Vec<String> = parts.iter().map(part).filter(|part| !part.is_empty()).collect();
    cut(&parts.join("\n\n"), PROSE)
}

/// What a symbol is, and its name.
fn name(item: &Value) -> Option<String> {
    let name = word(item.get("name")?.as_str()?);
    let kind = item.get("kind").and_then(Value::as_u64).unwrap_or_default();
    Some(match kind_word(kind) {
        "" => name,
        kind => format!("{kind} {name}"),
    })
}

/// A name on one line.
fn word(name: &str) -> String {
    let clean: String =
        name.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    cut(clean.trim(), 200)
}

fn kind_word(kind: u64) -> &'static str {
    const WORDS: [&str; 27] = [
        "",
        "file",
        "module",
        "namespace",
        "package",
        "class",
        "method",
        "property",
        "field",
        "constructor",
        "enum",
        "interface",
        "fn",
        "variable",
        "const",
        "string",
        "number",
        "boolean",
        "array",
        "object",
        "key",
        "null",
        "variant",
        "struct",
        "event",
        "operator",
        "type",
    ];
    usize::try_from(kind).ok().and_then(|kind| WORDS.get(kind)).copied().unwrap_or_default()
}

/// Places in our words, and how many more there are.
#[derive(Debug, Default)]
pub(crate) struct Places {
    pub(crate) found: Vec<Located>,
    /// Places beyond those that are shown.
    pub(crate) more: usize,
    /// Places in files that may not be read.
    pub(crate) hidden: usize,
}

/// In which order places are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// By path and line.
    Sorted,
    /// As the server has them.
    Given,
}

/// Finds places in files, with their lines. Blocks.
pub(crate) fn places(
    world: &World,
    root: &Path,
    encoding: Encoding,
    order: Order,
    raws: &[Raw],
) -> Places {
    let mut spots: Vec<(Spot, &Raw)> = raws.iter().map(|raw| (spot(root, &raw.uri), raw)).collect();
    if order == Order::Sorted {
        spots.sort_by(|(a, raw_a), (b, raw_b)| (a, raw_a.point).cmp(&(b, raw_b.point)));
        spots.dedup_by(|(a, raw_a), (b, raw_b)| {
            a == b && raw_a.point == raw_b.point && raw_a.what == raw_b.what
        });
    }
    let mut texts: BTreeMap<String, Option<Text>> = BTreeMap::new();
    let mut places = Places::default();
    for (spot, raw) in spots {
        if places.found.len() >= SHOWN {
            places.more += 1;
            continue;
        }
        let plain = (raw.point.line.saturating_add(1), raw.point.unit.saturating_add(1));
        let (path, at, source) = match spot {
            Spot::Outside(path) | Spot::Odd(path) => (path, plain, String::new()),
            Spot::Within(path) => {
                if texts.len() >= READ && !texts.contains_key(&path) {
                    places.more += 1;
                    continue;
                }
                let text = texts
                    .entry(path.clone())
                    .or_insert_with(|| sweep::text(world, &path).map(Text::new));
                let Some(text) = text else {
                    places.hidden += 1;
                    continue;
                };
                let at = text.ours(raw.point, encoding);
                (path, at, cut(text.line(at.0 - 1).trim(), WIDTH))
            }
        };
        let (what, depth) = (raw.what.clone(), raw.depth);
        places.found.push(Located { path, line: at.0, character: at.1, what, source, depth });
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn range(line: u32, character: u32) -> Value {
        json!({"start": {"line": line, "character": character}, "end": {"line": 0, "character": 0}})
    }

    fn flat(raws: &[Raw]) -> Vec<(String, u32, String, usize)> {
        raws.iter()
            .map(|raw| (raw.uri.clone(), raw.point.line, raw.what.clone(), raw.depth))
            .collect()
    }

    #[test]
    fn a_place_comes_in_many_forms() {
        let one = json!({"uri": "file:///a", "range": range(3, 1)});
        let link = json!({"targetUri": "file:///a", "targetRange": range(1, 0), "targetSelectionRange": range(3, 1)});
        for answer in
            [one.clone(), json!([one]), json!([link]), json!([null, 7, {"uri": 3}, one, "x"])]
        {
            assert_eq!(
                flat(&locations(&answer)),
                [("file:///a".into(), 3, String::new(), 0)],
                "{answer}"
            );
        }
        assert!(locations(&Value::Null).is_empty());
    }

    #[test]
    fn outlines_are_trees_or_lists() {
        let tree = json!([{"name": "A\nb", "kind": 5, "range": range(0, 0), "selectionRange": range(1, 0),
            "children": [{"name": "f", "kind": 6, "range": range(2, 0)}, {"kind": 6}]}, {"name": "odd"}]);
        assert_eq!(
            flat(&outline(&tree, "u")),
            [("u".into(), 1, "class A b".into(), 0), ("u".into(), 2, "method f".into(), 1)]
        );
        let list = json!([{"name": "f", "kind": 12, "containerName": "A", "location": {"uri": "v", "range": range(2, 0)}}]);
        assert_eq!(flat(&outline(&list, "u")), [("v".into(), 2, "fn f  (in A)".into(), 0)]);
        assert_eq!(flat(&symbols(&list)), flat(&outline(&list, "u")));
        assert_eq!(
            symbols(&json!([{"name": "n", "kind": 99, "location": {"uri": "v"}}]))[0].what,
            "n"
        );
        let mut deep = json!({"name": "x", "range": range(0, 0)});
        for _ in 0..100 {
            deep = json!({"name": "x", "range": range(0, 0), "children": [deep]});
        }
        assert_eq!(outline(&json!([deep]), "u").len(), DEEPEST + 1);
    }

    #[test]
    fn every_call_is_a_place() {
        let item = json!({"name": "main", "kind": 12, "uri": "u", "range": range(1, 0), "selectionRange": range(1, 3)});
        let incoming =
            json!([{"from": item, "fromRanges": [range(4, 0), range(9, 0)]}, {"from": {}}]);
        assert_eq!(
            flat(&callers(&incoming)),
            [("u".into(), 4, "in fn main".into(), 0), ("u".into(), 9, "in fn main".into(), 0)]
        );
        let outgoing = json!([{"to": item, "fromRanges": [range(4, 0)]}]);
        assert_eq!(flat(&callees(&outgoing)), [("u".into(), 1, "fn main".into(), 0)]);
        assert_eq!(callers(&json!([{"from": item}]))[0].point.line, 1);
    }

    #[test]
    fn prose_comes_in_many_forms_and_is_bounded() {
        for (contents, text) in [
            (json!("a"), "a"),
            (json!({"kind": "markdown", "value": " a "}), "a"),
            (json!({"language": "rust", "value": "fn a()"}), "```rust\nfn a()\n```"),
            (json!(["a", {"language": "c", "value": "int"}, "", 7]), "a\n\n```c\nint\n```"),
            (Value::Null, ""),
        ] {
            assert_eq!(hover(&json!({"contents": contents})), text);
        }
        assert_eq!(hover(&json!({"contents": "é".repeat(20_000)})).chars().count(), PROSE + 1);
    }
}
