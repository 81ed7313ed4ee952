//! User questions of calls: valid answers, and a mode that changes only by the user's answer, also
//! with a crash.

use super::simulation::{
    SessionSimulation, SimulatedCrash, SimulatedCrashMoment, SimulatedDiskState, question,
};
use crate::session::{InputTimeAndId, Session, SessionEffect, SessionInput, TurnLimits};
use std::path::Path;
use uuid::Uuid;
use windlass_llm::ModelEvent;
use windlass_protocol::{
    CallId, CallOutcome, Fact, FinishReason, OpError, PermissionMode, SessionOp, TokenUsage,
    ToolAccess, ToolOutput, UnixMillis, UserQuestion,
};
use windlass_testkit::{Case, log_grammar};
use windlass_toolkit::{CallIntent, QuestionEffect};

struct QuestionTestSession {
    session: Session,
    log: Vec<Fact>,
    clock: u128,
    call: Option<CallId>,
    answers: Vec<Vec<Vec<String>>>,
    refusals: Vec<OpError>,
}

impl QuestionTestSession {
    /// A session in which a call runs.
    fn new() -> QuestionTestSession {
        let session =
            Session::new(Fact::session_opened("/w", "0"), super::config(TurnLimits::default()));
        let (log, answers) = (Vec::new(), Vec::new());
        let mut env = QuestionTestSession {
            session,
            log,
            clock: 0,
            call: None,
            answers,
            refusals: Vec::new(),
        };
        env.apply(SessionInput::Op(SessionOp::prompt("go")));
        // The model's arguments name a mode; they must not change it.
        let event = ModelEvent::Call {
            reference: "r".into(),
            tool: "plan_exit".into(),
            arguments: "auto".into(),
            provider_signature: None,
            repairs: Vec::new(),
        };
        env.apply(SessionInput::Model { turn: 1, step: 1, event });
        let event =
            ModelEvent::Ended { finish: FinishReason::ToolCalls, usage: TokenUsage::default() };
        env.apply(SessionInput::Model { turn: 1, step: 1, event });
        env.declare_intent();
        env
    }

    fn declare_intent(&mut self) {
        let intent = CallIntent {
            danger: Default::default(),
            accesses: Vec::<ToolAccess>::new(),
            read_only: true,
            ask_reason: None,
            approval_kind: None,
            accepts_earlier_approval: true,
            repair: None,
        };
        self.apply(SessionInput::PermissionRequested { turn: 1, call: self.call(), intent });
    }

    /// Opens the session from its log, as after a crash, and starts its call again.
    fn reopen(&mut self) {
        self.session = super::replay(&self.log);
        self.apply(SessionInput::Resume);
    }

    fn call(&self) -> CallId {
        self.call.unwrap()
    }

    fn apply(&mut self, input: SessionInput) {
        self.clock += 1;
        let stamp = InputTimeAndId { at: UnixMillis(0), id: Uuid::from_u128(self.clock) };
        for effect in self.session.apply(stamp, input) {
            match effect {
                SessionEffect::Append(facts) => self.log.extend(facts),
                SessionEffect::CallTool { call, .. } => self.call = Some(call),
                SessionEffect::SendAnswers { answers, .. } => self.answers.push(answers),
                SessionEffect::AnswerOp { result: Err(error) } => self.refusals.push(error),
                _ => {}
            }
        }
        log_grammar::check(&self.log).unwrap();
    }

    fn ask(&mut self, questions: Vec<UserQuestion>, effect: QuestionEffect) {
        self.apply(SessionInput::QuestionAsked { turn: 1, call: self.call(), questions, effect });
    }

    fn answer(&mut self, answers: &[&[&str]]) {
        let answers =
            answers.iter().map(|labels| labels.iter().map(|label| (*label).to_owned()).collect());
        self.apply(SessionInput::Op(SessionOp::AnswerQuestion {
            call: self.call(),
            answers: answers.collect(),
            asked: None,
        }));
    }

    fn mode(&self) -> Option<PermissionMode> {
        self.session.transcript().mode
    }

    fn count(&self, kind: &str) -> usize {
        self.log.iter().filter(|fact| fact.kind() == kind).count()
    }
}

#[test]
fn only_an_open_question_can_be_answered_and_only_once() {
    let multiple = UserQuestion { allow_multiple: true, ..question() };
    let custom = UserQuestion { allow_custom: true, ..question() };
    let long = "x".repeat(17 << 10);
    let mut env = QuestionTestSession::new();
    env.answer(&[&["auto"], &[], &["mine"]]);
    assert_eq!(env.count("question_answered"), 0);
    assert_eq!(std::mem::take(&mut env.refusals), [OpError::NoQuestion]);
    env.ask(vec![question(), multiple, custom], QuestionEffect::None);
    let invalid: [&[&[&str]]; 6] = [
        &[&["auto"]],
        &[&["auto"], &["no"], &["x"], &["x"]],
        &[&["auto", "no"], &[], &[]],
        &[&["Auto"], &[], &[]],
        &[&[], &["auto", "mine"], &[]],
        &[&[], &[], &[&long]],
    ];
    for (tries, answers) in invalid.iter().enumerate() {
        env.answer(answers);
        assert_eq!(env.count("question_answered"), 0, "{tries}");
        assert!(matches!(env.refusals.pop(), Some(OpError::Invalid { .. })), "{tries}");
    }
    env.answer(&[&["auto"], &["no", "ask"], &["my own words"]]);
    env.answer(&[&["no"], &[], &[]]);
    assert_eq!(env.count("question_answered"), 1);
    assert_eq!(env.answers.len(), 1);
    assert_eq!(env.mode(), None, "a question without `SetMode` does not change the mode");
}

