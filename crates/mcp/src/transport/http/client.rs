//! HTTP exchanges with a server: sends requests and handles each kind of response.

use super::address_policy::{self, AddressPolicy, PublicOnlyResolver};
use super::error::{HttpTransportError, describe_status, error_chain};
use super::{
    BODY_TIMEOUT, CONNECT_TIMEOUT, ERROR_BODY_TIMEOUT, MAX_BODY_BYTES, MAX_ERROR_BODY_BYTES,
    MIN_RESUME_INTERVAL, sse_limit,
};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use reqwest::header::{
    ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, ServerJsonRpcMessage};
use rmcp::transport::common::http_header::{HEADER_LAST_EVENT_ID, HEADER_SESSION_ID};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, SseError, StreamableHttpClient,
    StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until, timeout};
use windlass_toolkit::CallFailure;

const MAX_REDIRECTS: usize = 5;
/// Limits how much of an unusable body is shown.
const MAX_SHOWN_BODY_BYTES: usize = 200;

type HttpClientError = StreamableHttpError<HttpTransportError>;
type CustomHeaders = HashMap<HeaderName, HeaderValue>;
type SseEvents = BoxStream<'static, Result<Sse, SseError>>;

/// Limits for a response body.
#[derive(Clone, Copy, Debug)]
pub(super) struct BodyLimits {
    pub(super) max_bytes: usize,
    pub(super) timeout: Duration,
}

/// The HTTP client of a server connection.
#[derive(Clone)]
pub(crate) struct McpHttpClient {
    http: reqwest::Client,
    limits: BodyLimits,
    /// Set when an event was too long; no stream is resumed afterwards.
    is_stream_broken: Arc<AtomicBool>,
    /// Set when a first message got 404 or 405, as from a server that only has an event stream.
    refuses_messages: Arc<AtomicBool>,
    /// True if answers arrive on an event stream, so that the body of a success does not count.
    has_event_stream: bool,
    /// The earliest time for the next `get_stream`.
    next_stream_at: Arc<Mutex<Option<Instant>>>,
}

