//! Trust: which folders the person has looked at, and what they looked like then.
#![allow(clippy::disallowed_methods, reason = "project is the door to config files")]

use crate::config::{PROJECT_FILES, wishes};
use crate::{Error, Places};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// How a project's folder stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It has no config, so there is nothing to trust.
    Plain,
    /// It has a config that the person has not looked at; it is ignored.
    Untrusted,
    /// Its config has changed since the person looked at it; it is ignored.
    Changed,
    /// Its config is the one the person looked at.
    Trusted,
}

/// The list of trusted folders.
#[derive(Default)]
pub struct Trust {
    path: PathBuf,
    folders: BTreeMap<PathBuf, String>,
}

#[derive(Default, Deserialize, Serialize)]
struct Stored {
    /// The folder's real path, and the digest of its config when it was trusted.
    folders: BTreeMap<PathBuf, String>,
}

impl Trust {
    /// Reads the list; an empty one if there is none.
    pub fn read(places: &Places) -> Result<Trust, Error> {
        let path = places.data.join("trust.json");
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Trust { path, ..Trust::default() });
            }
            Err(source) => return Err(Error::File { path, source }),
        };
        match serde_json::from_str::<Stored>(&text) {
            Ok(stored) => Ok(Trust { path, folders: stored.folders }),
            Err(error) => Err(Error::Damaged { path, reason: error.to_string() }),
        }
    }

    /// How a folder stands. The config of one that is not on the list is not even opened.
    pub fn standing(&self, root: &Path) -> Result<Standing, Error> {
        let present = |name: &str| root.join(name).symlink_metadata().is_ok();
        if !PROJECT_FILES.iter().any(|name| present(name)) {
            return Ok(Standing::Plain);
        }
        let real = real(root)?;
        Ok(match self.folders.get(&real) {
            None => Standing::Untrusted,
            Some(then) if *then == digest(&real)? => Standing::Trusted,
            Some(_) => Standing::Changed,
        })
    }

    /// What a folder's config would set, line by line, for the person to look at.
    pub fn wishes(root: &Path) -> Result<Vec<String>, Error> {
        wishes(root)
    }

    /// Puts a folder on the list as it is now.
    pub fn add(&mut self, root: &Path) -> Result<(), Error> {
        let real = real(root)?;
        let digest = digest(&real)?;
        self.folders.insert(real, digest);
        self.write()
    }

    /// Takes a folder off the list; false if it was not on it.
    pub fn remove(&mut self, root: &Path) -> Result<bool, Error> {
        let known = self.folders.remove(&real(root)?).is_some();
        self.write()?;
        Ok(known)
    }

    fn write(&self) -> Result<(), Error> {
        let failed = |source| Error::File { path: self.path.clone(), source };
        let stored = Stored { folders: self.folders.clone() };
        let text = serde_json::to_string_pretty(&stored).map_err(|error| failed(error.into()))?;
        let folder = self.path.parent().unwrap_or(&self.path);
        let draft = folder.join(format!("trust.{}.draft", std::process::id()));
        let write = || {
            make_private(folder)?;
            let mut options = std::fs::OpenOptions::new();
            options.write(true).create(true).truncate(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let mut file = options.open(&draft)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&draft, &self.path)
        };
        write().map_err(failed)
    }
}

fn make_private(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn real(root: &Path) -> Result<PathBuf, Error> {
    root.canonicalize().map_err(|source| Error::File { path: root.to_owned(), source })
}

/// A digest of everything in the folder that trust is about.
fn digest(root: &Path) -> Result<String, Error> {
    let mut hash = Sha256::new();
    for name in PROJECT_FILES {
        let path = root.join(name);
        let mut bytes = Vec::new();
        match std::fs::File::open(&path).map(|file| file.take(2 << 20).read_to_end(&mut bytes)) {
            Ok(Ok(_)) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Ok(Err(source)) | Err(source) => return Err(Error::File { path, source }),
        }
        hash.update(name.as_bytes());
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(&bytes);
    }
    use std::fmt::Write;
    let mut text = String::new();
    for byte in hash.finalize() {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}
