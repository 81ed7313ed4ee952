//! Converts positions and paths between the protocol and the agent.
//!
//! Servers count lines and units from 0, in an encoding that they choose, and name files by URI.
//! The agent counts lines and characters from 1, as files are shown, and names files by paths in
//! the workspace. Server data is untrusted here: a position beyond the end becomes the end. This
//! module performs no I/O.

use serde_json::Value;
use std::path::{Component, Path};
use std::sync::Arc;
use url::Url;
use windlass_protocol::path_escapes::{escape_path, unescape_path};

/// Unit in which a server counts characters of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PositionEncoding {
    Utf8,
    /// Code units as in JavaScript; the default of the protocol.
    #[default]
    Utf16,
    /// Unicode code points.
    Utf32,
}

impl PositionEncoding {
    fn char_units(self, character: char) -> u32 {
        match self {
            PositionEncoding::Utf8 => u32::try_from(character.len_utf8()).unwrap_or(1),
            PositionEncoding::Utf16 => u32::try_from(character.len_utf16()).unwrap_or(1),
            PositionEncoding::Utf32 => 1,
        }
    }

    /// Returns the number of units in the first `characters` characters of a line.
    pub(crate) fn units_before(self, line: &str, characters: u32) -> u32 {
        let characters = usize::try_from(characters).unwrap_or(usize::MAX);
        line.chars().take(characters).map(|character| self.char_units(character)).sum()
    }

    /// Returns the number of characters before a unit. A unit inside a character counts as its
    /// start.
    pub(crate) fn characters_before(self, line: &str, unit: u32) -> u32 {
        let mut characters = 0_u32;
        let mut units = 0_u32;
        for character in line.chars() {
            units = units.saturating_add(self.char_units(character));
            if units > unit {
                break;
            }
            characters = characters.saturating_add(1);
        }
        characters
    }
}

/// A position of the protocol: line and unit, both from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LspPosition {
    pub(crate) line: u32,
    pub(crate) unit: u32,
}

impl LspPosition {
    /// Parses a position. Clamps negative numbers to 0 and large ones to `u32::MAX`.
    pub(crate) fn parse(position: &Value) -> Option<LspPosition> {
        let number = |name: &str| {
            let number = position.get(name)?;
            let number = number.as_i64().or_else(|| number.as_u64().map(|_| i64::MAX))?;
            Some(u32::try_from(number.max(0)).unwrap_or(u32::MAX))
        };
        Some(LspPosition { line: number("line")?, unit: number("character")? })
    }

    /// Parses the start of a range. The end is ignored, even if it precedes the start.
    pub(crate) fn parse_range_start(range: &Value) -> Option<LspPosition> {
        LspPosition::parse(range.get("start")?)
    }

    /// Converts the position to its JSON form.
    pub(crate) fn to_json(self) -> Value {
        serde_json::json!({"line": self.line, "character": self.unit})
    }
}

/// A text with an index of its lines. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct LineIndex {
    text: Arc<str>,
    /// Byte offsets of the lines.
    line_starts: Arc<[usize]>,
}

impl LineIndex {
    pub(crate) fn new(text: Arc<str>) -> LineIndex {
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let line_starts =
            std::iter::once(0).chain(newlines.map(|(offset, _)| offset + 1)).collect();
        LineIndex { text, line_starts }
    }

    pub(crate) fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// Returns the number of lines, at least 1.
    pub(crate) fn line_count(&self) -> u32 {
        u32::try_from(self.line_starts.len()).unwrap_or(u32::MAX)
    }

    /// Returns a line, counted from 0, without its line ending; the last one if there are fewer.
    pub(crate) fn line(&self, line: u32) -> &str {
        let last = self.line_starts.len().saturating_sub(1);
        let line = usize::try_from(line).unwrap_or(usize::MAX).min(last);
        let start = self.line_starts.get(line).copied().unwrap_or_default();
        let end = self.line_starts.get(line + 1).map_or(self.text.len(), |next| next - 1);
        let line = self.text.get(start..end).unwrap_or_default();
        line.strip_suffix('\r').unwrap_or(line)
    }

    /// Converts a position to line and character from 1, clamped to the text.
    pub(crate) fn to_line_and_character(
        &self,
        position: LspPosition,
        encoding: PositionEncoding,
    ) -> (u32, u32) {
        if position.line >= self.line_count() {
            let last = self.line_count() - 1;
            let end = self.line(last).chars().count();
            return (last + 1, u32::try_from(end).unwrap_or(u32::MAX).saturating_add(1));
        }
        let characters = encoding.characters_before(self.line(position.line), position.unit);
        (position.line + 1, characters.saturating_add(1))
    }

