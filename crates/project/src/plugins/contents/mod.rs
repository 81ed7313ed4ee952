//! The content of a plugin's folder or tarball, read once into memory: the bytes that are shown,
//! hashed and written to the store are the same.
//!
//! Nothing is unpacked to disk, so a name that leads outside, or a link that a later file passes
//! through, has no effect. Start reading at [`PluginContents::add`], which decides what a plugin
//! may contain.
#![allow(
    clippy::disallowed_methods,
    reason = "the project crate is the only one that accesses config files"
)]

use super::source::PluginSource;
use crate::custom_tools::file_role::{ToolFileKind, file_kind, set_read_only};
use crate::hex::to_hex;
use crate::{ProjectError, private_files};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// The paths of a manifest; the first that exists counts.
pub(super) const MANIFEST_PATHS: [&str; 2] = ["plugin.json", ".claude-plugin/plugin.json"];
/// Limits of a plugin's files and bytes.
const MAX_FILES: usize = 4_000;
const MAX_TOTAL_BYTES: u64 = 48 << 20;
/// Limit of an unpacked tarball: its files, their headers and the padding.
const MAX_UNPACKED_BYTES: u64 = MAX_TOTAL_BYTES + (4 << 20);
/// Limits of a file name and its depth.
const MAX_NAME_BYTES: usize = 255;
const MAX_DEPTH: usize = 16;
/// Git's own data in `.git` is not part of a plugin.
const GIT_FOLDER: &str = ".git";

/// The handling of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PluginLinkPolicy {
    /// A link that stays inside counts as its target file.
    FollowInside,
    /// Any link is an error.
    Forbidden,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PluginFile {
    pub(super) kind: ToolFileKind,
    pub(super) bytes: Vec<u8>,
}

/// The files of a plugin, by names with `/` between parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginContents {
    files: BTreeMap<String, PluginFile>,
    total_bytes: u64,
}

impl PluginContents {
    /// Reads a folder or a compressed archive that the user names. Of a folder only the file or
    /// folder `part` is read; an empty `part` means all.
    pub fn read_path(
        path: &Path,
        part: &str,
    ) -> Result<(PluginContents, PluginSource), ProjectError> {
        let real_path =
            path.canonicalize().map_err(|error| plugin_error(path, error.to_string()))?;
        match real_path.is_dir() {
            true => {
                let links = PluginLinkPolicy::FollowInside;
                let contents = PluginContents::read_folder(&real_path, part, links)?;
                Ok((contents, PluginSource::Folder(real_path)))
            }
            false => {
                Ok((PluginContents::from_tarball(&real_path)?, PluginSource::Tarball(real_path)))
            }
        }
    }

    /// Reads a folder that the user names, without `.git`.
    pub fn from_folder(folder: &Path) -> Result<PluginContents, ProjectError> {
        PluginContents::read_folder(folder, "", PluginLinkPolicy::FollowInside)
    }

    /// Reads a compressed archive (`.tgz`) that the user names, as npm creates them. If all files
    /// are in one folder, that folder is the plugin's root.
    pub fn from_tarball(path: &Path) -> Result<PluginContents, ProjectError> {
        let to_error = |reason: String| plugin_error(path, reason);
        let io_error = |error: std::io::Error| to_error(error.to_string());
        let file = std::fs::File::open(path).map_err(io_error)?;
        if !file.metadata().map_err(io_error)?.is_file() {
            return Err(to_error("not a regular file".to_owned()));
        }
        PluginContents::unpack_gzip(file).map_err(to_error)
    }

    fn unpack_gzip(packed: impl Read) -> Result<PluginContents, String> {
        PluginContents::read_tar(flate2::read::MultiGzDecoder::new(packed))
            .map(PluginContents::strip_top_folder)
    }

