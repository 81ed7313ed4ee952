//! What looks like a secret, so that it is printed nowhere and goes into no file of a project.
//!
//! It guesses, and rather says yes once too often: what it takes for a secret stays with the person.

use serde_json::Value;

/// Words that names of secrets have.
const NAMES: [&str; 12] = [
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

/// How known secrets begin.
const BEGINNINGS: [&str; 14] = [
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

/// No plain word is longer.
const LONGEST_WORD: usize = 24;

/// True if what stands under a name is better not shown. A reference to the environment is none.
pub(super) fn is_secret(name: &str, value: &str) -> bool {
    if value.is_empty() || value.starts_with('…') || is_reference(value) {
        return false;
    }
    let name = name.to_ascii_lowercase();
    NAMES.iter().any(|word| name.contains(word)) || looks_secret(value)
}

/// True if a value refers to the environment in all that could be a secret.
fn is_reference(value: &str) -> bool {
    let value = BEGINNINGS.iter().fold(value, |value, begin| match begin.ends_with(' ') {
        true => value.strip_prefix(begin).unwrap_or(value),
        false => value,
    });
    let inner = value.strip_prefix("{env:").and_then(|rest| rest.strip_suffix('}'));
    inner.is_some_and(|name| !name.contains(['{', '}']))
}

/// True if a text is one by itself.
pub(super) fn looks_secret(text: &str) -> bool {
    let text = text.trim_start_matches(['"', '\'', '(', '[', '{', '<', '=']);
    let known =
        BEGINNINGS.iter().any(|begin| text.starts_with(begin) && text.len() > begin.len() + 4);
    known || text.split(['=', ':', '/', '?', '&', ',', ' ', '@']).any(is_noise)
}

/// True for a long word with letters and digits among one another.
fn is_noise(word: &str) -> bool {
    let plain = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '_' | '.' | '+');
    let digits = word.chars().filter(char::is_ascii_digit).count();
    let letters = word.chars().filter(char::is_ascii_alphabetic).count();
    word.len() > LONGEST_WORD && word.chars().all(plain) && digits >= 4 && letters >= 4
}

/// The words of a command in a line, without what looks like a secret.
pub(super) fn masked(words: &[&str]) -> String {
    let mut shown = Vec::new();
    let mut before = "";
    for word in words {
        let hidden = looks_secret(word)
            || match word.split_once('=') {
                Some((name, value)) => is_secret(name, value),
                None => {
                    before.starts_with('-') && !word.starts_with('-') && is_secret(before, word)
                }
            };
        match (hidden, word.split_once('=')) {
            (false, _) => shown.push((*word).to_owned()),
            (true, Some((name, _))) => shown.push(format!("{name}=…")),
            (true, None) => shown.push("…".to_owned()),
        }
        before = word;
    }
    shown.join(" ")
}

/// A line for people, without what looks like a secret.
pub(super) fn masked_line(line: &str) -> String {
    masked(&line.split(' ').collect::<Vec<_>>())
}

/// True if the words of a command hold what looks like a secret.
pub(super) fn in_words(words: &[&str]) -> bool {
    masked(words) != words.join(" ")
}

/// An address without a password, and without what it asks for.
pub(super) fn masked_url(url: &str) -> String {
    let (bare, asked) = url.split_once(['?', '#']).map_or((url, ""), |(bare, _)| (bare, "?…"));
    let Some((scheme, rest)) = bare.split_once("://") else { return "…".to_owned() };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = host.rsplit_once('@').map_or(host.to_owned(), |(_, host)| format!("…@{host}"));
    let part = |part: &str| if is_noise(part) { "…".to_owned() } else { part.to_owned() };
    let path: Vec<String> = path.split('/').map(part).collect();
    let path = path.join("/");
    let between = if rest.contains('/') { "/" } else { "" };
    format!("{scheme}://{host}{between}{path}{asked}")
}

/// True if a value, or one of its parts, says this.
pub(super) fn mentions(value: &Value, text: &str) -> bool {
    match value {
        Value::String(said) => said.contains(text),
        Value::Array(items) => items.iter().any(|item| mentions(item, text)),
        Value::Object(map) => map.values().any(|item| mentions(item, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
