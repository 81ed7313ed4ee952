//! Diagnostics of one server: parsing and storage.
//!
//! Server data is bounded here before it is stored. This module performs no I/O.

use crate::positions::{LineIndex, LspPosition, PositionEncoding};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_protocol::display_text::truncate_chars;

const MAX_DIAGNOSTICS_PER_FILE: usize = 500;
const MAX_DIAGNOSED_FILES: usize = 2_000;
/// Limit for the stored characters of a message.
const MAX_MESSAGE_CHARS: usize = 2_000;

/// Lowest severity of diagnostics that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MinSeverity {
    /// Errors only.
    Error,
    /// Errors and warnings.
    Warning,
}

/// A diagnostic of a language server, parsed and bounded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LspDiagnostic {
    pub(crate) position: LspPosition,
    /// Line and character, counted from 1; the character is inexact if the text is not available.
    pub(crate) line_and_character: (u32, u32),
    pub(crate) code: String,
    pub(crate) message: String,
    /// Trimmed source line, if the text is available.
    pub(crate) source_line: Option<String>,
}

/// Parses the diagnostics of a list that have at least `min_severity`, up to
/// `MAX_DIAGNOSTICS_PER_FILE`.
pub(crate) fn parse_diagnostics(
    list: &Value,
    min_severity: MinSeverity,
    text: Option<&LineIndex>,
    encoding: PositionEncoding,
) -> Arc<[LspDiagnostic]> {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter()
        .filter_map(|item| parse_diagnostic(item, min_severity, text, encoding))
        .take(MAX_DIAGNOSTICS_PER_FILE)
        .collect()
}

fn parse_diagnostic(
    item: &Value,
    min_severity: MinSeverity,
    text: Option<&LineIndex>,
    encoding: PositionEncoding,
) -> Option<LspDiagnostic> {
    let max_level = match min_severity {
        MinSeverity::Error => 1,
        MinSeverity::Warning => 2,
    };
    // A diagnostic without a severity is an error.
    if item.get("severity").and_then(Value::as_i64).unwrap_or(1) > max_level {
        return None;
    }
    let message = item.get("message")?;
    let message = message.as_str().or_else(|| message.get("value")?.as_str())?;
    let code = match item.get("code") {
        Some(Value::String(code)) => truncate_chars(&to_single_line(code), 100),
        Some(Value::Number(code)) => code.to_string(),
        Some(_) | None => String::new(),
    };
    let position = item.get("range").and_then(LspPosition::parse_range_start).unwrap_or_default();
    let line_and_character = match text {
        Some(text) => text.to_line_and_character(position, encoding),
        None => (position.line.saturating_add(1), position.unit.saturating_add(1)),
    };
    let source_line = text.map(|text| text.line(line_and_character.0 - 1).trim().to_owned());
    Some(LspDiagnostic {
        position,
        line_and_character,
        code,
        message: truncate_chars(&to_single_line(message), MAX_MESSAGE_CHARS),
        source_line,
    })
}

/// Joins text into one line, without characters that move the cursor.
fn to_single_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Origin of diagnostics. Servers that use both keep two lists, and neither clears the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiagnosticDelivery {
    Pull,
    Push,
}

/// All diagnostics of one file, by `DiagnosticDelivery`.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileDiagnostics {
    pulled: Arc<[LspDiagnostic]>,
    pushed: Arc<[LspDiagnostic]>,
}

impl FileDiagnostics {
    /// Returns `pulled` and `pushed` diagnostics without duplicates, sorted by position.
    pub(crate) fn merged(&self) -> Vec<LspDiagnostic> {
        let mut merged: Vec<LspDiagnostic> = self.pulled.to_vec();
        let is_same = |a: &LspDiagnostic, b: &LspDiagnostic| {
            a.position.line == b.position.line && a.message == b.message
        };
        for finding in self.pushed.iter() {
            if !self.pulled.iter().any(|pulled| is_same(pulled, finding)) {
                merged.push(finding.clone());
            }
        }
        merged.sort_by_key(|finding| finding.line_and_character);
        merged
    }
}

/// Current diagnostics by path.
pub(crate) type DiagnosticsSnapshot = BTreeMap<String, FileDiagnostics>;

/// Bounded store of the diagnostics of one server.
#[derive(Debug, Default)]
pub(crate) struct DiagnosticStore {
    files: DiagnosticsSnapshot,
}

/// State of a file at the server. A full `DiagnosticStore` makes room for open files only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DocumentOpenState {
    Open,
    NotOpen,
}

