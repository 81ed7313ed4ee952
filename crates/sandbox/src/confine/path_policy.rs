//! Decides which paths a sandboxed command may create, change or remove.

#![allow(clippy::disallowed_methods, reason = "inspects paths for the sandbox itself")]

use super::protected_names::{is_generated, is_protected_parent, write_block_reason};
use super::resolve_path::{ResolvedTarget, SyscallCaller, WalkDecision};
use super::syscall_request::SyscallRequest;
use super::{SandboxBackend, SandboxProfile, landlock};
use std::collections::BTreeSet;
use std::ops::Bound;
use std::path::{Path, PathBuf};

/// The paths of a sandbox that a command may change.
#[derive(Debug)]
pub(super) struct PathPolicy {
    writable_folders: Vec<PathBuf>,
    scratch_folders: Vec<PathBuf>,
    /// Paths that the command may neither create nor change, whatever their names.
    protected: BTreeSet<PathBuf>,
    /// The existing paths of `protected`. Renaming a folder above one of them would give it another
    /// name.
    existing_protected: BTreeSet<PathBuf>,
    other_protection: ExistingPathProtection,
}

/// Another layer that enforces the protection of existing paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExistingPathProtection {
    Mounts,
    Nothing,
}

/// The target of a path argument, and the path as the call spells it if that differs.
pub(super) struct SyscallTarget {
    pub target: ResolvedTarget,
    pub as_written: Option<PathBuf>,
}

/// A path that a call may not affect, and the error number for the process.
pub(super) type PathRefusal = (PathBuf, i32);

impl PathPolicy {
    pub(super) fn new(profile: &SandboxProfile) -> PathPolicy {
        let other_protection = match profile.backend {
            SandboxBackend::Bubblewrap { .. } => ExistingPathProtection::Mounts,
            SandboxBackend::Landlock | SandboxBackend::Seatbelt | SandboxBackend::Off => {
                ExistingPathProtection::Nothing
            }
        };
        let writable_folders: Vec<_> = profile.writable_folders().map(Path::to_owned).collect();
        let mut protected = BTreeSet::new();
        let mut existing_protected = BTreeSet::new();
        let hidden = &profile.hidden_paths;
        let resolved = hidden.iter().filter_map(|path| std::fs::canonicalize(path).ok());
        for path in profile.protected_paths.iter().chain(hidden).cloned().chain(resolved) {
            if !writable_folders.iter().any(|folder| path.starts_with(folder) && path != *folder) {
                continue;
            }
            if std::fs::symlink_metadata(&path).is_ok() {
                existing_protected.insert(path.clone());
            }
            protected.insert(path);
        }
        PathPolicy {
            writable_folders,
            scratch_folders: profile.scratch_folders().map(Path::to_owned).collect(),
            protected,
            existing_protected,
            other_protection,
        }
    }

    /// Returns the policy of a workspace without restricted paths.
    pub(super) fn for_workspace(root: &Path) -> PathPolicy {
        PathPolicy {
            writable_folders: vec![root.to_owned()],
            scratch_folders: vec![root.to_owned()],
            protected: BTreeSet::new(),
            existing_protected: BTreeSet::new(),
            other_protection: ExistingPathProtection::Nothing,
        }
    }

    /// Returns true if the command sees the terminals of the whole machine.
    pub(super) fn shares_terminals(&self) -> bool {
        self.other_protection == ExistingPathProtection::Nothing
    }

