//! A connection to an event stream: its frames, and the silence after which it is given up.

use super::connection_errors::{connection_error, describe_failure};
use super::session_frames::new_decoder;
use super::{ServerHttp, responses};
use crate::Caller;
use crate::event_stream::EVENT_STREAM;
use crate::routes::HttpRequestParts;
use axum::http::header;
use bytes::Bytes;
use reqwest::Response;
use sse_core::{MessageEvent, SseDecoder, SseEvent};
use std::time::Duration;
use windlass_protocol::RequestError;

/// Silence after which a connection is given up: three heartbeats of the server.
const MAX_SILENCE: Duration = Duration::from_secs(45);

/// Reads the frames of an event stream.
pub(super) struct EventReader {
    response: Response,
    decoder: SseDecoder,
    chunk: Bytes,
}

impl EventReader {
    /// Opens an event stream.
    pub(super) async fn open(
        connection: &ServerHttp,
        caller: &Caller,
        parts: &HttpRequestParts,
    ) -> Result<EventReader, RequestError> {
        let request = connection.build(parts, caller)?;
        let request = request.header(header::ACCEPT, EVENT_STREAM).send();
        let response = match tokio::time::timeout(MAX_SILENCE, request).await {
            Ok(response) => response.map_err(connection_error)?,
            Err(_) => {
                let text = "The server does not answer.".to_owned();
                return Err(RequestError::Unavailable { text });
            }
        };
        let response = responses::check_status(response).await?;
        let decoder = new_decoder();
        Ok(EventReader { response, decoder, chunk: Bytes::new() })
    }

    /// Returns the next frame, or the reason why the connection is lost.
    pub(super) async fn next_frame(&mut self) -> Result<MessageEvent, String> {
        loop {
            match self.decoder.next(&mut self.chunk) {
                Some(Ok(SseEvent::Message(frame))) => return Ok(frame),
                Some(Ok(SseEvent::Retry(_))) => continue,
                Some(Err(error)) => return Err(error.to_string()),
                None => {}
            }
            let chunk = tokio::time::timeout(MAX_SILENCE, self.response.chunk()).await;
            self.chunk = match chunk {
                Ok(Ok(Some(chunk))) => chunk,
                Ok(Ok(None)) => return Err("the connection was closed".to_owned()),
                Ok(Err(error)) => return Err(describe_failure(&error)),
                Err(_) => return Err("the server does not answer".to_owned()),
            };
        }
    }
}

/// Returns true for an error that another attempt cannot mend.
pub(super) fn is_final(error: &RequestError) -> bool {
    match error {
        RequestError::Unauthorized
        | RequestError::Forbidden { .. }
        | RequestError::NotFound { .. }
        | RequestError::Invalid { .. } => true,
        RequestError::Failed { .. }
        | RequestError::Conflict { .. }
        | RequestError::TooMany { .. }
        | RequestError::Unavailable { .. } => false,
    }
}
