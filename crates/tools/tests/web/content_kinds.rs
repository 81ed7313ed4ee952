//! Tests of content kinds and encodings, and of their rendering for the model.

use crate::support::{WebFetchTestEnv, assert_completed, assert_failed};
use serde_json::json;
use windlass_testkit::mock_http_server::{html, reply};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x02\0\0\0\x02\x08\x02\0\0\0\xfd\xd4\x9as\0\0\0\x11IDATx\x9cc\xf8\xcf\xc0\xc0\xf0\x1f\x8c\x80\x18\0\x1d\xf0\x03\xfd\xd3\xd0}&\0\0\0\0IEND\xaeB`\x82";

pub fn pages_are_converted_and_name_their_source() {
    let env = WebFetchTestEnv::new(|_| {
        html("<title>T</title><nav>menu</nav><main><p>See <a href=/x>x</a>.</main><footer>f")
    });
    let outcome = env.get("/p?q#r");
    let expected = format!("Untrusted content from {}:\n\n# T\n\nSee [x]", env.url("a", "/p?q"));
    assert!(outcome.text().starts_with(&expected), "{}", outcome.text());
    assert_completed(&outcome, &format!("({})", env.url("a", "/x")));
    assert!(!outcome.text().contains("menu"), "{}", outcome.text());
    let text = env.fetch(json!({"url": env.url("a", "/"), "format": "text"}));
    assert_completed(&text, "See x.");
    let source = env.fetch(json!({"url": env.url("a", "/"), "format": "html"}));
    assert_completed(&source, "<nav>menu</nav>");
}

pub fn error_statuses_are_reported() {
    let env = WebFetchTestEnv::new(|request| match request.path.as_str() {
        "/204" => reply("204 No Content", &[], ""),
        "/304" => reply("304 Not Modified", &[], ""),
        "/404" => {
            let body = format!("<h1>Not here</h1><script>x</script>{}", "<p>more ".repeat(700_000));
            reply("404 Not Found", &["content-type: text/html"], body)
        }
        "/500" => reply("500 Internal Server Error", &["content-type: image/png"], PNG),
        _ => reply("200 OK", &["content-type: text/plain"], ""),
    });
    assert_failed(&env.get("/204"), "answered HTTP 204 No Content");
    assert_failed(&env.get("/304"), "answered HTTP 304 Not Modified");
    let missing = env.get("/404");
    assert_failed(&missing, "answered HTTP 404 Not Found: Not here");
    assert!(missing.text().len() < 700, "{}", missing.text().len());
    assert_failed(&env.get("/500"), "answered HTTP 500");
    assert_completed(&env.get("/empty"), "(empty)");
}

pub fn wrong_content_types_are_detected() {
    let env = WebFetchTestEnv::new(|request| match request.path.as_str() {
        "/png" => reply("200 OK", &["content-type: text/html"], PNG),
        "/svg" => reply("200 OK", &["content-type: image/svg+xml"], "<svg><text>hi</text></svg>"),
        "/zip" => reply("200 OK", &["content-type: text/weird+zip"], b"PK\x03\x04\0\0\0\0"),
        "/page" => reply("200 OK", &["content-type: image/png"], "<!doctype html><p>a page"),
        "/bare" => reply("200 OK", &[], "just text"),
        "/json" => reply("200 OK", &["content-type: application/json"], "{\"a\": 1}"),
        _ => reply("200 OK", &["content-type: application/zip"], b"PK\x03\x04\0\0\0\0"),
    });
    let png = env.get("/png");
    assert_completed(&png, "[shown as image/png]");
    assert_eq!(png.attachments().len(), 1);
    assert_completed(&env.get("/svg"), "<svg><text>hi</text></svg>");
    assert_completed(&env.get("/page"), "a page");
    assert_completed(&env.get("/bare"), "just text");
    assert_completed(&env.get("/json"), "{\"a\": 1}");
    assert_failed(&env.get("/other"), "is a zip archive or a zip-based document; it is not shown");
}

pub fn encodings_are_detected() {
    const RUSSIAN: &str = "Приливы и отливы измеряются на каждой станции побережья.";
    let page = |head: &str, encoding: &'static encoding_rs::Encoding| {
        encoding.encode(&format!("<html><head>{head}</head><p>{RUSSIAN}</p>")).0.into_owned()
    };
    let env = WebFetchTestEnv::new(move |request| match request.path.as_str() {
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
        assert_completed(&env.get(path), RUSSIAN);
    }
    assert_completed(&env.get("/lie"), "[the declared charset UTF-8 is wrong; decoded as KOI8-R]");
}

pub fn images_are_attached() {
    let env = WebFetchTestEnv::new(|request| match request.path.as_str() {
        "/a/b.png" => reply("200 OK", &["content-type: image/png"], PNG),
        _ => reply("200 OK", &["content-type: image/png"], &PNG[..40]),
    });
    let outcome = env.get("/a/b.png");
    assert_completed(&outcome, "[shown as image/png]");
    assert_eq!(outcome.attachments()[0].name, "b.png");
    assert_failed(&env.get("/broken"), "the image cannot be decoded");
}
