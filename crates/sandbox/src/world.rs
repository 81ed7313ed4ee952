//! The world as one call sees it: what its grant covers, and nothing else.

use crate::{Error, Workspace};
use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_std::fs::{Dir, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use windlass_permission::Grant;
use windlass_protocol::Access;

/// What a tool may reach.
#[derive(Debug)]
pub struct World {
    workspace: Workspace,
    grant: Grant,
}

/// What stands at a path.
pub enum Entry {
    /// A file, opened for reading.
    File(std::fs::File),
    /// A folder: its entries by name, `/` behind folders, sorted.
    Folder(Vec<String>),
}

/// Where a path was found: the folder, held open, and the name in it.
struct Place {
    real: String,
    parent: Dir,
    name: String,
}

impl World {
    pub(crate) fn new(workspace: Workspace, grant: Grant) -> World {
        World { workspace, grant }
    }

    /// Opens a file or lists a folder.
    pub fn read(&self, path: &str) -> Result<Entry, Error> {
        let real = self.workspace.locate(path)?;
        self.check(Access::Read { path: real.clone() }, &real)?;
        if real == "." {
            return names(self.workspace.dir(), &real).map(Entry::Folder);
        }
        let place = self.walk(real, Missing::Fail)?;
        let mut options = OpenOptions::new();
        // Without `nonblock`, opening a pipe would wait for somebody to write to it.
        options.read(true).follow(FollowSymlinks::No).nonblock(true);
        let file = place.parent.open_with(&place.name, &options);
        let file = file.map_err(|error| failed(&place.real, error))?;
        let kind = file.metadata().map_err(|error| failed(&place.real, error))?.file_type();
        if kind.is_file() {
            Ok(Entry::File(file.into_std()))
        } else if kind.is_dir() {
            let dir = place.parent.open_dir_nofollow(&place.name);
            let dir = dir.map_err(|error| failed(&place.real, error))?;
            names(&dir, &place.real).map(Entry::Folder)
        } else {
            Err(Error::Special { path: place.real })
        }
    }

    /// Replaces a file's content, or makes the file and its folders. Whoever looks sees the old
    /// content or the new one, never a part; when it returns, the new one is on the disk.
    pub fn write(&self, path: &str, content: &[u8]) -> Result<(), Error> {
        let real = self.workspace.locate(path)?;
        self.check(Access::Edit { path: real.clone() }, &real)?;
        if real == "." {
            return Err(Error::Special { path: real });
        }
        let place = self.walk(real, Missing::Make)?;
        let before = match place.parent.symlink_metadata(&place.name) {
            Ok(data) if data.is_file() => Some(data.permissions()),
            Ok(data) if data.is_symlink() => return Err(Error::Swapped { path: place.real }),
            Ok(_) => return Err(Error::Special { path: place.real }),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(failed(&place.real, error)),
        };
        let replaces = if before.is_some() { Replaces::File } else { Replaces::Nothing };
        let (draft, mut file) =
            draft(&place.parent, replaces).map_err(|error| failed(&place.real, error))?;
        let replaced = fill(&mut file, content, before)
            .and_then(|()| place.parent.rename(&draft, &place.parent, &place.name));
        if let Err(error) = replaced {
            let _ = place.parent.remove_file(&draft);
            return Err(failed(&place.real, error));
        }
        let folder = place.parent.open(".").and_then(|folder| folder.sync_all());
        folder.map_err(|error| failed(&place.real, error))
    }

    fn check(&self, wanted: Access, real: &str) -> Result<(), Error> {
        if self.grant.covers(&wanted) {
            Ok(())
        } else {
            Err(Error::NotGranted { path: real.to_owned() })
        }
    }

    /// Goes down to a resolved path's folder without following a link.
    fn walk(&self, real: String, missing: Missing) -> Result<Place, Error> {
        let (folders, name) = real.rsplit_once('/').unwrap_or(("", &real));
        let name = name.to_owned();
        let root = self.workspace.dir().try_clone();
        let mut parent = root.map_err(|error| failed(&real, error))?;
        for folder in folders.split('/').filter(|folder| !folder.is_empty()) {
            let opened = match (parent.open_dir_nofollow(folder), missing) {
                (Err(error), Missing::Make) if error.kind() == ErrorKind::NotFound => {
                    parent.create_dir(folder).and_then(|()| parent.open_dir_nofollow(folder))
                }
                (opened, Missing::Make | Missing::Fail) => opened,
            };
            parent = opened.map_err(|error| failed(&real, error))?;
        }
        Ok(Place { real, parent, name })
    }
}

#[derive(Clone, Copy)]
enum Missing {
    Make,
    Fail,
}

/// A new file under a name that nobody has. One that is to replace another may hold what only its
/// owner should read, so until it has the other's mode nobody else can.
fn draft(folder: &Dir, replaces: Replaces) -> std::io::Result<(String, File)> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    const TRIES: usize = 100;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).follow(FollowSymlinks::No);
    #[cfg(unix)]
    if let Replaces::File = replaces {
        cap_std::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    let mut last = std::io::Error::from(ErrorKind::AlreadyExists);
    for _ in 0..TRIES {
        let unique = COUNTER.fetch_add(1, Ordering::Relaxed);
        let name = format!(".windlass-{}-{unique}.draft", std::process::id());
        match folder.open_with(&name, &options) {
            Ok(file) => return Ok((name, file)),
            // Left behind by a process that died; it is not ours to remove.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

#[derive(Clone, Copy)]
enum Replaces {
    File,
    Nothing,
}

/// Gives a draft its mode, then its content, and puts it on the disk.
fn fill(
    file: &mut File,
    content: &[u8],
    before: Option<cap_std::fs::Permissions>,
) -> std::io::Result<()> {
    if let Some(permissions) = before {
        file.set_permissions(permissions)?;
    }
    file.write_all(content)?;
    file.sync_all()
}

fn names(dir: &Dir, real: &str) -> Result<Vec<String>, Error> {
    let mut names = Vec::new();
    for entry in dir.entries().map_err(|error| failed(real, error))? {
        let entry = entry.map_err(|error| failed(real, error))?;
        let folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let name = entry.file_name().to_string_lossy().into_owned();
        names.push(if folder { name + "/" } else { name });
    }
    names.sort_unstable();
    Ok(names)
}

/// What the system said, in our words. A refusal without a system's error number is cap-std's
/// own: a part of the path has become a link since it was resolved.
fn failed(real: &str, source: std::io::Error) -> Error {
    let path = real.to_owned();
    match source.kind() {
        ErrorKind::NotFound => Error::Missing { path },
        _ if source.raw_os_error().is_none() => Error::Swapped { path },
        _ => Error::System { path, source },
    }
}

#[cfg(test)]
mod tests;
