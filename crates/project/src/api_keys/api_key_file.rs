//! The API key file `auth.json`: created private, replaced atomically, never opened through a link.

use crate::{Dirs, ProjectError, private_files};
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const MAX_FILE_BYTES: u64 = 1 << 18;

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ApiKeyEntry {
    /// The API key, if it is stored in this file.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "serialize_secret")]
    pub(super) key: Option<SecretString>,
    /// `true` if the keyring has a key.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) in_keyring: bool,
}

fn serialize_secret<S: Serializer>(
    key: &Option<SecretString>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    key.as_ref().map(ExposeSecret::expose_secret).serialize(serializer)
}

pub(super) type KeyEntries = BTreeMap<String, ApiKeyEntry>;

#[derive(Debug)]
pub(super) struct ApiKeyFile {
    folder: PathBuf,
    path: PathBuf,
}

impl ApiKeyFile {
    pub(super) fn new(dirs: &Dirs) -> ApiKeyFile {
        ApiKeyFile { folder: dirs.data.clone(), path: dirs.data.join("auth.json") }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the `KeyEntries`; empty if there is no file.
    pub(super) fn read(&self) -> Result<KeyEntries, ProjectError> {
        let Some(text) = private_files::read_private(&self.path, MAX_FILE_BYTES)? else {
            return Ok(KeyEntries::new());
        };
        serde_json::from_str(&text)
            .map_err(|error| private_files::corrupt_error(&self.path, &error))
    }

    /// Updates the entries under a lock. Concurrent writers wait, and none of their changes is
    /// lost.
    pub(super) fn update<T>(
        &self,
        change: impl FnOnce(&mut KeyEntries) -> T,
    ) -> Result<T, ProjectError> {
        let lock = private_files::lock_file(&self.folder, "auth")?;
        let mut entries = self.read()?;
        let result = change(&mut entries);
        self.write(&entries)?;
        drop(lock);
        Ok(result)
    }

    fn write(&self, entries: &KeyEntries) -> Result<(), ProjectError> {
        let text = serde_json::to_string_pretty(entries);
        let text = Zeroizing::new(text.map_err(|error| self.file_error(error.into()))?);
        if text.len() as u64 > MAX_FILE_BYTES {
            return Err(self.file_error(std::io::Error::other("the file would be too large")));
        }
        private_files::replace_atomically(&self.path, text.as_bytes())
            .map_err(|error| self.file_error(error))
    }

    fn file_error(&self, source: std::io::Error) -> ProjectError {
        ProjectError::File { path: self.path.clone(), source }
    }
}
