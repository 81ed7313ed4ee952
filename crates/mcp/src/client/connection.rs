//! A connection to a server, from the handshake to the end. It does not depend on the transport
//! (stdio or HTTP).

use crate::client::sanitize_server_text::clean_server_text;
use crate::client::server_messages::{ActiveCalls, McpClientHandler, WorkspaceRoot};
use crate::config::{PinnedToolDefinition, ProtocolRevision};
use crate::transport::connection_status::ConnectionStatus;
use crate::transport::http::{McpHttpError, classify_error};
use crate::transport::json_lines::JsonLineTransport;
use rmcp::RoleClient;
use rmcp::model::{ProtocolVersion, SubscriptionFilter};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, Peer, RunningService,
    Subscription,
};
use rmcp::transport::Transport;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;
use windlass_protocol::display_text::truncate_chars;
use windlass_protocol::mutex_lock::lock;
use windlass_sandbox::{ProcessHandle, ProcessIo};
use windlass_toolkit::truncate_output;

/// Limit for the probe that finds out which revision a server speaks.
const REVISION_PROBE_TIMEOUT: Duration = Duration::from_secs(5);
/// Longer instructions of a server are truncated.
const MAX_INSTRUCTIONS_CHARS: usize = 1_000;
/// Limit for the server to confirm the subscription to `tools_list_changed`.
const SUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(5);

/// The reason why no `McpConnection` was made.
#[derive(Clone, Debug)]
pub(crate) struct McpConnectError {
    pub(crate) reason: String,
    /// The command that the user must run first, if the server requires a login.
    pub(crate) login_instructions: Option<String>,
    /// True if the server is reachable, but answered with something that is not understood.
    is_misunderstood: bool,
}

impl McpConnectError {
    pub(crate) fn new(reason: impl Into<String>) -> McpConnectError {
        McpConnectError { reason: reason.into(), login_instructions: None, is_misunderstood: false }
    }

    /// Returns the error for a server that requires a login.
    pub(crate) fn needs_login(server: &str) -> McpConnectError {
        let instructions = format!("{server} requires a login: run `windlass mcp login {server}`");
        McpConnectError {
            login_instructions: Some(instructions),
            ..McpConnectError::new("it requires a login")
        }
    }

    /// Returns true if another protocol revision may work.
    pub(crate) fn may_try_other_revision(&self) -> bool {
        self.is_misunderstood
    }
}

/// An open connection to a server.
pub(crate) struct McpConnection {
    service: RunningService<RoleClient, McpClientHandler>,
    pub(crate) status: Arc<ConnectionStatus>,
    pub(crate) active_calls: Arc<ActiveCalls>,
    /// The folder that the server may learn.
    pub(crate) root: Option<WorkspaceRoot>,
    pub(crate) revision: ProtocolRevision,
    /// The tools as the server last listed them.
    pub(crate) tools: Mutex<BTreeMap<String, PinnedToolDefinition>>,
    process: Option<Arc<ProcessHandle>>,
    /// Offset in the server's `stderr` up to which it is logged.
    stderr_position: Mutex<u64>,
    /// Receives change notifications as long as the connection lasts.
    _subscription_task: JoinSet<()>,
}

impl McpConnection {
    /// Opens a connection to a program over its `stdin` and `stdout`.
    pub(crate) async fn over_stdio(
        io: ProcessIo,
        status: Arc<ConnectionStatus>,
        revision: Option<ProtocolRevision>,
        root: WorkspaceRoot,
    ) -> Result<McpConnection, McpConnectError> {
        let (input, output, process) = io.split();
        let transport = JsonLineTransport::over_pipes(
            output,
            input,
            Arc::clone(&status),
            Arc::downgrade(&process),
        );
        let connection = tokio::select! {
            biased;
            connection = McpConnection::over_transport(transport, Arc::clone(&status), revision, Some(root)) => connection,
            _ = process.wait_for_exit() => Err(McpConnectError::new("it exited")),
        };
        match connection {
            Ok(mut connection) => {
                connection.process = Some(process);
                Ok(connection)
            }
            Err(mut error) => {
                let exited =
                    tokio::time::timeout(Duration::from_millis(200), process.wait_for_exit()).await;
                log_new_stderr(&process, &status, &mut 0);
                // The exit reason says more than the error that followed from it.
                if !error.is_misunderstood
                    && exited.is_ok()
                    && let Some(summary) = process.exit_summary()
                {
                    error = McpConnectError::new(summary);
                }
                Err(error)
            }
        }
    }

