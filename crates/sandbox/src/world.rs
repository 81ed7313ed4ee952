//! The world as one call sees it: what its grant covers, and nothing else.

use crate::hold::reading;
use crate::{Error, Ledger, Workspace};
use cap_fs_ext::DirExt;
use cap_std::fs::Dir;
use std::io::ErrorKind;
use std::sync::Arc;
use windlass_permission::Grant;
use windlass_protocol::{Access, Mode};

/// What a tool may reach.
pub struct World {
    workspace: Workspace,
    grant: Grant,
    ledger: Option<Arc<dyn Ledger>>,
}

/// What stands at a path.
pub enum Entry {
    /// A file, opened for reading.
    File(std::fs::File),
    /// A folder: its entries by name, `/` behind folders, sorted.
    Folder(Vec<String>),
}

/// Where a path was found: the folder, held open, and the name in it.
pub(crate) struct Place {
    pub(crate) real: String,
    pub(crate) parent: Dir,
    pub(crate) name: String,
}

impl World {
    pub(crate) fn new(
        workspace: Workspace,
        grant: Grant,
        ledger: Option<Arc<dyn Ledger>>,
    ) -> World {
        World { workspace, grant, ledger }
    }

    /// Opens a file or lists a folder.
    pub fn read(&self, path: &str) -> Result<Entry, Error> {
        let real = self.workspace.locate(path)?;
        self.check(Access::Read { path: real.clone() }, &real)?;
        if real == "." {
            return names(self.workspace.dir(), &real).map(Entry::Folder);
        }
        let place = self.find(real)?;
        let file = place.parent.open_with(&place.name, &reading());
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

    /// A file that lies near what this call touches, if reading it needs nobody's yes and no link
    /// leads to it.
    pub fn beside(&self, path: &str) -> Option<Vec<u8>> {
        if self.locate(path).ok()? != path || !self.grant.permits(path) {
            return None;
        }
        self.whole(path.to_owned()).ok().flatten().map(|content| content.bytes.to_vec())
    }

    /// The mode it was opened in.
    pub fn mode(&self) -> Mode {
        self.grant.mode()
    }

    /// Where a path really leads.
    pub fn locate(&self, path: &str) -> Result<String, Error> {
        self.workspace.locate(path)
    }

    /// The workspace it is opened on.
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// True if a file that nobody named may be found by a search.
    pub(crate) fn reveals(&self, path: &str) -> bool {
        self.grant.reveals(path)
    }

    /// True if it may be told that a path exists.
    pub(crate) fn permits(&self, path: &str) -> bool {
        self.grant.permits(path)
    }

    pub(crate) fn grant(&self) -> &Grant {
        &self.grant
    }

    pub(crate) fn ledger(&self) -> Option<&dyn Ledger> {
        self.ledger.as_deref()
    }

    pub(crate) fn check(&self, wanted: Access, real: &str) -> Result<(), Error> {
        if self.grant.covers(&wanted) {
            Ok(())
        } else {
            Err(Error::NotGranted { path: real.to_owned() })
        }
    }

    /// Where a resolved path stands, if its folder is there.
    pub(crate) fn find(&self, real: String) -> Result<Place, Error> {
        self.walk(real, Missing::Fail, &mut Vec::new())
    }

    /// Goes down to a resolved path's folder without following a link.
    /// Folders it makes are added to `made`.
    pub(crate) fn walk(
        &self,
        real: String,
        missing: Missing,
        made: &mut Vec<(Dir, String)>,
    ) -> Result<Place, Error> {
        let (folders, name) = real.rsplit_once('/').unwrap_or(("", &real));
        let name = name.to_owned();
        let root = self.workspace.dir().try_clone();
        let mut parent = root.map_err(|error| failed(&real, error))?;
        for folder in folders.split('/').filter(|folder| !folder.is_empty()) {
            let opened = match (parent.open_dir_nofollow(folder), missing) {
                (Err(error), Missing::Make) if error.kind() == ErrorKind::NotFound => {
                    match parent.create_dir(folder) {
                        Ok(()) => {
                            let above = parent.try_clone().map_err(|error| failed(&real, error))?;
                            made.push((above, folder.to_owned()));
                        }
                        // Somebody else was quicker; it is theirs.
                        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                        Err(error) => return Err(failed(&real, error)),
                    }
                    parent.open_dir_nofollow(folder)
                }
                (opened, Missing::Make | Missing::Fail) => opened,
            };
            parent = opened.map_err(|error| failed(&real, error))?;
        }
        Ok(Place { real, parent, name })
    }
}

/// What happens where a folder on the way is missing.
#[derive(Clone, Copy)]
pub(crate) enum Missing {
    Make,
    Fail,
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
pub(crate) fn failed(real: &str, source: std::io::Error) -> Error {
    let path = real.to_owned();
    match source.kind() {
        ErrorKind::NotFound => Error::Missing { path },
        _ if source.raw_os_error().is_none() => Error::Swapped { path },
        _ => Error::System { path, source },
    }
}

#[cfg(test)]
pub(crate) mod tests;