    /// Converts line and character from 1 to a position; `None` beyond the last line.
    pub(crate) fn to_lsp_position(
        &self,
        line: u32,
        character: u32,
        encoding: PositionEncoding,
    ) -> Option<LspPosition> {
        let line = line.checked_sub(1).filter(|line| *line < self.line_count())?;
        let before = character.saturating_sub(1);
        Some(LspPosition { line, unit: encoding.units_before(self.line(line), before) })
    }
}

/// Target of a URI.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum UriTarget {
    /// A path relative to the workspace.
    InWorkspace(String),
    /// A file outside of the workspace.
    Outside(String),
    /// No nameable file; the URI with special characters escaped.
    NotAFile(String),
}

/// Returns the `file:` URI of a path below `root`.
pub(crate) fn path_to_uri(root: &Path, path: &str) -> String {
    let absolute = if path == "." { root.to_owned() } else { root.join(unescape_path(path)) };
    // `root` is absolute, so the conversion always succeeds.
    Url::from_file_path(absolute).map(String::from).unwrap_or_default()
}

/// Resolves a URI relative to the workspace `root`.
pub(crate) fn resolve_uri(root: &Path, uri: &str) -> UriTarget {
    let not_a_file = || UriTarget::NotAFile(uri.escape_default().take(300).collect());
    let Some(path) = Url::parse(uri).ok().filter(|url| url.scheme() == "file") else {
        return not_a_file();
    };
    let Ok(path) = path.to_file_path() else { return not_a_file() };
    let is_plain = |path: &Path| path.components().all(|part| matches!(part, Component::Normal(_)));
    match path.strip_prefix(root) {
        Ok(relative) if is_plain(relative) && relative.components().next().is_some() => {
            let parts = relative.components().map(|part| escape_path(part.as_os_str()));
            let parts: Option<Vec<_>> = parts.collect();
            parts.map_or_else(not_a_file, |parts| UriTarget::InWorkspace(parts.join("/")))
        }
        Ok(_) => not_a_file(),
        Err(_) => match path.to_str().filter(|name| !name.contains(char::is_control)) {
            Some(name) => UriTarget::Outside(name.to_owned()),
            None => not_a_file(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{Strategy, any, prop};
    use proptest::{prop_assert, prop_assert_eq, proptest};

    fn text(text: &str) -> LineIndex {
        LineIndex::new(text.into())
    }

    const ALL: [PositionEncoding; 3] =
        [PositionEncoding::Utf8, PositionEncoding::Utf16, PositionEncoding::Utf32];

    #[test]
    fn positions_count_the_code_units_of_each_encoding() {
        let line = text("a𝄞é x");
        for (encoding, unit) in ALL.into_iter().zip([7, 4, 3]) {
            let position = line.to_lsp_position(1, 4, encoding).unwrap();
            assert_eq!(position, LspPosition { line: 0, unit }, "{encoding:?}");
            assert_eq!(line.to_line_and_character(position, encoding), (1, 4), "{encoding:?}");
        }
        // A position inside a surrogate pair or a multi-byte character counts as its start.
        assert_eq!(
            line.to_line_and_character(LspPosition { line: 0, unit: 2 }, PositionEncoding::Utf16),
            (1, 2)
        );
        assert_eq!(
            line.to_line_and_character(LspPosition { line: 0, unit: 3 }, PositionEncoding::Utf8),
            (1, 2)
        );
    }

    #[test]
    fn line_endings_are_not_part_of_lines() {
        let text = text("one\r\ntwo\n\nfour\r\n");
        let lines: Vec<_> = (0..5).map(|line| text.line(line)).collect();
        assert_eq!((text.line_count(), lines), (5, vec!["one", "two", "", "four", ""]));
        assert_eq!(
            text.to_line_and_character(LspPosition { line: 0, unit: 99 }, PositionEncoding::Utf16),
            (1, 4)
        );
        assert_eq!(
            text.to_lsp_position(1, 99, PositionEncoding::Utf16),
            Some(LspPosition { line: 0, unit: 3 })
        );
        assert_eq!(text.to_lsp_position(0, 1, PositionEncoding::Utf16), None);
        assert_eq!(text.to_lsp_position(6, 1, PositionEncoding::Utf16), None);
    }

    #[test]
    fn invalid_positions_are_clamped_to_the_text() {
        let text = text("one\ntwo");
        for (json, line_and_character) in [
            (serde_json::json!({"line": -1, "character": -7}), (1, 1)),
            (serde_json::json!({"line": 9, "character": 0}), (2, 4)),
            (serde_json::json!({"line": 1, "character": u64::MAX}), (2, 4)),
            (serde_json::json!({"line": u64::MAX, "character": 1}), (2, 4)),
        ] {
            let position = LspPosition::parse(&json).unwrap();
            assert_eq!(
                text.to_line_and_character(position, PositionEncoding::Utf8),
                line_and_character,
                "{json}"
            );
        }
        for invalid in [serde_json::json!({"line": "1", "character": 0}), Value::Null] {
            assert_eq!(LspPosition::parse(&invalid), None, "{invalid}");
        }
    }

    #[test]
    fn uris_resolve_to_workspace_paths() {
        let root = Path::new("/w/my project");
        let in_workspace = |path: &str| UriTarget::InWorkspace(path.to_owned());
        for (uri, target) in [
            ("file:///w/my%20project/src/a.rs", in_workspace("src/a.rs")),
            ("file:///w/my project/src/a.rs", in_workspace("src/a.rs")),
            ("file://localhost/w/my%20project/a%2Bb%25.ts", in_workspace("a+b%.ts")),
            ("file:///w/my%20project/%C3%A9%F0%9D%84%9E.py", in_workspace("é𝄞.py")),
            #[cfg(unix)]
            ("file:///w/my%20project/%FF/a%0Ab", in_workspace(r"\377/a\012b")),
            ("file:///w/my%20project/x/../a.rs", in_workspace("a.rs")),
            ("file:///w/my%20project/%2e%2e/other", UriTarget::Outside("/w/other".into())),
            ("file:///w/my%20project2/a.rs", UriTarget::Outside("/w/my project2/a.rs".into())),
            ("file:///w/my%20project", UriTarget::NotAFile("file:///w/my%20project".into())),
            ("untitled:Untitled-1", UriTarget::NotAFile("untitled:Untitled-1".into())),
            ("file:///w/a%00b", UriTarget::NotAFile("file:///w/a%00b".into())),
            ("file:///x/%FF", UriTarget::NotAFile("file:///x/%FF".into())),
            ("file:///x/a%0Ab", UriTarget::NotAFile("file:///x/a%0Ab".into())),
            ("jdt://x\u{1b}[2J", UriTarget::NotAFile(r"jdt://x\u{1b}[2J".into())),
            ("", UriTarget::NotAFile(String::new())),
        ] {
            assert_eq!(resolve_uri(root, uri), target, "{uri}");
        }
    }

    fn texts() -> impl Strategy<Value = String> {
        let piece = prop::sample::select(vec!["a", "é", "漢", "𝄞", "🙂", "\n", "\r\n", "\r", " "]);
        prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn every_position_round_trips(whole in texts(), line in 1_u32..9, character in 0_u32..20) {
            let text = text(&whole);
            for encoding in ALL {
                let Some(position) = text.to_lsp_position(line, character, encoding) else {
                    prop_assert!(line > text.line_count());
                    continue;
                };
                let length = u32::try_from(text.line(line - 1).chars().count()).unwrap();
                let expected = (line, character.clamp(1, length + 1));
                prop_assert_eq!(text.to_line_and_character(position, encoding), expected);
            }
        }

        #[test]
        fn any_server_position_lies_within_the_text(
            whole in texts(), line in any::<u32>(), unit in any::<u32>(), near in 0_u32..50
        ) {
            let text = text(&whole);
            for position in [LspPosition { line, unit }, LspPosition { line: near, unit: near }] {
                for encoding in ALL {
                    let (line, character) = text.to_line_and_character(position, encoding);
                    let length = u32::try_from(text.line(line - 1).chars().count()).unwrap();
                    prop_assert!((1..=text.line_count()).contains(&line));
                    prop_assert!((1..=length + 1).contains(&character));
                }
            }
        }

        #[test]
        fn a_path_round_trips_through_its_uri(parts in prop::collection::vec("[^/\\p{Cc}]{1,8}", 1..4)) {
            proptest::prop_assume!(parts.iter().all(|part| part != "." && part != ".."));
            let (root, path) = (Path::new("/w/é %"), parts.join("/"));
            let path = escape_path(path.as_ref()).unwrap().into_owned();
            prop_assert_eq!(resolve_uri(root, &path_to_uri(root, &path)), UriTarget::InWorkspace(path));
        }

        #[test]
        fn a_resolved_uri_has_no_dot_segments(uri in "(file://)?(/|%2[eEfF]|\\.|w|x|%00|\\?|#){0,12}") {
            if let UriTarget::InWorkspace(path) = resolve_uri(Path::new("/w"), &uri) {
                prop_assert!(!path.is_empty() && !path.starts_with('/'), "{}", path);
                prop_assert!(path.split('/').all(|part| !matches!(part, "" | "." | "..")), "{}", path);
            }
        }
    }
}
