//! One HTTP exchange after the other: what is sent, and what becomes of each kind of answer.

use super::reach::{self, Public, Reach};
use super::trouble::words;
use super::{CONNECTING, LARGEST, LARGEST_ERROR, PACE, PATIENCE, PATIENCE_WITH_ERRORS, events};
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
use windlass_toolkit::Failure;

/// How many redirects are followed.
const REDIRECTS: usize = 5;
/// How much of a body that means nothing is shown.
const SHOWN: usize = 200;

/// What a server or the way to it did wrong.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error("the server cannot be reached: {0}")]
    Network(String),
    #[error("the server sent more than {} MB at once", .most >> 20)]
    TooLong { most: usize },
    #[error("the server began an answer and did not end it within {} s", .0.as_secs())]
    Slow(Duration),
}

impl From<reqwest::Error> for Fault {
    /// Addresses are left out: they may hold what is nobody's business.
    fn from(error: reqwest::Error) -> Fault {
        Fault::Network(words(&error.without_url()))
    }
}

type Error = StreamableHttpError<Fault>;
type Headers = HashMap<HeaderName, HeaderValue>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

/// What a body may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) most: usize,
    pub(super) patience: Duration,
}

/// The client.
#[derive(Clone)]
pub(crate) struct Wire {
    http: reqwest::Client,
    bounds: Bounds,
    /// An event was too long; no stream is resumed after that.
    spoiled: Arc<AtomicBool>,
    /// When the next stream may be asked for.
    next: Arc<Mutex<Option<Instant>>>,
}

