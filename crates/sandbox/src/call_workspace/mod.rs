//! The workspace as one tool call sees it: limited to its `Grant`.

use crate::error::{Error, io_error};
use crate::fs::file_change::{ChangeRecorder, FileContent};
use crate::fs::file_io::{read_content, read_options};
use crate::fs::resolved_path::ResolvedPath;
use crate::workspace::Workspace;
use cap_fs_ext::DirExt;
use cap_std::fs::Dir;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use windlass_permission::{Grant, PermissionLevel};
use windlass_protocol::path_escapes::{escape_path_lossy, unescape_path};
use windlass_protocol::{PermissionMode, ToolAccess};

/// Access to the workspace for a tool, limited to its `Grant`.
pub struct CallWorkspace {
    workspace: Workspace,
    grant: Grant,
    recorder: Option<Arc<dyn ChangeRecorder>>,
}

/// An opened file or the listing of a folder.
pub enum OpenedPath {
    /// A file, opened for reading.
    File(std::fs::File),
    /// The sorted names of the entries of a folder, with `/` after folders.
    Folder(Vec<String>),
}

impl Workspace {
    /// Opens the workspace for reading, limited to the `Grant`.
    pub fn open_read_only(&self, grant: Grant) -> CallWorkspace {
        CallWorkspace { workspace: self.clone(), grant, recorder: None }
    }

    /// Opens the workspace for reading and writing, limited to the grant. The `ChangeRecorder`
    /// records every change before it happens.
    pub fn open_granted(&self, grant: Grant, recorder: Arc<dyn ChangeRecorder>) -> CallWorkspace {
        CallWorkspace { workspace: self.clone(), grant, recorder: Some(recorder) }
    }
}

impl CallWorkspace {
    /// Opens a file or lists a folder.
    pub fn read(&self, path: &str) -> Result<OpenedPath, Error> {
        let real = self.workspace.resolve_path(path)?;
        self.check_granted(ToolAccess::Read { path: real.clone() }, &real)?;
        if matches!(&*real, "." | "/") {
            let (dir, _) = self.workspace.handle_of(&real)?;
            return list_names(dir, &real).map(OpenedPath::Folder);
        }
        let target = self.open_existing_parent(real)?;
        let file = target.parent.open_with(&target.name, &read_options());
        let file = file.map_err(|error| io_error(&target.path, error))?;
        let kind = file.metadata().map_err(|error| io_error(&target.path, error))?.file_type();
        if kind.is_file() {
            Ok(OpenedPath::File(file.into_std()))
        } else if kind.is_dir() {
            let dir = target.parent.open_dir_nofollow(&target.name);
            let dir = dir.map_err(|error| io_error(&target.path, error))?;
            list_names(&dir, &target.path).map(OpenedPath::Folder)
        } else {
            Err(Error::SpecialFile { path: target.path })
        }
    }

    /// Reads the whole content of a file that can be changed, or returns `None` if it does not
    /// exist.
    pub fn load_file(&self, path: &str) -> Result<Option<FileContent>, Error> {
        let real = self.resolve_path(path)?;
        self.check_granted(ToolAccess::Read { path: real.clone() }, &real)?;
        self.load_resolved(real)
    }

