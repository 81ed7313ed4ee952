//! Names as models spell them: `ReadFile`, `READ`, `read_file` and `functions.read` mean `read`.

/// The tool a spelling means, if it can mean only one.
pub(crate) fn repair<'a>(spelled: &str, names: &[&'a str]) -> Option<&'a str> {
    if let Some(exact) = names.iter().find(|name| **name == spelled) {
        return Some(exact);
    }
    let wanted = plain(spelled.rsplit('.').next().unwrap_or(spelled));
    let shorter = wanted.strip_suffix("file").or_else(|| wanted.strip_suffix("tool"));
    for form in [Some(wanted.as_str()), shorter].into_iter().flatten() {
        let mut meant = names.iter().filter(|name| plain(name) == form);
        if let (Some(name), None) = (meant.next(), meant.next()) {
            return Some(name);
        }
    }
    None
}

pub(crate) fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The names a person would guess were meant, nearest first.
pub fn nearest<'a>(spelled: &str, names: &[&'a str]) -> Vec<&'a str> {
    const CLOSE: f64 = 0.6;
    let mut scored: Vec<(f64, &str)> = names
        .iter()
        .map(|name| (strsim::jaro_winkler(&plain(spelled), &plain(name)), *name))
        .filter(|(score, _)| *score >= CLOSE)
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
        for (spelled, meant) in [
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
            assert_eq!(repair(spelled, NAMES), meant, "{spelled}");
        }
    }

    #[test]
    fn a_spelling_that_could_mean_two_means_none() {
        assert_eq!(repair("AB", &["a_b", "a-b"]), None);
        assert_eq!(repair("a-b", &["a_b", "a-b"]), Some("a-b"));
    }

    #[test]
    fn near_names_are_suggested_nearest_first() {
        assert_eq!(nearest("raed", NAMES).first(), Some(&"read"));
        assert!(nearest("zzz", NAMES).is_empty());
    }
}
