//! Questions of calls: who may answer, what an answer has to be, and that no crash and no model
//! changes the mode.

use super::world::{Crash, Disk, Moment, World, inquiry};
use crate::session::{Effect, Input, Limits, Session, Stamp};
use std::path::Path;
use uuid::Uuid;
use windlass_llm::ModelEvent;
use windlass_protocol::{
    Access, CallId, Fact, Finish, Inquiry, Live, Millis, Mode, Op, Outcome, Output, Usage,
};
use windlass_testkit::{Case, grammar};
use windlass_toolkit::{Intent, Stake};

struct Stage {
    session: Session,
    log: Vec<Fact>,
    clock: u128,
    call: Option<CallId>,
    replied: Vec<Vec<Vec<String>>>,
    noticed: usize,
}

impl Stage {
    /// A session in which a call runs.
    fn new() -> Stage {
        let session = Session::new(Fact::opened("/w", "0"), super::terms(Limits::default()));
        let (log, replied) = (Vec::new(), Vec::new());
        let mut stage = Stage { session, log, clock: 0, call: None, replied, noticed: 0 };
        stage.apply(Input::Op(Op::prompt("go")));
        // The model says what it likes; none of it is the tool's word.
        let (reference, tool, arguments) = ("r".into(), "plan_exit".into(), "auto".into());
        let (seal, repaired) = (None, Vec::new());
        let event = ModelEvent::Call { reference, tool, arguments, seal, repaired };
        stage.apply(Input::Model { turn: 1, step: 1, event });
        let event = ModelEvent::Ended { finish: Finish::Calls, usage: Usage::default() };
        stage.apply(Input::Model { turn: 1, step: 1, event });
        stage.start();
        stage
    }

    fn start(&mut self) {
        let intent = Intent {
            accesses: Vec::<Access>::new(),
            read_only: true,
            asking: None,
            offer: None,
            coverable: true,
            repaired: None,
        };
        self.apply(Input::Intended { turn: 1, call: self.call(), intent });
    }

    fn call(&self) -> CallId {
        self.call.unwrap()
    }

    fn apply(&mut self, input: Input) {
        self.clock += 1;
        let stamp = Stamp { at: Millis(0), id: Uuid::from_u128(self.clock) };
        for effect in self.session.apply(stamp, input) {
            match effect {
                Effect::Append(facts) => self.log.extend(facts),
                Effect::CallTool { call, .. } => self.call = Some(call),
                Effect::Reply { replies, .. } => self.replied.push(replies),
                Effect::Show(Live::Noticed { .. }) => self.noticed += 1,
                _ => {}
            }
        }
        grammar::check(&self.log).unwrap();
    }

    fn ask(&mut self, inquiries: Vec<Inquiry>, stake: Stake) {
        self.apply(Input::Inquired { turn: 1, call: self.call(), inquiries, stake });
    }

    fn reply(&mut self, replies: &[&[&str]]) {
        let lists = replies.iter().map(|said| said.iter().map(|it| (*it).to_owned()).collect());
        self.apply(Input::Op(Op::Reply { call: self.call(), replies: lists.collect() }));
    }

    fn mode(&self) -> Option<Mode> {
        self.session.transcript().mode
    }

    fn count(&self, kind: &str) -> usize {
        self.log.iter().filter(|fact| fact.kind() == kind).count()
    }
}

#[test]
fn only_what_was_asked_can_be_answered_and_only_once() {
    let several = Inquiry { multiple: true, ..inquiry() };
    let free = Inquiry { custom: true, ..inquiry() };
    let long = "x".repeat(17 << 10);
    let mut stage = Stage::new();
    stage.reply(&[&["auto"], &[], &["mine"]]);
    assert_eq!((stage.count("replied"), stage.noticed), (0, 0), "before anything was asked");
    stage.ask(vec![inquiry(), several, free], Stake::Words);
    let wrong: [&[&[&str]]; 6] = [
        &[&["auto"]],
        &[&["auto"], &["no"], &["x"], &["x"]],
        &[&["auto", "no"], &[], &[]],
        &[&["Auto"], &[], &[]],
        &[&[], &["auto", "mine"], &[]],
        &[&[], &[], &[&long]],
    ];
    for (tries, replies) in wrong.iter().enumerate() {
        stage.reply(replies);
        assert_eq!((stage.count("replied"), stage.noticed), (0, tries + 1), "{tries}");
    }
    stage.reply(&[&["auto"], &["no", "ask"], &["my own words"]]);
    stage.reply(&[&["no"], &[], &[]]);
    assert_eq!(stage.count("replied"), 1);
    assert_eq!(stage.replied.len(), 1);
    assert_eq!(stage.mode(), None, "a question about words is not about the mode");
}

#[test]
fn the_mode_follows_the_persons_word_and_nothing_else() {
    for (said, mode) in [
        (vec!["auto"], Some(Mode::Auto)),
        (vec!["ask"], Some(Mode::Ask)),
        (vec!["no"], None),
        (vec![], None),
        (vec!["carry on, auto"], None),
        (vec!["full"], None),
    ] {
        let mut stage = Stage::new();
        stage.ask(vec![Inquiry { custom: true, ..inquiry() }], Stake::Mode);
        assert_eq!(stage.mode(), None, "asking changes nothing");
        stage.reply(&[&said]);
        assert_eq!(stage.mode(), mode, "{said:?}");
        assert_eq!(stage.replied.len(), 1);
    }
    let mut stage = Stage::new();
    stage.ask(vec![inquiry()], Stake::Mode);
    stage.apply(Input::Op(Op::Reply { call: stage.call(), replies: Vec::new() }));
    assert_eq!((stage.mode(), stage.replied.len()), (None, 1), "nobody is there");
}

#[test]
fn a_question_of_a_call_that_does_not_run_is_not_put() {
    let mut stage = Stage::new();
    stage.apply(Input::Inquired {
        turn: 2,
        call: stage.call(),
        inquiries: vec![inquiry()],
        stake: Stake::Mode,
    });
    stage.apply(Input::Op(Op::Interrupt));
    stage.ask(vec![inquiry()], Stake::Mode);
    let outcome = Outcome::Completed { output: Output::default() };
    stage.apply(Input::Settled { turn: 1, call: stage.call(), outcome, seen: Vec::new() });
    stage.ask(vec![inquiry()], Stake::Mode);
    stage.reply(&[&["auto"]]);
    assert_eq!((stage.count("inquired"), stage.count("replied")), (0, 0));
}

#[test]
fn no_crash_changes_the_mode_twice_or_without_a_reply() {
    let path = "src/session/cases/a_yes_to_a_plan_changes_the_mode.case";
    let case = Case::load(Path::new(env!("CARGO_MANIFEST_DIR")).join(path));
    let points = World::of(&case).run();
    for point in 0..points {
        for moment in [Moment::Before, Moment::During, Moment::After] {
            for disk in [Disk::Kept, Disk::Lost] {
                let mut world = World::of(&case);
                world.run_with(Some(Crash { point, moment, disk }));
                let kinds: Vec<&str> = world.facts().iter().map(Fact::kind).collect();
                let count = |kind: &str| kinds.iter().filter(|it| **it == kind).count();
                assert_eq!((count("replied"), count("mode_changed")), (1, 1), "{kinds:?}");
                assert!(kinds.windows(2).any(|two| two == ["replied", "mode_changed"]));
                assert_eq!(world.transcript().mode, Some(Mode::Auto));
            }
        }
    }
}
