//! What a model is told of `webfetch`; what it does is tried in `tests/web`.

use super::*;
use crate::harness;
use windlass_permission::Policy;
use windlass_toolkit::Registry;

#[test]
fn the_schema_is_current() {
    harness::check_schema(&WebFetch(Arc::default()), expect_test::expect_file!["schema.json"]);
}

#[test]
fn what_a_model_is_told_is_small() {
    let registry = Registry::default();
    registry.register(WebFetch(Arc::default()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let policy = Policy::new(Default::default());
    let snapshot = runtime.block_on(registry.snapshot(&Scene::default(), &policy));
    let told = snapshot.offered().into_iter().map(|told| {
        serde_json::json!({"type": "function", "function": {"name": told.name,
            "description": told.description, "parameters": told.schema}})
    });
    let told: Vec<String> = told.map(|told| told.to_string()).collect();
    assert_eq!(told.len(), 1);
    assert!(told[0].len() <= 420, "{} bytes: {}", told[0].len(), told[0]);
}

#[test]
fn only_an_address_that_names_a_host_touches_one() {
    let access = |url: &str| {
        let input = Input { url: url.to_owned(), format: None, timeout: None };
        WebFetch(Arc::default()).access(&input)
    };
    let docs = Access::Fetch { host: "docs.rs".to_owned() };
    assert_eq!(access("https://DOCS.rs./x#y"), [docs]);
    assert_eq!(access("http://127.1/"), []);
}
