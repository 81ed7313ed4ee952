//! The driver: the only loop. It stamps inputs, lets the session decide, and does what it says.
//!
//! Effects are done in order. An append is on record before anything after it is done; if it
//! fails, nothing after it is done and the session stops, because its state is then ahead of its
//! log. Model requests, calls and timers run as tasks that belong to the driver and end with it.

mod another;
mod hooks;
mod request;
mod revise;
mod title;

use crate::album::Album;
use crate::changes::Shelf;
use crate::host::Settings;
use crate::link::Link;
use crate::nursery::{Brood, Child, Family};
use crate::session::{Effect, Input, Session, Stamp};
use crate::watch::Watcher;
use another::Another;
use hooks::Hooking;
use revise::{Offer, Seen, tools};
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use windlass_llm::wire::draft::Draft;
use windlass_protocol::{
    CallId, Event, Fact, Fault, Glimpse, Live, Millis, Op, Outcome, Parent, Point, Record,
    SessionId, Todo, TurnEnd, todo,
};
use windlass_storage::{Claim, Log};
use windlass_toolkit::{Call, Permit, Runtime};

/// How many events a watcher may fall behind before it has to read from the log.
const RING: usize = 1024;

/// How many inputs may wait. Whoever is faster than the session waits for it.
const INBOX: usize = 256;

/// An open session, for whoever wants something of it.
pub struct Handle {
    /// The session.
    pub session: SessionId,
    log: Arc<dyn Log>,
    ops: mpsc::Sender<Op>,
    others: mpsc::Sender<Another>,
    events: broadcast::WeakSender<Arc<Event>>,
    head: u64,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<Result<(), Fault>>,
}

impl Handle {
    /// Says something to the session. False if it has stopped.
    pub async fn send(&self, op: Op) -> bool {
        self.ops.send(op).await.is_ok()
    }

    /// How many facts the session had when it was opened.
    pub fn head(&self) -> u64 {
        self.head
    }

    /// Watches the session from where it was opened; `None` if it has stopped.
    pub fn watch(&self) -> Option<Watcher> {
        let events = self.events.upgrade()?.subscribe();
        Some(Watcher::new(Arc::clone(&self.log), self.session, events, self.head))
    }

    /// Closes the session and says whether it was well to the end. A turn under way is left as it
    /// is and goes on when the session is opened again.
    pub async fn close(self) -> Result<(), Fault> {
        self.stop.cancel();
        match self.task.await {
            Ok(result) => result,
            Err(error) => Err(Fault::Internal { message: error.to_string() }),
        }
    }
}

pub(crate) struct Driver {
    log: Arc<dyn Log>,
    claim: Claim,
    session: Session,
    runtime: Arc<Runtime>,
    settings: Arc<Settings>,
    events: broadcast::Sender<Arc<Event>>,
    inputs: mpsc::Sender<Input>,
    tasks: JoinSet<()>,
    model: Option<AbortHandle>,
    snapshot: Offer,
    cancels: HashMap<CallId, CancellationToken>,
    waiting: Waiting,
    recording: Recording,
    inquiring: Inquiring,
    todos: Shared<Vec<Todo>>,
    shelf: Shared<Shelf>,
    family: Family,
    brood: Brood,
    hooking: Hooking,
    seen: Seen,
    /// Held while what the request under way takes is not known.
    spending: Option<oneshot::Sender<()>>,
    stop: CancellationToken,
    /// What requests before have found and written, so that the next one need not.
    album: Arc<tokio::sync::Mutex<Album>>,
    draft: Arc<Draft>,
}

/// What a session works with besides its own state.
pub(crate) struct Base {
    pub(crate) log: Arc<dyn Log>,
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) family: Family,
}

/// What a session is reached by from outside of its loop.
pub(crate) struct Ends {
    pub(crate) ops: mpsc::Sender<Op>,
    others: mpsc::Sender<Another>,
    events: broadcast::WeakSender<Arc<Event>>,
}

/// The loop of a session. It has no name, because a loop may begin others.
pub(crate) type Driving = Pin<Box<dyn Future<Output = Result<(), Fault>> + Send>>;

/// The calls that have said what they are about to do and wait to be let go.
pub(crate) type Waiting = Shared<HashMap<CallId, oneshot::Sender<Permit>>>;

/// The calls that are about to change files and wait until that is on record.
pub(crate) type Recording = Shared<HashMap<CallId, oneshot::Sender<()>>>;

/// The calls that have asked something and wait for what the person says.
pub(crate) type Inquiring = Shared<HashMap<CallId, oneshot::Sender<Vec<Vec<String>>>>>;

