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
mod request_hooks;
mod session_hooks;
pub(crate) mod side_request;
mod subagent_task;
mod title;

use crate::attachments::AttachmentCache;
use crate::clock_and_ids::SessionClock;
use crate::file_tracker::FileTracker;
use crate::lineage::Lineage;
use crate::session::{InputTimeAndId, Session, SessionInput};
use crate::session_tool_caller::{PendingPermits, PendingQuestions, PendingRecords};
use crate::session_watcher::SessionWatcher;
use crate::settings::EngineSettings;
use crate::shared_mutex::SharedMutex;
use crate::subagents::Subagents;
use model_switch_and_jobs::ModelSwitch;
use request_hooks::{SeenDefinitions, StepTools};
use session_hooks::SessionHookState;
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use windlass_llm::wire_format::incremental_request_body::IncrementalRequestBody;
use windlass_protocol::mutex_lock::lock;
use windlass_protocol::{CallId, Event, FactRecord, Fault, SessionId, SessionOp, TodoItem};
use windlass_storage::{Log, SessionClaim};
use windlass_toolkit::ToolRuntime;

/// Number of events that a watcher may fall behind before it has to read from the log.
const EVENT_CHANNEL_CAPACITY: usize = 1024;

/// Maximum number of queued inputs; faster senders wait for the session.
const INPUT_CHANNEL_CAPACITY: usize = 256;

/// Maximum time that facts stay unwritten while a call is prepared.
const MAX_UNWRITTEN_TIME: Duration = Duration::from_millis(20);

/// Handle of an open session.
pub struct SessionHandle {
    /// Id of the session.
    pub session: SessionId,
    /// Name of the agent that the session runs.
    pub agent: String,
    /// Number of facts that were found lost when the session was opened.
    pub lost_facts: u64,
    log: Arc<dyn Log>,
    ops: mpsc::Sender<SessionOp>,
    model_switches: mpsc::Sender<ModelSwitch>,
    events: broadcast::WeakSender<Arc<Event>>,
    initial_head: u64,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<Result<(), Fault>>,
}

impl SessionHandle {
    /// Sends an `SessionOp` to the session. Returns false if the session has stopped.
    pub async fn send(&self, op: SessionOp) -> bool {
        self.ops.send(op).await.is_ok()
    }

    /// Returns the number of facts that the session had when it was opened.
    pub fn initial_head(&self) -> u64 {
        self.initial_head
    }

    /// Watches the session from the point where it was opened; returns `None` if it has stopped.
    pub fn watch(&self) -> Option<SessionWatcher> {
        let events = self.events.upgrade()?.subscribe();
        Some(SessionWatcher::new(Arc::clone(&self.log), self.session, events, self.initial_head))
    }

    /// Closes the session, and returns the fault that stopped it, if any. A turn under way resumes
    /// when the session is opened again.
    pub async fn close(self) -> Result<(), Fault> {
        self.stop.cancel();
        match self.task.await {
            Ok(result) => result,
            Err(error) => Err(Fault::Internal { message: error.to_string() }),
        }
    }
}

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
    ops: mpsc::Sender<SessionOp>,
    model_switches: mpsc::Sender<ModelSwitch>,
    events: broadcast::WeakSender<Arc<Event>>,
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
    let lost_facts = claim.lost_facts;
    let stop = CancellationToken::new();
    let (SessionChannels { ops, model_switches, events }, watcher, driver) =
        build_driver(base, claim, session, stop.clone());
    let task = tokio::spawn(driver);
    let handle = SessionHandle {
        session: id,
        agent,
        lost_facts,
        log,
        ops,
        model_switches,
        events,
        initial_head,
        stop,
        task,
    };
    (handle, watcher)
}

