//! Assembles a running engine from the files on disk: the only module that knows all parts.
#![allow(
    clippy::disallowed_methods,
    reason = "the environment and the working directory are read only here"
)]

mod builtin_tool_integrations;
mod command_sandbox;
mod custom_tools;
mod dead_rules;
mod default_mode;
mod engine;
mod hooks;
mod machine;
mod mcp_servers;
mod npm_install;
mod plugin_download;
mod plugin_preview;
mod project_context;
mod running_servers;
mod script_configs;
mod secondary_models;
mod session_reader;

pub(crate) use plugin_preview::ScriptPreview;
pub(crate) use project_context::{ProjectContext, ProviderKeys};

use anyhow::{Context, bail};
use std::path::{MAIN_SEPARATOR, Path, PathBuf};
use std::sync::Arc;
use windlass_engine::SaveApprovals;
use windlass_engine::session::TurnLimits;
use windlass_llm::catalog;
use windlass_permission::{PathLookup as _, PermissionRules, Policy};
use windlass_project::{
    ApprovalStore, Config, ConfigEnv, ConfigFlags, ConfigLayer, Dirs, FolderTrust, SkillFiles,
    find_project_root,
};
use windlass_protocol::display_text::{pluralize, to_one_line};
use windlass_protocol::{AllowedCallsSource, ClaudeToolNames, PermissionMode, ProjectApproval};
use windlass_sandbox::{MachinePathLookup, SandboxBackend, SandboxMode};
use windlass_toolkit::{SkillDefinition, UserPresence};

/// Limit for the policy of a tenant.
const MAX_TENANT_POLICY_BYTES: u64 = 256 << 10;

/// Limits the notes about rules without effect at startup.
const MAX_DEAD_RULE_NOTES: usize = 8;

/// The directories, the project root and the loaded config.
pub(crate) struct LoadedProject {
    pub(crate) dirs: Dirs,
    pub(crate) root: PathBuf,
    pub(crate) config: Config,
    /// Settings of the command line, which the config contains.
    pub(crate) flags: ConfigFlags,
    pub(crate) context: ProjectContext,
    /// Agents and commands of scripts, loaded on first use.
    script_configs: tokio::sync::OnceCell<script_configs::ScriptConfigs>,
    /// The servers that the engine of this project uses.
    running_servers: running_servers::RunningServers,
}

/// The purpose of an engine; it decides how much of the machine is examined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EnginePurpose {
    /// Reading sessions and settings only.
    Inspect,
    /// Reading and changing files.
    Files,
    /// Running commands.
    Commands,
}

/// Options of one run, in addition to the config; see `build_model_engine`.
#[derive(Default)]
pub(crate) struct EngineOptions {
    /// The limits of each turn.
    pub(crate) limits: TurnLimits,
    /// Text appended to the system prompt of a new session.
    pub(crate) extra_system_prompt: String,
    /// Instructions that apply to a resumed session as long as this engine runs it.
    pub(crate) run_instructions: String,
    /// The agent for a new session.
    pub(crate) agent: Option<String>,
    /// The variant of the model that the command line names.
    pub(crate) variant: Option<String>,
    /// Tools by name, or by prefix and `*`, each enabled or not; the last match decides.
    pub(crate) tools: Vec<(String, bool)>,
    /// Rules that tighten the configured ones.
    pub(crate) rules: Option<PermissionRules>,
    /// True for the terminal UI, where the user sees session lists and therefore titles.
    pub(crate) is_interactive: bool,
    /// Tells if a user can be asked.
    pub(crate) user: UserPresence,
    /// True if calls that need approval are approved without a user (`--yes`).
    pub(crate) approves_calls: bool,
}

/// The environment that config values can refer to.
struct CliConfigEnv;

impl ConfigEnv for CliConfigEnv {
    fn env(&self, name: &str) -> Option<String> {
        LoadedProject::env_variable(name)
    }

    fn canonical_provider(&self, provider: &str) -> Option<&'static str> {
        catalog::find_provider(provider).map(|row| row.id)
    }

    fn claude_tools(&self) -> ClaudeToolNames {
        windlass_tools::claude_names()
    }
}

impl LoadedProject {
    /// Loads the config for the current folder, and prints its errors.
    pub(crate) fn load(flags: ConfigFlags) -> anyhow::Result<LoadedProject> {
        LoadedProject::load_at(None, flags)
    }

