//! The `EscapeNormalized` strategy: the text matches after unescaping, because the edit was escaped
//! once too often.

use super::text_lines::{find_occurrences, has_word_boundaries};
use super::work_limit::MAX_CANDIDATES;
use super::{EditSite, MatchOutcome, MatchStrategyInput, TextSplice, UnsafeMatchReason};
use std::collections::BTreeSet;

pub(super) fn find(context: &MatchStrategyInput<'_>) -> MatchOutcome {
    let Some(old) = unescape(context.old) else { return MatchOutcome::NoMatch };
    if old.escaped_chars.is_empty() || old.text.trim().is_empty() {
        return MatchOutcome::NoMatch;
    }
    let text = context.lines.text();
    let mut offsets = find_occurrences(text, &old.text, MAX_CANDIDATES + 1);
    let lines = |offset: usize| context.lines.lines_touching(&(offset..offset + old.text.len()));
    if offsets.len() > MAX_CANDIDATES {
        return MatchOutcome::Ambiguous(
            offsets.iter().map(|offset| lines(*offset).start).collect(),
        );
    }
    offsets.retain(|offset| has_word_boundaries(text, &(*offset..*offset + old.text.len())));
    let Some(first) = offsets.first() else { return MatchOutcome::NoMatch };
    let Some(new) = unescape(context.new).filter(|new| new.is_escaped_like(&old)) else {
        return MatchOutcome::Uncertain {
            lines: lines(*first),
            uncertainty: UnsafeMatchReason::EscapesDiffer,
        };
    };
    let to_site = |offset: usize| {
        let splices =
            vec![TextSplice { range: offset..offset + old.text.len(), new_text: new.text.clone() }];
        EditSite { lines: lines(offset), splices }
    };
    MatchOutcome::Sites(offsets.into_iter().map(to_site).collect())
}

/// Returns true if the file contains the old text after unescaping.
pub(super) fn matches_unescaped(context: &MatchStrategyInput<'_>) -> bool {
    let unescaped = unescape(context.old).filter(|old| !old.escaped_chars.is_empty());
    unescaped.is_some_and(|old| context.lines.text().contains(&old.text))
}

/// Returns true if `old` has escapes and equals `file` after unescaping.
pub(super) fn matches_line_unescaped(old: &str, file: &str) -> bool {
    let unescaped = unescape(old).filter(|old| !old.escaped_chars.is_empty());
    unescaped.is_some_and(|old| old.text.trim() == file.trim())
}

/// An unescaped text, with statistics about its escapes.
struct UnescapedText {
    text: String,
    /// Characters that occur escaped.
    escaped_chars: BTreeSet<char>,
    /// Escapable characters that occur unescaped.
    raw_chars: BTreeSet<char>,
    /// True if an escape occurs inside quotes that it would break.
    breaks_quotes: bool,
}

impl UnescapedText {
    /// Returns true if this text is escaped like `old`: characters escaped there never occur raw
    /// here, and nothing else is escaped. An escape of another kind could be meant literally.
    fn is_escaped_like(&self, old: &UnescapedText) -> bool {
        self.escaped_chars.is_subset(&old.escaped_chars)
            && self.raw_chars.is_disjoint(&old.escaped_chars)
            && old.raw_chars.is_disjoint(&old.escaped_chars)
            && !self.breaks_quotes
    }
}

