//! Scans a folder for everything that Windlass would run or obey, and reads each file once.
//!
//! Links are not followed: a link counts as the text of its target, and the target is not used.
//! Content that cannot be pinned (a pipe, a device, an unreadable file, too many files or bytes)
//! prevents trust in the folder. `AGENTS.md` is not included: it advises the model and runs
//! nothing.
#![allow(
    clippy::disallowed_methods,
    reason = "the project crate is the only one that accesses config files"
)]

use crate::config::file_parser::PROJECT_FILES;
use crate::hex::to_hex;
use crate::instruction_names::INSTRUCTION_FILE_NAMES;
use crate::trust::command_files::command_files;
use crate::trust::project_settings_summary::parse_settings;
use crate::{ProjectError, private_files};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// The paths that Windlass runs or obeys. A folder includes everything below it.
pub(super) const TRUSTED_PATHS: &[&str] =
    &["windlass.jsonc", ".mcp.json", ".windlass", OPENCODE_FOLDER];
/// The folders with custom tools and plugins, in `.windlass`, in `.opencode` and in the user's config
/// folder.
pub(crate) const TOOL_FOLDERS: [&str; 4] = ["tools", "tool", "plugins", "plugin"];
/// OpenCode's folder in a project, of which Windlass runs the tools and plugins. The packages in it
/// are not scanned, and cannot be imported.
const OPENCODE_FOLDER: &str = ".opencode";
const OPENCODE_PACKAGES: &str = ".opencode/node_modules";

/// The most files, and the most folders, of a folder that can be trusted: a user could not review
/// more.
pub(super) const MAX_FILES: usize = 1_000;
/// The most bytes of a folder that can be trusted.
pub(super) const MAX_TOTAL_BYTES: u64 = 16 << 20;
const MAX_CONFIG_BYTES: usize = 1 << 20;
/// Limits of the texts kept to show later changes: each, and in total.
const MAX_KEPT_TEXT_BYTES: usize = 64 << 10;
const MAX_KEPT_TOTAL_BYTES: usize = 256 << 10;

/// Kind of a scanned file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ScannedFileKind {
    File,
    Executable,
    /// A link, with its target as text.
    Link,
}

/// A file as scanned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ScannedFile {
    pub(super) kind: ScannedFileKind,
    pub(super) digest: String,
    /// The content, if it is text and not too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<String>,
}

/// Files by name, relative to the folder with `/` between parts.
pub(super) type ScannedFiles = BTreeMap<String, ScannedFile>;

/// A file of a trusted folder, as it was at the trust check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedFile {
    /// The name relative to the root, with `/` between parts.
    pub name: String,
    pub path: PathBuf,
    pub is_executable: bool,
    /// The SHA-256 of its content.
    pub digest: String,
}

impl TrustedFile {
    /// Reads the file again and returns `true` if it is unchanged.
    pub fn is_unchanged(&self) -> bool {
        let read_current = || -> std::io::Result<(bool, String)> {
            let file = private_files::private_options(std::fs::OpenOptions::new().read(true))
                .open(&self.path)?;
            let metadata = file.metadata()?;
            if !metadata.is_file() {
                return Err(ErrorKind::InvalidInput.into());
            }
            let mut bytes = Vec::new();
            file.take(MAX_TOTAL_BYTES + 1).read_to_end(&mut bytes)?;
            Ok((is_executable(&metadata), to_hex(&Sha256::digest(&bytes))))
        };
        read_current().is_ok_and(|current| current == (self.is_executable, self.digest.clone()))
    }
}

/// The result of a scan.
pub(super) struct TrustFolderScan {
    pub(super) scanned_files: ScannedFiles,
    /// Settings files that are regular files, by name, with the complete text that was hashed: the
    /// user is shown every setting, regardless of length.
    pub(super) settings: BTreeMap<String, String>,
    /// Documents in `.windlass` that are regular files, by name, with the text that was hashed.
    pub(super) documents: BTreeMap<String, String>,
    kept_bytes: usize,
    file_count: usize,
    folder_count: usize,
    total_bytes: u64,
}

/// Returns `true` for files whose settings are shown one by one.
pub(super) fn is_settings_file(name: &str) -> bool {
    PROJECT_FILES.contains(&name) || name == ".mcp.json"
}

/// Returns `true` for Markdown files in `.windlass`, such as agents.
fn is_document(name: &str, text: &str) -> bool {
    name.starts_with(".windlass/") && name.ends_with(".md") && text.len() <= MAX_CONFIG_BYTES
}

/// Returns `true` if a name is one of `TRUSTED_PATHS` or lies below one. These paths are protected
/// by their names.
pub(crate) fn is_trusted_path(name: &str) -> bool {
    let first = name.split('/').next().unwrap_or(name);
    TRUSTED_PATHS.contains(&first)
}

