//! Any interleaving of inputs, including late, repeated and invalid ones and crashes, gives a log
//! that follows the `log_grammar` and settles every call exactly once.

use super::op_answers::{check_op_answer, is_op};
use super::simulation::question;
use crate::session::{
    ContextWindow, InputTimeAndId, LoopDetectionPolicy, Session, SessionConfig, SessionEffect,
    SessionInput, TurnLimits,
};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::time::Duration;
use uuid::Uuid;
use windlass_llm::ModelEvent;
use windlass_protocol::{
    CallId, CallOutcome, Fact, FactRecord, Fault, FinishReason, HookPoint, HookVerdict,
    PermissionAnswer, PermissionMode, PromptDelivery, PromptId, PromptSettings, SessionId,
    SessionOp, TokenUsage, ToolAccess, ToolOutput, TurnGoal, UnixMillis,
};
use windlass_testkit::log_grammar;
use windlass_toolkit::{CallIntent, HookRun, QuestionEffect};

/// One random event. Indexes select one of the calls made so far.
#[derive(Clone, Debug)]
enum RandomSessionAction {
    Prompt,
    /// A prompt with a goal.
    PromptWithGoal,
    /// The hooks answer at the end of a turn; if true, they continue it.
    ReviewEnd(bool),
    /// A queued prompt.
    Queue,
    /// A change of the mode.
    Mode(u8),
    /// A compaction by the user.
    Compact,
    /// A withdrawal of a prompt, queued or unknown.
    WithdrawPrompt(usize),
    /// A rewind by a number of facts.
    Rewind(u64),
    /// A turn timeout; if true, the time limit has been reached.
    TurnTimeout(bool),
    UserCall,
    Interrupt,
    AnswerPermission(usize, u8),
    ModelText,
    ModelCall,
    /// The end of an answer, with one of several finish reasons.
    ModelEnd(u8),
    /// A failure of the model, with one of several faults.
    ModelFailure(u8),
    /// A call declares its intent, with or without a permission request.
    DeclareIntent(usize, bool),
    Settle(usize, u8),
    /// The preview of a call is ready.
    Preview(usize),
    /// A call asks the user a question; if true, about the mode.
    AskUser(usize, bool),
    /// The user answers a question, validly or not.
    AnswerQuestion(usize, u8),
    /// A call changes files; if true, it has changed them already.
    FilesChanging(usize, bool),
    /// A call did not make the announced changes.
    FilesUnchanged(usize),
    RetryTimer,
    /// The next input has an older turn or step number.
    Late,
    /// The process dies and the session is opened again.
    Crash,
    /// The power fails: facts after the last disk sync are lost.
    PowerCut,
}

fn actions() -> impl Strategy<Value = Vec<RandomSessionAction>> {
    let action = prop_oneof![
        2 => Just(RandomSessionAction::Prompt),
        1 => Just(RandomSessionAction::PromptWithGoal),
        3 => any::<bool>().prop_map(RandomSessionAction::ReviewEnd),
        1 => Just(RandomSessionAction::Queue),
        1 => (0_u8..4).prop_map(RandomSessionAction::Mode),
        1 => Just(RandomSessionAction::Compact),
        1 => (0_usize..3).prop_map(RandomSessionAction::WithdrawPrompt),
        2 => (0_u64..40).prop_map(RandomSessionAction::Rewind),
        1 => any::<bool>().prop_map(RandomSessionAction::TurnTimeout),
        1 => Just(RandomSessionAction::UserCall),
        1 => Just(RandomSessionAction::Interrupt),
        4 => (0_usize..6, 0_u8..4).prop_map(|(call, kind)| RandomSessionAction::AnswerPermission(call, kind)),
        2 => Just(RandomSessionAction::ModelText),
        4 => Just(RandomSessionAction::ModelCall),
        4 => (0_u8..5).prop_map(RandomSessionAction::ModelEnd),
        2 => (0_u8..4).prop_map(RandomSessionAction::ModelFailure),
        8 => (0_usize..6, any::<bool>()).prop_map(|(call, asks)| RandomSessionAction::DeclareIntent(call, asks)),
        8 => (0_usize..6, 0_u8..4).prop_map(|(call, kind)| RandomSessionAction::Settle(call, kind)),
        6 => (0_usize..6).prop_map(RandomSessionAction::Preview),
        4 => (0_usize..6, any::<bool>()).prop_map(|(call, mode)| RandomSessionAction::AskUser(call, mode)),
        4 => (0_usize..6, 0_u8..4).prop_map(|(call, kind)| RandomSessionAction::AnswerQuestion(call, kind)),
        3 => (0_usize..6, any::<bool>())
            .prop_map(|(index, are_made)| RandomSessionAction::FilesChanging(index, are_made)),
        1 => (0_usize..6).prop_map(RandomSessionAction::FilesUnchanged),
        1 => Just(RandomSessionAction::RetryTimer),
        1 => Just(RandomSessionAction::Late),
        1 => Just(RandomSessionAction::Crash),
        1 => Just(RandomSessionAction::PowerCut),
    ];
    proptest::collection::vec(action, 0..120)
}

