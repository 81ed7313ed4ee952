//! Conversion between [`FrontendRequest`]s and HTTP requests, and the right that a request needs.
//!
//! [`to_http`] and [`parse`] are inverse. Both walk the JSON of the request: the tags of the route
//! are constant, its parameters are in the path and the query, and the rest is the body.

use super::errors::{invalid, path_not_found};
use super::parameters::ParameterValues;
use super::{ParameterPlace, Route, RouteBody, RouteKind, RouteLookup, find_route};
use axum::http::Method;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value};
use url::form_urlencoded;
use windlass_protocol::frontend_messages::FrontendRequest;
use windlass_protocol::{AccessRight, PermissionMode, RequestError, SessionOp, SessionQuery};

/// A request in the form of HTTP.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpRequestParts {
    /// Method of the request.
    pub method: Method,
    /// Path without the query.
    pub path: String,
    /// Query without `?`; empty if there is none.
    pub query: String,
    /// Body of the request.
    pub body: RequestBody,
}

/// The body of [`HttpRequestParts`].
#[derive(Clone, Debug, PartialEq)]
pub enum RequestBody {
    /// No body.
    None,
    /// JSON text.
    Json(Vec<u8>),
    /// Bytes of a file.
    Bytes(Vec<u8>),
}

/// Returns the HTTP form of a request, or `None` if only the front end's own process handles it.
pub fn to_http(request: &FrontendRequest) -> Option<HttpRequestParts> {
    let route = Route::of_kind(route_kind(request)?)?;
    let Value::Object(mut fields) = serde_json::to_value(request).ok()? else { return None };
    for (field, _) in route.tags {
        take_field(&mut fields, field);
    }
    let mut path = route.path.to_owned();
    let mut query = form_urlencoded::Serializer::new(String::new());
    for parameter in route.parameters.iter().filter(|parameter| !parameter.field.is_empty()) {
        let text = match take_field(&mut fields, parameter.field) {
            Some(Value::String(text)) => text,
            Some(Value::Null) | None => continue,
            Some(value) => value.to_string(),
        };
        match parameter.place {
            ParameterPlace::Path => path = path.replace(&format!("{{{}}}", parameter.name), &text),
            ParameterPlace::RequiredQuery
            | ParameterPlace::Query
            | ParameterPlace::QueryWithDefault(_) => {
                query.append_pair(parameter.name, &text);
            }
        }
    }
    for parent in parents(route) {
        fields.remove(parent);
    }
    let body = match route.body {
        RouteBody::None => RequestBody::None,
        RouteBody::OptionalJson if fields.is_empty() => RequestBody::None,
        RouteBody::OptionalJson | RouteBody::Json => {
            RequestBody::Json(serde_json::to_vec(&fields).ok()?)
        }
        RouteBody::Bytes => match fields.remove(BYTES_FIELD)? {
            Value::String(text) => RequestBody::Bytes(BASE64.decode(text).ok()?),
            _ => return None,
        },
        RouteBody::ServerJson(_) => return None,
    };
    Some(HttpRequestParts { method: route.method.clone(), path, query: query.finish(), body })
}

/// Returns the request that an HTTP request stands for.
pub fn parse(
    method: &Method,
    path: &str,
    query: Option<&str>,
    body: &[u8],
) -> Result<FrontendRequest, RequestError> {
    match find_route(method, path) {
        RouteLookup::Found(route, in_path) => {
            parse_request(route, &ParameterValues::read(route, &in_path, query)?, body)
        }
        RouteLookup::OtherMethods(_) | RouteLookup::NotFound => Err(path_not_found()),
    }
}

/// Field of `FrontendRequest::PutBlob` that is the body of its HTTP form.
const BYTES_FIELD: &str = "bytes";

/// Returns the request of a route.
pub(crate) fn parse_request(
    route: &'static Route,
    parameters: &ParameterValues,
    body: &[u8],
) -> Result<FrontendRequest, RequestError> {
    let mut fields = match route.body {
        RouteBody::None => Map::new(),
        RouteBody::OptionalJson if body.is_empty() => Map::new(),
        RouteBody::OptionalJson | RouteBody::Json => parse_json(body)?,
        RouteBody::Bytes => {
            Map::from_iter([(BYTES_FIELD.to_owned(), Value::from(BASE64.encode(body)))])
        }
        RouteBody::ServerJson(_) => return Err(path_not_found()),
    };
    // Only the route decides about these fields, never the body.
    for parent in parents(route) {
        fields.remove(parent);
    }
    for parameter in route.parameters {
        fields.remove(parameter.field);
    }
    for (field, value) in route.tags {
        set_field(&mut fields, field, Value::from(*value));
    }
    for (field, value) in parameters.fields() {
        set_field(&mut fields, field, value);
    }
    from_json(Value::Object(fields))
        .map_err(|error| invalid(format!("The request is not valid: {error}.")))
}

