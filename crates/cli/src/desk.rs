//! The desk: where a front end's requests are answered, and what happens in its session is told.
//!
//! One loop owns the session that is open; everything that takes time is done beside it, so that
//! no request waits for another. It keeps the invariant that each request is answered exactly once.
//! Start reading at [`Desk::attend`]; [`house`] is what the answers come from.

mod around;
mod hands;
mod house;
mod keep;
mod lead;
mod lists;
pub(crate) mod looks;
mod moves;
mod settings;
mod standing;

use crate::ask::{Ends, Stops};
use crate::setup::Setup;
use crate::watching::Watching;
use crate::{Exit, args, screen};
use anyhow::bail;
use house::House;
use lead::Lead;
use moves::{Move, Moved, Open, Ready};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use windlass_project::Run;
use windlass_protocol::wire::{Answered, Down, Request, Up};
use windlass_protocol::{Event, Fact, Fault, Op, SessionId};

/// How many requests may wait, and how many messages.
const UP: usize = 256;
const DOWN: usize = 1024;
/// So many messages may wait for a screen that is busy before a session's events wait, too.
const WAITING: usize = 256;
/// How long a session has to end when the person leaves.
const PATIENCE: Duration = Duration::from_secs(10);

/// `windlass` alone: the screen, until the person leaves.
pub(crate) async fn open(args: args::Screen) -> anyhow::Result<Exit> {
    if !screen::is_terminal() {
        bail!(
            "the screen needs a terminal, and this is none. `windlass run \"…\"` asks something \
             without one; `windlass --help` lists all commands"
        );
    }
    let (notes, mut noted) = mpsc::unbounded_channel();
    screen::divert(Some(Box::new(move |text| {
        // Nobody reads it once the desk is closed.
        let _ = notes.send(text);
    })));
    let left = Arc::new(AtomicBool::new(false));
    let shown = show(args, &mut noted, &left).await;
    screen::divert(None);
    while let Ok(text) = noted.try_recv() {
        screen::note(&text);
    }
    if left.load(Ordering::Relaxed) {
        screen::note("`windlass --continue` goes on with this session");
    }
    shown.map(|()| Exit::Done)
}

async fn show(
    args: args::Screen,
    noted: &mut mpsc::UnboundedReceiver<String>,
    left: &Arc<AtomicBool>,
) -> anyhow::Result<()> {
    let house = House::read(&args)?;
    let session = house.first(&args).await?;
    let said = &house.setup.config.screen;
    let (options, linear) = looks::options(said, &args, session, Setup::env);
    let hands = hands::Own { drafts: house.setup.places.data.join("drafts") };
    let (up, asked) = mpsc::channel(UP);
    let (down, told) = mpsc::channel(DOWN);
    let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
    // What is noted from here on is told on the screen.
    let (_, gone) = mpsc::unbounded_channel();
    let mut desk = Desk::new(Arc::new(house), std::mem::replace(noted, gone));
    desk.left = Arc::clone(left);
    tasks.spawn(desk.attend((asked, down), stop.clone()));
    tasks.close();
    let mut ends = Ends::new()?;
    let shown = tokio::select! {
        shown = async {
            match linear {
                true => {
                    let mut stops = Stops::new()?;
                    let pressed = async || stops.pressed().await;
                    windlass_tui::linear::run(options, up, told, pressed).await
                }
                false => windlass_tui::run(options, up, told, &hands).await,
            }
        } => shown,
        () = ends.told() => Ok(()),
    };
    stop.cancel();
    // A session that does not end in time goes on when it is opened again.
    let _ = tokio::time::timeout(PATIENCE, tasks.wait()).await;
    Ok(shown?)
}

/// What came of something that was done beside the loop.
enum Done {
    /// An answer.
    Answer(u64, Result<Answered, Fault>),
    /// Everything that takes time before the session can be changed.
    Ready(u64, Result<Box<Ready>, Fault>),
    /// What a command asks, and what it wants run first.
    Draft(u64, Result<(String, Vec<Run>), Fault>),
    /// Another session is open, or the same one again.
    Moved(u64, Box<Moved>),
    /// Nothing that anybody waits for.
    Nothing,
}

