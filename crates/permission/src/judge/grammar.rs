//! How the arguments of a program are read.
//!
//! A row lists the options it knows as text: `-q` is a switch, `-n:` takes a text, `-f<` a path
//! that is read, `-o>` one that is written, `--color?` a text only if it is glued on, and `-NUM`
//! stands for numbers. A `!` at the end marks an option whose shape is known but that is not
//! harmless. Alone, `+` says that options end at the first operand, `#` that the value of a letter
//! is always the next word, `*` that no option at all does harm, and `*.` that none does whose
//! name ends like a file's: a wildcard may turn into any option. What is not listed is not known, and an abbreviation is not what it abbreviates:
//! the program may have another option of that very name.

use super::class::Class;
use crate::shell::Word;

/// What is known about a program, or about some of its subcommands.
#[derive(Debug)]
pub(super) struct Row {
    /// Programs, or programs with subcommands, with `|` between them.
    pub(super) name: &'static str,
    pub(super) class: Class,
    /// The options that do not change the class, see above.
    pub(super) options: &'static str,
    pub(super) operands: Operands,
    /// It counts only if one of these options or operands is there, and none with a `!`.
    pub(super) when: &'static str,
    /// What it is instead where an argument is not known.
    pub(super) otherwise: Class,
    #[cfg_attr(not(test), allow(dead_code, reason = "a test reads them"))]
    pub(super) matches: &'static [&'static str],
    #[cfg_attr(not(test), allow(dead_code, reason = "a test reads them"))]
    pub(super) passes: &'static [&'static str],
}

impl Row {
    /// A row that looks only, to start from.
    pub(super) const READ: Row = Row {
        name: "",
        class: Class::Read,
        options: "",
        operands: Operands::Reads,
        when: "",
        otherwise: Class::Work,
        matches: &[],
        passes: &[],
    };
    /// A row that works in the workspace.
    pub(super) const WORK: Row = Row { class: Class::Work, operands: Operands::Text, ..Row::READ };
    /// A row that connects.
    pub(super) const NETWORK: Row = Row { class: Class::Network, ..Row::WORK };
    /// A row that destroys or gains rights.
    pub(super) const GUARD: Row = Row { class: Class::Guard, ..Row::WORK };
}

/// What the words are that are not options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operands {
    /// There must be none.
    None,
    /// They are just text.
    Text,
    /// Paths that are read.
    Reads,
    /// Formats, with a `+` in front.
    Formats,
    /// Names of branches and the like, but no other subcommand.
    Refs,
    /// What ps is to show, but no environments.
    Columns,
    /// A branch, or paths that are overwritten.
    Checkout,
    /// Paths that are written.
    Writes,
    /// A pattern, unless an option gives it, then paths that are read.
    PatternThenReads,
    /// The second one is written.
    ReadThenWrite,
    /// The last one is written.
    ReadsThenWrite,
    /// The last of several is written, and the others are looked through later.
    LastWritten,
    /// The arguments are exactly one of these options.
    Exactly,
    /// A script of sed, then paths.
    Sed,
    /// A program of awk, then paths.
    Awk,
    /// A filter of jq or yq, then paths.
    Filter,
    /// An expression of `test`.
    Test,
    /// An expression of `find`.
    Find,
    /// What rm is to remove.
    Removes,
    /// Everything that is changed below a path.
    Recurses,
    /// `of=PATH` and `if=PATH`.
    Dd,
    /// A container, which may be given folders of the host.
    Container,
    /// The name and the value of a setting of git.
    Setting,
}

/// What an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    Nothing,
    Text,
    Reads,
    Writes,
    /// A text, if it is glued on.
    Glued,
}

/// Whether an option is known to do no harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    Harmless,
    NotHarmless,
}

/// An argument as a program understands it.
#[derive(Debug)]
pub(super) enum Argument {
    Option {
        name: String,
        known: Known,
        takes: Takes,
        value: Option<Word>,
    },
    Operand(Word),
    /// It may become an option: a wildcard stands first in it.
    Loose(Word),
    /// It may become anything.
    Opaque(Word),
}

fn look_up(options: &str, name: &str) -> Option<(Takes, Known)> {
    let token = options
        .split_whitespace()
        .find(|token| token.trim_end_matches([':', '<', '>', '?', '!']) == name)?;
    Some(shape(token))
}