    /// Returns the refusal of a call whose paths are protected.
    pub(super) fn check(
        &self,
        process: &SyscallCaller,
        request: &SyscallRequest,
        from: Option<&SyscallTarget>,
        to: Option<&SyscallTarget>,
    ) -> Option<PathRefusal> {
        for target in [from, to].into_iter().flatten() {
            let mut names =
                [target.target.path(), target.as_written.as_deref()].into_iter().flatten();
            if let Some(name) = names.find(|name| self.is_protected(name)) {
                return refuse(name, libc::EROFS);
            }
        }
        let to = to?.target.path()?;
        let from = from.and_then(|from| from.target.path());
        if self.other_protection == ExistingPathProtection::Nothing {
            if !self.is_writable(request, to) {
                return refuse(to, libc::EACCES);
            }
            if let Some(from) = from.filter(|from| !self.is_writable(request, from)) {
                return refuse(from, libc::EXDEV);
            }
        }
        if request.is_removal() {
            let mut paths = from.into_iter().chain([to]);
            if let Some(name) = paths.find(|name| self.has_protected_beneath(name)) {
                return refuse(name, libc::EBUSY);
            }
        }
        let makes_link = matches!(request, SyscallRequest::Symlink { .. })
            || from.is_some_and(|from| process.is_link(from));
        if makes_link && self.is_protected_parent(to) {
            return refuse(to, libc::EROFS);
        }
        let from = from?;
        // On `EXDEV`, a program copies the files one by one, and each copy is checked.
        if self.moves_protected(process, from, to)
            || request.is_exchange() && self.moves_protected(process, to, from)
        {
            return refuse(to, libc::EXDEV);
        }
        None
    }

    /// Returns true if the command may change this path. Mounts decide that elsewhere.
    fn is_writable(&self, request: &SyscallRequest, path: &Path) -> bool {
        let mut folders = self.writable_folders.iter().chain(&self.scratch_folders);
        folders.any(|folder| path.starts_with(folder))
            || matches!(request, SyscallRequest::Open { .. }) && landlock::is_writable_device(path)
    }

    /// Returns true if the command may neither create nor change this path.
    pub(super) fn is_protected(&self, path: &Path) -> bool {
        let mut folders = self.writable_folders.iter();
        folders.any(|folder| {
            relative_name(folder, path).is_some_and(|name| write_block_reason(&name).is_some())
        }) || path.ancestors().any(|ancestor| self.protected.contains(ancestor))
    }

    /// Returns true if an existing protected path is this path or lies beneath it.
    fn has_protected_beneath(&self, path: &Path) -> bool {
        let range = (Bound::Included(path), Bound::Unbounded);
        let mut following = self.existing_protected.range::<Path, _>(range);
        following.next().is_some_and(|existing| existing.starts_with(path))
    }

    /// Returns true if a symbolic link of this name would lead to protected names.
    fn is_protected_parent(&self, path: &Path) -> bool {
        self.writable_folders.iter().any(|folder| {
            relative_name(folder, path).is_some_and(|name| is_protected_parent(&name))
        })
    }

    fn is_generated(&self, path: &Path) -> bool {
        self.writable_folders
            .iter()
            .any(|folder| relative_name(folder, path).is_some_and(|name| is_generated(&name)))
    }

    /// Returns true if moving a folder from `from` to `to` brings a protected path with it, or if
    /// the scan cannot tell.
    fn moves_protected(&self, process: &SyscallCaller, from: &Path, to: &Path) -> bool {
        let is_writable = self.writable_folders.iter().any(|folder| to.starts_with(folder));
        if !is_writable || self.is_generated(to) || !process.is_folder(from) {
            return false;
        }
        // Paths in generated folders were not checked when they were created.
        self.is_generated(from)
            || process.any_beneath(from, |name, is_link| {
                let name = to.join(name);
                match self.is_protected(&name) || is_link && self.is_protected_parent(&name) {
                    true => WalkDecision::Match,
                    false if self.is_generated(&name) => WalkDecision::SkipSubtree,
                    false => WalkDecision::Descend,
                }
            })
    }
}

/// Returns the path relative to a folder that contains it. For a folder inside `.git`, the base is
/// the folder above `.git`, so that the result keeps the name `.git`.
fn relative_name(folder: &Path, path: &Path) -> Option<String> {
    let is_git = |ancestor: &&Path| ancestor.file_name().is_some_and(|name| name == ".git");
    let base = folder.ancestors().find(is_git).and_then(Path::parent).unwrap_or(folder);
    path.starts_with(folder).then_some(())?;
    Some(path.strip_prefix(base).ok()?.to_string_lossy().into_owned())
}

fn refuse(name: &Path, error: i32) -> Option<PathRefusal> {
    Some((name.to_owned(), error))
}
