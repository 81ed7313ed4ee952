//! Builds an [`Engine`] for this folder: tools, rules and system prompt.

use super::{EngineOptions, EnginePurpose, LoadedProject};
use crate::commands::agent::with_valid_rules;
use crate::terminal::output;
use anyhow::Context;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use windlass_engine::session::{LoopDetectionPolicy, LoopDetectionRules};
use windlass_engine::system_prompt::{
    GitState, InstructionFile, ProjectSnapshot, SystemPromptValues,
};
use windlass_engine::{Engine, EngineSettings, ModelHandle, TitleGeneration};
use windlass_permission::{Decision, PermissionLevel};
use windlass_project::{AgentConfigs, FolderTrust, InstructionText, LoadedInstructions, PathRule};
use windlass_protocol::{PermissionMode, ToolAccess};
use windlass_sandbox::{SandboxMode, Workspace};
use windlass_toolkit::{
    AgentRestrictions, PathInstructions, Registry, ToolDefinitionBudget, ToolRuntime,
};
use windlass_tools::ToolIntegrations;

/// Maximum delay of the start by `git status`.
const GIT_STATUS_TIMEOUT: Duration = Duration::from_millis(100);
const MAX_STATUS_BYTES: usize = 16 << 10;
/// Maximum delay of the first prompt by tools without a known description.
const FIRST_PROMPT_WAIT: Duration = Duration::from_secs(2);
/// Maximum wait for tools without a known description when a tool is called by name.
const TOOL_CALL_WAIT: Duration = Duration::from_secs(30);

impl LoadedProject {
    /// Builds an engine without a model, for reading sessions.
    pub(crate) async fn build_inspect_engine(&self) -> anyhow::Result<Engine> {
        self.build_engine(None, EnginePurpose::Inspect, EngineOptions::default()).await
    }

    /// Builds an engine without a model, for calling tools.
    pub(crate) async fn build_tool_engine(&self, purpose: EnginePurpose) -> anyhow::Result<Engine> {
        self.build_engine(None, purpose, EngineOptions::default()).await
    }

    /// Builds an engine for sessions that choose their model; `model` is that of the others, if
    /// there is one.
    pub(crate) async fn build_session_engine(
        &self,
        model: Option<ModelHandle>,
        engine_options: EngineOptions,
    ) -> anyhow::Result<Engine> {
        let engine_options = EngineOptions { is_interactive: true, ..engine_options };
        self.build_engine(model, EnginePurpose::Commands, engine_options).await
    }

    /// Builds an engine that answers prompts.
    pub(crate) async fn build_model_engine(
        &self,
        model: ModelHandle,
        engine_options: EngineOptions,
    ) -> anyhow::Result<Engine> {
        self.build_engine(Some(model), EnginePurpose::Commands, engine_options).await
    }

    /// Returns whether models generate session titles. A local model does so only if the config asks
    /// for it, because it is busy with more important work.
    fn title_generation(&self) -> TitleGeneration {
        match self.config.titles {
            Some(true) => TitleGeneration::On,
            Some(false) => TitleGeneration::Off,
            None => TitleGeneration::HostedModels,
        }
    }

    /// Prints warnings about the sandbox before commands run, and about skipped `sandbox.write`
    /// folders.
    fn note_sandbox_risks(&self, purpose: EnginePurpose) {
        if self.sandbox_mode() == SandboxMode::Off {
            self.context.notes.send(
                "note: the sandbox is off: commands run with full access to your \
                                account",
            );
        }
        if purpose != EnginePurpose::Commands {
            return;
        }
        if self.lacks_sandbox() {
            self.context.notes.send(
                "warning: NO SANDBOX on this machine: commands that you approve run with full \
                 access to your account. Run `windlass doctor` to see what is missing",
            );
        }
        for note in self.writable_folders().1 {
            self.context.notes.send(&format!("note: {note}"));
        }
    }

    /// Prints a note if `AGENTS.md` is ignored because the folder is not trusted.
    fn note_ignored_instructions(&self) {
        if self.config.trust == FolderTrust::NothingToTrust
            && windlass_project::has_instructions(&self.root)
        {
            self.context.notes.send(
                "note: this folder's AGENTS.md is ignored until you trust the folder: `windlass \
                 trust`",
            );
        }
    }

    /// Loads the instructions. A file that the model must not read without asking is not imported.
    fn load_instructions(&self, runtime: &ToolRuntime) -> LoadedInstructions {
        let may_read = |path: &str| {
            let access = ToolAccess::Read { path: path.to_owned() };
            matches!(runtime.policy.decide(vec![access], &[]), Decision::Allowed(_))
        };
        windlass_project::load_instructions(&self.dirs, &self.root, &self.config, &may_read)
    }

