//! Package caches that commands may fill without changing those of the user.
//!
//! Each project has a storage folder of ours for what its commands download. Where the user has a
//! cache, an overlay in the namespaces of the session covers it: commands see it at its usual path,
//! and their changes go to the storage. The path matters, because some tools rebuild everything if
//! it changes. Where there is no overlay, an environment variable directs the tool to the storage.
//!
//! Two overlays must not share the folder with their changes. A session that finds the storage
//! locked gets a folder of its own on top of it, which is removed with the session.
#![allow(clippy::disallowed_methods, reason = "prepares the folders that the sandbox mounts")]

use super::{SandboxProfile, path_serde};
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::mount::MountFlags;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Folder in the storage with the caches that no overlay covers.
const DIRECT_FOLDER: &str = "direct";
/// Prefix of the folders of sessions that found the storage locked. The process ID follows.
const SESSION_FOLDER_PREFIX: &str = "session-";

/// The package caches of a user, and the folder that takes the changes of one project.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
pub struct PackageCaches {
    #[serde(with = "path_serde::one")]
    pub storage: PathBuf,
    pub caches: Vec<PackageCache>,
}

/// A folder in which a package manager or compiler caches its data.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
pub struct PackageCache {
    /// Name of the folder in the storage.
    pub name: String,
    /// The user's own folder, which may not exist.
    #[serde(with = "path_serde::one")]
    pub folder: PathBuf,
    /// Subfolders that hold the cache; if there are none, it is the whole folder.
    pub subfolders: Vec<String>,
    /// The environment variable that names the folder, and the text before the path in its value.
    pub variable: (String, String),
    /// The tool works without the network, but not without a cache that it can write to.
    pub is_needed_offline: bool,
}

/// The storage of a project, as one session uses it.
#[derive(Debug)]
pub(crate) struct CacheStorage {
    folder: PathBuf,
    /// The folder for changes, if another session has locked the storage.
    session_folder: Option<PathBuf>,
    /// Keeps other sessions from mounting the same overlays.
    _lock: OwnedFd,
}

/// A mount that shows the user's folder, with changes stored elsewhere.
#[derive(Debug)]
pub(crate) struct CacheOverlay {
    pub(super) folder: PathBuf,
    /// Folders whose content is visible, topmost first.
    lower: Vec<PathBuf>,
    upper: PathBuf,
    work: PathBuf,
    /// The folder itself or subfolders of it.
    cache_folders: Vec<PathBuf>,
}

/// Creates the storage of a project if it does not exist, and locks it unless another session has.
pub(crate) fn prepare_storage(folder: &Path) -> io::Result<CacheStorage> {
    create_private_folder(&folder.join(DIRECT_FOLDER))?;
    let folder = fs::canonicalize(folder)?;
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let lock = rustix::fs::open(folder.join("lock"), flags, Mode::RUSR | Mode::WUSR)?;
    let is_locked = flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok();
    let session_folder = if is_locked {
        remove_stale_session_folders(&folder);
        None
    } else {
        let session_folder = folder.join(format!("{SESSION_FOLDER_PREFIX}{}", std::process::id()));
        create_private_folder(&session_folder)?;
        Some(session_folder)
    };
    Ok(CacheStorage { folder, session_folder, _lock: lock })
}

impl CacheStorage {
    /// Returns the folder to remove when the session ends.
    pub(crate) fn session_folder(&self) -> Option<&Path> {
        self.session_folder.as_deref()
    }

    /// Returns the overlays for the existing caches of the user, and creates their folders.
    pub(crate) fn overlays(&self, caches: &[PackageCache], root: &Path) -> Vec<CacheOverlay> {
        let usable = caches.iter().filter(|cache| self.can_cover(&cache.folder, root));
        usable.filter_map(|cache| self.overlay(cache).ok()).collect()
    }

