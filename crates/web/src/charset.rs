//! How the bytes of an answer are read as text.
//!
//! In this order: a byte-order mark, the header, what the page says in its first bytes, a guess. What
//! bytes cannot be is not believed: a label that does not fit is told of, and the next is tried. Pure.

use crate::kind::Kind;
use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, ISO_2022_JP, UTF_8, UTF_16BE, UTF_16LE};

/// How far a page is searched for what it says of its encoding.
const SNIFFED: usize = 1024;
/// How much an encoding is guessed from.
const GUESSED: usize = 1 << 20;

/// Text, and how it was found to be text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The text.
    pub text: String,
    /// The encoding's name.
    pub encoding: &'static str,
    /// What was said of it that does not hold.
    pub note: Option<String>,
}

/// Reads bytes as text. The host's last label helps to guess.
pub fn decode(bytes: &[u8], kind: Kind, label: Option<&str>, tld: Option<&str>) -> Decoded {
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        return read(bytes.get(mark..).unwrap_or_default(), encoding, None);
    }
    let utf8 = !bytes.is_ascii() && std::str::from_utf8(bytes).is_ok();
    let within = (kind == Kind::Page || bytes.trim_ascii_start().starts_with(b"<?xml"))
        .then(|| inner_label(bytes))
        .flatten();
    let mut note = None;
    for said in [label.map(str::to_owned), within].into_iter().flatten() {
        let Some(encoding) = Encoding::for_label(said.as_bytes()) else {
            note = note.or(Some(format!("it says it is in {said:?}, which nobody knows")));
            continue;
        };
        let wide = [UTF_16LE, UTF_16BE, ISO_2022_JP].contains(&encoding);
        let fits = match wide {
            true => !encoding.decode_without_bom_handling(bytes).1,
            // Hardly any other text is UTF-8 by chance.
            false if utf8 => encoding == UTF_8,
            false => fits(bytes, encoding),
        };
        if fits {
            return read(bytes, encoding, note);
        }
        note = note.or(Some(format!("it says it is in {}, but is not", encoding.name())));
    }
    let guess = match unmarked_utf16(bytes) {
        Some(wide) => wide,
        None if utf8 || bytes.is_ascii() => UTF_8,
        None => guess(bytes, tld),
    };
    read(bytes, guess, note)
}

fn read(bytes: &[u8], encoding: &'static Encoding, note: Option<String>) -> Decoded {
    let (text, _) = encoding.decode_without_bom_handling(bytes);
    let note = note.map(|note| format!("{note}; it is read as {}", encoding.name()));
    Decoded { text: text.into_owned(), encoding: encoding.name(), note }
}

/// True if the bytes make sense in an encoding, but for a few: pages are cut, and glued together.
fn fits(bytes: &[u8], encoding: &'static Encoding) -> bool {
    let (text, broken) = encoding.decode_without_bom_handling(bytes);
    if !broken {
        return true;
    }
    let lost = text.chars().filter(|c| *c == char::REPLACEMENT_CHARACTER).count();
    let odd = bytes.iter().filter(|byte| !byte.is_ascii()).count();
    lost * 20 <= odd
}

fn guess(bytes: &[u8], tld: Option<&str>) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(bytes.get(..GUESSED).unwrap_or(bytes), true);
    let tld = tld.filter(|tld| tld.bytes().all(|byte| byte.is_ascii_lowercase()));
    detector.guess(tld.map(str::as_bytes), Utf8Detection::Allow)
}

/// UTF-16 without a mark: zero bytes stand on one side of the pairs only.
fn unmarked_utf16(bytes: &[u8]) -> Option<&'static Encoding> {
    let (pairs, _) = bytes.get(..SNIFFED).unwrap_or(bytes).as_chunks::<2>();
    let first = pairs.iter().filter(|[first, _]| *first == 0).count();
    let second = pairs.iter().filter(|[_, second]| *second == 0).count();
    match (first, second) {
        (many, 0) if many * 2 > pairs.len() => Some(UTF_16BE),
        (0, many) if many * 2 > pairs.len() => Some(UTF_16LE),
        _ => None,
    }
}

