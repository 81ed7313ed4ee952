//! Arguments of `windlass session`.

use clap::Subcommand;
use std::time::Duration;
use windlass_engine::ForkPoint;

/// Help text that explains the exit codes of `windlass session undo` and `redo`.
const UNDO_EXIT_CODES_HELP: &str = "Exit codes:
    0  success
    1  failed
    2  invalid argument or session
    3  not confirmed";

#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// List the sessions of this folder, newest first
    List {
        /// Include all folders, and sessions started by a model
        #[arg(long)]
        all: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Find sessions of this folder by the text in them
    Search {
        /// Words to find; all must appear in the same text, case-insensitive
        #[arg(required = true)]
        words: Vec<String>,
        /// Search the sessions of all folders
        #[arg(long)]
        all: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the transcript of a session
    Show {
        /// Session ID, or at least 4 of its first or last characters [default: the last session of
        /// this folder]
        id: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Start a new session from a copy of another one, up to the end of a turn
    Fork {
        /// Session ID, or at least 4 of its first or last characters [default: the last session of
        /// this folder]
        id: Option<String>,
        /// Copy up to this turn (1 is the first). `seq:N` copies up to the last turn that ended at
        /// or before log position N [default: the last turn that has ended]
        #[arg(long, value_name = "TURN|seq:N", value_parser = parse_fork_point)]
        at: Option<ForkPoint>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Rename a session
    Rename {
        /// Session ID, or at least 4 of its first or last characters
        id: String,
        /// The new title
        title: String,
    },
    /// Export a session: as a web page, as Markdown, or its log and stored outputs as JSON lines
    Export {
        /// Session ID, or at least 4 of its first or last characters [default: the last session of
        /// this folder]
        id: Option<String>,
        /// Write to this file, which must not exist. Its name decides the format: .html, .md, .json
        /// or .jsonl [default: JSON lines to standard output]
        #[arg(long, short, value_name = "FILE")]
        file: Option<String>,
    },
    /// Import a session written by `export`, into this folder
    Import {
        /// The file to import; `-` for standard input
        file: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Export a session as an HTML page (one file, no scripts)
    Share {
        /// Session ID, or at least 4 of its first or last characters [default: the last session of
        /// this folder]
        id: Option<String>,
        /// Write to this file, which must not exist [default: standard output]
        #[arg(long, short, value_name = "FILE")]
        file: Option<String>,
    },
    /// Show the file changes of a session that are still in place
    Diff {
        /// Session ID, or at least 4 of its first or last characters [default: the last session of
        /// this folder]
        id: Option<String>,
    },
    /// Undo the file changes of a session's last turn, keeping changes made by others
    #[command(after_help = UNDO_EXIT_CODES_HELP)]
    Undo {
        /// Session ID, or at least 4 of its first or last characters [default: the last session of
        /// this folder]
        id: Option<String>,
        /// Undo all changes of the session, not only those of its last turn
        #[arg(long)]
        all: bool,
        /// Do not ask for confirmation
        #[arg(long, short)]
        yes: bool,
    },
    /// Redo the last undo
    #[command(after_help = UNDO_EXIT_CODES_HELP)]
    Redo {
        /// Session ID, or at least 4 of its first or last characters [default: the last session of
        /// this folder]
        id: Option<String>,
        /// Do not ask for confirmation
        #[arg(long, short)]
        yes: bool,
    },
    /// Delete a session, its subagent sessions, and outputs that no other session uses
    Delete {
        /// Session ID, or at least 4 of its first or last characters
        id: String,
    },
    /// Delete old sessions of all folders and return their space to the disk
    #[command(group = clap::ArgGroup::new("which").required(true).multiple(true))]
    Prune {
        /// Delete sessions not changed for this time, such as `30d`, `12h` or `2w`
        #[arg(long, value_name = "TIME", value_parser = parse_age, group = "which")]
        older_than: Option<Duration>,
        /// Delete the oldest sessions until the log has at most this size, such as `500MB` or `2GB`
        #[arg(long, value_name = "SIZE", value_parser = parse_size, group = "which")]
        max_size: Option<u64>,
        /// List the sessions that would be deleted (only with `--older-than`)
        #[arg(long, conflicts_with = "max_size")]
        dry_run: bool,
    },
    /// Verify the checksums of a session, or of all sessions and the database
    Verify {
        /// Session ID, or at least 4 of its first or last characters [default: all sessions]
        id: Option<String>,
    },
    /// Copy all sessions to a new folder, also while other processes use them
    Backup {
        /// Folder to create. To restore, replace the data folder (see `windlass doctor`) with it
        folder: std::path::PathBuf,
    },
}

fn parse_fork_point(text: &str) -> Result<ForkPoint, String> {
    let invalid = || "use a turn number, or `seq:` and a position".to_owned();
    match text.strip_prefix("seq:") {
        Some(seq) => seq.parse().map(ForkPoint::Position).map_err(|_| invalid()),
        None => text.parse().map(ForkPoint::Turn).map_err(|_| invalid()),
    }
}

/// Parses a number of minutes, hours, days or weeks, such as `30d`.
fn parse_age(text: &str) -> Result<Duration, String> {
    let unit_secs = |unit: &str| match unit {
        "m" => Some(60),
        "h" => Some(3_600),
        "d" => Some(86_400),
        "w" => Some(7 * 86_400),
        _ => None,
    };
    let parsed = parse_number_with_unit(text, unit_secs);
    parsed.map(Duration::from_secs).ok_or_else(|| "use a number and m, h, d or w: `30d`".into())
}

/// Parses a size, such as `500MB`.
fn parse_size(text: &str) -> Result<u64, String> {
    let unit_bytes = |unit: &str| match unit.to_ascii_lowercase().as_str() {
        "mb" => Some(1_000_000),
        "gb" => Some(1_000_000_000),
        _ => None,
    };
    parse_number_with_unit(text, unit_bytes)
        .ok_or_else(|| "use a number and MB or GB: `500MB`".into())
}

fn parse_number_with_unit(text: &str, unit: impl Fn(&str) -> Option<u64>) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, name) = text.split_at_checked(digits)?;
    number.parse::<u64>().ok()?.checked_mul(unit(name)?)
}
