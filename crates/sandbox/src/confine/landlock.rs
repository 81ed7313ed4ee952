//! Translates a `SandboxProfile` into a Landlock ruleset, for machines where bubblewrap cannot run.
//!
//! Landlock can only add rights. To hide a path, the ruleset leaves it out: it grants every sibling
//! on the way to the path one by one, and the folders on the way cannot be listed. Landlock cannot
//! exclude a part of a writable folder, so a profile with a hidden path in a writable folder is
//! refused. Only the `PathGuard` protects protected paths there, and file modes and owners. There
//! is no network: Landlock can allow a port, but not an address. Each kernel enforces as much as it
//! supports; [`ruleset`] checks for the features that are indispensable.

#![allow(clippy::disallowed_methods, reason = "inspects the paths that the sandbox grants")]

use super::{SandboxProfile, VISIBLE_RUN_FOLDERS, sandbox_unavailable};
use crate::Error;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// The newest Landlock ABI that the rules use.
const LANDLOCK_ABI: ABI = ABI::V6;

/// The oldest Landlock ABI that a sandbox can use: the first that restricts truncating files.
pub(super) const MIN_ABI_VERSION: i32 = 3;

/// Devices that a command may write to and send an `ioctl` to.
const WRITABLE_DEVICES: [&str; 7] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx"];

/// The terminals of the machine. A ruleset cannot tell those of the command from those of the user,
/// so the `PathGuard` opens them.
const TERMINAL_FOLDER: &str = "/dev/pts";

/// Returns true for a device that a command may open for writing.
pub(super) fn is_writable_device(path: &Path) -> bool {
    WRITABLE_DEVICES.iter().any(|device| path == Path::new(device))
        || path.starts_with(TERMINAL_FOLDER)
}

/// Returns the Landlock ABI version of the kernel, or `None` without Landlock.
pub(super) fn abi_version() -> Option<i32> {
    #[allow(unsafe_code, reason = "the landlock crate does not report the version")]
    // SAFETY: without attributes and with this flag, `landlock_create_ruleset` only returns a
    // number.
    let version = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0_usize, 1_u32)
    };
    i32::try_from(version).ok().filter(|version| *version > 0)
}

/// A folder that changed within this window may change again without a new modification time.
const RECENT_CHANGE_WINDOW: Duration = Duration::from_millis(100);

/// The last ruleset. Granting everything except the hidden paths takes more than a hundred calls,
/// and the next command usually needs the same ruleset.
static CACHED_RULESET: Mutex<Option<(LandlockRulesetKey, OwnedFd)>> = Mutex::new(None);

/// All inputs of a ruleset, as the cache key.
struct LandlockRulesetKey {
    hidden: Vec<PathBuf>,
    /// The writable folders, the workspace and the readable paths, with their current device and inode.
    visible_folders: Vec<(PathBuf, FolderInodeAndTime)>,
    writable_count: usize,
    /// Folders whose entries were granted one by one.
    listed_folders: Vec<(PathBuf, FolderInodeAndTime)>,
}

/// Device, inode and modification time of a folder. The time counts only for `listed_folders`.
type FolderInodeAndTime = Option<(u64, u64, i64, i64)>;

impl LandlockRulesetKey {
    fn new(profile: &SandboxProfile, hidden: Vec<PathBuf>) -> LandlockRulesetKey {
        let writable_folders: Vec<&Path> = profile.changeable_folders().collect();
        let writable_count = writable_folders.len();
        let readable_paths = profile.readable_paths.iter().map(PathBuf::as_path);
        let visible_folders =
            writable_folders.into_iter().chain([profile.root.as_path()]).chain(readable_paths);
        let identity =
            |path: &Path| folder_stamp(path).map(|(device, number, ..)| (device, number, 0, 0));
        let visible_folders =
            visible_folders.map(|path| (path.to_owned(), identity(path))).collect();
        LandlockRulesetKey { hidden, visible_folders, writable_count, listed_folders: Vec::new() }
    }

    /// Returns true if both inputs give the same ruleset, because no listed folder has changed
    /// since.
    fn matches(&self, other: &LandlockRulesetKey) -> bool {
        (&self.hidden, &self.visible_folders, self.writable_count)
            == (&other.hidden, &other.visible_folders, other.writable_count)
            && self
                .listed_folders
                .iter()
                .all(|(path, before)| before.is_some() && folder_stamp(path) == *before)
    }

    /// Returns true if the listed folders are unchanged for long enough that their modification
    /// times reveal the next change.
    fn is_cacheable(&self) -> bool {
        let cutoff = SystemTime::now().checked_sub(RECENT_CHANGE_WINDOW);
        let cutoff = cutoff.and_then(|cutoff| cutoff.duration_since(SystemTime::UNIX_EPOCH).ok());
        let cutoff =
            cutoff.map(|cutoff| (cutoff.as_secs().cast_signed(), i64::from(cutoff.subsec_nanos())));
        cutoff.is_some_and(|cutoff| {
            let mut stamps = self.listed_folders.iter().map(|(_, stamp)| *stamp);
            stamps
                .all(|stamp| stamp.is_some_and(|(_, _, seconds, nanos)| (seconds, nanos) < cutoff))
        })
    }
}

fn folder_stamp(path: &Path) -> FolderInodeAndTime {
    let metadata = fs::symlink_metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino(), metadata.mtime(), metadata.mtime_nsec()))
}

