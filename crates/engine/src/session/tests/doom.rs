//! Loops in any order of calls: what repeats is found, what does not is left alone.

use crate::session::{Effect, Input, Limits, Session, Stamp};
use proptest::prelude::*;
use uuid::Uuid;
use windlass_llm::ModelEvent;
use windlass_protocol::{Access, Fact, Finish, Millis, Op, Outcome, Output, TurnEnd, Usage};
use windlass_toolkit::Intent;

/// Makes these calls, one a step; each gives what it says. Returns how many were made before
/// somebody was asked, or the turn ended.
fn steps_until_asked(calls: &[(String, String)]) -> usize {
    let terms = super::terms(Limits::default());
    let mut session = Session::new(Fact::opened("/w", "0"), terms);
    let mut clock = 0;
    let mut inputs = vec![Input::Op(Op::prompt("go"))];
    let mut made = 0;
    while let Some(input) = inputs.pop() {
        clock += 1;
        let stamp = Stamp { at: Millis(0), id: Uuid::from_u128(clock) };
        for effect in session.apply(stamp, input) {
            match effect {
                Effect::CallModel { turn, step, .. } => {
                    let Some((arguments, _)) = calls.get(made) else { return made };
                    let call = ModelEvent::Call {
                        reference: "r".into(),
                        tool: "look".into(),
                        arguments: arguments.clone(),
                        seal: None,
                        repaired: Vec::new(),
                    };
                    let ended =
                        ModelEvent::Ended { finish: Finish::Calls, usage: Usage::default() };
                    inputs.push(Input::Model { turn, step, event: ended });
                    inputs.push(Input::Model { turn, step, event: call });
                }
                Effect::CallTool { turn, call, .. } => {
                    let intent = Intent {
                        accesses: vec![Access::Read { path: "a".into() }],
                        read_only: true,
                        asking: None,
                        offer: None,
                        coverable: true,
                        repaired: None,
                    };
                    inputs.push(Input::Intended { turn, call, intent });
                }
                Effect::Answer { call, .. } => {
                    let text = calls[made].1.clone();
                    made += 1;
                    let output = Output { text, ..Output::default() };
                    let (outcome, seen) = (Outcome::Completed { output }, Vec::new());
                    inputs.push(Input::Settled { turn: 1, call, outcome, seen });
                }
                Effect::Look { .. } => return made,
                _ => {}
            }
        }
    }
    made
}

/// The same, by looking at the whole list from the front.
fn expected(calls: &[(String, String)]) -> usize {
    for made in 0..calls.len() {
        for period in 1..=3 {
            let Some(start) = made.checked_sub(period * 3) else { continue };
            let rounds: Vec<_> = calls[start..made].chunks(period).collect();
            let same = rounds.iter().all(|round| round == &rounds[0]);
            if same && calls[made].0 == rounds[0][0].0 {
                return made;
            }
        }
    }
    calls.len()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn repeats_and_circles_are_found_at_their_first_return(
        prefix in proptest::collection::vec((0_u8..5, 0_u8..2), 0..8),
        circle in proptest::collection::vec((0_u8..3, 0_u8..2), 1..4),
        rounds in 1_usize..6,
    ) {
        let calls = prefix.into_iter().chain(circle.iter().copied().cycle().take(circle.len() * rounds));
        let calls: Vec<(String, String)> =
            calls.map(|(a, o)| (format!("{{\"n\":{a}}}"), o.to_string())).collect();
        prop_assert_eq!(steps_until_asked(&calls), expected(&calls), "{:?}", calls);
    }
}

/// Thousands of calls at once, all under the same name, again and again: what may run runs, the
/// rest is turned back, and it ends.
#[test]
fn a_flood_of_calls_is_settled_and_ends() {
    let limits = Limits { calls: 2, answer: 64 << 20, ..Limits::default() };
    let mut session = Session::new(Fact::opened("/w", "0"), super::terms(limits));
    let (mut clock, mut log) = (0, Vec::new());
    let mut inputs = std::collections::VecDeque::from([Input::Op(Op::prompt("go"))]);
    while let Some(input) = inputs.pop_front() {
        clock += 1;
        let stamp = Stamp { at: Millis(0), id: Uuid::from_u128(clock) };
        for effect in session.apply(stamp, input) {
            match effect {
                Effect::Append(facts) => log.extend(facts),
                Effect::CallModel { turn, step, .. } => {
                    assert!(step < 10, "it never ends");
                    let call = |n: usize| ModelEvent::Call {
                        reference: if n.is_multiple_of(2) { "r".into() } else { String::new() },
                        tool: "no such tool".into(),
                        arguments: "\u{1b}]52;c;AAAA\u{7} {\"lone\": \"\\ud800\"".into(),
                        seal: None,
                        repaired: Vec::new(),
                    };
                    let events = (0..10_000).map(call).chain([ModelEvent::Ended {
                        finish: Finish::Calls,
                        usage: Usage::default(),
                    }]);
                    inputs.extend(events.map(|event| Input::Model { turn, step, event }));
                }
                Effect::CallTool { turn, call, .. } => {
                    let outcome = Outcome::Failed { text: "There is no such tool.".into() };
                    inputs.push_back(Input::Settled { turn, call, outcome, seen: Vec::new() });
                }
                _ => {}
            }
        }
    }
    windlass_testkit::grammar::check_settled(&log).unwrap();
    let looped = |fact: &Fact| matches!(fact, Fact::TurnEnded { end: TurnEnd::Looped { .. }, .. });
    assert!(log.last().is_some_and(looped), "{:?}", log.last());
}
