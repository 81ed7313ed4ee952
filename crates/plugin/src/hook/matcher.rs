//! The tools a hook is about. The pattern comes from people's configs and the name from a model, so
//! matching takes time that grows with the name alone, and the pattern has a bound.

use regex::{Regex, RegexBuilder};

/// How large a pattern may become once it is compiled, in bytes.
const LARGEST: usize = 1 << 20;

/// A pattern that has to fit a whole name.
pub(super) struct Matcher(Regex);

impl Matcher {
    /// Reads a pattern, or says what is wrong with it.
    pub(super) fn new(pattern: &str) -> Result<Matcher, String> {
        // Checked by itself first: a bracket too many must not undo what it is put in.
        let compiled = |text: &str| RegexBuilder::new(text).size_limit(LARGEST).build();
        let wrong = |error: regex::Error| format!("the matcher `{pattern}` is no pattern: {error}");
        compiled(pattern).map_err(wrong)?;
        Ok(Matcher(compiled(&format!(r"\A(?:{pattern})\z")).map_err(wrong)?))
    }

    /// True if a name is among those it describes.
    pub(super) fn fits(&self, name: &str) -> bool {
        self.0.is_match(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_fits_whole_names() {
        let matcher = Matcher::new("edit|write|git_.*").unwrap();
        for name in ["edit", "write", "git_status", "git_"] {
            assert!(matcher.fits(name), "{name}");
        }
        for name in ["", "Edit", "edits", "notebook_edit", "edit\n", "write ", "legit_x"] {
            assert!(!matcher.fits(name), "{name}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_said() {
        for pattern in ["(", "a)|(b", "[", "(?=x)", "(a{1000}){1000}"] {
            let why = Matcher::new(pattern).err().unwrap();
            assert!(why.contains("is no pattern"), "{pattern}: {why}");
        }
    }

    #[test]
    fn a_pattern_that_is_slow_elsewhere_is_not() {
        let matcher = Matcher::new("(a+)+$").unwrap();
        let name = format!("{}!", "a".repeat(100_000));
        assert!(!matcher.fits(&name));
    }
}
