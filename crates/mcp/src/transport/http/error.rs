//! Errors of an HTTP connection, classified by the action that the user must take.

use reqwest::StatusCode;
use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::auth::AuthError;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use std::error::Error;
use std::io;
use std::time::Duration;

/// An error of the server or of the network.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpTransportError {
    /// The message was not sent, because there is no connection.
    #[error("{0}")]
    NoConnection(String),
    /// The connection broke after the message may have been sent.
    #[error("{0}")]
    ConnectionLost(String),
    /// The message was sent, and the answer is none.
    #[error("{0}")]
    InvalidAnswer(String),
    #[error("it sent more than {} MB at once", .max_bytes >> 20)]
    BodyTooLong { max_bytes: usize },
    #[error("it did not finish its answer within {} s; try again later", .0.as_secs())]
    TimedOut(Duration),
}

impl From<reqwest::Error> for HttpTransportError {
    /// Converts the error without its URL, which may contain secrets.
    fn from(error: reqwest::Error) -> HttpTransportError {
        let text = describe_network_error(&error);
        match error.is_connect() || error.is_builder() {
            true => HttpTransportError::NoConnection(text),
            false => HttpTransportError::ConnectionLost(text),
        }
    }
}

/// An error of an HTTP connection to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McpHttpError {
    /// The server requires a login, or no longer accepts the token (401).
    NeedsLogin {
        /// The `WWW-Authenticate` challenge, for the login.
        challenge: Option<String>,
    },
    /// The login does not allow this request.
    NeedsScope {
        /// The scope that the request requires.
        scope: Option<String>,
        /// The `WWW-Authenticate` challenge, for the login.
        challenge: String,
    },
    /// Any other error, as text.
    Other(String),
}

/// Classifies an error of `rmcp`.
pub fn classify_error(error: &(dyn Error + 'static)) -> McpHttpError {
    find_http_error(error).map_or_else(
        || McpHttpError::Other("it closed the connection".to_owned()),
        classify_http_error,
    )
}

/// Returns true if the server may have received a message in spite of this error.
pub(crate) fn may_have_been_sent(error: &(dyn Error + 'static)) -> bool {
    match find_http_error(error) {
        Some(StreamableHttpError::Client(error)) => {
            !matches!(error, HttpTransportError::NoConnection(_))
        }
        // A gateway may answer with a 5xx after it has passed the message on. With 429, the message
        // was not accepted.
        Some(StreamableHttpError::HttpStatus(error)) => {
            error.status != StatusCode::TOO_MANY_REQUESTS.as_u16()
        }
        Some(
            StreamableHttpError::UnexpectedContentType(_)
            | StreamableHttpError::UnexpectedEndOfStream
            | StreamableHttpError::SessionRecoveryTimeout,
        ) => true,
        Some(_) | None => false,
    }
}

/// Returns the HTTP error among the causes of an error of `rmcp`.
fn find_http_error<'a>(
    error: &'a (dyn Error + 'static),
) -> Option<&'a StreamableHttpError<HttpTransportError>> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(ClientInitializeError::TransportError { error, .. }) = error.downcast_ref() {
            return find_http_error(error.error.as_ref());
        }
        if let Some(ClientInitializeError::LegacyFallbackFailed { fallback, .. }) =
            error.downcast_ref()
        {
            return find_http_error(fallback.as_ref());
        }
        if let Some(ServiceError::TransportSend(error)) = error.downcast_ref() {
            return find_http_error(error.error.as_ref());
        }
        if let Some(error) = error.downcast_ref::<StreamableHttpError<HttpTransportError>>() {
            return Some(error);
        }
        // An `io::Error` hides its content from `source`.
        if let Some(inner) = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            return find_http_error(inner);
        }
        next = error.source();
    }
    None
}

fn classify_http_error(error: &StreamableHttpError<HttpTransportError>) -> McpHttpError {
    match error {
        StreamableHttpError::AuthRequired(error) => {
            let challenge = error.www_authenticate_header.clone();
            McpHttpError::NeedsLogin { challenge: Some(challenge).filter(|text| !text.is_empty()) }
        }
        StreamableHttpError::InsufficientScope(error) => McpHttpError::NeedsScope {
            scope: error.required_scope.clone(),
            challenge: error.www_authenticate_header.clone(),
        },
        StreamableHttpError::Auth(AuthError::AuthorizationRequired) => {
            McpHttpError::NeedsLogin { challenge: None }
        }
        other => McpHttpError::Other(describe_http_error(other)),
    }
}

