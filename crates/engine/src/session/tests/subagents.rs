//! Subagent sessions: recorded before they start, one per call, and none for a call that is not
//! running.

use crate::session::{
    InputTimeAndId, Session, SessionEffect, SessionInput, SubagentStart, TurnLimits,
};
use uuid::Uuid;
use windlass_llm::ModelEvent;
use windlass_protocol::{
    CallId, Fact, FactRecord, FinishReason, SessionId, SessionOp, TokenUsage, ToolAccess,
    TurnEndReason, UnixMillis,
};
use windlass_testkit::log_grammar;
use windlass_toolkit::CallIntent;

struct SubagentTestSession {
    session: Session,
    log: Vec<Fact>,
    clock: u128,
    call: Option<CallId>,
    /// Each started subagent session, and whether it was resumed.
    started: Vec<(SessionId, bool)>,
}

impl SubagentTestSession {
    /// A turn that waits for the model.
    fn waiting() -> SubagentTestSession {
        let session =
            Session::new(Fact::session_opened("/w", "0"), super::config(TurnLimits::default()));
        let (log, started) = (Vec::new(), Vec::new());
        let mut env = SubagentTestSession { session, log, clock: 0, call: None, started };
        env.apply(SessionInput::Op(SessionOp::prompt("delegate")));
        env
    }

    /// A turn in which a call runs.
    fn running() -> SubagentTestSession {
        let mut env = SubagentTestSession::waiting();
        let call = ModelEvent::Call {
            reference: "r".into(),
            tool: "task".into(),
            arguments: "{}".into(),
            provider_signature: None,
            repairs: Vec::new(),
        };
        let ended =
            ModelEvent::Ended { finish: FinishReason::ToolCalls, usage: TokenUsage::default() };
        for event in [call, ended] {
            env.apply(SessionInput::Model { turn: 1, step: 1, event });
        }
        env.declare_intent();
        env
    }

    fn declare_intent(&mut self) {
        let intent = CallIntent {
            danger: Default::default(),
            accesses: vec![ToolAccess::Subagent { agent: "helper".into() }],
            read_only: true,
            ask_reason: None,
            approval_kind: None,
            accepts_earlier_approval: true,
            repair: None,
        };
        self.apply(SessionInput::PermissionRequested { turn: 1, call: self.call.unwrap(), intent });
    }

    fn apply(&mut self, input: SessionInput) {
        self.clock += 1;
        let stamp = InputTimeAndId { at: UnixMillis(0), id: Uuid::from_u128(self.clock) };
        for effect in self.session.apply(stamp, input) {
            match effect {
                SessionEffect::Append(facts) => self.log.extend(facts),
                SessionEffect::CallTool { call, .. } => self.call = Some(call),
                SessionEffect::StartSubagent { session, resumed, .. } => {
                    let is_record = |fact: &Fact| match fact {
                        Fact::SubagentStarted { session: id, .. } => *id == session,
                        _ => false,
                    };
                    assert!(self.log.iter().any(is_record), "started before it was recorded");
                    self.started.push((session, resumed));
                }
                _ => {}
            }
        }
        log_grammar::check(&self.log).unwrap();
    }

    fn request_subagent(&mut self, number: u128) {
        let session = SessionId(Uuid::from_u128(number));
        let subagent =
            SubagentStart { call: self.call.unwrap(), session, agent: "helper".into(), after: 0 };
        self.apply(SessionInput::SubagentRequested { turn: 1, subagent });
    }

    fn reopen(&mut self) {
        let session = SessionId(Uuid::nil());
        let record =
            |(seq, fact): (u64, &Fact)| FactRecord::new(session, seq, UnixMillis(0), fact.clone());
        let records: Vec<FactRecord> = (1..).zip(&self.log).map(record).collect();
        self.session = Session::replay(&records, super::config(TurnLimits::default()));
        self.apply(SessionInput::Resume);
    }
}

#[test]
fn a_running_call_gets_one_session_and_the_same_after_a_crash() {
    let mut env = SubagentTestSession::running();
    env.request_subagent(100);
    env.reopen();
    env.declare_intent();
    env.request_subagent(200);
    let first = SessionId(Uuid::from_u128(100));
    assert_eq!(env.started, [(first, false), (first, true)]);
    let records = env.log.iter().filter(|fact| matches!(fact, Fact::SubagentStarted { .. }));
    assert_eq!(records.count(), 1);
}

#[test]
fn a_call_that_is_not_running_or_was_interrupted_gets_no_session() {
    let mut env = SubagentTestSession::running();
    env.apply(SessionInput::Op(SessionOp::Interrupt { turn: None }));
    env.request_subagent(100);
    assert_eq!(env.started, []);
    let mut env = SubagentTestSession::running();
    env.call = Some(CallId(Uuid::from_u128(7_777)));
    env.request_subagent(100);
    assert_eq!(env.started, []);
}

#[test]
fn a_turn_with_an_exhausted_budget_ends_with_the_limit() {
    let mut env = SubagentTestSession::waiting();
    let limit = "the limit of 3 tokens".to_owned();
    for (turn, step) in [(1, 2), (2, 1), (1, 1), (1, 1)] {
        env.apply(SessionInput::BudgetExhausted { turn, step, limit: limit.clone() });
    }
    let end = Fact::TurnEnded { turn: 1, end: TurnEndReason::LimitReached { limit } };
    assert_eq!(env.log.last(), Some(&end));
    assert_eq!(env.log.iter().filter(|fact| **fact == end).count(), 1);
    log_grammar::check_settled(&env.log).unwrap();
}
