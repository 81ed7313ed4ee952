//! Opens files found by a walk: beneath the workspace's directory handle, without following
//! symbolic links.
//!
//! A walk finds tens of thousands of files, so on Linux one `openat2` call resolves the whole path.
//! Where the call is not available, the path is opened component by component, as everywhere else
//! in this crate.

use crate::CallWorkspace;
use crate::error::{Error, io_error};
use crate::fs::file_io::read_options;
use std::fs::File;
use std::time::SystemTime;

/// Purpose for which a file is opened.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy)]
enum OpenPurpose {
    Read,
    Stat,
}

impl CallWorkspace {
    /// Opens the regular file at a resolved path.
    pub(crate) fn open_beneath(&self, real: &str) -> Result<File, Error> {
        #[cfg(target_os = "linux")]
        if let Some(opened) = self.open_with_openat2(real, OpenPurpose::Read) {
            return opened.and_then(|file| require_regular(file, real));
        }
        self.open_by_component(real)
    }

    /// Returns the modification time of the regular file at a resolved path.
    pub(crate) fn modified_beneath(&self, real: &str) -> Result<SystemTime, Error> {
        #[cfg(target_os = "linux")]
        if let Some(opened) = self.open_with_openat2(real, OpenPurpose::Stat) {
            let metadata = opened?.metadata().map_err(|error| io_error(real, error))?;
            if !metadata.is_file() {
                return Err(Error::SpecialFile { path: real.to_owned() });
            }
            return metadata.modified().map_err(|error| io_error(real, error));
        }
        self.modified_by_component(real)
    }

    /// Opens a file with `openat2`, or returns `None` where the kernel lacks the call or forbids
    /// it.
    #[cfg(target_os = "linux")]
    fn open_with_openat2(&self, real: &str, purpose: OpenPurpose) -> Option<Result<File, Error>> {
        use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
        use rustix::io::Errno;
        let flags = OFlags::CLOEXEC
            | match purpose {
                // Without `NONBLOCK`, opening a pipe would wait for a writer.
                OpenPurpose::Read => OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY,
                OpenPurpose::Stat => OFlags::PATH,
            };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let (dir, path) = match self.workspace().handle_of(real) {
            Ok(handle) => handle,
            Err(error) => return Some(Err(error)),
        };
        match openat2(dir, &*path, flags, Mode::empty(), resolve) {
            Ok(handle) => Some(Ok(File::from(handle))),
            Err(Errno::NOSYS | Errno::PERM) => None,
            Err(Errno::LOOP | Errno::XDEV) => {
                Some(Err(Error::BecameSymlink { path: real.to_owned() }))
            }
            Err(error) => Some(Err(io_error(real, error.into()))),
        }
    }

    fn open_by_component(&self, real: &str) -> Result<File, Error> {
        let target = self.open_existing_parent(real.to_owned())?;
        let file = target.parent.open_with(&target.name, &read_options());
        require_regular(file.map_err(|error| io_error(real, error))?.into_std(), real)
    }

    fn modified_by_component(&self, real: &str) -> Result<SystemTime, Error> {
        let target = self.open_existing_parent(real.to_owned())?;
        let metadata = target.parent.symlink_metadata(&target.name);
        let metadata = metadata.map_err(|error| io_error(real, error))?;
        if !metadata.is_file() {
            return Err(Error::SpecialFile { path: real.to_owned() });
        }
        let modified = metadata.modified().map_err(|error| io_error(real, error))?;
        Ok(modified.into_std())
    }
}

fn require_regular(file: File, real: &str) -> Result<File, Error> {
    if file.metadata().map_err(|error| io_error(real, error))?.is_file() {
        Ok(file)
    } else {
        Err(Error::SpecialFile { path: real.to_owned() })
    }
}

#[cfg(test)]
mod tests;
