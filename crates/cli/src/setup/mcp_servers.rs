//! Builds MCP servers from the config: their sandbox, their transport, and their definitions from
//! the last connection.

use super::{EnginePurpose, LoadedProject};
use crate::terminal::output::ProjectNotes;
use secrecy::ExposeSecret;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use windlass_mcp::{
    McpAuth, McpEndpoint, McpHostCallbacks, McpServerSpec, McpServers, PinnedServerDefinitions,
    PromptSummary, ProtocolRevision,
};
use windlass_project::{
    ConfigLayer, ConfigOrigin, FolderTrust, McpServerConfig, McpServerPinOwner, McpServerPins,
    PluginDirs, ServerLogs, create_server_data_folder,
};
use windlass_sandbox::{
    HostAllowlist, ProcessSandboxAccess, ProcessSpec, SandboxMode, Workspace, WorkspaceAccess,
};
use windlass_toolkit::process_health::HealthChanges;
use windlass_toolkit::{ProcessLauncher, ToolDefinitionBudget, ToolRuntime};

impl LoadedProject {
    /// Registers the MCP servers. With a `timeout` (direct calls without a model) it waits for
    /// servers that are still starting. Returns the servers with instructions for the model.
    pub(super) async fn register_servers(
        &self,
        runtime: &ToolRuntime,
        purpose: EnginePurpose,
        timeout: Option<Duration>,
        budget: &mut ToolDefinitionBudget,
    ) -> anyhow::Result<Vec<(String, String)>> {
        let has_servers = self.config.servers.values().any(|(server, _)| server.enabled);
        if !has_servers {
            return Ok(Vec::new());
        }
        let servers = self.open_servers(runtime, budget)?;
        let names = runtime.registry.names();
        let is_usable = |tool: &str| {
            names.iter().any(|name| name == tool) && !runtime.policy.denies_outright(tool)
        };
        let texts = servers.instructions(is_usable);
        if purpose == EnginePurpose::Inspect {
            return Ok(texts);
        }
        servers.start_unknown();
        self.set_running_mcp_servers(servers);
        if let Some(timeout) = timeout {
            for missing in runtime.registry.wait_for_pending(timeout).await {
                self.context.notes.send(&format!("note: {missing}"));
            }
        }
        Ok(texts)
    }

    /// Opens the servers on their own, for inspection. The caller must keep the returned
    /// `ToolRuntime` for as long as it uses the servers.
    pub(crate) fn open_servers_only(&self) -> anyhow::Result<(ToolRuntime, McpServers)> {
        let runtime = self.build_runtime(self.effective_mode())?;
        let servers = self.open_servers(&runtime, &mut ToolDefinitionBudget::default())?;
        Ok((runtime, servers))
    }

    /// Returns the known prompts of servers, each with the server's name. Starts no server.
    pub(crate) fn server_prompts(&self) -> Vec<(String, PromptSummary)> {
        let pins = self.server_pins();
        let prompts = self.enabled_servers(&pins).flat_map(|(server, _, pins)| {
            let pinned = pins.read::<PinnedServerDefinitions>(&server.name).ok().flatten();
            let prompts = pinned.map(|pinned| pinned.prompts).unwrap_or_default().into_iter();
            prompts.map(|prompt| (server.name.clone(), prompt))
        });
        prompts.collect()
    }

    /// Returns the definitions of a server from its last connection. Starts no server.
    pub(crate) fn server_definitions(&self, name: &str) -> Option<PinnedServerDefinitions> {
        let pins = self.server_pins();
        let (.., pins) = self.enabled_servers(&pins).find(|(server, ..)| server.name == name)?;
        pins.read(name).ok().flatten()
    }

    /// Returns the [`McpServerPins`] of the user's servers, and of the project's.
    fn server_pins(&self) -> (McpServerPins, McpServerPins) {
        let pins_of = |owner| McpServerPins::for_owner(&self.dirs, owner);
        (pins_of(McpServerPinOwner::User), pins_of(McpServerPinOwner::Project(&self.root)))
    }

