//! Children at work: each is a session of its own with its own driver, tended by a task of its
//! parent's driver. What it shows, its parent's watchers see; when its parent ends, so does it.

use crate::agents::{Begun, Worker, narrowed};
use crate::driver::{self, Shared, lock, stamp};
use crate::host::{Asked, Settings};
use crate::purse::Purse;
use crate::session::{Input, Session};
use crate::watch::Watcher;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, broadcast, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use windlass_protocol::{
    CallId, Event, Fact, Glimpse, Live, Mode, Op, Parent, Part, Role, SessionId, Stream,
    Transcript, TurnEnd, text::beginning,
};
use windlass_storage::{Log, read_all};
use windlass_toolkit::{Failure, Report, Runtime, Spawn};

/// How deep children may have children.
pub(crate) const DEEPEST: usize = 3;

/// How long a child that is told to stop may take, and then once more.
const GRACE: Duration = Duration::from_millis(300);

/// How long children may take to end when their parent closes.
const PARTING: Duration = Duration::from_secs(1);

/// How many answers may wait for a child.
const MOST_ANSWERS: usize = 256;

/// How much of what a child in the background said its parent is told.
const LONGEST_NEWS: usize = 8_000;

/// How much of a call is shown on the line that says what a child does.
const LONGEST_LINE: usize = 80;

/// Where a session stands in its family, and what all of it share.
#[derive(Clone)]
pub(crate) struct Family {
    pub(crate) purse: Arc<Purse>,
    /// The sessions it was begun by, the first one first.
    pub(crate) ancestors: Arc<[SessionId]>,
}

impl Family {
    /// A family with nobody above.
    pub(crate) fn of(purse: Purse) -> Family {
        Family { purse: Arc::new(purse), ancestors: Arc::new([]) }
    }

    fn below(&self, parent: SessionId) -> Family {
        let ancestors = self.ancestors.iter().copied().chain([parent]).collect();
        Family { purse: Arc::clone(&self.purse), ancestors }
    }
}

/// Work that waits until its beginning is on record.
pub(crate) struct Order {
    pub(crate) worker: Arc<Worker>,
    pub(crate) spawn: Spawn,
    pub(crate) reply: oneshot::Sender<Result<Report, Failure>>,
    pub(crate) cancel: CancellationToken,
    pub(crate) place: OwnedSemaphorePermit,
}

/// The calls that want a session and wait until that is on record.
pub(crate) type Orders = Shared<HashMap<CallId, Order>>;

/// A child at work, for its parent's driver.
struct Charge {
    /// Where answers go that may be meant for it.
    ops: mpsc::Sender<Op>,
    /// The mode of whoever began it.
    mode: watch::Sender<Mode>,
    cancel: CancellationToken,
}

/// How a child hears of its parent.
pub(crate) struct Ears {
    ops: mpsc::Receiver<Op>,
    mode: watch::Receiver<Mode>,
}

/// The children of a session, and the tasks that tend them.
#[derive(Default)]
pub(crate) struct Brood {
    pub(crate) orders: Orders,
    charges: HashMap<SessionId, Charge>,
    tasks: JoinSet<SessionId>,
}

impl Brood {
    /// Takes in a child whose beginning is on record: what it is to do, and how it hears of the
    /// session that began it, which is in this mode.
    pub(crate) fn admit(
        &mut self,
        call: CallId,
        session: SessionId,
        mode: Mode,
    ) -> Option<(Order, Ears)> {
        let order = lock(&self.orders).remove(&call)?;
        if self.charges.contains_key(&session) {
            let text = format!("The agent in session {session} is still at work. Wait for it.");
            let _ = order.reply.send(Err(Failure::new(text)));
            return None;
        }
        let (sender, ops) = mpsc::channel(MOST_ANSWERS);
        let (setter, mode) = watch::channel(mode);
        let cancel = order.cancel.clone();
        self.charges.insert(session, Charge { ops: sender, mode: setter, cancel });
        Some((order, Ears { ops, mode }))
    }

