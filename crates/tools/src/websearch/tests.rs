//! Tests of when `websearch` is offered. The crate `web` tests the requests to the engines.

use super::*;
use crate::case_runner;
use crate::codesearch::WebCodeSearchTool;

#[test]
fn the_schema_is_current() {
    case_runner::check_schema(
        &WebSearchTool(Arc::default()),
        expect_test::expect_file!["schema.json"],
    );
}

#[test]
fn it_is_offered_only_with_a_usable_engine() {
    let is_offered = |engines: Vec<SearchEngine>| {
        let web = Arc::new(WebClient::new(engines, String::new()));
        let context = StepContext::default();
        (
            WebSearchTool(Arc::clone(&web)).is_offered(&context),
            WebCodeSearchTool(web).is_offered(&context),
        )
    };
    assert_eq!(is_offered(Vec::new()), (false, false));
    assert_eq!(is_offered(windlass_web::built_in_engines()), (false, false), "no API keys");
    let mut engines = windlass_web::built_in_engines();
    for engine in &mut engines {
        engine.key = (engine.name == "brave").then(|| "secret".to_owned().into());
    }
    assert_eq!(is_offered(engines.clone()), (true, false));
    for engine in &mut engines {
        engine.key = (engine.name == "exa").then(|| "secret".to_owned().into());
    }
    assert_eq!(is_offered(engines.clone()), (true, true));
    let exa = ToolAccess::Fetch { host: "api.exa.ai".to_owned() };
    assert_eq!(search_access(WebClient::new(engines, String::new()).page_engine()), [exa]);
}
