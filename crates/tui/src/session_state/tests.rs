//! Tests of `SessionState`: live events, and the history of a resumed session.

use super::*;
use windlass_protocol::{
    CallAuthor, CallOutcome, Fault, PromptDelivery, PromptId, ToolOutput, UnixMillis,
};

fn session() -> SessionId {
    SessionId(uuid::Uuid::from_u128(1))
}

fn call(number: u128) -> CallId {
    CallId(uuid::Uuid::from_u128(number))
}

fn prompt(number: u128) -> PromptId {
    PromptId(uuid::Uuid::from_u128(number))
}

fn tool_called(number: u128, tool: &str, arguments: &str) -> Fact {
    Fact::ToolCalled {
        description: crate::test_call_descriptions::describe(tool, arguments),
        call: call(number),
        provider_call_id: String::new(),
        tool: tool.into(),
        arguments: arguments.into(),
        author: CallAuthor::Model,
        repair: Vec::new(),
        provider_signature: None,
    }
}

fn call_started(number: u128) -> Fact {
    Fact::CallStarted {
        call: call(number),
        attempt: 1,
        accesses: Vec::new(),
        read_only: true,
        repair: None,
    }
}

fn call_settled(number: u128) -> Fact {
    let outcome = CallOutcome::Completed { output: ToolOutput::default() };
    Fact::CallSettled { call: call(number), outcome, seen_files: Vec::new() }
}

fn prompt_submitted(number: u128, delivery: PromptDelivery) -> Fact {
    Fact::PromptSubmitted {
        prompt: prompt(number),
        text: format!("prompt {number}"),
        attachments: Vec::new(),
        delivery,
        settings: Default::default(),
    }
}

fn step_started() -> Fact {
    let model = "maker/one".to_owned();
    Fact::StepStarted { turn: 1, step: 1, model, purpose: StepPurpose::Answer }
}

fn records(facts: impl IntoIterator<Item = Fact>) -> Vec<FactRecord> {
    let record = |(seq, fact)| FactRecord::new(session(), seq, UnixMillis(seq * 1_000), fact);
    (1..).zip(facts).map(record).collect()
}

fn open_state() -> SessionState {
    SessionState { session: Some(session()), ..SessionState::default() }
}

fn apply_facts(state: &mut SessionState, facts: impl IntoIterator<Item = Fact>) {
    for record in records(facts) {
        state.on_event(&Event::Fact(record), 0);
    }
}

