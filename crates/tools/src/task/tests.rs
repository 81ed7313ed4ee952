//! What a model is sent and told.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::harness;
use windlass_protocol::Fault;
use windlass_toolkit::AgentCard;

windlass_testkit::cases!(harness::run, "task/cases":
    an_agent_does_it_and_its_word_comes_back,
    a_rule_may_deny_an_agent,
    a_task_without_a_word_is_not_handed_over,
    what_is_no_session_is_told,
);

#[test]
fn the_schema_is_current() {
    harness::check_schema(&Task, expect_test::expect_file!["schema.json"]);
}

#[tokio::test]
async fn it_is_offered_with_the_agents_there_are() {
    let mut scene = Scene::default();
    assert!(!Task.offered(&scene), "there is nobody to put to work");
    let card = |name: &str| AgentCard { name: name.into(), description: format!("For {name}.") };
    scene.agents = vec![card("explore"), card("general")];
    assert!(Task.offered(&scene));
    let text = Task.describe(&scene).await.description;
    assert!(text.ends_with("\n- explore: For explore.\n- general: For general."), "{text}");
}

#[test]
fn only_what_was_done_is_a_result() {
    let session = "00000000-0000-0000-0000-000000000007".parse().unwrap();
    let report = |end| told(Report { session, text: "Half.".into(), end });
    assert!(report(Some(TurnEnd::Done)).unwrap().starts_with("Half.\n"));
    assert!(report(None).unwrap().contains("background"));
    let fault = Fault::Network { message: "gone".into() };
    for end in [
        TurnEnd::Denied,
        TurnEnd::Interrupted,
        TurnEnd::Looped { what: "read a".into() },
        TurnEnd::Limit { what: "the limit of 3 requests".into() },
        TurnEnd::Failed { fault },
    ] {
        let failure = report(Some(end.clone())).unwrap_err();
        assert!(failure.text.contains("Half."), "{end:?}: what it said is not lost");
        assert!(failure.text.contains(&session.to_string()), "{end:?}: nor where");
    }
}
