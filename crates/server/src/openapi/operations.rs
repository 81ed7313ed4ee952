//! Operations of the OpenAPI document, one for each route.

use super::schemas::{BLOB_PATTERN, MessageSchemas};
use crate::event_stream::{EVENT_STREAM, frame};
use crate::routes::{
    ParameterPlace, ParameterType, Route, RouteAccess, RouteAnswer, RouteBody, RouteKind,
    RouteParameter, ServerRoute, WORKSPACE_PARAMETER,
};
use serde_json::{Map, Value, json};
use windlass_protocol::session_stream::{
    HostStreamItem, StreamClosing, StreamHeartbeat, StreamLag, StreamOpening, StreamReset,
};
use windlass_protocol::{
    FactRecord, Fault, LiveEventRecord, MAX_CURSOR_BYTES, OpError, QueryReply, RequestError,
};

/// Form of a position: a number and an epoch, both without leading zeros.
const POSITION_PATTERN: &str = r"(0|[1-9][0-9]{0,18})(\.(0|[1-9][0-9]{0,18}))?";
const ID_PATTERN: &str = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";

/// Returns the operation of a route.
pub(super) fn operation(route: &Route, schemas: &mut MessageSchemas) -> Value {
    let mut operation = Map::new();
    let mut set = |name: &str, value: Value| operation.insert(name.to_owned(), value);
    set("operationId", Value::from(operation_id(route.kind)));
    let description = description(route, schemas);
    let summary = description.split(['.', ':']).next().unwrap_or_default().replace('\n', " ");
    set("summary", Value::from(summary));
    let description = match route.access {
        RouteAccess::Public => format!("{description}\n\nIt needs no token."),
        RouteAccess::Needs(right) => format!("{description}\n\nIt needs the right `{right}`."),
    };
    set("description", Value::from(description));
    if route.access == RouteAccess::Public {
        set("security", json!([]));
    }
    set("parameters", Value::from(parameters(route)));
    if let Some(body) = request_body(route, schemas) {
        set("requestBody", body);
    }
    set("responses", Value::Object(responses(route, schemas)));
    Value::Object(operation)
}

fn operation_id(kind: RouteKind) -> String {
    let name =
        if let RouteKind::Server(kind) = kind { format!("{kind:?}") } else { format!("{kind:?}") };
    let (first, rest) = name.split_at_checked(1).unwrap_or_default();
    format!("{}{rest}", first.to_ascii_lowercase())
}

/// Returns the constant value of a field of the route's request.
fn tag(route: &Route, field: &str) -> Option<&'static str> {
    route.tags.iter().find(|(name, _)| *name == field).map(|(_, value)| *value)
}

/// Returns the description of the request, which is the comment of its type.
fn description(route: &Route, schemas: &MessageSchemas) -> String {
    let variant = match (tag(route, "query.query"), tag(route, "request")) {
        (Some(query), _) => schemas.query(query),
        (None, Some(request)) => schemas.request(request),
        (None, None) => None,
    };
    let comment =
        variant.and_then(|variant| variant.get("description")?.as_str().map(str::to_owned));
    // All other routes are requests, whose types have comments.
    let text = if let RouteKind::Server(kind) = route.kind {
        server_route_description(kind)
    } else {
        "Streams the state of all open sessions, and its changes."
    };
    comment.unwrap_or_else(|| text.to_owned())
}

fn server_route_description(kind: ServerRoute) -> &'static str {
    match kind {
        ServerRoute::ServerInfo => "Returns the version of the server and the client's right.",
        ServerRoute::Tokens => "Lists the tokens of clients.",
        ServerRoute::NewToken => "Adds a token, which is shown only once.",
        ServerRoute::RevokeToken => "Revokes a token and ends the streams of its clients.",
        ServerRoute::NewLoginCode => "Creates a code that logs a page in, once.",
        ServerRoute::PageLogin => "Exchanges a login code for the cookie of a page.",
        ServerRoute::PageLogout => "Revokes the cookie of a page.",
        ServerRoute::Metrics => "Returns the metrics of the process.",
        ServerRoute::OpenApi => "Returns this document.",
        ServerRoute::Health => "Shows that the server is alive.",
    }
}

fn parameters(route: &Route) -> Vec<Value> {
    let mut parameters: Vec<Value> = route.parameters.iter().map(parameter).collect();
    let is_of_host = !route.tags.is_empty() || route.kind == RouteKind::HostEvents;
    if is_of_host {
        parameters.push(json!({
            "name": WORKSPACE_PARAMETER,
            "in": "query",
            "description": "Folder that the request is about; the first one of the server if \
                absent.",
            "schema": { "type": "string" },
        }));
    }
    if let RouteAnswer::SessionEvents = route.answer {
        parameters.push(json!({
            "name": "Last-Event-ID",
            "in": "header",
            "description": "The `id` of the last event that the client has; it replaces `after`.",
            "schema": parameter_schema(ParameterType::Cursor),
        }));
    }
    parameters
}

