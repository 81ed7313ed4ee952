//! Pins: what is known of a server since somebody looked at it, or since it was first seen. A file
//! for each server of a project, and for each of the person's own.
//!
//! What they hold is whoever asks's business; here it is JSON. They lie with the person's data, so
//! that a repository cannot bring any along.

use crate::{Error, Places, private, trust};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};
use windlass_protocol::BlobRef;

/// The file has no business being longer.
const LONGEST: u64 = 16 << 20;

/// Whose server it is.
#[derive(Clone, Copy, Debug)]
pub enum Brought<'a> {
    /// The person's own.
    Own,
    /// That of the project at this path.
    Project(&'a Path),
}

/// The pins of the person, or of a project.
#[derive(Clone, Debug)]
pub struct Pins {
    folder: PathBuf,
}

impl Pins {
    /// Those of whoever brings a server.
    pub fn of(places: &Places, brought: Brought<'_>) -> Pins {
        let whose = match brought {
            Brought::Own => "user".to_owned(),
            Brought::Project(root) => {
                let real = trust::real(root).unwrap_or_else(|_| root.to_owned());
                format!("project {}", real.display())
            }
        };
        let name = BlobRef::of(whose.as_bytes()).as_str().to_owned();
        Pins { folder: places.data.join("pins").join(name) }
    }

    /// What is known of a server. What cannot be read is not known.
    pub fn read<T: DeserializeOwned>(&self, server: &str) -> Result<Option<T>, Error> {
        let path = self.file(server);
        let Some(text) = private::read(&path, LONGEST)? else { return Ok(None) };
        serde_json::from_str(&text).map(Some).map_err(|error| private::damaged(&path, &error))
    }

    /// Keeps what is known of a server.
    pub fn keep<T: Serialize>(&self, server: &str, known: &T) -> Result<(), Error> {
        let path = self.file(server);
        let failed = |source| Error::File { path: path.clone(), source };
        let text = serde_json::to_string_pretty(known).map_err(|error| failed(error.into()))?;
        if text.len() as u64 > LONGEST {
            return Err(Error::NotKept { path, reason: "it is longer than what is kept" });
        }
        let lock = private::lock(&self.folder, "pins")?;
        private::replace(&path, text.as_bytes()).map_err(failed)?;
        drop(lock);
        Ok(())
    }

    /// Servers have names that are names of files.
    fn file(&self, server: &str) -> PathBuf {
        self.folder.join(format!("{server}.json"))
    }
}

#[cfg(test)]
mod tests;
