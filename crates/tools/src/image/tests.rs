//! Tests of `prepare_image` and `make_thumbnail`.

use super::*;
use image::codecs::gif::GifEncoder;
use image::{Frame, Rgb, RgbImage, Rgba, RgbaImage};

fn test_image(width: u32, height: u32) -> DynamicImage {
    let color = |x: u32, y: u32| Rgb([(x * 7) as u8, (y * 11) as u8, (x ^ y) as u8]);
    DynamicImage::ImageRgb8(RgbImage::from_fn(width, height, color))
}

fn encode(picture: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

fn animated_gif(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = GifEncoder::new(&mut bytes);
    for shade in [0, 255] {
        let pixels = RgbaImage::from_pixel(width, height, Rgba([shade, 0, 0, 255]));
        encoder.encode_frame(Frame::new(pixels)).unwrap();
    }
    drop(encoder);
    bytes
}

/// Decodes a prepared image, and checks that every provider accepts it.
#[track_caller]
fn decode_prepared(picture: &PreparedImage) -> DynamicImage {
    assert_eq!(detect_mime(&picture.bytes), Some(picture.mime));
    assert!(["image/png", "image/jpeg", "image/webp"].contains(&picture.mime));
    assert!(picture.bytes.len() <= MAX_IMAGE_BYTES);
    let shown = image::load_from_memory(&picture.bytes).unwrap();
    assert!(shown.width() <= MAX_SIDE_PIXELS && shown.height() <= MAX_SIDE_PIXELS);
    shown
}

const FORMATS: [ImageFormat; 4] =
    [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::WebP, ImageFormat::Gif];

#[test]
fn an_image_within_the_limits_is_unchanged() {
    for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::WebP] {
        let bytes = encode(&test_image(MAX_SIDE_PIXELS, 3), format);
        let picture = prepare_image(bytes.clone()).unwrap();
        assert!(picture.bytes == bytes && picture.note.is_none(), "{format:?}");
    }
}

#[test]
fn a_large_image_is_scaled_down_with_a_note() {
    for format in FORMATS {
        let picture = prepare_image(encode(&test_image(2000, 50), format)).unwrap();
        let shown = decode_prepared(&picture);
        assert_eq!((shown.width(), shown.height()), (1568, 39), "{format:?}");
        assert_eq!(picture.note.as_deref(), Some("scaled to 1568×39 from 2000×50"));
    }
    let tall = prepare_image(encode(&test_image(3, 7000), ImageFormat::Png)).unwrap();
    assert_eq!(decode_prepared(&tall).height(), MAX_SIDE_PIXELS);
}

#[test]
fn an_image_one_pixel_too_wide_is_scaled_down() {
    let picture =
        prepare_image(encode(&test_image(MAX_SIDE_PIXELS + 1, 2), ImageFormat::Png)).unwrap();
    assert_eq!(decode_prepared(&picture).width(), MAX_SIDE_PIXELS);
    assert!(picture.note.is_some());
}

#[test]
fn an_image_with_too_many_bytes_is_reencoded() {
    // Noise does not compress.
    let mut state = 1u32;
    let noise = RgbImage::from_fn(1200, 1200, |_, _| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Rgb([(state >> 24) as u8, (state >> 16) as u8, (state >> 8) as u8])
    });
    let bytes = encode(&DynamicImage::ImageRgb8(noise), ImageFormat::Png);
    assert!(bytes.len() > MAX_IMAGE_BYTES, "{}", bytes.len());
    let picture = prepare_image(bytes).unwrap();
    assert_eq!(picture.mime, "image/jpeg");
    assert_eq!(decode_prepared(&picture).width(), 1200);
}

#[test]
fn a_transparent_image_stays_png_and_a_photo_stays_jpeg() {
    let transparent = RgbaImage::from_fn(1700, 20, |x, _| Rgba([9, 9, 9, (x % 256) as u8]));
    let picture =
        prepare_image(encode(&DynamicImage::ImageRgba8(transparent), ImageFormat::WebP)).unwrap();
    assert_eq!(picture.mime, "image/png");
    assert!(decode_prepared(&picture).into_rgba8().pixels().any(|pixel| pixel.0[3] < 200));
    let photo = prepare_image(encode(&test_image(1700, 20), ImageFormat::Jpeg)).unwrap();
    assert_eq!(photo.mime, "image/jpeg");
}

