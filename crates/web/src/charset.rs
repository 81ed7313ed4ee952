//! Decodes the bytes of a response into text.
//!
//! It tries, in this order, a byte order mark, the header, the charset declared in the first bytes
//! of the page, and a guess. A label that does not fit the bytes is noted, and the next one is
//! tried. This module performs no I/O.

use crate::content_kind::ContentKind;
use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, ISO_2022_JP, UTF_8, UTF_16BE, UTF_16LE};

/// Limit for the search for a `charset=` declaration.
const MAX_SNIFF_BYTES: usize = 1024;
/// Limit for the bytes that a guess uses.
const MAX_GUESS_BYTES: usize = 1 << 20;

/// Text decoded by [`decode_text`], and its encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodedText {
    /// Decoded text.
    pub text: String,
    /// Name of the encoding.
    pub encoding: &'static str,
    /// Note on a declared encoding that is wrong or unknown.
    pub note: Option<String>,
}

/// Decodes bytes into text. The top-level domain `tld` helps to guess.
pub fn decode_text(
    bytes: &[u8],
    kind: ContentKind,
    label: Option<&str>,
    tld: Option<&str>,
) -> DecodedText {
    if let Some((encoding, bom_bytes)) = Encoding::for_bom(bytes) {
        return decode_as(bytes.get(bom_bytes..).unwrap_or_default(), encoding, None);
    }
    let is_utf8 = !bytes.is_ascii() && std::str::from_utf8(bytes).is_ok();
    let declared = (kind == ContentKind::Html || bytes.trim_ascii_start().starts_with(b"<?xml"))
        .then(|| declared_charset(bytes))
        .flatten();
    let mut note = None;
    for label in [label.map(str::to_owned), declared].into_iter().flatten() {
        let Some(encoding) = Encoding::for_label(label.as_bytes()) else {
            note = note.or(Some(format!("the declared charset {label:?} is unknown")));
            continue;
        };
        let is_stateful_or_wide = [UTF_16LE, UTF_16BE, ISO_2022_JP].contains(&encoding);
        let fits = match is_stateful_or_wide {
            true => !encoding.decode_without_bom_handling(bytes).1,
            // Text in another encoding is hardly ever valid UTF-8 by chance.
            false if is_utf8 => encoding == UTF_8,
            false => decodes_cleanly(bytes, encoding),
        };
        if fits {
            return decode_as(bytes, encoding, note);
        }
        note = note.or(Some(format!("the declared charset {} is wrong", encoding.name())));
    }
    let guess = match detect_utf16(bytes) {
        Some(encoding) => encoding,
        None if is_utf8 || bytes.is_ascii() => UTF_8,
        None => guess_encoding(bytes, tld),
    };
    decode_as(bytes, guess, note)
}

fn decode_as(bytes: &[u8], encoding: &'static Encoding, note: Option<String>) -> DecodedText {
    let (text, _) = encoding.decode_without_bom_handling(bytes);
    let note = note.map(|note| format!("{note}; decoded as {}", encoding.name()));
    DecodedText { text: text.into_owned(), encoding: encoding.name(), note }
}

/// Returns true if the bytes are valid in an encoding, except for a few: pages are cut and
/// concatenated.
fn decodes_cleanly(bytes: &[u8], encoding: &'static Encoding) -> bool {
    let (text, has_errors) = encoding.decode_without_bom_handling(bytes);
    if !has_errors {
        return true;
    }
    let replaced = text.chars().filter(|c| *c == char::REPLACEMENT_CHARACTER).count();
    let non_ascii = bytes.iter().filter(|byte| !byte.is_ascii()).count();
    replaced * 20 <= non_ascii
}

fn guess_encoding(bytes: &[u8], tld: Option<&str>) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(bytes.get(..MAX_GUESS_BYTES).unwrap_or(bytes), true);
    let tld = tld.filter(|tld| tld.bytes().all(|byte| byte.is_ascii_lowercase()));
    detector.guess(tld.map(str::as_bytes), Utf8Detection::Allow)
}

/// Detects UTF-16 without a byte order mark: zero bytes are on one side of the pairs only.
fn detect_utf16(bytes: &[u8]) -> Option<&'static Encoding> {
    let (pairs, _) = bytes.get(..MAX_SNIFF_BYTES).unwrap_or(bytes).as_chunks::<2>();
    let zeros_first = pairs.iter().filter(|[first, _]| *first == 0).count();
    let zeros_second = pairs.iter().filter(|[_, second]| *second == 0).count();
    match (zeros_first, zeros_second) {
        (zeros, 0) if zeros * 2 > pairs.len() => Some(UTF_16BE),
        (0, zeros) if zeros * 2 > pairs.len() => Some(UTF_16LE),
        _ => None,
    }
}

