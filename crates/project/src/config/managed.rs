//! The managed policy: what whoever runs this machine allows at most.
//!
//! It is obeyed before all else, so it has to be the administrator's alone: a file that somebody
//! else owns or can write stops the start, and so does one that cannot be read.
#![allow(clippy::disallowed_methods, reason = "project is the door to config files")]

use crate::Error;
use crate::file::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

/// A policy has no business being longer.
const LONGEST: u64 = 1 << 20;

/// What it may say.
const KEYS: &[&str] = &["$schema", "permission", "mode", "sandbox", "lsp", "formatter"];

/// The text of the policy; `None` if there is none.
pub(super) fn read(path: &Path) -> Result<Option<String>, Error> {
    let failed = |source| Error::File { path: path.to_owned(), source };
    let mut options = std::fs::OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags.bits().cast_signed());
    }
    let file = match options.open(path) {
        Ok(file) => file,
        // A link that leads nowhere is a policy that was lost, not none.
        Err(error) if absent(&error) && path.symlink_metadata().is_err() => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let data = file.metadata().map_err(failed)?;
    if !data.is_file() {
        return Err(refused(path, "it is no plain file"));
    }
    check(path, &data)?;
    if let Some(folder) = path.parent() {
        check(path, &folder.metadata().map_err(failed)?)?;
    }
    let mut text = String::new();
    if file.take(LONGEST + 1).read_to_string(&mut text).map_err(failed)? as u64 > LONGEST {
        return Err(refused(path, "it is longer than a policy can be"));
    }
    Ok(Some(text))
}

fn absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

#[cfg(unix)]
fn check(path: &Path, data: &std::fs::Metadata) -> Result<(), Error> {
    use std::os::unix::fs::MetadataExt;
    objection(data.uid(), data.mode()).map_or(Ok(()), |reason| Err(refused(path, reason)))
}

/// Elsewhere the system keeps ordinary people out of this folder.
#[cfg(not(unix))]
fn check(_: &Path, _: &std::fs::Metadata) -> Result<(), Error> {
    Ok(())
}

/// What is wrong with the owner and the mode of the policy, or of the folder it lies in.
#[cfg(unix)]
pub(super) fn objection(owner: u32, mode: u32) -> Option<&'static str> {
    if owner != 0 {
        return Some("it, or its folder, does not belong to root");
    }
    (mode & 0o022 != 0).then_some("it, or its folder, can be written by others than root")
}

fn refused(path: &Path, reason: &'static str) -> Error {
    Error::Managed { path: path.to_owned(), reason }
}

/// Takes out what a policy has no say in.
pub(super) fn keep_to_its_own(file: &mut File) {
    let keys: Vec<String> =
        file.value.keys().filter(|key| !KEYS.contains(&key.as_str())).cloned().collect();
    for key in keys {
        let pointer = crate::pointer::join("", &key);
        file.fault(
            &pointer,
            "the managed policy sets `permission`, `mode`, `sandbox`, `lsp` and `formatter` only",
        );
        file.remove(&pointer);
    }
}
