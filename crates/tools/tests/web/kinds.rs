//! What is fetched, and what a model sees of it.

use crate::yard::{Yard, done, failed};
use serde_json::json;
use windlass_testkit::site::{html, reply};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x02\0\0\0\x02\x08\x02\0\0\0\xfd\xd4\x9as\0\0\0\x11IDATx\x9cc\xf8\xcf\xc0\xc0\xf0\x1f\x8c\x80\x18\0\x1d\xf0\x03\xfd\xd3\xd0}&\0\0\0\0IEND\xaeB`\x82";

pub fn pages_are_readable_and_say_where_they_are_from() {
    let yard = Yard::new(|_| {
        html("<title>T</title><nav>menu</nav><main><p>See <a href=/x>x</a>.</main><footer>f")
    });
    let outcome = yard.get("/p?q#r");
    let from = format!(
        "From {}, which anybody may have written:\n\n# T\n\nSee [x]",
        yard.url("a", "/p?q")
    );
    assert!(outcome.text().starts_with(&from), "{}", outcome.text());
    done(&outcome, &format!("({})", yard.url("a", "/x")));
    assert!(!outcome.text().contains("menu"), "{}", outcome.text());
    let text = yard.fetch(json!({"url": yard.url("a", "/"), "format": "text"}));
    done(&text, "See x.");
    let source = yard.fetch(json!({"url": yard.url("a", "/"), "format": "html"}));
    done(&source, "<nav>menu</nav>");
}

pub fn statuses_are_told() {
    let yard = Yard::new(|asked| match asked.path.as_str() {
        "/204" => reply("204 No Content", &[], ""),
        "/304" => reply("304 Not Modified", &[], ""),
        "/404" => {
            let body = format!("<h1>Not here</h1><script>x</script>{}", "<p>more ".repeat(700_000));
            reply("404 Not Found", &["content-type: text/html"], body)
        }
        "/500" => reply("500 Internal Server Error", &["content-type: image/png"], PNG),
        _ => reply("200 OK", &["content-type: text/plain"], ""),
    });
    failed(&yard.get("/204"), "answered HTTP 204 No Content");
    failed(&yard.get("/304"), "answered HTTP 304 Not Modified");
    let missing = yard.get("/404");
    failed(&missing, "answered HTTP 404 Not Found: Not here");
    assert!(missing.text().len() < 700, "{}", missing.text().len());
    failed(&yard.get("/500"), "answered HTTP 500");
    done(&yard.get("/empty"), "(it is empty)");
}

pub fn lies_about_kinds_are_seen_through() {
    let yard = Yard::new(|asked| match asked.path.as_str() {
        "/png" => reply("200 OK", &["content-type: text/html"], PNG),
        "/svg" => reply("200 OK", &["content-type: image/svg+xml"], "<svg><text>hi</text></svg>"),
        "/zip" => reply("200 OK", &["content-type: text/weird+zip"], b"PK\x03\x04\0\0\0\0"),
        "/page" => reply("200 OK", &["content-type: image/png"], "<!doctype html><p>a page"),
        "/bare" => reply("200 OK", &[], "just text"),
        "/json" => reply("200 OK", &["content-type: application/json"], "{\"a\": 1}"),
        _ => reply("200 OK", &["content-type: application/zip"], b"PK\x03\x04\0\0\0\0"),
    });
    let png = yard.get("/png");
    done(&png, "[it is shown as image/png]");
    assert_eq!(png.attachments().len(), 1);
    done(&yard.get("/svg"), "<svg><text>hi</text></svg>");
    done(&yard.get("/page"), "a page");
    done(&yard.get("/bare"), "just text");
    done(&yard.get("/json"), "{\"a\": 1}");
    failed(&yard.get("/other"), "is a zip archive or a document packed as one; it is not shown");
}

pub fn encodings_are_found_out() {
    const RUSSIAN: &str = "Приливы и отливы измеряются на каждой станции побережья.";
    let page = |head: &str, encoding: &'static encoding_rs::Encoding| {
        encoding.encode(&format!("<html><head>{head}</head><p>{RUSSIAN}</p>")).0.into_owned()
    };
    let yard = Yard::new(move |asked| match asked.path.as_str() {
        "/header" => reply(
            "200 OK",
            &["content-type: text/html; charset=\"windows-1251\""],
            page("", encoding_rs::WINDOWS_1251),
        ),
        "/lie" => reply(
            "200 OK",
            &["content-type: text/html; charset=utf-8"],
            page("<meta charset=koi8-r>", encoding_rs::KOI8_R),
        ),
        "/meta" => html(page("<meta charset=windows-1251>", encoding_rs::WINDOWS_1251)),
        _ => html(page("", encoding_rs::WINDOWS_1251)),
    });
    for path in ["/header", "/lie", "/meta", "/none"] {
        done(&yard.get(path), RUSSIAN);
    }
    done(&yard.get("/lie"), "[it says it is in UTF-8, but is not; it is read as KOI8-R]");
}

pub fn pictures_and_documents_are_shown() {
    let yard = Yard::new(|asked| match asked.path.as_str() {
        "/a/b.png" => reply("200 OK", &["content-type: image/png"], PNG),
        _ => reply("200 OK", &["content-type: image/png"], &PNG[..40]),
    });
    let outcome = yard.get("/a/b.png");
    done(&outcome, "[it is shown as image/png]");
    assert_eq!(outcome.attachments()[0].name, "b.png");
    failed(&yard.get("/broken"), "the picture cannot be decoded");
}
