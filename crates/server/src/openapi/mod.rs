//! The OpenAPI document of the server, from the routes and the schemas of their messages.
//!
//! Nothing here names a path: an operation is made from its `Route`, its description from the
//! comment of the request, and its schemas from the types. Start reading at [`openapi_document`].

mod operations;
mod schemas;

use crate::WIRE_REVISION;
use operations::operation;
use schemas::MessageSchemas;
use serde_json::{Map, Value, json};

use crate::routes::all_routes;

/// Returns the OpenAPI 3.1 document of the server.
pub fn openapi_document() -> Value {
    let mut schemas = MessageSchemas::new();
    let mut paths = Map::new();
    for route in all_routes() {
        let operation = operation(route, &mut schemas);
        let path = paths.entry(route.path).or_insert_with(|| Value::Object(Map::new()));
        if let Some(path) = path.as_object_mut() {
            path.insert(route.method.as_str().to_ascii_lowercase(), operation);
        }
    }
    let paths = Value::Object(paths);
    let definitions = schemas.into_definitions(&paths);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Windlass",
            "version": WIRE_REVISION.to_string(),
            "description": "API of a Windlass server. Unknown fields are ignored; additions do \
                not change the version. The header `Windlass-Client` names the kind of the client: \
                `terminal`, `command_line`, `web_page`, `editor` or `program`.",
        },
        "servers": [{ "url": "/" }],
        "security": [{ "token": [] }, { "page": [] }],
        "paths": paths,
        "components": {
            "schemas": definitions,
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token of `windlass serve token add`.",
                },
                "page": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": "windlass",
                    "description": "The cookie of `/v1/login`; `__Host-windlass` with TLS. It \
                        counts only for requests of the same origin with the header \
                        `X-Windlass: page`.",
                },
            },
        },
    })
}

#[cfg(test)]
mod tests;
