//! Loads hooks from the config; the layer they come from determines their order and their sandbox.

use super::LoadedProject;
use anyhow::bail;
use std::sync::Arc;
use windlass_plugin::hook::{
    ClaudeHookFormat, ConfiguredHook, ConfiguredHookSpec, HookAction, HookFormat, HttpHookEndpoint,
    StartCheck,
};
use windlass_project::{ConfigLayer, FolderTrust, HookCommand, HookConfig, PluginDirs};
use windlass_sandbox::{HostAllowlist, ProcessSandboxAccess, ProcessSpec, WorkspaceAccess};
use windlass_toolkit::{Hook, ProcessLauncher, ToolRuntime};

/// Folder for a project's hooks. Tools cannot change it, and folder trust covers it.
const HOOKS_FOLDER: &str = ".windlass/hooks/";

impl LoadedProject {
    /// Loads hooks in call order: the user's own, those of plugins, then the project's. An invalid
    /// hook of the user is an error, because it may exist to deny something.
    pub(super) fn load_hooks(&self, runtime: &ToolRuntime) -> anyhow::Result<Vec<Arc<dyn Hook>>> {
        let launcher = ProcessLauncher::new(&runtime.workspace, &runtime.policy);
        let mut specs: Vec<&HookConfig> = self.config.hooks.iter().collect();
        specs.sort_by_key(|spec| spec.layer);
        let mut hooks: Vec<Arc<dyn Hook>> = Vec::new();
        for spec in specs {
            let hook = self.build_hook(spec).and_then(|spec| ConfiguredHook::new(spec, &launcher));
            match hook {
                Ok(hook) => hooks.push(Arc::new(hook)),
                Err(reason) => {
                    let owner = match spec.layer {
                        ConfigLayer::Project => "the project's",
                        ConfigLayer::Plugin => "a plugin's",
                        ConfigLayer::User | ConfigLayer::Flag | ConfigLayer::Managed => {
                            bail!("hook {}: {reason}", spec.name)
                        }
                    };
                    self.context
                        .notes
                        .send(&format!("note: {owner} hook {} is skipped: {reason}", spec.name));
                }
            }
        }
        Ok(hooks)
    }

    fn build_hook(&self, spec: &HookConfig) -> Result<ConfiguredHookSpec, String> {
        let action = match &spec.command {
            HookCommand::Argv(argv) => match argv.split_first() {
                Some((program, arguments)) => {
                    self.hook_process(spec, (program.clone(), arguments.to_vec()))?
                }
                None => return Err("its command is empty".to_owned()),
            },
            HookCommand::Shell(script) => {
                let arguments = vec!["-c".to_owned(), script.clone()];
                self.hook_process(spec, ("bash".to_owned(), arguments))?
            }
            HookCommand::Http { url, headers } => {
                let headers = headers.0.clone().into_iter().collect();
                HookAction::Http(HttpHookEndpoint::new(url.clone(), headers)?)
            }
            HookCommand::Prompt(prompt) => HookAction::Prompt(prompt.clone()),
        };
        Ok(ConfiguredHookSpec {
            name: spec.name.clone(),
            point: spec.point,
            matcher: spec.matcher.clone(),
            action,
            timeout: spec.timeout,
            format: match spec.format {
                windlass_project::HookIoFormat::Windlass => HookFormat::Native,
                windlass_project::HookIoFormat::Claude => HookFormat::Claude(ClaudeHookFormat {
                    tools: windlass_tools::claude_names(),
                    servers: self.config.servers.keys().cloned().collect(),
                }),
            },
            check: match (spec.layer, &spec.plugin) {
                (ConfigLayer::Project, _) => Some(self.unchanged_check()),
                (_, Some(plugin)) => {
                    let plugin = plugin.clone();
                    Some(Arc::new(move || plugin.check_unchanged()))
                }
                (
                    ConfigLayer::User
                    | ConfigLayer::Plugin
                    | ConfigLayer::Flag
                    | ConfigLayer::Managed,
                    None,
                ) => None,
            },
        })
    }

    /// Returns the process of a hook that is a command.
    fn hook_process(
        &self,
        spec: &HookConfig,
        (program, arguments): (String, Vec<String>),
    ) -> Result<HookAction, String> {
        let hosts =
            HostAllowlist::parse(&spec.network).map_err(|error| format!("network: {error}"))?;
        let workspace = if spec.write { WorkspaceAccess::Write } else { WorkspaceAccess::Read };
        let plugin = spec.plugin.as_ref();
        // Claude hooks expect to run in the project folder, if that is safe; native hooks of a
        // plugin run in the plugin folder.
        let is_claude = spec.format == windlass_project::HookIoFormat::Claude;
        let runs_in_project = is_claude && self.config.trust == FolderTrust::Trusted;
        let folder =
            plugin.filter(|_| !runs_in_project).map_or(&self.root, |plugin| &plugin.root).clone();
        Ok(HookAction::Command(Box::new(ProcessSpec {
            name: format!("hook/{}", spec.name),
            program: program.into(),
            arguments: arguments.into_iter().map(Into::into).collect(),
            folder,
            env: plugin.map(PluginDirs::env_variables).unwrap_or_default(),
            sandbox_access: ProcessSandboxAccess {
                workspace,
                writable_folders: plugin.map(|plugin| plugin.data.clone()).into_iter().collect(),
                hosts,
                sandbox_mode: None,
            },
        })))
    }

    /// Returns a `StartCheck` that lets a project's hooks run only if their files are unchanged
    /// since the folder was trusted.
    fn unchanged_check(&self) -> StartCheck {
        let files = self.config.trusted_files(HOOKS_FOLDER);
        Arc::new(move || match files.iter().find(|file| !file.is_unchanged()) {
            None => Ok(()),
            Some(file) => Err(format!(
                "{} has changed since you trusted this folder; review it with `windlass trust`",
                file.name
            )),
        })
    }
}
