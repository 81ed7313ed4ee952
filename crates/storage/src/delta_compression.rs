//! Delta compression of file copies: each copy is a zstd frame, complete or as a difference to
//! another copy.
//!
//! A chain is a copy with everything it builds on, the full copy first. It never has more than
//! [`MAX_DELTA_DEPTH`] + 1 layers, so reading a copy costs at most that many decompressions. Edits
//! accumulate in a file: a difference to the full copy grows with each edit, and a difference to
//! the previous copy adds a decompression for each. Two levels keep both small: a copy is a
//! difference to a similar copy, which is a difference to the full one.
//!
//! Each frame has a checksum of its plain bytes, so that a damaged frame, or a frame decoded
//! against the wrong base, is an error instead of wrong bytes. zstd stores incompressible data as
//! is, for a few extra bytes.

use crate::StorageError;
use windlass_protocol::BlobRef;
use zstd::zstd_safe::{CCtx, CParameter, DCtx, ErrorCode, compress_bound, get_error_name};

/// The maximum number of differences between a copy and its full copy.
const MAX_DELTA_DEPTH: usize = 2;

/// Bounds the chain that is loaded; Windlass never writes a longer one.
pub(crate) const MAX_CHAIN_LAYERS: i64 = 8;

/// The largest file that is copied.
pub(crate) const MAX_FILE_BYTES: usize = 256 << 20;

/// The fastest level. A higher one does not make differences smaller: long-distance matching finds
/// the parts they share with their base, and it searches the whole base regardless of its size.
const COMPRESSION_LEVEL: i32 = 1;

/// One stored copy of a chain: a row of the table `copy`.
pub(crate) struct DeltaLayer {
    pub row_id: i64,
    pub digest: String,
    pub size: i64,
    pub body: Vec<u8>,
}

/// A compressed copy, result of `pack`, ready to be stored.
pub(crate) struct CompressedFileCopy {
    /// The digest of the copy it is a difference to.
    pub base: Option<String>,
    pub size: usize,
    pub body: Vec<u8>,
}

/// Compresses bytes against the best base in a chain, or without one.
pub(crate) fn pack(bytes: &[u8], chain: &[DeltaLayer]) -> Result<CompressedFileCopy, StorageError> {
    let mut bases: Vec<(&str, Vec<u8>)> = Vec::new();
    for layer in chain.iter().take(MAX_DELTA_DEPTH) {
        let base = bases.last().map(|(_, plain)| plain.as_slice());
        // A damaged layer cannot be a base. Reading that copy reports it.
        let Some(plain) = unpack_layer(layer, base) else { break };
        bases.push((&layer.digest, plain));
    }
    let packed_copy = |base: Option<&str>, body| {
        let base = base.map(str::to_owned);
        CompressedFileCopy { base, size: bytes.len(), body }
    };
    let mut difference = None;
    for (depth, (base, plain)) in bases.iter().enumerate().rev() {
        let body = compress(bytes, Some(plain))?;
        let candidate = packed_copy(Some(base), body);
        if candidate.body.len() <= acceptable_delta_bytes(bytes.len(), depth) {
            return Ok(candidate);
        }
        difference = Some(candidate);
    }
    let full = packed_copy(None, compress(bytes, None)?);
    Ok(match difference {
        Some(difference) if difference.body.len() * 2 <= full.body.len() => difference,
        Some(_) | None => full,
    })
}

/// Returns the size up to which a difference is accepted without trying other bases. Differences to
/// the full copy are few and may be larger; each of them resets the many that build on it.
fn acceptable_delta_bytes(size: usize, depth: usize) -> usize {
    const MIN_DELTA_BYTES: usize = 64;
    MIN_DELTA_BYTES + if depth == 0 { size / 16 } else { size / 512 }
}

/// Decompresses the last copy of a chain. The error is the index of the first damaged layer.
pub(crate) fn unpack(chain: &[DeltaLayer]) -> Result<Vec<u8>, usize> {
    let mut plain: Option<Vec<u8>> = None;
    for (index, layer) in chain.iter().enumerate() {
        plain = Some(unpack_layer(layer, plain.as_deref()).ok_or(index)?);
    }
    let last = chain.len().saturating_sub(1);
    let expected = chain.last().map(|layer| layer.digest.as_str());
    plain.filter(|plain| Some(BlobRef::for_bytes(plain).as_str()) == expected).ok_or(last)
}

fn unpack_layer(layer: &DeltaLayer, base: Option<&[u8]>) -> Option<Vec<u8>> {
    let size = usize::try_from(layer.size).ok().filter(|size| *size <= MAX_FILE_BYTES)?;
    let mut context = DCtx::try_create()?;
    if let Some(base) = base {
        context.ref_prefix(base).ok()?;
    }
    let mut plain = Vec::with_capacity(size);
    context.decompress(&mut plain, &layer.body).ok()?;
    (plain.len() == size).then_some(plain)
}

fn compress(bytes: &[u8], base: Option<&[u8]>) -> Result<Vec<u8>, StorageError> {
    let compression_error = |reason: &str| {
        StorageError::from_io("could not compress a file copy")(std::io::Error::other(
            reason.to_owned(),
        ))
    };
    let zstd_error = |code: ErrorCode| compression_error(get_error_name(code));
    let mut context = CCtx::try_create().ok_or_else(|| compression_error("out of memory"))?;
    context.set_parameter(CParameter::CompressionLevel(COMPRESSION_LEVEL)).map_err(zstd_error)?;
    context.set_parameter(CParameter::ChecksumFlag(true)).map_err(zstd_error)?;
    if let Some(base) = base {
        // The window must reach from the end of the bytes back to the start of the base.
        let window_bytes = (bytes.len() + base.len()).max(1 << 10).next_power_of_two();
        context.set_parameter(CParameter::WindowLog(window_bytes.ilog2())).map_err(zstd_error)?;
        context.set_parameter(CParameter::EnableLongDistanceMatching(true)).map_err(zstd_error)?;
        context.ref_prefix(base).map_err(zstd_error)?;
    }
    let mut body = Vec::with_capacity(compress_bound(bytes.len()));
    context.compress2(&mut body, bytes).map_err(zstd_error)?;
    Ok(body)
}
