//! The user's API keys: in the system keyring if there is one, else in a file that only the user
//! can read.
//!
//! This module does not know what a provider is, and never prints a key. It keeps the invariant
//! that the names in the file are complete: every key in the keyring has an entry there, without
//! the key. Start reading at [`ApiKeyStore::get`].

mod api_key_file;
mod keyring;

use crate::{ConfigOrigin, Dirs, ProjectError, private_files};
use api_key_file::{ApiKeyEntry, ApiKeyFile};
use keyring::SystemKeyring;
use secrecy::SecretString;
use std::fmt;
use std::path::PathBuf;

/// The place where an API key was found, displayed in words for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApiKeySource {
    /// An environment variable.
    Env(String),
    /// A config file.
    Config(ConfigOrigin),
    /// The system keyring.
    Keyring,
    /// The API key file.
    File(PathBuf),
}

impl fmt::Display for ApiKeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ApiKeySource::Env(name) => write!(f, "the environment variable {name}"),
            ApiKeySource::Config(origin) => origin.fmt(f),
            ApiKeySource::Keyring => f.write_str("the keyring"),
            ApiKeySource::File(path) => path.display().fmt(f),
        }
    }
}

/// The API keys of one user.
#[derive(Debug)]
pub struct ApiKeyStore {
    file: ApiKeyFile,
    keyring: SystemKeyring,
}

impl ApiKeyStore {
    /// Opens the key store in `Dirs::data`. Reads nothing yet.
    pub fn open(dirs: &Dirs) -> ApiKeyStore {
        ApiKeyStore { file: ApiKeyFile::new(dirs), keyring: SystemKeyring::detect() }
    }

    /// Returns the API key of a provider, if there is one. The keyring is queried only for keys
    /// stored there by us.
    pub fn get(
        &self,
        provider: &str,
    ) -> Result<Option<(SecretString, ApiKeySource)>, ProjectError> {
        match self.file.read()?.remove(provider) {
            None => Ok(None),
            Some(ApiKeyEntry { key: Some(key), .. }) => Ok(Some((key, self.file_source()))),
            Some(ApiKeyEntry { key: None, in_keyring: false }) => Ok(None),
            Some(ApiKeyEntry { key: None, in_keyring: true }) => {
                let key = self.keyring.get(provider).map_err(|error| error.into_error(provider))?;
                Ok(key.map(|key| (key, ApiKeySource::Keyring)))
            }
        }
    }

    /// Saves an API key, replaces an existing one, and returns the `ApiKeySource` it went to.
    pub fn set(&self, provider: &str, key: &SecretString) -> Result<ApiKeySource, ProjectError> {
        // Detect an unusable file before the keyring is changed.
        self.file.read()?;
        if self.keyring.set(provider, key).is_ok() {
            let entry = ApiKeyEntry { key: None, in_keyring: true };
            self.file.update(|entries| entries.insert(provider.to_owned(), entry))?;
            return Ok(ApiKeySource::Keyring);
        }
        self.file.update(|entries| {
            // The keyring may still contain an older key, which must be removed together with this
            // one.
            let in_keyring = entries.get(provider).is_some_and(|entry| entry.in_keyring);
            entries.insert(provider.to_owned(), ApiKeyEntry { key: Some(key.clone()), in_keyring })
        })?;
        Ok(self.file_source())
    }

    /// Removes a provider's API key; returns `false` if there was none. A key that the keyring
    /// fails to remove stays listed.
    pub fn remove(&self, provider: &str) -> Result<bool, ProjectError> {
        let Some(entry) = self.file.read()?.remove(provider) else { return Ok(false) };
        if entry.in_keyring
            && let Err(error) = self.keyring.remove(provider)
        {
            let remaining = ApiKeyEntry { key: None, in_keyring: true };
            self.file.update(|entries| entries.insert(provider.to_owned(), remaining))?;
            return Err(error.into_error(provider));
        }
        Ok(self.file.update(|entries| entries.remove(provider))?.is_some())
    }

    /// Lists the providers with a stored API key, by name.
    pub fn list(&self) -> Result<Vec<(String, ApiKeySource)>, ProjectError> {
        let entries = self.file.read()?.into_iter();
        let source = |entry: &ApiKeyEntry| match entry {
            ApiKeyEntry { key: Some(_), .. } => Some(self.file_source()),
            ApiKeyEntry { key: None, in_keyring: true } => Some(ApiKeySource::Keyring),
            ApiKeyEntry { key: None, in_keyring: false } => None,
        };
        Ok(entries.filter_map(|(name, entry)| Some((name, source(&entry)?))).collect())
    }

    /// Locks the key of this name against changes by other processes until the returned guard is
    /// dropped. Blocks until the lock is free.
    pub fn lock(dirs: &Dirs, name: &str) -> Result<impl Send + use<>, ProjectError> {
        let name = name.replace(|c: char| !c.is_ascii_alphanumeric() && c != '_', "-");
        private_files::lock_file(&dirs.data, &name)
    }

    fn file_source(&self) -> ApiKeySource {
        ApiKeySource::File(self.file.path().to_owned())
    }
}

#[cfg(test)]
mod tests;
