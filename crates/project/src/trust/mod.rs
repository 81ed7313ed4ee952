//! Trust: the folders that the user has reviewed, and a digest of their content at that time.
//!
//! A folder is identified only by its real path; statements of `.git` or of files about other
//! folders are ignored. The list has one digest per folder. The reviewed texts are stored beside
//! it, so that a change can be shown. No file is opened in a folder that is not on the list.
#![allow(
    clippy::disallowed_methods,
    reason = "the project crate is the only one that accesses config files"
)]

pub(crate) mod command_files;
mod diff;
mod project_settings_summary;
mod scan;

use crate::config::file_parser::PROJECT_FILES;
use crate::hex::to_hex;
use crate::{Dirs, ProjectError, private_files};
pub use scan::TrustedFile;
use scan::{ScannedFileKind, ScannedFiles, TrustFolderScan};
pub(crate) use scan::{TOOL_FOLDERS, is_trusted_path};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The trust state of a project's folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FolderTrust {
    /// Not reviewed, and without content that Windlass would run or obey.
    NothingToTrust,
    /// With such content, which the user has not reviewed; it is ignored.
    Untrusted,
    /// With such content changed since the review; it is ignored.
    Changed,
    /// With such content, if any, unchanged since the review.
    Trusted,
}

/// A folder as shown to the user for review.
pub struct TrustRequest {
    folder: PathBuf,
    digest: String,
    scanned_files: ScannedFiles,
    /// The settings it would apply, line by line.
    pub settings_lines: Vec<String>,
    /// The files that Windlass would run or obey, by title.
    pub shown_files: Vec<String>,
    /// The files with instructions that the model would follow, by title. They are not part of the
    /// digest.
    pub instruction_files: Vec<String>,
    /// The changes since the folder was trusted.
    pub diff: TrustDiff,
}

/// The comparison of a folder with its trusted content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrustDiff {
    /// The folder is not on the list.
    NeverTrusted,
    Unchanged,
    /// Changed, but the trusted content was not kept.
    ChangedUnknown,
    /// Changed, with the differences line by line.
    Changed(Vec<String>),
}

/// The list of trusted folders, stored in `trust.json`.
#[derive(Debug)]
pub struct TrustStore {
    dirs: Dirs,
    list: TrustListFile,
}

/// The content of `trust.json`, by the canonical paths of the folders.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct TrustListFile {
    folders: BTreeMap<PathBuf, TrustListEntry>,
    /// Folders that the user declined to trust, with the names of what they offered then.
    #[serde(default)]
    declined: BTreeMap<PathBuf, Vec<String>>,
}

/// A trusted folder in `trust.json`.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct TrustListEntry {
    /// The digest of its trusted content.
    digest: String,
    /// `true` if trust does not change the default mode.
    #[serde(default)]
    keeps_asking: bool,
}

/// The content of a folder when it was trusted, stored in `trusted`.
#[derive(Deserialize, Serialize)]
struct TrustedFolderCopy {
    folder: PathBuf,
    digest: String,
    files: ScannedFiles,
}

/// The trust state of a folder and its usable content.
pub(crate) struct TrustCheckResult {
    pub(crate) trust: FolderTrust,
    /// `true` if the user trusts the folder, but chose to approve changes.
    pub(crate) keeps_asking: bool,
    /// `true` if the user declined to trust the folder, and it offers nothing else since.
    pub(crate) is_declined: bool,
    /// The config files (`PROJECT_FILES`) and their texts, weakest first; empty unless trusted.
    pub(crate) config_texts: Vec<(PathBuf, String)>,
    /// Links in place of a config file; they are not followed.
    pub(crate) config_links: Vec<PathBuf>,
    /// The documents in `.windlass`, by name relative to the root; empty unless trusted.
    pub(crate) documents: BTreeMap<String, String>,
    /// The path and text of `.mcp.json`; `None` unless trusted.
    pub(crate) mcp_list: Option<(PathBuf, String)>,
    /// All files except links; empty unless trusted.
    pub(crate) files: Vec<TrustedFile>,
}

/// Limits of the list file and of a stored copy.
const MAX_LIST_BYTES: u64 = 4 << 20;
const MAX_COPY_BYTES: u64 = 16 << 20;

