//! Resolves the paths and programs in a command on this machine, for `permission`.
#![allow(clippy::disallowed_methods, reason = "resolves the paths that commands use")]

use crate::confine::{self, SandboxBackend};
use crate::restricted_paths::{RestrictedPathIndex, SKIPPED_FOLDERS};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use windlass_permission::{FolderListing, PathLookup, PathRules, SandboxStatus};

/// Limits of `list_beneath`: the number of entries, and the depth.
const MAX_LISTED_ENTRIES: usize = 2_000;
const MAX_LISTED_DEPTH: usize = 4;
/// Limit of symbolic links followed in one path; no operating system follows more.
const MAX_SYMLINKS: usize = 40;

/// Choice of the sandbox that commands run in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SandboxMode {
    /// The best backend of this machine. `probe` determines it at the first command.
    Best,
    /// A fixed backend.
    Exactly(SandboxBackend),
    /// No sandbox, because the user turned it off.
    Off,
}

impl SandboxMode {
    pub(crate) fn backend(&self) -> SandboxBackend {
        match self {
            SandboxMode::Best => confine::probe().backend.clone(),
            SandboxMode::Exactly(backend) => backend.clone(),
            SandboxMode::Off => SandboxBackend::Off,
        }
    }
}

/// File system and `PATH` of this machine as commands see them.
#[derive(Clone, Debug)]
pub struct MachinePathLookup {
    root: PathBuf,
    home: Option<PathBuf>,
    /// The absolute folders in `PATH`.
    program_folders: Vec<PathBuf>,
    sandbox_mode: SandboxMode,
    is_trusted: bool,
    additional_folders: Vec<PathBuf>,
    readable_folders: Vec<PathBuf>,
    private_paths: Vec<PathBuf>,
    restricted_paths: Arc<RestrictedPathIndex>,
}

impl MachinePathLookup {
    /// Creates the lookup for a workspace whose commands get the environment `inherited`.
    pub fn new(
        root: &Path,
        home: Option<&Path>,
        inherited: &[(OsString, OsString)],
        sandbox_mode: SandboxMode,
    ) -> MachinePathLookup {
        let path = inherited.iter().find(|(name, _)| name == "PATH");
        let folders = path.map(|(_, value)| std::env::split_paths(value).collect());
        let folders: Vec<PathBuf> = folders.unwrap_or_default();
        let program_folders = folders.into_iter().filter(|folder| folder.is_absolute()).collect();
        MachinePathLookup {
            root: root.to_owned(),
            home: home.map(Path::to_owned),
            program_folders,
            sandbox_mode,
            is_trusted: false,
            additional_folders: Vec::new(),
            readable_folders: Vec::new(),
            private_paths: Vec::new(),
            restricted_paths: Arc::new(RestrictedPathIndex::new(root)),
        }
    }

    /// Sets whether the user trusts the workspace.
    #[must_use]
    pub fn with_trust(self, is_trusted: bool) -> MachinePathLookup {
        MachinePathLookup { is_trusted, ..self }
    }

    /// Sets the folders that the user added to the workspace, and the paths that no tool may touch.
    #[must_use]
    pub fn with_folders(
        self,
        additional_folders: Vec<PathBuf>,
        private_paths: Vec<PathBuf>,
    ) -> MachinePathLookup {
        MachinePathLookup { additional_folders, private_paths, ..self }
    }

    /// Sets the folders outside the workspace that the user opened for reading.
    #[must_use]
    pub fn with_readable_folders(self, readable_folders: Vec<PathBuf>) -> MachinePathLookup {
        MachinePathLookup { readable_folders, ..self }
    }

    /// Returns the index of the paths that rules may restrict.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux runs commands"))]
    pub(crate) fn restricted_paths(&self) -> &Arc<RestrictedPathIndex> {
        &self.restricted_paths
    }

    /// Returns the absolute folders in `PATH`.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux runs commands"))]
    pub(crate) fn program_folders(&self) -> &[PathBuf] {
        &self.program_folders
    }

    /// Returns the executable with this bare name from `PATH`, never one in the workspace.
    pub fn find_installed(&self, name: &Path) -> Option<PathBuf> {
        let folders = self.program_folders.iter().map(PathBuf::as_path);
        let outside = folders.filter(|folder| !self.resolve_path(folder).starts_with(&self.root));
        outside.map(|folder| folder.join(name)).find(|path| is_executable(path))
    }
}

impl PathLookup for MachinePathLookup {
    fn workspace_root(&self) -> &Path {
        &self.root
    }

