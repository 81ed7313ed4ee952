//! Connections to servers over HTTP.

use crate::client::connection::{McpConnectError, McpConnection};
use crate::config::{McpEndpoint, ProtocolRevision};
use crate::transport::connection_status::ConnectionStatus;
use crate::transport::http::http_transport_within;
use std::sync::Arc;

/// Connects to a server at an `McpEndpoint::Http`.
pub(crate) async fn connect_http(
    endpoint: &McpEndpoint,
    status: Arc<ConnectionStatus>,
    revision: Option<ProtocolRevision>,
) -> Result<McpConnection, McpConnectError> {
    let McpEndpoint::Http { url, headers, auth, address_policy } = endpoint else {
        return Err(McpConnectError::new("it has no URL"));
    };
    let transport = http_transport_within(*address_policy, url, headers, auth);
    let transport = transport.map_err(|failure| McpConnectError::new(failure.text))?;
    McpConnection::over_transport(transport, status, revision).await
}