#[test]
fn the_activity_describes_the_current_call() {
    let mut state = open_state();
    apply_facts(&mut state, [Fact::TurnStarted { turn: 1, prompt: None }, step_started()]);
    assert_eq!(state.activity, "waiting for one");
    apply_facts(
        &mut state,
        [
            tool_called(1, "bash", r#"{"command":"cargo test"}"#),
            tool_called(2, "read", r#"{"filePath":"a.rs"}"#),
        ],
    );
    apply_facts(&mut state, [call_started(1), call_started(2)]);
    assert_eq!(state.activity, "running cargo test");
    apply_facts(&mut state, [call_settled(1)]);
    assert_eq!(state.activity, "reading a.rs", "a settled call is no longer shown");
    apply_facts(
        &mut state,
        [Fact::PermissionAsked {
            danger: Default::default(),
            call: call(2),
            accesses: Vec::new(),
            reason: String::new(),
            preview: None,
            approval_kind: None,
            repair: None,
        }],
    );
    assert_eq!(state.activity, "waiting for your answer");
    let fault = Fault::Network { message: "reset".into() };
    apply_facts(
        &mut state,
        [Fact::StepRetrying { turn: 1, step: 1, attempt: 1, fault, wait_ms: 4_000, model: None }],
    );
    assert_eq!(state.activity, "retrying in 4 s");
    apply_facts(&mut state, [Fact::TurnEnded { turn: 1, end: TurnEndReason::Completed }]);
    assert!(state.activity.is_empty() && !state.is_busy());
}

#[test]
fn a_prompt_is_queued_until_it_is_delivered_or_withdrawn() {
    let mut state = open_state();
    apply_facts(&mut state, (1..=3).map(|number| prompt_submitted(number, PromptDelivery::Queue)));
    assert_eq!(state.queued_prompts.len(), 3);
    apply_facts(&mut state, [Fact::TurnStarted { turn: 1, prompt: Some(prompt(1)) }]);
    apply_facts(&mut state, [Fact::PromptSteered { turn: 1, prompt: prompt(2) }]);
    apply_facts(&mut state, [Fact::PromptWithdrawn { prompt: prompt(3) }]);
    assert!(state.queued_prompts.is_empty(), "{:?}", state.queued_prompts);
}

#[test]
fn a_resumed_session_has_the_state_of_a_watched_one() {
    let facts = || {
        let usage = TokenUsage { input: 900, output: 100, ..TokenUsage::default() };
        let finish_reason = windlass_protocol::FinishReason::ToolCalls;
        [
            Fact::ModeChanged { mode: PermissionMode::Auto },
            Fact::SessionRenamed { title: "the harbour".into() },
            prompt_submitted(1, PromptDelivery::Steer),
            Fact::TurnStarted { turn: 1, prompt: Some(prompt(1)) },
            step_started(),
            tool_called(1, "bash", r#"{"command":"make"}"#),
            Fact::StepEnded { turn: 1, step: 1, finish_reason, usage, cost: Some(Cost(5)) },
            call_started(1),
            prompt_submitted(2, PromptDelivery::Queue),
        ]
    };
    let mut watched = open_state();
    apply_facts(&mut watched, facts());
    let mut resumed = SessionState { early_records: Some(Vec::new()), ..open_state() };
    // The last fact arrives before the history, which does not contain it yet.
    let mut page = records(facts());
    let last = page.pop().unwrap();
    resumed.on_event(&Event::Fact(last), 20_000);
    // So does the news that another process has the session, and that the connection is lost.
    let client = windlass_protocol::ClientInfo {
        name: "bob".into(),
        kind: windlass_protocol::ClientKind::Terminal,
    };
    resumed.set_clients(resumed.session.unwrap(), vec![client.clone(), client], false);
    resumed.is_disconnected = true;
    let reply = QueryReply::Events { events: page };
    resumed.on_history_response(&Ok(HostResponse::Reply { reply }), 20_000);
    assert_eq!(resumed.activity, "running make");
    assert_eq!(resumed.turn.map(|(turn, _)| turn), Some(1));
    assert_eq!(
        (&resumed.title, resumed.mode, resumed.cost, resumed.context_tokens, resumed.head),
        (&watched.title, watched.mode, watched.cost, watched.context_tokens, watched.head)
    );
    assert_eq!(resumed.queued_prompts, watched.queued_prompts);
    assert_eq!(resumed.early_records, None);
    assert!(resumed.is_read_only && resumed.is_disconnected);
    assert_eq!(resumed.other_client_count(), 1);
}

#[test]
fn state_older_than_the_last_page_comes_from_the_transcript() {
    let mut transcript = Transcript::default();
    let cost = Some(Cost(7));
    let finish_reason = windlass_protocol::FinishReason::Stop;
    let usage = TokenUsage::default();
    let facts = [
        Fact::ModeChanged { mode: PermissionMode::Plan },
        Fact::SessionRenamed { title: "long ago".into() },
        Fact::StepEnded { turn: 1, step: 1, finish_reason, usage, cost },
    ];
    for record in records(facts) {
        transcript.push(record.seq, &record.fact);
    }
    let mut state = open_state();
    let reply = QueryReply::Transcript { transcript: Box::new(transcript) };
    state.on_history_response(&Ok(HostResponse::Reply { reply }), 0);
    assert_eq!(
        (state.mode, state.title.as_str(), state.cost),
        (PermissionMode::Plan, "long ago", Cost(7))
    );
}
