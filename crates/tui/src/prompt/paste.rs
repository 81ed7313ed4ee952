//! What is pasted: made harmless, folded into a chip where it is long, and looked at for the path of
//! a picture.

use super::motion;

/// More lines than this are folded.
const LINES: usize = 3;
/// More characters than this, too.
const CHARACTERS: usize = 400;
/// A chip of more characters cannot be opened in place.
pub(super) const OPENED: usize = 20_000;

/// A text without anything that cannot be typed: newlines and tabs are the only control characters.
pub(super) fn clean(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let kept = |character: &char| {
        matches!(character, '\n' | '\t')
            || !(character.is_control() || motion::chip(*character).is_some())
    };
    text.chars().filter(kept).collect()
}

/// True if a text is better folded.
pub(super) fn is_long(text: &str) -> bool {
    text.lines().count() > LINES || text.chars().nth(CHARACTERS).is_some()
}

/// The path of a picture or a document, if that is all a text is: as a terminal writes a file that is
/// dropped onto it, in quotes, as a URL, or with backslashes before what a shell would read.
pub(super) fn file(text: &str) -> Option<String> {
    const ENDINGS: [&str; 6] = [".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf"];
    let text = text.trim();
    if text.contains('\n') || text.len() > 4096 {
        return None;
    }
    let quoted = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    let (bare, path) = match (quoted('\'').or_else(|| quoted('"')), text.strip_prefix("file://")) {
        (Some(inside), _) => (true, inside.to_owned()),
        (None, Some(url)) => {
            let path = url.strip_prefix("localhost").unwrap_or(url);
            (true, percent_decoded(path)?)
        }
        (None, None) => (!has_bare_space(text), unescaped(text)),
    };
    let low = path.to_ascii_lowercase();
    let name = low.rsplit('/').next().unwrap_or_default();
    let ends = ENDINGS.iter().any(|ending| name.len() > ending.len() && name.ends_with(ending));
    // A name with spaces and nothing around it is likelier to be a sentence, unless it is rooted.
    (ends && !path.contains("://") && (bare || path.starts_with('/') || path.starts_with('~')))
        .then_some(path)
}

fn has_bare_space(text: &str) -> bool {
    let mut escaped = false;
    text.chars().any(|character| {
        let bare = character.is_whitespace() && !escaped;
        escaped = character == '\\' && !escaped;
        bare
    })
}

fn unescaped(text: &str) -> String {
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

fn percent_decoded(text: &str) -> Option<String> {
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
    fn nothing_that_steers_a_terminal_is_left_of_a_paste() {
        assert_eq!(clean("a\r\nb\rc\u{1b}[31m\u{7}\td\u{100001}\u{9b}"), "a\nb\nc[31m\td");
    }

    #[test]
    fn long_texts_are_folded() {
        assert!(!is_long("a\nb\nc"));
        assert!(is_long("a\nb\nc\nd"));
        assert!(!is_long(&"x".repeat(400)));
        assert!(is_long(&"x".repeat(401)));
    }

    #[test]
    fn a_dropped_picture_is_known_by_its_path() {
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
            assert_eq!(file(text).as_deref(), Some(path), "{text}");
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
            assert_eq!(file(text), None, "{text}");
        }
    }
}
