//! What is to be run in a terminal, and what that terminal is like.

use super::Terminal;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// What the terminal is drawn on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ground {
    /// A dark one.
    #[default]
    Dark,
    /// A light one.
    Light,
    /// The terminal does not say.
    Untold,
}

impl Ground {
    /// What usual terminals answer.
    fn answer(self) -> Vec<(Duration, String)> {
        let colour = match self {
            Ground::Dark => "1010/1212/1616",
            Ground::Light => "fafa/fafa/f8f8",
            Ground::Untold => return Vec::new(),
        };
        vec![(Duration::ZERO, format!("\x1b]11;rgb:{colour}\x1b\\"))]
    }
}

/// What is to be run, and where.
#[derive(Clone, Debug)]
pub struct Seat {
    /// The program.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Where it runs.
    pub folder: PathBuf,
    /// All of its environment, besides `TERM`, which can be replaced here.
    pub environment: Vec<(OsString, OsString)>,
    /// Columns and rows.
    pub size: (u16, u16),
    /// What the terminal answers when it is asked for its ground: pieces, each after a pause.
    pub answer: Vec<(Duration, String)>,
}

impl Seat {
    /// A program in a folder, in 80 columns and 24 rows.
    pub fn new(program: impl Into<OsString>, folder: impl Into<PathBuf>) -> Seat {
        Seat {
            program: program.into(),
            arguments: Vec::new(),
            folder: folder.into(),
            environment: Vec::new(),
            size: (80, 24),
            answer: Ground::default().answer(),
        }
    }

    /// With these arguments.
    pub fn with(mut self, arguments: &[&str]) -> Seat {
        self.arguments.extend(arguments.iter().map(OsString::from));
        self
    }

    /// With a variable.
    pub fn set(mut self, name: &str, value: impl Into<OsString>) -> Seat {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// With so many columns and rows.
    pub fn sized(mut self, columns: u16, rows: u16) -> Seat {
        self.size = (columns, rows);
        self
    }

    /// On another ground.
    pub fn on(mut self, ground: Ground) -> Seat {
        self.answer = ground.answer();
        self
    }

    /// Where another answer is given to what the ground is: pieces, each after so many milliseconds.
    pub fn answering(mut self, pieces: &[(u64, &str)]) -> Seat {
        let piece = |(pause, text): &(u64, &str)| (Duration::from_millis(*pause), (*text).into());
        self.answer = pieces.iter().map(piece).collect();
        self
    }

    /// Runs it.
    pub fn start(&self) -> Terminal {
        Terminal::start(self)
    }
}
