//! Markers that show how a project is set up.
//!
//! Markers are searched in a folder and in those above it, never outside of the workspace. File
//! contents are read only where that needs no approval. A marker that cannot be read counts as
//! absent.

use regex::RegexBuilder;
use serde::Deserialize;
use serde_json::Value;
use windlass_sandbox::CallWorkspace;

/// Limit for the folders that [`ancestors`] returns.
const MAX_PARENT_FOLDERS: usize = 32;

const MAX_FILE_BYTES: u64 = 1 << 20;

/// Memory limit for a configured regex.
const MAX_REGEX_BYTES: usize = 1 << 20;

/// A sign in a folder, or in one above it, that a project uses something, such as `deno.json`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum ProjectMarker {
    /// A file with this name.
    File(String),
    /// Any of several markers.
    AnyFile(Vec<ProjectMarker>),
    /// A JSON file with a minimum version. The nearest file of that name decides.
    Version {
        /// Name of the file.
        file: String,
        /// JSON pointer to the version.
        pointer: String,
        /// Lowest major version.
        least: u64,
    },
    /// A file whose text matches a regex.
    FileContains {
        /// Name of the file.
        file: String,
        /// Regex in which `^` and `$` match at line boundaries.
        holds: String,
    },
}

impl ProjectMarker {
    /// Returns true if the marker is in a folder of the workspace or in one above it.
    pub fn is_present(&self, granted: &CallWorkspace, folder: &str) -> bool {
        self.find_folder(granted, folder).is_some()
    }

    /// Returns the nearest folder with the marker, from `folder` upward.
    pub fn find_folder<'a>(&self, granted: &CallWorkspace, folder: &'a str) -> Option<&'a str> {
        match self {
            ProjectMarker::File(file) => ancestors(folder)
                .find(|ancestor| resolve_file(granted, &join_path(ancestor, file)).is_some()),
            ProjectMarker::AnyFile(markers) => {
                // All folders are on one path upward, so the nearest has the longest name.
                let folders =
                    markers.iter().filter_map(|marker| marker.find_folder(granted, folder));
                folders.max_by_key(|ancestor| if *ancestor == "." { 0 } else { ancestor.len() })
            }
            ProjectMarker::FileContains { file, holds } => {
                let mut regex = RegexBuilder::new(holds);
                let regex = regex.multi_line(true).size_limit(MAX_REGEX_BYTES).build().ok()?;
                ancestors(folder).find(|ancestor| {
                    read_small_file(granted, &join_path(ancestor, file))
                        .is_some_and(|text| regex.is_match(&text))
                })
            }
            ProjectMarker::Version { file, pointer, least } => {
                let has_file =
                    |ancestor: &&str| resolve_file(granted, &join_path(ancestor, file)).is_some();
                let ancestor = ancestors(folder).find(has_file)?;
                let content = read_small_file(granted, &join_path(ancestor, file))?;
                let content: Value = serde_json::from_str(&content).ok()?;
                (major_version(content.pointer(pointer)?)? >= *least).then_some(ancestor)
            }
        }
    }
}

/// Parses the major version.
fn major_version(version: &Value) -> Option<u64> {
    let Some(text) = version.as_str() else { return version.as_u64() };
    let digits = text.trim_start_matches(['v', '=', '^', '~', ' ']);
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits.get(..end)?.parse().ok()
}

/// Iterates over a folder and those above it, nearest first. `.` is the workspace itself.
pub fn ancestors(folder: &str) -> impl Iterator<Item = &str> {
    let folder = if folder.is_empty() { "." } else { folder };
    std::iter::successors(Some(folder), |folder| parent_folder(folder)).take(MAX_PARENT_FOLDERS)
}

fn parent_folder(folder: &str) -> Option<&str> {
    match folder {
        "." => None,
        folder => Some(folder.rsplit_once('/').map_or(".", |(parent, _)| parent)),
    }
}

/// Joins a folder of the workspace and a name.
pub fn join_path(folder: &str, name: &str) -> String {
    if folder == "." { name.to_owned() } else { format!("{folder}/{name}") }
}

/// Returns the real path of a regular file in the workspace. Follows links that stay inside it.
pub fn resolve_file(granted: &CallWorkspace, path: &str) -> Option<String> {
    let real = granted.workspace().resolve_inside(path).ok()?;
    granted.workspace().stat(&real).map(|_| real)
}

/// Reads a file of the workspace if it has at most `MAX_FILE_BYTES` and needs no approval.
pub fn read_small_file(granted: &CallWorkspace, path: &str) -> Option<String> {
    let real = granted.workspace().resolve_inside(path).ok()?;
    granted.workspace().stat(&real).filter(|stat| stat.size <= MAX_FILE_BYTES)?;
    let bytes = granted.read_unasked(&real).filter(|bytes| bytes.len() as u64 <= MAX_FILE_BYTES)?;
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests;
