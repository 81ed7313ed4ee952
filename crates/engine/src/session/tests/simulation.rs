//! A simulated environment of a session: a log with disk syncs, a scripted model, tools with a
//! journal that survives crashes, and a user.
//!
//! The name of a tool selects its behavior. `read` is read-only, `change` is not; `peek` and `ask`
//! are the same with a permission request. `broken` fails before it declares its intent, `slow`
//! runs until it is canceled, `poll` returns a new output each time, `long` returns a long output,
//! `fail` fails with a long text, `todowrite` sets the to-do list, `bash` starts a job, `patch`
//! announces a file change, `question` asks the user and `plan_exit` asks for the mode. A hook
//! denies `blocked`, withholds the result of `hidden` and requires permission for `flagged`; if it
//! ran again after a crash, it would let each pass.
//!
//! `== withdraw` and `== rewind` name a prompt by its number: the first withdraws it, the second
//! rewinds the session to it.
//!
//! `== goal` is the command of the goal of the next prompt; a `bash` command with `check` succeeds
//! the second time. Each `== continue` lets a hook continue a turn once.
//!
//! `== config` configures the session: `window CONTEXT OUTPUT`, `accepts TOKENS` (the provider
//! rejects longer requests), `tokens N`, `cost N`, `price INPUT OUTPUT`, `time MS`,
//! `loops allow|ask|deny`. Time passes only when nothing else happens.
//!
//! `== user` sets how the user reacts: `permission yes|session|no|no REASON`, `answer LABEL`,
//! `interrupt permission|question|started TOOL|text WORD`.

use super::op_answers::{check_op_answer, is_op};
use crate::session::model_output::EMPTY_ANSWER_NUDGE;
use crate::session::{
    ContextWindow, InputTimeAndId, LoopDetectionPolicy, Session, SessionConfig, SessionEffect,
    SessionInput, SessionModel, TurnLimits, token_estimate,
};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;
use uuid::Uuid;
use windlass_llm::ModelEvent;
use windlass_protocol::todo_list::{TodoItem, TodoPriority, TodoStatus};
use windlass_protocol::{
    CallId, CallOutcome, Cost, Fact, FactRecord, Fault, FinishReason, HookPoint, HookVerdict,
    LiveEvent, Message, MessagePart, MessageRole, Messages, PermissionAnswer, PromptDelivery,
    PromptId, PromptSettings, QuestionOption, SessionId, SessionOp, StepPurpose, TokenUsage,
    ToolAccess, ToolOutput, Transcript, TurnGoal, UnixMillis, UserQuestion,
};
use windlass_testkit::model_script::ScriptLine;
use windlass_testkit::{Case, ModelScript};
use windlass_toolkit::{CallIntent, HookRun, QuestionEffect};

/// A simulated crash of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SimulatedCrash {
    /// The point, counted over inputs and effects.
    pub(super) point: usize,
    pub(super) moment: SimulatedCrashMoment,
    pub(super) disk: SimulatedDiskState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SimulatedCrashMoment {
    /// The effect was not started.
    Before,
    /// The effect was performed, but the process did not receive its result.
    During,
    /// The effect was performed; the next one was not started.
    After,
}

/// The part of the log that survives a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SimulatedDiskState {
    /// All appended facts: the process died.
    Kept,
    /// The facts up to the last disk sync: the power failed.
    Lost,
}

struct SimulatedCrashReached;

#[derive(Clone)]
pub(super) struct SessionSimulation {
    /// Operations of the user, each with the number of ended turns that it waits for.
    user_ops: Vec<(usize, SessionOp)>,
    script: ModelScript,
    /// Replies to summary requests.
    summaries: ModelScript,
    /// Reply when the script has ended. Without it, that is an error of the test.
    closing_reply: Option<String>,
    config: SessionConfig,
    /// Maximum tokens that the provider accepts.
    accepts: Option<u64>,
    permission_answer: PermissionAnswer,
    question_answers: Vec<Vec<String>>,
    /// Number of times that a hook continues a turn.
    denied_ends: usize,
    interrupt_at: Option<String>,
    // This state survives a crash.
    log: Vec<Fact>,
    synced: usize,
    /// Every run of a call that changed something.
    pub(super) journal: Vec<CallId>,
    pub(super) requests: Vec<Messages>,
    /// Number of requests for each reply. The key says whether it is a summary, and the number of
    /// answers before it.
    attempts: BTreeMap<(bool, usize), usize>,
    clock: u128,
    /// Turn and delay of the pending `StartTurnTimer`.
    turn_timer: Option<(u32, u64)>,
    // This state is lost in a crash.
    session: Session,
    inputs: VecDeque<SessionInput>,
    /// Turn, intent and tool of each call that has not settled.
    intents: HashMap<CallId, (u32, CallIntent, String)>,
    /// Number of `user_ops` sent so far.
    sent: usize,
    points: usize,
    crash: Option<SimulatedCrash>,
    /// A hash of all inputs and effects, if tracing is on.
    trace: Option<u64>,
}

