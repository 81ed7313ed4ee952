//! One server: whether it runs, what a call does about it if not, and which of its tools are ours.
//!
//! It is started when somebody wants it, in a task of its own, so that whoever waits may leave. In
//! mode plan there is a second process that can change nothing. Start reading at [`Server::call`].

use crate::call::{Broke, Terms};
use crate::link::{Broken, Line, Link};
use crate::list;
use crate::pipe::lock;
use crate::remote;
use crate::shelf::Known;
use crate::spec::{Keeping, Lifecycle, Pinned, Spec, Way};
use crate::tool::Foreign;
use rmcp::model::{CallToolRequestParams, CallToolResult};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use windlass_protocol::Mode;
use windlass_toolkit::health::{Health, State, Want};
use windlass_toolkit::{Berth, Cx, Failure, Loose};

/// How long a server may say nothing while it works on a call.
const IDLE: Duration = Duration::from_secs(120);
/// How long a call may take in all.
const MOST: Duration = Duration::from_secs(600);

/// A server.
pub(crate) struct Server {
    spec: Spec,
    berth: Berth,
    pub(crate) registry: Loose,
    pub(crate) keeping: Arc<dyn Keeping>,
    /// The one that may change things, and the one that may not.
    posts: [Post; 2],
    pub(crate) known: Mutex<Known>,
    since: Instant,
    starts: Mutex<JoinSet<()>>,
}

/// One process or connection of a server, and how it is doing.
struct Post {
    health: Mutex<Health>,
    link: Mutex<Option<Arc<Link>>>,
    /// Counts what has happened, so that others can wait for it.
    news: watch::Sender<u64>,
}

/// Says that a start failed, if nobody says anything else.
struct Starting<'a> {
    server: &'a Server,
    post: &'a Post,
    said: bool,
}

impl Drop for Starting<'_> {
    fn drop(&mut self) {
        if !self.said {
            lock(&self.post.health).failed(self.server.now(), "its start was stopped".into());
        }
        self.post.news.send_modify(|count| *count += 1);
    }
}

