//! Entries of the access log.

use axum::http::Method;

/// A request in the access log. It never contains a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLogEntry {
    /// Name of the client; absent if it is unknown.
    pub client: Option<String>,
    /// Method of the request.
    pub method: Method,
    /// Path of the route with its parameters in braces; absent if there is no such route.
    pub route: Option<&'static str>,
    /// Status of the answer.
    pub status: u16,
    /// Time until the answer, or until an event stream began.
    pub duration_ms: u64,
    /// Name of the reason why the request was refused or failed, one of a few.
    pub error: Option<&'static str>,
}