fn parameter(parameter: &RouteParameter) -> Value {
    let (place, is_required) = match parameter.place {
        ParameterPlace::Path => ("path", true),
        ParameterPlace::RequiredQuery => ("query", true),
        ParameterPlace::Query | ParameterPlace::QueryWithDefault(_) => ("query", false),
    };
    json!({
        "name": parameter.name,
        "in": place,
        "required": is_required,
        "description": parameter.description,
        "schema": parameter_schema(parameter.value),
    })
}

fn parameter_schema(value: ParameterType) -> Value {
    match value {
        ParameterType::Text => json!({ "type": "string" }),
        ParameterType::Session => json!({ "type": "string", "format": "uuid" }),
        ParameterType::Blob => json!({ "type": "string", "pattern": BLOB_PATTERN }),
        ParameterType::TokenName => {
            json!({ "type": "string", "pattern": "^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$" })
        }
        ParameterType::Number32 => {
            json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX })
        }
        ParameterType::Number64 => {
            json!({ "type": "integer", "minimum": 0, "maximum": u64::MAX })
        }
        ParameterType::Flag => json!({ "type": "boolean" }),
        ParameterType::Cursor => json!({
            "type": "string",
            "maxLength": MAX_CURSOR_BYTES,
            "pattern": format!("^{POSITION_PATTERN}(~{ID_PATTERN}:{POSITION_PATTERN})*$"),
        }),
        ParameterType::Choice(choices) => json!({ "type": "string", "enum": choices }),
    }
}

fn request_body(route: &Route, schemas: &mut MessageSchemas) -> Option<Value> {
    let (media_type, schema, is_required) = match route.body {
        RouteBody::None => return None,
        RouteBody::Bytes => ("application/octet-stream", json!({}), true),
        RouteBody::Json => ("application/json", body_schema(route, schemas)?, true),
        RouteBody::OptionalJson => ("application/json", body_schema(route, schemas)?, false),
        RouteBody::ServerJson(schema) => ("application/json", schemas.of_function(schema), true),
    };
    Some(json!({ "required": is_required, "content": { media_type: { "schema": schema } } }))
}

/// Returns the schema of a request without the fields that the path and the query set.
fn body_schema(route: &Route, schemas: &MessageSchemas) -> Option<Value> {
    let mut schema = schemas.request(tag(route, "request")?)?;
    let in_tags = route.tags.iter().map(|(field, _)| *field);
    let in_parameters = route.parameters.iter().map(|parameter| parameter.field);
    for field in in_tags.chain(in_parameters) {
        let name = field.split('.').next().unwrap_or(field);
        if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            properties.remove(name);
        }
        if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
            required.retain(|required| required != name);
        }
    }
    schema.as_object_mut()?.remove("description");
    Some(schema)
}

/// Returns all responses by status.
fn responses(route: &Route, schemas: &mut MessageSchemas) -> Map<String, Value> {
    let mut responses = success_responses(route, schemas);
    let error = schemas.of_type::<RequestError>();
    let error = json!({
        "type": "object",
        "properties": { "error": error },
        "required": ["error"],
    });
    for (status, description) in error_statuses(route) {
        let schema = if status == 409 && route.kind == RouteKind::SessionOp {
            let op_error = schemas.of_type::<OpError>();
            let rejection = json!({
                "type": "object",
                "properties": { "op_error": op_error },
                "required": ["op_error"],
            });
            json!({ "anyOf": [rejection, error] })
        } else {
            error.clone()
        };
        let response = match status {
            // The HTTP library answers a head that does not fit its buffer, without a body.
            431 => json!({ "description": description }),
            _ => json_response(description, &schema),
        };
        responses.insert(status.to_string(), response);
    }
    responses
}

fn json_response(description: &str, schema: &Value) -> Value {
    json!({
        "description": description,
        "content": { "application/json": { "schema": schema } },
    })
}

