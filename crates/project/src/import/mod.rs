//! Imports the setup of another program: reads its files, plans the settings that our config
//! supports, and reports everything else with the reason.
//!
//! A plan is the same whether it is shown or applied. It overwrites nothing, and contains nothing
//! that our own reader would reject: every setting is read back before it joins the plan. Start
//! reading at [`ImportRequest::plan`], then at `opencode` and `claude`.
#![allow(
    clippy::disallowed_methods,
    reason = "the project crate is the only one that accesses config files"
)]

mod agents_and_skills;
mod claude;
mod hook_scripts;
mod lsp_and_formatters;
mod mcp_servers;
mod opencode;
mod opencode_appearance;
mod opencode_permission_settings;
mod opencode_providers;
mod plan_builder;
mod secret_detection;
mod source_files;

pub use crate::opencode_permission_rules::{ConvertedPermissionRules, OrderedPermissionRule};

use crate::agents::AgentConfigs;
use crate::config::edit::{self, ConfigInsertion, ConfigInsertionKind};
use crate::config::file_parser::{self, ConfigLayer};
use crate::{Config, ConfigEnv, Dirs, PROJECT_FILES, ProjectError, private_files};
use plan_builder::{ImportPlanBuilder, ImportedSetting};
use serde_json::Value;
use source_files::ImportSourceFolder;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A program to import from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportSource {
    OpenCode,
    Claude,
}

impl ImportSource {
    /// Returns the display name.
    pub fn name(self) -> &'static str {
        match self {
            ImportSource::OpenCode => "OpenCode",
            ImportSource::Claude => "Claude Code",
        }
    }
}

/// The scope of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportScope {
    /// The user's own setup, into the user's config folder.
    User,
    /// The project's setup, into the project's config.
    Project,
}

/// Validation by other parts of Windlass that will use the imported settings.
pub trait ImportChecks {
    /// Returns the problem with `permission` rules that cannot be parsed.
    fn check_rules(&self, rules: &Value) -> Option<String>;
    /// Translates rules in which the last match counts. Rules that are `restricting` cannot allow.
    fn translate_rules(
        &self,
        rules: &[OrderedPermissionRule],
        restricting: bool,
    ) -> ConvertedPermissionRules;
    /// Returns the problem with the `matcher` of a hook.
    fn check_matcher(&self, pattern: &str) -> Option<String>;
    /// Returns true for the name of a theme of ours.
    fn has_theme(&self, name: &str) -> bool;
    /// Returns the problem with the keys of a command in `tui.keys`.
    fn check_keys(&self, command: &str, keys: &str) -> Option<String>;
    /// Returns our tools for a tool of Claude Code.
    fn tools_for_claude(&self, name: &str) -> Vec<String>;
    /// Returns the canonical name of a built-in provider.
    fn canonical_provider(&self, name: &str) -> Option<&'static str>;
}

/// The parameters of an import.
pub struct ImportRequest<'a> {
    pub program: ImportSource,
    pub scope: ImportScope,
    pub dirs: &'a Dirs,
    /// The root of the project.
    pub root: &'a Path,
    pub checks: &'a dyn ImportChecks,
}

/// The planned changes of an import.
#[derive(Debug)]
pub struct ImportPlan {
    /// The files that were read, by display name.
    pub read_files: Vec<String>,
    /// Our config file, `windlass.jsonc`.
    pub config_path: PathBuf,
    /// The settings it gets, one line each.
    pub settings: Vec<String>,
    /// The files to create, each with its source.
    pub copies: Vec<(PathBuf, String)>,
    /// Existing settings and files that stay, each with a reason or an empty text.
    pub existing: Vec<(String, String)>,
    /// Settings and files that are not imported, each with the reason.
    pub skipped: Vec<(String, String)>,
    /// Notes for the user about the next steps.
    pub notes: Vec<String>,
    scope: ImportScope,
    base: PathBuf,
    /// The folder for files whose name begins with `hooks/`.
    hooks_base: PathBuf,
    old_config: Option<String>,
    new_config: Option<String>,
    files: Vec<PlannedImportFile>,
}

/// The folder for the scripts of a project's hooks, which `windlass trust` covers.
const PROJECT_HOOKS: &str = ".windlass/hooks";

#[derive(Clone, Debug)]
struct PlannedImportFile {
    path: PathBuf,
    bytes: Vec<u8>,
    is_executable: bool,
}

