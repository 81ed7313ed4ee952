//! Converts HTML pages to Markdown or plain text.
//!
//! The conversion performs no I/O and trusts nothing: it parses the page into a flat list of
//! elements with bounded nesting ([`tree`]), drops everything that is not main text
//! ([`boilerplate`]), and rewrites the rest with a few plain elements ([`simplify`]), which are all
//! that the converter ever sees. Even so it runs only in a helper process: see `helper_process` in
//! the cli. Start reading at [`convert_page`].

mod boilerplate;
mod code_language;
mod simplify;
mod tokenizer;
mod tree;

use boilerplate::BoilerplateFilter;
use html_to_markdown_rs::options::OutputFormat;
use html_to_markdown_rs::{ConversionOptions, convert};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokenizer::{MarkupToken, MarkupTokenizer, parse_attributes};
use tree::HtmlTree;
use windlass_toolkit::CallFailure;

/// Requested format of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PageFormat {
    /// Markdown.
    #[default]
    Markdown,
    /// Plain text.
    Text,
    /// Unchanged HTML.
    Html,
}

/// Result of [`convert_page`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageText {
    /// Converted text.
    pub text: String,
    /// True if text around the main content was left out.
    pub partial: bool,
}

const EMPTY_PAGE_TEXT: &str =
    "(the page has no text; it may be rendered by scripts, which are not run)";

/// Converts a page. Resolves its links against `url`.
pub fn convert_page(html: &str, url: &str, format: PageFormat) -> PageText {
    if format == PageFormat::Html {
        return PageText { text: html.to_owned(), partial: false };
    }
    let tree = HtmlTree::parse(html);
    let filter = BoilerplateFilter::new(&tree);
    let text = convert_simplified(&simplify::write_simplified(&filter), url, format);
    let is_bare = filter.kept_length(filter.main_content.clone()) == 0;
    if text.is_empty() || is_bare {
        let description = tree
            .description
            .map(|description| format!("<p>{}</p>", description.replace('<', "&lt;")));
        let description = description
            .map(|description| convert_simplified(&description, url, format))
            .unwrap_or_default();
        let parts = [text.as_str(), description.as_str(), EMPTY_PAGE_TEXT];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        return PageText { text: parts.join("\n\n"), partial: false };
    }
    PageText { text, partial: filter.is_partial }
}

fn convert_simplified(html: &str, url: &str, format: PageFormat) -> String {
    let mut options = ConversionOptions {
        bullets: "-".to_owned(),
        compact_tables: true,
        extract_metadata: false,
        expand_abbreviations: false,
        base_url: Some(url.to_owned()),
        ..ConversionOptions::default()
    };
    options.preprocessing.enabled = false;
    if format == PageFormat::Text {
        options.output_format = OutputFormat::Plain;
    }
    let converted =
        convert(html, options).ok().and_then(|result| result.content).unwrap_or_default();
    collapse_blank_lines(&converted)
}

/// Collapses blank lines and removes trailing spaces, except in code blocks.
fn collapse_blank_lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut blank_lines = 0;
    let mut fence = None;
    for line in text.lines() {
        let trimmed = line.trim_start();
        let ticks = trimmed.len() - trimmed.trim_start_matches('`').len();
        match fence {
            None if ticks >= 3 => fence = Some(ticks),
            Some(open) if ticks >= open && trimmed.len() == ticks => fence = None,
            Some(_) | None => {}
        }
        let line = if fence.is_none() && !line.ends_with("  ") { line.trim_end() } else { line };
        let line = if line.trim().is_empty() { "" } else { line };
        let is_quote = |line: &str| line.starts_with('>');
        let last_line = || out.lines().next_back().unwrap_or_default();
        // Separate a quotation from the line before it.
        if fence.is_none() && is_quote(line) && !last_line().is_empty() && !is_quote(last_line()) {
            out.push('\n');
        }
        blank_lines = if line.is_empty() { blank_lines + 1 } else { 0 };
        if blank_lines > 1 && fence.is_none() {
            continue;
        }
        out.push_str(line);
        out.push('\n');
    }
    out.trim_matches('\n').to_owned()
}

