//! The HTTP+SSE transport of protocol revision 2024-11-05: one event stream brings the messages of
//! the server, and its first event names the address that messages are posted to.
//!
//! Events become the lines of a [`JsonLineTransport`], so the limits for programs apply here, too.
//! The address must have the origin of the configured URL: no header and no message reaches another
//! server.

use super::address_policy::{self, AddressPolicy};
use super::auth_client::OAuthHttpClient;
use super::client::McpHttpClient;
use super::error::HttpTransportError;
use super::{BODY_TIMEOUT, parse_headers};
use crate::oauth::tokens::McpAuth;
use crate::transport::connection_status::ConnectionStatus;
use crate::transport::json_lines::{JsonLineTransport, OutgoingMessage};
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt, StreamExt};
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use secrecy::SecretString;
use sse_stream::Sse;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncWriteExt, DuplexStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Limits the events before the one that names the address.
const MAX_EVENTS_BEFORE_ENDPOINT: usize = 100;

/// Limits the posts at the same time.
const MAX_OPEN_POSTS: usize = 64;

/// Buffer between the event stream and the transport.
const LINE_BUFFER_BYTES: usize = 64 << 10;

pub(crate) type SseTransportError = StreamableHttpError<HttpTransportError>;
type SseHeaders = HashMap<HeaderName, HeaderValue>;
type SseEventStream = BoxStream<'static, Result<Sse, SseError>>;

/// Opens the event stream of a server, and returns a transport once it has named its address.
pub(crate) async fn connect_sse(
    address_policy: AddressPolicy,
    url: &str,
    headers: &[(String, SecretString)],
    auth: &McpAuth,
    status: Arc<ConnectionStatus>,
) -> Result<JsonLineTransport<DuplexStream>, SseTransportError> {
    let to_error = |failure: windlass_toolkit::CallFailure| rejected(failure.text);
    let http = McpHttpClient::new(address_policy, url).map_err(to_error)?;
    let headers = parse_headers(headers).map_err(to_error)?;
    // An explicit `Authorization` header replaces the OAuth login.
    let auth = if headers.contains_key(&AUTHORIZATION) { McpAuth::None } else { auth.clone() };
    let client = OAuthHttpClient::new(http.with_event_stream(), address_policy, url, auth);
    let (lines, writer) = tokio::io::duplex(LINE_BUFFER_BYTES);
    let (endpoint_sender, endpoint) = oneshot::channel();
    let mut event_task = JoinSet::new();
    event_task.spawn(read_events(
        EventSource { client: client.clone(), url: url.to_owned(), address_policy },
        headers.clone(),
        endpoint_sender,
        writer,
        Arc::clone(&status),
    ));
    let endpoint = endpoint.await.unwrap_or_else(|_| Err(rejected("it was stopped")))?;
    let post = |incoming| post_messages((client, event_task), endpoint, headers, incoming);
    Ok(JsonLineTransport::new(lines, post, status))
}

/// Returns true if there is no event stream at the URL.
pub(crate) fn has_no_event_stream(error: &SseTransportError) -> bool {
    matches!(
        error,
        StreamableHttpError::ServerDoesNotSupportSse
            | StreamableHttpError::UnexpectedContentType(_)
    )
}

/// The URL of an event stream, and the client that opens it.
struct EventSource {
    client: OAuthHttpClient,
    url: String,
    address_policy: AddressPolicy,
}