/// A `ConfigEnv` in which every variable is set: its real state does not affect an import.
struct ImportConfigEnv<'a>(&'a dyn ImportChecks);

impl ConfigEnv for ImportConfigEnv<'_> {
    fn env(&self, _name: &str) -> Option<String> {
        Some(String::new())
    }

    fn canonical_provider(&self, provider: &str) -> Option<&'static str> {
        self.0.canonical_provider(provider)
    }
}

impl ImportRequest<'_> {
    /// Reads everything and returns the `ImportPlan`. Writes nothing.
    pub fn plan(&self) -> Result<ImportPlan, ProjectError> {
        let (home, root) = (&self.dirs.home, self.root);
        let config_parent = self.dirs.config.parent().unwrap_or(home);
        let source = match (self.scope, self.program) {
            (ImportScope::Project, _) => ImportSourceFolder::project(root, home),
            (ImportScope::User, ImportSource::OpenCode) => {
                ImportSourceFolder::user(config_parent, home)
            }
            (ImportScope::User, ImportSource::Claude) => ImportSourceFolder::user(home, home),
        };
        let hooks_folder = match self.scope {
            ImportScope::Project => PROJECT_HOOKS.to_owned(),
            ImportScope::User => {
                let folder = self.user_hooks_folder();
                let relative = folder.strip_prefix(home).unwrap_or(&folder);
                relative.to_string_lossy().into_owned()
            }
        };
        let mut builder = ImportPlanBuilder::new(self.scope, &source, hooks_folder, self.checks);
        match self.program {
            ImportSource::OpenCode => opencode::import_opencode(&mut builder),
            ImportSource::Claude => claude::import_claude(&mut builder),
        }
        self.build_plan(builder)
    }

    /// Returns the folder for scripts of the user's own hooks, which can read neither our config
    /// folder nor that of another agent.
    fn user_hooks_folder(&self) -> PathBuf {
        self.dirs.plugins.with_file_name("windlass-hooks")
    }

    /// Returns the path of our `windlass.jsonc` and the folder for files.
    fn target_paths(&self) -> (PathBuf, PathBuf) {
        match self.scope {
            ImportScope::User => {
                (self.dirs.config.join("windlass.jsonc"), self.dirs.config.clone())
            }
            ImportScope::Project => {
                let exists = |name: &&&str| self.root.join(name).symlink_metadata().is_ok();
                let name = PROJECT_FILES.iter().find(exists).copied().unwrap_or("windlass.jsonc");
                (self.root.join(name), self.root.join(".windlass"))
            }
        }
    }

    /// Separates new from existing settings, and keeps those that our own reader accepts.
    fn build_plan(&self, builder: ImportPlanBuilder<'_>) -> Result<ImportPlan, ProjectError> {
        let (config_path, base) = self.target_paths();
        if self.scope == ImportScope::Project {
            reject_links(self.root, &config_path)?;
            reject_links(self.root, &base)?;
        }
        let old_config = file_parser::read_config_text(&config_path)?;
        let ImportPlanBuilder {
            read_files,
            settings,
            files,
            mut skipped,
            mut existing,
            notes,
            unlisted_skipped,
            ..
        } = builder;
        if unlisted_skipped > 0 {
            skipped.push((format!("… and {unlisted_skipped} more"), "too many to list".to_owned()));
        }
        let corrupt = |reason: String| ProjectError::Corrupt { path: config_path.clone(), reason };
        let config = match &old_config {
            None => Value::Object(serde_json::Map::new()),
            Some(text) => file_parser::parse_config_object(text).map_err(corrupt)?,
        };
        let mut plan = ImportPlan {
            read_files,
            config_path: config_path.clone(),
            settings: Vec::new(),
            copies: Vec::new(),
            existing: Vec::new(),
            skipped,
            notes,
            scope: self.scope,
            hooks_base: match self.scope {
                ImportScope::User => self.user_hooks_folder(),
                ImportScope::Project => self.root.join(PROJECT_HOOKS),
            },
            base,
            old_config,
            new_config: None,
            files: Vec::new(),
        };
        plan.existing.append(&mut existing);
        for file in files {
            plan.add_file(file);
        }
        let new_settings =
            settings.into_iter().filter(|setting| plan.is_addition(setting, &config)).collect();
        let new_settings = plan.remove_duplicates(new_settings);
        let existing_problems =
            plan.old_config.as_deref().map(|text| self.config_problems(text)).unwrap_or_default();
        self.add_accepted_settings(&mut plan, &mut Vec::new(), &new_settings, &existing_problems)
            .map_err(corrupt)?;
        Ok(plan)
    }

    /// Adds settings that our own reader accepts. It bisects to find the rejected ones, so that a
    /// bad setting costs little.
    fn add_accepted_settings(
        &self,
        plan: &mut ImportPlan,
        accepted: &mut Vec<ConfigInsertion>,
        candidates: &[ImportedSetting],
        existing_problems: &[String],
    ) -> Result<(), String> {
        if candidates.is_empty() {
            return Ok(());
        }
        let insertions = candidates.iter().map(|setting| setting.insertion.clone());
        let all: Vec<ConfigInsertion> = accepted.iter().cloned().chain(insertions).collect();
        let text = edit::insert_all(plan.old_config.as_deref(), &all)?;
        let problems = self.config_problems(&text);
        if problems.len() <= existing_problems.len() {
            *accepted = all;
            plan.settings.extend(candidates.iter().map(|setting| setting.description.clone()));
            plan.new_config = Some(text);
            return Ok(());
        }
        if let [setting] = candidates {
            let reason = problems
                .into_iter()
                .find(|problem| !existing_problems.contains(problem))
                .unwrap_or_default();
            plan.skipped.push((setting.name(), reason));
            return Ok(());
        }
        let (first_half, second_half) =
            candidates.split_at_checked(candidates.len() / 2).unwrap_or((candidates, &[]));
        self.add_accepted_settings(plan, accepted, first_half, existing_problems)?;
        self.add_accepted_settings(plan, accepted, second_half, existing_problems)
    }

    /// Returns the problems that our own reader and `ImportChecks` find in a config.
    fn config_problems(&self, text: &str) -> Vec<String> {
        let layer = match self.scope {
            ImportScope::User => ConfigLayer::User,
            ImportScope::Project => ConfigLayer::Project,
        };
        let (config_path, _) = self.target_paths();
        let mut texts = Vec::new();
        let user_file = self.dirs.config.join("windlass.jsonc");
        if layer == ConfigLayer::Project
            && let Ok(Some(text)) = file_parser::read_config_text(&user_file)
        {
            texts.push((ConfigLayer::User, user_file, text));
        }
        texts.push((layer, config_path, text.to_owned()));
        let config_env = ImportConfigEnv(self.checks);
        let config = Config::preview(texts, &config_env, (self.dirs, self.root));
        let agents = AgentConfigs::config_diagnostics(&config, layer);
        let problems = config.diagnostics.iter().chain(&agents);
        let mut problems: Vec<String> = problems
            .filter(|diagnostic| diagnostic.origin.layer == layer)
            .map(|diagnostic| diagnostic.message.clone())
            .collect();
        let in_layer = |permission: &&crate::LayerPermissionRules| permission.layer == layer;
        let rules = config.permissions.iter().filter(in_layer);
        problems.extend(rules.filter_map(|rules| self.checks.check_rules(&rules.rules)));
        let agent_rules =
            config.agent_entries(layer).filter_map(|agent| agent.settings.get("permission"));
        problems.extend(agent_rules.filter_map(|rules| self.checks.check_rules(rules)));
        let hooks = config.hooks.iter().filter(|hook| hook.layer == layer);
        problems
            .extend(hooks.filter_map(|hook| self.checks.check_matcher(hook.matcher.as_deref()?)));
        problems
    }
}

