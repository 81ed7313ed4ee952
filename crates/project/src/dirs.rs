//! Locations of the config, data, cache and plugin folders (`Dirs`), and of the project root.
#![allow(
    clippy::disallowed_methods,
    reason = "the project crate is the only one that accesses config files"
)]

use crate::ProjectError;
use etcetera::BaseStrategy;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The folders that Windlass uses for the current user.
#[derive(Clone, Debug)]
pub struct Dirs {
    pub home: PathBuf,
    /// The user's own config folder.
    pub config: PathBuf,
    /// Sessions, blobs and the list of trusted folders.
    pub data: PathBuf,
    /// Data that can be recreated: caches of long-running processes, copies of their files.
    pub cache: PathBuf,
    /// Plugins and their data. Unlike the other folders, sandboxed processes may read this one.
    pub plugins: PathBuf,
    /// The file of the administrator's managed policy, if this platform can have one.
    pub managed_policy: Option<PathBuf>,
    /// The policy of the tenant of a fleet whose sessions use these folders, as JSON with comments.
    pub tenant_policy: Option<String>,
    /// Folders whose subfolders are checkouts of a project, with the folder of that project, whose
    /// trust and approvals they share.
    pub checkouts: BTreeMap<PathBuf, PathBuf>,
}

/// Fixed path of the managed policy. It is not configurable, so that it cannot be bypassed.
#[cfg(all(unix, not(target_os = "macos")))]
const MANAGED_POLICY_PATH: &str = "/etc/windlass/managed.jsonc";
#[cfg(target_os = "macos")]
const MANAGED_POLICY_PATH: &str = "/Library/Application Support/Windlass/managed.jsonc";
#[cfg(windows)]
const MANAGED_POLICY_PATH: &str = r"C:\ProgramData\Windlass\managed.jsonc";

impl Dirs {
    /// Returns the folders of the current user by the XDG rules (by the Windows rules on Windows).
    pub fn locate() -> Result<Dirs, ProjectError> {
        let base = etcetera::choose_base_strategy().map_err(|_| ProjectError::NoHome)?;
        // A relative `HOME` would depend on the working directory, so a project could choose it.
        if !base.home_dir().is_absolute() {
            return Err(ProjectError::NoHome);
        }
        Ok(Dirs {
            home: base.home_dir().to_owned(),
            config: base.config_dir().join("windlass"),
            data: base.data_dir().join("windlass"),
            cache: base.cache_dir().join("windlass"),
            plugins: base.data_dir().join("windlass-plugins"),
            managed_policy: Some(PathBuf::from(MANAGED_POLICY_PATH)),
            tenant_policy: None,
            checkouts: BTreeMap::new(),
        })
    }

    /// Returns the project that a folder is a checkout of, or the folder itself.
    pub fn project_of<'a>(&'a self, folder: &'a Path) -> &'a Path {
        self.checkout_project(folder).unwrap_or(folder)
    }

    /// Returns the project that a folder is a checkout of.
    pub fn checkout_project(&self, folder: &Path) -> Option<&Path> {
        self.checkouts.get(folder.parent()?).map(PathBuf::as_path)
    }
}

/// Returns the root of the project that contains a folder: the nearest ancestor with `.git` or a
/// Windlass config, else the folder itself. The home folder and its ancestors never count, so that
/// a stray file there does not open everything. A marker owned by another user does not count
/// either. It reads only names and owners.
pub fn find_project_root(folder: &Path, home: &Path) -> PathBuf {
    let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (folder, home) = (canonical(folder), canonical(home));
    let markers = [".git", ".windlass", "windlass.jsonc"];
    for candidate in folder.ancestors() {
        if home.starts_with(candidate) {
            break;
        }
        if markers.iter().any(|marker| has_same_owner(&candidate.join(marker), &folder)) {
            return candidate.to_owned();
        }
    }
    folder
}

/// Returns `true` if a marker exists and has the same owner as the folder.
pub(crate) fn has_same_owner(marker: &Path, folder: &Path) -> bool {
    let (Ok(marker), Ok(folder)) = (marker.symlink_metadata(), folder.metadata()) else {
        return false;
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        marker.uid() == folder.uid()
    }
    #[cfg(not(unix))]
    {
        let _ = (marker, folder);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_the_nearest_marked_folder_below_home() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap().join("home");
        let deep = home.join("code/app/src");
        std::fs::create_dir_all(&deep).unwrap();
        assert_eq!(find_project_root(&deep, &home), deep, "no marker: the folder itself");
        std::fs::create_dir(home.join(".git")).unwrap();
        std::fs::create_dir(folder.path().join(".git")).unwrap();
        assert_eq!(find_project_root(&deep, &home), deep, "home and above never count");
        std::fs::write(home.join("code/app/.git"), "gitdir: elsewhere").unwrap();
        assert_eq!(find_project_root(&deep, &home), home.join("code/app"));
        std::fs::create_dir(home.join("code/app/src/.windlass")).unwrap();
        assert_eq!(find_project_root(&deep, &home), deep);
        #[cfg(unix)]
        {
            let link = folder.path().join("link");
            std::os::unix::fs::symlink(&home, &link).unwrap();
            let lone = link.join("lone");
            std::fs::create_dir(home.join("lone")).unwrap();
            assert_eq!(
                find_project_root(&lone, &link),
                home.join("lone"),
                "a link to home counts as home"
            );
        }
    }
}
