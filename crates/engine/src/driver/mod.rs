//! The driver: the only loop. It stamps inputs, passes them to the `Session`, and performs the
//! effects that the session returns.
//!
//! Effects run in order. An append is written to the log before any later effect runs, except the
//! preparation of calls; if it fails, no later effect runs and the session stops, because its state
//! is then ahead of its log. Model requests, tool calls and timers run as tasks that belong to the
//! driver and end with it.

mod effects;
mod goal;
mod hook_messages;
mod model_request;
mod model_switch_and_jobs;
pub(crate) mod op_ledger;
mod ops;
mod request_hooks;
pub(crate) mod session_handle;
mod session_hooks;
pub(crate) mod side_request;
mod subagent_task;
mod title;

use crate::attachments::AttachmentCache;
use crate::attendance::OpenQuestions;
use crate::clock_and_ids::SessionClock;
use crate::file_tracker::FileTracker;
use crate::lineage::Lineage;
use crate::session::{InputTimeAndId, Session, SessionInput};
use crate::session_tool_caller::{PendingPermits, PendingQuestions, PendingRecords};
use crate::session_watcher::{SessionWatcher, SubscribeRequest, Subscription};
use crate::settings::{EngineSettings, ModelResolver};
use crate::shared_mutex::SharedMutex;
use crate::subagents::Subagents;
use op_ledger::{OpLedger, QueuedOp};
use request_hooks::{SeenDefinitions, StepTools};
use session_handle::{SessionActivity, SessionHandle};
use session_hooks::SessionHookState;
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use windlass_llm::wire_format::incremental_request_body::IncrementalRequestBody;
use windlass_protocol::mutex_lock::lock;
use windlass_protocol::{
    CallId, Event, FactOrigin, FactRecord, Fault, LiveEventRecord, LogPosition, LogSeq, OpId,
    OpResult, SessionOp, TodoItem,
};
use windlass_storage::{Log, ReleaseState, SessionClaim};
use windlass_toolkit::ToolRuntime;

/// Number of events that a watcher may fall behind before it has to read from the log.
const EVENT_CHANNEL_CAPACITY: usize = 1024;

/// Maximum number of queued inputs; faster senders wait for the session.
const INPUT_CHANNEL_CAPACITY: usize = 256;

/// Maximum time that facts stay unwritten while a call is prepared.
const MAX_UNWRITTEN_TIME: Duration = Duration::from_millis(20);

pub(crate) struct SessionDriver {
    log: Arc<dyn Log>,
    claim: SessionClaim,
    /// Facts after `claim.head` that are not in the log yet, see `perform_all`.
    unwritten_facts: Vec<FactRecord>,
    session: Session,
    runtime: Arc<ToolRuntime>,
    settings: Arc<EngineSettings>,
    agent_base: Option<AgentBase>,
    events: broadcast::Sender<Arc<Event>>,
    inputs: mpsc::Sender<SessionInput>,
    ops: OpLedger,
    /// Operation that caused the current input, if it came from a client.
    current_origin: Option<FactOrigin>,
    /// Answers to operations that were passed on to subagents.
    forwarded_answers: mpsc::Sender<(OpId, OpResult)>,
    activity: watch::Sender<SessionActivity>,
    /// The open questions of this session that `Attendance` knows.
    open_questions: OpenQuestions,
    tasks: JoinSet<()>,
    model_task: Option<AbortHandle>,
    step_tools: StepTools,
    cancel_tokens: HashMap<CallId, CancellationToken>,
    pending_permits: PendingPermits,
    pending_records: PendingRecords,
    pending_questions: PendingQuestions,
    todos: SharedMutex<Vec<TodoItem>>,
    file_tracker: SharedMutex<FileTracker>,
    lineage: Lineage,
    subagents: Subagents,
    session_hooks: SessionHookState,
    seen_definitions: SeenDefinitions,
    clock: SessionClock,
    /// Kept until the usage of the current request is known; dropping it releases the
    /// `RequestPermit`.
    spend_guard: Option<oneshot::Sender<()>>,
    stop: CancellationToken,
    /// Ends the loop as soon as no call is running.
    stop_after_calls: CancellationToken,
    /// Caches from earlier requests to `cached_model`, so that the next one does less work.
    cached_model: Arc<str>,
    attachment_cache: Arc<tokio::sync::Mutex<AttachmentCache>>,
    incremental_body: Arc<IncrementalRequestBody>,
}