/// Rejects links on a path: a link in a project may lead anywhere, so nothing is written through
/// one.
fn reject_links(root: &Path, path: &Path) -> Result<(), ProjectError> {
    let mut current = root.to_owned();
    for part in path.strip_prefix(root).unwrap_or(path).components() {
        current.push(part);
        if current.is_symlink() {
            let reason =
                "it is a symbolic link, and Windlass does not write through links in a project"
                    .to_owned();
            return Err(ProjectError::Corrupt { path: current, reason });
        }
    }
    Ok(())
}

impl ImportPlan {
    /// Returns `true` if the plan changes anything.
    pub fn has_changes(&self) -> bool {
        !self.settings.is_empty() || !self.copies.is_empty()
    }

    fn add_existing(&mut self, name: String, reason: &str) {
        self.existing.push((name, reason.to_owned()));
    }

    fn add_file(&mut self, file: plan_builder::ImportedFile) {
        let path = match file.name.strip_prefix("hooks/") {
            Some(name) => self.hooks_base.join(name),
            None => self.base.join(&file.name),
        };
        let is_duplicate = self.files.iter().any(|other| other.path == path);
        if path.symlink_metadata().is_ok() {
            self.add_existing(file.name, "");
        } else if is_duplicate {
            self.skipped.push((file.source, format!("another file is imported as {}", file.name)));
        } else {
            self.copies.push((path.clone(), file.source));
            self.files.push(PlannedImportFile {
                path,
                bytes: file.bytes,
                is_executable: file.is_executable,
            });
        }
    }