    /// Returns the enabled servers with their config origin and the store of their pins.
    fn enabled_servers<'a>(
        &'a self,
        (user_pins, project_pins): &'a (McpServerPins, McpServerPins),
    ) -> impl Iterator<Item = (&'a McpServerConfig, &'a ConfigOrigin, &'a McpServerPins)> {
        let enabled = self.config.servers.values().filter(|(server, _)| server.enabled);
        enabled.map(move |(server, origin)| {
            let pins = if origin.layer == ConfigLayer::Project { project_pins } else { user_pins };
            (server, origin, pins)
        })
    }

    /// Opens all enabled servers without starting any.
    fn open_servers(
        &self,
        runtime: &ToolRuntime,
        budget: &mut ToolDefinitionBudget,
    ) -> anyhow::Result<McpServers> {
        let pins = self.server_pins();
        let mut specs = Vec::new();
        for (server, origin, pins) in self.enabled_servers(&pins) {
            match self.server_config(server, origin.layer, pins, &runtime.workspace) {
                Ok(spec) => specs.push(spec),
                Err(error) => {
                    self.context
                        .notes
                        .send(&format!("note: {origin}: {} is skipped: {error}", server.name));
                }
            }
        }
        let servers = self.config.servers.values();
        let project_servers = servers
            .filter(|(_, origin)| origin.layer == ConfigLayer::Project)
            .map(|(server, _)| server.name.clone())
            .collect();
        let (user_pins, project_pins) = pins;
        let store: Arc<dyn McpHostCallbacks> = Arc::new(McpServerDiskStore {
            user_pins,
            project_pins,
            project_servers,
            logs: ServerLogs::new(&self.dirs, "mcp"),
            notes: self.context.notes.clone(),
            changes: self.server_changes(),
        });
        let launcher = ProcessLauncher::new(&runtime.workspace, &runtime.policy);
        Ok(McpServers::open(specs, launcher, &runtime.registry, &store, budget))
    }

    fn server_config(
        &self,
        server: &McpServerConfig,
        layer: ConfigLayer,
        pins: &McpServerPins,
        workspace: &Workspace,
    ) -> anyhow::Result<McpServerSpec> {
        let pinned = pins.read::<PinnedServerDefinitions>(&server.name).unwrap_or_else(|error| {
            self.context
                .notes
                .send(&format!("note: cannot read the saved tools of {}: {error}", server.name));
            None
        });
        Ok(McpServerSpec {
            name: server.name.clone(),
            endpoint: match &server.transport {
                windlass_project::McpTransport::Stdio { .. } => {
                    McpEndpoint::Stdio(Box::new(self.process_spec(server, layer, workspace)?))
                }
                windlass_project::McpTransport::Http { url, headers, oauth, uses_sse } => {
                    McpEndpoint::Http {
                        uses_sse: *uses_sse,
                        url: url.clone(),
                        headers: headers.iter().map(|(n, v)| (n.clone(), v.clone())).collect(),
                        auth: match oauth {
                            Some(oauth) => crate::commands::mcp::token_store::server_auth(
                                &self.dirs,
                                &server.name,
                                oauth,
                            ),
                            None => McpAuth::None,
                        },
                        address_policy: crate::commands::mcp::address_policy(layer, url),
                    }
                }
            },
            start_timeout: server.timeout,
            revision: server.protocol.as_deref().and_then(ProtocolRevision::from_date),
            digest: server.digest.clone(),
            pins: pinned,
        })
    }

    fn process_spec(
        &self,
        server: &McpServerConfig,
        layer: ConfigLayer,
        workspace: &Workspace,
    ) -> anyhow::Result<ProcessSpec> {
        let windlass_project::McpTransport::Stdio { command, env, cwd, write, network, sandbox } =
            &server.transport
        else {
            anyhow::bail!("it is not a local program");
        };
        let name = format!("mcp/{}", server.name);
        let root = self.root.display().to_string();
        let has_data = command.iter().any(|word| word.contains("{data}"))
            || env.values().any(|value| value.expose_secret().contains("{data}"));
        let data_folder = match has_data {
            true => {
                let owner = match layer {
                    ConfigLayer::Project => McpServerPinOwner::Project(&self.root),
                    _ => McpServerPinOwner::User,
                };
                Some(create_server_data_folder(&self.dirs, owner, &server.name)?)
            }
            false => None,
        };
        let data = data_folder.as_ref().map(|folder| folder.display().to_string());
        let expand_data = |text: &str| match &data {
            Some(data) => text.replace("{data}", data),
            None => text.to_owned(),
        };
        let mut argv = command.iter().map(|word| expand_data(&word.replace("{folder}", &root)));
        let program = argv.next().unwrap_or_default();
        let process_folder = workspace.process_folder(&name);
        // A program that is downloaded by name follows config files in its working folder, so in an
        // untrusted project it runs in a separate folder.
        let is_trusted = self.config.trust == FolderTrust::Trusted;
        let folder = match (cwd, is_trusted, process_folder) {
            (Some(cwd), ..) => self.root.join(cwd.replace("{folder}", &root)),
            (None, true, _) | (None, false, None) => self.root.clone(),
            (None, false, Some(process_folder)) => process_folder,
        };
        let mut hosts: Vec<String> =
            self.config.sandbox.network.iter().map(|(host, _)| host.clone()).collect();
        hosts.extend(network.iter().cloned());
        let plugin = server.plugin.as_ref();
        let mut variables = plugin.map(PluginDirs::env_variables).unwrap_or_default();
        variables
            .extend(env.iter().map(|(n, v)| (n.into(), expand_data(v.expose_secret()).into())));
        if plugin.is_some() {
            variables.push(("CLAUDE_PROJECT_DIR".into(), root.clone().into()));
        }
        Ok(ProcessSpec {
            name,
            program: PathBuf::from(program),
            arguments: argv.map(Into::into).collect(),
            folder,
            env: variables,
            sandbox_access: ProcessSandboxAccess {
                workspace: if *write { WorkspaceAccess::Write } else { WorkspaceAccess::Read },
                writable_folders: plugin
                    .map(|plugin| plugin.data.clone())
                    .into_iter()
                    .chain(data_folder)
                    .collect(),
                hosts: HostAllowlist::parse(&hosts)?,
                sandbox_mode: (!sandbox && layer == ConfigLayer::User).then_some(SandboxMode::Off),
            },
        })
    }
}

/// Stores pins and logs of MCP servers in the user's data folder.
struct McpServerDiskStore {
    user_pins: McpServerPins,
    project_pins: McpServerPins,
    /// The servers that come from the project.
    project_servers: Vec<String>,
    logs: ServerLogs,
    notes: ProjectNotes,
    /// The subscribers to state changes.
    changes: HealthChanges,
}

impl McpHostCallbacks for McpServerDiskStore {
    fn save_pins(&self, server: &str, pinned: &PinnedServerDefinitions) {
        let is_project_server = self.project_servers.iter().any(|name| name == server);
        let pins = if is_project_server { &self.project_pins } else { &self.user_pins };
        if let Err(error) = pins.save(server, pinned) {
            self.notes.send(&format!("note: cannot save the tools of {server}: {error}"));
        }
    }

    fn log_line(&self, server: &str, line: &str) {
        if let Err(error) = self.logs.append(server, line) {
            tracing::debug!(server, %error, "cannot write the server log");
        }
    }

    fn notify_user(&self, text: String) {
        self.notes.send(&format!("note: {text}"));
    }

    fn health_changes(&self) -> HealthChanges {
        self.changes.clone()
    }
}
