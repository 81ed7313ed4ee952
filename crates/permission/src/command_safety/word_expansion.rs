//! Resolves words that the shell expands, as far as their value can be known.

use crate::shell::ShellWord;
use std::cell::RefCell;
use std::collections::HashMap;

/// The variables that a command line has assigned, each with its value if that is known.
#[derive(Default)]
pub(super) struct KnownVariables(RefCell<HashMap<String, Option<String>>>);

impl KnownVariables {
    /// Records an assignment. A variable with two different values counts as unknown, because either
    /// can apply. Returns true if the value is known.
    pub(super) fn record(&self, name: &str, value: &ShellWord, has_private_tmp: bool) -> bool {
        let value = known_value(value, has_private_tmp);
        let mut variables = self.0.borrow_mut();
        let known = variables.entry(name.to_owned()).or_insert_with(|| value.clone());
        if *known != value {
            *known = None;
        }
        known.is_some()
    }

    /// Replaces the assigned variables in a word, if that makes its value known.
    pub(super) fn expand(&self, word: &ShellWord) -> ShellWord {
        let value_of = |name: &str| self.get(name).flatten();
        match word {
            ShellWord::Opaque(text) => match expand_known_variables(text, value_of) {
                Some(expanded @ ShellWord::Plain(_)) => expanded,
                Some(ShellWord::Pattern(_) | ShellWord::Opaque(_)) | None => word.clone(),
            },
            ShellWord::Plain(_) | ShellWord::Pattern(_) => word.clone(),
        }
    }

    /// Forgets the values of all variables, because a command may have changed them.
    pub(super) fn forget_values(&self) {
        self.0.borrow_mut().values_mut().for_each(|value| *value = None);
    }

    /// Returns the value of an assigned variable: `Some(None)` if it is unknown.
    pub(super) fn get(&self, name: &str) -> Option<Option<String>> {
        self.0.borrow().get(name).cloned()
    }
}

/// Replaces the variables in a word whose value is known. The result stays `ShellWord::Opaque` if
/// any other part is unknown. Returns `None` if the home folder is needed and unknown.
pub(super) fn expand_known_variables(
    text: &str,
    value_of: impl Fn(&str) -> Option<String>,
) -> Option<ShellWord> {
    let text = text.replace('"', "");
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some(index) = rest.find('$') {
        let (before, after) = rest.split_at_checked(index)?;
        out.push_str(before);
        let variable = split_variable(after);
        match variable.and_then(|(name, after)| Some((value_of(name)?, after))) {
            Some((value, after)) => {
                out.push_str(&value);
                rest = after;
            }
            None if variable.is_some_and(|(name, _)| name == "HOME") => return None,
            None => {
                out.push('$');
                rest = after.strip_prefix('$')?;
            }
        }
    }
    out.push_str(rest);
    Some(match out.contains(['$', '`', '\\', '\'', '{', '(', '<']) {
        true => ShellWord::Opaque(out),
        false if out.contains(['*', '?', '[']) => ShellWord::Pattern(out),
        false => ShellWord::Plain(out),
    })
}

/// Splits `$NAME…` or `${NAME}…` into the name and the text after it.
fn split_variable(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix('$')?;
    if let Some(rest) = rest.strip_prefix('{') {
        let (name, after) = rest.split_once('}')?;
        return is_variable_name(name).then_some((name, after));
    }
    let end = rest.find(|c: char| !is_name_char(c)).unwrap_or(rest.len());
    let (name, after) = rest.split_at_checked(end)?;
    is_variable_name(name).then_some((name, after))
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

pub(super) fn is_variable_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(is_name_char)
}

/// Returns the value that an assignment gives a variable, if it is known and the shell does not
/// split or expand it again. A file of `mktemp` is new and in the temporary folder.
fn known_value(value: &ShellWord, has_private_tmp: bool) -> Option<String> {
    let is_unsplit = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+=,".contains(c);
    match value {
        ShellWord::Plain(text) if !text.is_empty() && text.chars().all(is_unsplit) => {
            Some(text.clone())
        }
        ShellWord::Opaque(text) if has_private_tmp => {
            let text = text.trim_matches('"');
            let command = text.strip_prefix("$(mktemp").and_then(|rest| rest.strip_suffix(')'))?;
            matches!(command.trim(), "" | "-d").then(|| "/tmp/tmp.mktemp".to_owned())
        }
        ShellWord::Plain(_) | ShellWord::Pattern(_) | ShellWord::Opaque(_) => None,
    }
}

