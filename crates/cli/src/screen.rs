//! The screen: the only place that prints. Answers go to standard output, everything else to
//! standard error, so that a script gets the answer alone.
#![allow(clippy::disallowed_methods, reason = "this is the door to the screen")]

use crate::question::columns;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
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

/// Where notes go while the terminal is not ours to print on.
static ELSEWHERE: Mutex<Option<Notes>> = Mutex::new(None);

/// Takes notes in.
type Notes = Box<dyn Fn(String) + Send>;

/// Has notes go elsewhere from now on, or to standard error again.
pub(crate) fn divert(notes: Option<Notes>) {
    *ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner) = notes;
}

/// True while notes go elsewhere, and nothing else may be printed either.
pub(crate) fn is_diverted() -> bool {
    ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner).is_some()
}

/// Says something to the person besides the answer.
pub(crate) fn note(text: &str) {
    if let Some(notes) = &*ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner) {
        return notes(plain(text));
    }
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

/// True if there is a terminal to have a screen in.
pub(crate) fn is_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
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
            let text = sign(what, since, width());
            let mut out = std::io::stderr().lock();
            let _ = write!(out, "\r\x1b[K\x1b[2m{text}\x1b[0m");
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

/// A sign of life: one line, however much is said, that fits on the screen.
fn sign(what: &str, since: Duration, width: usize) -> String {
    let what = plain(what);
    let last = what.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
    let time = format!(" {} s", since.as_secs());
    // The last column stays free, or some terminals begin another line.
    let room = width.saturating_sub("… ".len() + time.len() + 1);
    let mut used = 0;
    let fits = |character: &char| {
        used += columns(*character);
        used <= room
    };
    let cut: String = last.chars().take_while(fits).collect();
    format!("… {}{time}", cut.trim_end())
}

/// How many columns and lines the terminal has, if there is one.
pub(crate) fn size() -> Option<(u16, u16)> {
    #[cfg(unix)]
    let known = rustix::termios::tcgetwinsize(std::io::stdout());
    #[cfg(unix)]
    let known = known.map(|size| (size.ws_col, size.ws_row)).ok();
    #[cfg(not(unix))]
    let known: Option<(u16, u16)> = None;
    known.filter(|(columns, lines)| *columns > 0 && *lines > 0)
}

/// How wide the screen is.
pub(crate) fn width() -> usize {
    const USUAL: usize = 80;
    #[cfg(unix)]
    let known = rustix::termios::tcgetwinsize(std::io::stderr()).map(|size| size.ws_col).ok();
    #[cfg(not(unix))]
    let known: Option<u16> = None;
    known.filter(|columns| *columns > 0).map_or(USUAL, usize::from)
}

/// Writes a question and leaves the cursor behind it. What was typed before it stood there was not
/// meant for it and is thrown away.
pub(crate) fn pose(question: &str) {
    #[cfg(unix)]
    {
        use rustix::termios::{QueueSelector, tcflush};
        // Where it is no terminal nobody types.
        let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
    }
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

/// True if there is a person, and they say yes.
pub(crate) fn agrees(question: &str) -> bool {
    if !is_interactive() {
        return false;
    }
    pose(question);
    let answer = read_line().unwrap_or_default().to_lowercase();
    matches!(answer.as_str(), "y" | "yes")
}

/// The names that somebody may have meant, in a sentence, if there are any.
pub(crate) fn near(spelled: &str, names: &[&str]) -> String {
    match windlass_toolkit::nearest(spelled, names).as_slice() {
        [] => String::new(),
        near => format!("Near: {}. ", near.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_of_life_is_one_line_that_fits() {
        let time = Duration::from_secs(7);
        assert_eq!(sign("a\nb 50 %\n\n  \n", time, 80), "… b 50 % 7 s");
        assert_eq!(sign("", time, 80), "…  7 s");
        for what in
            ["x".repeat(500), "名".repeat(500), "\t".repeat(90) + "x", "é\u{1b}[2J\rx".into()]
        {
            for width in [0, 5, 20, 80] {
                let text = sign(&what, time, width);
                assert!(!text.contains(['\n', '\r', '\u{1b}']), "{text:?}");
                let wide: usize = text.chars().map(columns).sum();
                assert!(wide < width.max(9), "{width}: {text}");
            }
        }
        assert!(sign(&"x".repeat(500), time, 80).len() > 70);
    }
}
