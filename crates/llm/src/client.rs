//! HTTP client for model providers: `Client` sends one streaming request per step and enforces
//! timeouts.

use crate::catalog::{self, AuthScheme};
use crate::model_list;
use crate::provider_error::ProviderError;
use crate::quirks::Quirks;
use crate::wire_format::WireFormat;
use crate::{ModelEvent, ModelRequest};
use futures_util::StreamExt;
use reqwest::header::{CONTENT_TYPE, DATE, HeaderMap, HeaderValue, RETRY_AFTER};
use secrecy::{ExposeSecret, SecretString};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use windlass_protocol::Fault;

/// Timeouts for the phases of a request to an `Endpoint`.
#[derive(Clone, Copy, Debug)]
pub struct EndpointTimeouts {
    /// Time to establish the connection.
    pub connect: Duration,
    /// Time from sending the request to receiving the response headers. A local model may process
    /// the prompt for minutes before it responds.
    pub headers: Duration,
    /// Time from the response headers to the first event that carries content.
    pub first_event: Duration,
    /// Time between two events that carry content. Heartbeats do not reset this timer.
    pub idle: Duration,
}

impl Default for EndpointTimeouts {
    fn default() -> EndpointTimeouts {
        EndpointTimeouts {
            connect: Duration::from_secs(15),
            headers: Duration::from_secs(300),
            first_event: Duration::from_secs(300),
            idle: Duration::from_secs(300),
        }
    }
}

/// The address of a model provider, with its wire format, credentials and timeouts.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The provider name used in messages.
    pub provider: String,
    /// The wire format of requests and responses.
    pub format: WireFormat,
    /// The base URL; `WireFormat::request_path` is appended to it.
    pub base_url: String,
    /// The scheme that sends the `api_key`.
    pub auth: AuthScheme,
    /// The API key; `None` if none is configured.
    pub api_key: Option<ApiKey>,
    /// Headers that the provider requires on every request.
    pub fixed_headers: &'static [(&'static str, &'static str)],
    /// Headers from the user's config. Their values may be secret.
    pub user_headers: Vec<(String, String)>,
    /// The environment variable that sets a proxy, if any. Network errors name it, because the
    /// proxy may be the cause.
    pub proxy_env_var: Option<&'static str>,
    /// Deviations of the provider from its wire format.
    pub quirks: Quirks,
    /// Timeouts of requests to this endpoint.
    pub timeouts: EndpointTimeouts,
}

impl Endpoint {
    /// Creates an endpoint for a server about which only the wire format is known.
    pub fn generic(format: WireFormat, base_url: String) -> Endpoint {
        let row = catalog::generic_provider(format, false);
        Endpoint {
            provider: "the provider".into(),
            format,
            base_url,
            auth: row.auth,
            api_key: None,
            fixed_headers: row.fixed_headers,
            user_headers: Vec::new(),
            proxy_env_var: None,
            quirks: row.quirks,
            timeouts: EndpointTimeouts::default(),
        }
    }
}

/// An API key and its source. The secret is never printed.
#[derive(Clone, Debug)]
pub struct ApiKey {
    /// The secret value.
    pub secret: SecretString,
    /// A description of the key's source, used in error messages.
    pub source: String,
}

/// An HTTP client for one `Endpoint`. It reuses its connections.
pub struct Client {
    http: reqwest::Client,
    endpoint: Endpoint,
    base_url: reqwest::Url,
    host: String,
}

/// Bounds the bytes read from the body of an error response.
const MAX_ERROR_BODY_BYTES: usize = 64 * 1024;

impl Client {
    /// Returns true if the models run on this machine or on a server that the user runs.
    pub fn is_local(&self) -> bool {
        self.endpoint.auth == AuthScheme::OptionalBearer || is_local_url(&self.endpoint.base_url)
    }