/// Dependencies of a `SessionDriver` besides the session state.
pub(crate) struct DriverDependencies {
    pub(crate) log: Arc<dyn Log>,
    pub(crate) runtime: Arc<ToolRuntime>,
    pub(crate) settings: Arc<EngineSettings>,
    pub(crate) lineage: Lineage,
    /// `None` in a subagent session, which keeps its agent.
    pub(crate) agent_base: Option<AgentBase>,
}

/// The tools and settings before the restrictions of an agent, for a switch to another one.
#[derive(Clone)]
pub(crate) struct AgentBase {
    pub(crate) runtime: Arc<ToolRuntime>,
    pub(crate) settings: Arc<EngineSettings>,
}

/// Channels to a running session from outside its loop.
struct SessionChannels {
    ops: mpsc::Sender<QueuedOp>,
    new_models: mpsc::Sender<ModelResolver>,
    subscriptions: mpsc::Sender<SubscribeRequest>,
    activity: watch::Receiver<SessionActivity>,
}

/// The receiving ends of the channels to a session.
struct SessionReceivers {
    ops: mpsc::Receiver<QueuedOp>,
    new_models: mpsc::Receiver<ModelResolver>,
    subscriptions: mpsc::Receiver<SubscribeRequest>,
    inputs: mpsc::Receiver<SessionInput>,
    forwarded_answers: mpsc::Receiver<(OpId, OpResult)>,
}

/// The future of a session's loop. It is boxed because a loop may start the loops of subagents.
type DriverFuture = Pin<Box<dyn Future<Output = Result<(), Fault>> + Send>>;

/// Spawns the loop of a session.
#[allow(clippy::disallowed_methods, reason = "the driver owns every task of its session")]
pub(crate) fn start_driver(
    base: DriverDependencies,
    claim: SessionClaim,
    session: Session,
) -> (SessionHandle, SessionWatcher) {
    let (id, initial_head, log) = (claim.session, session.head(), Arc::clone(&base.log));
    let agent = base.settings.agent_name.clone();
    let (lost_facts, epoch) = (claim.lost_facts, claim.epoch);
    let attendance = base.lineage.attendance.clone();
    let (stop, stop_after_calls) = (CancellationToken::new(), CancellationToken::new());
    let (SessionChannels { ops, new_models, subscriptions, activity }, watcher, driver) =
        build_driver(base, claim, session, (stop.clone(), stop_after_calls.clone()));
    let (end_sender, end) = watch::channel(None);
    tokio::spawn(async move {
        let result = driver.await;
        end_sender.send_replace(Some(result));
    });
    let handle = SessionHandle {
        session: id,
        agent,
        lost_facts,
        epoch,
        log,
        ops,
        new_models,
        subscriptions,
        activity,
        attendance,
        initial_head,
        stop,
        stop_after_calls,
        end,
    };
    (handle, watcher)
}

/// Builds the loop of a session, for the caller to run.
fn build_driver(
    base: DriverDependencies,
    claim: SessionClaim,
    mut session: Session,
    (stop, stop_after_calls): (CancellationToken, CancellationToken),
) -> (SessionChannels, SessionWatcher, DriverFuture) {
    let DriverDependencies { log, runtime, settings, lineage, agent_base } = base;
    let (ops, op_receiver) = mpsc::channel(INPUT_CHANNEL_CAPACITY);
    let (new_models, model_receiver) = mpsc::channel(1);
    let (inputs, input_receiver) = mpsc::channel(INPUT_CHANNEL_CAPACITY);
    let (subscriptions, subscription_receiver) = mpsc::channel(INPUT_CHANNEL_CAPACITY);
    let (forwarded_answers, forwarded_receiver) = mpsc::channel(INPUT_CHANNEL_CAPACITY);
    let (events, event_receiver) = broadcast::channel(EVENT_CHANNEL_CAPACITY);
    let (id, position) = (claim.session, LogPosition::unchecked(session.head()));
    let initial = session_activity(&session, &settings, session.head());
    let (activity, activity_receiver) = watch::channel(initial);
    let watcher = SessionWatcher::from_start(
        Arc::clone(&log),
        id,
        event_receiver,
        position,
        subscriptions.clone(),
    );
    let tracker = FileTracker::new(session.files(), session.now());
    let todos = session.transcript().todos();
    // The mode that the user chose for this session applies, within the policy of the machine.
    let runtime = match session.transcript().mode {
        Some(mode) => Arc::new(runtime.in_mode(mode)),
        None => runtime,
    };
    let session_hooks = SessionHookState::new(&session);
    let earlier_ops = session.take_recorded_ops();
    let driver = SessionDriver {
        log,
        claim,
        unwritten_facts: Vec::new(),
        session,
        runtime,
        settings,
        agent_base,
        events,
        inputs,
        ops: OpLedger::new(earlier_ops),
        current_origin: None,
        forwarded_answers,
        activity,
        open_questions: OpenQuestions::new(),
        tasks: JoinSet::new(),
        model_task: None,
        step_tools: StepTools::default(),
        cancel_tokens: HashMap::new(),
        pending_permits: PendingPermits::default(),
        pending_records: PendingRecords::default(),
        pending_questions: PendingQuestions::default(),
        todos: Arc::new(Mutex::new(todos)),
        file_tracker: Arc::new(Mutex::new(tracker)),
        lineage,
        subagents: Subagents::default(),
        session_hooks,
        seen_definitions: SeenDefinitions::default(),
        clock: SessionClock::default(),
        spend_guard: None,
        stop,
        stop_after_calls,
        cached_model: "".into(),
        attachment_cache: Arc::default(),
        incremental_body: Arc::default(),
    };
    let receivers = SessionReceivers {
        ops: op_receiver,
        new_models: model_receiver,
        subscriptions: subscription_receiver,
        inputs: input_receiver,
        forwarded_answers: forwarded_receiver,
    };
    // Only the loop has a sender of events: when it ends, the streams of the watchers end too.
    (
        SessionChannels { ops, new_models, subscriptions, activity: activity_receiver },
        watcher,
        Box::pin(driver.run(receivers)),
    )
}