/// Limit for the search for a meta refresh; `MAX_REFRESH_DELAY_SECONDS` limits its delay.
const MAX_REFRESH_SEARCH_BYTES: usize = 4 << 10;
const MAX_REFRESH_DELAY_SECONDS: f32 = 5.0;

/// Returns the target of a `<meta http-equiv="refresh">`, if the page redirects soon.
pub(crate) fn find_meta_refresh(bytes: &[u8]) -> Option<String> {
    let head = bytes.get(..MAX_REFRESH_SEARCH_BYTES).unwrap_or(bytes);
    let head = String::from_utf8_lossy(head);
    MarkupTokenizer::new(&head).find_map(|token| {
        let MarkupToken::StartTag { name, attributes } = token else { return None };
        let attribute = |wanted: &str| {
            let found =
                parse_attributes(attributes).find(|(name, _)| name.eq_ignore_ascii_case(wanted));
            found.map(|(_, value)| value)
        };
        let is_refresh = name.eq_ignore_ascii_case("meta")
            && attribute("http-equiv").is_some_and(|value| value.eq_ignore_ascii_case("refresh"));
        let (delay, target) =
            attribute("content").filter(|_| is_refresh)?.split_once([';', ','])?;
        let (key, target) = target.split_once('=')?;
        let target = target.trim().trim_matches(['"', '\'']).replace("&amp;", "&");
        let is_soon =
            delay.trim().parse::<f32>().is_ok_and(|delay| delay <= MAX_REFRESH_DELAY_SECONDS);
        (is_soon && key.trim().eq_ignore_ascii_case("url") && !target.is_empty()).then_some(target)
    })
}

/// Returns the text of markup on one line, up to `max_chars` characters.
pub(crate) fn plain_text_line(markup: &str, max_chars: usize) -> String {
    let tree = HtmlTree::parse(markup);
    let text = tree.text(0..tree.nodes.len());
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{} …", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// Request to the `page` helper: the first line of its input, followed by the page.
#[derive(Debug, Serialize, Deserialize)]
struct PageHelperRequest {
    url: String,
    format: PageFormat,
}

/// Limit for the output of the `page` helper.
const MAX_PAGE_TEXT_BYTES: usize = 8 << 20;

/// Converts a page in a `page` helper process. Blocks.
pub fn convert_page_isolated(
    html: &str,
    url: &str,
    format: PageFormat,
    timeout: Duration,
) -> Result<PageText, CallFailure> {
    if format == PageFormat::Html {
        return Ok(convert_page(html, url, format));
    }
    let output = windlass_sandbox::run_helper(
        "page",
        encode_helper_input(html, url, format),
        MAX_PAGE_TEXT_BYTES,
        timeout,
    );
    let output = output.map_err(|error| {
        CallFailure::new(format!(
            "the page could not be converted: {error}. Use format html for its source"
        ))
    })?;
    let text = String::from_utf8_lossy(&output);
    Ok(match text.strip_suffix(PARTIAL_MARKER) {
        Some(text) => PageText { text: text.to_owned(), partial: true },
        None => PageText { text: text.into_owned(), partial: false },
    })
}

/// Encodes the input of the `page` helper.
fn encode_helper_input(html: &str, url: &str, format: PageFormat) -> Vec<u8> {
    let request = PageHelperRequest { url: url.to_owned(), format };
    let mut input = serde_json::to_vec(&request).unwrap_or_default();
    input.push(b'\n');
    input.extend_from_slice(html.as_bytes());
    input
}

/// Suffix of the `page` helper's output if only the main content is included.
const PARTIAL_MARKER: &str = "\u{1}";

/// Runs the `page` helper: parses its input and converts the page.
pub fn run_page_helper(input: &[u8]) -> Result<String, String> {
    let text = std::str::from_utf8(input).map_err(|_| "the input is not UTF-8 text".to_owned())?;
    let (request, html) = text.split_once('\n').ok_or("the request is missing")?;
    let request: PageHelperRequest =
        serde_json::from_str(request).map_err(|error| format!("invalid request: {error}"))?;
    let PageText { mut text, partial } = convert_page(html, &request.url, request.format);
    if partial {
        text.push_str(PARTIAL_MARKER);
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