/// Describes an HTTP error without the words of a library, and says what to do.
fn describe_http_error(error: &StreamableHttpError<HttpTransportError>) -> String {
    match error {
        StreamableHttpError::Client(error) => error.to_string(),
        StreamableHttpError::HttpStatus(error) => {
            format!("it is not available now (HTTP {}); try again later", error.status)
        }
        // All of these texts are from `McpHttpClient` and `connect_sse`.
        StreamableHttpError::UnexpectedServerResponse(text) => text.clone().into_owned(),
        StreamableHttpError::UnexpectedContentType(kind) => {
            let kind = kind.as_deref().unwrap_or("no content type");
            format!("it answered with {kind}, which is not MCP; check its `url`")
        }
        StreamableHttpError::ServerDoesNotSupportSse => {
            "it has no event stream at its `url`; correct the `url`".to_owned()
        }
        StreamableHttpError::SessionExpired
        | StreamableHttpError::SessionRecoveryTimeout
        | StreamableHttpError::ReinitializationFailed(_) => {
            "its session has expired and could not be renewed; try again".to_owned()
        }
        StreamableHttpError::Auth(_) => {
            "its login could not be used; log in again with `windlass mcp login`".to_owned()
        }
        StreamableHttpError::ControlRequestTimeout => {
            "it did not accept a message in time; try again later".to_owned()
        }
        StreamableHttpError::Deserialize(_) | StreamableHttpError::MissingSessionIdInResponse => {
            "its answer violates the protocol; it may not be an MCP server: check its `url`"
                .to_owned()
        }
        _ => "it closed the connection; try again later".to_owned(),
    }
}

/// Describes a status that is neither a success nor a login.
pub(super) fn describe_status(status: StatusCode, body: &str) -> String {
    let code = status.as_u16();
    // A page for browsers says nothing.
    let answer = match body.trim() {
        "" => String::new(),
        page if page.starts_with('<') => String::new(),
        body => format!(". Its answer: {body}"),
    };
    match status {
        StatusCode::FORBIDDEN => format!(
            "it denied access (HTTP {code}); check the rights of your account, and its \
             `headers`{answer}"
        ),
        StatusCode::NOT_FOUND | StatusCode::GONE => {
            format!("there is no MCP server at its `url` (HTTP {code}); correct the `url`")
        }
        StatusCode::METHOD_NOT_ALLOWED => {
            format!("its `url` does not accept messages (HTTP {code}); correct the `url`")
        }
        _ => format!("it answered with HTTP {code}; check its `url`{answer}"),
    }
}

/// Describes an error of the network by its cause. The URL may contain secrets and is not shown.
fn describe_network_error(error: &reqwest::Error) -> String {
    // The error itself contains the URL, in which any of these words may be.
    let causes = error.source().map(error_chain).unwrap_or_default();
    let is_cause = |text: &str| causes.contains(text);
    let kind = find_io_error(error).map(io::Error::kind);
    let text = match kind {
        _ if is_cause("UnknownIssuer") || is_cause("CaUsedAsEndEntity") => {
            "its TLS certificate is not signed by a known authority; check its `url`"
        }
        _ if is_cause("Expired") => "its TLS certificate has expired; its operator must renew it",
        _ if is_cause("NotValidForName") || is_cause("not valid for name") => {
            "its TLS certificate is for another host; correct its `url`"
        }
        _ if is_cause("certificate") => "its TLS certificate is invalid; check its `url`",
        _ if is_cause("InvalidContentType") || is_cause("corrupt message") => {
            "it does not speak TLS at this address; use http:// in its `url`, or another port"
        }
        // Our own text, from `PublicOnlyResolver`.
        _ if is_cause("must be public") => {
            "its host has a private address, but a project's server must be public; add it to \
             your own config"
        }
        _ if is_cause("dns error") => {
            "its host name cannot be resolved; check its `url` and the network"
        }
        Some(io::ErrorKind::ConnectionRefused) => {
            "the connection was refused; start the server, or correct its `url`"
        }
        Some(io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable) => {
            "its host is unreachable; check its `url` and the network"
        }
        _ if error.is_timeout() => {
            "it did not accept the connection in time; check its `url` and the network"
        }
        Some(io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof) => {
            "it closed the connection without an answer; check the server"
        }
        _ if error.is_connect() => "the connection failed; check its `url` and the network",
        _ if error.is_body() || error.is_decode() => "its answer was cut off; check the server",
        _ => "it closed the connection without an answer; check the server",
    };
    text.to_owned()
}

/// Returns the last `io::Error` among the causes.
fn find_io_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a io::Error> {
    let mut found = None;
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            found = Some(error);
        }
        next = error.source();
    }
    found
}

/// Formats an error and its causes, each one once.
pub(crate) fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text
}