impl Wire {
    pub(crate) fn new(reach: Reach, url: &str) -> Result<Wire, Failure> {
        reach::address(reach, url)?;
        let builder = reqwest::Client::builder()
            .user_agent(concat!("windlass/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECTING)
            .redirect(Policy::custom(within_origin));
        let builder = match reach {
            Reach::Anywhere => builder,
            Reach::Public => builder.dns_resolver(Arc::new(Public)),
        };
        let http = builder.build();
        let http =
            http.map_err(|error| Failure::new(format!("no HTTP client: {}", words(&error))))?;
        let bounds = Bounds { most: LARGEST, patience: PATIENCE };
        Ok(Wire { http, bounds, spoiled: Arc::default(), next: Arc::default() })
    }

    #[cfg(test)]
    pub(super) fn with_bounds(mut self, bounds: Bounds) -> Wire {
        self.bounds = bounds;
        self
    }

    fn request(
        &self,
        method: Method,
        (uri, session): (&str, Option<&str>),
        token: Option<String>,
        headers: Headers,
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

    /// The events of an answer.
    fn events(&self, response: Response, most: usize) -> Events {
        let most = most.min(self.bounds.most);
        let bytes = events::bounded(response.bytes_stream(), most, Arc::clone(&self.spoiled));
        SseStream::from_bytes_stream(bytes.boxed()).boxed()
    }

    /// The JSON that answers a message.
    async fn answer(
        &self,
        message: &ClientJsonRpcMessage,
        response: Response,
        session: Option<String>,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let body = read(response, self.bounds).await.map_err(StreamableHttpError::Client)?;
        match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
            Ok(answer) => {
                Ok(StreamableHttpPostResponse::Json(correlated(message, answer)?, session))
            }
            // Nobody waits for what answers a message that asks nothing.
            Err(_) if request_of(message).is_none() => Ok(StreamableHttpPostResponse::Accepted),
            Err(error) => {
                Err(odd(format!("it is no message of the protocol ({error}): {}", shown(&body))))
            }
        }
    }

    /// What becomes of an answer that says no.
    async fn refusal(
        &self,
        message: &ClientJsonRpcMessage,
        in_session: Option<()>,
        response: Response,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let status = response.status();
        let busy = busy(status, response.headers());
        let json = is(response.headers(), "application/json");
        if let Some(busy) = busy.filter(|_| !json || status == StatusCode::TOO_MANY_REQUESTS) {
            return Err(busy.into());
        }
        let busy = self::busy(status, response.headers());
        let bounds = Bounds { most: LARGEST_ERROR, patience: PATIENCE_WITH_ERRORS };
        let body = read(response, bounds).await.unwrap_or_default();
        let told = match serde_json::from_slice(&body) {
            Ok(ServerJsonRpcMessage::Error(error)) => Some(error.error),
            _ => None,
        };
        let denied = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        let asked = request_of(message).filter(|_| !denied);
        let discovers =
            |request: &ClientRequest| matches!(request, ClientRequest::DiscoverRequest(_));
        let told = match (told, asked) {
            (None, Some((_, request)))
                if discovers(request) && in_session.is_none() && status.is_client_error() =>
            {
                // An older server does not know the question. The library asks otherwise if it hears so.
                Some(ErrorData::invalid_request(format!("HTTP {status}: {}", shown(&body)), None))
            }
            (told, _) => told,
        };
        if let (Some(told), Some((id, _))) = (told, asked) {
            let answer = ServerJsonRpcMessage::error(told, Some(id.clone()));
            return Ok(StreamableHttpPostResponse::Json(answer, None));
        }
        match busy {
            Some(busy) => Err(busy.into()),
            None => Err(odd(format!("HTTP {status}: {}", shown(&body)))),
        }
    }
}

impl StreamableHttpClient for Wire {
    type Error = Fault;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Error> {
        self.post_message_with_max_sse_event_size(uri, message, session, token, headers, LARGEST)
            .await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
        most: usize,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let request = self.request(Method::POST, (&uri, session.as_deref()), token, headers);
        let request = request.header(ACCEPT, "application/json, text/event-stream").json(&message);
        let response = request.send().await.map_err(failed)?;
        let (status, headers) = (response.status(), response.headers());
        if let Some(denied) = denied(status, headers) {
            return Err(denied);
        }
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && session.is_some() {
            return Err(StreamableHttpError::SessionExpired);
        }
        if !status.is_success() {
            return self.refusal(&message, session.map(|_| ()), response).await;
        }
        let asks = request_of(&message).is_some();
        if !asks && response.content_length() == Some(0) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let session = headers.get(HEADER_SESSION_ID).and_then(|value| value.to_str().ok());
        let session = session.map(str::to_owned);
        if is(headers, "text/event-stream") {
            return Ok(StreamableHttpPostResponse::Sse(self.events(response, most), session));
        }
        if is(headers, "application/json") {
            return self.answer(&message, response, session).await;
        }
        Err(StreamableHttpError::UnexpectedContentType(kind(headers)))
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), Error> {
        let request = self.request(Method::DELETE, (&uri, Some(&session)), token, headers);
        let status = request.send().await.map_err(failed)?.status();
        if status.is_success() || status == StatusCode::METHOD_NOT_ALLOWED {
            return Ok(());
        }
        Err(odd(format!("HTTP {status}")))
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<Events, Error> {
        self.get_stream_with_max_sse_event_size(uri, session, last, token, headers, LARGEST).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        token: Option<String>,
        headers: Headers,
        most: usize,
    ) -> Result<Events, Error> {
        if self.spoiled.load(Ordering::Relaxed) {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        // A server may ask to be asked again at once, for ever.
        {
            let mut next = self.next.lock().await;
            if let Some(next) = *next {
                sleep_until(next).await;
            }
            *next = Some(Instant::now() + PACE);
        }
        let mut request = self.request(Method::GET, (&uri, session.as_deref()), token, headers);
        request = request.header(ACCEPT, "text/event-stream");
        if let Some(last) = last {
            request = request.header(HEADER_LAST_EVENT_ID, last);
        }
        let response = request.send().await.map_err(failed)?;
        let (status, headers) = (response.status(), response.headers());
        if let Some(denied) = denied(status, headers) {
            return Err(denied);
        }
        if status == StatusCode::METHOD_NOT_ALLOWED {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        if let Some(busy) = busy(status, headers) {
            return Err(busy.into());
        }
        if !status.is_success() {
            return Err(odd(format!("HTTP {status}")));
        }
        if !is(headers, "text/event-stream") {
            return Err(StreamableHttpError::UnexpectedContentType(kind(headers)));
        }
        Ok(self.events(response, most))
    }
}

/// Follows what keeps the message whole and goes to the same origin, so that no header and no message
/// goes to somebody else.
fn within_origin(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let whole =
        matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
    let first = attempt.previous().first();
    let same = first.is_some_and(|first| first.origin() == attempt.url().origin());
    if whole && same && attempt.previous().len() <= REDIRECTS {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

fn failed(error: reqwest::Error) -> Error {
    StreamableHttpError::Client(error.into())
}

fn odd(words: String) -> Error {
    StreamableHttpError::UnexpectedServerResponse(words.into())
}

fn kind(headers: &HeaderMap) -> Option<String> {
    headers.get(CONTENT_TYPE).map(|value| shown(value.as_bytes()))
}

fn is(headers: &HeaderMap, wanted: &str) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default();
    kind.trim().eq_ignore_ascii_case(wanted)
}

/// The beginning of what somebody sent, as text that can be shown.
fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes.get(..SHOWN).unwrap_or(bytes)).into_owned();
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

/// A server that wants a login, or more than the login gave.
fn denied(status: StatusCode, headers: &HeaderMap) -> Option<Error> {
    let challenge = headers.get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
    let challenge = challenge.map(str::to_owned);
    if status == StatusCode::UNAUTHORIZED {
        let error = AuthRequiredError::new(challenge.unwrap_or_default());
        return Some(StreamableHttpError::AuthRequired(error));
    }
    if status == StatusCode::FORBIDDEN {
        let challenge = challenge?;
        let scope = parameter(&challenge, "scope");
        let error = InsufficientScopeError::new(challenge, scope);
        return Some(StreamableHttpError::InsufficientScope(error));
    }
    None
}

/// A parameter of a challenge: `Bearer error="insufficient_scope", scope="a b"`.
pub(crate) fn parameter(challenge: &str, name: &str) -> Option<String> {
    let mut rest = challenge;
    while let Some((before, after)) = rest.split_once('=') {
        let named = before.rsplit([' ', ',', '\t']).next().unwrap_or_default();
        let (value, left) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => after.split_at(after.find([',', ' ']).unwrap_or(after.len())),
        };
        if named.eq_ignore_ascii_case(name) {
            return Some(value.to_owned()).filter(|value| !value.is_empty());
        }
        rest = left;
    }
    None
}

/// A server that cannot answer now.
fn busy(status: StatusCode, headers: &HeaderMap) -> Option<HttpStatusError> {
    if status != StatusCode::TOO_MANY_REQUESTS && !status.is_server_error() {
        return None;
    }
    let later = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    Some(HttpStatusError::new(status.as_u16(), later.map(str::to_owned)))
}

/// A body, as far as it is within its bounds.
async fn read(mut response: Response, bounds: Bounds) -> Result<Vec<u8>, Fault> {
    let Bounds { most, patience } = bounds;
    if response.content_length().is_some_and(|length| length > most as u64) {
        return Err(Fault::TooLong { most });
    }
    let whole = async {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            if body.len() + chunk.len() > most {
                return Err(Fault::TooLong { most });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    };
    timeout(patience, whole).await.unwrap_or(Err(Fault::Slow(patience)))
}

fn request_of(message: &ClientJsonRpcMessage) -> Option<(&rmcp::model::RequestId, &ClientRequest)> {
    match message {
        ClientJsonRpcMessage::Request(request) => Some((&request.id, &request.request)),
        _ => None,
    }
}

/// An answer that has the number of what it answers. An error may have none, for whoever made it could
/// not read the request; it came in answer to it all the same.
fn correlated(
    message: &ClientJsonRpcMessage,
    answer: ServerJsonRpcMessage,
) -> Result<ServerJsonRpcMessage, Error> {
    let Some((id, _)) = request_of(message) else { return Ok(answer) };
    match answer {
        ServerJsonRpcMessage::Error(error) => {
            Ok(ServerJsonRpcMessage::error(error.error, Some(id.clone())))
        }
        ServerJsonRpcMessage::Response(response) if response.id != *id => {
            Err(odd(format!("it answers the request {}, which was not asked here", response.id)))
        }
        other => Ok(other),
    }
}
