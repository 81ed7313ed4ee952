//! Checks of every request before it reaches a route, and the identification of its client.
//!
//! A request over TCP must name this server as its host and come from no other web site, even with
//! a token; then it needs a token. A request over the socket comes from our own user, whom the
//! acceptor has checked. Start reading at [`check_request`], then [`authenticate`].

use crate::access_tokens::{TokenDigest, TokenIdentity, TokenKind, TokenRegistry};
use crate::routes::invalid;
use axum::http::header::{self, HeaderMap, HeaderName};
use axum::http::{Method, StatusCode, request};
use std::collections::HashSet;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use url::form_urlencoded;
use windlass_protocol::{AccessRight, ClientKind, RequestError, UnixMillis};

/// Maximum size of the head of a request: long cursors and cookies fit.
pub(crate) const MAX_HEAD_BYTES: usize = 16 << 10;
/// Header that names the kind of the client.
pub(crate) const CLIENT_HEADER: HeaderName = HeaderName::from_static("windlass-client");
/// Headers with the name, the right and the tenant of a client for whom another node sends a request.
pub(crate) const NODE_USER_HEADER: HeaderName = HeaderName::from_static("windlass-node-user");
pub(crate) const NODE_RIGHT_HEADER: HeaderName = HeaderName::from_static("windlass-node-right");
pub(crate) const NODE_TENANT_HEADER: HeaderName = HeaderName::from_static("windlass-node-tenant");
/// Header that only our own page sets, as a form of another site cannot.
const PAGE_HEADER: HeaderName = HeaderName::from_static("x-windlass");
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The way by which a connection reached the server.
#[derive(Clone)]
pub(crate) enum Transport {
    /// TCP, open to everything on this machine or beyond.
    Tcp(Arc<AllowedHosts>),
    /// The Unix socket, whose other end is our own user.
    #[cfg_attr(not(unix), allow(dead_code, reason = "this system has no Unix sockets"))]
    Socket,
}

/// The hosts and origins that requests may name.
pub(crate) struct AllowedHosts {
    hosts: HashSet<String>,
    origins: HashSet<String>,
    /// Scheme that clients use.
    pub(crate) scheme: Scheme,
}

/// Scheme of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

impl AllowedHosts {
    /// Allows the loopback names with a port, and extra names such as that of a reverse proxy.
    pub(crate) fn new(port: u16, extra_names: &[String], scheme: Scheme) -> AllowedHosts {
        let (name, default_port) = match scheme {
            Scheme::Http => ("http", 80),
            Scheme::Https => ("https", 443),
        };
        let (mut hosts, mut origins) = (HashSet::new(), HashSet::new());
        let mut allow = |host: String, schemes: &[&str]| {
            origins.extend(schemes.iter().map(|scheme| format!("{scheme}://{host}")));
            hosts.insert(host);
        };
        for loopback in ["127.0.0.1", "localhost", "[::1]"] {
            allow(format!("{loopback}:{port}"), &[name]);
            if port == default_port {
                allow(loopback.to_owned(), &[name]);
            }
        }
        for extra in extra_names {
            let extra = extra.to_ascii_lowercase();
            // A proxy in front may add TLS.
            allow(extra.clone(), &["http", "https"]);
            allow(format!("{extra}:{port}"), &["http", "https"]);
        }
        AllowedHosts { hosts, origins, scheme }
    }

    fn is_host_allowed(&self, host: &str) -> bool {
        self.hosts.contains(&host.to_ascii_lowercase())
    }

    fn is_origin_allowed(&self, origin: &str) -> bool {
        self.origins.contains(&origin.to_ascii_lowercase())
    }

    /// Name of the cookie of a page. Browsers accept the prefix only with TLS.
    pub(crate) fn cookie_name(&self) -> &'static str {
        match self.scheme {
            Scheme::Http => "windlass",
            Scheme::Https => "__Host-windlass",
        }
    }
}

/// The reason why a request does not reach a route, or fails there.
#[derive(Debug)]
pub(crate) struct Rejection {
    /// Status of the answer.
    pub(crate) status: StatusCode,
    /// Body of the answer.
    pub(crate) error: RequestError,
    /// Name of the reason, for the access log.
    pub(crate) reason: &'static str,
    /// Methods that the path has, for the status 405.
    pub(crate) allowed_methods: Option<String>,
}

