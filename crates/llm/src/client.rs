//! The network: one HTTP request a step, watched by timers.

use crate::catalog::{self, Auth, Quirks};
use crate::trouble::Complaint;
use crate::wire::Format;
use crate::{ModelEvent, Request};
use futures_util::StreamExt;
use reqwest::header::{CONTENT_TYPE, DATE, HeaderMap, HeaderValue, RETRY_AFTER};
use secrecy::{ExposeSecret, SecretString};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use windlass_protocol::Fault;

/// How long a provider may be silent.
#[derive(Clone, Copy, Debug)]
pub struct Timers {
    /// Until the connection stands.
    pub connect: Duration,
    /// From the request to the head of the response. A local model may read for minutes before.
    pub headers: Duration,
    /// From there to the first event that says something.
    pub first: Duration,
    /// Between two such events. Heartbeats are not such events.
    pub idle: Duration,
}

impl Default for Timers {
    fn default() -> Timers {
        Timers {
            connect: Duration::from_secs(15),
            headers: Duration::from_secs(300),
            first: Duration::from_secs(300),
            idle: Duration::from_secs(300),
        }
    }
}

/// Where a model is, and how it is spoken to.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// What the provider is called.
    pub provider: String,
    /// The wire format.
    pub format: Format,
    /// The address all paths are added to.
    pub base_url: String,
    /// How the key is shown.
    pub auth: Auth,
    /// What the provider knows us by.
    pub key: Option<Key>,
    /// Headers the provider always wants.
    pub fixed: &'static [(&'static str, &'static str)],
    /// Headers the person adds. They may be secret.
    pub headers: Vec<(String, String)>,
    /// The environment variable that names a proxy, if there is one: a failure may be the proxy's.
    pub proxy: Option<&'static str>,
    /// How it departs from its format.
    pub quirks: Quirks,
    /// How long it may be silent.
    pub timers: Timers,
}

impl Endpoint {
    /// A server that is known for nothing but its format.
    pub fn plain(format: Format, base_url: String) -> Endpoint {
        let row = catalog::plain(format, false);
        Endpoint {
            provider: "the provider".into(),
            format,
            base_url,
            auth: row.auth,
            key: None,
            fixed: row.headers,
            headers: Vec::new(),
            proxy: None,
            quirks: row.quirks,
            timers: Timers::default(),
        }
    }
}

/// A key. Never printed.
#[derive(Clone, Debug)]
pub struct Key {
    /// The key itself.
    pub secret: SecretString,
    /// Where it came from, in words.
    pub from: String,
}

/// Talks to one endpoint. It keeps its connections.
pub struct Client {
    http: reqwest::Client,
    endpoint: Endpoint,
    url: reqwest::Url,
    host: String,
}

/// How much of an error's body is read.
const LONGEST_ERROR: usize = 64 * 1024;

impl Client {
    /// True if its models run on this machine, or on a server of one's own.
    pub fn is_local(&self) -> bool {
        self.endpoint.auth == Auth::Optional || is_local(&self.endpoint.base_url)
    }

