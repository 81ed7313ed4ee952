//! Converts any bytes as a web page.
#![no_main]

use windlass_web::html_conversion::{PageFormat, convert_page};
use windlass_web::{ContentKind, decode_text, parse_url};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let kind = ContentKind::detect(None, data);
    let text = decode_text(data, kind, None, None).text;
    for format in [PageFormat::Markdown, PageFormat::Text] {
        let page = convert_page(&text, "https://site.example/a/b", format);
        assert!(page.text.len() <= 64 * text.len() + 4096);
    }
    if let Ok((url, host)) = parse_url(&text) {
        assert_eq!(parse_url(url.as_str()), Ok((url, host)));
    }
});
