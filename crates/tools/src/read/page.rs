//! One page of a text or of a folder's entries.

use crate::text::{Line, Lines, Rest, Unreadable};
use std::io::BufRead;
use windlass_toolkit::{Failure, bound};

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
    let mut veiled = Vec::new();
    let mut left = true;
    while left && unshown == 0 && shown < window.count {
        match lines.read().map_err(broken)? {
            None => left = false,
            Some(line) => match entry(before + shown + 1, &line) {
                entry if page.len() + entry.len() > PAGE_BYTES => unshown = 1,
                entry => {
                    if bound::plain(&line.text) != line.text {
                        veiled.push(before + shown + 1);
                    }
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
    let mut note = |text: String| {
        let gap = if page.ends_with('\n') { "" } else { "\n" };
        page.push_str(&format!("{gap}{text}"));
    };
    if !lines.format().is_utf8() {
        note(format!("[the file is in {}]", lines.format().name()));
    }
    if !veiled.is_empty() {
        note(unlike(&veiled));
    }
    Ok(page)
}

fn entry(number: u64, line: &Line) -> String {
    match line.more {
        0 => format!("{number}: {}\n", line.text),
        more => format!("{number}: {} … [{more} more bytes in this line]\n", line.text),
    }
}

/// A note on lines that are not shown as they are: what steers a terminal is taken out or replaced
/// on the way to the model, which must not write it back so.
fn unlike(lines: &[u64]) -> String {
    const NAMED: usize = 10;
    let named: Vec<String> = lines.iter().take(NAMED).map(u64::to_string).collect();
    let more = if lines.len() > NAMED { " and more" } else { "" };
    let (lines, hold) = if lines.len() == 1 { ("line", "holds") } else { ("lines", "hold") };
    let named = named.join(", ");
    format!(
        "[{lines} {named}{more} {hold} control or invisible characters, which are not shown as \
         they are; edit around them]"
    )
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
    if total == 0 {
        return Ok("[the folder is empty]".into());
    }
    if window.first > total {
        let first = window.first;
        return Err(Failure::new(format!(
            "entry {first} is past the end: the folder has {total} entries"
        )));
    }
    let (mut page, mut last) = (String::new(), window.first - 1);
    for name in names.iter().skip(window.first as usize - 1).take(window.count as usize) {
        if page.len() + name.len() > PAGE_BYTES {
            break;
        }
        page.push_str(&format!("{name}\n"));
        last += 1;
    }
    let (first, next) = (window.first, last + 1);
    if last < total {
        let note = format!("[entries {first} to {last} of {total}; read on with offset {next}]");
        page.push_str(&note);
    } else if first > 1 {
        page.push_str(&format!("[entries {first} to {last} of {total}]"));
    }
    Ok(page)
}
