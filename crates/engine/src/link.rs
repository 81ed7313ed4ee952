//! A call's way back to its session: what the road says on behalf of a call, and what it hears.

use crate::changes::{self, Shelf};
use crate::driver::{Recording, Shared, Waiting, lock, stamp};
use crate::session::Input;
use async_trait::async_trait;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::{broadcast, mpsc, oneshot};
use windlass_protocol::{Answer, BlobRef, CallId, Event, Glimpse, Live, SessionId, Sight};
use windlass_storage::Log;
use windlass_toolkit::{Caller, Failure, Intent, Pending, Permit, Seen};

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
    pub(crate) shelf: Shared<Shelf>,
    /// What the call has shown of files.
    pub(crate) shown: Shared<Vec<Sight>>,
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

    fn reached(&self, host: String, refused: Option<String>) {
        let live = Live::Reached { call: self.call, host, refused };
        let glimpse = Glimpse { session: self.session, at: stamp().at, live };
        let _ = self.events.send(Arc::new(Event::Live(glimpse)));
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

    fn seen(&self, path: &str) -> Option<Seen> {
        lock(&self.shelf).seen(path)
    }

    fn show(&self, path: &str, bytes: &Arc<[u8]>) {
        let sight = lock(&self.shelf).show(path, bytes);
        lock(&self.shown).push(sight);
    }
}
