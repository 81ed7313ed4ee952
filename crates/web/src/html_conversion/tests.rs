//! Conversion of pages of all kinds, and of hostile pages.
#![allow(clippy::disallowed_methods, reason = "tests read fixture files and measure time")]

use super::*;
use proptest::prelude::*;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Returns the fixture pages; each has its expected Markdown next to it.
fn fixture_pages() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testkit/fixtures/pages");
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut pages: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "html")).collect();
    pages.sort();
    pages
}

#[test]
fn pages_of_all_kinds_match_their_snapshots() {
    let pages = fixture_pages();
    assert!(pages.len() >= 20, "{}", pages.len());
    for path in pages {
        let html = std::fs::read_to_string(&path).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let url = format!("https://site.example/docs/{name}.html");
        let mut page = convert_page(&html, &url, PageFormat::Markdown);
        page.text.push('\n');
        if page.partial {
            page.text.push_str("[main text]\n");
        }
        let expected =
            expect_test::ExpectFile { path: path.with_extension("md"), position: file!() };
        expected.assert_eq(&page.text);
    }
}

fn to_markdown(html: &str) -> String {
    convert_page(html, "https://site.example/a/b.html", PageFormat::Markdown).text
}

#[test]
fn plain_text_has_no_markdown() {
    let html = "<h1>A</h1><p>b <b>c</b> <a href=/d>e</a></p><ul><li>f</ul>";
    let text = convert_page(html, "https://site.example/", PageFormat::Text).text;
    assert!(!text.contains(['*', '#', '[', '(']), "{text}");
    assert!(text.contains("b c e"), "{text}");
}

#[test]
fn html_format_returns_the_source() {
    let html = "<script>x</script><b>";
    assert_eq!(convert_page(html, "", PageFormat::Html).text, html);
}

#[test]
fn links_are_absolute_and_page_anchors_are_text() {
    let text =
        to_markdown("<p><a href='../c'>c</a> <a href=#d>d</a> <a href='javascript:e()'>e</a></p>");
    assert_eq!(text, "[c](https://site.example/c) d e");
}

#[test]
fn the_main_text_is_kept_whatever_the_class_of_its_element() {
    let text =
        to_markdown("<div class='sidebar banner'><p>All there is to read.</p></div><p>x</p>");
    assert!(text.contains("All there is"), "{text}");
}

#[test]
fn hidden_elements_are_skipped() {
    let text = to_markdown(
        "<p>seen</p><p hidden>a</p><p style='display : none'>b</p><p aria-hidden=true>c</p>",
    );
    assert_eq!(text, "seen");
}

#[test]
fn a_page_without_text_says_so() {
    let text = to_markdown(
        "<title>App</title><meta name=description content='Does &amp; sees.'><div id=root>",
    );
    assert_eq!(text, format!("# App\n\nDoes & sees.\n\n{EMPTY_PAGE_TEXT}"));
    assert_eq!(to_markdown(""), EMPTY_PAGE_TEXT);
}

#[test]
fn hostile_nesting_is_converted_quickly() {
    let started_at = Instant::now();
    for tag in
        ["div", "b", "ul><li", "table><tr><td", "a href=x", "blockquote", "font", "p", "dl><dd"]
    {
        for depth in [5_000, 100_000] {
            let html = format!("<p>start{}deep", format!("<{tag}>").repeat(depth));
            let text = to_markdown(&html);
            assert!(text.contains("start") && text.contains("deep"), "{tag} {depth}");
        }
    }
    assert!(
        started_at.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(30)),
        "{:?}",
        started_at.elapsed()
    );
}

#[test]
fn hostile_breadth_is_converted_quickly() {
    let started_at = Instant::now();
    for piece in [
        "<p>a",
        "<a href=x>b</a>",
        "<td>c",
        "</div>",
        "<",
        "<!--",
        "<a b='",
        "&amp;",
        "<pre>x</pre>",
        "<h1>d</h1>",
        "<li><p>e",
        "<table><tr><td>f</table>",
        "<dt>g<dd>h",
    ] {
        to_markdown(&piece.repeat(300_000 / piece.len()));
    }
    assert!(
        started_at.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(20)),
        "{:?}",
        started_at.elapsed()
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn no_page_panics_and_visible_words_stay(
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                "<p>", "</p>", "<div>", "</div>", "<table>", "<tr>", "<td>", "</table>", "<ul>",
                "<li>", "</ul>", "<dl>", "<dt>", "<dd>", "</dl>", "<pre>", "</pre>", "<a href='/x'>",
                "</a>", "<h2>", "</h2>", "<b>", "</b>", "<code>", "</code>", " word ", "<br>",
                "<blockquote>", "</blockquote>", "&nbsp;", "é",
            ]),
            0..40,
        )
    ) {
        let html = pieces.concat();
        let text = to_markdown(&html);
        prop_assert_eq!(
            text.matches("word").count(),
            pieces.iter().filter(|piece| piece.trim() == "word").count(),
            "{}\n{}", html, text
        );
    }
}
