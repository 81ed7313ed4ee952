//! Stopping while a change is under way: it is waited for, the one behind it is not made, and
//! that holds across a crash and for whoever is impatient.

use crate::session::{Effect, Input, Limits, Session, Stamp};
use uuid::Uuid;
use windlass_llm::ModelEvent;
use windlass_protocol::{
    Access, CallId, Fact, Finish, Millis, Op, Outcome, Output, Record, Repair, SessionId, TurnEnd,
    Usage,
};
use windlass_testkit::grammar;
use windlass_toolkit::Intent;

struct Stage {
    session: Session,
    log: Vec<Fact>,
    clock: u128,
    launched: Vec<CallId>,
}

impl Stage {
    /// A step that made two changes, of which the first runs.
    fn new() -> Stage {
        let opening = Fact::opened("/w", "0");
        let session = Session::new(opening, super::terms(Limits::default()));
        let mut stage = Stage { session, log: Vec::new(), clock: 0, launched: Vec::new() };
        stage.apply(Input::Op(Op::prompt("change both")));
        for _ in 0..2 {
            let (reference, tool, arguments) = ("r".into(), "change".into(), "{}".into());
            stage.model(ModelEvent::Call {
                reference,
                tool,
                arguments,
                seal: None,
                repaired: Vec::new(),
            });
        }
        stage.model(ModelEvent::Ended { finish: Finish::Calls, usage: Usage::default() });
        for call in stage.launched.clone() {
            let accesses = vec![Access::Edit { path: "a".into() }];
            let changes = vec!["the name was `Change`".to_owned()];
            let repaired = Some(Repair { arguments: "{}".into(), changes });
            let intent = Intent {
                accesses,
                read_only: false,
                asking: None,
                offer: None,
                coverable: true,
                repaired,
            };
            stage.apply(Input::Intended { turn: 1, call, intent });
        }
        stage
    }

    fn apply(&mut self, input: Input) {
        self.clock += 1;
        let stamp = Stamp { at: Millis(0), id: Uuid::from_u128(self.clock) };
        let mut checked = Vec::new();
        for effect in self.session.apply(stamp, input) {
            match effect {
                Effect::Append(facts) => self.log.extend(facts),
                Effect::CallTool { call, .. } => self.launched.push(call),
                Effect::Reconcile { turn, call, .. } => {
                    let (outcome, seen) = (Outcome::Unknown, Vec::new());
                    checked.push(Input::Settled { turn, call, outcome, seen });
                }
                _ => {}
            }
        }
        for input in checked {
            self.apply(input);
        }
        grammar::check(&self.log).unwrap();
    }

    fn model(&mut self, event: ModelEvent) {
        self.apply(Input::Model { turn: 1, step: 1, event });
    }

    fn reopen(&mut self) {
        let session = SessionId(Uuid::nil());
        let record =
            |(seq, fact): (u64, &Fact)| Record { session, seq, at: Millis(0), fact: fact.clone() };
        let records: Vec<Record> = (1..).zip(&self.log).map(record).collect();
        self.session = Session::replay(&records, super::terms(Limits::default()));
        self.launched.clear();
        self.apply(Input::Resume);
    }

    fn outcomes(&self) -> Vec<&Outcome> {
        let mut outcomes = Vec::new();
        for fact in &self.log {
            if let Fact::Settled { outcome, .. } = fact {
                outcomes.push(outcome);
            }
        }
        outcomes
    }

    fn ended(&self) -> bool {
        let end = Fact::TurnEnded { turn: 1, end: TurnEnd::Interrupted };
        self.log.last() == Some(&end)
    }
}

fn interrupted(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Interrupted { .. })
}

#[test]
fn the_start_of_a_call_says_what_was_repaired() {
    let stage = Stage::new();
    let repaired = |fact: &Fact| match fact {
        Fact::Started { repaired: Some(repair), .. } => Some(repair.changes.clone()),
        _ => None,
    };
    assert_eq!(stage.log.iter().find_map(repaired).unwrap(), ["the name was `Change`"]);
}

#[test]
fn a_change_under_way_says_how_it_ended() {
    let mut stage = Stage::new();
    stage.apply(Input::Op(Op::Interrupt));
    assert!(!stage.ended(), "it is waited for");
    let call = stage.launched[0];
    let outcome = Outcome::Completed { output: Output::default() };
    stage.apply(Input::Settled { turn: 1, call, outcome: outcome.clone(), seen: Vec::new() });
    assert!(stage.ended());
    let outcomes = stage.outcomes();
    assert!(*outcomes[0] == outcome && interrupted(outcomes[1]), "{outcomes:?}");
}

#[test]
fn a_stop_that_was_taken_survives_a_crash() {
    let mut stage = Stage::new();
    stage.apply(Input::Op(Op::Interrupt));
    stage.reopen();
    assert!(stage.ended() && stage.launched.is_empty(), "{:?}", stage.log);
    let outcomes = stage.outcomes();
    assert!(*outcomes[0] == Outcome::Unknown && interrupted(outcomes[1]), "{outcomes:?}");
}

#[test]
fn stopping_twice_does_not_wait() {
    let mut stage = Stage::new();
    stage.apply(Input::Op(Op::Interrupt));
    stage.apply(Input::Op(Op::Interrupt));
    assert!(stage.ended());
    assert_eq!(*stage.outcomes()[0], Outcome::Unknown);
    let call = stage.launched[0];
    let outcome = Outcome::Completed { output: Output::default() };
    stage.apply(Input::Settled { turn: 1, call, outcome, seen: Vec::new() });
    assert_eq!(stage.outcomes().len(), 2, "what comes late changes nothing");
}
