//! Stores OAuth tokens of MCP servers in the key store, under `mcp:NAME`.

use async_trait::async_trait;
use secrecy::SecretString;
use std::sync::Arc;
use windlass_mcp::{McpAuth, OAuthConfig, TokenStore};
use windlass_project::{ApiKeyStore, Dirs, ProjectError};

/// Prefix of token entries in the key store.
pub(crate) const KEY_NAME_PREFIX: &str = "mcp:";

/// Returns the [`McpAuth`] for a server.
pub(crate) fn server_auth(
    dirs: &Dirs,
    server: &str,
    oauth: &windlass_project::McpOAuthConfig,
) -> McpAuth {
    McpAuth::OAuth { store: token_store(dirs, server), oauth: oauth_config(oauth) }
}

/// Returns the [`TokenStore`] of a server.
pub(crate) fn token_store(dirs: &Dirs, server: &str) -> Arc<dyn TokenStore> {
    Arc::new(McpTokenStore { dirs: dirs.clone(), name: format!("{KEY_NAME_PREFIX}{server}") })
}

/// Converts the `oauth` settings in the config for `windlass_mcp`.
pub(crate) fn oauth_config(oauth: &windlass_project::McpOAuthConfig) -> OAuthConfig {
    OAuthConfig {
        client_id: oauth.client_id.clone(),
        client_secret: oauth.client_secret.clone(),
        scope: oauth.scope.clone(),
        callback_port: oauth.callback_port,
    }
}

struct McpTokenStore {
    dirs: Dirs,
    name: String,
}

impl McpTokenStore {
    /// Runs key store work on a blocking thread: the keyring may prompt the user, and a lock may
    /// take time; neither may block other tasks.
    async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Dirs, &str) -> Result<T, ProjectError> + Send + 'static,
    ) -> Result<T, String> {
        let (dirs, name) = (self.dirs.clone(), self.name.clone());
        let result = tokio::task::spawn_blocking(move || work(&dirs, &name)).await;
        result.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
    }
}

#[async_trait]
impl TokenStore for McpTokenStore {
    async fn load(&self) -> Result<Option<SecretString>, String> {
        self.run_blocking(|dirs, name| Ok(ApiKeyStore::open(dirs).get(name)?.map(|(key, _)| key)))
            .await
    }

    async fn save(&self, text: SecretString) -> Result<(), String> {
        self.run_blocking(move |dirs, name| ApiKeyStore::open(dirs).set(name, &text).map(|_| ()))
            .await
    }

    async fn clear(&self) -> Result<(), String> {
        self.run_blocking(|dirs, name| ApiKeyStore::open(dirs).remove(name).map(|_| ())).await
    }

    async fn lock_refresh(&self) -> Result<Box<dyn Send>, String> {
        let lock = self.run_blocking(ApiKeyStore::lock).await?;
        Ok(Box::new(lock))
    }
}
