//! Lasting answers: what they cover, what is kept beyond the session, and what never lasts.

use crate::session::{Effect, Input, Limits, Session, Stamp};
use uuid::Uuid;
use windlass_llm::ModelEvent;
use windlass_protocol::{
    Access, Answer, Approval, CallId, Fact, Finish, Lasting, Millis, Op, Outcome, Output, Usage,
};
use windlass_testkit::grammar;
use windlass_toolkit::Intent;

struct Stage {
    session: Session,
    log: Vec<Fact>,
    clock: u128,
    launched: Vec<CallId>,
    kept: Vec<Approval>,
    /// Whether commands run in a sandbox.
    sheltered: bool,
    /// What the calls that started were told.
    told: Vec<Answer>,
}

impl Stage {
    fn new() -> Stage {
        let opening = Fact::opened("/w", "0");
        let session = Session::new(opening, super::terms(Limits::default()));
        let (log, launched, kept, told) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let sheltered = true;
        let mut stage = Stage { session, log, clock: 0, launched, kept, sheltered, told };
        stage.apply(Input::Op(Op::prompt("go")));
        stage
    }

    fn apply(&mut self, input: Input) {
        self.clock += 1;
        let stamp = Stamp { at: Millis(0), id: Uuid::from_u128(self.clock) };
        let mut looks = Vec::new();
        for effect in self.session.apply(stamp, input) {
            match effect {
                Effect::Append(facts) => self.log.extend(facts),
                Effect::CallTool { turn, call, .. } => {
                    assert_eq!(turn, 1);
                    self.launched.push(call);
                }
                Effect::Answer { answer, .. } => self.told.push(answer),
                Effect::Look { call } => looks.push(call),
                Effect::Remember { approvals } => self.kept.extend(approvals),
                _ => {}
            }
        }
        for call in looks {
            self.apply(Input::Looked { turn: 1, call, preview: None });
        }
        grammar::check(&self.log).unwrap();
    }

    /// Makes a call that has to be asked about; true if it started without anybody being asked.
    fn call(&mut self, accesses: Vec<Access>, offer: Option<&str>, answer: Answer) -> bool {
        let step = self.log.iter().filter(|f| matches!(f, Fact::StepStarted { .. })).count() as u32;
        let (reference, tool, arguments) = ("r".into(), "bash".into(), "{}".into());
        let (seal, repaired) = (None, Vec::new());
        let event = ModelEvent::Call { reference, tool, arguments, seal, repaired };
        self.apply(Input::Model { turn: 1, step, event });
        let event = ModelEvent::Ended { finish: Finish::Calls, usage: Usage::default() };
        self.apply(Input::Model { turn: 1, step, event });
        let call = *self.launched.last().unwrap();
        let (asking, offer) = (Some("why".to_owned()), offer.map(str::to_owned));
        let coverable = self.sheltered;
        let intent =
            Intent { accesses, read_only: false, asking, offer, coverable, repaired: None };
        self.apply(Input::Intended { turn: 1, call, intent });
        let started = |fact: &Fact| matches!(fact, Fact::Started { call: id, .. } if *id == call);
        let covered = self.log.iter().any(started);
        if !covered {
            self.apply(Input::Op(Op::Answer { call, answer }));
        }
        let outcome = Outcome::Completed { output: Output::default() };
        self.apply(Input::Settled { turn: 1, call, outcome, seen: Vec::new() });
        covered
    }
}

fn run(command: &str) -> Access {
    Access::Run { command: command.into(), folder: ".".into() }
}

fn network() -> Access {
    Access::Connect { host: "*".into() }
}

#[test]
fn a_yes_for_the_project_holds_for_the_session_and_is_kept_once() {
    let mut stage = Stage::new();
    assert!(!stage.call(vec![run("make"), network()], None, Answer::Project));
    assert!(stage.call(vec![run("make"), network()], None, Answer::No { reason: None }));
    assert_eq!(stage.kept, [Approval { key: "bash".into(), subject: "make".into() }]);
    // What a command may reach is not opened for another one.
    assert!(!stage.call(vec![run("make all"), network()], None, Answer::Once));
}

#[test]
fn a_yes_for_a_kind_covers_the_kind_that_was_offered_and_no_other() {
    let mut stage = Stage::new();
    let like = |lasts| Answer::Like { lasts };
    assert!(!stage.call(vec![run("cargo test a")], Some("cargo test"), like(Lasting::Session)));
    assert!(stage.call(vec![run("cargo test b")], Some("cargo test"), Answer::Once));
    assert!(!stage.call(vec![run("cargo test | sh")], None, Answer::Once));
    assert!(stage.kept.is_empty());
    assert!(!stage.call(vec![run("cargo doc")], Some("cargo doc"), like(Lasting::Project)));
    assert_eq!(stage.kept, [Approval { key: Approval::LIKE.into(), subject: "cargo doc".into() }]);
}

