//! Escapes in paths: tools spell a path as text, and a name need not be text.
//!
//! A byte that is not part of valid UTF-8, or of a character that could deceive the reader, is
//! written as a backslash and three octal digits, as `git` and `ls` do: `report\377.txt`. The rest
//! of the name stays as it is, so the patterns of permission rules match its beginning and its end.
//! Every name has exactly one escaped form, because rules are matched against it. On Windows the
//! backslash separates names, so nothing is escaped there.

use crate::display_text::is_hidden_or_bidi;
use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::Path;

/// Returns true for a character that a path must not contain as it is: the user sees the path in a
/// permission request, so it must look like what it is.
pub fn is_deceptive(character: char) -> bool {
    character.is_control() || is_hidden_or_bidi(character)
}

/// Returns the form in which tools show a name or a relative path, or `None` if it cannot be shown
/// on this system.
pub fn escape_path(path: &OsStr) -> Option<Cow<'_, str>> {
    #[cfg(unix)]
    return Some(escape_bytes(path.as_encoded_bytes()));
    #[cfg(not(unix))]
    path.to_str().map(Cow::Borrowed)
}

/// Returns the form in which tools show a name or a relative path. Where the system cannot show it
/// exactly, replaces what is no text.
pub fn escape_path_lossy(path: &OsStr) -> Cow<'_, str> {
    escape_path(path).unwrap_or_else(|| path.to_string_lossy())
}

/// Returns the path that an escaped form stands for.
pub fn unescape_path(path: &str) -> Cow<'_, Path> {
    #[cfg(unix)]
    if path.contains('\\') {
        use std::os::unix::ffi::OsStringExt;
        let bytes = unescape_bytes(path.as_bytes());
        return Cow::Owned(std::ffi::OsString::from_vec(bytes).into());
    }
    Cow::Borrowed(Path::new(path))
}

#[cfg(unix)]
fn escape_bytes(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes)
        && !text.contains(is_deceptive)
        && !text.contains('\\')
    {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(bytes.len() + 12);
    let push_octal = |escaped: &mut String, bytes: &[u8]| {
        bytes.iter().for_each(|byte| escaped.push_str(&format!("\\{byte:03o}")));
    };
    for chunk in bytes.utf8_chunks() {
        let valid = chunk.valid();
        for (index, character) in valid.char_indices() {
            let is_escape = character == '\\'
                && octal_escape(valid.as_bytes().get(index..).unwrap_or_default()).is_some();
            if is_escape || is_deceptive(character) {
                push_octal(&mut escaped, character.encode_utf8(&mut [0; 4]).as_bytes());
            } else {
                escaped.push(character);
            }
        }
        push_octal(&mut escaped, chunk.invalid());
    }
    Cow::Owned(escaped)
}

#[cfg(unix)]
fn unescape_bytes(escaped: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(escaped.len());
    let mut rest = escaped;
    while let Some((first, after)) = rest.split_first() {
        match octal_escape(rest) {
            Some(byte) => {
                bytes.push(byte);
                rest = rest.get(4..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    bytes
}

/// Returns the byte that the escape at the beginning stands for. A zero byte or a separator cannot
/// be part of a name, so those are not escapes.
#[cfg(unix)]
fn octal_escape(text: &[u8]) -> Option<u8> {
    let [b'\\', digits @ ..] = text.get(..4)? else { return None };
    let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
    u8::from_str_radix(digits, 8).ok().filter(|byte| !matches!(byte, 0 | b'/'))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::ffi::OsStrExt;

    fn escape(bytes: &[u8]) -> String {
        escape_path(OsStr::from_bytes(bytes)).unwrap().into_owned()
    }

    fn unescape(text: &str) -> Vec<u8> {
        unescape_path(text).as_os_str().as_bytes().to_vec()
    }

    #[test]
    fn only_what_is_no_plain_text_is_escaped() {
        assert_eq!(escape("src/ä 漢 $'x'.rs".as_bytes()), "src/ä 漢 $'x'.rs");
        assert_eq!(escape(b"caf\xe9.txt"), r"caf\351.txt");
        assert_eq!(escape(b"red\x1b[31m\n"), r"red\033[31m\012");
        assert_eq!(escape("a\u{202e}b".as_bytes()), r"a\342\200\256b");
        assert_eq!(escape(br"dir\name"), r"dir\name", "a backslash alone means itself");
        assert_eq!(escape(br"dir\100"), r"dir\134100");
    }

    #[test]
    fn separators_and_other_backslashes_are_not_escapes() {
        assert_eq!(unescape(r"a\057b"), br"a\057b");
        assert_eq!(unescape(r"a\000"), br"a\000");
        assert_eq!(unescape(r"a\400\8\+12\12"), br"a\400\8\+12\12");
        assert_eq!(unescape(r"\056\056"), b"..");
    }

    proptest! {
        #[test]
        fn every_name_has_one_escaped_form(bytes in proptest::collection::vec(1_u8.., 0..24)) {
            let escaped = escape(&bytes);
            prop_assert!(!escaped.contains(is_deceptive));
            prop_assert_eq!(unescape(&escaped), bytes);
        }

        #[test]
        fn every_spelling_leads_to_the_same_form(text in r"[\\0-7a/.é]{0,24}") {
            let bytes = unescape(&text);
            prop_assert_eq!(unescape(&escape(&bytes)), bytes);
        }
    }
}
