//! What logins to servers gave, in the key store: `mcp:NAME`.

use async_trait::async_trait;
use secrecy::SecretString;
use std::sync::Arc;
use windlass_mcp::{Auth, OAuth, Tokens};
use windlass_project::{Error, Keys, Places};

/// What the names of such keys begin with.
pub(crate) const PREFIX: &str = "mcp:";

/// How a server is logged in to.
pub(crate) fn auth(places: &Places, server: &str, oauth: &windlass_project::OAuth) -> Auth {
    Auth::Tokens { store: store(places, server), oauth: login(oauth) }
}

/// Where what a login to a server gave is kept.
pub(crate) fn store(places: &Places, server: &str) -> Arc<dyn Tokens> {
    Arc::new(Drawer { places: places.clone(), name: format!("{PREFIX}{server}") })
}

/// How to log in, as the config says.
pub(crate) fn login(oauth: &windlass_project::OAuth) -> OAuth {
    OAuth {
        client_id: oauth.client_id.clone(),
        client_secret: oauth.client_secret.clone(),
        scope: oauth.scope.clone(),
        callback_port: oauth.callback_port,
    }
}

struct Drawer {
    places: Places,
    name: String,
}

impl Drawer {
    /// The keyring may ask the person something, and a lock may have to be waited for; neither keeps
    /// anybody else from working.
    async fn apart<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Places, &str) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, String> {
        let (places, name) = (self.places.clone(), self.name.clone());
        let done = tokio::task::spawn_blocking(move || work(&places, &name)).await;
        done.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
    }
}

#[async_trait]
impl Tokens for Drawer {
    async fn load(&self) -> Result<Option<SecretString>, String> {
        self.apart(|places, name| Ok(Keys::open(places).get(name)?.map(|(key, _)| key))).await
    }

    async fn save(&self, text: SecretString) -> Result<(), String> {
        self.apart(move |places, name| Keys::open(places).set(name, &text).map(|_| ())).await
    }

    async fn clear(&self) -> Result<(), String> {
        self.apart(|places, name| Keys::open(places).remove(name).map(|_| ())).await
    }

    async fn guard(&self) -> Result<Box<dyn Send>, String> {
        let held = self.apart(Keys::hold).await?;
        Ok(Box::new(held))
    }
}