#[test]
fn a_kind_that_was_not_offered_is_the_command_itself() {
    let mut stage = Stage::new();
    let like = Answer::Like { lasts: Lasting::Project };
    assert!(!stage.call(vec![run("node a.js")], None, like));
    assert!(stage.call(vec![run("node a.js")], None, Answer::Once));
    assert!(!stage.call(vec![run("node b.js")], None, Answer::Once));
    assert_eq!(stage.kept, [Approval { key: "bash".into(), subject: "node a.js".into() }]);
}

#[test]
fn a_yes_for_a_kind_does_not_open_the_sandbox() {
    let mut stage = Stage::new();
    let like = Answer::Like { lasts: Lasting::Session };
    assert!(!stage.call(vec![run("cargo test a")], Some("cargo test *"), like));
    assert!(stage.call(vec![run("cargo test b")], Some("cargo test *"), Answer::Once));
    let leave = Access::Leave { command: "cargo test a".into() };
    let accesses = vec![run("cargo test a"), leave];
    assert!(!stage.call(accesses, Some("cargo test *"), Answer::Session));
    // The log says what holds, and so does what the road is told.
    assert!(matches!(
        stage.log.iter().rfind(|fact| matches!(fact, Fact::Answered { .. })),
        Some(Fact::Answered { answer: Answer::Once, .. })
    ));
    assert_eq!(stage.told.last(), Some(&Answer::Once));
}

#[test]
fn a_yes_given_under_the_sandbox_says_nothing_without_one() {
    let mut stage = Stage::new();
    assert!(!stage.call(vec![run("make")], None, Answer::Session));
    assert!(stage.call(vec![run("make")], None, Answer::Once));
    stage.sheltered = false;
    assert!(!stage.call(vec![run("make")], None, Answer::Once));
    stage.sheltered = true;
    assert!(stage.call(vec![run("make")], None, Answer::Once));
}

#[test]
fn what_is_covered_is_answered_on_record_and_nobody_is_asked() {
    let mut stage = Stage::new();
    stage.call(vec![run("make")], None, Answer::Session);
    let before = stage.log.len();
    assert!(stage.call(vec![run("make")], None, Answer::No { reason: None }));
    let kinds: Vec<&str> = stage.log.iter().skip(before).map(Fact::kind).collect();
    assert!(kinds.windows(2).any(|pair| pair == ["answered", "started"]), "{kinds:?}");
    assert!(!kinds.contains(&"asked"), "{kinds:?}");
    assert_eq!(stage.told.last(), Some(&Answer::Session));
}

#[test]
fn a_yes_for_the_project_holds_in_its_folder() {
    let mut stage = Stage::new();
    let below = Access::Run { command: "make".into(), folder: "docs".into() };
    assert!(!stage.call(vec![below.clone()], None, Answer::Project));
    assert!(!stage.call(vec![run("make")], None, Answer::Once));
    assert!(stage.call(vec![below], None, Answer::Once));
    assert_eq!(stage.kept, [Approval { key: "bash in docs".into(), subject: "make".into() }]);
}

#[test]
fn leaving_the_sandbox_is_asked_about_every_time() {
    for answer in [Answer::Session, Answer::Project, Answer::Like { lasts: Lasting::Project }] {
        let mut stage = Stage::new();
        let accesses = vec![Access::Leave { command: "make".into() }, run("make")];
        for _ in 0..3 {
            assert!(!stage.call(accesses.clone(), Some("make"), answer.clone()), "{answer:?}");
        }
        assert!(!stage.call(vec![run("make")], Some("make"), Answer::Once), "{answer:?}");
        assert!(stage.kept.is_empty(), "{answer:?}");
    }
}

#[test]
fn news_reach_the_model_between_steps_and_never_within_one() {
    let mut stage = Stage::new();
    stage.apply(Input::Told { text: "job 1 ended".into() });
    let told = |log: &[Fact]| log.iter().any(|fact| matches!(fact, Fact::ContextChanged { .. }));
    assert!(!told(&stage.log), "the model is answering");
    stage.call(vec![run("make")], None, Answer::Once);
    assert!(told(&stage.log));
    let last_two: Vec<&str> = stage.log.iter().rev().take(2).map(Fact::kind).collect();
    assert_eq!(last_two, ["step_started", "context_changed"]);
}