fn shape(token: &str) -> (Takes, Known) {
    let (token, known) = match token.strip_suffix('!') {
        Some(token) => (token, Known::NotHarmless),
        None => (token, Known::Harmless),
    };
    let takes = match token.chars().last() {
        Some(':') => Takes::Text,
        Some('<') => Takes::Reads,
        Some('>') => return (Takes::Writes, Known::NotHarmless),
        Some('?') => Takes::Glued,
        Some(_) | None => Takes::Nothing,
    };
    (takes, known)
}

/// True if a word with a wildcard in front may become an option that does more than look. Rows do
/// not list every such option, so only those that say so have none.
pub(super) fn can_harm(options: &str, pattern: &str) -> bool {
    let ending = pattern.rsplit(['*', '?', ']']).next().unwrap_or_default();
    let like_a_file = ending.starts_with('.') && ending.len() > 2;
    !(says(options, "*") || like_a_file && says(options, "*."))
}

fn says(options: &str, mark: &str) -> bool {
    options.split_whitespace().any(|token| token == mark)
}

/// True if a shell may make several words of one.
pub(super) fn spreads(word: &Word) -> bool {
    match word {
        Word::Plain(_) => false,
        Word::Pattern(text) => text.contains(['*', '?', '[']),
        Word::Opaque(_) => true,
    }
}

/// The next word as the value of an option. If it may be several, what follows the first of them
/// is anything.
fn apart(next: Option<&Word>, known: Known) -> (Option<Word>, Known) {
    match next {
        Some(word) if spreads(word) => (Some(word.clone()), Known::NotHarmless),
        Some(_) | None => (next.cloned(), known),
    }
}

/// A value that is glued to an option, of the kind that the word is.
fn glued_to(word: &Word, value: &str) -> Word {
    match word {
        Word::Plain(_) => Word::Plain(value.to_owned()),
        Word::Pattern(_) => Word::Pattern(value.to_owned()),
        Word::Opaque(_) => Word::Opaque(value.to_owned()),
    }
}

/// Reads arguments by a list of options.
pub(super) fn parse(options: &str, words: &[Word]) -> Vec<Argument> {
    let mut arguments = Vec::new();
    let mut words = words.iter();
    let mut open = true;
    while let Some(word) = words.next() {
        match word {
            _ if !open => arguments.push(Argument::Operand(word.clone())),
            Word::Opaque(_) => arguments.push(Argument::Opaque(word.clone())),
            Word::Pattern(text) if text.starts_with(['*', '?', '[']) => {
                arguments.push(Argument::Loose(word.clone()));
            }
            Word::Plain(text) | Word::Pattern(text) => match text.as_str() {
                "--" => open = false,
                long if long.starts_with("--") => {
                    arguments.push(parse_long(options, word, &mut words));
                }
                short if short.starts_with('-') && short.len() > 1 => {
                    parse_short(options, word, &mut words, &mut arguments);
                }
                _ => {
                    open = !says(options, "+");
                    arguments.push(Argument::Operand(word.clone()));
                }
            },
        }
    }
    arguments
}

fn parse_long<'a>(
    options: &str,
    word: &Word,
    words: &mut impl Iterator<Item = &'a Word>,
) -> Argument {
    let text = word.text();
    let (name, glued) = match text.split_once('=') {
        Some((name, value)) => (name, Some(glued_to(word, value))),
        None => (text, None),
    };
    let abbreviated = || {
        let begins = |token: &&str| token.starts_with(name) && name.len() > 2;
        let meant = options.split_whitespace().filter(begins).map(shape);
        let paths = |takes: Takes| matches!(takes, Takes::Reads | Takes::Writes);
        let takes = meant.map(|(takes, _)| takes).find(|takes| paths(*takes));
        (takes.unwrap_or(Takes::Nothing), Known::NotHarmless)
    };
    let (takes, known) = look_up(options, name).unwrap_or_else(abbreviated);
    let (value, known) = match takes {
        Takes::Text | Takes::Reads | Takes::Writes if glued.is_none() => apart(words.next(), known),
        Takes::Text | Takes::Reads | Takes::Writes | Takes::Nothing | Takes::Glued => {
            (glued, known)
        }
    };
    // A switch that is given a value is not the switch that is known.
    let known = match takes == Takes::Nothing && value.is_some() {
        true => Known::NotHarmless,
        false => known,
    };
    Argument::Option { name: name.to_owned(), known, takes, value }
}

