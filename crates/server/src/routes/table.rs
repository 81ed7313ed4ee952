//! Parts that the lists of routes share.

use super::{
    ParameterPlace, ParameterType, Route, RouteAccess, RouteAnswer, RouteBody, RouteKind,
    RouteParameter,
};
use axum::http::Method;
use windlass_protocol::AccessRight;

pub(super) const READ: RouteAccess = RouteAccess::Needs(AccessRight::Read);
pub(super) const WRITE: RouteAccess = RouteAccess::Needs(AccessRight::Write);
pub(super) const ADMIN: RouteAccess = RouteAccess::Needs(AccessRight::Admin);

pub(super) const DONE: RouteAnswer = RouteAnswer::Response { status: 204, variants: &["done"] };
pub(super) const REPLY: RouteAnswer = response(&["reply"]);
pub(super) const OPENED: RouteAnswer = response(&["session_opened"]);
pub(super) const CREATED: RouteAnswer =
    RouteAnswer::Response { status: 201, variants: &["session_opened"] };

pub(super) const fn response(variants: &'static [&'static str]) -> RouteAnswer {
    RouteAnswer::Response { status: 200, variants }
}

pub(super) const fn in_path(
    name: &'static str,
    field: &'static str,
    value: ParameterType,
    description: &'static str,
) -> RouteParameter {
    RouteParameter { name, place: ParameterPlace::Path, value, field, description }
}

pub(super) const fn optional(
    name: &'static str,
    field: &'static str,
    value: ParameterType,
    description: &'static str,
) -> RouteParameter {
    RouteParameter { name, place: ParameterPlace::Query, value, field, description }
}

pub(super) const fn with_default(
    name: &'static str,
    default: &'static str,
    field: &'static str,
    value: ParameterType,
    description: &'static str,
) -> RouteParameter {
    let place = ParameterPlace::QueryWithDefault(default);
    RouteParameter { name, place, value, field, description }
}

pub(super) const fn required(
    name: &'static str,
    field: &'static str,
    value: ParameterType,
    description: &'static str,
) -> RouteParameter {
    RouteParameter { name, place: ParameterPlace::RequiredQuery, value, field, description }
}

/// Returns a route for a query about sessions.
pub(super) const fn query(
    kind: RouteKind,
    path: &'static str,
    tags: &'static [(&'static str, &'static str)],
    parameters: &'static [RouteParameter],
) -> Route {
    get(kind, path, tags, parameters, REPLY)
}

/// Returns a route that gets something from the host.
pub(super) const fn get(
    kind: RouteKind,
    path: &'static str,
    tags: &'static [(&'static str, &'static str)],
    parameters: &'static [RouteParameter],
    answer: RouteAnswer,
) -> Route {
    let (access, body) = (READ, RouteBody::None);
    Route { kind, method: Method::GET, path, access, parameters, tags, body, answer }
}
