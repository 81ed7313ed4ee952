//! One server at one root: whether it runs, who starts it, and when it has to end.
//!
//! It is started when somebody wants it, in a task of its own, so that whoever waits may leave. While
//! it runs it is watched: one that ends, uses too much memory or is wanted by nobody is put away, also
//! if nobody calls. Everything ends with the last one who has it. Start reading at [`Server::link`].

use crate::Row;
use crate::estate::Estate;
use crate::start::{Broken, Plan};
use crate::talk::{Link, lock};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use windlass_sandbox::{Held, Hold};
use windlass_toolkit::health::{Health, State, Want};

/// How often it is looked at.
const LOOK: Duration = Duration::from_secs(5);
/// How long one that did not start may take to end.
const PARTING: Duration = Duration::from_secs(1);
/// So many lines of its complaints are written down.
const COMPLAINTS: usize = 40;
/// How long its end may take in all.
const END: Duration = Duration::from_secs(4);

/// A server.
pub(crate) struct Server {
    plan: Plan,
    estate: Arc<Estate>,
    health: Mutex<Health>,
    link: Mutex<Option<Arc<Link>>>,
    /// Counts what has happened, so that others can wait for it.
    news: watch::Sender<u64>,
    /// When somebody last wanted it.
    wanted: Mutex<Instant>,
    /// The number of the start that counts.
    number: AtomicU64,
    /// Nothing is started any more.
    closing: CancellationToken,
    /// Stops the start that is under way.
    stop: Mutex<CancellationToken>,
    tasks: Mutex<JoinSet<()>>,
}

/// Says that a start failed, if nobody says anything else.
struct Starting {
    server: Weak<Server>,
    number: u64,
}

impl Drop for Starting {
    fn drop(&mut self) {
        if let Some(server) = self.server.upgrade() {
            server.conclude(self.number, Err(Broken::Failed("its start was stopped".into())));
        }
    }
}

impl Server {
    pub(crate) fn new(
        row: Arc<Row>,
        root: String,
        hold: Hold,
        estate: &Arc<Estate>,
    ) -> Arc<Server> {
        Arc::new(Server {
            health: Mutex::new(Health::new(&row.name)),
            plan: Plan { row, root, hold },
            estate: Arc::clone(estate),
            link: Mutex::new(None),
            news: watch::Sender::new(0),
            wanted: Mutex::new(Instant::now()),
            number: AtomicU64::new(0),
            closing: CancellationToken::new(),
            stop: Mutex::default(),
            tasks: Mutex::default(),
        })
    }

    pub(crate) fn row(&self) -> &Row {
        &self.plan.row
    }

    /// Where its project begins, from the root of the workspace, which is `.`.
    pub(crate) fn root(&self) -> &str {
        &self.plan.root
    }

    /// How it is doing.
    pub(crate) fn state(&self) -> State {
        self.look_after();
        lock(&self.health).state().clone()
    }

    /// True if it runs, or is about to.
    pub(crate) fn is_up(&self) -> bool {
        matches!(lock(&self.health).state(), State::Starting | State::Ready { .. })
    }

    /// When somebody last wanted it.
    pub(crate) fn wanted(&self) -> Instant {
        *lock(&self.wanted)
    }

    /// The connection, if it answers now. Never waits.
    pub(crate) fn ready(&self) -> Option<Arc<Link>> {
        self.touch();
        self.look_after();
        lock(&self.link).clone()
    }

    /// Starts it if need be; nobody waits.
    pub(crate) fn wake(self: &Arc<Self>) {
        self.touch();
        self.look_after();
        if self.closing.is_cancelled() || self.missing().is_some() {
            return;
        }
        let wanted = lock(&self.health).want(self.estate.now());
        if wanted == Want::Start {
            self.launch();
        }
    }

    /// A connection that works, made now if need be. The error is a sentence for a model.
    pub(crate) async fn link(self: &Arc<Self>, limit: Duration) -> Result<Arc<Link>, String> {
        self.connect(limit, Health::want).await
    }

