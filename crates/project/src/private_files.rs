//! Private files in the user's data folder: created private, replaced atomically, never opened
//! through a link, changed by one process at a time.
#![allow(
    clippy::disallowed_methods,
    reason = "the project crate is the only one that accesses config files"
)]

use crate::ProjectError;
use secrecy::zeroize::Zeroizing;
use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Reads a file that may contain a secret; `None` if it does not exist. Refuses a file that another
/// user could have written or could read.
pub(crate) fn read_private(
    path: &Path,
    max_bytes: u64,
) -> Result<Option<Zeroizing<String>>, ProjectError> {
    let to_error = |source| ProjectError::File { path: path.to_owned(), source };
    let corrupt =
        |reason: &str| ProjectError::Corrupt { path: path.to_owned(), reason: reason.into() };
    let file = match private_options(std::fs::OpenOptions::new().read(true)).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(_) if path.is_symlink() => {
            return Err(not_private_error(path, "it is a symbolic link", "remove"));
        }
        Err(error) => return Err(to_error(error)),
    };
    check_private(path, &file.metadata().map_err(to_error)?)?;
    let mut bytes = Zeroizing::new(Vec::new());
    if file.take(max_bytes + 1).read_to_end(&mut bytes).map_err(to_error)? as u64 > max_bytes {
        return Err(corrupt("it is too large"));
    }
    let text = std::str::from_utf8(&bytes).map_err(|_| corrupt("it is not UTF-8 text"))?;
    Ok(Some(Zeroizing::new(text.to_owned())))
}

/// Reports the position of a parse error. The message names neither the content, which may be a
/// secret, nor our internal field names.
pub(crate) fn corrupt_error(path: &Path, error: &serde_json::Error) -> ProjectError {
    let reason = format!("line {}, column {}", error.line(), error.column());
    ProjectError::Corrupt { path: path.to_owned(), reason }
}

#[cfg(unix)]
fn check_private(path: &Path, metadata: &std::fs::Metadata) -> Result<(), ProjectError> {
    use std::os::unix::fs::MetadataExt;
    if !metadata.is_file() {
        return Err(not_private_error(path, "it is not a regular file", "remove"));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(not_private_error(path, "it is owned by another user", "remove"));
    }
    if metadata.mode() & 0o077 != 0 {
        return Err(not_private_error(path, "other users can access it", "`chmod 600`"));
    }
    Ok(())
}

#[cfg(not(unix))]
fn check_private(path: &Path, metadata: &std::fs::Metadata) -> Result<(), ProjectError> {
    if metadata.is_file() {
        Ok(())
    } else {
        Err(not_private_error(path, "it is not a regular file", "remove"))
    }
}

fn not_private_error(path: &Path, reason: &'static str, remedy: &'static str) -> ProjectError {
    ProjectError::NotPrivate { path: path.to_owned(), reason, remedy }
}

/// Locks the files of this name in a folder against other processes until the returned `File` is
/// dropped.
pub(crate) fn lock_file(folder: &Path, name: &str) -> Result<std::fs::File, ProjectError> {
    let path = folder.join(format!("{name}.lock"));
    let acquire = || {
        create_private_folder(folder)?;
        let mut options = std::fs::OpenOptions::new();
        let lock = private_options(options.read(true).write(true).create(true)).open(&path)?;
        lock.lock()?;
        Ok(lock)
    };
    acquire().map_err(|source| ProjectError::File { path: path.clone(), source })
}

/// Replaces a file atomically. It assumes that the caller holds the lock (`lock_file`), so it
/// treats an existing draft as a leftover.
pub(crate) fn replace_atomically(path: &Path, text: &[u8]) -> std::io::Result<()> {
    write_with_draft(&path.with_extension("draft"), path, text)
}

/// Replaces a file in the cache, which several threads and processes may write at once: each has a
/// draft of its own, which stays behind if the process ends.
pub(crate) fn replace_in_cache(path: &Path, text: &[u8]) -> std::io::Result<()> {
    static DRAFTS: AtomicU64 = AtomicU64::new(0);
    let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
    let extension = format!("{}-{number}.draft", std::process::id());
    write_with_draft(&path.with_extension(extension), path, text)
}

fn write_with_draft(draft: &Path, path: &Path, text: &[u8]) -> std::io::Result<()> {
    let result = write_draft(draft, path, text);
    if result.is_err() {
        let _ = std::fs::remove_file(draft);
    }
    result
}

fn write_draft(draft: &Path, path: &Path, text: &[u8]) -> std::io::Result<()> {
    match std::fs::remove_file(draft) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file =
        private_options(std::fs::OpenOptions::new().write(true).create_new(true)).open(draft)?;
    file.write_all(text)?;
    file.sync_all()?;
    std::fs::rename(draft, path)?;
    #[cfg(unix)]
    if let Some(folder) = path.parent() {
        std::fs::File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// Sets `OpenOptions` that follow no link, do not block on a pipe, and create files as private.
pub(crate) fn private_options(options: &mut std::fs::OpenOptions) -> &mut std::fs::OpenOptions {
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        options.mode(0o600).custom_flags(flags.bits().cast_signed());
    }
    options
}

/// Creates a folder and its parents with access for the owner only (`0o700`).
pub fn create_private_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
