//! Reads file contents and copies file ownership.

use crate::error::{Error, io_error};
use crate::fs::file_change::{FileContent, MAX_CHANGED_FILE_BYTES};
use crate::fs::resolved_path::ResolvedPath;
use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{Dir, File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::path::Path;

/// Reads the current content of a file, or returns `None` if it does not exist.
pub(crate) fn read_content(target: &ResolvedPath) -> Result<Option<FileContent>, Error> {
    let to_error = |error| io_error(&target.path, error);
    let metadata = match target.parent.symlink_metadata(&target.name) {
        Ok(metadata) if metadata.is_file() => metadata,
        Ok(metadata) if metadata.is_symlink() => {
            return Err(Error::BecameSymlink { path: target.path.clone() });
        }
        Ok(metadata) if metadata.is_dir() => {
            return Err(Error::IsFolder { path: target.path.clone() });
        }
        Ok(_) => return Err(Error::SpecialFile { path: target.path.clone() }),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(to_error(error)),
    };
    if metadata.len() > MAX_CHANGED_FILE_BYTES {
        return Err(Error::TooLarge { path: target.path.clone(), bytes: metadata.len() });
    }
    let bytes = read_bytes(&target.parent, &target.name).map_err(to_error)?;
    match bytes {
        Some(bytes) => Ok(Some(FileContent { bytes: bytes.into(), mode: mode_of(&metadata) })),
        None => Err(Error::TooLarge { path: target.path.clone(), bytes: metadata.len() }),
    }
}

/// Returns options for reading that follow no symbolic link and do not block on a pipe without a
/// writer.
pub(crate) fn read_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).follow(FollowSymlinks::No);
    cap_fs_ext::OpenOptionsSyncExt::nonblock(&mut options, true);
    options
}

/// Reads all bytes of a file, or returns `None` if it exceeds `MAX_CHANGED_FILE_BYTES`.
pub(crate) fn read_bytes(parent: &Dir, name: &Path) -> std::io::Result<Option<Vec<u8>>> {
    let file = parent.open_with(name, &read_options())?;
    let mut bytes = Vec::new();
    file.take(MAX_CHANGED_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= MAX_CHANGED_FILE_BYTES).then_some(bytes))
}

/// Gives a draft the owner, access list and mode of the file that it replaces, as far as the
/// process may. If the old group cannot be set, the draft gets no group permissions.
#[cfg(unix)]
pub(crate) fn copy_ownership(
    draft: &File,
    parent: &Dir,
    name: &Path,
    mode: Option<u32>,
) -> std::io::Result<()> {
    use cap_std::fs::{MetadataExt, PermissionsExt};
    use rustix::fs::{Gid, Uid, fchown};
    let mut masked_bits = 0;
    if let Ok(old) = parent.symlink_metadata(name) {
        let new = draft.metadata()?;
        if (old.uid(), old.gid()) != (new.uid(), new.gid()) {
            let (uid, gid) = (Uid::from_raw(old.uid()), Gid::from_raw(old.gid()));
            // Only root may change the owner; any user may set a group that the user belongs to.
            if fchown(draft, Some(uid), Some(gid)).is_err()
                && fchown(draft, None, Some(gid)).is_err()
            {
                masked_bits = 0o070;
            }
        }
    }
    let Some(mode) = mode else { return Ok(()) };
    if !copy_access_list(draft, parent, name) {
        // The group bits of `mode` are then the mask of the access list, not the permissions of the
        // group.
        masked_bits = 0o070;
    }
    let mode = mode & 0o7777 & !masked_bits;
    draft.set_permissions(cap_std::fs::Permissions::from_mode(mode))
}

/// Copies the access list of a file to a draft. Returns false if one exists but could not be
/// copied.
#[cfg(target_os = "linux")]
fn copy_access_list(draft: &File, parent: &Dir, name: &Path) -> bool {
    const ACL_XATTR_NAME: &str = "system.posix_acl_access";
    const MAX_ACL_BYTES: usize = 64 * 1024;
    let Ok(old) = parent.open_with(name, &read_options()) else { return true };
    let mut acl = vec![0; MAX_ACL_BYTES];
    match rustix::fs::fgetxattr(&old, ACL_XATTR_NAME, acl.as_mut_slice()) {
        Ok(length) => acl.get(..length).is_some_and(|acl| {
            rustix::fs::fsetxattr(draft, ACL_XATTR_NAME, acl, rustix::fs::XattrFlags::empty())
                .is_ok()
        }),
        Err(_) => true,
    }
}

#[cfg(all(unix, not(target_os = "linux")))]
fn copy_access_list(_: &File, _: &Dir, _: &Path) -> bool {
    true
}

#[cfg(not(unix))]
pub(crate) fn copy_ownership(_: &File, _: &Dir, _: &Path, _: Option<u32>) -> std::io::Result<()> {
    Ok(())
}

/// Flushes the entries of a folder to disk, where the system supports it.
#[cfg(unix)]
pub(crate) fn sync_folder(folder: &Dir) -> std::io::Result<()> {
    match folder.open(".").and_then(|folder| folder.sync_all()) {
        Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => {
            Ok(())
        }
        result => result,
    }
}

#[cfg(not(unix))]
pub(crate) fn sync_folder(_: &Dir) -> std::io::Result<()> {
    Ok(())
}

#[cfg(unix)]
pub(crate) fn mode_of(metadata: &cap_std::fs::Metadata) -> Option<u32> {
    Some(cap_std::fs::MetadataExt::mode(metadata) & 0o7777)
}

#[cfg(not(unix))]
pub(crate) fn mode_of(_: &cap_std::fs::Metadata) -> Option<u32> {
    None
}
