//! Responses: the status and body of each answer and of each error.

use super::content::OCTET_STREAM;
use crate::event_stream::EVENT_STREAM;
use crate::request_checks::Rejection;
use crate::routes::{Route, RouteAnswer};
use axum::body::Body;
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{Response, StatusCode};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use serde::Serialize;
use serde_json::json;
use windlass_protocol::frontend_messages::HostResponse;
use windlass_protocol::{Fault, OpError, RequestError};

/// Header with the version of Windlass.
const VERSION_HEADER: HeaderName = HeaderName::from_static("x-windlass-version");

impl From<RequestError> for Rejection {
    fn from(error: RequestError) -> Rejection {
        let (status, reason) = (error_status(&error), error_name(&error));
        Rejection { status, error, reason, allowed_methods: None }
    }
}

/// Returns the name of an error for the access log, which must not contain parts of the request.
fn error_name(error: &RequestError) -> &'static str {
    match error {
        RequestError::Failed { .. } => "failed",
        RequestError::Invalid { .. } => "invalid",
        RequestError::NotFound { .. } => "not_found",
        RequestError::Unauthorized => "unauthorized",
        RequestError::Forbidden { .. } => "forbidden",
        RequestError::Conflict { .. } => "conflict",
        RequestError::TooMany { .. } => "too_many",
        RequestError::Unavailable { .. } => "unavailable",
    }
}

