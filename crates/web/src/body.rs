//! The body of an answer, bounded on the wire and when it is unpacked.
//!
//! It is unpacked as it comes and no further than the bound, so that ten megabytes which unpack to
//! ten gigabytes cost no more than the bound. Start reading at [`read`].

use crate::words;
use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use reqwest::Response;
use reqwest::header::CONTENT_ENCODING;
use std::io::{self, Write};
use std::time::Duration;
use tokio::time::timeout;
use windlass_toolkit::Failure;

/// How long nothing may come.
const SILENCE: Duration = Duration::from_secs(10);

const NOT_PACKED: &str = "what it sent is not packed as it says, so it cannot be read";

/// What was read.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) bytes: Vec<u8>,
    /// True if there was more.
    pub(crate) cut: bool,
}

/// Reads a body up to so many bytes.
pub(crate) async fn read(mut response: Response, most: usize) -> Result<Body, Failure> {
    let packed = response.headers().get_all(CONTENT_ENCODING).iter();
    let packed: Vec<_> = packed.map(|value| value.to_str().unwrap_or("?").to_owned()).collect();
    let mut unpacking = Unpacking::new(&packed.join(", "), most)?;
    let mut wire = 0;
    loop {
        let piece = timeout(SILENCE, response.chunk()).await.map_err(|_| {
            Failure::new(format!("it sent nothing for {} s. Try again later", SILENCE.as_secs()))
        })?;
        let piece = piece.map_err(|error| {
            Failure::new(format!("the answer broke off: {}. Try again", words(&error)))
        })?;
        let Some(piece) = piece else { return unpacking.finish(Bound::Open) };
        wire += piece.len();
        let full = unpacking.write(&piece)? == Bound::Reached;
        if full || wire > most {
            return unpacking.finish(Bound::Reached);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    Open,
    Reached,
}

/// Bytes up to a bound; more is an error.
#[derive(Debug)]
struct Room {
    bytes: Vec<u8>,
    most: usize,
    full: bool,
}

impl Write for Room {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let left = self.most.saturating_sub(self.bytes.len());
        let taken = piece.get(..left).unwrap_or(piece);
        self.bytes.extend_from_slice(taken);
        if taken.len() < piece.len() {
            self.full = true;
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How a body is packed.
enum Unpacking {
    Plain(Room),
    Gzip(MultiGzDecoder<Room>),
    /// Which of two forms it has is seen from its first two bytes.
    Deflate(Vec<u8>, Room),
    Zlib(ZlibDecoder<Room>),
    Raw(DeflateDecoder<Room>),
}

impl Unpacking {
    fn new(packed: &str, most: usize) -> Result<Unpacking, Failure> {
        let room = Room { bytes: Vec::new(), most, full: false };
        match packed.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Ok(Unpacking::Plain(room)),
            "gzip" | "x-gzip" => Ok(Unpacking::Gzip(MultiGzDecoder::new(room))),
            "deflate" => Ok(Unpacking::Deflate(Vec::new(), room)),
            _ => Err(Failure::new(
                "it answered in an encoding that nobody asked for, so it cannot be read",
            )),
        }
    }

    fn write(&mut self, piece: &[u8]) -> Result<Bound, Failure> {
        if let Unpacking::Deflate(head, room) = self {
            head.extend_from_slice(piece);
            let [first, second, ..] = head[..] else { return Ok(Bound::Open) };
            let room = std::mem::replace(room, Room { bytes: Vec::new(), most: 0, full: false });
            let head = std::mem::take(head);
            let zlib = first & 0x0f == 8 && u16::from_be_bytes([first, second]).is_multiple_of(31);
            *self = match zlib {
                true => Unpacking::Zlib(ZlibDecoder::new(room)),
                false => Unpacking::Raw(DeflateDecoder::new(room)),
            };
            return self.write(&head);
        }
        let written = match self {
            Unpacking::Plain(room) => room.write_all(piece),
            Unpacking::Gzip(gzip) => gzip.write_all(piece),
            Unpacking::Zlib(zlib) => zlib.write_all(piece),
            Unpacking::Raw(raw) => raw.write_all(piece),
            Unpacking::Deflate(..) => Ok(()),
        };
        match written {
            Ok(()) => Ok(Bound::Open),
            Err(_) if self.room().full => Ok(Bound::Reached),
            // What comes behind the end of packed data is nobody's business.
            Err(error) if error.kind() == io::ErrorKind::WriteZero => Ok(Bound::Open),
            Err(_) => Err(Failure::new(NOT_PACKED)),
        }
    }

    fn room(&self) -> &Room {
        match self {
            Unpacking::Plain(room) | Unpacking::Deflate(_, room) => room,
            Unpacking::Gzip(gzip) => gzip.get_ref(),
            Unpacking::Zlib(zlib) => zlib.get_ref(),
            Unpacking::Raw(raw) => raw.get_ref(),
        }
    }

    /// What there is. Something that broke off early is as much as came.
    fn finish(mut self, bound: Bound) -> Result<Body, Failure> {
        let flushed = match &mut self {
            Unpacking::Plain(_) | Unpacking::Deflate(..) => Ok(()),
            Unpacking::Gzip(gzip) => gzip.try_finish(),
            Unpacking::Zlib(zlib) => zlib.try_finish(),
            Unpacking::Raw(raw) => raw.try_finish(),
        };
        let full = self.room().full;
        let broken = flushed.is_err() && !full;
        // The decoders finish once more when they are dropped, and nothing comes of it.
        let room = match &mut self {
            Unpacking::Plain(room) | Unpacking::Deflate(_, room) => room,
            Unpacking::Gzip(gzip) => gzip.get_mut(),
            Unpacking::Zlib(zlib) => zlib.get_mut(),
            Unpacking::Raw(raw) => raw.get_mut(),
        };
        let bytes = std::mem::take(&mut room.bytes);
        room.most = 0;
        if broken && bytes.is_empty() {
            return Err(Failure::new(NOT_PACKED));
        }
        Ok(Body { bytes, cut: bound == Bound::Reached || full || broken })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use proptest::prelude::*;

    const MOST: usize = 1 << 20;

    fn unpack(packed: &str, bytes: &[u8], step: usize) -> Result<Body, String> {
        let mut unpacking = Unpacking::new(packed, MOST).map_err(|failure| failure.text)?;
        for piece in bytes.chunks(step) {
            match unpacking.write(piece).map_err(|failure| failure.text)? {
                Bound::Open => {}
                Bound::Reached => {
                    return unpacking.finish(Bound::Reached).map_err(|failure| failure.text);
                }
            }
        }
        unpacking.finish(Bound::Open).map_err(|failure| failure.text)
    }

    fn pack(how: &str, text: &[u8]) -> Vec<u8> {
        match how {
            "gzip" => {
                let mut to = GzEncoder::new(Vec::new(), Compression::fast());
                to.write_all(text).unwrap();
                to.finish().unwrap()
            }
            "zlib" => {
                let mut to = ZlibEncoder::new(Vec::new(), Compression::fast());
                to.write_all(text).unwrap();
                to.finish().unwrap()
            }
            _ => {
                let mut to = DeflateEncoder::new(Vec::new(), Compression::fast());
                to.write_all(text).unwrap();
                to.finish().unwrap()
            }
        }
    }

    #[test]
    fn a_bomb_costs_no_more_than_the_bound() {
        for (how, label) in [("gzip", "gzip"), ("zlib", "deflate"), ("raw", "deflate")] {
            let bomb = pack(how, &vec![0; 64 << 20]);
            let body = unpack(label, &bomb, 16 << 10).unwrap();
            assert!(body.cut);
            assert_eq!(body.bytes.len(), MOST);
        }
    }

    #[test]
    fn what_breaks_off_is_as_much_as_came() {
        let text: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
        let packed = pack("gzip", &text);
        let body = unpack("gzip", &packed[..packed.len() / 2], 1000).unwrap();
        assert!(body.cut && !body.bytes.is_empty() && text.starts_with(&body.bytes));
    }

    #[test]
    fn what_is_not_packed_as_it_says_is_told() {
        assert!(unpack("gzip", b"<p>short", 5).unwrap_err().contains("not packed"));
        assert!(unpack("gzip", b"<html>plain</html>", 5).unwrap_err().contains("not packed"));
        assert!(unpack("br", b"x", 5).unwrap_err().contains("nobody asked for"));
        assert!(unpack("gzip, gzip", b"x", 5).unwrap_err().contains("nobody asked for"));
        assert_eq!(unpack("deflate", b"", 5).unwrap().bytes, b"");
    }

    proptest! {
        #[test]
        fn what_was_packed_is_unpacked(
            text in prop::collection::vec(any::<u8>(), 0..5000),
            step in 1_usize..700,
            how in prop::sample::select(vec!["gzip", "zlib", "raw"]),
        ) {
            let label = if how == "gzip" { "gzip" } else { "deflate" };
            // A raw stream may begin with what looks like the other form; ours do not.
            let body = unpack(label, &pack(how, &text), step).unwrap();
            prop_assert_eq!(body.bytes, text);
            prop_assert!(!body.cut);
        }

        #[test]
        fn noise_never_panics(
            noise in prop::collection::vec(any::<u8>(), 0..300),
            label in prop::sample::select(vec!["gzip", "deflate", ""]),
        ) {
            let _ = unpack(label, &noise, 7);
        }
    }
}