    /// The same for a call whose connection was lost under way: it has the server started once more
    /// only if it had held well.
    pub(crate) async fn link_again(self: &Arc<Self>, limit: Duration) -> Result<Arc<Link>, String> {
        self.connect(limit, Health::want_again).await
    }

    async fn connect(
        self: &Arc<Self>,
        limit: Duration,
        want: fn(&mut Health, Duration) -> Want,
    ) -> Result<Arc<Link>, String> {
        match tokio::time::timeout(limit, self.connected(want)).await {
            Ok(link) => link,
            Err(_) => {
                let name = &self.row().name;
                Err(format!("{name} is still starting; ask again later, or use grep meanwhile"))
            }
        }
    }

    async fn connected(
        self: &Arc<Self>,
        want: fn(&mut Health, Duration) -> Want,
    ) -> Result<Arc<Link>, String> {
        let mut news = self.news.subscribe();
        let mut tried = false;
        loop {
            news.mark_unchanged();
            self.touch();
            self.look_after();
            if self.closing.is_cancelled() {
                return Err(format!("{} was ended", self.row().name));
            }
            if let Some(words) = self.missing() {
                return Err(words);
            }
            let wanted = want(&mut lock(&self.health), self.estate.now());
            match wanted {
                Want::Go => {
                    let link = lock(&self.link).clone();
                    if let Some(link) = link {
                        return Ok(link);
                    }
                    let why = "the connection was closed".to_owned();
                    lock(&self.health).lost(self.estate.now(), why);
                }
                Want::Fail(words) => return Err(words),
                // A start of its own that came to nothing is not made again by the same call.
                Want::Start if tried => {
                    let why = "it ended as soon as it was started".to_owned();
                    lock(&self.health).failed(self.estate.now(), why);
                }
                Want::Start => {
                    tried = true;
                    self.launch();
                    let _ = news.changed().await;
                }
                Want::Wait => {
                    let _ = news.changed().await;
                }
            }
        }
    }

    /// What a model hears where the program is not there.
    pub(crate) fn missing(&self) -> Option<String> {
        let there = self.estate.program(&self.plan.row, &self.plan.root).is_some();
        (!there).then(|| self.plan.row.absence())
    }

    fn touch(&self) {
        *lock(&self.wanted) = Instant::now();
    }

    fn tell(&self) {
        self.news.send_modify(|count| *count += 1);
    }

    /// Takes note of a connection that has ended meanwhile.
    fn look_after(&self) {
        let mut link = lock(&self.link);
        let why = link.as_ref().and_then(|link| link.why_closed());
        if let Some(why) = why {
            *link = None;
            lock(&self.health).lost(self.estate.now(), why);
        }
    }