    /// A client for an endpoint.
    pub fn new(endpoint: Endpoint) -> Result<Client, Fault> {
        let config = |message: String| Fault::Config { message };
        let url = reqwest::Url::parse(&endpoint.base_url).map_err(|error| {
            config(format!("`base_url` of {} is not a URL: {error}", endpoint.provider))
        })?;
        let mut host = url.host_str().unwrap_or_default().to_owned();
        if let Some(port) = url.port() {
            host = format!("{host}:{port}");
        }
        let plain = match url.scheme() {
            "http" => true,
            "https" => false,
            other => {
                let name = &endpoint.provider;
                return Err(config(format!("`base_url` of {name} is {other}, not http or https")));
            }
        };
        if !url.username().is_empty() || url.password().is_some() {
            let name = &endpoint.provider;
            return Err(config(format!("`base_url` of {name} holds a password; use `api_key`")));
        }
        let mut headers = HeaderMap::new();
        let fixed = endpoint.fixed.iter().copied();
        let own = endpoint.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in fixed.chain(own) {
            let header = reqwest::header::HeaderName::try_from(name);
            let (Ok(header), Ok(mut value)) = (header, HeaderValue::try_from(value)) else {
                let provider = &endpoint.provider;
                return Err(config(format!("the header `{name}` of {provider} cannot be sent")));
            };
            value.set_sensitive(true);
            headers.insert(header, value);
        }
        let builder = reqwest::Client::builder()
            .user_agent(concat!("windlass/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers)
            .connect_timeout(endpoint.timers.connect)
            // A redirect would carry the key to wherever it points.
            .redirect(reqwest::redirect::Policy::none());
        // What is on this machine is not asked for through another one.
        let local = is_local(&endpoint.base_url);
        let builder = if local { builder.no_proxy() } else { builder };
        // Plain HTTP needs no certificates, and reading the system's takes a while.
        let bare = plain && (endpoint.proxy.is_none() || local);
        let builder = if bare { builder.tls_certs_only([]) } else { builder };
        let http = builder
            .build()
            .map_err(|error| config(format!("the HTTP client could not be set up: {error}")))?;
        Ok(Client { http, endpoint, url, host })
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
        let Endpoint { format, quirks, timers, .. } = &self.endpoint;
        let call = self.call(request)?;
        let deadline = Instant::now() + timers.headers;
        let response = timeout_at(deadline, call.send()).await;
        let response = response.map_err(|_| self.silent("did not answer", timers.headers))?;
        let response = response.map_err(|error| self.network(&error))?;
        if !response.status().is_success() || !is_stream(response.headers()) {
            return Err(self.refused(response).await);
        }
        // What the head says about waiting holds for an error in the stream as well.
        let asked = wait(response.headers());
        let mut decoder = format.decoder(request, quirks);
        let mut bytes = response.bytes_stream();
        let mut deadline = Instant::now() + timers.first;
        let mut progress = 0;
        loop {
            let events = match timeout_at(deadline, bytes.next()).await {
                Ok(Some(Ok(piece))) => decoder.step(piece),
                Ok(Some(Err(error))) => return Err(self.network(&error)),
                Ok(None) => decoder.end(),
                Err(_) if progress == 0 => {
                    return Err(self.silent("did not begin its answer", timers.first));
                }
                Err(_) => return Err(self.silent("fell silent", timers.idle)),
            };
            if decoder.progress() > progress {
                progress = decoder.progress();
                deadline = Instant::now() + timers.idle;
            }
            for event in events {
                if let ModelEvent::Failed(mut fault) = event {
                    if let Fault::Provider { wait_ms, .. } | Fault::RateLimited { wait_ms, .. } =
                        &mut fault
                    {
                        *wait_ms = wait_ms.or(asked);
                    }
                    return Err(fault);
                }
                let last = event.is_last();
                if sink.send(event).await.is_err() || last {
                    return Ok(());
                }
            }
        }
    }

    fn call(&self, request: &Request) -> Result<reqwest::RequestBuilder, Fault> {
        let Endpoint { format, auth, key, quirks, .. } = &self.endpoint;
        let body = request.draft.write(*format, request, quirks);
        let call = self.http.post(self.address(request)).header(CONTENT_TYPE, "application/json");
        let call = call.body(body);
        let Some(key) = key else { return Ok(call) };
        let secret = key.secret.expose_secret().trim();
        let (name, value) = match auth {
            Auth::Bearer | Auth::Optional => ("authorization", format!("Bearer {secret}")),
            Auth::Header(name) => (*name, secret.to_owned()),
        };
        // A person who sets the header means it.
        let set = |(known, _): &(String, String)| known.eq_ignore_ascii_case(name);
        if self.endpoint.headers.iter().any(set) {
            return Ok(call);
        }
        let mut value = HeaderValue::try_from(value).map_err(|_| Fault::Config {
            message: format!(
                "the key of {} from {} holds characters no key can have",
                self.endpoint.provider, key.from
            ),
        })?;
        value.set_sensitive(true);
        Ok(call.header(name, value))
    }

    /// Where a request goes: the path behind the base URL's own, its query kept.
    fn address(&self, request: &Request) -> reqwest::Url {
        let mut url = self.url.clone();
        let path = self.endpoint.format.path(&request.model.id);
        let (path, query) = path.split_once('?').unwrap_or((&path, ""));
        url.set_path(&format!("{}{path}", self.url.path().trim_end_matches('/')));
        let queries: Vec<&str> = [self.url.query().unwrap_or_default(), query]
            .into_iter()
            .filter(|q| !q.is_empty())
            .collect();
        url.set_query((!queries.is_empty()).then(|| queries.join("&")).as_deref());
        url
    }

    /// What a response that is not a stream means.
    async fn refused(&self, response: reqwest::Response) -> Fault {
        let (status, headers) = (response.status(), response.headers().clone());
        let mut body = Vec::new();
        let mut bytes = response.bytes_stream();
        let deadline = Instant::now() + self.endpoint.timers.idle.min(Duration::from_secs(30));
        while let Ok(Some(Ok(piece))) = timeout_at(deadline, bytes.next()).await {
            body.extend_from_slice(&piece);
            if body.len() > LONGEST_ERROR {
                break;
            }
        }
        let mut complaint = Complaint::of_body(&String::from_utf8_lossy(&body));
        complaint.wait_ms = wait(&headers).or(complaint.wait_ms);
        if status.is_success() {
            // An error that says that it is one counts as that; anything else is not an answer.
            if is_error(&body) {
                return complaint.fault();
            }
            let start = String::from_utf8_lossy(&body).chars().take(200).collect::<String>();
            let message = format!("it sent no stream, but: {start}");
            return Fault::provider(Some(status.as_u16()), message);
        }
        complaint.status = Some(status.as_u16());
        complaint.fault()
    }

    fn network(&self, error: &reqwest::Error) -> Fault {
        // The outer error only says that something failed; the innermost one says what.
        let mut cause: &dyn std::error::Error = error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        let cause = cause.to_string();
        if cause.contains("invalid peer certificate") {
            // Trying again does not make it a better one.
            let message = format!(
                "{}: {cause}. If it is right, its authority belongs into the system's store, or into \
                 a file that SSL_CERT_FILE names",
                self.host
            );
            return Fault::Config { message };
        }
        let proxy = self.endpoint.proxy.map(|name| format!(" (through the proxy in {name})"));
        let message = format!("{}: {cause}{}", self.host, proxy.unwrap_or_default());
        Fault::Network { message }
    }

    fn silent(&self, what: &str, after: Duration) -> Fault {
        Fault::Network { message: format!("{}: it {what} for {after:?}", self.host) }
    }

    /// A fault in the provider's words, without the key and not too long: providers like to repeat
    /// what they were sent.
    fn discreet(&self, fault: Fault) -> Fault {
        const LONGEST: usize = 500;
        let clean = |message: String| {
            let key = self.endpoint.key.as_ref().map(|key| key.secret.expose_secret().trim());
            let headers = self.endpoint.headers.iter().map(|(_, value)| value.as_str());
            // A short word is no secret, and cutting it out would cut up the message.
            let secrets = key.into_iter().chain(headers).filter(|secret| secret.len() >= 8);
            let message = secrets.fold(message, |told, secret| told.replace(secret, "[key]"));
            message.get(..message.floor_char_boundary(LONGEST)).unwrap_or_default().to_owned()
        };
        match fault {
            Fault::Auth { message } => Fault::Auth { message: self.whose(&clean(message)) },
            Fault::Overflow { message } => Fault::Overflow { message: clean(message) },
            Fault::Network { message } => Fault::Network { message: clean(message) },
            Fault::Refused { message } => Fault::Refused { message: clean(message) },
            Fault::Provider { status, message, wait_ms } => {
                Fault::Provider { status, message: clean(message), wait_ms }
            }
            Fault::Config { message } => Fault::Config { message: clean(message) },
            Fault::Storage { message } => Fault::Storage { message: clean(message) },
            Fault::Internal { message } => Fault::Internal { message: clean(message) },
            Fault::RateLimited { message, wait_ms } => {
                Fault::RateLimited { message: clean(message), wait_ms }
            }
        }
    }

    fn whose(&self, message: &str) -> String {
        let name = &self.endpoint.provider;
        match &self.endpoint.key {
            Some(key) => format!("{name} did not accept the key from {}: {message}", key.from),
            None => format!("{name} wants a key, and there is none: {message}"),
        }
    }
}

/// True if an address is on this machine.
pub fn is_local(base_url: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(base_url) else { return false };
    let host = url.host_str().unwrap_or_default();
    let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
}

/// True if a body is an error and says so.
fn is_error(body: &[u8]) -> bool {
    let json = serde_json::from_slice::<serde_json::Value>(body).unwrap_or_default();
    let json = json.get(0).unwrap_or(&json);
    json.get("error").is_some_and(|error| !error.is_null())
        || json.get("type").is_some_and(|kind| kind == "error")
        || json.get("object").is_some_and(|kind| kind == "error")
}

/// True unless the response says that it is something else. Some servers forget to say.
fn is_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    !["application/json", "text/html"].iter().any(|other| kind.starts_with(other))
}

/// How long a provider asks us to wait. A date is held against the provider's own clock.
fn wait(headers: &HeaderMap) -> Option<u64> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let number = |text: &str| {
        let number: f64 = text.parse().ok()?;
        (number.is_finite() && number >= 0.0).then_some(number)
    };
    if let Some(wait) = text("retry-after-ms").and_then(number) {
        return Some(wait as u64);
    }
    let asked = text(RETRY_AFTER.as_str())?;
    if let Some(seconds) = number(asked) {
        return Some((seconds * 1000.0) as u64);
    }
    let until = httpdate::parse_http_date(asked).ok()?;
    let now = httpdate::parse_http_date(text(DATE.as_str())?).ok()?;
    Some(until.duration_since(now).map_or(0, |wait| wait.as_millis() as u64))
}
