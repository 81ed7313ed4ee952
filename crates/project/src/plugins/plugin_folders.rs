//! The folders of a plugin.

use super::contents::PluginContents;
use crate::Dirs;
use crate::custom_tools::folder_copy::folder_stamp;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The folders of a plugin, which its programs also receive as environment variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginDirs {
    /// The plugin's name.
    pub plugin: String,
    /// Its read-only folder in `store`.
    pub root: PathBuf,
    /// Its folder for persistent data, in `data`.
    pub data: PathBuf,
    digest: String,
    /// The stamp of `root` before its content was compared with `digest`; empty if it was not.
    pub(super) change_stamp: String,
}

impl PluginDirs {
    pub(super) fn new(dirs: &Dirs, plugin: &str, digest: &str) -> PluginDirs {
        // Programs receive real paths: a link in the path would be one more thing to trust.
        let base = dirs.plugins.canonicalize().unwrap_or_else(|_| dirs.plugins.clone());
        let short: String = digest.chars().take(12).collect();
        PluginDirs {
            plugin: plugin.to_owned(),
            root: base.join("store").join(format!("{plugin}-{short}")),
            data: base.join("data").join(plugin),
            digest: digest.to_owned(),
            change_stamp: String::new(),
        }
    }

    /// Returns the environment variables for its programs, such as `PLUGIN_ROOT`.
    pub fn env_variables(&self) -> Vec<(OsString, OsString)> {
        let variables = [
            ("PLUGIN_ROOT", &self.root),
            ("PLUGIN_DATA", &self.data),
            ("CLAUDE_PLUGIN_ROOT", &self.root),
        ];
        variables.map(|(name, path)| (name.into(), path.into())).into()
    }

    /// Returns environment variables that make a folder the home folder of a script.
    pub fn home_variables(home: &Path) -> Vec<(OsString, OsString)> {
        let folders = [
            ("HOME", ""),
            ("XDG_CACHE_HOME", ".cache"),
            ("XDG_CONFIG_HOME", ".config"),
            ("XDG_DATA_HOME", ".local/share"),
            ("XDG_STATE_HOME", ".local/state"),
        ];
        folders.map(|(name, folder)| (name.into(), home.join(folder).into())).into()
    }

    /// Expands `${PLUGIN_ROOT}`, `${PLUGIN_DATA}` and their Claude names.
    pub(super) fn expand_dirs(&self, text: &str) -> String {
        let (root, data) = (self.root.display().to_string(), self.data.display().to_string());
        let text = text.replace("${PLUGIN_ROOT}", &root).replace("${CLAUDE_PLUGIN_ROOT}", &root);
        text.replace("${PLUGIN_DATA}", &data).replace("${CLAUDE_PLUGIN_DATA}", &data)
    }

    /// Replaces its folders by the variables, for display.
    pub(super) fn abbreviate_dirs(&self, text: &str) -> String {
        let (root, data) = (self.root.display().to_string(), self.data.display().to_string());
        text.replace(&root, "${PLUGIN_ROOT}").replace(&data, "${PLUGIN_DATA}")
    }

    /// Returns a stamp that changes when its folder may have changed: names, sizes and times.
    pub fn change_stamp(&self) -> String {
        folder_stamp(&self.root)
    }

    /// Returns an `Err` if the content changed since approval, so that nothing of it may run.
    pub fn check_unchanged(&self) -> Result<(), String> {
        if !self.change_stamp.is_empty() && self.change_stamp() == self.change_stamp {
            return Ok(());
        }
        match PluginContents::from_store(&self.root) {
            Ok(current) if current.digest() == self.digest => Ok(()),
            Ok(_) | Err(_) => Err(format!(
                "the plugin {} has changed since you added it, so it was not run. Restart \
                 Windlass, and add the plugin again if it is reported as changed",
                self.plugin
            )),
        }
    }
}