impl SessionSimulation {
    pub(super) fn new(case: &Case) -> SessionSimulation {
        let mut user_ops = Vec::new();
        let mut settings = PromptSettings::default();
        for section in &case.sections {
            let after = section.argument.strip_prefix("after ").map_or(0, |n| n.parse().unwrap());
            let text = section.body.trim().to_owned();
            match section.name.as_str() {
                "goal" => settings.goal = Some(TurnGoal::Command { command: text }),
                "prompt" => {
                    let (attachments, delivery) = (Vec::new(), PromptDelivery::default());
                    let settings = std::mem::take(&mut settings);
                    let op = SessionOp::Prompt { text, attachments, delivery, settings };
                    user_ops.push((after, op));
                }
                "queue" => {
                    let delivery = PromptDelivery::Queue;
                    user_ops.push((
                        after,
                        SessionOp::Prompt {
                            text,
                            attachments: Vec::new(),
                            delivery,
                            settings: Default::default(),
                        },
                    ));
                }
                "mode" => {
                    user_ops.push((after, SessionOp::SetMode { mode: text.parse().unwrap() }))
                }
                "compact" => user_ops.push((after, SessionOp::Compact)),
                // `resolve_prompt_number` replaces the number by the id or position in the log.
                "withdraw" => {
                    let prompt = PromptId(Uuid::from_u128(text.parse().unwrap()));
                    user_ops.push((after, SessionOp::WithdrawPrompt { prompt }));
                }
                "rewind" => user_ops.push((after, SessionOp::Rewind { to: text.parse().unwrap() })),
                "user-call" => {
                    let (tool, arguments) = text.split_once(' ').unwrap();
                    let (tool, arguments) = (tool.to_owned(), arguments.to_owned());
                    user_ops.push((after, SessionOp::CallTool { tool, arguments }));
                }
                _ => {}
            }
        }
        let user = case.all("user").next().map_or("", |section| section.body.trim());
        let mut permission_answer = PermissionAnswer::Once;
        let mut interrupt_at = None;
        let mut question_answers = Vec::new();
        for line in user.lines() {
            match line.split_once(' ').unwrap_or((line, "")) {
                ("permission", "yes") => permission_answer = PermissionAnswer::Once,
                ("permission", "session") => permission_answer = PermissionAnswer::Session,
                ("permission", "no") => permission_answer = PermissionAnswer::No { reason: None },
                ("permission", no) => {
                    let reason = no.trim_start_matches("no ").to_owned();
                    permission_answer = PermissionAnswer::No { reason: Some(reason) };
                }
                ("answer", label) => question_answers = vec![vec![label.to_owned()]],
                ("interrupt", at) => interrupt_at = Some(at.to_owned()),
                _ => panic!("unknown line in `== user`: `{line}`"),
            }
        }
        let (mut config, accepts) = config(case);
        let denied_ends = case.all("continue").count();
        config.has_turn_end_hooks = denied_ends > 0;
        let session = Session::new(Fact::session_opened("/w", "0"), config.clone());
        SessionSimulation {
            user_ops,
            script: ModelScript::from_case(case),
            summaries: ModelScript::new(case.all("summary").map(|section| section.body.as_str())),
            closing_reply: None,
            config,
            accepts,
            permission_answer,
            question_answers,
            denied_ends,
            interrupt_at,
            log: Vec::new(),
            synced: 0,
            journal: Vec::new(),
            requests: Vec::new(),
            attempts: BTreeMap::new(),
            clock: 1,
            turn_timer: None,
            session,
            inputs: VecDeque::new(),
            intents: HashMap::new(),
            sent: 0,
            points: 0,
            crash: None,
            trace: None,
        }
    }

