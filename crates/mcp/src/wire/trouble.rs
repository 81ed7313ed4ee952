//! What went wrong on the way to a server, told apart by what has to be done about it.

use super::client::Fault;
use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::auth::AuthError;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use std::error::Error;

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The server wants to know who asks, or no longer believes it.
    NeedsLogin {
        /// How it said so, for the login.
        challenge: Option<String>,
    },
    /// Who asks may not do this.
    NeedsScope {
        /// What it would have to be allowed.
        scope: Option<String>,
        /// How the server said so, for the login.
        challenge: String,
    },
    /// Something else, in words.
    Other(String),
}

/// What an error of the protocol's library means.
pub fn trouble(error: &(dyn Error + 'static)) -> Trouble {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(ClientInitializeError::TransportError { error, .. }) = error.downcast_ref() {
            return trouble(error.error.as_ref());
        }
        if let Some(ClientInitializeError::LegacyFallbackFailed { fallback, .. }) =
            error.downcast_ref()
        {
            return trouble(fallback.as_ref());
        }
        if let Some(ServiceError::TransportSend(error)) = error.downcast_ref() {
            return trouble(error.error.as_ref());
        }
        if let Some(error) = error.downcast_ref::<StreamableHttpError<Fault>>() {
            return of_wire(error);
        }
        next = error.source();
    }
    Trouble::Other(words(error))
}

fn of_wire(error: &StreamableHttpError<Fault>) -> Trouble {
    match error {
        StreamableHttpError::AuthRequired(error) => {
            let challenge = error.www_authenticate_header.clone();
            Trouble::NeedsLogin { challenge: Some(challenge).filter(|text| !text.is_empty()) }
        }
        StreamableHttpError::InsufficientScope(error) => Trouble::NeedsScope {
            scope: error.required_scope.clone(),
            challenge: error.www_authenticate_header.clone(),
        },
        StreamableHttpError::Auth(AuthError::AuthorizationRequired) => {
            Trouble::NeedsLogin { challenge: None }
        }
        other => Trouble::Other(words(other)),
    }
}

/// An error and what caused it, each said once.
pub(crate) fn words(error: &dyn Error) -> String {
    let mut told = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_told = cause.to_string();
        if !told.contains(&cause_told) {
            told = format!("{told}: {cause_told}");
        }
        next = cause.source();
    }
    told
}
