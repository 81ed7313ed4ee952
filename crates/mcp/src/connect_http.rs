//! Connections to servers over HTTP.

use crate::client::connection::{McpConnectError, McpConnection};
use crate::client::server_messages::WorkspaceRoot;
use crate::config::{McpEndpoint, ProtocolRevision};
use crate::oauth::tokens::McpAuth;
use crate::transport::connection_status::ConnectionStatus;
use crate::transport::http::{
    McpHttpClient, McpHttpError, classify_error, connect_sse, has_no_event_stream,
    streamable_transport,
};
use secrecy::SecretString;
use std::sync::Arc;

/// Connects to a server at an `McpEndpoint::Http`. A server that refuses messages at its URL may
/// have only an event stream there, as in revision 2024-11-05.
pub(crate) async fn connect_http(
    endpoint: &McpEndpoint,
    status: Arc<ConnectionStatus>,
    revision: Option<ProtocolRevision>,
    workspace_root: &WorkspaceRoot,
) -> Result<McpConnection, McpConnectError> {
    let McpEndpoint::Http { url, headers, auth, uses_sse, address_policy } = endpoint else {
        return Err(McpConnectError::new("it has no URL"));
    };
    let root = is_loopback(url).then(|| workspace_root.clone());
    let explain = |error: McpConnectError| explain_login(error, headers, auth);
    let mut first_error = None;
    if !uses_sse {
        let to_error = |failure: windlass_toolkit::CallFailure| McpConnectError::new(failure.text);
        let client = McpHttpClient::new(*address_policy, url).map_err(to_error)?;
        let transport = streamable_transport(client.clone(), *address_policy, url, headers, auth);
        let transport = transport.map_err(to_error)?;
        let connection =
            McpConnection::over_transport(transport, Arc::clone(&status), revision, root.clone());
        let error = match connection.await {
            Ok(connection) => return Ok(connection),
            Err(error) => error,
        };
        if !client.refuses_messages() {
            return Err(explain(error));
        }
        first_error = Some(error);
    }
    let transport = connect_sse(*address_policy, url, headers, auth, Arc::clone(&status)).await;
    let transport = transport.map_err(|error| match (first_error, classify_error(&error)) {
        (Some(first_error), _) if has_no_event_stream(&error) => first_error,
        (_, McpHttpError::Other(reason)) => McpConnectError::new(reason),
        (_, McpHttpError::NeedsLogin { .. } | McpHttpError::NeedsScope { .. }) => {
            explain(McpConnectError::needs_login(status.server_name()))
        }
    })?;
    let revision = Some(ProtocolRevision::Initialize);
    let connection = McpConnection::over_transport(transport, Arc::clone(&status), revision, root);
    connection.await.map_err(|error| match status.close_reason() {
        Some(reason) => McpConnectError::new(reason),
        None => explain(error),
    })
}

/// Explains why `windlass mcp login` does not help, if it does not.
fn explain_login(
    error: McpConnectError,
    headers: &[(String, SecretString)],
    auth: &McpAuth,
) -> McpConnectError {
    let has_header = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
    match (&error.login_instructions, has_header, auth) {
        (Some(_), true, _) => McpConnectError::new(
            "it does not accept the `Authorization` header (HTTP 401); correct it in the config",
        ),
        (Some(_), false, McpAuth::None) => McpConnectError::new(
            "it requires a login (HTTP 401), which `\"oauth\": false` forbids; change the config",
        ),
        (Some(_), false, McpAuth::OAuth { .. }) | (None, ..) => error,
    }
}

/// Returns true for a server on this machine.
fn is_loopback(url: &str) -> bool {
    let url = reqwest::Url::parse(url).ok();
    let host = url.as_ref().and_then(reqwest::Url::host_str).unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}