struct InterleavingTestSession {
    config: SessionConfig,
    session: Session,
    log: Vec<Fact>,
    checker: log_grammar::LogGrammarChecker,
    synced: usize,
    clock: u128,
    turn: u32,
    step: u32,
    calls: Vec<CallId>,
    /// The calls that were permitted.
    running: BTreeSet<CallId>,
    /// The calls that were denied.
    denied: BTreeSet<CallId>,
    /// The calls that were changing files when the process died.
    reconciling: BTreeSet<CallId>,
    /// The calls whose preview was requested.
    previewing: BTreeSet<CallId>,
    /// The turn whose end is under review.
    review: Option<u32>,
    late: bool,
}

impl InterleavingTestSession {
    fn new(config: SessionConfig) -> InterleavingTestSession {
        let mut env = InterleavingTestSession {
            session: Session::new(Fact::session_opened("/w", "0"), config.clone()),
            config,
            log: Vec::new(),
            checker: log_grammar::LogGrammarChecker::default(),
            synced: 0,
            clock: 0,
            turn: 0,
            step: 0,
            calls: Vec::new(),
            running: BTreeSet::new(),
            denied: BTreeSet::new(),
            reconciling: BTreeSet::new(),
            previewing: BTreeSet::new(),
            review: None,
            late: false,
        };
        env.apply(SessionInput::Resume);
        env
    }

