//! Parses the arguments of a program by the option list of its row.
//!
//! A row lists its known options as text: `-q` is a switch, `-n:` takes a text, `-f<` a path that
//! is read, `-o>` a path that is written, `--color?` a text only if attached, and `-NUM` matches
//! numbers. A trailing `!` marks an option with known syntax that is not harmless. As separate
//! tokens, `+` means that options end at the first operand, `#` that the value of a short option is
//! always the next word, `*` that no option is harmful, and `*.` that no option that ends like a
//! file name is harmful; the last two matter because a wildcard may expand to any option. An option
//! not in the list is unknown. An abbreviation does not count as the option it abbreviates, because
//! the program may have another option of exactly that name.

use super::program_row::ProgramRow;
use super::risk::Risk;
use crate::shell::ShellWord;

/// The kind of value that an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OptionValueKind {
    Nothing,
    Text,
    ReadPath,
    WrittenPath,
    /// A text, only if attached to the option.
    AttachedText,
}

/// Tells known harmless options from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OptionSafety {
    Harmless,
    NotHarmless,
}

/// An argument as the program parses it, result of `parse_arguments`.
#[derive(Debug)]
pub(super) enum ParsedArgument {
    Option {
        name: String,
        safety: OptionSafety,
        value_kind: OptionValueKind,
        value: Option<ShellWord>,
    },
    Operand(ShellWord),
    /// A word that may expand to an option, because it begins with a wildcard.
    MaybeOption(ShellWord),
    /// A word that may expand to anything.
    Opaque(ShellWord),
}

/// Returns true if one of these options is present, possibly abbreviated.
pub(super) fn has_option(arguments: &[ParsedArgument], names: &[&str]) -> bool {
    arguments.iter().any(|argument| match argument {
        ParsedArgument::Option { name, .. } => names.iter().any(|option| {
            name == option
                || (option.starts_with("--") && name.len() > 3 && option.starts_with(name))
        }),
        ParsedArgument::Operand(_) | ParsedArgument::MaybeOption(_) | ParsedArgument::Opaque(_) => {
            false
        }
    })
}

fn find_option(options: &str, name: &str) -> Option<(OptionValueKind, OptionSafety)> {
    let token = options
        .split_whitespace()
        .find(|token| token.trim_end_matches([':', '<', '>', '?', '!']) == name)?;
    Some(parse_option_spec(token))
}

/// Returns true if a row lists an option as harmless.
pub(super) fn is_harmless_option(options: &str, name: &str) -> bool {
    matches!(find_option(options, name), Some((_, OptionSafety::Harmless)))
}

fn parse_option_spec(token: &str) -> (OptionValueKind, OptionSafety) {
    let (token, safety) = match token.strip_suffix('!') {
        Some(token) => (token, OptionSafety::NotHarmless),
        None => (token, OptionSafety::Harmless),
    };
    let value_kind = match token.chars().last() {
        Some(':') => OptionValueKind::Text,
        Some('<') => OptionValueKind::ReadPath,
        Some('>') => return (OptionValueKind::WrittenPath, OptionSafety::NotHarmless),
        Some('?') => OptionValueKind::AttachedText,
        Some(_) | None => OptionValueKind::Nothing,
    };
    (value_kind, safety)
}

/// Returns true if a word that begins with a wildcard may expand to an option that does more than
/// read. Rows do not list every such option, so only rows with the marker `*` or `*.` are safe.
pub(super) fn could_become_harmful(options: &str, pattern: &str) -> bool {
    let suffix = pattern.rsplit(['*', '?', ']']).next().unwrap_or_default();
    let looks_like_file = suffix.starts_with('.') && suffix.len() > 2;
    !(has_marker(options, "*") || looks_like_file && has_marker(options, "*."))
}

fn has_marker(options: &str, marker: &str) -> bool {
    options.split_whitespace().any(|token| token == marker)
}

