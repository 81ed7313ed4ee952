//! Translates a `SandboxProfile` into arguments for bubblewrap.
//!
//! Later mounts cover earlier ones, so this module is about their order: everything read-only, then
//! hidden paths above a visible folder, then the visible folders, then the protected paths in them,
//! then all other hidden paths, and private paths wherever they are. Hidden paths come last so that
//! replacing a protected path by a symbolic link in the meantime uncovers nothing.
//!
//! Two options are left out. `--die-with-parent`: background processes outlive their command, and
//! the process that started the command ends them. `--new-session`: a command in a terminal of its
//! own keeps that terminal; seccomp filters prevent it from typing into the terminal for others.

#![allow(clippy::disallowed_methods, reason = "inspects the paths that the sandbox mounts over")]

use super::{SandboxProfile, VISIBLE_RUN_FOLDERS};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};

/// The command that bubblewrap runs.
pub(super) struct BwrapInnerCommand<'a> {
    pub program: &'a OsStr,
    pub arguments: Vec<&'a OsStr>,
    pub folder: Option<&'a Path>,
}

/// Limits the protected paths below the top level that get a mount. Each mount takes time, and the
/// `PathGuard` protects these paths as well.
const MAX_NESTED_MOUNTS: usize = 64;

/// Size limit of `/dev/shm`, which is private to the command.
const SHARED_MEMORY_BYTES: &str = "1073741824";

/// The step that moves the command into a network namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NetworkIsolation {
    /// Bubblewrap creates a namespace for the command.
    ByBubblewrap,
    /// The process that executes bubblewrap is in the namespace already, because it is that of the
    /// session, or because the proxy listens there.
    BeforeBubblewrap,
}

