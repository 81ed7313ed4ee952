//! The MCP servers of a session.
//!
//! The tools that were known last time are registered at once, so no turn waits for a server before
//! a call needs it. Only a server without pins starts beforehand, in the background.

pub(crate) mod connection;
pub(crate) mod elicitation;
pub(crate) mod listing;
pub(crate) mod prompts;
pub(crate) mod request;
pub(crate) mod resource_tools;
pub(crate) mod result_content;
pub(crate) mod sanitize_server_text;
pub(crate) mod server;
pub(crate) mod server_messages;

use crate::client::request::McpRequestError;
use crate::client::resource_tools::{ListResourcesTool, ReadResourceTool, ResourceServers};
use crate::client::sanitize_server_text::clean_server_text;
use crate::client::server::McpServer;
use crate::client::server::tool::{definition_diff, text_diff};
use crate::config::{
    McpHostCallbacks, McpServerSpec, PinnedToolDefinition, PromptSummary, ProtocolRevision,
};
use async_trait::async_trait;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use windlass_protocol::mutex_lock::lock;
use windlass_toolkit::process_health::ProcessHealthState;
use windlass_toolkit::registry::untrusted_schema;
use windlass_toolkit::{
    CallFailure, PendingToolSource, ProcessLauncher, Registry, ToolDefinitionBudget,
};

/// The MCP servers of a session. A clone shares them.
#[derive(Clone)]
pub struct McpServers {
    servers: Arc<[Arc<McpServer>]>,
    launcher: ProcessLauncher,
}

/// The tools, prompts and resources that a server offers now.
#[derive(Clone, Debug)]
pub struct McpServerInventory {
    /// The protocol revision that the server speaks.
    pub revision: ProtocolRevision,
    pub tools: Vec<PinnedToolDefinition>,
    /// Tools that are new or whose definition differs from the `PinnedToolDefinition`.
    pub changed: Vec<ToolDefinitionChange>,
    /// `PinnedToolDefinition`s that the server no longer lists.
    pub removed: Vec<String>,
    /// Instructions of the server for the model; empty if it has none.
    pub instructions: String,
    /// The difference between the pinned instructions and `instructions`, if there is one.
    pub instructions_change: Option<String>,
    pub prompts: Vec<PromptSummary>,
    /// True if the server announces resources.
    pub resources: bool,
    /// The process ID, if the server is a program.
    pub pid: Option<i32>,
}

/// A tool that differs from its `PinnedToolDefinition`, or has none.
#[derive(Clone, Debug)]
pub struct ToolDefinitionChange {
    /// The name that the server uses.
    pub name: String,
    /// The difference, as the user sees it.
    pub difference: String,
}

impl McpServers {
    /// Registers the pinned tools and starts no server. Tools of a server that do not fit into
    /// `budget` are searchable instead of listed.
    pub fn open(
        specs: Vec<McpServerSpec>,
        launcher: ProcessLauncher,
        registry: &Registry,
        store: &Arc<dyn McpHostCallbacks>,
        budget: &mut ToolDefinitionBudget,
    ) -> McpServers {
        let servers = specs.into_iter().map(|spec| {
            McpServer::new(spec, launcher.clone(), registry.downgrade(), Arc::clone(store))
        });
        let servers: Arc<[Arc<McpServer>]> = servers.collect();
        for server in servers.iter() {
            match server.pins() {
                Some(_) => server.register_pinned(budget),
                None => registry
                    .add_pending(Arc::new(PendingServerTools { server: Arc::clone(server) })),
            }
        }
        let has_resources =
            |server: &&Arc<McpServer>| server.pins().is_some_and(|pins| pins.has_resources);
        let with_resources: ResourceServers =
            servers.iter().filter(has_resources).cloned().collect();
        if !with_resources.is_empty() {
            registry.register(ListResourcesTool { servers: Arc::clone(&with_resources) });
            registry.register(ReadResourceTool { servers: with_resources });
        }
        McpServers { servers, launcher }
    }

    /// Starts all servers without a `PinnedServerDefinitions`, in parallel.
    pub fn start_unknown(&self) {
        for server in self.servers.iter().filter(|server| server.pins().is_none()) {
            server.start_in_background();
        }
    }