pub(crate) type Shared<T> = Arc<Mutex<T>>;

/// Starts the loop of a session.
#[allow(clippy::disallowed_methods, reason = "the driver owns every task of its session")]
pub(crate) fn start(base: Base, claim: Claim, session: Session) -> (Handle, Watcher) {
    let (id, head, log) = (claim.session, session.head(), Arc::clone(&base.log));
    let stop = CancellationToken::new();
    let (Ends { ops, others, events }, watcher, driving) =
        assemble(base, claim, session, stop.clone());
    let task = tokio::spawn(driving);
    (Handle { session: id, log, ops, others, events, head, stop, task }, watcher)
}

/// Puts the loop of a session together, for whoever is going to run it.
pub(crate) fn assemble(
    base: Base,
    claim: Claim,
    session: Session,
    stop: CancellationToken,
) -> (Ends, Watcher, Driving) {
    let Base { log, runtime, settings, family } = base;
    let (ops, inbox) = mpsc::channel(INBOX);
    let (others, asked) = mpsc::channel(1);
    let (inputs, answers) = mpsc::channel(INBOX);
    let (events, watched) = broadcast::channel(RING);
    let (id, head) = (claim.session, session.head());
    let watcher = Watcher::new(Arc::clone(&log), id, watched, head);
    let shelf = Shelf::new(session.files(), session.now());
    let todos = session.transcript().todos();
    // What the person chose for this session holds, within what the machine's policy allows.
    let runtime = match session.transcript().mode {
        Some(mode) => Arc::new(runtime.in_mode(mode)),
        None => runtime,
    };
    let driver = Driver {
        log,
        claim,
        session,
        runtime,
        settings,
        events,
        inputs,
        tasks: JoinSet::new(),
        model: None,
        snapshot: Offer::default(),
        cancels: HashMap::new(),
        waiting: Waiting::default(),
        recording: Recording::default(),
        inquiring: Inquiring::default(),
        todos: Arc::new(Mutex::new(todos)),
        shelf: Arc::new(Mutex::new(shelf)),
        family,
        brood: Brood::default(),
        hooking: Hooking::default(),
        seen: Seen::default(),
        spending: None,
        stop,
        album: Arc::default(),
        draft: Arc::default(),
    };
    // Only the loop may keep watchers waiting: when it ends, so does what they see.
    let events = driver.events.downgrade();
    (Ends { ops, others, events }, watcher, Box::pin(driver.run(inbox, asked, answers)))
}

impl Driver {
    async fn run(
        mut self,
        mut ops: mpsc::Receiver<Op>,
        mut others: mpsc::Receiver<Another>,
        mut inputs: mpsc::Receiver<Input>,
    ) -> Result<(), Fault> {
        let stop = self.stop.clone();
        let mut input = Input::Resume;
        let mut news = self.runtime.workspace.news(self.claim.session);
        self.begin_hooks();
        let result = 'open: loop {
            if let Err(fault) = self.tell_of_files(&input).await {
                break Err(fault);
            }
            let stamp = stamp();
            let waiting = match &input {
                Input::Changing { call, .. } => Some(*call),
                Input::Spawning { birth, .. } => Some(birth.call),
                _ => None,
            };
            for effect in self.session.apply(stamp, input) {
                if let Err(fault) = self.perform(stamp, effect).await {
                    break 'open Err(fault);
                }
            }
            // What did not go on record must not be done: who still waits hears a no.
            if let Some(call) = waiting {
                lock(&self.recording).remove(&call);
                lock(&self.brood.orders).remove(&call);
            }
            input = loop {
                if let Some(input) = self.hooking.due() {
                    break input;
                }
                tokio::select! {
                    biased;
                    () = stop.cancelled() => break 'open Ok(()),
                    Some(another) = others.recv() => break self.ask_another(another),
                    op = ops.recv() => {
                        let Some(op) = op else { break 'open Ok(()) };
                        self.brood.pass_on(&op);
                        if let Some(input) = self.hear(op) {
                            break input;
                        }
                    }
                    Some(asked) = self.hooking.asked() => self.heard(asked),
                    Some(word) = news.recv() => if let Some(told) = self.told(word) { break told },
                    Some(input) = inputs.recv() => break input,
                }
            };
            while self.tasks.try_join_next().is_some() {}
            self.brood.let_go();
        };
        // Children end first, each in order if it can: their commands are theirs to end.
        stop.cancel();
        self.brood.part().await;
        // The claim is given up only when nothing runs under it any more.
        self.tasks.shutdown().await;
        self.end_jobs().await;
        match result {
            Ok(()) => self.part_with_hooks(&mut inputs).await,
            Err(fault) => Err(fault),
        }
    }

