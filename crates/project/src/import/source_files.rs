//! Reads files of other programs safely: plain files only, each of limited size, and no link that
//! leads outside. It runs nothing and does not read the environment.
#![allow(
    clippy::disallowed_methods,
    reason = "the project crate is the only one that accesses config files"
)]

use crate::private_files;
use serde_json::{Map, Value};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Limits the entries read of a folder, and the depth.
const MAX_NAMES: usize = 2_000;
const MAX_DEPTH: usize = 6;

/// A folder to read from, by names with `/` between parts.
pub(super) struct ImportSourceFolder {
    base: PathBuf,
    link_policy: ImportLinkPolicy,
    home: PathBuf,
}

/// The links that a `ImportSourceFolder` follows.
enum ImportLinkPolicy {
    /// None: the target of a project's link is not part of the project.
    None,
    /// Links that stay within these folders, for users who keep their config elsewhere.
    Within(Vec<PathBuf>),
}

/// A file below a folder.
pub(super) struct ImportSourceEntry {
    /// The name relative to that folder, with `/` between parts.
    pub(super) name: String,
    /// The name relative to `ImportSourceFolder::base`.
    pub(super) full_name: String,
}

/// The files below a folder, and the entries that are not read, with the reason.
pub(super) type SourceListing = (Vec<ImportSourceEntry>, Vec<(String, String)>);

pub(super) struct ImportSourceContent {
    pub(super) bytes: Vec<u8>,
    pub(super) is_executable: bool,
}

impl ImportSourceFolder {
    /// Returns the files of a project, with `ImportLinkPolicy::None`.
    pub(super) fn project(root: &Path, home: &Path) -> ImportSourceFolder {
        ImportSourceFolder {
            base: root.to_owned(),
            link_policy: ImportLinkPolicy::None,
            home: home.to_owned(),
        }
    }

    /// Returns the files of the user, with `ImportLinkPolicy::Within` the base and the home folder.
    pub(super) fn user(base: &Path, home: &Path) -> ImportSourceFolder {
        let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let folders = vec![canonical(base), canonical(home)];
        ImportSourceFolder {
            base: base.to_owned(),
            link_policy: ImportLinkPolicy::Within(folders),
            home: home.to_owned(),
        }
    }

    /// Returns the user's home folder.
    pub(super) fn home(&self) -> &Path {
        &self.home
    }

    /// Returns the name of a file as shown to the user.
    pub(super) fn display_name(&self, name: &str) -> String {
        match &self.link_policy {
            ImportLinkPolicy::None => name.to_owned(),
            ImportLinkPolicy::Within(_) => display_path(&self.base.join(name), &self.home),
        }
    }

    /// Resolves a name to a real path; `None` if it does not exist, an error if the policy forbids
    /// the link.
    fn resolve(&self, name: &str) -> Result<Option<PathBuf>, String> {
        let path = self.base.join(name);
        match &self.link_policy {
            ImportLinkPolicy::None => {
                let mut current = self.base.clone();
                for part in name.split('/') {
                    current.push(part);
                    match current.symlink_metadata() {
                        Ok(metadata) if metadata.is_symlink() => {
                            return Err("symbolic links are not followed".into());
                        }
                        Ok(_) => {}
                        Err(error) => return missing_as_none(&error),
                    }
                }
                Ok(Some(current))
            }
            ImportLinkPolicy::Within(folders) => match path.canonicalize() {
                Ok(real) if folders.iter().any(|folder| real.starts_with(folder)) => Ok(Some(real)),
                Ok(_) => Err("it is a symbolic link to a path outside your home folder".into()),
                Err(_) if path.is_symlink() => Err("it is a broken symbolic link".into()),
                Err(error) => missing_as_none(&error),
            },
        }
    }

    /// Returns `true` if an entry of any kind exists.
    pub(super) fn exists(&self, name: &str) -> bool {
        self.base.join(name).symlink_metadata().is_ok()
    }

    /// Reads a file of at most `max_bytes` bytes; `None` if it does not exist.
    pub(super) fn read_bytes(
        &self,
        name: &str,
        max_bytes: u64,
    ) -> Result<Option<ImportSourceContent>, String> {
        let Some(path) = self.resolve(name)? else { return Ok(None) };
        let to_error = |error: std::io::Error| error.to_string();
        let file =
            private_files::private_options(std::fs::OpenOptions::new().read(true)).open(&path);
        let file = file.map_err(to_error)?;
        let metadata = file.metadata().map_err(to_error)?;
        if !metadata.is_file() {
            return Err("not a regular file".into());
        }
        let mut bytes = Vec::new();
        if file.take(max_bytes + 1).read_to_end(&mut bytes).map_err(to_error)? as u64 > max_bytes {
            return Err(format!("larger than {}", format_size(max_bytes)));
        }
        Ok(Some(ImportSourceContent { bytes, is_executable: is_executable(&metadata) }))
    }

