//! Text encodings: codec and byte-order mark, with decoding and encoding.
//!
//! Text is processed in units (`CharsetUnit`), the fewest bytes that decode together. Bytes that
//! cannot be decoded are a unit too, shown as U+FFFD. In all supported encodings a line feed ends
//! every unit before it, so each line can be decoded on its own.

use super::EncodeTextError;
use encoding_rs::{DecoderResult, EncoderResult, Encoding};

/// Shown for bytes that cannot be decoded.
pub(super) const REPLACEMENT_CHAR: char = '\u{fffd}';

/// The encoding of a text and its byte-order mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextEncoding {
    pub(super) codec: TextCodec,
    pub(super) has_bom: bool,
}

/// The mapping between characters and bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextCodec {
    Utf8,
    Utf16(ByteOrder),
    /// An encoding that contains ASCII unchanged and keeps no state between characters.
    Legacy(&'static Encoding),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ByteOrder {
    Little,
    Big,
}

/// The fewest bytes that decode together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CharsetUnit {
    pub(super) byte_len: usize,
    pub(super) first_char: char,
    /// Only for Big5, which has a few units of two characters.
    pub(super) second_char: Option<char>,
}

impl CharsetUnit {
    fn single(bytes: usize, first: char) -> CharsetUnit {
        CharsetUnit { byte_len: bytes, first_char: first, second_char: None }
    }

    pub(super) fn chars(self) -> impl Iterator<Item = char> {
        std::iter::once(self.first_char).chain(self.second_char)
    }
}

impl ByteOrder {
    fn to_code_unit(self, pair: [u8; 2]) -> u16 {
        match self {
            ByteOrder::Little => u16::from_le_bytes(pair),
            ByteOrder::Big => u16::from_be_bytes(pair),
        }
    }

    fn to_byte_pair(self, unit: u16) -> [u8; 2] {
        match self {
            ByteOrder::Little => unit.to_le_bytes(),
            ByteOrder::Big => unit.to_be_bytes(),
        }
    }
}

impl TextEncoding {
    pub(super) const UTF_8: TextEncoding = TextEncoding { codec: TextCodec::Utf8, has_bom: false };

    /// Returns the name of the encoding for display.
    pub fn name(self) -> &'static str {
        match self.codec {
            TextCodec::Utf8 => "UTF-8",
            TextCodec::Utf16(ByteOrder::Little) => "UTF-16LE",
            TextCodec::Utf16(ByteOrder::Big) => "UTF-16BE",
            TextCodec::Legacy(encoding) => encoding.name(),
        }
    }

    /// Returns true for UTF-8, with or without a byte-order mark.
    pub fn is_utf8(self) -> bool {
        self.codec == TextCodec::Utf8
    }

    /// Returns the byte-order mark of the text; empty if it has none.
    pub(super) fn bom(self) -> &'static [u8] {
        match (self.has_bom, self.codec) {
            (true, TextCodec::Utf8) => b"\xef\xbb\xbf",
            (true, TextCodec::Utf16(ByteOrder::Little)) => b"\xff\xfe",
            (true, TextCodec::Utf16(ByteOrder::Big)) => b"\xfe\xff",
            (true, TextCodec::Legacy(_)) | (false, _) => b"",
        }
    }

    /// Encodes a line feed or carriage return.
    pub(super) fn encode_control(self, control: u8) -> Vec<u8> {
        match self.codec {
            TextCodec::Utf8 | TextCodec::Legacy(_) => vec![control],
            TextCodec::Utf16(order) => order.to_byte_pair(control.into()).to_vec(),
        }
    }

    /// Decodes the text for display: without byte-order mark, and with LF for every CRLF.
    pub(super) fn decode_view(self, bytes: &[u8]) -> String {
        let text = self.decode(bytes.strip_prefix(self.bom()).unwrap_or(bytes));
        if memchr::memmem::find(text.as_bytes(), b"\r\n").is_some() {
            text.replace("\r\n", "\n")
        } else {
            text
        }
    }

    fn decode(self, bytes: &[u8]) -> String {
        match self.codec {
            TextCodec::Utf8 => String::from_utf8_lossy(bytes).into_owned(),
            TextCodec::Utf16(order) => {
                let (pairs, rest) = bytes.as_chunks::<2>();
                let units = pairs.iter().map(|pair| order.to_code_unit(*pair));
                char::decode_utf16(units)
                    .map(|char| char.unwrap_or(REPLACEMENT_CHAR))
                    .chain(rest.iter().map(|_| REPLACEMENT_CHAR))
                    .collect()
            }
            TextCodec::Legacy(encoding) => {
                encoding.decode_without_bom_handling(bytes).0.into_owned()
            }
        }
    }

    /// Returns true if all bytes can be decoded, so that a U+FFFD in the view is a real one.
    pub(super) fn can_decode(self, bytes: &[u8]) -> bool {
        let bytes = bytes.strip_prefix(self.bom()).unwrap_or(bytes);
        match self.codec {
            TextCodec::Utf8 => std::str::from_utf8(bytes).is_ok(),
            TextCodec::Utf16(order) => {
                let (pairs, rest) = bytes.as_chunks::<2>();
                let units = pairs.iter().map(|pair| order.to_code_unit(*pair));
                rest.is_empty() && char::decode_utf16(units).all(|char| char.is_ok())
            }
            TextCodec::Legacy(encoding) => !encoding.decode_without_bom_handling(bytes).1,
        }
    }

    /// Decodes the first unit of `bytes`; `None` if there are none.
    pub(super) fn first_unit(self, bytes: &[u8]) -> Option<CharsetUnit> {
        let first = *bytes.first()?;
        match self.codec {
            TextCodec::Utf8 | TextCodec::Legacy(_) if first.is_ascii() => {
                Some(CharsetUnit::single(1, char::from(first)))
            }
            TextCodec::Utf8 => {
                let chunk = bytes.get(..4).unwrap_or(bytes).utf8_chunks().next()?;
                Some(match chunk.valid().chars().next() {
                    Some(char) => CharsetUnit::single(char.len_utf8(), char),
                    None => CharsetUnit::single(chunk.invalid().len(), REPLACEMENT_CHAR),
                })
            }
            TextCodec::Utf16(order) => Some(utf16_unit(order, bytes)),
            TextCodec::Legacy(encoding) => Some(legacy_unit(encoding, bytes)),
        }
    }

    /// Encodes a text that already has its final line endings.
    pub(super) fn encode(self, text: &str) -> Result<Vec<u8>, EncodeTextError> {
        match self.codec {
            TextCodec::Utf8 => Ok(text.as_bytes().to_vec()),
            TextCodec::Utf16(order) => {
                Ok(text.encode_utf16().flat_map(|unit| order.to_byte_pair(unit)).collect())
            }
            TextCodec::Legacy(encoding) => encode_legacy(encoding, text).map_err(|character| {
                EncodeTextError::UnencodableChar { character, encoding: encoding.name() }
            }),
        }
    }
}