impl Rejection {
    pub(crate) fn new(status: StatusCode, reason: &'static str, text: &str) -> Rejection {
        Rejection { status, error: invalid(text), reason, allowed_methods: None }
    }
}

/// Refuses requests that come from a web site, name another host or are not plain HTTP.
pub(crate) fn check_request(
    transport: &Transport,
    parts: &request::Parts,
) -> Result<(), Rejection> {
    let forbidden = |reason, text| Err(Rejection::new(StatusCode::FORBIDDEN, reason, text));
    let other_site = "Web pages of other sites may not use this server.";
    if head_bytes(parts) > MAX_HEAD_BYTES {
        let text = "The head of the request is too long; at most 16 KiB are allowed.";
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        return Err(Rejection::new(status, "long_head", text));
    }
    if parts.method == Method::OPTIONS {
        return forbidden("preflight", other_site);
    }
    if parts.headers.contains_key(header::UPGRADE) || parts.method == Method::CONNECT {
        let text = "This server has no other protocols. Remove the header `Upgrade`.";
        return forbidden("upgrade", text);
    }
    let allowed = match transport {
        Transport::Tcp(allowed) => allowed,
        Transport::Socket if parts.headers.contains_key(header::ORIGIN) => {
            return forbidden("foreign_origin", "Web pages may not use the socket.");
        }
        Transport::Socket => return Ok(()),
    };
    let is_named = |host: &str| allowed.is_host_allowed(host);
    let host = single_value(&parts.headers, &header::HOST);
    let authority = parts.uri.authority().map(|authority| authority.as_str());
    if !host.is_some_and(is_named) || !authority.is_none_or(is_named) {
        let text = "The host name is unknown. Start the server with `--host NAME`.";
        return forbidden("foreign_host", text);
    }
    if parts.headers.contains_key(header::ORIGIN) && !has_allowed_origin(allowed, &parts.headers) {
        return forbidden("foreign_origin", other_site);
    }
    let is_same_site = match parts.headers.contains_key(&SEC_FETCH_SITE) {
        true => {
            let site = single_value(&parts.headers, &SEC_FETCH_SITE);
            site.is_some_and(|site| site == "same-origin" || site == "none")
        }
        false => true,
    };
    match is_same_site {
        true => Ok(()),
        false => forbidden("cross_site", other_site),
    }
}

/// Returns the approximate size of the head on the wire.
fn head_bytes(parts: &request::Parts) -> usize {
    let target = parts.uri.path_and_query().map_or(1, |target| target.as_str().len());
    let headers = parts.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    target + headers.sum::<usize>()
}

/// Returns the value of a header that is there once.
pub(crate) fn single_value<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        (Some(_), Some(_)) | (None, _) => None,
    }
}

fn has_allowed_origin(allowed: &AllowedHosts, headers: &HeaderMap) -> bool {
    let origin = single_value(headers, &header::ORIGIN);
    origin.is_some_and(|origin| allowed.is_origin_allowed(origin))
}

/// The client of a request.
#[derive(Clone, Debug)]
pub(crate) struct ClientIdentity {
    /// Name of the token or of the user: what limits count by.
    pub(crate) name: String,
    /// Name of the client, as others see it.
    pub(crate) user: String,
    /// Tenant of the client, if it is one of a fleet.
    pub(crate) tenant: Option<String>,
    /// Right of the client.
    pub(crate) right: AccessRight,
    /// Kind of the client.
    pub(crate) kind: ClientKind,
    /// Cancelled when the token is revoked.
    pub(crate) revoked: CancellationToken,
    /// Time after which the token is not valid.
    pub(crate) expires_at: Option<UnixMillis>,
    /// True if another node of the fleet sends the request.
    pub(crate) through_node: bool,
}