/// Returns `true` if a folder has one of `TRUSTED_PATHS`. Opens no file.
pub(super) fn has_trusted_paths(root: &Path) -> bool {
    let exists = |path: PathBuf| path.symlink_metadata().is_ok();
    TRUSTED_PATHS.iter().any(|name| match *name {
        OPENCODE_FOLDER => {
            let folder = root.join(name);
            TOOL_FOLDERS.iter().any(|tools| exists(folder.join(tools)))
        }
        name => exists(root.join(name)),
    })
}

/// Returns the names of the instruction files of a folder. Opens no file.
pub(super) fn instruction_names(root: &Path) -> impl Iterator<Item = &'static str> {
    let is_present = move |name: &&str| root.join(name).symlink_metadata().is_ok();
    INSTRUCTION_FILE_NAMES.into_iter().filter(is_present)
}

/// Returns the names of `TRUSTED_PATHS` and instruction files in a folder. Opens no file.
pub(super) fn offered_names(root: &Path) -> Vec<String> {
    let is_present = |name: &&str| root.join(name).symlink_metadata().is_ok();
    let names = TRUSTED_PATHS.iter().copied().filter(is_present);
    names.chain(instruction_names(root)).map(str::to_owned).collect()
}

impl TrustFolderScan {
    /// Scans the folder at this real path.
    pub(super) fn scan(root: &Path) -> Result<TrustFolderScan, ProjectError> {
        let mut folder_scan = TrustFolderScan {
            scanned_files: ScannedFiles::new(),
            settings: BTreeMap::new(),
            documents: BTreeMap::new(),
            kept_bytes: 0,
            file_count: 0,
            folder_count: 0,
            total_bytes: 0,
        };
        let mut pending: Vec<(PathBuf, String)> =
            TRUSTED_PATHS.iter().rev().map(|name| (root.join(name), (*name).to_owned())).collect();
        while let Some((path, name)) = pending.pop() {
            let metadata = match path.symlink_metadata() {
                Ok(metadata) => metadata,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(cannot_trust(&path, &error.to_string())),
            };
            // The other `TRUSTED_PATHS` must be files; as folders they have no meaning for us.
            let may_be_folder = name.starts_with(".windlass") || name.starts_with(OPENCODE_FOLDER);
            if name == OPENCODE_PACKAGES {
                continue;
            }
            if metadata.is_symlink() {
                folder_scan.scan_link(&path, name)?;
            } else if metadata.is_file() {
                folder_scan.scan_file(&path, name)?;
            } else if metadata.is_dir() && may_be_folder {
                folder_scan.scan_folder(&path, &name, &mut pending)?;
            } else {
                let reason =
                    "it is not a regular file, so its content cannot be reviewed. Remove it";
                return Err(cannot_trust(&path, reason));
            }
        }
        folder_scan.scan_command_files(root)?;
        Ok(folder_scan)
    }

    /// Scans the files that the commands in the settings name.
    fn scan_command_files(&mut self, root: &Path) -> Result<(), ProjectError> {
        let settings = self.settings.iter();
        let files: BTreeSet<String> = settings
            .flat_map(|(name, text)| command_files(root, &parse_settings(name, text).value))
            .filter(|name| !self.scanned_files.contains_key(name))
            .collect();
        for name in files {
            let path = root.join(&name);
            match path.symlink_metadata() {
                Ok(metadata) if metadata.is_symlink() => self.scan_link(&path, name)?,
                Ok(_) => self.scan_file(&path, name)?,
                Err(error) => return Err(cannot_trust(&path, &error.to_string())),
            }
        }
        Ok(())
    }

    pub(super) fn trusted_files(&self, root: &Path) -> Vec<TrustedFile> {
        let files =
            self.scanned_files.iter().filter(|(_, file)| file.kind != ScannedFileKind::Link);
        files
            .map(|(name, file)| TrustedFile {
                name: name.clone(),
                path: root.join(name),
                is_executable: file.kind == ScannedFileKind::Executable,
                digest: file.digest.clone(),
            })
            .collect()
    }

    /// Returns one digest of all scanned files.
    pub(super) fn digest(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(b"windlass trust, second form\n");
        for (name, file) in &self.scanned_files {
            let kind = match file.kind {
                ScannedFileKind::File => b'f',
                ScannedFileKind::Executable => b'p',
                ScannedFileKind::Link => b'l',
            };
            hash.update((name.len() as u64).to_le_bytes());
            hash.update(name.as_bytes());
            hash.update([kind]);
            hash.update(file.digest.as_bytes());
        }
        to_hex(&hash.finalize())
    }

