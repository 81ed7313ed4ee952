//! The mode and the sandbox: the user's choice within the limits of the managed policy.

use super::{Config, SandboxSettings};
use crate::config::file_parser::{ConfigDiagnostic, ConfigLayer, ConfigOrigin, ParsedConfig};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use windlass_protocol::PermissionMode;

/// The effective sandbox settings.
#[derive(Clone, Debug, Default)]
pub struct SandboxConfig {
    /// `true` if the sandbox is on, if configured.
    pub enabled: Option<(bool, ConfigOrigin)>,
    /// The origin of the policy that keeps the sandbox on; no other layer can turn it off.
    pub forced_by: Option<ConfigOrigin>,
    /// The hosts of `sandbox.network` that commands may reach, as written. The code that opens the
    /// network validates them.
    pub network: Vec<(String, ConfigOrigin)>,
    /// Folders of the home that commands may read without approval, as absolute paths.
    pub read: Vec<String>,
    /// Additional folders that commands may write to, as absolute paths.
    pub write: Vec<String>,
    /// Folders that tools and commands may use like the project, as absolute paths.
    pub additional_directories: Vec<String>,
}

/// The origins of settings that the managed policy decides.
#[derive(Default)]
pub(super) struct ManagedPolicyOrigins {
    mode: Option<ConfigOrigin>,
    /// The lists that the policy sets, by JSON pointer.
    lists: BTreeMap<&'static str, ConfigOrigin>,
}

const NETWORK_POINTER: &str = "/sandbox/network";
const READ_POINTER: &str = "/sandbox/read";
const WRITE_POINTER: &str = "/sandbox/write";
const DIRECTORIES_POINTER: &str = "/additional_directories";

impl Config {
    /// Returns the effective mode, with `default` if none is chosen.
    pub fn mode_or(&self, default: PermissionMode) -> PermissionMode {
        let chosen = self.mode.as_ref().map_or(default, |(mode, _)| *mode);
        self.max_mode.map_or(chosen, |max| chosen.min(max))
    }

    /// Returns `true` if the managed policy decides which hosts commands may reach.
    pub fn is_network_managed(&self) -> bool {
        self.managed.lists.contains_key(NETWORK_POINTER)
    }

    /// Applies `mode` and `sandbox` of a file. A project may set neither.
    pub(super) fn apply_mode_and_sandbox(
        &mut self,
        layer: ConfigLayer,
        mode: Option<PermissionMode>,
        sandbox: Option<SandboxSettings>,
        file: &mut ParsedConfig,
    ) {
        if layer == ConfigLayer::Project {
            if mode.is_some() {
                file.add_fault("/mode", "a project cannot choose the mode");
            }
            if sandbox.is_some() {
                file.add_fault("/sandbox", "a project cannot change the sandbox");
            }
            return;
        }
        if let Some(mode) = mode {
            let origin = file.origin_of("/mode").clone();
            match layer {
                ConfigLayer::Managed if self.max_mode.is_some_and(|max| max <= mode) => {}
                ConfigLayer::Managed => {
                    self.record_value("mode.max", mode.name(), &origin);
                    self.max_mode = Some(mode);
                    self.managed.mode = Some(origin);
                }
                ConfigLayer::User
                | ConfigLayer::Plugin
                | ConfigLayer::Project
                | ConfigLayer::Flag => self.set_mode(mode, origin),
            }
        }
        if let Some(sandbox) = sandbox {
            self.apply_sandbox(layer, sandbox, file);
        }
    }

    /// Applies `additional_directories` of a file. A project may not set it.
    pub(super) fn apply_additional_directories(
        &mut self,
        layer: ConfigLayer,
        folders: Option<Vec<String>>,
        file: &mut ParsedConfig,
    ) {
        let Some(folders) = folders else { return };
        if layer == ConfigLayer::Project {
            return file.add_fault(DIRECTORIES_POINTER, "a project cannot add folders");
        }
        let folders =
            valid_folders(&folders, DIRECTORIES_POINTER, file, |it| self.writable_folder(it));
        if self.record_list(layer, DIRECTORIES_POINTER, &folders, file) {
            self.sandbox.additional_directories = folders;
        }
    }

    /// Adds the folders of the command line.
    pub(super) fn add_directories(&mut self, folders: Vec<String>, origin: &ConfigOrigin) {
        for folder in folders {
            match self.writable_folder(&folder) {
                Ok(folder) => self.sandbox.additional_directories.push(folder),
                Err(problem) => {
                    let message = format!("`{}` {problem}", folder.escape_debug());
                    let origin = origin.clone();
                    self.diagnostics.push(ConfigDiagnostic { origin, message, fatal: true });
                }
            }
        }
    }

    /// Sets the mode, limited to `max_mode`.
    pub(super) fn set_mode(&mut self, mode: PermissionMode, origin: ConfigOrigin) {
        let limit = self.max_mode.zip(self.managed.mode.clone()).filter(|(max, _)| mode > *max);
        let (mode, origin) = match limit {
            None => (mode, origin),
            Some((max, limit_origin)) => {
                let message = format!(
                    "mode `{mode}` is less restrictive than the policy of this machine allows \
                     ({limit_origin}); using `{max}`"
                );
                self.diagnostics.push(ConfigDiagnostic { origin, message, fatal: false });
                (max, limit_origin)
            }
        };
        self.record_value("mode", mode.name(), &origin);
        self.mode = Some((mode, origin));
    }

