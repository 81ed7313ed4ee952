//! The same text, at every place.

use super::{Miss, Replaced, Splice, Strategy};

/// Replaces every occurrence, from the front; a single one is an exact match like any other.
pub(super) fn find(text: &str, old: &str, new: &str) -> Option<Result<Replaced, Miss>> {
    let places = text.match_indices(old);
    let splice = |(at, _)| Splice { range: at..at + old.len(), new: new.to_owned() };
    let splices: Vec<Splice> = places.map(splice).collect();
    let strategy = match splices.len() {
        0 => return None,
        1 => Strategy::Exact,
        _ => Strategy::MultiOccurrence,
    };
    Some(Ok(Replaced { splices, strategy }))
}

#[cfg(test)]
mod tests {
    use super::super::tests::applied;
    use super::super::{Count, Strategy};

    #[test]
    fn every_occurrence_is_replaced() {
        for (text, old, new, after, strategy) in [
            ("a b a", "a", "$&", "$& b $&", Strategy::MultiOccurrence),
            ("aaaaa", "aa", "b", "bba", Strategy::MultiOccurrence),
            ("a b", "a", "aa", "aa b", Strategy::Exact),
        ] {
            assert_eq!(applied(text, old, new, Count::All), (after.into(), strategy));
        }
    }
}
