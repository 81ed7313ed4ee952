//! Loop detection in arbitrary sequences of calls.

use crate::session::{InputTimeAndId, Session, SessionEffect, SessionInput, TurnLimits};
use proptest::prelude::*;
use uuid::Uuid;
use windlass_llm::ModelEvent;
use windlass_protocol::{
    CallOutcome, Fact, FinishReason, SessionOp, TokenUsage, ToolAccess, ToolOutput, TurnEndReason,
    UnixMillis,
};
use windlass_toolkit::CallIntent;

/// Makes these calls, given as arguments and output, one per step. Returns the number of calls
/// before a permission request or the end of the turn.
fn calls_before_request(calls: &[(String, String)]) -> usize {
    let config = super::config(TurnLimits::default());
    let mut session = Session::new(Fact::session_opened("/w", "0"), config);
    let mut clock = 0;
    let mut inputs = vec![SessionInput::Op(SessionOp::prompt("go"))];
    let mut call_count = 0;
    while let Some(input) = inputs.pop() {
        clock += 1;
        let stamp = InputTimeAndId { at: UnixMillis(0), id: Uuid::from_u128(clock) };
        for effect in session.apply(stamp, input) {
            match effect {
                SessionEffect::CallModel { turn, step, .. } => {
                    let Some((arguments, _)) = calls.get(call_count) else { return call_count };
                    let call = ModelEvent::Call {
                        reference: "r".into(),
                        tool: "read".into(),
                        arguments: arguments.clone(),
                        provider_signature: None,
                        repairs: Vec::new(),
                    };
                    let ended = ModelEvent::Ended {
                        finish: FinishReason::ToolCalls,
                        usage: TokenUsage::default(),
                    };
                    inputs.push(SessionInput::Model { turn, step, event: ended });
                    inputs.push(SessionInput::Model { turn, step, event: call });
                }
                SessionEffect::CallTool { turn, call, .. } => {
                    let intent = CallIntent {
                        danger: Default::default(),
                        accesses: vec![ToolAccess::Read { path: "a".into() }],
                        read_only: true,
                        ask_reason: None,
                        approval_kind: None,
                        accepts_earlier_approval: true,
                        repair: None,
                    };
                    inputs.push(SessionInput::PermissionRequested { turn, call, intent });
                }
                SessionEffect::SendPermission { call, .. } => {
                    let text = calls[call_count].1.clone();
                    call_count += 1;
                    let output = ToolOutput { text, ..ToolOutput::default() };
                    inputs.push(SessionInput::CallSettled {
                        turn: 1,
                        call,
                        outcome: CallOutcome::Completed { output },
                        seen_files: Vec::new(),
                    });
                }
                SessionEffect::RequestPreview { .. } => return call_count,
                _ => {}
            }
        }
    }
    call_count
}

/// Computes the same number from the whole list.
fn expected(calls: &[(String, String)]) -> usize {
    for call_count in 0..calls.len() {
        for period in 1..=3 {
            let Some(start) = call_count.checked_sub(period * 3) else { continue };
            let rounds: Vec<_> = calls[start..call_count].chunks(period).collect();
            let all_equal = rounds.iter().all(|round| round == &rounds[0]);
            if all_equal && calls[call_count].0 == rounds[0][0].0 {
                return call_count;
            }
        }
    }
    calls.len()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn loops_are_detected_after_three_rounds(
        prefix in proptest::collection::vec((0_u8..5, 0_u8..2), 0..8),
        cycle in proptest::collection::vec((0_u8..3, 0_u8..2), 1..4),
        rounds in 1_usize..6,
    ) {
        let repeated = cycle.iter().copied().cycle().take(cycle.len() * rounds);
        let calls: Vec<(String, String)> = prefix
            .into_iter()
            .chain(repeated)
            .map(|(argument, output)| (format!("{{\"n\":{argument}}}"), output.to_string()))
            .collect();
        prop_assert_eq!(calls_before_request(&calls), expected(&calls), "{:?}", calls);
    }
}

/// Thousands of equal calls per step: calls within the limit run, the others are rejected, and the
/// turn ends.
#[test]
fn a_flood_of_calls_is_settled_and_ends() {
    let limits = TurnLimits { calls_per_step: 2, answer_bytes: 64 << 20, ..TurnLimits::default() };
    let mut session = Session::new(Fact::session_opened("/w", "0"), super::config(limits));
    let (mut clock, mut log) = (0, Vec::new());
    let mut inputs = std::collections::VecDeque::from([SessionInput::Op(SessionOp::prompt("go"))]);
    while let Some(input) = inputs.pop_front() {
        clock += 1;
        let stamp = InputTimeAndId { at: UnixMillis(0), id: Uuid::from_u128(clock) };
        for effect in session.apply(stamp, input) {
            match effect {
                SessionEffect::Append(facts) => log.extend(facts),
                SessionEffect::CallModel { turn, step, .. } => {
                    assert!(step < 10, "the turn does not end");
                    let call = |n: usize| ModelEvent::Call {
                        reference: if n.is_multiple_of(2) { "r".into() } else { String::new() },
                        tool: "no such tool".into(),
                        arguments: "\u{1b}]52;c;AAAA\u{7} {\"lone\": \"\\ud800\"".into(),
                        provider_signature: None,
                        repairs: Vec::new(),
                    };
                    let events = (0..10_000).map(call).chain([ModelEvent::Ended {
                        finish: FinishReason::ToolCalls,
                        usage: TokenUsage::default(),
                    }]);
                    inputs.extend(events.map(|event| SessionInput::Model { turn, step, event }));
                }
                SessionEffect::CallTool { turn, call, .. } => {
                    let outcome = CallOutcome::Failed { text: "There is no such tool.".into() };
                    inputs.push_back(SessionInput::CallSettled {
                        turn,
                        call,
                        outcome,
                        seen_files: Vec::new(),
                    });
                }
                _ => {}
            }
        }
    }
    windlass_testkit::log_grammar::check_settled(&log).unwrap();
    let is_loop_end = |fact: &Fact| {
        matches!(fact, Fact::TurnEnded { end: TurnEndReason::LoopDetected { .. }, .. })
    };
    assert!(log.last().is_some_and(is_loop_end), "{:?}", log.last());
}
