//! Parses locations from server answers, in all forms that the protocol allows.
//!
//! Parsing is lenient: an invalid item is dropped, and the others stay. Only [`resolve_locations`]
//! performs I/O: it reads source lines through the `CallWorkspace` of the call.

use crate::documents::file_watch;
use crate::positions::{LineIndex, LspPosition, PositionEncoding, UriTarget, resolve_uri};
use crate::query::code_query::CodeLocation;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use windlass_protocol::display_text::truncate_chars;
use windlass_sandbox::CallWorkspace;

/// Limit for the parsed items of an answer.
const MAX_ANSWER_ITEMS: usize = 10_000;
pub(crate) const MAX_SHOWN_LOCATIONS: usize = 100;
/// Limit for the files from which source lines are read.
const MAX_READ_FILES: usize = 50;
const MAX_SYMBOL_DEPTH: usize = 16;
const MAX_HOVER_CHARS: usize = 8 << 10;
/// Limit for the shown characters of a source line.
const MAX_LINE_CHARS: usize = 300;

/// A location in the form of the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RawLocation {
    pub(crate) uri: String,
    pub(crate) position: LspPosition,
    pub(crate) label: String,
    pub(crate) depth: usize,
}

impl RawLocation {
    fn new(uri: &Value, range: Option<&Value>) -> Option<RawLocation> {
        let uri = uri.as_str()?.to_owned();
        let position = range.and_then(LspPosition::parse_range_start).unwrap_or_default();
        Some(RawLocation { uri, position, label: String::new(), depth: 0 })
    }

    fn with_label(self, label: String) -> RawLocation {
        RawLocation { label, ..self }
    }
}

fn answer_items(answer: &Value) -> &[Value] {
    match answer {
        Value::Array(items) => items,
        Value::Null => &[],
        one => std::slice::from_ref(one),
    }
}

/// Parses a `Location`, a list of them, or `LocationLink`s.
pub(crate) fn parse_locations(answer: &Value) -> Vec<RawLocation> {
    let parse_location = |item: &Value| match item.get("targetUri") {
        Some(uri) => RawLocation::new(
            uri,
            item.get("targetSelectionRange").or_else(|| item.get("targetRange")),
        ),
        None => RawLocation::new(item.get("uri")?, item.get("range")),
    };
    answer_items(answer).iter().take(MAX_ANSWER_ITEMS).filter_map(parse_location).collect()
}

/// Parses the symbols of a file: a tree or a list.
pub(crate) fn parse_document_symbols(answer: &Value, uri: &str) -> Vec<RawLocation> {
    let mut symbols = Vec::new();
    for item in answer_items(answer) {
        collect_symbols(item, uri, 0, &mut symbols);
    }
    symbols
}

fn collect_symbols(item: &Value, uri: &str, depth: usize, symbols: &mut Vec<RawLocation>) {
    if symbols.len() >= MAX_ANSWER_ITEMS || depth > MAX_SYMBOL_DEPTH {
        return;
    }
    if item.get("location").is_some() {
        symbols.extend(parse_symbol(item));
        return;
    }
    let range = item.get("selectionRange").or_else(|| item.get("range"));
    if let (Some(label), Some(position)) =
        (symbol_label(item), range.and_then(LspPosition::parse_range_start))
    {
        symbols.push(RawLocation { uri: uri.to_owned(), position, label, depth });
    }
    for child in item.get("children").map(answer_items).unwrap_or_default() {
        collect_symbols(child, uri, depth + 1, symbols);
    }
}

/// Parses the symbols of a `workspace/symbol` answer.
pub(crate) fn parse_workspace_symbols(answer: &Value) -> Vec<RawLocation> {
    answer_items(answer).iter().take(MAX_ANSWER_ITEMS).filter_map(parse_symbol).collect()
}

fn parse_symbol(item: &Value) -> Option<RawLocation> {
    let location = item.get("location")?;
    let raw = RawLocation::new(location.get("uri")?, location.get("range"))?;
    let container = item.get("containerName").and_then(Value::as_str).unwrap_or_default();
    let container = match to_single_line(container) {
        container if container.is_empty() => String::new(),
        container => format!("  (in {container})"),
    };
    Some(raw.with_label(symbol_label(item)? + &container))
}

/// Parses the items of a `textDocument/prepareCallHierarchy` answer.
pub(crate) fn parse_call_hierarchy(answer: &Value) -> Vec<RawLocation> {
    answer_items(answer).iter().take(MAX_ANSWER_ITEMS).filter_map(parse_call_item).collect()
}

fn parse_call_item(item: &Value) -> Option<RawLocation> {
    let range = item.get("selectionRange").or_else(|| item.get("range"));
    Some(RawLocation::new(item.get("uri")?, range)?.with_label(symbol_label(item)?))
}

