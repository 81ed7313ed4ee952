//! The `PathLookup` trait: questions of the policy about the file system.

use crate::{PathRules, SandboxStatus};
use std::fmt;
use std::path::{Path, PathBuf};

/// Resolves the paths and programs that a command line names. The sandbox implements it; this crate
/// never touches the file system.
pub trait PathLookup: fmt::Debug + Send + Sync {
    /// Returns the root of the workspace.
    fn workspace_root(&self) -> &Path;
    /// Returns the user's home folder.
    fn home_dir(&self) -> Option<&Path>;
    /// Returns the folders outside the workspace that the user added to it.
    fn additional_folders(&self) -> &[PathBuf] {
        &[]
    }
    /// Returns the folders outside the workspace that the user opened for reading.
    fn readable_folders(&self) -> &[PathBuf] {
        &[]
    }
    /// Returns true for a path below one of the `readable_folders`.
    fn is_in_readable_folder(&self, path: &Path) -> bool {
        self.readable_folders().iter().any(|folder| path.starts_with(folder))
    }
    /// Returns the paths of Windlass itself, which no tool may touch.
    fn private_paths(&self) -> &[PathBuf] {
        &[]
    }
    /// Resolves the symbolic links of an absolute path, as far as the path exists.
    fn resolve_path(&self, path: &Path) -> PathBuf;
    /// Returns the state of the sandbox that commands run in.
    fn sandbox_status(&self) -> SandboxStatus;
    /// Returns true if `localhost` means the sandbox of the session, and not this machine.
    fn has_own_loopback(&self) -> bool;
    /// Returns true if commands see a private folder as `/tmp` and `/var/tmp`.
    fn has_private_tmp(&self) -> bool;
    /// Lists the contents of a folder recursively, within limits that keep the call fast.
    fn list_beneath(&self, folder: &Path) -> FolderListing;
    /// Returns the paths of the workspace that the rules may restrict, if the sandbox cannot hide
    /// paths from a command that may write.
    fn unhideable_paths(&self, rules: &PathRules) -> Vec<String>;
    /// Returns the first of these files in a folder or in a folder above it, up to the workspace
    /// root, unless the user trusts the workspace.
    fn find_untrusted_config(&self, folder: &Path, names: &[&str]) -> Option<PathBuf>;
    /// Finds the program that a command of this name would run.
    fn find_program(&self, name: &str) -> Option<PathBuf>;
}

/// The result of `PathLookup::list_beneath`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FolderListing {
    /// Files and folders, relative to the listed folder.
    pub paths: Vec<PathBuf>,
    /// True if the listing omits nothing except generated folders (build output and downloaded
    /// packages).
    pub is_complete: bool,
}
