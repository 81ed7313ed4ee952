//! Plugins: third-party folders with skills, commands, agents, servers, hooks and tools.
//!
//! After the user reviews and approves its access, a plugin is copied into a store under the digest
//! of its content. Each start computes the digest again and leaves out a plugin that differs.
//! Plugins belong to the user: a project cannot bring one. This module starts no process. Start
//! reading at [`InstalledPlugins::inspect`], then at [`InstalledPlugins::load_all`].
#![allow(
    clippy::disallowed_methods,
    reason = "the project crate is the only one that accesses config files"
)]

mod access_summary;
mod components;
mod contents;
mod line_escaping;
mod manifest;
mod marketplace;
mod mcp_servers;
mod npm_package;
mod plugin_folders;
mod source;

pub use access_summary::PluginDiff;
pub(crate) use components::PluginAgent;
pub use components::{PluginComponents, PluginTool};
pub use contents::PluginContents;
pub use manifest::{PluginManifest, PluginManifestFormat};
pub use marketplace::{
    MarketplacePlugin, MarketplacePluginSource, PluginMarketplace, PluginMarketplaces, github_url,
    is_marketplace_name,
};
pub use npm_package::NpmPackageSpec;
pub(crate) use npm_package::PACKAGE_ENTRY_MARKER;
pub use plugin_folders::PluginDirs;
pub use source::PluginSource;

use crate::config::file_parser::{ConfigDiagnostic, ConfigLayer, ConfigOrigin};
use crate::{Dirs, ProjectError, private_files};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use windlass_protocol::ClaudeToolNames;

const MAX_LIST_BYTES: u64 = 1 << 20;
const MAX_PLUGINS: usize = 100;

/// A plugin that the user approved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstalledPlugin {
    /// The digest of the approved content.
    pub digest: String,
    /// The approved version, if `plugin.json` has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    pub source: PluginSource,
}

/// The list of installed plugins, stored in `plugins.json`.
#[derive(Clone, Debug)]
pub struct InstalledPlugins {
    dirs: Dirs,
    all: BTreeMap<String, InstalledPlugin>,
    claude_tools: ClaudeToolNames,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PluginListFile {
    plugins: BTreeMap<String, InstalledPlugin>,
}

/// A plugin before approval.
#[derive(Clone, Debug)]
pub struct PluginCandidate {
    pub manifest: PluginManifest,
    /// The digest of its content.
    pub digest: String,
    /// The access it gets, one line each.
    pub access_lines: Vec<String>,
    /// Unusable parts, with the reason.
    pub faults: Vec<String>,
    pub components: PluginComponents,
    contents: PluginContents,
}

impl PluginCandidate {
    /// Writes its content to a new folder, and creates an empty home folder for its scripts.
    pub fn write_to(&self, root: &Path, home: &Path) -> Result<(), ProjectError> {
        let to_error = |source| ProjectError::File { path: root.to_owned(), source };
        self.contents.write_to(root).map_err(to_error)?;
        private_files::create_private_folder(home).map_err(to_error)
    }

    /// Returns the hosts that its components request, each with the name of the component.
    pub fn requested_hosts(&self) -> Vec<(String, &[String])> {
        let access = &self.manifest.access;
        let servers = access.servers.iter();
        let servers = servers
            .map(|(name, server_access)| (format!("the server {name}"), &*server_access.network));
        servers.chain([("tools".to_owned(), &*access.tools.network)]).collect()
    }
}

/// A plugin whose content matches the approved digest.
#[derive(Clone, Debug)]
pub struct LoadedPlugin {
    pub manifest: PluginManifest,
    pub plugin_dirs: PluginDirs,
    pub components: PluginComponents,
}

impl LoadedPlugin {
    /// Describes the access it has, one line each.
    pub fn access_lines(&self) -> Vec<String> {
        access_summary::access_lines(&self.manifest, &self.components, &self.plugin_dirs)
    }

    /// Returns the additional access of its tools: `write` and `network` of its manifest.
    pub fn tool_access(&self) -> (bool, &[String]) {
        let access = &self.manifest.access.tools;
        (access.write, &access.network)
    }
}

impl InstalledPlugins {
    /// Reads the list of installed plugins.
    pub fn read(dirs: &Dirs) -> Result<InstalledPlugins, ProjectError> {
        let path = list_path(dirs);
        let all = match private_files::read_private(&path, MAX_LIST_BYTES)? {
            None => BTreeMap::new(),
            Some(text) => {
                let list = serde_json::from_str::<PluginListFile>(&text);
                list.map_err(|error| private_files::corrupt_error(&path, &error))?.plugins
            }
        };
        let is_digest =
            |digest: &str| digest.len() == 64 && digest.bytes().all(|b| b.is_ascii_hexdigit());
        if !all
            .iter()
            .all(|(name, plugin)| manifest::is_valid_name(name) && is_digest(&plugin.digest))
        {
            return Err(ProjectError::Corrupt {
                path,
                reason: "invalid name or digest".to_owned(),
            });
        }
        let claude_tools = ClaudeToolNames::default();
        Ok(InstalledPlugins { dirs: dirs.clone(), all, claude_tools })
    }