    /// Before the model hears a prompt, it is told which files have changed since it saw them.
    async fn tell_of_files(&mut self, input: &Input) -> Result<(), Fault> {
        if !matches!(input, Input::Op(Op::Prompt { .. }) | Input::Prompted { .. }) {
            return Ok(());
        }
        let workspace = &self.runtime.workspace;
        let Some(text) = lock(&self.shelf).changed(|path| workspace.glance(path)) else {
            return Ok(());
        };
        let stamp = stamp();
        for effect in self.session.apply(stamp, Input::Told { text }) {
            self.perform(stamp, effect).await?;
        }
        Ok(())
    }

    async fn perform(&mut self, stamp: Stamp, effect: Effect) -> Result<(), Fault> {
        match effect {
            Effect::Append(facts) => self.append(stamp, facts).await?,
            Effect::Show(live) => self.show(stamp.at, live),
            Effect::CallModel { turn, step, purpose, system, messages } => {
                self.call_model((turn, step), purpose, system, messages);
            }
            Effect::CancelModel => {
                if let Some(model) = self.model.take() {
                    model.abort();
                }
            }
            Effect::CallTool { turn, call, tool, arguments, by } => {
                let session = self.claim.session;
                self.call_tool(turn, Call { session, id: call, by, tool, arguments });
            }
            Effect::Recorded { call } => {
                if let Some(recording) = lock(&self.recording).remove(&call) {
                    let _ = recording.send(());
                }
            }
            Effect::Spawn { call, session, again } => self.spawn(call, session, again),
            Effect::Reconcile { turn, call, accesses, changes } => {
                let (runtime, link) = (Arc::clone(&self.runtime), self.link(turn, call));
                self.tasks.spawn(async move {
                    let outcome = runtime.reconcile(accesses, changes, &link).await;
                    let seen = Vec::new();
                    let _ = link.inputs.send(Input::Settled { turn, call, outcome, seen }).await;
                });
            }
            Effect::CancelTool { call } => {
                lock(&self.waiting).remove(&call);
                lock(&self.inquiring).remove(&call);
                if let Some(cancel) = self.cancels.remove(&call) {
                    cancel.cancel();
                }
            }
            Effect::Look { call } => {
                if let Some(waiting) = lock(&self.waiting).remove(&call) {
                    let _ = waiting.send(Permit::Look);
                }
            }
            Effect::Answer { call, answer } => {
                if let Some(waiting) = lock(&self.waiting).remove(&call) {
                    // If the call has been cancelled in the meantime, it no longer listens.
                    let _ = waiting.send(Permit::Answer(answer));
                }
            }
            Effect::Reply { call, replies } => {
                if let Some(inquiring) = lock(&self.inquiring).remove(&call) {
                    let _ = inquiring.send(replies);
                }
            }
            Effect::Remember { approvals } => (self.settings.remember)(&approvals),
            Effect::EndJob { job } => self.end_job(stamp.at, job),
            Effect::Wake { turn, step, after_ms } => {
                self.later(after_ms, Input::Woke { turn, step });
            }
            Effect::Alarm { turn, after_ms } => self.later(after_ms, Input::Rang { turn }),
        }
        Ok(())
    }

    /// Lets the session hear of something after a while.
    fn later(&mut self, after_ms: u64, input: Input) {
        let inputs = self.inputs.clone();
        self.tasks.spawn(async move {
            tokio::time::sleep(std::time::Duration::from_millis(after_ms)).await;
            let _ = inputs.send(input).await;
        });
    }

    async fn append(&mut self, stamp: Stamp, facts: Vec<Fact>) -> Result<(), Fault> {
        // The session has decided on more facts than these, so its own head may be ahead; the
        // claim's is what has been written.
        let expected = self.claim.head;
        let appended = self.log.append(&self.claim, expected, stamp.at, &facts).await;
        self.claim.head =
            appended.map_err(|error| Fault::Storage { message: error.to_string() })?;
        for (seq, fact) in (expected + 1..).zip(facts) {
            self.heed(stamp.at, &fact);
            let record = Record { session: self.claim.session, seq, at: stamp.at, fact };
            self.tell_hooks(&record);
            // Nobody may be watching.
            let _ = self.events.send(Arc::new(Event::Fact(record)));
        }
        Ok(())
    }