/// Reads the event stream to its end: reports the address for messages, then writes each message as
/// a line.
async fn read_events(
    source: EventSource,
    headers: SseHeaders,
    endpoint: oneshot::Sender<Result<Arc<str>, SseTransportError>>,
    mut writer: DuplexStream,
    status: Arc<ConnectionStatus>,
) {
    let mut events = match open_events(&source.client, &source.url, headers).await {
        Ok(events) => events,
        Err(error) => return drop(endpoint.send(Err(error))),
    };
    let found = read_endpoint(&mut events, &source).await;
    let has_endpoint = found.is_ok();
    if endpoint.send(found).is_err() || !has_endpoint {
        return;
    }
    while let Some(event) = events.next().await {
        let Ok(event) = event else {
            return status.close("its event stream is broken; check the server".into());
        };
        let is_message = event.event.as_deref().is_none_or(|kind| kind == "message");
        let Some(data) = event.data.filter(|_| is_message) else { continue };
        // A message may have several `data` lines; line breaks are white space in JSON.
        let line = data.replace(['\n', '\r'], " ") + "\n";
        if writer.write_all(line.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// Opens the event stream. The future is boxed behind the trait, because the compiler cannot prove
/// that the future of a concrete client is `Send`.
fn open_events<'a, C: StreamableHttpClient>(
    client: &'a C,
    url: &str,
    headers: SseHeaders,
) -> BoxFuture<'a, Result<SseEventStream, StreamableHttpError<C::Error>>> {
    client.get_stream(url.into(), None, None, None, headers).boxed()
}

/// Posts a message; boxed like `open_events`.
fn post_to<'a, C: StreamableHttpClient>(
    client: &'a C,
    endpoint: Arc<str>,
    message: ClientJsonRpcMessage,
    headers: SseHeaders,
) -> BoxFuture<'a, Result<StreamableHttpPostResponse, StreamableHttpError<C::Error>>> {
    client.post_message(endpoint, message, None, None, headers).boxed()
}

/// Reads the address for messages, which must be on the same origin as the stream.
async fn read_endpoint(
    events: &mut SseEventStream,
    source: &EventSource,
) -> Result<Arc<str>, SseTransportError> {
    for _ in 0..MAX_EVENTS_BEFORE_ENDPOINT {
        let Some(event) = events.next().await else { break };
        let event = event.map_err(|_| rejected("its event stream is broken"))?;
        if event.event.as_deref() != Some("endpoint") {
            continue;
        }
        let base = Url::parse(&source.url).map_err(|_| rejected("its `url` is invalid"))?;
        let endpoint = base.join(event.data.as_deref().unwrap_or_default().trim());
        let endpoint =
            endpoint.map_err(|_| rejected("it named an invalid address for messages"))?;
        if endpoint.origin() != base.origin() {
            let host = endpoint.host_str().unwrap_or("an unknown host").to_owned();
            return Err(rejected(format!(
                "it wants its messages at another address ({host}), which is refused; the \
                 operator of the server must correct it"
            )));
        }
        let endpoint = address_policy::check_url(source.address_policy, endpoint.as_str());
        let endpoint =
            endpoint.map_err(|_| rejected("it named an invalid address for messages"))?;
        return Ok(endpoint.as_str().into());
    }
    Err(rejected("its event stream names no address for messages; check its `url`"))
}

/// Posts messages, several at a time, because a server may answer a post only after the call. The
/// task of the event stream ends with it.
async fn post_messages(
    (client, _event_task): (OAuthHttpClient, JoinSet<()>),
    endpoint: Arc<str>,
    headers: SseHeaders,
    mut incoming: mpsc::Receiver<OutgoingMessage>,
) {
    let mut posts = JoinSet::new();
    while let Some(outgoing) = incoming.recv().await {
        while posts.try_join_next().is_some() {}
        if posts.len() >= MAX_OPEN_POSTS {
            posts.join_next().await;
        }
        let (client, endpoint, headers) = (client.clone(), Arc::clone(&endpoint), headers.clone());
        posts.spawn(async move {
            let message = outgoing.message.clone();
            let result = post_message(&client, endpoint, message, headers).await;
            outgoing.report(result.map_err(io::Error::other));
        });
    }
}

/// Posts a message. Its answer arrives on the event stream, so the response counts only if it is an
/// error.
async fn post_message(
    client: &OAuthHttpClient,
    endpoint: Arc<str>,
    message: ClientJsonRpcMessage,
    headers: SseHeaders,
) -> Result<(), SseTransportError> {
    let post = post_to(client, endpoint, message, headers);
    match timeout(BODY_TIMEOUT, post).await {
        Ok(Ok(StreamableHttpPostResponse::Json(ServerJsonRpcMessage::Error(error), _))) => {
            let message = windlass_toolkit::truncate_output::strip_controls(&error.error.message);
            Err(rejected(format!("it rejected a message: {message}")))
        }
        // After a timeout the message counts as sent: the server may work on it, and the request
        // has its own time limit.
        Ok(Ok(_)) | Err(_) => Ok(()),
        Ok(Err(error)) => Err(error),
    }
}

fn rejected(reason: impl Into<String>) -> SseTransportError {
    StreamableHttpError::UnexpectedServerResponse(reason.into().into())
}
