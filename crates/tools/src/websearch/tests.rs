//! When `websearch` is offered; what engines are asked is tried in the crate `web`.

use super::*;
use crate::codesearch::CodeSearch;
use crate::harness;

#[test]
fn the_schema_is_current() {
    harness::check_schema(&WebSearch(Arc::default()), expect_test::expect_file!["schema.json"]);
}

#[test]
fn it_is_offered_only_with_an_engine_that_can_be_asked() {
    let offered = |engines: Vec<Engine>| {
        let web = Arc::new(Web::new(engines, String::new()));
        let scene = Scene::default();
        (WebSearch(Arc::clone(&web)).offered(&scene), CodeSearch(web).offered(&scene))
    };
    assert_eq!(offered(Vec::new()), (false, false));
    assert_eq!(offered(windlass_web::engines()), (false, false), "nobody has a key");
    let mut rows = windlass_web::engines();
    for row in &mut rows {
        row.key = (row.name == "brave").then(|| "secret".to_owned().into());
    }
    assert_eq!(offered(rows.clone()), (true, false));
    for row in &mut rows {
        row.key = (row.name == "exa").then(|| "secret".to_owned().into());
    }
    assert_eq!(offered(rows.clone()), (true, true));
    let exa = Access::Fetch { host: "api.exa.ai".to_owned() };
    assert_eq!(asked(Web::new(rows, String::new()).pages()), [exa]);
}
