//! Renders one page of a text or of a folder's entries.

use crate::text::{ReadLinesError, RemainingLineCount, TextLine, TextLineReader};
use std::io::BufRead;
use windlass_toolkit::{CallFailure, truncate_output};

const MAX_PAGE_LINES: u64 = 2_000;
const MAX_PAGE_BYTES: usize = 50 * 1024 - 256;
/// Bytes after the page in which lines are still counted; so many are cheap to read.
const MAX_COUNTED_BYTES: u64 = 4 << 20;

/// The range of lines to show.
#[derive(Clone, Copy)]
pub(super) struct LineWindow {
    first: u64,
    count: u64,
}

impl LineWindow {
    pub(super) fn new(offset: Option<u64>, limit: Option<u64>) -> LineWindow {
        LineWindow {
            first: offset.unwrap_or(1).max(1),
            count: limit.unwrap_or(MAX_PAGE_LINES).clamp(1, MAX_PAGE_LINES),
        }
    }
}

/// A page for the model, and the number of lines or entries on it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RenderedPage {
    pub(super) text: String,
    pub(super) shown: u64,
}

/// Renders the lines of a text within a window, as `N: text`.
pub(super) fn render_text_page(
    source: impl BufRead,
    window: LineWindow,
) -> Result<RenderedPage, CallFailure> {
    let read_failed =
        |error| CallFailure::new(format!("the file could not be read to the end: {error}"));
    let mut lines = TextLineReader::open(source).map_err(|error| match error {
        ReadLinesError::Binary(binary) => CallFailure::new(binary.to_string()),
        ReadLinesError::Io(error) => {
            CallFailure::new(format!("the file could not be read: {error}"))
        }
    })?;
    let skipped = lines.skip_lines(window.first - 1).map_err(read_failed)?;
    let mut page = String::new();
    let (mut shown, mut omitted) = (0, 0);
    let mut lines_with_hidden_chars = Vec::new();
    let mut has_more = true;
    while has_more && omitted == 0 && shown < window.count {
        match lines.read_line().map_err(read_failed)? {
            None => has_more = false,
            Some(line) => match render_line(skipped + shown + 1, &line) {
                entry if page.len() + entry.len() > MAX_PAGE_BYTES => omitted = 1,
                entry => {
                    if truncate_output::strip_controls(&line.text) != line.text {
                        lines_with_hidden_chars.push(skipped + shown + 1);
                    }
                    page.push_str(&entry);
                    shown += 1;
                }
            },
        }
    }
    if shown == 0 {
        return Ok(RenderedPage { text: render_empty_page(skipped, window)?, shown: 0 });
    }
    if has_more {
        let rest = lines.count_remaining(MAX_COUNTED_BYTES).map_err(read_failed)?;
        let rest = RemainingLineCount { lines: rest.lines + omitted, ..rest };
        page.push_str(&more_lines_note(skipped + 1, skipped + shown, rest));
    }
    let mut note = |text: String| {
        let separator = if page.ends_with('\n') { "" } else { "\n" };
        page.push_str(&format!("{separator}{text}"));
    };
    if !lines.encoding().is_utf8() {
        note(format!("[the file is in {}]", lines.encoding().name()));
    }
    if !lines_with_hidden_chars.is_empty() {
        note(hidden_chars_note(&lines_with_hidden_chars));
    }
    Ok(RenderedPage { text: page, shown })
}

fn render_line(number: u64, line: &TextLine) -> String {
    match line.omitted_bytes {
        0 => format!("{number}: {}\n", line.text),
        omitted => format!("{number}: {} … [{omitted} more bytes in this line]\n", line.text),
    }
}

/// Returns a note on lines that are not shown as they are: terminal control characters are removed
/// or replaced on the way to the model, which must not write them back that way.
fn hidden_chars_note(lines: &[u64]) -> String {
    const MAX_NAMED_LINES: usize = 10;
    let numbers: Vec<String> = lines.iter().take(MAX_NAMED_LINES).map(u64::to_string).collect();
    let more = if lines.len() > MAX_NAMED_LINES { " and more" } else { "" };
    let (lines, verb) = if lines.len() == 1 { ("line", "holds") } else { ("lines", "hold") };
    let numbers = numbers.join(", ");
    format!(
        "[{lines} {numbers}{more} {verb} control or invisible characters, which are not shown as \
         they are; edit around them]"
    )
}

/// Returns a note on the lines after a page; empty for the last page.
fn more_lines_note(first: u64, last: u64, rest: RemainingLineCount) -> String {
    let next = last + 1;
    match rest {
        RemainingLineCount { lines: 0, reached_end: true } => String::new(),
        RemainingLineCount { lines, reached_end: true } => {
            let total = last + lines;
            format!("[lines {first} to {last} of {total}; continue with offset {next}]")
        }
        RemainingLineCount { reached_end: false, .. } => {
            format!("[lines {first} to {last}; more follow, continue with offset {next}]")
        }
    }
}

fn render_empty_page(total: u64, window: LineWindow) -> Result<String, CallFailure> {
    if window.first == 1 {
        return Ok("[the file is empty]".into());
    }
    let first = window.first;
    let lines = if total == 1 { "line" } else { "lines" };
    Err(CallFailure::new(format!("line {first} is past the end: the file has {total} {lines}")))
}

/// Renders the entries of a folder within a window.
pub(super) fn render_folder_page(
    names: &[String],
    window: LineWindow,
) -> Result<RenderedPage, CallFailure> {
    let total = names.len() as u64;
    if total == 0 {
        return Ok(RenderedPage { text: "[the folder is empty]".into(), shown: 0 });
    }
    if window.first > total {
        let first = window.first;
        return Err(CallFailure::new(format!(
            "entry {first} is past the end: the folder has {total} entries"
        )));
    }
    let (mut page, mut last) = (String::new(), window.first - 1);
    for name in names.iter().skip(window.first as usize - 1).take(window.count as usize) {
        if page.len() + name.len() > MAX_PAGE_BYTES {
            break;
        }
        page.push_str(&format!("{name}\n"));
        last += 1;
    }
    let (first, next) = (window.first, last + 1);
    if last < total {
        let note = format!("[entries {first} to {last} of {total}; continue with offset {next}]");
        page.push_str(&note);
    } else if first > 1 {
        page.push_str(&format!("[entries {first} to {last} of {total}]"));
    }
    Ok(RenderedPage { text: page, shown: next - first })
}
