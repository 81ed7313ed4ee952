//! One page of a text or of a folder's entries.

use crate::text::{Line, Lines, Rest, Unreadable};
use std::io::BufRead;
use windlass_toolkit::Failure;

const LINES: u64 = 2_000;
const PAGE_BYTES: usize = 50 * 1024 - 256;
/// How far beyond the page lines are counted: what is cheap to read.
const COUNTED: u64 = 4 << 20;

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
pub(super) fn of_text(source: impl BufRead, window: Window) -> Result<String, Failure> {
    let broken = |error| Failure::new(format!("it could not be read to the end: {error}"));
    let mut lines = Lines::open(source).map_err(|error| match error {
        Unreadable::Binary(binary) => Failure::new(binary.to_string()),
        Unreadable::Source(error) => Failure::new(format!("it could not be read: {error}")),
    })?;
    let before = lines.skip(window.first - 1).map_err(broken)?;
    let mut page = String::new();
    let (mut shown, mut unshown) = (0, 0);
    let mut left = true;
    while left && unshown == 0 && shown < window.count {
        match lines.read().map_err(broken)? {
            None => left = false,
            Some(line) => match entry(before + shown + 1, &line) {
                entry if page.len() + entry.len() > PAGE_BYTES => unshown = 1,
                entry => {
                    page.push_str(&entry);
                    shown += 1;
                }
            },
        }
    }
    if shown == 0 {
        return nothing(before, window);
    }
    if left {
        let rest = lines.count(COUNTED).map_err(broken)?;
        let rest = Rest { lines: rest.lines + unshown, ..rest };
        page.push_str(&read_on(before + 1, before + shown, rest));
    }
    if !lines.format().is_utf8() {
        let gap = if page.ends_with('\n') { "" } else { "\n" };
        page.push_str(&format!("{gap}[the file is in {}]", lines.format().name()));
    }
    Ok(page)
}

fn entry(number: u64, line: &Line) -> String {
    match line.more {
        0 => format!("{number}: {}\n", line.text),
        more => format!("{number}: {} … [{more} more bytes in this line]\n", line.text),
    }
}

/// A note on what follows a page; nothing if it is the last.
fn read_on(first: u64, last: u64, rest: Rest) -> String {
    let next = last + 1;
    match rest {
        Rest { lines: 0, ended: true } => String::new(),
        Rest { lines, ended: true } => {
            let total = last + lines;
            format!("[lines {first} to {last} of {total}; read on with offset {next}]")
        }
        Rest { ended: false, .. } => {
            format!("[lines {first} to {last}; more follow, read on with offset {next}]")
        }
    }
}

fn nothing(total: u64, window: Window) -> Result<String, Failure> {
    if window.first == 1 {
        return Ok("[the file is empty]".into());
    }
    let first = window.first;
    let lines = if total == 1 { "line" } else { "lines" };
    Err(Failure::new(format!("line {first} is past the end: the file has {total} {lines}")))
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