    pub(crate) fn tend(&mut self, child: Child) {
        self.tasks.spawn(child.tend());
    }

    /// An answer may be meant for a call of a child: it knows its own calls, and no others.
    pub(crate) fn pass_on(&self, op: &Op) {
        if let Op::Answer { .. } | Op::Reply { .. } = op {
            for charge in self.charges.values() {
                // One that does not listen any more has no question.
                let _ = charge.ops.try_send(op.clone());
            }
        }
    }

    /// Lets all of them know that their parent goes on in another mode.
    pub(crate) fn set_mode(&self, mode: Mode) {
        for charge in self.charges.values() {
            charge.mode.send_replace(mode);
        }
    }

    /// Has all of them stop.
    pub(crate) fn cancel(&self) {
        self.charges.values().for_each(|charge| charge.cancel.cancel());
    }

    /// Forgets those that are done.
    pub(crate) fn let_go(&mut self) {
        while let Some(ended) = self.tasks.try_join_next() {
            if let Ok(session) = ended {
                self.charges.remove(&session);
            }
        }
    }

    /// Waits for them to end, but not for long.
    pub(crate) async fn part(&mut self) {
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(PARTING, ended).await;
        self.tasks.shutdown().await;
    }
}

/// What is needed to tend a child.
pub(crate) struct Child {
    pub(crate) session: SessionId,
    pub(crate) parent: Parent,
    /// It was begun by the same call before a crash.
    pub(crate) again: bool,
    pub(crate) order: Order,
    pub(crate) log: Arc<dyn Log>,
    /// Its parent's.
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) family: Family,
    pub(crate) events: broadcast::Sender<Arc<Event>>,
    pub(crate) inputs: mpsc::Sender<Input>,
    pub(crate) ears: Ears,
    /// Fires when the parent closes.
    pub(crate) stop: CancellationToken,
}

impl Child {
    /// Has the agent work until it is done or has to stop, and says what came of it.
    pub(crate) async fn tend(mut self) -> SessionId {
        let (session, background) = (self.session, self.order.spawn.background);
        let worked = self.work().await;
        let Child { order, inputs, stop, .. } = self;
        let Order { reply, spawn, place, .. } = order;
        drop(place);
        if background && !stop.is_cancelled() {
            let text = news(session, &spawn, &worked);
            let _ = inputs.send(Input::Told { text }).await;
        }
        // Who waited may have been stopped.
        let _ = reply.send(worked);
        session
    }

    async fn work(&mut self) -> Result<Report, Failure> {
        let failed = |error: windlass_storage::Error| Failure::new(error.to_string());
        let claim = self.log.claim(self.session).await.map_err(failed)?;
        let records = read_all(&*self.log, self.session, 0).await.map_err(failed)?;
        let worker = Arc::clone(&self.order.worker);
        let limits = self.family.purse.left(stamp().at);
        let mut settings = self.settings.suited(&worker, limits);
        // The shape of the answer is asked of whoever answers the person.
        settings.model = settings.model.map(Asked::freely);
        let settings = Arc::new(settings);
        let mut transcript = Transcript::of(&records);
        let (state, asked) = match records.is_empty() {
            true => (Session::new(self.opening(&worker), settings.terms()), false),
            false => {
                let asked = self.again && has_heard(&transcript, &self.order.spawn.prompt);
                (Session::replay(&records, settings.terms()), asked)
            }
        };
        drop(records);
        if asked && !state.busy() && transcript.waiting.is_empty() {
            return Ok(self.report(&transcript));
        }
        let runtime = narrowed(&self.runtime, &worker, Begun::ByCall);
        let mut leash = Leash::new(runtime.policy.mode(), transcript.mode);
        let (family, stop) = (self.family.below(self.parent.session), self.stop.child_token());
        let log = Arc::clone(&self.log);
        let base = driver::Base { log, runtime, settings, family };
        let (ends, mut watcher, driving) = driver::assemble(base, claim, state, stop.clone());
        let prompt = Op::prompt(self.order.spawn.prompt.clone());
        if !asked {
            // There is room: nothing has been said to it yet.
            let _ = ends.ops.try_send(prompt);
        }
        if self.order.spawn.background {
            self.release();
        }
        tokio::pin!(driving);
        let watched = tokio::select! {
            biased;
            ended = &mut driving => Some(ended),
            () = self.watch(&mut watcher, &ends.ops, (&mut transcript, &mut leash)) => None,
        };
        let ended = match watched {
            Some(ended) => ended,
            None => {
                stop.cancel();
                driving.await
            }
        };
        match ended {
            Ok(()) => Ok(self.report(&transcript)),
            Err(fault) => Err(Failure::new(format!("The agent's session stopped: {fault}."))),
        }
    }