impl TrustListFile {
    /// Reads the list; empty if there is none.
    fn read(data_dir: &Path) -> Result<TrustListFile, ProjectError> {
        let path = data_dir.join("trust.json");
        Ok(match private_files::read_private(&path, MAX_LIST_BYTES)? {
            None => TrustListFile::default(),
            Some(text) => serde_json::from_str(&text)
                .map_err(|error| private_files::corrupt_error(&path, &error))?,
        })
    }
}

impl TrustStore {
    /// Reads the list; empty if there is none.
    pub fn read(dirs: &Dirs) -> Result<TrustStore, ProjectError> {
        Ok(TrustStore { dirs: dirs.clone(), list: TrustListFile::read(&dirs.data)? })
    }

    /// Returns the folder under which the trust of a folder is stored.
    fn entry_folder<'a>(&'a self, folder: &'a Path) -> &'a Path {
        self.dirs.project_of(folder)
    }

    /// Returns the trust state of a folder, and its config if it is trusted. Content that can no
    /// longer be read counts as changed.
    pub(crate) fn check_folder(&self, root: &Path) -> Result<TrustCheckResult, ProjectError> {
        let without_content = |trust| TrustCheckResult {
            trust,
            keeps_asking: false,
            is_declined: false,
            config_texts: Vec::new(),
            config_links: Vec::new(),
            documents: BTreeMap::new(),
            mcp_list: None,
            files: Vec::new(),
        };
        // A folder that does not exist has nothing to run.
        let Ok(real) = real_path(root) else {
            return Ok(without_content(FolderTrust::NothingToTrust));
        };
        let Some(entry) = self.list.folders.get(self.entry_folder(&real)) else {
            let has_content = scan::has_trusted_paths(&real);
            let is_declined = self
                .list
                .declined
                .get(self.entry_folder(&real))
                .is_some_and(|names| *names == scan::offered_names(&real));
            let trust = match has_content {
                true => FolderTrust::Untrusted,
                false => FolderTrust::NothingToTrust,
            };
            return Ok(TrustCheckResult { is_declined, ..without_content(trust) });
        };
        let Ok(folder_scan) = TrustFolderScan::scan(&real) else {
            return Ok(without_content(FolderTrust::Changed));
        };
        if folder_scan.digest() != entry.digest {
            return Ok(without_content(FolderTrust::Changed));
        }
        let could_be_config = |name: &str| PROJECT_FILES.contains(&name) || name == ".windlass";
        let config_links = folder_scan.scanned_files.iter();
        let config_links = config_links
            .filter(|(name, file)| file.kind == ScannedFileKind::Link && could_be_config(name));
        let config_links = config_links.map(|(name, _)| real.join(name)).collect();
        let text = |name: &&str| {
            folder_scan.settings.get(*name).map(|text| (real.join(name), text.clone()))
        };
        let config_texts = PROJECT_FILES.iter().filter_map(text).collect();
        let mcp_list = text(&".mcp.json");
        let files = folder_scan.trusted_files(&real);
        let documents = folder_scan.documents;
        Ok(TrustCheckResult {
            trust: FolderTrust::Trusted,
            keeps_asking: entry.keeps_asking,
            is_declined: false,
            config_texts,
            config_links,
            documents,
            mcp_list,
            files,
        })
    }

    /// Prepares a folder for review. A folder with nothing to run or obey can be trusted too:
    /// anything that appears in it later is a change.
    pub fn prepare_request(&self, root: &Path) -> Result<TrustRequest, ProjectError> {
        let folder = real_path(root)?;
        let instruction_files = scan::instruction_names(&folder)
            .map(|name| format!("{name} (instructions for the model)"))
            .collect();
        if folder.to_str().is_none() {
            let reason = "its name is not valid UTF-8".to_owned();
            return Err(ProjectError::CannotTrust { path: folder, reason });
        }
        let folder_scan = TrustFolderScan::scan(&folder)?;
        let digest = folder_scan.digest();
        let settings = folder_scan.settings.iter();
        let settings_lines = settings
            .flat_map(|(name, text)| project_settings_summary::describe_settings(name, text))
            .collect();
        let scanned_files = folder_scan.scanned_files.iter();
        let shown_files = scanned_files.map(|(name, file)| diff::file_title(name, file)).collect();
        let entry_folder = self.entry_folder(&folder).to_owned();
        let diff = match self.list.folders.get(&entry_folder) {
            None => TrustDiff::NeverTrusted,
            Some(entry) if entry.digest == digest => TrustDiff::Unchanged,
            Some(entry) => match self.trusted_copy(&entry_folder, &entry.digest) {
                Some(trusted_files) => {
                    TrustDiff::Changed(diff::diff_lines(&trusted_files, &folder_scan.scanned_files))
                }
                None => TrustDiff::ChangedUnknown,
            },
        };
        Ok(TrustRequest {
            folder: entry_folder,
            digest,
            scanned_files: folder_scan.scanned_files,
            settings_lines,
            shown_files,
            instruction_files,
            diff,
        })
    }

