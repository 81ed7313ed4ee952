//! Converts images to a form that every provider accepts.
//!
//! Anthropic rejects more than 5 MB after base64, and more than 2000 pixels a side where a request
//! contains many images; beyond 1568 it scales down itself. OpenAI scales to 2048. Gemini accepts
//! no GIF, and no provider more than the first frame of an animation. A rejected image would be
//! sent again with every later request, so each one is decoded here completely before it is
//! accepted.
//!
//! The functions are pure: bytes in, bytes out. Start reading at [`prepare_image`].

use image::codecs::gif::GifDecoder;
use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::PngEncoder;
use image::codecs::webp::WebPDecoder;
use image::imageops::{self, FilterType};
use image::{AnimationDecoder, DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits};
use std::io::Cursor;
use std::sync::Mutex;
use windlass_protocol::mutex_lock::lock;

/// The longest side of an image that is sent, in pixels.
const MAX_SIDE_PIXELS: u32 = 1568;
/// The largest image that is sent; base64 adds a third.
const MAX_IMAGE_BYTES: usize = 3_750_000;
/// A PNG up to this size stays a PNG rather than becoming a JPEG, because text in it stays sharp.
const SMALL_PNG_BYTES: usize = 1_000_000;
/// Limits on images that are decoded at all. A file of a few bytes can claim to have a billion
/// pixels.
const MAX_DECODED_SIDE_PIXELS: u32 = 20_000;
const MAX_DECODED_BYTES: u64 = 256 << 20;
/// JPEG qualities to try; the first that fits `MAX_IMAGE_BYTES` is used.
const JPEG_QUALITIES: [u8; 3] = [85, 65, 40];

/// An image that every provider accepts.
#[derive(Debug)]
pub(crate) struct PreparedImage {
    pub(crate) mime: &'static str,
    pub(crate) bytes: Vec<u8>,
    /// A note for the model on how the image was changed.
    pub(crate) note: Option<String>,
}

/// Detects the MIME type of a file by its first bytes, because a file name can be wrong.
pub fn detect_mime(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        [b'%', b'P', b'D', b'F', b'-', ..] => Some("application/pdf"),
        _ => None,
    }
}

/// A small copy of an image as RGB pixels, three bytes each, row by row, on a white background.
#[derive(Debug, PartialEq, Eq)]
pub struct ImageThumbnail {
    pub width: u32,
    pub height: u32,
    /// Red, green and blue bytes.
    pub pixels: Vec<u8>,
    /// Width and height of the original image in pixels.
    pub original_size: (u32, u32),
}

/// Scales an image, in its aspect ratio, to at most `width` × `height` pixels.
pub fn make_thumbnail(bytes: &[u8], width: u32, height: u32) -> Result<ImageThumbnail, String> {
    let _guard = lock(&DECODER_LOCK);
    let picture = decode_image(bytes, detect_image_format(bytes)?.1)?;
    let original_size = (picture.width(), picture.height());
    let picture = picture.thumbnail(width.max(1), height.max(1));
    let picture = flatten_on_white(DynamicImage::ImageRgba8(picture.into_rgba8())).into_rgb8();
    let (width, height) = picture.dimensions();
    Ok(ImageThumbnail { width, height, pixels: picture.into_raw(), original_size })
}

/// Returns the MIME type and the `ImageFormat` of an image.
fn detect_image_format(bytes: &[u8]) -> Result<(&'static str, ImageFormat), String> {
    match detect_mime(bytes) {
        Some(mime @ "image/png") => Ok((mime, ImageFormat::Png)),
        Some(mime @ "image/jpeg") => Ok((mime, ImageFormat::Jpeg)),
        Some(mime @ "image/gif") => Ok((mime, ImageFormat::Gif)),
        Some(mime @ "image/webp") => Ok((mime, ImageFormat::WebP)),
        Some(_) | None => Err("it is not a PNG, JPEG, GIF or WebP image".into()),
    }
}

