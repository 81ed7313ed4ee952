//! The file of keys: private from its first byte, replaced as a whole, never through a link.
#![allow(clippy::disallowed_methods, reason = "project is the door to config files")]

use crate::{Error, Places, trust};
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
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
        let damaged = |reason: String| Error::Damaged { path: self.path.clone(), reason };
        let file = match plain(std::fs::OpenOptions::new().read(true)).open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Entries::new()),
            Err(_) if self.path.is_symlink() => return Err(self.exposed("it is a link", "remove")),
            Err(error) => return Err(self.failed(error)),
        };
        self.check(&file)?;
        let mut text = Zeroizing::new(String::new());
        let read = file.take(LONGEST + 1).read_to_string(&mut text);
        if read.map_err(|error| self.failed(error))? as u64 > LONGEST {
            return Err(damaged("it is longer than keys can be".into()));
        }
        serde_json::from_str(&text).map_err(|error| {
            // What serde says may quote a key; where it says it does not.
            damaged(format!("line {}, column {}", error.line(), error.column()))
        })
    }

    /// Changes what stands in it. Whoever else changes it at the same time waits, and nothing of
    /// theirs is lost.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Entries) -> T) -> Result<T, Error> {
        trust::make_private(&self.folder).map_err(|error| self.failed(error))?;
        let lock = self.lock().map_err(|error| self.failed(error))?;
        let mut entries = self.read()?;
        let result = change(&mut entries);
        self.write(&entries)?;
        drop(lock);
        Ok(result)
    }

    fn lock(&self) -> std::io::Result<std::fs::File> {
        let mut options = std::fs::OpenOptions::new();
        let options = plain(options.read(true).write(true).create(true));
        let lock = options.open(self.folder.join("auth.lock"))?;
        lock.lock()?;
        Ok(lock)
    }

    fn write(&self, entries: &Entries) -> Result<(), Error> {
        let text = serde_json::to_string_pretty(entries);
        let text = Zeroizing::new(text.map_err(|error| self.failed(error.into()))?);
        if text.len() as u64 > LONGEST {
            return Err(self.failed(std::io::Error::other("it would be longer than keys can be")));
        }
        let draft = self.folder.join("auth.draft");
        let written = replace(&draft, &self.path, &self.folder, text.as_bytes());
        if written.is_err() {
            let _ = std::fs::remove_file(&draft);
        }
        written.map_err(|error| self.failed(error))
    }

    /// Refuses a file that somebody else could have written or could read.
    #[cfg(unix)]
    fn check(&self, file: &std::fs::File) -> Result<(), Error> {
        use std::os::unix::fs::MetadataExt;
        let data = file.metadata().map_err(|error| self.failed(error))?;
        if !data.is_file() {
            return Err(self.exposed("it is not a plain file", "remove"));
        }
        if data.uid() != rustix::process::geteuid().as_raw() {
            return Err(self.exposed("it belongs to somebody else", "remove"));
        }
        if data.mode() & 0o077 != 0 {
            return Err(self.exposed("others on this machine can get at it", "`chmod 600`"));
        }
        Ok(())
    }

    #[cfg(not(unix))]
    fn check(&self, _: &std::fs::File) -> Result<(), Error> {
        Ok(())
    }

    fn exposed(&self, reason: &'static str, remedy: &'static str) -> Error {
        Error::Exposed { path: self.path.clone(), reason, remedy }
    }

    fn failed(&self, source: std::io::Error) -> Error {
        Error::File { path: self.path.clone(), source }
    }
}

/// Opens no link, waits for no pipe, and makes what it makes private.
fn plain(options: &mut std::fs::OpenOptions) -> &mut std::fs::OpenOptions {
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        options.mode(0o600).custom_flags(flags.bits().cast_signed());
    }
    options
}

/// Puts a text where a file is, whole or not at all. The lock is held, so a draft that is already
/// there was left behind.
fn replace(draft: &Path, path: &Path, folder: &Path, text: &[u8]) -> std::io::Result<()> {
    match std::fs::remove_file(draft) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = plain(std::fs::OpenOptions::new().write(true).create_new(true)).open(draft)?;
    file.write_all(text)?;
    file.sync_all()?;
    std::fs::rename(draft, path)?;
    #[cfg(unix)]
    std::fs::File::open(folder)?.sync_all()?;
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}