#[test]
fn transparency_becomes_white() {
    let transparent = RgbaImage::from_pixel(4, 4, Rgba([0, 0, 0, 0]));
    let flattened = flatten_on_white(DynamicImage::ImageRgba8(transparent)).into_rgb8();
    assert!(flattened.pixels().all(|pixel| pixel.0 == [255, 255, 255]));
}

#[test]
fn images_with_16_bit_colors_are_converted() {
    let deep = DynamicImage::ImageRgb16(test_image(1600, 4).into_rgb16());
    assert_eq!(
        decode_prepared(&prepare_image(encode(&deep, ImageFormat::Png)).unwrap()).width(),
        MAX_SIDE_PIXELS
    );
    let gray = DynamicImage::ImageLumaA16(test_image(1600, 4).into_luma_alpha16());
    assert_eq!(
        decode_prepared(&prepare_image(encode(&gray, ImageFormat::Png)).unwrap()).width(),
        MAX_SIDE_PIXELS
    );
}

#[test]
fn an_animation_is_reduced_to_its_first_frame() {
    let picture = prepare_image(animated_gif(20, 10)).unwrap();
    assert_eq!(picture.note.as_deref(), Some("the first frame of an animation"));
    assert_eq!(decode_prepared(&picture).into_rgb8().get_pixel(5, 5).0, [0, 0, 0]);
    let large = prepare_image(animated_gif(1960, 10)).unwrap();
    let note = "the first frame of an animation, scaled to 1568×8 from 1960×10";
    assert_eq!(large.note.as_deref(), Some(note));
    decode_prepared(&large);
}

#[test]
fn a_still_gif_becomes_a_png_without_a_note() {
    let picture = prepare_image(encode(&test_image(20, 10), ImageFormat::Gif)).unwrap();
    assert_eq!((picture.mime, picture.note.as_deref()), ("image/png", None));
    decode_prepared(&picture);
}

#[test]
fn a_rotated_photo_is_turned_upright() {
    let jpeg = encode(&test_image(2000, 100), ImageFormat::Jpeg);
    // EXIF with one entry: orientation 6, a quarter turn.
    let exif =
        b"\xff\xe1\x00\x22Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
    let turned = [&jpeg[..2], exif, &jpeg[2..]].concat();
    let shown = decode_prepared(&prepare_image(turned).unwrap());
    assert_eq!((shown.width(), shown.height()), (78, 1568));
}

#[test]
fn an_image_with_too_many_pixels_is_rejected() {
    let wide = encode(&test_image(MAX_DECODED_SIDE_PIXELS + 1, 1), ImageFormat::Png);
    let gif_with_size = |width: u16, height: u16| {
        let (w, h) = (width.to_le_bytes(), height.to_le_bytes());
        let frame = [b",\0\0\0\0".as_slice(), &w, &h, b"\0\x02\x02\x44\x01\0;"].concat();
        [b"GIF89a".as_slice(), &w, &h, b"\x80\0\0\0\0\0\xff\xff\xff", &frame].concat()
    };
    for (bytes, size) in [
        (wide, "20001×1"),
        (gif_with_size(65535, 65535), "65535×65535"),
        (gif_with_size(19999, 19999), "19999×19999"),
    ] {
        let error = prepare_image(bytes).unwrap_err();
        assert!(error.contains(size) && error.contains("smaller copy"), "{error}");
    }
}

