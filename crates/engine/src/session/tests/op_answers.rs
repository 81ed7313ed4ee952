//! Answers to operations: exactly one for each, and none with effects if it is refused.

use crate::session::{InputTimeAndId, Session, SessionEffect, SessionInput, TurnLimits};
use uuid::Uuid;
use windlass_llm::ModelEvent;
use windlass_protocol::{
    CallId, Fact, FinishReason, LiveEvent, ModelStreamKind, OpError, PermissionAnswer, SessionOp,
    StreamedText, TokenUsage, ToolAccess, UnixMillis,
};
use windlass_toolkit::CallIntent;

/// Returns true for inputs that an operation causes.
pub(super) fn is_op(input: &SessionInput) -> bool {
    matches!(
        input,
        SessionInput::Op(_)
            | SessionInput::AgentChanged { .. }
            | SessionInput::PromptAccepted { .. }
            | SessionInput::PromptRejected { .. }
    )
}

/// Checks that an operation is answered exactly once, after its other effects, and that one that is
/// refused has no other effects.
pub(super) fn check_op_answer(is_op: bool, effects: &[SessionEffect]) {
    let is_answer = |effect: &SessionEffect| matches!(effect, SessionEffect::AnswerOp { .. });
    let answers = effects.iter().filter(|effect| is_answer(effect)).count();
    assert_eq!(answers, usize::from(is_op), "{effects:?}");
    if let Some(last) = effects.last().filter(|_| is_op) {
        assert!(is_answer(last), "effects after the answer: {effects:?}");
    }
    if let Some(SessionEffect::AnswerOp { result: Err(_) }) = effects.last() {
        let is_hook_run = |effect: &SessionEffect| match effect {
            SessionEffect::Append(facts) => {
                facts.iter().all(|fact| matches!(fact, Fact::HookRan { .. }))
            }
            effect => is_answer(effect),
        };
        assert!(effects.iter().all(is_hook_run), "a refused operation had effects: {effects:?}");
    }
}

struct OpTestSession {
    session: Session,
    log: Vec<Fact>,
    clock: u128,
    calls: Vec<CallId>,
    /// Preview of each permission request.
    preview: Option<String>,
}

impl OpTestSession {
    fn new() -> OpTestSession {
        let opening = Fact::session_opened("/w", "0");
        let session = Session::new(opening, super::config(TurnLimits::default()));
        OpTestSession { session, log: Vec::new(), clock: 0, calls: Vec::new(), preview: None }
    }

    /// Returns a session whose call was asked about.
    fn asking() -> (OpTestSession, CallId) {
        OpTestSession::asking_with(None)
    }

    fn asking_with(preview: Option<&str>) -> (OpTestSession, CallId) {
        let mut env = OpTestSession { preview: preview.map(str::to_owned), ..OpTestSession::new() };
        env.op(SessionOp::prompt("go")).unwrap();
        let call = ModelEvent::Call {
            reference: "r".into(),
            tool: "bash".into(),
            arguments: "{}".into(),
            provider_signature: None,
            repairs: Vec::new(),
        };
        env.model(call);
        let (finish, usage) = (FinishReason::ToolCalls, TokenUsage::default());
        env.model(ModelEvent::Ended { finish, usage });
        let call = *env.calls.last().unwrap();
        env.request_permission(call, "make");
        (env, call)
    }

    /// Applies an input, and returns the answer to the operation.
    fn apply(&mut self, input: SessionInput) -> Option<Result<(), OpError>> {
        self.clock += 1;
        let stamp = InputTimeAndId { at: UnixMillis(0), id: Uuid::from_u128(self.clock) };
        let is_op = is_op(&input);
        let effects = self.session.apply(stamp, input);
        check_op_answer(is_op, &effects);
        let mut answer = None;
        for effect in effects {
            match effect {
                SessionEffect::Append(facts) => self.log.extend(facts),
                SessionEffect::CallTool { call, .. } => self.calls.push(call),
                SessionEffect::AnswerOp { result } => answer = Some(result),
                SessionEffect::RequestPreview { call } => {
                    let preview = self.preview.clone();
                    self.apply(SessionInput::PreviewReady { turn: 1, call, preview });
                }
                _ => {}
            }
        }
        answer
    }

    fn op(&mut self, op: SessionOp) -> Result<(), OpError> {
        self.apply(SessionInput::Op(op)).unwrap()
    }

    fn model(&mut self, event: ModelEvent) {
        self.apply(SessionInput::Model { turn: 1, step: 1, event });
    }

    fn request_permission(&mut self, call: CallId, command: &str) {
        let intent = CallIntent {
            danger: Default::default(),
            accesses: vec![ToolAccess::RunCommand { command: command.into(), folder: ".".into() }],
            read_only: false,
            ask_reason: Some("why".to_owned()),
            approval_kind: None,
            accepts_earlier_approval: true,
            repair: None,
        };
        self.apply(SessionInput::PermissionRequested { turn: 1, call, intent });
    }

    fn reopen(&mut self) {
        self.session = super::replay(&self.log);
        self.apply(SessionInput::Resume);
    }

    fn count(&self, kind: &str) -> usize {
        self.log.iter().filter(|fact| fact.kind() == kind).count()
    }
}