    /// Loads the config for another folder, or for the current one.
    pub(crate) fn load_at(
        folder: Option<&Path>,
        mut flags: ConfigFlags,
    ) -> anyhow::Result<LoadedProject> {
        for folder in &mut flags.additional_directories {
            *folder = real_path(Path::new(folder)).to_string_lossy().into_owned();
        }
        let (dirs, mut root) = LoadedProject::find_dirs()?;
        if let Some(folder) = folder {
            let path = std::path::absolute(folder).context("invalid folder path")?;
            root = path.canonicalize().unwrap_or(path);
            if root.exists() && !root.is_dir() {
                bail!("{} is not a folder", root.display());
            }
        }
        let setup = LoadedProject::load_config((dirs, root), flags, ProjectContext::default())?;
        match setup.config.trust {
            FolderTrust::NothingToTrust | FolderTrust::Trusted => {}
            FolderTrust::Untrusted => setup.context.notes.send(
                "note: this folder's own config is ignored; run `windlass trust` to review and \
                 trust it",
            ),
            FolderTrust::Changed => setup.context.notes.send(
                "note: this folder's own config has changed since you trusted it and is ignored; \
                 run `windlass trust` to review and trust it",
            ),
        }
        Ok(setup)
    }

    /// Loads the config for any folder, without a note about its trust state.
    pub(crate) fn load_config(
        (dirs, root): (Dirs, PathBuf),
        flags: ConfigFlags,
        context: ProjectContext,
    ) -> anyhow::Result<LoadedProject> {
        LoadedProject::check_root(&dirs, &root)?;
        let setup = LoadedProject::read_config((dirs, root), flags, context)?;
        let diagnostics = setup.config.diagnostics.iter();
        for diagnostic in diagnostics.clone().filter(|diagnostic| !diagnostic.fatal) {
            setup.context.notes.send(&format!("note: {diagnostic}"));
        }
        if let Some(fatal) = diagnostics.clone().find(|diagnostic| diagnostic.fatal) {
            bail!("{fatal}");
        }
        let dead_rules = setup.dead_rules();
        for rule in dead_rules.iter().take(MAX_DEAD_RULE_NOTES) {
            setup.context.notes.send(&format!("note: {}", to_one_line(&rule.to_string())));
        }
        if let Some(more @ 1..) = dead_rules.len().checked_sub(MAX_DEAD_RULE_NOTES) {
            setup.context.notes.send(&format!(
                "note: {} without effect; run `windlass permission list` to see all",
                pluralize(more, "more rule")
            ));
        }
        Ok(setup)
    }

    /// Reads the config for any folder, and sends no notes.
    pub(crate) fn read_config(
        (dirs, root): (Dirs, PathBuf),
        flags: ConfigFlags,
        context: ProjectContext,
    ) -> anyhow::Result<LoadedProject> {
        let config = Config::load(&dirs, &root, flags.clone(), &CliConfigEnv)?;
        Ok(LoadedProject {
            dirs,
            root,
            config,
            flags,
            context,
            script_configs: Default::default(),
            running_servers: Default::default(),
        })
    }

    /// Rejects a folder that cannot be a project: the file system root, or Windlass's own folders,
    /// because changes there decide what Windlass may do next time.
    pub(crate) fn check_root(dirs: &Dirs, root: &Path) -> anyhow::Result<()> {
        if root.parent().is_none() {
            bail!("{} is the file system root. Start Windlass in a project folder", root.display());
        }
        let own_dirs = [&dirs.config, &dirs.data, &dirs.plugins].map(|folder| real_path(folder));
        if let Some(own_dir) = own_dirs.iter().find(|own_dir| root.starts_with(own_dir)) {
            bail!(
                "{} contains Windlass's own files, which a model must not change. Start Windlass \
                 in a project folder",
                own_dir.display()
            );
        }
        Ok(())
    }

    /// Returns true if commands should run in a sandbox but this machine has none. Probes the
    /// sandbox.
    fn lacks_sandbox(&self) -> bool {
        self.sandbox_mode() == SandboxMode::Best
            && windlass_sandbox::probe().backend == SandboxBackend::Off
    }

    /// Names the sandbox that commands run in. Probes the sandbox.
    pub(crate) fn describe_sandbox(&self) -> String {
        if self.sandbox_mode() == SandboxMode::Off {
            return "off".to_owned();
        }
        let name = match &windlass_sandbox::probe().backend {
            SandboxBackend::Bubblewrap { .. } => "bubblewrap",
            SandboxBackend::Landlock => "Landlock",
            SandboxBackend::Seatbelt => "Seatbelt",
            SandboxBackend::Off => "not available",
        };
        name.to_owned()
    }

    fn sandbox_mode(&self) -> SandboxMode {
        let is_off = self.config.sandbox.enabled.as_ref().is_some_and(|(enabled, _)| !enabled);
        if is_off { SandboxMode::Off } else { SandboxMode::Best }
    }

    /// Returns true if the path exists, even as a broken link.
    pub(crate) fn path_exists(path: &Path) -> bool {
        path.symlink_metadata().is_ok()
    }

