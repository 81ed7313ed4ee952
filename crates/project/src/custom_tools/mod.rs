//! Discovery of custom tool files: those of a trusted project and of plugins, which run in place,
//! and the user's own, which run as copies because a sandboxed process cannot see the config
//! folder.
//!
//! This module starts no process. It keeps the invariant that a project's tool, and everything
//! around it, is still the trusted content at the moment [`ToolFile::prepare`] returns it. Start
//! reading at [`ToolFiles::find`].
#![allow(
    clippy::disallowed_methods,
    reason = "the project crate is the only one that accesses config files"
)]

mod compiled_scripts;
mod description_cache;
pub(crate) mod file_role;
pub(crate) mod folder_copy;
mod script_config;

pub(crate) use compiled_scripts::typescript_entry;
pub use compiled_scripts::{is_typescript, write_compiled_scripts};
pub use description_cache::ToolDescriptionCache;
pub use script_config::ScriptConfig;

use crate::hex::to_hex;
use crate::plugins::{LoadedPlugin, PACKAGE_ENTRY_MARKER, PluginDirs, PluginTool};
use crate::trust::{FolderTrust, TOOL_FOLDERS, TrustStore, TrustedFile};
use crate::{Config, ConfigLayer, Dirs, ProjectError, private_files};
use file_role::{PROJECT_FOLDERS, ToolFileKind, ToolFileRole, classify_file, file_kind};
use folder_copy::{CopyScope, MAX_FILES, copy_stamp, copy_to_cache, file_times};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use windlass_protocol::display_text::to_one_line;

/// Limits the text of a file that is looked at before it runs.
const MAX_TEXT_BYTES: u64 = 1 << 20;

/// The `ToolFile`s found: the user's own, then those of plugins, then the project's.
#[derive(Default)]
pub struct ToolFiles {
    pub all: Vec<ToolFile>,
    /// Messages for the user about files that are not usable as tools.
    pub notes: Vec<String>,
}

/// A file that provides one or more custom tools.
#[derive(Clone, Debug)]
pub struct ToolFile {
    /// The prefix of the names of its tools.
    pub prefix: String,
    /// The name shown to the user.
    pub display_name: String,
    pub layer: ConfigLayer,
    /// `true` if the file needs an interpreter.
    pub is_script: bool,
    location: CustomToolLocation,
}

#[derive(Clone, Debug)]
enum CustomToolLocation {
    Project { file: TrustedFile, dirs: Dirs, root: PathBuf },
    User { folder: PathBuf, file: String, copies: PathBuf, scope: CopyScope },
    Plugin { file: String, access: PluginToolAccess },
}

/// Access that a plugin's `plugin.json` requests for its tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginToolAccess {
    pub plugin_dirs: PluginDirs,
    /// `true` if the tools may write in the project.
    pub write: bool,
    /// Hosts that the tools may reach in addition to `sandbox.network`.
    pub network: Vec<String>,
}

/// A tool file ready to run, with a `digest` of its content and of the files around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedToolFile {
    pub path: PathBuf,
    pub digest: String,
}

impl ToolFiles {
    /// Finds the `ToolFile`s of the user, of plugins and of the project. A project that is not
    /// trusted has none, and its folder is not read. No file beside a listed one is copied from a
    /// folder with one of the `secret_paths`.
    pub fn find(dirs: &Dirs, config: &Config, root: &Path, secret_paths: &[PathBuf]) -> ToolFiles {
        let mut tool_files = ToolFiles::default();
        for name in TOOL_FOLDERS {
            tool_files.find_user_tools(dirs, name);
        }
        for path in &config.plugin_list.files {
            tool_files.add_listed_file(dirs, path, secret_paths);
        }
        for plugin in &config.plugins {
            tool_files.add_plugin_tools(plugin);
        }
        let folders = PROJECT_FOLDERS
            .iter()
            .flat_map(|folder| TOOL_FOLDERS.iter().map(move |name| format!("{folder}/{name}/")));
        let mut seen: BTreeSet<(String, String)> = BTreeSet::new();
        for file in folders.flat_map(|folder| config.trusted_files(&folder)) {
            // The same file may be in `.opencode` and, since an import, in `.windlass`.
            let name = file.name.rsplit('/').next().unwrap_or(&file.name).to_owned();
            if !seen.insert((name, file.digest.clone())) {
                continue;
            }
            let file_name = file.name.rsplit('/').next().unwrap_or(&file.name).to_owned();
            let kind =
                if file.is_executable { ToolFileKind::Executable } else { ToolFileKind::Plain };
            let (display_name, dirs, root) = (file.name.clone(), dirs.clone(), root.to_owned());
            let location = CustomToolLocation::Project { file, dirs, root };
            tool_files.add(&file_name, kind, ConfigLayer::Project, display_name, location);
        }
        tool_files
    }

