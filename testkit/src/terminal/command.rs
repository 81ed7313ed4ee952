//! A program to run in a terminal, and the settings of that terminal.

use super::Terminal;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// The background of a terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EmulatedBackground {
    /// A dark background.
    #[default]
    Dark,
    /// A light background.
    Light,
    /// The terminal does not answer queries for its background.
    Unknown,
}

impl EmulatedBackground {
    /// Returns the answer of usual terminals to a background query.
    fn background_reply(self) -> Vec<(Duration, String)> {
        let color = match self {
            EmulatedBackground::Dark => "1010/1212/1616",
            EmulatedBackground::Light => "fafa/fafa/f8f8",
            EmulatedBackground::Unknown => return Vec::new(),
        };
        vec![(Duration::ZERO, format!("\x1b]11;rgb:{color}\x1b\\"))]
    }
}

/// A program to run in a terminal.
#[derive(Clone, Debug)]
pub struct TerminalCommand {
    /// The program.
    pub program: OsString,
    /// The arguments.
    pub arguments: Vec<OsString>,
    /// The working directory.
    pub folder: PathBuf,
    /// The whole environment. `TERM` has a default.
    pub environment: Vec<(OsString, OsString)>,
    /// Columns and rows.
    pub size: (u16, u16),
    /// The answer to a background query: chunks, each after a pause.
    pub background_reply: Vec<(Duration, String)>,
    /// True if the terminal says that it knows the clipboard protocol of kitty.
    pub knows_clipboard: bool,
}

impl TerminalCommand {
    /// Creates a command for a program in a folder, with 80 columns and 24 rows.
    pub fn new(program: impl Into<OsString>, folder: impl Into<PathBuf>) -> TerminalCommand {
        TerminalCommand {
            program: program.into(),
            arguments: Vec::new(),
            folder: folder.into(),
            environment: Vec::new(),
            size: (80, 24),
            background_reply: EmulatedBackground::default().background_reply(),
            knows_clipboard: false,
        }
    }

    /// Adds arguments.
    pub fn with(mut self, arguments: &[&str]) -> TerminalCommand {
        self.arguments.extend(arguments.iter().map(OsString::from));
        self
    }

    /// Sets an environment variable.
    pub fn set(mut self, name: &str, value: impl Into<OsString>) -> TerminalCommand {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Makes the terminal say that it knows the clipboard protocol of kitty (OSC 5522).
    pub fn knowing_clipboard(mut self) -> TerminalCommand {
        self.knows_clipboard = true;
        self
    }

    /// Sets the size.
    pub fn sized(mut self, columns: u16, rows: u16) -> TerminalCommand {
        self.size = (columns, rows);
        self
    }

    /// Sets the background.
    pub fn on(mut self, background: EmulatedBackground) -> TerminalCommand {
        self.background_reply = background.background_reply();
        self
    }

    /// Sets the answer to a background query: chunks, each after this many milliseconds.
    pub fn answering(mut self, chunks: &[(u64, &str)]) -> TerminalCommand {
        let chunk = |(pause, text): &(u64, &str)| (Duration::from_millis(*pause), (*text).into());
        self.background_reply = chunks.iter().map(chunk).collect();
        self
    }

    /// Starts the program.
    pub fn start(&self) -> Terminal {
        Terminal::start(self)
    }
}
