//! The names of instruction files.

/// The file names per folder; the first that exists is read.
pub(crate) const INSTRUCTION_FILE_NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];
