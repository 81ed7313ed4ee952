//! Places in files: what servers call them, and what we call them.
//!
//! Servers count lines and units from 0, in an encoding that they choose, and name files by URIs.
//! We count lines and characters from 1, as files are shown, and name files by paths beneath the
//! workspace. Nothing that a server says here is trusted: what lies beyond an end is the end.
//! Pure.

use serde_json::Value;
use std::path::{Component, Path};
use std::sync::Arc;
use url::Url;

/// What a server counts within a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// Bytes.
    Utf8,
    /// Pairs of bytes, as JavaScript counts. What the protocol takes where nothing is said.
    #[default]
    Utf16,
    /// Characters.
    Utf32,
}

impl Encoding {
    fn units(self, character: char) -> u32 {
        match self {
            Encoding::Utf8 => u32::try_from(character.len_utf8()).unwrap_or(1),
            Encoding::Utf16 => u32::try_from(character.len_utf16()).unwrap_or(1),
            Encoding::Utf32 => 1,
        }
    }

    /// How many units the first characters of a line have.
    pub(crate) fn units_before(self, line: &str, characters: u32) -> u32 {
        let characters = usize::try_from(characters).unwrap_or(usize::MAX);
        line.chars().take(characters).map(|character| self.units(character)).sum()
    }

    /// How many characters of a line stand before a unit. One within a character is its start.
    pub(crate) fn characters_before(self, line: &str, unit: u32) -> u32 {
        let (mut characters, mut passed) = (0_u32, 0_u32);
        for character in line.chars() {
            passed = passed.saturating_add(self.units(character));
            if passed > unit {
                break;
            }
            characters = characters.saturating_add(1);
        }
        characters
    }
}

/// A place as a server says it: line and unit, both from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Point {
    pub(crate) line: u32,
    pub(crate) unit: u32,
}

impl Point {
    /// A point of a message. What is negative is the start, what is too much is the end.
    pub(crate) fn parse(position: &Value) -> Option<Point> {
        let number = |name: &str| {
            let number = position.get(name)?;
            let number = number.as_i64().or_else(|| number.as_u64().map(|_| i64::MAX))?;
            Some(u32::try_from(number.max(0)).unwrap_or(u32::MAX))
        };
        Some(Point { line: number("line")?, unit: number("character")? })
    }

    /// Where a range begins. One that ends before it begins is its start as well.
    pub(crate) fn start(range: &Value) -> Option<Point> {
        Point::parse(range.get("start")?)
    }

    /// The same as a message says it.
    pub(crate) fn json(self) -> Value {
        serde_json::json!({"line": self.line, "character": self.unit})
    }
}

/// A text whose lines are found quickly. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    text: Arc<str>,
    /// Where its lines begin.
    starts: Arc<[usize]>,
}

impl Text {
    pub(crate) fn new(text: Arc<str>) -> Text {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect();
        Text { text, starts }
    }

    pub(crate) fn whole(&self) -> &Arc<str> {
        &self.text
    }

    /// How many lines there are; there is always one.
    pub(crate) fn lines(&self) -> u32 {
        u32::try_from(self.starts.len()).unwrap_or(u32::MAX)
    }

    /// A line from 0, without its end; the last one if there are fewer.
    pub(crate) fn line(&self, line: u32) -> &str {
        let last = self.starts.len().saturating_sub(1);
        let line = usize::try_from(line).unwrap_or(usize::MAX).min(last);
        let start = self.starts.get(line).copied().unwrap_or_default();
        let end = self.starts.get(line + 1).map_or(self.text.len(), |next| next - 1);
        let line = self.text.get(start..end).unwrap_or_default();
        line.strip_suffix('\r').unwrap_or(line)
    }

    /// What we call a point: line and character from 1, within the text.
    pub(crate) fn ours(&self, point: Point, encoding: Encoding) -> (u32, u32) {
        if point.line >= self.lines() {
            let last = self.lines() - 1;
            let end = self.line(last).chars().count();
            return (last + 1, u32::try_from(end).unwrap_or(u32::MAX).saturating_add(1));
        }
        let characters = encoding.characters_before(self.line(point.line), point.unit);
        (point.line + 1, characters.saturating_add(1))
    }