    fn home_dir(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    fn additional_folders(&self) -> &[PathBuf] {
        &self.additional_folders
    }

    fn readable_folders(&self) -> &[PathBuf] {
        &self.readable_folders
    }

    fn private_paths(&self) -> &[PathBuf] {
        &self.private_paths
    }

    fn sandbox_status(&self) -> SandboxStatus {
        match (&self.sandbox_mode, self.sandbox_mode.backend()) {
            (SandboxMode::Off, _) => SandboxStatus::Off,
            (SandboxMode::Best | SandboxMode::Exactly(_), SandboxBackend::Off) => {
                SandboxStatus::Unavailable
            }
            (SandboxMode::Best | SandboxMode::Exactly(_), _) => SandboxStatus::Active,
        }
    }

    fn has_private_tmp(&self) -> bool {
        self.sandbox_mode.backend().has_namespaces()
    }

    fn has_own_loopback(&self) -> bool {
        self.sandbox_mode.backend().has_namespaces()
    }

    fn unhideable_paths(&self, rules: &PathRules) -> Vec<String> {
        match self.sandbox_mode.backend() {
            SandboxBackend::Landlock => {
                let paths = self.restricted_paths.paths(rules).into_iter();
                paths.map(|path| path.to_string_lossy().into_owned()).collect()
            }
            SandboxBackend::Bubblewrap { .. } | SandboxBackend::Seatbelt | SandboxBackend::Off => {
                Vec::new()
            }
        }
    }

    fn resolve_path(&self, path: &Path) -> PathBuf {
        resolve_links(path)
    }

    fn list_beneath(&self, folder: &Path) -> FolderListing {
        let mut listing = FolderListing { paths: Vec::new(), is_complete: true };
        let mut pending = VecDeque::from([(PathBuf::new(), 0)]);
        while let Some((relative, depth)) = pending.pop_front() {
            let entries = folder.join(&relative).read_dir().into_iter().flatten().flatten();
            for entry in entries {
                if listing.paths.len() >= MAX_LISTED_ENTRIES {
                    listing.is_complete = false;
                    return listing;
                }
                let path = relative.join(entry.file_name());
                let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                let is_generated = SKIPPED_FOLDERS.iter().any(|name| entry.file_name() == *name);
                if is_folder && !is_generated && depth < MAX_LISTED_DEPTH {
                    pending.push_back((path.clone(), depth + 1));
                } else if is_folder && !is_generated {
                    listing.is_complete = false;
                }
                listing.paths.push(path);
            }
        }
        listing
    }

    fn find_untrusted_config(&self, folder: &Path, names: &[&str]) -> Option<PathBuf> {
        let folders = folder.ancestors().take_while(|folder| folder.starts_with(&self.root));
        let mut paths = folders.flat_map(|folder| names.iter().map(|name| folder.join(name)));
        paths.find(|path| !self.is_trusted && path.symlink_metadata().is_ok())
    }

    fn find_program(&self, name: &str) -> Option<PathBuf> {
        let is_file = |path: &PathBuf| path.is_file();
        self.program_folders.iter().map(|folder| folder.join(name)).find(is_file)
    }
}

/// Returns true for a regular file with an execute permission.
#[cfg(unix)]
pub(crate) fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    path.is_file()
}

/// Resolves the symbolic links of a path, as far as the path exists.
pub(crate) fn resolve_links(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| resolve_nonexistent(path))
}

