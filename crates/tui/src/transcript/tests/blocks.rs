//! Tests of the blocks that facts become.

use super::*;
use crate::transcript::blocks::TranscriptBlockKind;
use windlass_protocol::{
    ContextChange, Fault, HookPoint, HookVerdict, PermissionAnswer, StepPurpose, UserQuestion,
};

/// Returns the names of the blocks that facts become.
fn blocks(facts: impl IntoIterator<Item = Fact>) -> Vec<&'static str> {
    let mut env = TestTranscript::open((80, 24));
    env.facts(facts);
    block_names(&env)
}

fn block_names(env: &TestTranscript) -> Vec<&'static str> {
    let name = |kind: &TranscriptBlockKind| match kind {
        TranscriptBlockKind::Prompt { content: Some(_), steered: false } => "prompt",
        TranscriptBlockKind::Prompt { content: Some(_), steered: true } => "steered",
        TranscriptBlockKind::Prompt { content: None, .. } => "prompt outside the window",
        TranscriptBlockKind::ModelText => "text",
        TranscriptBlockKind::Reasoning => "reasoning",
        TranscriptBlockKind::ToolCall(_) => "call",
        TranscriptBlockKind::TurnEnded { .. } => "end",
        TranscriptBlockKind::ModeChanged(_) => "mode",
        TranscriptBlockKind::AgentChanged(_) => "agent",
        TranscriptBlockKind::ModelChanged(_) => "model",
        TranscriptBlockKind::Compacted => "compacted",
        TranscriptBlockKind::Forked => "forked",
        TranscriptBlockKind::Rewound => "rewound",
        TranscriptBlockKind::HookDenied => "hook denied",
        TranscriptBlockKind::Retrying => "retrying",
        TranscriptBlockKind::LostText => "lost text",
        TranscriptBlockKind::FactsLost => "lost facts",
        TranscriptBlockKind::ModelNotice => "model notice",
        TranscriptBlockKind::Note(_) => "note",
    };
    env.transcript.blocks.blocks.iter().map(|block| name(&block.kind)).collect()
}

fn hook_ran(call: Option<CallId>, verdict: HookVerdict) -> Fact {
    Fact::HookRan { call, hook: "guard".into(), point: HookPoint::Prompt, duration_ms: 1, verdict }
}

fn step_retrying(attempt: u32) -> Fact {
    let fault = Fault::Network { message: "reset".into() };
    Fact::StepRetrying { turn: 1, step: attempt, attempt, fault, wait_ms: 2_000, model: None }
}

fn turn_ended(end: TurnEndReason) -> Fact {
    Fact::TurnEnded { turn: 1, end }
}

#[test]
fn a_turn_without_an_answer_says_so() {
    let started = [Fact::TurnStarted { turn: 1, prompt: Some(prompt(1)) }, step_started(1, 1)];
    let ended = [step_ended(1, 1), turn_ended(TurnEndReason::Completed)];
    let prompt = "prompt outside the window";
    assert_eq!(blocks(started.clone().into_iter().chain(ended.clone())), [prompt, "end"]);
    let answered = started.clone().into_iter().chain([model_text("Done.")]).chain(ended.clone());
    assert_eq!(blocks(answered), [prompt, "text"]);
    // Text before the last request is no answer.
    let next_step = [step_ended(1, 1), step_started(1, 2)];
    let facts = started.into_iter().chain([model_text("Let me see.")]).chain(next_step);
    assert_eq!(blocks(facts.chain(ended)), [prompt, "text", "end"]);
}

#[test]
fn every_fact_becomes_its_block_or_none() {
    let reason = || "no".to_owned();
    let lost = Fact::StepEnded {
        turn: 1,
        step: 1,
        finish_reason: FinishReason::ProcessDied,
        usage: TokenUsage::default(),
        cost: None,
    };
    let purpose = StepPurpose::Summary;
    let summary = Fact::StepStarted { turn: 1, step: 1, model: "m".into(), purpose };
    let without_block = [
        Fact::session_opened("/w", "0.9"),
        Fact::SystemPromptSet {
            text: "be good".into(),
            state: windlass_protocol::SystemPromptState::default(),
        },
        Fact::SessionRenamed { title: "a title".into() },
        Fact::OutputsPruned { calls: vec![call(1)] },
        prompt_submitted(prompt(1), "waits"),
        Fact::PromptWithdrawn { prompt: prompt(1) },
        Fact::TurnStarted { turn: 1, prompt: None },
        summary,
        step_ended(1, 1),
        Fact::TurnInterrupted { turn: 1 },
        turn_ended(TurnEndReason::Completed),
        model_text("  \n"),
        model_reasoning(""),
        permission_asked(1),
        Fact::PermissionAnswered { call: call(1), answer: PermissionAnswer::Once },
        call_started(1),
        Fact::QuestionAsked { call: call(1), questions: Vec::<UserQuestion>::new() },
        Fact::QuestionAnswered { call: call(1), answers: Vec::new() },
        Fact::SubagentStarted {
            call: call(1),
            session: session(),
            agent: "explore".into(),
            after: 0,
        },
        Fact::FilesChanging { call: call(1), changes: Vec::new() },
        Fact::FilesUnchanged { call: call(1) },
        call_settled(1, text_outcome("x")),
        hook_ran(None, HookVerdict::Passed),
        hook_ran(None, HookVerdict::Rewrote),
        hook_ran(None, HookVerdict::Asks { reason: reason() }),
        hook_ran(Some(call(1)), HookVerdict::Refused { reason: reason() }),
        Fact::ContextChanged {
            text: "The mode is now auto.".into(),
            change: ContextChange::Mode { mode: PermissionMode::Auto },
        },
    ];
    for fact in without_block {
        let kind = fact.kind();
        assert_eq!(blocks([fact]), [""; 0], "{kind}");
    }
    let with_block = [
        (Fact::ModeChanged { mode: PermissionMode::Auto }, "mode"),
        (Fact::SessionForked { source_session: session(), through: 3 }, "forked"),
        (
            Fact::ContextCompacted {
                through: 3,
                summary: "all".into(),
                todos: Vec::new(),
                mode: None,
            },
            "compacted",
        ),
        (Fact::Rewound { to: 0 }, "rewound"),
        (Fact::TurnStarted { turn: 1, prompt: Some(prompt(1)) }, "prompt outside the window"),
        (Fact::PromptSteered { turn: 1, prompt: prompt(1) }, "prompt outside the window"),
        (lost, "lost text"),
        (step_retrying(1), "retrying"),
        (turn_ended(TurnEndReason::Interrupted), "end"),
        (turn_ended(TurnEndReason::Denied), "end"),
        (turn_ended(TurnEndReason::LimitReached { limit: "steps".into() }), "end"),
        (turn_ended(TurnEndReason::LoopDetected { repeated_action: "read".into() }), "end"),
        (
            turn_ended(TurnEndReason::Failed { fault: Fault::Network { message: "x".into() } }),
            "end",
        ),
        (model_text("hello"), "text"),
        (model_reasoning("hm"), "reasoning"),
        (tool_called(1, "read", "{}"), "call"),
        (hook_ran(None, HookVerdict::Refused { reason: reason() }), "hook denied"),
        (hook_ran(None, HookVerdict::Failed { reason: reason() }), "hook denied"),
        (Fact::context_note("a file changed"), "model notice"),
    ];
    for (fact, name) in with_block {
        let kind = fact.kind();
        assert_eq!(blocks([fact]), [name], "{kind}");
    }
}