fn parse_short<'a>(
    options: &str,
    word: &Word,
    words: &mut impl Iterator<Item = &'a Word>,
    arguments: &mut Vec<Argument>,
) {
    let text = word.text();
    if text.len() > 2 {
        let (name, glued) = match text.split_once('=') {
            Some((name, value)) => (name, Some(glued_to(word, value))),
            None => (text, None),
        };
        if let Some((takes, known)) = look_up(options, name).filter(|_| name.len() > 2) {
            let (value, known) = match takes {
                Takes::Text | Takes::Reads | Takes::Writes if glued.is_none() => {
                    apart(words.next(), known)
                }
                Takes::Text | Takes::Reads | Takes::Writes | Takes::Nothing | Takes::Glued => {
                    (glued, known)
                }
            };
            arguments.push(Argument::Option { name: name.to_owned(), known, takes, value });
            return;
        }
    }
    let numeric = text.chars().skip(1).all(|letter| letter.is_ascii_digit());
    if numeric && look_up(options, "-NUM").is_some() {
        return;
    }
    let mut letters = text.chars().skip(1);
    while let Some(letter) = letters.next() {
        let name = format!("-{letter}");
        let found = look_up(options, &name);
        let (takes, known) = found.unwrap_or((Takes::Nothing, Known::NotHarmless));
        let (value, known) = match takes {
            Takes::Nothing => (None, known),
            Takes::Text | Takes::Reads | Takes::Writes if says(options, "#") => {
                apart(words.next(), known)
            }
            Takes::Text | Takes::Reads | Takes::Writes | Takes::Glued => {
                let rest: String = letters.by_ref().collect();
                match (rest.is_empty(), takes) {
                    (false, _) => (Some(glued_to(word, &rest)), known),
                    (true, Takes::Glued) => (None, known),
                    (true, _) => apart(words.next(), known),
                }
            }
        };
        arguments.push(Argument::Option { name, known, takes, value });
    }
}

/// True if a row counts: one of the options or operands that `when` names is there, and none of
/// those that it names with a `!`. What is the value of an option, or stands behind `--`, is no
/// option. A row that warns counts for the mere word.
pub(super) fn counts(row: &Row, words: &[Word]) -> bool {
    let (unless, wanted): (Vec<&str>, Vec<&str>) =
        row.when.split_whitespace().partition(|token| token.starts_with('!'));
    if unless.is_empty() && wanted.is_empty() {
        return true;
    }
    let arguments = parse(row.options, words);
    let there = |token: &str| arguments.iter().any(|argument| stands(argument, token));
    let mentioned = |token: &str| words.iter().any(|word| means(word.text(), token));
    let warns = row.class > Class::Work;
    let refused = unless.iter().any(|token| there(token.trim_start_matches('!')));
    !refused
        && (wanted.is_empty()
            || wanted.into_iter().any(|token| there(token) || warns && mentioned(token)))
}

fn stands(argument: &Argument, wanted: &str) -> bool {
    match argument {
        Argument::Option { name, .. } => means(name, wanted),
        Argument::Operand(word) | Argument::Loose(word) | Argument::Opaque(word) => {
            !wanted.starts_with('-') && means(word.text(), wanted)
        }
    }
}

/// How many words an option before a subcommand takes up; nothing if it is not listed.
pub(super) fn width(options: &str, text: &str) -> Option<usize> {
    let name = text.split_once('=').map_or(text, |(name, _)| name);
    let (takes, _) = look_up(options, name)?;
    Some(match takes {
        Takes::Text | Takes::Reads | Takes::Writes if name == text => 2,
        Takes::Text | Takes::Reads | Takes::Writes | Takes::Nothing | Takes::Glued => 1,
    })
}

/// True if a word is, abbreviates or holds an option, or is an operand; `…` stands for any ending.
fn means(text: &str, wanted: &str) -> bool {
    let name = text.split_once('=').map_or(text, |(name, _)| name);
    if wanted.len() > 2 && wanted.starts_with("--") {
        return name == wanted || (name.len() > 3 && wanted.starts_with(name));
    }
    let letter = wanted.strip_prefix('-').and_then(|rest| rest.chars().next());
    match letter.filter(|letter| wanted.len() == 2 && letter.is_ascii_alphabetic()) {
        Some(letter) => text.starts_with('-') && !text.starts_with("--") && text.contains(letter),
        None => {
            let open = wanted.strip_suffix('…');
            text == wanted || open.is_some_and(|start| text.starts_with(start))
        }
    }
}