    /// Returns the path of a folder without links, if it exists.
    pub(crate) fn real_folder(path: &Path) -> Option<PathBuf> {
        path.canonicalize().ok().filter(|path| path.is_dir())
    }

    /// Returns true if the path is a folder.
    pub(crate) fn is_folder(path: &Path) -> bool {
        path.is_dir()
    }

    /// Makes a folder the current one, before anything else runs.
    pub(crate) fn enter_folder(folder: &Path) -> anyhow::Result<()> {
        std::env::set_current_dir(folder)
            .with_context(|| format!("cannot work in {}", folder.display()))
    }

    /// Returns the free bytes on the disk of a folder, which need not exist yet.
    pub(crate) fn free_disk_bytes(folder: &Path) -> Option<u64> {
        #[cfg(unix)]
        {
            let existing = folder.ancestors().find(|folder| folder.is_dir())?;
            let disk = rustix::fs::statvfs(existing).ok()?;
            Some(disk.f_bavail.saturating_mul(disk.f_frsize))
        }
        #[cfg(not(unix))]
        {
            let _ = folder;
            None
        }
    }

    /// Finds a program in `PATH`. Skips programs inside the project and relative folders in `PATH`,
    /// which depend on the current folder.
    pub(crate) fn find_program(name: &str, root: &Path) -> Option<PathBuf> {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path)
            .filter(|folder| folder.is_absolute())
            .filter_map(|folder| folder.join(name).canonicalize().ok())
            .find(|program| program.is_file() && !program.starts_with(root))
    }

    /// Reads a file that the user names, up to `max_bytes`.
    pub(crate) fn read_file(path: &str, max_bytes: u64) -> anyhow::Result<Vec<u8>> {
        use std::io::Read;
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path).with_context(|| format!("cannot read {path}"))?;
        file.take(max_bytes + 1)
            .read_to_end(&mut bytes)
            .with_context(|| format!("cannot read {path}"))?;
        if bytes.len() as u64 > max_bytes {
            bail!("{path} is larger than {} KiB", max_bytes >> 10);
        }
        Ok(bytes)
    }

    /// Opens a file that the user names, or standard input for `-`, for reading in pieces.
    pub(crate) fn open_reader(path: &str) -> anyhow::Result<Box<dyn std::io::BufRead + Send>> {
        if path == "-" {
            return Ok(Box::new(std::io::BufReader::new(std::io::stdin())));
        }
        let file = std::fs::File::open(path).with_context(|| format!("cannot read {path}"))?;
        Ok(Box::new(std::io::BufReader::new(file)))
    }

    /// Creates a new file that only its owner can read. Never overwrites a file.
    pub(crate) fn create_private_file(path: &str) -> anyhow::Result<std::fs::File> {
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => {
                anyhow::anyhow!("{path} already exists. Choose another name, or move the file")
            }
            _ => anyhow::Error::new(error).context(format!("cannot write {path}")),
        })
    }

    /// Returns an environment variable, if it is set.
    pub(crate) fn env_variable(name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    /// Finds the user's directories and the project root.
    pub(crate) fn find_dirs() -> anyhow::Result<(Dirs, PathBuf)> {
        let dirs = Dirs::locate()?;
        let current_dir = std::env::current_dir().context("cannot find the current folder")?;
        let root = find_project_root(&current_dir, &dirs.home);
        Ok((dirs, root))
    }

    /// Returns the folder in which the program was started, with links resolved.
    pub(crate) fn working_folder() -> Option<PathBuf> {
        std::env::current_dir().ok()?.canonicalize().ok()
    }

    /// Returns the workspace name that sessions record: the project folder with links resolved.
    pub(crate) fn workspace_name(&self) -> String {
        windlass_protocol::display_text::workspace_name(&self.root)
    }

    /// Builds the permission policy: the user's rules, tightened by the managed policy, the
    /// project's rules and the built-in ones.
    pub(crate) fn build_policy(
        &self,
        machine_paths: Arc<MachinePathLookup>,
        mode: PermissionMode,
    ) -> anyhow::Result<Policy> {
        let root = machine_paths.workspace_root().to_owned();
        let mut policy = Policy::default();
        let mut restrictions = Vec::new();
        for permission in &self.config.permissions {
            let rules = PermissionRules::parse(&permission.rules).map_err(|error| {
                match self.config.permission_origin(permission, &error.pointer) {
                    Some(origin) => anyhow::anyhow!("{origin}: {error}"),
                    None => anyhow::anyhow!("{error}"),
                }
            })?;
            match permission.layer {
                ConfigLayer::User | ConfigLayer::Flag => policy = Policy::new(rules),
                ConfigLayer::Managed | ConfigLayer::Plugin | ConfigLayer::Project => {
                    restrictions.push(rules)
                }
            }
        }
        let policy = restrictions.into_iter().fold(policy, Policy::restricted_by);
        let approvals = &self.context.approvals;
        approvals.reload(|| -> anyhow::Result<Vec<ProjectApproval>> {
            let stored =
                ApprovalStore::read(&self.dirs)?.for_project(self.dirs.project_of(&self.root));
            let stored = stored.into_iter();
            let stored = stored.map(|it| ProjectApproval { key: it.key, subject: it.subject });
            Ok(stored.collect())
        })?;
        Ok(policy
            .restricted_by(self.own_folder_rules(&root)?)
            .restricted_by(self.command_file_rules()?)
            .with_root(&root)
            .with_max_mode(self.config.max_mode.unwrap_or(PermissionMode::Full))
            .with_mode(mode)
            .with_approvals(approvals.clone())
            .with_path_lookup(machine_paths))
    }

    /// Reads the policy for a tenant of a fleet, and checks it.
    pub(crate) fn read_tenant_policy(file: &str) -> anyhow::Result<String> {
        let bytes = LoadedProject::read_file(file, MAX_TENANT_POLICY_BYTES)?;
        let text = String::from_utf8(bytes).context("the policy is not valid UTF-8")?;
        let (dirs, _) = LoadedProject::find_dirs()?;
        let config = Config::of_tenant_policy(&text, &dirs, &CliConfigEnv);
        if let Some(fault) = config.diagnostics.first() {
            bail!("{fault}");
        }
        for permission in &config.permissions {
            let parsed = PermissionRules::parse(&permission.rules);
            parsed.context("the policy is not valid")?;
        }
        Ok(text)
    }

    /// Returns a callback that saves approvals for the whole project.
    fn approval_saver(&self) -> SaveApprovals {
        let (dirs, root) = (self.dirs.clone(), self.dirs.project_of(&self.root).to_owned());
        let notes = self.context.notes.clone();
        Arc::new(move |approvals| {
            let save = || {
                let mut store = ApprovalStore::read(&dirs)?;
                approvals.iter().try_for_each(|approval| {
                    store.add(&root, &approval.key, &approval.subject, crate::now_millis())
                })
            };
            if let Err(error) = save() {
                notes.send(&format!("note: cannot save the approval for this project: {error}"));
            }
        })
    }

    /// Loads the skills, and prints a note about each invalid one.
    pub(crate) fn load_skills(&self) -> anyhow::Result<Arc<[SkillDefinition]>> {
        let skill_files = SkillFiles::load(&self.dirs, &self.config, &self.root)?;
        for diagnostic in &skill_files.diagnostics {
            self.context.notes.send(&format!("note: {diagnostic}"));
        }
        let skills = skill_files.all.into_iter().map(|skill| {
            let folder = skill.folder.strip_prefix(&self.root).unwrap_or(&skill.folder);
            let folder = folder.display().to_string();
            let (name, description, body) = (skill.name, skill.description, skill.body);
            let source = (AllowedCallsSource::Skill, name.as_str());
            let allowed_calls = windlass_project::allowed_calls(source, &skill.tools);
            let (tools, files) = (skill.tools, skill.files);
            SkillDefinition { name, description, body, folder, files, tools, allowed_calls }
        });
        Ok(skills.collect())
    }

    /// Returns rules that require approval to change the programs of hooks, servers and formatters:
    /// the user trusted them as they are.
    fn command_file_rules(&self) -> anyhow::Result<PermissionRules> {
        let files = self.config.command_files().into_iter();
        let edit: serde_json::Map<_, _> = files.map(|name| (name, "ask".into())).collect();
        Ok(PermissionRules::parse(&serde_json::json!({"edit": edit}))?)
    }

    /// Returns rules that deny access to our own config and sessions, even inside the workspace:
    /// they contain the API keys and the list of trusted folders.
    fn own_folder_rules(&self, root: &Path) -> anyhow::Result<PermissionRules> {
        let deny_rule = |folder: &Path| {
            let relative = real_path(folder).strip_prefix(root).ok()?.join("*");
            Some((relative.display().to_string().replace(MAIN_SEPARATOR, "/"), "deny".into()))
        };
        let read: serde_json::Map<_, _> = [&self.dirs.config, &self.dirs.data]
            .into_iter()
            .filter_map(|folder| deny_rule(folder))
            .collect();
        // Plugins may be read, because agents read the skills of plugins.
        let edit: serde_json::Map<_, _> =
            read.clone().into_iter().chain(deny_rule(&self.dirs.plugins)).collect();
        Ok(PermissionRules::parse(&serde_json::json!({"read": read, "edit": edit}))?)
    }
}

/// Resolves the links in a path; returns it unchanged if that fails.
fn real_path(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
