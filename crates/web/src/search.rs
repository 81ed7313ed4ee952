//! Sends one request to a search engine that the user chose.
//!
//! The request goes directly to the engine, not through a `HostRoute`: the user configured the
//! address, and it may be on the user's machine. It keeps the invariant that an API key is sent
//! only to its engine's origin, over an encrypted connection unless that is this machine, and
//! appears in no URL and no error. Start reading at [`WebClient::search`].

use crate::search_engine::{
    HttpMethod, SearchAuth, SearchEngine, SearchQuery, SearchRequestTemplate,
};
use crate::{WebClient, describe_error, html_conversion, response_body};
use reqwest::header::{HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;
use url::{Host, Url};
use windlass_toolkit::CallFailure;

const MAX_ANSWER_BYTES: usize = 2 << 20;
const SEARCH_TIMEOUT: Duration = Duration::from_secs(25);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_REDIRECTS: usize = 3;
/// Limit for the shown part of an error response.
const MAX_SHOWN_ERROR_CHARS: usize = 200;

impl WebClient {
    /// Queries an engine with one of its [`SearchRequestTemplate`]s and formats the answer.
    pub async fn search(
        &self,
        engine: &SearchEngine,
        template: &SearchRequestTemplate,
        query: &SearchQuery,
    ) -> Result<String, CallFailure> {
        let name = &engine.name;
        let timeout_error = |_| {
            let seconds = SEARCH_TIMEOUT.as_secs();
            CallFailure::new(format!("{name} did not answer within {seconds} s. Try again later"))
        };
        timeout(SEARCH_TIMEOUT, self.query_engine(engine, template, query))
            .await
            .map_err(timeout_error)?
    }

    async fn query_engine(
        &self,
        engine: &SearchEngine,
        template: &SearchRequestTemplate,
        query: &SearchQuery,
    ) -> Result<String, CallFailure> {
        let name = &engine.name;
        let (url, body) =
            template.build_request(engine.base.as_deref().unwrap_or_default(), query)?;
        let client = Client::builder()
            .user_agent(&self.user_agent)
            .redirect(Policy::custom(follow_same_origin))
            .connect_timeout(CONNECT_TIMEOUT)
            .build();
        let client = client.map_err(|_| CallFailure::new("could not create the HTTP client"))?;
        let request = match template.method {
            HttpMethod::Get => client.get(url.clone()),
            HttpMethod::Post => client.post(url.clone()),
        };
        let request = match body {
            Some(body) => request.json(&body),
            None => request,
        };
        let request = add_key_header(request, engine, &url)?.header("accept", "application/json");
        let response = request.send().await.map_err(|error| {
            CallFailure::new(format!(
                "{name} could not be reached: {}. Try again later",
                describe_error(&error)
            ))
        })?;
        let status = response.status();
        if !status.is_success() {
            return Err(failure_from_response(engine, response).await);
        }
        let body = response_body::read_body(response, MAX_ANSWER_BYTES).await?;
        if body.truncated {
            let max_megabytes = MAX_ANSWER_BYTES >> 20;
            return Err(CallFailure::new(format!(
                "{name} answered with more than {max_megabytes} MB"
            )));
        }
        let unexpected_response =
            || CallFailure::new(format!("{name} sent an unexpected response"));
        let answer: Value =
            serde_json::from_slice(&body.bytes).map_err(|_| unexpected_response())?;
        template.format_answer(&answer, query).ok_or_else(unexpected_response)
    }
}

/// Adds the API key to a request to its engine.
fn add_key_header(
    request: RequestBuilder,
    engine: &SearchEngine,
    url: &Url,
) -> Result<RequestBuilder, CallFailure> {
    let Some(key) = &engine.key else { return Ok(request) };
    let name = &engine.name;
    let is_loopback = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    if url.scheme() != "https" && !is_loopback {
        return Err(CallFailure::new(format!(
            "the API key of {name} would be sent unencrypted. The user can configure an https:// \
             address for {name}"
        )));
    }
    let (header, value) = match &engine.auth {
        SearchAuth::None => return Ok(request),
        SearchAuth::Bearer => ("authorization", format!("Bearer {}", key.expose_secret())),
        SearchAuth::Header(header) => (header.as_str(), key.expose_secret().to_owned()),
    };
    let invalid_key =
        || CallFailure::new(format!("the API key of {name} contains invalid characters"));
    let header: HeaderName = header.parse().map_err(|_| invalid_key())?;
    let mut value: HeaderValue = value.parse().map_err(|_| invalid_key())?;
    value.set_sensitive(true);
    Ok(request.header(header, value))
}

/// Converts an error response of an engine into a `Failure`.
async fn failure_from_response(engine: &SearchEngine, response: Response) -> CallFailure {
    let (name, status) = (&engine.name, response.status());
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            return CallFailure::new(format!(
                "{name} rejected the API key. The user can set another with `windlass auth login \
                 {name}`"
            ));
        }
        StatusCode::TOO_MANY_REQUESTS => {
            let header = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
            let seconds = header.and_then(|value| value.parse::<u32>().ok());
            let retry_at = seconds.map_or("later".to_owned(), |seconds| format!("in {seconds} s"));
            return CallFailure::new(format!(
                "the rate limit of {name} was exceeded. Try again {retry_at}"
            ));
        }
        _ => {}
    }
    let body = response_body::read_body(response, 4 * MAX_SHOWN_ERROR_CHARS)
        .await
        .map(|body| body.bytes)
        .unwrap_or_default();
    let message =
        html_conversion::plain_text_line(&String::from_utf8_lossy(&body), MAX_SHOWN_ERROR_CHARS);
    let message = redact_key(&message, engine.key.as_ref());
    match message.is_empty() {
        true => CallFailure::new(format!("{name} answered HTTP {status}. Try again later")),
        false => CallFailure::new(format!("{name} answered HTTP {status}: {message}")),
    }
}

/// Removes the API key from text, in case an engine echoes it.
fn redact_key(text: &str, key: Option<&SecretString>) -> String {
    match key.map(ExposeSecret::expose_secret).filter(|key| !key.is_empty()) {
        Some(key) => text.replace(key, "…"),
        None => text.to_owned(),
    }
}

/// Follows redirects within one origin only, so that neither API key nor query reaches another
/// site.
fn follow_same_origin(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let first = attempt.previous().first();
    let is_same_origin = first.is_some_and(|first| first.origin() == attempt.url().origin());
    match is_same_origin && attempt.previous().len() <= MAX_REDIRECTS {
        true => attempt.follow(),
        false => attempt.stop(),
    }
}
