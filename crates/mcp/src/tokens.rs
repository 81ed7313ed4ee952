//! What a login left: tokens, and the client they were given to. Whoever uses the crate keeps them, as one
//! secret a server; here they become what the protocol's library wants to find and to save.
//!
//! The library forgets a client's secret between two runs, so it is kept beside the tokens: without it a
//! token could not be made fresh after a restart.

use async_trait::async_trait;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, CredentialRefreshGuard, CredentialStore, OAuthClientConfig,
    StoredCredentials,
};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tokio::sync::Mutex;

/// Where the tokens of one server are kept. What goes wrong is said in a sentence.
#[async_trait]
pub trait Tokens: Send + Sync {
    /// What was kept last.
    async fn load(&self) -> Result<Option<SecretString>, String>;
    /// Keeps a text in the place of the last one.
    async fn save(&self, text: SecretString) -> Result<(), String>;
    /// Forgets it.
    async fn clear(&self) -> Result<(), String>;
    /// Holds off everybody else, of any process, who would make the tokens fresh, until it is dropped.
    async fn guard(&self) -> Result<Box<dyn Send>, String>;
}

/// How to log in to a server.
#[derive(Clone, Debug, Default)]
pub struct OAuth {
    /// The client's name, if the server gave one. An address is a client that describes itself there.
    pub client_id: Option<String>,
    /// Its secret.
    pub client_secret: Option<SecretString>,
    /// What to ask for.
    pub scope: Option<String>,
    /// The port of this machine that the browser comes back to.
    pub callback_port: Option<u16>,
}

/// What a server is shown of who asks.
#[derive(Clone)]
pub enum Auth {
    /// Nothing.
    None,
    /// What a login gave.
    Tokens {
        /// Where it is kept.
        store: Arc<dyn Tokens>,
        /// How the login is done.
        oauth: OAuth,
    },
}

/// What is kept.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// The server the login was for. Another one never sees what it gave, whatever its name.
    pub(crate) server: String,
    pub(crate) credentials: StoredCredentials,
    /// The client's secret, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) client_secret: Option<String>,
    /// The address the browser came back to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) redirect: Option<String>,
}

/// The client that is logging in.
#[derive(Clone, Default)]
pub(crate) struct Client {
    pub(crate) id: String,
    pub(crate) secret: Option<String>,
    pub(crate) redirect: Option<String>,
}

/// The tokens as the library wants them.
#[derive(Clone)]
pub(crate) struct Purse {
    server: String,
    store: Arc<dyn Tokens>,
    client: Arc<Mutex<Option<Client>>>,
}

impl Purse {
    pub(crate) fn new(server: &str, store: &Arc<dyn Tokens>) -> Purse {
        Purse { server: server.to_owned(), store: Arc::clone(store), client: Arc::default() }
    }

    /// Remembers who logs in, for what is saved from now on.
    pub(crate) async fn is_for(&self, client: Client) {
        *self.client.lock().await = Some(client);
    }

    /// What is kept for this server. A text that cannot be read is as good as none: a new login
    /// replaces it.
    pub(crate) async fn kept(&self) -> Result<Option<Kept>, AuthError> {
        let text = self.store.load().await.map_err(AuthError::CredentialStoreError)?;
        let kept: Option<Kept> =
            text.and_then(|text| serde_json::from_str(text.expose_secret()).ok());
        Ok(kept.filter(|kept| kept.server == self.server))
    }

    /// A manager that knows what was kept, and makes it fresh when that is needed; none if a login
    /// is needed first.
    pub(crate) async fn manager(
        &self,
        mut manager: AuthorizationManager,
        oauth: &OAuth,
    ) -> Result<Option<AuthorizationManager>, AuthError> {
        let Some(kept) = self.kept().await? else { return Ok(None) };
        manager.set_credential_store(self.clone());
        if !manager.initialize_from_store().await? {
            return Ok(None);
        }
        let own = oauth.client_id.as_ref() == Some(&kept.credentials.client_id);
        let told = oauth.client_secret.as_ref().filter(|_| own);
        let secret = told.map(|secret| secret.expose_secret().to_owned()).or(kept.client_secret);
        let redirect = kept.redirect.unwrap_or_else(|| "http://127.0.0.1/callback".into());
        let mut client =
            OAuthClientConfig::new(kept.credentials.client_id.clone(), redirect.clone());
        if let Some(secret) = &secret {
            client = client.with_client_secret(secret.clone());
        }
        manager.configure_client(client)?;
        let id = kept.credentials.client_id;
        self.is_for(Client { id, secret, redirect: Some(redirect) }).await;
        Ok(Some(manager))
    }
}

#[async_trait]
impl CredentialStore for Purse {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        Ok(self.kept().await?.map(|kept| kept.credentials))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let client = self.client.lock().await.clone();
        let client = client.filter(|client| client.id == credentials.client_id);
        let client = client.unwrap_or_default();
        let Client { secret: client_secret, redirect, .. } = client;
        let kept = Kept { server: self.server.clone(), credentials, client_secret, redirect };
        let text = serde_json::to_string(&kept)
            .map_err(|error| AuthError::CredentialStoreError(error.to_string()))?;
        self.store.save(text.into()).await.map_err(AuthError::CredentialStoreError)
    }

    async fn clear(&self) -> Result<(), AuthError> {
        self.store.clear().await.map_err(AuthError::CredentialStoreError)
    }

    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        let guard = self.store.guard().await.map_err(AuthError::CredentialStoreError)?;
        Ok(Some(CredentialRefreshGuard::new(guard)))
    }
}
