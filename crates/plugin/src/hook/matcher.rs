//! Matches the tool names that a hook applies to. The pattern comes from a config and the name from
//! a model, so matching takes time linear in the name, and the size of the pattern is bounded.

use regex::{Regex, RegexBuilder};

/// Bounds the size of a compiled pattern in bytes.
const MAX_REGEX_BYTES: usize = 1 << 20;

/// A regular expression that must match a whole name.
pub(super) struct HookMatcher(Regex);

impl HookMatcher {
    /// Compiles a pattern, or returns an error message.
    pub(super) fn new(pattern: &str) -> Result<HookMatcher, String> {
        // Compile the pattern alone first: an unbalanced bracket must not escape the group around
        // it.
        let compile = |text: &str| RegexBuilder::new(text).size_limit(MAX_REGEX_BYTES).build();
        let to_message = |error: regex::Error| format!("invalid matcher `{pattern}`: {error}");
        compile(pattern).map_err(to_message)?;
        Ok(HookMatcher(compile(&format!(r"\A(?:{pattern})\z")).map_err(to_message)?))
    }

    /// Returns true if the pattern matches the whole `name`.
    pub(super) fn matches(&self, name: &str) -> bool {
        self.0.is_match(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_must_match_the_whole_name() {
        let matcher = HookMatcher::new("edit|write|git_.*").unwrap();
        for name in ["edit", "write", "git_status", "git_"] {
            assert!(matcher.matches(name), "{name}");
        }
        for name in ["", "Edit", "edits", "notebook_edit", "edit\n", "write ", "legit_x"] {
            assert!(!matcher.matches(name), "{name}");
        }
    }

    #[test]
    fn an_invalid_pattern_is_an_error() {
        for pattern in ["(", "a)|(b", "[", "(?=x)", "(a{1000}){1000}"] {
            let error = HookMatcher::new(pattern).err().unwrap();
            assert!(error.contains("invalid matcher"), "{pattern}: {error}");
        }
    }

    #[test]
    fn a_backtracking_pattern_matches_in_linear_time() {
        let matcher = HookMatcher::new("(a+)+$").unwrap();
        let name = format!("{}!", "a".repeat(100_000));
        assert!(!matcher.matches(&name));
    }
}