fn utf16_unit(order: ByteOrder, bytes: &[u8]) -> CharsetUnit {
    let (pairs, _) = bytes.get(..4).unwrap_or(bytes).as_chunks::<2>();
    let units = pairs.iter().map(|pair| order.to_code_unit(*pair));
    match char::decode_utf16(units).next() {
        Some(Ok(char)) => CharsetUnit::single(char.len_utf16() * 2, char),
        Some(Err(_)) => CharsetUnit::single(2, REPLACEMENT_CHAR),
        None => CharsetUnit::single(1, REPLACEMENT_CHAR),
    }
}

/// Feeds bytes one by one to a fresh decoder until it returns a character or an error.
fn legacy_unit(encoding: &'static Encoding, bytes: &[u8]) -> CharsetUnit {
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let mut decoded = [0; 32];
    for end in 1..=bytes.len() + 1 {
        // Past the end, an empty last piece makes the decoder report the remaining bytes.
        let piece = bytes.get(end - 1..end).unwrap_or_default();
        let (result, _, written) =
            decoder.decode_to_utf8_without_replacement(piece, &mut decoded, piece.is_empty());
        if let DecoderResult::Malformed(length, _) = result {
            return CharsetUnit::single(
                usize::from(length).clamp(1, bytes.len()),
                REPLACEMENT_CHAR,
            );
        }
        let decoded = decoded.get(..written).and_then(|decoded| std::str::from_utf8(decoded).ok());
        let mut chars = decoded.unwrap_or_default().chars();
        if let Some(first) = chars.next() {
            return CharsetUnit {
                byte_len: end.min(bytes.len()),
                first_char: first,
                second_char: chars.next(),
            };
        }
    }
    CharsetUnit::single(bytes.len(), REPLACEMENT_CHAR)
}

/// Encodes `text` and decodes it again to verify, because an encoder may write a character that
/// only looks similar. Fails with the first character that cannot be encoded.
fn encode_legacy(encoding: &'static Encoding, text: &str) -> Result<Vec<u8>, char> {
    let mut encoder = encoding.new_encoder();
    let mut bytes = Vec::new();
    let mut rest = text;
    loop {
        let capacity = encoder.max_buffer_length_from_utf8_without_replacement(rest.len());
        bytes.reserve(capacity.unwrap_or(rest.len()).max(16));
        let (result, read) =
            encoder.encode_from_utf8_to_vec_without_replacement(rest, &mut bytes, true);
        rest = rest.get(read..).unwrap_or_default();
        match result {
            EncoderResult::InputEmpty => break,
            EncoderResult::OutputFull => {}
            EncoderResult::Unmappable(character) => return Err(character),
        }
    }
    let (decoded, _) = encoding.decode_without_bom_handling(&bytes);
    if decoded == text {
        return Ok(bytes);
    }
    let mut decoded = decoded.chars();
    let first_difference = text.chars().find(|char| decoded.next() != Some(*char));
    Err(first_difference.unwrap_or(REPLACEMENT_CHAR))
}
