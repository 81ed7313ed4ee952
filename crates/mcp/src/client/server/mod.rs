//! A single MCP server: its connections, its health, and its registered tools.
//!
//! A server starts when a call needs it, in a task of its own, so that a waiting call can be
//! canceled. Mode plan uses a second process that cannot change anything. Start reading at
//! [`McpServer::call_tool`].

pub(crate) mod pinned_tools;
pub(crate) mod tool;

use crate::client::connection::{McpConnectError, McpConnection, timeout_reason};
use crate::client::listing;
use crate::client::request::{McpRequestError, McpRequestOptions};
use crate::client::server_messages::WorkspaceRoot;
use crate::config::{
    McpEndpoint, McpHostCallbacks, McpServerSpec, PinnedServerDefinitions, ProtocolRevision,
};
use crate::connect_http;
use crate::transport::connection_status::ConnectionStatus;
use pinned_tools::KnownTools;
use rmcp::model::{CallToolRequestParams, CallToolResult};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tool::McpTool;
use windlass_protocol::PermissionMode;
use windlass_protocol::mutex_lock::lock;
use windlass_toolkit::process_health::{ProcessHealth, ProcessHealthAction, ProcessHealthState};
use windlass_toolkit::{CallContext, CallFailure, ProcessLauncher, WeakRegistry};

/// Limit between two signs of life from the server during a call.
const CALL_IDLE_TIMEOUT: Duration = Duration::from_secs(120);
/// Limit for a whole call.
const CALL_TIMEOUT: Duration = Duration::from_secs(600);

/// An MCP server with its instances, its health and its `KnownTools`.
pub(crate) struct McpServer {
    config: McpServerSpec,
    launcher: ProcessLauncher,
    pub(crate) registry: WeakRegistry,
    pub(crate) store: Arc<dyn McpHostCallbacks>,
    /// The instance that may change things, and the read-only one for mode plan.
    instances: [ServerInstance; 2],
    pub(crate) known_tools: Mutex<KnownTools>,
    created_at: Instant,
    start_tasks: Mutex<JoinSet<()>>,
}

/// A process or connection of a server, and its `ProcessHealth`.
struct ServerInstance {
    health: Mutex<ProcessHealth>,
    connection: Mutex<Option<Arc<McpConnection>>>,
    /// Increases with every state change, so that calls can wait for one.
    change_counter: watch::Sender<u64>,
}

/// Calls `mark_failed` when it is dropped before a result was reported.
struct McpStartGuard<'a> {
    server: &'a McpServer,
    instance: &'a ServerInstance,
    reported: bool,
}

impl Drop for McpStartGuard<'_> {
    fn drop(&mut self) {
        if !self.reported {
            lock(&self.instance.health)
                .mark_failed(self.server.elapsed(), "its start was canceled".into());
        }
        self.instance.change_counter.send_modify(|count| *count += 1);
    }
}

