//! Answers a request: checks, client, limits, route, right, body, in this order.

use super::ApiServer;
use super::connection::Connection;
use super::content::{check_content_type, read_body};
use super::responses::{
    add_common_headers, close_connection, error_response, host_response, stream_response,
};
use super::served_request::ServedRequest;
use super::server_routes::answer_server_route;
use crate::ClientAttendance;
use crate::access_log::AccessLogEntry;
use crate::event_stream::{EVENT_STREAM, EventStreamBody, StreamEnd, StreamItem};
use crate::limits::{ClientSlot, UnlimitedWrites};
use crate::request_checks::{ClientIdentity, Rejection, Transport, authenticate, check_request};
use crate::routes::{
    ParameterValues, RouteAccess, RouteAnswer, RouteKind, RouteLookup, ServerRoute, find_route,
    invalid, parse_request, path_not_found, required_right,
};
use axum::body::Body;
use axum::http::header::{self, HeaderMap};
use axum::http::{Method, Request, Response, StatusCode, request};
use futures_util::stream::BoxStream;
use std::sync::Arc;
use tokio::time::Instant;
use windlass_protocol::{AccessRight, Fault, RequestError, SessionId};

/// Answers a request and writes it to the access log.
pub(super) async fn handle_request(
    connection: Connection,
    request: Request<Body>,
) -> Response<Body> {
    let started = Instant::now();
    let server = Arc::clone(&connection.server);
    let mut entry = AccessLogEntry {
        client: None,
        method: request.method().clone(),
        route: None,
        status: 0,
        duration_ms: 0,
        error: None,
    };
    let mut response = match answer_request(connection, request, &mut entry).await {
        Ok(response) => response,
        Err(rejection) => {
            entry.error = Some(rejection.reason);
            error_response(&rejection)
        }
    };
    add_common_headers(&mut response, &server.config.version);
    if entry.client.is_none() {
        // Clients without a token keep no connection.
        close_connection(&mut response);
    }
    entry.status = response.status().as_u16();
    entry.duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    server.metrics.count_request(&entry);
    (server.config.access_log)(&entry);
    response
}

async fn answer_request(
    connection: Connection,
    request: Request<Body>,
    entry: &mut AccessLogEntry,
) -> Result<Response<Body>, Rejection> {
    let (parts, body) = request.into_parts();
    let server = &connection.server;
    check_request(&connection.transport, &parts)?;
    let lookup = find_route(&parts.method, parts.uri.path());
    let client = match &lookup {
        RouteLookup::Found(route, _) if route.access == RouteAccess::Public => None,
        RouteLookup::Found(..) | RouteLookup::OtherMethods(_) | RouteLookup::NotFound => {
            Some(server.identify(&connection.transport, &parts)?)
        }
    };
    entry.client = client.as_ref().map(|client| client.name.clone());
    if let Some(client) = &client
        && let Transport::Tcp(_) = connection.transport
    {
        server.request_rate.count(&client.name, Instant::now())?;
    }
    let (route, in_path) = match lookup {
        RouteLookup::Found(route, in_path) => (route, in_path),
        RouteLookup::OtherMethods(methods) => {
            let methods: Vec<&str> = methods.into_iter().map(|method| method.as_str()).collect();
            let error = invalid("This path has other methods; see the header `Allow`.");
            let allowed_methods = Some(methods.join(", "));
            let (status, reason) = (StatusCode::METHOD_NOT_ALLOWED, "method");
            return Err(Rejection { status, error, reason, allowed_methods });
        }
        RouteLookup::NotFound => return Err(path_not_found().into()),
    };
    entry.route = Some(route.path);
    if let (Some(client), RouteAccess::Needs(right)) = (&client, route.access) {
        check_right(client, right)?;
    }
    check_content_type(route, &parts.headers)?;
    let parameters = ParameterValues::read(route, &in_path, parts.uri.query())?;
    let headers = parts.headers;
    let served = ServedRequest { connection, route, client, parameters, headers };
    let is_stream = match route.answer {
        RouteAnswer::HostEvents => true,
        RouteAnswer::SessionEvents => !wants_json(&served.headers),
        RouteAnswer::Response { .. }
        | RouteAnswer::OpResult
        | RouteAnswer::Bytes
        | RouteAnswer::ServerJson { .. }
        | RouteAnswer::Text(_)
        | RouteAnswer::Empty => false,
    };
    if is_stream {
        return start_stream(served).await;
    }
    if let RouteKind::Server(server_route) = route.kind {
        if server_route == ServerRoute::PageLogin {
            // Before the body, so that no more of them are read than logins are tried.
            served.connection.server.login_rate.count("", Instant::now())?;
        }
        let body = read_body(route, &served.headers, body).await?;
        return answer_server_route(server_route, &served, &body);
    }
    let client = served.client.as_ref().ok_or(RequestError::Unauthorized)?;
    let slots = match served.connection.transport {
        Transport::Tcp(_) => &served.connection.server.tcp_requests,
        Transport::Socket => &served.connection.server.socket_requests,
    };
    let slot = slots.take(&client.name)?;
    let body = read_body(route, &served.headers, body).await?;
    let request = parse_request(route, &served.parameters, &body)?;
    drop(body);
    check_right(client, required_right(&request))?;
    let caller = served.caller(client);
    let server = &served.connection.server;
    let service = Arc::clone(&server.service);
    if route.method == Method::GET {
        // A client that disconnects ends its query.
        return host_response(route, service.request(&caller, request).await?);
    }
    // A client that disconnects must not stop a change halfway.
    let answering = server.requests.spawn(async move {
        let _slot = slot;
        service.request(&caller, request).await
    });
    let answer = answering.await.map_err(|error| {
        RequestError::from(Fault::Internal { message: format!("the request failed: {error}") })
    })?;
    host_response(route, answer?)
}

