//! Files of our own in the person's data folder: private from the first byte, replaced as a whole,
//! never through a link, changed by one process at a time.
#![allow(clippy::disallowed_methods, reason = "project is the door to config files")]

use crate::Error;
use secrecy::zeroize::Zeroizing;
use std::io::{ErrorKind, Read, Write};
use std::path::Path;

/// What stands in a file, which may be a secret; `None` if there is none. A file that somebody else
/// could have written or could read is refused.
pub(crate) fn read(path: &Path, longest: u64) -> Result<Option<Zeroizing<String>>, Error> {
    let failed = |source| Error::File { path: path.to_owned(), source };
    let damaged = |reason: &str| Error::Damaged { path: path.to_owned(), reason: reason.into() };
    let file = match plain(std::fs::OpenOptions::new().read(true)).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(_) if path.is_symlink() => return Err(exposed(path, "it is a link", "remove")),
        Err(error) => return Err(failed(error)),
    };
    check(path, &file.metadata().map_err(failed)?)?;
    let mut bytes = Zeroizing::new(Vec::new());
    if file.take(longest + 1).read_to_end(&mut bytes).map_err(failed)? as u64 > longest {
        return Err(damaged("it is longer than it can be"));
    }
    let text = std::str::from_utf8(&bytes).map_err(|_| damaged("it is not text"))?;
    Ok(Some(Zeroizing::new(text.to_owned())))
}

/// Says where a file cannot be understood. What it holds may be a secret, and what its parts are
/// called inside is nobody's business, so neither is told.
pub(crate) fn damaged(path: &Path, error: &serde_json::Error) -> Error {
    let reason = format!("line {}, column {}", error.line(), error.column());
    Error::Damaged { path: path.to_owned(), reason }
}

#[cfg(unix)]
fn check(path: &Path, data: &std::fs::Metadata) -> Result<(), Error> {
    use std::os::unix::fs::MetadataExt;
    if !data.is_file() {
        return Err(exposed(path, "it is not a plain file", "remove"));
    }
    if data.uid() != rustix::process::geteuid().as_raw() {
        return Err(exposed(path, "it belongs to somebody else", "remove"));
    }
    if data.mode() & 0o077 != 0 {
        return Err(exposed(path, "others on this machine can get at it", "`chmod 600`"));
    }
    Ok(())
}

#[cfg(not(unix))]
fn check(path: &Path, data: &std::fs::Metadata) -> Result<(), Error> {
    if data.is_file() { Ok(()) } else { Err(exposed(path, "it is not a plain file", "remove")) }
}

fn exposed(path: &Path, reason: &'static str, remedy: &'static str) -> Error {
    Error::Exposed { path: path.to_owned(), reason, remedy }
}

/// Holds whoever else would change the files of this name in a folder, until it is dropped.
pub(crate) fn lock(folder: &Path, name: &str) -> Result<std::fs::File, Error> {
    let path = folder.join(format!("{name}.lock"));
    let take = || {
        make_folder(folder)?;
        let mut options = std::fs::OpenOptions::new();
        let lock = plain(options.read(true).write(true).create(true)).open(&path)?;
        lock.lock()?;
        Ok(lock)
    };
    take().map_err(|source| Error::File { path: path.clone(), source })
}

/// Puts a text where a file is, whole or not at all. The lock is held, so a draft that is already
/// there was left behind.
pub(crate) fn replace(path: &Path, text: &[u8]) -> std::io::Result<()> {
    let draft = path.with_extension("draft");
    let written = write(&draft, path, text);
    if written.is_err() {
        let _ = std::fs::remove_file(&draft);
    }
    written
}

fn write(draft: &Path, path: &Path, text: &[u8]) -> std::io::Result<()> {
    match std::fs::remove_file(draft) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = plain(std::fs::OpenOptions::new().write(true).create_new(true)).open(draft)?;
    file.write_all(text)?;
    file.sync_all()?;
    std::fs::rename(draft, path)?;
    #[cfg(unix)]
    if let Some(folder) = path.parent() {
        std::fs::File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// Opens no link, waits for no pipe, and makes what it makes private.
pub(crate) fn plain(options: &mut std::fs::OpenOptions) -> &mut std::fs::OpenOptions {
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        options.mode(0o600).custom_flags(flags.bits().cast_signed());
    }
    options
}

/// Makes a folder, and those above it, that only its owner gets into.
pub(crate) fn make_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
