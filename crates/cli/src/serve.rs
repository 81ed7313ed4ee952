//! `mcp serve`: this project's tools for other programs. A connection is a session and a call is one
//! of its calls, so record, rules, sandbox and undo are those of everything else.

use crate::args::Bounds;
use crate::ask::Stops;
use crate::setup::{Acts, Setup};
use crate::{Exit, screen};
use anyhow::{Context, bail};
use async_trait::async_trait;
use secrecy::SecretString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use windlass_engine::{Engine, Handle, Watcher};
use windlass_mcp::serve::{Door, House, Visit, Wanted, http, pipe};
use windlass_protocol::{
    Answer, BlobRef, Event, Fact, Live, Op, Outcome, Query, Reply, ToolSummary,
};
use windlass_toolkit::Failure;

/// What is of use only to a model that works here, or to a person who is there.
const OURS: &[&str] = &[
    "batch",
    "call_tool",
    "plan_exit",
    "question",
    "skill",
    "task",
    "todoread",
    "todowrite",
    "tool_search",
];
/// How many sessions are open at the same time.
const SESSIONS: usize = 64;
/// How long sessions have to end.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a token is at least, in characters, and the file with it at most, in bytes.
const SHORTEST: usize = 32;
const LONGEST: u64 = 4096;

/// How tools are served.
#[derive(Debug, clap::Args)]
pub(crate) struct Serve {
    /// Serves over HTTP at this port of 127.0.0.1, at /mcp; 0 takes a free one. Without it, one
    /// client is served over standard input and output.
    #[arg(long, value_name = "PORT", requires = "token_file")]
    http: Option<u16>,
    /// The file with the token that clients send as `Authorization: Bearer TOKEN`. It is made if it
    /// is not there; only you may be able to read it.
    #[arg(long, value_name = "FILE", requires = "http")]
    token_file: Option<PathBuf>,
    /// Also takes the token as the last part of the path, /mcp/TOKEN, for clients that can send no
    /// header. Paths are written into logs more often than headers.
    #[arg(long, requires = "http")]
    token_in_path: bool,
    /// Serves only these tools.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    tools: Vec<String>,
    #[command(flatten)]
    bounds: Bounds,
}

/// Serves until the client hangs up, or until somebody stops it.
pub(crate) async fn serve(args: Serve) -> anyhow::Result<Exit> {
    let mut setup = Setup::read(args.bounds.flags(None))?;
    // Other people's servers are theirs to serve; what there is here is told of at once.
    setup.config.servers.clear();
    setup.config.tools.budget = Some(u32::MAX);
    let door = match &args.token_file {
        Some(file) => Some(Door { token: token(file)?, in_path: args.token_in_path }),
        None => None,
    };
    let engine = setup.host_for(Acts::Commands).await?;
    let tools = served(&engine, &args.tools).await?;
    let stop = CancellationToken::new();
    let home = Arc::new(Home {
        engine: Arc::new(engine),
        tools,
        room: Arc::new(Semaphore::new(SESSIONS)),
        tasks: TaskTracker::new(),
        stop: stop.clone(),
    });
    let mut stops = Stops::new()?;
    let serving = serve_at(Arc::clone(&home), args.http.zip(door), stop.clone());
    tokio::pin!(serving);
    let served = tokio::select! {
        served = &mut serving => served,
        () = stops.pressed() => {
            stop.cancel();
            serving.await
        }
    };
    stop.cancel();
    home.tasks.close();
    // Sessions that do not end in time go on when they are opened again.
    let _ = tokio::time::timeout(PATIENCE, home.tasks.wait()).await;
    served?;
    Ok(Exit::Done)
}

#[allow(clippy::disallowed_types, reason = "a port that the person names is opened for clients")]
async fn serve_at(
    home: Arc<Home>,
    http_at: Option<(u16, Door)>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let Some((port, door)) = http_at else {
        pipe(home, (tokio::io::stdin(), tokio::io::stdout()), stop).await?;
        return Ok(());
    };
    let taken = || format!("port {port} of 127.0.0.1 cannot be used");
    let listener = std::net::TcpListener::bind(("127.0.0.1", port)).with_context(taken)?;
    let address = listener.local_addr().with_context(taken)?;
    screen::note(&format!("serving at http://{address}/mcp; the token is in the token file"));
    http(home, listener, door, stop).await?;
    Ok(())
}

/// The tools a client is told of.
async fn served(engine: &Engine, only: &[String]) -> anyhow::Result<Vec<ToolSummary>> {
    let Reply::Tools { mut tools } = engine.query(Query::Tools).await? else {
        bail!("the tools of this project are not known");
    };
    tools.retain(|tool| !OURS.contains(&tool.name.as_str()));
    let known = |name: &String| tools.iter().any(|tool| tool.name == *name);
    if let Some(unknown) = only.iter().find(|name| !known(name)) {
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        bail!("there is no tool {unknown} to serve. There is: {}", names.join(", "));
    }
    tools.retain(|tool| only.is_empty() || only.contains(&tool.name));
    Ok(tools)
}

