//! Pins of servers: facts recorded when the user reviewed a server or when it was first seen. There
//! is one file per server, separately for the user and for each project.
//!
//! The caller defines the content; here it is only JSON. Pins live in the user's data folder, so
//! that a repository cannot bring any along.

use crate::{Dirs, ProjectError, private_files, trust};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};
use windlass_protocol::BlobRef;

const MAX_FILE_BYTES: u64 = 16 << 20;

/// The owner of a server.
#[derive(Clone, Copy, Debug)]
pub enum McpServerPinOwner<'a> {
    /// The user.
    User,
    /// The project at this path.
    Project(&'a Path),
}

impl McpServerPinOwner<'_> {
    /// Returns the name of the owner's folder.
    pub(crate) fn folder_name(self) -> String {
        let owner_text = match self {
            McpServerPinOwner::User => "user".to_owned(),
            McpServerPinOwner::Project(root) => {
                let real = trust::real_path(root).unwrap_or_else(|_| root.to_owned());
                format!("project {}", real.display())
            }
        };
        BlobRef::for_bytes(owner_text.as_bytes()).as_str().to_owned()
    }
}

/// The pins of the user or of a project.
#[derive(Clone, Debug)]
pub struct McpServerPins {
    folder: PathBuf,
}

impl McpServerPins {
    /// Returns the pins of an owner.
    pub fn for_owner(dirs: &Dirs, owner: McpServerPinOwner<'_>) -> McpServerPins {
        McpServerPins { folder: dirs.data.join("pins").join(owner.folder_name()) }
    }

    /// Reads the pin of a server; `None` if there is none.
    pub fn read<T: DeserializeOwned>(&self, server: &str) -> Result<Option<T>, ProjectError> {
        let path = self.pin_path(server);
        let Some(text) = private_files::read_private(&path, MAX_FILE_BYTES)? else {
            return Ok(None);
        };
        serde_json::from_str(&text)
            .map(Some)
            .map_err(|error| private_files::corrupt_error(&path, &error))
    }

    /// Saves the pin of a server.
    pub fn save<T: Serialize>(&self, server: &str, pin: &T) -> Result<(), ProjectError> {
        let path = self.pin_path(server);
        let to_error = |source| ProjectError::File { path: path.clone(), source };
        let text = serde_json::to_string_pretty(pin).map_err(|error| to_error(error.into()))?;
        if text.len() as u64 > MAX_FILE_BYTES {
            return Err(ProjectError::ApprovalNotSaved { path, reason: "it is too large" });
        }
        let lock = private_files::lock_file(&self.folder, "pins")?;
        private_files::replace_atomically(&path, text.as_bytes()).map_err(to_error)?;
        drop(lock);
        Ok(())
    }

    /// Server names are valid file names.
    fn pin_path(&self, server: &str) -> PathBuf {
        self.folder.join(format!("{server}.json"))
    }
}

#[cfg(test)]
mod tests;