    /// What the driver does about a fact that is on record.
    fn heed(&mut self, at: Millis, fact: &Fact) {
        match fact {
            Fact::TurnStarted { .. } if self.family.ancestors.is_empty() => {
                self.family.purse.fill(at);
            }
            Fact::StepEnded { usage, cost, .. } => {
                self.family.purse.spend(usage, *cost);
                self.spending = None;
            }
            // Whoever stops a turn stops all that it had others do.
            Fact::Interrupted { .. } => self.brood.cancel(),
            Fact::Settled { call, seen, outcome } => {
                self.cancels.remove(call);
                let workspace = &self.runtime.workspace;
                lock(&self.shelf).record(seen, |path| workspace.glance(path));
                if let Some(todos) = todo::told(outcome) {
                    *lock(&self.todos) = todos;
                }
            }
            Fact::Reverted { .. } => self.heed_step_back(),
            Fact::ModeChanged { mode } => {
                self.runtime = Arc::new(self.runtime.in_mode(*mode));
                self.brood.set_mode(self.runtime.policy.mode());
            }
            Fact::TurnEnded { turn, end } => {
                self.snapshot = Offer::default();
                self.runtime.workspace.rest();
                if (*turn, end) == (1, &TurnEnd::Done) {
                    self.find_title();
                }
            }
            _ => {}
        }
    }

    fn spawn(&mut self, call: CallId, session: SessionId, again: bool) {
        let mode = self.runtime.policy.mode();
        let Some((order, ears)) = self.brood.admit(call, session, mode) else { return };
        let child = Child {
            session,
            parent: Parent { session: self.claim.session, call },
            again,
            order,
            log: Arc::clone(&self.log),
            runtime: Arc::clone(&self.runtime),
            settings: Arc::clone(&self.settings),
            family: self.family.clone(),
            events: self.events.clone(),
            inputs: self.inputs.clone(),
            ears,
            stop: self.stop.clone(),
        };
        self.brood.tend(child);
    }

    fn show(&self, at: Millis, live: Live) {
        let glimpse = Glimpse { session: self.claim.session, at, live };
        let _ = self.events.send(Arc::new(Event::Live(glimpse)));
    }

    fn call_tool(&mut self, turn: u32, call: Call) {
        let cancel = CancellationToken::new();
        self.cancels.insert(call.id, cancel.clone());
        let link = self.link(turn, call.id);
        let (runtime, settings) = (Arc::clone(&self.runtime), Arc::clone(&self.settings));
        let (inputs, offer) = (self.inputs.clone(), Arc::clone(&self.snapshot));
        let (id, permitted) = (call.id, Arc::clone(&link.permitted));
        let revision = self.revision(Point::ToolDefinition);
        let shown = Arc::clone(&link.shown);
        self.tasks.spawn(async move {
            let mut travel = JoinSet::new();
            travel.spawn(async move {
                // There is none yet for a call from before a crash, or a person's.
                let snapshot = tools(&offer, (&runtime, &settings), revision.as_ref()).await;
                runtime.travel(snapshot, call, &link, cancel).await
            });
            let outcome = match travel.join_next().await {
                Some(Ok(outcome)) => outcome,
                // A tool that panics may have done anything before.
                Some(Err(_)) | None if permitted.load(Ordering::SeqCst) => Outcome::Unknown,
                Some(Err(_)) | None => {
                    Outcome::Failed { text: "The tool failed before it did anything.".into() }
                }
            };
            let seen = std::mem::take(&mut *lock(&shown));
            let _ = inputs.send(Input::Settled { turn, call: id, outcome, seen }).await;
        });
    }

    fn link(&self, turn: u32, call: CallId) -> Link {
        Link {
            turn,
            call,
            session: self.claim.session,
            permitted: Arc::default(),
            log: Arc::clone(&self.log),
            inputs: self.inputs.clone(),
            events: self.events.clone(),
            waiting: Arc::clone(&self.waiting),
            recording: Arc::clone(&self.recording),
            inquiring: Arc::clone(&self.inquiring),
            todos: Arc::clone(&self.todos),
            shelf: Arc::clone(&self.shelf),
            shown: Arc::default(),
            settings: Arc::clone(&self.settings),
            family: self.family.clone(),
            orders: Arc::clone(&self.brood.orders),
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Now, and an id nobody else has.
#[allow(clippy::disallowed_methods, reason = "time and ids enter here and nowhere else")]
pub(crate) fn stamp() -> Stamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let at = Millis(since.unwrap_or_default().as_millis() as u64);
    Stamp { at, id: uuid::Uuid::now_v7() }
}