    fn opening(&self, worker: &Worker) -> Fact {
        Fact::Opened {
            workspace: self.runtime.workspace.root().display().to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            agent: worker.name.clone(),
            parent: Some(self.parent),
        }
    }

    /// Lets the call that began it go on.
    fn release(&mut self) {
        let (reply, _) = oneshot::channel();
        let waits = std::mem::replace(&mut self.order.reply, reply);
        let report = Report { session: self.session, text: String::new(), end: None };
        let _ = waits.send(Ok(report));
    }

    fn report(&self, transcript: &Transcript) -> Report {
        let last = transcript.messages.iter().rev().find(|said| said.role == Role::Assistant);
        let text = |part: &Part| match part {
            Part::Text { text, .. } => Some(text.clone()),
            Part::Reasoning { .. } | Part::File(_) | Part::Call(_) => None,
        };
        let text = last.map(|said| said.parts.iter().filter_map(text).collect::<Vec<_>>());
        let end = transcript.end.clone().or(Some(TurnEnd::Interrupted));
        Report { session: self.session, text: text.unwrap_or_default().join("\n"), end }
    }

    /// Watches until there is nothing left to do, and hands on what others should see or answer.
    async fn watch(
        &mut self,
        watcher: &mut Watcher,
        ops: &mpsc::Sender<Op>,
        (transcript, leash): (&mut Transcript, &mut Leash),
    ) {
        let cancel = self.order.cancel.clone();
        let mut told = 0;
        let mut grace = None;
        loop {
            tokio::select! {
                biased;
                () = cancel.cancelled(), if told == 0 => {
                    (told, grace) = (1, Some(Box::pin(tokio::time::sleep(GRACE))));
                    let _ = ops.try_send(Op::Interrupt);
                }
                () = async {
                    match grace.as_mut() {
                        Some(grace) => grace.await,
                        None => std::future::pending().await,
                    }
                } => {
                    if told > 1 {
                        return;
                    }
                    (told, grace) = (2, Some(Box::pin(tokio::time::sleep(GRACE))));
                    let _ = ops.try_send(Op::Interrupt);
                }
                Ok(()) = self.ears.mode.changed() => {
                    let parents = *self.ears.mode.borrow_and_update();
                    if let Some(mode) = leash.follow(parents) {
                        // Unlike an answer it must not be lost; the child takes in what it hears.
                        let _ = ops.send(Op::Mode { mode }).await;
                    }
                }
                Some(op) = self.ears.ops.recv() => {
                    let _ = ops.try_send(op);
                }
                event = watcher.next() => {
                    let Ok(Some(event)) = event else { return };
                    if self.see(&event, transcript) {
                        return;
                    }
                }
            }
        }
    }