fn session_activity(session: &Session, settings: &EngineSettings, head: LogSeq) -> SessionActivity {
    let transcript = session.transcript();
    SessionActivity {
        is_busy: session.is_busy(),
        is_waiting: is_waiting(session),
        head,
        title: transcript.title.clone(),
        agent: settings.agent_name.clone(),
        model: transcript.model_choice.clone(),
        background_count: 0,
    }
}

/// Returns true if a session would lose nothing by being closed until the user answers.
fn is_waiting(session: &Session) -> bool {
    !session.open_questions().is_empty() && !session.has_running_call()
}

impl SessionDriver {
    async fn run(mut self, mut receivers: SessionReceivers) -> Result<(), Fault> {
        let (stop, stop_after_calls) = (self.stop.clone(), self.stop_after_calls.clone());
        let (mut input, mut input_op) = (SessionInput::Resume, None);
        let mut job_events = self.runtime.workspace.job_events(self.claim.session);
        let mut attendance = self.lineage.attendance.subscribe();
        self.run_start_hooks();
        let result = 'open: loop {
            if let Err(fault) = self.note_changed_files(&input).await {
                break Err(fault);
            }
            let stamp = self.stamp(input_op);
            self.current_origin = input_op.and_then(|op| self.ops.origin(op));
            let waiting_call = match &input {
                SessionInput::FilesChanging { call, .. } => Some(*call),
                SessionInput::SubagentRequested { subagent, .. } => Some(subagent.call),
                _ => None,
            };
            let effects = self.session.apply(stamp, input);
            if let Err(fault) = self.perform_all(stamp, effects).await {
                break 'open Err(fault);
            }
            self.current_origin = None;
            self.publish_activity();
            // Effects that were not recorded must not happen: dropping the `oneshot` sender tells
            // the waiting call that it was stopped.
            if let Some(call) = waiting_call {
                lock(&self.pending_records).remove(&call);
                lock(&self.subagents.pending).remove(&call);
            }
            (input, input_op) = loop {
                if let Some(input) = self.session_hooks.next_due_input() {
                    break input;
                }
                if let Some(op) = self.unattended_answer() {
                    break (SessionInput::Op(op), None);
                }
                tokio::select! {
                    biased;
                    () = stop.cancelled() => break 'open Ok(()),
                    () = stop_after_calls.cancelled(), if !self.session.has_running_call() => {
                        break 'open Ok(());
                    }
                    Some(resolver) = receivers.new_models.recv() => {
                        break (self.on_new_models(&resolver), None);
                    }
                    Some(request) = receivers.subscriptions.recv() => {
                        let _ = request.send(self.subscription());
                    }
                    op = receivers.ops.recv() => {
                        let Some(op) = op else { break 'open Ok(()) };
                        if let Some(input) = self.on_queued_op(op) {
                            break input;
                        }
                    }
                    // Looks again for questions to decline.
                    Ok(()) = attendance.changed() => {}
                    Some((op, answer)) = receivers.forwarded_answers.recv() => {
                        self.ops.answer_forwarded(op, answer.map(|_| self.claim.head));
                    }
                    Some(answers) = self.session_hooks.next_answers() => {
                        self.on_hook_answers(answers)
                    }
                    Some(event) = job_events.recv() => {
                        if let Some(input) = self.on_job_event(event) {
                            break (input, None);
                        }
                        self.publish_activity();
                    }
                    Some(()) = self.subagents.next_end() => self.publish_activity(),
                    Some(input) = receivers.inputs.recv() => break (input, None),
                    () = tokio::time::sleep(MAX_UNWRITTEN_TIME),
                        if !self.unwritten_facts.is_empty() =>
                    {
                        if let Err(fault) = self.write_facts().await {
                            break 'open Err(fault);
                        }
                    }
                }
            };
            while self.tasks.try_join_next().is_some() {}
            self.subagents.reap();
        };
        let result = match result {
            Ok(()) => self.write_facts().await,
            Err(fault) => Err(fault),
        };
        self.lineage.attendance.replace_questions(&mut self.open_questions, OpenQuestions::new());
        // Subagents end first, each in an orderly way if it can, because they end their own jobs.
        stop.cancel();
        self.subagents.shut_down().await;
        // The claim is released only when no task runs under it any more.
        self.tasks.shutdown().await;
        self.end_jobs().await;
        match result {
            Ok(()) => {
                let finished = self.finish_hooks(&mut receivers.inputs).await;
                let has_no_question = self.session.open_questions().is_empty();
                let state = match (has_no_question, self.session.is_busy()) {
                    (false, _) => ReleaseState::Waiting,
                    (true, true) => ReleaseState::Due,
                    (true, false) => ReleaseState::Idle,
                };
                self.release(state).await;
                finished
            }
            // There is nothing left to release.
            Err(fault @ Fault::SessionMoved { .. }) => Err(fault),
            Err(fault) => {
                if self.session.is_busy() {
                    self.release(ReleaseState::Failed).await;
                }
                Err(fault)
            }
        }
    }

