//! The same text, once its escapes are read: the edit was quoted once too often.

use super::budget::PLACES;
use super::lines::{is_apart, occurrences};
use super::{Doubt, Outcome, Scene, Site, Splice};
use std::collections::BTreeSet;

pub(super) fn find(scene: &Scene<'_>) -> Outcome {
    let Some(old) = read(scene.old) else { return Outcome::Nothing };
    if old.kinds.is_empty() || old.text.trim().is_empty() {
        return Outcome::Nothing;
    }
    let text = scene.lines.text();
    let mut found = occurrences(text, &old.text, PLACES + 1);
    let lines = |at: usize| scene.lines.touched(&(at..at + old.text.len()));
    if found.len() > PLACES {
        return Outcome::Many(found.iter().map(|at| lines(*at).start).collect());
    }
    found.retain(|at| is_apart(text, &(*at..*at + old.text.len())));
    let Some(first) = found.first() else { return Outcome::Nothing };
    let Some(new) = read(scene.new).filter(|new| new.escaped_like(&old)) else {
        return Outcome::Doubtful { lines: lines(*first), doubt: Doubt::Escapes };
    };
    let site = |at: usize| {
        let splices = vec![Splice { range: at..at + old.text.len(), new: new.text.clone() }];
        Site { lines: lines(at), splices }
    };
    Outcome::Sites(found.into_iter().map(site).collect())
}

/// Whether the old text stands in the file once its escapes are read.
pub(super) fn stands(scene: &Scene<'_>) -> bool {
    let read = read(scene.old).filter(|old| !old.kinds.is_empty());
    read.is_some_and(|old| scene.lines.text().contains(&old.text))
}

/// Whether a line reads like another one only once its escapes are read.
pub(super) fn explains(old: &str, file: &str) -> bool {
    let read = read(old).filter(|old| !old.kinds.is_empty());
    read.is_some_and(|old| old.text.trim() == file.trim())
}

/// A text whose escapes were read.
struct Read {
    text: String,
    /// The characters that were escaped somewhere.
    kinds: BTreeSet<char>,
    /// Those of them that can be escaped and are not somewhere.
    raw: BTreeSet<char>,
    /// Whether an escape stands within quotes that it would break.
    within_quotes: bool,
}

impl Read {
    /// Whether this text was escaped as the other one: what is escaped there is never raw here, and
    /// nothing else is escaped. An escape of another kind could be meant as it is written.
    fn escaped_like(&self, old: &Read) -> bool {
        self.kinds.is_subset(&old.kinds)
            && self.raw.is_disjoint(&old.kinds)
            && old.raw.is_disjoint(&old.kinds)
            && !self.within_quotes
    }
}

/// Reads escapes; none if a backslash begins no escape.
fn read(text: &str) -> Option<Read> {
    let mut read = Read {
        text: String::with_capacity(text.len()),
        kinds: BTreeSet::new(),
        raw: BTreeSet::new(),
        within_quotes: false,
    };
    let mut quotes = [('"', 0_usize), ('\'', 0), ('`', 0)];
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        let escaped = character == '\\';
        let meant = if escaped {
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
        if escaped {
            read.kinds.insert(meant);
            let open = quotes.iter().any(|(_, seen)| seen % 2 == 1);
            read.within_quotes |= open && matches!(meant, '\n' | '\t' | '\r');
        } else if matches!(meant, '\n' | '\t' | '\r' | '"' | '\'' | '`' | '$') {
            read.raw.insert(meant);
        }
        for (quote, seen) in &mut quotes {
            match meant {
                '\n' => *seen = 0,
                found if found == *quote => *seen += 1,
                _ => {}
            }
        }
        read.text.push(meant);
    }
    Some(read)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{applied, refused};
    use super::super::{Count, Doubt, Miss, Strategy};

    #[test]
    fn an_edit_that_was_quoted_twice_is_read_once_more() {
        for (text, old, new, after) in [
            ("a\nb\nc\n", r"a\nb", r"a\nx", "a\nx\nc\n"),
            ("say(\"hi\");\n", r#"say(\"hi\")"#, r#"say(\"ho\")"#, "say(\"ho\");\n"),
            ("\tf(\"a\\n\")\n", r#"\tf(\"a\\n\")"#, r#"\tg(\"b\\n\")"#, "\tg(\"b\\n\")\n"),
            ("it's\n", r"it\'s", r"that\'s", "that's\n"),
        ] {
            let found = applied(text, old, new, Count::One);
            assert_eq!(found, (after.into(), Strategy::EscapeNormalised), "{old:?}");
        }
    }

    #[test]
    fn a_part_of_a_longer_word_is_not_the_word() {
        for (text, old, new) in [
            ("max = \"1\"\n", r#"x = \"1\""#, r#"x = \"2\""#),
            ("f(\"a\") or brief\n", r#"f(\"a\") or b"#, r#"f(\"a\") or c"#),
        ] {
            let miss = refused(text, old, new, Count::One);
            assert!(matches!(miss, Miss::Missing { .. }), "{text:?} {miss:?}");
        }
        let text = "max = \"1\"\nx = \"1\"\n";
        let (after, _) = applied(text, r#"x = \"1\""#, r#"x = \"2\""#, Count::One);
        assert_eq!(after, "max = \"1\"\nx = \"2\"\n");
    }

    #[test]
    fn an_escape_that_could_be_meant_as_it_is_written_is_not_guessed() {
        for (text, old, new) in [
            // Only the quotes were escaped in the old text, and the new one has a line feed.
            ("say(\"hi\");\n", r#"say(\"hi\")"#, r#"say(\"ho\n\")"#),
            // The new text was not escaped.
            ("say(\"hi\");\n", r#"say(\"hi\")"#, r#"say("ho")"#),
            // A line feed within quotes.
            ("a()\nb()\n", r"a()\nb()", r#"a()\nb("x\n")"#),
            // Escaped here, raw there.
            ("a\nb\nc\n", "a\\nb\nc", r"a\nx"),
        ] {
            let miss = refused(text, old, new, Count::One);
            let Miss::Uncertain { doubt, .. } = miss else { panic!("{old:?} {miss:?}") };
            assert_eq!(doubt, Doubt::Escapes);
        }
    }

    #[test]
    fn an_escaped_edit_is_never_taken_for_a_stale_one() {
        let text = "fn greet() {\n    say(\"hi\");\n    let b = 2;\n    done();\n}\n";
        let old = text.replace('"', "\\\"");
        let new = old.replace("    done", "    say(\\\"ho\\\");\n    done");
        let (after, _) = applied(text, &old, &new, Count::One);
        assert_eq!(after, text.replace("    done", "    say(\"ho\");\n    done"));
        let (old, new) = (old.replace("b = 2", "b = 3"), new.replace("b = 2", "b = 3"));
        let miss = refused(text, &old, &new, Count::One);
        assert!(matches!(miss, Miss::Uncertain { doubt: Doubt::Escapes, .. }), "{miss:?}");
    }

    #[test]
    fn a_backslash_that_is_no_escape_stays_one() {
        let miss = refused("a\nb\n", r"a\nb\d", r"x\d", Count::One);
        assert!(matches!(miss, Miss::Missing { .. }), "{miss:?}");
    }
}
