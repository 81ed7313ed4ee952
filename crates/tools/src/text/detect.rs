//! Finds out how bytes are to be read as text, or that they should not be.
//!
//! In this order: a byte-order mark, the first bytes of common binary kinds, zero bytes and control
//! characters, UTF-8, and last a guess among the encodings in use before UTF-8.

use super::format::{Codec, Format, Order};
use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use std::fmt;

/// How much is searched for signs of a binary file.
const SNIFFED: usize = 8 << 10;
/// How much an encoding is guessed from.
pub(super) const GUESSED: usize = 1 << 20;

/// The bytes are no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binary {
    /// What they seem to be, with its article.
    pub kind: &'static str,
}

impl fmt::Display for Binary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "this is {}; it cannot be read as text", self.kind)
    }
}

impl std::error::Error for Binary {}

/// Whether the bytes are all there are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    Whole,
    Head,
}

/// How a file is to be read whose first bytes are these.
pub fn detect(head: &[u8]) -> Result<Format, Binary> {
    sniff(head, Extent::Head)
}

pub(super) fn sniff(bytes: &[u8], extent: Extent) -> Result<Format, Binary> {
    if let Some(kind) = MAGIC.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return Err(Binary { kind: kind.1 });
    }
    let marked = |codec| Ok(Format { codec, marked: true });
    match bytes {
        [0xef, 0xbb, 0xbf, ..] => return marked(Codec::Utf8),
        [0xff, 0xfe, ..] => return marked(Codec::Utf16(Order::Little)),
        [0xfe, 0xff, ..] => return marked(Codec::Utf16(Order::Big)),
        _ => {}
    }
    let head = bytes.get(..SNIFFED).unwrap_or(bytes);
    let binary = if bytes.starts_with(b"MZ") { "a Windows program" } else { "a binary file" };
    if memchr::memchr(0, head).is_some() {
        let even = extent == Extent::Head || bytes.len().is_multiple_of(2);
        let order = unmarked_utf16(head).filter(|_| even).ok_or(Binary { kind: binary })?;
        return Ok(Format { codec: Codec::Utf16(order), marked: false });
    }
    let controls = head.iter().filter(|byte| is_odd_control(u16::from(**byte))).count();
    if controls >= 4 && controls * 20 > head.len() {
        return Err(Binary { kind: binary });
    }
    if is_utf8(bytes, extent) {
        return Ok(Format::UTF_8);
    }
    Ok(Format { codec: guess(bytes), marked: false })
}

/// The first bytes of what is often met, none of which begin a text.
const MAGIC: &[(&[u8], &str)] = &[
    (b"\x7fELF", "an ELF program or library"),
    (b"\xcf\xfa\xed\xfe", "a macOS program or library"),
    (b"\xca\xfe\xba\xbe", "a Java class or a macOS program"),
    (b"\0asm", "a WebAssembly module"),
    (b"PK\x03\x04", "a zip archive or a document packed as one"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh91AY&SY", "bzip2 data"),
    (b"\xfd7zXZ\0", "xz data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"SQLite format 3\0", "a SQLite database"),
    (b"%PDF-", "a PDF document"),
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF87a", "a GIF image"),
    (b"GIF89a", "a GIF image"),
    (b"wOF2", "a web font"),
    (b"\xff\xfe\0\0", "text in UTF-32, which is not supported"),
    (b"\0\0\xfe\xff", "text in UTF-32, which is not supported"),
];

/// Control characters that texts do without: not tab, line ends, form feed, backspace or escape.
fn is_odd_control(code: u16) -> bool {
    matches!(code, 0..=7 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f | 0x7f)
}

/// UTF-16 without a mark: zero bytes stand on one side of the pairs, and nothing in it is odd.
fn unmarked_utf16(head: &[u8]) -> Option<Order> {
    let (pairs, _) = head.as_chunks::<2>();
    let first = pairs.iter().filter(|[first, _]| *first == 0).count();
    let second = pairs.iter().filter(|[_, second]| *second == 0).count();
    let (order, many, few) =
        if first > second { (Order::Big, first, second) } else { (Order::Little, second, first) };
    if pairs.len() < 3 || many * 10 < pairs.len() || few * 50 > many {
        return None;
    }
    let units = || {
        pairs.iter().map(|pair| match order {
            Order::Little => u16::from_le_bytes(*pair),
            Order::Big => u16::from_be_bytes(*pair),
        })
    };
    let odd = units().filter(|unit| is_odd_control(*unit)).count();
    // The last pair may be half of a character that goes on beyond the head.
    let broken = char::decode_utf16(units().take(pairs.len() - 1)).filter(Result::is_err).count();
    (odd * 50 <= pairs.len() && broken <= 1).then_some(order)
}

/// Whether the bytes are UTF-8, or were before a few of them were hurt.
fn is_utf8(bytes: &[u8], extent: Extent) -> bool {
    let Err(error) = std::str::from_utf8(bytes) else { return true };
    if error.error_len().is_none() && extent == Extent::Head {
        return true;
    }
    let told = telling(bytes);
    let cut = extent == Extent::Head || told.len() == GUESSED;
    let (mut valid, mut invalid) = (0, 0);
    for chunk in told.utf8_chunks() {
        valid += chunk.valid().chars().filter(|char| !char.is_ascii()).count();
        invalid += usize::from(!chunk.invalid().is_empty());
    }
    if cut && std::str::from_utf8(told).is_err_and(|error| error.error_len().is_none()) {
        invalid = 0;
    }
    valid >= 2 * invalid
}

/// The part that an encoding shows in: what stands before it is ASCII.
fn telling(bytes: &[u8]) -> &[u8] {
    let from = bytes.iter().position(|byte| !byte.is_ascii()).unwrap_or(0);
    // A few words before it help to judge the first letters.
    let told = bytes.get(from.saturating_sub(64)..).unwrap_or_default();
    told.get(..GUESSED).unwrap_or(told)
}

fn guess(bytes: &[u8]) -> Codec {
    // ISO-2022-JP switches its meaning by escapes, so that no line could be read by itself.
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(telling(bytes), true);
    Codec::Legacy(detector.guess(None, Utf8Detection::Deny))
}
