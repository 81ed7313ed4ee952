//! Stored OAuth logins: the tokens and the client they were issued to. The caller of this crate
//! stores one secret per server; `OAuthCredentialStore` adapts it to the `CredentialStore` of
//! `rmcp`.
//!
//! `rmcp` does not keep the client secret between runs, so `StoredLogin` stores it with the tokens:
//! without it a token could not be refreshed after a restart.

use async_trait::async_trait;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, CredentialRefreshGuard, CredentialStore, OAuthClientConfig,
    StoredCredentials,
};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tokio::sync::Mutex;

/// Storage for the tokens of one server. Errors are sentences for the user.
#[async_trait]
pub trait TokenStore: Send + Sync {
    /// Returns the text that was saved last.
    async fn load(&self) -> Result<Option<SecretString>, String>;
    /// Saves a text in place of the last one.
    async fn save(&self, text: SecretString) -> Result<(), String>;
    /// Removes the saved text.
    async fn clear(&self) -> Result<(), String>;
    /// Blocks token refresh by all other tasks and processes until the returned guard is dropped.
    async fn lock_refresh(&self) -> Result<Box<dyn Send>, String>;
}

/// OAuth settings for a server.
#[derive(Clone, Debug, Default)]
pub struct OAuthConfig {
    /// The client ID, if the server issued one. An `https://` URL identifies a client by the
    /// metadata document at that URL.
    pub client_id: Option<String>,
    pub client_secret: Option<SecretString>,
    /// The scopes to request.
    pub scope: Option<String>,
    /// The local port that the browser is redirected to; `None` for any free port.
    pub callback_port: Option<u16>,
}

/// The authentication of requests to a server.
#[derive(Clone)]
pub enum McpAuth {
    /// Requests carry no token.
    None,
    /// Requests carry the token of an OAuth login.
    OAuth { store: Arc<dyn TokenStore>, oauth: OAuthConfig },
}

/// An OAuth login as it is stored in a `TokenStore`.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct StoredLogin {
    /// The URL of the server that the login was for. Another server never gets these tokens, even
    /// if it has the same name.
    pub(crate) server: String,
    pub(crate) credentials: StoredCredentials,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) client_secret: Option<String>,
    /// The URL that the browser was redirected to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) redirect_url: Option<String>,
}

/// The OAuth client of a login.
#[derive(Clone, Default)]
pub(crate) struct OAuthClientCredentials {
    pub(crate) id: String,
    pub(crate) secret: Option<String>,
    pub(crate) redirect_url: Option<String>,
}

/// A `CredentialStore` for `rmcp` on top of a `TokenStore`.
#[derive(Clone)]
pub(crate) struct OAuthCredentialStore {
    server: String,
    store: Arc<dyn TokenStore>,
    client: Arc<Mutex<Option<OAuthClientCredentials>>>,
}

impl OAuthCredentialStore {
    pub(crate) fn new(server: &str, store: &Arc<dyn TokenStore>) -> OAuthCredentialStore {
        OAuthCredentialStore {
            server: server.to_owned(),
            store: Arc::clone(store),
            client: Arc::default(),
        }
    }

    /// Sets the client that later saves store with the tokens.
    pub(crate) async fn set_client(&self, client: OAuthClientCredentials) {
        *self.client.lock().await = Some(client);
    }

    /// Returns the `StoredLogin` for this server. A text that cannot be parsed counts as none: a
    /// new login replaces it.
    pub(crate) async fn load_login(&self) -> Result<Option<StoredLogin>, AuthError> {
        let text = self.store.load().await.map_err(AuthError::CredentialStoreError)?;
        let stored_login: Option<StoredLogin> =
            text.and_then(|text| serde_json::from_str(text.expose_secret()).ok());
        Ok(stored_login.filter(|stored_login| stored_login.server == self.server))
    }

    /// Prepares an `AuthorizationManager` with the stored tokens, which it refreshes when needed;
    /// `None` if a login is required first.
    pub(crate) async fn authorization_manager(
        &self,
        mut manager: AuthorizationManager,
        oauth: &OAuthConfig,
    ) -> Result<Option<AuthorizationManager>, AuthError> {
        let Some(stored_login) = self.load_login().await? else { return Ok(None) };
        manager.set_credential_store(self.clone());
        if !manager.initialize_from_store().await? {
            return Ok(None);
        }
        let is_configured = oauth.client_id.as_ref() == Some(&stored_login.credentials.client_id);
        let configured_secret = oauth.client_secret.as_ref().filter(|_| is_configured);
        let secret = configured_secret
            .map(|secret| secret.expose_secret().to_owned())
            .or(stored_login.client_secret);
        let redirect =
            stored_login.redirect_url.unwrap_or_else(|| "http://127.0.0.1/callback".into());
        let mut client =
            OAuthClientConfig::new(stored_login.credentials.client_id.clone(), redirect.clone());
        if let Some(secret) = &secret {
            client = client.with_client_secret(secret.clone());
        }
        manager.configure_client(client)?;
        let id = stored_login.credentials.client_id;
        self.set_client(OAuthClientCredentials { id, secret, redirect_url: Some(redirect) }).await;
        Ok(Some(manager))
    }
}

#[async_trait]
impl CredentialStore for OAuthCredentialStore {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        Ok(self.load_login().await?.map(|stored_login| stored_login.credentials))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let client = self.client.lock().await.clone();
        let client = client.filter(|client| client.id == credentials.client_id);
        let client = client.unwrap_or_default();
        let OAuthClientCredentials { secret: client_secret, redirect_url, .. } = client;
        let stored_login =
            StoredLogin { server: self.server.clone(), credentials, client_secret, redirect_url };
        let text = serde_json::to_string(&stored_login)
            .map_err(|error| AuthError::CredentialStoreError(error.to_string()))?;
        self.store.save(text.into()).await.map_err(AuthError::CredentialStoreError)
    }

    async fn clear(&self) -> Result<(), AuthError> {
        self.store.clear().await.map_err(AuthError::CredentialStoreError)
    }

    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        let guard = self.store.lock_refresh().await.map_err(AuthError::CredentialStoreError)?;
        Ok(Some(CredentialRefreshGuard::new(guard)))
    }
}
