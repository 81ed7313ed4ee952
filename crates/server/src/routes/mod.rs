//! Routes of the HTTP API: which method and path stands for which request, and the right it needs.
//!
//! [`all_routes`] is the only list of paths. The server, the client, the check of rights and the OpenAPI
//! document are made from it, and a [`Route`] without [`RouteAccess`] does not compile. Start
//! reading at [`all_routes`], then `request_mapping`.

mod errors;
mod host_routes;
mod parameters;
mod request_mapping;
mod session_routes;
mod table;

pub(crate) use errors::{invalid, path_not_found};
pub(crate) use parameters::ParameterValues;
pub use parameters::{ParameterPlace, ParameterType, RouteParameter};
pub use request_mapping::{HttpRequestParts, RequestBody, parse, required_right, to_http};
pub(crate) use request_mapping::{parse_json, parse_request};

use axum::http::Method;
use host_routes::HOST_ROUTES;
use schemars::{Schema, SchemaGenerator};
use session_routes::SESSION_ROUTES;
use windlass_protocol::AccessRight;

/// Returns all routes of the API.
pub fn all_routes() -> impl Iterator<Item = &'static Route> {
    SESSION_ROUTES.iter().chain(HOST_ROUTES)
}

/// A method and path of the API, with everything that is known about it.
pub struct Route {
    /// The request that the route stands for.
    pub kind: RouteKind,
    /// Method of the route.
    pub method: Method,
    /// Path with parameters in braces, for example `/v1/sessions/{id}`.
    pub path: &'static str,
    /// Clients that may use the route.
    pub access: RouteAccess,
    /// Parameters in the path and the query. Every route also has [`WORKSPACE_PARAMETER`].
    pub parameters: &'static [RouteParameter],
    /// Constant fields of the request, by their path in its JSON.
    pub tags: &'static [(&'static str, &'static str)],
    /// Body of the request.
    pub body: RouteBody,
    /// Answer if the request succeeds.
    pub answer: RouteAnswer,
}

/// Query parameter of every route: the folder that the request is about.
pub const WORKSPACE_PARAMETER: &str = "workspace";

/// Clients that may use a [`Route`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteAccess {
    /// Anybody who reaches the server.
    Public,
    /// Clients with a right.
    Needs(AccessRight),
}

/// The body of a request.
#[derive(Clone, Copy)]
pub enum RouteBody {
    /// No body.
    None,
    /// A JSON object; an absent body is an empty one.
    OptionalJson,
    /// A JSON object.
    Json,
    /// Bytes of a file.
    Bytes,
    /// A JSON object for the server itself, with its schema.
    ServerJson(fn(&mut SchemaGenerator) -> Schema),
}

/// The body of the answer to a successful request.
#[derive(Clone, Copy)]
pub enum RouteAnswer {
    /// One of these variants of `HostResponse`, as JSON with this status. `done` has no body and
    /// the status 204.
    Response {
        /// Status of the answer.
        status: u16,
        /// Names of the variants.
        variants: &'static [&'static str],
    },
    /// The position of an operation in the log.
    OpResult,
    /// Bytes of a file.
    Bytes,
    /// Events of a session.
    SessionEvents,
    /// Events of the host.
    HostEvents,
    /// JSON of the server itself.
    ServerJson {
        /// Status of the answer.
        status: u16,
        /// Returns the schema of the body.
        schema: fn(&mut SchemaGenerator) -> Schema,
    },
    /// Text of this media type.
    Text(&'static str),
    /// No body.
    Empty,
}

