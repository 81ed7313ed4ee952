//! The network: one HTTP request a step, watched by timers.

use crate::{Endpoint, ModelEvent, Request};
use futures_util::StreamExt;
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use secrecy::ExposeSecret;
use serde_json::Value;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use windlass_protocol::Fault;

/// How long a provider may be silent.
#[derive(Clone, Copy, Debug)]
pub struct Timers {
    /// Until the connection stands.
    pub connect: Duration,
    /// From the request to the first event of the answer. A local model may read for minutes.
    pub first: Duration,
    /// Between two events of the answer.
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
            let _ = sink.send(ModelEvent::Failed(self.discreet(fault))).await;
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
        let mut deadline = Instant::now() + self.timers.first;
        let response = timeout_at(deadline, call.send()).await;
        let response = response.map_err(|_| silent("did not answer", self.timers.first))?;
        let response = response.map_err(|error| network(&error))?;
        if !response.status().is_success() {
            return Err(self.refused(response).await);
        }
        let mut decoder = format.decoder();
        let mut bytes = response.bytes_stream();
        let mut heard = 0;
        loop {
            let events = match timeout_at(deadline, bytes.next()).await {
                Ok(Some(Ok(piece))) => decoder.step(&piece),
                Ok(Some(Err(error))) => return Err(network(&error)),
                Ok(None) => decoder.end(),
                Err(_) if heard == 0 => return Err(silent("did not answer", self.timers.first)),
                Err(_) => return Err(silent("fell silent", self.timers.idle)),
            };
            if decoder.heard() > heard {
                heard = decoder.heard();
                deadline = Instant::now() + self.timers.idle;
            }
            for event in events {
                let last = match event {
                    ModelEvent::Failed(fault) => return Err(fault),
                    ModelEvent::Ended { .. } => true,
                    ModelEvent::Text(_) | ModelEvent::Reasoning(_) | ModelEvent::Call { .. } => {
                        false
                    }
                };
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
        let deadline = Instant::now() + self.timers.idle;
        while let Ok(Some(Ok(piece))) = timeout_at(deadline, bytes.next()).await {
            body.extend_from_slice(&piece);
            if body.len() > LONGEST_ERROR {
                break;
            }
        }
        fault_of(status, &headers, message_of(&String::from_utf8_lossy(&body)))
    }

    /// A fault in the provider's words, without the key and not too long: providers like to repeat
    /// what they were sent.
    fn discreet(&self, fault: Fault) -> Fault {
        const LONGEST: usize = 500;
        let clean = |message: String| {
            let key = self.endpoint.api_key.as_ref().map(ExposeSecret::expose_secret);
            let message = match key {
                Some(key) if !key.is_empty() => message.replace(key, "[key]"),
                Some(_) | None => message,
            };
            message.get(..message.floor_char_boundary(LONGEST)).unwrap_or_default().to_owned()
        };
        match fault {
            Fault::Auth { message } => Fault::Auth { message: clean(message) },
            Fault::Overflow { message } => Fault::Overflow { message: clean(message) },
            Fault::Network { message } => Fault::Network { message: clean(message) },
            Fault::Refused { message } => Fault::Refused { message: clean(message) },
            Fault::Provider { status: None, message } if is_overflow(&message) => {
                Fault::Overflow { message: clean(message) }
            }
            Fault::Provider { status, message } => {
                Fault::Provider { status, message: clean(message) }
            }
            Fault::Config { message } => Fault::Config { message: clean(message) },
            Fault::Storage { message } => Fault::Storage { message: clean(message) },
            Fault::Internal { message } => Fault::Internal { message: clean(message) },
            Fault::RateLimited { wait_ms } => Fault::RateLimited { wait_ms },
        }
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
    let json: Option<Value> = serde_json::from_str(body).ok();
    let found = json.as_ref().and_then(|json| {
        ["/error/message", "/message", "/error"]
            .iter()
            .find_map(|place| json.pointer(place).and_then(Value::as_str))
    });
    let message = found.unwrap_or(body).trim();
    if message.is_empty() { "no reason given".to_owned() } else { message.to_owned() }
}

fn fault_of(status: StatusCode, headers: &HeaderMap, message: String) -> Fault {
    match status.as_u16() {
        401 | 403 => Fault::Auth { message },
        413 => Fault::Overflow { message },
        429 => Fault::RateLimited { wait_ms: wait(headers) },
        400..=499 if is_overflow(&message) => Fault::Overflow { message },
        other => Fault::Provider { status: Some(other), message },
    }
}

/// True if the provider says, in its own way, that the conversation is too long.
fn is_overflow(message: &str) -> bool {
    let message = message.to_lowercase();
    [
        "context_length_exceeded",
        "context length",
        "context window",
        "context size",
        "too many tokens",
    ]
    .iter()
    .any(|sign| message.contains(sign))
}

/// How long a provider asks us to wait.
fn wait(headers: &HeaderMap) -> Option<u64> {
    let seconds: f64 = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    (seconds.is_finite() && seconds >= 0.0).then_some((seconds * 1000.0) as u64)
}
