//! The HTTP client below `rmcp`, for servers at a URL.
//!
//! It bounds server data before anything reads it: bodies, errors, single events, and the time a
//! body takes. It follows redirects only within one origin, keeps no cookies, and resumes a broken
//! stream no faster than [`MIN_RESUME_INTERVAL`]. It does not limit the duration of a call. Start
//! reading at [`http_transport`].

mod address_policy;
mod auth_client;
mod client;
mod error;
mod sse;
mod sse_limit;
#[cfg(test)]
mod tests;

pub use address_policy::AddressPolicy;
pub(crate) use auth_client::authorization_manager;
pub(crate) use client::{McpHttpClient, challenge_parameter};
pub(crate) use error::may_have_been_sent;
pub use error::{McpHttpError, classify_error};
pub(crate) use sse::{connect_sse, has_no_event_stream};

use crate::oauth::tokens::McpAuth;
use auth_client::OAuthHttpClient;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, InitializeRequest, InitializeRequestParams, RequestId,
};
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
    StreamableHttpError,
};
use secrecy::{ExposeSecret, SecretString};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use windlass_toolkit::CallFailure;

/// Limits a response body, and a single event.
pub(crate) const MAX_BODY_BYTES: usize = 8 << 20;
/// Limits how much of an error body is read.
const MAX_ERROR_BODY_BYTES: usize = 64 << 10;
/// Limit for reading a body after the response headers.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(5);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Limit for the request that finds out whether a server requires a login.
const CHALLENGE_TIMEOUT: Duration = Duration::from_secs(30);
/// The minimum time between two resumed streams.
const MIN_RESUME_INTERVAL: Duration = Duration::from_millis(100);
/// Limits the attempts to resume a stream (`ExponentialBackoff::max_times`).
const MAX_STREAM_RESUMES: usize = 5;
/// Headers that belong to the protocol; the config cannot set them.
const RESERVED_HEADERS: &[&str] =
    &["accept", "content-length", "content-type", "host", "last-event-id", "mcp-session-id"];

/// Creates a transport to a server that the user chose, at any address. Requires an async runtime,
/// and does not connect yet.
pub fn http_transport(
    url: &str,
    headers: &[(String, SecretString)],
    auth: &McpAuth,
) -> Result<impl rmcp::transport::Transport<RoleClient> + use<>, CallFailure> {
    http_transport_within(AddressPolicy::Anywhere, url, headers, auth)
}

/// Creates a transport to a server whose address must satisfy an `AddressPolicy`.
pub fn http_transport_within(
    address_policy: AddressPolicy,
    url: &str,
    headers: &[(String, SecretString)],
    auth: &McpAuth,
) -> Result<impl rmcp::transport::Transport<RoleClient> + use<>, CallFailure> {
    let client = McpHttpClient::new(address_policy, url)?;
    streamable_transport(client, address_policy, url, headers, auth)
}

/// Creates a transport with a client, which records whether the server accepts messages.
pub(crate) fn streamable_transport(
    client: McpHttpClient,
    address_policy: AddressPolicy,
    url: &str,
    headers: &[(String, SecretString)],
    auth: &McpAuth,
) -> Result<impl rmcp::transport::Transport<RoleClient> + use<>, CallFailure> {
    let headers = parse_headers(headers)?;
    // An explicit `Authorization` header replaces the OAuth login.
    let auth = if headers.contains_key(&AUTHORIZATION) { McpAuth::None } else { auth.clone() };
    let mut retry = ExponentialBackoff::default();
    retry.max_times = Some(MAX_STREAM_RESUMES);
    retry.max_delay = Some(Duration::from_secs(30));
    let mut config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(headers)
        .max_sse_event_size(MAX_BODY_BYTES)
        .reinit_on_expired_session(true);
    config.retry_config = Arc::new(retry);
    Ok(StreamableHttpClientTransport::with_client(
        OAuthHttpClient::new(client, address_policy, url, auth),
        config,
    ))
}

/// Requests the authentication challenge of a server, if it has one. The request is that of a new
/// client, without a token.
pub(crate) async fn fetch_challenge(
    address_policy: AddressPolicy,
    url: &str,
) -> Result<Option<String>, CallFailure> {
    let client = McpHttpClient::new(address_policy, url)?;
    let request = InitializeRequest::new(InitializeRequestParams::default());
    let request = ClientRequest::InitializeRequest(request);
    let request = ClientJsonRpcMessage::request(request, RequestId::Number(0));
    let response = client.post_message(url.into(), request, None, None, HashMap::new());
    match tokio::time::timeout(CHALLENGE_TIMEOUT, response).await {
        Err(_) => Err(CallFailure::new("the server did not answer within 30 s. Try again later")),
        Ok(Err(StreamableHttpError::AuthRequired(error))) => {
            Ok(Some(error.www_authenticate_header).filter(|challenge| !challenge.is_empty()))
        }
        Ok(Err(StreamableHttpError::Client(error))) => Err(CallFailure::new(error.to_string())),
        // A server with an event stream shows its challenge there.
        Ok(_) if client.refuses_messages() => {
            let events = client.get_stream(url.into(), None, None, None, HashMap::new());
            match tokio::time::timeout(CHALLENGE_TIMEOUT, events).await {
                Ok(Err(StreamableHttpError::AuthRequired(error))) => {
                    Ok(Some(error.www_authenticate_header).filter(|text| !text.is_empty()))
                }
                Ok(_) | Err(_) => Ok(None),
            }
        }
        Ok(_) => Ok(None),
    }
}

/// Returns true if the challenge says that the login lacks a scope (`insufficient_scope`).
pub(crate) fn is_insufficient_scope(challenge: &str) -> bool {
    challenge_parameter(challenge, "error").as_deref() == Some("insufficient_scope")
}

/// Parses the configured headers. Their values are never shown.
fn parse_headers(
    headers: &[(String, SecretString)],
) -> Result<HashMap<HeaderName, HeaderValue>, CallFailure> {
    let mut parsed = HashMap::new();
    for (name, value) in headers {
        let invalid = |reason: &str| {
            CallFailure::new(format!("the header `{name}` {reason}; change the config"))
        };
        let header =
            HeaderName::try_from(name.as_str()).map_err(|_| invalid("has an invalid name"))?;
        if RESERVED_HEADERS.contains(&header.as_str()) || header.as_str().starts_with("mcp-") {
            return Err(invalid("is reserved by the protocol"));
        }
        let mut value = HeaderValue::try_from(value.expose_secret())
            .map_err(|_| invalid("has an invalid value"))?;
        value.set_sensitive(true);
        parsed.insert(header, value);
    }
    Ok(parsed)
}
