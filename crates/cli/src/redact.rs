//! Redacts secrets: known API keys from all output, and from logs also text that looks like a key.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

/// Replacement for a redacted secret.
const REDACTED_MARK: &str = "[redacted]";

/// Prefixes of the API keys of common services, such as `sk-`.
const KEY_PREFIXES: &[&str] = &[
    "wlt_",
    "sk-",
    "sk_",
    "pk_",
    "rk_",
    "AIza",
    "ya29.",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "gsk_",
    "hf_",
    "r8_",
    "AKIA",
    "ASIA",
    "eyJ",
];

/// Words that a key follows, such as `bearer`.
const KEY_LABELS: &[&str] =
    &["bearer", "basic", "api_key", "api-key", "apikey", "token", "authorization"];

/// Minimum length of text that counts as a key.
const MIN_KEY_CHARS: usize = 16;

static KNOWN_SECRETS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Registers a secret; [`redact`] replaces it from now on wherever it appears.
pub(crate) fn add_secret(secret: &str) {
    let secret = secret.trim();
    let mut known = KNOWN_SECRETS.lock().unwrap_or_else(PoisonError::into_inner);
    if secret.len() < 8 {
        return;
    }
    // JSON escapes some characters.
    let escaped = serde_json::Value::from(secret).to_string();
    for form in [secret, escaped.trim_matches('"')] {
        if !known.iter().any(|other| other == form) {
            known.push(form.to_owned());
        }
    }
}

/// Returns the text with registered secrets replaced by `REDACTED_MARK`.
pub(crate) fn redact_known(text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    for secret in KNOWN_SECRETS.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        if text.contains(secret.as_str()) {
            text = Cow::Owned(text.replace(secret.as_str(), REDACTED_MARK));
        }
    }
    text
}

/// Returns where the longest end of a text begins that a registered secret starts with. More text
/// may complete the secret.
pub(crate) fn partial_secret_start(text: &str) -> usize {
    let known = KNOWN_SECRETS.lock().unwrap_or_else(PoisonError::into_inner);
    let starts = known.iter().filter_map(|secret| {
        let longest = secret.len().saturating_sub(1).min(text.len());
        let lengths = (1..=longest).rev().map(|length| text.len() - length);
        lengths
            .into_iter()
            .find(|start| text.get(*start..).is_some_and(|end| secret.starts_with(end)))
    });
    starts.min().unwrap_or(text.len())
}

/// Returns the text with all keys replaced by `REDACTED_MARK`.
pub(crate) fn redact(text: &str) -> String {
    let text = redact_known(text);
    let is_key_char = |c: char| c.is_ascii_alphanumeric() || "-_.+/=~".contains(c);
    let (mut redacted, mut word) = (String::with_capacity(text.len()), String::new());
    let mut follows_label = false;
    for c in text.chars().chain(['\n']) {
        if is_key_char(c) {
            word.push(c);
            continue;
        }
        let trimmed = word.trim_matches(['=', '.', '/']);
        let (name, value) = trimmed.split_once('=').unwrap_or(("", trimmed));
        let is_label =
            |word: &str| KEY_LABELS.iter().any(|label| word.to_ascii_lowercase().ends_with(label));
        let has_key_prefix = KEY_PREFIXES.iter().any(|prefix| value.starts_with(prefix));
        let is_key =
            value.len() >= MIN_KEY_CHARS && (has_key_prefix || follows_label || is_label(name));
        if is_key {
            redacted.push_str(&word.replace(value, REDACTED_MARK));
        } else {
            redacted.push_str(&word);
        }
        if !word.is_empty() {
            follows_label = is_label(trimmed);
        }
        word.clear();
        redacted.push(c);
    }
    redacted.pop();
    redacted
}

/// A writer that redacts keys. It relies on the logger to write each line in one call.
pub(crate) struct RedactingWriter<W>(pub(crate) W);

impl<W: Write> Write for RedactingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_all(redact(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::{RedactingWriter, add_secret, redact};
    use std::io::Write;

    #[test]
    fn text_that_looks_like_a_key_is_redacted() {
        for (text, expected) in [
            ("Authorization: Bearer abcdef0123456789abcdef", "Authorization: Bearer [redacted]"),
            ("x-api-key: \"abcdef0123456789abcdef\"", "x-api-key: \"[redacted]\""),
            ("key sk-ant-api03-0123456789abcdef, next", "key [redacted], next"),
            ("url?api_key=0123456789abcdef0123&x=1", "url?api_key=[redacted]&x=1"),
            ("{\"token\":\"eyJhbGciOiJIUzI1NiJ9.e30.abc\"}", "{\"token\":\"[redacted]\"}"),
            ("AIzaSyA0123456789abcdefghijklmnopqrst\n", "[redacted]\n"),
            ("made wlt_ab-CD_0123456789abcdef. Copy it", "made [redacted]. Copy it"),
            ("windlass=wlt_ab-CD_0123456789abcdef; Path=/", "windlass=[redacted]; Path=/"),
        ] {
            assert_eq!(redact(text), expected);
        }
    }

    #[test]
    fn other_text_is_unchanged() {
        for text in [
            "",
            "tool=read session=0193-abc call=0193-def time=1 ms",
            "a bearer of news, a token of thanks",
            "src/sk-tools/mod.rs: 12 tokens",
            "ünïcode — and\ttabs\r\n",
        ] {
            assert_eq!(redact(text), text);
        }
    }

    #[test]
    fn the_start_of_a_registered_secret_at_the_end_of_a_text_is_found() {
        add_secret("wl-key-0123456789");
        for (text, start) in [("a wl-key-01", 2), ("wl-key-012345678", 0), ("x w", 2), ("x y", 3)] {
            assert_eq!(super::partial_secret_start(text), start, "{text}");
        }
        assert_eq!(super::redact_known("a wl-key-0123456789 b"), "a [redacted] b");
        add_secret("quote\"and\\slash");
        assert_eq!(super::redact_known(r#"{"x":"quote\"and\\slash"}"#), r#"{"x":"[redacted]"}"#);
    }

    #[test]
    fn a_registered_secret_is_redacted_everywhere() {
        add_secret("correct horse battery");
        let mut written = Vec::new();
        let text = "body: {\"x\": \"correct horse battery staple\"}\n";
        RedactingWriter(&mut written).write_all(text.as_bytes()).unwrap();
        assert_eq!(written, b"body: {\"x\": \"[redacted] staple\"}\n");
    }
}