/// Parses a JSON object.
pub(crate) fn parse_json<T: DeserializeOwned>(body: &[u8]) -> Result<T, RequestError> {
    serde_json::from_slice(body)
        .and_then(from_json)
        .map_err(|error| invalid(format!("The body is not the expected JSON: {error}.")))
}

/// Converts JSON into a type. As in JSON Schema, `1.0` is an integer.
fn from_json<T: DeserializeOwned>(mut value: Value) -> Result<T, serde_json::Error> {
    T::deserialize(&value).or_else(|error| match make_integers(&mut value) {
        true => serde_json::from_value(value),
        false => Err(error),
    })
}

/// Makes integers of floating-point numbers without a fraction. Returns true if there are any.
fn make_integers(value: &mut Value) -> bool {
    match value {
        Value::Number(number) if number.is_f64() => {
            // Such a number has no decimal point when it is printed without a fraction.
            let text = number.as_f64().map(|number| format!("{number:.0}"));
            let is_whole = number.as_f64().is_some_and(|number| number.fract() == 0.0);
            let integer = text.filter(|_| is_whole).and_then(|text| {
                text.parse::<u64>()
                    .map(Number::from)
                    .or_else(|_| text.parse::<i64>().map(Number::from))
                    .ok()
            });
            integer.map(|integer| *number = integer).is_some()
        }
        Value::Array(items) => {
            items.iter_mut().fold(false, |found, item| make_integers(item) | found)
        }
        Value::Object(fields) => {
            fields.values_mut().fold(false, |found, field| make_integers(field) | found)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Returns the fields that contain other fields which the route sets.
fn parents(route: &Route) -> impl Iterator<Item = &'static str> {
    let in_tags = route.tags.iter().map(|(field, _)| *field);
    let in_parameters = route.parameters.iter().map(|parameter| parameter.field);
    in_tags.chain(in_parameters).filter_map(|field| field.split_once('.')).map(|(parent, _)| parent)
}

/// Removes a field such as `query.session` and returns it.
fn take_field(fields: &mut Map<String, Value>, field: &str) -> Option<Value> {
    match field.split_once('.') {
        Some((parent, rest)) => take_field(fields.get_mut(parent)?.as_object_mut()?, rest),
        None => fields.remove(field),
    }
}

/// Sets a field such as `query.session`.
fn set_field(fields: &mut Map<String, Value>, field: &str, value: Value) {
    match field.split_once('.') {
        Some((parent, rest)) => {
            let parent = fields.entry(parent).or_insert_with(|| Value::Object(Map::new()));
            if let Some(parent) = parent.as_object_mut() {
                set_field(parent, rest, value);
            }
        }
        None => {
            fields.insert(field.to_owned(), value);
        }
    }
}

/// Returns the route of a request, or `None` if only the front end's own process handles it.
fn route_kind(request: &FrontendRequest) -> Option<RouteKind> {
    Some(match request {
        FrontendRequest::Status { .. } => RouteKind::Status,
        FrontendRequest::Query { query } => query_route_kind(query),
        FrontendRequest::ListOpenSessions => RouteKind::OpenSessions,
        FrontendRequest::SessionOp { .. } => RouteKind::SessionOp,
        FrontendRequest::NewSession { .. } => RouteKind::NewSession,
        FrontendRequest::CloseSession { .. } => RouteKind::CloseSession,
        FrontendRequest::OpenSession { .. } => RouteKind::OpenSession,
        FrontendRequest::ForkSession { .. } => RouteKind::ForkSession,
        FrontendRequest::DeleteSession { .. } => RouteKind::DeleteSession,
        FrontendRequest::PutBlob { .. } => RouteKind::PutBlob,
        FrontendRequest::PreparePrompt { .. } => RouteKind::PreparePrompt,
        FrontendRequest::GetBlob { .. } => RouteKind::GetBlob,
        FrontendRequest::Thumbnail { .. } => RouteKind::Thumbnail,
        FrontendRequest::List { .. } => RouteKind::List,
        FrontendRequest::ExpandCommand { .. } => RouteKind::ExpandCommand,
        FrontendRequest::Doctor => RouteKind::Doctor,
        FrontendRequest::RenderSession { .. } => RouteKind::RenderSession,
        FrontendRequest::RenameSession { .. } => RouteKind::RenameSession,
        FrontendRequest::Report { .. } => RouteKind::Report,
        FrontendRequest::RunReportAction { .. } => RouteKind::RunReportAction,
        FrontendRequest::ReviewTrust => RouteKind::ReviewTrust,
        FrontendRequest::SetTrust { .. } => RouteKind::SetTrust,
        FrontendRequest::SetDefaultModel { .. } => RouteKind::SetDefaultModel,
        FrontendRequest::DiscoverProviders => RouteKind::DiscoverProviders,
        FrontendRequest::Login { .. } => RouteKind::SaveKey,
        FrontendRequest::AddProvider { .. } => RouteKind::AddProvider,
        FrontendRequest::SetConfig { .. } => RouteKind::SetConfig,
        FrontendRequest::SetModel { .. }
        | FrontendRequest::SetEffort { .. }
        | FrontendRequest::AttachFile { .. }
        | FrontendRequest::RunStatusLine { .. }
        | FrontendRequest::ExportSession { .. }
        | FrontendRequest::DetachSession { .. } => return None,
    })
}

/// Returns the route of a query.
fn query_route_kind(query: &SessionQuery) -> RouteKind {
    match query {
        SessionQuery::Sessions { .. } => RouteKind::Sessions,
        SessionQuery::Events { .. } => RouteKind::SessionEvents,
        SessionQuery::Prompts { session: Some(_), .. } => RouteKind::SessionPrompts,
        SessionQuery::Prompts { session: None, .. } => RouteKind::WorkspacePrompts,
        SessionQuery::Context { .. } => RouteKind::Context,
        SessionQuery::Jobs { .. } => RouteKind::Jobs,
        SessionQuery::Transcript { .. } => RouteKind::Transcript,
        SessionQuery::Changes { .. } => RouteKind::Changes,
        SessionQuery::SearchSessions { .. } => RouteKind::SearchSessions,
        SessionQuery::FindText { .. } => RouteKind::FindText,
        SessionQuery::Tools => RouteKind::Tools,
    }
}

/// Returns the right that a request needs.
pub fn required_right(request: &FrontendRequest) -> AccessRight {
    match request {
        FrontendRequest::Status { .. }
        | FrontendRequest::Query { .. }
        | FrontendRequest::ListOpenSessions
        | FrontendRequest::GetBlob { .. }
        | FrontendRequest::Thumbnail { .. }
        | FrontendRequest::List { .. }
        | FrontendRequest::RenderSession { .. }
        | FrontendRequest::Report { .. } => AccessRight::Read,
        FrontendRequest::SessionOp { op, .. } => op_right(op),
        FrontendRequest::NewSession { .. }
        | FrontendRequest::CloseSession { .. }
        | FrontendRequest::OpenSession { .. }
        | FrontendRequest::ForkSession { .. }
        | FrontendRequest::RenameSession { .. }
        | FrontendRequest::PutBlob { .. }
        | FrontendRequest::PreparePrompt { .. }
        | FrontendRequest::ExpandCommand { .. }
        | FrontendRequest::SetModel { .. }
        | FrontendRequest::SetEffort { .. } => AccessRight::Write,
        FrontendRequest::DeleteSession { .. }
        | FrontendRequest::AttachFile { .. }
        | FrontendRequest::Doctor
        | FrontendRequest::RunStatusLine { .. }
        | FrontendRequest::ExportSession { .. }
        | FrontendRequest::DetachSession { .. }
        | FrontendRequest::RunReportAction { .. }
        | FrontendRequest::ReviewTrust
        | FrontendRequest::SetTrust { .. }
        | FrontendRequest::SetDefaultModel { .. }
        | FrontendRequest::DiscoverProviders
        | FrontendRequest::Login { .. }
        | FrontendRequest::AddProvider { .. }
        | FrontendRequest::SetConfig { .. } => AccessRight::Admin,
    }
}

/// Returns the right that an operation needs.
fn op_right(op: &SessionOp) -> AccessRight {
    match op {
        SessionOp::SetMode { mode: PermissionMode::Full } => AccessRight::Admin,
        SessionOp::Prompt { .. }
        | SessionOp::CallTool { .. }
        | SessionOp::RunPromptCommand { .. }
        | SessionOp::AnswerPermission { .. }
        | SessionOp::AnswerQuestion { .. }
        | SessionOp::Compact
        | SessionOp::SetMode {
            mode: PermissionMode::Plan | PermissionMode::Ask | PermissionMode::Auto,
        }
        | SessionOp::SetAgent { .. }
        | SessionOp::SetModel { .. }
        | SessionOp::Interrupt { .. }
        | SessionOp::Undo { .. }
        | SessionOp::WithdrawPrompt { .. }
        | SessionOp::Rewind { .. }
        | SessionOp::EndJob { .. }
        | SessionOp::RenameSession { .. }
        | SessionOp::RevokeApprovals => AccessRight::Write,
    }
}
