//! What a plugin's folder or tarball holds, read once into memory: what is shown, what is hashed and
//! what is written to the store are the same bytes.
//!
//! Nothing is unpacked on the way, so that a name that leads out, or a link that a later file goes
//! through, has nowhere to lead. Start reading at [`Contents::add`], which decides what may be there.
#![allow(clippy::disallowed_methods, reason = "project is the door to config files")]

use super::Source;
use crate::tools::{Kind, kind, restrict};
use crate::trust::hex;
use crate::{Error, private};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// No plugin has more files, nor more bytes.
const MOST_FILES: usize = 1_000;
const MOST_BYTES: u64 = 16 << 20;
/// What a tarball may be unpacked: its files, their heads and what fills the blocks.
const MOST_STREAM: u64 = MOST_BYTES + (4 << 20);
/// No name is longer or deeper.
const LONGEST_NAME: usize = 255;
const DEEPEST: usize = 8;
/// What git keeps for itself is no part of a plugin.
const GIT: &str = ".git";

/// What becomes of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Links {
    /// One that stays inside is the file it leads to.
    Inside,
    /// There must be none.
    Refused,
}

/// A file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) kind: Kind,
    pub(super) bytes: Vec<u8>,
}

/// The files of a plugin, by their names with `/` between parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    items: BTreeMap<String, Item>,
    bytes: u64,
}

impl Contents {
    /// Reads what the person names: a folder, or a packed archive.
    pub fn at(path: &Path) -> Result<(Contents, Source), Error> {
        let whole = path.canonicalize().map_err(|error| unfit(path, error.to_string()))?;
        match whole.is_dir() {
            true => Ok((Contents::of_folder(&whole)?, Source::Folder(whole))),
            false => Ok((Contents::of_tarball(&whole)?, Source::Tarball(whole))),
        }
    }

    /// Reads a folder that the person names, without what git keeps in it.
    pub fn of_folder(folder: &Path) -> Result<Contents, Error> {
        Contents::read(folder, Links::Inside)
    }

