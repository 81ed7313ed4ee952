//! Checks if two glob patterns can match the same name.
//!
//! The check is exact for `*` and `?` and treats a bracket expression as any one character. It may
//! report an overlap that does not exist, but never misses one.

/// A glob pattern, parsed into `GlobToken`s.
#[derive(Clone, Debug)]
pub(crate) struct GlobPattern(Vec<GlobToken>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GlobToken {
    /// Any text, possibly empty, including `/`.
    AnyPath,
    /// Any text within one path component.
    AnyInPart,
    /// Like `AnyInPart`, at the start of a component, where it does not match a leading dot.
    AnyAtPartStart,
    AnyChar,
    AnyCharButDot,
    Literal(char),
}

/// Limits the size of the comparison table. Longer patterns count as overlapping.
const MAX_OVERLAP_CELLS: usize = 1 << 22;

impl GlobPattern {
    /// Parses a pattern of a permission rule, where `*` also matches `/`.
    pub(crate) fn from_rule(text: &str) -> GlobPattern {
        let token = |c| match c {
            '*' => GlobToken::AnyPath,
            '?' => GlobToken::AnyChar,
            c => GlobToken::Literal(c),
        };
        GlobPattern(text.chars().map(token).collect())
    }

    /// Creates a pattern of `GlobToken::Literal`s that matches only this text.
    pub(crate) fn from_literal(text: &str) -> GlobPattern {
        GlobPattern(text.chars().map(GlobToken::Literal).collect())
    }

    /// Parses a shell pattern, where wildcards do not cross `/` and a leading dot of a component
    /// must be written out.
    pub(crate) fn from_shell(text: &str) -> GlobPattern {
        let mut tokens = Vec::new();
        let mut chars = text.chars();
        let mut first = true;
        while let Some(c) = chars.next() {
            tokens.push(match c {
                '*' if first => GlobToken::AnyAtPartStart,
                '*' => GlobToken::AnyInPart,
                '?' if first => GlobToken::AnyCharButDot,
                '?' => GlobToken::AnyChar,
                '[' => {
                    let mut rest = chars.clone();
                    match rest.by_ref().skip(1).any(|c| c == ']') {
                        true => {
                            chars = rest;
                            if first { GlobToken::AnyCharButDot } else { GlobToken::AnyChar }
                        }
                        // The bracket is not closed, so treat the rest as matching anything.
                        false => {
                            chars = "".chars();
                            GlobToken::AnyPath
                        }
                    }
                }
                c => GlobToken::Literal(c),
            });
            // After a leading `*`, a second `*` is still at the start of the component.
            first = c == '/' || (first && c == '*');
        }
        GlobPattern(tokens)
    }

    /// Creates a pattern that matches everything beneath the folder.
    pub(crate) fn beneath_folder(folder: &str) -> GlobPattern {
        match folder {
            "" | "." => GlobPattern(vec![GlobToken::AnyPath]),
            folder => {
                let literals = folder.chars().chain(['/']).map(GlobToken::Literal);
                GlobPattern(literals.chain([GlobToken::AnyPath]).collect())
            }
        }
    }

    /// Returns true if every match begins with this text.
    pub(crate) fn has_prefix(&self, prefix: &str) -> bool {
        let mut tokens = self.0.iter();
        prefix.chars().all(|c| tokens.next() == Some(&GlobToken::Literal(c)))
    }

    /// Prepends literal text.
    pub(crate) fn with_prefix(self, prefix: &str) -> GlobPattern {
        GlobPattern(prefix.chars().map(GlobToken::Literal).chain(self.0).collect())
    }
}

/// Returns true if some text matches both patterns. `other` must come from `from_rule` or
/// `from_literal`: it must not contain tokens that depend on the start of a path component.
pub(crate) fn globs_overlap(one: &GlobPattern, other: &GlobPattern) -> bool {
    let (one, other) = (&one.0, &other.0);
    if one.len().saturating_mul(other.len()) > MAX_OVERLAP_CELLS {
        return true;
    }
    let cell_at = |row: &[bool], index: usize| row.get(index).copied().unwrap_or(false);
    // `below[i]`: the rest of `one` and `other[i..]` have a common match.
    let mut below: Vec<bool> = vec![false; other.len() + 1];
    let mut empty = true;
    for (index, token) in other.iter().enumerate().rev() {
        empty = empty && *token == GlobToken::AnyPath;
        if let Some(cell) = below.get_mut(index) {
            *cell = empty;
        }
    }
    if let Some(last) = below.last_mut() {
        *last = true;
    }
    let mut next = None;
    for token in one.iter().rev() {
        let mut row = vec![false; other.len() + 1];
        // The same row, computed as if the token were `*`.
        let mut star_row = vec![false; other.len() + 1];
        for index in (0..=other.len()).rev() {
            let other_token = other.get(index).copied();
            let extends = match other_token {
                Some(GlobToken::Literal('/')) if *token != GlobToken::AnyPath => false,
                Some(_) => cell_at(&star_row, index + 1),
                None => false,
            };
            let star_match = cell_at(&below, index) || extends;
            let skips = other_token == Some(GlobToken::AnyPath) && cell_at(&row, index + 1);
            let matches = match token {
                GlobToken::AnyPath | GlobToken::AnyInPart => star_match,
                GlobToken::AnyAtPartStart => {
                    let matches_empty =
                        next != Some(GlobToken::Literal('.')) && cell_at(&below, index);
                    let matches_some = match other_token {
                        Some(GlobToken::AnyPath) => star_match,
                        Some(GlobToken::Literal('.' | '/')) | None => false,
                        Some(_) => cell_at(&star_row, index + 1),
                    };
                    matches_empty || matches_some
                }
                GlobToken::AnyChar | GlobToken::AnyCharButDot | GlobToken::Literal(_) => {
                    match other_token {
                        Some(GlobToken::AnyPath) => cell_at(&below, index),
                        Some(other) => tokens_overlap(*token, other) && cell_at(&below, index + 1),
                        None => false,
                    }
                }
            };
            for (cells, value) in [(&mut star_row, star_match), (&mut row, matches || skips)] {
                if let Some(cell) = cells.get_mut(index) {
                    *cell = value;
                }
            }
        }
        below = row;
        next = Some(*token);
    }
    cell_at(&below, 0)
}

/// Returns true if one character can match both tokens, such as `AnyCharButDot` and a letter.
fn tokens_overlap(one: GlobToken, other: GlobToken) -> bool {
    match (one, other) {
        (GlobToken::Literal(one), GlobToken::Literal(other)) => one == other,
        (GlobToken::AnyCharButDot, GlobToken::Literal(c)) => c != '.',
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{ProptestConfig, prop_assert, proptest};
    use wildmatch::WildMatch;

    #[test]
    fn a_shell_pattern_and_a_rule_overlap_if_a_name_matches_both() {
        for (shell, rule) in [
            ("s*.txt", "secret.txt"),
            ("*", "secret.txt"),
            ("*secret.txt", "secret.txt"),
            ("**", "a"),
            ("?ecret.*", "secret.txt"),
            ("[rs]ecret.txt", "secret.txt"),
            ("[]s]ecret.txt", "secret.txt"),
            ("a[bc", "a[bc"),
            (".e*", ".env"),
            ("a/*", "a/*.pem"),
            ("*/b", "a*"),
            ("*", "*.pem"),
            ("x*y", "*a*"),
            ("", "*"),
        ] {
            assert!(
                globs_overlap(&GlobPattern::from_shell(shell), &GlobPattern::from_rule(rule)),
                "{shell} {rule}"
            );
        }
        for (shell, rule) in [
            ("*.rs", "secret.txt"),
            ("*", ".env"),
            ("?env", ".env"),
            ("*.env", ".env"),
            ("*", "a/b"),
            ("a/*", "a/.env"),
            ("a*", "b*"),
            ("", "a"),
            ("a", ""),
        ] {
            assert!(
                !globs_overlap(&GlobPattern::from_shell(shell), &GlobPattern::from_rule(rule)),
                "{shell} {rule}"
            );
        }
        assert!(globs_overlap(
            &GlobPattern::beneath_folder("a"),
            &GlobPattern::from_rule("a/b/.env")
        ));
        assert!(globs_overlap(
            &GlobPattern::beneath_folder("."),
            &GlobPattern::from_rule("a/b/.env")
        ));
        assert!(!globs_overlap(
            &GlobPattern::beneath_folder("a"),
            &GlobPattern::from_rule("ab/.env")
        ));
        assert!(globs_overlap(
            &GlobPattern::from_shell("*.txt").with_prefix("a/"),
            &GlobPattern::from_rule("a/s.txt")
        ));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

        #[test]
        fn patterns_with_a_common_match_overlap(
            text in "[ab]{0,5}", one in "[ab*?]{0,5}", other in "[ab*?]{0,5}",
        ) {
            let both = WildMatch::new(&one).matches(&text) && WildMatch::new(&other).matches(&text);
            if both {
                let other = GlobPattern::from_rule(&other);
                prop_assert!(globs_overlap(&GlobPattern::from_shell(&one), &other));
                prop_assert!(globs_overlap(&GlobPattern::from_rule(&one), &other));
            }
            let literal = GlobPattern::from_literal(&text);
            let overlaps_text = globs_overlap(&GlobPattern::from_rule(&one), &literal);
            prop_assert!(overlaps_text == WildMatch::new(&one).matches(&text));
        }
    }
}