/// The request that a [`Route`] stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteKind {
    /// `FrontendRequest::Status`.
    Status,
    /// `SessionQuery::Sessions`.
    Sessions,
    /// `FrontendRequest::ListOpenSessions`.
    OpenSessions,
    /// `FrontendRequest::NewSession`.
    NewSession,
    /// `FrontendRequest::DeleteSession`.
    DeleteSession,
    /// `FrontendRequest::RenameSession`.
    RenameSession,
    /// `FrontendRequest::OpenSession`.
    OpenSession,
    /// `FrontendRequest::CloseSession`.
    CloseSession,
    /// `FrontendRequest::ForkSession`.
    ForkSession,
    /// `FrontendRequest::SessionOp`.
    SessionOp,
    /// The event stream of a session, or `SessionQuery::Events`.
    SessionEvents,
    /// `SessionQuery::Prompts` of a session.
    SessionPrompts,
    /// `SessionQuery::Prompts` of a folder.
    WorkspacePrompts,
    /// `SessionQuery::Context`.
    Context,
    /// `SessionQuery::Jobs`.
    Jobs,
    /// `SessionQuery::Transcript`.
    Transcript,
    /// `SessionQuery::Changes`.
    Changes,
    /// `SessionQuery::FindText`.
    FindText,
    /// `FrontendRequest::RenderSession`.
    RenderSession,
    /// `SessionQuery::SearchSessions`.
    SearchSessions,
    /// `SessionQuery::Tools`.
    Tools,
    /// `FrontendRequest::List`.
    List,
    /// `FrontendRequest::Report`.
    Report,
    /// `FrontendRequest::RunReportAction`.
    RunReportAction,
    /// `FrontendRequest::PutBlob`.
    PutBlob,
    /// `FrontendRequest::GetBlob`.
    GetBlob,
    /// `FrontendRequest::Thumbnail`.
    Thumbnail,
    /// `FrontendRequest::PreparePrompt`.
    PreparePrompt,
    /// `FrontendRequest::ExpandCommand`.
    ExpandCommand,
    /// `FrontendRequest::Doctor`.
    Doctor,
    /// `FrontendRequest::ReviewTrust`.
    ReviewTrust,
    /// `FrontendRequest::SetTrust`.
    SetTrust,
    /// `FrontendRequest::SetDefaultModel`.
    SetDefaultModel,
    /// `FrontendRequest::DiscoverProviders`.
    DiscoverProviders,
    /// `FrontendRequest::AddProvider`.
    AddProvider,
    /// `FrontendRequest::Login`.
    SaveKey,
    /// `FrontendRequest::SetConfig`.
    SetConfig,
    /// The event stream of the host.
    HostEvents,
    /// Something that the server itself answers.
    Server(ServerRoute),
}

/// A route that no host answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerRoute {
    /// Version and rights.
    ServerInfo,
    /// Sign of life.
    Health,
    /// Metrics of the process.
    Metrics,
    /// The OpenAPI document.
    OpenApi,
    /// Exchange of a login code for the cookie of a page.
    PageLogin,
    /// End of the login of a page.
    PageLogout,
    /// A new login code.
    NewLoginCode,
    /// The list of tokens.
    Tokens,
    /// A new token.
    NewToken,
    /// Revocation of a token.
    RevokeToken,
}

/// Result of [`find_route`].
pub(crate) enum RouteLookup {
    /// The route, and the values of the parameters in its path.
    Found(&'static Route, Vec<(&'static str, String)>),
    /// The path exists, with other methods.
    OtherMethods(Vec<&'static Method>),
    /// No such path.
    NotFound,
}

/// Finds the route of a request.
pub(crate) fn find_route(method: &Method, path: &str) -> RouteLookup {
    let mut methods = Vec::new();
    for route in all_routes() {
        let Some(values) = match_path(route.path, path) else { continue };
        if route.method == *method {
            return RouteLookup::Found(route, values);
        }
        methods.push(&route.method);
    }
    match methods.is_empty() {
        true => RouteLookup::NotFound,
        false => RouteLookup::OtherMethods(methods),
    }
}

impl Route {
    /// Returns the route of a kind.
    pub(crate) fn of_kind(kind: RouteKind) -> Option<&'static Route> {
        all_routes().find(|route| route.kind == kind)
    }
}

/// Returns the values of the parameters in a path, or `None` if it does not match the template.
fn match_path(template: &'static str, path: &str) -> Option<Vec<(&'static str, String)>> {
    let (mut expected, mut found) = (template.split('/'), path.split('/'));
    let mut values = Vec::new();
    loop {
        match (expected.next(), found.next()) {
            (None, None) => return Some(values),
            (Some(expected), Some(found)) => match parameter_name(expected) {
                Some(name) => values.push((name, found.to_owned())),
                None if expected == found => {}
                None => return None,
            },
            (Some(_), None) | (None, Some(_)) => return None,
        }
    }
}

/// Returns the name in a segment such as `{id}`.
pub(crate) fn parameter_name(segment: &'static str) -> Option<&'static str> {
    segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'))
}

#[cfg(test)]
mod tests;
