//! Tool names as models spell them: `ReadFile`, `READ`, `read_file` and `functions.read` mean
//! `read`.

/// Returns the tool that a spelling means, if it is unambiguous.
pub(crate) fn match_tool_name<'a>(spelling: &str, names: &[&'a str]) -> Option<&'a str> {
    if let Some(exact) = names.iter().find(|name| **name == spelling) {
        return Some(exact);
    }
    let normalized = normalize_name(spelling.rsplit('.').next().unwrap_or(spelling));
    let without_suffix =
        normalized.strip_suffix("file").or_else(|| normalized.strip_suffix("tool"));
    for candidate in [Some(normalized.as_str()), without_suffix].into_iter().flatten() {
        let mut matching = names.iter().filter(|name| normalize_name(name) == candidate);
        if let (Some(name), None) = (matching.next(), matching.next()) {
            return Some(name);
        }
    }
    None
}

pub(crate) fn normalize_name(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Returns up to three similar names, the most similar first.
pub fn closest_names<'a>(spelling: &str, names: &[&'a str]) -> Vec<&'a str> {
    names_by_similarity(spelling, names, 0.6)
}

/// Returns up to three names that the spelling is probably a typo of.
pub fn likely_names<'a>(spelling: &str, names: &[&'a str]) -> Vec<&'a str> {
    names_by_similarity(spelling, names, 0.8)
}

/// Returns up to three names with at least this Jaro-Winkler similarity.
fn names_by_similarity<'a>(spelling: &str, names: &[&'a str], min: f64) -> Vec<&'a str> {
    let mut scored: Vec<(f64, &str)> = names
        .iter()
        .map(|name| (strsim::jaro_winkler(&normalize_name(spelling), &normalize_name(name)), *name))
        .filter(|(score, _)| *score >= min)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter().take(3).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &[&str] = &["apply_patch", "read", "todo-read", "write"];

    #[test]
    fn spellings_reach_their_tool() {
        for (spelling, expected) in [
            ("read", Some("read")),
            ("READ", Some("read")),
            ("ReadFile", Some("read")),
            ("read_file", Some("read")),
            ("functions.read", Some("read")),
            ("ApplyPatch", Some("apply_patch")),
            ("TodoRead", Some("todo-read")),
            ("write-tool", Some("write")),
            ("rad", None),
            ("", None),
        ] {
            assert_eq!(match_tool_name(spelling, NAMES), expected, "{spelling}");
        }
    }

    #[test]
    fn an_ambiguous_spelling_matches_no_tool() {
        assert_eq!(match_tool_name("AB", &["a_b", "a-b"]), None);
        assert_eq!(match_tool_name("a-b", &["a_b", "a-b"]), Some("a-b"));
    }

    #[test]
    fn similar_names_are_suggested_most_similar_first() {
        assert_eq!(closest_names("raed", NAMES).first(), Some(&"read"));
        assert!(closest_names("zzz", NAMES).is_empty());
        assert_eq!(likely_names("antropic", &["openai", "anthropic"]), ["anthropic"]);
        assert!(likely_names("nope", &["openai", "openrouter", "cohere"]).is_empty());
    }
}
