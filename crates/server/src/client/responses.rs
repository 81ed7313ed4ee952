//! Responses of a server, as the answers of its host.

use super::connection_errors::connection_error;
use crate::routes::HttpRequestParts;
use axum::http::{StatusCode, header};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use reqwest::Response;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use windlass_protocol::frontend_messages::HostResponse;
use windlass_protocol::{AccessRight, LogSeq, OpError, RequestError};

/// Body of a response with an error.
#[derive(Deserialize)]
struct ErrorBody {
    error: RequestError,
}

/// Body of a response to an operation.
#[derive(Deserialize)]
#[serde(untagged)]
enum OpBody {
    Rejected { op_error: OpError },
    Failed { error: RequestError },
    Accepted { seq: LogSeq },
    Queued { queued: bool },
}

/// Returns true if the server cannot answer now, and perhaps later.
pub(super) fn is_deferred(response: &Response) -> bool {
    let statuses = [StatusCode::SERVICE_UNAVAILABLE, StatusCode::TOO_MANY_REQUESTS];
    statuses.contains(&response.status())
}

/// Returns the error of a response that has one.
pub(super) async fn check_status(response: Response) -> Result<Response, RequestError> {
    if response.status().is_success() {
        return Ok(response);
    }
    let status = response.status();
    let body = response.bytes().await.unwrap_or_default();
    match serde_json::from_slice::<ErrorBody>(&body) {
        Ok(body) => Err(body.error),
        Err(_) => Err(error_of_status(status)),
    }
}

/// Returns the error for a status without a readable body, such as one of a reverse proxy.
fn error_of_status(status: StatusCode) -> RequestError {
    let text = format!("The server answered with status {status}.");
    match status {
        StatusCode::UNAUTHORIZED => RequestError::Unauthorized,
        StatusCode::FORBIDDEN => RequestError::Forbidden { needs: AccessRight::Admin },
        StatusCode::NOT_FOUND => RequestError::NotFound { text },
        StatusCode::CONFLICT => RequestError::Conflict { text },
        status if status.is_client_error() => RequestError::Invalid { text },
        _ => RequestError::Unavailable { text },
    }
}

/// Reads a JSON body.
pub(super) async fn read_json<T: DeserializeOwned>(response: Response) -> Result<T, RequestError> {
    let body = check_status(response).await?.bytes().await.map_err(connection_error)?;
    parse_body(&body)
}

fn parse_body<T: DeserializeOwned>(body: &[u8]) -> Result<T, RequestError> {
    serde_json::from_slice(body).map_err(|error| {
        let text = format!("The server's answer is not readable: {error}.");
        RequestError::Unavailable { text }
    })
}

/// Reads the answer to a request.
pub(super) async fn read_host_response(
    parts: &HttpRequestParts,
    response: Response,
) -> Result<HostResponse, RequestError> {
    if response.status() == StatusCode::NO_CONTENT {
        return Ok(HostResponse::Done);
    }
    if parts.path.ends_with("/ops") {
        let body = response.bytes().await.map_err(connection_error)?;
        return match parse_body(&body)? {
            OpBody::Accepted { seq } => Ok(HostResponse::OpAccepted { seq }),
            OpBody::Queued { queued: true } => Ok(HostResponse::OpQueued),
            OpBody::Queued { queued: false } => Err(RequestError::Unavailable {
                text: "The server did not queue the operation.".to_owned(),
            }),
            OpBody::Rejected { op_error } => Ok(HostResponse::OpRejected { error: op_error }),
            OpBody::Failed { error } => Err(error),
        };
    }
    let is_file = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|media_type| media_type == "application/octet-stream");
    if is_file {
        let content = check_status(response).await?.bytes().await.map_err(connection_error)?;
        return Ok(HostResponse::Bytes { bytes: BASE64.encode(content) });
    }
    read_json(response).await
}