    pub(super) fn facts(&self) -> &[Fact] {
        &self.log
    }

    pub(super) fn transcript(&self) -> Transcript {
        Transcript::from_log(&self.records())
    }

    /// Runs without a crash, and returns a hash of all inputs and effects.
    pub(super) fn trace(mut self) -> (SessionSimulation, u64) {
        self.trace = Some(0xcbf2_9ce4_8422_2325);
        self.run();
        let trace = self.trace.unwrap();
        (self, trace)
    }

    fn add_to_trace(&mut self, value: &dyn std::fmt::Debug) {
        let Some(trace) = &mut self.trace else { return };
        for byte in format!("{value:?}").bytes() {
            *trace = (*trace ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn records(&self) -> Vec<FactRecord> {
        let session = SessionId(Uuid::nil());
        let record = |(index, fact): (usize, &Fact)| {
            let (seq, at) = (index as u64 + 1, UnixMillis(index as u64));
            FactRecord::new(session, seq, at, fact.clone())
        };
        self.log.iter().enumerate().map(record).collect()
    }

    /// Runs until no input is left, and returns the number of crash points.
    pub(super) fn run(&mut self) -> usize {
        self.run_with(None)
    }

    /// Like `run`, with a crash after which the session is opened again.
    pub(super) fn run_with(&mut self, crash: Option<SimulatedCrash>) -> usize {
        self.crash = crash;
        self.points = 0;
        self.inputs.push_back(SessionInput::Resume);
        self.send_user_ops();
        loop {
            match self.process_inputs() {
                Ok(()) => return self.points,
                Err(SimulatedCrashReached) => self.reopen(),
            }
        }
    }

    /// Runs up to a crash without opening the session again. Returns false if the crash is never
    /// reached.
    pub(super) fn run_to_crash(&mut self, crash: SimulatedCrash) -> bool {
        self.crash = Some(crash);
        self.inputs.push_back(SessionInput::Resume);
        self.send_user_ops();
        self.process_inputs().is_err()
    }

    /// Opens the session again after `run_to_crash`, with a second crash during recovery.
    pub(super) fn recover_with_crash(&mut self, crash: SimulatedCrash) {
        self.reopen();
        self.points = 0;
        self.crash = Some(crash);
        while self.process_inputs().is_err() {
            self.reopen();
        }
    }

    /// Opens the session again with one fact lost, sends another prompt, and runs to the end.
    pub(super) fn run_with_lost_fact(&mut self, index: usize) {
        self.log[index] = Fact::FactsLost { count: 1, reason: "damaged".into() };
        self.user_ops.clear();
        self.closing_reply = Some("Done.".into());
        let (moment, disk) = (SimulatedCrashMoment::Before, SimulatedDiskState::Kept);
        self.crash = Some(SimulatedCrash { point: usize::MAX, moment, disk });
        self.reopen();
        self.inputs.push_back(SessionInput::Op(SessionOp::prompt("and now?")));
        while self.process_inputs().is_err() {}
    }

    fn reopen(&mut self) {
        let crash = self.crash.take().unwrap();
        if crash.disk == SimulatedDiskState::Lost {
            self.log.truncate(self.synced);
        }
        self.session = if self.log.is_empty() {
            Session::new(Fact::session_opened("/w", "0"), self.config.clone())
        } else {
            Session::replay(&self.records(), self.config.clone())
        };
        self.turn_timer = None;
        self.inputs.clear();
        self.intents.clear();
        let is_user_op = |fact: &&Fact| {
            matches!(
                fact,
                Fact::PromptSubmitted { .. }
                    | Fact::TurnStarted { prompt: None, .. }
                    | Fact::ModeChanged { .. }
                    | Fact::AgentChanged { .. }
                    | Fact::PromptWithdrawn { .. }
                    | Fact::Rewound { .. }
            )
        };
        self.sent = self.log.iter().filter(is_user_op).count();
        self.inputs.push_back(SessionInput::Resume);
        self.send_user_ops();
    }

    fn process_inputs(&mut self) -> Result<(), SimulatedCrashReached> {
        let mut rounds = 0;
        while let Some(input) = self.inputs.pop_front().or_else(|| self.pass_time()) {
            rounds += 1;
            assert!(rounds < 10_000, "the session does not become idle");
            self.point(SimulatedCrashMoment::Before)?;
            self.points += 1;
            self.clock += 1;
            let stamp = InputTimeAndId {
                at: UnixMillis(self.clock as u64),
                id: Uuid::from_u128(self.clock),
            };
            let input = self.resolve_prompt_number(input);
            self.add_to_trace(&input);
            let is_op = is_op(&input);
            let effects = self.session.apply(stamp, input);
            check_op_answer(is_op, &effects);
            for effect in effects {
                self.add_to_trace(&effect);
                self.point(SimulatedCrashMoment::Before)?;
                let results = self.perform(effect);
                self.point(SimulatedCrashMoment::During)?;
                for input in results {
                    // As in the driver, the user's operations come first.
                    match input {
                        SessionInput::Op(_) => self.inputs.push_front(input),
                        _ => self.inputs.push_back(input),
                    }
                }
                self.send_user_ops();
                self.point(SimulatedCrashMoment::After)?;
                self.points += 1;
            }
        }
        Ok(())
    }

    /// Replaces the number of a prompt, counted from 1, by its id or its position in the log.
    fn resolve_prompt_number(&self, input: SessionInput) -> SessionInput {
        let find_prompt = |number: usize| {
            let prompts = self.log.iter().enumerate().filter_map(|(index, fact)| match fact {
                Fact::PromptSubmitted { prompt, .. } => Some((index, *prompt)),
                _ => None,
            });
            prompts.into_iter().nth(number - 1).unwrap()
        };
        match input {
            SessionInput::Op(SessionOp::WithdrawPrompt { prompt }) => {
                let (_, prompt) = find_prompt(prompt.0.as_u128() as usize);
                SessionInput::Op(SessionOp::WithdrawPrompt { prompt })
            }
            SessionInput::Op(SessionOp::Rewind { to }) => {
                SessionInput::Op(SessionOp::Rewind { to: find_prompt(to as usize).0 as u64 })
            }
            other => other,
        }
    }

    /// Advances the clock to the turn timer, because no other input is left.
    fn pass_time(&mut self) -> Option<SessionInput> {
        let (turn, after) = self.turn_timer.take().filter(|_| self.session.is_busy())?;
        self.clock += u128::from(after);
        Some(SessionInput::TurnTimeout { turn })
    }

    fn point(&self, moment: SimulatedCrashMoment) -> Result<(), SimulatedCrashReached> {
        let is_here = |crash: &SimulatedCrash| crash.point == self.points && crash.moment == moment;
        if self.crash.as_ref().is_some_and(is_here) { Err(SimulatedCrashReached) } else { Ok(()) }
    }

    /// Sends the operations of the user that are due.
    fn send_user_ops(&mut self) {
        let ended = self.log.iter().filter(|fact| matches!(fact, Fact::TurnEnded { .. })).count();
        while let Some((after, op)) = self.user_ops.get(self.sent) {
            if ended < *after {
                return;
            }
            self.inputs.push_back(SessionInput::Op(op.clone()));
            self.sent += 1;
        }
    }

    /// Performs an effect, and returns the inputs that result from it.
    fn perform(&mut self, effect: SessionEffect) -> Vec<SessionInput> {
        match effect {
            SessionEffect::Append(facts) => {
                let needs_sync = facts.iter().any(Fact::needs_disk_sync);
                let reactions = facts.iter().filter_map(|fact| self.user_reaction(fact)).collect();
                self.log.extend(facts);
                if needs_sync {
                    self.synced = self.log.len();
                }
                reactions
            }
            SessionEffect::Emit(LiveEvent::ModelDelta { text, .. })
                if self.interrupts_at(&format!("text {text}")) =>
            {
                vec![SessionInput::Op(SessionOp::Interrupt { turn: None })]
            }
            SessionEffect::Emit(_)
            | SessionEffect::AnswerOp { .. }
            | SessionEffect::CancelModel
            | SessionEffect::EndJob { .. }
            | SessionEffect::SaveApprovals { .. }
            | SessionEffect::StartSubagent { .. } => Vec::new(),
            SessionEffect::StartTurnTimer { turn, after_ms } => {
                self.turn_timer = Some((turn, after_ms));
                Vec::new()
            }
            SessionEffect::CallModel { turn, step, model, purpose, messages, .. } => {
                self.requests.push(messages.clone());
                let events = self.reply(&model, purpose, &messages);
                events.into_iter().map(|event| SessionInput::Model { turn, step, event }).collect()
            }
            SessionEffect::CallTool { turn, call, tool, arguments, .. } => {
                self.call(turn, call, tool, &arguments)
            }
            SessionEffect::CancelTool { call } => {
                let Some((turn, ..)) = self.intents.remove(&call) else { return Vec::new() };
                let outcome = CallOutcome::Interrupted { text: "stopped".into() };
                vec![settled(turn, call, outcome)]
            }
            SessionEffect::SendPermission { call, answer } => self.on_permission(call, &answer),
            SessionEffect::RequestPreview { call } => {
                let Some((turn, ..)) = self.intents.get(&call) else { return Vec::new() };
                vec![SessionInput::PreviewReady { turn: *turn, call, preview: None }]
            }
            SessionEffect::SendAnswers { call, answers } => {
                let Some((turn, ..)) = self.intents.remove(&call) else { return Vec::new() };
                let text = format!("answers: {answers:?}");
                vec![settled(
                    turn,
                    call,
                    CallOutcome::Completed { output: ToolOutput { text, ..ToolOutput::default() } },
                )]
            }
            SessionEffect::ReviewTurnEnd { turn, .. } => {
                let is_denied = |fact: &&Fact| {
                    matches!(fact, Fact::HookRan { verdict: HookVerdict::Refused { .. }, .. })
                };
                let denials = self.log.iter().filter(is_denied).count();
                let verdict = match denials < self.denied_ends {
                    true => HookVerdict::Refused { reason: "run the tests".to_owned() },
                    false => HookVerdict::Passed,
                };
                let (hook, point) = ("guard".to_owned(), HookPoint::TurnEnd);
                let hook_runs = vec![HookRun { hook, point, duration: Duration::ZERO, verdict }];
                vec![SessionInput::TurnEndReviewed { turn, hook_runs, goal_failure: None }]
            }
            SessionEffect::ConfirmRecorded { call } => {
                let Some((turn, ..)) = self.intents.remove(&call) else { return Vec::new() };
                self.journal.push(call);
                let output = ToolOutput { text: "patch gave this".into(), ..ToolOutput::default() };
                vec![settled(turn, call, CallOutcome::Completed { output })]
            }
            SessionEffect::Reconcile { turn, call, accesses, changes } => {
                assert!(!accesses.is_empty());
                let outcome = if changes.is_empty() {
                    CallOutcome::ResultUnknown
                } else if self.journal.contains(&call) {
                    let output =
                        ToolOutput { text: "patch gave this".into(), ..ToolOutput::default() };
                    CallOutcome::Completed { output }
                } else {
                    CallOutcome::Failed { text: NOT_APPLIED.into() }
                };
                vec![settled(turn, call, outcome)]
            }
            SessionEffect::RetryAfter { turn, step, .. } => {
                vec![SessionInput::RetryTimer { turn, step }]
            }
        }
    }

    /// Sends a call through a simulated pipeline.
    fn call(
        &mut self,
        turn: u32,
        call: CallId,
        tool: String,
        arguments: &str,
    ) -> Vec<SessionInput> {
        if tool == "fail" {
            let outcome = CallOutcome::Failed { text: format!("{arguments} ").repeat(2_000) };
            return vec![settled(turn, call, outcome)];
        }
        if is_invalid(&tool) {
            let outcome = CallOutcome::Failed { text: "invalid arguments".into() };
            return vec![settled(turn, call, outcome)];
        }
        self.intents.insert(call, (turn, intent(&tool, arguments), tool.clone()));
        let mut inputs = self.run_hook(turn, call, &tool);
        if let Some((_, intent, _)) = self.intents.get(&call) {
            inputs.push(SessionInput::PermissionRequested { turn, call, intent: intent.clone() });
        }
        inputs
    }

    /// Runs the hook before a call.
    fn run_hook(&mut self, turn: u32, call: CallId, tool: &str) -> Vec<SessionInput> {
        let is_run =
            |fact: &&Fact| matches!(fact, Fact::HookRan { call: id, .. } if *id == Some(call));
        let earlier_runs = self.log.iter().filter(is_run).count();
        match tool {
            "blocked" => {
                assert_eq!(earlier_runs, 0, "a recorded denial was requested again");
                self.intents.remove(&call);
                let text = "The hook `guard` denied this: not this".to_owned();
                let reason = "not this".to_owned();
                vec![
                    hook_ran(call, HookPoint::BeforeTool, HookVerdict::Refused { reason }),
                    settled(turn, call, CallOutcome::Denied { text }),
                ]
            }
            // The hook would now pass; its first verdict still applies.
            "flagged" if earlier_runs > 0 => Vec::new(),
            "flagged" => {
                let reason = "is that right?".to_owned();
                if let Some((_, intent, _)) = self.intents.get_mut(&call) {
                    intent.ask_reason =
                        Some(format!("the hook `guard` requires approval: {reason}"));
                    intent.accepts_earlier_approval = false;
                }
                vec![hook_ran(call, HookPoint::BeforeTool, HookVerdict::Asks { reason })]
            }
            "hidden" => {
                assert_eq!(earlier_runs, 0, "the hook of a withheld result ran again");
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn on_permission(&mut self, call: CallId, answer: &PermissionAnswer) -> Vec<SessionInput> {
        let Some((turn, intent, tool)) = self.intents.get(&call).cloned() else {
            return Vec::new();
        };
        if matches!(tool.as_str(), "question" | "plan_exit") && answer.is_yes() {
            let effect =
                if tool == "plan_exit" { QuestionEffect::SetMode } else { QuestionEffect::None };
            return vec![SessionInput::QuestionAsked {
                turn,
                call,
                questions: vec![question()],
                effect,
            }];
        }
        if tool == "slow" && answer.is_yes() {
            return Vec::new();
        }
        if tool == "patch" && answer.is_yes() {
            let changes =
                vec![windlass_protocol::FileChange { path: "a".into(), before: None, after: None }];
            return vec![SessionInput::FilesChanging { turn, call, changes, are_made: false }];
        }
        self.intents.remove(&call);
        if tool == "hidden" && answer.is_yes() {
            let reason = "it broke".to_owned();
            let text = format!("The call ran, but the hook `guard` withheld its result: {reason}");
            return vec![
                hook_ran(call, HookPoint::AfterTool, HookVerdict::Failed { reason }),
                settled(turn, call, CallOutcome::Failed { text }),
            ];
        }
        let outcome = if answer.is_yes() {
            if !intent.read_only {
                self.journal.push(call);
            }
            CallOutcome::Completed { output: self.output(&tool, &intent) }
        } else {
            CallOutcome::Denied { text: "no".into() }
        };
        vec![settled(turn, call, outcome)]
    }

    fn output(&self, tool: &str, intent: &CallIntent) -> ToolOutput {
        let argument = intent.accesses[0].subject();
        let mut output = ToolOutput { text: format!("{tool} gave this"), ..ToolOutput::default() };
        match tool {
            "poll" => {
                let is_settled = |fact: &&Fact| matches!(fact, Fact::CallSettled { .. });
                output.text = format!("{} so far", self.log.iter().filter(is_settled).count());
            }
            "long" => output.text = format!("{argument} ").repeat(2_000),
            "todowrite" => {
                let todo = TodoItem {
                    content: argument.to_owned(),
                    status: TodoStatus::Pending,
                    priority: TodoPriority::High,
                };
                (output.todos, output.retained) = (Some(vec![todo]), true);
            }
            // The goal is reached at its second check.
            "bash" if argument.contains("check") => {
                let is_check = |fact: &&Fact| match fact {
                    Fact::CallSettled { outcome: CallOutcome::Completed { output }, .. } => {
                        output.exit_code().is_some()
                    }
                    _ => false,
                };
                let exit = i32::from(!self.log.iter().any(|fact| is_check(&fact)));
                output.metadata.insert("exit".into(), exit.into());
            }
            "bash" => output.started_jobs.push(7),
            _ => {}
        }
        output
    }

    /// Returns the operation with which the user reacts to a fact.
    fn user_reaction(&self, fact: &Fact) -> Option<SessionInput> {
        match fact {
            Fact::PermissionAsked { .. } if self.interrupts_at("permission") => {
                Some(SessionInput::Op(SessionOp::Interrupt { turn: None }))
            }
            Fact::PermissionAsked { call, .. } => {
                Some(SessionInput::Op(SessionOp::AnswerPermission {
                    call: *call,
                    answer: self.permission_answer.clone(),
                    asked: None,
                }))
            }
            Fact::QuestionAsked { .. } if self.interrupts_at("question") => {
                Some(SessionInput::Op(SessionOp::Interrupt { turn: None }))
            }
            Fact::QuestionAsked { call, .. } => Some(SessionInput::Op(SessionOp::AnswerQuestion {
                call: *call,
                answers: self.question_answers.clone(),
                asked: None,
            })),
            Fact::CallStarted { call, .. } => {
                let tool = &self.intents.get(call)?.2;
                self.interrupts_at(&format!("started {tool}"))
                    .then_some(SessionInput::Op(SessionOp::Interrupt { turn: None }))
            }
            _ => None,
        }
    }

    fn interrupts_at(&self, at: &str) -> bool {
        self.interrupt_at.as_deref() == Some(at.trim())
    }

    fn reply(&mut self, model: &str, purpose: StepPurpose, messages: &Messages) -> Vec<ModelEvent> {
        let size: u64 =
            messages.iter().map(|message| token_estimate::message_tokens(message)).sum();
        // `== config` sets the limit of the session's own model.
        if self.accepts.is_some_and(|max| size > max) && model == self.config.model {
            return vec![ModelEvent::Failed(Fault::ContextOverflow { message: "too long".into() })];
        }
        // All answers of the session, also those that compaction removed from the request.
        let is_nudge = |part: &MessagePart| match part {
            MessagePart::Text { text, .. } => text == EMPTY_ANSWER_NUDGE,
            _ => false,
        };
        let all = &self.session.transcript().messages;
        let is_answer = |message: &&std::sync::Arc<Message>| {
            message.role == MessageRole::Assistant || message.parts.iter().any(is_nudge)
        };
        let (script, answers) = match purpose {
            StepPurpose::Answer => (&self.script, all.iter().filter(is_answer).count()),
            StepPurpose::Summary => (&self.summaries, 0),
        };
        let attempts = self.attempts.entry((purpose == StepPurpose::Summary, answers)).or_insert(0);
        *attempts += 1;
        let reply = script.reply(answers, *attempts - 1);
        let reply =
            reply.or_else(|| self.closing_reply.clone().map(|text| vec![ScriptLine::Say(text)]));
        let lines = reply.unwrap_or_else(|| {
            panic!("the script has no further reply:\n{}", super::render_log(&self.log))
        });
        let mut events = Vec::new();
        let mut finish = FinishReason::Stop;
        for (index, line) in lines.into_iter().enumerate() {
            match line {
                ScriptLine::Say(text) => {
                    let words = text.split_inclusive(' ').map(str::to_owned);
                    events.extend(words.map(ModelEvent::Text));
                }
                ScriptLine::Think(text) => events.push(ModelEvent::Reasoning(text)),
                ScriptLine::Call(tool, arguments) => {
                    let reference = match tool.as_str() {
                        "twin" => "twin".to_owned(),
                        _ => format!("call_{answers}_{index}"),
                    };
                    events.push(ModelEvent::Call {
                        reference,
                        tool,
                        arguments,
                        provider_signature: None,
                        repairs: Vec::new(),
                    });
                    finish = FinishReason::ToolCalls;
                }
                ScriptLine::Finish(reason) => {
                    finish = match reason.as_str() {
                        "stop" => FinishReason::Stop,
                        "filtered" => FinishReason::ContentFiltered,
                        _ => FinishReason::Length,
                    }
                }
                ScriptLine::Cut => {
                    let fault = Fault::Network { message: "cut".into() };
                    events.push(ModelEvent::Failed(fault));
                    return events;
                }
                ScriptLine::Status(401, message) => {
                    events.push(ModelEvent::Failed(Fault::Auth { message }));
                    return events;
                }
                ScriptLine::Status(status, message) => {
                    let fault = Fault::from_provider(Some(status), message);
                    events.push(ModelEvent::Failed(fault));
                    return events;
                }
                other => panic!("the simulated model does not support {other:?}"),
            }
        }
        let is_limited =
            self.config.context_window != ContextWindow::default() || self.accepts.is_some();
        let input = if is_limited { size } else { 100 };
        let usage = TokenUsage { input, output: 5, ..TokenUsage::default() };
        events.push(ModelEvent::Ended { finish, usage });
        events
    }
}

/// Returns true if a call fails before it declares its intent.
fn is_invalid(tool: &str) -> bool {
    matches!(tool, "broken" | "nothing" | "../../etc") || tool.contains('\u{1b}')
}

fn intent(tool: &str, arguments: &str) -> CallIntent {
    let path = arguments.to_owned();
    let read_only_tools = [
        "read",
        "peek",
        "slow",
        "poll",
        "long",
        "todowrite",
        "job",
        "question",
        "plan_exit",
        "hidden",
    ];
    let read_only = read_only_tools.contains(&tool) || arguments.contains("check it");
    let access = if read_only { ToolAccess::Read { path } } else { ToolAccess::Edit { path } };
    let needs_permission = matches!(tool, "ask" | "peek");
    CallIntent {
        danger: Default::default(),
        accesses: vec![access],
        read_only,
        ask_reason: needs_permission.then(|| "no rule allows it".to_owned()),
        approval_kind: None,
        accepts_earlier_approval: true,
        repair: None,
    }
}

/// The question of `question` and `plan_exit`.
pub(super) fn question() -> UserQuestion {
    let option =
        |label: &str| QuestionOption { label: label.to_owned(), description: String::new() };
    UserQuestion {
        header: "Plan".into(),
        question: "Go on?".into(),
        options: ["auto", "ask", "no"].map(option).into(),
        allow_multiple: false,
        allow_custom: false,
        asker: None,
        is_permission: false,
    }
}

fn limits() -> TurnLimits {
    TurnLimits { steps: 20, calls_per_step: 4, answer_bytes: 10_000, ..TurnLimits::default() }
}

/// Parses `== config`: the config of the session, and the tokens that the provider accepts.
fn config(case: &Case) -> (SessionConfig, Option<u64>) {
    let mut config = super::config(limits());
    let mut accepts = None;
    for line in case.all("config").flat_map(|section| section.body.lines()) {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |index: usize| words[index].parse::<u64>().unwrap();
        match words[0] {
            "window" => {
                config.context_window = ContextWindow { context: number(1), output: number(2) }
            }
            "fallback" | "small" => {
                let number =
                    |index: usize| words.get(index).map_or(0, |word| word.parse().unwrap());
                let window = ContextWindow { context: number(2), output: number(3) };
                let name = words[1].to_owned();
                let model = SessionModel { name, window, ..SessionModel::default() };
                match words[0] {
                    "small" => config.small_model = Some(model),
                    _ => config.fallback_models.push(model),
                }
            }
            "accepts" => accepts = Some(number(1)),
            "tokens" => config.limits.tokens = Some(number(1)),
            "cost" => config.limits.cost = Some(Cost(number(1))),
            "time" => config.limits.time_ms = Some(number(1)),
            "price" => {
                config.price.input = Some(number(1) as f64);
                config.price.output = Some(number(2) as f64);
            }
            "loops" => {
                let policy = match words[1] {
                    "allow" => LoopDetectionPolicy::Allow,
                    "deny" => LoopDetectionPolicy::Deny,
                    _ => LoopDetectionPolicy::Ask,
                };
                match words.get(2) {
                    Some(tool) => {
                        config.loop_rules.by_tool.insert((*tool).to_owned(), policy);
                    }
                    None => config.loop_rules.default = policy,
                }
            }
            _ => panic!("unknown line in `== config`: `{line}`"),
        }
    }
    (config, accepts)
}

/// Text of a call whose change was recorded, but not made.
pub(super) const NOT_APPLIED: &str = "it was not applied";

fn hook_ran(call: CallId, point: HookPoint, verdict: HookVerdict) -> SessionInput {
    let (hook, duration) = ("guard".to_owned(), Duration::from_millis(3));
    SessionInput::HooksRan {
        call: Some(call),
        hook_runs: vec![HookRun { hook, point, duration, verdict }],
    }
}

fn settled(turn: u32, call: CallId, outcome: CallOutcome) -> SessionInput {
    SessionInput::CallSettled { turn, call, outcome, seen_files: Vec::new() }
}
