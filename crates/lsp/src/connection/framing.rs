//! Decodes the `Content-Length` frames that a language server writes.
//!
//! The decoder reads nothing itself: bytes arrive in chunks, and chunk boundaries make no
//! difference. It never buffers more than the limits below, whatever the bytes are. Some servers
//! print text to the same pipe; the decoder skips up to [`MAX_NOISE_BYTES`] of it. Start reading at
//! [`FrameDecoder::decode`].

/// Limit for the bytes of one frame header.
pub const MAX_HEADER_BYTES: usize = 4 << 10;
const MAX_HEADER_LINES: usize = 8;
/// Limit for the bytes of one message body.
pub const MAX_BODY_BYTES: usize = 16 << 20;
/// Limit for bytes outside of frames, over the whole connection.
pub const MAX_NOISE_BYTES: usize = 64 << 10;

/// Header field with the length of the body.
const CONTENT_LENGTH: &[u8] = b"content-length:";
/// Header field that may precede `Content-Length`.
const CONTENT_TYPE: &[u8] = b"content-type:";

/// Reasons for which the stream cannot be decoded any further.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FramingError {
    /// The header exceeds [`MAX_HEADER_BYTES`] or its line limit.
    HeaderTooLong,
    /// A header line is malformed.
    InvalidHeader,
    /// The announced length exceeds [`MAX_BODY_BYTES`]; `u64::MAX` if the number does not fit.
    BodyTooLong(u64),
    /// More than [`MAX_NOISE_BYTES`] are outside of frames.
    TooMuchNoise,
}

impl std::fmt::Display for FramingError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FramingError::HeaderTooLong => {
                write!(f, "it sent a header of more than {} kB", MAX_HEADER_BYTES >> 10)
            }
            FramingError::InvalidHeader => f.write_str("it sent a message without a valid length"),
            FramingError::BodyTooLong(_) => {
                write!(f, "it sent a message of more than {} MB", MAX_BODY_BYTES >> 20)
            }
            FramingError::TooMuchNoise => f.write_str("it wrote too much invalid output"),
        }
    }
}

/// Incremental decoder for `Content-Length` frames.
#[derive(Debug, Default)]
pub struct FrameDecoder {
    /// Header line read so far.
    line: Vec<u8>,
    /// The current line is too long for a header and is skipped.
    skipping_line: bool,
    /// Lines and bytes of the current header.
    header_size: (usize, usize),
    content_length: Option<usize>,
    /// Body read so far, and its full length.
    body: Option<(Vec<u8>, usize)>,
    noise_bytes: usize,
}

impl FrameDecoder {
    /// Consumes bytes from the front of `input`: all of them, or those up to the end of a message,
    /// which it returns. After an error the decoder is unusable.
    pub fn decode(&mut self, input: &mut &[u8]) -> Result<Option<Vec<u8>>, FramingError> {
        while !input.is_empty() {
            if let Some((body, length)) = &mut self.body {
                let missing = length.saturating_sub(body.len()).min(input.len());
                let (part, rest) = input.split_at_checked(missing).unwrap_or((*input, &[]));
                body.extend_from_slice(part);
                *input = rest;
            } else {
                self.read_header_bytes(input)?;
            }
            if let Some((body, length)) = self.body.take_if(|(body, length)| body.len() == *length)
            {
                debug_assert_eq!(body.len(), length);
                return Ok(Some(body));
            }
        }
        Ok(None)
    }

    /// Returns true if a frame has begun and is incomplete.
    pub fn is_incomplete(&self) -> bool {
        self.body.is_some() || self.header_size.0 > 0 || !self.line.is_empty()
    }

    /// Returns the number of bytes buffered until the next chunk.
    pub fn buffered_bytes(&self) -> usize {
        self.line.len() + self.body.as_ref().map_or(0, |(body, _)| body.len())
    }

    /// Consumes bytes up to the end of a line.
    fn read_header_bytes(&mut self, input: &mut &[u8]) -> Result<(), FramingError> {
        let end = input.iter().position(|byte| *byte == b'\n');
        let line_bytes = end.map_or(input.len(), |end| end + 1);
        let (part, rest) = input.split_at_checked(line_bytes).unwrap_or((*input, &[]));
        *input = rest;
        if self.skipping_line {
            self.skipping_line = end.is_none();
            return self.count_noise(part.len());
        }
        // A longer line cannot belong to a header, so it is not buffered to find out.
        let room = (MAX_HEADER_BYTES + 1).saturating_sub(self.header_size.1 + self.line.len());
        if part.len() > room {
            let (head, tail) = part.split_at_checked(room).unwrap_or((part, &[]));
            self.line.extend_from_slice(head);
            if self.header_size.0 > 0 || find_ignoring_case(&self.line, CONTENT_LENGTH).is_some() {
                return Err(FramingError::HeaderTooLong);
            }
            let total = self.line.len() + tail.len();
            self.line.clear();
            self.skipping_line = end.is_none();
            return self.count_noise(total);
        }
        self.line.extend_from_slice(part);
        if end.is_some() {
            let line = std::mem::take(&mut self.line);
            self.read_header_line(&line)?;
        }
        Ok(())
    }