    /// Connects to a server and returns its `McpServerInventory`.
    pub async fn inspect(&self, name: &str) -> Result<McpServerInventory, CallFailure> {
        let server = self.find(name)?;
        let before = server.pins();
        let connection = server.wait_until_ready().await?;
        let current = lock(&connection.tools).clone();
        let pins = before.or_else(|| server.pins());
        let find_pinned =
            |name: &str| pins.iter().flat_map(|pins| &pins.tools).find(|tool| tool.name == name);
        let changed = current.values().filter_map(|tool| {
            let pinned = find_pinned(&tool.name);
            let differs = pinned.is_none_or(|pinned| pinned.digest != tool.digest);
            let pinned = pinned.map(|pinned| &pinned.definition);
            let difference = || definition_diff(pinned, &tool.definition);
            differs
                .then(|| ToolDefinitionChange { name: tool.name.clone(), difference: difference() })
        });
        let removed = pins.iter().flat_map(|pins| &pins.tools);
        let removed = removed.filter(|tool| !current.contains_key(&tool.name));
        let instructions = connection.instructions();
        let pinned = pins.as_ref().map_or("", |pins| pins.instructions.as_str());
        Ok(McpServerInventory {
            revision: connection.revision,
            instructions_change: (pinned != instructions).then(|| text_diff(pinned, &instructions)),
            instructions,
            changed: changed.collect(),
            removed: removed.map(|tool| tool.name.clone()).collect(),
            prompts: server.pins().map(|pins| pins.prompts).unwrap_or_default(),
            resources: connection.has_prompts_and_resources().1,
            pid: connection.pid(),
            tools: current.into_values().collect(),
        })
    }

    /// Pins all current tools of a server, after the user has reviewed and accepted them.
    pub async fn accept_server(&self, name: &str) -> Result<(), CallFailure> {
        let server = self.find(name)?;
        let connection = server.wait_until_ready().await?;
        let current = lock(&connection.tools).clone();
        server.accept_all(&current, connection.instructions());
        Ok(())
    }

    /// Returns the servers with instructions for the model, as they were pinned, for which
    /// `is_usable` accepts at least one tool. A server without tools has resources or prompts, and
    /// is included. Starts no server.
    pub fn instructions(&self, is_usable: impl Fn(&str) -> bool) -> Vec<(String, String)> {
        let texts = self.servers.iter().filter_map(|server| {
            let pins = server.pins().filter(|pins| !pins.instructions.is_empty())?;
            let mut tools = pins
                .tools
                .iter()
                .map(|tool| untrusted_schema::tool_name(server.name(), &tool.name));
            let is_included = pins.tools.is_empty() || tools.any(|tool| is_usable(&tool));
            is_included.then(|| (server.name().to_owned(), pins.instructions))
        });
        texts.collect()
    }

    /// Requests a prompt from a server, with `name=value …` arguments.
    pub async fn get_prompt(
        &self,
        server: &str,
        name: &str,
        arguments: &str,
    ) -> Result<String, CallFailure> {
        let server = self.find(server)?;
        let connection = server.connect(self.launcher.mode(), &CancellationToken::new()).await?;
        prompts::get_prompt(&connection, name, arguments).await.map_err(|error| match error {
            McpRequestError::Rejected(message) => CallFailure::new(format!(
                "{server} did not return the prompt `{}`: {message}. `windlass mcp tools {server}` \
                 lists its prompts and their arguments",
                clean_server_text(name),
                server = server.name(),
            )),
            other => other.into_failure(server.name()),
        })
    }

    /// Stops a server and starts it again, also one that is `GivenUp`.
    ///
    /// # Errors
    ///
    /// Fails if the server is unknown or does not start.
    pub async fn restart(&self, name: &str) -> Result<(), CallFailure> {
        self.find(name)?.restart().await
    }

    /// Waits until no server is starting. The start of a server has a time limit.
    pub async fn wait_until_settled(&self) {
        let is_starting = |server: &&Arc<McpServer>| server.state() == ProcessHealthState::Starting;
        let starting: Vec<Arc<McpServer>> =
            self.servers.iter().filter(is_starting).cloned().collect();
        for server in starting {
            // The state of the server tells the result.
            let _ = server.wait_until_ready().await;
        }
    }

    /// Returns the `ProcessHealthState` of each server.
    pub fn states(&self) -> Vec<(String, ProcessHealthState)> {
        self.servers.iter().map(|server| (server.name().to_owned(), server.state())).collect()
    }

    /// Closes all connections and ends the server processes.
    pub async fn close(&self) {
        for server in self.servers.iter() {
            server.close().await;
        }
    }

    fn find(&self, name: &str) -> Result<&Arc<McpServer>, CallFailure> {
        let found = self.servers.iter().find(|server| server.name() == name);
        found.ok_or_else(|| {
            CallFailure::new(format!("unknown MCP server `{}`", clean_server_text(name)))
        })
    }
}

/// A server whose tools are not known yet.
struct PendingServerTools {
    server: Arc<McpServer>,
}

#[async_trait]
impl PendingToolSource for PendingServerTools {
    fn name(&self) -> &str {
        self.server.name()
    }

    async fn wait_until_ready(&self) -> Result<(), String> {
        self.server.wait_until_ready().await.map(|_| ()).map_err(|failure| failure.text)
    }

    fn description(&self) -> String {
        format!("{} (its tools are not known yet)", self.server.name())
    }
}
