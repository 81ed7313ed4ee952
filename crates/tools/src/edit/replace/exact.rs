//! The same text, once.

use super::budget::LISTED;
use super::lines::{Lines, occurrences};
use super::{Count, Miss, Replaced, Splice, Strategy};

/// Replaces the only occurrence; overlapping ones are several.
pub(super) fn find(text: &str, old: &str, new: &str) -> Option<Result<Replaced, Miss>> {
    let found = occurrences(text, old, LISTED + 1);
    let at = *found.first()?;
    if found.len() > 1 {
        let lines = Lines::of(text);
        let lines = found.into_iter().map(|at| lines.at(at)).collect();
        return Some(Err(Miss::ambiguous(Strategy::Exact, lines, Count::One)));
    }
    let splices = vec![Splice { range: at..at + old.len(), new: new.to_owned() }];
    Some(Ok(Replaced { splices, strategy: Strategy::Exact }))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{applied, refused};
    use super::super::{Count, Miss, Strategy};

    #[test]
    fn the_only_occurrence_is_replaced_literally() {
        for (text, old, new, after) in [
            ("a b c", "b", "x", "a x c"),
            ("a\nb\n", "a\n", "x", "xb\n"),
            ("a\nb", "\nb", "", "a"),
            ("cost", "cost", "$& $1 \\0", "$& $1 \\0"),
            ("“ä”", "ä", "ö", "“ö”"),
            ("a\nb\n", "a\r\nb", "c\r\nd", "c\nd\n"),
        ] {
            assert_eq!(applied(text, old, new, Count::One), (after.into(), Strategy::Exact));
        }
    }

    #[test]
    fn two_occurrences_are_ambiguous_even_if_they_overlap() {
        let strategy = Strategy::Exact;
        let miss = refused("a\naa\n", "a", "b", Count::One);
        assert_eq!(miss, Miss::Ambiguous { strategy, lines: vec![1, 2, 2], count: Count::One });
        let miss = refused("xaaax", "aa", "b", Count::One);
        assert_eq!(miss, Miss::Ambiguous { strategy, lines: vec![1, 1], count: Count::One });
    }
}
