//! The file of keys: private from its first byte, replaced as a whole, never through a link.

use crate::{Error, Places, private};
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Keys have no business being longer, all of them together.
const LONGEST: u64 = 1 << 18;

/// What is kept of one provider.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    /// The key, if it is here.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "expose")]
    pub(super) key: Option<SecretString>,
    /// The keyring holds one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) keyring: bool,
}

fn expose<S: Serializer>(key: &Option<SecretString>, to: S) -> Result<S::Ok, S::Error> {
    key.as_ref().map(ExposeSecret::expose_secret).serialize(to)
}

/// What is kept, by provider.
pub(super) type Entries = BTreeMap<String, Entry>;

/// The file.
#[derive(Debug)]
pub(super) struct File {
    folder: PathBuf,
    path: PathBuf,
}

impl File {
    pub(super) fn of(places: &Places) -> File {
        File { folder: places.data.clone(), path: places.data.join("auth.json") }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What stands in it; nothing if there is no file.
    pub(super) fn read(&self) -> Result<Entries, Error> {
        let Some(text) = private::read(&self.path, LONGEST)? else { return Ok(Entries::new()) };
        serde_json::from_str(&text).map_err(|error| private::damaged(&self.path, &error))
    }

    /// Changes what stands in it. Whoever else changes it at the same time waits, and nothing of
    /// theirs is lost.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Entries) -> T) -> Result<T, Error> {
        let lock = private::lock(&self.folder, "auth")?;
        let mut entries = self.read()?;
        let result = change(&mut entries);
        self.write(&entries)?;
        drop(lock);
        Ok(result)
    }

    fn write(&self, entries: &Entries) -> Result<(), Error> {
        let text = serde_json::to_string_pretty(entries);
        let text = Zeroizing::new(text.map_err(|error| self.failed(error.into()))?);
        if text.len() as u64 > LONGEST {
            return Err(self.failed(std::io::Error::other("it would be longer than keys can be")));
        }
        private::replace(&self.path, text.as_bytes()).map_err(|error| self.failed(error))
    }

    fn failed(&self, source: std::io::Error) -> Error {
        Error::File { path: self.path.clone(), source }
    }
}
