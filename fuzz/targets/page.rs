//! Any bytes as a page of the web.
#![no_main]

use windlass_web::page::{Format, read};
use windlass_web::{Kind, address, decode};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let kind = Kind::of(None, data);
    let text = decode(data, kind, None, None).text;
    for format in [Format::Markdown, Format::Text] {
        let page = read(&text, "https://site.example/a/b", format);
        assert!(page.text.len() <= 64 * text.len() + 4096);
    }
    if let Ok((url, host)) = address(&text) {
        assert_eq!(address(url.as_str()), Ok((url, host)));
    }
});
