//! Everything in a folder that Windlass would run or obey, each file read once.
//!
//! Links are not followed: a link counts as the text of its target, and nothing behind it is used.
//! What cannot be pinned down (a pipe, a device, a file nobody can read, too much of everything) is
//! a reason not to trust the folder at all. `AGENTS.md` is not part of it: it advises the model and
//! runs nothing.
#![allow(clippy::disallowed_methods, reason = "project is the door to config files")]

use crate::config::PROJECT_FILES;
use crate::{Error, private};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Where a project keeps what Windlass runs or obeys. A folder counts with everything beneath it.
pub(super) const PLACES: &[&str] = &["windlass.jsonc", ".mcp.json", ".windlass"];

/// No folder with more files is trusted, nor one with more folders: nobody could look at them.
pub(super) const MOST_FILES: usize = 1_000;
/// No folder with more bytes is trusted.
pub(super) const MOST_BYTES: u64 = 16 << 20;
/// A config has no business being longer.
const LONGEST_CONFIG: usize = 1 << 20;
/// The texts that are kept to show later what changed: each, and all together.
const LONGEST_KEPT: usize = 64 << 10;
const MOST_KEPT: usize = 256 << 10;

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    File,
    /// A file that the system would run.
    Program,
    /// Its text is what it leads to.
    Link,
}

/// One file as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Piece {
    pub(super) kind: Kind,
    pub(super) digest: String,
    /// What stands in it, if that is text and not too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<String>,
}

/// The files by their names, which are relative to the folder, with `/` between parts.
pub(super) type Pieces = BTreeMap<String, Piece>;

/// A file of a trusted folder, as it was when it was compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surveyed {
    /// Its name from the root, with `/` between parts.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// The system would run it.
    pub is_program: bool,
    /// The SHA-256 of its bytes.
    pub digest: String,
}

impl Surveyed {
    /// True if it is still that.
    pub fn is_intact(&self) -> bool {
        let now = || -> std::io::Result<(bool, String)> {
            let file = private::plain(std::fs::OpenOptions::new().read(true)).open(&self.path)?;
            let data = file.metadata()?;
            if !data.is_file() {
                return Err(ErrorKind::InvalidInput.into());
            }
            let mut bytes = Vec::new();
            file.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
            Ok((is_program(&data), hex(&Sha256::digest(&bytes))))
        };
        now().is_ok_and(|now| now == (self.is_program, self.digest.clone()))
    }
}

/// What was found.
pub(super) struct Survey {
    pub(super) pieces: Pieces,
    /// The files with settings that are there as files, by name, whole as they were when they were
    /// hashed: whoever is asked is shown all they set, however long they are.
    pub(super) settings: BTreeMap<String, String>,
    /// The documents in `.windlass` that are there as files, by name, as they were when they were
    /// hashed.
    pub(super) documents: BTreeMap<String, String>,
    kept: usize,
    files: usize,
    folders: usize,
    bytes: u64,
}

/// True for the files whose settings are shown one by one.
pub(super) fn has_settings(name: &str) -> bool {
    PROJECT_FILES.contains(&name) || name == ".mcp.json"
}

/// True for what describes agents and the like.
fn is_document(name: &str, text: &str) -> bool {
    name.starts_with(".windlass/") && name.ends_with(".md") && text.len() <= LONGEST_CONFIG
}

/// True if a folder has something of that kind. Opens nothing.
pub(super) fn is_there(root: &Path) -> bool {
    PLACES.iter().any(|name| root.join(name).symlink_metadata().is_ok())
}

impl Survey {
    /// Reads everything that counts. The folder is given by its real path.
    pub(super) fn of(root: &Path) -> Result<Survey, Error> {
        let mut survey = Survey {
            pieces: Pieces::new(),
            settings: BTreeMap::new(),
            documents: BTreeMap::new(),
            kept: 0,
            files: 0,
            folders: 0,
            bytes: 0,
        };
        let mut waiting: Vec<(PathBuf, String)> =
            PLACES.iter().rev().map(|name| (root.join(name), (*name).to_owned())).collect();
        while let Some((path, name)) = waiting.pop() {
            let data = match path.symlink_metadata() {
                Ok(data) => data,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(untrustable(&path, &error.to_string())),
            };
            // The others of these names are files, or they mean nothing that we know.
            let may_be_folder = name.starts_with(".windlass");
            if data.is_symlink() {
                survey.link(&path, name)?;
            } else if data.is_file() {
                survey.file(&path, name)?;
            } else if data.is_dir() && may_be_folder {
                survey.folder(&path, &name, &mut waiting)?;
            } else {
                let reason = "it is no plain file, so nobody can say what it holds. Remove it";
                return Err(untrustable(&path, reason));
            }
        }
        Ok(survey)
    }

    /// The files that are no links.
    pub(super) fn files(&self, root: &Path) -> Vec<Surveyed> {
        let files = self.pieces.iter().filter(|(_, piece)| piece.kind != Kind::Link);
        files
            .map(|(name, piece)| Surveyed {
                name: name.clone(),
                path: root.join(name),
                is_program: piece.kind == Kind::Program,
                digest: piece.digest.clone(),
            })
            .collect()
    }

