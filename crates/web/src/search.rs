//! Searching: one request to an engine that the person chose.
//!
//! It goes straight to the engine, not through a passage: the address is the person's own, and may be
//! on their machine. It keeps the invariant that a key is shown to its engine's origin only, over an
//! encrypted connection unless that is this machine, and stands in no address and no error. Start
//! reading at [`Web::search`].

use crate::recipe::{Auth, Engine, Lookup, Method, Recipe};
use crate::{Web, body, page, words};
use reqwest::header::{HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;
use url::{Host, Url};
use windlass_toolkit::Failure;

/// The longest answer.
const LARGEST: usize = 2 << 20;
const PATIENCE: Duration = Duration::from_secs(25);
const CONNECTING: Duration = Duration::from_secs(10);
const REDIRECTS: usize = 3;
/// How much of an answer that says no is shown.
const SHOWN: usize = 200;

impl Web {
    /// Asks an engine by one of its recipes, and tells what it says.
    pub async fn search(
        &self,
        engine: &Engine,
        recipe: &Recipe,
        lookup: &Lookup,
    ) -> Result<String, Failure> {
        let name = &engine.name;
        let slow = |_| {
            let seconds = PATIENCE.as_secs();
            Failure::new(format!("{name} did not answer within {seconds} s. Try again later"))
        };
        timeout(PATIENCE, self.ask_engine(engine, recipe, lookup)).await.map_err(slow)?
    }

    async fn ask_engine(
        &self,
        engine: &Engine,
        recipe: &Recipe,
        lookup: &Lookup,
    ) -> Result<String, Failure> {
        let name = &engine.name;
        let (url, body) = recipe.request(engine.base.as_deref().unwrap_or_default(), lookup)?;
        let client = Client::builder()
            .user_agent(&self.agent)
            .redirect(Policy::custom(within_origin))
            .connect_timeout(CONNECTING)
            .build();
        let client = client.map_err(|_| Failure::new("no HTTP client can be made here"))?;
        let request = match recipe.method {
            Method::Get => client.get(url.clone()),
            Method::Post => client.post(url.clone()),
        };
        let request = match body {
            Some(body) => request.json(&body),
            None => request,
        };
        let request = show_key(request, engine, &url)?.header("accept", "application/json");
        let answer = request.send().await.map_err(|error| {
            Failure::new(format!("{name} could not be reached: {}. Try again later", words(&error)))
        })?;
        let status = answer.status();
        if !status.is_success() {
            return Err(refusal(engine, answer).await);
        }
        let body = body::read(answer, LARGEST).await?;
        if body.cut {
            let most = LARGEST >> 20;
            return Err(Failure::new(format!("{name} answered with more than {most} MB")));
        }
        let odd = || Failure::new(format!("{name} answered in a form that nobody expected"));
        let answer: Value = serde_json::from_slice(&body.bytes).map_err(|_| odd())?;
        recipe.read(&answer, lookup).ok_or_else(odd)
    }
}

/// Shows the key to whom it belongs.
fn show_key(
    request: RequestBuilder,
    engine: &Engine,
    url: &Url,
) -> Result<RequestBuilder, Failure> {
    let Some(key) = &engine.key else { return Ok(request) };
    let name = &engine.name;
    let here = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(four)) => four.is_loopback(),
        Some(Host::Ipv6(six)) => six.is_loopback(),
        None => false,
    };
    if url.scheme() != "https" && !here {
        return Err(Failure::new(format!(
            "the key of {name} would be sent unencrypted. The person can give {name} an address \
             that begins with https://"
        )));
    }
    let (header, value) = match &engine.auth {
        Auth::None => return Ok(request),
        Auth::Bearer => ("authorization", format!("Bearer {}", key.expose_secret())),
        Auth::Header(header) => (header.as_str(), key.expose_secret().to_owned()),
    };
    let wrong = || Failure::new(format!("the key of {name} has characters that no key has"));
    let header: HeaderName = header.parse().map_err(|_| wrong())?;
    let mut value: HeaderValue = value.parse().map_err(|_| wrong())?;
    value.set_sensitive(true);
    Ok(request.header(header, value))
}

/// What an engine that says no is told as.
async fn refusal(engine: &Engine, answer: Response) -> Failure {
    let (name, status) = (&engine.name, answer.status());
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            return Failure::new(format!(
                "{name} does not accept the key. The person can give another with \
                 `windlass auth login {name}`"
            ));
        }
        StatusCode::TOO_MANY_REQUESTS => {
            let wait = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
            let wait = wait.and_then(|wait| wait.parse::<u32>().ok());
            let wait = wait.map_or("later".to_owned(), |wait| format!("in {wait} s"));
            return Failure::new(format!("{name} is asked too often. Try again {wait}"));
        }
        _ => {}
    }
    let body = body::read(answer, 4 * SHOWN).await.map(|body| body.bytes).unwrap_or_default();
    let said = page::plain(&String::from_utf8_lossy(&body), SHOWN);
    let said = hide(&said, engine.key.as_ref());
    match said.is_empty() {
        true => Failure::new(format!("{name} answered HTTP {status}. Try again later")),
        false => Failure::new(format!("{name} answered HTTP {status}: {said}")),
    }
}

/// Without the key, should an engine repeat it.
fn hide(text: &str, key: Option<&SecretString>) -> String {
    match key.map(ExposeSecret::expose_secret).filter(|key| !key.is_empty()) {
        Some(key) => text.replace(key, "…"),
        None => text.to_owned(),
    }
}

/// Follows what stays with one origin, so that no key and no question goes to somebody else.
fn within_origin(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let first = attempt.previous().first();
    let stays = first.is_some_and(|first| first.origin() == attempt.url().origin());
    match stays && attempt.previous().len() <= REDIRECTS {
        true => attempt.follow(),
        false => attempt.stop(),
    }
}
