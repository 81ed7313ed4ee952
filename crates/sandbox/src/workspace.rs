//! The workspace: one folder, accessed through its directory handle.

#[cfg(not(target_os = "linux"))]
use crate::command::unsupported::WorkspaceJobs;
#[cfg(target_os = "linux")]
use crate::command::workspace_jobs::WorkspaceJobs;
use crate::error::Error;
use crate::network::policy::WorkspaceNetworkSettings;
use crate::path_lookup::resolve_links;
use crate::working_folder::WorkingFolder;
use cap_std::fs::Dir;
use std::borrow::Cow;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, OnceLock};
use windlass_protocol::ToolAccess;
use windlass_protocol::path_escapes::{
    escape_path, escape_path_lossy, is_deceptive, unescape_path,
};

/// Modification time and size of a file, without its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStat {
    /// Time of the last change since the Unix epoch.
    pub modified: std::time::Duration,
    /// Size in bytes.
    pub size: u64,
}

/// The folder that a session works in. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Workspace {
    root: PathBuf,
    dir: Arc<Dir>,
    /// The root folder of the machine, for paths outside the workspace; opened when needed.
    machine_root: Arc<OnceLock<Dir>>,
    pub(crate) jobs: Option<Arc<WorkspaceJobs>>,
    /// Folder for the downloads and caches of long-running processes.
    pub(crate) process_cache: Option<Arc<Path>>,
    pub(crate) network: WorkspaceNetworkSettings,
    working_folder: Arc<WorkingFolder>,
}

impl Workspace {
    /// Opens a folder as a workspace. All later access uses its directory handle, so renaming a
    /// parent folder, or replacing one by a symbolic link, changes nothing.
    #[allow(clippy::disallowed_methods, reason = "the only place that uses ambient authority")]
    pub fn open(root: &Path) -> Result<Workspace, Error> {
        let to_error = |source| Error::Io { path: root.display().to_string(), source };
        let root = root.canonicalize().map_err(to_error)?;
        let dir = Dir::open_ambient_dir(&root, cap_std::ambient_authority()).map_err(to_error)?;
        Ok(Workspace {
            root,
            dir: Arc::new(dir),
            machine_root: Arc::default(),
            jobs: None,
            process_cache: None,
            network: WorkspaceNetworkSettings::default(),
            working_folder: Arc::default(),
        })
    }

    /// Sets the folder to which relative paths of calls refer.
    #[must_use]
    pub fn with_working_folder(mut self, folder: &Path) -> Workspace {
        self.working_folder = Arc::new(WorkingFolder::new(&self.root, folder));
        self
    }

    /// Returns the folder to which relative paths of calls refer.
    pub fn working_folder(&self) -> &WorkingFolder {
        &self.working_folder
    }

    /// Returns the canonical path of the workspace, without symbolic links.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Fails if another folder has the path of the workspace now: commands, which use the path,
    /// would see other files than file tools, which use the directory handle.
    #[cfg(unix)]
    #[allow(clippy::disallowed_methods, reason = "reads only which folder has the path")]
    pub fn check_root(&self) -> Result<(), Error> {
        use cap_std::fs::MetadataExt as _;
        use std::os::unix::fs::MetadataExt as _;
        let opened = self.dir.dir_metadata();
        let current = std::fs::symlink_metadata(&self.root);
        match (opened, current) {
            (Ok(opened), Ok(current))
                if (opened.dev(), opened.ino()) == (current.dev(), current.ino()) =>
            {
                Ok(())
            }
            _ => Err(Error::WorkspaceReplaced { path: self.root.display().to_string() }),
        }
    }

