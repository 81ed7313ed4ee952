//! Keys are blotted out of what is logged: those that are known, and what looks like one.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

/// What stands where a key stood.
const BLOT: &str = "[redacted]";

/// How keys of services people use begin.
const BEGINNINGS: &[&str] = &[
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

/// After these words comes a key.
const WORDS: &[&str] =
    &["bearer", "basic", "api_key", "api-key", "apikey", "token", "authorization"];

/// A key has so many characters at least.
const SHORTEST: usize = 16;

static KNOWN: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// From now on this is blotted out, wherever it stands.
pub(crate) fn know(secret: &str) {
    let secret = secret.trim();
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if secret.len() >= 8 && !known.iter().any(|known| known == secret) {
        known.push(secret.to_owned());
    }
}

/// A text without keys.
pub(crate) fn redact(text: &str) -> String {
    let mut text = text.to_owned();
    for secret in KNOWN.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        if text.contains(secret.as_str()) {
            text = text.replace(secret.as_str(), BLOT);
        }
    }
    let part = |c: char| c.is_ascii_alphanumeric() || "-_.+/=~".contains(c);
    let (mut clean, mut word) = (String::with_capacity(text.len()), String::new());
    let mut follows = false;
    for c in text.chars().chain(['\n']) {
        if part(c) {
            word.push(c);
            continue;
        }
        let bare = word.trim_matches(['=', '.', '/']);
        let (name, value) = bare.split_once('=').unwrap_or(("", bare));
        let told =
            |word: &str| WORDS.iter().any(|known| word.to_ascii_lowercase().ends_with(known));
        let begins = BEGINNINGS.iter().any(|beginning| value.starts_with(beginning));
        let key = value.len() >= SHORTEST && (begins || follows || told(name));
        if key {
            clean.push_str(&word.replace(value, BLOT));
        } else {
            clean.push_str(&word);
        }
        if !word.is_empty() {
            follows = told(bare);
        }
        word.clear();
        clean.push(c);
    }
    clean.pop();
    clean
}

/// Writes without keys. A line comes whole: that is how it is logged.
pub(crate) struct Redacting<W>(pub(crate) W);

impl<W: Write> Write for Redacting<W> {
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
    use super::{Redacting, know, redact};
    use std::io::Write;

    #[test]
    fn what_looks_like_a_key_is_blotted_out() {
        for (text, clean) in [
            ("Authorization: Bearer abcdef0123456789abcdef", "Authorization: Bearer [redacted]"),
            ("x-api-key: \"abcdef0123456789abcdef\"", "x-api-key: \"[redacted]\""),
            ("key sk-ant-api03-0123456789abcdef, next", "key [redacted], next"),
            ("url?api_key=0123456789abcdef0123&x=1", "url?api_key=[redacted]&x=1"),
            ("{\"token\":\"eyJhbGciOiJIUzI1NiJ9.e30.abc\"}", "{\"token\":\"[redacted]\"}"),
            ("AIzaSyA0123456789abcdefghijklmnopqrst\n", "[redacted]\n"),
        ] {
            assert_eq!(redact(text), clean);
        }
    }

    #[test]
    fn what_does_not_stays() {
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
    fn a_known_key_is_blotted_out_wherever_it_stands() {
        know("correct horse battery");
        let mut written = Vec::new();
        let text = "body: {\"x\": \"correct horse battery staple\"}\n";
        Redacting(&mut written).write_all(text.as_bytes()).unwrap();
        assert_eq!(written, b"body: {\"x\": \"[redacted] staple\"}\n");
    }
}