    fn apply(&mut self, input: SessionInput) {
        self.clock += 1;
        let stamp =
            InputTimeAndId { at: UnixMillis(self.clock as u64), id: Uuid::from_u128(self.clock) };
        let is_op = is_op(&input);
        let effects = self.session.apply(stamp, input);
        check_op_answer(is_op, &effects);
        for effect in effects {
            match effect {
                SessionEffect::Append(facts) => {
                    assert!(!facts.is_empty());
                    for fact in &facts {
                        self.checker.read(fact).unwrap_or_else(|error| panic!("{error}: {fact:?}"));
                    }
                    let needs_sync = facts.iter().any(Fact::needs_disk_sync);
                    self.log.extend(facts);
                    if needs_sync {
                        self.synced = self.log.len();
                    }
                }
                SessionEffect::CallModel { turn, step, .. } => {
                    (self.turn, self.step) = (turn, step)
                }
                SessionEffect::CallTool { turn, call, .. } => {
                    self.turn = turn;
                    self.calls.retain(|known| *known != call);
                    self.calls.insert(0, call);
                }
                SessionEffect::SendPermission { call, answer } => {
                    let is_start = |fact: &Fact| match fact {
                        Fact::CallStarted { call: id, .. } => *id == call,
                        _ => false,
                    };
                    assert!(
                        !answer.is_yes() || self.log.iter().any(is_start),
                        "permitted before `CallStarted` was recorded"
                    );
                    if answer.is_yes() {
                        self.running.insert(call);
                    } else {
                        self.denied.insert(call);
                    }
                }
                SessionEffect::StartTurnTimer { .. } => {}
                // After a crash, the retry may belong to an earlier step than the last one seen.
                SessionEffect::RetryAfter { turn, step, .. } => {
                    (self.turn, self.step) = (turn, step)
                }
                SessionEffect::RequestPreview { call } => drop(self.previewing.insert(call)),
                SessionEffect::SendAnswers { call, .. } => {
                    let is_answer = |fact: &Fact| match fact {
                        Fact::QuestionAnswered { call: id, .. } => *id == call,
                        _ => false,
                    };
                    assert!(self.log.iter().any(is_answer), "answered before it was recorded");
                }
                SessionEffect::ReviewTurnEnd { turn, .. } => self.review = Some(turn),
                SessionEffect::ConfirmRecorded { call } => {
                    let is_record = |fact: &Fact| match fact {
                        Fact::FilesChanging { call: id, .. } => *id == call,
                        _ => false,
                    };
                    assert!(self.log.iter().any(is_record), "confirmed before it was recorded");
                }
                SessionEffect::StartSubagent { session, .. } => {
                    let is_record = |fact: &Fact| match fact {
                        Fact::SubagentStarted { session: id, .. } => *id == session,
                        _ => false,
                    };
                    assert!(self.log.iter().any(is_record), "started before it was recorded");
                }
                SessionEffect::Reconcile { turn, call, .. } => {
                    self.turn = turn;
                    self.reconciling.insert(call);
                }
                SessionEffect::Emit(_)
                | SessionEffect::AnswerOp { .. }
                | SessionEffect::CancelModel
                | SessionEffect::CancelTool { .. }
                | SessionEffect::EndJob { .. }
                | SessionEffect::SaveApprovals { .. } => {}
            }
        }
        assert_eq!(self.session.head(), self.log.len() as u64);
    }

    fn call(&self, index: usize) -> CallId {
        self.calls.get(index).copied().unwrap_or(CallId(Uuid::from_u128(u128::MAX)))
    }

    fn reopen(&mut self) {
        self.checker = log_grammar::LogGrammarChecker::from_facts(&self.log).unwrap();
        let session = SessionId(Uuid::nil());
        let records: Vec<FactRecord> = (1..)
            .zip(&self.log)
            .map(|(seq, fact)| FactRecord::new(session, seq, UnixMillis(seq), fact.clone()))
            .collect();
        self.session = if records.is_empty() {
            Session::new(Fact::session_opened("/w", "0"), self.config.clone())
        } else {
            Session::replay(&records, self.config.clone())
        };
        self.calls.clear();
        self.running.clear();
        self.denied.clear();
        self.reconciling.clear();
        self.previewing.clear();
        self.review = None;
        self.apply(SessionInput::Resume);
    }

    fn model(&mut self, event: ModelEvent) {
        let (mut turn, mut step) = (self.turn, self.step);
        if std::mem::take(&mut self.late) {
            (turn, step) = if step > 1 { (turn, step - 1) } else { (turn.wrapping_sub(1), step) };
        }
        self.apply(SessionInput::Model { turn, step, event });
    }

    fn turn_of_call(&mut self) -> u32 {
        if std::mem::take(&mut self.late) { self.turn.wrapping_sub(1) } else { self.turn }
    }

    fn ask_user(&mut self, index: usize, about_mode: bool) {
        let effect = if about_mode { QuestionEffect::SetMode } else { QuestionEffect::None };
        let questions = vec![question()];
        self.call_input(index, |turn, call| SessionInput::QuestionAsked {
            turn,
            call,
            questions,
            effect,
        });
    }

    fn answer_question(&mut self, index: usize, kind: u8) {
        let answers = match kind {
            0 => vec![vec!["auto".to_owned()]],
            1 => vec![Vec::new()],
            2 => Vec::new(),
            _ => vec![vec!["nonsense".to_owned()]],
        };
        self.apply(SessionInput::Op(SessionOp::AnswerQuestion {
            call: self.call(index),
            answers,
            asked: None,
        }));
    }

