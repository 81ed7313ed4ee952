//! Fuzzy matching of list items with `nucleo_matcher`.

use nucleo_matcher::pattern::{Atom, AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

/// A fuzzy search query.
pub struct FuzzyQuery {
    pattern: Pattern,
    words: Vec<Atom>,
    matcher: Matcher,
    char_buffer: Vec<char>,
}

/// A match of a `FuzzyQuery`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FuzzyMatch {
    /// The match quality; higher is better.
    pub score: u32,
    /// The indices of the matched grapheme clusters in the name.
    pub matched_clusters: Vec<u32>,
}

impl FuzzyQuery {
    /// Parses a query. Names match fuzzily, by letters in order; descriptions match only by
    /// substring, because in prose almost any letters occur in order.
    pub fn new(text: &str) -> FuzzyQuery {
        let (case, normalization) = (CaseMatching::Smart, Normalization::Smart);
        let substring_atom =
            |word| Atom::new(word, case, normalization, AtomKind::Substring, false);
        FuzzyQuery {
            pattern: Pattern::parse(text, case, normalization),
            words: text.split_whitespace().map(substring_atom).collect(),
            matcher: Matcher::new(Config::DEFAULT),
            char_buffer: Vec::new(),
        }
    }

    /// Matches an item by its name, or else by its description; returns `None` if neither matches.
    pub fn match_item(&mut self, name: &str, description: &str) -> Option<FuzzyMatch> {
        let mut matched_clusters = Vec::new();
        let haystack = Utf32Str::new(name, &mut self.char_buffer);
        if let Some(score) =
            self.pattern.indices(haystack, &mut self.matcher, &mut matched_clusters)
        {
            matched_clusters.sort_unstable();
            matched_clusters.dedup();
            // A match in the name ranks above any match in the description.
            return Some(FuzzyMatch { score: score + u32::from(u16::MAX), matched_clusters });
        }
        if description.is_empty() {
            return None;
        }
        let text = format!("{name} {description}");
        let haystack = Utf32Str::new(&text, &mut self.char_buffer);
        let mut score = 0;
        for word in &self.words {
            score += u32::from(word.score(haystack, &mut self.matcher)?);
        }
        Some(FuzzyMatch { score, matched_clusters: Vec::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_matches_by_letters_in_order_and_reports_their_positions() {
        let name_match = FuzzyQuery::new("fxp").match_item("Fix the parser", "").unwrap();
        assert_eq!(name_match.matched_clusters, [0, 2, 8]);
        assert_eq!(FuzzyQuery::new("pxf").match_item("Fix the parser", ""), None);
    }

    #[test]
    fn a_description_matches_by_substrings_only() {
        let description = "Takes the last change back";
        assert!(FuzzyQuery::new("last chan").match_item("undo", description).is_some());
        assert_eq!(FuzzyQuery::new("tlcb").match_item("undo", description), None);
        let (name_match, description_match) = (
            FuzzyQuery::new("undo").match_item("undo", description).unwrap(),
            FuzzyQuery::new("last").match_item("undo", description).unwrap(),
        );
        assert!(name_match.score > description_match.score);
    }

    #[test]
    fn a_wide_character_counts_as_one() {
        let name_match = FuzzyQuery::new("析").match_item("解析器", "").unwrap();
        assert_eq!(name_match.matched_clusters, [1]);
    }
}
