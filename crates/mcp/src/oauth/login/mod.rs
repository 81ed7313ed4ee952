//! The login to a server: OAuth 2.1 with PKCE in the user's browser, which is redirected to a local
//! port. The caller of this crate stores the tokens.
//!
//! A login happens only when the user requests it, never inside a call. A redirect counts only if
//! it carries the `state` of this login.
#![allow(clippy::disallowed_types, reason = "the browser is redirected to a port of this machine")]

use crate::oauth::tokens::{OAuthClientCredentials, OAuthConfig, OAuthCredentialStore, TokenStore};
use crate::transport::http::{
    AddressPolicy, authorization_manager, challenge_parameter, fetch_challenge,
    is_insufficient_scope,
};
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
use windlass_toolkit::CallFailure;

/// Limit for the user to finish the login.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(300);
/// Limit for a browser connection to send its request.
const BROWSER_REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_BROWSER_REQUEST_BYTES: usize = 16 << 10;
/// Bounds the local connections that are read at the same time.
const MAX_BROWSER_CONNECTIONS: usize = 16;
/// The path of the redirect URL.
const CALLBACK_PATH: &str = "/callback";
/// The name under which we register as a client.
const CLIENT_NAME: &str = "Windlass";

/// A login to run.
pub struct OAuthLogin<'a> {
    pub url: &'a str,
    /// Restricts the addresses of the server and of its authorization server.
    pub address_policy: AddressPolicy,
    pub oauth: &'a OAuthConfig,
    pub store: &'a Arc<dyn TokenStore>,
    /// The `WWW-Authenticate` challenge of the call that the server refused, if that is the reason
    /// for the login.
    pub challenge: Option<String>,
}

/// The authorization server of an MCP server, with an `AuthorizationManager` for it.
struct AuthServerInfo {
    manager: AuthorizationManager,
    /// The scopes to request.
    scopes: Vec<String>,
    /// True if a client ID may be the URL of a metadata document.
    supports_client_id_url: bool,
}

