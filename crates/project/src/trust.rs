//! Trust: which folders the person has looked at, and what they looked like then.
//!
//! A folder is known by its real path and nothing else: what `.git` or a file in it says about
//! other folders is not asked. The list has one digest for each folder; what the files said then is
//! kept beside it, so that a change can be shown. Of a folder that is not on the list nothing is
//! opened.
#![allow(clippy::disallowed_methods, reason = "project is the door to config files")]

mod difference;
mod survey;

use crate::config::PROJECT_FILES;
use crate::{Error, Places, private};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
pub use survey::Surveyed;
pub(crate) use survey::hex;
use survey::{Kind, Pieces, Survey};

/// How a project's folder stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The person has not looked at it, and there is nothing in it that Windlass would run or obey.
    Plain,
    /// It has something of that kind, and the person has not looked at it; it is ignored.
    Untrusted,
    /// What it has of that kind has changed since the person looked at it; it is ignored.
    Changed,
    /// What it has of that kind, if anything, is what the person looked at.
    Trusted,
}

/// A folder as it was shown to a person.
pub struct Request {
    folder: PathBuf,
    digest: String,
    pieces: Pieces,
    /// What its settings would set, line by line.
    pub wishes: Vec<String>,
    /// The files that Windlass would run or obey, as they are shown.
    pub files: Vec<String>,
    /// What is different from what was trusted.
    pub since: Since,
}

/// How a folder compares with what was trusted of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Since {
    /// It is not on the list.
    Never,
    /// Nothing is different.
    Same,
    /// It is different, and nobody knows any more how it was.
    Unknown,
    /// It is different in this, line by line.
    Changed(Vec<String>),
}

/// The list of trusted folders.
#[derive(Debug)]
pub struct Trust {
    data: PathBuf,
    folders: BTreeMap<PathBuf, String>,
}

#[derive(Default, Deserialize, Serialize)]
struct Stored {
    /// The folder's real path, and the digest of what counted in it when it was trusted.
    folders: BTreeMap<PathBuf, String>,
}

/// What a folder held when it was trusted.
#[derive(Deserialize, Serialize)]
struct Copy {
    folder: PathBuf,
    digest: String,
    files: Pieces,
}

/// What can be used of a folder.
pub(crate) struct Look {
    pub(crate) standing: Standing,
    /// Its config files and what stands in them, weakest first; none unless it is trusted.
    pub(crate) texts: Vec<(PathBuf, String)>,
    /// Links that stand where a config could; they are not followed.
    pub(crate) links: Vec<PathBuf>,
    /// The documents in `.windlass`, by their names from the root; none unless it is trusted.
    pub(crate) documents: BTreeMap<String, String>,
    /// Its list of servers for other programs; none unless it is trusted.
    pub(crate) mcp: Option<(PathBuf, String)>,
    /// Every file of it that is no link; none unless it is trusted.
    pub(crate) files: Vec<Surveyed>,
}

/// The list has no business being longer, nor has a copy.
const LONGEST_LIST: u64 = 4 << 20;
const LONGEST_COPY: u64 = 16 << 20;

impl Trust {
    /// Reads the list; an empty one if there is none.
    pub fn read(places: &Places) -> Result<Trust, Error> {
        Trust::read_in(&places.data)
    }

    fn read_in(data: &Path) -> Result<Trust, Error> {
        let path = data.join("trust.json");
        let stored = match private::read(&path, LONGEST_LIST)? {
            None => Stored::default(),
            Some(text) => {
                serde_json::from_str(&text).map_err(|error| private::damaged(&path, &error))?
            }
        };
        Ok(Trust { data: data.to_owned(), folders: stored.folders })
    }

    /// How a folder stands, and its config if it is trusted. What can no longer be read is a change.
    pub(crate) fn look(&self, root: &Path) -> Result<Look, Error> {
        let only = |standing| Look {
            standing,
            texts: Vec::new(),
            links: Vec::new(),
            documents: BTreeMap::new(),
            mcp: None,
            files: Vec::new(),
        };
        // A folder that is not there has nothing to run.
        let Ok(real) = real(root) else { return Ok(only(Standing::Plain)) };
        let Some(then) = self.folders.get(&real) else {
            let known = survey::is_there(&real);
            return Ok(only(if known { Standing::Untrusted } else { Standing::Plain }));
        };
        let Ok(survey) = Survey::of(&real) else { return Ok(only(Standing::Changed)) };
        if survey.digest() != *then {
            return Ok(only(Standing::Changed));
        }
        let could_be_config = |name: &str| PROJECT_FILES.contains(&name) || name == ".windlass";
        let links = survey.pieces.iter();
        let links = links.filter(|(name, at)| at.kind == Kind::Link && could_be_config(name));
        let links = links.map(|(name, _)| real.join(name)).collect();
        let text =
            |name: &&str| survey.settings.get(*name).map(|text| (real.join(name), text.clone()));
        let texts = PROJECT_FILES.iter().filter_map(text).collect();
        let mcp = text(&".mcp.json");
        let files = survey.files(&real);
        let documents = survey.documents;
        Ok(Look { standing: Standing::Trusted, texts, links, documents, mcp, files })
    }

