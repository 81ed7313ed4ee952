//! Names in code: which one is meant by a place beside it, and which fits best. Pure.

use crate::show::Raw;
use std::collections::BTreeSet;

/// Symbols with exactly that name first, then those that begin with it, then the rest.
pub(crate) fn ranked(query: &str, mut raws: Vec<Raw>) -> Vec<Raw> {
    let query = query.to_lowercase();
    let rank = |raw: &Raw| {
        let name = raw.what.split("  (in ").next().unwrap_or_default();
        let name = name.rsplit(' ').next().unwrap_or_default().to_lowercase();
        let bare = name.split('(').next().unwrap_or_default();
        match bare {
            bare if bare == query => 0,
            bare if bare.starts_with(&query) => 1,
            _ => 2,
        }
    };
    raws.sort_by_cached_key(rank);
    // Some servers name a place for each way that leads to it.
    let mut seen = BTreeSet::new();
    raws.retain(|raw| seen.insert((raw.uri.clone(), raw.point, raw.what.clone())));
    raws
}

/// Words that stand before names in most languages. Whoever points at one means the name.
const BEFORE_NAMES: [&str; 32] = [
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

/// Names of a line beside a character, nearest first, with where they begin. There are none if a
/// name stands at the character itself: then that was meant.
pub(crate) fn near(line: &str, character: u32) -> Vec<(u32, String)> {
    let letters = line.chars().chain(std::iter::once(' ')).zip(1_u32..);
    let (mut names, mut current) = (Vec::new(), None::<(u32, String)>);
    for (letter, at) in letters {
        if letter.is_alphanumeric() || letter == '_' {
            current.get_or_insert_with(|| (at, String::new())).1.push(letter);
            continue;
        }
        let Some((start, name)) = current.take() else { continue };
        let leads = BEFORE_NAMES.contains(&name.as_str());
        if (start..at).contains(&character) && !leads {
            return Vec::new();
        }
        if !leads && !name.starts_with(char::is_numeric) {
            let away = if character < start { start - character } else { character - at + 1 };
            names.push((away, start, name));
        }
    }
    names.sort();
    names.into_iter().map(|(_, start, name)| (start, name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::Point;
    use proptest::{prop_assert, proptest};

    #[test]
    fn the_nearest_names_are_tried_first() {
        let names = |line: &str, at| {
            near(line, at).into_iter().map(|(at, name)| format!("{at} {name}")).collect::<Vec<_>>()
        };
        let line = "    pub fn parse(text: &str)";
        for at in [1, 5, 9, 10] {
            assert_eq!(names(line, at), ["12 parse", "18 text", "25 str"], "{at}");
        }
        assert_eq!(names(line, 99)[..2], ["25 str", "18 text"]);
        assert!(names(line, 13).is_empty(), "a name stands there");
        assert_eq!(names("é = 𝄞1 + 22 + x", 4)[..1], ["1 é"]);
        assert!(names("  ( ) ", 3).is_empty() && names("", 1).is_empty());
    }

    #[test]
    fn symbols_of_exactly_that_name_come_first() {
        let raw = |what: &str| Raw {
            uri: "u".into(),
            point: Point::default(),
            what: what.into(),
            depth: 0,
        };
        let all = ["fn reparse", "fn parser", "method parse(x)  (in Parse)", "Parse", "Parse"];
        let ranked = ranked("parse", all.map(raw).to_vec());
        let order: Vec<_> = ranked.iter().map(|raw| raw.what.as_str()).collect();
        assert_eq!(order, ["method parse(x)  (in Parse)", "Parse", "fn parser", "fn reparse"]);
    }

    proptest! {
        #[test]
        fn names_begin_where_they_are_said_to(line in "[a-zé𝄞_ .(]{0,30}", at in 0_u32..40) {
            let letters: Vec<char> = line.chars().collect();
            for (start, name) in near(&line, at) {
                let start = usize::try_from(start).unwrap() - 1;
                let there: String = letters[start..].iter().take(name.chars().count()).collect();
                prop_assert!(there == name && !name.is_empty());
            }
        }
    }
}