    /// Returns the contents of the system prompt.
    fn system_prompt(
        &self,
        mode: PermissionMode,
        runtime: &ToolRuntime,
        options: &EngineOptions,
        instructions: Vec<InstructionText>,
    ) -> SystemPromptValues {
        let is_trusted = self.config.trust == FolderTrust::Trusted;
        // No file of an untrusted folder is opened for this.
        let branch = is_trusted.then(|| windlass_project::git_branch(&self.root)).flatten();
        let git = match branch {
            Some(branch) => GitState::Branch(branch),
            None if windlass_project::is_git_repository(&self.root) => GitState::Repository,
            None => GitState::NoRepository,
        };
        let to_file = |InstructionText { path, text, total_bytes }| InstructionFile {
            path,
            text,
            total_bytes,
        };
        let run_text = options.run_instructions.trim();
        let for_run = (!run_text.is_empty()).then(|| InstructionFile {
            path: "--system".to_owned(),
            text: format!("{run_text}\n"),
            total_bytes: run_text.len() as u64 + 1,
        });
        SystemPromptValues {
            folder: self.workspace_name(),
            working_folder: runtime.workspace.working_folder().path().map(Cow::into_owned),
            additional_folders: self.additional_folders(),
            platform: std::env::consts::OS.to_owned(),
            now: Some(crate::now_millis()),
            utc_offset_seconds: chrono::Local::now().offset().local_minus_utc(),
            git,
            mode: Some(mode),
            user: options.user,
            approves_calls: options.approves_calls,
            registries_approved: runtime.policy.are_registries_approved(),
            start: if is_trusted { self.project_snapshot() } else { ProjectSnapshot::default() },
            instructions: instructions.into_iter().map(to_file).chain(for_run).collect(),
            server_texts: Vec::new(),
        }
    }

    /// Returns the names in the folder and its git status, which is left out if git takes long.
    fn project_snapshot(&self) -> ProjectSnapshot {
        let status = windlass_project::is_git_repository(&self.root)
            .then(|| {
                let (root, home) = (&self.root, &self.dirs.home);
                windlass_sandbox::git_status(root, home, MAX_STATUS_BYTES, GIT_STATUS_TIMEOUT)
            })
            .flatten();
        let to_lines = |status: Vec<u8>| {
            let status = String::from_utf8_lossy(&status).into_owned();
            status.lines().map(str::to_owned).collect()
        };
        ProjectSnapshot {
            names: windlass_project::top_level_names(&self.root),
            git_status: status.map(to_lines),
        }
    }

    /// Builds the [`ToolRuntime`] without any tools or hooks.
    pub(crate) fn build_runtime(&self, mode: PermissionMode) -> anyhow::Result<ToolRuntime> {
        let shell = self.shell_config()?;
        let workspace = Workspace::open(&self.root)?.with_shell(shell).with_cache(&self.dirs.cache);
        let workspace = match LoadedProject::working_folder() {
            Some(folder) => workspace.with_working_folder(&folder),
            None => workspace,
        };
        let workspace = workspace.with_private_hosts(self.private_hosts()?);
        let machine_paths =
            workspace.machine_paths().context("the workspace cannot run commands")?;
        Ok(ToolRuntime {
            registry: Registry::default(),
            hooks: Vec::new(),
            policy: self.build_policy(machine_paths, mode)?,
            workspace,
            limits: Default::default(),
        })
    }

