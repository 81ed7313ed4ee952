//! Lasting approvals: the calls that they cover, the approvals that are saved for the project, and
//! the accesses that are asked about every time.

use crate::session::{InputTimeAndId, Session, SessionEffect, SessionInput, TurnLimits};
use uuid::Uuid;
use windlass_llm::ModelEvent;
use windlass_protocol::{
    ApprovalKind, ApprovalScope, CallId, CallOutcome, Fact, FinishReason, PermissionAnswer,
    ProjectApproval, SessionOp, TokenUsage, ToolAccess, ToolOutput, UnixMillis,
};
use windlass_testkit::log_grammar;
use windlass_toolkit::CallIntent;

struct ApprovalTestSession {
    session: Session,
    log: Vec<Fact>,
    clock: u128,
    calls: Vec<CallId>,
    saved: Vec<ProjectApproval>,
    /// Commands run in a sandbox.
    sandboxed: bool,
    /// The answers that the calls got.
    answers: Vec<PermissionAnswer>,
}

impl ApprovalTestSession {
    fn new() -> ApprovalTestSession {
        let opening = Fact::session_opened("/w", "0");
        let session = Session::new(opening, super::config(TurnLimits::default()));
        let mut env = ApprovalTestSession {
            session,
            log: Vec::new(),
            clock: 0,
            calls: Vec::new(),
            saved: Vec::new(),
            sandboxed: true,
            answers: Vec::new(),
        };
        env.apply(SessionInput::Op(SessionOp::prompt("go")));
        env
    }

    fn apply(&mut self, input: SessionInput) {
        self.clock += 1;
        let stamp = InputTimeAndId { at: UnixMillis(0), id: Uuid::from_u128(self.clock) };
        let mut previews = Vec::new();
        for effect in self.session.apply(stamp, input) {
            match effect {
                SessionEffect::Append(facts) => self.log.extend(facts),
                SessionEffect::CallTool { turn, call, .. } => {
                    assert_eq!(turn, 1);
                    self.calls.push(call);
                }
                SessionEffect::SendPermission { answer, .. } => self.answers.push(answer),
                SessionEffect::RequestPreview { call } => previews.push(call),
                SessionEffect::SaveApprovals { approvals } => self.saved.extend(approvals),
                _ => {}
            }
        }
        for call in previews {
            self.apply(SessionInput::PreviewReady { turn: 1, call, preview: None });
        }
        log_grammar::check(&self.log).unwrap();
    }

    /// Makes a call that requires permission. Returns true if it started without a request.
    fn call(
        &mut self,
        accesses: Vec<ToolAccess>,
        approval_kind: Option<&str>,
        answer: PermissionAnswer,
    ) -> bool {
        let step = self.log.iter().filter(|f| matches!(f, Fact::StepStarted { .. })).count() as u32;
        let event = ModelEvent::Call {
            reference: "r".into(),
            tool: "bash".into(),
            arguments: "{}".into(),
            provider_signature: None,
            repairs: Vec::new(),
        };
        self.apply(SessionInput::Model { turn: 1, step, event });
        let event =
            ModelEvent::Ended { finish: FinishReason::ToolCalls, usage: TokenUsage::default() };
        self.apply(SessionInput::Model { turn: 1, step, event });
        let call = *self.calls.last().unwrap();
        let intent = CallIntent {
            danger: Default::default(),
            accesses,
            read_only: false,
            ask_reason: Some("why".to_owned()),
            approval_kind: approval_kind
                .map(|pattern| ApprovalKind::Commands { pattern: pattern.to_owned() }),
            accepts_earlier_approval: self.sandboxed,
            repair: None,
        };
        self.apply(SessionInput::PermissionRequested { turn: 1, call, intent });
        let is_start =
            |fact: &Fact| matches!(fact, Fact::CallStarted { call: id, .. } if *id == call);
        let covered = self.log.iter().any(is_start);
        if !covered {
            self.apply(SessionInput::Op(SessionOp::AnswerPermission { call, answer, asked: None }));
        }
        let outcome = CallOutcome::Completed { output: ToolOutput::default() };
        self.apply(SessionInput::CallSettled { turn: 1, call, outcome, seen_files: Vec::new() });
        covered
    }
}

fn run(command: &str) -> ToolAccess {
    ToolAccess::RunCommand { command: command.into(), folder: ".".into() }
}

fn network() -> ToolAccess {
    ToolAccess::Connect { host: "*".into() }
}

#[test]
fn a_project_approval_covers_the_session_and_is_saved_once() {
    let mut env = ApprovalTestSession::new();
    assert!(!env.call(vec![run("make"), network()], None, PermissionAnswer::Project));
    assert!(env.call(vec![run("make"), network()], None, PermissionAnswer::No { reason: None }));
    assert_eq!(env.saved, [ProjectApproval { key: "bash".into(), subject: "make".into() }]);
    // Network access of one command does not cover another.
    assert!(!env.call(vec![run("make all"), network()], None, PermissionAnswer::Once));
}

