//! The `plugin` setting: npm packages and script files, as OpenCode's config lists them.

use super::Config;
use super::file_parser::{ConfigLayer, ConfigOrigin, ParsedConfig};
use crate::custom_tools::file_role::is_in_tool_folder;
use crate::plugins::{InstalledPlugins, NpmPackageSpec, PluginSource};
use std::path::{Path, PathBuf};

const MAX_ENTRIES: usize = 100;

/// The entries of the `plugin` settings.
#[derive(Clone, Debug, Default)]
pub struct PluginList {
    /// Packages, which count once the user has added them.
    pub packages: Vec<(NpmPackageSpec, ConfigOrigin)>,
    /// Script files of the user.
    pub(crate) files: Vec<PathBuf>,
}

impl PluginList {
    /// Returns the packages that are not added, or in another version than the list says, each with
    /// its place in a config.
    pub fn missing_packages(
        &self,
        installed: &InstalledPlugins,
    ) -> Vec<&(NpmPackageSpec, ConfigOrigin)> {
        let is_installed = |wanted: &NpmPackageSpec| {
            installed.all().any(|(_, plugin)| match &plugin.source {
                PluginSource::Npm { package, version } => {
                    *package == wanted.name && wanted.allows_version(version)
                }
                PluginSource::Folder(_) | PluginSource::Git { .. } | PluginSource::Tarball(_) => {
                    false
                }
            })
        };
        self.packages.iter().filter(|(package, _)| !is_installed(package)).collect()
    }
}

impl Config {
    /// Applies the `plugin` entries. They accumulate. A project can list packages, which the user
    /// adds, but no file that trust does not cover.
    pub(super) fn apply_plugin_list(
        &mut self,
        layer: ConfigLayer,
        entries: Vec<String>,
        file: &mut ParsedConfig,
    ) {
        for (index, entry) in entries.into_iter().enumerate() {
            let pointer = format!("/plugin/{index}");
            let origin = file.origin_of(&pointer).clone();
            if let Err(problem) = self.apply_plugin_entry(layer, &entry, &origin) {
                file.add_fault(&pointer, &format!("`{entry}` {problem}"));
                continue;
            }
            self.record_value("plugin", &entry, &origin);
        }
    }

    fn apply_plugin_entry(
        &mut self,
        layer: ConfigLayer,
        entry: &str,
        origin: &ConfigOrigin,
    ) -> Result<(), &'static str> {
        if self.plugin_list.packages.len() + self.plugin_list.files.len() >= MAX_ENTRIES {
            return Err("is one too many");
        }
        let Some(path) = file_entry(entry, &self.dirs.home) else {
            let package = NpmPackageSpec::parse(entry.trim_start_matches("npm:"));
            let package = package.ok_or("is neither a file nor the name of an npm package")?;
            self.plugin_list.packages.push((package, origin.clone()));
            return Ok(());
        };
        if layer == ConfigLayer::Project {
            return match is_in_tool_folder(&path) {
                // Trust covers these folders, and their files are loaded anyway.
                true => Ok(()),
                false => Err("is not loaded, because trust does not cover it; move it to \
                              .windlass/plugins"),
            };
        }
        let path = self.dirs.config.join(path);
        if path.parent() == Some(&*self.dirs.config) {
            return Err("is not loaded; move it to the subfolder `plugins`");
        }
        // The files of tool folders are found anyway.
        let relative = path.strip_prefix(&self.dirs.config).unwrap_or(&path);
        if !is_in_tool_folder(&Path::new(".windlass").join(relative)) {
            self.plugin_list.files.push(path);
        }
        Ok(())
    }
}

/// Returns the path of an entry that names a file, without `.` in it.
fn file_entry(entry: &str, home: &Path) -> Option<PathBuf> {
    let path = match entry.strip_prefix("file://") {
        Some(path) => PathBuf::from(path),
        None => match entry.strip_prefix("~/") {
            Some(rest) => home.join(rest),
            None if entry.starts_with(['.', '/']) => PathBuf::from(entry),
            None => return None,
        },
    };
    Some(path.components().filter(|part| part.as_os_str() != ".").collect())
}