/// The token of a file, which is made if it is not there.
fn token(file: &Path) -> anyhow::Result<SecretString> {
    let name = file.to_str().context("the token file's name is no text")?;
    if !Setup::is_there(file) {
        use std::io::Write;
        let mut made = Setup::new_file(name)?;
        let token: String = Setup::chance()?.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(made, "{token}").with_context(|| format!("{name} cannot be written"))?;
        return Ok(SecretString::from(token));
    }
    Setup::check_private(file)?;
    let bytes = Setup::file(name, LONGEST)?;
    let text = String::from_utf8_lossy(&bytes);
    let token = text.trim();
    if token.len() < SHORTEST || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        bail!(
            "{name} holds no token: one line of at least {SHORTEST} letters and digits. Remove it, and a new one is made"
        );
    }
    Ok(SecretString::from(token.to_owned()))
}

/// Who serves.
struct Home {
    engine: Arc<Engine>,
    tools: Vec<ToolSummary>,
    room: Arc<Semaphore>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

#[async_trait]
impl House for Home {
    fn tools(&self) -> &[ToolSummary] {
        &self.tools
    }

    async fn visit(&self, client: &str) -> Result<Arc<dyn Visit>, Failure> {
        let Ok(place) = Arc::clone(&self.room).try_acquire_owned() else {
            let text = format!("{SESSIONS} sessions are open already; close one, then call again");
            return Err(Failure::new(text));
        };
        let created = self.engine.create().await;
        let (handle, watcher) = created.map_err(|fault| Failure::new(fault.to_string()))?;
        let client = if client.is_empty() { "a client" } else { client };
        handle.send(Op::Rename { title: format!("Tools for {client}") }).await;
        let (orders, taken) = mpsc::channel(1);
        let desk = Desk { handle, watcher, stop: self.stop.clone(), _place: place };
        self.tasks.spawn(desk.attend(taken));
        Ok(Arc::new(Session { orders, engine: Arc::clone(&self.engine) }))
    }
}

/// A connection, as the server sees it.
struct Session {
    orders: mpsc::Sender<Order>,
    engine: Arc<Engine>,
}

/// A call, and who waits for what becomes of it.
type Order = (Wanted, oneshot::Sender<Outcome>);

#[async_trait]
impl Visit for Session {
    async fn call(&self, wanted: Wanted) -> Option<Outcome> {
        let (tell, told) = oneshot::channel();
        self.orders.send((wanted, tell)).await.ok()?;
        told.await.ok()
    }

    async fn blob(&self, blob: &BlobRef) -> Option<Vec<u8>> {
        self.engine.recall(blob).await.ok()
    }
}

/// Where a session's calls are made, one after the other. It is closed when the connection is.
struct Desk {
    handle: Handle,
    watcher: Watcher,
    stop: CancellationToken,
    _place: OwnedSemaphorePermit,
}

impl Desk {
    async fn attend(mut self, mut orders: mpsc::Receiver<Order>) {
        loop {
            let order = tokio::select! {
                order = orders.recv() => order,
                () = self.stop.cancelled() => None,
            };
            let Some((wanted, tell)) = order else { break };
            if self.carry_out(wanted, tell).await.is_none() {
                break;
            }
        }
        if let Err(fault) = self.handle.close().await {
            screen::note(&format!("note: a session ended badly: {fault}"));
        }
    }

    /// Makes a call and sees it through. None if the session has stopped.
    async fn carry_out(
        &mut self,
        wanted: Wanted,
        mut tell: oneshot::Sender<Outcome>,
    ) -> Option<()> {
        let Wanted { tool, arguments, progress, cancel } = wanted;
        if cancel.is_cancelled() || tell.is_closed() {
            return Some(());
        }
        self.handle.send(Op::Call { tool, arguments }).await.then_some(())?;
        let (mut outcome, mut stopped) = (None, false);
        loop {
            let event = tokio::select! {
                event = self.watcher.next() => event.ok()??,
                () = unwanted((&cancel, &self.stop), &mut tell), if !stopped => {
                    stopped = true;
                    self.handle.send(Op::Interrupt).await;
                    continue;
                }
            };
            match &*event {
                Event::Live(live) => {
                    if let Live::Progress { text, .. } = &live.live {
                        // A client that is slow to hear it misses some.
                        let _ = progress.try_send(text.clone());
                    }
                }
                Event::Fact(record) => {
                    if let Some(op) = answer(&record.fact) {
                        self.handle.send(op).await;
                    }
                    if let Fact::Settled { outcome: settled, .. } = &record.fact {
                        outcome = Some(settled.clone());
                    }
                    if let Fact::TurnEnded { .. } = &record.fact {
                        break;
                    }
                }
            }
        }
        if let Some(outcome) = outcome {
            // Who has left in the meantime does not hear it; it is on record.
            let _ = tell.send(outcome);
        }
        Some(())
    }
}

/// Resolves when nobody wants a call's end any more.
async fn unwanted(
    (cancel, stop): (&CancellationToken, &CancellationToken),
    tell: &mut oneshot::Sender<Outcome>,
) {
    tokio::select! {
        () = cancel.cancelled() => {}
        () = stop.cancelled() => {}
        () = tell.closed() => {}
    }
}

/// What is said where a person would be asked: nobody is there.
fn answer(fact: &Fact) -> Option<Op> {
    if let Fact::Asked { call, reason, .. } = fact {
        let reason = format!(
            "{reason}, and nobody is asked while tools are served. A rule can allow it: \
             \"permission\" in the config of who serves them"
        );
        return Some(Op::Answer { call: *call, answer: Answer::No { reason: Some(reason) } });
    }
    if let Fact::Inquired { call, .. } = fact {
        return Some(Op::Reply { call: *call, replies: Vec::new() });
    }
    None
}