fn success_responses(route: &Route, schemas: &mut MessageSchemas) -> Map<String, Value> {
    let mut responses = Map::new();
    let mut add = |status: u16, response: Value| responses.insert(status.to_string(), response);
    let done = || json!({ "description": "Done." });
    match route.answer {
        RouteAnswer::Response { status, variants } => {
            let with_body = variants.iter().filter(|name| **name != "done");
            let mut bodies: Vec<Value> =
                with_body.filter_map(|name| schemas.response(name)).collect();
            let is_done_possible = variants.contains(&"done");
            match bodies.len() {
                0 => {}
                1 => {
                    if let Some(body) = bodies.pop() {
                        add(status, json_response("The answer.", &body));
                    }
                }
                _ => {
                    add(status, json_response("The answer.", &json!({ "oneOf": bodies })));
                }
            }
            if is_done_possible {
                add(204, done());
            }
        }
        RouteAnswer::OpResult => {
            let schema = json!({
                "type": "object",
                "properties": {
                    "seq": { "type": "integer", "minimum": 0, "maximum": u64::MAX },
                },
                "required": ["seq"],
            });
            let text = "The facts of the operation are on record, up to this position.";
            add(200, json_response(text, &schema));
            let schema = json!({
                "type": "object",
                "properties": { "queued": { "const": true } },
                "required": ["queued"],
            });
            let text = "The operation is stored, and the next node that runs the session does it.";
            add(202, json_response(text, &schema));
        }
        RouteAnswer::Bytes => {
            let content = json!({ "application/octet-stream": { "schema": {} } });
            add(200, json!({ "description": "The content.", "content": content }));
        }
        RouteAnswer::SessionEvents => {
            let stream = json!({ "schema": { "type": "string" }, "x-frames": frames(schemas) });
            let reply =
                schemas.response("reply").unwrap_or_else(|| schemas.of_type::<QueryReply>());
            let content = json!({ EVENT_STREAM: stream, "application/json": { "schema": reply } });
            let text = "The events: a stream, or a list if the client accepts only JSON.";
            add(200, json!({ "description": text, "content": content }));
        }
        RouteAnswer::HostEvents => {
            let frames = json!({
                frame::HOST: schemas.of_type::<HostStreamItem>(),
                frame::CLOSING: schemas.of_type::<StreamClosing>(),
                frame::HEARTBEAT: schemas.of_type::<StreamHeartbeat>(),
            });
            let stream = json!({ "schema": { "type": "string" }, "x-frames": frames });
            let content = json!({ EVENT_STREAM: stream });
            add(200, json!({ "description": "The events.", "content": content }));
        }
        RouteAnswer::ServerJson { status, schema } => {
            let schema = schemas.of_function(schema);
            add(status, json_response("The answer.", &schema));
        }
        RouteAnswer::Text(media_type) => {
            let schema = match media_type {
                "application/json" => json!({ "type": "object" }),
                _ => json!({ "type": "string" }),
            };
            let content = json!({ media_type: { "schema": schema } });
            add(200, json!({ "description": "The answer.", "content": content }));
        }
        RouteAnswer::Empty => {
            add(204, done());
        }
    }
    responses
}

/// Returns the frames of a session's stream with the schemas of their data.
fn frames(schemas: &mut MessageSchemas) -> Value {
    json!({
        frame::OPEN: schemas.of_type::<StreamOpening>(),
        frame::FACT: schemas.of_type::<FactRecord>(),
        frame::LIVE: schemas.of_type::<LiveEventRecord>(),
        frame::LAGGED: schemas.of_type::<StreamLag>(),
        frame::RESET: schemas.of_type::<StreamReset>(),
        frame::STOPPED: schemas.of_type::<Fault>(),
        frame::CLOSING: schemas.of_type::<StreamClosing>(),
        frame::HEARTBEAT: schemas.of_type::<StreamHeartbeat>(),
    })
}

/// Returns the statuses of errors that a route can answer with.
fn error_statuses(route: &Route) -> Vec<(u16, &'static str)> {
    let mut statuses =
        vec![(403, "The right is missing, or a web page of another site sent the request.")];
    if route.kind == RouteKind::Server(ServerRoute::Health) {
        return statuses;
    }
    statuses.extend([
        (400, "The request is not valid."),
        (401, "The token is missing or not valid."),
        (404, "Nothing of this name exists, or the client may not see it."),
        (409, "Something else is in the way."),
        (429, "A limit is reached; see the header `Retry-After`."),
        (431, "The head of the request is longer than 16 KiB."),
        (500, "The server failed."),
        (503, "The server stops or is overloaded; see the header `Retry-After`."),
    ]);
    match route.body {
        RouteBody::None if route.method == axum::http::Method::GET => {}
        RouteBody::None
        | RouteBody::OptionalJson
        | RouteBody::Json
        | RouteBody::Bytes
        | RouteBody::ServerJson(_) => statuses.extend([
            (408, "The body did not come in time."),
            (413, "The body is too long."),
            (415, "The body has another media type."),
        ]),
    }
    if !route.tags.is_empty() {
        statuses.push((502, "A provider or server behind the host failed."));
    }
    statuses
}
