//! The body of a request: its media type, size and time limits.

use crate::request_checks::{Rejection, single_value};
use crate::routes::{Route, RouteBody};
use axum::body::Body;
use axum::http::header::{self, HeaderMap};
use axum::http::{Method, StatusCode};
use bytes::Bytes;
use futures_util::StreamExt;
use std::time::Duration;

/// Maximum size of a JSON body.
const MAX_JSON_BYTES: usize = 4 << 20;
/// Maximum size of a JSON body for the server itself, some of which come without a token.
const MAX_SERVER_JSON_BYTES: usize = 16 << 10;
/// Maximum size of a file.
const MAX_BLOB_BYTES: usize = 20 << 20;
/// Limit for a client to send a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);
/// Media type of files.
pub(super) const OCTET_STREAM: &str = "application/octet-stream";

impl RouteBody {
    fn media_type(self) -> &'static str {
        match self {
            RouteBody::Bytes => OCTET_STREAM,
            RouteBody::None
            | RouteBody::OptionalJson
            | RouteBody::Json
            | RouteBody::ServerJson(_) => "application/json",
        }
    }

    fn max_bytes(self) -> usize {
        match self {
            RouteBody::Bytes => MAX_BLOB_BYTES,
            RouteBody::ServerJson(_) => MAX_SERVER_JSON_BYTES,
            RouteBody::None | RouteBody::OptionalJson | RouteBody::Json => MAX_JSON_BYTES,
        }
    }

    fn is_required(self) -> bool {
        match self {
            RouteBody::Json | RouteBody::Bytes | RouteBody::ServerJson(_) => true,
            RouteBody::None | RouteBody::OptionalJson => false,
        }
    }
}

/// Refuses a body of another media type. A form of another site can send only such types.
pub(super) fn check_content_type(route: &Route, headers: &HeaderMap) -> Result<(), Rejection> {
    let expected = route.body.media_type();
    let is_expected = match headers.contains_key(header::CONTENT_TYPE) {
        true => single_value(headers, &header::CONTENT_TYPE).is_some_and(|value| {
            let media_type = value.split(';').next().unwrap_or_default().trim();
            media_type.eq_ignore_ascii_case(expected)
        }),
        false => !route.body.is_required() && !has_body(headers),
    };
    match is_expected || route.method == Method::GET {
        true => Ok(()),
        false => {
            let text = format!("Send the body with the header `Content-Type: {expected}`.");
            Err(Rejection::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "media_type", &text))
        }
    }
}

fn has_body(headers: &HeaderMap) -> bool {
    let length = headers.get(header::CONTENT_LENGTH).map(|value| value.as_bytes());
    length.is_some_and(|length| length != b"0") || headers.contains_key(header::TRANSFER_ENCODING)
}

/// Reads the body of a request.
pub(super) async fn read_body(
    route: &Route,
    headers: &HeaderMap,
    body: Body,
) -> Result<Bytes, Rejection> {
    let max_bytes = route.body.max_bytes();
    let too_long = || {
        let text = format!("The body is too long; at most {} KiB are allowed.", max_bytes >> 10);
        Rejection::new(StatusCode::PAYLOAD_TOO_LARGE, "long_body", &text)
    };
    let length = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    let length = length.and_then(|length| length.parse::<usize>().ok());
    if length.is_some_and(|length| length > max_bytes) {
        return Err(too_long());
    }
    let reading = async {
        let mut chunks = body.into_data_stream();
        let mut content = Vec::with_capacity(length.unwrap_or(0));
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|_| {
                Rejection::new(
                    StatusCode::BAD_REQUEST,
                    "cut_body",
                    "The body of the request is not complete.",
                )
            })?;
            if content.len() + chunk.len() > max_bytes {
                return Err(too_long());
            }
            content.extend_from_slice(&chunk);
        }
        Ok(Bytes::from(content))
    };
    match tokio::time::timeout(BODY_TIMEOUT, reading).await {
        Ok(content) => content,
        Err(_) => {
            let text = "The body of the request did not come in time.";
            Err(Rejection::new(StatusCode::REQUEST_TIMEOUT, "slow_body", text))
        }
    }
}