fn answer(call: CallId, asked: Option<u64>) -> SessionOp {
    SessionOp::AnswerPermission { call, answer: PermissionAnswer::Once, asked }
}

#[test]
fn the_second_answer_names_the_position_of_the_first() {
    let (mut env, call) = OpTestSession::asking();
    env.op(answer(call, None)).unwrap();
    let is_answer = |fact: &Fact| matches!(fact, Fact::PermissionAnswered { .. });
    let seq = env.log.iter().position(is_answer).unwrap() as u64 + 1;
    let refused = Err(OpError::AlreadyAnswered { by: None, seq });
    assert_eq!(env.op(answer(call, None)), refused);
    env.op(SessionOp::interrupt()).unwrap();
    env.op(SessionOp::interrupt()).unwrap();
    assert_eq!(env.op(answer(call, None)), refused, "also after the call has settled");
    assert_eq!(env.op(answer(CallId(Uuid::from_u128(77)), None)), Err(OpError::NoQuestion));
    assert_eq!(env.count("permission_answered"), 1);
}

#[test]
fn an_answer_to_an_earlier_question_is_refused() {
    let (mut env, call) = OpTestSession::asking();
    let asked = env.session.head();
    env.reopen();
    env.request_permission(call, "make all");
    assert_eq!(env.op(answer(call, Some(asked))), Err(OpError::NoQuestion));
    let asked = env.session.head();
    env.op(answer(call, Some(asked))).unwrap();
}

#[test]
fn a_question_of_an_earlier_process_can_be_answered_before_the_call_asks_again() {
    let (mut env, call) = OpTestSession::asking();
    let asked = env.session.head();
    env.reopen();
    env.op(answer(call, Some(asked))).unwrap();
    env.request_permission(call, "make");
    assert_eq!((env.count("permission_asked"), env.count("call_started")), (1, 1));

    // The answer is for what was asked, not for what the call wants now.
    let (mut env, call) = OpTestSession::asking();
    env.reopen();
    env.op(answer(call, None)).unwrap();
    env.request_permission(call, "make install");
    assert_eq!((env.count("permission_asked"), env.count("call_started")), (2, 0));
}

#[test]
fn a_change_shown_by_an_earlier_process_is_not_approved_unseen() {
    let (mut env, call) = OpTestSession::asking_with(Some("+a line"));
    env.reopen();
    assert_eq!(env.op(answer(call, None)), Err(OpError::NoQuestion), "files may have changed");
    env.request_permission(call, "make");
    env.op(answer(call, None)).unwrap();

    let (mut env, call) = OpTestSession::asking_with(Some("+a line"));
    env.reopen();
    let no = PermissionAnswer::No { reason: None };
    env.op(SessionOp::answer_permission(call, no)).unwrap();
    env.request_permission(call, "make");
    assert_eq!((env.count("permission_asked"), env.count("call_started")), (1, 0));
}

#[test]
fn an_interrupt_stops_the_turn_that_it_names() {
    let mut env = OpTestSession::new();
    assert_eq!(env.op(SessionOp::interrupt()), Err(OpError::NoTurn));
    env.op(SessionOp::prompt("go")).unwrap();
    assert_eq!(env.op(SessionOp::Interrupt { turn: Some(2) }), Err(OpError::NoTurn));
    assert_eq!(env.count("turn_interrupted"), 0);
    env.op(SessionOp::Interrupt { turn: Some(1) }).unwrap();
    assert_eq!(env.count("turn_interrupted"), 1);
}

#[test]
fn operations_between_turns_are_refused_within_one() {
    let mut env = OpTestSession::new();
    env.op(SessionOp::prompt("go")).unwrap();
    for op in [SessionOp::Compact, SessionOp::Rewind { to: 1 }, SessionOp::shell_command("ls")] {
        assert!(matches!(env.op(op), Err(OpError::TurnRunning { .. })));
    }
    assert!(matches!(env.op(SessionOp::Undo { facts: vec![1] }), Err(OpError::Gone { .. })));
}

#[test]
fn the_partial_step_is_what_the_deltas_add_up_to() {
    let mut env = OpTestSession::new();
    assert_eq!(env.session.partial_step(), None);
    env.op(SessionOp::prompt("go")).unwrap();
    let empty = LiveEvent::PartialStep { texts: Vec::new(), calls: Vec::new() };
    assert_eq!(env.session.partial_step(), Some(empty));
    for event in [
        ModelEvent::Reasoning("Let me ".into()),
        ModelEvent::Reasoning("see.".into()),
        ModelEvent::Text("It ".into()),
        ModelEvent::Text("is".into()),
    ] {
        env.model(event);
    }
    let text = |stream, text: &str| StreamedText { stream, text: text.to_owned() };
    let Some(LiveEvent::PartialStep { texts, calls }) = env.session.partial_step() else {
        panic!("no partial step");
    };
    let expected =
        [text(ModelStreamKind::Reasoning, "Let me see."), text(ModelStreamKind::Text, "It is")];
    assert_eq!((texts.as_slice(), calls.len()), (expected.as_slice(), 0));
    let (finish, usage) = (FinishReason::Stop, TokenUsage::default());
    env.model(ModelEvent::Ended { finish, usage });
    assert_eq!(env.session.partial_step(), None);
}
