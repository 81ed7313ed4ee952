//! What servers said besides their answers: for each a file in the data folder, for whoever looks for a
//! fault. It is private, and two files of a megabyte at most.
#![allow(clippy::disallowed_methods, reason = "project is the door to config files")]

use crate::{Error, Places, private};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// How long a file gets before the next one is begun.
const LONGEST: u64 = 1 << 20;
/// How long a line may be.
const LONGEST_LINE: usize = 4 << 10;

/// The journals of servers.
#[derive(Clone, Debug)]
pub struct Journal {
    folder: PathBuf,
    /// What the servers speak: `mcp` or `lsp`.
    kind: &'static str,
}

impl Journal {
    /// Those of servers of a kind, `mcp` or `lsp`, with whoever these folders belong to. Nothing is
    /// read or made yet.
    pub fn of(places: &Places, kind: &'static str) -> Journal {
        Journal { folder: places.data.join("logs"), kind }
    }

    /// Adds lines to a server's journal. Control characters are left out.
    pub fn write(&self, server: &str, text: &str) -> Result<(), Error> {
        let path = self.path(server, "log");
        let failed = |source| Error::File { path: path.clone(), source };
        let _lock = private::lock(&self.folder, &format!("{}-{server}", self.kind))?;
        let mut options = std::fs::OpenOptions::new();
        let mut file =
            private::plain(options.append(true).create(true)).open(&path).map_err(failed)?;
        let mut lines = String::new();
        for line in text.lines() {
            let end = line.floor_char_boundary(LONGEST_LINE);
            let line = line.get(..end).unwrap_or_default();
            lines.extend(line.chars().filter(|letter| !letter.is_control() || *letter == '\t'));
            lines.push('\n');
        }
        file.write_all(lines.as_bytes()).map_err(failed)?;
        if file.metadata().map_err(failed)?.len() > LONGEST {
            std::fs::rename(&path, self.path(server, "old")).map_err(failed)?;
        }
        Ok(())
    }

    /// The last lines of a server's journal, the oldest first; none if there is none.
    pub fn tail(&self, server: &str, lines: usize) -> Result<Option<Vec<String>>, Error> {
        let old = read(&self.path(server, "old"))?;
        let new = read(&self.path(server, "log"))?;
        if old.is_none() && new.is_none() {
            return Ok(None);
        }
        let text = old.unwrap_or_default() + &new.unwrap_or_default();
        let mut last: Vec<String> = text.lines().rev().take(lines).map(str::to_owned).collect();
        last.reverse();
        Ok(Some(last))
    }

    fn path(&self, server: &str, ending: &str) -> PathBuf {
        self.folder.join(format!("{}-{server}.{ending}", self.kind))
    }
}

/// The end of a file.
fn read(path: &Path) -> Result<Option<String>, Error> {
    let failed = |source| Error::File { path: path.to_owned(), source };
    let mut file = match private::plain(std::fs::OpenOptions::new().read(true)).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let most = 2 * LONGEST;
    let length = file.metadata().map_err(failed)?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(most))).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes).map_err(failed)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::Journal;

    #[test]
    fn the_last_lines_are_kept_and_no_more_than_two_files() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal { folder: folder.path().join("logs"), kind: "mcp" };
        assert_eq!(journal.tail("git", 5).unwrap(), None);
        let line = "x".repeat(100);
        for number in 0..60 {
            let text = format!("{line}\n").repeat(1000) + &format!("line {number}\u{1b}[31m");
            journal.write("git", &text).unwrap();
        }
        assert_eq!(journal.tail("git", 1).unwrap().unwrap(), ["line 59[31m"]);
        assert!(journal.tail("git", 9_000).unwrap().unwrap().len() > 5_000);
        let files = std::fs::read_dir(folder.path().join("logs")).unwrap();
        let size: u64 = files.map(|file| file.unwrap().metadata().unwrap().len()).sum();
        assert!(size < 3 << 20, "{size}");
        journal.write("git", &"y".repeat(1 << 20)).unwrap();
        assert!(journal.tail("git", 1).unwrap().unwrap()[0].len() <= 4096);
        assert_eq!(journal.tail("other", 5).unwrap(), None);
    }
}