    /// Reads an uncompressed archive, as `git archive` creates them.
    pub fn from_tar(bytes: &[u8], name: &str) -> Result<PluginContents, ProjectError> {
        let to_error = |reason| ProjectError::Plugin { name: name.to_owned(), reason };
        PluginContents::read_tar(bytes).map_err(to_error)
    }

    fn read_tar(stream: impl Read) -> Result<PluginContents, String> {
        let unpack_error = |error: std::io::Error| format!("cannot unpack it ({error})");
        let mut archive = tar::Archive::new(stream.take(MAX_UNPACKED_BYTES));
        let mut contents = PluginContents::default();
        for entry in archive.entries().map_err(unpack_error)? {
            let mut entry = entry.map_err(unpack_error)?;
            let name = String::from_utf8(entry.path_bytes().into_owned());
            let name = name.map_err(|_| "a file name in it is not valid UTF-8".to_owned())?;
            let header = entry.header();
            match header.entry_type() {
                tar::EntryType::Regular | tar::EntryType::Continuous => {}
                // A global header contains metadata, not a file.
                tar::EntryType::XGlobalHeader => continue,
                tar::EntryType::Directory => {
                    check_name(name.trim_end_matches('/').trim_start_matches("./"))?;
                    continue;
                }
                tar::EntryType::Symlink | tar::EntryType::Link => {
                    return Err(format!("{name} is a link; archives with links are not supported"));
                }
                _ => return Err(format!("{name} is neither a file nor a folder")),
            }
            let kind = match header.mode().map_err(unpack_error)? & 0o111 {
                0 => ToolFileKind::Plain,
                _ => ToolFileKind::Executable,
            };
            let mut bytes = Vec::new();
            let remaining = MAX_TOTAL_BYTES.saturating_sub(contents.total_bytes);
            (&mut entry).take(remaining + 1).read_to_end(&mut bytes).map_err(unpack_error)?;
            contents.add(name.strip_prefix("./").unwrap_or(&name), kind, bytes)?;
        }
        if archive.into_inner().limit() == 0 {
            return Err(too_many_bytes());
        }
        Ok(contents)
    }

    /// The maximum size of an archive, in bytes.
    pub const MAX_ARCHIVE_BYTES: u64 = MAX_UNPACKED_BYTES;

    /// Removes the top folder if all files are in it.
    fn strip_top_folder(self) -> PluginContents {
        let has_manifest = MANIFEST_PATHS.iter().any(|path| self.files.contains_key(*path));
        let first = self.files.keys().next().and_then(|name| name.split_once('/'));
        let Some(top) = first.map(|(top, _)| format!("{top}/")).filter(|_| !has_manifest) else {
            return self;
        };
        if !self.files.keys().all(|name| name.starts_with(&top)) {
            return self;
        }
        let strip_top = |name: String| name.strip_prefix(&top).map(str::to_owned).unwrap_or(name);
        let files = self.files.into_iter().map(|(name, file)| (strip_top(name), file)).collect();
        PluginContents { files, total_bytes: self.total_bytes }
    }

    /// Reads a plugin from the store.
    pub(super) fn from_store(folder: &Path) -> Result<PluginContents, ProjectError> {
        PluginContents::read_folder(folder, "", PluginLinkPolicy::Forbidden)
    }

    fn read_folder(
        folder: &Path,
        part: &str,
        links: PluginLinkPolicy,
    ) -> Result<PluginContents, ProjectError> {
        let root =
            folder.canonicalize().map_err(|error| plugin_error(folder, error.to_string()))?;
        let mut contents = PluginContents::default();
        contents.add_folder(&root, part, links).map_err(|reason| plugin_error(folder, reason))?;
        Ok(contents)
    }