    /// Gives up the claim, and tells a fleet whether there is work left to do.
    async fn release(self, state: ReleaseState) {
        if let Some(before_release) = &self.settings.before_release
            && self.session.transcript().parent.is_none()
        {
            before_release(self.claim.session, self.claim.head).await;
        }
        let SessionDriver { log, claim, .. } = self;
        let session = claim.session;
        if let Err(error) = log.release(claim, state).await {
            // The lease of the node releases it later.
            tracing::warn!(%error, %session, "a session was not released");
        }
    }

    /// Returns the time and id of the next input: the id of its operation, or a new one.
    fn stamp(&mut self, op: Option<OpId>) -> InputTimeAndId {
        let stamp = self.clock.stamp(self.session.is_busy());
        InputTimeAndId { id: op.map_or(stamp.id, |op| op.0), ..stamp }
    }

    /// Returns the events from now on, and what the model has written of the current answer.
    fn subscription(&self) -> Subscription {
        let (session, at) = (self.claim.session, self.session.now());
        let partial_step = self.session.partial_step();
        Subscription {
            events: self.events.subscribe(),
            head: self.claim.head,
            partial_step: partial_step.map(|event| LiveEventRecord { session, at, event }),
        }
    }

    fn publish_activity(&mut self) {
        let session = self.claim.session;
        let questions = self.session.open_questions();
        let questions = questions.into_iter().map(|(call, seq)| (call, (session, seq))).collect();
        self.lineage.attendance.replace_questions(&mut self.open_questions, questions);
        let background_count = self.running_job_count() + self.subagents.count() as u32;
        self.activity.send_if_modified(|known| {
            let (transcript, is_busy) = (self.session.transcript(), self.session.is_busy());
            let is_same = (known.is_busy, known.head) == (is_busy, self.claim.head)
                && known.is_waiting == is_waiting(&self.session)
                && known.title == transcript.title
                && known.agent == self.settings.agent_name
                && known.model == transcript.model_choice
                && known.background_count == background_count;
            if !is_same {
                let activity = session_activity(&self.session, &self.settings, self.claim.head);
                *known = SessionActivity { background_count, ..activity };
            }
            !is_same
        });
    }

    /// Before the model gets a prompt, adds a notice about files that changed since the model saw
    /// them.
    async fn note_changed_files(&mut self, input: &SessionInput) -> Result<(), Fault> {
        if !matches!(
            input,
            SessionInput::Op(SessionOp::Prompt { .. }) | SessionInput::PromptAccepted { .. }
        ) {
            return Ok(());
        }
        let workspace = &self.runtime.workspace;
        let Some(text) =
            lock(&self.file_tracker).describe_changed_files(|path| workspace.stat(path))
        else {
            return Ok(());
        };
        let stamp = self.stamp(None);
        let effects = self.session.apply(stamp, SessionInput::note(text));
        self.perform_all(stamp, effects).await
    }
}
