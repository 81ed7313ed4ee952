//! One page of a text or of a folder's entries.

use super::{count_lines, peek};
use std::io::BufRead;
use windlass_toolkit::Failure;

const LINES: u64 = 2_000;
const LINE_BYTES: usize = 2_000;
const PAGE_BYTES: usize = 50 * 1024 - 256;

/// Which lines are wanted.
#[derive(Clone, Copy)]
pub(super) struct Window {
    first: u64,
    count: u64,
}

impl Window {
    pub(super) fn new(offset: Option<u64>, limit: Option<u64>) -> Window {
        Window { first: offset.unwrap_or(1).max(1), count: limit.unwrap_or(LINES).clamp(1, LINES) }
    }
}

/// The lines of a text within a window, as `N: text`.
pub(super) fn of_text(mut source: impl BufRead, window: Window) -> Result<String, Failure> {
    let broken = |error| Failure::new(format!("it could not be read to the end: {error}"));
    if peek(&mut source)?.contains(&0) {
        return Err(Failure::new("this is a binary file; it cannot be read as text"));
    }
    let mut page = String::new();
    let (mut number, mut shown) = (0, 0);
    let mut line = Vec::new();
    while shown < window.count {
        line.clear();
        let Some(more) = next_line(&mut source, &mut line).map_err(broken)? else {
            return finished(page, number, window);
        };
        number += 1;
        if number < window.first {
            continue;
        }
        let mut text = String::from_utf8_lossy(&line).into_owned();
        if more > 0 {
            // The cut may have gone through a character.
            text.truncate(text.trim_end_matches('\u{fffd}').len());
            text.push_str(&format!(" … [{more} more bytes in this line]"));
        }
        let entry = format!("{number}: {text}\n");
        if page.len() + entry.len() > PAGE_BYTES {
            break;
        }
        page.push_str(&entry);
        shown += 1;
    }
    let last = window.first + shown - 1;
    let total = number.max(last) + count_lines(source).map_err(broken)?;
    if total > last {
        page.push_str(&format!(
            "[lines {} to {last} of {total}; read on with offset {}]",
            window.first,
            last + 1
        ));
    }
    Ok(page)
}

fn finished(page: String, total: u64, window: Window) -> Result<String, Failure> {
    if total == 0 && window.first == 1 {
        return Ok("[the file is empty]".into());
    }
    if total < window.first {
        let first = window.first;
        return Err(Failure::new(format!(
            "line {first} is past the end: the file has {total} lines"
        )));
    }
    Ok(page)
}

/// Reads a line without its line end, keeping its first bytes, and says how many more there were;
/// `None` at the end.
fn next_line(source: &mut impl BufRead, line: &mut Vec<u8>) -> std::io::Result<Option<usize>> {
    let (mut length, mut any) = (0, false);
    loop {
        let bytes = source.fill_buf()?;
        if bytes.is_empty() {
            return Ok(any.then(|| length - line.len()));
        }
        any = true;
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let piece = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
        let room = (LINE_BYTES - line.len()).min(piece.len());
        line.extend_from_slice(piece.get(..room).unwrap_or_default());
        length += piece.len();
        let used = piece.len() + usize::from(end.is_some());
        source.consume(used);
        if end.is_some() {
            let more = length - line.len();
            if more == 0 && line.last() == Some(&b'\r') {
                line.pop();
            }
            return Ok(Some(more));
        }
    }
}

/// A folder's entries within a window.
pub(super) fn of_folder(names: &[String], window: Window) -> Result<String, Failure> {
    let total = names.len() as u64;
    if total > 0 && window.first > total {
        let first = window.first;
        return Err(Failure::new(format!(
            "entry {first} is past the end: the folder has {total} entries"
        )));
    }
    let shown = names.iter().skip(window.first as usize - 1).take(window.count as usize);
    let mut page: String = shown.map(|name| format!("{name}\n")).collect();
    let last = (window.first + window.count - 1).min(total);
    if total == 0 {
        page.push_str("[the folder is empty]");
    } else if last < total || window.first > 1 {
        page.push_str(&format!("[entries {} to {last} of {total}]", window.first));
    }
    Ok(page)
}