    /// Opens the caches to a command, writable if its workspace is. Returns the variables that name
    /// those which no overlay covers.
    pub(crate) fn open_to_command(
        &self,
        caches: &[PackageCache],
        is_overlaid: impl Fn(&Path) -> bool,
        profile: &mut SandboxProfile,
    ) -> Vec<(OsString, OsString)> {
        let mut variables = Vec::new();
        let mut folders = Vec::new();
        let direct = self.folder.join(DIRECT_FOLDER);
        let has_network = profile.backend.has_namespaces();
        for cache in caches {
            if is_overlaid(&cache.folder) {
                folders.extend(cache.cache_folders());
                continue;
            }
            if !has_network && !cache.is_needed_offline && cache.folder.is_dir() {
                // The tool can still read what it cached before.
                continue;
            }
            let (name, prefix) = &cache.variable;
            let mut value = OsString::from(prefix);
            value.push(direct.join(&cache.name));
            variables.push((OsString::from(name), value));
        }
        if !variables.is_empty() {
            folders.push(direct);
        }
        match profile.workspace_writable {
            true => profile.cache_folders.extend(folders),
            false => profile.readable_paths.extend(folders),
        }
        variables
    }

    /// Returns true if an overlay can cover this folder: it is real, its path needs no quoting in
    /// mount options, and neither the workspace nor the storage lies inside it.
    fn can_cover(&self, folder: &Path, root: &Path) -> bool {
        let needs_quoting = |path: &Path| {
            path.as_os_str().as_bytes().iter().any(|byte| matches!(byte, b',' | b':' | b'\\'))
        };
        let overlaps = |other: &Path| other.starts_with(folder) || folder.starts_with(other);
        folder.is_dir()
            && fs::canonicalize(folder).is_ok_and(|real| real == folder)
            && !needs_quoting(folder)
            && !needs_quoting(&self.folder)
            && !overlaps(root)
            && !overlaps(&self.folder)
    }

    fn overlay(&self, cache: &PackageCache) -> io::Result<CacheOverlay> {
        let shared = self.folder.join("overlays").join(&cache.name);
        let (own, lower) = match &self.session_folder {
            None => (shared, vec![cache.folder.clone()]),
            Some(session_folder) => {
                let lower = shared.join("files");
                create_private_folder(&lower)?;
                (session_folder.join(&cache.name), vec![lower, cache.folder.clone()])
            }
        };
        let (upper, work) = (own.join("files"), own.join("work"));
        create_private_folder(&upper)?;
        create_private_folder(&work)?;
        let cache_folders = cache.cache_folders();
        Ok(CacheOverlay { folder: cache.folder.clone(), lower, upper, work, cache_folders })
    }
}

impl PackageCache {
    /// Returns the folders that hold the cache.
    fn cache_folders(&self) -> Vec<PathBuf> {
        match self.subfolders.is_empty() {
            true => vec![self.folder.clone()],
            false => self.subfolders.iter().map(|name| self.folder.join(name)).collect(),
        }
    }
}

impl CacheOverlay {
    /// Mounts the overlay in the current mount namespace, and creates its `cache_folders`.
    pub(super) fn mount(&self) -> io::Result<()> {
        let lower: Vec<&[u8]> = self.lower.iter().map(|path| path.as_os_str().as_bytes()).collect();
        let options = [
            &b"lowerdir="[..],
            &lower.join(&b':'),
            b",upperdir=",
            self.upper.as_os_str().as_bytes(),
            b",workdir=",
            self.work.as_os_str().as_bytes(),
            b",userxattr",
        ]
        .concat();
        let options = std::ffi::CString::new(options)?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        rustix::mount::mount("overlay", &self.folder, "overlay", flags, &*options)?;
        self.cache_folders.iter().try_for_each(|folder| create_private_folder(folder))
    }
}

fn create_private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Removes the folders of sessions whose process no longer exists.
fn remove_stale_session_folders(storage: &Path) {
    let entries = fs::read_dir(storage).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name().into_vec();
        let pid = name.strip_prefix(SESSION_FOLDER_PREFIX.as_bytes());
        let pid = pid.and_then(|pid| std::str::from_utf8(pid).ok()?.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            // It is tried again with the next session.
            let _ = remove_folder(&entry.path());
        }
    }
}

/// Removes a folder with everything in it, also if folders in it cannot be listed or changed.
pub(crate) fn remove_folder(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            make_folders_writable(folder)?;
            fs::remove_dir_all(folder)
        }
        other => other,
    }
}

/// Lets the owner change a folder and the folders in it.
fn make_folders_writable(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            make_folders_writable(&entry.path())?;
        }
    }
    Ok(())
}
