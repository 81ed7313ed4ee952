//! Terminal output: the only module that prints. Answers go to standard output, everything else to
//! standard error, so that a script gets only the answer.
#![allow(clippy::disallowed_methods, reason = "only this module writes to the terminal")]

use crate::args::RunOutputFormat;
use crate::redact::redact_known;
use crate::terminal::permission_question::char_columns;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use windlass_protocol::Cost;
use windlass_protocol::display_text::is_hidden_or_bidi;
use windlass_toolkit::UserPresence;
use windlass_toolkit::truncate_output::show_controls;

/// Set when a write to standard output fails, so that partial output is not mistaken for complete
/// output.
static WRITE_FAILED: AtomicBool = AtomicBool::new(false);

/// Returns true if some output could not be written to standard output.
pub(crate) fn has_write_failed() -> bool {
    WRITE_FAILED.load(Ordering::Relaxed)
}

/// Returns a text without API keys, and with visible control characters.
fn safe_text(text: &str) -> String {
    show_controls(&redact_known(text))
}

/// Prints a line of an answer, a list or a table.
pub(crate) fn print_line(text: &str) {
    print_raw(&format!("{}\n", safe_text(text)));
}

/// Prints a line of JSON. Characters that could control a terminal are written as JSON escapes.
pub(crate) fn print_json(text: &str) {
    let mut safe = String::with_capacity(text.len() + 1);
    for character in redact_known(text).chars() {
        if ('\u{7f}'..='\u{9f}').contains(&character) || is_hidden_or_bidi(character) {
            safe.push_str(&format!("\\u{:04x}", character as u32));
        } else {
            safe.push(character);
        }
    }
    safe.push('\n');
    print_raw(&safe);
}

/// Prints a text unchanged.
pub(crate) fn print_raw(text: &str) {
    let mut out = std::io::stdout().lock();
    if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // A closed pipe is the reader's choice, not a failure.
        if error.kind() != std::io::ErrorKind::BrokenPipe {
            WRITE_FAILED.store(true, Ordering::Relaxed);
        }
    }
}

/// Receiver of notes while the terminal UI owns the screen.
static NOTE_SINK: Mutex<Option<NoteSink>> = Mutex::new(None);

type NoteSink = Box<dyn Fn(String) + Send>;

/// Sends notes to `notes` from now on, or with `None` to standard error again.
pub(crate) fn divert_notes(notes: Option<NoteSink>) {
    *NOTE_SINK.lock().unwrap_or_else(PoisonError::into_inner) = notes;
}

/// Returns true while notes are diverted; nothing else may be printed then either.
pub(crate) fn are_notes_diverted() -> bool {
    NOTE_SINK.lock().unwrap_or_else(PoisonError::into_inner).is_some()
}

/// Prints a message to the user that is not part of the answer.
pub(crate) fn print_note(text: &str) {
    if let Some(notes) = &*NOTE_SINK.lock().unwrap_or_else(PoisonError::into_inner) {
        return notes(safe_text(text));
    }
    let _ = writeln!(std::io::stderr().lock(), "{}", safe_text(text));
}

/// The receiver of notes about one project: the front ends that work in it, or by default
/// [`print_note`].
#[derive(Clone, Default)]
pub(crate) struct ProjectNotes(Option<Arc<dyn Fn(String) + Send + Sync>>);

impl ProjectNotes {
    /// Returns a receiver that calls `receive` with the text of each note.
    pub(crate) fn new(receive: impl Fn(String) + Send + Sync + 'static) -> ProjectNotes {
        ProjectNotes(Some(Arc::new(receive)))
    }

    /// Sends a message to the user that is not part of an answer.
    pub(crate) fn send(&self, text: &str) {
        match &self.0 {
            Some(receive) => receive(safe_text(text)),
            None => print_note(text),
        }
    }
}

