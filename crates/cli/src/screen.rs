//! The screen: the only place that prints. Answers go to standard output, everything else to
//! standard error, so that a script gets the answer alone.
#![allow(clippy::disallowed_methods, reason = "this is the door to the screen")]

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use windlass_protocol::text::hides;
use windlass_toolkit::bound::plain;

/// Set when something could not be written, so that nobody takes half an output for a whole one.
static FAILED: AtomicBool = AtomicBool::new(false);

/// True if standard output did not take everything.
pub(crate) fn failed() -> bool {
    FAILED.load(Ordering::Relaxed)
}

/// Prints a line of an answer, a list or a table.
pub(crate) fn line(text: &str) {
    raw(&format!("{}\n", plain(text)));
}

/// Prints a line of JSON. What could steer a terminal is written as JSON writes it.
pub(crate) fn json(text: &str) {
    let mut safe = String::with_capacity(text.len() + 1);
    for character in text.chars() {
        if ('\u{7f}'..='\u{9f}').contains(&character) || hides(character) {
            safe.push_str(&format!("\\u{:04x}", character as u32));
        } else {
            safe.push(character);
        }
    }
    safe.push('\n');
    raw(&safe);
}

/// Prints a text as it is.
pub(crate) fn raw(text: &str) {
    let mut out = std::io::stdout().lock();
    if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // A closed pipe is the reader's choice, not a failure.
        if error.kind() != std::io::ErrorKind::BrokenPipe {
            FAILED.store(true, Ordering::Relaxed);
        }
    }
}

/// Says something to the person besides the answer.
pub(crate) fn note(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", plain(text));
}

/// Says what went wrong.
pub(crate) fn error(text: &str) {
    let label = if std::io::stderr().is_terminal() { "\x1b[31merror:\x1b[0m" } else { "error:" };
    let _ = writeln!(std::io::stderr().lock(), "{label} {}", plain(text));
}

/// True if a person can be asked: they see what is written and can type.
pub(crate) fn is_interactive() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// A run as a person sees it: text as it arrives, a line for each call, and a sign of life when
/// nothing happens.
pub(crate) struct Stage {
    lively: bool,
    /// Whoever reads the answer sees it as it is written.
    pub(crate) watched: bool,
    /// Text was written and its line is not finished.
    open: bool,
    /// A sign of life stands on the last line.
    waiting: bool,
}

impl Stage {
    pub(crate) fn new() -> Stage {
        let (out, err) = (std::io::stdout(), std::io::stderr());
        Stage { lively: err.is_terminal(), watched: out.is_terminal(), open: false, waiting: false }
    }

    /// Writes a piece of the answer.
    pub(crate) fn say(&mut self, piece: &str) {
        self.clear();
        let piece = plain(piece);
        raw(&piece);
        self.open = !piece.ends_with('\n') && (self.open || !piece.is_empty());
    }

    /// Ends the line of the answer.
    pub(crate) fn end_line(&mut self) {
        self.clear();
        if std::mem::take(&mut self.open) {
            raw("\n");
        }
    }

    /// Writes a line about what happens.
    pub(crate) fn tell(&mut self, text: &str) {
        self.end_line();
        let text = plain(text);
        let (dim, end) = if self.lively { ("\x1b[2m", "\x1b[0m") } else { ("", "") };
        let _ = writeln!(std::io::stderr().lock(), "{dim}{text}{end}");
    }

    /// Shows that it is alive.
    pub(crate) fn wait(&mut self, what: &str, since: Duration) {
        if self.lively && !self.open {
            let mut out = std::io::stderr().lock();
            let _ = write!(out, "\r\x1b[K\x1b[2m… {} {} s\x1b[0m", plain(what), since.as_secs());
            let _ = out.flush();
            self.waiting = true;
        }
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.waiting) {
            let _ = write!(std::io::stderr().lock(), "\r\x1b[K");
        }
    }
}

/// Writes a question and leaves the cursor behind it.
pub(crate) fn pose(question: &str) {
    let mut out = std::io::stderr().lock();
    let _ = write!(out, "{}", plain(question)).and_then(|()| out.flush());
}

/// Reads a line; `None` at the end of the input.
pub(crate) fn read_line() -> Option<String> {
    let mut answer = String::new();
    match std::io::stdin().read_line(&mut answer) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(answer.trim().to_owned()),
    }
}