/// Builds the ruleset, or returns the cached one, for [`restrict_self`].
pub(super) fn ruleset(profile: &SandboxProfile) -> Result<OwnedFd, Error> {
    let Some(version) = abi_version() else {
        return Err(sandbox_unavailable("this kernel does not support Landlock"));
    };
    if version < MIN_ABI_VERSION {
        return Err(sandbox_unavailable(
            "Landlock of this kernel cannot prevent files from being truncated",
        ));
    }
    let terminals = PathBuf::from(TERMINAL_FOLDER);
    // Sockets of the system, and the secrets that containers get.
    let run = PathBuf::from("/run");
    let hidden = profile.hidden_paths.iter().chain(&profile.private_paths);
    let hidden = hidden.chain([&terminals, &run]);
    let hidden: Vec<PathBuf> = hidden.filter_map(|path| fs::canonicalize(path).ok()).collect();
    let is_in_writable = |path: &&PathBuf| {
        let mut folders = profile.changeable_folders();
        folders.any(|folder| path.starts_with(folder) && *path != folder)
    };
    if let Some(path) = hidden.iter().find(is_in_writable) {
        return Err(sandbox_unavailable(format!(
            "{} must stay hidden, which requires bubblewrap where commands can write around it. \
             Install bubblewrap, or start in a subfolder",
            path.display()
        )));
    }
    let mut inputs = LandlockRulesetKey::new(profile, hidden);
    let mut cached = CACHED_RULESET.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, rules)) =
        cached.as_ref().filter(|(cached_inputs, _)| cached_inputs.matches(&inputs))
    {
        return rules.try_clone().map_err(|source| sandbox_unavailable(source.to_string()));
    }
    let created = build_ruleset(profile, &mut inputs)
        .map_err(|source| sandbox_unavailable(source.to_string()))?;
    let rules = Option::<OwnedFd>::from(created)
        .ok_or_else(|| sandbox_unavailable("this kernel does not support Landlock"))?;
    *cached = match (inputs.is_cacheable(), rules.try_clone()) {
        (true, Ok(rules)) => Some((inputs, rules)),
        (true, Err(_)) | (false, _) => None,
    };
    Ok(rules)
}

fn build_ruleset(
    profile: &SandboxProfile,
    inputs: &mut LandlockRulesetKey,
) -> Result<RulesetCreated, RulesetError> {
    let hidden = &inputs.hidden;
    let listed = &mut inputs.listed_folders;
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(LANDLOCK_ABI))?
        .handle_access(AccessNet::from_all(LANDLOCK_ABI))?
        .scope(Scope::from_all(LANDLOCK_ABI))?
        .create()?;
    let read = AccessFs::from_read(LANDLOCK_ABI);
    let mut granted = Vec::new();
    collect_visible(Path::new("/"), hidden, &mut granted, listed);
    // The workspace and the readable paths stay readable inside a hidden folder.
    for folder in [&profile.root].into_iter().chain(&profile.readable_paths) {
        let inner: Vec<PathBuf> = hidden
            .iter()
            .filter(|path| path.starts_with(folder) && *path != folder)
            .cloned()
            .collect();
        collect_visible(folder, &inner, &mut granted, listed);
        if !inner.is_empty() {
            // Without this, no folder above a hidden path could be listed. It shows names only.
            rules = grant_path(rules, folder, AccessFs::ReadDir.into())?;
        }
    }
    granted.extend(VISIBLE_RUN_FOLDERS.map(PathBuf::from));
    for path in &granted {
        rules = grant_path(rules, path, read)?;
    }
    for path in profile.changeable_folders() {
        rules = grant_path(rules, path, AccessFs::from_all(LANDLOCK_ABI) & !AccessFs::IoctlDev)?;
    }
    for device in WRITABLE_DEVICES {
        let access = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
        rules = grant_path(rules, Path::new(device), access)?;
    }
    Ok(rules)
}

fn grant_path(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    // A path that cannot be opened cannot be granted, and is not needed.
    let Ok(handle) = PathFd::new(path) else { return Ok(rules) };
    let access = match fs::metadata(path).is_ok_and(|metadata| metadata.is_dir()) {
        true => access,
        false => access & AccessFs::from_file(LANDLOCK_ABI),
    };
    rules.add_rule(PathBeneath::new(handle, access))
}

/// Collects everything beneath a folder except the hidden paths, in as few paths as possible.
fn collect_visible(
    path: &Path,
    hidden: &[PathBuf],
    granted: &mut Vec<PathBuf>,
    listed: &mut Vec<(PathBuf, FolderInodeAndTime)>,
) {
    if hidden.iter().any(|hidden| hidden == path) {
        return;
    }
    if !hidden.iter().any(|hidden| hidden.starts_with(path)) {
        return granted.push(path.to_owned());
    }
    // The stamp precedes the listing, so that a change in between is noticed.
    listed.push((path.to_owned(), folder_stamp(path)));
    let Ok(entries) = fs::read_dir(path) else { return };
    for entry in entries.flatten() {
        // The target of a symbolic link is granted under its own path or not at all.
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            collect_visible(&entry.path(), hidden, granted, listed);
        }
    }
}

/// Applies the ruleset to this process, irrevocably. Allocates nothing, so it may run after a fork.
pub(super) fn restrict_self(rules: &OwnedFd) -> io::Result<()> {
    #[allow(
        unsafe_code,
        reason = "the landlock crate's own call allocates, which is not allowed after a fork"
    )]
    // SAFETY: the descriptor `rules` stays open during the call.
    let result =
        unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0_u32) };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
