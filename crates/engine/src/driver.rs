//! The driver: the only loop. It stamps inputs, lets the session decide, and does what it says.
//!
//! Effects are done in order. An append is on record before anything after it is done; if it
//! fails, nothing after it is done and the session stops, because its state is then ahead of its
//! log. Model requests, calls and timers run as tasks that belong to the driver and end with it.

use crate::changes::Shelf;
use crate::host::{Asked, Settings};
use crate::link::Link;
use crate::session::{Effect, Input, Session, Stamp};
use crate::watch::Watcher;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OnceCell, broadcast, mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use windlass_llm::catalog::Model;
use windlass_llm::{ModelEvent, Request};
use windlass_protocol::{
    BlobRef, CallId, Event, Fact, Fault, Glimpse, Live, Message, Millis, Op, Outcome, Part, Record,
    SessionId,
};
use windlass_storage::{Claim, Log};
use windlass_toolkit::{Call, Permit, Runtime, Snapshot};

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
    shelf: Shared<Shelf>,
}

/// The tools of the step under way, taken stock of when somebody first needs them.
type Offer = Arc<OnceCell<Snapshot>>;

/// The calls that have said what they are about to do and wait to be let go.
pub(crate) type Waiting = Shared<HashMap<CallId, oneshot::Sender<Permit>>>;

/// The calls that are about to change files and wait until that is on record.
pub(crate) type Recording = Shared<HashMap<CallId, oneshot::Sender<()>>>;

pub(crate) type Shared<T> = Arc<Mutex<T>>;

/// Starts the loop of a session.
#[allow(clippy::disallowed_methods, reason = "the driver owns every task of its session")]
pub(crate) fn start(
    log: Arc<dyn Log>,
    claim: Claim,
    session: Session,
    runtime: Arc<Runtime>,
    settings: Arc<Settings>,
) -> (Handle, Watcher) {
    let (ops, inbox) = mpsc::channel(INBOX);
    let (inputs, answers) = mpsc::channel(INBOX);
    let (events, watched) = broadcast::channel(RING);
    let (id, head) = (claim.session, session.head());
    let watcher = Watcher::new(Arc::clone(&log), id, watched, head);
    let shelf = Shelf::new(session.files());
    let driver = Driver {
        log: Arc::clone(&log),
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
        shelf: Arc::new(Mutex::new(shelf)),
    };
    // Only the loop may keep watchers waiting: when it ends, so does what they see.
    let events = driver.events.downgrade();
    let stop = CancellationToken::new();
    let task = tokio::spawn(driver.run(inbox, answers, stop.clone()));
    (Handle { session: id, log, ops, events, head, stop, task }, watcher)
}