    fn find_user_tools(&mut self, dirs: &Dirs, folder_name: &str) {
        let folder = dirs.config.join(folder_name);
        let Ok(entries) = std::fs::read_dir(&folder) else { return };
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .take(MAX_FILES)
            .collect();
        names.sort_unstable();
        for file in names {
            let path = folder.join(&file);
            let Ok(metadata) = path.metadata() else { continue };
            if !metadata.is_file() {
                continue;
            }
            let (folder, copies) = (folder.clone(), dirs.cache.join(folder_name));
            let (file, scope) = (file.clone(), CopyScope::ToolsFolder);
            let location = CustomToolLocation::User { folder, file: file.clone(), copies, scope };
            let display_name = path.display().to_string();
            self.add(&file, file_kind(&metadata), ConfigLayer::User, display_name, location);
        }
    }

    /// Adds a file that the user's config lists under `plugin`.
    fn add_listed_file(&mut self, dirs: &Dirs, path: &Path, secret_paths: &[PathBuf]) {
        let display_name = path.display().to_string();
        let name = path.file_name().and_then(|name| name.to_str());
        let metadata = path.metadata().ok().filter(std::fs::Metadata::is_file);
        let (Some(folder), Some(name), Some(metadata)) = (path.parent(), name, metadata) else {
            let display_name = to_one_line(&display_name);
            return self.notes.push(format!(
                "{display_name}, which your config lists as a plugin, does not exist"
            ));
        };
        let digest: String = to_hex(&Sha256::digest(folder.as_os_str().as_encoded_bytes()));
        let copies = dirs.cache.join(format!("plugin-{}", digest.get(..16).unwrap_or_default()));
        let scope = listed_file_scope(folder, dirs, secret_paths);
        let (folder, file) = (folder.to_owned(), name.to_owned());
        let location = CustomToolLocation::User { folder, file, copies, scope };
        self.add(name, file_kind(&metadata), ConfigLayer::User, display_name, location);
    }

    fn add_plugin_tools(&mut self, plugin: &LoadedPlugin) {
        let (write, network) = plugin.tool_access();
        for PluginTool { prefix, file, is_script } in &plugin.components.tools {
            let (plugin_dirs, network) = (plugin.plugin_dirs.clone(), network.to_vec());
            let access = PluginToolAccess { plugin_dirs, write, network };
            self.all.push(ToolFile {
                prefix: prefix.clone(),
                display_name: format!("{file} of the plugin {}", plugin.manifest.name),
                layer: ConfigLayer::Plugin,
                is_script: *is_script,
                location: CustomToolLocation::Plugin { file: file.clone(), access },
            });
        }
    }

    fn add(
        &mut self,
        file: &str,
        kind: ToolFileKind,
        layer: ConfigLayer,
        display_name: String,
        location: CustomToolLocation,
    ) {
        // A line break in a file name would make a second message of the rest.
        let display_name = to_one_line(&display_name);
        match classify_file(file, kind) {
            ToolFileRole::Support => {}
            ToolFileRole::NotRunnable => self.notes.push(format!(
                "{display_name} is not a tool because it is not executable. Run `chmod +x` on it, \
                 or move it to a subfolder if other tools only use it"
            )),
            ToolFileRole::Tool { prefix, is_script } => {
                self.all.push(ToolFile { prefix, display_name, layer, is_script, location });
            }
        }
    }
}

impl ToolFile {
    /// Returns a stamp that changes when the file, or the files around it, may have changed. It is
    /// computed from sizes and times.
    pub fn change_stamp(&self) -> String {
        match &self.location {
            CustomToolLocation::Project { file, .. } => match file.path.symlink_metadata() {
                Ok(metadata) => file_times(&metadata),
                Err(_) => "gone".to_owned(),
            },
            CustomToolLocation::User { folder, file, scope, .. } => {
                copy_stamp(folder, file, *scope)
            }
            CustomToolLocation::Plugin { access, .. } => access.plugin_dirs.change_stamp(),
        }
    }

    /// Returns the access of a plugin's tool; `None` for tools of the user or the project.
    pub fn plugin_access(&self) -> Option<&PluginToolAccess> {
        match &self.location {
            CustomToolLocation::Plugin { access, .. } => Some(access),
            CustomToolLocation::Project { .. } | CustomToolLocation::User { .. } => None,
        }
    }

    /// Returns true for the text of a file that exports what an npm package exports.
    pub fn is_package(text: &str) -> bool {
        text.starts_with(PACKAGE_ENTRY_MARKER)
    }

