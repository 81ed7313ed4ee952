//! A page made readable: markdown or plain text from HTML.
//!
//! It is pure, and believes nothing: the page is cut into a flat list of elements with bounded
//! nesting ([`tree`]), what is no text is left out ([`sieve`]), and the rest is written anew with a
//! handful of plain elements ([`tidy`]), which are all that the converter ever sees. It still runs
//! as an errand only, in a process of its own: see `errand` in the cli. Start reading at [`read`].

mod markup;
mod sieve;
mod tidy;
mod tree;

use html_to_markdown_rs::options::OutputFormat;
use html_to_markdown_rs::{ConversionOptions, convert};
use markup::{Token, Tokens, attributes};
use serde::{Deserialize, Serialize};
use sieve::Sieve;
use std::time::Duration;
use tree::Tree;
use windlass_toolkit::Failure;

/// How a page is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// As markdown.
    #[default]
    Markdown,
    /// As plain text.
    Text,
    /// As it came.
    Html,
}

/// A page that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// What it says.
    pub text: String,
    /// True if there was more around it, which is left out.
    pub partial: bool,
}

/// What is said of a page without text.
const EMPTY: &str = "(the page holds no text; it may be made by scripts, which are not run)";

/// Reads a page. Its links are resolved against the address it came from.
pub fn read(html: &str, url: &str, format: Format) -> Page {
    if format == Format::Html {
        return Page { text: html.to_owned(), partial: false };
    }
    let tree = Tree::read(html);
    let sieve = Sieve::new(&tree);
    let text = convert_tidy(&tidy::write(&sieve), url, format);
    let bare = sieve.weight(sieve.root.clone()) == 0;
    if text.is_empty() || bare {
        let said = tree.description.map(|said| format!("<p>{}</p>", said.replace('<', "&lt;")));
        let said = said.map(|said| convert_tidy(&said, url, format)).unwrap_or_default();
        let parts = [text.as_str(), said.as_str(), EMPTY];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        return Page { text: parts.join("\n\n"), partial: false };
    }
    Page { text, partial: sieve.partial }
}

fn convert_tidy(html: &str, url: &str, format: Format) -> String {
    let mut options = ConversionOptions {
        bullets: "-".to_owned(),
        compact_tables: true,
        extract_metadata: false,
        expand_abbreviations: false,
        base_url: Some(url.to_owned()),
        ..ConversionOptions::default()
    };
    options.preprocessing.enabled = false;
    if format == Format::Text {
        options.output_format = OutputFormat::Plain;
    }
    let made = convert(html, options).ok().and_then(|made| made.content).unwrap_or_default();
    tighten(&made)
}

/// Takes blank lines out where there are several, and spaces at the end of lines, but not in code.
fn tighten(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut blank = 0;
    let mut fence = None;
    for line in text.lines() {
        let mark = line.trim_start();
        let ticks = mark.len() - mark.trim_start_matches('`').len();
        match fence {
            None if ticks >= 3 => fence = Some(ticks),
            Some(open) if ticks >= open && mark.len() == ticks => fence = None,
            Some(_) | None => {}
        }
        let line = if fence.is_none() && !line.ends_with("  ") { line.trim_end() } else { line };
        let line = if line.trim().is_empty() { "" } else { line };
        let quoted = |line: &str| line.starts_with('>');
        let last = || out.lines().next_back().unwrap_or_default();
        // What a quotation follows is set apart from it.
        if fence.is_none() && quoted(line) && !last().is_empty() && !quoted(last()) {
            out.push('\n');
        }
        blank = if line.is_empty() { blank + 1 } else { 0 };
        if blank > 1 && fence.is_none() {
            continue;
        }
        out.push_str(line);
        out.push('\n');
    }
    out.trim_matches('\n').to_owned()
}

/// How far a page is searched for where it sends its readers, and how soon it has to.
const REFRESHES: usize = 4 << 10;
const SOON: f32 = 5.0;

/// Where a page sends whoever opens it, if it does so soon.
pub(crate) fn refresh(bytes: &[u8]) -> Option<String> {
    let head = bytes.get(..REFRESHES).unwrap_or(bytes);
    let head = String::from_utf8_lossy(head);
    Tokens::new(&head).find_map(|token| {
        let Token::Open { name, attributes: text } = token else { return None };
        let value = |wanted: &str| {
            let found = attributes(text).find(|(name, _)| name.eq_ignore_ascii_case(wanted));
            found.map(|(_, value)| value)
        };
        let meta = name.eq_ignore_ascii_case("meta")
            && value("http-equiv").is_some_and(|what| what.eq_ignore_ascii_case("refresh"));
        let (delay, place) = value("content").filter(|_| meta)?.split_once([';', ','])?;
        let (word, place) = place.split_once('=')?;
        let place = place.trim().trim_matches(['"', '\'']).replace("&amp;", "&");
        let soon = delay.trim().parse::<f32>().is_ok_and(|delay| delay <= SOON);
        (soon && word.trim().eq_ignore_ascii_case("url") && !place.is_empty()).then_some(place)
    })
}

/// The words of markup on one line, up to so many characters.
pub(crate) fn plain(markup: &str, most: usize) -> String {
    let tree = Tree::read(markup);
    let words = tree.text(0..tree.nodes.len());
    let line = words.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(most) {
        Some((at, _)) => format!("{} …", line.get(..at).unwrap_or_default()),
        None => line,
    }
}

/// What the errand is asked: the first line of its input; the page follows.
#[derive(Debug, Serialize, Deserialize)]
struct Asked {
    url: String,
    format: Format,
}

/// The longest text of a page.
const LONGEST: usize = 8 << 20;

/// Reads a page in a process of its own. Blocks.
pub fn read_apart(
    html: &str,
    url: &str,
    format: Format,
    patience: Duration,
) -> Result<Page, Failure> {
    if format == Format::Html {
        return Ok(read(html, url, format));
    }
    let told = windlass_sandbox::errand("page", question(html, url, format), LONGEST, patience);
    let told = told.map_err(|error| {
        Failure::new(format!("the page could not be read: {error}. Format html gives its source"))
    })?;
    let text = String::from_utf8_lossy(&told);
    Ok(match text.strip_suffix(PARTIAL) {
        Some(text) => Page { text: text.to_owned(), partial: true },
        None => Page { text: text.into_owned(), partial: false },
    })
}

/// The input of the errand `page`.
fn question(html: &str, url: &str, format: Format) -> Vec<u8> {
    let asked = Asked { url: url.to_owned(), format };
    let mut input = serde_json::to_vec(&asked).unwrap_or_default();
    input.push(b'\n');
    input.extend_from_slice(html.as_bytes());
    input
}

/// What follows the text of a page of which only the main part is told.
const PARTIAL: &str = "\u{1}";

/// The errand `page`: reads what it is asked about, and says what the page says.
pub fn errand(input: &[u8]) -> Result<String, String> {
    let text = std::str::from_utf8(input).map_err(|_| "it is not text".to_owned())?;
    let (asked, html) = text.split_once('\n').ok_or("nothing was asked")?;
    let asked: Asked =
        serde_json::from_str(asked).map_err(|error| format!("nothing was asked: {error}"))?;
    let Page { mut text, partial } = read(html, &asked.url, asked.format);
    if partial {
        text.push_str(PARTIAL);
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