    /// Removes duplicates: of two values for the same setting, the first counts.
    fn remove_duplicates(&mut self, settings: Vec<ImportedSetting>) -> Vec<ImportedSetting> {
        let mut unique: Vec<ImportedSetting> = Vec::new();
        for setting in settings {
            let insertion = &setting.insertion;
            let conflicts = |other: &ImportedSetting| {
                let (one, two) = (&other.insertion.path, &insertion.path);
                let is_item = insertion.kind == ConfigInsertionKind::AppendItem && one == two;
                !is_item && (one.starts_with(two) || two.starts_with(one))
            };
            if unique.iter().any(|other| other.insertion == *insertion) {
                continue;
            }
            if unique.iter().any(conflicts) {
                let reason = "another setting of the same name is imported".to_owned();
                self.skipped.push((setting.name(), reason));
                continue;
            }
            unique.push(setting);
        }
        unique
    }

    /// Returns `true` for a new setting. Existing settings stay, and existing rules are not
    /// loosened.
    fn is_addition(&mut self, setting: &ImportedSetting, config: &Value) -> bool {
        let agent = match setting.insertion.path.as_slice() {
            [key, name] if key == "agent" => Some(self.base.join(format!("agents/{name}.md"))),
            _ => None,
        };
        let has_file = agent.is_some_and(|path| path.symlink_metadata().is_ok());
        if has_file || setting.insertion.conflicts_with(config) {
            self.add_existing(setting.name(), "");
            return false;
        }
        if setting.is_allow_rule() && config.get("permission").is_some() {
            self.add_existing(
                setting.name(),
                "your own rules are not loosened; add it manually if you want it",
            );
            return false;
        }
        true
    }

    /// Applies the plan: files first, then the config. Files that appeared meanwhile stay.
    pub fn apply(&self) -> Result<(), ProjectError> {
        let to_error = |path: &Path| {
            let path = path.to_owned();
            move |source| ProjectError::File { path, source }
        };
        if file_parser::read_config_text(&self.config_path)? != self.old_config {
            let source = std::io::Error::other("the file changed during the import; import again");
            return Err(to_error(&self.config_path)(source));
        }
        for file in &self.files {
            self.write_file(file)?;
        }
        match &self.new_config {
            Some(text) => edit::replace_file(&self.config_path, text),
            None => Ok(()),
        }
    }

    fn write_file(&self, planned: &PlannedImportFile) -> Result<(), ProjectError> {
        let to_error = |source| ProjectError::File { path: planned.path.clone(), source };
        let folder = planned.path.parent().unwrap_or(&self.base);
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true);
        match self.scope {
            ImportScope::User => {
                private_files::create_private_folder(folder).map_err(to_error)?;
                private_files::private_options(&mut options);
            }
            ImportScope::Project => {
                let root = self.base.parent().unwrap_or(&self.base);
                reject_links(root, folder)?;
                std::fs::create_dir_all(folder).map_err(to_error)?;
            }
        }
        set_file_mode(&mut options, self.scope, planned.is_executable);
        match options.open(&planned.path) {
            Ok(mut file) => file.write_all(&planned.bytes).map_err(to_error),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(to_error(error)),
        }
    }
}

#[cfg(unix)]
fn set_file_mode(options: &mut std::fs::OpenOptions, scope: ImportScope, is_executable: bool) {
    use std::os::unix::fs::OpenOptionsExt;
    options.mode(match (scope, is_executable) {
        (ImportScope::User, false) => 0o600,
        (ImportScope::User, true) => 0o700,
        (ImportScope::Project, false) => 0o666,
        (ImportScope::Project, true) => 0o777,
    });
}

#[cfg(not(unix))]
fn set_file_mode(_: &mut std::fs::OpenOptions, _: ImportScope, _: bool) {}

#[cfg(test)]
mod tests;