impl DiagnosticStore {
    pub(crate) fn put(
        &mut self,
        path: &str,
        source: DiagnosticDelivery,
        diagnostics: Arc<[LspDiagnostic]>,
        interest: DocumentOpenState,
    ) {
        if let Some(file) = self.files.get_mut(path) {
            match source {
                DiagnosticDelivery::Pull => file.pulled = diagnostics,
                DiagnosticDelivery::Push => file.pushed = diagnostics,
            }
            if file.pulled.is_empty() && file.pushed.is_empty() {
                self.files.remove(path);
            }
            return;
        }
        if diagnostics.is_empty() {
            return;
        }
        if self.files.len() >= MAX_DIAGNOSED_FILES {
            match interest {
                DocumentOpenState::Open => drop(self.files.pop_last()),
                DocumentOpenState::NotOpen => return,
            }
        }
        let mut file = FileDiagnostics::default();
        match source {
            DiagnosticDelivery::Pull => file.pulled = diagnostics,
            DiagnosticDelivery::Push => file.pushed = diagnostics,
        }
        self.files.insert(path.to_owned(), file);
    }

    pub(crate) fn remove(&mut self, path: &str) {
        self.files.remove(path);
    }

    pub(crate) fn snapshot(&self) -> DiagnosticsSnapshot {
        self.files.clone()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use serde_json::json;

    pub(crate) fn diagnostic(line: u32, message: &str, text: Option<&str>) -> LspDiagnostic {
        let position = LspPosition { line, unit: 2 };
        let text = text.map(str::to_owned);
        LspDiagnostic {
            position,
            line_and_character: (line + 1, 3),
            code: "E1".into(),
            message: message.into(),
            source_line: text,
        }
    }

    #[test]
    fn invalid_items_are_skipped() {
        let text = LineIndex::new("x = 𝄞 + 1\n".into());
        let list = json!([
            {"range": {"start": {"line": 0, "character": 6}}, "severity": 1, "code": 2322,
             "message": "no\r\n  good\u{1b}[2J"},
            {"message": "no severity, far away", "range": {"start": {"line": 99, "character": 0}}},
            {"severity": 2, "message": "a warning"}, {"severity": 4, "message": "a hint"},
            {"severity": 1}, 7, null, {"severity": 1, "message": {"kind": "markdown", "value": "m"}},
        ]);
        let diagnostics =
            parse_diagnostics(&list, MinSeverity::Error, Some(&text), PositionEncoding::Utf16);
        let messages: Vec<_> =
            diagnostics.iter().map(|one| (one.line_and_character, one.message.as_str())).collect();
        assert_eq!(
            messages,
            [((1, 6), "no good [2J"), ((2, 1), "no severity, far away"), ((1, 1), "m")]
        );
        assert_eq!(
            (diagnostics[0].code.as_str(), diagnostics[0].source_line.as_deref()),
            ("2322", Some("x = 𝄞 + 1"))
        );
        assert_eq!(
            parse_diagnostics(&list, MinSeverity::Warning, None, PositionEncoding::Utf16).len(),
            4
        );
        assert!(
            parse_diagnostics(&json!("odd"), MinSeverity::Error, None, PositionEncoding::Utf8)
                .is_empty()
        );
        let many = Value::Array(vec![json!({"message": "x".repeat(9_000)}); 600]);
        let many = parse_diagnostics(&many, MinSeverity::Error, None, PositionEncoding::Utf8);
        assert_eq!(
            (many.len(), many[0].message.chars().count()),
            (MAX_DIAGNOSTICS_PER_FILE, MAX_MESSAGE_CHARS + 1)
        );
    }

    #[test]
    fn push_and_pull_are_stored_apart_and_merged_without_duplicates() {
        let mut store = DiagnosticStore::default();
        let put = |store: &mut DiagnosticStore, source, list: &[LspDiagnostic]| {
            store.put("a.rs", source, list.into(), DocumentOpenState::Open);
            store.snapshot().get("a.rs").map(FileDiagnostics::merged).unwrap_or_default().len()
        };
        assert_eq!(
            put(
                &mut store,
                DiagnosticDelivery::Push,
                &[diagnostic(3, "a", None), diagnostic(4, "b", None)]
            ),
            2
        );
        assert_eq!(put(&mut store, DiagnosticDelivery::Pull, &[diagnostic(3, "a", Some("x"))]), 2);
        assert_eq!(put(&mut store, DiagnosticDelivery::Push, &[]), 1);
        assert_eq!(put(&mut store, DiagnosticDelivery::Pull, &[]), 0);
        assert!(store.files.is_empty());
    }

    #[test]
    fn a_flood_of_files_does_not_evict_open_documents() {
        let mut store = DiagnosticStore::default();
        for number in 0..50_000 {
            store.put(
                &format!("f{number}"),
                DiagnosticDelivery::Push,
                [diagnostic(0, "m", None)].into(),
                DocumentOpenState::NotOpen,
            );
        }
        assert_eq!(store.files.len(), MAX_DIAGNOSED_FILES);
        store.put(
            "open",
            DiagnosticDelivery::Push,
            [diagnostic(0, "m", None)].into(),
            DocumentOpenState::Open,
        );
        assert!(store.files.len() == MAX_DIAGNOSED_FILES && store.files.contains_key("open"));
    }
}
