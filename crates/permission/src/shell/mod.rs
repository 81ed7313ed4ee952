//! Reads a shell command into the words that bash would pass, or says why it cannot be sure.
//!
//! Two parsers that share no code read the text, each is reduced to the same plain form, and only
//! what both agree on is called plain. Neither is enough alone: each of them hides commands that
//! the other one sees. Where anything is in doubt, every command that either of them saw is still
//! told, at any depth, so that what is denied is found.
//!
//! It runs nothing and knows nothing of files; what a command may do is judged elsewhere. It keeps
//! the invariant that a reading without doubts holds exactly what bash would pass, which a test
//! asks bash itself. Start reading at [`read`].
mod agree;
mod brush;
mod doubt;
mod finding;
mod guard;
mod quote;
mod sitter;
mod spelling;

#[cfg(test)]
mod tests;

pub use quote::quote;

pub(crate) use doubt::COMMENT;
use doubt::Doubt;
use finding::Finding;

/// A longer text is not read.
pub(crate) const LONGEST: usize = 64 * 1024;
/// More simple commands are not told.
pub(crate) const MOST_SEGMENTS: usize = 10_000;

/// What a text would make bash do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    /// The commands, in the order in which they are written.
    pub(crate) items: Vec<Item>,
    /// It is longer, deeper or more than is read, so that anything may stand behind.
    pub(crate) beyond: bool,
    /// Why the items may not be all there is. Empty: they are.
    pub(crate) doubts: Vec<String>,
}

/// A command, or the edge of a scope whose `cd` does not last: a subshell, a part of a pipeline, a
/// job in the background, a substitution or the body of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    Enter,
    Leave,
    Command(Segment),
}

/// One simple command. Without words it only assigns or redirects, such as the redirections of a
/// group, which stand before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Segment {
    /// As it is written, for people.
    pub(crate) text: String,
    pub(crate) assignments: Vec<(String, Word)>,
    pub(crate) words: Vec<Word>,
    pub(crate) redirects: Vec<Redirect>,
    /// True if its input is a pipe.
    pub(crate) piped: bool,
}

/// One word, as far as its value is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// Exactly this string is passed.
    Plain(String),
    /// Unquoted wildcards, or a leading `~` that bash expands: the text without its quotes.
    Pattern(String),
    /// As it is written; only bash knows its value.
    Opaque(String),
}

impl Word {
    /// The word itself, or as it is written.
    pub(crate) fn text(&self) -> &str {
        match self {
            Word::Plain(text) | Word::Pattern(text) | Word::Opaque(text) => text,
        }
    }

    /// The word, if it is known exactly.
    pub(crate) fn plain(&self) -> Option<&str> {
        match self {
            Word::Plain(text) => Some(text),
            Word::Pattern(_) | Word::Opaque(_) => None,
        }
    }
}

/// Where a command reads from or writes to. What only copies or closes a descriptor is not told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Redirect {
    pub(crate) kind: RedirectKind,
    /// The file, the text of a here-string, or the mark that ends a document.
    pub(crate) target: Word,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RedirectKind {
    Read,
    /// Every form that may create or change the file, `<>` among them.
    Write,
    Document {
        body: String,
        /// True if bash expands nothing in it.
        quoted: bool,
    },
    Text,
}

/// Reads any text, in bounded time and on a small stack.
pub(crate) fn read(text: &str) -> Reading {
    let mut guard = Finding::default();
    guard::look(text, &mut guard);
    if guard.has(Doubt::Length) {
        return agree::unread(text, guard);
    }
    agree::agree(text, guard, sitter::find(text), brush::find(text))
}

/// True if what must hold of any reading holds of this one: scopes are closed, and without a doubt
/// every word is known and nothing is hidden in it. A fuzzer asks.
pub(crate) fn holds(text: &str) -> bool {
    let reading = read(text);
    let plain = reading.doubts.is_empty();
    let known = |word: &Word| match word {
        Word::Plain(text) | Word::Pattern(text) => {
            !text.contains(|each| guard::is_control(each) || guard::is_unseen(each))
        }
        Word::Opaque(_) => false,
    };
    let mut depth = 0_usize;
    for item in &reading.items {
        match item {
            Item::Enter => depth += 1,
            Item::Leave => match depth.checked_sub(1) {
                Some(outer) => depth = outer,
                None => return false,
            },
            Item::Command(segment) => {
                let targets = segment.redirects.iter().map(|redirect| &redirect.target);
                let values = segment.assignments.iter().map(|(_, value)| value);
                if plain && !segment.words.iter().chain(targets).chain(values).all(known) {
                    return false;
                }
            }
        }
    }
    depth == 0
}

/// Where in a text a statement stands.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    piped: bool,
    /// How many statements and words are around it.
    depth: usize,
}

impl Place {
    fn deeper(self) -> Place {
        Place { depth: self.depth + 1, ..self }
    }

    fn behind_a_pipe(self) -> Place {
        Place { piped: true, ..self }
    }
}
