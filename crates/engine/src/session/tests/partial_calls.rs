//! Live events of calls that the model is still writing.

use crate::session::{InputTimeAndId, Session, SessionEffect, SessionInput, TurnLimits};
use uuid::Uuid;
use windlass_llm::ModelEvent;
use windlass_protocol::{Fact, Fault, LiveEvent, SessionOp, UnixMillis};

struct PartialCallSession {
    session: Session,
    facts: Vec<Fact>,
    clock: u128,
}

impl PartialCallSession {
    fn new() -> PartialCallSession {
        let config = super::config(TurnLimits::default());
        let session = Session::new(Fact::session_opened("/w", "0"), config);
        let mut env = PartialCallSession { session, facts: Vec::new(), clock: 0 };
        env.apply(0, SessionInput::Op(SessionOp::prompt("write")));
        env
    }

    /// Applies an input at a time in milliseconds; returns the path and size of each `PartialCall`.
    fn apply(&mut self, at: u64, input: SessionInput) -> Vec<(u64, Option<String>, u64)> {
        self.clock += 1;
        let stamp = InputTimeAndId { at: UnixMillis(at), id: Uuid::from_u128(self.clock) };
        let mut partial_calls = Vec::new();
        for effect in self.session.apply(stamp, input) {
            match effect {
                SessionEffect::Append(facts) => self.facts.extend(facts),
                SessionEffect::Emit(LiveEvent::PartialCall {
                    index,
                    tool,
                    path,
                    argument_bytes,
                }) => {
                    assert_eq!(tool, "write");
                    partial_calls.push((index, path, argument_bytes));
                }
                _ => {}
            }
        }
        partial_calls
    }

    fn model(&mut self, at: u64, event: ModelEvent) -> Vec<(u64, Option<String>, u64)> {
        self.apply(at, SessionInput::Model { turn: 1, step: 1, event })
    }

    fn delta(&mut self, at: u64, index: u64, piece: &str) -> Vec<(u64, Option<String>, u64)> {
        let (tool, arguments) = ("write".into(), piece.into());
        self.model(at, ModelEvent::CallDelta { index, tool, arguments })
    }
}

#[test]
fn the_first_delta_is_reported_at_once_and_later_ones_ten_times_a_second() {
    let mut env = PartialCallSession::new();
    assert_eq!(env.delta(1_000, 0, ""), [(0, None, 0)]);
    let head = r#"{"filePath": "src/a.rs", "content": ""#;
    assert_eq!(env.delta(1_010, 0, head), []);
    let path = Some("src/a.rs".to_owned());
    let mut reports = Vec::new();
    for millis in 1_011..2_011 {
        reports.extend(env.delta(millis, 0, "x"));
    }
    assert_eq!(reports.first(), Some(&(0, path.clone(), head.len() as u64 + 90)));
    assert_eq!(reports.len(), 10, "{reports:?}");
    // Deltas without content are no news.
    assert_eq!(env.delta(9_000, 0, ""), [(0, path, head.len() as u64 + 1_000)]);
    assert_eq!(env.delta(9_999, 0, ""), []);
}

#[test]
fn each_call_is_reported_and_a_finished_one_catches_up() {
    let mut env = PartialCallSession::new();
    assert_eq!(env.delta(0, 0, ""), [(0, None, 0)]);
    assert_eq!(env.delta(1, 0, r#"{"path": "a"}"#), []);
    assert_eq!(env.delta(2, 1, ""), [(1, None, 0)]);
    let reports = env.delta(200, 1, r#"{"path": "b"}"#);
    assert_eq!(reports, [(0, Some("a".into()), 13), (1, Some("b".into()), 13)]);
}

#[test]
fn a_call_that_never_completes_leaves_no_fact() {
    let mut env = PartialCallSession::new();
    env.delta(0, 0, r#"{"filePath": "a"#);
    env.model(10, ModelEvent::Failed(Fault::Network { message: "gone".into() }));
    assert!(!env.facts.iter().any(|fact| matches!(fact, Fact::ToolCalled { .. })));
    assert!(env.facts.iter().any(|fact| matches!(fact, Fact::StepEnded { .. })));
}