/// Returns true if the shell may expand the word to several.
pub(super) fn may_expand_to_many(word: &ShellWord) -> bool {
    match word {
        ShellWord::Plain(_) => false,
        ShellWord::Pattern(text) => text.contains(['*', '?', '[']),
        ShellWord::Opaque(text) => !is_quoted_once(text),
    }
}

/// Returns true for a text in one pair of double quotes, which the shell passes as one word unless
/// it contains `$@` or an array.
fn is_quoted_once(text: &str) -> bool {
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    inner.is_some_and(|inner| !inner.contains(['"', '@', '[', '\\', '`']))
}

/// Takes the next word as the value of an option. If that word may expand to several, the ones
/// after the first can be anything. If it looks like an option, it may be one: a row describes
/// several subcommands, and not every one of them takes the value.
fn separate_value(
    next: Option<&ShellWord>,
    safety: OptionSafety,
) -> (Option<ShellWord>, OptionSafety) {
    let looks_like_option = |word: &ShellWord| {
        let rest = word.text().strip_prefix('-').unwrap_or_default();
        rest.starts_with(|c: char| !c.is_ascii_digit())
    };
    match next {
        Some(word) if may_expand_to_many(word) || looks_like_option(word) => {
            (Some(word.clone()), OptionSafety::NotHarmless)
        }
        Some(_) | None => (next.cloned(), safety),
    }
}

/// Creates an attached value with the same `ShellWord` variant as the word that contains it.
fn attached_value(word: &ShellWord, value: &str) -> ShellWord {
    match word {
        ShellWord::Plain(_) => ShellWord::Plain(value.to_owned()),
        ShellWord::Pattern(_) => ShellWord::Pattern(value.to_owned()),
        ShellWord::Opaque(_) => ShellWord::Opaque(value.to_owned()),
    }
}

/// Parses arguments by an option list in the syntax of `ProgramRow::options`.
pub(super) fn parse_arguments(options: &str, words: &[ShellWord]) -> Vec<ParsedArgument> {
    let mut arguments = Vec::new();
    let mut words = words.iter();
    let mut accepts_options = true;
    while let Some(word) = words.next() {
        match word {
            _ if !accepts_options => arguments.push(ParsedArgument::Operand(word.clone())),
            ShellWord::Opaque(_) => arguments.push(ParsedArgument::Opaque(word.clone())),
            ShellWord::Pattern(text) if text.starts_with(['*', '?', '[']) => {
                arguments.push(ParsedArgument::MaybeOption(word.clone()));
            }
            ShellWord::Plain(text) | ShellWord::Pattern(text) => match text.as_str() {
                "--" => accepts_options = false,
                line if has_marker(options, "*") && line.trim_matches('-').is_empty() => {
                    arguments.push(ParsedArgument::Operand(word.clone()));
                }
                long if long.starts_with("--") => {
                    arguments.push(parse_long(options, word, &mut words));
                }
                short if short.starts_with('-') && short.len() > 1 => {
                    parse_short(options, word, &mut words, &mut arguments);
                }
                _ => {
                    accepts_options = !has_marker(options, "+");
                    arguments.push(ParsedArgument::Operand(word.clone()));
                }
            },
        }
    }
    arguments
}

