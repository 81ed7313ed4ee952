//! Rows that stand for a longer text, and rows that are worded for the user.

use super::*;
use expect_test::expect;
use windlass_protocol::{
    ContextChange, Fault, INIT_ADDITION, INIT_PROMPT_START, REVIEW_PROMPT_START, REVIEW_TARGET_END,
    SystemPromptState, USER_DENIAL_TEXT,
};

#[test]
fn prompts_of_windlass_are_shown_as_their_command_until_expanded() {
    let mut env = TestTranscript::open((60, 24));
    let review = format!("{REVIEW_PROMPT_START}, and the untracked files.\n\nChange nothing.");
    for (turn, text) in (1..).zip([
        format!("{INIT_PROMPT_START} how to build it."),
        format!("{INIT_PROMPT_START} how to build it.{INIT_ADDITION}name the tests"),
        format!("Review topic{REVIEW_TARGET_END} topic)`.\n\nChange nothing."),
        review,
        "Review topic, please.".to_owned(),
    ]) {
        env.start_turn(turn, &text);
        env.fact(turn_completed(turn));
    }
    expect![[r#"
        › /init

        › /init name the tests

        › /review topic

        › /review

        › Review topic, please."#]]
    .assert_eq(&env.frame());
    env.transcript.toggle_details(DetailsTarget::MiddleBlock);
    expect![[r#"
        › /init

        › /init name the tests

        › /review topic

        › Review the uncommitted changes of this repository: `git
          status --short`, `git diff HEAD`, and the untracked files.

          Change nothing.

        › Review topic, please."#]]
    .assert_eq(&env.frame());
}

#[test]
fn changes_that_the_model_is_told_are_named_until_expanded() {
    let text = "The environment or instructions have changed. These lines replace the old ones.";
    let instructions = [("AGENTS.md".to_owned(), "digest".to_owned())].into();
    let environment = [("date".to_owned(), "today".to_owned())].into();
    let updated = |environment, instructions| ContextChange::Prompt {
        state: SystemPromptState { environment, instructions },
    };
    let mut env = TestTranscript::open((60, 24));
    env.start_turn(1, "go");
    for change in [
        updated(Default::default(), instructions),
        updated(environment, Default::default()),
        ContextChange::Todos { items: Vec::new() },
        ContextChange::TurnConditions,
        ContextChange::TurnContinued,
        // The line of `ModeChanged` says it already.
        ContextChange::Mode { mode: PermissionMode::Auto },
        ContextChange::JobEnded { job: 2 },
    ] {
        env.fact(Fact::ContextChanged { text: text.into(), change });
    }
    expect![[r#"
        › go

          Instructions updated (Ctrl+O to view)
          Environment updated (Ctrl+O to view)
          Todo list restated (Ctrl+O to view)
          Goal or allowed calls of this turn stated (Ctrl+O to view)
          Turn continued (Ctrl+O to view)
          Job 2 ended (Ctrl+O to view)"#]]
    .assert_eq(&env.frame());
    env.transcript.toggle_details(DetailsTarget::MiddleBlock);
    let frame = env.frame();
    assert!(frame.contains("lines replace the old ones."), "{frame}");
}

#[test]
fn a_retry_is_not_announced_after_it_happened() {
    let retry = |attempt, model: Option<&str>| Fact::StepRetrying {
        turn: 1,
        step: 1,
        attempt,
        fault: Fault::Network { message: "connection reset".into() },
        wait_ms: 4_000,
        model: model.map(str::to_owned),
    };
    let mut env = TestTranscript::open((100, 24));
    env.start_turn(1, "go");
    env.facts([retry(1, None), retry(2, None), retry(3, Some("other/m"))]);
    env.stream_text("Here it is.");
    let streaming = env.frame();
    expect![[r#"
        › go

          The connection to the model failed: connection reset (attempt 2 of 5)
          The connection to the model failed: connection reset. Continued with other/m

          Here it is."#]]
    .assert_eq(&streaming);
    env.facts([model_text("Here it is."), turn_completed(1)]);
    assert_eq!(env.frame(), streaming);
}

#[test]
fn a_collapsed_failure_names_its_cause_and_a_denial_the_user() {
    let mut env = TestTranscript::open((80, 24));
    let invalid = "todowrite was called with invalid arguments:\n- `todos`: required, but missing\n\
                   Call it again like this: {}";
    let denial = format!("{USER_DENIAL_TEXT}: use make");
    env.facts([
        tool_called(1, "todowrite", "{}"),
        call_settled(1, CallOutcome::Failed { text: invalid.into() }),
        tool_called(2, "bash", r#"{"command":"rm -rf build"}"#),
        call_settled(2, CallOutcome::Denied { text: denial }),
        tool_called(3, "bash", r#"{"command":"make"}"#),
        call_settled(3, CallOutcome::Denied { text: "a rule denies bash".into() }),
    ]);
    expect![[r#"
        ✗ Todos
            todowrite was called with invalid arguments: `todos`: required, but missing

        ⊘ Run rm -rf build
            You denied this: use make

        ⊘ Run make
            a rule denies bash"#]]
    .assert_eq(&env.frame());
}