/// Identifies the client of a request by its token, its cookie or the socket.
pub(crate) fn authenticate(
    transport: &Transport,
    headers: &HeaderMap,
    (tokens, node_token): (&TokenRegistry, Option<&TokenDigest>),
    user_name: &str,
    now: UnixMillis,
) -> Result<ClientIdentity, RequestError> {
    let allowed = match transport {
        Transport::Tcp(allowed) => allowed,
        Transport::Socket => {
            return Ok(ClientIdentity {
                name: user_name.to_owned(),
                user: user_name.to_owned(),
                tenant: None,
                right: AccessRight::Admin,
                kind: client_kind(headers, ClientKind::Program),
                revoked: CancellationToken::new(),
                expires_at: None,
                through_node: false,
            });
        }
    };
    if let Some(expected) = node_token
        && let Some(bearer) = single_value(headers, &header::AUTHORIZATION).and_then(bearer_token)
        && TokenDigest::of(bearer).equals(expected)
    {
        return client_of_node(headers);
    }
    let (identity, default_kind) = if headers.contains_key(header::AUTHORIZATION) {
        let bearer = single_value(headers, &header::AUTHORIZATION).and_then(bearer_token);
        let identity = bearer.and_then(|text| tokens.authenticate(text, TokenKind::Bearer, now));
        (identity, ClientKind::Program)
    } else if is_from_page(allowed, headers) {
        let cookie = page_cookie(allowed, headers);
        let identity = cookie.and_then(|text| tokens.authenticate(text, TokenKind::Page, now));
        (identity, ClientKind::WebPage)
    } else {
        (None, ClientKind::Program)
    };
    let TokenIdentity { name, user, tenant, right, revoked, expires_at } =
        identity.ok_or(RequestError::Unauthorized)?;
    let (kind, through_node) = (client_kind(headers, default_kind), false);
    Ok(ClientIdentity { name, user, tenant, right, kind, revoked, expires_at, through_node })
}

/// Returns the client for whom another node of the fleet sends a request.
fn client_of_node(headers: &HeaderMap) -> Result<ClientIdentity, RequestError> {
    let incomplete = || invalid("The request of a node does not name its client.");
    let name = single_value(headers, &NODE_USER_HEADER).ok_or_else(incomplete)?;
    let right = single_value(headers, &NODE_RIGHT_HEADER).and_then(parse_right);
    let user = form_urlencoded::parse(name.as_bytes()).next();
    let user = user.map(|(user, _)| user.into_owned()).unwrap_or_default();
    let tenant = match headers.contains_key(&NODE_TENANT_HEADER) {
        true => Some(single_value(headers, &NODE_TENANT_HEADER).ok_or_else(incomplete)?.to_owned()),
        false => None,
    };
    Ok(ClientIdentity {
        name: format!("{}/{user}", tenant.as_deref().unwrap_or_default()),
        user,
        tenant,
        right: right.ok_or_else(incomplete)?,
        kind: client_kind(headers, ClientKind::Program),
        revoked: CancellationToken::new(),
        expires_at: None,
        through_node: true,
    })
}

fn parse_right(text: &str) -> Option<AccessRight> {
    let rights = [AccessRight::Read, AccessRight::Write, AccessRight::Admin];
    rights.into_iter().find(|right| right.to_string() == text)
}

/// Returns the token of an `Authorization` header.
fn bearer_token(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Returns true if a script of our own page sent the request, so that its cookie counts.
fn is_from_page(allowed: &AllowedHosts, headers: &HeaderMap) -> bool {
    let is_same_origin = has_allowed_origin(allowed, headers)
        || single_value(headers, &SEC_FETCH_SITE) == Some("same-origin");
    is_same_origin && single_value(headers, &PAGE_HEADER) == Some("page")
}

/// Returns the value of our cookie.
pub(crate) fn page_cookie<'a>(allowed: &AllowedHosts, headers: &'a HeaderMap) -> Option<&'a str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|value| value.split(';'));
    pairs.find_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        (name == allowed.cookie_name()).then_some(value)
    })
}

/// Returns the kind of a client, which it states itself.
fn client_kind(headers: &HeaderMap, default: ClientKind) -> ClientKind {
    match single_value(headers, &CLIENT_HEADER) {
        Some("terminal") => ClientKind::Terminal,
        Some("command_line") => ClientKind::CommandLine,
        Some("web_page") => ClientKind::WebPage,
        Some("editor") => ClientKind::Editor,
        Some("program") => ClientKind::Program,
        Some(_) | None => default,
    }
}

/// Returns the name of a kind of client in [`CLIENT_HEADER`].
pub(crate) fn client_kind_name(kind: ClientKind) -> &'static str {
    match kind {
        ClientKind::Terminal => "terminal",
        ClientKind::CommandLine => "command_line",
        ClientKind::WebPage => "web_page",
        ClientKind::Editor => "editor",
        ClientKind::Program => "program",
    }
}
