//! Registers custom tools: the user's own, those of plugins, then those of a trusted project.
//!
//! The description of a tool file is cached by the file's digest, so that usually no program is
//! started here. New tools are asked for their description all at once, with a short timeout. A
//! tool that answers later is available through tool search but is not listed up front.

use super::LoadedProject;
use super::session_reader::LogSessionReader;
use crate::terminal::output::ProjectNotes;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use windlass_plugin::hook::{ScriptHook, UnloadedScriptHook};
use windlass_plugin::script_runtime::{self, ScriptRuntimes};
use windlass_plugin::typescript;
use windlass_plugin::{
    DeclaredHostPolicy, LaunchSpec, ProgramLimits, ProgramSource, SessionReader, ToolProcess,
};
use windlass_project::{ConfigLayer, Dirs, PluginDirs, ToolDescriptionCache, ToolFile, ToolFiles};
use windlass_sandbox::{HostAllowlist, WorkspaceAccess};
use windlass_toolkit::{
    Hook, PendingToolSource, ProcessLauncher, Registry, ToolDefinitionBudget, ToolRuntime,
};

/// A tool file on disk, as a program that can be started.
pub(super) struct ToolProgramFile {
    file: ToolFile,
    scripts: Option<ScriptToolContext>,
}

/// Data needed to run script tools.
#[derive(Clone)]
pub(super) struct ScriptToolContext {
    dirs: Dirs,
    root: PathBuf,
    found_runtimes: Arc<OnceLock<ScriptRuntimes>>,
}

impl ScriptToolContext {
    pub(super) fn new(project: &LoadedProject) -> ScriptToolContext {
        ScriptToolContext {
            dirs: project.dirs.clone(),
            root: project.root.clone(),
            found_runtimes: Arc::default(),
        }
    }

    /// Returns how to start a script: the runtime, the host, and the folder of compiled files.
    pub(super) fn resolve_launch(
        &self,
        script: PathBuf,
        digest: String,
    ) -> Result<LaunchSpec, String> {
        let (program, mut arguments) = self.runtimes().choose_runtime(&script)?;
        let name = format!("host-{}", script_runtime::host_digest());
        let host = windlass_project::write_cached_files(
            &self.dirs,
            &name,
            &script_runtime::SCRIPT_HOST_FILES,
        )
        .map_err(|error| error.to_string())?;
        let entry_point = script_runtime::SCRIPT_HOST_FILES.first().map_or("", |(name, _)| *name);
        // Bun, which has an argument, runs TypeScript itself.
        let is_typescript = windlass_project::is_typescript(&script);
        let compiled = match arguments.is_empty() && is_typescript {
            true => Some(windlass_project::write_compiled_scripts(
                &self.dirs,
                &script,
                typescript::COMPILER_VERSION,
                &typescript::compile_isolated,
            )?),
            false => None,
        };
        arguments.extend([host.join(entry_point).into_os_string(), script.into_os_string()]);
        arguments.extend(compiled.map(PathBuf::into_os_string));
        Ok(LaunchSpec { program, arguments, digest })
    }

    /// Returns the script runtimes on this machine; looks for them when the first script starts.
    fn runtimes(&self) -> &ScriptRuntimes {
        self.found_runtimes.get_or_init(|| {
            let node = LoadedProject::find_program("node", &self.root);
            let node =
                node.and_then(|node| Some((windlass_sandbox::program_version(&node)?, node)));
            ScriptRuntimes {
                node: node.map(|(version, node)| (node, version)),
                bun: LoadedProject::find_program("bun", &self.root),
            }
        })
    }
}

/// Time for a plugin to describe itself, before which no call is made.
pub(super) const PLUGIN_LOAD_TIMEOUT: Duration = Duration::from_secs(15);

impl ToolProgramFile {
    /// Returns the name of its description in the cache. A script may describe itself differently in
    /// each project, for example if the project has a config for it.
    fn cache_key(&self) -> String {
        let name = &self.file.display_name;
        match &self.scripts {
            Some(scripts) => format!("{name} in {}", scripts.root.display()),
            None => name.clone(),
        }
    }

    /// Returns a digest that covers the tool file and, for scripts, the script host.
    fn full_digest(&self, file_digest: &str) -> String {
        match self.scripts {
            Some(_) => format!("{file_digest}/{}", script_runtime::host_digest()),
            None => file_digest.to_owned(),
        }
    }
}

impl ProgramSource for ToolProgramFile {
    fn change_stamp(&self) -> String {
        self.file.change_stamp()
    }

    fn resolve_launch(&self) -> Result<LaunchSpec, String> {
        let prepared = self.file.prepare()?;
        let digest = self.full_digest(&prepared.digest);
        let Some(scripts) = &self.scripts else {
            return Ok(LaunchSpec { program: prepared.path, arguments: Vec::new(), digest });
        };
        scripts.resolve_launch(prepared.path, digest)
    }
}

