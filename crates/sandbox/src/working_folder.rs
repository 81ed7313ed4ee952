//! The folder in which the user started, if it lies below the root of the workspace.
//!
//! Tools name files relative to the workspace. A path from the model or the user is looked up in the
//! working folder first and then in the workspace, so that both the paths in the output of a command
//! and those in the results of tools are understood.
#![allow(clippy::disallowed_methods, reason = "inspects names to find out which path is meant")]

use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};
use windlass_protocol::path_escapes::{escape_path_lossy, unescape_path};

/// The folder to which relative paths refer.
#[derive(Clone, Debug, Default)]
pub struct WorkingFolder {
    root: PathBuf,
    /// Absolute path of a folder below `root`; `None` if it is `root` itself.
    folder: Option<PathBuf>,
}

impl WorkingFolder {
    /// Creates the working folder of a workspace. A folder that is not below `root` does not count.
    pub(crate) fn new(root: &Path, folder: &Path) -> WorkingFolder {
        let is_below = folder.starts_with(root) && folder != root;
        WorkingFolder { root: root.to_owned(), folder: is_below.then(|| folder.to_owned()) }
    }

    /// Returns the folder as an absolute path, if it is not the root of the workspace.
    pub fn path(&self) -> Option<Cow<'_, str>> {
        self.folder.as_ref().map(|folder| escape_path_lossy(folder.as_os_str()))
    }

    /// Returns an absolute path for a relative one that is meant in the working folder, and any
    /// other path as it is.
    pub fn resolve<'a>(&self, spelled: &'a str) -> Cow<'a, str> {
        let Some(folder) = &self.folder else { return Cow::Borrowed(spelled) };
        let relative = unescape_path(spelled);
        if spelled.is_empty() || relative.is_absolute() {
            return Cow::Borrowed(spelled);
        }
        let (here, in_root) = (join_normalized(folder, &relative), self.root.join(&relative));
        let first = relative.components().next();
        let exists = |path: &Path| path.symlink_metadata().is_ok();
        // A path that does not exist is in the folder that has its first part.
        let is_in_root = || {
            exists(&in_root)
                || first.is_some_and(|part| {
                    exists(&self.root.join(part)) && !exists(&folder.join(part))
                })
        };
        match exists(&here) || !is_in_root() {
            true => Cow::Owned(escape_path_lossy(here.as_os_str()).into_owned()),
            false => Cow::Borrowed(spelled),
        }
    }

    /// Returns a path relative to the workspace in a form that `resolve` does not take for another
    /// one.
    pub fn show<'a>(&self, path: &'a str) -> Cow<'a, str> {
        let Some(folder) = &self.folder else { return Cow::Borrowed(path) };
        let relative = unescape_path(path);
        match relative.is_absolute() || folder.join(&relative).symlink_metadata().is_err() {
            true => Cow::Borrowed(path),
            false => {
                let absolute = self.root.join(&relative);
                Cow::Owned(escape_path_lossy(absolute.as_os_str()).into_owned())
            }
        }
    }
}

/// Joins a relative path to a folder, without `.` and `..`.
fn join_normalized(folder: &Path, relative: &Path) -> PathBuf {
    let mut joined = folder.to_owned();
    for part in relative.components() {
        match part {
            Component::ParentDir => drop(joined.pop()),
            Component::CurDir => {}
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => joined.push(part),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_looked_up_in_the_folder_first_and_then_in_the_workspace() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let app = root.join("packages/app");
        std::fs::create_dir_all(app.join("src")).unwrap();
        std::fs::create_dir_all(root.join("docs")).unwrap();
        for name in ["README.md", "only-root.md", "packages/app/README.md"] {
            std::fs::write(root.join(name), "").unwrap();
        }
        let folder = WorkingFolder::new(&root, &app);
        let in_app = |path: &str| format!("{}/{path}", app.display());
        for (spelled, expected) in [
            ("README.md", in_app("README.md")),
            ("src/new.rs", in_app("src/new.rs")),
            ("new.rs", in_app("new.rs")),
            ("new/file.rs", in_app("new/file.rs")),
            ("../other", format!("{}/packages/other", root.display())),
            (".", app.display().to_string()),
            ("only-root.md", "only-root.md".to_owned()),
            ("docs/new.md", "docs/new.md".to_owned()),
            ("packages/app/src/new.rs", "packages/app/src/new.rs".to_owned()),
            ("/etc/hosts", "/etc/hosts".to_owned()),
        ] {
            assert_eq!(folder.resolve(spelled), expected, "{spelled}");
        }
        assert_eq!(folder.show("README.md"), format!("{}/README.md", root.display()));
        assert_eq!(folder.show("packages/app/README.md"), "packages/app/README.md");
        for same in [WorkingFolder::new(&root, &root), WorkingFolder::new(&root, Path::new("/"))] {
            assert_eq!((same.resolve("README.md"), same.path()), ("README.md".into(), None));
        }
    }
}
