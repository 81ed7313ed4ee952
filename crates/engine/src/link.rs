//! A call's way back to its session: what the road says on behalf of a call, and what it hears.

use crate::changes::{self, Shelf};
use crate::driver::{Inquiring, Recording, Shared, Waiting, lock, stamp};
use crate::host::Settings;
use crate::nursery::{self, DEEPEST, Family, Order, Orders};
use crate::purse::AT_ONCE;
use crate::session::{Birth, Input};
use async_trait::async_trait;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use windlass_protocol::{
    Answer, BlobRef, CallId, Event, Glimpse, Inquiry, Live, SessionId, Sight, Todo,
};
use windlass_storage::Log;
use windlass_toolkit::{
    Caller, Failure, Firing, Intent, Pending, Permit, Report, Seen, Spawn, Stake,
};

/// A call's way back to its session.
pub(crate) struct Link {
    pub(crate) turn: u32,
    pub(crate) call: CallId,
    pub(crate) session: SessionId,
    /// It was let go, so it may have done something.
    pub(crate) permitted: Arc<AtomicBool>,
    pub(crate) log: Arc<dyn Log>,
    pub(crate) inputs: mpsc::Sender<Input>,
    pub(crate) events: broadcast::Sender<Arc<Event>>,
    pub(crate) waiting: Waiting,
    pub(crate) recording: Recording,
    pub(crate) inquiring: Inquiring,
    pub(crate) todos: Shared<Vec<Todo>>,
    pub(crate) shelf: Shared<Shelf>,
    /// What the call has shown of files.
    pub(crate) shown: Shared<Vec<Sight>>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) family: Family,
    pub(crate) orders: Orders,
}

fn closed() -> Answer {
    Answer::No { reason: Some("the session was closed".into()) }
}

impl Link {
    /// Says something to the session, and waits for what it says back.
    async fn wait(&self, said: Input) -> Permit {
        let (permit, permitted) = oneshot::channel();
        lock(&self.waiting).insert(self.call, permit);
        if self.inputs.send(said).await.is_err() {
            return Permit::Answer(closed());
        }
        let permit = permitted.await.unwrap_or_else(|_| Permit::Answer(closed()));
        let yes = matches!(&permit, Permit::Answer(answer) if answer.is_yes());
        self.permitted.store(yes, Ordering::SeqCst);
        permit
    }
}

#[async_trait]
impl Caller for Link {
    async fn permit(&self, intent: Intent) -> Permit {
        self.wait(Input::Intended { turn: self.turn, call: self.call, intent }).await
    }

    async fn ask(&self, preview: Option<String>) -> Answer {
        let looked = Input::Looked { turn: self.turn, call: self.call, preview };
        match self.wait(looked).await {
            Permit::Answer(answer) => answer,
            // It has looked; it is not asked to again.
            Permit::Look => closed(),
        }
    }

    fn progress(&self, text: String) {
        let live = Live::Progress { call: self.call, text };
        let glimpse = Glimpse { session: self.session, at: stamp().at, live };
        let _ = self.events.send(Arc::new(Event::Live(glimpse)));
    }

    fn output(&self, text: String) {
        let live = Live::Output { call: self.call, text };
        let glimpse = Glimpse { session: self.session, at: stamp().at, live };
        let _ = self.events.send(Arc::new(Event::Live(glimpse)));
    }

    fn reached(&self, host: String, refused: Option<String>) {
        let live = Live::Reached { call: self.call, host, refused };
        let glimpse = Glimpse { session: self.session, at: stamp().at, live };
        let _ = self.events.send(Arc::new(Event::Live(glimpse)));
    }

    async fn hooked(&self, firing: Firing) {
        let (call, firings) = (Some(self.call), vec![firing]);
        let _ = self.inputs.send(Input::Hooked { call, firings }).await;
    }

    async fn keep(&self, bytes: Vec<u8>) -> Result<BlobRef, Failure> {
        self.log.put_blob(bytes).await.map_err(|error| Failure::new(error.to_string()))
    }