    /// Opens a connection over a `Transport`. The server may learn the `root`, if there is one.
    pub(crate) async fn over_transport<T>(
        transport: T,
        status: Arc<ConnectionStatus>,
        revision: Option<ProtocolRevision>,
        root: Option<WorkspaceRoot>,
    ) -> Result<McpConnection, McpConnectError>
    where
        T: Transport<RoleClient> + 'static,
    {
        let active_calls = Arc::<ActiveCalls>::default();
        let handler = McpClientHandler {
            active_calls: Arc::clone(&active_calls),
            status: Arc::clone(&status),
            root: root.clone(),
        };
        let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
        let (mode, time_limit) = match revision {
            Some(ProtocolRevision::Initialize) => (ClientLifecycleMode::Initialize, None),
            Some(ProtocolRevision::Discover) => {
                (ClientLifecycleMode::Discover { preferred_versions }, None)
            }
            None => {
                let legacy_version = Some(ProtocolVersion::V_2025_11_25);
                let mode = ClientLifecycleMode::Auto { preferred_versions, legacy_version };
                (mode, Some(REVISION_PROBE_TIMEOUT))
            }
        };
        let handshake = handler.serve_with_lifecycle(transport, mode);
        let result = match time_limit {
            None => handshake.await.map_err(|error| connect_error(&error, status.server_name())),
            Some(time_limit) => match tokio::time::timeout(time_limit, handshake).await {
                Ok(result) => result.map_err(|error| connect_error(&error, status.server_name())),
                Err(_) => {
                    let reason = timeout_reason(time_limit, status.server_name());
                    Err(McpConnectError { is_misunderstood: true, ..McpConnectError::new(reason) })
                }
            },
        };
        let service = result?;
        let info = service.peer_info();
        let info = info.as_deref();
        let revision = info.map(|info| ProtocolRevision::from_version(&info.protocol_version));
        let announces_changes =
            info.and_then(|info| info.capabilities.tools.as_ref()?.list_changed);
        let revision = revision.unwrap_or(ProtocolRevision::Initialize);
        let mut subscription_task = JoinSet::new();
        if revision == ProtocolRevision::Discover
            && announces_changes == Some(true)
            && let Some(changes) = subscribe_to_changes(service.peer()).await
        {
            subscription_task.spawn(follow_changes(changes, Arc::clone(&status)));
        }
        Ok(McpConnection {
            service,
            status,
            active_calls,
            root,
            revision,
            tools: Mutex::default(),
            process: None,
            stderr_position: Mutex::new(0),
            _subscription_task: subscription_task,
        })
    }

    pub(crate) fn peer(&self) -> &Peer<RoleClient> {
        self.service.peer()
    }