/// What a page says of its encoding.
fn inner_label(bytes: &[u8]) -> Option<String> {
    let head = bytes.get(..SNIFFED).unwrap_or(bytes);
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let marks = ["encoding=", "charset="];
    let label = marks.iter().find_map(|mark| {
        let (_, rest) = head.split_once(mark)?;
        let rest = rest.trim_start().trim_start_matches(['"', '\'']);
        let end = rest.find(|c: char| c.is_whitespace() || "\"'/>;?".contains(c))?;
        rest.get(..end).filter(|label| !label.is_empty() && label.len() < 40).map(str::to_owned)
    })?;
    // Whoever can read this in single bytes did not read UTF-16.
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

    fn page(head: &str, body: &str, encoding: &'static Encoding) -> Vec<u8> {
        let html = format!("<html><head>{head}</head><body><p>{body}</p></body></html>");
        encoding.encode(&html).0.into_owned()
    }

    fn text(bytes: &[u8], label: Option<&str>) -> Decoded {
        decode(bytes, Kind::Page, label, None)
    }

    #[test]
    fn what_the_header_says_is_believed_if_it_fits() {
        let bytes = page("", RUSSIAN, WINDOWS_1251);
        let read = text(&bytes, Some("windows-1251"));
        assert!(read.text.contains(RUSSIAN) && read.note.is_none(), "{read:?}");
    }

    #[test]
    fn a_header_that_lies_is_told_of() {
        let bytes = page("", RUSSIAN, WINDOWS_1251);
        let read = text(&bytes, Some("utf-8"));
        assert!(read.text.contains(RUSSIAN), "{read:?}");
        let note = read.note.unwrap();
        assert_eq!(note, "it says it is in UTF-8, but is not; it is read as windows-1251");
        // The other way around: UTF-8 that says it is Latin-1.
        let read = text(page("", "Grüße", UTF_8).as_slice(), Some("iso-8859-1"));
        assert!(read.text.contains("Grüße") && read.note.is_some(), "{read:?}");
    }

    #[test]
    fn a_page_says_it_itself() {
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
            let read = text(&page(head, body, encoding), None);
            assert!(read.text.contains(body) && read.note.is_none(), "{head} {read:?}");
        }
    }

    #[test]
    fn without_a_label_it_is_guessed() {
        for (body, encoding) in [(RUSSIAN, WINDOWS_1251), (JAPANESE, SHIFT_JIS), (CHINESE, GBK)] {
            let read = text(&page("", body, encoding), None);
            assert!(read.text.contains(body), "{encoding:?} {read:?}");
        }
    }

    #[test]
    fn a_mark_counts_more_than_any_label() {
        let mut bytes = vec![0xff, 0xfe];
        bytes.extend(RUSSIAN.encode_utf16().flat_map(u16::to_le_bytes));
        assert_eq!(text(&bytes, Some("utf-8")).text, RUSSIAN);
        let bare: Vec<u8> = "Tides rise".encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(decode(&bare, Kind::Text, None, None).text, "Tides rise");
        assert_eq!(decode(&bare, Kind::Text, Some("utf-16be"), None).text, "Tides rise");
    }

    #[test]
    fn an_unknown_label_is_told_of() {
        let read = text(&page("", "Grüße", UTF_8), Some("klingon"));
        assert!(read.text.contains("Grüße"));
        assert!(read.note.unwrap().contains("\"klingon\", which nobody knows"));
    }

    proptest! {
        #[test]
        fn whatever_comes_is_text(bytes in prop::collection::vec(any::<u8>(), 0..300), label in "[a-z0-9-]{0,12}") {
            decode(&bytes, Kind::Page, Some(&label), Some("jp"));
        }
    }
}
