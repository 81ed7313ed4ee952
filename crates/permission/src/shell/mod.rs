//! Parses a shell command line into the words that bash would pass, or reports why the result is
//! uncertain.
//!
//! Two parsers that share no code read the text. Each result is reduced to the same plain form, and
//! only what both agree on counts as plain. Neither parser is enough alone: each hides commands
//! that the other finds. In case of doubt the result still contains every command that either
//! parser found, at any depth, so that deny rules see it.
//!
//! The module runs nothing and knows no files; `command_safety` evaluates the commands. It keeps
//! the invariant that a result without ambiguities contains exactly what bash would pass, which a
//! test checks against bash itself. Start reading at [`parse_command_line`].
mod ambiguity_reasons;
mod brush;
mod combine_parse_results;
mod parse_result;
mod precheck;
mod quote;
mod tree_sitter;
mod unquoted_word;

#[cfg(test)]
mod tests;

pub use quote::quote;

pub(crate) use ambiguity_reasons::ShellAmbiguity;
use parse_result::ShellParseResult;

/// Longer texts are not parsed.
pub(crate) const MAX_COMMAND_BYTES: usize = 64 * 1024;
/// Further simple commands are not reported.
pub(crate) const MAX_SEGMENTS: usize = 10_000;

/// A parsed command line, result of `parse_command_line`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ParsedCommandLine {
    /// The commands and scopes, in source order.
    pub(crate) items: Vec<CommandOrScopeBoundary>,
    /// True if the text exceeds a limit of length, depth or count, so that the rest is unknown.
    pub(crate) exceeds_limits: bool,
    /// Reasons that `items` may be incomplete. If empty, `items` is complete.
    pub(crate) ambiguities: Vec<ShellAmbiguity>,
}

/// A command, or the boundary of a scope in which a `cd` ends: a subshell, a part of a pipeline, a
/// background job, a substitution or a function body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CommandOrScopeBoundary {
    EnterScope,
    LeaveScope,
    Command(SimpleShellCommand),
}

/// One simple command. Without words it only assigns or redirects, such as the redirections of a
/// group, which precede the group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SimpleShellCommand {
    /// The command as written, for display.
    pub(crate) text: String,
    pub(crate) assignments: Vec<(String, ShellWord)>,
    pub(crate) words: Vec<ShellWord>,
    pub(crate) redirects: Vec<Redirect>,
    pub(crate) has_piped_input: bool,
}

/// One shell word, as far as its value is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ShellWord {
    /// Bash passes exactly this string.
    Plain(String),
    /// A word with unquoted wildcards, or with a leading `~` that bash expands; the text has no
    /// quotes.
    Pattern(String),
    /// A word whose value only bash knows, as written.
    Opaque(String),
}

impl ShellWord {
    /// Returns the text of the word; for `Opaque`, as written.
    pub(crate) fn text(&self) -> &str {
        match self {
            ShellWord::Plain(text) | ShellWord::Pattern(text) | ShellWord::Opaque(text) => text,
        }
    }

    /// Returns the word if its value is known exactly.
    pub(crate) fn as_plain(&self) -> Option<&str> {
        match self {
            ShellWord::Plain(text) => Some(text),
            ShellWord::Pattern(_) | ShellWord::Opaque(_) => None,
        }
    }
}

/// A redirection of a command to or from a file. Copies and closings of descriptors are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Redirect {
    pub(crate) kind: RedirectKind,
    /// The file, the text of a here-string, or the delimiter of a here-document.
    pub(crate) target: ShellWord,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RedirectKind {
    Read,
    /// Every form that may create or change the file, including `<>`.
    Write,
    HereDocument {
        body: String,
        /// True if the delimiter is quoted, so that bash expands nothing in the body.
        quoted: bool,
    },
    HereString,
}

/// Parses any text, in bounded time and on a small stack.
pub(crate) fn parse_command_line(text: &str) -> ParsedCommandLine {
    let mut prechecked = ShellParseResult::default();
    precheck::precheck(text, &mut prechecked);
    if prechecked.has_ambiguity(ShellAmbiguity::TooLong) {
        return combine_parse_results::unparsed_command_line(text, prechecked);
    }
    combine_parse_results::combine_parses(
        text,
        prechecked,
        tree_sitter::parse_with_tree_sitter(text),
        brush::parse_with_brush(text),
    )
}

/// Checks the invariants of every parse result: scopes are balanced, and without ambiguities every
/// word is known and contains no invisible characters. For the fuzzer.
pub(crate) fn invariants_hold(text: &str) -> bool {
    let parsed = parse_command_line(text);
    let is_unambiguous = parsed.ambiguities.is_empty();
    let is_known = |word: &ShellWord| match word {
        ShellWord::Plain(text) | ShellWord::Pattern(text) => {
            !text.contains(|c| precheck::is_forbidden_control(c) || precheck::is_invisible(c))
        }
        ShellWord::Opaque(_) => false,
    };
    let mut depth = 0_usize;
    for item in &parsed.items {
        match item {
            CommandOrScopeBoundary::EnterScope => depth += 1,
            CommandOrScopeBoundary::LeaveScope => match depth.checked_sub(1) {
                Some(outer) => depth = outer,
                None => return false,
            },
            CommandOrScopeBoundary::Command(segment) => {
                let targets = segment.redirects.iter().map(|redirect| &redirect.target);
                let values = segment.assignments.iter().map(|(_, value)| value);
                if is_unambiguous
                    && !segment.words.iter().chain(targets).chain(values).all(is_known)
                {
                    return false;
                }
            }
        }
    }
    depth == 0
}

/// The context of a statement within the text.
#[derive(Clone, Copy, Debug, Default)]
struct ShellStatementContext {
    has_piped_input: bool,
    /// The number of enclosing statements and words.
    depth: usize,
}

impl ShellStatementContext {
    fn nested(self) -> ShellStatementContext {
        ShellStatementContext { depth: self.depth + 1, ..self }
    }

    fn after_pipe(self) -> ShellStatementContext {
        ShellStatementContext { has_piped_input: true, ..self }
    }
}