    /// Hands an event on to whoever watches the parent. True if the child has nothing left to do.
    fn see(&self, event: &Arc<Event>, transcript: &mut Transcript) -> bool {
        let mut done = false;
        match &**event {
            Event::Live(glimpse) => match &glimpse.live {
                Live::Delta { stream: Stream::Text | Stream::Reasoning, .. } => return false,
                Live::Progress { .. }
                | Live::Output { .. }
                | Live::Reached { .. }
                | Live::Job { .. }
                | Live::Hooked { .. }
                | Live::Noticed { .. } => {}
            },
            Event::Fact(record) if record.session == self.session => {
                transcript.push(record.seq, &record.fact);
                if let Some(line) = line(&record.fact) {
                    let text = format!("{}: {line}", self.order.worker.name);
                    let live = Live::Progress { call: self.parent.call, text };
                    let glimpse = Glimpse { session: self.parent.session, at: record.at, live };
                    let _ = self.events.send(Arc::new(Event::Live(glimpse)));
                }
                let ended = matches!(record.fact, Fact::TurnEnded { .. });
                done = ended && transcript.waiting.is_empty();
            }
            Event::Fact(_) => {}
        }
        let _ = self.events.send(Arc::clone(event));
        done
    }
}

/// How lax a child may be: at most as its parent is, and never laxer than it began.
struct Leash {
    began: Mode,
    now: Mode,
}

impl Leash {
    /// One that begins in a mode, but was left in another.
    fn new(began: Mode, left: Option<Mode>) -> Leash {
        let began = left.map_or(began, |left| left.min(began));
        Leash { began, now: began }
    }

    /// The mode it is to go on in, now that its parent is in this one, if that is another.
    fn follow(&mut self, parents: Mode) -> Option<Mode> {
        let mode = self.began.min(parents);
        (mode != std::mem::replace(&mut self.now, mode)).then_some(mode)
    }
}

/// What a child does now, on one line.
fn line(fact: &Fact) -> Option<String> {
    match fact {
        Fact::StepStarted { .. } => Some("waiting for its model".to_owned()),
        Fact::Asked { .. } | Fact::Inquired { .. } => Some("waiting for an answer".to_owned()),
        Fact::Called { tool, arguments, .. } => {
            let arguments = arguments.replace(char::is_control, " ");
            Some(beginning(&format!("{tool} {arguments}"), LONGEST_LINE))
        }
        _ => None,
    }
}

/// True if a session was asked this.
fn has_heard(transcript: &Transcript, prompt: &str) -> bool {
    let mut asked = transcript.messages.iter().filter(|said| said.role == Role::User);
    let text = |part: &Part| matches!(part, Part::Text { text, .. } if text == prompt);
    transcript.waiting.iter().any(|waiting| waiting.text == prompt)
        || asked.any(|said| said.parts.iter().any(text))
}

/// What the parent is told when a child in the background is done.
fn news(session: SessionId, spawn: &Spawn, worked: &Result<Report, Failure>) -> String {
    let Spawn { agent, description, .. } = spawn;
    let (how, said) = match worked {
        Ok(Report { text, end: Some(TurnEnd::Done), .. }) => ("is done", text.as_str()),
        Ok(Report { text, .. }) => ("stopped before it was done", text.as_str()),
        Err(failure) => ("failed", failure.text.as_str()),
    };
    let said = beginning(said, LONGEST_NEWS);
    format!("The agent {agent} ({description}; session {session}) {how}. It said:\n{said}")
}

/// Finds out whether a session may be gone on with by a call of another one.
pub(crate) async fn check(
    log: &dyn Log,
    wanted: SessionId,
    (agent, family): (&str, &[SessionId]),
) -> Result<(), Failure> {
    let records = log.read(wanted, 0).await.map_err(|error| Failure::new(error.to_string()))?;
    let unknown = || {
        Failure::new(format!(
            "There is no session {wanted} that was begun from here. Leave out session_id to begin a new one."
        ))
    };
    match records.first().map(|record| &record.fact) {
        Some(Fact::Opened { parent: Some(parent), agent: theirs, .. }) => {
            if !family.contains(&parent.session) {
                return Err(unknown());
            }
            if theirs != agent {
                let text = format!("In session {wanted} the agent {theirs} works, not {agent}.");
                return Err(Failure::new(text));
            }
            Ok(())
        }
        Some(_) | None => Err(unknown()),
    }
}
