//! What a file holds, and whose it is.

use crate::Error;
use crate::change::{Content, LARGEST};
use crate::world::{Place, failed};
use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{Dir, File, OpenOptions};
use std::io::{ErrorKind, Read};

/// What a file holds now.
pub(crate) fn current(place: &Place) -> Result<Option<Content>, Error> {
    let failed = |error| failed(&place.real, error);
    let data = match place.parent.symlink_metadata(&place.name) {
        Ok(data) if data.is_file() => data,
        Ok(data) if data.is_symlink() => return Err(Error::Swapped { path: place.real.clone() }),
        Ok(data) if data.is_dir() => return Err(Error::Folder { path: place.real.clone() }),
        Ok(_) => return Err(Error::Special { path: place.real.clone() }),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    if data.len() > LARGEST {
        return Err(Error::TooLarge { path: place.real.clone(), bytes: data.len() });
    }
    let bytes = whole(&place.parent, &place.name).map_err(failed)?;
    match bytes {
        Some(bytes) => Ok(Some(Content { bytes: bytes.into(), mode: mode_of(&data) })),
        None => Err(Error::TooLarge { path: place.real.clone(), bytes: data.len() }),
    }
}

/// How a file is opened: through no link, and without waiting for somebody to write to a pipe.
pub(crate) fn reading() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).follow(FollowSymlinks::No);
    cap_fs_ext::OpenOptionsSyncExt::nonblock(&mut options, true);
    options
}

/// All bytes of a file, or `None` if it is larger than what is changed here.
pub(crate) fn whole(parent: &Dir, name: &str) -> std::io::Result<Option<Vec<u8>>> {
    let file = parent.open_with(name, &reading())?;
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= LARGEST).then_some(bytes))
}

/// Gives a draft the owner, the access list and the mode of the file it is to replace, as far as we
/// may. What cannot be given to the old group is given to no group.
#[cfg(unix)]
pub(crate) fn own(
    draft: &File,
    parent: &Dir,
    name: &str,
    mode: Option<u32>,
) -> std::io::Result<()> {
    use cap_std::fs::{MetadataExt, PermissionsExt};
    use rustix::fs::{Gid, Uid, fchown};
    let mut withheld = 0;
    if let Ok(old) = parent.symlink_metadata(name) {
        let new = draft.metadata()?;
        if (old.uid(), old.gid()) != (new.uid(), new.gid()) {
            let (uid, gid) = (Uid::from_raw(old.uid()), Gid::from_raw(old.gid()));
            // Only root may give a file away; anybody may give it to a group of theirs.
            if fchown(draft, Some(uid), Some(gid)).is_err()
                && fchown(draft, None, Some(gid)).is_err()
            {
                withheld = 0o070;
            }
        }
    }
    let Some(mode) = mode else { return Ok(()) };
    if !copy_access_list(draft, parent, name) {
        // Its bits for the group are then not what the group may do.
        withheld = 0o070;
    }
    let mode = mode & 0o7777 & !withheld;
    draft.set_permissions(cap_std::fs::Permissions::from_mode(mode))
}

/// False if there is an access list that could not be copied.
#[cfg(target_os = "linux")]
fn copy_access_list(draft: &File, parent: &Dir, name: &str) -> bool {
    const LIST: &str = "system.posix_acl_access";
    const LONGEST: usize = 64 * 1024;
    let Ok(old) = parent.open_with(name, &reading()) else { return true };
    let mut list = vec![0; LONGEST];
    match rustix::fs::fgetxattr(&old, LIST, list.as_mut_slice()) {
        Ok(length) => list.get(..length).is_some_and(|list| {
            rustix::fs::fsetxattr(draft, LIST, list, rustix::fs::XattrFlags::empty()).is_ok()
        }),
        Err(_) => true,
    }
}

#[cfg(all(unix, not(target_os = "linux")))]
fn copy_access_list(_: &File, _: &Dir, _: &str) -> bool {
    true
}

#[cfg(not(unix))]
pub(crate) fn own(_: &File, _: &Dir, _: &str, _: Option<u32>) -> std::io::Result<()> {
    Ok(())
}

/// Puts a folder's names on the disk, where the system knows such a thing.
#[cfg(unix)]
pub(crate) fn sync(folder: &Dir) -> std::io::Result<()> {
    match folder.open(".").and_then(|folder| folder.sync_all()) {
        Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => {
            Ok(())
        }
        done => done,
    }
}

#[cfg(not(unix))]
pub(crate) fn sync(_: &Dir) -> std::io::Result<()> {
    Ok(())
}

#[cfg(unix)]
pub(crate) fn mode_of(data: &cap_std::fs::Metadata) -> Option<u32> {
    Some(cap_std::fs::MetadataExt::mode(data) & 0o7777)
}

#[cfg(not(unix))]
pub(crate) fn mode_of(_: &cap_std::fs::Metadata) -> Option<u32> {
    None
}