    /// Parses one complete line: a header field, the end of the header, or noise.
    fn read_header_line(&mut self, line: &[u8]) -> Result<(), FramingError> {
        let text = line.trim_ascii();
        match (text.is_empty(), self.content_length) {
            (true, Some(length)) => {
                self.content_length = None;
                self.header_size = (0, 0);
                self.body = Some((Vec::with_capacity(length), length));
                return Ok(());
            }
            (true, None) => {
                let noise = line.len() + self.header_size.1;
                self.header_size = (0, 0);
                return self.count_noise(noise);
            }
            (false, _) => {}
        }
        if let Some(offset) = find_ignoring_case(text, CONTENT_LENGTH) {
            // Text printed without a newline may precede the header field.
            if offset > 0 && self.header_size.0 > 0 {
                return Err(FramingError::InvalidHeader);
            }
            self.count_noise(offset)?;
            let digits = text.get(offset + CONTENT_LENGTH.len()..).unwrap_or_default();
            let length = parse_length(digits.trim_ascii())?;
            if self.content_length.is_some_and(|previous| previous != length) {
                return Err(FramingError::InvalidHeader);
            }
            self.content_length = Some(length);
        } else if self.content_length.is_none() && find_ignoring_case(text, CONTENT_TYPE) != Some(0)
        {
            let noise = line.len() + self.header_size.1;
            self.header_size = (0, 0);
            return self.count_noise(noise);
        } else if !text.contains(&b':') {
            return Err(FramingError::InvalidHeader);
        }
        self.header_size = (self.header_size.0 + 1, self.header_size.1 + line.len());
        if self.header_size.0 > MAX_HEADER_LINES || self.header_size.1 > MAX_HEADER_BYTES {
            Err(FramingError::HeaderTooLong)
        } else {
            Ok(())
        }
    }

    fn count_noise(&mut self, bytes: usize) -> Result<(), FramingError> {
        self.noise_bytes = self.noise_bytes.saturating_add(bytes);
        if self.noise_bytes > MAX_NOISE_BYTES { Err(FramingError::TooMuchNoise) } else { Ok(()) }
    }
}

/// Finds the first occurrence of ASCII `needle` in `text`, ignoring case.
fn find_ignoring_case(text: &[u8], needle: &[u8]) -> Option<usize> {
    text.windows(needle.len()).position(|window| window.eq_ignore_ascii_case(needle))
}

fn parse_length(digits: &[u8]) -> Result<usize, FramingError> {
    let text = std::str::from_utf8(digits).map_err(|_| FramingError::InvalidHeader)?;
    if text.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(FramingError::InvalidHeader);
    }
    let length = text.parse::<u64>().map_err(|_| FramingError::BodyTooLong(u64::MAX))?;
    match usize::try_from(length) {
        Ok(length) if length <= MAX_BODY_BYTES => Ok(length),
        Ok(_) | Err(_) => Err(FramingError::BodyTooLong(length)),
    }
}