impl OAuthLogin<'_> {
    /// Runs the login. `show_url` shows the user the URL to open; the login waits five minutes for
    /// the redirect.
    pub async fn run(&self, show_url: &(dyn Fn(&str) + Send + Sync)) -> Result<(), CallFailure> {
        let listener = self.bind_callback().await?;
        let port = listener.local_addr().map_err(|error| port_failure(&error))?.port();
        let redirect = format!("http://127.0.0.1:{port}{CALLBACK_PATH}");
        let credential_store = OAuthCredentialStore::new(self.url, self.store);
        let auth_server = self.discover_auth_server(&credential_store).await?;
        let session = self.start_authorization(auth_server, &credential_store, &redirect).await?;
        let login_url = session.get_authorization_url();
        if self.url.starts_with("https://") && !login_url.starts_with("https://") {
            return Err(CallFailure::new(
                "the login page is not encrypted, unlike the server; login canceled",
            ));
        }
        let state = query_parameter(login_url, "state");
        let state = state
            .ok_or_else(|| CallFailure::new("the login URL has no `state`; login canceled"))?;
        show_url(login_url);
        let callback_url =
            timeout(LOGIN_TIMEOUT, wait_for_callback(&listener, &state)).await.map_err(|_| {
                CallFailure::new("the browser did not return within five minutes. Try again")
            })?;
        let callback_url = callback_url?;
        if let Some(error) = query_parameter(&callback_url, "error") {
            let description = query_parameter(&callback_url, "error_description")
                .map(|description| format!(" ({description})"));
            let description = description.unwrap_or_default();
            return Err(CallFailure::new(format!("the login was denied: {error}{description}")));
        }
        session.handle_callback_url(&callback_url).await.map_err(|error| login_failure(&error))?;
        Ok(())
    }

    async fn bind_callback(&self) -> Result<TcpListener, CallFailure> {
        let port = self.oauth.callback_port.unwrap_or(0);
        TcpListener::bind(("127.0.0.1", port)).await.map_err(|error| port_failure(&error))
    }

    /// Finds the authorization server and the scopes to request.
    async fn discover_auth_server(
        &self,
        credential_store: &OAuthCredentialStore,
    ) -> Result<AuthServerInfo, CallFailure> {
        let challenge = match &self.challenge {
            Some(challenge) => Some(challenge.clone()),
            None => fetch_challenge(self.address_policy, self.url).await?,
        };
        let mut manager = authorization_manager(self.address_policy, self.url)
            .await
            .map_err(|error| login_failure(&error))?;
        let found = match &challenge {
            Some(challenge) => manager.resolve_metadata_from_challenge(Some(challenge)).await,
            None => manager.resolve_metadata().await,
        };
        let found = found.map_err(|error| login_failure(&error))?;
        if challenge.is_none()
            && found.source == AuthorizationMetadataSource::LegacyEndpointFallback
        {
            return Err(CallFailure::new(
                "the server does not require a login, so there is nothing to do",
            ));
        }
        let supports_client_id_url = supports_client_id_url(&found.metadata);
        manager.set_metadata(found.metadata);
        manager.set_credential_store(credential_store.clone());
        let mut scopes: Vec<String> = split_scopes(self.oauth.scope.as_deref()).collect();
        if let Some(challenge) = challenge.filter(|challenge| is_insufficient_scope(challenge)) {
            scopes.extend(split_scopes(challenge_parameter(&challenge, "scope").as_deref()));
        }
        if scopes.is_empty() {
            scopes = manager.select_initial_scopes(&[]).await;
        } else {
            // A request for more scopes keeps the ones that were granted before.
            let stored_login =
                credential_store.load_login().await.map_err(|error| login_failure(&error))?;
            scopes.extend(
                stored_login
                    .into_iter()
                    .flat_map(|stored_login| stored_login.credentials.granted_scopes),
            );
        }
        let mut seen = std::collections::BTreeSet::new();
        scopes.retain(|scope| seen.insert(scope.clone()));
        Ok(AuthServerInfo { manager, scopes, supports_client_id_url })
    }

    /// Identifies the client (from the config, by the URL of its metadata document, or by
    /// registering) and starts the session.
    async fn start_authorization(
        &self,
        auth_server: AuthServerInfo,
        credential_store: &OAuthCredentialStore,
        redirect: &str,
    ) -> Result<AuthorizationSession, CallFailure> {
        let AuthServerInfo { mut manager, scopes, supports_client_id_url } = auth_server;
        let client_secret = self.oauth.client_secret.as_ref();
        let client_secret = client_secret.map(|secret| secret.expose_secret().to_owned());
        let (id, secret) = match self.oauth.client_id.clone() {
            Some(id) if !id.starts_with("https://") => (id, client_secret),
            Some(url) if supports_client_id_url => (url, None),
            Some(_) | None => {
                let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
                let client = manager.register_client(CLIENT_NAME, redirect, &scopes).await;
                let client = client.map_err(|error| registration_failure(&error))?;
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
        credential_store
            .set_client(OAuthClientCredentials {
                id,
                secret,
                redirect_url: Some(redirect.to_owned()),
            })
            .await;
        let session = AuthorizationSession::new(manager, request).await;
        session.map_err(|(_, error)| login_failure(&error))
    }
}

/// Returns true if the authorization server has `client_id_metadata_document_supported`: a client
/// ID may be the URL of a metadata document.
fn supports_client_id_url(metadata: &AuthorizationMetadata) -> bool {
    let field = metadata.additional_fields.get("client_id_metadata_document_supported");
    field.and_then(serde_json::Value::as_bool).unwrap_or(false)
}

fn split_scopes(text: Option<&str>) -> impl Iterator<Item = String> {
    text.unwrap_or_default().split_whitespace().map(str::to_owned)
}

/// Returns a query parameter of a URL.
fn query_parameter(url: &str, name: &str) -> Option<String> {
    let url = reqwest::Url::parse(url).ok()?;
    let pair = url.query_pairs().find(|(key, _)| key == name);
    pair.map(|(_, value)| value.into_owned())
}

/// Waits for the redirect with the `state` of this login. Other requests are rejected, and no
/// connection delays the others.
async fn wait_for_callback(listener: &TcpListener, state: &str) -> Result<String, CallFailure> {
    let mut connections = FuturesUnordered::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < MAX_BROWSER_CONNECTIONS => {
                let (stream, _) = accepted.map_err(|error| port_failure(&error))?;
                connections.push(timeout(BROWSER_REQUEST_TIMEOUT, read_callback(stream, state)));
            }
            Some(callback) = connections.next(), if !connections.is_empty() => {
                if let Ok(Some(url)) = callback {
                    return Ok(url);
                }
            }
        }
    }
}

/// Reads a request; returns its URL if it is the redirect we wait for.
async fn read_callback(mut stream: TcpStream, state: &str) -> Option<String> {
    let mut head = Vec::new();
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        if head.len() > MAX_BROWSER_REQUEST_BYTES || stream.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut line = head.lines().next()?.split(' ');
    let (method, target) = (line.next()?, line.next()?);
    let url = format!("http://127.0.0.1{target}");
    let path = target.split('?').next().unwrap_or_default();
    let is_callback = method == "GET"
        && path == CALLBACK_PATH
        && query_parameter(&url, "state").as_deref() == Some(state);
    let (status, text) = if is_callback {
        ("200 OK", "Thank you. You can close this page and return to Windlass.")
    } else {
        ("404 Not Found", "This is not the page that Windlass is waiting for.")
    };
    let response = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\n\
         cache-control: no-store\r\nconnection: close\r\n\r\n{text}",
        text.len()
    );
    // The browser may have disconnected already; the redirect still counts.
    let _ = stream.write_all(response.as_bytes()).await;
    let _ = stream.shutdown().await;
    is_callback.then_some(url)
}

fn port_failure(error: &std::io::Error) -> CallFailure {
    CallFailure::new(format!(
        "could not open a port of this machine for the browser: {error}. Set \
         `oauth.callbackPort` to a free port"
    ))
}

fn login_failure(error: &AuthError) -> CallFailure {
    CallFailure::new(format!("the login failed: {error}"))
}

fn registration_failure(error: &AuthError) -> CallFailure {
    CallFailure::new(format!(
        "the server does not allow client registration ({error}). Ask its operator for a client \
         ID and set `oauth.clientId`"
    ))
}

#[cfg(test)]
mod tests;
