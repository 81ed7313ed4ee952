//! Pictures, made to fit what every provider takes.
//!
//! Anthropic refuses more than 5 MB after base64, and more than 2000 pixels a side where a request
//! holds many pictures; beyond 1568 it scales down itself. OpenAI scales to 2048. Gemini takes no
//! GIF, and nobody more than the first picture of an animation. One that is refused would be sent
//! again with every later request, so each is decoded here, whole, before it is believed.
//!
//! It is pure: bytes in, bytes out. Start reading at [`fit`].

use image::codecs::gif::GifDecoder;
use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::PngEncoder;
use image::codecs::webp::WebPDecoder;
use image::imageops::{self, FilterType};
use image::{AnimationDecoder, DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits};
use std::io::Cursor;

/// The longest side that is shown, in pixels.
const SIDE: u32 = 1568;
/// The most bytes that are sent; base64 makes a third more of them.
const LARGEST: usize = 3_750_000;
/// A PNG of at most this is small: text in it stays sharp, so it is not made a JPEG.
const SMALL: usize = 1_000_000;
/// What is decoded at all. A file of a few bytes can say that it is a billion pixels.
const DECODED_SIDE: u32 = 20_000;
const DECODED_BYTES: u64 = 256 << 20;
/// How faithful a JPEG is: the first that fits.
const QUALITIES: [u8; 3] = [85, 65, 40];

/// A picture that every provider takes.
#[derive(Debug)]
pub(crate) struct Picture {
    pub(crate) mime: &'static str,
    pub(crate) bytes: Vec<u8>,
    /// What was done to it, for the model.
    pub(crate) note: Option<String>,
}

/// What a file is, by its first bytes: a name can say anything.
pub fn mime(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        [b'%', b'P', b'D', b'F', b'-', ..] => Some("application/pdf"),
        _ => None,
    }
}

/// The pixels of a small copy of a picture, three bytes each, row by row, on white.
#[derive(Debug, PartialEq, Eq)]
pub struct Thumbnail {
    /// How many pixels wide it is.
    pub width: u32,
    /// How many high.
    pub height: u32,
    /// Red, green, blue.
    pub pixels: Vec<u8>,
    /// How many pixels wide and high the picture itself is.
    pub of: (u32, u32),
}

/// A copy of a picture in the same shape that is at most so wide and high.
pub fn thumbnail(bytes: &[u8], width: u32, height: u32) -> Result<Thumbnail, String> {
    let picture = decode(bytes, format(bytes)?.1)?;
    let of = (picture.width(), picture.height());
    let picture = picture.thumbnail(width.max(1), height.max(1));
    let picture = on_white(DynamicImage::ImageRgba8(picture.into_rgba8())).into_rgb8();
    let (width, height) = picture.dimensions();
    Ok(Thumbnail { width, height, pixels: picture.into_raw(), of })
}

/// What a picture is encoded as.
fn format(bytes: &[u8]) -> Result<(&'static str, ImageFormat), String> {
    match mime(bytes) {
        Some(mime @ "image/png") => Ok((mime, ImageFormat::Png)),
        Some(mime @ "image/jpeg") => Ok((mime, ImageFormat::Jpeg)),
        Some(mime @ "image/gif") => Ok((mime, ImageFormat::Gif)),
        Some(mime @ "image/webp") => Ok((mime, ImageFormat::WebP)),
        Some(_) | None => Err("it is not a PNG, JPEG, GIF or WebP picture".into()),
    }
}

/// Makes a picture fit: as it is where it does, otherwise smaller, still and upright.
pub(crate) fn fit(bytes: Vec<u8>) -> Result<Picture, String> {
    let (mime, format) = format(&bytes)?;
    let mut picture = decode(&bytes, format)?;
    let (width, height) = (picture.width(), picture.height());
    let moves = moves(&bytes, format);
    let small = width <= SIDE && height <= SIDE && bytes.len() <= LARGEST;
    if small && !moves && format != ImageFormat::Gif {
        return Ok(Picture { mime, bytes, note: None });
    }
    picture = shrink(picture);
    let mut notes = Vec::new();
    if moves {
        notes.push("the first frame of an animation".to_owned());
    }
    let shown = (picture.width(), picture.height());
    if shown != (width, height) {
        notes.push(format!("shown at {}×{} of {width}×{height}", shown.0, shown.1));
    }
    let (mime, bytes) = encode(picture, format)?;
    Ok(Picture { mime, bytes, note: (!notes.is_empty()).then(|| notes.join(", ")) })
}

