//! How a text is stored: its encoding, and whether a byte-order mark stands before it.
//!
//! Text is taken apart by units, the fewest bytes that decode together. Bytes that decode to
//! nothing are a unit too, shown as U+FFFD. A line feed ends every unit before it in all formats
//! known here, so that each line can be decoded by itself.

use super::Unwritable;
use encoding_rs::{DecoderResult, EncoderResult, Encoding};

/// How bytes that cannot be decoded look.
pub(super) const UNDECODABLE: char = '\u{fffd}';

/// How a text is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    pub(super) codec: Codec,
    pub(super) marked: bool,
}

/// How characters become bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    Utf8,
    Utf16(Order),
    /// One that holds ASCII as it is, and keeps no state from one character to the next.
    Legacy(&'static Encoding),
}

/// Which byte of two comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Little,
    Big,
}

/// The fewest bytes that decode together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    pub(super) bytes: usize,
    pub(super) first: char,
    /// Big5 has a few units of two characters.
    pub(super) second: Option<char>,
}

impl Unit {
    fn one(bytes: usize, first: char) -> Unit {
        Unit { bytes, first, second: None }
    }

    pub(super) fn chars(self) -> impl Iterator<Item = char> {
        std::iter::once(self.first).chain(self.second)
    }
}

impl Order {
    fn unit(self, pair: [u8; 2]) -> u16 {
        match self {
            Order::Little => u16::from_le_bytes(pair),
            Order::Big => u16::from_be_bytes(pair),
        }
    }

    fn pair(self, unit: u16) -> [u8; 2] {
        match self {
            Order::Little => unit.to_le_bytes(),
            Order::Big => unit.to_be_bytes(),
        }
    }
}

impl Format {
    pub(super) const UTF_8: Format = Format { codec: Codec::Utf8, marked: false };

    /// Its name, for people.
    pub fn name(self) -> &'static str {
        match self.codec {
            Codec::Utf8 => "UTF-8",
            Codec::Utf16(Order::Little) => "UTF-16LE",
            Codec::Utf16(Order::Big) => "UTF-16BE",
            Codec::Legacy(encoding) => encoding.name(),
        }
    }

    /// Whether it is UTF-8, with or without a byte-order mark.
    pub fn is_utf8(self) -> bool {
        self.codec == Codec::Utf8
    }

    /// The byte-order mark before the text; empty if there is none.
    pub(super) fn mark(self) -> &'static [u8] {
        match (self.marked, self.codec) {
            (true, Codec::Utf8) => b"\xef\xbb\xbf",
            (true, Codec::Utf16(Order::Little)) => b"\xff\xfe",
            (true, Codec::Utf16(Order::Big)) => b"\xfe\xff",
            (true, Codec::Legacy(_)) | (false, _) => b"",
        }
    }

    /// A line feed or carriage return as it is stored.
    pub(super) fn control(self, control: u8) -> Vec<u8> {
        match self.codec {
            Codec::Utf8 | Codec::Legacy(_) => vec![control],
            Codec::Utf16(order) => order.pair(control.into()).to_vec(),
        }
    }

    /// The text as people see it: without its mark, every CRLF as LF.
    pub(super) fn view(self, bytes: &[u8]) -> String {
        let text = self.decode(bytes.strip_prefix(self.mark()).unwrap_or(bytes));
        if memchr::memmem::find(text.as_bytes(), b"\r\n").is_some() {
            text.replace("\r\n", "\n")
        } else {
            text
        }
    }

    fn decode(self, bytes: &[u8]) -> String {
        match self.codec {
            Codec::Utf8 => String::from_utf8_lossy(bytes).into_owned(),
            Codec::Utf16(order) => {
                let (pairs, rest) = bytes.as_chunks::<2>();
                let units = pairs.iter().map(|pair| order.unit(*pair));
                char::decode_utf16(units)
                    .map(|char| char.unwrap_or(UNDECODABLE))
                    .chain(rest.iter().map(|_| UNDECODABLE))
                    .collect()
            }
            Codec::Legacy(encoding) => encoding.decode_without_bom_handling(bytes).0.into_owned(),
        }
    }

    /// Whether all of the bytes can be decoded, so that a U+FFFD in the view is really one.
    pub(super) fn decodes(self, bytes: &[u8]) -> bool {
        let bytes = bytes.strip_prefix(self.mark()).unwrap_or(bytes);
        match self.codec {
            Codec::Utf8 => std::str::from_utf8(bytes).is_ok(),
            Codec::Utf16(order) => {
                let (pairs, rest) = bytes.as_chunks::<2>();
                let units = pairs.iter().map(|pair| order.unit(*pair));
                rest.is_empty() && char::decode_utf16(units).all(|char| char.is_ok())
            }
            Codec::Legacy(encoding) => !encoding.decode_without_bom_handling(bytes).1,
        }
    }

    /// The unit these bytes begin with; `None` if there are none.
    pub(super) fn unit(self, bytes: &[u8]) -> Option<Unit> {
        let first = *bytes.first()?;
        match self.codec {
            Codec::Utf8 | Codec::Legacy(_) if first.is_ascii() => {
                Some(Unit::one(1, char::from(first)))
            }
            Codec::Utf8 => {
                let chunk = bytes.get(..4).unwrap_or(bytes).utf8_chunks().next()?;
                Some(match chunk.valid().chars().next() {
                    Some(char) => Unit::one(char.len_utf8(), char),
                    None => Unit::one(chunk.invalid().len(), UNDECODABLE),
                })
            }
            Codec::Utf16(order) => Some(utf16_unit(order, bytes)),
            Codec::Legacy(encoding) => Some(legacy_unit(encoding, bytes)),
        }
    }

    /// The bytes of a text whose line ends are as they shall be stored.
    pub(super) fn encode(self, text: &str) -> Result<Vec<u8>, Unwritable> {
        match self.codec {
            Codec::Utf8 => Ok(text.as_bytes().to_vec()),
            Codec::Utf16(order) => {
                Ok(text.encode_utf16().flat_map(|unit| order.pair(unit)).collect())
            }
            Codec::Legacy(encoding) => encode_legacy(encoding, text).map_err(|character| {
                Unwritable::Character { character, encoding: encoding.name() }
            }),
        }
    }
}