impl McpServer {
    pub(crate) fn new(
        mut spec: McpServerSpec,
        launcher: ProcessLauncher,
        registry: WeakRegistry,
        store: Arc<dyn McpHostCallbacks>,
    ) -> Arc<McpServer> {
        let changes = store.health_changes();
        let instance = || ServerInstance {
            health: Mutex::new(ProcessHealth::new(&spec.name).with_changes(&changes)),
            connection: Mutex::new(None),
            change_counter: watch::Sender::new(0),
        };
        let instances = [instance(), instance()];
        let pins = spec.pins.take().filter(|pins| pins.config_digest == spec.digest);
        Arc::new(McpServer {
            launcher,
            registry,
            store,
            instances,
            known_tools: Mutex::new(KnownTools { pins, registered: BTreeMap::new() }),
            created_at: Instant::now(),
            start_tasks: Mutex::default(),
            config: spec,
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.config.name
    }

    /// Returns the `ProcessHealthState` of the read-write instance.
    pub(crate) fn state(&self) -> ProcessHealthState {
        let [read_write, _] = &self.instances;
        lock(&read_write.health).state().clone()
    }

    /// Returns the `PinnedServerDefinitions`: the accepted ones, or the first ones the server sent.
    pub(crate) fn pins(&self) -> Option<PinnedServerDefinitions> {
        lock(&self.known_tools).pins.clone()
    }

    fn elapsed(&self) -> Duration {
        self.created_at.elapsed()
    }

    fn instance(&self, mode: PermissionMode) -> &ServerInstance {
        let [read_write, read_only] = &self.instances;
        match (mode, &self.config.endpoint) {
            (PermissionMode::Plan, McpEndpoint::Stdio(_)) => read_only,
            (PermissionMode::Plan, McpEndpoint::Http { .. })
            | (PermissionMode::Ask | PermissionMode::Auto | PermissionMode::Full, _) => read_write,
        }
    }

    /// Returns a working connection; starts the server if needed.
    pub(crate) async fn connect(
        self: &Arc<Self>,
        mode: PermissionMode,
        cancel: &CancellationToken,
    ) -> Result<Arc<McpConnection>, CallFailure> {
        let connecting = self.wait_for_connection(mode, ProcessHealth::next_action);
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(McpRequestError::Canceled.into_failure(self.name())),
            connection = connecting => connection,
        }
    }

    async fn wait_for_connection(
        self: &Arc<Self>,
        mode: PermissionMode,
        next_action: fn(&mut ProcessHealth, Duration) -> ProcessHealthAction,
    ) -> Result<Arc<McpConnection>, CallFailure> {
        let instance = self.instance(mode);
        let mut changes = instance.change_counter.subscribe();
        let mut started = false;
        loop {
            changes.mark_unchanged();
            self.detect_lost_connection(instance);
            let action = next_action(&mut lock(&instance.health), self.elapsed());
            match action {
                ProcessHealthAction::Proceed => {
                    let connection = lock(&instance.connection).clone();
                    if let Some(connection) = connection {
                        return Ok(connection);
                    }
                    lock(&instance.health)
                        .mark_lost(self.elapsed(), "the connection was closed".into());
                }
                ProcessHealthAction::Fail(message) => return Err(CallFailure::new(message)),
                // A call does not repeat a failed start of its own.
                ProcessHealthAction::Start if started => {
                    let reason = "it exited right after it started";
                    lock(&instance.health).mark_failed(self.elapsed(), reason.into());
                }
                ProcessHealthAction::Start => {
                    started = true;
                    self.spawn_start(mode);
                    let _ = changes.changed().await;
                }
                ProcessHealthAction::Wait => {
                    let _ = changes.changed().await;
                }
            }
        }
    }

    /// Marks a connection as lost if it has closed in the meantime.
    fn detect_lost_connection(&self, instance: &ServerInstance) {
        let mut connection = lock(&instance.connection);
        let reason = connection.as_ref().and_then(|connection| connection.close_reason());
        if let Some(reason) = reason {
            if let Some(connection) = connection.take() {
                connection.log_stderr();
            }
            lock(&instance.health).mark_lost(self.elapsed(), reason);
        }
    }

    /// Starts the server in a task of its own.
    fn spawn_start(self: &Arc<Self>, mode: PermissionMode) {
        let server = Arc::clone(self);
        let mut starts = lock(&self.start_tasks);
        while starts.try_join_next().is_some() {}
        starts.spawn(async move {
            let instance = server.instance(mode);
            let mut guard = McpStartGuard { server: &server, instance, reported: false };
            let limit = server.config.start_timeout;
            let result = match tokio::time::timeout(limit, server.connect_and_list(mode)).await {
                Ok(result) => result,
                Err(_) => Err(McpConnectError::new(timeout_reason(limit, server.name()))),
            };
            guard.reported = true;
            match result {
                Ok(connection) => {
                    let connection = Arc::new(connection);
                    *lock(&instance.connection) = Some(Arc::clone(&connection));
                    lock(&instance.health).mark_started(server.elapsed());
                    server.watch_connection(mode, connection);
                }
                Err(McpConnectError { login_instructions: Some(instructions), .. }) => {
                    lock(&instance.health).mark_needs_login(instructions)
                }
                Err(error) => server.record_failure(instance, error.reason),
            }
        });
    }

    /// Marks a connection as lost when it closes, even if no call uses it.
    fn watch_connection(self: &Arc<Self>, mode: PermissionMode, connection: Arc<McpConnection>) {
        let server = Arc::downgrade(self);
        lock(&self.start_tasks).spawn(async move {
            connection.wait_until_closed().await;
            drop(connection);
            if let Some(server) = server.upgrade() {
                server.detect_lost_connection(server.instance(mode));
            }
        });
    }

    /// Starts the server without waiting for it.
    pub(crate) fn start_in_background(self: &Arc<Self>) {
        let mode = self.launcher.mode();
        let action = lock(&self.instance(mode).health).next_action(self.elapsed());
        if action == ProcessHealthAction::Start {
            self.spawn_start(mode);
        }
    }

    /// Waits until the server is connected.
    pub(crate) async fn wait_until_ready(
        self: &Arc<Self>,
    ) -> Result<Arc<McpConnection>, CallFailure> {
        self.wait_for_connection(self.launcher.mode(), ProcessHealth::next_action).await
    }

    fn record_failure(&self, instance: &ServerInstance, reason: String) {
        self.store.log_line(self.name(), &format!("not started: {reason}"));
        let mut health = lock(&instance.health);
        health.mark_failed(self.elapsed(), reason);
        if let ProcessHealthState::GivenUp { reason } = health.state() {
            let name = self.name();
            self.store
                .notify_user(format!("{name} will not be restarted in this session: {reason}"));
        }
    }

    /// Connects, then calls `list_tools` and `list_prompts`.
    async fn connect_and_list(
        self: &Arc<Self>,
        mode: PermissionMode,
    ) -> Result<McpConnection, McpConnectError> {
        let connection = self.negotiate_revision(mode).await?;
        let listed = match listing::list_tools(&connection).await {
            Ok(listed) => listed,
            Err(error) => {
                let reason = match error {
                    McpRequestError::NotSent(reason) | McpRequestError::ConnectionLost(reason) => {
                        reason
                    }
                    other => other.into_failure("it").text,
                };
                return Err(McpConnectError::new(connection.close_reason().unwrap_or(reason)));
            }
        };
        let (has_prompts, has_resources) = connection.has_prompts_and_resources();
        let prompts = match has_prompts {
            // Prompts are optional: a server that cannot list them still has tools.
            true => listing::list_prompts(&connection).await.unwrap_or_default(),
            false => Vec::new(),
        };
        *lock(&connection.tools) = listed.tools.clone();
        let pinned_server = PinnedServerDefinitions {
            config_digest: self.config.digest.clone(),
            revision: connection.revision,
            tools: Vec::new(),
            prompts,
            has_resources,
            instructions: connection.instructions(),
        };
        self.update_tools(listed, Some(pinned_server));
        Ok(connection)
    }

    /// Connects with a `ProtocolRevision` that both sides support.
    async fn negotiate_revision(
        &self,
        mode: PermissionMode,
    ) -> Result<McpConnection, McpConnectError> {
        if let Some(revision) = self.config.revision {
            return self.open_connection(mode, Some(revision)).await;
        }
        let pinned = self.pins().map(|pins| pins.revision);
        if let Some(pinned) = pinned {
            match self.open_connection(mode, Some(pinned)).await {
                Err(error) if error.may_try_other_revision() => {}
                other => return other,
            }
        }
        match self.open_connection(mode, None).await {
            Err(error) if error.may_try_other_revision() => {
                self.open_connection(mode, Some(ProtocolRevision::Initialize)).await
            }
            other => other,
        }
    }

    async fn open_connection(
        &self,
        mode: PermissionMode,
        revision: Option<ProtocolRevision>,
    ) -> Result<McpConnection, McpConnectError> {
        let status = ConnectionStatus::new(self.name(), &self.store);
        let root = WorkspaceRoot::new(self.launcher.workspace().root());
        match &self.config.endpoint {
            endpoint @ McpEndpoint::Http { .. } => {
                connect_http::connect_http(endpoint, status, revision, &root).await
            }
            McpEndpoint::Stdio(process) => {
                let io = self.launcher.in_mode(mode).launch((**process).clone()).await;
                let io = io.map_err(|failure| McpConnectError::new(failure.text))?;
                McpConnection::over_stdio(io, status, revision, root).await
            }
        }
    }

    /// Calls a tool over the open connection, or over one that is made for this call, at most once.
    pub(crate) async fn call_tool(
        self: &Arc<Self>,
        tool: &McpTool,
        input: Map<String, Value>,
        cx: &CallContext<'_>,
    ) -> Result<CallToolResult, CallFailure> {
        let mode = cx.world.mode();
        let cancel = &cx.cancel;
        let mut params = CallToolRequestParams::new(tool.remote_name.clone());
        params.arguments = Some(input);
        let request_options = McpRequestOptions {
            idle_timeout: CALL_IDLE_TIMEOUT,
            total_timeout: CALL_TIMEOUT,
            cancel: cancel.clone(),
            caller: Some(cx.caller),
            server: self.name(),
        };
        let instance = self.instance(mode);
        self.detect_lost_connection(instance);
        let is_ready = matches!(lock(&instance.health).state(), ProcessHealthState::Ready { .. });
        // Each call may start the server once.
        let next_action = if is_ready {
            ProcessHealth::next_action
        } else {
            ProcessHealth::next_action_after_loss
        };
        let mut connection = self.connect(mode, cancel).await?;
        for is_retry in [false, true] {
            self.refresh_tools(&connection).await;
            let digest =
                lock(&connection.tools).get(&tool.remote_name).map(|tool| tool.digest.clone());
            tool.check_definition(digest.as_deref())?;
            self.accept_tool(tool);
            let result = connection.call_tool(params.clone(), &request_options).await;
            connection.log_stderr();
            self.refresh_tools(&connection).await;
            let error = match result {
                Ok(result) => return Ok(result),
                Err(error) => error,
            };
            let can_repeat = match &error {
                McpRequestError::NotSent(_) => true,
                McpRequestError::ConnectionLost(_) => tool.can_repeat(),
                McpRequestError::TimedOut(_)
                | McpRequestError::Canceled
                | McpRequestError::Rejected(_)
                | McpRequestError::InvalidAnswer => false,
            };
            if is_retry || !can_repeat {
                self.detect_lost_connection(instance);
                return Err(error.into_failure(self.name()));
            }
            connection = tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(McpRequestError::Canceled.into_failure(self.name())),
                connection = self.wait_for_connection(mode, next_action) => connection?,
            };
        }
        Err(McpRequestError::InvalidAnswer.into_failure(self.name()))
    }

