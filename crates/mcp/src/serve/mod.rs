//! An MCP server that offers Windlass tools to other programs, over stdio or HTTP.
//!
//! No tool runs in this module. The host implements [`ToolHost`]; a connection is a
//! [`ToolHostSession`], and each call takes the same tool pipeline as any other call. Client input is
//! bounded before it is used, and a client learns only about the tools that are served.

mod http;
mod server_handler;

use crate::serve::server_handler::McpServerHandlerFactory;
use async_trait::async_trait;
use rmcp::ServiceExt;
use rmcp::transport::async_rw::AsyncRwTransport;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use windlass_protocol::{BlobRef, CallOutcome, ModelToolDefinition};
use windlass_toolkit::CallFailure;

pub use http::{HttpAccessControl, serve_http};

/// Longer client messages are rejected, over stdio and HTTP.
const MAX_MESSAGE_BYTES: usize = 4 << 20;

/// The host that serves tools; `serve_stdio` and `serve_http` take one.
#[async_trait]
pub trait ToolHost: Send + Sync + 'static {
    /// Returns the tools to serve; the list never changes during the host's lifetime.
    fn tools(&self) -> &[ModelToolDefinition];

    /// Opens a session for a client, by the name that it reports. Calls of a session run one after
    /// the other.
    async fn open_session(&self, client: &str) -> Result<Arc<dyn ToolHostSession>, CallFailure>;
}

/// The session of a client. Dropping it ends the session.
#[async_trait]
pub trait ToolHostSession: Send + Sync {
    /// Calls a tool. Returns `None` if the session has ended.
    async fn call_tool(&self, request: McpCallRequest) -> Option<CallOutcome>;

    /// Returns the bytes of a blob that a call returned.
    async fn get_blob(&self, blob: &BlobRef) -> Option<Vec<u8>>;
}

/// A tool call of a client.
pub struct McpCallRequest {
    pub tool: String,
    /// The arguments as JSON.
    pub arguments: String,
    /// Receives progress while the call runs. Messages that do not fit into the queue are dropped.
    pub progress: mpsc::Sender<String>,
    /// Fires when the client cancels the call.
    pub cancel: CancellationToken,
}

/// Serves one client over stdio until it disconnects or `stop` fires.
pub async fn serve_stdio(
    tool_host: Arc<dyn ToolHost>,
    (input, output): (
        impl AsyncRead + Send + Unpin + 'static,
        impl AsyncWrite + Send + Unpin + 'static,
    ),
    stop: CancellationToken,
) -> Result<(), CallFailure> {
    let transport =
        AsyncRwTransport::new_server(input, output).with_max_line_length(MAX_MESSAGE_BYTES);
    let service =
        McpServerHandlerFactory::new(tool_host).new_session().serve_with_ct(transport, stop).await;
    // A client that disconnects before the handshake is not an error.
    let Ok(service) = service else { return Ok(()) };
    match service.waiting().await {
        Ok(_) => Ok(()),
        Err(error) => Err(CallFailure::new(format!("serving ended unexpectedly: {error}"))),
    }
}