fn check_right(client: &ClientIdentity, needs: AccessRight) -> Result<(), Rejection> {
    match client.right >= needs {
        true => Ok(()),
        false => Err(RequestError::Forbidden { needs }.into()),
    }
}

/// Returns true if a client prefers a list of facts to a stream.
fn wants_json(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accepted.is_some_and(|accepted| {
        accepted.contains("application/json") && !accepted.contains(EVENT_STREAM)
    })
}

impl ApiServer {
    /// Identifies the client of a request.
    fn identify(
        &self,
        transport: &Transport,
        parts: &request::Parts,
    ) -> Result<ClientIdentity, RequestError> {
        let config = &self.config;
        let now = (config.clock)();
        let tokens = (&*config.tokens, self.node_token.as_ref());
        authenticate(transport, &parts.headers, tokens, &config.user_name, now)
    }
}

/// Starts an event stream.
async fn start_stream(served: ServedRequest) -> Result<Response<Body>, Rejection> {
    let Some(client) = &served.client else { return Err(RequestError::Unauthorized.into()) };
    let server = &served.connection.server;
    let slots = match served.connection.transport {
        Transport::Tcp(_) => &server.tcp_streams,
        Transport::Socket => &server.socket_streams,
    };
    let slot = slots.take(&client.name)?;
    let caller = served.caller(client);
    let mut end = StreamEnd {
        stop: served.connection.stop.clone(),
        revoked: client.revoked.clone(),
        expired: Box::pin(Arc::clone(server).until_expired(client.name.clone(), client.expires_at)),
        turn_of: None,
    };
    let body = match served.parameters.text("id") {
        Some(id) => {
            let session: SessionId =
                id.parse().map_err(|_| invalid("This is not the id of a session."))?;
            let options = served.watch_options()?;
            if options.user != ClientAttendance::Unknown {
                // Such a client decides whether questions wait or are declined.
                check_right(client, AccessRight::Write)?;
            }
            end.turn_of = served.parameters.text("until").map(|_| session);
            let items = server.service.watch_session(&caller, session, options).await?;
            stream_body(items, end, (slot, served.connection.become_stream(client)))
        }
        None => {
            let items = server.service.watch_host(&caller).await?;
            stream_body(items, end, (slot, served.connection.become_stream(client)))
        }
    };
    Ok(stream_response(body))
}

fn stream_body<T: StreamItem>(
    items: BoxStream<'static, T>,
    end: StreamEnd,
    limits: (ClientSlot, UnlimitedWrites),
) -> Body {
    Body::from_stream(EventStreamBody::new(items, end, limits))
}