    /// What a person is asked to trust. A folder with nothing to run or obey can be trusted, too:
    /// whatever appears in it later is a change.
    pub fn request(&self, root: &Path) -> Result<Request, Error> {
        let folder = real(root)?;
        if folder.to_str().is_none() {
            let reason = "its name is not text".to_owned();
            return Err(Error::Untrustable { path: folder, reason });
        }
        let survey = Survey::of(&folder)?;
        let digest = survey.digest();
        let settings = survey.settings.iter();
        let wishes = settings.flat_map(|(name, text)| crate::config::wishes(name, text)).collect();
        let pieces = survey.pieces.iter();
        let files = pieces.map(|(name, piece)| difference::title(name, piece)).collect();
        let since = match self.folders.get(&folder) {
            None => Since::Never,
            Some(then) if *then == digest => Since::Same,
            Some(then) => match self.copy(&folder, then) {
                Some(before) => Since::Changed(difference::lines(&before, &survey.pieces)),
                None => Since::Unknown,
            },
        };
        Ok(Request { folder, digest, pieces: survey.pieces, wishes, files, since })
    }

    /// Trusts exactly what was shown.
    pub fn add(&mut self, request: Request) -> Result<(), Error> {
        let Request { folder, digest, pieces, .. } = request;
        let lock = private::lock(&self.data, "trust")?;
        let path = self.copy_path(&folder);
        let copy = Copy { folder: folder.clone(), digest: digest.clone(), files: pieces };
        self.write(&path, &copy)?;
        self.change(|folders| folders.insert(folder, digest))?;
        drop(lock);
        Ok(())
    }

    /// Takes a folder off the list; false if it was not on it.
    pub fn remove(&mut self, root: &Path) -> Result<bool, Error> {
        let folder = real(root)?;
        if !self.folders.contains_key(&folder) {
            return Ok(false);
        }
        let lock = private::lock(&self.data, "trust")?;
        let known = self.change(|folders| folders.remove(&folder).is_some())?;
        // The list decides; a copy without an entry says nothing.
        let _ = std::fs::remove_file(self.copy_path(&folder));
        drop(lock);
        Ok(known)
    }

    /// Changes the list as it is now, which may have been changed since it was read.
    fn change<T>(
        &mut self,
        change: impl FnOnce(&mut BTreeMap<PathBuf, String>) -> T,
    ) -> Result<T, Error> {
        self.folders = Trust::read_in(&self.data)?.folders;
        let result = change(&mut self.folders);
        let stored = Stored { folders: self.folders.clone() };
        self.write(&self.data.join("trust.json"), &stored)?;
        Ok(result)
    }

    fn write(&self, path: &Path, value: &impl Serialize) -> Result<(), Error> {
        let failed = |source| Error::File { path: path.to_owned(), source };
        let text = serde_json::to_string_pretty(value).map_err(|error| failed(error.into()))?;
        private::make_folder(path.parent().unwrap_or(&self.data)).map_err(failed)?;
        private::replace(path, text.as_bytes()).map_err(failed)
    }

    /// What a folder held when it was trusted, if that was kept.
    fn copy(&self, folder: &Path, digest: &str) -> Option<Pieces> {
        let text = private::read(&self.copy_path(folder), LONGEST_COPY).ok()??;
        let copy: Copy = serde_json::from_str(&text).ok()?;
        (copy.folder == folder && copy.digest == digest).then_some(copy.files)
    }

    fn copy_path(&self, folder: &Path) -> PathBuf {
        let name = survey::hex(&Sha256::digest(folder.as_os_str().as_encoded_bytes()));
        self.data.join("trusted").join(format!("{name}.json"))
    }
}

pub(crate) fn real(root: &Path) -> Result<PathBuf, Error> {
    root.canonicalize().map_err(|source| Error::File { path: root.to_owned(), source })
}

#[cfg(test)]
mod tests;