/// Parses `callHierarchy/incomingCalls`: every call site, labeled with the calling function.
pub(crate) fn parse_incoming_calls(answer: &Value) -> Vec<RawLocation> {
    let calls = answer_items(answer).iter().filter_map(|call| {
        let from = parse_call_item(call.get("from")?)?;
        let ranges = call.get("fromRanges").map(answer_items).unwrap_or_default();
        let positions: Vec<LspPosition> =
            ranges.iter().filter_map(LspPosition::parse_range_start).collect();
        let positions = if positions.is_empty() { vec![from.position] } else { positions };
        let label = format!("in {}", from.label);
        let to_location = move |position| RawLocation {
            position,
            label: label.clone(),
            uri: from.uri.clone(),
            depth: 0,
        };
        Some(positions.into_iter().map(to_location).collect::<Vec<_>>())
    });
    calls.flatten().take(MAX_ANSWER_ITEMS).collect()
}

/// Parses the answer of `callHierarchy/outgoingCalls`.
pub(crate) fn parse_outgoing_calls(answer: &Value) -> Vec<RawLocation> {
    answer_items(answer)
        .iter()
        .take(MAX_ANSWER_ITEMS)
        .filter_map(|call| parse_call_item(call.get("to")?))
        .collect()
}

/// Parses a `textDocument/hover` answer into prose.
pub(crate) fn parse_hover(answer: &Value) -> String {
    let format_part = |part: &Value| match part {
        Value::String(text) => text.trim().to_owned(),
        part => {
            let value = part.get("value").and_then(Value::as_str).unwrap_or_default().trim();
            match part.get("language").and_then(Value::as_str) {
                Some(language) => format!("```{}\n{value}\n```", to_single_line(language)),
                None => value.to_owned(),
            }
        }
    };
    let parts = answer.get("contents").map(answer_items).unwrap_or_default();
    let parts: Vec<String> =
        parts.iter().map(format_part).filter(|part| !part.is_empty()).collect();
    truncate_chars(&parts.join("\n\n"), MAX_HOVER_CHARS)
}

/// Returns kind and name of a symbol, such as `fn parse`.
fn symbol_label(item: &Value) -> Option<String> {
    let name = to_single_line(item.get("name")?.as_str()?);
    let kind = item.get("kind").and_then(Value::as_u64).unwrap_or_default();
    Some(match symbol_kind_name(kind) {
        "" => name,
        kind => format!("{kind} {name}"),
    })
}

/// Replaces control characters with spaces and truncates the name.
fn to_single_line(name: &str) -> String {
    let clean: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    truncate_chars(clean.trim(), 200)
}

fn symbol_kind_name(kind: u64) -> &'static str {
    const SYMBOL_KIND_NAMES: [&str; 27] = [
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
    usize::try_from(kind)
        .ok()
        .and_then(|kind| SYMBOL_KIND_NAMES.get(kind))
        .copied()
        .unwrap_or_default()
}

/// `CodeLocation`s with their source lines, and the number of those left out.
#[derive(Debug, Default)]
pub(crate) struct ResolvedLocations {
    pub(crate) shown: Vec<CodeLocation>,
    /// Locations beyond `MAX_SHOWN_LOCATIONS` or `MAX_READ_FILES`.
    pub(crate) omitted: usize,
    /// Locations in files that may not be read.
    pub(crate) hidden: usize,
}

/// Order of the shown locations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LocationOrder {
    /// By path and position.
    Sorted,
    /// In the order of the server.
    AsGiven,
}

