//! An HTTP client with OAuth: requests carry a token once there is one, and it is refreshed when
//! needed. Without a token the request is sent anyway, and the server says what it requires.

use super::address_policy::AddressPolicy;
use super::client::McpHttpClient;
use super::error::HttpTransportError;
use crate::oauth::tokens::{McpAuth, OAuthConfig, OAuthCredentialStore};
use futures_util::stream::BoxStream;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::auth::{AuthClient, AuthError, AuthorizationManager};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::OnceCell;

type AuthorizedClientError = StreamableHttpError<HttpTransportError>;
type AuthorizedHeaders = HashMap<HeaderName, HeaderValue>;
type AuthorizedEvents = BoxStream<'static, Result<Sse, SseError>>;

/// An `McpHttpClient` with an optional login.
#[derive(Clone)]
pub(super) struct OAuthHttpClient {
    http: McpHttpClient,
    login: Option<Arc<OAuthClientState>>,
}

struct OAuthClientState {
    url: String,
    address_policy: AddressPolicy,
    credentials: OAuthCredentialStore,
    config: OAuthConfig,
    /// The client with tokens, once a login was found.
    client: OnceCell<AuthClient<McpHttpClient>>,
}

/// Creates an `AuthorizationManager` for a server. A server that the user chose may use private
/// addresses, such as a company network; a project's server may not.
pub(crate) async fn authorization_manager(
    address_policy: AddressPolicy,
    url: &str,
) -> Result<AuthorizationManager, AuthError> {
    match address_policy {
        AddressPolicy::Anywhere => AuthorizationManager::new_allowing_private_addresses(url).await,
        AddressPolicy::PublicOnly => AuthorizationManager::new(url).await,
    }
}

impl OAuthHttpClient {
    pub(super) fn new(
        http: McpHttpClient,
        address_policy: AddressPolicy,
        url: &str,
        auth: McpAuth,
    ) -> OAuthHttpClient {
        let login = match auth {
            McpAuth::None => None,
            McpAuth::OAuth { store, oauth } => Some(Arc::new(OAuthClientState {
                url: url.to_owned(),
                address_policy,
                credentials: OAuthCredentialStore::new(url, &store),
                config: oauth,
                client: OnceCell::new(),
            })),
        };
        OAuthHttpClient { http, login }
    }

    /// Returns the `AuthClient` with tokens, if a login is stored.
    async fn authorized_client(
        &self,
    ) -> Result<Option<AuthClient<McpHttpClient>>, AuthorizedClientError> {
        let Some(login) = &self.login else { return Ok(None) };
        if let Some(client) = login.client.get() {
            return Ok(Some(client.clone()));
        }
        // Most servers require no login; without a stored one, nothing is requested.
        if login.credentials.load_login().await?.is_none() {
            return Ok(None);
        }
        let manager = authorization_manager(login.address_policy, &login.url).await?;
        let Some(manager) = login.credentials.authorization_manager(manager, &login.config).await?
        else {
            return Ok(None);
        };
        let client =
            login.client.get_or_init(|| async { AuthClient::new(self.http.clone(), manager) });
        Ok(Some(client.await.clone()))
    }
}

impl StreamableHttpClient for OAuthHttpClient {
    type Error = HttpTransportError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: AuthorizedHeaders,
    ) -> Result<StreamableHttpPostResponse, AuthorizedClientError> {
        match self.authorized_client().await? {
            Some(client) => client.post_message(uri, message, session, token, headers).await,
            None => self.http.post_message(uri, message, session, token, headers).await,
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: AuthorizedHeaders,
    ) -> Result<(), AuthorizedClientError> {
        match self.authorized_client().await? {
            Some(client) => client.delete_session(uri, session, token, headers).await,
            None => self.http.delete_session(uri, session, token, headers).await,
        }
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event_id: Option<String>,
        token: Option<String>,
        headers: AuthorizedHeaders,
    ) -> Result<AuthorizedEvents, AuthorizedClientError> {
        match self.authorized_client().await? {
            Some(client) => client.get_stream(uri, session, last_event_id, token, headers).await,
            None => self.http.get_stream(uri, session, last_event_id, token, headers).await,
        }
    }
}