#[test]
fn a_prompt_is_shown_where_the_model_received_it() {
    let facts = [
        prompt_submitted(prompt(1), "first"),
        Fact::TurnStarted { turn: 1, prompt: Some(prompt(1)) },
        prompt_submitted(prompt(2), "no, that way"),
        model_text("one"),
        Fact::PromptSteered { turn: 1, prompt: prompt(2) },
        model_text("two"),
    ];
    assert_eq!(blocks(facts), ["prompt", "text", "steered", "text"]);
}

#[test]
fn consecutive_retries_and_mode_changes_become_one_block() {
    let facts = [step_retrying(1), step_retrying(2), step_retrying(3), model_text("well")];
    assert_eq!(blocks(facts), ["retrying", "text"]);
    let mode = |mode| Fact::ModeChanged { mode };
    assert_eq!(
        blocks([mode(PermissionMode::Plan), mode(PermissionMode::Ask), mode(PermissionMode::Auto)]),
        ["mode"]
    );
}

#[test]
fn the_line_of_a_mode_follows_the_call_that_ran() {
    let mode = Fact::ModeChanged { mode: PermissionMode::Auto };
    let running = [tool_called(1, "bash", "{}"), mode.clone()];
    assert_eq!(blocks(running.clone()), ["call"]);
    let settled = running.clone().into_iter().chain([call_settled(1, text_outcome("ok"))]);
    assert_eq!(blocks(settled), ["call", "mode"]);
    let parallel = running.into_iter().chain([tool_called(2, "bash", "{}")]);
    assert_eq!(blocks(parallel), ["call", "mode", "call"]);
}

#[test]
fn rewound_blocks_are_gone_also_after_a_resume() {
    let mut env = TestTranscript::open((80, 24));
    env.start_turn(1, "first");
    env.facts([model_text("one"), turn_completed(1)]);
    let to = env.log.len() as u64;
    env.start_turn(2, "second");
    env.facts([
        model_text("two"),
        tool_called(1, "read", "{}"),
        turn_completed(2),
        Fact::Rewound { to },
    ]);
    assert_eq!(block_names(&env), ["prompt", "text", "rewound"]);
    env.fact(call_settled(1, text_outcome("late")));
    env.start_turn(3, "third");
    assert_eq!(block_names(&env), ["prompt", "text", "rewound", "prompt"]);
    let resumed = TestTranscript::resumed((80, 24), env.log);
    assert_eq!(block_names(&resumed), ["prompt", "text", "rewound", "prompt"]);
}

#[test]
fn a_long_turn_shows_its_duration() {
    let mut env = TestTranscript::open((80, 24));
    env.start_turn(1, "go");
    env.now += 65_000;
    env.facts([step_ended(1, 1), turn_completed(1)]);
    assert_eq!(block_names(&env), ["prompt", "end"]);
    assert!(env.frame().contains("1 m 05 s · $0.01"), "{}", env.frame());
}

#[test]
fn an_outcome_without_its_call_becomes_no_block() {
    let facts = [call_started(9), call_settled(9, text_outcome("x")), model_text("hello")];
    assert_eq!(blocks(facts), ["text"]);
}

#[test]
fn a_note_stays_where_it_was_added() {
    let mut env = TestTranscript::open((80, 24));
    env.fact(model_text("one"));
    env.transcript.add_note("take care");
    env.transcript.add_note("and more");
    env.fact(model_text("two"));
    env.transcript.blocks.rebuild(&env.transcript.window);
    assert_eq!(block_names(&env), ["text", "note", "note", "text"]);
}