/// Builds the loop of a session, for the caller to run.
fn build_driver(
    base: DriverDependencies,
    claim: SessionClaim,
    session: Session,
    stop: CancellationToken,
) -> (SessionChannels, SessionWatcher, DriverFuture) {
    let DriverDependencies { log, runtime, settings, lineage, agent_base } = base;
    let (ops, op_receiver) = mpsc::channel(INPUT_CHANNEL_CAPACITY);
    let (model_switches, switch_receiver) = mpsc::channel(1);
    let (inputs, input_receiver) = mpsc::channel(INPUT_CHANNEL_CAPACITY);
    let (events, event_receiver) = broadcast::channel(EVENT_CHANNEL_CAPACITY);
    let (id, head) = (claim.session, session.head());
    let watcher = SessionWatcher::new(Arc::clone(&log), id, event_receiver, head);
    let tracker = FileTracker::new(session.files(), session.now());
    let todos = session.transcript().todos();
    // The mode that the user chose for this session applies, within the policy of the machine.
    let runtime = match session.transcript().mode {
        Some(mode) => Arc::new(runtime.in_mode(mode)),
        None => runtime,
    };
    let session_hooks = SessionHookState::new(&session);
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
        cached_model: "".into(),
        attachment_cache: Arc::default(),
        incremental_body: Arc::default(),
    };
    // Only the loop keeps a strong sender: when it ends, the watchers' streams end too.
    let events = driver.events.downgrade();
    (
        SessionChannels { ops, model_switches, events },
        watcher,
        Box::pin(driver.run(op_receiver, switch_receiver, input_receiver)),
    )
}

impl SessionDriver {
    async fn run(
        mut self,
        mut ops: mpsc::Receiver<SessionOp>,
        mut model_switches: mpsc::Receiver<ModelSwitch>,
        mut inputs: mpsc::Receiver<SessionInput>,
    ) -> Result<(), Fault> {
        let stop = self.stop.clone();
        let mut input = SessionInput::Resume;
        let mut job_events = self.runtime.workspace.job_events(self.claim.session);
        self.run_start_hooks();
        let result = 'open: loop {
            if let Err(fault) = self.note_changed_files(&input).await {
                break Err(fault);
            }
            let stamp = self.stamp();
            let waiting_call = match &input {
                SessionInput::FilesChanging { call, .. } => Some(*call),
                SessionInput::SubagentRequested { subagent, .. } => Some(subagent.call),
                _ => None,
            };
            let effects = self.session.apply(stamp, input);
            if let Err(fault) = self.perform_all(stamp, effects).await {
                break 'open Err(fault);
            }
            // Effects that were not recorded must not happen: dropping the `oneshot` sender tells
            // the waiting call that it was stopped.
            if let Some(call) = waiting_call {
                lock(&self.pending_records).remove(&call);
                lock(&self.subagents.pending).remove(&call);
            }
            input = loop {
                if let Some(input) = self.session_hooks.next_due_input() {
                    break input;
                }
                tokio::select! {
                    biased;
                    () = stop.cancelled() => break 'open Ok(()),
                    Some(switch) = model_switches.recv() => break self.on_model_switch(switch),
                    op = ops.recv() => {
                        let Some(op) = op else { break 'open Ok(()) };
                        self.subagents.forward_answer(&op);
                        if let Some(input) = self.on_op(op) {
                            break input;
                        }
                    }
                    Some(answers) = self.session_hooks.next_answers() => {
                        self.on_hook_answers(answers)
                    }
                    Some(event) = job_events.recv() => {
                        if let Some(input) = self.on_job_event(event) {
                            break input;
                        }
                    }
                    Some(input) = inputs.recv() => break input,
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
        // Subagents end first, each in an orderly way if it can, because they end their own jobs.
        stop.cancel();
        self.subagents.shut_down().await;
        // The claim is released only when no task runs under it any more.
        self.tasks.shutdown().await;
        self.end_jobs().await;
        match result {
            Ok(()) => self.finish_hooks(&mut inputs).await,
            Err(fault) => Err(fault),
        }
    }

    /// Returns the time and id of the next input.
    fn stamp(&mut self) -> InputTimeAndId {
        self.clock.stamp(self.session.is_busy())
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
        let stamp = self.stamp();
        let effects = self.session.apply(stamp, SessionInput::note(text));
        self.perform_all(stamp, effects).await
    }
}