impl Server {
    pub(crate) fn new(
        mut spec: Spec,
        berth: Berth,
        registry: Loose,
        keeping: Arc<dyn Keeping>,
    ) -> Arc<Server> {
        let post = || Post {
            health: Mutex::new(Health::new(&spec.name)),
            link: Mutex::new(None),
            news: watch::Sender::new(0),
        };
        let posts = [post(), post()];
        let pins = spec.pins.take().filter(|pins| pins.spec == spec.digest);
        Arc::new(Server {
            berth,
            registry,
            keeping,
            posts,
            known: Mutex::new(Known { pins, shelf: BTreeMap::new() }),
            since: Instant::now(),
            starts: Mutex::default(),
            spec,
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.spec.name
    }

    /// How it is doing.
    pub(crate) fn state(&self) -> State {
        let [open, _] = &self.posts;
        lock(&open.health).state().clone()
    }

    /// What was looked at, or what came first.
    pub(crate) fn pins(&self) -> Option<Pinned> {
        lock(&self.known).pins.clone()
    }

    fn now(&self) -> Duration {
        self.since.elapsed()
    }

    fn post(&self, mode: Mode) -> &Post {
        let [open, shut] = &self.posts;
        match (mode, &self.spec.way) {
            (Mode::Plan, Way::Local(_)) => shut,
            (Mode::Plan, Way::Remote { .. }) | (Mode::Ask | Mode::Auto | Mode::Full, _) => open,
        }
    }

    /// A connection that works, made now if need be.
    pub(crate) async fn link(
        self: &Arc<Self>,
        mode: Mode,
        cancel: &CancellationToken,
    ) -> Result<Arc<Link>, Failure> {
        let connecting = self.connected(mode, Health::want);
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(Broke::Stopped.failure(self.name())),
            link = connecting => link,
        }
    }

    async fn connected(
        self: &Arc<Self>,
        mode: Mode,
        want: fn(&mut Health, Duration) -> Want,
    ) -> Result<Arc<Link>, Failure> {
        let post = self.post(mode);
        let mut news = post.news.subscribe();
        let mut tried = false;
        loop {
            news.mark_unchanged();
            self.look_after(post);
            let wanted = want(&mut lock(&post.health), self.now());
            match wanted {
                Want::Go => {
                    let link = lock(&post.link).clone();
                    if let Some(link) = link {
                        return Ok(link);
                    }
                    lock(&post.health).lost(self.now(), "the connection was closed".into());
                }
                Want::Fail(words) => return Err(Failure::new(words)),
                // A start of its own that came to nothing is not made again by the same call.
                Want::Start if tried => {
                    let why = "it ended as soon as it was started";
                    lock(&post.health).failed(self.now(), why.into());
                }
                Want::Start => {
                    tried = true;
                    self.launch(mode);
                    let _ = news.changed().await;
                }
                Want::Wait => {
                    let _ = news.changed().await;
                }
            }
        }
    }

    /// Takes note of a connection that has ended meanwhile.
    fn look_after(&self, post: &Post) {
        let mut link = lock(&post.link);
        let why = link.as_ref().and_then(|link| link.why_closed());
        if let Some(why) = why {
            if let Some(link) = link.take() {
                link.note_complaints();
            }
            lock(&post.health).lost(self.now(), why);
        }
    }

    /// Starts it in a task of its own.
    fn launch(self: &Arc<Self>, mode: Mode) {
        let server = Arc::clone(self);
        let mut starts = lock(&self.starts);
        while starts.try_join_next().is_some() {}
        starts.spawn(async move {
            let post = server.post(mode);
            let mut starting = Starting { server: &server, post, said: false };
            let limit = server.spec.timeout;
            let met = match tokio::time::timeout(limit, server.meet(mode)).await {
                Ok(met) => met,
                Err(_) => {
                    let after = limit.as_secs_f32();
                    Err(Broken::new(format!("it did not answer within {after} s")))
                }
            };
            starting.said = true;
            match met {
                Ok(link) => {
                    *lock(&post.link) = Some(Arc::new(link));
                    lock(&post.health).started(server.now());
                }
                Err(Broken { login: Some(how), .. }) => lock(&post.health).needs_login(how),
                Err(broken) => server.failed(post, broken.why),
            }
        });
    }

    /// The start of one that nobody waits for.
    pub(crate) fn begin(self: &Arc<Self>) {
        let mode = self.berth.mode();
        let wanted = lock(&self.post(mode).health).want(self.now());
        if wanted == Want::Start {
            self.launch(mode);
        }
    }

    /// Waits until it is there.
    pub(crate) async fn arrive(self: &Arc<Self>) -> Result<Arc<Link>, Failure> {
        self.connected(self.berth.mode(), Health::want).await
    }

    fn failed(&self, post: &Post, why: String) {
        self.keeping.journal(self.name(), &format!("not started: {why}"));
        let mut health = lock(&post.health);
        health.failed(self.now(), why);
        if let State::Dead { why } = health.state() {
            let name = self.name();
            self.keeping.notice(format!("{name} is given up for this session: {why}"));
        }
    }

    /// Connects, and learns what it has.
    async fn meet(self: &Arc<Self>, mode: Mode) -> Result<Link, Broken> {
        let link = self.greet(mode).await?;
        let broke = |broke: Broke| {
            let why = match broke {
                Broke::Unsent(why) | Broke::Lost(why) => why,
                other => other.failure("it").text,
            };
            Broken::new(link.why_closed().unwrap_or(why))
        };
        let listed = list::tools(&link).await.map_err(broke)?;
        let (prompts, resources) = link.offers();
        let prompts = match prompts {
            // They are a convenience: a server that cannot list them still has tools.
            true => list::prompts(&link).await.unwrap_or_default(),
            false => Vec::new(),
        };
        *lock(&link.tools) = listed.tools.clone();
        let learnt = Pinned {
            spec: self.spec.digest.clone(),
            lifecycle: link.lifecycle,
            tools: Vec::new(),
            prompts,
            resources,
        };
        self.adopt(listed, Some(learnt));
        Ok(link)
    }

    /// Finds the revision of the protocol that both speak.
    async fn greet(&self, mode: Mode) -> Result<Link, Broken> {
        if let Some(said) = self.spec.protocol {
            return self.connect(mode, Some(said)).await;
        }
        let known = self.pins().map(|pins| pins.lifecycle);
        if let Some(known) = known {
            match self.connect(mode, Some(known)).await {
                Err(broken) if broken.is_odd() => {}
                other => return other,
            }
        }
        match self.connect(mode, None).await {
            Err(broken) if broken.is_odd() => self.connect(mode, Some(Lifecycle::Initialize)).await,
            other => other,
        }
    }

    async fn connect(&self, mode: Mode, lifecycle: Option<Lifecycle>) -> Result<Link, Broken> {
        let line = Line::new(self.name(), &self.keeping);
        match &self.spec.way {
            way @ Way::Remote { .. } => remote::connect(way, line, lifecycle).await,
            Way::Local(servant) => {
                let engaged = self.berth.in_mode(mode).engage((**servant).clone()).await;
                let engaged = engaged.map_err(|failure| Broken::new(failure.text))?;
                Link::to_servant(engaged, line, lifecycle).await
            }
        }
    }

    /// Calls a tool: over a connection that is there, or made once for this call.
    pub(crate) async fn call(
        self: &Arc<Self>,
        tool: &Foreign,
        input: Map<String, Value>,
        cx: &Cx<'_>,
    ) -> Result<CallToolResult, Failure> {
        let (mode, cancel) = (cx.world.mode(), &cx.cancel);
        let mut params = CallToolRequestParams::new(tool.remote.clone());
        params.arguments = Some(input);
        let terms =
            Terms { idle: IDLE, most: MOST, cancel: cancel.clone(), caller: Some(cx.caller) };
        let post = self.post(mode);
        self.look_after(post);
        let ready = matches!(lock(&post.health).state(), State::Ready { .. });
        // Each call may have it started once.
        let want = if ready { Health::want } else { Health::want_again };
        let mut link = self.link(mode, cancel).await?;
        for again in [false, true] {
            self.refresh(&link).await;
            let live = lock(&link.tools).get(&tool.remote).map(|live| live.digest.clone());
            tool.check(live.as_deref())?;
            self.accept(tool);
            let result = link.call(params.clone(), &terms).await;
            link.note_complaints();
            self.refresh(&link).await;
            let broke = match result {
                Ok(result) => return Ok(result),
                Err(broke) => broke,
            };
            let harmless = match &broke {
                Broke::Unsent(_) => true,
                Broke::Lost(_) => tool.may_repeat(),
                Broke::Slow(_) | Broke::Stopped | Broke::Refused(_) | Broke::Odd => false,
            };
            if again || !harmless {
                self.look_after(post);
                return Err(broke.failure(self.name()));
            }
            link = tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(Broke::Stopped.failure(self.name())),
                link = self.connected(mode, want) => link?,
            };
        }
        Err(Broke::Odd.failure(self.name()))
    }

    /// Reads its list of tools anew if it said that they have changed.
    async fn refresh(self: &Arc<Self>, link: &Link) {
        if !link.take_change() || link.why_closed().is_some() {
            return;
        }
        match list::tools(link).await {
            Ok(listed) => {
                *lock(&link.tools) = listed.tools.clone();
                self.adopt(listed, None);
            }
            Err(broke) => {
                let why = broke.failure(self.name()).text;
                self.keeping.journal(self.name(), &format!("its list was not read anew: {why}"));
            }
        }
    }

    /// Ends it.
    pub(crate) async fn close(&self) {
        for post in &self.posts {
            let link = lock(&post.link).take();
            if let Some(link) = link {
                link.note_complaints();
                link.end().await;
            }
        }
    }
}