    /// What a server calls a line and a character, which count from 1; none beyond the last line.
    pub(crate) fn theirs(&self, line: u32, character: u32, encoding: Encoding) -> Option<Point> {
        let line = line.checked_sub(1).filter(|line| *line < self.lines())?;
        let before = character.saturating_sub(1);
        Some(Point { line, unit: encoding.units_before(self.line(line), before) })
    }
}

/// Where a URI leads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Spot {
    /// To a path beneath the workspace.
    Within(String),
    /// To a file elsewhere.
    Outside(String),
    /// To no file that could be named, as it is spelled, made harmless.
    Odd(String),
}

/// The URI of a path beneath a folder.
pub(crate) fn uri(root: &Path, path: &str) -> String {
    let whole = if path == "." { root.to_owned() } else { root.join(path) };
    // The folder is a whole path, of which there always is one.
    Url::from_file_path(whole).map(String::from).unwrap_or_default()
}

/// Where a URI leads, seen from a folder.
pub(crate) fn spot(root: &Path, uri: &str) -> Spot {
    let odd = || Spot::Odd(uri.escape_default().take(300).collect());
    let Some(path) = Url::parse(uri).ok().filter(|url| url.scheme() == "file") else {
        return odd();
    };
    let Ok(path) = path.to_file_path() else { return odd() };
    let Some(name) = path.to_str().filter(|name| !name.chars().any(char::is_control)) else {
        return odd();
    };
    let plain = |path: &Path| path.components().all(|part| matches!(part, Component::Normal(_)));
    match path.strip_prefix(root) {
        Ok(within) if plain(within) && within.components().next().is_some() => {
            let parts = within.components().filter_map(|part| part.as_os_str().to_str());
            Spot::Within(parts.collect::<Vec<_>>().join("/"))
        }
        Ok(_) => odd(),
        Err(_) => Spot::Outside(name.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{Strategy, any, prop};
    use proptest::{prop_assert, prop_assert_eq, proptest};

    fn text(text: &str) -> Text {
        Text::new(text.into())
    }

    const ALL: [Encoding; 3] = [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32];

    #[test]
    fn a_character_beyond_the_first_plane_counts_as_each_encoding_counts_it() {
        let line = text("a𝄞é x");
        for (encoding, unit) in ALL.into_iter().zip([7, 4, 3]) {
            let point = line.theirs(1, 4, encoding).unwrap();
            assert_eq!(point, Point { line: 0, unit }, "{encoding:?}");
            assert_eq!(line.ours(point, encoding), (1, 4), "{encoding:?}");
        }
        // The second half of a pair, and a byte within a character, are its start.
        assert_eq!(line.ours(Point { line: 0, unit: 2 }, Encoding::Utf16), (1, 2));
        assert_eq!(line.ours(Point { line: 0, unit: 3 }, Encoding::Utf8), (1, 2));
    }

    #[test]
    fn ends_of_lines_are_no_part_of_them() {
        let text = text("one\r\ntwo\n\nfour\r\n");
        let lines: Vec<_> = (0..5).map(|line| text.line(line)).collect();
        assert_eq!((text.lines(), lines), (5, vec!["one", "two", "", "four", ""]));
        assert_eq!(text.ours(Point { line: 0, unit: 99 }, Encoding::Utf16), (1, 4));
        assert_eq!(text.theirs(1, 99, Encoding::Utf16), Some(Point { line: 0, unit: 3 }));
        assert_eq!(text.theirs(0, 1, Encoding::Utf16), None);
        assert_eq!(text.theirs(6, 1, Encoding::Utf16), None);
    }

    #[test]
    fn points_that_are_none_do_not_lead_beyond_the_text() {
        let text = text("one\ntwo");
        for (position, place) in [
            (serde_json::json!({"line": -1, "character": -7}), (1, 1)),
            (serde_json::json!({"line": 9, "character": 0}), (2, 4)),
            (serde_json::json!({"line": 1, "character": u64::MAX}), (2, 4)),
            (serde_json::json!({"line": u64::MAX, "character": 1}), (2, 4)),
        ] {
            let point = Point::parse(&position).unwrap();
            assert_eq!(text.ours(point, Encoding::Utf8), place, "{position}");
        }
        for odd in [serde_json::json!({"line": "1", "character": 0}), Value::Null] {
            assert_eq!(Point::parse(&odd), None, "{odd}");
        }
    }

    #[test]
    fn uris_are_spelled_in_many_ways() {
        let root = Path::new("/w/my project");
        let within = |path: &str| Spot::Within(path.to_owned());
        for (uri, spot_there) in [
            ("file:///w/my%20project/src/a.rs", within("src/a.rs")),
            ("file:///w/my project/src/a.rs", within("src/a.rs")),
            ("file://localhost/w/my%20project/a%2Bb%25.ts", within("a+b%.ts")),
            ("file:///w/my%20project/%C3%A9%F0%9D%84%9E.py", within("é𝄞.py")),
            ("file:///w/my%20project/x/../a.rs", within("a.rs")),
            ("file:///w/my%20project/%2e%2e/other", Spot::Outside("/w/other".into())),
            ("file:///w/my%20project2/a.rs", Spot::Outside("/w/my project2/a.rs".into())),
            ("file:///w/my%20project", Spot::Odd("file:///w/my%20project".into())),
            ("untitled:Untitled-1", Spot::Odd("untitled:Untitled-1".into())),
            ("file:///w/a%0Ab", Spot::Odd("file:///w/a%0Ab".into())),
            ("file:///w/a%00b", Spot::Odd("file:///w/a%00b".into())),
            ("file:///w/%FF", Spot::Odd("file:///w/%FF".into())),
            ("jdt://x\u{1b}[2J", Spot::Odd(r"jdt://x\u{1b}[2J".into())),
            ("", Spot::Odd(String::new())),
        ] {
            assert_eq!(spot(root, uri), spot_there, "{uri}");
        }
    }

    fn texts() -> impl Strategy<Value = String> {
        let piece = prop::sample::select(vec!["a", "é", "漢", "𝄞", "🙂", "\n", "\r\n", "\r", " "]);
        prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn every_place_of_a_text_comes_back(whole in texts(), line in 1_u32..9, at in 0_u32..20) {
            let text = text(&whole);
            for encoding in ALL {
                let Some(point) = text.theirs(line, at, encoding) else {
                    prop_assert!(line > text.lines());
                    continue;
                };
                let length = u32::try_from(text.line(line - 1).chars().count()).unwrap();
                prop_assert_eq!(text.ours(point, encoding), (line, at.clamp(1, length + 1)));
            }
        }

        #[test]
        fn whatever_a_server_says_lies_within_the_text(
            whole in texts(), line in any::<u32>(), unit in any::<u32>(), near in 0_u32..50
        ) {
            let text = text(&whole);
            for point in [Point { line, unit }, Point { line: near, unit: near }] {
                for encoding in ALL {
                    let (line, character) = text.ours(point, encoding);
                    let length = u32::try_from(text.line(line - 1).chars().count()).unwrap();
                    prop_assert!((1..=text.lines()).contains(&line));
                    prop_assert!((1..=length + 1).contains(&character));
                }
            }
        }

        #[test]
        fn the_uri_of_a_path_leads_back_to_it(parts in prop::collection::vec("[^/\\p{Cc}]{1,8}", 1..4)) {
            proptest::prop_assume!(parts.iter().all(|part| part != "." && part != ".."));
            let (root, path) = (Path::new("/w/é %"), parts.join("/"));
            prop_assert_eq!(spot(root, &uri(root, &path)), Spot::Within(path));
        }

        #[test]
        fn no_uri_leads_within_by_a_detour(uri in "(file://)?(/|%2[eEfF]|\\.|w|x|%00|\\?|#){0,12}") {
            if let Spot::Within(path) = spot(Path::new("/w"), &uri) {
                prop_assert!(!path.is_empty() && !path.starts_with('/'), "{}", path);
                prop_assert!(path.split('/').all(|part| !matches!(part, "" | "." | "..")), "{}", path);
            }
        }
    }
}