    /// Turns the sandbox on or off, unless the policy keeps it on.
    pub(super) fn set_sandbox_enabled(&mut self, enabled: bool, origin: ConfigOrigin) {
        match &self.sandbox.forced_by {
            Some(policy_origin) if !enabled => {
                let message = format!(
                    "the policy of this machine requires the sandbox ({policy_origin}); ignored"
                );
                self.diagnostics.push(ConfigDiagnostic { origin, message, fatal: false });
            }
            // A layer that repeats the policy's value does not become its origin.
            Some(_) => {}
            None => {
                self.record_value("sandbox.enabled", &enabled.to_string(), &origin);
                self.sandbox.enabled = Some((enabled, origin));
            }
        }
    }

    fn apply_sandbox(
        &mut self,
        layer: ConfigLayer,
        sandbox: SandboxSettings,
        file: &mut ParsedConfig,
    ) {
        if let Some(enabled) = sandbox.enabled {
            let origin = file.origin_of("/sandbox/enabled").clone();
            self.set_sandbox_enabled(enabled, origin.clone());
            self.sandbox.forced_by = self
                .sandbox
                .forced_by
                .take()
                .or_else(|| (layer == ConfigLayer::Managed && enabled).then_some(origin));
        }
        if let Some(hosts) = sandbox.network
            && self.record_list(layer, NETWORK_POINTER, &hosts, file)
        {
            let hosts = hosts.into_iter().enumerate();
            let hosts_with_origins = hosts.map(|(index, host)| {
                (host, file.origin_of(&format!("{NETWORK_POINTER}/{index}")).clone())
            });
            self.sandbox.network = hosts_with_origins.collect();
        }
        if let Some(folders) = sandbox.read {
            let folders =
                valid_folders(&folders, READ_POINTER, file, |folder| self.readable_folder(folder));
            if self.record_list(layer, READ_POINTER, &folders, file) {
                self.sandbox.read = folders;
            }
        }
        if let Some(folders) = sandbox.write {
            let folders =
                valid_folders(&folders, WRITE_POINTER, file, |folder| self.writable_folder(folder));
            if self.record_list(layer, WRITE_POINTER, &folders, file) {
                self.sandbox.write = folders;
            }
        }
    }

    /// Records a list. Returns `false` if the managed policy has its own list; then reports that
    /// only that list counts.
    fn record_list(
        &mut self,
        layer: ConfigLayer,
        pointer: &'static str,
        values: &[String],
        file: &ParsedConfig,
    ) -> bool {
        let origin = file.origin_of(pointer).clone();
        if let Some(policy_origin) = self.managed.lists.get(pointer) {
            let message = format!(
                "only the list in the policy of this machine applies ({policy_origin}); ignored"
            );
            self.diagnostics.push(ConfigDiagnostic { origin, message, fatal: false });
            return false;
        }
        let name = pointer.trim_start_matches('/').replace('/', ".");
        self.record_value(&name, &Value::from(values.to_vec()).to_string(), &origin);
        if layer == ConfigLayer::Managed {
            self.managed.lists.insert(pointer, origin);
        }
        true
    }

    /// Returns a folder as an absolute path.
    fn absolute_folder(&self, folder: &str) -> Result<PathBuf, &'static str> {
        let path = match folder.strip_prefix("~/") {
            Some(rest) => self.dirs.home.join(rest),
            None => Path::new(folder).to_owned(),
        };
        if !path.is_absolute() || folder.contains('\0') {
            return Err("must be an absolute path or start with `~/`");
        }
        if path.components().any(|part| part == Component::ParentDir) {
            return Err("contains `..`; write the resolved path");
        }
        // Normalizes `.` and repeated separators.
        Ok(path.components().collect())
    }

    /// Resolves a readable folder. Windlass's own files stay hidden whatever it contains.
    fn readable_folder(&self, folder: &str) -> Result<String, &'static str> {
        Ok(self.absolute_folder(folder)?.to_string_lossy().into_owned())
    }

    /// Resolves a writable folder, unless commands that write there could extend their own
    /// permissions for the next run.
    fn writable_folder(&self, folder: &str) -> Result<String, &'static str> {
        let path = self.absolute_folder(folder)?;
        let spellings = |dir: &Path| [dir.to_owned(), real_path(dir)];
        if spellings(&self.dirs.home).iter().any(|home| home.starts_with(&path)) {
            return Err("contains your whole home folder; use a folder inside it");
        }
        let own_dirs = [&self.dirs.config, &self.dirs.data];
        if own_dirs.into_iter().flat_map(|dir| spellings(dir)).any(|dir| paths_overlap(&dir, &path))
        {
            return Err("overlaps Windlass's own files, which commands may not change");
        }
        if spellings(&self.root).iter().any(|root| path.starts_with(root)) {
            return Err("is in the project, where commands can write already; remove it");
        }
        path.to_str().map(str::to_owned).ok_or("is not valid UTF-8")
    }
}

fn paths_overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// Resolves links in a path, as far as possible.
#[allow(
    clippy::disallowed_methods,
    reason = "the project crate is the only one that accesses config files"
)]
fn real_path(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Returns the folders of a list that `resolve` accepts, and reports the others as faults.
fn valid_folders(
    folders: &[String],
    pointer: &str,
    file: &mut ParsedConfig,
    resolve: impl Fn(&str) -> Result<String, &'static str>,
) -> Vec<String> {
    let mut valid = Vec::new();
    for (index, folder) in folders.iter().enumerate() {
        match resolve(folder) {
            Ok(folder) => valid.push(folder),
            Err(problem) => {
                let message = format!("`{}` {problem}", folder.escape_debug());
                file.add_fault(&format!("{pointer}/{index}"), &message);
            }
        }
    }
    valid
}