    /// Returns the text of the file, if it can be read and is not too long.
    pub fn text(&self) -> Option<String> {
        let path = match &self.location {
            CustomToolLocation::Project { file, .. } => file.path.clone(),
            CustomToolLocation::User { folder, file, .. } => folder.join(file),
            CustomToolLocation::Plugin { file, access } => access.plugin_dirs.root.join(file),
        };
        let file = std::fs::File::open(path).ok()?;
        let mut bytes = Vec::new();
        file.take(MAX_TEXT_BYTES).read_to_end(&mut bytes).ok()?;
        let is_whole = (bytes.len() as u64) < MAX_TEXT_BYTES;
        is_whole.then(|| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns the `PreparedToolFile` to run, or the reason why it must not run.
    pub fn prepare(&self) -> Result<PreparedToolFile, String> {
        match &self.location {
            CustomToolLocation::Project { file, dirs, root } => {
                self.prepare_trusted(file, dirs, root)
            }
            CustomToolLocation::User { folder, file, copies, scope } => {
                let digest = copy_to_cache((folder, file), copies, *scope)
                    .map_err(|reason| format!("cannot use {}: {reason}", self.display_name))?;
                let path = copies.join(&digest).join(file);
                Ok(PreparedToolFile { path, digest: format!("{digest}/{file}") })
            }
            CustomToolLocation::Plugin { file, access } => {
                access.plugin_dirs.check_unchanged()?;
                let path = access.plugin_dirs.root.join(file);
                Ok(PreparedToolFile { digest: path.display().to_string(), path })
            }
        }
    }

    fn prepare_trusted(
        &self,
        file: &TrustedFile,
        dirs: &Dirs,
        root: &Path,
    ) -> Result<PreparedToolFile, String> {
        let check = TrustStore::read(dirs).and_then(|trust| trust.check_folder(root));
        let check = check.ok().filter(|check| check.trust == FolderTrust::Trusted);
        // The tool may run a file beside it, so all trusted content must be unchanged.
        let files = check.map(|check| check.files).unwrap_or_default();
        let is_same =
            |current: &TrustedFile| current.name == file.name && current.digest == file.digest;
        if !files.iter().any(is_same) || !file.is_unchanged() {
            return Err(format!(
                "{} was not run: the config of this folder, which includes it, has changed since \
                 the user trusted it. The user can review it and trust it again with `windlass \
                 trust`",
                self.display_name
            ));
        }
        let mut hash = Sha256::new();
        let folder = file.name.rfind('/').and_then(|end| file.name.get(..=end)).unwrap_or_default();
        for sibling in files.iter().filter(|sibling| sibling.name.starts_with(folder)) {
            hash.update(format!("{}\0{}\n", sibling.name, sibling.digest));
        }
        let digest = format!("{}/{}", to_hex(&hash.finalize()), file.name);
        Ok(PreparedToolFile { path: file.path.clone(), digest })
    }
}

/// Returns the files to copy with a listed file. The copy can be read in the sandbox, so a folder
/// that contains secret paths or lies in one is not copied, except the subfolders of Windlass's
/// config and folders with the name of a tools folder.
fn listed_file_scope(folder: &Path, dirs: &Dirs, secret_paths: &[PathBuf]) -> CopyScope {
    let to_real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (folder, config) = (to_real(folder), to_real(&dirs.config));
    let own_paths = [&dirs.home, &dirs.config, &dirs.data];
    let mut secret_paths =
        secret_paths.iter().chain(own_paths).flat_map(|path| [path.clone(), to_real(path)]);
    let is_for_tools = folder.starts_with(&config)
        || TOOL_FOLDERS.iter().any(|name| folder.file_name() == Some(name.as_ref()));
    let home = to_real(&dirs.home);
    let is_private = secret_paths.any(|path| {
        let is_inside = folder.starts_with(&path) && path != home && path != dirs.home;
        path.starts_with(&folder) || (is_inside && !is_for_tools)
    });
    if is_private { CopyScope::File } else { CopyScope::ListedFolder }
}

/// Writes files into the folder `name` of the cache, except those already there with the same
/// content.
pub fn write_cached_files(
    dirs: &Dirs,
    name: &str,
    files: &[(&str, &str)],
) -> Result<PathBuf, ProjectError> {
    let folder = dirs.cache.join(name);
    let to_error = |source| ProjectError::File { path: folder.clone(), source };
    private_files::create_private_folder(&folder).map_err(to_error)?;
    for (file, text) in files {
        let path = folder.join(file);
        if std::fs::read(&path).ok().as_deref() != Some(text.as_bytes()) {
            private_files::replace_in_cache(&path, text.as_bytes()).map_err(to_error)?;
        }
    }
    Ok(folder)
}

#[cfg(test)]
pub(crate) mod tests;
