//! A word after quote removal, with the quoting of each character.
//!
//! Each parser removes quotes in its own way; the meaning of unquoted characters is decided only
//! here. Start reading at [`UnquotedWord::to_shell_word`].

use super::ShellWord;
use super::ambiguity_reasons::ShellAmbiguity;
use super::parse_result::ShellParseResult;

/// The quoting of a character in an `UnquotedWord`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CharQuoting {
    Unquoted,
    DoubleQuoted,
    /// Quoted by a backslash or single quotes.
    FullyQuoted,
}

/// The use of a word, which determines what bash expands in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShellWordRole {
    Argument,
    /// The value after the `=` of an assignment.
    AssignmentValue,
    HereString,
}

#[derive(Clone, Debug, Default)]
pub(super) struct UnquotedWord {
    characters: Vec<(char, CharQuoting)>,
    /// True if the word contains an empty pair of quotes, which adds no character but still counts
    /// as quoting.
    has_empty_quotes: bool,
    opaque: bool,
}

impl UnquotedWord {
    pub(super) fn push_text(&mut self, text: &str, quoting: CharQuoting) {
        self.has_empty_quotes |= text.is_empty() && quoting != CharQuoting::Unquoted;
        self.characters.extend(text.chars().map(|character| (character, quoting)));
    }

    /// Records that only bash knows the value of some part.
    pub(super) fn mark_opaque(&mut self) {
        self.opaque = true;
    }

    /// Converts to a `ShellWord`; `source` is the source text.
    pub(super) fn to_shell_word(
        &self,
        source: &str,
        role: ShellWordRole,
        result: &mut ShellParseResult,
    ) -> ShellWord {
        let to_opaque = || ShellWord::Opaque(source.replace("\\\n", ""));
        if self.opaque {
            return to_opaque();
        }
        if let Some(ambiguity) = self.find_stray_char().or_else(|| self.find_brace_expansion(role))
        {
            result.add_ambiguity(ambiguity);
            return to_opaque();
        }
        let tilde = self.tilde_use(role);
        let has_wildcard = role == ShellWordRole::Argument && self.has_wildcard();
        let text: String = self.characters.iter().map(|(character, _)| character).collect();
        let mixes_quoting = (tilde == TildePosition::Leading || has_wildcard)
            && (self.has_empty_quotes
                || self.any_char(|character, quoting| {
                    quoting != CharQuoting::Unquoted && is_pattern_char(character)
                }));
        match (tilde, has_wildcard) {
            (TildePosition::Inner, _) => result.add_ambiguity(ShellAmbiguity::Tilde),
            (TildePosition::Leading, _) if mixes_quoting || self.is_tilde_prefix_quoted() => {
                result.add_ambiguity(ShellAmbiguity::Tilde);
            }
            (TildePosition::None, true) if mixes_quoting => {
                result.add_ambiguity(ShellAmbiguity::PartlyQuotedWildcard)
            }
            (TildePosition::Leading, _) | (TildePosition::None, true) => {
                return ShellWord::Pattern(text);
            }
            (TildePosition::None, false) => return ShellWord::Plain(text),
        }
        to_opaque()
    }

    fn any_char(&self, predicate: impl Fn(char, CharQuoting) -> bool) -> bool {
        self.characters.iter().any(|&(character, quoting)| predicate(character, quoting))
    }

    fn unquoted_at(&self, index: usize) -> Option<char> {
        let (character, quoting) = self.characters.get(index)?;
        (*quoting == CharQuoting::Unquoted).then_some(*character)
    }