    async fn recall(&self, blob: &BlobRef) -> Result<Vec<u8>, Failure> {
        self.log.get_blob(blob).await.map_err(|error| Failure::new(error.to_string()))
    }

    async fn record(&self, batch: Vec<Pending>) -> Result<(), Failure> {
        let changes = changes::keep(&*self.log, batch).await?;
        let (recorded, waits) = oneshot::channel();
        lock(&self.recording).insert(self.call, recorded);
        let changing = Input::Changing { turn: self.turn, call: self.call, changes };
        let stopped = || Failure::new("the call was stopped");
        self.inputs.send(changing).await.map_err(|_| stopped())?;
        waits.await.map_err(|_| stopped())
    }

    async fn version(&self, copy: &BlobRef) -> Result<Vec<u8>, Failure> {
        changes::version(&*self.log, copy).await
    }

    async fn withdraw(&self) {
        let unchanged = Input::Unchanged { turn: self.turn, call: self.call };
        let _ = self.inputs.send(unchanged).await;
    }

    async fn inquire(
        &self,
        inquiries: Vec<Inquiry>,
        stake: Stake,
    ) -> Result<Vec<Vec<String>>, Failure> {
        let (replies, replied) = oneshot::channel();
        lock(&self.inquiring).insert(self.call, replies);
        let (turn, call) = (self.turn, self.call);
        let stopped = || Failure::new("the call was stopped");
        let inquired = Input::Inquired { turn, call, inquiries, stake };
        self.inputs.send(inquired).await.map_err(|_| stopped())?;
        replied.await.map_err(|_| stopped())
    }

    fn todos(&self) -> Vec<Todo> {
        lock(&self.todos).clone()
    }

    fn seen(&self, path: &str) -> Option<Seen> {
        lock(&self.shelf).seen(path)
    }

    fn show(&self, path: &str, bytes: &Arc<[u8]>) {
        let sight = lock(&self.shelf).show(path, bytes);
        lock(&self.shown).push(sight);
    }

    async fn spawn(&self, spawn: Spawn) -> Result<Report, Failure> {
        let worker = self.settings.worker(&spawn.agent).filter(|worker| worker.role.is_sub());
        let Some(worker) = worker.cloned() else {
            let known = self.settings.cards().into_iter().map(|card| card.name);
            let known = known.collect::<Vec<_>>().join(", ");
            let text = format!("There is no agent {}. There is: {known}.", spawn.agent);
            return Err(Failure::new(text));
        };
        if self.family.ancestors.len() >= DEEPEST {
            let text = format!("Agents are {DEEPEST} deep already. Do this yourself.");
            return Err(Failure::new(text));
        }
        let Some(place) = self.family.purse.place() else {
            let text = format!("{AT_ONCE} agents are at work already. Try again when one is done.");
            return Err(Failure::new(text));
        };
        if let Some(session) = spawn.session {
            let mut family = self.family.ancestors.to_vec();
            family.push(self.session);
            nursery::check(&*self.log, session, (&spawn.agent, &family)).await?;
        }
        let (session, agent) =
            (spawn.session.unwrap_or(SessionId(stamp().id)), spawn.agent.clone());
        let (reply, answer) = oneshot::channel();
        // What nobody waits for any more ends; in the background nobody does from the start.
        let cancel = CancellationToken::new();
        let guard = cancel.clone().drop_guard();
        let order = Order { worker, spawn, reply, cancel, place };
        lock(&self.orders).insert(self.call, order);
        let birth = Birth { call: self.call, session, agent };
        let stopped = || Failure::new("the call was stopped");
        let spawning = Input::Spawning { turn: self.turn, birth };
        self.inputs.send(spawning).await.map_err(|_| stopped())?;
        let answer = answer.await.map_err(|_| stopped())?;
        guard.disarm();
        answer
    }
}
