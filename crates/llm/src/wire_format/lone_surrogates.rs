//! Replaces lone surrogate escapes in JSON text. A model may split a surrogate pair or send one
//! half alone. JSON permits this but Rust strings do not, so each lone surrogate becomes U+FFFD.

use std::borrow::Cow;

/// The JSON escape that replaces a lone surrogate.
const REPLACEMENT_ESCAPE: &str = "\\ufffd";

/// Returns the JSON text with lone surrogates replaced.
pub(super) fn replace_lone_surrogates(json: &str) -> Cow<'_, str> {
    let mut repaired = String::new();
    let mut copied = 0;
    let mut position = 0;
    while let Some(found) = json.get(position..).and_then(|rest| rest.find('\\')) {
        let escape = position + found;
        position = match parse_unicode_escape(json, escape) {
            // A two-character escape, or the end of text that is not valid JSON.
            None => escape + 2,
            Some(0xd800..=0xdbff)
                if matches!(parse_unicode_escape(json, escape + 6), Some(0xdc00..=0xdfff)) =>
            {
                escape + 12
            }
            Some(0xd800..=0xdfff) => {
                repaired.push_str(json.get(copied..escape).unwrap_or_default());
                repaired.push_str(REPLACEMENT_ESCAPE);
                copied = escape + 6;
                copied
            }
            Some(_) => escape + 6,
        };
        // The character after a backslash may be longer than one byte.
        position = json.ceil_char_boundary(position);
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    repaired.push_str(json.get(copied..).unwrap_or_default());
    Cow::Owned(repaired)
}

/// Parses an escape such as `\u00e9` at offset `offset`.
fn parse_unicode_escape(json: &str, offset: usize) -> Option<u16> {
    let digits = json.get(offset..offset + 6)?.strip_prefix("\\u")?;
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_hex.then(|| u16::from_str_radix(digits, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_lone_surrogates_are_replaced() {
        for (json, expected) in [
            (r#""\ud83d\ude00""#, r#""\ud83d\ude00""#),
            (r#""\uD83D""#, r#""\ufffd""#),
            (r#""\ude00 then""#, r#""\ufffd then""#),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\ude00\ud83d""#, r#""\ufffd\ufffd""#),
            (r#""\\ud83d""#, r#""\\ud83d""#),
            (r#""\\\ud83d""#, r#""\\\ufffd""#),
            (r#""\ud83d\n""#, r#""\ufffd\n""#),
            (r#""\ud83""#, r#""\ud83""#),
            ("\"\\é\\ud83d", "\"\\é\\ufffd"),
            ("\\", "\\"),
            ("", ""),
        ] {
            assert_eq!(replace_lone_surrogates(json), expected, "{json}");
        }
    }

    proptest! {
        #[test]
        fn equals_lossy_utf16_decoding(units in proptest::collection::vec(any::<u16>(), 0..40)) {
            let escaped: String = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
            let json = format!("\"{escaped}\"");
            let read: String = serde_json::from_str(&replace_lone_surrogates(&json)).unwrap();
            prop_assert_eq!(read, String::from_utf16_lossy(&units));
        }

        #[test]
        fn other_text_is_not_changed(text in "\\PC{0,60}") {
            let json = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(replace_lone_surrogates(&json), json.as_str());
            let _ = replace_lone_surrogates(&text);
        }
    }
}
