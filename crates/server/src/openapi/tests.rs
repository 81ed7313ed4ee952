//! Tests of the OpenAPI document.

use super::openapi_document;
use crate::routes::{RouteBody, all_routes, parameter_name};
use serde_json::Value;
use std::collections::BTreeSet;

fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get("$ref") {
                found.insert(reference.clone());
            }
            fields.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

#[test]
fn every_route_has_an_operation_with_its_parameters_body_and_answer() {
    let document = openapi_document();
    let mut ids = BTreeSet::new();
    for route in all_routes() {
        let method = route.method.as_str().to_ascii_lowercase();
        let operation = &document["paths"][route.path][&method];
        assert!(operation.is_object(), "{method} {}", route.path);
        assert!(ids.insert(operation["operationId"].as_str().unwrap().to_owned()));
        let summary = operation["summary"].as_str().unwrap();
        assert!(summary.len() > 5, "{method} {}: {summary:?}", route.path);
        let parameters = operation["parameters"].as_array().unwrap();
        for name in route.path.split('/').filter_map(parameter_name) {
            let is_declared = |parameter: &&Value| {
                parameter["name"] == name
                    && parameter["in"] == "path"
                    && parameter["required"] == true
            };
            assert_eq!(parameters.iter().filter(is_declared).count(), 1, "{}", route.path);
        }
        let has_body = !matches!(route.body, RouteBody::None);
        assert_eq!(operation.get("requestBody").is_some(), has_body, "{}", route.path);
        let statuses: Vec<&String> = operation["responses"].as_object().unwrap().keys().collect();
        assert!(statuses.iter().any(|status| status.starts_with('2')), "{}", route.path);
        assert!(statuses.iter().any(|status| *status == "403"), "{}", route.path);
    }
}

#[test]
fn every_reference_resolves_and_no_link_syntax_is_left() {
    let document = openapi_document();
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    assert!(found.len() > 50, "{found:?}");
    for reference in found {
        let name = reference.strip_prefix("#/components/schemas/").expect(&reference);
        assert!(document["components"]["schemas"][name].is_object(), "{reference}");
    }
    assert!(!document.to_string().contains("[`"));
    let schemas = document["components"]["schemas"].as_object().unwrap();
    assert!(schemas.contains_key("Transcript") && !schemas.contains_key("StatusLineInput"));
}

#[test]
fn a_body_has_only_the_fields_that_the_path_and_the_query_do_not_set() {
    let document = openapi_document();
    let schema = |path: &str, method: &str| {
        document["paths"][path][method]["requestBody"]["content"]["application/json"]["schema"]
            .clone()
    };
    let names = |schema: &Value| -> Vec<String> {
        let mut names: Vec<_> = schema["properties"].as_object().unwrap().keys().cloned().collect();
        names.sort();
        names
    };
    let rename = schema("/v1/sessions/{id}/title", "put");
    assert_eq!(names(&rename), ["title"]);
    assert_eq!(rename["required"], serde_json::json!(["title"]));
    let action = schema("/v1/reports/{kind}/actions", "post");
    assert_eq!(names(&action), ["action", "item"]);
    let op = schema("/v1/sessions/{id}/ops", "post");
    let text = op.to_string();
    assert!(!text.contains("session_op"), "{text}");
    assert!(text.contains("SessionOp") || text.contains("\"prompt\""), "{text}");
}

#[test]
fn the_published_document_is_current() {
    let document = serde_json::to_string_pretty(&openapi_document()).unwrap();
    expect_test::expect_file!["../../../../docs/schema/api.openapi.json"]
        .assert_eq(&(document + "\n"));
}