    /// Reads a file as UTF-8 text.
    pub(super) fn read_text(&self, name: &str, max_bytes: u64) -> Result<Option<String>, String> {
        let Some(file) = self.read_bytes(name, max_bytes)? else { return Ok(None) };
        let text = String::from_utf8(file.bytes).map_err(|_| "not UTF-8 text")?;
        Ok(Some(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text)))
    }

    /// Reads a JSON object, with or without comments. The error does not quote the content, which
    /// may be a secret.
    pub(super) fn read_json_object(
        &self,
        name: &str,
        max_bytes: u64,
    ) -> Result<Option<Map<String, Value>>, String> {
        let Some(text) = self.read_text(name, max_bytes)? else { return Ok(None) };
        let options = jsonc_parser::ParseOptions::default();
        let value = jsonc_parser::parse_to_serde_value::<Value>(&text, &options);
        match value.map_err(|error| format!("invalid JSON: line {}", error.line_display()))? {
            Value::Object(map) => Ok(Some(map)),
            Value::Null => Ok(Some(Map::new())),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Err("not an object, { … }".into())
            }
        }
    }

    /// Lists the files below a folder, sorted, and the entries that are not read, with the reason.
    /// `None` if there is no such folder.
    pub(super) fn list_files(&self, folder: &str) -> Result<Option<SourceListing>, String> {
        let Some(root) = self.resolve(folder)? else { return Ok(None) };
        if !root.is_dir() {
            return Err("not a folder".into());
        }
        let mut entries = Vec::new();
        let mut faults = Vec::new();
        let mut scanned_names = 0;
        let mut pending = vec![(String::new(), 0)];
        while let Some((relative, depth)) = pending.pop() {
            let full_name = if relative.is_empty() {
                folder.to_owned()
            } else {
                format!("{folder}/{relative}")
            };
            let listed = self.resolve(&full_name).and_then(|path| list_names(path.as_deref()));
            let names = match listed {
                Ok(names) => names,
                Err(reason) => {
                    faults.push((full_name, reason));
                    continue;
                }
            };
            for name in names {
                scanned_names += 1;
                if scanned_names > MAX_NAMES {
                    faults
                        .push((folder.to_owned(), format!("contains more than {MAX_NAMES} files")));
                    return Ok(Some((entries, faults)));
                }
                let (full_name, name) =
                    (format!("{full_name}/{name}"), join_names(&relative, &name));
                match self.resolve(&full_name) {
                    Err(reason) => faults.push((full_name, reason)),
                    Ok(None) => {}
                    Ok(Some(path)) if !path.is_dir() => {
                        entries.push(ImportSourceEntry { name, full_name })
                    }
                    Ok(Some(_)) if depth >= MAX_DEPTH => {
                        faults.push((full_name, format!("nested deeper than {MAX_DEPTH} folders")));
                    }
                    Ok(Some(_)) => pending.push((name, depth + 1)),
                }
            }
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Some((entries, faults)))
    }
}

fn join_names(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// Lists the UTF-8 names in a folder, without `node_modules` and hidden entries.
fn list_names(folder: Option<&Path>) -> Result<Vec<String>, String> {
    let Some(folder) = folder else { return Ok(Vec::new()) };
    let to_error = |error: std::io::Error| error.to_string();
    let mut names = Vec::new();
    for entry in folder.read_dir().map_err(to_error)?.take(MAX_NAMES + 1) {
        let name = entry.map_err(to_error)?.file_name();
        let name = name.into_string().map_err(|_| "a file name in it is not valid UTF-8")?;
        if !name.starts_with('.') && name != "node_modules" {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

fn missing_as_none<T>(error: &std::io::Error) -> Result<Option<T>, String> {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Ok(None),
        _ => Err(error.to_string()),
    }
}

fn format_size(bytes: u64) -> String {
    if bytes >= 1 << 20 { format!("{} MB", bytes >> 20) } else { format!("{} kB", bytes >> 10) }
}

/// Formats a path for the user, with `~` for the home folder.
pub(super) fn display_path(path: &Path, home: &Path) -> String {
    match path.strip_prefix(home) {
        Ok(rest) => format!("~/{}", rest.display()),
        Err(_) => path.display().to_string(),
    }
}

#[cfg(unix)]
fn is_executable(metadata: &std::fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::mode(metadata) & 0o111 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &std::fs::Metadata) -> bool {
    false
}
