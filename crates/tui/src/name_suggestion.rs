//! The name that the user probably meant, for an unknown one.

/// Returns the candidate that is most similar to `name`: one that begins with it, or that differs
/// by a typing mistake or two. `None` if none is similar.
pub fn closest_name<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let max_edits = (name.chars().count() / 3).max(1);
    let distance = |candidate: &str| match strsim::damerau_levenshtein(name, candidate) {
        edits if edits <= max_edits => Some(edits),
        _ if name.len() > 2 && candidate.starts_with(name) => Some(max_edits + 1),
        _ if candidate.len() > 2 && name.starts_with(candidate) => Some(max_edits + 1),
        _ => None,
    };
    let ranked =
        candidates.into_iter().filter_map(|name| distance(name).map(|edits| (edits, name)));
    // `modle` is rather `model` than `mode`.
    let rank = |(edits, candidate): &(usize, &str)| (*edits, candidate.len().abs_diff(name.len()));
    ranked.min_by_key(rank).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_name_suggests_the_most_similar_one() {
        let names = ["mode", "model", "sessions", "compact", "quit"];
        for (typed, meant) in [
            ("modle", Some("model")),
            ("sesions", Some("sessions")),
            ("compaction", Some("compact")),
            ("session", Some("sessions")),
            ("quti", Some("quit")),
            ("banana", None),
            ("", None),
        ] {
            assert_eq!(closest_name(typed, names), meant, "{typed}");
        }
    }
}
