//! A word whose quotes were taken off, with the memory of what was quoted.
//!
//! Each parser takes the quotes off in its own way; what unquoted characters mean is decided here,
//! once. Start reading at [`Spelling::settle`].

use super::Word;
use super::doubt::Doubt;
use super::finding::Finding;

/// How a character is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Bare,
    /// Within double quotes.
    Doubled,
    /// By a backslash or within single quotes.
    Quoted,
}

/// What a word is used for, which says what bash expands in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Argument,
    /// What stands behind the `=` of an assignment.
    Value,
    /// The text of a here-string.
    Text,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Spelling {
    characters: Vec<(char, Mark)>,
    /// A pair of quotes with nothing in it, which leaves no trace but still quotes.
    hollow: bool,
    opaque: bool,
}

impl Spelling {
    pub(super) fn push(&mut self, text: &str, mark: Mark) {
        self.hollow |= text.is_empty() && mark != Mark::Bare;
        self.characters.extend(text.chars().map(|character| (character, mark)));
    }

    /// Part of it has a value that only bash knows.
    pub(super) fn obscure(&mut self) {
        self.opaque = true;
    }

    /// The word it is, `written` being how it stands in the text.
    pub(super) fn settle(&self, written: &str, role: Role, finding: &mut Finding) -> Word {
        let opaque = || Word::Opaque(written.replace("\\\n", ""));
        if self.opaque {
            return opaque();
        }
        if let Some(doubt) = self.strays().or_else(|| self.braces(role)) {
            finding.doubt(doubt);
            return opaque();
        }
        let (tilde, wild) = (self.tilde(role), role == Role::Argument && self.wild());
        let text: String = self.characters.iter().map(|(character, _)| character).collect();
        let muddled = (tilde == Tilde::Leading || wild)
            && (self.hollow
                || self.has(|character, mark| mark != Mark::Bare && special(character)));
        match (tilde, wild) {
            (Tilde::Inner, _) => finding.doubt(Doubt::Tilde),
            (Tilde::Leading, _) if muddled || self.prefix_is_quoted() => {
                finding.doubt(Doubt::Tilde);
            }
            (Tilde::None, true) if muddled => finding.doubt(Doubt::Mixed),
            (Tilde::Leading, _) | (Tilde::None, true) => return Word::Pattern(text),
            (Tilde::None, false) => return Word::Plain(text),
        }
        opaque()
    }

    fn has(&self, wanted: impl Fn(char, Mark) -> bool) -> bool {
        self.characters.iter().any(|&(character, mark)| wanted(character, mark))
    }

    fn bare(&self, at: usize) -> Option<char> {
        let (character, mark) = self.characters.get(at)?;
        (*mark == Mark::Bare).then_some(*character)
    }

    /// Characters that bash would not have left in a word, which means that the parser erred.
    fn strays(&self) -> Option<Doubt> {
        if self.bare(0) == Some('#') {
            return Some(Doubt::Comment);
        }
        for (at, &(character, mark)) in self.characters.iter().enumerate() {
            let next = self.characters.get(at + 1);
            let live = mark != Mark::Quoted;
            // A dollar stands for itself only where nothing can follow that it would expand.
            let closed = next.is_none_or(|next| *next == (' ', Mark::Doubled));
            let loose = self.hollow || !closed;
            if live && (character == '`' || character == '$' && loose) {
                return Some(Doubt::Unknown);
            }
            if mark == Mark::Bare && "|&;()<> \t\n\"'\\".contains(character) {
                return Some(Doubt::Unknown);
            }
        }
        None
    }

    /// `{a,b}` and `{1..3}`. Without a comma or two dots braces are only braces.
    fn braces(&self, role: Role) -> Option<Doubt> {
        let open = (0..self.characters.len()).find(|&at| self.bare(at) == Some('{'))?;
        let lists = (open..self.characters.len()).any(|at| {
            let bare = self.bare(at);
            bare == Some(',') || bare == Some('.') && self.bare(at + 1) == Some('.')
        });
        (lists && role == Role::Argument).then_some(Doubt::Braces)
    }

    /// True for wildcards. A bracket without its partner is only a bracket.
    fn wild(&self) -> bool {
        let open = (0..self.characters.len()).find(|&at| self.bare(at) == Some('['));
        let closes = |open: usize| self.characters.iter().skip(open).any(|(each, _)| *each == ']');
        self.has(|character, mark| mark == Mark::Bare && matches!(character, '*' | '?'))
            || open.is_some_and(closes)
    }

    fn tilde(&self, role: Role) -> Tilde {
        if self.bare(0) == Some('~') {
            return match role != Role::Argument && self.tilde_behind(":", 0) {
                true => Tilde::Inner,
                false => Tilde::Leading,
            };
        }
        let inner = match role {
            // Bash treats the text of a here-string as if it were assigned.
            Role::Value | Role::Text => self.tilde_behind(":", 0),
            // Bash expands it in arguments that look like assignments, too.
            Role::Argument => self.name().is_some_and(|name| self.tilde_behind("=:", name)),
        };
        if inner { Tilde::Inner } else { Tilde::None }
    }

    /// Where the `=` stands, if what is before it could be the name of a variable.
    fn name(&self) -> Option<usize> {
        let equals = self.characters.iter().position(|(character, _)| *character == '=')?;
        let mut name = self.characters.iter().take(equals);
        let named = name.all(|(each, _)| each.is_alphanumeric() || "_+[]".contains(*each));
        (named && equals > 0).then_some(equals)
    }

    fn tilde_behind(&self, marks: &str, from: usize) -> bool {
        let pairs = self.characters.iter().zip(self.characters.iter().skip(1)).skip(from);
        pairs
            .into_iter()
            .any(|((before, _), tilde)| *tilde == ('~', Mark::Bare) && marks.contains(*before))
    }

    /// Bash expands `~name` only if nothing of it is quoted, up to the slash.
    fn prefix_is_quoted(&self) -> bool {
        let mut prefix = self.characters.iter();
        let end = prefix.find(|(each, mark)| *each == '/' || *mark != Mark::Bare);
        end.is_some_and(|(_, mark)| *mark != Mark::Bare)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tilde {
    None,
    Leading,
    /// Behind an `=` or a colon.
    Inner,
}

/// Characters that would mean something else in a pattern if they were not quoted.
fn special(character: char) -> bool {
    matches!(character, '*' | '?' | '[' | ']' | '\\' | '~' | '^' | '!' | '-')
}
