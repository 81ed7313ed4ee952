//! The cases of `task`, and tests of its description and of the report to the model.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use crate::case_runner;
use windlass_protocol::Fault;
use windlass_toolkit::AgentSummary;

windlass_testkit::cases!(case_runner::run_case, "task/cases":
    the_last_message_of_the_agent_is_returned,
    a_rule_may_deny_an_agent,
    an_empty_prompt_is_refused,
    an_invalid_session_is_reported,
);

#[test]
fn the_schema_is_current() {
    case_runner::check_schema(&SubagentTaskTool, expect_test::expect_file!["schema.json"]);
}

#[tokio::test]
async fn it_is_offered_with_the_available_agents() {
    let mut context = StepContext::default();
    assert!(!SubagentTaskTool.is_offered(&context), "no agents");
    let agent =
        |name: &str| AgentSummary { name: name.into(), description: format!("For {name}.") };
    context.agents = vec![agent("explore"), agent("general")];
    assert!(SubagentTaskTool.is_offered(&context));
    let text = SubagentTaskTool.describe(&context).await.description;
    assert!(text.ends_with("\n- explore: For explore.\n- general: For general."), "{text}");
}

#[tokio::test]
async fn background_is_offered_only_if_a_user_is_present() {
    for (user, is_offered) in [(UserPresence::Present, true), (UserPresence::Absent, false)] {
        let context = StepContext { user, ..StepContext::default() };
        let definition = SubagentTaskTool.describe(&context).await;
        assert_eq!(definition.description.contains("background"), is_offered, "{user:?}");
        assert_eq!(definition.schema["properties"].get("background").is_some(), is_offered);
    }
}

#[test]
fn an_unfinished_task_is_a_failure() {
    let session = "00000000-0000-0000-0000-000000000007".parse().unwrap();
    let report = |end| render_report(SubagentReport { session, text: "Half.".into(), end });
    assert!(report(Some(TurnEndReason::Completed)).unwrap().starts_with("Half.\n"));
    assert!(report(None).unwrap().contains("background"));
    let fault = Fault::Network { message: "gone".into() };
    for end in [
        TurnEndReason::Denied,
        TurnEndReason::Interrupted,
        TurnEndReason::LoopDetected { repeated_action: "read a".into() },
        TurnEndReason::LimitReached { limit: "the limit of 3 requests".into() },
        TurnEndReason::Failed { fault },
    ] {
        let failure = report(Some(end.clone())).unwrap_err();
        assert!(failure.text.contains("Half."), "{end:?}: no last message");
        assert!(failure.text.contains(&session.to_string()), "{end:?}: no session");
    }
}