    async fn build_engine(
        &self,
        model: Option<ModelHandle>,
        purpose: EnginePurpose,
        mut engine_options: EngineOptions,
    ) -> anyhow::Result<Engine> {
        // Without a model of its own, an interactive engine serves sessions that name theirs.
        let answers_prompts = model.is_some() || engine_options.is_interactive;
        let agent = engine_options.agent.as_deref();
        let agent_configs = match purpose {
            // Reading sessions runs no script.
            EnginePurpose::Inspect => AgentConfigs::load(&self.dirs, &self.config)?,
            EnginePurpose::Files | EnginePurpose::Commands => self.load_agent_configs().await?,
        };
        let agent_configs = with_valid_rules(agent_configs);
        self.note_dead_agent_rules(&agent_configs)?;
        let variant = engine_options.variant.as_deref();
        let agents = self.build_agents(&agent_configs, answers_prompts, agent, variant)?;
        self.note_sandbox_risks(purpose);
        let mode = match purpose {
            EnginePurpose::Inspect => self.configured_mode(),
            EnginePurpose::Files | EnginePurpose::Commands => self.effective_mode(),
        };
        let mut runtime = self.build_runtime(mode)?;
        if let Some(rules) = engine_options.rules.take() {
            runtime.policy = runtime.policy.restricted_by(rules);
        }
        let integrations = match purpose {
            EnginePurpose::Inspect => ToolIntegrations::default(),
            EnginePurpose::Files | EnginePurpose::Commands => self.build_integrations(&runtime),
        };
        windlass_tools::register(&runtime.registry, &integrations);
        runtime.hooks = self.load_hooks(&runtime)?;
        let budget =
            self.config.tools.budget.map(|tokens| ToolDefinitionBudget::new(tokens as usize));
        let mut budget = budget.unwrap_or_default();
        // A model can find a late tool by search; a caller that names a tool cannot, so it waits
        // longer.
        let (tools_wait, servers_wait) = match answers_prompts {
            true => (FIRST_PROMPT_WAIT, None),
            false => (TOOL_CALL_WAIT, Some(TOOL_CALL_WAIT)),
        };
        if purpose != EnginePurpose::Inspect {
            let hooks = self.register_custom_tools(&runtime, tools_wait, &mut budget).await;
            runtime.hooks.extend(hooks);
        }
        let server_texts =
            self.register_servers(&runtime, purpose, servers_wait, &mut budget).await?;
        if !engine_options.tools.is_empty() {
            self.note_unknown_tools(&engine_options.tools, &runtime.registry);
            let tools = engine_options.tools.clone();
            let restrictions = AgentRestrictions { tools, ..AgentRestrictions::default() };
            runtime = runtime.restricted_to(&restrictions);
        }
        let name = self.config.model.as_ref().map(|(name, _)| name.as_str()).unwrap_or_default();
        let mut settings = EngineSettings::new(&self.workspace_name(), model, name);
        let mut folders = self.dirs.checkouts.iter();
        let folder = folders.find(|(_, root)| **root == self.root);
        settings.checkouts_folder =
            folder.map(|(folder, _)| windlass_protocol::display_text::workspace_name(folder));
        let instructions = match purpose {
            EnginePurpose::Inspect => LoadedInstructions::default(),
            EnginePurpose::Files | EnginePurpose::Commands => self.load_instructions(&runtime),
        };
        if answers_prompts {
            self.note_missing_packages();
            // The terminal UI shows the trust state itself.
            if !engine_options.is_interactive {
                self.note_ignored_instructions();
            }
            let values = self.system_prompt(mode, &runtime, &engine_options, instructions.texts);
            settings.system_prompt = SystemPromptValues { server_texts, ..values }.render();
        }
        if answers_prompts {
            (settings.fallback_models, settings.small_model) =
                self.secondary_models(settings.model.as_ref(), &engine_options.limits);
        }
        settings.model_resolver = self.model_resolver();
        settings.user = engine_options.user;
        if engine_options.is_interactive {
            settings.titles = self.title_generation();
        }
        settings.project_trusted = self.config.trust == FolderTrust::Trusted;
        settings.save_approvals = self.approval_saver();
        settings.limits = engine_options.limits;
        settings.loop_rules = loop_rules(&runtime);
        if !engine_options.extra_system_prompt.trim().is_empty() {
            let extra = format!("{}\n", engine_options.extra_system_prompt.trim());
            settings.system_prompt = settings.system_prompt.with_appended(&extra);
        }
        if purpose != EnginePurpose::Inspect {
            settings.skills = self.load_skills()?;
            settings.path_rules = to_path_instructions(instructions.path_rules);
        }
        settings.agents = agents;
        settings.subagent_excluded_tools = self.config.subagents.exclude_tools.clone().into();
        if let Some(agent) = agent {
            settings.default_agent = crate::commands::agent::choose_agent(&agent_configs, agent)?;
        }
        let log = self.context.log(&self.dirs.data).await?;
        Ok(Engine::new(log, Arc::new(runtime), settings))
    }

    /// Prints a note about each name without `*` that no tool has, because a misspelled name would keep
    /// a tool that the user does not want.
    fn note_unknown_tools(&self, tools: &[(String, bool)], registry: &Registry) {
        let names = registry.names();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        for (name, _) in tools.iter().filter(|(name, _)| !name.contains('*')) {
            if !names.contains(&name.as_str()) {
                let suggestion = output::did_you_mean(name, &names);
                self.context.notes.send(&format!("note: no tool is named {name}. {suggestion}"));
            }
        }
    }
}

fn to_path_instructions(rules: Vec<PathRule>) -> Arc<[PathInstructions]> {
    let convert = |PathRule { path, patterns, text, source }| PathInstructions {
        path,
        patterns,
        text,
        source,
    };
    rules.into_iter().map(convert).collect()
}

/// Returns the reactions to repeated calls that the key `doom_loop` sets, whose subjects are names
/// of tools.
fn loop_rules(runtime: &ToolRuntime) -> LoopDetectionRules {
    let policy = |tool: &str| match runtime.policy.level_for("doom_loop", tool) {
        Some(PermissionLevel::Allow) => LoopDetectionPolicy::Allow,
        Some(PermissionLevel::Deny) => LoopDetectionPolicy::Deny,
        Some(PermissionLevel::Ask) | None => LoopDetectionPolicy::Ask,
    };
    let default = policy("*");
    let tools = runtime.registry.names().into_iter().map(|tool| (policy(&tool), tool));
    let by_tool = tools.filter(|(policy, _)| *policy != default);
    LoopDetectionRules { default, by_tool: by_tool.map(|(policy, tool)| (tool, policy)).collect() }
}
