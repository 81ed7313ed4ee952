//! The log file, which never grows beyond a limit.
#![allow(clippy::disallowed_methods, reason = "logging starts before anything else")]

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A log file of this length is renamed to `windlass.log.1`, in the place of the one before.
const MAX_LOG_BYTES: u64 = 8 << 20;

/// Writes `windlass.log`, and begins a new file when it is too long. Several processes may write
/// the same file; each counts what it writes itself.
pub(crate) struct LogFile {
    folder: PathBuf,
    file: File,
    length: u64,
}

impl LogFile {
    /// Opens the log file in a folder, with access for the owner only.
    pub(crate) fn open(folder: &Path) -> io::Result<LogFile> {
        // It may create the data folder, which has the sessions, too.
        windlass_project::create_private_folder(folder)?;
        let (file, length) = open_file(folder)?;
        Ok(LogFile { folder: folder.to_owned(), file, length })
    }
}

fn path(folder: &Path) -> PathBuf {
    folder.join("windlass.log")
}

fn open_file(folder: &Path) -> io::Result<(File, u64)> {
    let mut options = File::options();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path(folder))?;
    let length = file.metadata()?.len();
    Ok((file, length))
}

impl Write for LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.length >= MAX_LOG_BYTES {
            // Another process may have begun a new file.
            if std::fs::metadata(path(&self.folder))?.len() >= MAX_LOG_BYTES {
                std::fs::rename(path(&self.folder), self.folder.join("windlass.log.1"))?;
            }
            (self.file, self.length) = open_file(&self.folder)?;
        }
        let count = self.file.write(bytes)?;
        self.length += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_of_a_process_that_writes_much_stays_short() {
        let folder = tempfile::tempdir().unwrap();
        let length = |name: &str| std::fs::metadata(folder.path().join(name)).unwrap().len();
        let mut log = LogFile::open(folder.path()).unwrap();
        let line = [b'x'; 64 << 10];
        for _ in 0..400 {
            log.write_all(&line).unwrap();
        }
        assert_eq!((length("windlass.log"), length("windlass.log.1")), (1 << 20, 8 << 20));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
        drop(log);
        // Another process goes on with the file.
        LogFile::open(folder.path()).unwrap().write_all(&line).unwrap();
        assert_eq!(length("windlass.log"), (1 << 20) + (64 << 10));
    }
}
