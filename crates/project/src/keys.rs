//! The keys a person gave us to keep: in the system's keyring where there is one, else in a file
//! that only they can read.
//!
//! It knows nothing of what a provider is, and never lends a key a second time by printing it. It
//! keeps the invariant that the file's names are complete: whatever is in the keyring is named
//! there, without the key. Start reading at [`Keys::get`].

mod file;
mod ring;

use crate::{Error, Origin, Places, private};
use file::{Entry, File};
use ring::Ring;
use secrecy::SecretString;
use std::fmt;
use std::path::PathBuf;

/// Where a key was found, in words a person understands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// In an environment variable.
    Env(String),
    /// In a config.
    Config(Origin),
    /// In the system's keyring.
    Keyring,
    /// In the file of keys.
    File(PathBuf),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Env(name) => write!(f, "the environment variable {name}"),
            Source::Config(origin) => origin.fmt(f),
            Source::Keyring => f.write_str("the keyring"),
            Source::File(path) => path.display().fmt(f),
        }
    }
}

/// The keys of one person.
#[derive(Debug)]
pub struct Keys {
    file: File,
    ring: Ring,
}

impl Keys {
    /// The keys of whoever these folders belong to. Nothing is read yet.
    pub fn open(places: &Places) -> Keys {
        Keys { file: File::of(places), ring: Ring::find() }
    }

    /// The key of a provider, if there is one. The keyring is only asked for what it was given.
    pub fn get(&self, provider: &str) -> Result<Option<(SecretString, Source)>, Error> {
        match self.file.read()?.remove(provider) {
            None => Ok(None),
            Some(Entry { key: Some(key), .. }) => Ok(Some((key, self.in_file()))),
            Some(Entry { key: None, keyring: false }) => Ok(None),
            Some(Entry { key: None, keyring: true }) => {
                let key = self.ring.get(provider).map_err(|refusal| refusal.about(provider))?;
                Ok(key.map(|key| (key, Source::Keyring)))
            }
        }
    }

    /// Keeps a key and says where it went. It replaces the one there was.
    pub fn set(&self, provider: &str, key: &SecretString) -> Result<Source, Error> {
        // A file that cannot be used is noticed before the keyring is changed.
        self.file.read()?;
        if self.ring.set(provider, key).is_ok() {
            let entry = Entry { key: None, keyring: true };
            self.file.change(|entries| entries.insert(provider.to_owned(), entry))?;
            return Ok(Source::Keyring);
        }
        self.file.change(|entries| {
            // The keyring may still hold an older key, which is to go when this one goes.
            let keyring = entries.get(provider).is_some_and(|entry| entry.keyring);
            entries.insert(provider.to_owned(), Entry { key: Some(key.clone()), keyring })
        })?;
        Ok(self.in_file())
    }

    /// Forgets a provider's key; false if there was none. What the keyring does not give up stays
    /// on the list.
    pub fn remove(&self, provider: &str) -> Result<bool, Error> {
        let Some(entry) = self.file.read()?.remove(provider) else { return Ok(false) };
        if entry.keyring
            && let Err(refusal) = self.ring.remove(provider)
        {
            let rest = Entry { key: None, keyring: true };
            self.file.change(|entries| entries.insert(provider.to_owned(), rest))?;
            return Err(refusal.about(provider));
        }
        Ok(self.file.change(|entries| entries.remove(provider))?.is_some())
    }

    /// The providers we keep a key of, by name.
    pub fn list(&self) -> Result<Vec<(String, Source)>, Error> {
        let entries = self.file.read()?.into_iter();
        let place = |entry: &Entry| match entry {
            Entry { key: Some(_), .. } => Some(self.in_file()),
            Entry { key: None, keyring: true } => Some(Source::Keyring),
            Entry { key: None, keyring: false } => None,
        };
        Ok(entries.filter_map(|(name, entry)| Some((name, place(&entry)?))).collect())
    }

    /// Holds whoever else, of any process, would change the key of this name on their own, until what it
    /// gives is dropped. It waits for its turn.
    pub fn hold(places: &Places, name: &str) -> Result<impl Send + use<>, Error> {
        let name = name.replace(|c: char| !c.is_ascii_alphanumeric() && c != '_', "-");
        private::lock(&places.data, &name)
    }

    fn in_file(&self) -> Source {
        Source::File(self.file.path().to_owned())
    }
}

#[cfg(test)]
mod tests;
