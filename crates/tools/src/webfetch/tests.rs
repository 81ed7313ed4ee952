//! Tests of the definition and the access of `webfetch`; `tests/web` tests its behavior.

use super::*;
use crate::case_runner;
use windlass_permission::Policy;
use windlass_toolkit::Registry;

#[test]
fn the_schema_is_current() {
    case_runner::check_schema(
        &WebFetchTool(Arc::default()),
        expect_test::expect_file!["schema.json"],
    );
}

#[test]
fn the_definition_is_small() {
    let registry = Registry::default();
    registry.register(WebFetchTool(Arc::default()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let policy = Policy::new(Default::default());
    let snapshot = runtime.block_on(registry.snapshot(&StepContext::default(), &policy));
    let definitions = snapshot.listed_summaries().into_iter().map(|tool| {
        serde_json::json!({"type": "function", "function": {"name": tool.name,
            "description": tool.description, "parameters": tool.schema}})
    });
    let definitions: Vec<String> = definitions.map(|definition| definition.to_string()).collect();
    assert_eq!(definitions.len(), 1);
    assert!(definitions[0].len() <= 420, "{} bytes: {}", definitions[0].len(), definitions[0]);
}

#[test]
fn a_longer_timeout_is_suggested_only_if_there_is_one() {
    assert!(super::timeout_text(30).ends_with("after 30 s. Try again with a longer timeout."));
    let longest = super::timeout_text(super::MAX_TIMEOUT_SECS);
    assert!(longest.contains("after 120 s") && !longest.contains("with a longer"), "{longest}");
}

#[test]
fn only_a_url_with_a_valid_host_needs_access() {
    let access = |url: &str| {
        let input = WebFetchInput { url: url.to_owned(), format: None, timeout: None };
        WebFetchTool(Arc::default()).access(&input)
    };
    let docs = ToolAccess::Fetch { host: "docs.rs".to_owned() };
    assert_eq!(access("https://DOCS.rs./x#y"), [docs]);
    assert_eq!(access("http://127.1/"), []);
}
