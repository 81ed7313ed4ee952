//! Sessions that calls begin: on record before they start, once, and not for a call that may not.

use crate::session::{Birth, Effect, Input, Limits, Session, Stamp};
use uuid::Uuid;
use windlass_llm::ModelEvent;
use windlass_protocol::{
    Access, CallId, Fact, Finish, Millis, Op, Record, SessionId, TurnEnd, Usage,
};
use windlass_testkit::grammar;
use windlass_toolkit::Intent;

struct Stage {
    session: Session,
    log: Vec<Fact>,
    clock: u128,
    call: Option<CallId>,
    /// What was started, and whether it had been before.
    spawned: Vec<(SessionId, bool)>,
}

impl Stage {
    /// A turn whose model has been asked.
    fn asked() -> Stage {
        let session = Session::new(Fact::opened("/w", "0"), super::terms(Limits::default()));
        let (log, spawned) = (Vec::new(), Vec::new());
        let mut stage = Stage { session, log, clock: 0, call: None, spawned };
        stage.apply(Input::Op(Op::prompt("delegate")));
        stage
    }

    /// A turn in which a call runs.
    fn running() -> Stage {
        let mut stage = Stage::asked();
        let (reference, tool, arguments) = ("r".into(), "task".into(), "{}".into());
        let (seal, repaired) = (None, Vec::new());
        let call = ModelEvent::Call { reference, tool, arguments, seal, repaired };
        let ended = ModelEvent::Ended { finish: Finish::Calls, usage: Usage::default() };
        for event in [call, ended] {
            stage.apply(Input::Model { turn: 1, step: 1, event });
        }
        stage.intend();
        stage
    }

    fn intend(&mut self) {
        let intent = Intent {
            accesses: vec![Access::Task { agent: "helper".into() }],
            read_only: true,
            asking: None,
            offer: None,
            coverable: true,
            repaired: None,
        };
        self.apply(Input::Intended { turn: 1, call: self.call.unwrap(), intent });
    }

    fn apply(&mut self, input: Input) {
        self.clock += 1;
        let stamp = Stamp { at: Millis(0), id: Uuid::from_u128(self.clock) };
        for effect in self.session.apply(stamp, input) {
            match effect {
                Effect::Append(facts) => self.log.extend(facts),
                Effect::CallTool { call, .. } => self.call = Some(call),
                Effect::Spawn { session, again, .. } => {
                    let put = |fact: &Fact| matches!(fact, Fact::Spawned { session: id, .. } if *id == session);
                    assert!(self.log.iter().any(put), "on record before it starts");
                    self.spawned.push((session, again));
                }
                _ => {}
            }
        }
        grammar::check(&self.log).unwrap();
    }

    fn spawn(&mut self, number: u128) {
        let session = SessionId(Uuid::from_u128(number));
        let birth = Birth { call: self.call.unwrap(), session, agent: "helper".into() };
        self.apply(Input::Spawning { turn: 1, birth });
    }

    fn reopen(&mut self) {
        let session = SessionId(Uuid::nil());
        let record =
            |(seq, fact): (u64, &Fact)| Record { session, seq, at: Millis(0), fact: fact.clone() };
        let records: Vec<Record> = (1..).zip(&self.log).map(record).collect();
        self.session = Session::replay(&records, super::terms(Limits::default()));
        self.apply(Input::Resume);
    }
}

#[test]
fn a_call_that_runs_gets_one_session_and_after_a_crash_the_same() {
    let mut stage = Stage::running();
    stage.spawn(100);
    stage.reopen();
    stage.intend();
    stage.spawn(200);
    let first = SessionId(Uuid::from_u128(100));
    assert_eq!(stage.spawned, [(first, false), (first, true)]);
    let spawned = stage.log.iter().filter(|fact| matches!(fact, Fact::Spawned { .. }));
    assert_eq!(spawned.count(), 1);
}

#[test]
fn a_call_that_does_not_run_or_was_told_to_stop_gets_none() {
    let mut stage = Stage::running();
    stage.apply(Input::Op(Op::Interrupt));
    stage.spawn(100);
    assert_eq!(stage.spawned, []);
    let mut stage = Stage::running();
    stage.call = Some(CallId(Uuid::from_u128(7_777)));
    stage.spawn(100);
    assert_eq!(stage.spawned, []);
}

#[test]
fn a_turn_with_nothing_left_to_spend_ends_and_says_so() {
    let mut stage = Stage::asked();
    let what = "the limit of 3 tokens".to_owned();
    for (turn, step) in [(1, 2), (2, 1), (1, 1), (1, 1)] {
        stage.apply(Input::Broke { turn, step, what: what.clone() });
    }
    let end = Fact::TurnEnded { turn: 1, end: TurnEnd::Limit { what } };
    assert_eq!(stage.log.last(), Some(&end));
    assert_eq!(stage.log.iter().filter(|fact| **fact == end).count(), 1);
    grammar::check_settled(&stage.log).unwrap();
}