    /// Sets the names of our tools in Claude Code, for agents in its format.
    #[must_use]
    pub fn with_claude_tools(self, claude_tools: ClaudeToolNames) -> InstalledPlugins {
        InstalledPlugins { claude_tools, ..self }
    }

    /// Inspects a plugin and returns a `PluginCandidate`: its manifest, the access it gets, its
    /// unusable parts.
    pub fn inspect(&self, contents: PluginContents) -> Result<PluginCandidate, ProjectError> {
        let (manifest, mut faults) = PluginManifest::read(&contents)?;
        let digest = contents.digest();
        let plugin_dirs = PluginDirs::new(&self.dirs, &manifest.name, &digest);
        let components =
            components::read_components(&contents, &manifest, &plugin_dirs, &self.claude_tools);
        faults.extend(components.faults.iter().cloned());
        let faults = faults.iter().map(|fault| line_escaping::escape_line(fault)).collect();
        let access_lines = access_summary::access_lines(&manifest, &components, &plugin_dirs);
        Ok(PluginCandidate { manifest, digest, access_lines, faults, components, contents })
    }

    /// Compares a candidate with the installed plugin of its name; `None` if there is none.
    pub fn compare_installed(&self, candidate: &PluginCandidate) -> Option<PluginDiff> {
        let name = &candidate.manifest.name;
        let plugin = self.all.get(name)?;
        let plugin_dirs = PluginDirs::new(&self.dirs, name, &plugin.digest);
        let installed = PluginContents::from_store(&plugin_dirs.root).ok();
        let installed = installed.filter(|installed| installed.digest() == plugin.digest);
        Some(PluginDiff::between(
            installed.and_then(|installed| self.inspect(installed).ok()),
            candidate,
        ))
    }

    /// Installs a plugin and replaces the one of its name.
    pub fn add(
        &mut self,
        candidate: &PluginCandidate,
        source: PluginSource,
    ) -> Result<(), ProjectError> {
        let name = &candidate.manifest.name;
        let _lock = private_files::lock_file(&self.dirs.data, "plugins")?;
        self.all = InstalledPlugins::read(&self.dirs)?.all;
        if self.all.len() >= MAX_PLUGINS && !self.all.contains_key(name) {
            let reason = format!("there are already {MAX_PLUGINS} plugins; remove one first");
            return Err(ProjectError::Plugin { name: name.clone(), reason });
        }
        let plugin_dirs = PluginDirs::new(&self.dirs, name, &candidate.digest);
        let to_error = |source| ProjectError::File { path: plugin_dirs.root.clone(), source };
        self.write_to_store(candidate, &plugin_dirs).map_err(to_error)?;
        private_files::create_private_folder(&plugin_dirs.data).map_err(to_error)?;
        let (digest, version) = (candidate.digest.clone(), candidate.manifest.version.clone());
        let previous = self.all.insert(name.clone(), InstalledPlugin { digest, version, source });
        self.write()?;
        if let Some(previous) = previous.filter(|previous| previous.digest != candidate.digest) {
            let old_root = PluginDirs::new(&self.dirs, name, &previous.digest).root;
            let _ = std::fs::remove_dir_all(old_root);
        }
        Ok(())
    }

    /// Writes a plugin under a draft name and then renames it, so that no process sees a partial
    /// copy.
    fn write_to_store(
        &self,
        candidate: &PluginCandidate,
        plugin_dirs: &PluginDirs,
    ) -> std::io::Result<()> {
        let root = &plugin_dirs.root;
        if PluginContents::from_store(root).is_ok_and(|existing| existing == candidate.contents) {
            return Ok(());
        }
        remove_folder(root)?;
        let draft = root.with_file_name(format!(".{}-{}", plugin_dirs.plugin, std::process::id()));
        remove_folder(&draft)?;
        let result =
            candidate.contents.write_to(&draft).and_then(|()| std::fs::rename(&draft, root));
        if result.is_err() {
            let _ = std::fs::remove_dir_all(&draft);
        }
        result
    }

