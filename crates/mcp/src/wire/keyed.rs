//! The client with a login in front of it: a token goes with each request once there is one, and is made
//! fresh when it has to be. Without one the request goes without, and the server says what it wants.

use super::client::{Fault, Wire};
use super::reach::Reach;
use crate::tokens::{Auth, OAuth, Purse};
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

type Error = StreamableHttpError<Fault>;
type Headers = HashMap<HeaderName, HeaderValue>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

/// A client that may have a login.
#[derive(Clone)]
pub(super) struct Keyed {
    wire: Wire,
    login: Option<Arc<Login>>,
}

struct Login {
    url: String,
    reach: Reach,
    purse: Purse,
    oauth: OAuth,
    /// The client with tokens, once some were found.
    client: OnceCell<AuthClient<Wire>>,
}

/// A manager for a server. Whoever chose the server chose a company's network with it; a project
/// chooses none.
pub(crate) async fn manager(reach: Reach, url: &str) -> Result<AuthorizationManager, AuthError> {
    match reach {
        Reach::Anywhere => AuthorizationManager::new_allowing_private_addresses(url).await,
        Reach::Public => AuthorizationManager::new(url).await,
    }
}

impl Keyed {
    pub(super) fn new(wire: Wire, reach: Reach, url: &str, auth: Auth) -> Keyed {
        let login = match auth {
            Auth::None => None,
            Auth::Tokens { store, oauth } => Some(Arc::new(Login {
                url: url.to_owned(),
                reach,
                purse: Purse::new(url, &store),
                oauth,
                client: OnceCell::new(),
            })),
        };
        Keyed { wire, login }
    }

    /// The client with tokens, if there are any.
    async fn client(&self) -> Result<Option<AuthClient<Wire>>, Error> {
        let Some(login) = &self.login else { return Ok(None) };
        if let Some(client) = login.client.get() {
            return Ok(Some(client.clone()));
        }
        // Most servers want none; nothing is asked for a login that nobody did.
        if login.purse.kept().await?.is_none() {
            return Ok(None);
        }
        let manager = manager(login.reach, &login.url).await?;
        let Some(manager) = login.purse.manager(manager, &login.oauth).await? else {
            return Ok(None);
        };
        let made =
            login.client.get_or_init(|| async { AuthClient::new(self.wire.clone(), manager) });
        Ok(Some(made.await.clone()))
    }
}

impl StreamableHttpClient for Keyed {
    type Error = Fault;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Error> {
        match self.client().await? {
            Some(client) => client.post_message(uri, message, session, token, headers).await,
            None => self.wire.post_message(uri, message, session, token, headers).await,
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), Error> {
        match self.client().await? {
            Some(client) => client.delete_session(uri, session, token, headers).await,
            None => self.wire.delete_session(uri, session, token, headers).await,
        }
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<Events, Error> {
        match self.client().await? {
            Some(client) => client.get_stream(uri, session, last, token, headers).await,
            None => self.wire.get_stream(uri, session, last, token, headers).await,
        }
    }
}