/// A `ToolProcess` that has not described itself yet.
pub(super) struct UndescribedTool {
    program: Arc<ToolProcess>,
    program_file: Arc<ToolProgramFile>,
    registry: Registry,
    notes: ProjectNotes,
    state: Mutex<ToolDescriptionState>,
}

#[derive(Clone)]
pub(super) enum ToolDescriptionState {
    /// Asked for its description; listed up front if it answers in time.
    Waiting,
    /// The other tools are already listed.
    Late,
    /// The digest of its files and the description it returned.
    Described(String, serde_json::Value),
    /// The reason why it returned no description.
    Failed(String),
}

impl UndescribedTool {
    pub(super) fn cache_key(&self) -> String {
        self.program_file.cache_key()
    }

    /// Returns the description of the file as it is now, if it is cached.
    pub(super) fn cached_description(
        &self,
        cache: &ToolDescriptionCache,
    ) -> Option<serde_json::Value> {
        let prepared = self.program_file.file.prepare().ok()?;
        let digest = self.program_file.full_digest(&prepared.digest);
        cache.get(&self.cache_key(), &digest).cloned()
    }

    pub(super) fn state(&self) -> ToolDescriptionState {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_state(&self, state: ToolDescriptionState) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}

#[async_trait::async_trait]
impl PendingToolSource for UndescribedTool {
    fn name(&self) -> &str {
        self.program.name()
    }

    async fn wait_until_ready(&self) -> Result<(), String> {
        let is_late = match self.state() {
            ToolDescriptionState::Waiting => false,
            ToolDescriptionState::Late => true,
            ToolDescriptionState::Described(..) => return Ok(()),
            ToolDescriptionState::Failed(reason) => return Err(reason),
        };
        if is_late {
            // It gets one more attempt; if the caller stops waiting, this error stays.
            self.set_state(ToolDescriptionState::Failed(
                "it did not describe its tools in time".to_owned(),
            ));
        }
        let program_file = Arc::clone(&self.program_file);
        let prepared = tokio::task::spawn_blocking(move || program_file.file.prepare()).await;
        let description = self.program.describe().await;
        match (prepared, description) {
            (Ok(Ok(prepared)), Ok(description)) => {
                if is_late {
                    register_tools(
                        (&self.registry, &self.notes),
                        (&self.program, &self.program_file.file),
                        &description,
                        None,
                    );
                }
                self.set_state(ToolDescriptionState::Described(
                    self.program_file.full_digest(&prepared.digest),
                    description,
                ));
                Ok(())
            }
            (_, Err(failure)) => {
                self.set_state(ToolDescriptionState::Failed(failure.text.clone()));
                Err(failure.text)
            }
            (_, Ok(_)) => {
                let reason = "its file no longer exists".to_owned();
                self.set_state(ToolDescriptionState::Failed(reason.clone()));
                Err(reason)
            }
        }
    }

