//! The `MultiOccurrence` strategy: replaces the text everywhere.

use super::{EditError, MatchStrategy, TextReplacement, TextSplice};

/// Replaces every occurrence from the front. A single one is reported as `Exact`.
pub(super) fn find(text: &str, old: &str, new: &str) -> Option<Result<TextReplacement, EditError>> {
    let matches = text.match_indices(old);
    let to_splice =
        |(offset, _)| TextSplice { range: offset..offset + old.len(), new_text: new.to_owned() };
    let splices: Vec<TextSplice> = matches.map(to_splice).collect();
    let strategy = match splices.len() {
        0 => return None,
        1 => MatchStrategy::Exact,
        _ => MatchStrategy::MultiOccurrence,
    };
    Some(Ok(TextReplacement { splices, strategy }))
}

#[cfg(test)]
mod tests {
    use super::super::tests::apply_edit;
    use super::super::{MatchStrategy, ReplaceCount};

    #[test]
    fn every_occurrence_is_replaced() {
        for (text, old, new, after, strategy) in [
            ("a b a", "a", "$&", "$& b $&", MatchStrategy::MultiOccurrence),
            ("aaaaa", "aa", "b", "bba", MatchStrategy::MultiOccurrence),
            ("a b", "a", "aa", "aa b", MatchStrategy::Exact),
        ] {
            assert_eq!(apply_edit(text, old, new, ReplaceCount::All), (after.into(), strategy));
        }
    }
}
