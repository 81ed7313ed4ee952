//! Describes the scripts of a plugin before the user approves it.
//!
//! The scripts run in a sandbox without network, in a temporary folder instead of the project, with
//! an empty home folder and no cache. The user's own tools may run without a sandbox, these never.

use super::LoadedProject;
use super::custom_tools::{PLUGIN_LOAD_TIMEOUT, ScriptToolContext};
use futures_util::future::join_all;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windlass_plugin::{DeclaredHostPolicy, LaunchSpec, ProgramLimits, ProgramSource, ToolProcess};
use windlass_project::{PluginCandidate, PluginDirs};
use windlass_protocol::PermissionMode;
use windlass_protocol::display_text::{to_one_line, truncate_chars};
use windlass_sandbox::{
    CommandSandboxConfig, HostAllowlist, SandboxBackend, SandboxMode, Workspace, WorkspaceAccess,
};
use windlass_toolkit::ProcessLauncher;

/// Limits the line about a script.
const MAX_LINE_CHARS: usize = 600;

/// A script of a plugin, as it describes itself.
pub(crate) struct ScriptPreview {
    /// The file and its tools, hooks, agents and commands, or why it cannot be loaded.
    pub(crate) line: String,
    pub(crate) is_loaded: bool,
}

/// A script in a temporary folder.
struct PreviewedScript {
    path: PathBuf,
    scripts: ScriptToolContext,
}

impl ProgramSource for PreviewedScript {
    fn change_stamp(&self) -> String {
        String::new()
    }

    fn resolve_launch(&self) -> Result<LaunchSpec, String> {
        self.scripts.resolve_launch(self.path.clone(), String::new())
    }
}

impl LoadedProject {
    /// Starts each script of a plugin once. `folder` is an empty folder. Without a sandbox, no
    /// script runs.
    pub(crate) async fn preview_scripts(
        &self,
        candidate: &PluginCandidate,
        folder: &Path,
    ) -> anyhow::Result<Vec<ScriptPreview>> {
        if windlass_sandbox::probe().backend == SandboxBackend::Off {
            anyhow::bail!("no sandbox is available, so they do not run before you approve them");
        }
        let folder = super::real_path(folder);
        let (root, home) = (folder.join("plugin"), folder.join("home"));
        candidate.write_to(&root, &home)?;
        let shell = CommandSandboxConfig {
            sandbox_mode: SandboxMode::Best,
            cache_folder: None,
            ..self.shell_config()?
        };
        let workspace = Workspace::open(&root)?.with_shell(shell);
        let machine_paths = workspace.machine_paths();
        let machine_paths =
            machine_paths.ok_or_else(|| anyhow::anyhow!("the workspace cannot run commands"))?;
        let policy = self.build_policy(machine_paths, PermissionMode::Auto)?;
        let launcher = ProcessLauncher::new(&workspace, &policy);
        let limits = ProgramLimits {
            folder: root.clone(),
            hosts: HostAllowlist::none(),
            host_allowance: DeclaredHostPolicy::Default,
            timeout: None,
            max_access: WorkspaceAccess::Read,
            writable_dirs: vec![home.clone()],
            env: PluginDirs::home_variables(&home),
            sessions: None,
        };
        let deadline = tokio::time::Instant::now() + PLUGIN_LOAD_TIMEOUT;
        let scripts = candidate.components.tools.iter().filter(|tool| tool.is_script);
        let previews = scripts.map(|tool| {
            let source = PreviewedScript {
                path: root.join(&tool.file),
                scripts: ScriptToolContext::new(self),
            };
            let program =
                ToolProcess::new(&tool.prefix, &launcher, Arc::new(source), limits.clone());
            let folder = format!("{}/", root.display());
            async move {
                let (is_loaded, text) =
                    match tokio::time::timeout_at(deadline, program.describe()).await {
                        Ok(Ok(description)) => (true, describe_contents(&description)),
                        Ok(Err(failure)) => {
                            let reason = failure.text.replace(&folder, "");
                            (false, format!("cannot be loaded: {reason}"))
                        }
                        Err(_) => (false, "does not describe itself in time".to_owned()),
                    };
                let line = format!("{}: {text}", tool.file);
                let line = truncate_chars(&to_one_line(&line), MAX_LINE_CHARS);
                ScriptPreview { line, is_loaded }
            }
        });
        Ok(join_all(previews).await)
    }
}

/// Lists what a description names.
fn describe_contents(description: &Value) -> String {
    let texts = |value: Option<&Value>| -> Vec<String> {
        match value {
            Some(Value::Array(list)) => {
                let name = |entry: &Value| {
                    let name = entry.get("name").unwrap_or(entry);
                    name.as_str().map(str::to_owned)
                };
                list.iter().filter_map(name).collect()
            }
            Some(Value::Object(map)) => map.keys().cloned().collect(),
            _ => Vec::new(),
        }
    };
    let config = |key: &str| description.get("config").and_then(|config| config.get(key));
    let parts = [
        ("tools", texts(description.get("tools"))),
        ("hooks", texts(description.get("hooks"))),
        ("agents", texts(config("agent"))),
        ("commands", texts(config("command"))),
        ("not taken from its config", texts(config("ignored"))),
        ("hooks that never run here", texts(description.get("unsupported_hooks"))),
        ("notes", texts(description.get("notes"))),
    ];
    let parts = parts.into_iter().filter(|(_, names)| !names.is_empty());
    let parts: Vec<String> =
        parts.map(|(title, names)| format!("{title}: {}", names.join(", "))).collect();
    if parts.is_empty() { "has nothing that runs here".to_owned() } else { parts.join("; ") }
}