fn parse_long<'a>(
    options: &str,
    word: &ShellWord,
    words: &mut impl Iterator<Item = &'a ShellWord>,
) -> ParsedArgument {
    let text = word.text();
    let (name, attached) = match text.split_once('=') {
        Some((name, value)) => (name, Some(attached_value(word, value))),
        None => (text, None),
    };
    let match_abbreviation = || {
        let is_candidate = |token: &&str| token.starts_with(name) && name.len() > 2;
        let candidates = options.split_whitespace().filter(is_candidate).map(parse_option_spec);
        let is_path = |value_kind: OptionValueKind| {
            matches!(value_kind, OptionValueKind::ReadPath | OptionValueKind::WrittenPath)
        };
        let value_kind =
            candidates.map(|(value_kind, _)| value_kind).find(|value_kind| is_path(*value_kind));
        (value_kind.unwrap_or(OptionValueKind::Nothing), OptionSafety::NotHarmless)
    };
    let (value_kind, safety) = find_option(options, name).unwrap_or_else(match_abbreviation);
    let (value, safety) = match value_kind {
        OptionValueKind::Text | OptionValueKind::ReadPath | OptionValueKind::WrittenPath
            if attached.is_none() =>
        {
            separate_value(words.next(), safety)
        }
        OptionValueKind::Text
        | OptionValueKind::ReadPath
        | OptionValueKind::WrittenPath
        | OptionValueKind::Nothing
        | OptionValueKind::AttachedText => (attached, safety),
    };
    // A switch with a value is not the known switch.
    let safety = match value_kind == OptionValueKind::Nothing && value.is_some() {
        true => OptionSafety::NotHarmless,
        false => safety,
    };
    ParsedArgument::Option { name: name.to_owned(), safety, value_kind, value }
}

fn parse_short<'a>(
    options: &str,
    word: &ShellWord,
    words: &mut impl Iterator<Item = &'a ShellWord>,
    arguments: &mut Vec<ParsedArgument>,
) {
    let text = word.text();
    if text.len() > 2 {
        let (name, attached) = match text.split_once('=') {
            Some((name, value)) => (name, Some(attached_value(word, value))),
            None => (text, None),
        };
        if let Some((value_kind, safety)) = find_option(options, name).filter(|_| name.len() > 2) {
            let (value, safety) = match value_kind {
                OptionValueKind::Text
                | OptionValueKind::ReadPath
                | OptionValueKind::WrittenPath
                    if attached.is_none() =>
                {
                    separate_value(words.next(), safety)
                }
                OptionValueKind::Text
                | OptionValueKind::ReadPath
                | OptionValueKind::WrittenPath
                | OptionValueKind::Nothing
                | OptionValueKind::AttachedText => (attached, safety),
            };
            arguments.push(ParsedArgument::Option {
                name: name.to_owned(),
                safety,
                value_kind,
                value,
            });
            return;
        }
    }
    let is_number = text.chars().skip(1).all(|letter| letter.is_ascii_digit());
    if is_number && find_option(options, "-NUM").is_some() {
        return;
    }
    let mut letters = text.chars().skip(1);
    while let Some(letter) = letters.next() {
        let name = format!("-{letter}");
        let spec = find_option(options, &name);
        let (value_kind, safety) =
            spec.unwrap_or((OptionValueKind::Nothing, OptionSafety::NotHarmless));
        let (value, safety) = match value_kind {
            OptionValueKind::Nothing => (None, safety),
            OptionValueKind::Text | OptionValueKind::ReadPath | OptionValueKind::WrittenPath
                if has_marker(options, "#") =>
            {
                separate_value(words.next(), safety)
            }
            OptionValueKind::Text
            | OptionValueKind::ReadPath
            | OptionValueKind::WrittenPath
            | OptionValueKind::AttachedText => {
                let rest: String = letters.by_ref().collect();
                match (rest.is_empty(), value_kind) {
                    (false, _) => (Some(attached_value(word, &rest)), safety),
                    (true, OptionValueKind::AttachedText) => (None, safety),
                    (true, _) => separate_value(words.next(), safety),
                }
            }
        };
        arguments.push(ParsedArgument::Option { name, safety, value_kind, value });
    }
}

