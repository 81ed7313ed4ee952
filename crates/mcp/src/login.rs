//! A login to a server: OAuth 2.1 with PKCE, in the person's browser, which comes back to a port of this
//! machine. What it gives is kept by whoever uses the crate.
//!
//! A login happens only when a person asks for it, never inside a call. What the browser brings back
//! counts only if it carries the state of this very login.
#![allow(clippy::disallowed_types, reason = "the browser comes back to a port of this machine")]

use crate::tokens::{Client, OAuth, Purse, Tokens};
use crate::wire::{Reach, challenge, is_insufficient, manager, parameter};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, AuthorizationMetadataSource,
    AuthorizationRequest, AuthorizationSession,
};
use secrecy::ExposeSecret;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use windlass_toolkit::Failure;

/// How long the person may take.
const PATIENCE: Duration = Duration::from_secs(300);
/// How long a browser may take to say what it wants.
const ASKING: Duration = Duration::from_secs(10);
/// How long what a browser asks may be.
const LONGEST: usize = 16 << 10;
/// How many connections are listened to at once.
const VISITS: usize = 16;
/// The path the browser comes back to.
const PATH: &str = "/callback";
/// Who we say we are.
const NAME: &str = "Windlass";

/// A login that is to be done.
pub struct Login<'a> {
    /// The server's address.
    pub url: &'a str,
    /// Where the server and those who know its people may be.
    pub reach: Reach,
    /// How to log in.
    pub oauth: &'a OAuth,
    /// Where what it gives is kept.
    pub store: &'a Arc<dyn Tokens>,
    /// What the server said when it refused a call, if that is why.
    pub challenge: Option<String>,
}

/// Who knows a server's people.
struct Found {
    manager: AuthorizationManager,
    /// What to ask for.
    scopes: Vec<String>,
    /// A client may be an address that describes it.
    takes_addresses: bool,
}

impl Login<'_> {
    /// Does it: `page` shows the person the address to open. It waits for five minutes.
    pub async fn run(&self, page: &(dyn Fn(&str) + Send + Sync)) -> Result<(), Failure> {
        let listener = self.listen().await?;
        let port = listener.local_addr().map_err(|error| no_port(&error))?.port();
        let redirect = format!("http://127.0.0.1:{port}{PATH}");
        let purse = Purse::new(self.url, self.store);
        let found = self.discover(&purse).await?;
        let session = self.session(found, &purse, &redirect).await?;
        let address = session.get_authorization_url();
        if self.url.starts_with("https://") && !address.starts_with("https://") {
            return Err(Failure::new(
                "the page of the login is not encrypted, unlike the server; nothing was done",
            ));
        }
        let state = query(address, "state");
        let state =
            state.ok_or_else(|| Failure::new("the login has no state; nothing was done"))?;
        page(address);
        let back = timeout(PATIENCE, wait(&listener, &state)).await.map_err(|_| {
            Failure::new("nobody came back from the browser within five minutes. Try it again")
        })?;
        let back = back?;
        if let Some(error) = query(&back, "error") {
            let why = query(&back, "error_description").map(|why| format!(" ({why})"));
            let why = why.unwrap_or_default();
            return Err(Failure::new(format!("the login was refused: {error}{why}")));
        }
        session.handle_callback_url(&back).await.map_err(|error| failed(&error))?;
        Ok(())
    }

    async fn listen(&self) -> Result<TcpListener, Failure> {
        let port = self.oauth.callback_port.unwrap_or(0);
        TcpListener::bind(("127.0.0.1", port)).await.map_err(|error| no_port(&error))
    }

    /// Finds out who knows the server's people, and what to ask them for.
    async fn discover(&self, purse: &Purse) -> Result<Found, Failure> {
        let challenge = match &self.challenge {
            Some(challenge) => Some(challenge.clone()),
            None => challenge(self.reach, self.url).await?,
        };
        let mut manager = manager(self.reach, self.url).await.map_err(|error| failed(&error))?;
        let found = match &challenge {
            Some(challenge) => manager.resolve_metadata_from_challenge(Some(challenge)).await,
            None => manager.resolve_metadata().await,
        };
        let found = found.map_err(|error| failed(&error))?;
        if challenge.is_none()
            && found.source == AuthorizationMetadataSource::LegacyEndpointFallback
        {
            return Err(Failure::new("the server asks for no login, so there is nothing to do"));
        }
        let takes_addresses = takes_addresses(&found.metadata);
        manager.set_metadata(found.metadata);
        manager.set_credential_store(purse.clone());
        let mut scopes: Vec<String> = words(self.oauth.scope.as_deref()).collect();
        if let Some(challenge) = challenge.filter(|challenge| is_insufficient(challenge)) {
            scopes.extend(words(parameter(&challenge, "scope").as_deref()));
        }
        if scopes.is_empty() {
            scopes = manager.select_initial_scopes(&[]).await;
        } else {
            // What was given before is not lost by asking for more.
            let kept = purse.kept().await.map_err(|error| failed(&error))?;
            scopes.extend(kept.into_iter().flat_map(|kept| kept.credentials.granted_scopes));
        }
        let mut seen = std::collections::BTreeSet::new();
        scopes.retain(|scope| seen.insert(scope.clone()));
        Ok(Found { manager, scopes, takes_addresses })
    }

    /// Says who we are: as the config says, as an address that describes us, or by registering.
    async fn session(
        &self,
        found: Found,
        purse: &Purse,
        redirect: &str,
    ) -> Result<AuthorizationSession, Failure> {
        let Found { mut manager, scopes, takes_addresses } = found;
        let told = self.oauth.client_secret.as_ref();
        let told = told.map(|secret| secret.expose_secret().to_owned());
        let (id, secret) = match self.oauth.client_id.clone() {
            Some(id) if !id.starts_with("https://") => (id, told),
            Some(address) if takes_addresses => (address, None),
            Some(_) | None => {
                let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
                let client = manager.register_client(NAME, redirect, &scopes).await;
                let client = client.map_err(|error| unregistered(&error))?;
                (client.client_id, client.client_secret)
            }
        };
        let mut request = AuthorizationRequest::new(redirect)
            .with_scopes(scopes)
            .with_initial_scope_selection()
            .with_preregistered_client(id.clone());
        if let Some(secret) = &secret {
            request = request.with_client_secret(secret.clone());
        }
        purse.is_for(Client { id, secret, redirect: Some(redirect.to_owned()) }).await;
        let session = AuthorizationSession::new(manager, request).await;
        session.map_err(|(_, error)| failed(&error))
    }
}