    /// On other systems an open folder cannot be replaced.
    #[cfg(not(unix))]
    pub fn check_root(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Returns modification time and size of a regular file, without reading its content.
    pub fn stat(&self, real: &str) -> Option<FileStat> {
        let (dir, path) = self.handle_of(real).ok()?;
        let metadata = dir.symlink_metadata(path).ok().filter(|metadata| metadata.is_file())?;
        let changed = metadata.modified().ok()?.into_std().duration_since(std::time::UNIX_EPOCH);
        Some(FileStat { modified: changed.unwrap_or_default(), size: metadata.len() })
    }

    /// Returns the absolute path of a resolved path.
    pub fn absolute_path(&self, real: &str) -> PathBuf {
        if real == "." { self.root.clone() } else { self.root.join(unescape_path(real)) }
    }

    /// Returns the directory handle that a resolved path is opened beneath, and the path relative
    /// to it: the workspace, or the root folder of the machine for a path outside.
    #[allow(clippy::disallowed_methods, reason = "a path outside is opened only with a grant")]
    pub(crate) fn handle_of<'a>(&self, real: &'a str) -> Result<(&Dir, Cow<'a, Path>), Error> {
        let Some(inner) = real.strip_prefix('/') else {
            return Ok((&self.dir, unescape_path(real)));
        };
        let machine_root = match self.machine_root.get() {
            Some(machine_root) => machine_root,
            None => {
                let opened = Dir::open_ambient_dir("/", cap_std::ambient_authority());
                let opened =
                    opened.map_err(|source| Error::Io { path: real.to_owned(), source })?;
                self.machine_root.get_or_init(|| opened)
            }
        };
        let inner = if inner.is_empty() { "." } else { inner };
        Ok((machine_root, unescape_path(inner)))
    }

    /// Returns the access with its path resolved, so that permission decides on the path that the
    /// call really touches.
    pub fn resolve_access(&self, access: &ToolAccess) -> Result<ToolAccess, Error> {
        Ok(match access {
            ToolAccess::Read { path } => ToolAccess::Read { path: self.resolve_path(path)? },
            ToolAccess::Search { path } => ToolAccess::Search { path: self.resolve_path(path)? },
            ToolAccess::Edit { path } => ToolAccess::Edit { path: self.resolve_path(path)? },
            ToolAccess::RunCommand { command, folder } => ToolAccess::RunCommand {
                command: command.clone(),
                folder: self.resolve_path(folder)?,
            },
            ToolAccess::ReadBlob { .. }
            | ToolAccess::ReadSkill { .. }
            | ToolAccess::Connect { .. }
            | ToolAccess::Fetch { .. }
            | ToolAccess::LeaveSandbox { .. }
            | ToolAccess::Subagent { .. }
            | ToolAccess::UseTool { .. }
            | ToolAccess::StartProcess { .. }
            | ToolAccess::AcceptDefinition { .. } => access.clone(),
        })
    }

    /// Returns the access with its path as spelled, but in the form that permission rules use:
    /// relative to the workspace, without `.` and doubled slashes. Does not access the disk.
    pub fn normalize_access(&self, access: &ToolAccess) -> ToolAccess {
        let normalize = |path: &String| match self.strip_root(path) {
            Ok(path) => {
                let parts = path.components().filter(|part| *part != Component::CurDir);
                let parts: Vec<_> = parts.map(|part| escape_path_lossy(part.as_os_str())).collect();
                if parts.is_empty() { ".".to_owned() } else { parts.join("/") }
            }
            Err(_) => path.clone(),
        };
        match access {
            ToolAccess::Read { path } => ToolAccess::Read { path: normalize(path) },
            ToolAccess::Search { path } => ToolAccess::Search { path: normalize(path) },
            ToolAccess::Edit { path } => ToolAccess::Edit { path: normalize(path) },
            ToolAccess::RunCommand { command, folder } => {
                ToolAccess::RunCommand { command: command.clone(), folder: normalize(folder) }
            }
            ToolAccess::ReadBlob { .. }
            | ToolAccess::ReadSkill { .. }
            | ToolAccess::Connect { .. }
            | ToolAccess::Fetch { .. }
            | ToolAccess::LeaveSandbox { .. }
            | ToolAccess::Subagent { .. }
            | ToolAccess::UseTool { .. }
            | ToolAccess::StartProcess { .. }
            | ToolAccess::AcceptDefinition { .. } => access.clone(),
        }
    }

    /// Resolves a path as the model spelled it. The result is relative to the workspace, or absolute
    /// for a path outside, with `/` as separator and without `.`, `..` or symbolic links. For a path
    /// that does not exist yet, resolves its nearest existing folder and appends the rest.
    pub fn resolve_path(&self, spelled: &str) -> Result<String, Error> {
        match self.resolve_inside(spelled) {
            Err(Error::OutsideWorkspace { .. }) if cfg!(unix) => self.resolve_outside(spelled),
            resolved => resolved,
        }
    }

