//! Routes that the server itself answers: its version, tokens, logins and metrics.

use super::responses::{body_response, empty_response, server_response};
use super::served_request::ServedRequest;
use crate::access_tokens::LOGIN_CODE_VALIDITY_MS;
use crate::metrics::OPEN_METRICS;
use crate::openapi::openapi_document;
use crate::request_checks::{AllowedHosts, Rejection, Scheme, Transport};
use crate::routes::{ServerRoute, parse_json};
use crate::server_messages::{
    LoginCode, NewTokenRequest, NewTokenSecret, PageLoginRequest, ServerInfo, TokenList,
    WIRE_REVISION,
};
use axum::body::Body;
use axum::http::header::{self, HeaderValue};
use axum::http::{Response, StatusCode};
use windlass_protocol::{AccessRight, RequestError};

/// Right of pages: what leaves the sandbox stays with the user at the machine.
const PAGE_RIGHT: AccessRight = AccessRight::Write;
/// Validity of a page's cookie in the browser, in seconds: the server ends it after 30 days without
/// use, and a browser keeps no cookie longer than 400 days.
const COOKIE_SECONDS: u64 = 400 * 24 * 60 * 60;

/// Answers a request that no host answers.
pub(super) fn answer_server_route(
    server_route: ServerRoute,
    served: &ServedRequest,
    body: &[u8],
) -> Result<Response<Body>, Rejection> {
    let server = &served.connection.server;
    let config = &server.config;
    let now = (config.clock)();
    match server_route {
        ServerRoute::Health if served.headers.contains_key(header::ORIGIN) => {
            let text = "Web pages may not use this path.";
            Err(Rejection::new(StatusCode::FORBIDDEN, "foreign_origin", text))
        }
        ServerRoute::Health => Ok(empty_response()),
        ServerRoute::PageLogin => {
            let request: PageLoginRequest = parse_json(body)?;
            let secret = server.random()?;
            let token = config.tokens.redeem_login_code(&request.code, secret, now)?;
            Ok(with_cookie(empty_response(), served, &token, COOKIE_SECONDS))
        }
        ServerRoute::PageLogout => {
            let client = served.known_client()?;
            let is_page = config.tokens.rows().iter().any(|row| row.is_page && row.name == client);
            if is_page {
                config.tokens.revoke(&client)?;
            }
            Ok(with_cookie(empty_response(), served, "", 0))
        }
        ServerRoute::NewLoginCode => {
            let code = config.tokens.new_login_code(PAGE_RIGHT, server.random()?, now);
            let message = LoginCode { code, expires_in_ms: LOGIN_CODE_VALIDITY_MS };
            Ok(server_response(served.route, &message))
        }
        ServerRoute::Tokens => {
            let message = TokenList { tokens: config.tokens.rows() };
            Ok(server_response(served.route, &message))
        }
        ServerRoute::NewToken => {
            let NewTokenRequest { name, right, expires_at } = parse_json(body)?;
            let token = config.tokens.add(&name, right, server.random()?, now, expires_at)?;
            Ok(server_response(served.route, &NewTokenSecret { name, token }))
        }
        ServerRoute::RevokeToken => {
            config.tokens.revoke(served.parameters.text("name").unwrap_or_default())?;
            Ok(empty_response())
        }
        ServerRoute::ServerInfo => {
            let client = served.known_client()?;
            let right = served.client.as_ref().map_or(AccessRight::Read, |client| client.right);
            let tenant = served.client.as_ref().and_then(|client| client.tenant.as_deref());
            let info = ServerInfo {
                version: config.version.clone(),
                wire: WIRE_REVISION,
                host: config.host_name.clone(),
                roots: (config.roots)(tenant),
                right,
                client,
            };
            Ok(server_response(served.route, &info))
        }
        ServerRoute::Metrics
            if served.client.as_ref().is_some_and(|client| client.tenant.is_some()) =>
        {
            // They are about all tenants.
            Err(RequestError::Forbidden { needs: AccessRight::Admin }.into())
        }
        ServerRoute::Metrics => {
            let text = server.metrics.encode(&server.tcp_streams, &server.socket_streams);
            Ok(body_response(OPEN_METRICS, text))
        }
        ServerRoute::OpenApi => Ok(server_response(served.route, &openapi_document())),
    }
}

/// Sets the cookie of a page. Clients of the socket are no pages and get none.
fn with_cookie(
    mut response: Response<Body>,
    served: &ServedRequest,
    token: &str,
    seconds: u64,
) -> Response<Body> {
    if let Transport::Tcp(hosts) = &served.connection.transport
        && let Ok(cookie) = HeaderValue::from_str(&cookie_text(hosts, token, seconds))
    {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

fn cookie_text(hosts: &AllowedHosts, token: &str, seconds: u64) -> String {
    let name = hosts.cookie_name();
    let secure = match hosts.scheme {
        Scheme::Http => "",
        Scheme::Https => "; Secure",
    };
    format!("{name}={token}; HttpOnly; SameSite=Strict; Path=/; Max-Age={seconds}{secure}")
}
