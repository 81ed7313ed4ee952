//! How a copy is packed: as a zstd frame, alone or as a difference to another copy.
//!
//! A line is a copy with everything it is a difference to, the whole copy first. It is never
//! longer than [`DEPTH`] + 1, so a copy costs at most that many decodings. Edits gather in a file:
//! against the whole copy alone a difference grows with each of them, and a copy that is a
//! difference to the one before costs a decoding for each. Two levels keep both small: a copy is
//! a difference to one that is near it, which is a difference to the whole one.
//!
//! Each frame carries a checksum of its plain bytes, so that a damaged frame, or a frame decoded
//! against the wrong bytes, is an error and not other bytes. What does not compress is stored by
//! zstd as it is, for a few bytes more.

use crate::Error;
use windlass_protocol::BlobRef;
use zstd::zstd_safe::{CCtx, CParameter, DCtx, ErrorCode, compress_bound, get_error_name};

/// How many differences may lead to a whole copy.
const DEPTH: usize = 2;

/// A line longer than this was not written by us.
pub(crate) const LONGEST_LINE: i64 = 8;

/// The largest file that is kept.
pub(crate) const LARGEST: usize = 256 << 20;

/// The quickest level. A higher one makes differences no smaller: what they share with their base
/// is found by the search for long matches, which looks at all of the base whatever its size.
const LEVEL: i32 = 1;

/// One copy of a line, as it is stored.
pub(crate) struct Layer {
    pub row: i64,
    pub name: String,
    pub size: i64,
    pub body: Vec<u8>,
}

/// A copy, ready to be stored.
pub(crate) struct Packed {
    /// The copy it is a difference to.
    pub base: Option<String>,
    pub size: usize,
    pub body: Vec<u8>,
}

/// Packs bytes against whatever in a line serves best.
pub(crate) fn pack(bytes: &[u8], line: &[Layer]) -> Result<Packed, Error> {
    let mut bases: Vec<(&str, Vec<u8>)> = Vec::new();
    for layer in line.iter().take(DEPTH) {
        let below = bases.last().map(|(_, plain)| plain.as_slice());
        // A damaged layer is no base; it is reported when somebody asks for it.
        let Some(plain) = unpack_layer(layer, below) else { break };
        bases.push((&layer.name, plain));
    }
    let packed = |base: Option<&str>, body| {
        let base = base.map(str::to_owned);
        Packed { base, size: bytes.len(), body }
    };
    let mut difference = None;
    for (depth, (base, plain)) in bases.iter().enumerate().rev() {
        let body = compress(bytes, Some(plain))?;
        let found = packed(Some(base), body);
        if found.body.len() <= small(bytes.len(), depth) {
            return Ok(found);
        }
        difference = Some(found);
    }
    let whole = packed(None, compress(bytes, None)?);
    Ok(match difference {
        Some(difference) if difference.body.len() * 2 <= whole.body.len() => difference,
        Some(_) | None => whole,
    })
}

/// Up to which length a difference is taken without looking further. Differences to the whole
/// copy are few and may be longer; each of them resets the many that build on it.
fn small(size: usize, depth: usize) -> usize {
    const LEAST: usize = 64;
    LEAST + if depth == 0 { size / 16 } else { size / 512 }
}

/// The plain bytes of the last copy of a line; or, from where on the line is damaged.
pub(crate) fn unpack(line: &[Layer]) -> Result<Vec<u8>, usize> {
    let mut plain: Option<Vec<u8>> = None;
    for (place, layer) in line.iter().enumerate() {
        plain = Some(unpack_layer(layer, plain.as_deref()).ok_or(place)?);
    }
    let last = line.len().saturating_sub(1);
    let wanted = line.last().map(|layer| layer.name.as_str());
    plain.filter(|plain| Some(BlobRef::of(plain).as_str()) == wanted).ok_or(last)
}

fn unpack_layer(layer: &Layer, base: Option<&[u8]>) -> Option<Vec<u8>> {
    let size = usize::try_from(layer.size).ok().filter(|size| *size <= LARGEST)?;
    let mut context = DCtx::try_create()?;
    if let Some(base) = base {
        context.ref_prefix(base).ok()?;
    }
    let mut plain = Vec::with_capacity(size);
    context.decompress(&mut plain, &layer.body).ok()?;
    (plain.len() == size).then_some(plain)
}

fn compress(bytes: &[u8], base: Option<&[u8]>) -> Result<Vec<u8>, Error> {
    let failed = |why: &str| {
        Error::file("a copy could not be compressed")(std::io::Error::other(why.to_owned()))
    };
    let code = |code: ErrorCode| failed(get_error_name(code));
    let mut context = CCtx::try_create().ok_or_else(|| failed("memory is short"))?;
    context.set_parameter(CParameter::CompressionLevel(LEVEL)).map_err(code)?;
    context.set_parameter(CParameter::ChecksumFlag(true)).map_err(code)?;
    if let Some(base) = base {
        // The window must reach from the end of the bytes back to the start of the base.
        let reach = (bytes.len() + base.len()).max(1 << 10).next_power_of_two();
        context.set_parameter(CParameter::WindowLog(reach.ilog2())).map_err(code)?;
        context.set_parameter(CParameter::EnableLongDistanceMatching(true)).map_err(code)?;
        context.ref_prefix(base).map_err(code)?;
    }
    let mut body = Vec::with_capacity(compress_bound(bytes.len()));
    context.compress2(&mut body, bytes).map_err(code)?;
    Ok(body)
}