/// Prints an error message.
pub(crate) fn print_error(text: &str) {
    let label = if std::io::stderr().is_terminal() { "\x1b[31merror:\x1b[0m" } else { "error:" };
    let _ = writeln!(std::io::stderr().lock(), "{label} {}", safe_text(text));
}

/// Returns true if the user can be asked: `stdin` and `stderr` are terminals.
pub(crate) fn is_interactive() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Tells if a user can be asked during a run with this output.
pub(crate) fn user_presence(output: RunOutputFormat) -> UserPresence {
    match is_interactive() && output == RunOutputFormat::Text {
        true => UserPresence::Present,
        false => UserPresence::Absent,
    }
}

/// Returns true if the terminal UI can run: `stdin` and `stdout` are terminals.
pub(crate) fn is_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Prints a run for the user: text as it arrives, a line for each call, and a waiting indicator
/// while nothing happens.
pub(crate) struct RunProgressPrinter {
    is_stderr_terminal: bool,
    /// The user sees the answer while it is written.
    pub(crate) is_stdout_terminal: bool,
    /// The last line of output has no line break yet.
    is_line_open: bool,
    /// The last line is a waiting indicator.
    is_waiting_shown: bool,
}

impl RunProgressPrinter {
    pub(crate) fn new() -> RunProgressPrinter {
        let (out, err) = (std::io::stdout(), std::io::stderr());
        RunProgressPrinter {
            is_stderr_terminal: err.is_terminal(),
            is_stdout_terminal: out.is_terminal(),
            is_line_open: false,
            is_waiting_shown: false,
        }
    }

    /// Writes a piece of the answer.
    pub(crate) fn write_answer(&mut self, piece: &str) {
        self.clear_waiting();
        let piece = safe_text(piece);
        print_raw(&piece);
        self.is_line_open = !piece.ends_with('\n') && (self.is_line_open || !piece.is_empty());
    }

    /// Ends the current line of the answer.
    pub(crate) fn end_line(&mut self) {
        self.clear_waiting();
        if std::mem::take(&mut self.is_line_open) {
            print_raw("\n");
        }
    }

    /// Writes a status line to `stderr`.
    pub(crate) fn write_status(&mut self, text: &str) {
        self.end_line();
        let text = safe_text(text);
        let (dim, end) = if self.is_stderr_terminal { ("\x1b[2m", "\x1b[0m") } else { ("", "") };
        let _ = writeln!(std::io::stderr().lock(), "{dim}{text}{end}");
    }

    /// Shows the waiting indicator with the elapsed time.
    pub(crate) fn show_waiting(&mut self, activity: &str, elapsed: Duration) {
        if self.is_stderr_terminal && !self.is_line_open {
            let text = waiting_text(activity, elapsed, terminal_width());
            let mut out = std::io::stderr().lock();
            let _ = write!(out, "\r\x1b[K\x1b[2m{text}\x1b[0m");
            let _ = out.flush();
            self.is_waiting_shown = true;
        }
    }

    fn clear_waiting(&mut self) {
        if std::mem::take(&mut self.is_waiting_shown) {
            let _ = write!(std::io::stderr().lock(), "\r\x1b[K");
        }
    }
}

/// Formats the waiting indicator: always one line that fits the terminal width.
fn waiting_text(activity: &str, elapsed: Duration, width: usize) -> String {
    let activity = show_controls(activity);
    let last_line =
        activity.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
    let time = format!(" {} s", elapsed.as_secs());
    // The last column stays free, because some terminals wrap after it.
    let max_columns = width.saturating_sub("… ".len() + time.len() + 1);
    let mut columns = 0;
    let fits = |character: &char| {
        columns += char_columns(*character);
        columns <= max_columns
    };
    let truncated: String = last_line.chars().take_while(fits).collect();
    format!("… {}{time}", truncated.trim_end())
}