    /// Waits until the connection is closed or the process of the server has exited.
    pub(crate) async fn wait_until_closed(&self) {
        let exited = async {
            match &self.process {
                Some(process) => {
                    process.wait_for_exit().await;
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.status.wait_until_closed() => {}
            () = exited => {}
        }
    }

    /// Returns the reason why the connection no longer works, if it is closed.
    pub(crate) fn close_reason(&self) -> Option<String> {
        let reason = self.status.close_reason();
        // Child processes of the server may keep its pipes open after it exits.
        let reason = reason.or_else(|| self.process.as_ref()?.exit_summary());
        reason.or_else(|| self.service.is_closed().then(|| "the connection was closed".to_owned()))
    }

    /// Returns true once after each `mark_tools_changed`.
    pub(crate) fn take_tools_changed(&self) -> bool {
        self.status.take_tools_changed()
    }

    /// Returns whether the server announces prompts and resources.
    pub(crate) fn has_prompts_and_resources(&self) -> (bool, bool) {
        let info = self.service.peer_info();
        let capabilities = info.as_deref().map(|info| &info.capabilities);
        (
            capabilities.is_some_and(|capabilities| capabilities.prompts.is_some()),
            capabilities.is_some_and(|capabilities| capabilities.resources.is_some()),
        )
    }

    /// Returns the instructions of the server for the model, bounded; empty if it has none.
    pub(crate) fn instructions(&self) -> String {
        let info = self.service.peer_info();
        let text = info.as_deref().and_then(|info| info.instructions.as_deref());
        let text = truncate_output::strip_controls(text.unwrap_or_default().trim());
        truncate_chars(&text, MAX_INSTRUCTIONS_CHARS)
    }

    /// Logs the `stderr` output since the last call.
    pub(crate) fn log_stderr(&self) {
        if let Some(process) = &self.process {
            log_new_stderr(process, &self.status, &mut lock(&self.stderr_position));
        }
    }

    /// Returns the process ID, if the server is a program.
    pub(crate) fn pid(&self) -> Option<i32> {
        self.process.as_ref()?.pid()
    }

    /// Marks the connection as closed and terminates the process.
    pub(crate) async fn shut_down(&self) {
        self.status.close("it was stopped".into());
        if let Some(process) = &self.process {
            process.terminate(Duration::from_secs(1)).await;
        }
    }
}

/// Describes a server that does not answer.
pub(crate) fn timeout_reason(limit: Duration, server: &str) -> String {
    format!(
        "it did not answer within {} s; increase its `timeout`, or see `windlass mcp logs {server}`",
        limit.as_secs_f32()
    )
}

fn log_new_stderr(process: &ProcessHandle, status: &ConnectionStatus, position: &mut u64) {
    let output = process.stderr_since(*position);
    *position = output.next_offset;
    for line in output.text.lines().filter(|line| !line.trim().is_empty()) {
        status.log_line(line);
    }
}

async fn subscribe_to_changes(peer: &Peer<RoleClient>) -> Option<Subscription> {
    let mut filter = SubscriptionFilter::default();
    filter.tools_list_changed = Some(true);
    tokio::time::timeout(SUBSCRIBE_TIMEOUT, peer.listen(filter)).await.ok()?.ok()
}

/// Receives change notifications. Several changes in a row cause one `list_tools`.
async fn follow_changes(mut changes: Subscription, status: Arc<ConnectionStatus>) {
    while let Ok(Some(_)) = changes.next().await {
        status.mark_tools_changed();
    }
}

/// Converts a connection error into a `McpConnectError`, with server text shortened.
fn connect_error(error: &ClientInitializeError, name: &str) -> McpConnectError {
    if let McpHttpError::NeedsLogin { .. } | McpHttpError::NeedsScope { .. } = classify_error(error)
    {
        return McpConnectError::needs_login(name);
    }
    let (reason, is_misunderstood) = match error {
        ClientInitializeError::TransportError { .. } => match classify_error(error) {
            McpHttpError::Other(reason) => (reason, false),
            McpHttpError::NeedsLogin { .. } | McpHttpError::NeedsScope { .. } => {
                return McpConnectError::needs_login(name);
            }
        },
        ClientInitializeError::ConnectionClosed(_) => ("it closed the connection".into(), false),
        ClientInitializeError::JsonRpcError(error) => {
            (format!("it rejected the connection: {}", clean_server_text(&error.message)), true)
        }
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
            let reason = "it supports no protocol revision that Windlass knows; update the server, \
                          or Windlass";
            (reason.into(), true)
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => {
            return connect_error(fallback, name);
        }
        _ => {
            let reason = "its first answer is invalid; it may not be an MCP server: check its \
                          `command` or `url`";
            (reason.into(), true)
        }
    };
    McpConnectError { is_misunderstood, ..McpConnectError::new(reason) }
}