    #[allow(clippy::too_many_lines, reason = "one arm per action")]
    fn perform(&mut self, action: &RandomSessionAction) {
        match action {
            RandomSessionAction::Prompt => self.apply(SessionInput::Op(SessionOp::prompt("p"))),
            RandomSessionAction::PromptWithGoal => {
                let goal = Some(TurnGoal::Command { command: "make test".into() });
                self.apply(SessionInput::Op(SessionOp::Prompt {
                    text: "g".into(),
                    attachments: Vec::new(),
                    delivery: PromptDelivery::default(),
                    settings: PromptSettings { goal, ..PromptSettings::default() },
                }));
            }
            RandomSessionAction::ReviewEnd(continues) => self.review_end(*continues),
            RandomSessionAction::Queue => {
                self.apply(SessionInput::Op(SessionOp::Prompt {
                    text: "q".into(),
                    attachments: Vec::new(),
                    delivery: PromptDelivery::Queue,
                    settings: Default::default(),
                }));
            }
            RandomSessionAction::Mode(kind) => {
                self.apply(SessionInput::Op(SessionOp::SetMode {
                    mode: PermissionMode::ALL[usize::from(*kind)],
                }));
            }
            RandomSessionAction::Compact => self.apply(SessionInput::Op(SessionOp::Compact)),
            RandomSessionAction::WithdrawPrompt(index) => {
                let queued = &self.session.transcript().queued_prompts;
                let unknown = PromptId(Uuid::from_u128(u128::MAX));
                let prompt = queued.get(*index).map_or(unknown, |prompt| prompt.id);
                self.apply(SessionInput::Op(SessionOp::WithdrawPrompt { prompt }));
            }
            RandomSessionAction::Rewind(distance) => {
                let to = (self.log.len() as u64).saturating_sub(*distance);
                self.apply(SessionInput::Op(SessionOp::Rewind { to }));
            }
            RandomSessionAction::TurnTimeout(reached) => {
                self.clock += if *reached { 1_000_000 } else { 0 };
                let turn = self.turn_of_call();
                self.apply(SessionInput::TurnTimeout { turn });
            }
            RandomSessionAction::UserCall => {
                let (tool, arguments) = ("read".into(), "{}".into());
                self.apply(SessionInput::Op(SessionOp::CallTool { tool, arguments }));
            }
            RandomSessionAction::Interrupt => {
                self.apply(SessionInput::Op(SessionOp::Interrupt { turn: None }))
            }
            RandomSessionAction::AnswerPermission(index, kind) => {
                let answer = match kind {
                    0 => PermissionAnswer::Once,
                    1 => PermissionAnswer::Session,
                    2 => PermissionAnswer::No { reason: None },
                    _ => PermissionAnswer::No { reason: Some("because".into()) },
                };
                self.apply(SessionInput::Op(SessionOp::AnswerPermission {
                    call: self.call(*index),
                    answer,
                    asked: None,
                }));
            }
            RandomSessionAction::ModelText => self.model(ModelEvent::Text("word ".into())),
            RandomSessionAction::ModelCall => {
                let (reference, tool, arguments) = ("r".into(), "t".into(), "{}".into());
                self.model(ModelEvent::Call {
                    reference,
                    tool,
                    arguments,
                    provider_signature: None,
                    repairs: Vec::new(),
                });
            }
            RandomSessionAction::ModelEnd(kind) => {
                let finish = match kind {
                    0 => FinishReason::Stop,
                    1 | 2 => FinishReason::ToolCalls,
                    3 => FinishReason::Length,
                    _ => FinishReason::ContentFiltered,
                };
                let usage = TokenUsage { input: 40, output: 2, ..TokenUsage::default() };
                self.model(ModelEvent::Ended { finish, usage });
            }
            RandomSessionAction::ModelFailure(kind) => {
                let message = "f".to_owned();
                self.model(ModelEvent::Failed(match kind {
                    0 => Fault::Network { message },
                    1 => Fault::Auth { message },
                    2 => Fault::ContextOverflow { message },
                    _ => Fault::RateLimited { message, retry_after_ms: Some(1) },
                }));
            }
            RandomSessionAction::DeclareIntent(index, asks) => {
                let ask_reason = asks.then(|| "r".to_owned());
                let (turn, call) = (self.turn_of_call(), self.call(*index));
                self.apply(SessionInput::PermissionRequested {
                    turn,
                    call,
                    intent: intent(call, ask_reason),
                });
            }
            RandomSessionAction::Settle(index, kind) => {
                let text = String::from("t");
                let (turn, call) = (self.turn_of_call(), self.call(*index));
                // Only a permitted call can have run.
                let outcome = match (kind, self.running.contains(&call)) {
                    (0, true) => CallOutcome::Completed { output: ToolOutput::default() },
                    (1, true) => CallOutcome::ResultUnknown,
                    (2, _) => CallOutcome::Denied { text },
                    _ => CallOutcome::Failed { text },
                };
                self.apply(SessionInput::CallSettled {
                    turn,
                    call,
                    outcome,
                    seen_files: Vec::new(),
                });
            }
            RandomSessionAction::Preview(index) => self.call_input(*index, |turn, call| {
                SessionInput::PreviewReady { turn, call, preview: None }
            }),
            RandomSessionAction::AskUser(index, about_mode) => self.ask_user(*index, *about_mode),
            RandomSessionAction::AnswerQuestion(index, kind) => self.answer_question(*index, *kind),
            RandomSessionAction::FilesUnchanged(index) => {
                self.call_input(*index, |turn, call| SessionInput::FilesUnchanged { turn, call })
            }
            RandomSessionAction::FilesChanging(index, are_made) => {
                self.call_input(*index, |turn, call| {
                    let path = "a".to_owned();
                    let change = windlass_protocol::FileChange { path, before: None, after: None };
                    let (changes, are_made) = (vec![change], *are_made);
                    SessionInput::FilesChanging { turn, call, changes, are_made }
                })
            }
            RandomSessionAction::RetryTimer => {
                self.apply(SessionInput::RetryTimer { turn: self.turn, step: self.step })
            }
            RandomSessionAction::Late => self.late = true,
            RandomSessionAction::Crash => self.reopen(),
            RandomSessionAction::PowerCut => {
                self.log.truncate(self.synced);
                self.reopen();
            }
        }
    }