/// Returns true if the row applies: one of the options or operands in `condition` is present, and
/// none of those marked with `!`. Option values and words after `--` are not options. A row with a
/// risk above `Risk::WorkspaceWrite` applies as soon as the word appears anywhere. An option that
/// `--no-OPTION` cancels counts as absent, wherever that stands.
pub(super) fn row_applies(row: &ProgramRow, words: &[ShellWord]) -> bool {
    let (excluded, required): (Vec<&str>, Vec<&str>) =
        row.condition.split_whitespace().partition(|token| token.starts_with('!'));
    if excluded.is_empty() && required.is_empty() {
        return true;
    }
    let arguments = parse_arguments(row.options, words);
    let is_present =
        |token: &str| arguments.iter().any(|argument| argument_matches(argument, token));
    let is_mentioned = |token: &str| words.iter().any(|word| word_mentions(word, token));
    let is_risky = row.risk > Risk::WorkspaceWrite;
    let is_canceled = is_condition_canceled(row.condition, words);
    let is_excluded =
        !is_canceled && excluded.iter().any(|token| is_present(token.trim_start_matches('!')));
    !is_excluded
        && (required.is_empty()
            || required
                .into_iter()
                .any(|token| !is_canceled && is_present(token) || is_risky && is_mentioned(token)))
}

/// Returns true if a word is the token, or may expand to it: `$(echo --hard)` mentions `--hard`, and
/// the words that `xargs` adds can be anything.
fn word_mentions(word: &ShellWord, token: &str) -> bool {
    let is_piece_end = |c: char| !(c.is_ascii_alphanumeric() || "-_./:=*".contains(c));
    match word {
        ShellWord::Opaque(text) => {
            text == ADDED_WORDS || text.split(is_piece_end).any(|piece| word_matches(piece, token))
        }
        ShellWord::Plain(text) | ShellWord::Pattern(text) => word_matches(text, token),
    }
}

/// The word in place of those that `xargs` adds to a command.
pub(super) const ADDED_WORDS: &str = "…";

/// Returns true if a word such as `--no-dry-run` cancels one of the long options in a condition. It
/// may be abbreviated.
fn is_condition_canceled(condition: &str, words: &[ShellWord]) -> bool {
    let tokens = || condition.split_whitespace().map(|token| token.trim_start_matches('!'));
    words.iter().map(ShellWord::text).any(|word| {
        word.starts_with("--no")
            && !tokens().any(|token| token == word)
            && tokens()
                .filter_map(|token| token.strip_prefix("--"))
                .any(|name| format!("--no-{name}").starts_with(word))
    })
}

fn argument_matches(argument: &ParsedArgument, token: &str) -> bool {
    match argument {
        ParsedArgument::Option { name, .. } => word_matches(name, token),
        ParsedArgument::Operand(word)
        | ParsedArgument::MaybeOption(word)
        | ParsedArgument::Opaque(word) => {
            !token.starts_with('-') && word_matches(word.text(), token)
        }
    }
}

/// Returns the number of words that an option before a subcommand occupies, or `None` if the option
/// is not listed.
pub(super) fn option_word_count(options: &str, text: &str) -> Option<usize> {
    let name = text.split_once('=').map_or(text, |(name, _)| name);
    let (value_kind, _) = find_option(options, name)?;
    Some(match value_kind {
        OptionValueKind::Text | OptionValueKind::ReadPath | OptionValueKind::WrittenPath
            if name == text =>
        {
            2
        }
        OptionValueKind::Text
        | OptionValueKind::ReadPath
        | OptionValueKind::WrittenPath
        | OptionValueKind::Nothing
        | OptionValueKind::AttachedText => 1,
    })
}

/// Returns true if the word is the wanted option, abbreviates it or bundles it with other letters,
/// or is the wanted operand. `…` at the end matches any suffix.
fn word_matches(text: &str, token: &str) -> bool {
    let name = text.split_once('=').map_or(text, |(name, _)| name);
    if token.len() > 2 && token.starts_with("--") {
        return name == token || (name.len() > 3 && token.starts_with(name));
    }
    let letter = token.strip_prefix('-').and_then(|rest| rest.chars().next());
    match letter.filter(|letter| token.len() == 2 && letter.is_ascii_alphabetic()) {
        Some(letter) => text.starts_with('-') && !text.starts_with("--") && text.contains(letter),
        None => {
            let prefix = token.strip_suffix('…');
            text == token || prefix.is_some_and(|prefix| text.starts_with(prefix))
        }
    }
}
