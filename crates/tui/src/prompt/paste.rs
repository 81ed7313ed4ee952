//! Pasted text: removes control characters, folds long text into a chip, and detects the path of an
//! image or document.

use super::cursor;

/// Pastes with more lines become a chip.
const MAX_INLINE_LINES: usize = 3;
/// Pastes with more characters become a chip.
const MAX_INLINE_CHARS: usize = 400;
/// Larger chips cannot be expanded in place.
pub(super) const MAX_EXPANDED_CHARS: usize = 20_000;

/// Removes everything that cannot be typed; newlines and tabs are the only control characters kept.
pub(super) fn clean_paste(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let is_allowed = |character: &char| {
        matches!(character, '\n' | '\t')
            || !(character.is_control() || cursor::chip_number(*character).is_some())
    };
    text.chars().filter(is_allowed).collect()
}

/// Returns true if a text should become a `PromptChip`.
pub(super) fn is_long(text: &str) -> bool {
    text.lines().count() > MAX_INLINE_LINES || text.chars().nth(MAX_INLINE_CHARS).is_some()
}

/// Parses a text that is only the path of an image or document, in the forms that terminals use for
/// a dropped file: quoted, as a `file://` URL, or with shell escapes.
pub(super) fn parse_file_path(text: &str) -> Option<String> {
    const ATTACHABLE_EXTENSIONS: [&str; 6] = [".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf"];
    let text = text.trim();
    if text.contains('\n') || text.len() > 4096 {
        return None;
    }
    let quoted = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    let (is_single_token, path) =
        match (quoted('\'').or_else(|| quoted('"')), text.strip_prefix("file://")) {
            (Some(path), _) => (true, path.to_owned()),
            (None, Some(url)) => {
                let path = url.strip_prefix("localhost").unwrap_or(url);
                (true, percent_decode(path)?)
            }
            (None, None) => (!has_unescaped_space(text), unescape(text)),
        };
    let lowercase = path.to_ascii_lowercase();
    let name = lowercase.rsplit('/').next().unwrap_or_default();
    let has_extension = ATTACHABLE_EXTENSIONS
        .iter()
        .any(|extension| name.len() > extension.len() && name.ends_with(extension));
    // An unquoted name with spaces is probably a sentence, unless it is an absolute or home path.
    (has_extension
        && !path.contains("://")
        && (is_single_token || path.starts_with('/') || path.starts_with('~')))
    .then_some(path)
}

fn has_unescaped_space(text: &str) -> bool {
    let mut escaped = false;
    text.chars().any(|character| {
        let is_unescaped = character.is_whitespace() && !escaped;
        escaped = character == '\\' && !escaped;
        is_unescaped
    })
}

fn unescape(text: &str) -> String {
    let mut path = String::new();
    let mut escaped = false;
    for character in text.chars() {
        escaped = character == '\\' && !escaped;
        if !escaped {
            path.push(character);
        }
    }
    path
}

fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let mut digit = || char::from(rest.next()?).to_digit(16);
            bytes.push(u8::try_from(digit()? * 16 + digit()?).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_removed_from_a_paste() {
        assert_eq!(clean_paste("a\r\nb\rc\u{1b}[31m\u{7}\td\u{100001}\u{9b}"), "a\nb\nc[31m\td");
    }

    #[test]
    fn long_texts_are_detected() {
        assert!(!is_long("a\nb\nc"));
        assert!(is_long("a\nb\nc\nd"));
        assert!(!is_long(&"x".repeat(400)));
        assert!(is_long(&"x".repeat(401)));
    }

    #[test]
    fn a_dropped_file_is_detected_by_its_path() {
        for (text, path) in [
            ("/tmp/shot.png", "/tmp/shot.png"),
            ("shot.PNG ", "shot.PNG"),
            ("'/tmp/my shot.png'", "/tmp/my shot.png"),
            ("\"a b.jpeg\"", "a b.jpeg"),
            ("/tmp/my\\ shot\\(1\\).webp", "/tmp/my shot(1).webp"),
            ("file:///tmp/my%20shot.gif", "/tmp/my shot.gif"),
            ("file://localhost/tmp/a.pdf", "/tmp/a.pdf"),
            ("~/docs/paper v2.pdf", "~/docs/paper v2.pdf"),
        ] {
            assert_eq!(parse_file_path(text).as_deref(), Some(path), "{text}");
        }
        for text in [
            "look at shot.png",
            "shot.txt",
            ".png",
            "",
            "a.png\nb.png",
            "https://example.org/a.png",
            "file:///tmp/%zz.png",
        ] {
            assert_eq!(parse_file_path(text), None, "{text}");
        }
    }
}