#[test]
fn the_mode_changes_only_by_a_valid_answer_of_the_user() {
    for (answer, mode) in [
        (vec!["auto"], Some(PermissionMode::Auto)),
        (vec!["ask"], Some(PermissionMode::Ask)),
        (vec!["no"], None),
        (vec![], None),
        (vec!["carry on, auto"], None),
        (vec!["full"], None),
    ] {
        let mut env = QuestionTestSession::new();
        env.ask(vec![UserQuestion { allow_custom: true, ..question() }], QuestionEffect::SetMode);
        assert_eq!(env.mode(), None, "an open question changes nothing");
        env.answer(&[&answer]);
        assert_eq!(env.mode(), mode, "{answer:?}");
        assert_eq!(env.answers.len(), 1);
    }
    let mut env = QuestionTestSession::new();
    env.ask(vec![question()], QuestionEffect::SetMode);
    env.apply(SessionInput::Op(SessionOp::AnswerQuestion {
        call: env.call(),
        answers: Vec::new(),
        asked: None,
    }));
    assert_eq!((env.mode(), env.answers.len()), (None, 1), "the user declined to answer");
}

#[test]
fn a_question_of_an_earlier_process_can_be_answered_before_the_call_asks_again() {
    for (effect, mode) in
        [(QuestionEffect::None, None), (QuestionEffect::SetMode, Some(PermissionMode::Auto))]
    {
        let mut env = QuestionTestSession::new();
        env.ask(vec![question()], effect);
        env.reopen();
        env.answer(&[&["mine"]]);
        assert!(matches!(env.refusals.pop(), Some(OpError::Invalid { .. })));
        env.answer(&[&["auto"]]);
        assert_eq!((env.count("question_answered"), env.answers.len()), (1, 0));
        env.answer(&[&["no"]]);
        assert!(matches!(env.refusals.pop(), Some(OpError::AlreadyAnswered { .. })));
        assert_eq!(env.mode(), None, "the effect is not known yet");
        env.declare_intent();
        env.ask(vec![question()], effect);
        assert_eq!((env.count("question_asked"), env.answers.len(), env.mode()), (1, 1, mode));
        // The answer has its effect once.
        env.ask(vec![question()], effect);
        assert_eq!(env.count("mode_changed"), usize::from(mode.is_some()));
    }
    // The answer is for what was asked, not for what the call asks now.
    let mut env = QuestionTestSession::new();
    env.ask(vec![question()], QuestionEffect::SetMode);
    env.reopen();
    env.answer(&[&["auto"]]);
    env.declare_intent();
    env.ask(vec![question(), question()], QuestionEffect::SetMode);
    assert_eq!((env.count("question_asked"), env.answers.len(), env.mode()), (2, 0, None));
}

#[test]
fn a_question_of_a_call_that_is_not_running_is_not_asked() {
    let mut env = QuestionTestSession::new();
    env.apply(SessionInput::QuestionAsked {
        turn: 2,
        call: env.call(),
        questions: vec![question()],
        effect: QuestionEffect::SetMode,
    });
    env.apply(SessionInput::Op(SessionOp::Interrupt { turn: None }));
    env.ask(vec![question()], QuestionEffect::SetMode);
    let outcome = CallOutcome::Completed { output: ToolOutput::default() };
    env.apply(SessionInput::CallSettled {
        turn: 1,
        call: env.call(),
        outcome,
        seen_files: Vec::new(),
    });
    env.ask(vec![question()], QuestionEffect::SetMode);
    env.answer(&[&["auto"]]);
    assert_eq!((env.count("question_asked"), env.count("question_answered")), (0, 0));
}

#[test]
fn no_crash_changes_the_mode_twice_or_without_an_answer() {
    let path = "src/session/cases/an_approved_plan_changes_the_mode.case";
    let case = Case::load(Path::new(env!("CARGO_MANIFEST_DIR")).join(path));
    let points = SessionSimulation::new(&case).run();
    for point in 0..points {
        for moment in [
            SimulatedCrashMoment::Before,
            SimulatedCrashMoment::During,
            SimulatedCrashMoment::After,
        ] {
            for disk in [SimulatedDiskState::Kept, SimulatedDiskState::Lost] {
                let mut simulation = SessionSimulation::new(&case);
                simulation.run_with(Some(SimulatedCrash { point, moment, disk }));
                let kinds: Vec<&str> = simulation.facts().iter().map(Fact::kind).collect();
                let count = |kind: &str| kinds.iter().filter(|it| **it == kind).count();
                assert_eq!(
                    (count("question_answered"), count("mode_changed")),
                    (1, 1),
                    "{kinds:?}"
                );
                assert!(kinds.windows(2).any(|two| two == ["question_answered", "mode_changed"]));
                assert_eq!(simulation.transcript().mode, Some(PermissionMode::Auto));
            }
        }
    }
}