/// Where requests are answered.
struct Desk {
    house: Arc<House>,
    open: Option<Open>,
    notes: mpsc::UnboundedReceiver<String>,
    /// What the screen has not taken yet.
    outbox: VecDeque<Down>,
    work: JoinSet<Done>,
    /// Which request a piece of work answers, should it break.
    owed: HashMap<Id, u64>,
    /// Changes of the session, one after the other; the first is under way.
    moves: VecDeque<(u64, Move)>,
    /// What was noted already.
    told: HashSet<String>,
    watching: Option<Watching>,
    /// What a command has run before its prompt.
    lead: Option<Lead>,
    /// The last session in which a turn began.
    spoken: Option<SessionId>,
    /// Set if a session was open to the end.
    left: Arc<AtomicBool>,
}

impl Desk {
    fn new(house: Arc<House>, notes: mpsc::UnboundedReceiver<String>) -> Desk {
        Desk {
            house,
            open: None,
            notes,
            outbox: VecDeque::new(),
            work: JoinSet::new(),
            owed: HashMap::new(),
            moves: VecDeque::new(),
            told: HashSet::new(),
            watching: Watching::wanted(Setup::env),
            lead: None,
            spoken: None,
            left: Arc::default(),
        }
    }

    /// Answers until the front end is gone or the desk is closed.
    async fn attend(
        mut self,
        (mut asked, down): (mpsc::Receiver<Up>, mpsc::Sender<Down>),
        stop: CancellationToken,
    ) {
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                place = down.reserve(), if !self.outbox.is_empty() => {
                    let Ok(place) = place else { break };
                    if let Some(message) = self.outbox.pop_front() {
                        place.send(message);
                    }
                }
                request = asked.recv() => match request {
                    Some(Up { id, request }) => self.take(id, request).await,
                    None => break,
                },
                Some(done) = self.work.join_next_with_id() => self.settle(done).await,
                Some(text) = self.notes.recv() => self.note(text),
                event = next(&mut self.open), if self.outbox.len() < WAITING => {
                    self.tell(event).await;
                }
            }
        }
        self.work.abort_all();
        if let Some(open) = self.open.take() {
            self.left.store(true, Ordering::Relaxed);
            // It is on record what became of it.
            let _ = open.handle.close().await;
        }
        if let Some(watching) = &mut self.watching {
            watching.report().await;
        }
    }

    fn answer(&mut self, id: u64, answer: Result<Answered, Fault>) {
        self.outbox.push_back(Down::Answer { id, answer });
    }

    /// Tells what was noted, once: what is built twice notes the same twice.
    fn note(&mut self, text: String) {
        let text = text.strip_prefix("note: ").map(str::to_owned).unwrap_or(text);
        if self.told.insert(text.clone()) {
            self.outbox.push_back(Down::Note { text });
        }
    }

    /// Does something beside the loop.
    fn begin(&mut self, id: u64, work: impl Future<Output = Done> + Send + 'static) {
        let task = self.work.spawn(work).id();
        self.owed.insert(task, id);
    }

    async fn take(&mut self, id: u64, request: Request) {
        let change = match request {
            Request::Do { session, op } => return self.hand_on(id, session, op).await,
            Request::Begin { agent } => Move::Begin { agent },
            Request::Open { session } => Move::Open { session },
            Request::Fork { session, turn } => Move::Fork { session, turn },
            Request::Delete { session } => Move::Delete { session },
            Request::Model { model, keep } => Move::Model { model, keep },
            Request::Trust { yes } => Move::Trust { yes },
            Request::Login { provider, key } => Move::Login { provider, key },
            Request::Command { name, arguments } => {
                let house = Arc::clone(&self.house);
                let work = async move { Done::Draft(id, house.command(&name, &arguments).await) };
                return self.begin(id, work);
            }
            request @ (Request::Standing
            | Request::Query { .. }
            | Request::Keep { .. }
            | Request::KeepFile { .. }
            | Request::Recall { .. }
            | Request::Thumbnail { .. }
            | Request::List { .. }
            | Request::Doctor
            | Request::Export { .. }
            | Request::LookAtTrust
            | Request::LookAround
            | Request::Set { .. }) => {
                let house = Arc::clone(&self.house);
                if request == Request::Standing && house.is_settled() {
                    // Whoever looks around first is not kept waiting by servers that start later.
                    let house = Arc::clone(&house);
                    self.work.spawn(async move { house.warm_up().await });
                }
                let work = async move { Done::Answer(id, house.answer(request).await) };
                return self.begin(id, work);
            }
        };
        self.moves.push_back((id, change));
        if self.moves.len() == 1 {
            self.prepare();
        }
    }

    /// Gets ready for the change that is next.
    fn prepare(&mut self) {
        let Some((id, change)) = self.moves.front().cloned() else { return };
        let house = Arc::clone(&self.house);
        let work =
            async move { Done::Ready(id, moves::prepare(house, change).await.map(Box::new)) };
        self.begin(id, work);
    }

    async fn hand_on(&mut self, id: u64, session: SessionId, op: Op) {
        let open = self.open.as_ref().filter(|open| open.handle.session == session);
        let taken = match open {
            Some(open) => open.handle.send(op).await,
            None => false,
        };
        let refused = || {
            let message = "this session is not open any more; open it again to go on";
            Fault::Config { message: message.to_owned() }
        };
        self.answer(id, taken.then_some(Answered::Done).ok_or_else(refused));
    }

    async fn settle(&mut self, done: Result<(Id, Done), JoinError>) {
        let (task, done) = match done {
            Ok((task, done)) => (task, done),
            Err(broken) => {
                let message = "answering this broke".to_owned();
                let id = self.owed.get(&broken.id()).copied().unwrap_or_default();
                (broken.id(), Done::Answer(id, Err(Fault::Internal { message })))
            }
        };
        self.owed.remove(&task);
        match done {
            Done::Nothing => {}
            Done::Answer(id, answer) => {
                self.answer(id, answer);
                self.next_move(id);
            }
            Done::Draft(id, Err(fault)) => self.answer(id, Err(fault)),
            Done::Draft(id, Ok(draft)) => self.lead(id, draft).await,
            Done::Ready(id, Err(fault)) => {
                self.answer(id, Err(fault));
                self.next_move(id);
            }
            Done::Ready(id, Ok(ready)) => {
                let open = self.open.take();
                self.begin(
                    id,
                    async move { Done::Moved(id, Box::new(ready.carry_out(open).await)) },
                );
            }
            Done::Moved(id, moved) => {
                let Moved { house, open, missed, answer } = *moved;
                (self.house, self.open) = (house, open);
                for event in missed {
                    self.hear(&event).await;
                }
                self.part_with_lead();
                self.answer(id, answer);
                self.next_move(id);
            }
        }
    }

    /// Goes on with the next change, if that was the one under way.
    fn next_move(&mut self, id: u64) {
        if self.moves.pop_front_if(|(under_way, _)| *under_way == id).is_some() {
            self.prepare();
        }
    }

    /// Tells the front end what happened in its session.
    async fn tell(&mut self, event: Result<Option<Arc<Event>>, String>) {
        let fault = match event {
            Ok(Some(event)) => return self.hear(&event).await,
            Ok(None) => None,
            Err(message) => Some(Fault::Storage { message }),
        };
        let Some(open) = self.open.take() else { return };
        let session = open.handle.session;
        let closed = open.handle.close().await.err();
        let ended = || Fault::Internal { message: "the session ended by itself".to_owned() };
        let fault = closed.or(fault).unwrap_or_else(ended);
        self.outbox.push_back(Down::Stopped { session, fault });
        self.part_with_lead();
    }

    /// Passes on what happened. Whoever watches from outside hears of a turn when it has ended.
    async fn hear(&mut self, event: &Event) {
        self.outbox.push_back(Down::Event { event: Box::new(event.clone()) });
        self.follow(event).await;
        let Event::Fact(record) = event else { return };
        if self.open.as_ref().is_none_or(|open| open.handle.session != record.session) {
            return;
        }
        if let Fact::TurnStarted { .. } = &record.fact {
            self.spoken = Some(record.session);
        }
        let Some(watching) = &mut self.watching else { return };
        watching.telemetry.push(record);
        if let Fact::TurnEnded { .. } = &record.fact
            && let Some(sending) = watching.sending()
        {
            self.work.spawn(async move {
                sending.await;
                Done::Nothing
            });
        }
    }
}

/// The next event of a session that is open.
async fn next(open: &mut Option<Open>) -> Result<Option<Arc<Event>>, String> {
    match open {
        Some(open) => open.watcher.next().await.map_err(|error| error.to_string()),
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
