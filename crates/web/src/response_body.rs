//! Reads response bodies, bounded on the wire and after decompression.
//!
//! Decompression is incremental and stops at the limit, so ten megabytes that expand to ten
//! gigabytes cost no more than the limit. Start reading at [`read_body`].

use crate::describe_error;
use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use reqwest::Response;
use reqwest::header::CONTENT_ENCODING;
use std::io::{self, Write};
use std::time::Duration;
use tokio::time::timeout;
use windlass_toolkit::CallFailure;

/// Limit for the time between two chunks of a body.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);

const BAD_ENCODING_TEXT: &str = "the response does not match its Content-Encoding, so it cannot \
                                 be decoded";

/// A response body, decompressed.
#[derive(Debug)]
pub(crate) struct ResponseBody {
    pub(crate) bytes: Vec<u8>,
    /// True if the body was longer or broke off.
    pub(crate) truncated: bool,
}

/// Reads a body up to `max_bytes` bytes.
pub(crate) async fn read_body(
    mut response: Response,
    max_bytes: usize,
) -> Result<ResponseBody, CallFailure> {
    let encodings = response.headers().get_all(CONTENT_ENCODING).iter();
    let encodings: Vec<_> =
        encodings.map(|value| value.to_str().unwrap_or("?").to_owned()).collect();
    let mut decoder = BodyDecoder::new(&encodings.join(", "), max_bytes)?;
    let mut received_bytes = 0;
    loop {
        let chunk = timeout(IDLE_TIMEOUT, response.chunk()).await.map_err(|_| {
            CallFailure::new(format!(
                "the server sent nothing for {} s. Try again later",
                IDLE_TIMEOUT.as_secs()
            ))
        })?;
        let chunk = chunk.map_err(|error| {
            CallFailure::new(format!(
                "the response was interrupted: {}. Try again",
                describe_error(&error)
            ))
        })?;
        let Some(chunk) = chunk else { return decoder.finish(SizeLimitStatus::NotReached) };
        received_bytes += chunk.len();
        let is_full = decoder.write(&chunk)? == SizeLimitStatus::Reached;
        if is_full || received_bytes > max_bytes {
            return decoder.finish(SizeLimitStatus::Reached);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SizeLimitStatus {
    NotReached,
    Reached,
}

/// A buffer of at most `max_bytes`; writing more is an error.
#[derive(Debug)]
struct BoundedBuffer {
    bytes: Vec<u8>,
    max_bytes: usize,
    is_full: bool,
}

impl Write for BoundedBuffer {
    fn write(&mut self, chunk: &[u8]) -> io::Result<usize> {
        let remaining = self.max_bytes.saturating_sub(self.bytes.len());
        let accepted = chunk.get(..remaining).unwrap_or(chunk);
        self.bytes.extend_from_slice(accepted);
        if accepted.len() < chunk.len() {
            self.is_full = true;
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(chunk.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Decoder for the `Content-Encoding` of a body.
enum BodyDecoder {
    Plain(BoundedBuffer),
    Gzip(MultiGzDecoder<BoundedBuffer>),
    /// Undecided: the first two bytes tell zlib from raw deflate.
    Deflate(Vec<u8>, BoundedBuffer),
    Zlib(ZlibDecoder<BoundedBuffer>),
    RawDeflate(DeflateDecoder<BoundedBuffer>),
}

impl BodyDecoder {
    fn new(encoding: &str, max_bytes: usize) -> Result<BodyDecoder, CallFailure> {
        let buffer = BoundedBuffer { bytes: Vec::new(), max_bytes, is_full: false };
        match encoding.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Ok(BodyDecoder::Plain(buffer)),
            "gzip" | "x-gzip" => Ok(BodyDecoder::Gzip(MultiGzDecoder::new(buffer))),
            "deflate" => Ok(BodyDecoder::Deflate(Vec::new(), buffer)),
            _ => Err(CallFailure::new(
                "the response has an unsupported Content-Encoding, so it cannot be decoded",
            )),
        }
    }

    fn write(&mut self, chunk: &[u8]) -> Result<SizeLimitStatus, CallFailure> {
        if let BodyDecoder::Deflate(head, buffer) = self {
            head.extend_from_slice(chunk);
            let [first, second, ..] = head[..] else { return Ok(SizeLimitStatus::NotReached) };
            let buffer = std::mem::replace(
                buffer,
                BoundedBuffer { bytes: Vec::new(), max_bytes: 0, is_full: false },
            );
            let head = std::mem::take(head);
            let is_zlib =
                first & 0x0f == 8 && u16::from_be_bytes([first, second]).is_multiple_of(31);
            *self = match is_zlib {
                true => BodyDecoder::Zlib(ZlibDecoder::new(buffer)),
                false => BodyDecoder::RawDeflate(DeflateDecoder::new(buffer)),
            };
            return self.write(&head);
        }
        let result = match self {
            BodyDecoder::Plain(buffer) => buffer.write_all(chunk),
            BodyDecoder::Gzip(gzip) => gzip.write_all(chunk),
            BodyDecoder::Zlib(zlib) => zlib.write_all(chunk),
            BodyDecoder::RawDeflate(raw) => raw.write_all(chunk),
            BodyDecoder::Deflate(..) => Ok(()),
        };
        match result {
            Ok(()) => Ok(SizeLimitStatus::NotReached),
            Err(_) if self.buffer().is_full => Ok(SizeLimitStatus::Reached),
            // Ignore data after the end of the compressed stream.
            Err(error) if error.kind() == io::ErrorKind::WriteZero => {
                Ok(SizeLimitStatus::NotReached)
            }
            Err(_) => Err(CallFailure::new(BAD_ENCODING_TEXT)),
        }
    }

    fn buffer(&self) -> &BoundedBuffer {
        match self {
            BodyDecoder::Plain(buffer) | BodyDecoder::Deflate(_, buffer) => buffer,
            BodyDecoder::Gzip(gzip) => gzip.get_ref(),
            BodyDecoder::Zlib(zlib) => zlib.get_ref(),
            BodyDecoder::RawDeflate(raw) => raw.get_ref(),
        }
    }

    /// Returns the decoded body. A body that broke off early is returned as far as it was received.
    fn finish(mut self, size_limit: SizeLimitStatus) -> Result<ResponseBody, CallFailure> {
        let flushed = match &mut self {
            BodyDecoder::Plain(_) | BodyDecoder::Deflate(..) => Ok(()),
            BodyDecoder::Gzip(gzip) => gzip.try_finish(),
            BodyDecoder::Zlib(zlib) => zlib.try_finish(),
            BodyDecoder::RawDeflate(raw) => raw.try_finish(),
        };
        let is_full = self.buffer().is_full;
        let broken = flushed.is_err() && !is_full;
        // The decoders finish again when dropped; with the buffer emptied that has no effect.
        let buffer = match &mut self {
            BodyDecoder::Plain(buffer) | BodyDecoder::Deflate(_, buffer) => buffer,
            BodyDecoder::Gzip(gzip) => gzip.get_mut(),
            BodyDecoder::Zlib(zlib) => zlib.get_mut(),
            BodyDecoder::RawDeflate(raw) => raw.get_mut(),
        };
        let bytes = std::mem::take(&mut buffer.bytes);
        buffer.max_bytes = 0;
        if broken && bytes.is_empty() {
            return Err(CallFailure::new(BAD_ENCODING_TEXT));
        }
        Ok(ResponseBody {
            bytes,
            truncated: size_limit == SizeLimitStatus::Reached || is_full || broken,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use proptest::prelude::*;

    const MAX_BYTES: usize = 1 << 20;

    fn decode(encoding: &str, bytes: &[u8], chunk_bytes: usize) -> Result<ResponseBody, String> {
        let mut decoder = BodyDecoder::new(encoding, MAX_BYTES).map_err(|failure| failure.text)?;
        for chunk in bytes.chunks(chunk_bytes) {
            match decoder.write(chunk).map_err(|failure| failure.text)? {
                SizeLimitStatus::NotReached => {}
                SizeLimitStatus::Reached => {
                    return decoder
                        .finish(SizeLimitStatus::Reached)
                        .map_err(|failure| failure.text);
                }
            }
        }
        decoder.finish(SizeLimitStatus::NotReached).map_err(|failure| failure.text)
    }

    fn compress(format: &str, text: &[u8]) -> Vec<u8> {
        match format {
            "gzip" => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
                encoder.write_all(text).unwrap();
                encoder.finish().unwrap()
            }
            "zlib" => {
                let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
                encoder.write_all(text).unwrap();
                encoder.finish().unwrap()
            }
            _ => {
                let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
                encoder.write_all(text).unwrap();
                encoder.finish().unwrap()
            }
        }
    }

    #[test]
    fn a_decompression_bomb_is_limited() {
        for (format, label) in [("gzip", "gzip"), ("zlib", "deflate"), ("raw", "deflate")] {
            let bomb = compress(format, &vec![0; 64 << 20]);
            let body = decode(label, &bomb, 16 << 10).unwrap();
            assert!(body.truncated);
            assert_eq!(body.bytes.len(), MAX_BYTES);
        }
    }

    #[test]
    fn a_truncated_stream_keeps_the_received_part() {
        let text: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
        let compressed = compress("gzip", &text);
        let body = decode("gzip", &compressed[..compressed.len() / 2], 1000).unwrap();
        assert!(body.truncated && !body.bytes.is_empty() && text.starts_with(&body.bytes));
    }

    #[test]
    fn a_wrong_content_encoding_is_an_error() {
        assert!(
            decode("gzip", b"<p>short", 5)
                .unwrap_err()
                .contains("does not match its Content-Encoding")
        );
        assert!(
            decode("gzip", b"<html>plain</html>", 5)
                .unwrap_err()
                .contains("does not match its Content-Encoding")
        );
        assert!(decode("br", b"x", 5).unwrap_err().contains("unsupported Content-Encoding"));
        assert!(
            decode("gzip, gzip", b"x", 5).unwrap_err().contains("unsupported Content-Encoding")
        );
        assert_eq!(decode("deflate", b"", 5).unwrap().bytes, b"");
    }

    proptest! {
        #[test]
        fn compressed_bodies_round_trip(
            text in prop::collection::vec(any::<u8>(), 0..5000),
            chunk_bytes in 1_usize..700,
            format in prop::sample::select(vec!["gzip", "zlib", "raw"]),
        ) {
            let label = if format == "gzip" { "gzip" } else { "deflate" };
            // A raw stream may begin like a zlib stream; ours do not.
            let body = decode(label, &compress(format, &text), chunk_bytes).unwrap();
            prop_assert_eq!(body.bytes, text);
            prop_assert!(!body.truncated);
        }

        #[test]
        fn noise_never_panics(
            noise in prop::collection::vec(any::<u8>(), 0..300),
            label in prop::sample::select(vec!["gzip", "deflate", ""]),
        ) {
            let _ = decode(label, &noise, 7);
        }
    }
}
