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

/// Names of other agents' tools, normalized, and the tool that does the same.
const OTHER_NAMES: &[(&str, &[&str])] = &[
    ("bash", &["shell", "sh", "terminal", "exec", "execute", "run", "cmd", "command"]),
    ("bash", &["runcommand", "executecommand", "execcommand", "runterminalcmd", "localshell"]),
    ("read", &["ls", "list", "listdir", "listdirectory", "cat", "view", "open", "openfile"]),
    ("grep", &["search", "rg", "ripgrep", "searchfiles", "grepsearch", "codebasesearch"]),
    ("glob", &["find", "findfiles", "filesearch", "listfiles"]),
    ("write", &["createfile", "create", "save", "savefile"]),
    ("edit", &["strreplace", "replace", "replaceinfile", "searchreplace", "multiedit"]),
    ("apply_patch", &["patch", "applydiff"]),
    ("todowrite", &["todo", "todos", "updateplan", "todolist"]),
    ("webfetch", &["fetch", "browse", "openurl", "geturl"]),
    ("task", &["agent", "delegate", "subagent", "spawnagent"]),
    ("question", &["ask", "askuser", "askuserquestion", "askfollowupquestion"]),
];

/// Returns the tool that does what a tool of this name does in other agents.
pub(crate) fn equivalent_tool<'a>(spelling: &str, names: &[&'a str]) -> Option<&'a str> {
    let normalized = normalize_name(spelling);
    let mut rows = OTHER_NAMES.iter().filter(|(_, others)| others.contains(&normalized.as_str()));
    rows.find_map(|(tool, _)| names.iter().find(|name| *name == tool).copied())
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
        assert_eq!(equivalent_tool("list_dir", NAMES), Some("read"));
        assert_eq!(equivalent_tool("shell", NAMES), None, "bash is not offered");
        assert!(closest_names("zzz", NAMES).is_empty());
        assert_eq!(likely_names("antropic", &["openai", "anthropic"]), ["anthropic"]);
        assert!(likely_names("nope", &["openai", "openrouter", "cohere"]).is_empty());
    }
}