    /// Removes a plugin and returns the path of its data folder, which stays unless it is empty.
    /// `None` if there is no such plugin.
    pub fn remove(&mut self, name: &str) -> Result<Option<PathBuf>, ProjectError> {
        let _lock = private_files::lock_file(&self.dirs.data, "plugins")?;
        self.all = InstalledPlugins::read(&self.dirs)?.all;
        let Some(plugin) = self.all.remove(name) else { return Ok(None) };
        self.write()?;
        let plugin_dirs = PluginDirs::new(&self.dirs, name, &plugin.digest);
        let to_error = |source| ProjectError::File { path: plugin_dirs.root.clone(), source };
        remove_folder(&plugin_dirs.root).map_err(to_error)?;
        let _ = std::fs::remove_dir(&plugin_dirs.data);
        Ok(Some(plugin_dirs.data))
    }

    fn write(&self) -> Result<(), ProjectError> {
        let path = list_path(&self.dirs);
        let to_error = |source| ProjectError::File { path: path.clone(), source };
        let text = serde_json::to_string_pretty(&PluginListFile { plugins: self.all.clone() });
        let text = text.map_err(|error| to_error(error.into()))?;
        private_files::replace_atomically(&path, text.as_bytes()).map_err(to_error)
    }

    /// Returns all installed plugins by name.
    pub fn all(&self) -> impl Iterator<Item = (&str, &InstalledPlugin)> {
        self.all.iter().map(|(name, plugin)| (name.as_str(), plugin))
    }

    /// Returns the installed plugin of this name.
    pub fn find(&self, name: &str) -> Option<&InstalledPlugin> {
        self.all.get(name)
    }

    /// Loads the plugins that are unchanged since approval, and returns a `ConfigDiagnostic` for
    /// each of the others.
    pub fn load_all(&self) -> (Vec<LoadedPlugin>, Vec<ConfigDiagnostic>) {
        let mut loaded = Vec::new();
        let mut diagnostics = Vec::new();
        for (name, plugin) in &self.all {
            match self.load_one(name, plugin) {
                Ok(loaded_plugin) => loaded.push(loaded_plugin),
                Err(reason) => {
                    let file = Some(list_path(&self.dirs));
                    let origin =
                        ConfigOrigin { layer: ConfigLayer::Plugin, file, line: 1, column: 1 };
                    let message = format!(
                        "the plugin {name} is skipped: {reason}. Add it again (from {}) or remove \
                         it: windlass plugin remove {name}",
                        plugin.source
                    );
                    diagnostics.push(ConfigDiagnostic { origin, message, fatal: false });
                }
            }
        }
        (loaded, diagnostics)
    }

    /// Loads one plugin if it is unchanged since approval.
    pub fn load_one(&self, name: &str, plugin: &InstalledPlugin) -> Result<LoadedPlugin, String> {
        let mut plugin_dirs = PluginDirs::new(&self.dirs, name, &plugin.digest);
        // Taken before the read, so that a change in between is noticed later.
        let stamp = plugin_dirs.change_stamp();
        let contents = match PluginContents::from_store(&plugin_dirs.root) {
            Ok(contents) if contents.digest() == plugin.digest => contents,
            Ok(_) => return Err("its files have changed since you added it".to_owned()),
            Err(ProjectError::Plugin { reason, .. }) => {
                return Err(format!("its files changed: {reason}"));
            }
            Err(error) => return Err(error.to_string()),
        };
        plugin_dirs.change_stamp = stamp;
        let (manifest, _) = PluginManifest::read(&contents).map_err(|error| error.to_string())?;
        if manifest.name != name {
            return Err("its name has changed".to_owned());
        }
        private_files::create_private_folder(&plugin_dirs.data)
            .map_err(|error| error.to_string())?;
        let components =
            components::read_components(&contents, &manifest, &plugin_dirs, &self.claude_tools);
        Ok(LoadedPlugin { manifest, plugin_dirs, components })
    }
}

/// A temporary folder for downloads, removed on drop.
pub struct PluginDownloadDir(PathBuf);

impl PluginDownloadDir {
    /// Creates a new folder in the cache.
    pub fn new(dirs: &Dirs) -> Result<PluginDownloadDir, ProjectError> {
        let path = dirs.cache.join(format!("fetch-{}", std::process::id()));
        let to_error = |source| ProjectError::File { path: path.clone(), source };
        remove_folder(&path)
            .and_then(|()| private_files::create_private_folder(&path))
            .map_err(to_error)?;
        Ok(PluginDownloadDir(path))
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for PluginDownloadDir {
    fn drop(&mut self) {
        let _ = remove_folder(&self.0);
    }
}

fn list_path(dirs: &Dirs) -> PathBuf {
    dirs.data.join("plugins.json")
}

fn remove_folder(folder: &Path) -> std::io::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests;
