//! Log files of what servers write besides their responses, for troubleshooting: one per server, in
//! the data folder. They are private, and a server has at most two files of about a megabyte.
#![allow(
    clippy::disallowed_methods,
    reason = "the project crate is the only one that accesses config files"
)]

use crate::{Dirs, ProjectError, private_files};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The size at which a log file is rotated.
const MAX_LOG_BYTES: u64 = 1 << 20;
/// Longer lines are cut.
const MAX_LINE_BYTES: usize = 4 << 10;

/// The log files of servers of one kind.
#[derive(Clone, Debug)]
pub struct ServerLogs {
    folder: PathBuf,
    /// The protocol of the servers: `mcp` or `lsp`.
    kind: &'static str,
}

impl ServerLogs {
    /// Returns the logs of servers of a kind, `mcp` or `lsp`. It reads and creates nothing yet.
    pub fn new(dirs: &Dirs, kind: &'static str) -> ServerLogs {
        ServerLogs { folder: dirs.data.join("logs"), kind }
    }

    /// Appends lines to a server's `.log` file, without control characters.
    pub fn append(&self, server: &str, text: &str) -> Result<(), ProjectError> {
        let path = self.path(server, "log");
        let to_error = |source| ProjectError::File { path: path.clone(), source };
        let _lock = private_files::lock_file(&self.folder, &format!("{}-{server}", self.kind))?;
        let mut options = std::fs::OpenOptions::new();
        let mut file = private_files::private_options(options.append(true).create(true))
            .open(&path)
            .map_err(to_error)?;
        let mut lines = String::new();
        for line in text.lines() {
            let end = line.floor_char_boundary(MAX_LINE_BYTES);
            let line = line.get(..end).unwrap_or_default();
            lines.extend(line.chars().filter(|c| !c.is_control() || *c == '\t'));
            lines.push('\n');
        }
        file.write_all(lines.as_bytes()).map_err(to_error)?;
        if file.metadata().map_err(to_error)?.len() > MAX_LOG_BYTES {
            std::fs::rename(&path, self.path(server, "old")).map_err(to_error)?;
        }
        Ok(())
    }

    /// Returns the last lines of a server's log, oldest first; `None` if it has no log.
    pub fn tail(&self, server: &str, lines: usize) -> Result<Option<Vec<String>>, ProjectError> {
        let old = read_tail(&self.path(server, "old"))?;
        let new = read_tail(&self.path(server, "log"))?;
        if old.is_none() && new.is_none() {
            return Ok(None);
        }
        let text = old.unwrap_or_default() + &new.unwrap_or_default();
        let mut last: Vec<String> = text.lines().rev().take(lines).map(str::to_owned).collect();
        last.reverse();
        Ok(Some(last))
    }

    fn path(&self, server: &str, extension: &str) -> PathBuf {
        self.folder.join(format!("{}-{server}.{extension}", self.kind))
    }
}

fn read_tail(path: &Path) -> Result<Option<String>, ProjectError> {
    let to_error = |source| ProjectError::File { path: path.to_owned(), source };
    let mut file =
        match private_files::private_options(std::fs::OpenOptions::new().read(true)).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(to_error(error)),
        };
    let max_bytes = 2 * MAX_LOG_BYTES;
    let length = file.metadata().map_err(to_error)?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(max_bytes))).map_err(to_error)?;
    let mut bytes = Vec::new();
    file.take(max_bytes).read_to_end(&mut bytes).map_err(to_error)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::ServerLogs;

    #[test]
    fn the_last_lines_are_kept_and_the_total_size_is_limited() {
        let folder = tempfile::tempdir().unwrap();
        let logs = ServerLogs { folder: folder.path().join("logs"), kind: "mcp" };
        assert_eq!(logs.tail("git", 5).unwrap(), None);
        let line = "x".repeat(100);
        for number in 0..60 {
            let text = format!("{line}\n").repeat(1000) + &format!("line {number}\u{1b}[31m");
            logs.append("git", &text).unwrap();
        }
        assert_eq!(logs.tail("git", 1).unwrap().unwrap(), ["line 59[31m"]);
        assert!(logs.tail("git", 9_000).unwrap().unwrap().len() > 5_000);
        let files = std::fs::read_dir(folder.path().join("logs")).unwrap();
        let size: u64 = files.map(|file| file.unwrap().metadata().unwrap().len()).sum();
        assert!(size < 3 << 20, "{size}");
        logs.append("git", &"y".repeat(1 << 20)).unwrap();
        assert!(logs.tail("git", 1).unwrap().unwrap()[0].len() <= 4096);
        assert_eq!(logs.tail("other", 5).unwrap(), None);
    }
}