/// Returns the columns and lines of the terminal, if there is one.
pub(crate) fn terminal_size() -> Option<(u16, u16)> {
    #[cfg(unix)]
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    #[cfg(unix)]
    let size = size.map(|size| (size.ws_col, size.ws_row)).ok();
    #[cfg(not(unix))]
    let size: Option<(u16, u16)> = None;
    size.filter(|(columns, lines)| *columns > 0 && *lines > 0)
}

/// Returns the width of the terminal in columns; 80 if it is unknown.
pub(crate) fn terminal_width() -> usize {
    const DEFAULT_COLUMNS: usize = 80;
    #[cfg(unix)]
    let columns = rustix::termios::tcgetwinsize(std::io::stderr()).map(|size| size.ws_col).ok();
    #[cfg(not(unix))]
    let columns: Option<u16> = None;
    columns.filter(|columns| *columns > 0).map_or(DEFAULT_COLUMNS, usize::from)
}

/// Prints a question and leaves the cursor after it. Discards earlier input, which was not meant as
/// an answer.
pub(crate) fn print_question(question: &str) {
    #[cfg(unix)]
    {
        use rustix::termios::{QueueSelector, tcflush};
        // Fails if standard input is not a terminal; then there is no typed input to discard.
        let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
    }
    let mut out = std::io::stderr().lock();
    let _ = write!(out, "{}", show_controls(question)).and_then(|()| out.flush());
}

/// Reads a line; `None` at the end of the input.
pub(crate) fn read_line() -> Option<String> {
    let mut answer = String::new();
    match std::io::stdin().read_line(&mut answer) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(answer.trim().to_owned()),
    }
}

/// Asks a yes/no question. Returns true only if a user is present and answers yes.
pub(crate) fn confirm(question: &str) -> bool {
    let answer = ask_line(question).unwrap_or_default().to_lowercase();
    matches!(answer.as_str(), "y" | "yes")
}

/// Asks a question and returns the line that the user typed; `None` without a terminal.
pub(crate) fn ask_line(question: &str) -> Option<String> {
    if !is_interactive() {
        return None;
    }
    print_question(question);
    read_line()
}

/// Suggests similar names in a sentence; empty if there are none.
pub(crate) fn did_you_mean(input: &str, names: &[&str]) -> String {
    match windlass_toolkit::likely_names(input, names).as_slice() {
        [] => String::new(),
        similar => format!("Did you mean {}? ", similar.join(", ")),
    }
}

/// Formats a [`Cost`] in dollars, to a hundredth of a cent.
pub(crate) fn format_dollars(cost: Cost) -> String {
    let rounded = cost.0.saturating_add(50) / 100;
    format!("${}.{:04}", rounded / 10_000, rounded % 10_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_rounded_to_a_hundredth_of_a_cent() {
        let dollars = |millionths| format_dollars(Cost(millionths));
        assert_eq!(
            [dollars(49), dollars(50), dollars(1_234_567)],
            ["$0.0000", "$0.0001", "$1.2346"]
        );
        assert!(dollars(u64::MAX).starts_with("$18446744073709.5516"));
    }

    #[test]
    fn the_waiting_indicator_is_one_line_that_fits() {
        let time = Duration::from_secs(7);
        assert_eq!(waiting_text("a\nb 50 %\n\n  \n", time, 80), "… b 50 % 7 s");
        assert_eq!(waiting_text("", time, 80), "…  7 s");
        for activity in
            ["x".repeat(500), "名".repeat(500), "\t".repeat(90) + "x", "é\u{1b}[2J\rx".into()]
        {
            for width in [0, 5, 20, 80] {
                let text = waiting_text(&activity, time, width);
                assert!(!text.contains(['\n', '\r', '\u{1b}']), "{text:?}");
                let columns: usize = text.chars().map(char_columns).sum();
                assert!(columns < width.max(9), "{width}: {text}");
            }
        }
        assert!(waiting_text(&"x".repeat(500), time, 80).len() > 70);
    }
}