/// Whether a client may be an address that describes it.
fn takes_addresses(metadata: &AuthorizationMetadata) -> bool {
    let field = metadata.additional_fields.get("client_id_metadata_document_supported");
    field.and_then(serde_json::Value::as_bool).unwrap_or(false)
}

fn words(text: Option<&str>) -> impl Iterator<Item = String> {
    text.unwrap_or_default().split_whitespace().map(str::to_owned)
}

/// A parameter of an address.
fn query(address: &str, name: &str) -> Option<String> {
    let url = reqwest::Url::parse(address).ok()?;
    let found = url.query_pairs().find(|(known, _)| known == name);
    found.map(|(_, value)| value.into_owned())
}

/// Waits for the browser to come back with the state of this login. Everybody else is sent away, and
/// nobody keeps the others waiting.
async fn wait(listener: &TcpListener, state: &str) -> Result<String, Failure> {
    let mut visits = FuturesUnordered::new();
    loop {
        tokio::select! {
            visit = listener.accept(), if visits.len() < VISITS => {
                let (stream, _) = visit.map_err(|error| no_port(&error))?;
                visits.push(timeout(ASKING, heard(stream, state)));
            }
            Some(heard) = visits.next(), if !visits.is_empty() => {
                if let Ok(Some(address)) = heard {
                    return Ok(address);
                }
            }
        }
    }
}

/// What a visitor asks for, if it is the one we wait for.
async fn heard(mut stream: TcpStream, state: &str) -> Option<String> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if head.len() > LONGEST || stream.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut line = head.lines().next()?.split(' ');
    let (method, target) = (line.next()?, line.next()?);
    let address = format!("http://127.0.0.1{target}");
    let path = target.split('?').next().unwrap_or_default();
    let ours =
        method == "GET" && path == PATH && query(&address, "state").as_deref() == Some(state);
    let (status, text) = if ours {
        ("200 OK", "Thank you. You can close this page and go back to Windlass.")
    } else {
        ("404 Not Found", "This is not the page that Windlass waits for.")
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\n\
         cache-control: no-store\r\nconnection: close\r\n\r\n{text}",
        text.len()
    );
    // The browser may be gone already; what it brought counts.
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
    ours.then_some(address)
}

fn no_port(error: &std::io::Error) -> Failure {
    Failure::new(format!(
        "no port of this machine could be opened for the browser: {error}. Set `oauth.callbackPort` to a free one"
    ))
}

fn failed(error: &AuthError) -> Failure {
    Failure::new(format!("the login did not work: {error}"))
}

fn unregistered(error: &AuthError) -> Failure {
    Failure::new(format!(
        "the server does not let us register ({error}). Ask whoever runs it for a client id and set `oauth.clientId`"
    ))
}

#[cfg(test)]
mod tests;
