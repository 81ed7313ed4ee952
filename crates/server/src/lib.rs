//! HTTP API of a session host, and its client.
//!
//! Every front end reaches a host through [`FrontendService`]: the sessions of this process
//! implement it, and so does [`RemoteHost`], the client of a server. The crate keeps the invariant
//! that no route exists without a right. Start reading at [`FrontendService`], then at
//! [`routes::all_routes`].

mod access_log;
mod access_tokens;
mod client;
mod event_stream;
mod http_server;
mod limits;
mod metrics;
mod openapi;
mod request_checks;
pub mod routes;
mod server_messages;

pub use access_log::AccessLogEntry;
pub use access_tokens::{
    AccessToken, AccessTokenStore, AccessTokens, LOGIN_CODE_VALIDITY_MS, PAGE_VALIDITY_MS,
    TOKEN_PREFIX, TeamToken, TokenError, TokenIdentity, TokenKind, TokenRegistry, is_token_name,
    token_digest, token_text,
};
pub use client::{RemoteHost, ServerAddress, decode_session_stream};
pub use http_server::{
    ApiServer, ServerConfig, SocketEndpoint, TcpEndpoint, TcpSecurity, TlsError, TlsIdentity,
};
pub use openapi::openapi_document;
pub use server_messages::{
    LoginCode, NewTokenRequest, NewTokenSecret, PageLoginRequest, ServerInfo, TokenList, TokenRow,
    WIRE_REVISION,
};

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};
use windlass_protocol::session_stream::{HostStreamItem, SessionStreamItem};
use windlass_protocol::{AccessRight, ClientInfo, EventCursor, RequestError, SessionId};

/// A client and what it may do, for one request.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The client, as facts and other clients name it.
    pub client: ClientInfo,
    /// The rights of the client.
    pub right: AccessRight,
    /// Folder that the request is about, if it names no session; the first root if absent.
    pub workspace: Option<String>,
    /// True if another node of the fleet sends the request, and has checked what the client may
    /// attach.
    pub through_node: bool,
    /// The tenant of the fleet that the client belongs to; `None` for the server's own clients.
    pub tenant: Option<String>,
}

impl Caller {
    /// Returns one of the server's own clients, whose requests are about the first root.
    pub fn new(client: ClientInfo, right: AccessRight) -> Caller {
        Caller { client, right, workspace: None, through_node: false, tenant: None }
    }
}

/// The part of a session's events that a client watches.
#[derive(Clone, Debug, Default)]
pub struct WatchOptions {
    /// Events after this cursor; those from now on if absent.
    pub after: Option<EventCursor>,
    /// The user of the client, for as long as the stream lasts.
    pub user: ClientAttendance,
    /// True to get facts only.
    pub without_live_events: bool,
}

/// A statement of a client about its user, who answers questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientAttendance {
    /// Nothing: the client only watches.
    #[default]
    Unknown,
    /// A user is present.
    Present,
    /// The client waits for the session and has no user to answer. Questions are declined while no
    /// client has a user.
    Absent,
}

/// Answers requests of front ends, and lets them watch sessions.
#[async_trait]
pub trait FrontendService: Send + Sync {
    /// Answers a request. Every request is answered once; a failed one has no effects.
    async fn request(
        &self,
        caller: &Caller,
        request: FrontendRequest,
    ) -> Result<HostResponse, RequestError>;

    /// Watches a session. The stream starts with [`SessionStreamItem::Opened`].
    async fn watch_session(
        &self,
        caller: &Caller,
        session: SessionId,
        options: WatchOptions,
    ) -> Result<BoxStream<'static, SessionStreamItem>, RequestError>;

    /// Watches the host: first the state of each open session, then all changes.
    async fn watch_host(
        &self,
        caller: &Caller,
    ) -> Result<BoxStream<'static, HostStreamItem>, RequestError>;
}