    /// Applies an input that belongs to a call.
    fn call_input(&mut self, index: usize, build: impl FnOnce(u32, CallId) -> SessionInput) {
        let input = build(self.turn_of_call(), self.call(index));
        self.apply(input);
    }

    /// Ends all answers and calls, until the session is idle.
    /// Answers for the hooks at the end of a turn.
    fn review_end(&mut self, continues: bool) {
        let late = std::mem::take(&mut self.late);
        let Some(turn) = self.review.take() else { return };
        let verdict = match continues {
            true => HookVerdict::Refused { reason: "go on".into() },
            false => HookVerdict::Passed,
        };
        let (hook, point, duration) = ("h".to_owned(), HookPoint::TurnEnd, Duration::ZERO);
        let hook_runs = vec![HookRun { hook, point, duration, verdict }];
        let late_turn = if late { turn.wrapping_sub(1) } else { turn };
        self.apply(SessionInput::TurnEndReviewed {
            turn: late_turn,
            hook_runs,
            goal_failure: None,
        });
        if late {
            self.review = Some(turn);
        }
    }

    fn wind_down(&mut self) {
        self.late = false;
        for _ in 0..500 {
            if !self.session.is_busy() {
                return;
            }
            self.model(ModelEvent::Ended {
                finish: FinishReason::Stop,
                usage: TokenUsage::default(),
            });
            self.apply(SessionInput::RetryTimer { turn: self.turn, step: self.step });
            self.review_end(false);
            for call in self.calls.clone() {
                let intent = intent(call, None);
                self.apply(SessionInput::PermissionRequested { turn: self.turn, call, intent });
                self.apply(SessionInput::PreviewReady { turn: self.turn, call, preview: None });
                self.apply(SessionInput::Op(SessionOp::AnswerPermission {
                    call,
                    answer: PermissionAnswer::Once,
                    asked: None,
                }));
            }
            // A call that can never start would hang here, because only a running call can end.
            for call in self.running.clone() {
                let metadata = [("exit".to_owned(), 0.into())].into_iter().collect();
                let output = ToolOutput { metadata, ..ToolOutput::default() };
                let outcome = CallOutcome::Completed { output };
                self.apply(SessionInput::CallSettled {
                    turn: self.turn,
                    call,
                    outcome,
                    seen_files: Vec::new(),
                });
            }
            for call in std::mem::take(&mut self.reconciling) {
                let outcome = CallOutcome::ResultUnknown;
                self.apply(SessionInput::CallSettled {
                    turn: self.turn,
                    call,
                    outcome,
                    seen_files: Vec::new(),
                });
            }
            for call in std::mem::take(&mut self.denied) {
                let outcome = CallOutcome::Denied { text: "no".into() };
                self.apply(SessionInput::CallSettled {
                    turn: self.turn,
                    call,
                    outcome,
                    seen_files: Vec::new(),
                });
            }
        }
        panic!("the session does not become idle");
    }
}