impl Driver {
    async fn run(
        mut self,
        mut ops: mpsc::Receiver<Op>,
        mut inputs: mpsc::Receiver<Input>,
        stop: CancellationToken,
    ) -> Result<(), Fault> {
        let mut input = Input::Resume;
        let mut news = self.runtime.workspace.news(self.claim.session);
        let result = 'open: loop {
            let stamp = stamp();
            let changing = match &input {
                Input::Changing { call, .. } => Some(*call),
                _ => None,
            };
            for effect in self.session.apply(stamp, input) {
                if let Err(fault) = self.perform(stamp, effect).await {
                    break 'open Err(fault);
                }
            }
            // A change that did not go on record must not be made: who still waits hears a no.
            if let Some(call) = changing {
                lock(&self.recording).remove(&call);
            }
            input = tokio::select! {
                biased;
                () = stop.cancelled() => break Ok(()),
                op = ops.recv() => match op {
                    Some(op) => Input::Op(op),
                    None => break Ok(()),
                },
                Some(text) = news.recv() => Input::Told { text },
                Some(input) = inputs.recv() => input,
            };
            while self.tasks.try_join_next().is_some() {}
        };
        // The claim is given up only when nothing runs under it any more.
        self.tasks.shutdown().await;
        self.runtime.workspace.end_jobs(self.claim.session).await;
        result
    }

    async fn perform(&mut self, stamp: Stamp, effect: Effect) -> Result<(), Fault> {
        match effect {
            Effect::Append(facts) => self.append(stamp, facts).await?,
            Effect::Show(live) => self.show(stamp.at, live),
            Effect::CallModel { turn, step, messages } => {
                self.call_model(turn, step, messages);
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
            Effect::Remember { approvals } => (self.settings.remember)(&approvals),
            Effect::Wake { turn, step, after_ms } => {
                let inputs = self.inputs.clone();
                self.tasks.spawn(async move {
                    tokio::time::sleep(std::time::Duration::from_millis(after_ms)).await;
                    let _ = inputs.send(Input::Woke { turn, step }).await;
                });
            }
        }
        Ok(())
    }

    async fn append(&mut self, stamp: Stamp, facts: Vec<Fact>) -> Result<(), Fault> {
        // The session has decided on more facts than these, so its own head may be ahead; the
        // claim's is what has been written.
        let expected = self.claim.head;
        let appended = self.log.append(&self.claim, expected, stamp.at, &facts).await;
        self.claim.head =
            appended.map_err(|error| Fault::Storage { message: error.to_string() })?;
        for (seq, fact) in (expected + 1..).zip(facts) {
            if let Fact::Settled { call, seen, .. } = &fact {
                self.cancels.remove(call);
                lock(&self.shelf).record(seen);
            }
            if let Fact::TurnEnded { .. } = &fact {
                self.snapshot = Offer::default();
            }
            let record = Record { session: self.claim.session, seq, at: stamp.at, fact };
            // Nobody may be watching.
            let _ = self.events.send(Arc::new(Event::Fact(record)));
        }
        Ok(())
    }

    fn show(&self, at: Millis, live: Live) {
        let glimpse = Glimpse { session: self.claim.session, at, live };
        let _ = self.events.send(Arc::new(Event::Live(glimpse)));
    }

    fn call_model(&mut self, turn: u32, step: u32, messages: Vec<Arc<Message>>) {
        self.snapshot = Offer::default();
        let (runtime, settings) = (Arc::clone(&self.runtime), Arc::clone(&self.settings));
        let (inputs, offer) = (self.inputs.clone(), Arc::clone(&self.snapshot));
        let (log, session) = (Arc::clone(&self.log), self.claim.session);
        let hand_on = {
            let inputs = inputs.clone();
            async move |event| inputs.send(Input::Model { turn, step, event }).await.is_ok()
        };
        let ask = async move {
            let Some(Asked { client, model, options }) = settings.model.clone() else {
                let message = "no model is set".to_owned();
                hand_on(ModelEvent::Failed(Fault::Config { message })).await;
                return;
            };
            let snapshot = tools(&offer, &runtime, &settings).await;
            let files = files(&*log, &messages, &model).await;
            let tools = if model.calls { snapshot.offered() } else { Vec::new() };
            let request = Request {
                model,
                name: Arc::clone(&settings.model_name),
                system: Arc::clone(&settings.system),
                messages,
                files,
                tools,
                options,
                cache_key: Some(session.to_string()),
            };
            let (sink, mut events) = mpsc::channel(16);
            let stream = async move { client.step(&request, &sink).await };
            let listen = async {
                while let Some(event) = events.recv().await {
                    if !hand_on(event).await {
                        return;
                    }
                }
            };
            tokio::join!(stream, listen);
        };
        self.model = Some(self.tasks.spawn(async move {
            let mut asking = JoinSet::new();
            asking.spawn(ask);
            if let Some(Err(error)) = asking.join_next().await {
                let event = ModelEvent::Failed(Fault::Internal { message: error.to_string() });
                let _ = inputs.send(Input::Model { turn, step, event }).await;
            }
        }));
    }

    fn call_tool(&mut self, turn: u32, call: Call) {
        let cancel = CancellationToken::new();
        self.cancels.insert(call.id, cancel.clone());
        let link = self.link(turn, call.id);
        let (runtime, settings) = (Arc::clone(&self.runtime), Arc::clone(&self.settings));
        let (inputs, offer) = (self.inputs.clone(), Arc::clone(&self.snapshot));
        let (id, permitted) = (call.id, Arc::clone(&link.permitted));
        let shown = Arc::clone(&link.shown);
        self.tasks.spawn(async move {
            let mut travel = JoinSet::new();
            travel.spawn(async move {
                // There is none yet for a call from before a crash, or a person's.
                let snapshot = tools(&offer, &runtime, &settings).await;
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
            shelf: Arc::clone(&self.shelf),
            shown: Arc::default(),
        }
    }
}

/// The tools of a step; whoever needs them first takes stock.
async fn tools<'a>(offer: &'a Offer, runtime: &Runtime, settings: &Settings) -> &'a Snapshot {
    offer.get_or_init(|| async { runtime.snapshot(&settings.scene()).await }).await
}

/// How many bytes of files a request holds at most; the newest come first.
const MOST_FILES: usize = 24 << 20;

/// The bytes of the files in a conversation, as far as the model can see them. What is left out it
/// is told about.
async fn files(
    log: &dyn Log,
    messages: &[Arc<Message>],
    model: &Model,
) -> BTreeMap<BlobRef, Arc<[u8]>> {
    let mut files = BTreeMap::new();
    let mut size = 0;
    for part in messages.iter().rev().flat_map(|message| message.parts.iter().rev()) {
        let attached = match part {
            Part::File(file) => std::slice::from_ref(file),
            Part::Call(call) => call.outcome.as_ref().map_or(&[][..], Outcome::attachments),
            Part::Text { .. } | Part::Reasoning { .. } => &[],
        };
        for file in attached {
            let seen = if file.mime.starts_with("image/") { model.images } else { model.pdfs };
            if files.contains_key(&file.blob) || !seen || size > MOST_FILES {
                continue;
            }
            if let Ok(bytes) = log.get_blob(&file.blob).await {
                size += bytes.len();
                if size <= MOST_FILES {
                    files.insert(file.blob.clone(), bytes.into());
                }
            }
        }
    }
    files
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
