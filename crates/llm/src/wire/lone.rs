//! Halves of characters: a model may cut a surrogate pair in two, or send one half alone. JSON lets
//! it, text does not, so each half that is alone becomes the sign for what cannot be shown.

use std::borrow::Cow;

/// What stands in place of a half, as JSON writes it.
const UNKNOWN: &str = "\\ufffd";

/// The same JSON text without halves of characters.
pub(super) fn mended(json: &str) -> Cow<'_, str> {
    let mut mended = String::new();
    let (mut kept, mut at) = (0, 0);
    while let Some(found) = json.get(at..).and_then(|rest| rest.find('\\')) {
        let escape = at + found;
        at = match unit(json, escape) {
            // An escape of two signs, or the end of something that is no JSON.
            None => escape + 2,
            Some(0xd800..=0xdbff) if matches!(unit(json, escape + 6), Some(0xdc00..=0xdfff)) => {
                escape + 12
            }
            Some(0xd800..=0xdfff) => {
                mended.push_str(json.get(kept..escape).unwrap_or_default());
                mended.push_str(UNKNOWN);
                kept = escape + 6;
                kept
            }
            Some(_) => escape + 6,
        };
        // A sign behind a backslash may be longer than a byte.
        at = json.ceil_char_boundary(at);
    }
    if kept == 0 {
        return Cow::Borrowed(json);
    }
    mended.push_str(json.get(kept..).unwrap_or_default());
    Cow::Owned(mended)
}

/// The number in an escape like `\u00e9`, if that stands there.
fn unit(json: &str, at: usize) -> Option<u16> {
    let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
    let hexadecimal = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    hexadecimal.then(|| u16::from_str_radix(digits, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_halves_that_are_alone_are_mended() {
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
            assert_eq!(mended(json), expected, "{json}");
        }
    }

    proptest! {
        /// Whatever JSON lets through becomes text, as it does elsewhere.
        #[test]
        fn what_is_mended_is_text(units in proptest::collection::vec(any::<u16>(), 0..40)) {
            let escaped: String = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
            let json = format!("\"{escaped}\"");
            let read: String = serde_json::from_str(&mended(&json)).unwrap();
            prop_assert_eq!(read, String::from_utf16_lossy(&units));
        }

        #[test]
        fn nothing_else_is_touched(text in "\\PC{0,60}") {
            let json = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(mended(&json), json.as_str());
            let _ = mended(&text);
        }
    }
}