/// Returns the status of an error.
fn error_status(error: &RequestError) -> StatusCode {
    match error {
        RequestError::Failed { fault } => fault_status(fault),
        RequestError::Invalid { .. } => StatusCode::BAD_REQUEST,
        RequestError::NotFound { .. } => StatusCode::NOT_FOUND,
        RequestError::Unauthorized => StatusCode::UNAUTHORIZED,
        RequestError::Forbidden { .. } => StatusCode::FORBIDDEN,
        RequestError::Conflict { .. } => StatusCode::CONFLICT,
        RequestError::TooMany { .. } => StatusCode::TOO_MANY_REQUESTS,
        RequestError::Unavailable { .. } => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// Returns the status of a failure: that of the client, of this host, or of a server behind it.
fn fault_status(fault: &Fault) -> StatusCode {
    match fault {
        Fault::Config { .. } | Fault::Auth { .. } => StatusCode::BAD_REQUEST,
        Fault::SessionBusy { .. } | Fault::SessionMoved { .. } | Fault::Refused { .. } => {
            StatusCode::CONFLICT
        }
        Fault::Storage { .. } | Fault::Internal { .. } => StatusCode::INTERNAL_SERVER_ERROR,
        Fault::RateLimited { .. }
        | Fault::ContextOverflow { .. }
        | Fault::Network { .. }
        | Fault::HostNotFound { .. }
        | Fault::ModelRefused { .. }
        | Fault::Provider { .. } => StatusCode::BAD_GATEWAY,
    }
}

/// Time after which a client may try again if the host is not available.
const UNAVAILABLE_RETRY_SECONDS: u64 = 1;

/// Returns the response for an error.
pub(super) fn error_response(rejection: &Rejection) -> Response<Body> {
    let mut response = json_response(rejection.status, &json!({ "error": rejection.error }));
    let headers = response.headers_mut();
    if rejection.status == StatusCode::UNAUTHORIZED {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    let retry_after_seconds = match &rejection.error {
        RequestError::TooMany { retry_after_ms, .. } => Some(retry_after_ms.div_ceil(1_000)),
        RequestError::Unavailable { .. } => Some(UNAVAILABLE_RETRY_SECONDS),
        RequestError::Failed { .. }
        | RequestError::Invalid { .. }
        | RequestError::NotFound { .. }
        | RequestError::Unauthorized
        | RequestError::Forbidden { .. }
        | RequestError::Conflict { .. } => None,
    };
    if let Some(seconds) = retry_after_seconds {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if let Some(methods) = &rejection.allowed_methods
        && let Ok(methods) = HeaderValue::from_str(methods)
    {
        headers.insert(header::ALLOW, methods);
    }
    response
}

/// Returns the response for the answer of the host.
pub(super) fn host_response(
    route: &Route,
    answer: HostResponse,
) -> Result<Response<Body>, Rejection> {
    Ok(match answer {
        HostResponse::Done => empty_response(),
        HostResponse::OpAccepted { seq } => json_response(StatusCode::OK, &json!({ "seq": seq })),
        HostResponse::OpQueued => json_response(StatusCode::ACCEPTED, &json!({ "queued": true })),
        HostResponse::OpRejected { error } => {
            let status = match &error {
                OpError::Forbidden { .. } => StatusCode::FORBIDDEN,
                OpError::AlreadyAnswered { .. }
                | OpError::NoQuestion
                | OpError::TurnRunning { .. }
                | OpError::NoTurn
                | OpError::Invalid { .. }
                | OpError::Gone { .. }
                | OpError::Stopped => StatusCode::CONFLICT,
            };
            json_response(status, &json!({ "op_error": error }))
        }
        HostResponse::Bytes { bytes } => {
            let content = BASE64.decode(bytes).map_err(|error| {
                Rejection::from(RequestError::from(Fault::Internal { message: error.to_string() }))
            })?;
            blob_response(content)
        }
        answer @ (HostResponse::Status { .. }
        | HostResponse::Reply { .. }
        | HostResponse::OpenSessions { .. }
        | HostResponse::SessionOpened { .. }
        | HostResponse::BlobStored { .. }
        | HostResponse::PreparedPrompt { .. }
        | HostResponse::Thumbnail { .. }
        | HostResponse::Rows { .. }
        | HostResponse::Models { .. }
        | HostResponse::Prompt { .. }
        | HostResponse::Path { .. }
        | HostResponse::Export { .. }
        | HostResponse::Report { .. }
        | HostResponse::Login { .. }
        | HostResponse::StatusLine { .. }
        | HostResponse::TrustReview { .. }
        | HostResponse::Providers { .. }) => json_response(success_status(route), &answer),
    })
}

/// Returns the status of a successful answer with a body.
fn success_status(route: &Route) -> StatusCode {
    match route.answer {
        RouteAnswer::Response { status, .. } | RouteAnswer::ServerJson { status, .. } => {
            StatusCode::from_u16(status).unwrap_or(StatusCode::OK)
        }
        RouteAnswer::OpResult
        | RouteAnswer::Bytes
        | RouteAnswer::SessionEvents
        | RouteAnswer::HostEvents
        | RouteAnswer::Text(_)
        | RouteAnswer::Empty => StatusCode::OK,
    }
}

/// Returns the response for a message of the server itself.
pub(super) fn server_response(route: &Route, message: &impl Serialize) -> Response<Body> {
    json_response(success_status(route), message)
}

/// Returns a response without a body.
pub(super) fn empty_response() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// Returns a response with a body of a media type.
pub(super) fn body_response(media_type: &'static str, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

/// Returns the response that starts an event stream. Its connection serves nothing afterwards.
pub(super) fn stream_response(body: Body) -> Response<Body> {
    let mut response = body_response(EVENT_STREAM, body);
    close_connection(&mut response);
    response
}

/// Makes the connection end after a response.
pub(super) fn close_connection(response: &mut Response<Body>) {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
}

fn json_response(status: StatusCode, message: &impl Serialize) -> Response<Body> {
    let (status, body) = match serde_json::to_vec(message) {
        Ok(body) => (status, body),
        Err(error) => {
            tracing::error!(%error, "an answer could not be encoded");
            (StatusCode::INTERNAL_SERVER_ERROR, b"{}".to_vec())
        }
    };
    let mut response = body_response("application/json", Bytes::from(body));
    *response.status_mut() = status;
    response
}

/// Returns the bytes of a file, which a browser must not show as a page of this origin.
fn blob_response(content: Vec<u8>) -> Response<Body> {
    let mut response = body_response(OCTET_STREAM, Bytes::from(content));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    let policy = HeaderValue::from_static("sandbox; default-src 'none'");
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    response
}

/// Adds the headers that every response has.
pub(super) fn add_common_headers(response: &mut Response<Body>, version: &str) {
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Ok(version) = HeaderValue::from_str(version) {
        headers.insert(VERSION_HEADER, version);
    }
}