/// Returns the paths that are named in the substitutions of a word: `$(echo /x)/y` names `/x`.
pub(super) fn paths_in_substitutions(text: &str) -> Vec<ShellWord> {
    let (_, inside) = split_substitutions(text);
    let is_separator = |c: char| c.is_whitespace() || "'\"<>|&;".contains(c);
    let names_path = |piece: &&str| piece.starts_with(['/', '~']) && !piece.contains('$');
    let to_word = |piece: &str| match piece.starts_with('~') {
        true => ShellWord::Pattern(piece.to_owned()),
        false => ShellWord::Plain(piece.to_owned()),
    };
    inside.split(is_separator).filter(names_path).map(to_word).collect()
}

/// Returns the words that a word with one list in braces expands to, such as `a{b,c}`.
pub(super) fn expand_braces(word: &ShellWord) -> Vec<ShellWord> {
    let unchanged = || vec![word.clone()];
    let ShellWord::Opaque(text) = word else { return unchanged() };
    let Some((start, (list, end))) = text
        .split_once('{')
        .and_then(|(start, rest)| Some((start, rest.split_once('}')?)))
        .filter(|_| !text.contains(['$', '`', '\\', '\'', '"', '*', '?', '[', '(']))
    else {
        return unchanged();
    };
    if list.contains('{') || end.contains(['{', '}']) || !list.contains(',') {
        return unchanged();
    }
    list.split(',').map(|part| ShellWord::Plain(format!("{start}{part}{end}"))).collect()
}

/// Decodes a word that is one string of the form `$'…'`. Other words stay the same.
pub(super) fn decode_dollar_quotes(word: &ShellWord) -> ShellWord {
    let ShellWord::Opaque(text) = word else { return word.clone() };
    let inner = text.strip_prefix("$'").and_then(|rest| rest.strip_suffix('\''));
    match inner.and_then(decode_escapes) {
        Some(decoded) => ShellWord::Plain(decoded),
        None => word.clone(),
    }
}

/// Decodes the escapes of `$'…'`. Returns `None` for a text with other quotes or unknown escapes.
fn decode_escapes(text: &str) -> Option<String> {
    let mut decoded = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = rest.get(c.len_utf8()..)?;
        if c != '\\' {
            if c == '\'' {
                return None;
            }
            decoded.push(c);
            continue;
        }
        let escape = rest.chars().next()?;
        rest = rest.get(escape.len_utf8()..)?;
        let (max_digits, radix) = match escape {
            'x' => (2, 16),
            'u' => (4, 16),
            'U' => (8, 16),
            '0'..='7' => (3, 8),
            _ => {
                decoded.push(match escape {
                    'n' => '\n',
                    't' => '\t',
                    '\\' | '\'' | '"' | '?' => escape,
                    _ => return None,
                });
                continue;
            }
        };
        let digits = if radix == 8 { text.get(text.len() - rest.len() - 1..)? } else { rest };
        let count = digits.chars().take(max_digits).take_while(|c| c.is_digit(radix)).count();
        let (number, after) = digits.split_at_checked(count)?;
        decoded.push(char::from_u32(u32::from_str_radix(number, radix).ok()?)?);
        rest = after;
    }
    Some(decoded)
}

/// Returns true if a word leads out of the current folder, whatever its unknown parts are. Text
/// inside a substitution is not a path.
pub(super) fn leads_outside(text: &str) -> bool {
    let (outside, _) = split_substitutions(text);
    // The value of `${!x}` is that of another variable.
    outside.starts_with(['/', '~']) || outside.contains("..") || outside.contains("${!")
}

/// Returns the text of a word outside its substitutions, and the text inside them with spaces in
/// place of everything else.
fn split_substitutions(text: &str) -> (String, String) {
    let (mut depth, mut in_backticks) = (0_usize, false);
    let (mut outside, mut inside) = (String::new(), String::new());
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            '`' => in_backticks = !in_backticks,
            _ if depth > 0 || in_backticks => {
                inside.push(c);
                continue;
            }
            _ => outside.push(c),
        }
        inside.push(' ');
    }
    (outside, inside)
}