    /// One digest for all of it.
    pub(super) fn digest(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(b"windlass trust, second form\n");
        for (name, piece) in &self.pieces {
            let kind = match piece.kind {
                Kind::File => b'f',
                Kind::Program => b'p',
                Kind::Link => b'l',
            };
            hash.update((name.len() as u64).to_le_bytes());
            hash.update(name.as_bytes());
            hash.update([kind]);
            hash.update(piece.digest.as_bytes());
        }
        hex(&hash.finalize())
    }

    fn folder(
        &mut self,
        path: &Path,
        name: &str,
        waiting: &mut Vec<(PathBuf, String)>,
    ) -> Result<(), Error> {
        let failed = |error: std::io::Error| untrustable(path, &error.to_string());
        self.folders += 1;
        if self.folders > MOST_FILES {
            return Err(too_many(path));
        }
        for below in entries(path).map_err(failed)? {
            let below = below.map_err(failed)?;
            let whole = path.join(&below);
            let Some(below) = below.to_str() else {
                return Err(untrustable(&whole, "its name is not text. Rename or remove it"));
            };
            waiting.push((whole, format!("{name}/{below}")));
            // Nobody is to make us list a folder without end.
            if self.files + waiting.len() > 2 * MOST_FILES + PLACES.len() {
                return Err(too_many(path));
            }
        }
        Ok(())
    }

    fn link(&mut self, path: &Path, name: String) -> Result<(), Error> {
        let target = path.read_link().map_err(|error| untrustable(path, &error.to_string()))?;
        let digest = hex(&Sha256::digest(target.as_os_str().as_encoded_bytes()));
        let text = target.to_str().map(str::to_owned);
        self.add(path, name, Piece { kind: Kind::Link, digest, text })
    }

    fn file(&mut self, path: &Path, name: String) -> Result<(), Error> {
        let failed = |error: std::io::Error| untrustable(path, &error.to_string());
        // What was a file a moment ago may be a pipe or a link by now.
        let options = &mut std::fs::OpenOptions::new();
        let file = private::plain(options.read(true)).open(path).map_err(failed)?;
        let data = file.metadata().map_err(failed)?;
        if !data.is_file() {
            return Err(untrustable(path, "it is no plain file. Remove it"));
        }
        let mut bytes = Vec::new();
        let left = MOST_BYTES.saturating_sub(self.bytes);
        let read = file.take(left + 1).read_to_end(&mut bytes).map_err(failed)? as u64;
        if read > left {
            let reason = format!(
                "with it there is more than {} MB that Windlass would run or obey, too much to \
                 look at",
                MOST_BYTES >> 20
            );
            return Err(untrustable(path, &reason));
        }
        self.bytes += read;
        let digest = hex(&Sha256::digest(&bytes));
        let text = String::from_utf8(bytes).ok();
        if has_settings(&name) {
            let fits = |text: &&String| text.len() <= LONGEST_CONFIG;
            let Some(text) = text.as_ref().filter(fits) else {
                return Err(untrustable(path, "it is not text, or longer than a config can be"));
            };
            self.settings.insert(name.clone(), text.clone());
        }
        let text = text.filter(|text| !text.contains('\0'));
        if let Some(text) = text.as_ref().filter(|text| is_document(&name, text)) {
            self.documents.insert(name.clone(), text.clone());
        }
        let kind = if is_program(&data) { Kind::Program } else { Kind::File };
        self.add(path, name, Piece { kind, digest, text })
    }

    fn add(&mut self, path: &Path, name: String, mut piece: Piece) -> Result<(), Error> {
        self.files += 1;
        if self.files > MOST_FILES {
            return Err(too_many(path));
        }
        let length = piece.text.as_ref().map_or(0, String::len);
        if length > LONGEST_KEPT || self.kept + length > MOST_KEPT {
            piece.text = None;
        } else {
            self.kept += length;
        }
        self.pieces.insert(name, piece);
        Ok(())
    }
}

/// The names in a folder. What was a folder a moment ago may be a link by now.
#[cfg(unix)]
fn entries(path: &Path) -> std::io::Result<impl Iterator<Item = std::io::Result<OsString>>> {
    use rustix::fs::{CWD, Dir, Mode, OFlags, openat};
    use std::os::unix::ffi::OsStringExt;
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let entries = Dir::new(openat(CWD, path, flags, Mode::empty())?)?;
    let names = entries.map(|entry| {
        entry
            .map(|entry| OsString::from_vec(entry.file_name().to_bytes().to_owned()))
            .map_err(std::io::Error::from)
    });
    Ok(names.filter(|name| !name.as_ref().is_ok_and(|name| name == "." || name == "..")))
}

#[cfg(not(unix))]
fn entries(path: &Path) -> std::io::Result<impl Iterator<Item = std::io::Result<OsString>>> {
    Ok(std::fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.file_name())))
}

#[cfg(unix)]
fn is_program(data: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    data.mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn is_program(_: &std::fs::Metadata) -> bool {
    false
}

fn too_many(path: &Path) -> Error {
    let reason = format!(
        "there are more than {MOST_FILES} files or folders that Windlass would run or obey, too \
         many to look at"
    );
    untrustable(path, &reason)
}

fn untrustable(path: &Path, reason: &str) -> Error {
    Error::Untrustable { path: path.to_owned(), reason: reason.to_owned() }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