impl McpHttpClient {
    pub(crate) fn new(
        address_policy: AddressPolicy,
        url: &str,
    ) -> Result<McpHttpClient, CallFailure> {
        address_policy::check_url(address_policy, url)?;
        let builder = reqwest::Client::builder()
            .user_agent(concat!("windlass/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(Policy::custom(redirect_same_origin));
        let builder = match address_policy {
            AddressPolicy::Anywhere => builder,
            AddressPolicy::PublicOnly => builder.dns_resolver(Arc::new(PublicOnlyResolver)),
        };
        let http = builder.build();
        let http = http.map_err(|error| {
            CallFailure::new(format!("could not create the HTTP client: {}", error_chain(&error)))
        })?;
        let limits = BodyLimits { max_bytes: MAX_BODY_BYTES, timeout: BODY_TIMEOUT };
        Ok(McpHttpClient {
            http,
            limits,
            is_stream_broken: Arc::default(),
            refuses_messages: Arc::default(),
            has_event_stream: false,
            next_stream_at: Arc::default(),
        })
    }

    /// Returns a client for a server that answers on an event stream.
    pub(super) fn with_event_stream(mut self) -> McpHttpClient {
        self.has_event_stream = true;
        self
    }

    /// Returns true if the server has refused a message with 404 or 405.
    pub(crate) fn refuses_messages(&self) -> bool {
        self.refuses_messages.load(Ordering::Relaxed)
    }

    #[cfg(test)]
    pub(super) fn with_limits(mut self, limits: BodyLimits) -> McpHttpClient {
        self.limits = limits;
        self
    }

    fn build_request(
        &self,
        method: Method,
        (uri, session): (&str, Option<&str>),
        token: Option<String>,
        headers: CustomHeaders,
    ) -> RequestBuilder {
        let mut request = self.http.request(method, uri).headers(headers.into_iter().collect());
        if let Some(session) = session {
            request = request.header(HEADER_SESSION_ID, session);
        }
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        request
    }

    /// Returns the server-sent events of a response, bounded by `limit_event_size`.
    fn event_stream(&self, response: Response, max_bytes: usize) -> SseEvents {
        let max_bytes = max_bytes.min(self.limits.max_bytes);
        let bytes = sse_limit::limit_event_size(
            response.bytes_stream(),
            max_bytes,
            Arc::clone(&self.is_stream_broken),
        );
        SseStream::from_bytes_stream(bytes.boxed()).boxed()
    }

    /// Reads the JSON response to a message.
    async fn read_answer(
        &self,
        message: &ClientJsonRpcMessage,
        response: Response,
        session: Option<String>,
    ) -> Result<StreamableHttpPostResponse, HttpClientError> {
        let body = read_body(response, self.limits).await.map_err(StreamableHttpError::Client)?;
        match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
            Ok(answer) => {
                Ok(StreamableHttpPostResponse::Json(correlate_answer(message, answer)?, session))
            }
            // A notification needs no answer, so its body does not matter.
            Err(_) if request_and_id(message).is_none() => Ok(StreamableHttpPostResponse::Accepted),
            Err(_) => Err(StreamableHttpError::Client(HttpTransportError::InvalidAnswer(format!(
                "its answer is not an MCP message: {}; check its `url`",
                to_shown_text(&body)
            )))),
        }
    }

    /// Converts an HTTP error response: to a JSON-RPC error if the body is one, otherwise to an
    /// `Err`.
    async fn error_from_response(
        &self,
        message: &ClientJsonRpcMessage,
        in_session: Option<()>,
        response: Response,
    ) -> Result<StreamableHttpPostResponse, HttpClientError> {
        let status = response.status();
        let is_json = has_content_type(response.headers(), "application/json");
        let busy = match retry_later_error(status, response.headers()) {
            Some(busy) if !is_json || status == StatusCode::TOO_MANY_REQUESTS => {
                return Err(busy.into());
            }
            busy => busy,
        };
        let limits = BodyLimits { max_bytes: MAX_ERROR_BODY_BYTES, timeout: ERROR_BODY_TIMEOUT };
        let body = read_body(response, limits).await.unwrap_or_default();
        let rpc_error = match serde_json::from_slice(&body) {
            Ok(ServerJsonRpcMessage::Error(error)) => Some(error.error),
            _ => None,
        };
        let is_denied = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        let request = request_and_id(message).filter(|_| !is_denied);
        let is_discover =
            |request: &ClientRequest| matches!(request, ClientRequest::DiscoverRequest(_));
        let rpc_error = match (rpc_error, request) {
            (None, Some((_, request)))
                if is_discover(request) && in_session.is_none() && status.is_client_error() =>
            {
                // An older server does not know `DiscoverRequest`. With this error, the library
                // falls back to `initialize`.
                Some(ErrorData::invalid_request(
                    format!("HTTP {status}: {}", to_shown_text(&body)),
                    None,
                ))
            }
            (rpc_error, _) => rpc_error,
        };
        if let (Some(rpc_error), Some((id, _))) = (rpc_error, request) {
            let answer = ServerJsonRpcMessage::error(rpc_error, Some(id.clone()));
            return Ok(StreamableHttpPostResponse::Json(answer, None));
        }
        match busy {
            Some(busy) => Err(busy.into()),
            None => Err(unexpected_response(describe_status(status, &to_shown_text(&body)))),
        }
    }
}

impl StreamableHttpClient for McpHttpClient {
    type Error = HttpTransportError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: CustomHeaders,
    ) -> Result<StreamableHttpPostResponse, HttpClientError> {
        self.post_message_with_max_sse_event_size(
            uri,
            message,
            session,
            token,
            headers,
            MAX_BODY_BYTES,
        )
        .await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: CustomHeaders,
        max_event_bytes: usize,
    ) -> Result<StreamableHttpPostResponse, HttpClientError> {
        let request = self.build_request(Method::POST, (&uri, session.as_deref()), token, headers);
        let request = request.header(ACCEPT, "application/json, text/event-stream").json(&message);
        let response = request.send().await.map_err(network_error)?;
        let (status, headers) = (response.status(), response.headers());
        if let Some(denied) = auth_error(status, headers) {
            return Err(denied);
        }
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT)
            || (self.has_event_stream && status.is_success())
        {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && session.is_some() {
            return Err(StreamableHttpError::SessionExpired);
        }
        if session.is_none()
            && matches!(status, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED)
        {
            self.refuses_messages.store(true, Ordering::Relaxed);
        }
        if !status.is_success() {
            return self.error_from_response(&message, session.map(|_| ()), response).await;
        }
        let is_request = request_and_id(&message).is_some();
        if !is_request && response.content_length() == Some(0) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let session = headers.get(HEADER_SESSION_ID).and_then(|value| value.to_str().ok());
        let session = session.map(str::to_owned);
        if has_content_type(headers, "text/event-stream") {
            return Ok(StreamableHttpPostResponse::Sse(
                self.event_stream(response, max_event_bytes),
                session,
            ));
        }
        if has_content_type(headers, "application/json") {
            return self.read_answer(&message, response, session).await;
        }
        Err(StreamableHttpError::UnexpectedContentType(content_type(headers)))
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: CustomHeaders,
    ) -> Result<(), HttpClientError> {
        let request = self.build_request(Method::DELETE, (&uri, Some(&session)), token, headers);
        let status = request.send().await.map_err(network_error)?.status();
        if status.is_success() || status == StatusCode::METHOD_NOT_ALLOWED {
            return Ok(());
        }
        Err(unexpected_response(format!("HTTP {status}")))
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event_id: Option<String>,
        token: Option<String>,
        headers: CustomHeaders,
    ) -> Result<SseEvents, HttpClientError> {
        self.get_stream_with_max_sse_event_size(
            uri,
            session,
            last_event_id,
            token,
            headers,
            MAX_BODY_BYTES,
        )
        .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event_id: Option<String>,
        token: Option<String>,
        headers: CustomHeaders,
        max_event_bytes: usize,
    ) -> Result<SseEvents, HttpClientError> {
        if self.is_stream_broken.load(Ordering::Relaxed) {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        // A server may ask for an immediate reconnect forever.
        {
            let mut next = self.next_stream_at.lock().await;
            if let Some(next) = *next {
                sleep_until(next).await;
            }
            *next = Some(Instant::now() + MIN_RESUME_INTERVAL);
        }
        let mut request =
            self.build_request(Method::GET, (&uri, session.as_deref()), token, headers);
        request = request.header(ACCEPT, "text/event-stream");
        if let Some(last_event_id) = last_event_id {
            request = request.header(HEADER_LAST_EVENT_ID, last_event_id);
        }
        let response = request.send().await.map_err(network_error)?;
        let (status, headers) = (response.status(), response.headers());
        if let Some(denied) = auth_error(status, headers) {
            return Err(denied);
        }
        if status == StatusCode::METHOD_NOT_ALLOWED
            || (status == StatusCode::NOT_FOUND && session.is_none())
        {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        if let Some(busy) = retry_later_error(status, headers) {
            return Err(busy.into());
        }
        if !status.is_success() {
            return Err(unexpected_response(describe_status(status, "")));
        }
        if !has_content_type(headers, "text/event-stream") {
            return Err(StreamableHttpError::UnexpectedContentType(content_type(headers)));
        }
        Ok(self.event_stream(response, max_event_bytes))
    }
}

/// Follows a redirect only if it keeps method and body and stays on the same origin, so that no
/// header and no message reaches another server.
fn redirect_same_origin(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let keeps_request =
        matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    let first = attempt.previous().first();
    let is_same_origin = first.is_some_and(|first| first.origin() == attempt.url().origin());
    if keeps_request && is_same_origin && attempt.previous().len() <= MAX_REDIRECTS {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

fn network_error(error: reqwest::Error) -> HttpClientError {
    StreamableHttpError::Client(error.into())
}

fn unexpected_response(message: String) -> HttpClientError {
    StreamableHttpError::UnexpectedServerResponse(message.into())
}

fn content_type(headers: &HeaderMap) -> Option<String> {
    headers.get(CONTENT_TYPE).map(|value| to_shown_text(value.as_bytes()))
}

fn has_content_type(headers: &HeaderMap, expected: &str) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default();
    kind.trim().eq_ignore_ascii_case(expected)
}

/// Returns the beginning of a body as printable text.
fn to_shown_text(bytes: &[u8]) -> String {
    let text =
        String::from_utf8_lossy(bytes.get(..MAX_SHOWN_BODY_BYTES).unwrap_or(bytes)).into_owned();
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Returns the error if the server requires a login or more scopes.
fn auth_error(status: StatusCode, headers: &HeaderMap) -> Option<HttpClientError> {
    let challenge = headers.get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
    let challenge = challenge.map(str::to_owned);
    if status == StatusCode::UNAUTHORIZED {
        let error = AuthRequiredError::new(challenge.unwrap_or_default());
        return Some(StreamableHttpError::AuthRequired(error));
    }
    if status == StatusCode::FORBIDDEN {
        let challenge = challenge?;
        let scope = challenge_parameter(&challenge, "scope");
        let error = InsufficientScopeError::new(challenge, scope);
        return Some(StreamableHttpError::InsufficientScope(error));
    }
    None
}

/// Returns a parameter of a challenge such as `Bearer error="insufficient_scope", scope="a b"`.
pub(crate) fn challenge_parameter(challenge: &str, name: &str) -> Option<String> {
    let mut rest = challenge;
    while let Some((before, after)) = rest.split_once('=') {
        let key = before.rsplit([' ', ',', '\t']).next().unwrap_or_default();
        let (value, remaining) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => after.split_at(after.find([',', ' ']).unwrap_or(after.len())),
        };
        if key.eq_ignore_ascii_case(name) {
            return Some(value.to_owned()).filter(|value| !value.is_empty());
        }
        rest = remaining;
    }
    None
}

/// Returns the error if the server cannot answer now (429 or 5xx), with its `Retry-After`.
fn retry_later_error(status: StatusCode, headers: &HeaderMap) -> Option<HttpStatusError> {
    if status != StatusCode::TOO_MANY_REQUESTS && !status.is_server_error() {
        return None;
    }
    let retry_after = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    Some(HttpStatusError::new(status.as_u16(), retry_after.map(str::to_owned)))
}

/// Reads a body within its `BodyLimits`.
async fn read_body(
    mut response: Response,
    limits: BodyLimits,
) -> Result<Vec<u8>, HttpTransportError> {
    let BodyLimits { max_bytes, timeout: time_limit } = limits;
    if response.content_length().is_some_and(|length| length > max_bytes as u64) {
        return Err(HttpTransportError::BodyTooLong { max_bytes });
    }
    let read_all = async {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            if body.len() + chunk.len() > max_bytes {
                return Err(HttpTransportError::BodyTooLong { max_bytes });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    };
    timeout(time_limit, read_all).await.unwrap_or(Err(HttpTransportError::TimedOut(time_limit)))
}

fn request_and_id(
    message: &ClientJsonRpcMessage,
) -> Option<(&rmcp::model::RequestId, &ClientRequest)> {
    match message {
        ClientJsonRpcMessage::Request(request) => Some((&request.id, &request.request)),
        _ => None,
    }
}

/// Checks that an answer has the ID of the request. An error may lack the ID, because the server
/// could not read the request; it still answers this one.
fn correlate_answer(
    message: &ClientJsonRpcMessage,
    answer: ServerJsonRpcMessage,
) -> Result<ServerJsonRpcMessage, HttpClientError> {
    let Some((id, _)) = request_and_id(message) else { return Ok(answer) };
    match answer {
        ServerJsonRpcMessage::Error(error) => {
            Ok(ServerJsonRpcMessage::error(error.error, Some(id.clone())))
        }
        ServerJsonRpcMessage::Response(response) if response.id != *id => Err(unexpected_response(
            format!("the response is for request {}, which was not sent", response.id),
        )),
        other => Ok(other),
    }
}
