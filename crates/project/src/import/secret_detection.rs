//! Detects secrets, so that none is printed or written into a project's file.
//!
//! It is a heuristic that prefers false positives: a suspected secret stays with the user.

use serde_json::Value;

/// Words in the names of secrets.
const SECRET_NAME_WORDS: [&str; 12] = [
    "key",
    "token",
    "secret",
    "passw",
    "pwd",
    "auth",
    "credential",
    "cookie",
    "bearer",
    "session",
    "private",
    "signature",
];

/// Prefixes of known kinds of secrets, such as `ghp_`.
const SECRET_PREFIXES: [&str; 14] = [
    "sk-",
    "pk-",
    "rk-",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xox",
    "AKIA",
    "AIza",
    "eyJ",
    "Bearer ",
    "Basic ",
];

/// Longer words may be random.
const MAX_PLAIN_WORD_CHARS: usize = 24;

/// Returns `true` if the value under a name should not be shown. A reference to the environment is
/// not a secret.
pub(super) fn is_secret(name: &str, value: &str) -> bool {
    if value.is_empty() || value.starts_with('…') || is_env_reference(value) {
        return false;
    }
    is_secret_name(name) || looks_like_secret(value)
}

/// Returns `true` for a name that secrets have.
pub(super) fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_NAME_WORDS.iter().any(|word| name.contains(word))
}

/// Returns `true` if a script or a file beside one contains a suspected secret: a word that looks
/// like one, or a literal value with digits under the name of one.
pub(super) fn text_has_secret(text: &str) -> bool {
    let is_separator = |c: char| c.is_whitespace() || "\"'`;()<>[]{}|,".contains(c);
    text.split(is_separator).any(looks_like_secret) || text.lines().any(assigns_secret)
}

/// Returns `true` for a line such as `TOKEN=abc12345` or `"token": "abc12345"`.
fn assigns_secret(line: &str) -> bool {
    let Some((name, value)) = line.split_once(['=', ':']) else { return false };
    let name = name.trim_end().trim_end_matches(['"', '\'']);
    let is_name_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let name = name.rsplit(|c| !is_name_char(c)).next().unwrap_or_default();
    let quoted = value.trim_start().strip_prefix(['"', '\'']);
    // Without quotes, a value is a literal only in a shell, where it follows at once.
    let value = quoted.unwrap_or(value);
    let end = value.find(|c: char| c.is_whitespace() || "\"';,".contains(c));
    let value = value.get(..end.unwrap_or(value.len())).unwrap_or_default();
    let is_literal = value.len() >= 8 && !value.contains(['$', '`', '(', '{', '/', '.']);
    is_literal && value.contains(|c: char| c.is_ascii_digit()) && is_secret_name(name)
}

/// Returns `true` if every part of the value that could be secret refers to the environment.
fn is_env_reference(value: &str) -> bool {
    let value = SECRET_PREFIXES.iter().fold(value, |value, prefix| match prefix.ends_with(' ') {
        true => value.strip_prefix(prefix).unwrap_or(value),
        false => value,
    });
    let inner = value.strip_prefix("{env:").and_then(|rest| rest.strip_suffix('}'));
    inner.is_some_and(|name| !name.contains(['{', '}']))
}

/// Returns `true` if the text looks like a secret by itself.
pub(super) fn looks_like_secret(text: &str) -> bool {
    let text = text.trim_start_matches(['"', '\'', '(', '[', '{', '<', '=']);
    let has_known_prefix = SECRET_PREFIXES
        .iter()
        .any(|prefix| text.starts_with(prefix) && text.len() > prefix.len() + 4);
    has_known_prefix || text.split(['=', ':', '/', '?', '&', ',', ' ', '@']).any(is_random_word)
}

/// Returns `true` for a long word that mixes letters and digits.
fn is_random_word(word: &str) -> bool {
    let is_word_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+');
    let digits = word.chars().filter(char::is_ascii_digit).count();
    let letters = word.chars().filter(char::is_ascii_alphabetic).count();
    word.len() > MAX_PLAIN_WORD_CHARS
        && word.chars().all(is_word_char)
        && digits >= 4
        && letters >= 4
}

/// Joins the words of a command and masks suspected secrets.
pub(super) fn mask_command(words: &[&str]) -> String {
    let mut masked = Vec::new();
    let mut previous = "";
    for word in words {
        let is_hidden = looks_like_secret(word)
            || match word.split_once('=') {
                Some((name, value)) => is_secret(name, value),
                None => {
                    previous.starts_with('-') && !word.starts_with('-') && is_secret(previous, word)
                }
            };
        match (is_hidden, word.split_once('=')) {
            (false, _) => masked.push((*word).to_owned()),
            (true, Some((name, _))) => masked.push(format!("{name}=…")),
            (true, None) => masked.push("…".to_owned()),
        }
        previous = word;
    }
    masked.join(" ")
}

/// Masks suspected secrets in a line for the user.
pub(super) fn mask_line(line: &str) -> String {
    mask_command(&line.split(' ').collect::<Vec<_>>())
}

/// Returns `true` if a command contains a suspected secret.
pub(super) fn command_has_secret(words: &[&str]) -> bool {
    mask_command(words) != words.join(" ")
}

/// Returns a URL with `…` in place of its password, its query and random path parts.
pub(super) fn mask_url(url: &str) -> String {
    let (base, query) = url.split_once(['?', '#']).map_or((url, ""), |(base, _)| (base, "?…"));
    let Some((scheme, rest)) = base.split_once("://") else { return "…".to_owned() };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = host.rsplit_once('@').map_or(host.to_owned(), |(_, host)| format!("…@{host}"));
    let mask_part =
        |part: &str| if is_random_word(part) { "…".to_owned() } else { part.to_owned() };
    let path: Vec<String> = path.split('/').map(mask_part).collect();
    let path = path.join("/");
    let separator = if rest.contains('/') { "/" } else { "" };
    format!("{scheme}://{host}{separator}{path}{query}")
}

/// Returns `true` if a string in the value contains the text.
pub(super) fn contains_text(value: &Value, text: &str) -> bool {
    match value {
        Value::String(string) => string.contains(text),
        Value::Array(items) => items.iter().any(|item| contains_text(item, text)),
        Value::Object(map) => map.values().any(|item| contains_text(item, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
