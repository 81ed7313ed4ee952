//! Errors of requests that stand for nothing.

use windlass_protocol::RequestError;

/// Returns the error for a request that is not valid.
pub(crate) fn invalid(text: impl Into<String>) -> RequestError {
    RequestError::Invalid { text: text.into() }
}

/// Returns the error for an unknown path.
pub(crate) fn path_not_found() -> RequestError {
    let text = "This path does not exist. `/openapi.json` lists all paths.".to_owned();
    RequestError::NotFound { text }
}