    /// Starts it in a task of its own.
    fn launch(self: &Arc<Self>) {
        self.estate.admit(self);
        let number = self.number.fetch_add(1, Ordering::Relaxed) + 1;
        let (server, plan) = (Arc::downgrade(self), self.plan.clone());
        let (estate, stop) = (Arc::clone(&self.estate), self.closing.child_token());
        *lock(&self.stop) = stop.clone();
        self.spawn(async move {
            // It must not keep alive whom it is started for.
            let starting = Starting { server: Weak::clone(&server), number };
            let mut held = None;
            let limit = estate.patience.start;
            let met = tokio::select! {
                biased;
                () = stop.cancelled() => Err(Broken::Failed("it was ended".into())),
                met = tokio::time::timeout(limit, plan.meet(&estate, &mut held)) => {
                    met.unwrap_or_else(|_| Err(Broken::late(limit)))
                }
            };
            let failed = met.is_err();
            if let Some(server) = server.upgrade() {
                server.conclude(number, met);
            }
            drop(starting);
            if let (true, Some(held)) = (failed, held) {
                let said = held.complaint();
                let lines = said.lines().take(COMPLAINTS);
                lines.for_each(|line| estate.keeping.journal(&plan.row.name, line));
                held.end(PARTING).await;
            }
        });
    }

    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(work);
    }

    /// Says how a start went. One that no longer counts says nothing.
    fn conclude(self: &Arc<Self>, number: u64, met: Result<Link, Broken>) {
        let counts =
            self.number.compare_exchange(number, number + 1, Ordering::Relaxed, Ordering::Relaxed);
        if counts.is_err() {
            return;
        }
        match met {
            Ok(link) => {
                let link = Arc::new(link);
                *lock(&self.link) = Some(Arc::clone(&link));
                lock(&self.health).started(self.estate.now());
                self.touch();
                self.spawn(attend(Arc::downgrade(self), link, Arc::clone(&self.estate)));
            }
            Err(Broken::Absent) => {
                self.estate.miss(&self.plan.row, &self.plan.root);
                lock(&self.health).forget();
            }
            Err(Broken::Failed(why)) => {
                self.estate.keeping.journal(&self.row().name, &format!("not started: {why}"));
                lock(&self.health).failed(self.estate.now(), why);
            }
        }
        self.tell();
    }

    /// Takes its connection away, if it is this one.
    fn part(&self, from: &Arc<Link>, and: impl FnOnce(&mut Health)) -> bool {
        let mut link = lock(&self.link);
        let same = link.as_ref().is_some_and(|link| Arc::ptr_eq(link, from));
        if same {
            *link = None;
            and(&mut lock(&self.health));
        }
        same
    }

    /// Puts it away until somebody wants it again.
    pub(crate) fn rest(self: &Arc<Self>) {
        // A start that is under way no longer counts.
        self.number.fetch_add(1, Ordering::Relaxed);
        lock(&self.stop).cancel();
        let link = lock(&self.link).take();
        lock(&self.health).forget();
        self.tell();
        if let Some(link) = link {
            self.spawn(async move { link.end().await });
        }
    }

    /// Ends it for good. Nothing of it runs when it returns.
    pub(crate) async fn close(&self) {
        self.closing.cancel();
        let link = lock(&self.link).take();
        lock(&self.health).forget();
        self.tell();
        let mut tasks = std::mem::take(&mut *lock(&self.tasks));
        let ending = async {
            if let Some(link) = link {
                link.end().await;
            }
            while tasks.join_next().await.is_some() {}
        };
        let _ = tokio::time::timeout(END, ending).await;
    }
}

/// Watches one that runs.
async fn attend(server: Weak<Server>, link: Arc<Link>, estate: Arc<Estate>) {
    let often = LOOK.min(estate.patience.idle / 2).max(Duration::from_millis(20));
    let mut looked = Instant::now();
    loop {
        tokio::select! {
            () = link.closed() => {}
            () = tokio::time::sleep(often) => {}
        }
        link.note_complaints();
        let over = match (link.held(), looked.elapsed() >= LOOK) {
            (Some(held), true) => {
                looked = Instant::now();
                let Some(server) = server.upgrade() else { return };
                let most = server.row().memory;
                drop(server);
                (memory(held).await >> 20 > most).then_some(most)
            }
            (Some(_), false) | (None, _) => None,
        };
        let Some(server) = server.upgrade() else { return };
        let idle = server.wanted().elapsed() >= estate.patience.idle && !link.asked();
        let ends = if link.why_closed().is_some() {
            server.look_after();
            true
        } else if let Some(most) = over {
            let why = format!("it used more than {most} MB of memory");
            let ends = server.part(&link, |health| health.failed(estate.now(), why.clone()));
            link.close(&why);
            ends
        } else if idle {
            server.part(&link, Health::forget)
        } else {
            false
        };
        if ends {
            server.tell();
            drop(server);
            link.end().await;
            return;
        }
    }
}

/// The memory of one and of everything it started. It takes a while to add up.
async fn memory(held: &Arc<Held>) -> u64 {
    let held = Arc::clone(held);
    tokio::task::spawn_blocking(move || held.memory()).await.unwrap_or_default()
}
