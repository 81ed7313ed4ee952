//! Selects and ranks symbol names: the names near a position, and the best matches of a query.
//! Performs no I/O.

use crate::query::locations::RawLocation;
use std::collections::BTreeSet;

/// Sorts symbols by their match with `query`: exact matches first, then prefixes, then the rest.
pub(crate) fn rank_symbols(query: &str, mut raws: Vec<RawLocation>) -> Vec<RawLocation> {
    let query = query.to_lowercase();
    let rank = |raw: &RawLocation| {
        let name = raw.label.split("  (in ").next().unwrap_or_default();
        let name = name.rsplit(' ').next().unwrap_or_default().to_lowercase();
        let bare = name.split('(').next().unwrap_or_default();
        match bare {
            bare if bare == query => 0,
            bare if bare.starts_with(&query) => 1,
            _ => 2,
        }
    };
    raws.sort_by_cached_key(rank);
    // Some servers list a location once for each path that leads to it.
    let mut seen = BTreeSet::new();
    raws.retain(|raw| seen.insert((raw.uri.clone(), raw.position, raw.label.clone())));
    raws
}

/// Keywords that precede names in most languages. A position on one refers to the name after it.
const DECLARATION_KEYWORDS: [&str; 32] = [
    "abstract",
    "async",
    "await",
    "class",
    "const",
    "constexpr",
    "def",
    "default",
    "enum",
    "export",
    "extern",
    "final",
    "fn",
    "func",
    "function",
    "impl",
    "inline",
    "interface",
    "let",
    "mut",
    "new",
    "override",
    "private",
    "protected",
    "pub",
    "public",
    "return",
    "static",
    "struct",
    "trait",
    "type",
    "var",
];

/// Returns the names near a character of a line with their start, nearest first. Returns none if
/// the character is on a name.
pub(crate) fn nearby_names(line: &str, character: u32) -> Vec<(u32, String)> {
    let chars = line.chars().chain(std::iter::once(' ')).zip(1_u32..);
    let mut names = Vec::new();
    let mut current = None::<(u32, String)>;
    for (c, column) in chars {
        if c.is_alphanumeric() || c == '_' {
            current.get_or_insert_with(|| (column, String::new())).1.push(c);
            continue;
        }
        let Some((start, name)) = current.take() else { continue };
        let is_keyword = DECLARATION_KEYWORDS.contains(&name.as_str());
        if (start..column).contains(&character) && !is_keyword {
            return Vec::new();
        }
        if !is_keyword && !name.starts_with(char::is_numeric) {
            let distance =
                if character < start { start - character } else { character - column + 1 };
            names.push((distance, start, name));
        }
    }
    names.sort();
    names.into_iter().map(|(_, start, name)| (start, name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::positions::LspPosition;
    use proptest::{prop_assert, proptest};

    #[test]
    fn the_nearest_names_are_tried_first() {
        let names = |line: &str, at| {
            nearby_names(line, at)
                .into_iter()
                .map(|(at, name)| format!("{at} {name}"))
                .collect::<Vec<_>>()
        };
        let line = "    pub fn parse(text: &str)";
        for at in [1, 5, 9, 10] {
            assert_eq!(names(line, at), ["12 parse", "18 text", "25 str"], "{at}");
        }
        assert_eq!(names(line, 99)[..2], ["25 str", "18 text"]);
        assert!(names(line, 13).is_empty(), "a name is at that position");
        assert_eq!(names("é = 𝄞1 + 22 + x", 4)[..1], ["1 é"]);
        assert!(names("  ( ) ", 3).is_empty() && names("", 1).is_empty());
    }

    #[test]
    fn symbols_of_exactly_that_name_come_first() {
        let raw = |label: &str| RawLocation {
            uri: "u".into(),
            position: LspPosition::default(),
            label: label.into(),
            depth: 0,
        };
        let all = ["fn reparse", "fn parser", "method parse(x)  (in Parse)", "Parse", "Parse"];
        let ranked = rank_symbols("parse", all.map(raw).to_vec());
        let order: Vec<_> = ranked.iter().map(|raw| raw.label.as_str()).collect();
        assert_eq!(order, ["method parse(x)  (in Parse)", "Parse", "fn parser", "fn reparse"]);
    }

    proptest! {
        #[test]
        fn nearby_names_begin_at_their_positions(line in "[a-zé𝄞_ .(]{0,30}", at in 0_u32..40) {
            let letters: Vec<char> = line.chars().collect();
            for (start, name) in nearby_names(&line, at) {
                let start = usize::try_from(start).unwrap() - 1;
                let text: String = letters[start..].iter().take(name.chars().count()).collect();
                prop_assert!(text == name && !name.is_empty());
            }
        }
    }
}
