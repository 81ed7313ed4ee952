//! Detects the encoding of a text, or that the bytes are binary.
//!
//! Checks in this order: signatures of common binary formats, a byte-order mark, zero bytes and
//! control characters, UTF-8. Otherwise guesses among legacy encodings.

use super::encoding::{ByteOrder, TextCodec, TextEncoding};
use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use std::fmt;

/// Bytes that `sniff_encoding` searches for signs of a binary file.
const BINARY_SNIFF_BYTES: usize = 8 << 10;
/// Bytes from which `guess_codec` derives an encoding.
pub(super) const ENCODING_GUESS_BYTES: usize = 1 << 20;

/// The error for bytes that are not text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BinaryContentError {
    /// The probable kind, with its article.
    pub kind: &'static str,
}

impl fmt::Display for BinaryContentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "this is {}; it cannot be read as text", self.kind)
    }
}

impl std::error::Error for BinaryContentError {}

/// Tells if a sample is the whole file or only its beginning.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SampleExtent {
    Whole,
    Head,
}

/// Detects the `TextEncoding` of a file from its first bytes.
pub fn detect_encoding(head: &[u8]) -> Result<TextEncoding, BinaryContentError> {
    sniff_encoding(head, SampleExtent::Head)
}

pub(super) fn sniff_encoding(
    bytes: &[u8],
    extent: SampleExtent,
) -> Result<TextEncoding, BinaryContentError> {
    if let Some(kind) = BINARY_SIGNATURES.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return Err(BinaryContentError { kind: kind.1 });
    }
    let with_bom = |codec| Ok(TextEncoding { codec, has_bom: true });
    match bytes {
        [0xef, 0xbb, 0xbf, ..] => return with_bom(TextCodec::Utf8),
        [0xff, 0xfe, ..] => return with_bom(TextCodec::Utf16(ByteOrder::Little)),
        [0xfe, 0xff, ..] => return with_bom(TextCodec::Utf16(ByteOrder::Big)),
        _ => {}
    }
    let head = bytes.get(..BINARY_SNIFF_BYTES).unwrap_or(bytes);
    let binary = if bytes.starts_with(b"MZ") { "a Windows program" } else { "a binary file" };
    if memchr::memchr(0, head).is_some() {
        let may_be_utf16 = extent == SampleExtent::Head || bytes.len().is_multiple_of(2);
        let order = detect_utf16_without_bom(head)
            .filter(|_| may_be_utf16)
            .ok_or(BinaryContentError { kind: binary })?;
        return Ok(TextEncoding { codec: TextCodec::Utf16(order), has_bom: false });
    }
    let controls = head.iter().filter(|byte| is_unusual_control(u16::from(**byte))).count();
    if controls >= 4 && controls * 20 > head.len() {
        return Err(BinaryContentError { kind: binary });
    }
    if is_utf8(bytes, extent) {
        return Ok(TextEncoding::UTF_8);
    }
    Ok(TextEncoding { codec: guess_codec(bytes), has_bom: false })
}

/// Signatures of common binary formats; no supported text starts with one.
const BINARY_SIGNATURES: &[(&[u8], &str)] = &[
    (b"\x7fELF", "an ELF program or library"),
    (b"\xcf\xfa\xed\xfe", "a macOS program or library"),
    (b"\xca\xfe\xba\xbe", "a Java class or a macOS program"),
    (b"\0asm", "a WebAssembly module"),
    (b"PK\x03\x04", "a zip archive or a zip-based document"),
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

/// Returns true for control characters that do not occur in text: all except tab, line endings,
/// form feed, backspace and escape.
fn is_unusual_control(code: u16) -> bool {
    matches!(code, 0..=7 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f | 0x7f)
}

/// Detects UTF-16 without a byte-order mark: zero bytes are mostly on one side of the pairs, and
/// hardly any code unit is unusual or broken.
fn detect_utf16_without_bom(head: &[u8]) -> Option<ByteOrder> {
    let (pairs, _) = head.as_chunks::<2>();
    let first_zeros = pairs.iter().filter(|[first, _]| *first == 0).count();
    let second_zeros = pairs.iter().filter(|[_, second]| *second == 0).count();
    let (order, high_zeros, low_zeros) = if first_zeros > second_zeros {
        (ByteOrder::Big, first_zeros, second_zeros)
    } else {
        (ByteOrder::Little, second_zeros, first_zeros)
    };
    if pairs.len() < 3 || high_zeros * 10 < pairs.len() || low_zeros * 50 > high_zeros {
        return None;
    }
    let units = || {
        pairs.iter().map(|pair| match order {
            ByteOrder::Little => u16::from_le_bytes(*pair),
            ByteOrder::Big => u16::from_be_bytes(*pair),
        })
    };
    let unusual = units().filter(|unit| is_unusual_control(*unit)).count();
    // The last pair may be half of a character that continues after `head`.
    let broken = char::decode_utf16(units().take(pairs.len() - 1)).filter(Result::is_err).count();
    (unusual * 50 <= pairs.len() && broken <= 1).then_some(order)
}

/// Returns true for UTF-8, even if a few bytes of it are corrupt.
fn is_utf8(bytes: &[u8], extent: SampleExtent) -> bool {
    let Err(error) = std::str::from_utf8(bytes) else { return true };
    if error.error_len().is_none() && extent == SampleExtent::Head {
        return true;
    }
    let sample = non_ascii_part(bytes);
    let is_cut = extent == SampleExtent::Head || sample.len() == ENCODING_GUESS_BYTES;
    let (mut valid, mut invalid) = (0, 0);
    for chunk in sample.utf8_chunks() {
        valid += chunk.valid().chars().filter(|char| !char.is_ascii()).count();
        invalid += usize::from(!chunk.invalid().is_empty());
    }
    if is_cut && std::str::from_utf8(sample).is_err_and(|error| error.error_len().is_none()) {
        invalid = 0;
    }
    valid >= 2 * invalid
}

/// Returns the part that reveals the encoding; everything before it is ASCII.
fn non_ascii_part(bytes: &[u8]) -> &[u8] {
    let start = bytes.iter().position(|byte| !byte.is_ascii()).unwrap_or(0);
    // A few words before it help to classify the first letters.
    let part = bytes.get(start.saturating_sub(64)..).unwrap_or_default();
    part.get(..ENCODING_GUESS_BYTES).unwrap_or(part)
}

fn guess_codec(bytes: &[u8]) -> TextCodec {
    // ISO-2022-JP changes its state with escape sequences, so its lines cannot be decoded on their
    // own.
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(non_ascii_part(bytes), true);
    TextCodec::Legacy(detector.guess(None, Utf8Detection::Deny))
}
