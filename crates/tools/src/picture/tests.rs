//! Pictures that fit, that do not, and that are none.

use super::*;
use image::codecs::gif::GifEncoder;
use image::{Frame, Rgb, RgbImage, Rgba, RgbaImage};

fn drawn(width: u32, height: u32) -> DynamicImage {
    let colour = |x: u32, y: u32| Rgb([(x * 7) as u8, (y * 11) as u8, (x ^ y) as u8]);
    DynamicImage::ImageRgb8(RgbImage::from_fn(width, height, colour))
}

fn written(picture: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

fn animated(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = GifEncoder::new(&mut bytes);
    for shade in [0, 255] {
        let pixels = RgbaImage::from_pixel(width, height, Rgba([shade, 0, 0, 255]));
        encoder.encode_frame(Frame::new(pixels)).unwrap();
    }
    drop(encoder);
    bytes
}

/// Decodes what came out, and checks that every provider would take it.
#[track_caller]
fn opened(picture: &Picture) -> DynamicImage {
    assert_eq!(mime(&picture.bytes), Some(picture.mime));
    assert!(["image/png", "image/jpeg", "image/webp"].contains(&picture.mime));
    assert!(picture.bytes.len() <= LARGEST);
    let shown = image::load_from_memory(&picture.bytes).unwrap();
    assert!(shown.width() <= SIDE && shown.height() <= SIDE);
    shown
}

const KINDS: [ImageFormat; 4] =
    [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::WebP, ImageFormat::Gif];

#[test]
fn what_fits_is_not_touched() {
    for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::WebP] {
        let bytes = written(&drawn(SIDE, 3), format);
        let picture = fit(bytes.clone()).unwrap();
        assert!(picture.bytes == bytes && picture.note.is_none(), "{format:?}");
    }
}

#[test]
fn what_is_too_long_is_made_smaller_and_says_so() {
    for format in KINDS {
        let picture = fit(written(&drawn(2000, 50), format)).unwrap();
        let shown = opened(&picture);
        assert_eq!((shown.width(), shown.height()), (1568, 39), "{format:?}");
        assert_eq!(picture.note.as_deref(), Some("shown at 1568×39 of 2000×50"));
    }
    let tall = fit(written(&drawn(3, 7000), ImageFormat::Png)).unwrap();
    assert_eq!(opened(&tall).height(), SIDE);
}

#[test]
fn one_pixel_too_many_counts() {
    let picture = fit(written(&drawn(SIDE + 1, 2), ImageFormat::Png)).unwrap();
    assert_eq!(opened(&picture).width(), SIDE);
    assert!(picture.note.is_some());
}

#[test]
fn what_has_too_many_bytes_is_encoded_anew() {
    // Noise that nothing compresses.
    let mut state = 1u32;
    let noise = RgbImage::from_fn(1200, 1200, |_, _| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Rgb([(state >> 24) as u8, (state >> 16) as u8, (state >> 8) as u8])
    });
    let bytes = written(&DynamicImage::ImageRgb8(noise), ImageFormat::Png);
    assert!(bytes.len() > LARGEST, "{}", bytes.len());
    let picture = fit(bytes).unwrap();
    assert_eq!(picture.mime, "image/jpeg");
    assert_eq!(opened(&picture).width(), 1200);
}

#[test]
fn what_shows_through_stays_a_png_and_a_photograph_stays_a_jpeg() {
    let glass = RgbaImage::from_fn(1700, 20, |x, _| Rgba([9, 9, 9, (x % 256) as u8]));
    let picture = fit(written(&DynamicImage::ImageRgba8(glass), ImageFormat::WebP)).unwrap();
    assert_eq!(picture.mime, "image/png");
    assert!(opened(&picture).into_rgba8().pixels().any(|pixel| pixel.0[3] < 200));
    let photograph = fit(written(&drawn(1700, 20), ImageFormat::Jpeg)).unwrap();
    assert_eq!(photograph.mime, "image/jpeg");
}

#[test]
fn what_shows_through_a_jpeg_is_white() {
    let glass = RgbaImage::from_pixel(4, 4, Rgba([0, 0, 0, 0]));
    let paper = on_white(DynamicImage::ImageRgba8(glass)).into_rgb8();
    assert!(paper.pixels().all(|pixel| pixel.0 == [255, 255, 255]));
}

#[test]
fn deep_colours_are_made_plain() {
    let deep = DynamicImage::ImageRgb16(drawn(1600, 4).into_rgb16());
    assert_eq!(opened(&fit(written(&deep, ImageFormat::Png)).unwrap()).width(), SIDE);
    let grey = DynamicImage::ImageLumaA16(drawn(1600, 4).into_luma_alpha16());
    assert_eq!(opened(&fit(written(&grey, ImageFormat::Png)).unwrap()).width(), SIDE);
}