    /// Trusts exactly the content that was shown. With `keeps_asking`, the default mode of the
    /// folder stays `ask`.
    pub fn add(&mut self, request: TrustRequest, keeps_asking: bool) -> Result<(), ProjectError> {
        let TrustRequest { folder, digest, scanned_files, .. } = request;
        let lock = private_files::lock_file(&self.dirs.data, "trust")?;
        let path = self.copy_path(&folder);
        let copy = TrustedFolderCopy {
            folder: folder.clone(),
            digest: digest.clone(),
            files: scanned_files,
        };
        self.write(&path, &copy)?;
        self.update(|list| {
            list.declined.remove(&folder);
            list.folders.insert(folder, TrustListEntry { digest, keeps_asking })
        })?;
        drop(lock);
        Ok(())
    }

    /// Declines trust: removes a folder from the list and returns `false` if it was not on it. The
    /// user is asked again when the folder offers something else.
    pub fn decline(&mut self, root: &Path) -> Result<bool, ProjectError> {
        let folder = real_path(root)?;
        let entry_folder = self.entry_folder(&folder).to_owned();
        let lock = private_files::lock_file(&self.dirs.data, "trust")?;
        let was_trusted = self.update(|list| {
            list.declined.insert(entry_folder.clone(), scan::offered_names(&folder));
            list.folders.remove(&entry_folder).is_some()
        })?;
        // The list decides; a copy without an entry has no meaning.
        let _ = std::fs::remove_file(self.copy_path(&entry_folder));
        drop(lock);
        Ok(was_trusted)
    }

    /// Updates the current list on disk, which may have changed since it was read.
    fn update<T>(
        &mut self,
        change: impl FnOnce(&mut TrustListFile) -> T,
    ) -> Result<T, ProjectError> {
        self.list = TrustListFile::read(&self.dirs.data)?;
        let result = change(&mut self.list);
        self.write(&self.dirs.data.join("trust.json"), &self.list)?;
        Ok(result)
    }

    fn write(&self, path: &Path, value: &impl Serialize) -> Result<(), ProjectError> {
        let to_error = |source| ProjectError::File { path: path.to_owned(), source };
        let text = serde_json::to_string_pretty(value).map_err(|error| to_error(error.into()))?;
        private_files::create_private_folder(path.parent().unwrap_or(&self.dirs.data))
            .map_err(to_error)?;
        private_files::replace_atomically(path, text.as_bytes()).map_err(to_error)
    }

    /// Returns the trusted content of a folder, if it was kept.
    fn trusted_copy(&self, folder: &Path, digest: &str) -> Option<ScannedFiles> {
        let text = private_files::read_private(&self.copy_path(folder), MAX_COPY_BYTES).ok()??;
        let copy: TrustedFolderCopy = serde_json::from_str(&text).ok()?;
        (copy.folder == folder && copy.digest == digest).then_some(copy.files)
    }

    fn copy_path(&self, folder: &Path) -> PathBuf {
        let name = to_hex(&Sha256::digest(folder.as_os_str().as_encoded_bytes()));
        self.dirs.data.join("trusted").join(format!("{name}.json"))
    }
}

pub(crate) fn real_path(root: &Path) -> Result<PathBuf, ProjectError> {
    root.canonicalize().map_err(|source| ProjectError::File { path: root.to_owned(), source })
}

#[cfg(test)]
mod tests;
