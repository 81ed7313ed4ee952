//! Servers at an address: the HTTP client beneath the protocol's library.
//!
//! It bounds what a server sends before anything reads it: bodies, errors, single events, and the time a
//! body takes. It follows redirects within one origin only, keeps no cookies, and resumes a broken
//! stream no faster than [`PACE`]. How long a call may take is not decided here. Start reading at
//! [`transport`].

mod client;
mod events;
mod keyed;
mod reach;
#[cfg(test)]
mod tests;
mod trouble;

pub(crate) use client::parameter;
pub(crate) use keyed::manager;
pub use reach::Reach;
pub use trouble::{Trouble, trouble};

use crate::tokens::Auth;
use client::Wire;
use keyed::Keyed;
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
use windlass_toolkit::Failure;

/// How long a body or one event may be.
pub(crate) const LARGEST: usize = 8 << 20;
/// How much of an error's body is read.
const LARGEST_ERROR: usize = 64 << 10;
/// How long a body may take once it has begun.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long an error's body may take.
const PATIENCE_WITH_ERRORS: Duration = Duration::from_secs(5);
/// How long the way to a server may take.
const CONNECTING: Duration = Duration::from_secs(15);
/// How long a server may take to say whether it wants a login.
const ASKING: Duration = Duration::from_secs(30);
/// How long lies between two streams that are resumed, at least.
const PACE: Duration = Duration::from_millis(100);
/// How often a stream that cannot be resumed is tried again.
const RESUMES: usize = 5;
/// The headers that are not anybody's to set.
const OURS: &[&str] =
    &["accept", "content-length", "content-type", "host", "last-event-id", "mcp-session-id"];

/// The way to a server of the person's own choice, which may be anywhere. It works inside an
/// async runtime only, and reaches nobody yet.
pub fn transport(
    url: &str,
    headers: &[(String, SecretString)],
    auth: &Auth,
) -> Result<impl rmcp::transport::Transport<RoleClient> + use<>, Failure> {
    transport_within(Reach::Anywhere, url, headers, auth)
}

/// The way to a server that lies within a reach.
pub fn transport_within(
    reach: Reach,
    url: &str,
    headers: &[(String, SecretString)],
    auth: &Auth,
) -> Result<impl rmcp::transport::Transport<RoleClient> + use<>, Failure> {
    let wire = Wire::new(reach, url)?;
    let headers = custom(headers)?;
    // Whoever sets the header by hand does not log in besides.
    let auth = if headers.contains_key(&AUTHORIZATION) { Auth::None } else { auth.clone() };
    let mut retry = ExponentialBackoff::default();
    retry.max_times = Some(RESUMES);
    retry.max_delay = Some(Duration::from_secs(30));
    let mut config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(headers)
        .max_sse_event_size(LARGEST)
        .reinit_on_expired_session(true);
    config.retry_config = Arc::new(retry);
    Ok(StreamableHttpClientTransport::with_client(Keyed::new(wire, reach, url, auth), config))
}

/// How a server asks for a login, if it does. It is asked as a client would that does not know it.
pub(crate) async fn challenge(reach: Reach, url: &str) -> Result<Option<String>, Failure> {
    let wire = Wire::new(reach, url)?;
    let hello = InitializeRequest::new(InitializeRequestParams::default());
    let hello = ClientRequest::InitializeRequest(hello);
    let hello = ClientJsonRpcMessage::request(hello, RequestId::Number(0));
    let asked = wire.post_message(url.into(), hello, None, None, HashMap::new());
    match tokio::time::timeout(ASKING, asked).await {
        Err(_) => Err(Failure::new("the server did not answer within 30 s. Try it again later")),
        Ok(Err(StreamableHttpError::AuthRequired(error))) => {
            Ok(Some(error.www_authenticate_header).filter(|challenge| !challenge.is_empty()))
        }
        Ok(Err(StreamableHttpError::Client(error))) => Err(Failure::new(error.to_string())),
        Ok(_) => Ok(None),
    }
}

/// Whether a server says that a login does not go far enough.
pub(crate) fn is_insufficient(challenge: &str) -> bool {
    parameter(challenge, "error").as_deref() == Some("insufficient_scope")
}

/// Headers as they are sent. Their values are never shown.
fn custom(headers: &[(String, SecretString)]) -> Result<HashMap<HeaderName, HeaderValue>, Failure> {
    let mut custom = HashMap::new();
    for (name, value) in headers {
        let wrong =
            |why: &str| Failure::new(format!("the header `{name}` {why}; change the config"));
        let named = HeaderName::try_from(name.as_str()).map_err(|_| wrong("has no valid name"))?;
        if OURS.contains(&named.as_str()) || named.as_str().starts_with("mcp-") {
            return Err(wrong("belongs to the protocol"));
        }
        let mut value = HeaderValue::try_from(value.expose_secret())
            .map_err(|_| wrong("holds what no header can"))?;
        value.set_sensitive(true);
        custom.insert(named, value);
    }
    Ok(custom)
}