/// Converts an image if necessary: unchanged if it fits, otherwise scaled down, without animation
/// and upright.
pub(crate) fn prepare_image(bytes: Vec<u8>) -> Result<PreparedImage, String> {
    let (mime, format) = detect_image_format(&bytes)?;
    let _guard = lock(&DECODER_LOCK);
    let mut picture = decode_image(&bytes, format)?;
    let (width, height) = (picture.width(), picture.height());
    let animated = is_animated(&bytes, format);
    let fits =
        width <= MAX_SIDE_PIXELS && height <= MAX_SIDE_PIXELS && bytes.len() <= MAX_IMAGE_BYTES;
    if fits && !animated && format != ImageFormat::Gif {
        return Ok(PreparedImage { mime, bytes, note: None });
    }
    picture = downscale(picture);
    let mut notes = Vec::new();
    if animated {
        notes.push("the first frame of an animation".to_owned());
    }
    let size = (picture.width(), picture.height());
    if size != (width, height) {
        notes.push(format!("scaled to {}×{} from {width}×{height}", size.0, size.1));
    }
    let (mime, bytes) = encode_image(picture, format)?;
    Ok(PreparedImage { mime, bytes, note: (!notes.is_empty()).then(|| notes.join(", ")) })
}

/// Held while an image is decoded. Decoding a large one takes hundreds of megabytes, and a step may
/// read many images at once.
static DECODER_LOCK: Mutex<()> = Mutex::new(());

/// The bytes before the first chunk of a WebP file.
const WEBP_HEADER_BYTES: usize = 12;

/// Decodes the first frame, upright. An image that claims to be huge is rejected before memory is
/// allocated for it.
fn decode_image(bytes: &[u8], format: ImageFormat) -> Result<DynamicImage, String> {
    let to_message = |error: image::ImageError| {
        let error = error.to_string();
        format!("the image cannot be decoded: {}. It may be damaged", error.trim_end_matches('.'))
    };
    if format == ImageFormat::WebP {
        check_webp_chunks(bytes.get(WEBP_HEADER_BYTES..).unwrap_or_default())?;
    }
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    reader.limits(decoder_limits());
    let mut decoder = reader.into_decoder().map_err(to_message)?;
    let (width, height) = decoder.dimensions();
    if width.max(height) > MAX_DECODED_SIDE_PIXELS || decoder.total_bytes() > MAX_DECODED_BYTES {
        let max_megapixels = MAX_DECODED_BYTES / 4_000_000;
        return Err(format!(
            "the image is {width}×{height} pixels, too large to open safely: at most \
             {MAX_DECODED_SIDE_PIXELS} per side and about {max_megapixels} million in total. Make \
             a smaller copy of it first"
        ));
    }
    let orientation = decoder.orientation();
    let mut picture = DynamicImage::from_decoder(decoder).map_err(to_message)?;
    if let Ok(orientation) = orientation {
        picture.apply_orientation(orientation);
    }
    Ok(picture)
}

/// Checks the sizes that a WebP file states, because its decoder trusts them: no chunk is longer
/// than the file, and the frame is no larger than a decoded image may be.
fn check_webp_chunks(chunks: &[u8]) -> Result<(), String> {
    const CHUNK_HEADER_BYTES: usize = 8;
    const ANIMATION_FRAME_HEADER_BYTES: usize = 16;
    let damaged = || "the image cannot be decoded: its chunks are damaged".to_owned();
    let mut rest = chunks;
    while rest.len() >= CHUNK_HEADER_BYTES {
        let (header, content) = rest.split_at(CHUNK_HEADER_BYTES);
        let (name, length) = header.split_at(4);
        let length = length.try_into().map(u32::from_le_bytes).map_err(|_| damaged())? as usize;
        let chunk = content.get(..length).ok_or_else(damaged)?;
        let frame_size = match name {
            b"VP8 " => vp8_frame_size(chunk),
            b"VP8L" => vp8l_frame_size(chunk),
            b"ANMF" => {
                check_webp_chunks(chunk.get(ANIMATION_FRAME_HEADER_BYTES..).unwrap_or_default())?;
                None
            }
            _ => None,
        };
        let (width, height) = frame_size.unwrap_or_default();
        if u64::from(width) * u64::from(height) * 4 > MAX_DECODED_BYTES {
            return Err(damaged());
        }
        // Chunks have an even length.
        rest = content.get(length + length % 2..).unwrap_or_default();
    }
    Ok(())
}

/// Returns the size in the header of a lossy frame.
fn vp8_frame_size(chunk: &[u8]) -> Option<(u32, u32)> {
    let [_, _, _, 0x9d, 0x01, 0x2a, width_low, width_high, height_low, height_high] =
        *chunk.first_chunk()?
    else {
        return None;
    };
    let side = |low, high| u32::from(u16::from_le_bytes([low, high]) & 0x3fff);
    Some((side(width_low, width_high), side(height_low, height_high)))
}

