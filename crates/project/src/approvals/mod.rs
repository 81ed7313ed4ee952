//! Stored approvals: permissions that the user granted permanently in a project.
//!
//! They are the user's own answers, so they live in the user's data folder (`approvals.json`) under
//! the project's canonical path. A repository cannot bring any along.

use crate::{Dirs, ProjectError, private_files, trust};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use windlass_protocol::UnixMillis;

/// A permission granted without further requests.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct StoredApproval {
    /// The permission key, for example `bash`.
    pub key: String,
    /// The exact path, command or host.
    pub subject: String,
    /// The time of the user's answer.
    pub at: UnixMillis,
}

/// The stored approvals of all projects, in `approvals.json`.
#[derive(Debug)]
pub struct ApprovalStore {
    data_dir: PathBuf,
    projects: ProjectApprovals,
}

type ProjectApprovals = BTreeMap<PathBuf, Vec<StoredApproval>>;

#[derive(Default, Deserialize, Serialize)]
struct ApprovalsFile {
    /// The project's canonical path and its approvals, oldest first.
    projects: ProjectApprovals,
}

const MAX_FILE_BYTES: u64 = 16 << 20;
const MAX_APPROVALS_PER_PROJECT: usize = 1_000;
/// Bounds keys and subjects: a user has not reviewed a longer one.
const MAX_KEY_BYTES: usize = 256;
const MAX_SUBJECT_BYTES: usize = 16 << 10;

impl ApprovalStore {
    /// Reads the approvals; empty if there is no file.
    pub fn read(dirs: &Dirs) -> Result<ApprovalStore, ProjectError> {
        let data_dir = dirs.data.clone();
        let projects = read_approvals(&data_dir)?;
        Ok(ApprovalStore { data_dir, projects })
    }

    /// Returns the approvals of a project, oldest first.
    pub fn for_project(&self, root: &Path) -> Vec<StoredApproval> {
        let real = trust::real_path(root).ok();
        real.and_then(|real| self.projects.get(&real).cloned()).unwrap_or_default()
    }

    /// Saves an approval. One that already exists stays as it is.
    pub fn add(
        &mut self,
        root: &Path,
        key: &str,
        subject: &str,
        at: UnixMillis,
    ) -> Result<(), ProjectError> {
        let not_saved = |reason: &'static str| ProjectError::ApprovalNotSaved {
            path: approvals_path(&self.data_dir),
            reason,
        };
        if key.is_empty() || key.len() > MAX_KEY_BYTES || subject.len() > MAX_SUBJECT_BYTES {
            return Err(not_saved("it is too long"));
        }
        let root = trust::real_path(root)?;
        let lock = private_files::lock_file(&self.data_dir, "approvals")?;
        let mut projects = read_approvals(&self.data_dir)?;
        let list = projects.entry(root).or_default();
        if !list.iter().any(|approval| approval.key == key && approval.subject == subject) {
            if list.len() >= MAX_APPROVALS_PER_PROJECT {
                return Err(not_saved("this project has too many approvals; revoke some"));
            }
            list.push(StoredApproval { key: key.to_owned(), subject: subject.to_owned(), at });
            write_approvals(&self.data_dir, &projects)?;
        }
        self.projects = projects;
        drop(lock);
        Ok(())
    }

    /// Removes the approval of this number, counted from 1; `None` if there is no such number.
    pub fn remove(
        &mut self,
        root: &Path,
        number: usize,
    ) -> Result<Option<StoredApproval>, ProjectError> {
        let index = number.wrapping_sub(1);
        let removed = self.update(root, |list| (index < list.len()).then(|| list.remove(index)))?;
        Ok(removed.flatten())
    }

    /// Removes all approvals of a project and returns their number.
    pub fn clear(&mut self, root: &Path) -> Result<usize, ProjectError> {
        Ok(self.update(root, |list| std::mem::take(list).len())?.unwrap_or(0))
    }

    fn update<T>(
        &mut self,
        root: &Path,
        change: impl FnOnce(&mut Vec<StoredApproval>) -> T,
    ) -> Result<Option<T>, ProjectError> {
        let root = trust::real_path(root)?;
        let lock = private_files::lock_file(&self.data_dir, "approvals")?;
        let mut projects = read_approvals(&self.data_dir)?;
        let changed = projects.get_mut(&root).map(change);
        if changed.is_some() {
            projects.retain(|_, list| !list.is_empty());
            write_approvals(&self.data_dir, &projects)?;
        }
        self.projects = projects;
        drop(lock);
        Ok(changed)
    }
}

fn approvals_path(data_dir: &Path) -> PathBuf {
    data_dir.join("approvals.json")
}

fn read_approvals(data_dir: &Path) -> Result<ProjectApprovals, ProjectError> {
    let path = approvals_path(data_dir);
    let Some(text) = private_files::read_private(&path, MAX_FILE_BYTES)? else {
        return Ok(ProjectApprovals::new());
    };
    let file = serde_json::from_str::<ApprovalsFile>(&text);
    Ok(file.map_err(|error| private_files::corrupt_error(&path, &error))?.projects)
}

fn write_approvals(data_dir: &Path, projects: &ProjectApprovals) -> Result<(), ProjectError> {
    let path = approvals_path(data_dir);
    let to_error = |source| ProjectError::File { path: path.clone(), source };
    let file = ApprovalsFile { projects: projects.clone() };
    let text = serde_json::to_string_pretty(&file).map_err(|error| to_error(error.into()))?;
    if text.len() as u64 > MAX_FILE_BYTES {
        let reason = "there are too many approvals; revoke some";
        return Err(ProjectError::ApprovalNotSaved { path, reason });
    }
    private_files::replace_atomically(&path, text.as_bytes()).map_err(to_error)
}

#[cfg(test)]
mod tests;