    /// Reads a packed archive (`.tgz`) that the person names, as npm makes them. If everything in it
    /// lies in one folder, that is the plugin's.
    pub fn of_tarball(path: &Path) -> Result<Contents, Error> {
        let unfit = |reason: String| unfit(path, reason);
        let failed = |error: std::io::Error| unfit(error.to_string());
        let file = std::fs::File::open(path).map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(unfit("it is no file".to_owned()));
        }
        Contents::unpack(file).map_err(unfit)
    }

    fn unpack(packed: impl Read) -> Result<Contents, String> {
        Contents::list(flate2::read::MultiGzDecoder::new(packed)).map(Contents::without_top)
    }

    /// Takes an archive that is not packed, as git writes them.
    pub fn of_archive(bytes: &[u8], what: &str) -> Result<Contents, Error> {
        let unfit = |reason| Error::Plugin { what: what.to_owned(), reason };
        Contents::list(bytes).map_err(unfit)
    }

    fn list(stream: impl Read) -> Result<Contents, String> {
        let broken = |error: std::io::Error| format!("it cannot be unpacked ({error})");
        let mut archive = tar::Archive::new(stream.take(MOST_STREAM));
        let mut contents = Contents::default();
        for entry in archive.entries().map_err(broken)? {
            let mut entry = entry.map_err(broken)?;
            let name = String::from_utf8(entry.path_bytes().into_owned());
            let name = name.map_err(|_| "a name in it is no text".to_owned())?;
            let header = entry.header();
            match header.entry_type() {
                tar::EntryType::Regular | tar::EntryType::Continuous => {}
                // What such a program was called with is no file.
                tar::EntryType::XGlobalHeader => continue,
                tar::EntryType::Directory => {
                    fit(name.trim_end_matches('/').trim_start_matches("./"))?;
                    continue;
                }
                tar::EntryType::Symlink | tar::EntryType::Link => {
                    return Err(format!("{name} is a link, and an archive may hold none"));
                }
                _ => return Err(format!("{name} is neither a file nor a folder")),
            }
            let kind = match header.mode().map_err(broken)? & 0o111 {
                0 => Kind::Plain,
                _ => Kind::Program,
            };
            let mut bytes = Vec::new();
            let left = MOST_BYTES.saturating_sub(contents.bytes);
            (&mut entry).take(left + 1).read_to_end(&mut bytes).map_err(broken)?;
            contents.add(name.strip_prefix("./").unwrap_or(&name), kind, bytes)?;
        }
        if archive.into_inner().limit() == 0 {
            return Err(too_large());
        }
        Ok(contents)
    }

    /// The longest archive that is read, in bytes.
    pub const LONGEST_ARCHIVE: u64 = MOST_STREAM;

    /// The same without the one folder that all of it lies in.
    fn without_top(self) -> Contents {
        let manifest = super::manifest::PLACES.iter().any(|place| self.items.contains_key(*place));
        let first = self.items.keys().next().and_then(|name| name.split_once('/'));
        let Some(top) = first.map(|(top, _)| format!("{top}/")).filter(|_| !manifest) else {
            return self;
        };
        if !self.items.keys().all(|name| name.starts_with(&top)) {
            return self;
        }
        let short = |name: String| name.strip_prefix(&top).map(str::to_owned).unwrap_or(name);
        let items = self.items.into_iter().map(|(name, item)| (short(name), item)).collect();
        Contents { items, bytes: self.bytes }
    }

    /// Reads what lies in the store.
    pub(super) fn of_store(folder: &Path) -> Result<Contents, Error> {
        Contents::read(folder, Links::Refused)
    }

    fn read(folder: &Path, links: Links) -> Result<Contents, Error> {
        let top = folder.canonicalize().map_err(|error| unfit(folder, error.to_string()))?;
        let mut contents = Contents::default();
        contents.gather(&top, links).map_err(|reason| unfit(folder, reason))?;
        Ok(contents)
    }

    fn gather(&mut self, top: &Path, links: Links) -> Result<(), String> {
        let mut waiting = vec![(top.to_owned(), String::new())];
        let mut folders = 0;
        while let Some((folder, prefix)) = waiting.pop() {
            folders += 1;
            let entries =
                std::fs::read_dir(&folder).map_err(|error| format!("{prefix}: {error}"))?;
            for entry in entries {
                let entry = entry.map_err(|error| format!("{prefix}: {error}"))?;
                let name = entry.file_name().into_string();
                let name = name.map_err(|_| format!("a name in {prefix} is no text"))?;
                if links == Links::Inside && name == GIT {
                    continue;
                }
                let name = format!("{prefix}{name}");
                fit(&name)?;
                let path = folder.join(entry.file_name());
                let kind = path.symlink_metadata().map_err(|error| format!("{name}: {error}"))?;
                if kind.is_dir() {
                    waiting.push((path, format!("{name}/")));
                    if waiting.len() + folders > MOST_FILES {
                        return Err(too_many());
                    }
                    continue;
                }
                let path = if kind.is_symlink() { led(top, &path, &name, links)? } else { path };
                self.take(&path, &name)?;
            }
        }
        Ok(())
    }

    fn take(&mut self, path: &Path, name: &str) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("{name}: {error}");
        // What was a file a moment ago may be a pipe or a link by now.
        let file = private::plain(std::fs::OpenOptions::new().read(true)).open(path);
        let file = file.map_err(failed)?;
        let data = file.metadata().map_err(failed)?;
        if !data.is_file() {
            return Err(format!("{name} is neither a file nor a folder"));
        }
        let mut bytes = Vec::new();
        let left = MOST_BYTES.saturating_sub(self.bytes);
        file.take(left + 1).read_to_end(&mut bytes).map_err(failed)?;
        self.add(name, kind(&data), bytes)
    }

    /// Adds a file, or says why it cannot be there.
    pub(super) fn add(&mut self, name: &str, kind: Kind, bytes: Vec<u8>) -> Result<(), String> {
        fit(name)?;
        self.bytes += bytes.len() as u64;
        if self.bytes > MOST_BYTES {
            return Err(too_large());
        }
        if self.items.len() >= MOST_FILES {
            return Err(too_many());
        }
        let around = name.match_indices('/').filter_map(|(at, _)| name.get(..at));
        let mut beneath = self.items.range(format!("{name}/")..);
        if around.into_iter().any(|folder| self.items.contains_key(folder))
            || beneath.next().is_some_and(|(next, _)| next.starts_with(&format!("{name}/")))
        {
            return Err(format!("{name} is a file and a folder at once"));
        }
        match self.items.insert(name.to_owned(), Item { kind, bytes }) {
            None => Ok(()),
            Some(_) => Err(format!("{name} is in it twice")),
        }
    }

    /// What names all of it.
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(b"windlass plugin, first form\n");
        for (name, item) in &self.items {
            let kind = match item.kind {
                Kind::Plain => b'f',
                Kind::Program => b'p',
            };
            hash.update((name.len() as u64).to_le_bytes());
            hash.update(name.as_bytes());
            hash.update([kind]);
            hash.update((item.bytes.len() as u64).to_le_bytes());
            hash.update(&item.bytes);
        }
        hex(&hash.finalize())
    }

    /// True if there is a file of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.items.contains_key(name)
    }

    /// What stands in a file; none if there is none, an error if it is no text.
    pub(super) fn text(&self, name: &str) -> Option<Result<&str, String>> {
        let item = self.items.get(name)?;
        Some(std::str::from_utf8(&item.bytes).map_err(|_| "it is no text".to_owned()))
    }

    /// The files beneath a folder such as `skills/`: their names from there.
    pub(super) fn beneath(&self, folder: &str) -> impl Iterator<Item = (&str, &Item)> {
        let after = self.items.range(folder.to_owned()..);
        after.map_while(move |(name, item)| Some((name.strip_prefix(folder)?, item)))
    }

    /// The names of what is there now and was not, or was otherwise, and of what is gone.
    pub(super) fn since(&self, before: &Contents) -> Vec<String> {
        let mut changes: Vec<String> = Vec::new();
        for (name, item) in &self.items {
            match before.items.get(name) {
                None => changes.push(format!("+ {name}")),
                Some(old) if old != item => changes.push(format!("~ {name}")),
                Some(_) => {}
            }
        }
        let gone = before.items.keys().filter(|name| !self.items.contains_key(*name));
        changes.extend(gone.map(|name| format!("- {name}")));
        changes
    }

    /// Writes all of it to where nothing is.
    pub(super) fn lay_out(&self, place: &Path) -> std::io::Result<()> {
        private::make_folder(place)?;
        for (name, item) in &self.items {
            let path = place.join(name);
            if let Some(folder) = path.parent() {
                private::make_folder(folder)?;
            }
            let mut options = std::fs::OpenOptions::new();
            let mut file = private::plain(options.write(true).create_new(true)).open(&path)?;
            file.write_all(&item.bytes)?;
            file.sync_all()?;
            restrict(&path, item.kind)?;
        }
        Ok(())
    }
}