/// The first frame, upright. What says it is huge is refused before memory is given to it.
fn decode(bytes: &[u8], format: ImageFormat) -> Result<DynamicImage, String> {
    let damaged = |error: image::ImageError| {
        let error = error.to_string();
        format!("the picture cannot be decoded: {}. It may be damaged", error.trim_end_matches('.'))
    };
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    reader.limits(limits());
    let mut decoder = reader.into_decoder().map_err(damaged)?;
    let (width, height) = decoder.dimensions();
    if width.max(height) > DECODED_SIDE || decoder.total_bytes() > DECODED_BYTES {
        let most = DECODED_BYTES / 4_000_000;
        return Err(format!(
            "the picture is {width}×{height} pixels, too large to open safely: at most \
             {DECODED_SIDE} a side and some {most} million in all. Make a smaller copy of it first"
        ));
    }
    let orientation = decoder.orientation();
    let mut picture = DynamicImage::from_decoder(decoder).map_err(damaged)?;
    if let Ok(orientation) = orientation {
        picture.apply_orientation(orientation);
    }
    Ok(picture)
}

/// What a decoder may take on the way. The size of the whole is checked apart, in our words.
fn limits() -> Limits {
    let mut limits = Limits::no_limits();
    limits.max_alloc = Some(2 * DECODED_BYTES);
    limits
}

/// True if there is a second frame. Only asked of what could be decoded.
fn moves(bytes: &[u8], format: ImageFormat) -> bool {
    match format {
        ImageFormat::Gif => GifDecoder::new(Cursor::new(bytes)).is_ok_and(|mut decoder| {
            decoder.set_limits(limits()).is_ok()
                && decoder.into_frames().nth(1).is_some_and(|frame| frame.is_ok())
        }),
        ImageFormat::WebP => {
            WebPDecoder::new(Cursor::new(bytes)).is_ok_and(|decoder| decoder.has_animation())
        }
        _ => false,
    }
}

/// Smaller, in the same shape. Very large ones in two steps: the second looks better, the first
/// takes less memory.
fn shrink(picture: DynamicImage) -> DynamicImage {
    let longest = picture.width().max(picture.height());
    if longest <= SIDE {
        return picture;
    }
    let picture = if longest > 4 * SIDE { picture.thumbnail(2 * SIDE, 2 * SIDE) } else { picture };
    picture.resize(SIDE, SIDE, FilterType::CatmullRom)
}

/// A PNG where something shows through or it is small, otherwise a JPEG.
fn encode(picture: DynamicImage, from: ImageFormat) -> Result<(&'static str, Vec<u8>), String> {
    let failed = |error| format!("the picture cannot be made smaller: {error}");
    let picture = if picture.color().has_alpha() {
        DynamicImage::ImageRgba8(picture.into_rgba8())
    } else {
        DynamicImage::ImageRgb8(picture.into_rgb8())
    };
    let see_through =
        picture.as_rgba8().is_some_and(|picture| picture.pixels().any(|pixel| pixel.0[3] < 255));
    if see_through || from != ImageFormat::Jpeg {
        let mut bytes = Vec::new();
        picture.write_with_encoder(PngEncoder::new(&mut bytes)).map_err(failed)?;
        if bytes.len() <= if see_through { LARGEST } else { SMALL } {
            return Ok(("image/png", bytes));
        }
    }
    let opaque = on_white(picture);
    for quality in QUALITIES {
        let mut bytes = Vec::new();
        let encoder = JpegEncoder::new_with_quality(&mut bytes, quality);
        opaque.write_with_encoder(encoder).map_err(failed)?;
        if bytes.len() <= LARGEST {
            return Ok(("image/jpeg", bytes));
        }
    }
    Err("the picture cannot be made small enough. Make a smaller copy of it first".into())
}

/// Without transparency: a JPEG has none, and what is behind would be black.
fn on_white(picture: DynamicImage) -> DynamicImage {
    match picture {
        DynamicImage::ImageRgba8(picture) => {
            let (width, height) = picture.dimensions();
            let mut paper =
                image::RgbaImage::from_pixel(width, height, image::Rgba([255, 255, 255, 255]));
            imageops::overlay(&mut paper, &picture, 0, 0);
            DynamicImage::ImageRgb8(DynamicImage::ImageRgba8(paper).into_rgb8())
        }
        opaque => opaque,
    }
}

#[cfg(test)]
mod tests;
