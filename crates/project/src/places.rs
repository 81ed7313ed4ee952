//! Where things are.
#![allow(clippy::disallowed_methods, reason = "project is the door to config files")]

use crate::Error;
use etcetera::BaseStrategy;
use std::path::{Path, PathBuf};

/// The folders of a person.
#[derive(Clone, Debug)]
pub struct Places {
    /// Their home.
    pub home: PathBuf,
    /// Their own config.
    pub config: PathBuf,
    /// Sessions, blobs and the list of trusted folders.
    pub data: PathBuf,
    /// What can be made again: caches of programs that are kept running, copies of their files.
    pub cache: PathBuf,
    /// Plugins, and what they keep. Unlike the rest, programs in a sandbox may read it.
    pub plugins: PathBuf,
    /// The policy of whoever runs the machine, where there can be one.
    pub managed: Option<PathBuf>,
}

/// Where that policy is. It is no setting, so that nobody sets it aside.
#[cfg(all(unix, not(target_os = "macos")))]
const MANAGED: &str = "/etc/windlass/managed.jsonc";
#[cfg(target_os = "macos")]
const MANAGED: &str = "/Library/Application Support/Windlass/managed.jsonc";
#[cfg(windows)]
const MANAGED: &str = r"C:\ProgramData\Windlass\managed.jsonc";

impl Places {
    /// The folders of whoever runs this, by the XDG rules (by the Windows ones on Windows).
    pub fn find() -> Result<Places, Error> {
        let base = etcetera::choose_base_strategy().map_err(|_| Error::NoHome)?;
        // A home that depends on where we are would be wherever a project wants it.
        if !base.home_dir().is_absolute() {
            return Err(Error::NoHome);
        }
        Ok(Places {
            home: base.home_dir().to_owned(),
            config: base.config_dir().join("windlass"),
            data: base.data_dir().join("windlass"),
            cache: base.cache_dir().join("windlass"),
            plugins: base.data_dir().join("windlass-plugins"),
            managed: Some(PathBuf::from(MANAGED)),
        })
    }
}

/// The project a folder belongs to: the nearest one upwards that has `.git` or a Windlass config,
/// the folder itself if there is none. The home folder and what is above it never count, so that
/// a stray file there does not open everything, nor does a mark that somebody else put there.
/// Looks at names and owners only.
pub fn find_root(folder: &Path, home: &Path) -> PathBuf {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (folder, home) = (real(folder), real(home));
    let marks = [".git", ".windlass", "windlass.jsonc"];
    for candidate in folder.ancestors() {
        if home.starts_with(candidate) {
            break;
        }
        if marks.iter().any(|mark| same_owner(&candidate.join(mark), &folder)) {
            return candidate.to_owned();
        }
    }
    folder
}

/// True if a mark exists and belongs to whoever the folder belongs to.
pub(crate) fn same_owner(mark: &Path, folder: &Path) -> bool {
    let (Ok(mark), Ok(folder)) = (mark.symlink_metadata(), folder.metadata()) else { return false };
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        mark.uid() == folder.uid()
    }
    #[cfg(not(unix))]
    {
        let _ = (mark, folder);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_the_nearest_marked_folder_below_home() {
        let yard = tempfile::tempdir().unwrap();
        let home = yard.path().canonicalize().unwrap().join("home");
        let deep = home.join("code/app/src");
        std::fs::create_dir_all(&deep).unwrap();
        assert_eq!(find_root(&deep, &home), deep, "no mark: the folder itself");
        std::fs::create_dir(home.join(".git")).unwrap();
        std::fs::create_dir(yard.path().join(".git")).unwrap();
        assert_eq!(find_root(&deep, &home), deep, "home and above never count");
        std::fs::write(home.join("code/app/.git"), "gitdir: elsewhere").unwrap();
        assert_eq!(find_root(&deep, &home), home.join("code/app"));
        std::fs::create_dir(home.join("code/app/src/.windlass")).unwrap();
        assert_eq!(find_root(&deep, &home), deep);
        #[cfg(unix)]
        {
            let link = yard.path().join("link");
            std::os::unix::fs::symlink(&home, &link).unwrap();
            let lone = link.join("lone");
            std::fs::create_dir(home.join("lone")).unwrap();
            assert_eq!(find_root(&lone, &link), home.join("lone"), "home by another name is home");
        }
    }
}