/// Where a link leads, which must be a file inside.
fn led(top: &Path, path: &Path, name: &str, links: Links) -> Result<PathBuf, String> {
    if links == Links::Refused {
        return Err(format!("{name} has become a link"));
    }
    let real = path.canonicalize().map_err(|error| match error.kind() {
        ErrorKind::NotFound => format!("{name} is a link that leads nowhere"),
        _ => format!("{name}: {error}"),
    })?;
    if !real.starts_with(top) {
        return Err(format!("{name} is a link that leads out of the folder"));
    }
    if !real.is_file() {
        return Err(format!("{name} is a link to a folder, and only files can be linked to"));
    }
    Ok(real)
}

/// Says what is wrong with a name. One that is fit stays beneath whatever folder it is put in.
fn fit(name: &str) -> Result<(), String> {
    let shown: String = name.chars().take(80).collect();
    if name.len() > LONGEST_NAME || name.split('/').count() > DEEPEST {
        return Err(format!("the name {shown}… is too long or too deep"));
    }
    let odd = |letter: char| letter.is_control() || letter == '\\';
    if name.contains(odd) || name.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err(format!("the name {shown:?} could lead out of the plugin's folder"));
    }
    Ok(())
}

fn unfit(path: &Path, reason: String) -> Error {
    Error::Plugin { what: path.display().to_string(), reason }
}

fn too_many() -> String {
    format!("it holds more than {MOST_FILES} files or folders")
}

fn too_large() -> String {
    format!("it holds more than {} MiB", MOST_BYTES >> 20)
}

#[cfg(test)]
mod tests;