#[test]
fn an_animation_is_its_first_frame() {
    let picture = fit(animated(20, 10)).unwrap();
    assert_eq!(picture.note.as_deref(), Some("the first frame of an animation"));
    assert_eq!(opened(&picture).into_rgb8().get_pixel(5, 5).0, [0, 0, 0]);
    let large = fit(animated(1960, 10)).unwrap();
    let note = "the first frame of an animation, shown at 1568×8 of 1960×10";
    assert_eq!(large.note.as_deref(), Some(note));
    opened(&large);
}

#[test]
fn a_still_gif_becomes_a_png_without_a_word() {
    let picture = fit(written(&drawn(20, 10), ImageFormat::Gif)).unwrap();
    assert_eq!((picture.mime, picture.note.as_deref()), ("image/png", None));
    opened(&picture);
}

#[test]
fn a_photograph_on_its_side_is_turned_upright() {
    let jpeg = written(&drawn(2000, 100), ImageFormat::Jpeg);
    // EXIF of one entry: the orientation is 6, a quarter turn.
    let exif =
        b"\xff\xe1\x00\x22Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
    let turned = [&jpeg[..2], exif, &jpeg[2..]].concat();
    let shown = opened(&fit(turned).unwrap());
    assert_eq!((shown.width(), shown.height()), (78, 1568));
}

#[test]
fn what_would_fill_the_memory_is_refused_with_words() {
    let wide = written(&drawn(DECODED_SIDE + 1, 1), ImageFormat::Png);
    let claim = |width: u16, height: u16| {
        let (w, h) = (width.to_le_bytes(), height.to_le_bytes());
        let frame = [b",\0\0\0\0".as_slice(), &w, &h, b"\0\x02\x02\x44\x01\0;"].concat();
        [b"GIF89a".as_slice(), &w, &h, b"\x80\0\0\0\0\0\xff\xff\xff", &frame].concat()
    };
    for (bytes, size) in [
        (wide, "20001×1"),
        (claim(65535, 65535), "65535×65535"),
        (claim(19999, 19999), "19999×19999"),
    ] {
        let words = fit(bytes).unwrap_err();
        assert!(words.contains(size) && words.contains("smaller copy"), "{words}");
    }
}

#[test]
fn a_frame_that_is_larger_than_its_picture_takes_no_memory() {
    let mut bytes = animated(10, 10);
    let second = bytes.windows(2).rposition(|two| two == b",\0").unwrap();
    bytes[second + 5..second + 9].fill(0xff);
    // Either answer will do, as long as it comes.
    let _ = fit(bytes).map(|picture| opened(&picture));
    let mut bytes = animated(10, 10);
    let first = bytes.windows(2).position(|two| two == b",\0").unwrap();
    bytes[first + 5..first + 9].fill(0xff);
    let _ = fit(bytes).map(|picture| opened(&picture));
}

#[test]
fn what_is_no_picture_is_refused_with_words() {
    for bytes in [&b""[..], b"hello", b"%PDF-1.7", b"<svg/>", b"BM\0\0", b"II*\0", b"RIFF"] {
        assert_eq!(fit(bytes.to_vec()).unwrap_err(), "it is not a PNG, JPEG, GIF or WebP picture");
    }
    for head in [&b"\x89PNG\r\n\x1a\n"[..], b"\xff\xd8\xff", b"GIF89a", b"RIFF\0\0\0\0WEBP"] {
        let words = fit(head.to_vec()).unwrap_err();
        assert!(words.contains("damaged"), "{words}");
    }
}

/// Cut anywhere or with a bit turned anywhere, a picture is either shown or refused.
#[test]
fn a_damaged_picture_never_panics() {
    for format in KINDS {
        let whole = written(&drawn(24, 16), format);
        let step = whole.len() / 60 + 1;
        for at in (0..whole.len()).step_by(step) {
            let _ = fit(whole[..at].to_vec()).map(|picture| opened(&picture));
            for bit in [0, 3, 7] {
                let mut flipped = whole.clone();
                flipped[at] ^= 1 << bit;
                let _ = fit(flipped).map(|picture| mime(&picture.bytes).unwrap());
            }
        }
    }
    let moving = animated(12, 12);
    for at in 0..moving.len() {
        let _ = fit(moving[..at].to_vec()).map(|picture| opened(&picture));
    }
}

#[test]
fn a_thumbnail_keeps_the_shape_and_has_every_pixel() {
    let bytes = written(&drawn(400, 100), ImageFormat::Png);
    let small = thumbnail(&bytes, 60, 40).unwrap();
    assert_eq!((small.width, small.height, small.of), (60, 15, (400, 100)));
    assert_eq!(small.pixels.len(), 60 * 15 * 3);
    let clear = DynamicImage::ImageRgba8(image::RgbaImage::new(4, 4));
    let shown = thumbnail(&written(&clear, ImageFormat::Png), 2, 2).unwrap();
    assert!(shown.pixels.iter().all(|part| *part == 255), "what shows through is white");
    assert!(thumbnail(b"hello", 2, 2).is_err());
}