#[test]
fn a_command_kind_approval_covers_the_offered_kind_and_no_other() {
    let mut env = ApprovalTestSession::new();
    let for_kind = |scope| PermissionAnswer::Kind { scope };
    assert!(!env.call(
        vec![run("cargo test a")],
        Some("cargo test"),
        for_kind(ApprovalScope::Session)
    ));
    assert!(env.call(vec![run("cargo test b")], Some("cargo test"), PermissionAnswer::Once));
    assert!(!env.call(vec![run("cargo test | sh")], None, PermissionAnswer::Once));
    assert!(env.saved.is_empty());
    assert!(!env.call(vec![run("cargo doc")], Some("cargo doc"), for_kind(ApprovalScope::Project)));
    assert_eq!(
        env.saved,
        [ProjectApproval {
            key: ProjectApproval::COMMAND_KIND_KEY.into(),
            subject: "cargo doc".into()
        }]
    );
}

#[test]
fn a_command_kind_approval_without_an_offered_kind_covers_the_command() {
    let mut env = ApprovalTestSession::new();
    let for_kind = PermissionAnswer::Kind { scope: ApprovalScope::Project };
    assert!(!env.call(vec![run("node a.js")], None, for_kind));
    assert!(env.call(vec![run("node a.js")], None, PermissionAnswer::Once));
    assert!(!env.call(vec![run("node b.js")], None, PermissionAnswer::Once));
    assert_eq!(env.saved, [ProjectApproval { key: "bash".into(), subject: "node a.js".into() }]);
}

#[test]
fn a_command_kind_approval_does_not_cover_leaving_the_sandbox() {
    let mut env = ApprovalTestSession::new();
    let for_kind = PermissionAnswer::Kind { scope: ApprovalScope::Session };
    assert!(!env.call(vec![run("cargo test a")], Some("cargo test *"), for_kind));
    assert!(env.call(vec![run("cargo test b")], Some("cargo test *"), PermissionAnswer::Once));
    let leave = ToolAccess::LeaveSandbox { command: "cargo test a".into() };
    let accesses = vec![run("cargo test a"), leave];
    assert!(!env.call(accesses, Some("cargo test *"), PermissionAnswer::Session));
    // The recorded answer and the answer to the pipeline are both limited to this call.
    assert!(matches!(
        env.log.iter().rfind(|fact| matches!(fact, Fact::PermissionAnswered { .. })),
        Some(Fact::PermissionAnswered { answer: PermissionAnswer::Once, .. })
    ));
    assert_eq!(env.answers.last(), Some(&PermissionAnswer::Once));
}

#[test]
fn an_approval_given_with_a_sandbox_does_not_apply_without_one() {
    let mut env = ApprovalTestSession::new();
    assert!(!env.call(vec![run("make")], None, PermissionAnswer::Session));
    assert!(env.call(vec![run("make")], None, PermissionAnswer::Once));
    env.sandboxed = false;
    assert!(!env.call(vec![run("make")], None, PermissionAnswer::Once));
    env.sandboxed = true;
    assert!(env.call(vec![run("make")], None, PermissionAnswer::Once));
}

#[test]
fn a_covered_call_is_answered_in_the_log_without_a_request() {
    let mut env = ApprovalTestSession::new();
    env.call(vec![run("make")], None, PermissionAnswer::Session);
    let before = env.log.len();
    assert!(env.call(vec![run("make")], None, PermissionAnswer::No { reason: None }));
    let kinds: Vec<&str> = env.log.iter().skip(before).map(Fact::kind).collect();
    assert!(
        kinds.windows(2).any(|pair| pair == ["permission_answered", "call_started"]),
        "{kinds:?}"
    );
    assert!(!kinds.contains(&"permission_asked"), "{kinds:?}");
    assert_eq!(env.answers.last(), Some(&PermissionAnswer::Session));
}

#[test]
fn a_project_approval_applies_to_its_folder() {
    let mut env = ApprovalTestSession::new();
    let in_subfolder = ToolAccess::RunCommand { command: "make".into(), folder: "docs".into() };
    assert!(!env.call(vec![in_subfolder.clone()], None, PermissionAnswer::Project));
    assert!(!env.call(vec![run("make")], None, PermissionAnswer::Once));
    assert!(env.call(vec![in_subfolder], None, PermissionAnswer::Once));
    assert_eq!(env.saved, [ProjectApproval { key: "bash in docs".into(), subject: "make".into() }]);
}

#[test]
fn leaving_the_sandbox_is_asked_about_every_time() {
    for answer in [
        PermissionAnswer::Session,
        PermissionAnswer::Project,
        PermissionAnswer::Kind { scope: ApprovalScope::Project },
    ] {
        let mut env = ApprovalTestSession::new();
        let accesses = vec![ToolAccess::LeaveSandbox { command: "make".into() }, run("make")];
        for _ in 0..3 {
            assert!(!env.call(accesses.clone(), Some("make"), answer.clone()), "{answer:?}");
        }
        assert!(!env.call(vec![run("make")], Some("make"), PermissionAnswer::Once), "{answer:?}");
        assert!(env.saved.is_empty(), "{answer:?}");
    }
}

#[test]
fn notices_reach_the_model_between_steps_and_never_within_one() {
    let mut env = ApprovalTestSession::new();
    env.apply(SessionInput::note("job 1 ended".into()));
    let has_notice =
        |log: &[Fact]| log.iter().any(|fact| matches!(fact, Fact::ContextChanged { .. }));
    assert!(!has_notice(&env.log), "the model is answering");
    env.call(vec![run("make")], None, PermissionAnswer::Once);
    assert!(has_notice(&env.log));
    let last_two: Vec<&str> = env.log.iter().rev().take(2).map(Fact::kind).collect();
    assert_eq!(last_two, ["step_started", "context_changed"]);
}