    /// Creates a client. Fails with `Fault::Config` if the base URL or a header is invalid.
    pub fn new(endpoint: Endpoint) -> Result<Client, Fault> {
        let config = |message: String| Fault::Config { message };
        let url = reqwest::Url::parse(&endpoint.base_url).map_err(|error| {
            config(format!("`base_url` of {} is not a URL: {error}", endpoint.provider))
        })?;
        let mut host = url.host_str().unwrap_or_default().to_owned();
        if let Some(port) = url.port() {
            host = format!("{host}:{port}");
        }
        let is_plain_http = match url.scheme() {
            "http" => true,
            "https" => false,
            other => {
                let name = &endpoint.provider;
                return Err(config(format!(
                    "`base_url` of {name} uses {other}; it must use http or https"
                )));
            }
        };
        if !url.username().is_empty() || url.password().is_some() {
            let name = &endpoint.provider;
            return Err(config(format!("`base_url` of {name} contains a password; use `api_key`")));
        }
        let mut headers = HeaderMap::new();
        let fixed_headers = endpoint.fixed_headers.iter().copied();
        let user_headers =
            endpoint.user_headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in fixed_headers.chain(user_headers) {
            let header = reqwest::header::HeaderName::try_from(name);
            let (Ok(header), Ok(mut value)) = (header, HeaderValue::try_from(value)) else {
                let provider = &endpoint.provider;
                return Err(config(format!("the header `{name}` of {provider} is invalid")));
            };
            value.set_sensitive(true);
            headers.insert(header, value);
        }
        let builder = reqwest::Client::builder()
            .user_agent(concat!("windlass/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers)
            .connect_timeout(endpoint.timeouts.connect)
            // Do not follow redirects: a redirect would send the API key to another server.
            .redirect(reqwest::redirect::Policy::none());
        // Do not use a proxy for a server on this machine.
        let is_local = is_local_url(&endpoint.base_url);
        let builder = if is_local { builder.no_proxy() } else { builder };
        // Plain HTTP needs no certificates, and loading those of the system is slow.
        let needs_no_certificates = is_plain_http && (endpoint.proxy_env_var.is_none() || is_local);
        let builder = if needs_no_certificates { builder.tls_certs_only([]) } else { builder };
        let http = builder
            .build()
            .map_err(|error| config(format!("could not create the HTTP client: {error}")))?;
        Ok(Client { http, endpoint, base_url: url, host })
    }

    /// Runs one step and sends its events to `sink` as they arrive, with backpressure from the
    /// receiver. The last event is [`ModelEvent::Ended`] or [`ModelEvent::Failed`]. Dropping the
    /// future cancels the request.
    pub async fn run_step(&self, request: &ModelRequest, sink: &mpsc::Sender<ModelEvent>) {
        if let Err(fault) = self.stream_events(request, sink).await {
            // A send error means that the receiver is gone, so the fault is dropped.
            let _ = sink.send(ModelEvent::Failed(self.redact_fault(fault))).await;
        }
    }

    async fn stream_events(
        &self,
        request: &ModelRequest,
        sink: &mpsc::Sender<ModelEvent>,
    ) -> Result<(), Fault> {
        let Endpoint { format, quirks, timeouts, .. } = &self.endpoint;
        let http_request = self.build_request(request)?;
        let deadline = Instant::now() + timeouts.headers;
        let response = timeout_at(deadline, http_request.send()).await;
        let response =
            response.map_err(|_| self.timeout_fault("did not answer", timeouts.headers))?;
        let response = response.map_err(|error| self.network_fault(&error))?;
        if !response.status().is_success() || !is_event_stream(response.headers()) {
            return Err(self.fault_from_response(response).await);
        }
        // The `Retry-After` header also applies to an error inside the stream.
        let retry_after = retry_after_ms(response.headers());
        let mut decoder = format.decoder(request, quirks);
        let mut bytes = response.bytes_stream();
        let mut deadline = Instant::now() + timeouts.first_event;
        let mut progress = 0;
        loop {
            let events = match timeout_at(deadline, bytes.next()).await {
                Ok(Some(Ok(chunk))) => decoder.decode(chunk),
                Ok(Some(Err(error))) => return Err(self.network_fault(&error)),
                Ok(None) => decoder.finish(),
                Err(_) if progress == 0 => {
                    return Err(
                        self.timeout_fault("did not start its response", timeouts.first_event)
                    );
                }
                Err(_) => return Err(self.timeout_fault("sent nothing", timeouts.idle)),
            };
            if decoder.progress() > progress {
                progress = decoder.progress();
                deadline = Instant::now() + timeouts.idle;
            }
            for event in events {
                if let ModelEvent::Failed(mut fault) = event {
                    if let Fault::Provider { retry_after_ms, .. }
                    | Fault::RateLimited { retry_after_ms, .. } = &mut fault
                    {
                        *retry_after_ms = retry_after_ms.or(retry_after);
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

    fn build_request(&self, request: &ModelRequest) -> Result<reqwest::RequestBuilder, Fault> {
        let Endpoint { format, quirks, .. } = &self.endpoint;
        let body = request.incremental_body.write_body(*format, request, quirks);
        let http_request =
            self.http.post(self.request_url(request)).header(CONTENT_TYPE, "application/json");
        self.add_api_key(http_request.body(body))
    }

    /// Adds the API key to a request.
    fn add_api_key(
        &self,
        http_request: reqwest::RequestBuilder,
    ) -> Result<reqwest::RequestBuilder, Fault> {
        let Endpoint { auth, api_key, .. } = &self.endpoint;
        let Some(api_key) = api_key else { return Ok(http_request) };
        let secret = api_key.secret.expose_secret().trim();
        let (name, value) = match auth {
            AuthScheme::Bearer | AuthScheme::OptionalBearer => {
                ("authorization", format!("Bearer {secret}"))
            }
            AuthScheme::Header(name) => (*name, secret.to_owned()),
        };
        // A header that the user sets takes precedence over the API key.
        let is_set = |(header, _): &(String, String)| header.eq_ignore_ascii_case(name);
        if self.endpoint.user_headers.iter().any(is_set) {
            return Ok(http_request);
        }
        let mut value = HeaderValue::try_from(value).map_err(|_| Fault::Config {
            message: format!(
                "the API key of {} from {} contains invalid characters",
                self.endpoint.provider, api_key.source
            ),
        })?;
        value.set_sensitive(true);
        Ok(http_request.header(name, value))
    }

    /// Checks the API key with a `GET` request to a path such as `/models`, and returns the models
    /// that the response lists, if any.
    ///
    /// # Errors
    ///
    /// Fails with `Fault::Auth` if the provider rejects the key, and with another fault if it
    /// cannot be asked.
    pub async fn check_api_key(&self, path: &str, timeout: Duration) -> Result<Vec<String>, Fault> {
        let check = async {
            let request = self.add_api_key(self.http.get(self.path_url(path)))?;
            let response = request.send().await.map_err(|error| self.network_fault(&error))?;
            if !response.status().is_success() {
                return Err(self.fault_from_response(response).await);
            }
            Ok(model_list::read_model_names(response).await.unwrap_or_default())
        };
        let result = tokio::time::timeout(timeout, check).await;
        let result = result.unwrap_or_else(|_| Err(self.timeout_fault("did not answer", timeout)));
        result.map_err(|fault| self.redact_fault(fault))
    }

    /// Returns the request URL of a model.
    fn request_url(&self, request: &ModelRequest) -> reqwest::Url {
        self.path_url(&self.endpoint.format.request_path(&request.model.id))
    }

    /// Appends a path to the path of the base URL, with both queries.
    fn path_url(&self, path: &str) -> reqwest::Url {
        let mut url = self.base_url.clone();
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        url.set_path(&format!("{}{path}", self.base_url.path().trim_end_matches('/')));
        let queries: Vec<&str> = [self.base_url.query().unwrap_or_default(), query]
            .into_iter()
            .filter(|q| !q.is_empty())
            .collect();
        url.set_query((!queries.is_empty()).then(|| queries.join("&")).as_deref());
        url
    }

    /// Converts a response that is not an event stream into a `Fault`.
    async fn fault_from_response(&self, response: reqwest::Response) -> Fault {
        let (status, headers) = (response.status(), response.headers().clone());
        let mut body = Vec::new();
        let mut bytes = response.bytes_stream();
        let deadline = Instant::now() + self.endpoint.timeouts.idle.min(Duration::from_secs(30));
        while let Ok(Some(Ok(chunk))) = timeout_at(deadline, bytes.next()).await {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_ERROR_BODY_BYTES {
                break;
            }
        }
        let mut error = ProviderError::from_body(&String::from_utf8_lossy(&body));
        error.wait_ms = retry_after_ms(&headers).or(error.wait_ms);
        if status.is_success() {
            // Some servers send an explicit error with a success status. Any other body is not a
            // valid response.
            if is_error_body(&body) {
                return error.into_fault();
            }
            let start = String::from_utf8_lossy(&body).chars().take(200).collect::<String>();
            let message = format!("it did not send an event stream: {start}");
            return Fault::from_provider(Some(status.as_u16()), message);
        }
        error.status = Some(status.as_u16());
        error.into_fault()
    }

    fn network_fault(&self, error: &reqwest::Error) -> Fault {
        // The outer error only says that the request failed; the innermost source names the cause.
        let mut cause: &dyn std::error::Error = error;
        let mut is_lookup = false;
        while let Some(inner) = cause.source() {
            cause = inner;
            // The connector has no type for this failure, only these words.
            is_lookup |= cause.to_string().starts_with("dns error");
        }
        let cause = cause.to_string();
        if cause.contains("invalid peer certificate") {
            // This is a `Fault::Config`: retrying does not fix a certificate.
            let message = format!(
                "{}: {cause}. If you trust this certificate, add its authority to the system's \
                 store, or to the file that SSL_CERT_FILE names",
                self.host
            );
            return Fault::Config { message };
        }
        let proxy =
            self.endpoint.proxy_env_var.map(|name| format!(" (through the proxy in {name})"));
        let message = format!("{}: {cause}{}", self.host, proxy.unwrap_or_default());
        match is_lookup {
            true => Fault::HostNotFound { message },
            false => Fault::Network { message },
        }
    }

    fn timeout_fault(&self, problem: &str, duration: Duration) -> Fault {
        Fault::Network { message: format!("{}: it {problem} for {duration:?}", self.host) }
    }

    /// Removes secrets from a fault and truncates its message. Providers tend to echo the request
    /// in their errors.
    fn redact_fault(&self, fault: Fault) -> Fault {
        const MAX_MESSAGE_BYTES: usize = 500;
        let redact = |message: String| {
            let key = self.endpoint.api_key.as_ref().map(|key| key.secret.expose_secret().trim());
            let headers = self.endpoint.user_headers.iter().map(|(_, value)| value.as_str());
            // Values shorter than 8 bytes are not secrets; replacing them would garble the message.
            let secrets = key.into_iter().chain(headers).filter(|secret| secret.len() >= 8);
            let message = secrets.fold(message, |text, secret| text.replace(secret, "[key]"));
            message
                .get(..message.floor_char_boundary(MAX_MESSAGE_BYTES))
                .unwrap_or_default()
                .to_owned()
        };
        match fault {
            Fault::Auth { message } => {
                Fault::Auth { message: self.describe_auth_failure(&redact(message)) }
            }
            Fault::ContextOverflow { message } => {
                Fault::ContextOverflow { message: redact(message) }
            }
            Fault::Network { message } => Fault::Network { message: redact(message) },
            Fault::HostNotFound { message } => Fault::HostNotFound { message: redact(message) },
            Fault::ModelRefused { message } => Fault::ModelRefused { message: redact(message) },
            Fault::Provider { status, message, retry_after_ms } => {
                Fault::Provider { status, message: redact(message), retry_after_ms }
            }
            Fault::Config { message } => Fault::Config { message: redact(message) },
            Fault::Storage { message } => Fault::Storage { message: redact(message) },
            Fault::SessionBusy { message } => Fault::SessionBusy { message: redact(message) },
            Fault::SessionMoved { message } => Fault::SessionMoved { message: redact(message) },
            Fault::Refused { message } => Fault::Refused { message: redact(message) },
            Fault::Internal { message } => Fault::Internal { message: redact(message) },
            Fault::RateLimited { message, retry_after_ms } => {
                Fault::RateLimited { message: redact(message), retry_after_ms }
            }
        }
    }

    fn describe_auth_failure(&self, message: &str) -> String {
        let name = &self.endpoint.provider;
        match &self.endpoint.api_key {
            Some(key) => format!("{name} rejected the API key from {}: {message}", key.source),
            None => format!("{name} rejected the request because no API key is set: {message}"),
        }
    }
}

/// Returns true if the URL points to this machine: `localhost` or a loopback address.
pub fn is_local_url(base_url: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(base_url) else { return false };
    let host = url.host_str().unwrap_or_default();
    let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
}

/// Returns true if a JSON body declares itself an error (`error`, `type` or `object`).
fn is_error_body(body: &[u8]) -> bool {
    let json = serde_json::from_slice::<serde_json::Value>(body).unwrap_or_default();
    let json = json.get(0).unwrap_or(&json);
    json.get("error").is_some_and(|error| !error.is_null())
        || json.get("type").is_some_and(|kind| kind == "error")
        || json.get("object").is_some_and(|kind| kind == "error")
}

/// Returns true unless the `Content-Type` is JSON or HTML. Some servers omit the header.
fn is_event_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    !["application/json", "text/html"].iter().any(|other| kind.starts_with(other))
}

/// Returns the delay that the provider requests in `retry-after-ms` or `Retry-After`. An HTTP date
/// is compared with the response's own `Date` header, that is, with the provider's clock.
fn retry_after_ms(headers: &HeaderMap) -> Option<u64> {
    let header = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let parse_number = |text: &str| {
        let number: f64 = text.parse().ok()?;
        (number.is_finite() && number >= 0.0).then_some(number)
    };
    if let Some(wait) = header("retry-after-ms").and_then(parse_number) {
        return Some(wait as u64);
    }
    let value = header(RETRY_AFTER.as_str())?;
    if let Some(seconds) = parse_number(value) {
        return Some((seconds * 1000.0) as u64);
    }
    let until = httpdate::parse_http_date(value).ok()?;
    let now = httpdate::parse_http_date(header(DATE.as_str())?).ok()?;
    Some(until.duration_since(now).map_or(0, |wait| wait.as_millis() as u64))
}
