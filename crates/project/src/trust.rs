//! Trust: which folders the person has looked at, and what they looked like then.
#![allow(clippy::disallowed_methods, reason = "project is the door to config files")]

use crate::config::{PROJECT_FILES, wishes};
use crate::{Error, Places, file};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::Write;
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

/// A folder's config as it was shown to a person.
pub struct Request {
    folder: PathBuf,
    digest: String,
    /// What it would set, line by line.
    pub wishes: Vec<String>,
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

    /// How a folder stands, and the texts of its config if it is trusted. The config of a folder
    /// that is not on the list is not even opened.
    pub(crate) fn look(&self, root: &Path) -> Result<(Standing, Vec<Text>), Error> {
        let present = |name: &str| root.join(name).symlink_metadata().is_ok();
        if !PROJECT_FILES.iter().any(|name| present(name)) {
            return Ok((Standing::Plain, Vec::new()));
        }
        let real = real(root)?;
        let Some(then) = self.folders.get(&real) else {
            return Ok((Standing::Untrusted, Vec::new()));
        };
        let texts = texts(&real)?;
        if digest(&real, &texts) == *then {
            Ok((Standing::Trusted, texts))
        } else {
            Ok((Standing::Changed, Vec::new()))
        }
    }

    /// What a person is asked to trust; `None` if the folder has no config.
    pub fn request(root: &Path) -> Result<Option<Request>, Error> {
        let folder = real(root)?;
        let texts = texts(&folder)?;
        let wishes = texts.iter().flat_map(|(path, text)| wishes(&folder, path, text)).collect();
        let digest = digest(&folder, &texts);
        Ok((!texts.is_empty()).then_some(Request { folder, digest, wishes }))
    }

    /// Trusts exactly what was shown.
    pub fn add(&mut self, request: Request) -> Result<(), Error> {
        self.folders.insert(request.folder, request.digest);
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

pub(crate) fn make_private(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn real(root: &Path) -> Result<PathBuf, Error> {
    root.canonicalize().map_err(|source| Error::File { path: root.to_owned(), source })
}

/// A config file and what stands in it.
type Text = (PathBuf, String);

/// Everything in a folder that trust is about, read once.
fn texts(root: &Path) -> Result<Vec<Text>, Error> {
    let mut texts = Vec::new();
    for name in PROJECT_FILES {
        let path = root.join(name);
        if let Some(text) = file::read(&path)? {
            texts.push((path, text));
        }
    }
    Ok(texts)
}

fn digest(root: &Path, texts: &[Text]) -> String {
    use std::fmt::Write;
    let mut hash = Sha256::new();
    for (path, text) in texts {
        let name = path.strip_prefix(root).unwrap_or(path).to_string_lossy();
        hash.update(name.as_bytes());
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    }
    let mut digest = String::new();
    for byte in hash.finalize() {
        // Writing to a String cannot fail.
        let _ = write!(digest, "{byte:02x}");
    }
    digest
}
