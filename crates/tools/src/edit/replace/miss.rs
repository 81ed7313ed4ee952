//! Why an edit was not applied, in words for the one who wrote it.

use super::budget::LISTED;
use super::{Count, Strategy};
use std::fmt;

/// Why nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Miss {
    /// The old and the new text are the same.
    Same,
    /// The old text is empty.
    Empty,
    /// The old text is nothing but white space that does not stand in the file.
    Blank,
    /// The file has what the edit would make of it.
    Already {
        /// The line, from 1.
        first: usize,
    },
    /// The old text is not there.
    Missing {
        /// What is most like it.
        nearest: Option<Region>,
    },
    /// The old text fits several places.
    Ambiguous {
        /// How they were found.
        strategy: Strategy,
        /// The lines where they begin, from 1; the first of them if there are many.
        lines: Vec<usize>,
        /// How many were to change.
        count: Count,
    },
    /// The place is known, but not what the edit would make of it.
    Uncertain {
        /// How it was found.
        strategy: Strategy,
        /// What is not certain.
        doubt: Doubt,
        /// The place.
        region: Region,
    },
    /// The place is far larger than the old text.
    TooLarge {
        /// How it was found.
        strategy: Strategy,
        /// Its first line, from 1.
        first: usize,
        /// Its last line.
        last: usize,
        /// How many lines it has.
        matched: usize,
    },
}

/// What is not certain about a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// A line that the edit changes reads otherwise.
    Differs {
        /// The line, from 1.
        line: usize,
    },
    /// A line that comes in would stand beside lines that the old text does not have.
    Gap,
    /// More differs than a stale view of the lines explains.
    Drifted,
    /// How deep a new line has to be indented is not known.
    Indentation {
        /// The line, from 1.
        line: usize,
    },
    /// Old and new text are not escaped in the same way.
    Escapes,
    /// The edit changes white space that the file does not have.
    Spacing,
}

/// Lines of the file that are most like the old text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// The first line, from 1.
    pub first: usize,
    /// The last line.
    pub last: usize,
    /// What differs: `-` is the old text, `+` the file.
    pub diff: String,
}

impl Miss {
    /// An ambiguity at lines from 0, of which the first are listed.
    pub(super) fn ambiguous(strategy: Strategy, mut lines: Vec<usize>, count: Count) -> Miss {
        lines.sort_unstable();
        let lines = lines.into_iter().map(|line| line + 1).take(LISTED + 1).collect();
        Miss::Ambiguous { strategy, lines, count }
    }
}

impl std::error::Error for Miss {}

impl fmt::Display for Miss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Miss::Same => f.write_str(
                "oldString and newString are the same, so nothing would change. Give the text as \
                 it should be in newString.",
            ),
            Miss::Empty => f.write_str(
                "oldString is empty, so there is no place to edit. Give the text that should be \
                 replaced, with the lines around it.",
            ),
            Miss::Blank => f.write_str(
                "oldString is nothing but white space, which does not stand in the file like this. \
                 Give the text around it too, as it is in the file.",
            ),
            Miss::Already { first } => write!(
                f,
                "the file already reads as the edit would make it (line {first}), so nothing \
                 changed. Go on, or read the file to be sure."
            ),
            Miss::Missing { nearest: None } => f.write_str(
                "oldString is not in the file, and nothing in it is similar. Read the file and \
                 copy the text from it.",
            ),
            Miss::Missing { nearest: Some(region) } => write!(
                f,
                "oldString is not in the file. {region}\nCopy the text from the file into \
                 oldString, or read the file again."
            ),
            Miss::Ambiguous { strategy, lines, count } => {
                let more = if lines.len() > LISTED { " and more" } else { "" };
                let shown: Vec<String> =
                    lines.iter().take(LISTED).map(ToString::to_string).collect();
                let shown = shown.join(", ");
                let advice = match (count, strategy) {
                    (Count::All, _) => {
                        ", which cannot all be changed for certain, because it does not stand there \
                         exactly. Copy the text from the file into oldString."
                    }
                    // Of blocks that are merely similar no more than one is ever changed.
                    (Count::One, Strategy::BlockAnchor) => {
                        ", and stands at none of them exactly. Copy the text that you mean from the \
                         file into oldString."
                    }
                    (Count::One, _) => {
                        ". Add lines around it so that it fits one, or set replaceAll to change \
                         every occurrence."
                    }
                };
                write!(f, "oldString fits several places, at the lines {shown}{more}{advice}")
            }
            Miss::Uncertain { doubt, region, .. } => write!(
                f,
                "oldString is not in the file as it is written, and {doubt}, so nothing changed. \
                 {region}\nCopy the text from the file into oldString and try again."
            ),
            Miss::TooLarge { first, last, matched, .. } => write!(
                f,
                "what is similar to oldString is far larger: {matched} lines, from {first} to \
                 {last}. Give all the lines that should be replaced, as they are in the file."
            ),
        }
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Doubt::Differs { line } => {
                write!(f, "a line that the edit changes reads otherwise there (line {line})")
            }
            Doubt::Gap => f.write_str("the place for the new lines is not certain"),
            Doubt::Drifted => f.write_str("too much differs to be sure that this is the place"),
            Doubt::Indentation { line } => {
                write!(f, "the indentation of the new lines is not certain (line {line})")
            }
            Doubt::Escapes => {
                f.write_str("it is not certain which backslashes of newString are meant")
            }
            Doubt::Spacing => f.write_str("it differs in white space that the edit changes"),
        }
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Region { first, last, diff } = self;
        let place = if first == last {
            format!("line {first}")
        } else {
            format!("lines {first} to {last}")
        };
        write!(f, "The nearest text is {place} (- oldString, + file):\n{diff}")
    }
}