/// Encodes a message with its `Content-Length` header.
pub fn encode_frame(body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode_all<'a>(
        chunks: impl IntoIterator<Item = &'a [u8]>,
    ) -> (Vec<Vec<u8>>, Option<FramingError>) {
        let (mut frames, mut found) = (FrameDecoder::default(), Vec::new());
        for chunk in chunks {
            let mut chunk = chunk;
            while !chunk.is_empty() {
                match frames.decode(&mut chunk) {
                    Ok(Some(body)) => found.push(body),
                    Ok(None) => assert!(chunk.is_empty()),
                    Err(error) => return (found, Some(error)),
                }
                assert!(frames.buffered_bytes() <= MAX_BODY_BYTES + MAX_HEADER_BYTES + 1);
            }
        }
        (found, None)
    }

    fn decode_texts(bytes: &[u8]) -> (Vec<String>, Option<FramingError>) {
        let (found, error) = decode_all([bytes]);
        (found.into_iter().map(|body| String::from_utf8(body).unwrap()).collect(), error)
    }

    /// Returns several messages with noise and extra headers between them.
    fn messages_with_noise() -> Vec<u8> {
        let mut all = b"Starting up, please wait\n\r\nloading: 10 %\n".to_vec();
        all.extend(encode_frame(b"{\"a\":1}"));
        all.extend(encode_frame(b""));
        all.extend(b"no end of lineContent-Length: 2\r\n\r\nhi");
        all.extend(b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\n");
        all.extend(b"content-LENGTH:   3  \nX-More: yes\n\nabc");
        all.extend(encode_frame("Content-Length: 9\r\n\r\nä".as_bytes()));
        all
    }

    #[test]
    fn messages_do_not_depend_on_chunk_boundaries() {
        let all = messages_with_noise();
        let (whole, error) = decode_all([all.as_slice()]);
        assert_eq!((whole.len(), error), (5, None));
        assert_eq!(whole[4], "Content-Length: 9\r\n\r\nä".as_bytes());
        for first in 0..all.len() {
            let (head, tail) = all.split_at(first);
            assert_eq!(decode_all([head, tail]).0, whole, "cut at {first}");
        }
        assert_eq!(decode_all(all.chunks(1)).0, whole);
    }

    #[test]
    fn invalid_headers_are_errors() {
        let long = |count: usize| vec![b'x'; count];
        let lines = |count| [b"Content-Length: 1\r\n".to_vec(), b"A: b\r\n".repeat(count)].concat();
        let padded = [b"Content-Length: 1".to_vec(), b" ".repeat(MAX_HEADER_BYTES)].concat();
        for (bytes, error) in [
            (b"Content-Length: 104857600\r\n\r\n".to_vec(), FramingError::BodyTooLong(104_857_600)),
            (b"Content-Length: 16777217\r\n".to_vec(), FramingError::BodyTooLong(16_777_217)),
            (
                b"Content-Length: 99999999999999999999999\r\n".to_vec(),
                FramingError::BodyTooLong(u64::MAX),
            ),
            (b"Content-Length: -1\r\n".to_vec(), FramingError::InvalidHeader),
            (b"Content-Length: +1\r\n".to_vec(), FramingError::InvalidHeader),
            (b"Content-Length:\r\n".to_vec(), FramingError::InvalidHeader),
            (b"Content-Length: 1 2\r\n".to_vec(), FramingError::InvalidHeader),
            (b"Content-Length: 0x10\r\n".to_vec(), FramingError::InvalidHeader),
            (b"Content-Length: \xff\r\n".to_vec(), FramingError::InvalidHeader),
            (b"Content-Length: 1\r\nContent-Length: 2\r\n".to_vec(), FramingError::InvalidHeader),
            (b"Content-Length: 1\r\nno colon\r\n".to_vec(), FramingError::InvalidHeader),
            (lines(8), FramingError::HeaderTooLong),
            (padded, FramingError::HeaderTooLong),
            (long(MAX_NOISE_BYTES + 1), FramingError::TooMuchNoise),
            (b"noise\n".repeat(MAX_NOISE_BYTES / 6 + 1), FramingError::TooMuchNoise),
            (b"\n".repeat(MAX_NOISE_BYTES + 1), FramingError::TooMuchNoise),
            (b"Content-Type: x\r\n\r\n".repeat(4_000), FramingError::TooMuchNoise),
        ] {
            let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(40)]).into_owned();
            assert_eq!(decode_texts(&bytes), (Vec::new(), Some(error.clone())), "{shown:?}");
            assert_eq!(decode_all(bytes.chunks(7)).1.as_ref(), Some(&error), "{shown:?} in chunks");
            assert!(error.to_string().starts_with("it "));
        }
        assert_eq!(decode_texts(&[lines(7), b"\r\nx".to_vec()].concat()), (vec!["x".into()], None));
    }

    #[test]
    fn an_endless_header_is_not_buffered() {
        let mut frames = FrameDecoder::default();
        let block = vec![b'y'; 1 << 10];
        let mut result = Ok(None);
        for _ in 0..1_000_000 {
            result = frames.decode(&mut block.as_slice());
            assert!(frames.buffered_bytes() <= MAX_HEADER_BYTES + 1);
            if result.is_err() {
                break;
            }
        }
        assert_eq!(result, Err(FramingError::TooMuchNoise));
    }

    #[test]
    fn a_partial_message_is_incomplete() {
        let mut frames = FrameDecoder::default();
        assert!(!frames.is_incomplete());
        for chunk in ["Content-Le", "ngth: 4\r\n", "\r\n", "abc"] {
            assert_eq!(frames.decode(&mut chunk.as_bytes()), Ok(None));
            assert!(frames.is_incomplete(), "{chunk}");
        }
        assert_eq!(frames.decode(&mut &b"d"[..]), Ok(Some(b"abcd".to_vec())));
        assert!(!frames.is_incomplete());
    }

    proptest! {
        /// Any bytes decode to the same messages in any chunks, within the buffer limit.
        #[test]
        fn any_bytes_decode_the_same_in_any_chunks(
            parts in proptest::collection::vec(prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..40),
                "[a-zA-Z :-]{0,30}\r?\n".prop_map(String::into_bytes),
                "Content-Length: [0-9]{1,2}\r\n(\r\n)?".prop_map(String::into_bytes),
                proptest::collection::vec(any::<u8>(), 0..60).prop_map(|body| encode_frame(&body)),
            ], 0..12),
            size in 1..50_usize,
        ) {
            let all = parts.concat();
            prop_assert_eq!(decode_all([all.as_slice()]), decode_all(all.chunks(size)));
        }

        #[test]
        fn frames_round_trip(bodies in proptest::collection::vec(
            proptest::collection::vec(any::<u8>(), 0..200), 0..8), size in 1..99_usize) {
            let all: Vec<u8> = bodies.iter().flat_map(|body| encode_frame(body)).collect();
            prop_assert_eq!(decode_all(all.chunks(size)), (bodies, None));
        }
    }
}
