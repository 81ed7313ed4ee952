//! Opening a file that a walk has found: beneath the workspace's handle, through no link.
//!
//! A walk names tens of thousands of files, so on Linux the system goes down the path in one call.
//! Where it cannot, the path is gone down part by part, as everywhere else in this crate.

use crate::hold::reading;
use crate::world::failed;
use crate::{Error, World};
use std::fs::File;
use std::time::SystemTime;

/// What a file is opened for.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy)]
enum For {
    Reading,
    Looking,
}

impl World {
    /// A regular file at a resolved path.
    pub(crate) fn open_beneath(&self, real: &str) -> Result<File, Error> {
        #[cfg(target_os = "linux")]
        if let Some(opened) = self.open_at_once(real, For::Reading) {
            return opened.and_then(|file| regular(file, real));
        }
        self.open_in_steps(real)
    }

    /// When the regular file at a resolved path was last changed.
    pub(crate) fn modified_beneath(&self, real: &str) -> Result<SystemTime, Error> {
        #[cfg(target_os = "linux")]
        if let Some(opened) = self.open_at_once(real, For::Looking) {
            let data = opened?.metadata().map_err(|error| failed(real, error))?;
            if !data.is_file() {
                return Err(Error::Special { path: real.to_owned() });
            }
            return data.modified().map_err(|error| failed(real, error));
        }
        self.modified_in_steps(real)
    }

    /// Nothing where the kernel has no such call, or is kept from making it.
    #[cfg(target_os = "linux")]
    fn open_at_once(&self, real: &str, purpose: For) -> Option<Result<File, Error>> {
        use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
        use rustix::io::Errno;
        let flags = OFlags::CLOEXEC
            | match purpose {
                // Without `NONBLOCK`, opening a pipe would wait for somebody to write to it.
                For::Reading => OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY,
                For::Looking => OFlags::PATH,
            };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        match openat2(self.workspace().dir(), real, flags, Mode::empty(), resolve) {
            Ok(handle) => Some(Ok(File::from(handle))),
            Err(Errno::NOSYS | Errno::PERM) => None,
            Err(Errno::LOOP | Errno::XDEV) => Some(Err(Error::Swapped { path: real.to_owned() })),
            Err(error) => Some(Err(failed(real, error.into()))),
        }
    }

    fn open_in_steps(&self, real: &str) -> Result<File, Error> {
        let place = self.find(real.to_owned())?;
        let file = place.parent.open_with(&place.name, &reading());
        regular(file.map_err(|error| failed(real, error))?.into_std(), real)
    }

    fn modified_in_steps(&self, real: &str) -> Result<SystemTime, Error> {
        let place = self.find(real.to_owned())?;
        let data = place.parent.symlink_metadata(&place.name);
        let data = data.map_err(|error| failed(real, error))?;
        if !data.is_file() {
            return Err(Error::Special { path: real.to_owned() });
        }
        let modified = data.modified().map_err(|error| failed(real, error))?;
        Ok(modified.into_std())
    }
}

fn regular(file: File, real: &str) -> Result<File, Error> {
    if file.metadata().map_err(|error| failed(real, error))?.is_file() {
        Ok(file)
    } else {
        Err(Error::Special { path: real.to_owned() })
    }
}

#[cfg(test)]
mod tests;