    fn add_folder(
        &mut self,
        root: &Path,
        part: &str,
        links: PluginLinkPolicy,
    ) -> Result<(), String> {
        let mut pending = vec![(root.to_owned(), String::new())];
        let mut folder_count = 0;
        while let Some((folder, prefix)) = pending.pop() {
            folder_count += 1;
            let entries =
                std::fs::read_dir(&folder).map_err(|error| format!("{prefix}: {error}"))?;
            for entry in entries {
                let entry = entry.map_err(|error| format!("{prefix}: {error}"))?;
                let name = entry.file_name().into_string();
                let name =
                    name.map_err(|_| format!("a file name in {prefix} is not valid UTF-8"))?;
                if links == PluginLinkPolicy::FollowInside && name == GIT_FOLDER {
                    continue;
                }
                let name = format!("{prefix}{name}");
                if !is_same_branch(&name, part) {
                    continue;
                }
                check_name(&name)?;
                let path = folder.join(entry.file_name());
                let metadata =
                    path.symlink_metadata().map_err(|error| format!("{name}: {error}"))?;
                if metadata.is_dir() {
                    pending.push((path, format!("{name}/")));
                    if pending.len() + folder_count > MAX_FILES {
                        return Err(too_many_files());
                    }
                    continue;
                }
                let path = if metadata.is_symlink() {
                    resolve_link(root, &path, &name, links)?
                } else {
                    path
                };
                self.add_disk_file(&path, &name)?;
            }
        }
        Ok(())
    }

    fn add_disk_file(&mut self, path: &Path, name: &str) -> Result<(), String> {
        let to_error = |error: std::io::Error| format!("{name}: {error}");
        // The file may have been replaced by a pipe or a link in the meantime.
        let file =
            private_files::private_options(std::fs::OpenOptions::new().read(true)).open(path);
        let file = file.map_err(to_error)?;
        let metadata = file.metadata().map_err(to_error)?;
        if !metadata.is_file() {
            return Err(format!("{name} is neither a file nor a folder"));
        }
        let mut bytes = Vec::new();
        let remaining = MAX_TOTAL_BYTES.saturating_sub(self.total_bytes);
        file.take(remaining + 1).read_to_end(&mut bytes).map_err(to_error)?;
        self.add(name, file_kind(&metadata), bytes)
    }

    /// Adds a file, or returns the reason why a plugin may not contain it.
    pub(super) fn add(
        &mut self,
        name: &str,
        kind: ToolFileKind,
        bytes: Vec<u8>,
    ) -> Result<(), String> {
        check_name(name)?;
        self.total_bytes += bytes.len() as u64;
        if self.total_bytes > MAX_TOTAL_BYTES {
            return Err(too_many_bytes());
        }
        if self.files.len() >= MAX_FILES {
            return Err(too_many_files());
        }
        let parents = name.match_indices('/').filter_map(|(index, _)| name.get(..index));
        let mut children = self.files.range(format!("{name}/")..);
        if parents.into_iter().any(|folder| self.files.contains_key(folder))
            || children.next().is_some_and(|(next, _)| next.starts_with(&format!("{name}/")))
        {
            return Err(format!("{name} is both a file and a folder"));
        }
        match self.files.insert(name.to_owned(), PluginFile { kind, bytes }) {
            None => Ok(()),
            Some(_) => Err(format!("{name} appears twice")),
        }
    }

