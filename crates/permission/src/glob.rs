//! Whether two patterns can mean the same name.
//!
//! It is exact about `*` and `?` and takes a bracket for any one character, so that a yes may be
//! too much but a no never is.

/// A pattern, read.
#[derive(Clone, Debug)]
pub(crate) struct Glob(Vec<Token>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    /// Anything, also nothing, also `/`.
    Deep,
    /// Anything within a part.
    Star,
    /// The same at the beginning of a part, where it matches no dot.
    First,
    /// One character.
    One,
    /// One that is no dot.
    NotDot,
    Char(char),
}

/// Longer ones than this are not compared.
const LARGEST: usize = 1 << 22;

impl Glob {
    /// As rules are written: `*` goes across parts.
    pub(crate) fn rule(text: &str) -> Glob {
        let token = |letter| match letter {
            '*' => Token::Deep,
            '?' => Token::One,
            letter => Token::Char(letter),
        };
        Glob(text.chars().map(token).collect())
    }

    /// Just this text.
    pub(crate) fn literal(text: &str) -> Glob {
        Glob(text.chars().map(Token::Char).collect())
    }

    /// As a shell reads it, part by part; a dot at the beginning of a part must be written.
    pub(crate) fn shell(text: &str) -> Glob {
        let mut tokens = Vec::new();
        let mut letters = text.chars();
        let mut first = true;
        while let Some(letter) = letters.next() {
            tokens.push(match letter {
                '*' if first => Token::First,
                '*' => Token::Star,
                '?' if first => Token::NotDot,
                '?' => Token::One,
                '[' => {
                    let mut rest = letters.clone();
                    match rest.by_ref().skip(1).any(|letter| letter == ']') {
                        true => {
                            letters = rest;
                            if first { Token::NotDot } else { Token::One }
                        }
                        // Nobody closes it: leave open what it means.
                        false => {
                            letters = "".chars();
                            Token::Deep
                        }
                    }
                }
                letter => Token::Char(letter),
            });
            // A second star says no more than the first.
            first = letter == '/' || (first && letter == '*');
        }
        Glob(tokens)
    }

    /// This text, and anything beneath it.
    pub(crate) fn beneath(folder: &str) -> Glob {
        match folder {
            "" | "." => Glob(vec![Token::Deep]),
            folder => {
                let letters = folder.chars().chain(['/']).map(Token::Char);
                Glob(letters.chain([Token::Deep]).collect())
            }
        }
    }

    /// True if everything that it matches begins with this text.
    pub(crate) fn begins(&self, start: &str) -> bool {
        let mut tokens = self.0.iter();
        start.chars().all(|letter| tokens.next() == Some(&Token::Char(letter)))
    }

    /// The same with a text before it.
    pub(crate) fn after(self, start: &str) -> Glob {
        Glob(start.chars().map(Token::Char).chain(self.0).collect())
    }
}

/// True if some text is matched by both. The second one is a rule's or a text: it has no tokens
/// that care about the beginning of a part.
pub(crate) fn overlap(one: &Glob, other: &Glob) -> bool {
    let (one, other) = (&one.0, &other.0);
    if one.len().saturating_mul(other.len()) > LARGEST {
        return true;
    }
    let at = |row: &[bool], index: usize| row.get(index).copied().unwrap_or(false);
    // What is left of `one` shares a text with what is left of `other`, from every place of it.
    let mut below: Vec<bool> = vec![false; other.len() + 1];
    let mut empty = true;
    for (index, token) in other.iter().enumerate().rev() {
        empty = empty && *token == Token::Deep;
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
        // The same row, if the token were a star.
        let mut starred = vec![false; other.len() + 1];
        for index in (0..=other.len()).rev() {
            let open = other.get(index).copied();
            let more = match open {
                Some(Token::Char('/')) if *token != Token::Deep => false,
                Some(_) => at(&starred, index + 1),
                None => false,
            };
            let star = at(&below, index) || more;
            let skips = open == Some(Token::Deep) && at(&row, index + 1);
            let found = match token {
                Token::Deep | Token::Star => star,
                Token::First => {
                    let none = next != Some(Token::Char('.')) && at(&below, index);
                    let some = match open {
                        Some(Token::Deep) => star,
                        Some(Token::Char('.' | '/')) | None => false,
                        Some(_) => at(&starred, index + 1),
                    };
                    none || some
                }
                Token::One | Token::NotDot | Token::Char(_) => match open {
                    Some(Token::Deep) => at(&below, index),
                    Some(other) => fits(*token, other) && at(&below, index + 1),
                    None => false,
                },
            };
            for (cells, value) in [(&mut starred, star), (&mut row, found || skips)] {
                if let Some(cell) = cells.get_mut(index) {
                    *cell = value;
                }
            }
        }
        below = row;
        next = Some(*token);
    }
    at(&below, 0)
}

/// True if one character can be both.
fn fits(one: Token, other: Token) -> bool {
    match (one, other) {
        (Token::Char(one), Token::Char(other)) => one == other,
        (Token::NotDot, Token::Char(letter)) => letter != '.',
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{ProptestConfig, prop_assert, proptest};
    use wildmatch::WildMatch;

    #[test]
    fn a_shell_pattern_and_a_rule_meet_where_a_name_does() {
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
            assert!(overlap(&Glob::shell(shell), &Glob::rule(rule)), "{shell} {rule}");
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
            assert!(!overlap(&Glob::shell(shell), &Glob::rule(rule)), "{shell} {rule}");
        }
        assert!(overlap(&Glob::beneath("a"), &Glob::rule("a/b/.env")));
        assert!(overlap(&Glob::beneath("."), &Glob::rule("a/b/.env")));
        assert!(!overlap(&Glob::beneath("a"), &Glob::rule("ab/.env")));
        assert!(overlap(&Glob::shell("*.txt").after("a/"), &Glob::rule("a/s.txt")));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

        /// Whatever both match, they are known to share.
        #[test]
        fn a_text_that_both_match_is_shared(text in "[ab]{0,5}", one in "[ab*?]{0,5}", other in "[ab*?]{0,5}") {
            let both = WildMatch::new(&one).matches(&text) && WildMatch::new(&other).matches(&text);
            if both {
                prop_assert!(overlap(&Glob::shell(&one), &Glob::rule(&other)));
                prop_assert!(overlap(&Glob::rule(&one), &Glob::rule(&other)));
            }
            let alone = overlap(&Glob::rule(&one), &Glob::literal(&text));
            prop_assert!(alone == WildMatch::new(&one).matches(&text));
        }
    }
}