/// Returns the intent of a call. It depends on the id alone, so that it is the same after a crash.
fn intent(call: CallId, ask_reason: Option<String>) -> CallIntent {
    let number = call.0.as_u128();
    let (read_only, path) = (number.is_multiple_of(2), (number % 3).to_string());
    let access = if read_only { ToolAccess::Read { path } } else { ToolAccess::Edit { path } };
    CallIntent {
        danger: Default::default(),
        accesses: vec![access],
        read_only,
        ask_reason,
        approval_kind: None,
        accepts_earlier_approval: true,
        repair: None,
    }
}

fn limits() -> TurnLimits {
    TurnLimits { steps: 8, calls_per_step: 3, answer_bytes: 200, ..TurnLimits::default() }
}

/// Generates configs with different context windows, limits and loop policies.
fn config() -> impl Strategy<Value = SessionConfig> {
    let context = prop::sample::select(vec![0, 16, 60, 400]);
    let loop_policy = prop::sample::select(vec![
        LoopDetectionPolicy::Allow,
        LoopDetectionPolicy::Ask,
        LoopDetectionPolicy::Deny,
    ]);
    let (time, tokens, hooks) = (any::<bool>(), any::<bool>(), any::<bool>());
    let values = (context, loop_policy, time, tokens, hooks);
    values.prop_map(|(context, loop_policy, time, tokens, has_turn_end_hooks)| {
        let mut limits = limits();
        limits.time_ms = time.then_some(500_000);
        limits.tokens = tokens.then_some(100);
        let window = ContextWindow { context, output: 0 };
        let loop_rules = loop_policy.into();
        SessionConfig {
            context_window: window,
            loop_rules,
            has_turn_end_hooks,
            ..super::config(limits)
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_interleaving_follows_the_grammar_and_settles_every_call_once(
        actions in actions(),
        config in config(),
    ) {
        let mut env = InterleavingTestSession::new(config);
        for action in &actions {
            env.perform(action);
        }
        env.wind_down();
        log_grammar::check_settled(&env.log).unwrap();

        // The state is the fold of the log.
        let session = SessionId(Uuid::nil());
        let records: Vec<FactRecord> = (1..)
            .zip(&env.log)
            .map(|(seq, fact)| FactRecord::new(session, seq, UnixMillis(seq), fact.clone()))
            .collect();
        let replayed = Session::replay(&records, env.config.clone());
        prop_assert_eq!(replayed.transcript(), env.session.transcript());
    }
}