    /// Returns a digest of all files.
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(b"windlass plugin, first form\n");
        for (name, file) in &self.files {
            let kind = match file.kind {
                ToolFileKind::Plain => b'f',
                ToolFileKind::Executable => b'p',
            };
            hash.update((name.len() as u64).to_le_bytes());
            hash.update(name.as_bytes());
            hash.update([kind]);
            hash.update((file.bytes.len() as u64).to_le_bytes());
            hash.update(&file.bytes);
        }
        to_hex(&hash.finalize())
    }

    /// Returns `true` if there is a file of this name.
    pub(super) fn contains(&self, name: &str) -> bool {
        self.files.contains_key(name)
    }

    /// Returns the text of a file; `None` if there is none, an error if it is not UTF-8.
    pub(super) fn read_text(&self, name: &str) -> Option<Result<&str, String>> {
        let file = self.files.get(name)?;
        Some(std::str::from_utf8(&file.bytes).map_err(|_| "not UTF-8 text".to_owned()))
    }

    /// Returns the files below a folder such as `skills/`, with names relative to it.
    pub(super) fn files_beneath(&self, folder: &str) -> impl Iterator<Item = (&str, &PluginFile)> {
        let candidates = self.files.range(folder.to_owned()..);
        candidates.map_while(move |(name, file)| Some((name.strip_prefix(folder)?, file)))
    }

    /// Lists the names of added, changed and removed files.
    pub(super) fn changed_names(&self, previous: &PluginContents) -> Vec<String> {
        let mut changes: Vec<String> = Vec::new();
        for (name, file) in &self.files {
            match previous.files.get(name) {
                None => changes.push(format!("+ {name}")),
                Some(old) if old != file => changes.push(format!("~ {name}")),
                Some(_) => {}
            }
        }
        let removed = previous.files.keys().filter(|name| !self.files.contains_key(*name));
        changes.extend(removed.map(|name| format!("- {name}")));
        changes
    }

    /// Writes all files to a new folder.
    pub(super) fn write_to(&self, target: &Path) -> std::io::Result<()> {
        private_files::create_private_folder(target)?;
        for (name, plugin_file) in &self.files {
            let path = target.join(name);
            if let Some(folder) = path.parent() {
                private_files::create_private_folder(folder)?;
            }
            let mut options = std::fs::OpenOptions::new();
            let mut file =
                private_files::private_options(options.write(true).create_new(true)).open(&path)?;
            file.write_all(&plugin_file.bytes)?;
            file.sync_all()?;
            set_read_only(&path, plugin_file.kind)?;
        }
        Ok(())
    }
}

/// Returns `true` if `name` is in `part`, or `part` in `name`. Everything is in an empty `part`.
fn is_same_branch(name: &str, part: &str) -> bool {
    name.split('/').zip(part.split('/')).all(|(a, b)| a == b) || part.is_empty()
}

/// Resolves a link, whose target must be a file inside.
fn resolve_link(
    root: &Path,
    path: &Path,
    name: &str,
    links: PluginLinkPolicy,
) -> Result<PathBuf, String> {
    if links == PluginLinkPolicy::Forbidden {
        return Err(format!("{name} has become a symbolic link"));
    }
    let target = path.canonicalize().map_err(|error| match error.kind() {
        ErrorKind::NotFound => format!("{name} is a broken symbolic link"),
        _ => format!("{name}: {error}"),
    })?;
    if !target.starts_with(root) {
        return Err(format!("{name} is a symbolic link that points outside the folder"));
    }
    if !target.is_file() {
        return Err(format!(
            "{name} is a symbolic link to a folder; only links to files are supported"
        ));
    }
    Ok(target)
}

/// Checks a name. A valid name stays below any folder it is joined to.
fn check_name(name: &str) -> Result<(), String> {
    let display_name: String = name.chars().take(80).collect();
    if name.len() > MAX_NAME_BYTES || name.split('/').count() > MAX_DEPTH {
        return Err(format!("the name {display_name}… is too long or nested too deeply"));
    }
    let is_invalid = |c: char| c.is_control() || c == '\\';
    if name.contains(is_invalid) || name.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err(format!("the name {display_name:?} could point outside the plugin's folder"));
    }
    Ok(())
}

fn plugin_error(path: &Path, reason: String) -> ProjectError {
    ProjectError::Plugin { name: path.display().to_string(), reason }
}

fn too_many_files() -> String {
    format!("it contains more than {MAX_FILES} files or folders")
}

fn too_many_bytes() -> String {
    format!("it contains more than {} MiB", MAX_TOTAL_BYTES >> 20)
}

#[cfg(test)]
mod tests;