    /// Calls `list_tools` again if the server has reported a change.
    async fn refresh_tools(self: &Arc<Self>, connection: &McpConnection) {
        if !connection.take_tools_changed() || connection.close_reason().is_some() {
            return;
        }
        match listing::list_tools(connection).await {
            Ok(listed) => {
                *lock(&connection.tools) = listed.tools.clone();
                self.update_tools(listed, None);
            }
            Err(error) => {
                let reason = error.into_failure(self.name()).text;
                self.store
                    .log_line(self.name(), &format!("could not refresh its tool list: {reason}"));
            }
        }
    }

    /// Closes the connections, forgets all failed starts and connects again.
    pub(crate) async fn restart(self: &Arc<Self>) -> Result<(), CallFailure> {
        self.close().await;
        for instance in &self.instances {
            let mut health = lock(&instance.health);
            // A start under way reports its own result.
            if *health.state() != ProcessHealthState::Starting {
                health.reset();
            }
        }
        self.wait_until_ready().await.map(|_| ())
    }

    /// Closes the connections and ends the processes.
    pub(crate) async fn close(&self) {
        for instance in &self.instances {
            let connection = lock(&instance.connection).take();
            if let Some(connection) = connection {
                connection.log_stderr();
                connection.shut_down().await;
            }
        }
    }
}
