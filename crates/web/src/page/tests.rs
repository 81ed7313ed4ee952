//! Pages of all kinds, and pages that mean harm.
#![allow(clippy::disallowed_methods, reason = "the pages are files, and time is measured")]

use super::*;
use proptest::prelude::*;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Pages of their kinds, each beside what is read of it.
fn pages() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testkit/fixtures/pages");
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut pages: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "html")).collect();
    pages.sort();
    pages
}

#[test]
fn pages_of_all_kinds_are_readable() {
    let pages = pages();
    assert!(pages.len() >= 20, "{}", pages.len());
    for path in pages {
        let html = std::fs::read_to_string(&path).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let url = format!("https://site.example/docs/{name}.html");
        let mut page = read(&html, &url, Format::Markdown);
        page.text.push('\n');
        if page.partial {
            page.text.push_str("[main text]\n");
        }
        let expected =
            expect_test::ExpectFile { path: path.with_extension("md"), position: file!() };
        expected.assert_eq(&page.text);
    }
}

fn md(html: &str) -> String {
    read(html, "https://site.example/a/b.html", Format::Markdown).text
}

#[test]
fn plain_text_has_no_marks() {
    let html = "<h1>A</h1><p>b <b>c</b> <a href=/d>e</a></p><ul><li>f</ul>";
    let text = read(html, "https://site.example/", Format::Text).text;
    assert!(!text.contains(['*', '#', '[', '(']), "{text}");
    assert!(text.contains("b c e"), "{text}");
}

#[test]
fn the_source_is_untouched() {
    let html = "<script>x</script><b>";
    assert_eq!(read(html, "", Format::Html).text, html);
}

#[test]
fn links_are_whole_and_those_within_the_page_are_text() {
    let text = md("<p><a href='../c'>c</a> <a href=#d>d</a> <a href='javascript:e()'>e</a></p>");
    assert_eq!(text, "[c](https://site.example/c) d e");
}

#[test]
fn a_box_that_holds_the_page_is_no_furniture_whatever_it_is_called() {
    let text = md("<div class='sidebar banner'><p>All there is to read.</p></div><p>x</p>");
    assert!(text.contains("All there is"), "{text}");
}

#[test]
fn what_is_hidden_is_not_read() {
    let text =
        md("<p>seen</p><p hidden>a</p><p style='display : none'>b</p><p aria-hidden=true>c</p>");
    assert_eq!(text, "seen");
}

#[test]
fn a_page_without_text_says_so() {
    let text =
        md("<title>App</title><meta name=description content='Does &amp; sees.'><div id=root>");
    assert_eq!(text, format!("# App\n\nDoes & sees.\n\n{EMPTY}"));
    assert_eq!(md(""), EMPTY);
}

#[test]
fn hostile_nesting_is_read_in_no_time() {
    let begun = Instant::now();
    for tag in
        ["div", "b", "ul><li", "table><tr><td", "a href=x", "blockquote", "font", "p", "dl><dd"]
    {
        for depth in [5_000, 100_000] {
            let html = format!("<p>start{}deep", format!("<{tag}>").repeat(depth));
            let text = md(&html);
            assert!(text.contains("start") && text.contains("deep"), "{tag} {depth}");
        }
    }
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
}

#[test]
fn hostile_breadth_is_read_in_no_time() {
    let begun = Instant::now();
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
        md(&piece.repeat(300_000 / piece.len()));
    }
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
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
        let text = md(&html);
        prop_assert_eq!(
            text.matches("word").count(),
            pieces.iter().filter(|piece| piece.trim() == "word").count(),
            "{}\n{}", html, text
        );
    }
}