/// Resolves a path that does not exist completely. Follows every symbolic link on the way, also a
/// dangling one, and takes missing components as spelled.
fn resolve_nonexistent(path: &Path) -> PathBuf {
    let parts = |path: &Path| -> Vec<PathBuf> {
        path.components().rev().map(|part| PathBuf::from(part.as_os_str())).collect()
    };
    let mut real = PathBuf::new();
    let mut pending = parts(path);
    let mut links = 0;
    while let Some(part) = pending.pop() {
        match part.components().next() {
            Some(Component::ParentDir) => {
                real.pop();
            }
            Some(Component::CurDir) | None => {}
            Some(Component::Prefix(_) | Component::RootDir) => real.push(part),
            Some(Component::Normal(_)) => {
                let next = real.join(part);
                match next.read_link() {
                    Ok(target) if links < MAX_SYMLINKS => {
                        links += 1;
                        pending.extend(parts(&target));
                    }
                    Ok(_) | Err(_) => real = next,
                }
            }
        }
    }
    real
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn machine_paths(root: &Path) -> MachinePathLookup {
        MachinePathLookup::new(root, None, &[], SandboxMode::Off)
    }

    #[test]
    fn missing_folders_and_dangling_symlinks_are_resolved() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().canonicalize().unwrap();
        let root = base.join("w");
        for name in ["w/a", "victim"] {
            std::fs::create_dir_all(base.join(name)).unwrap();
        }
        symlink(base.join("victim"), root.join("out")).unwrap();
        symlink("../victim/new", root.join("dangling")).unwrap();
        symlink("round", root.join("round")).unwrap();
        let paths = machine_paths(&root);
        for (path, real) in [
            ("w/nx/../../victim/x", "victim/x"),
            ("w/nx/../out/x", "victim/x"),
            ("w/a/nx/../../../victim", "victim"),
            ("w/nx/./../b", "w/b"),
            ("w/dangling", "victim/new"),
            ("w/out/nx/../../w/x", "w/x"),
            ("w/nx/y", "w/nx/y"),
            ("w/a/..", "w"),
        ] {
            assert_eq!(paths.resolve_path(&base.join(path)), base.join(real), "{path}");
        }
        for path in ["w/round/../x", "w/nx/../../../../../../../../../../x", "../.."] {
            let real = paths.resolve_path(&base.join(path));
            assert!(!real.components().any(|part| part == Component::ParentDir), "{path}");
        }
    }

    #[test]
    fn a_found_program_is_executable_and_outside_the_workspace() {
        use std::os::unix::fs::PermissionsExt;
        let base = tempfile::tempdir().unwrap();
        let base = base.path().canonicalize().unwrap();
        let folders = ["w/bin", "plain", "link", "bin"].map(|name| base.join(name));
        for folder in [&folders[0], &folders[1], &folders[3]] {
            std::fs::create_dir_all(folder).unwrap();
            std::fs::write(folder.join("tool"), "").unwrap();
        }
        symlink(&folders[0], &folders[2]).unwrap();
        for folder in [&folders[0], &folders[3]] {
            let mode = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(folder.join("tool"), mode).unwrap();
        }
        let path = std::env::join_paths(&folders).unwrap();
        let inherited = [("PATH".into(), path)];
        let paths = MachinePathLookup::new(&base.join("w"), None, &inherited, SandboxMode::Off);
        assert_eq!(paths.find_installed(Path::new("tool")), Some(base.join("bin/tool")));
        assert_eq!(paths.find_installed(Path::new("other")), None);
    }

    #[test]
    fn a_listing_finds_nearby_files_and_says_if_it_is_complete() {
        let base = tempfile::tempdir().unwrap();
        let at = |name: &str| base.path().join(name);
        std::fs::create_dir_all(at("a/b")).unwrap();
        std::fs::create_dir_all(at("target/c")).unwrap();
        std::fs::write(at("a/b/.env"), "").unwrap();
        symlink("/", at("link")).unwrap();
        let paths = machine_paths(base.path());
        let found = paths.list_beneath(base.path());
        assert!(found.is_complete && found.paths.contains(&PathBuf::from("a/b/.env")), "{found:?}");
        assert!(!found.paths.iter().any(|path| path.starts_with("target/c")));
        assert_eq!(found.paths.len(), 5);
        std::fs::create_dir_all(at("1/2/3/4/5/6")).unwrap();
        assert!(!paths.list_beneath(base.path()).is_complete);
        for number in 0..MAX_LISTED_ENTRIES {
            std::fs::write(at(&format!("a/{number}")), "").unwrap();
        }
        let found = paths.list_beneath(base.path());
        assert!(!found.is_complete && found.paths.len() == MAX_LISTED_ENTRIES);
        assert_eq!(
            paths.list_beneath(&at("nothing")),
            FolderListing { paths: Vec::new(), is_complete: true }
        );
    }

    #[test]
    fn only_files_of_an_untrusted_workspace_are_found() {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().join("w");
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("rust-toolchain"), "").unwrap();
        std::fs::write(base.path().join("global.json"), "").unwrap();
        let names = ["global.json", "rust-toolchain"];
        let paths = machine_paths(&root);
        let found = paths.find_untrusted_config(&root.join("a/b"), &names);
        assert_eq!(found, Some(root.join("rust-toolchain")));
        assert_eq!(paths.find_untrusted_config(base.path(), &names), None, "outside");
        let trusted = paths.with_trust(true);
        assert_eq!(trusted.find_untrusted_config(&root, &names), None);
    }
}
