//! The network: one HTTP request a step, watched by timers.

use crate::{Endpoint, ModelEvent, Request};
use futures_util::StreamExt;
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use secrecy::ExposeSecret;
use serde_json::Value;
use std::time::Duration;
use tokio::sync::mpsc;
use windlass_protocol::Fault;

/// How long a provider may be silent.
#[derive(Clone, Copy, Debug)]
pub struct Timers {
    /// Until the connection stands.
    pub connect: Duration,
    /// From the request to the first byte of the answer. A local model may read for minutes.
    pub first: Duration,
    /// Between two pieces of the answer.
    pub idle: Duration,
}

impl Default for Timers {
    fn default() -> Timers {
        Timers {
            connect: Duration::from_secs(15),
            first: Duration::from_secs(300),
            idle: Duration::from_secs(120),
        }
    }
}

/// Talks to one endpoint. It keeps its connections.
pub struct Client {
    http: reqwest::Client,
    endpoint: Endpoint,
    timers: Timers,
}

/// How much of an error's body is read.
const LONGEST_ERROR: usize = 64 * 1024;

impl Client {
    /// A client for an endpoint.
    pub fn new(endpoint: Endpoint, timers: Timers) -> Result<Client, Fault> {
        let builder = reqwest::Client::builder()
            .user_agent(concat!("windlass/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(timers.connect)
            // A redirect would carry the key to wherever it points.
            .redirect(reqwest::redirect::Policy::none());
        // Plain HTTP needs no certificates, and reading the system's takes a while.
        let plain = endpoint.base_url.starts_with("http://");
        let builder = if plain { builder.tls_certs_only([]) } else { builder };
        let http = builder.build().map_err(|error| Fault::Config {
            message: format!("the HTTP client could not be set up: {error}"),
        })?;
        Ok(Client { http, endpoint, timers })
    }

    /// Takes one step, handing on what the model does as it does it, no faster than it is taken.
    /// The last event is
    /// [`ModelEvent::Ended`] or [`ModelEvent::Failed`]. Dropping the future cancels the request.
    pub async fn step(&self, request: &Request, sink: &mpsc::Sender<ModelEvent>) {
        if let Err(fault) = self.stream(request, sink).await {
            // If nobody listens any more, there is nobody to tell.
            let _ = sink.send(ModelEvent::Failed(fault)).await;
        }
    }

    async fn stream(
        &self,
        request: &Request,
        sink: &mpsc::Sender<ModelEvent>,
    ) -> Result<(), Fault> {
        let format = self.endpoint.format;
        let url = format!("{}{}", self.endpoint.base_url.trim_end_matches('/'), format.path());
        let mut call = self.http.post(&url).json(&format.body(request));
        if let Some(key) = &self.endpoint.api_key {
            call = call.bearer_auth(key.expose_secret());
        }
        let response = tokio::time::timeout(self.timers.first, call.send());
        let response = response.await.map_err(|_| silent("did not answer", self.timers.first))?;
        let response = response.map_err(|error| network(&error))?;
        if !response.status().is_success() {
            return Err(self.refused(response).await);
        }
        let mut decoder = format.decoder();
        let mut bytes = response.bytes_stream();
        loop {
            let next = tokio::time::timeout(self.timers.idle, bytes.next()).await;
            let events = match next.map_err(|_| silent("fell silent", self.timers.idle))? {
                Some(Ok(piece)) => decoder.step(&piece),
                Some(Err(error)) => return Err(network(&error)),
                None => decoder.end(),
            };
            for event in events {
                let last = matches!(event, ModelEvent::Ended { .. } | ModelEvent::Failed(_));
                if sink.send(event).await.is_err() || last {
                    return Ok(());
                }
            }
        }
    }

    /// What a response that is not a stream means.
    async fn refused(&self, response: reqwest::Response) -> Fault {
        let (status, headers) = (response.status(), response.headers().clone());
        let mut body = Vec::new();
        let mut bytes = response.bytes_stream();
        while let Ok(Some(Ok(piece))) = tokio::time::timeout(self.timers.idle, bytes.next()).await {
            body.extend_from_slice(&piece);
            if body.len() > LONGEST_ERROR {
                break;
            }
        }
        let mut message = message_of(&String::from_utf8_lossy(&body));
        if let Some(key) = &self.endpoint.api_key
            && !key.expose_secret().is_empty()
        {
            message = message.replace(key.expose_secret(), "[key]");
        }
        fault_of(status, &headers, message)
    }
}

fn network(error: &reqwest::Error) -> Fault {
    // The outer error only says that something failed; the innermost one says what.
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    Fault::Network { message: cause.to_string() }
}

fn silent(what: &str, after: Duration) -> Fault {
    Fault::Network { message: format!("the provider {what} for {after:?}") }
}

/// The provider's own words, if they can be found.
fn message_of(body: &str) -> String {
    const LONGEST: usize = 500;
    let json: Option<Value> = serde_json::from_str(body).ok();
    let found = json.as_ref().and_then(|json| {
        ["/error/message", "/message", "/error"]
            .iter()
            .find_map(|place| json.pointer(place).and_then(Value::as_str))
    });
    let message = found.unwrap_or(body).trim();
    let message = if message.is_empty() { "no reason given" } else { message };
    message.get(..message.floor_char_boundary(LONGEST)).unwrap_or_default().to_owned()
}

fn fault_of(status: StatusCode, headers: &HeaderMap, message: String) -> Fault {
    let overflow =
        ["context_length_exceeded", "context length", "context window", "too many tokens"]
            .iter()
            .any(|sign| message.to_lowercase().contains(sign));
    match status.as_u16() {
        401 | 403 => Fault::Auth { message },
        413 => Fault::Overflow { message },
        429 => Fault::RateLimited { wait_ms: wait(headers) },
        400..=499 if overflow => Fault::Overflow { message },
        other => Fault::Provider { status: Some(other), message },
    }
}

/// How long a provider asks us to wait.
fn wait(headers: &HeaderMap) -> Option<u64> {
    let seconds: f64 = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    (seconds.is_finite() && seconds >= 0.0).then_some((seconds * 1000.0) as u64)
}
