//! The source of a plugin.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// The source of an installed plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PluginSource {
    /// A local folder.
    Folder(PathBuf),
    /// A git repository.
    Git {
        url: String,
        /// The commit that was installed.
        commit: String,
    },
    /// A compressed archive.
    Tarball(PathBuf),
    /// An npm package.
    Npm {
        package: String,
        /// The version that was installed.
        version: String,
    },
}

impl PluginSource {
    /// Returns the source of a plugin in a folder of this source.
    #[must_use]
    pub fn in_folder(self, folder: &str) -> PluginSource {
        match self {
            _ if folder.is_empty() => self,
            PluginSource::Folder(path) => PluginSource::Folder(path.join(folder)),
            PluginSource::Git { url, commit } => {
                PluginSource::Git { url: format!("{url} ({folder})"), commit }
            }
            PluginSource::Tarball(_) | PluginSource::Npm { .. } => self,
        }
    }
}

impl fmt::Display for PluginSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PluginSource::Folder(path) | PluginSource::Tarball(path) => {
                write!(f, "{}", path.display())
            }
            PluginSource::Npm { package, version } => write!(f, "npm:{package}@{version}"),
            PluginSource::Git { url, commit } => {
                let short: String = commit.chars().take(12).collect();
                write!(f, "{url} at {short}")
            }
        }
    }
}