/// Returns the `charset=` or `encoding=` that a page declares.
fn declared_charset(bytes: &[u8]) -> Option<String> {
    let head = bytes.get(..MAX_SNIFF_BYTES).unwrap_or(bytes);
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let marks = ["encoding=", "charset="];
    let label = marks.iter().find_map(|mark| {
        let (_, rest) = head.split_once(mark)?;
        let rest = rest.trim_start().trim_start_matches(['"', '\'']);
        let end = rest.find(|c: char| c.is_whitespace() || "\"'/>;?".contains(c))?;
        rest.get(..end).filter(|label| !label.is_empty() && label.len() < 40).map(str::to_owned)
    })?;
    // A declaration that is readable byte by byte is not UTF-16.
    Some(if label.starts_with("utf-16") { "utf-8".to_owned() } else { label })
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoding_rs::{GBK, SHIFT_JIS, WINDOWS_1251};
    use proptest::prelude::*;

    const RUSSIAN: &str = "Приливы и отливы измеряются на каждой станции побережья.";
    const JAPANESE: &str = "潮位計は毎日十一秒遅れていました。原因は一行のコードでした。";
    const CHINESE: &str = "验潮仪每天慢十一秒，而其他的都很准。原因只有一行代码。";

    fn encode_page(head: &str, body: &str, encoding: &'static Encoding) -> Vec<u8> {
        let html = format!("<html><head>{head}</head><body><p>{body}</p></body></html>");
        encoding.encode(&html).0.into_owned()
    }

    fn decode(bytes: &[u8], label: Option<&str>) -> DecodedText {
        decode_text(bytes, ContentKind::Html, label, None)
    }

    #[test]
    fn a_correct_charset_header_is_used() {
        let bytes = encode_page("", RUSSIAN, WINDOWS_1251);
        let page = decode(&bytes, Some("windows-1251"));
        assert!(page.text.contains(RUSSIAN) && page.note.is_none(), "{page:?}");
    }

    #[test]
    fn a_wrong_charset_header_is_reported() {
        let bytes = encode_page("", RUSSIAN, WINDOWS_1251);
        let page = decode(&bytes, Some("utf-8"));
        assert!(page.text.contains(RUSSIAN), "{page:?}");
        let note = page.note.unwrap();
        assert_eq!(note, "the declared charset UTF-8 is wrong; decoded as windows-1251");
        // The other way around: UTF-8 that is declared as Latin-1.
        let page = decode(encode_page("", "Grüße", UTF_8).as_slice(), Some("iso-8859-1"));
        assert!(page.text.contains("Grüße") && page.note.is_some(), "{page:?}");
    }

    #[test]
    fn a_meta_charset_is_used() {
        for (head, body, encoding) in [
            ("<meta charset=gbk>", CHINESE, GBK),
            (
                "<META http-equiv=Content-Type content='text/html; charset=Shift_JIS'>",
                JAPANESE,
                SHIFT_JIS,
            ),
            ("<meta charset=\"windows-1251\" />", RUSSIAN, WINDOWS_1251),
            ("<meta charset='utf-16'>", RUSSIAN, UTF_8),
        ] {
            let page = decode(&encode_page(head, body, encoding), None);
            assert!(page.text.contains(body) && page.note.is_none(), "{head} {page:?}");
        }
    }

    #[test]
    fn a_missing_charset_is_detected() {
        for (body, encoding) in [(RUSSIAN, WINDOWS_1251), (JAPANESE, SHIFT_JIS), (CHINESE, GBK)] {
            let page = decode(&encode_page("", body, encoding), None);
            assert!(page.text.contains(body), "{encoding:?} {page:?}");
        }
    }

    #[test]
    fn a_byte_order_mark_takes_precedence() {
        let mut bytes = vec![0xff, 0xfe];
        bytes.extend(RUSSIAN.encode_utf16().flat_map(u16::to_le_bytes));
        assert_eq!(decode(&bytes, Some("utf-8")).text, RUSSIAN);
        let without_mark: Vec<u8> =
            "Tides rise".encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(decode_text(&without_mark, ContentKind::Text, None, None).text, "Tides rise");
        assert_eq!(
            decode_text(&without_mark, ContentKind::Text, Some("utf-16be"), None).text,
            "Tides rise"
        );
    }

    #[test]
    fn an_unknown_charset_is_reported() {
        let page = decode(&encode_page("", "Grüße", UTF_8), Some("klingon"));
        assert!(page.text.contains("Grüße"));
        assert!(page.note.unwrap().contains("\"klingon\" is unknown"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_decoded(bytes in prop::collection::vec(any::<u8>(), 0..300), label in "[a-z0-9-]{0,12}") {
            decode_text(&bytes, ContentKind::Html, Some(&label), Some("jp"));
        }
    }
}
