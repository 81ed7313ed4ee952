//! Interrupts during a change: the turn waits for the change, and later changes are not made, also
//! across a crash and after a second interrupt.

use crate::session::{InputTimeAndId, Session, SessionEffect, SessionInput, TurnLimits};
use uuid::Uuid;
use windlass_llm::ModelEvent;
use windlass_protocol::{
    CallId, CallOutcome, CallRepair, Fact, FactRecord, FinishReason, SessionId, SessionOp,
    TokenUsage, ToolAccess, ToolOutput, TurnEndReason, UnixMillis,
};
use windlass_testkit::log_grammar;
use windlass_toolkit::CallIntent;

struct InterruptTestSession {
    session: Session,
    log: Vec<Fact>,
    clock: u128,
    calls: Vec<CallId>,
}

impl InterruptTestSession {
    /// A step with two changes, of which the first runs.
    fn new() -> InterruptTestSession {
        let opening = Fact::session_opened("/w", "0");
        let session = Session::new(opening, super::config(TurnLimits::default()));
        let mut env =
            InterruptTestSession { session, log: Vec::new(), clock: 0, calls: Vec::new() };
        env.apply(SessionInput::Op(SessionOp::prompt("change both")));
        for _ in 0..2 {
            env.model(ModelEvent::Call {
                reference: "r".into(),
                tool: "change".into(),
                arguments: "{}".into(),
                provider_signature: None,
                repairs: Vec::new(),
            });
        }
        env.model(ModelEvent::Ended {
            finish: FinishReason::ToolCalls,
            usage: TokenUsage::default(),
        });
        for call in env.calls.clone() {
            let accesses = vec![ToolAccess::Edit { path: "a".into() }];
            let changes = vec!["the name was `Change`".to_owned()];
            let repair = Some(CallRepair { arguments: "{}".into(), changes });
            let intent = CallIntent {
                danger: Default::default(),
                accesses,
                read_only: false,
                ask_reason: None,
                approval_kind: None,
                accepts_earlier_approval: true,
                repair,
            };
            env.apply(SessionInput::PermissionRequested { turn: 1, call, intent });
        }
        env
    }

    fn apply(&mut self, input: SessionInput) {
        self.clock += 1;
        let stamp = InputTimeAndId { at: UnixMillis(0), id: Uuid::from_u128(self.clock) };
        let mut reconciled = Vec::new();
        for effect in self.session.apply(stamp, input) {
            match effect {
                SessionEffect::Append(facts) => self.log.extend(facts),
                SessionEffect::CallTool { call, .. } => self.calls.push(call),
                SessionEffect::Reconcile { turn, call, .. } => {
                    reconciled.push(SessionInput::CallSettled {
                        turn,
                        call,
                        outcome: CallOutcome::ResultUnknown,
                        seen_files: Vec::new(),
                    });
                }
                _ => {}
            }
        }
        for input in reconciled {
            self.apply(input);
        }
        log_grammar::check(&self.log).unwrap();
    }

    fn model(&mut self, event: ModelEvent) {
        self.apply(SessionInput::Model { turn: 1, step: 1, event });
    }

    fn reopen(&mut self) {
        let session = SessionId(Uuid::nil());
        let record =
            |(seq, fact): (u64, &Fact)| FactRecord::new(session, seq, UnixMillis(0), fact.clone());
        let records: Vec<FactRecord> = (1..).zip(&self.log).map(record).collect();
        self.session = Session::replay(&records, super::config(TurnLimits::default()));
        self.calls.clear();
        self.apply(SessionInput::Resume);
    }

    fn outcomes(&self) -> Vec<&CallOutcome> {
        let mut outcomes = Vec::new();
        for fact in &self.log {
            if let Fact::CallSettled { outcome, .. } = fact {
                outcomes.push(outcome);
            }
        }
        outcomes
    }

    fn is_interrupted(&self) -> bool {
        let end = Fact::TurnEnded { turn: 1, end: TurnEndReason::Interrupted };
        self.log.last() == Some(&end)
    }
}

fn is_interrupted(outcome: &CallOutcome) -> bool {
    matches!(outcome, CallOutcome::Interrupted { .. })
}

#[test]
fn the_start_of_a_call_contains_its_repair() {
    let env = InterruptTestSession::new();
    let repairs = |fact: &Fact| match fact {
        Fact::CallStarted { repair: Some(repair), .. } => Some(repair.changes.clone()),
        _ => None,
    };
    assert_eq!(env.log.iter().find_map(repairs).unwrap(), ["the name was `Change`"]);
}

#[test]
fn a_running_change_settles_with_its_outcome() {
    let mut env = InterruptTestSession::new();
    env.apply(SessionInput::Op(SessionOp::Interrupt { turn: None }));
    assert!(!env.is_interrupted(), "the turn waits for the change");
    let call = env.calls[0];
    let outcome = CallOutcome::Completed { output: ToolOutput::default() };
    env.apply(SessionInput::CallSettled {
        turn: 1,
        call,
        outcome: outcome.clone(),
        seen_files: Vec::new(),
    });
    assert!(env.is_interrupted());
    let outcomes = env.outcomes();
    assert!(*outcomes[0] == outcome && is_interrupted(outcomes[1]), "{outcomes:?}");
}

#[test]
fn a_recorded_interrupt_survives_a_crash() {
    let mut env = InterruptTestSession::new();
    env.apply(SessionInput::Op(SessionOp::Interrupt { turn: None }));
    env.reopen();
    assert!(env.is_interrupted() && env.calls.is_empty(), "{:?}", env.log);
    let outcomes = env.outcomes();
    assert!(
        *outcomes[0] == CallOutcome::ResultUnknown && is_interrupted(outcomes[1]),
        "{outcomes:?}"
    );
}

#[test]
fn a_second_interrupt_does_not_wait() {
    let mut env = InterruptTestSession::new();
    env.apply(SessionInput::Op(SessionOp::Interrupt { turn: None }));
    env.apply(SessionInput::Op(SessionOp::Interrupt { turn: None }));
    assert!(env.is_interrupted());
    assert_eq!(*env.outcomes()[0], CallOutcome::ResultUnknown);
    let call = env.calls[0];
    let outcome = CallOutcome::Completed { output: ToolOutput::default() };
    env.apply(SessionInput::CallSettled { turn: 1, call, outcome, seen_files: Vec::new() });
    assert_eq!(env.outcomes().len(), 2, "a late outcome changes nothing");
}