fn utf16_unit(order: Order, bytes: &[u8]) -> Unit {
    let (pairs, _) = bytes.get(..4).unwrap_or(bytes).as_chunks::<2>();
    let units = pairs.iter().map(|pair| order.unit(*pair));
    match char::decode_utf16(units).next() {
        Some(Ok(char)) => Unit::one(char.len_utf16() * 2, char),
        Some(Err(_)) => Unit::one(2, UNDECODABLE),
        None => Unit::one(1, UNDECODABLE),
    }
}

/// Feeds byte after byte to a fresh decoder, until it says something.
fn legacy_unit(encoding: &'static Encoding, bytes: &[u8]) -> Unit {
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let mut said = [0; 32];
    for end in 1..=bytes.len() + 1 {
        // Past the end an empty, last piece makes the decoder say what became of the rest.
        let piece = bytes.get(end - 1..end).unwrap_or_default();
        let (result, _, written) =
            decoder.decode_to_utf8_without_replacement(piece, &mut said, piece.is_empty());
        if let DecoderResult::Malformed(length, _) = result {
            return Unit::one(usize::from(length).clamp(1, bytes.len()), UNDECODABLE);
        }
        let said = said.get(..written).and_then(|said| std::str::from_utf8(said).ok());
        let mut chars = said.unwrap_or_default().chars();
        if let Some(first) = chars.next() {
            return Unit { bytes: end.min(bytes.len()), first, second: chars.next() };
        }
    }
    Unit::one(bytes.len(), UNDECODABLE)
}

/// Encodes and decodes again: an encoder may write a character that only looks alike.
fn encode_legacy(encoding: &'static Encoding, text: &str) -> Result<Vec<u8>, char> {
    let mut encoder = encoding.new_encoder();
    let mut bytes = Vec::new();
    let mut rest = text;
    loop {
        let room = encoder.max_buffer_length_from_utf8_without_replacement(rest.len());
        bytes.reserve(room.unwrap_or(rest.len()).max(16));
        let (result, read) =
            encoder.encode_from_utf8_to_vec_without_replacement(rest, &mut bytes, true);
        rest = rest.get(read..).unwrap_or_default();
        match result {
            EncoderResult::InputEmpty => break,
            EncoderResult::OutputFull => {}
            EncoderResult::Unmappable(character) => return Err(character),
        }
    }
    let (back, _) = encoding.decode_without_bom_handling(&bytes);
    if back == text {
        return Ok(bytes);
    }
    let mut back = back.chars();
    let changed = text.chars().find(|char| back.next() != Some(*char));
    Err(changed.unwrap_or(UNDECODABLE))
}