    pub(crate) fn load_resolved(&self, real: String) -> Result<Option<FileContent>, Error> {
        match self.open_existing_parent(real) {
            Ok(target) => read_content(&target),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads a file that the call did not declare, if reading it requires no approval and the path
    /// contains no symbolic link.
    pub fn read_unasked(&self, path: &str) -> Option<Vec<u8>> {
        if self.workspace.resolve_inside(path).ok()? != path || !self.grant.may_read(path) {
            return None;
        }
        self.load_resolved(path.to_owned()).ok().flatten().map(|content| content.bytes.to_vec())
    }

    /// Returns the permission mode of the grant.
    pub fn mode(&self) -> PermissionMode {
        self.grant.mode()
    }

    /// Resolves a path as [`Workspace::resolve_path`] does.
    pub fn resolve_path(&self, path: &str) -> Result<String, Error> {
        self.workspace.resolve_path(path)
    }

    /// Returns the underlying workspace.
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// Returns true if a search may show a file that the call did not name.
    pub(crate) fn may_reveal(&self, path: &str) -> bool {
        self.grant.reveals(path)
    }

    /// Returns true if the tool may learn that the path exists.
    pub(crate) fn may_read(&self, path: &str) -> bool {
        self.grant.may_read(path)
    }

    /// Returns the answer of the rules to a running program that asks for a permission key and
    /// subjects; `None` if the user has to be asked.
    pub fn answer_by_rules(&self, key: &str, subjects: &[String]) -> Option<bool> {
        let levels = subjects.iter().map(|subject| self.grant.requested_level(key, subject));
        match levels.max().unwrap_or_else(|| self.grant.requested_level(key, "*")) {
            PermissionLevel::Allow => Some(true),
            PermissionLevel::Deny => Some(false),
            PermissionLevel::Ask => None,
        }
    }

    pub(crate) fn grant(&self) -> &Grant {
        &self.grant
    }

    pub(crate) fn recorder(&self) -> Option<&dyn ChangeRecorder> {
        self.recorder.as_deref()
    }

    pub(crate) fn check_granted(&self, access: ToolAccess, real: &str) -> Result<(), Error> {
        if self.grant.covers(&access) {
            Ok(())
        } else {
            Err(Error::NotGranted { path: real.to_owned() })
        }
    }

    /// Opens the folder of a resolved path, if it exists.
    pub(crate) fn open_existing_parent(&self, real: String) -> Result<ResolvedPath, Error> {
        self.open_parent(real, MissingFolderPolicy::Fail, &mut Vec::new())
    }

    /// Opens the folder of a resolved path without following symbolic links. Adds the folders that
    /// it creates to `created`.
    pub(crate) fn open_parent(
        &self,
        real: String,
        missing: MissingFolderPolicy,
        created: &mut Vec<(Dir, PathBuf)>,
    ) -> Result<ResolvedPath, Error> {
        let (folders, name) = real.rsplit_once('/').unwrap_or(("", &real));
        let name = unescape_path(name).into_owned();
        let root = self.workspace.handle_of(&real)?.0.try_clone();
        let mut parent = root.map_err(|error| io_error(&real, error))?;
        for folder in folders.split('/').filter(|folder| !folder.is_empty()) {
            let folder = &*unescape_path(folder);
            let opened = match (parent.open_dir_nofollow(folder), missing) {
                (Err(error), MissingFolderPolicy::Create)
                    if error.kind() == ErrorKind::NotFound =>
                {
                    match parent.create_dir(folder) {
                        Ok(()) => {
                            let handle =
                                parent.try_clone().map_err(|error| io_error(&real, error))?;
                            created.push((handle, folder.to_owned()));
                        }
                        // Another program created the folder first, so it does not belong to this
                        // batch.
                        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                        Err(error) => return Err(io_error(&real, error)),
                    }
                    parent.open_dir_nofollow(folder)
                }
                (opened, MissingFolderPolicy::Create | MissingFolderPolicy::Fail) => opened,
            };
            parent = opened.map_err(|error| io_error(&real, error))?;
        }
        Ok(ResolvedPath { path: real, parent, name })
    }
}

/// Behavior when a folder on the way does not exist.
#[derive(Clone, Copy)]
pub(crate) enum MissingFolderPolicy {
    Create,
    Fail,
}

fn list_names(dir: &Dir, real: &str) -> Result<Vec<String>, Error> {
    let mut names = Vec::new();
    for entry in dir.entries().map_err(|error| io_error(real, error))? {
        let entry = entry.map_err(|error| io_error(real, error))?;
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let name = entry.file_name();
        let name = escape_path_lossy(&name);
        names.push(if is_folder { format!("{name}/") } else { name.into_owned() });
    }
    names.sort_unstable();
    Ok(names)
}

#[cfg(test)]
pub(crate) mod tests;