/// Builds the arguments after the program name. `filters` are file descriptors of BPF programs.
pub(super) fn build_arguments(
    profile: &SandboxProfile,
    command: &BwrapInnerCommand<'_>,
    filters: &[RawFd],
    isolation: NetworkIsolation,
) -> Vec<OsString> {
    let mut arguments = BwrapArguments::default();
    arguments.add(["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]);
    arguments.add(["--unshare-cgroup-try"]);
    if isolation == NetworkIsolation::ByBubblewrap {
        arguments.add(["--unshare-net"]);
    }
    arguments.add(["--cap-drop", "ALL", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]);
    // Files in memory have no other limit, and remain when the process that wrote them is killed.
    arguments.add(["--size", SHARED_MEMORY_BYTES, "--tmpfs", "/dev/shm"]);
    arguments.add(["--remount-ro", "/dev"]);
    for path in ["/tmp", "/var/tmp"].map(Path::new) {
        if is_real_folder(path) {
            arguments.mount("--bind", &profile.temp_dir, path);
        }
    }
    let masks = masked_paths(profile);
    let private = canonical_paths(&profile.private_paths);
    let (enclosing, others): (Vec<&PathBuf>, Vec<&PathBuf>) = masks
        .iter()
        .partition(|mask| mounted_folders(profile).any(|folder| folder.starts_with(mask)));
    enclosing.iter().for_each(|mask| arguments.mask(mask));
    for folder in mounted_folders(profile) {
        let is_writable = profile.changeable_folders().any(|other| other == folder);
        arguments.mount(if is_writable { "--bind" } else { "--ro-bind" }, folder, folder);
    }
    let hidden: Vec<&PathBuf> = others.iter().copied().chain(&private).collect();
    protect_paths(profile, &hidden, &mut arguments);
    others.iter().for_each(|mask| arguments.mask(mask));
    private.iter().for_each(|mask| arguments.mask(mask));
    for folder in VISIBLE_RUN_FOLDERS {
        arguments.add(["--ro-bind-try", folder, folder]);
    }
    for mask in masks.iter().chain(&private).filter(|mask| mask.is_dir()) {
        arguments.add([OsStr::new("--remount-ro"), mask.as_os_str()]);
    }
    // A process that is root outside could write kernel settings in `/proc`, whatever its user
    // inside the sandbox.
    arguments.add(["--remount-ro", "/proc"]);
    for filter in filters {
        arguments.add(["--add-seccomp-fd", &filter.to_string()]);
    }
    arguments.add([OsStr::new("--chdir"), command.folder.unwrap_or(&profile.root).as_os_str()]);
    arguments.add([OsStr::new("--"), command.program]);
    arguments.add(command.arguments.iter());
    arguments.0
}

/// Returns the workspace, the other writable folders and the readable paths, sorted so that nested
/// folders come after their parents.
fn mounted_folders(profile: &SandboxProfile) -> impl Iterator<Item = &Path> {
    let mut folders: Vec<&Path> = profile.shown_paths().collect();
    folders.sort();
    folders.dedup();
    folders.into_iter()
}

/// Returns the canonical paths to cover: `hidden_paths`, and `/run` because of the system's
/// sockets.
fn masked_paths(profile: &SandboxProfile) -> Vec<PathBuf> {
    let run = ["/run", "/var/run"].map(Path::new).into_iter().filter(|path| is_real_folder(path));
    let mut masks: Vec<PathBuf> =
        run.map(Path::to_owned).chain(canonical_paths(&profile.hidden_paths)).collect();
    masks.sort();
    // Covering a folder covers everything beneath it, unless a visible folder lies in between.
    let is_uncovered = |path: &Path, mask: &Path| {
        mounted_folders(profile).any(|folder| folder.starts_with(mask) && path.starts_with(folder))
    };
    masks.dedup_by(|path, previous| path.starts_with(&*previous) && !is_uncovered(path, previous));
    // Hiding the workspace itself from its own commands is never intended.
    masks.retain(|mask| mounted_folders(profile).all(|folder| folder != mask));
    masks
}

/// Returns the canonical forms of the existing paths, sorted and without duplicates.
fn canonical_paths(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut real: Vec<PathBuf> =
        paths.iter().filter_map(|path| fs::canonicalize(path).ok()).collect();
    real.sort();
    real.dedup();
    real
}

/// Mounts protected paths read-only, and makes every folder on the way to a protected or hidden
/// path a mount of its own. A mount point cannot be renamed, so no other folder can take its place.
fn protect_paths(profile: &SandboxProfile, hidden: &[&PathBuf], arguments: &mut BwrapArguments) {
    let mut parents: Vec<&Path> = Vec::new();
    let mut protected: Vec<&Path> = Vec::new();
    let mut remaining = MAX_NESTED_MOUNTS;
    let base_of = |path: &Path| {
        let mut folders = profile.changeable_folders();
        folders.find(|base| path.starts_with(base) && path != *base)
    };
    for path in hidden {
        if let Some(base) = base_of(path) {
            parents.extend(path.ancestors().skip(1).take_while(|ancestor| *ancestor != base));
        }
    }
    for path in &profile.protected_paths {
        let Some(base) = base_of(path) else { continue };
        // A symbolic link leads elsewhere, and a path that has vanished can only be protected by
        // its name.
        if !fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir() || metadata.is_file())
        {
            continue;
        }
        let mut parts = path.strip_prefix(base).into_iter().flat_map(Path::components);
        let is_git = parts.next().is_some_and(|part| part.as_os_str() == ".git");
        if !is_git && parts.next().is_some() {
            let Some(rest) = remaining.checked_sub(1) else { continue };
            remaining = rest;
        }
        let ancestors = path.ancestors().skip(1).take_while(|ancestor| *ancestor != base);
        parents.extend(ancestors);
        protected.push(path);
    }
    parents.sort();
    parents.dedup();
    protected.sort();
    protected.dedup();
    parents.iter().for_each(|path| arguments.mount("--bind", path, path));
    protected.iter().for_each(|path| arguments.mount("--ro-bind", path, path));
}

fn is_real_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

#[derive(Default)]
struct BwrapArguments(Vec<OsString>);

impl BwrapArguments {
    fn add(&mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) {
        self.0.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
    }

    fn mount(&mut self, option: &str, source: &Path, target: &Path) {
        self.add([OsStr::new(option), source.as_os_str(), target.as_os_str()]);
    }

    /// Covers a path with a `tmpfs` or `/dev/null`, so that nothing can be read there.
    fn mask(&mut self, path: &Path) {
        match path.is_dir() {
            true => self.add([OsStr::new("--tmpfs"), path.as_os_str()]),
            false => self.mount("--ro-bind", Path::new("/dev/null"), path),
        }
    }
}