#[test]
fn a_frame_larger_than_its_image_takes_no_memory() {
    let mut bytes = animated_gif(10, 10);
    let second = bytes.windows(2).rposition(|two| two == b",\0").unwrap();
    bytes[second + 5..second + 9].fill(0xff);
    // Accepting and rejecting are both fine.
    let _ = prepare_image(bytes).map(|picture| decode_prepared(&picture));
    let mut bytes = animated_gif(10, 10);
    let first = bytes.windows(2).position(|two| two == b",\0").unwrap();
    bytes[first + 5..first + 9].fill(0xff);
    let _ = prepare_image(bytes).map(|picture| decode_prepared(&picture));
}

#[test]
fn a_webp_image_that_claims_more_than_the_file_has_is_rejected_before_it_is_decoded() {
    let valid = encode(&test_image(5, 5), ImageFormat::WebP);
    assert!(prepare_image(valid.clone()).is_ok());
    let mut long_chunk = valid.clone();
    long_chunk.extend(b"EXIF\xf0\xff\xff\xff");
    let frame = valid.windows(4).position(|name| name == b"VP8L").unwrap() + 8;
    let mut large_frame = valid.clone();
    large_frame[frame + 1..frame + 5].copy_from_slice(&0x0fff_ffff_u32.to_le_bytes());
    let lossy_frame = b"\0\0\0\x9d\x01\x2a\xff\x3f\xff\x3f".as_slice();
    let nested = [&[0; 16], b"VP8 \x0a\0\0\0".as_slice(), lossy_frame].concat();
    let length = u32::try_from(nested.len()).unwrap().to_le_bytes();
    let in_animation = [&valid, b"ANMF".as_slice(), &length, &nested].concat();
    for bytes in [long_chunk, large_frame, in_animation] {
        let error = prepare_image(bytes).unwrap_err();
        assert_eq!(error, "the image cannot be decoded: its chunks are damaged");
    }
}

#[test]
fn a_file_that_is_not_an_image_is_rejected() {
    for bytes in [&b""[..], b"hello", b"%PDF-1.7", b"<svg/>", b"BM\0\0", b"II*\0", b"RIFF"] {
        assert_eq!(
            prepare_image(bytes.to_vec()).unwrap_err(),
            "it is not a PNG, JPEG, GIF or WebP image"
        );
    }
    for head in [&b"\x89PNG\r\n\x1a\n"[..], b"\xff\xd8\xff", b"GIF89a", b"RIFF\0\0\0\0WEBP"] {
        let error = prepare_image(head.to_vec()).unwrap_err();
        assert!(error.contains("damaged"), "{error}");
    }
}

/// A truncated image, or one with a flipped bit, is either accepted or rejected.
#[test]
fn a_damaged_image_never_panics() {
    for format in FORMATS {
        let whole = encode(&test_image(24, 16), format);
        let step = whole.len() / 60 + 1;
        for offset in (0..whole.len()).step_by(step) {
            let _ =
                prepare_image(whole[..offset].to_vec()).map(|picture| decode_prepared(&picture));
            for bit in [0, 3, 7] {
                let mut flipped = whole.clone();
                flipped[offset] ^= 1 << bit;
                let _ = prepare_image(flipped).map(|picture| detect_mime(&picture.bytes).unwrap());
            }
        }
    }
    let animation = animated_gif(12, 12);
    for offset in 0..animation.len() {
        let _ =
            prepare_image(animation[..offset].to_vec()).map(|picture| decode_prepared(&picture));
    }
}

#[test]
fn a_thumbnail_keeps_the_aspect_ratio_and_has_every_pixel() {
    let bytes = encode(&test_image(400, 100), ImageFormat::Png);
    let small = make_thumbnail(&bytes, 60, 40).unwrap();
    assert_eq!((small.width, small.height, small.original_size), (60, 15, (400, 100)));
    assert_eq!(small.pixels.len(), 60 * 15 * 3);
    let clear = DynamicImage::ImageRgba8(image::RgbaImage::new(4, 4));
    let shown = make_thumbnail(&encode(&clear, ImageFormat::Png), 2, 2).unwrap();
    assert!(shown.pixels.iter().all(|part| *part == 255), "transparency becomes white");
    assert!(make_thumbnail(b"hello", 2, 2).is_err());
}
