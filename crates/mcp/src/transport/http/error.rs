//! Errors of an HTTP connection, classified by the action that the user must take.

use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::auth::AuthError;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use std::error::Error;
use std::time::Duration;

/// An error of the server or of the network.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpTransportError {
    #[error("the server cannot be reached: {0}")]
    Network(String),
    #[error("the server sent more than {} MB at once", .max_bytes >> 20)]
    BodyTooLong { max_bytes: usize },
    #[error("the server did not finish its response within {} s", .0.as_secs())]
    TimedOut(Duration),
}

impl From<reqwest::Error> for HttpTransportError {
    /// Converts the error without its URL, which may contain secrets.
    fn from(error: reqwest::Error) -> HttpTransportError {
        HttpTransportError::Network(error_chain(&error.without_url()))
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
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(ClientInitializeError::TransportError { error, .. }) = error.downcast_ref() {
            return classify_error(error.error.as_ref());
        }
        if let Some(ClientInitializeError::LegacyFallbackFailed { fallback, .. }) =
            error.downcast_ref()
        {
            return classify_error(fallback.as_ref());
        }
        if let Some(ServiceError::TransportSend(error)) = error.downcast_ref() {
            return classify_error(error.error.as_ref());
        }
        if let Some(error) = error.downcast_ref::<StreamableHttpError<HttpTransportError>>() {
            return classify_http_error(error);
        }
        next = error.source();
    }
    McpHttpError::Other(error_chain(error))
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
        other => McpHttpError::Other(error_chain(other)),
    }
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