    fn description(&self) -> String {
        format!("{}: a custom tool that is still starting", self.name())
    }
}

impl LoadedProject {
    /// Registers all custom tools, and returns the hooks of plugins among them. An error in a file
    /// of tools is reported and does not affect the others; a plugin that could not be loaded denies
    /// all calls.
    pub(super) async fn register_custom_tools(
        &self,
        runtime: &ToolRuntime,
        timeout: Duration,
        budget: &mut ToolDefinitionBudget,
    ) -> Vec<Arc<dyn Hook>> {
        let mut hooks: Vec<Arc<dyn Hook>> = Vec::new();
        let tool_files = self.find_tool_files();
        for note in &tool_files.notes {
            self.context.notes.send(&format!("note: {note}"));
        }
        if tool_files.all.is_empty() {
            return hooks;
        }
        let launcher = ProcessLauncher::new(&runtime.workspace, &runtime.policy);
        let scripts = ScriptToolContext::new(self);
        let failures = self.script_configs.get().map(|configs| &configs.failures);
        let cache = ToolDescriptionCache::read(&self.dirs);
        let describing = Registry::default();
        let mut taken_names: BTreeSet<String> = runtime.registry.names().into_iter().collect();
        let mut pending_tools = Vec::new();
        for file in tool_files.all {
            // Built-in tools cannot be replaced, and a project cannot replace the user's tools.
            if taken_names.contains(&file.prefix) {
                self.context.notes.send(&format!(
                    "note: {} is skipped: a tool named {} already exists; rename the file",
                    file.display_name, file.prefix
                ));
                hooks.extend(unloaded_hook(&file, "its name is taken; rename the file"));
                continue;
            }
            let registry = &runtime.registry;
            let pending_tool =
                match self.new_undescribed(file.clone(), &launcher, &scripts, registry) {
                    Ok(pending_tool) => pending_tool,
                    Err(reason) => {
                        self.context
                            .notes
                            .send(&format!("note: {} is skipped: {reason}", file.display_name));
                        hooks.extend(unloaded_hook(&file, &reason.to_string()));
                        continue;
                    }
                };
            taken_names.insert(file.prefix.clone());
            if let Some(description) = pending_tool.cached_description(&cache) {
                let tool = (&pending_tool.program, &file);
                register_tools((registry, &self.context.notes), tool, &description, Some(budget));
                hooks.extend(script_hooks(tool.0, tool.1, &description));
                continue;
            }
            let pending_tool = Arc::new(pending_tool);
            match failures.and_then(|failures| failures.get(&file.display_name)) {
                // It was asked when the agents were loaded.
                Some(reason) => {
                    pending_tool.set_state(ToolDescriptionState::Failed(reason.clone()))
                }
                None => {
                    describing.add_pending(Arc::clone(&pending_tool) as Arc<dyn PendingToolSource>);
                }
            }
            pending_tools.push(pending_tool);
        }
        // A plugin may deny calls, so nothing runs before it is loaded.
        let has_plugin = pending_tools.iter().any(|tool| is_plugin(&tool.program_file.file));
        let timeout = if has_plugin { timeout.max(PLUGIN_LOAD_TIMEOUT) } else { timeout };
        describing.wait_for_pending(timeout).await;
        self.register_described(runtime, pending_tools, (budget, &mut hooks));
        hooks
    }

    /// Registers the tools that have described themselves, in order of their names and not of their
    /// answers.
    fn register_described(
        &self,
        runtime: &ToolRuntime,
        pending_tools: Vec<Arc<UndescribedTool>>,
        (budget, hooks): (&mut ToolDefinitionBudget, &mut Vec<Arc<dyn Hook>>),
    ) {
        let mut new_descriptions = Vec::new();
        for pending_tool in pending_tools {
            let display_name = pending_tool.program_file.file.display_name.clone();
            let is_plugin = is_plugin(&pending_tool.program_file.file);
            match pending_tool.state() {
                ToolDescriptionState::Described(digest, description) => {
                    let tool = (&pending_tool.program, &pending_tool.program_file.file);
                    let registry = (&runtime.registry, &self.context.notes);
                    register_tools(registry, tool, &description, Some(&mut *budget));
                    hooks.extend(script_hooks(tool.0, tool.1, &description));
                    new_descriptions.push((pending_tool.cache_key(), digest, description));
                }
                ToolDescriptionState::Failed(reason) if is_plugin => {
                    self.context.notes.send(&format!(
                        "note: the plugin {display_name} cannot be loaded, so all calls are denied: \
                         {reason}"
                    ));
                    hooks.push(Arc::new(UnloadedScriptHook::new(&display_name, &reason)));
                }
                ToolDescriptionState::Waiting | ToolDescriptionState::Late if is_plugin => {
                    self.context.notes.send(&format!(
                        "note: the plugin {display_name} does not answer, so all calls are denied"
                    ));
                    let reason = "it did not describe itself in time";
                    hooks.push(Arc::new(UnloadedScriptHook::new(&display_name, reason)));
                }
                ToolDescriptionState::Failed(reason) => {
                    self.context.notes.send(&format!("note: {display_name} is skipped: {reason}"));
                }
                ToolDescriptionState::Waiting | ToolDescriptionState::Late => {
                    pending_tool.set_state(ToolDescriptionState::Late);
                    self.context.notes.send(&format!(
                        "note: {display_name} is slow to start; it may become available later"
                    ));
                    runtime.registry.add_pending(pending_tool);
                }
            }
        }
        self.save_descriptions(new_descriptions);
    }

    /// Finds the tool files of the user, of plugins and of the project.
    pub(super) fn find_tool_files(&self) -> ToolFiles {
        let secret_paths = windlass_sandbox::secret_paths(&self.dirs.home);
        ToolFiles::find(&self.dirs, &self.config, &self.root, &secret_paths)
    }

    /// Saves new descriptions, each as file, digest and description.
    pub(super) fn save_descriptions(&self, new: Vec<(String, String, serde_json::Value)>) {
        if !new.is_empty()
            && let Err(error) = ToolDescriptionCache::save(&self.dirs, new)
        {
            self.context
                .notes
                .send(&format!("note: cannot save the descriptions of custom tools: {error}"));
        }
    }