    fn resolve_outside(&self, spelled: &str) -> Result<String, Error> {
        let resolved = resolve_links(&self.root.join(unescape_path(spelled)));
        if let Some(inner) =
            resolved.strip_prefix(&self.root).ok().and_then(|inner| escape_path(inner.as_os_str()))
        {
            let inner = if inner.is_empty() { "." } else { &*inner };
            return self.resolve_inside(inner);
        }
        let escaped = escape_path(resolved.as_os_str());
        escaped.map(Cow::into_owned).ok_or_else(|| Error::InvalidPath { path: spelled.to_owned() })
    }

    /// Resolves a path like `resolve_path`, but fails if it leads out of the workspace.
    pub fn resolve_inside(&self, spelled: &str) -> Result<String, Error> {
        let relative = self.strip_root(spelled)?;
        // A path that is not a symbolic link lies in its folder, however often it is replaced
        // meanwhile. Canonicalizing the file itself during a replacement could return the name of a
        // deleted file.
        if let (Some(folder), Some(Component::Normal(name))) =
            (relative.parent(), relative.components().next_back())
            && self.dir.symlink_metadata(&relative).is_ok_and(|metadata| !metadata.is_symlink())
            && let (Ok(folder), Some(name)) =
                (self.canonicalize(folder, spelled), escape_path(name))
        {
            return Ok(if folder == "." { name.into_owned() } else { format!("{folder}/{name}") });
        }
        self.canonicalize(&relative, spelled)
    }

    fn canonicalize(&self, relative: &Path, spelled: &str) -> Result<String, Error> {
        let outside = || Error::OutsideWorkspace { path: spelled.to_owned() };
        let mut tail = Vec::new();
        let mut head = relative;
        let base = loop {
            match self.dir.canonicalize(if head == Path::new("") { Path::new(".") } else { head }) {
                Ok(base) => break base,
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    match head.components().next_back() {
                        Some(Component::Normal(name)) => tail.push(name),
                        _ => return Err(outside()),
                    }
                    head = head.parent().ok_or_else(outside)?;
                }
                // cap-std reports an escape as an error without an OS error code.
                Err(error) if error.raw_os_error().is_none() => return Err(outside()),
                Err(source) => return Err(Error::Io { path: spelled.to_owned(), source }),
            }
        };
        let parts = base.iter().chain(tail.into_iter().rev());
        let mut real = Vec::new();
        for part in parts {
            match escape_path(part) {
                Some(part) if matches!(&*part, "." | "") => {}
                Some(part) if part != ".." => real.push(part),
                Some(_) | None => return Err(outside()),
            }
        }
        Ok(if real.is_empty() { ".".to_owned() } else { real.join("/") })
    }

    /// Returns the path relative to the root. An absolute path must already begin with the root.
    fn strip_root(&self, spelled: &str) -> Result<PathBuf, Error> {
        if spelled.is_empty() || spelled.contains(is_deceptive) {
            return Err(Error::InvalidPath { path: spelled.to_owned() });
        }
        let path = unescape_path(spelled);
        if !path.has_root() && !path.is_absolute() {
            // `components` drops a trailing slash, which would follow a symbolic link.
            return Ok(path.components().collect());
        }
        let relative = path.strip_prefix(&self.root);
        relative
            .map(|relative| relative.components().collect())
            .map_err(|_| Error::OutsideWorkspace { path: spelled.to_owned() })
    }
}

#[cfg(all(test, unix))]
#[allow(clippy::disallowed_methods, reason = "tests replace the folder from outside")]
mod tests {
    use super::Workspace;
    use crate::error::Error;
    use std::fs;

    #[test]
    fn a_workspace_that_was_removed_or_replaced_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("work");
        fs::create_dir(&root).unwrap();
        let workspace = Workspace::open(&root).unwrap();
        assert!(workspace.check_root().is_ok());
        let is_replaced = || matches!(workspace.check_root(), Err(Error::WorkspaceReplaced { .. }));
        fs::rename(&root, folder.path().join("moved")).unwrap();
        assert!(is_replaced(), "moved away");
        fs::create_dir(&root).unwrap();
        assert!(is_replaced(), "made anew");
        fs::remove_dir(&root).unwrap();
        std::os::unix::fs::symlink("/etc", &root).unwrap();
        assert!(is_replaced(), "a link");
        fs::remove_file(&root).unwrap();
        fs::rename(folder.path().join("moved"), &root).unwrap();
        assert!(workspace.check_root().is_ok(), "moved back");
    }
}