/// Unescapes a text; `None` if a backslash starts no known escape.
fn unescape(text: &str) -> Option<UnescapedText> {
    let mut unescaped = UnescapedText {
        text: String::with_capacity(text.len()),
        escaped_chars: BTreeSet::new(),
        raw_chars: BTreeSet::new(),
        breaks_quotes: false,
    };
    let mut quotes = [('"', 0_usize), ('\'', 0), ('`', 0)];
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        let is_escape = character == '\\';
        let unescaped_char = if is_escape {
            match characters.next()? {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                plain @ ('"' | '\'' | '`' | '\\' | '$') => plain,
                _ => return None,
            }
        } else {
            character
        };
        if is_escape {
            unescaped.escaped_chars.insert(unescaped_char);
            let in_quotes = quotes.iter().any(|(_, count)| count % 2 == 1);
            unescaped.breaks_quotes |= in_quotes && matches!(unescaped_char, '\n' | '\t' | '\r');
        } else if matches!(unescaped_char, '\n' | '\t' | '\r' | '"' | '\'' | '`' | '$') {
            unescaped.raw_chars.insert(unescaped_char);
        }
        for (quote, count) in &mut quotes {
            match unescaped_char {
                '\n' => *count = 0,
                other if other == *quote => *count += 1,
                _ => {}
            }
        }
        unescaped.text.push(unescaped_char);
    }
    Some(unescaped)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{apply_edit, edit_error};
    use super::super::{EditError, MatchStrategy, ReplaceCount, UnsafeMatchReason};

    #[test]
    fn an_edit_that_was_escaped_twice_is_unescaped() {
        for (text, old, new, after) in [
            ("a\nb\nc\n", r"a\nb", r"a\nx", "a\nx\nc\n"),
            ("say(\"hi\");\n", r#"say(\"hi\")"#, r#"say(\"ho\")"#, "say(\"ho\");\n"),
            ("\tf(\"a\\n\")\n", r#"\tf(\"a\\n\")"#, r#"\tg(\"b\\n\")"#, "\tg(\"b\\n\")\n"),
            ("it's\n", r"it\'s", r"that\'s", "that's\n"),
        ] {
            let found = apply_edit(text, old, new, ReplaceCount::One);
            assert_eq!(found, (after.into(), MatchStrategy::EscapeNormalized), "{old:?}");
        }
    }

    #[test]
    fn part_of_a_longer_word_does_not_match() {
        for (text, old, new) in [
            ("max = \"1\"\n", r#"x = \"1\""#, r#"x = \"2\""#),
            ("f(\"a\") or brief\n", r#"f(\"a\") or b"#, r#"f(\"a\") or c"#),
        ] {
            let error = edit_error(text, old, new, ReplaceCount::One);
            assert!(matches!(error, EditError::NotFound { .. }), "{text:?} {error:?}");
        }
        let text = "max = \"1\"\nx = \"1\"\n";
        let (after, _) = apply_edit(text, r#"x = \"1\""#, r#"x = \"2\""#, ReplaceCount::One);
        assert_eq!(after, "max = \"1\"\nx = \"2\"\n");
    }

    #[test]
    fn an_ambiguous_escape_is_not_guessed() {
        for (text, old, new) in [
            // Only the quotes were escaped in the old text, and the new one has a line feed.
            ("say(\"hi\");\n", r#"say(\"hi\")"#, r#"say(\"ho\n\")"#),
            // The new text was not escaped.
            ("say(\"hi\");\n", r#"say(\"hi\")"#, r#"say("ho")"#),
            // A line feed inside quotes.
            ("a()\nb()\n", r"a()\nb()", r#"a()\nb("x\n")"#),
            // Both escaped and raw line feeds.
            ("a\nb\nc\n", "a\\nb\nc", r"a\nx"),
        ] {
            let error = edit_error(text, old, new, ReplaceCount::One);
            let EditError::Uncertain { uncertainty, .. } = error else {
                panic!("{old:?} {error:?}")
            };
            assert_eq!(uncertainty, UnsafeMatchReason::EscapesDiffer);
        }
    }

    #[test]
    fn an_escaped_edit_is_not_treated_as_outdated() {
        let text = "fn greet() {\n    say(\"hi\");\n    let b = 2;\n    done();\n}\n";
        let old = text.replace('"', "\\\"");
        let new = old.replace("    done", "    say(\\\"ho\\\");\n    done");
        let (after, _) = apply_edit(text, &old, &new, ReplaceCount::One);
        assert_eq!(after, text.replace("    done", "    say(\"ho\");\n    done"));
        let (old, new) = (old.replace("b = 2", "b = 3"), new.replace("b = 2", "b = 3"));
        let error = edit_error(text, &old, &new, ReplaceCount::One);
        assert!(
            matches!(
                error,
                EditError::Uncertain { uncertainty: UnsafeMatchReason::EscapesDiffer, .. }
            ),
            "{error:?}"
        );
    }

    #[test]
    fn an_unknown_escape_is_not_unescaped() {
        let error = edit_error("a\nb\n", r"a\nb\d", r"x\d", ReplaceCount::One);
        assert!(matches!(error, EditError::NotFound { .. }), "{error:?}");
    }
}
