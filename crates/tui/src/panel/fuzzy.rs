//! Finding things by a few letters of them.

use nucleo_matcher::pattern::{Atom, AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

/// What is looked for.
pub struct Wanted {
    pattern: Pattern,
    words: Vec<Atom>,
    matcher: Matcher,
    room: Vec<char>,
}

/// How well something fits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fit {
    /// The higher, the better.
    pub score: u32,
    /// Which clusters of its name are what was looked for.
    pub hits: Vec<u32>,
}

impl Wanted {
    /// Letters in order for a name; whole pieces for prose, where any letters stand in any order.
    pub fn new(text: &str) -> Wanted {
        let (case, form) = (CaseMatching::Smart, Normalization::Smart);
        let piece = |word| Atom::new(word, case, form, AtomKind::Substring, false);
        Wanted {
            pattern: Pattern::parse(text, case, form),
            words: text.split_whitespace().map(piece).collect(),
            matcher: Matcher::new(Config::DEFAULT),
            room: Vec::new(),
        }
    }

    /// Whether something with this name, and with these words about it, is meant.
    pub fn fit(&mut self, name: &str, about: &str) -> Option<Fit> {
        let mut hits = Vec::new();
        let hay = Utf32Str::new(name, &mut self.room);
        if let Some(score) = self.pattern.indices(hay, &mut self.matcher, &mut hits) {
            hits.sort_unstable();
            hits.dedup();
            // A name counts for more than what is said about it.
            return Some(Fit { score: score + u32::from(u16::MAX), hits });
        }
        if about.is_empty() {
            return None;
        }
        let all = format!("{name} {about}");
        let hay = Utf32Str::new(&all, &mut self.room);
        let mut score = 0;
        for word in &self.words {
            score += u32::from(word.score(hay, &mut self.matcher)?);
        }
        Some(Fit { score, hits: Vec::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_by_letters_in_order_and_says_which() {
        let fit = Wanted::new("fxp").fit("Fix the parser", "").unwrap();
        assert_eq!(fit.hits, [0, 2, 8]);
        assert_eq!(Wanted::new("pxf").fit("Fix the parser", ""), None);
    }

    #[test]
    fn prose_is_found_by_whole_pieces_only() {
        let about = "Takes the last change back";
        assert!(Wanted::new("last chan").fit("undo", about).is_some());
        assert_eq!(Wanted::new("tlcb").fit("undo", about), None);
        let (name, prose) = (
            Wanted::new("undo").fit("undo", about).unwrap(),
            Wanted::new("last").fit("undo", about).unwrap(),
        );
        assert!(name.score > prose.score);
    }

    #[test]
    fn wide_letters_count_as_one() {
        let fit = Wanted::new("析").fit("解析器", "").unwrap();
        assert_eq!(fit.hits, [1]);
    }
}