    /// Finds a character that bash would not leave in a word, which means that the parser made a
    /// mistake.
    fn find_stray_char(&self) -> Option<ShellAmbiguity> {
        if self.unquoted_at(0) == Some('#') {
            return Some(ShellAmbiguity::Comment);
        }
        for (index, &(character, quoting)) in self.characters.iter().enumerate() {
            let next = self.characters.get(index + 1);
            let is_expandable = quoting != CharQuoting::FullyQuoted;
            // A `$` is literal only if nothing expandable can follow it.
            let nothing_follows = next.is_none_or(|next| *next == (' ', CharQuoting::DoubleQuoted));
            let may_expand = self.has_empty_quotes || !nothing_follows;
            if is_expandable && (character == '`' || character == '$' && may_expand) {
                return Some(ShellAmbiguity::Unknown);
            }
            if quoting == CharQuoting::Unquoted && "|&;()<> \t\n\"'\\".contains(character) {
                return Some(ShellAmbiguity::Unknown);
            }
        }
        None
    }

    /// Finds `{a,b}` and `{1..3}`. Braces without a comma or two dots are literal.
    fn find_brace_expansion(&self, role: ShellWordRole) -> Option<ShellAmbiguity> {
        let open =
            (0..self.characters.len()).find(|&index| self.unquoted_at(index) == Some('{'))?;
        let has_list = (open..self.characters.len()).any(|index| {
            let c = self.unquoted_at(index);
            c == Some(',') || c == Some('.') && self.unquoted_at(index + 1) == Some('.')
        });
        (has_list && role == ShellWordRole::Argument).then_some(ShellAmbiguity::BraceExpansion)
    }

    /// Returns true if the word contains wildcards. An unmatched bracket is literal.
    fn has_wildcard(&self) -> bool {
        let open = (0..self.characters.len()).find(|&index| self.unquoted_at(index) == Some('['));
        let is_closed = |open: usize| self.characters.iter().skip(open).any(|(c, _)| *c == ']');
        self.any_char(|character, quoting| {
            quoting == CharQuoting::Unquoted && matches!(character, '*' | '?')
        }) || open.is_some_and(is_closed)
    }

    fn tilde_use(&self, role: ShellWordRole) -> TildePosition {
        if self.unquoted_at(0) == Some('~') {
            return match role != ShellWordRole::Argument && self.has_tilde_after(":", 0) {
                true => TildePosition::Inner,
                false => TildePosition::Leading,
            };
        }
        let has_inner_tilde = match role {
            // Bash expands a here-string like the value of an assignment.
            ShellWordRole::AssignmentValue | ShellWordRole::HereString => {
                self.has_tilde_after(":", 0)
            }
            // Bash also expands a tilde in arguments that look like assignments.
            ShellWordRole::Argument => self
                .assignment_sign_index()
                .is_some_and(|equals_index| self.has_tilde_after("=:", equals_index)),
        };
        if has_inner_tilde { TildePosition::Inner } else { TildePosition::None }
    }

    /// Returns the position of the `=`, if the text before it could be a variable name.
    fn assignment_sign_index(&self) -> Option<usize> {
        let equals = self.characters.iter().position(|(character, _)| *character == '=')?;
        let mut name = self.characters.iter().take(equals);
        let is_name = name.all(|(c, _)| c.is_alphanumeric() || "_+[]".contains(*c));
        (is_name && equals > 0).then_some(equals)
    }

    fn has_tilde_after(&self, separators: &str, start: usize) -> bool {
        let pairs = self.characters.iter().zip(self.characters.iter().skip(1)).skip(start);
        pairs.into_iter().any(|((previous, _), tilde)| {
            *tilde == ('~', CharQuoting::Unquoted) && separators.contains(*previous)
        })
    }

    /// Returns true if a part of `~name` before the first slash is quoted. Bash expands it only if
    /// none is.
    fn is_tilde_prefix_quoted(&self) -> bool {
        let mut prefix = self.characters.iter();
        let end = prefix.find(|(c, quoting)| *c == '/' || *quoting != CharQuoting::Unquoted);
        end.is_some_and(|(_, quoting)| *quoting != CharQuoting::Unquoted)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TildePosition {
    None,
    Leading,
    /// After an `=` or a colon.
    Inner,
}

/// Returns true for characters that would have a special meaning in a pattern without their quotes.
fn is_pattern_char(character: char) -> bool {
    matches!(character, '*' | '?' | '[' | ']' | '\\' | '~' | '^' | '!' | '-')
}