/// Returns the size in the header of a lossless frame.
fn vp8l_frame_size(chunk: &[u8]) -> Option<(u32, u32)> {
    let [0x2f, bits @ ..] = *chunk.first_chunk::<5>()? else { return None };
    let bits = u32::from_le_bytes(bits);
    Some(((bits & 0x3fff) + 1, ((bits >> 14) & 0x3fff) + 1))
}

/// Limits the memory a decoder allocates while decoding. `decode_image` checks the image size
/// separately, with its own error message.
fn decoder_limits() -> Limits {
    let mut limits = Limits::no_limits();
    limits.max_alloc = Some(2 * MAX_DECODED_BYTES);
    limits
}

/// Returns true if there is a second frame. Called only for images that could be decoded.
fn is_animated(bytes: &[u8], format: ImageFormat) -> bool {
    match format {
        ImageFormat::Gif => GifDecoder::new(Cursor::new(bytes)).is_ok_and(|mut decoder| {
            decoder.set_limits(decoder_limits()).is_ok()
                && decoder.into_frames().nth(1).is_some_and(|frame| frame.is_ok())
        }),
        ImageFormat::WebP => {
            WebPDecoder::new(Cursor::new(bytes)).is_ok_and(|decoder| decoder.has_animation())
        }
        _ => false,
    }
}

/// Scales an image down in its aspect ratio. Very large ones take two steps: the first needs less
/// memory, the second looks better.
fn downscale(picture: DynamicImage) -> DynamicImage {
    let longest = picture.width().max(picture.height());
    if longest <= MAX_SIDE_PIXELS {
        return picture;
    }
    let picture = if longest > 4 * MAX_SIDE_PIXELS {
        picture.thumbnail(2 * MAX_SIDE_PIXELS, 2 * MAX_SIDE_PIXELS)
    } else {
        picture
    };
    picture.resize(MAX_SIDE_PIXELS, MAX_SIDE_PIXELS, FilterType::CatmullRom)
}

/// Encodes an image: as PNG if it has transparency or is small, otherwise as JPEG.
fn encode_image(
    picture: DynamicImage,
    source_format: ImageFormat,
) -> Result<(&'static str, Vec<u8>), String> {
    let to_message = |error| format!("the image cannot be scaled down: {error}");
    let picture = if picture.color().has_alpha() {
        DynamicImage::ImageRgba8(picture.into_rgba8())
    } else {
        DynamicImage::ImageRgb8(picture.into_rgb8())
    };
    let has_transparency =
        picture.as_rgba8().is_some_and(|picture| picture.pixels().any(|pixel| pixel.0[3] < 255));
    if has_transparency || source_format != ImageFormat::Jpeg {
        let mut bytes = Vec::new();
        picture.write_with_encoder(PngEncoder::new(&mut bytes)).map_err(to_message)?;
        if bytes.len() <= if has_transparency { MAX_IMAGE_BYTES } else { SMALL_PNG_BYTES } {
            return Ok(("image/png", bytes));
        }
    }
    let opaque = flatten_on_white(picture);
    for quality in JPEG_QUALITIES {
        let mut bytes = Vec::new();
        let encoder = JpegEncoder::new_with_quality(&mut bytes, quality);
        opaque.write_with_encoder(encoder).map_err(to_message)?;
        if bytes.len() <= MAX_IMAGE_BYTES {
            return Ok(("image/jpeg", bytes));
        }
    }
    Err("the image cannot be made small enough. Make a smaller copy of it first".into())
}

/// Replaces transparency by white: a JPEG has none, and the background would become black.
fn flatten_on_white(picture: DynamicImage) -> DynamicImage {
    match picture {
        DynamicImage::ImageRgba8(picture) => {
            let (width, height) = picture.dimensions();
            let mut background =
                image::RgbaImage::from_pixel(width, height, image::Rgba([255, 255, 255, 255]));
            imageops::overlay(&mut background, &picture, 0, 0);
            DynamicImage::ImageRgb8(DynamicImage::ImageRgba8(background).into_rgb8())
        }
        opaque => opaque,
    }
}

#[cfg(test)]
mod tests;