    fn scan_folder(
        &mut self,
        path: &Path,
        name: &str,
        pending: &mut Vec<(PathBuf, String)>,
    ) -> Result<(), ProjectError> {
        let to_error = |error: std::io::Error| cannot_trust(path, &error.to_string());
        self.folder_count += 1;
        if self.folder_count > MAX_FILES {
            return Err(too_many_files(path));
        }
        for entry_name in list_names(path).map_err(to_error)? {
            let entry_name = entry_name.map_err(to_error)?;
            let entry_path = path.join(&entry_name);
            let Some(entry_name) = entry_name.to_str() else {
                return Err(cannot_trust(
                    &entry_path,
                    "its name is not valid UTF-8. Rename or remove it",
                ));
            };
            pending.push((entry_path, format!("{name}/{entry_name}")));
            // Bounds the listing of a folder with very many entries.
            if self.file_count + pending.len() > 2 * MAX_FILES + TRUSTED_PATHS.len() {
                return Err(too_many_files(path));
            }
        }
        Ok(())
    }

    fn scan_link(&mut self, path: &Path, name: String) -> Result<(), ProjectError> {
        let target = path.read_link().map_err(|error| cannot_trust(path, &error.to_string()))?;
        let digest = to_hex(&Sha256::digest(target.as_os_str().as_encoded_bytes()));
        let text = target.to_str().map(str::to_owned);
        self.add_file(path, name, ScannedFile { kind: ScannedFileKind::Link, digest, text })
    }

    fn scan_file(&mut self, path: &Path, name: String) -> Result<(), ProjectError> {
        let to_error = |error: std::io::Error| cannot_trust(path, &error.to_string());
        // The file may have been replaced by a pipe or a link in the meantime.
        let options = &mut std::fs::OpenOptions::new();
        let file =
            private_files::private_options(options.read(true)).open(path).map_err(to_error)?;
        let metadata = file.metadata().map_err(to_error)?;
        if !metadata.is_file() {
            return Err(cannot_trust(path, "it is not a regular file. Remove it"));
        }
        let mut bytes = Vec::new();
        let remaining = MAX_TOTAL_BYTES.saturating_sub(self.total_bytes);
        let read = file.take(remaining + 1).read_to_end(&mut bytes).map_err(to_error)? as u64;
        if read > remaining {
            let reason = format!(
                "with it, there are more than {} MB of files that Windlass would run or follow, \
                 too much to review",
                MAX_TOTAL_BYTES >> 20
            );
            return Err(cannot_trust(path, &reason));
        }
        self.total_bytes += read;
        let digest = to_hex(&Sha256::digest(&bytes));
        let text = String::from_utf8(bytes).ok();
        if is_settings_file(&name) {
            let is_small_enough = |text: &&String| text.len() <= MAX_CONFIG_BYTES;
            let Some(text) = text.as_ref().filter(is_small_enough) else {
                return Err(cannot_trust(
                    path,
                    "it is not UTF-8 text, or too large for a config file",
                ));
            };
            self.settings.insert(name.clone(), text.clone());
        }
        let text = text.filter(|text| !text.contains('\0'));
        if let Some(text) = text.as_ref().filter(|text| is_document(&name, text)) {
            self.documents.insert(name.clone(), text.clone());
        }
        let kind = if is_executable(&metadata) {
            ScannedFileKind::Executable
        } else {
            ScannedFileKind::File
        };
        self.add_file(path, name, ScannedFile { kind, digest, text })
    }

    fn add_file(
        &mut self,
        path: &Path,
        name: String,
        mut file: ScannedFile,
    ) -> Result<(), ProjectError> {
        self.file_count += 1;
        if self.file_count > MAX_FILES {
            return Err(too_many_files(path));
        }
        let length = file.text.as_ref().map_or(0, String::len);
        if length > MAX_KEPT_TEXT_BYTES || self.kept_bytes + length > MAX_KEPT_TOTAL_BYTES {
            file.text = None;
        } else {
            self.kept_bytes += length;
        }
        self.scanned_files.insert(name, file);
        Ok(())
    }
}

/// Lists the names in a folder with `NOFOLLOW`, so that it does not follow a link that may have
/// replaced it in the meantime.
#[cfg(unix)]
fn list_names(path: &Path) -> std::io::Result<impl Iterator<Item = std::io::Result<OsString>>> {
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
fn list_names(path: &Path) -> std::io::Result<impl Iterator<Item = std::io::Result<OsString>>> {
    Ok(std::fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.file_name())))
}

#[cfg(unix)]
fn is_executable(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    metadata.mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &std::fs::Metadata) -> bool {
    false
}

fn too_many_files(path: &Path) -> ProjectError {
    let reason = format!(
        "there are more than {MAX_FILES} files or folders that Windlass would run or follow, too \
         many to review"
    );
    cannot_trust(path, &reason)
}

fn cannot_trust(path: &Path, reason: &str) -> ProjectError {
    ProjectError::CannotTrust { path: path.to_owned(), reason: reason.to_owned() }
}