    /// Creates the program of a tool file, which has not described itself.
    pub(super) fn new_undescribed(
        &self,
        file: ToolFile,
        launcher: &ProcessLauncher,
        scripts: &ScriptToolContext,
        registry: &Registry,
    ) -> anyhow::Result<UndescribedTool> {
        let limits = self.program_limits(&file)?;
        let scripts = file.is_script.then(|| scripts.clone());
        let program_file = Arc::new(ToolProgramFile { file, scripts });
        let source = Arc::clone(&program_file) as Arc<dyn ProgramSource>;
        let program = ToolProcess::new(&program_file.file.prefix, launcher, source, limits);
        let state = Mutex::new(ToolDescriptionState::Waiting);
        let (registry, notes) = (registry.clone(), self.context.notes.clone());
        Ok(UndescribedTool { program, program_file, registry, notes, state })
    }

    fn program_limits(&self, file: &ToolFile) -> anyhow::Result<ProgramLimits> {
        let timeout = self.config.tools.timeout;
        let mut limits = ProgramLimits {
            folder: self.root.clone(),
            hosts: self.command_hosts()?,
            host_allowance: match file.layer {
                ConfigLayer::User | ConfigLayer::Flag => DeclaredHostPolicy::Own,
                ConfigLayer::Plugin | ConfigLayer::Project | ConfigLayer::Managed => {
                    DeclaredHostPolicy::Default
                }
            },
            timeout: timeout.map(|ms| Duration::from_millis(u64::from(ms.get()))),
            max_access: WorkspaceAccess::Write,
            writable_dirs: Vec::new(),
            env: Vec::new(),
            sessions: file.is_script.then(|| {
                let reader = LogSessionReader {
                    folder: self.dirs.data.clone(),
                    context: self.context.clone(),
                };
                Arc::new(reader) as Arc<dyn SessionReader>
            }),
        };
        if let Some(access) = file.plugin_access() {
            let network = self.config.sandbox.network.iter().map(|(host, _)| host.clone());
            let hosts: Vec<String> = network.chain(access.network.iter().cloned()).collect();
            limits.hosts = HostAllowlist::parse(&hosts)?;
            limits.host_allowance = DeclaredHostPolicy::Approved(access.network.clone());
            limits.max_access =
                if access.write { WorkspaceAccess::Write } else { WorkspaceAccess::Read };
            limits.writable_dirs = vec![access.plugin_dirs.data.clone()];
            limits.env = access.plugin_dirs.env_variables();
            if file.is_script {
                // Plugins keep files in the home folder, which they cannot write.
                limits.env.extend(PluginDirs::home_variables(&access.plugin_dirs.data));
            }
        }
        Ok(limits)
    }
}

/// Returns true if a file is a script that seems to have hooks, or that cannot be read.
pub(super) fn is_plugin(file: &ToolFile) -> bool {
    let is_plugin =
        |text: &String| UnloadedScriptHook::is_plugin_text(text) || ToolFile::is_package(text);
    file.is_script && file.text().as_ref().is_none_or(is_plugin)
}

/// Returns the hook that denies all calls if a file that is not used is a plugin.
fn unloaded_hook(file: &ToolFile, reason: &str) -> Option<Arc<dyn Hook>> {
    let hook = || Arc::new(UnloadedScriptHook::new(&file.display_name, reason)) as Arc<dyn Hook>;
    is_plugin(file).then(hook)
}

/// Returns the hooks that a file has according to its description.
fn script_hooks(
    program: &Arc<ToolProcess>,
    file: &ToolFile,
    description: &serde_json::Value,
) -> Vec<Arc<dyn Hook>> {
    match ScriptHook::parse_all(program, &file.display_name, description) {
        Ok(hooks) if hooks.is_empty() => {
            // A package may have tools alone; its entry names neither.
            if file.text().is_some_and(|text| ToolFile::is_package(&text)) {
                return Vec::new();
            }
            let reason = "it names hooks, but returns none";
            unloaded_hook(file, reason).into_iter().collect()
        }
        Ok(hooks) => hooks.into_iter().map(|hook| Arc::new(hook) as Arc<dyn Hook>).collect(),
        Err(reason) => vec![Arc::new(UnloadedScriptHook::new(&file.display_name, &reason))],
    }
}

fn register_tools(
    (registry, notes): (&Registry, &ProjectNotes),
    (program, file): (&Arc<ToolProcess>, &ToolFile),
    description: &serde_json::Value,
    budget: Option<&mut ToolDefinitionBudget>,
) {
    let (tools, warnings) = program.parse_tools(description, budget);
    for note in warnings {
        notes.send(&format!("note: {}: {note}", file.display_name));
    }
    for tool in tools {
        if let Err(error) = registry.register_external(&file.display_name, tool) {
            notes.send(&format!("note: {error}"));
        }
    }
}