/// Resolves locations to paths and source lines. Blocks.
pub(crate) fn resolve_locations(
    granted: &CallWorkspace,
    root: &Path,
    encoding: PositionEncoding,
    order: LocationOrder,
    raws: &[RawLocation],
) -> ResolvedLocations {
    let mut targets: Vec<(UriTarget, &RawLocation)> =
        raws.iter().map(|raw| (resolve_uri(root, &raw.uri), raw)).collect();
    if order == LocationOrder::Sorted {
        targets.sort_by(|(a, raw_a), (b, raw_b)| (a, raw_a.position).cmp(&(b, raw_b.position)));
        targets.dedup_by(|(a, raw_a), (b, raw_b)| {
            a == b && raw_a.position == raw_b.position && raw_a.label == raw_b.label
        });
    }
    let mut texts: BTreeMap<String, Option<LineIndex>> = BTreeMap::new();
    let mut locations = ResolvedLocations::default();
    for (target, raw) in targets {
        if locations.shown.len() >= MAX_SHOWN_LOCATIONS {
            locations.omitted += 1;
            continue;
        }
        let fallback = (raw.position.line.saturating_add(1), raw.position.unit.saturating_add(1));
        let (path, at, source_line) = match target {
            UriTarget::Outside(path) | UriTarget::NotAFile(path) => (path, fallback, String::new()),
            UriTarget::InWorkspace(path) => {
                if texts.len() >= MAX_READ_FILES && !texts.contains_key(&path) {
                    locations.omitted += 1;
                    continue;
                }
                let text = texts
                    .entry(path.clone())
                    .or_insert_with(|| file_watch::read_text(granted, &path).map(LineIndex::new));
                let Some(text) = text else {
                    locations.hidden += 1;
                    continue;
                };
                let at = text.to_line_and_character(raw.position, encoding);
                (path, at, truncate_chars(text.line(at.0 - 1).trim(), MAX_LINE_CHARS))
            }
        };
        locations.shown.push(CodeLocation {
            path,
            line: at.0,
            character: at.1,
            label: raw.label.clone(),
            source_line,
            depth: raw.depth,
        });
    }
    locations
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn range(line: u32, character: u32) -> Value {
        json!({"start": {"line": line, "character": character}, "end": {"line": 0, "character": 0}})
    }

    fn to_tuples(raws: &[RawLocation]) -> Vec<(String, u32, String, usize)> {
        raws.iter()
            .map(|raw| (raw.uri.clone(), raw.position.line, raw.label.clone(), raw.depth))
            .collect()
    }

    #[test]
    fn locations_are_parsed_in_all_forms() {
        let one = json!({"uri": "file:///a", "range": range(3, 1)});
        let link = json!({"targetUri": "file:///a", "targetRange": range(1, 0), "targetSelectionRange": range(3, 1)});
        for answer in
            [one.clone(), json!([one]), json!([link]), json!([null, 7, {"uri": 3}, one, "x"])]
        {
            assert_eq!(
                to_tuples(&parse_locations(&answer)),
                [("file:///a".into(), 3, String::new(), 0)],
                "{answer}"
            );
        }
        assert!(parse_locations(&Value::Null).is_empty());
    }

    #[test]
    fn document_symbols_are_trees_or_lists() {
        let tree = json!([{"name": "A\nb", "kind": 5, "range": range(0, 0), "selectionRange": range(1, 0),
            "children": [{"name": "f", "kind": 6, "range": range(2, 0)}, {"kind": 6}]}, {"name": "odd"}]);
        assert_eq!(
            to_tuples(&parse_document_symbols(&tree, "u")),
            [("u".into(), 1, "class A b".into(), 0), ("u".into(), 2, "method f".into(), 1)]
        );
        let list = json!([{"name": "f", "kind": 12, "containerName": "A", "location": {"uri": "v", "range": range(2, 0)}}]);
        assert_eq!(
            to_tuples(&parse_document_symbols(&list, "u")),
            [("v".into(), 2, "fn f  (in A)".into(), 0)]
        );
        assert_eq!(
            to_tuples(&parse_workspace_symbols(&list)),
            to_tuples(&parse_document_symbols(&list, "u"))
        );
        assert_eq!(
            parse_workspace_symbols(&json!([{"name": "n", "kind": 99, "location": {"uri": "v"}}]))
                [0]
            .label,
            "n"
        );
        let mut deep = json!({"name": "x", "range": range(0, 0)});
        for _ in 0..100 {
            deep = json!({"name": "x", "range": range(0, 0), "children": [deep]});
        }
        assert_eq!(parse_document_symbols(&json!([deep]), "u").len(), MAX_SYMBOL_DEPTH + 1);
    }

    #[test]
    fn every_call_has_a_location() {
        let item = json!({"name": "main", "kind": 12, "uri": "u", "range": range(1, 0), "selectionRange": range(1, 3)});
        let incoming =
            json!([{"from": item, "fromRanges": [range(4, 0), range(9, 0)]}, {"from": {}}]);
        assert_eq!(
            to_tuples(&parse_incoming_calls(&incoming)),
            [("u".into(), 4, "in fn main".into(), 0), ("u".into(), 9, "in fn main".into(), 0)]
        );
        let outgoing = json!([{"to": item, "fromRanges": [range(4, 0)]}]);
        assert_eq!(
            to_tuples(&parse_outgoing_calls(&outgoing)),
            [("u".into(), 1, "fn main".into(), 0)]
        );
        assert_eq!(parse_incoming_calls(&json!([{"from": item}]))[0].position.line, 1);
    }

    #[test]
    fn hover_text_is_parsed_in_all_forms_and_limited() {
        for (contents, text) in [
            (json!("a"), "a"),
            (json!({"kind": "markdown", "value": " a "}), "a"),
            (json!({"language": "rust", "value": "fn a()"}), "```rust\nfn a()\n```"),
            (json!(["a", {"language": "c", "value": "int"}, "", 7]), "a\n\n```c\nint\n```"),
            (Value::Null, ""),
        ] {
            assert_eq!(parse_hover(&json!({"contents": contents})), text);
        }
        assert_eq!(
            parse_hover(&json!({"contents": "é".repeat(20_000)})).chars().count(),
            MAX_HOVER_CHARS + 1
        );
    }
}
