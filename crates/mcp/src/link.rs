//! A connection to a server: from its first word to its end. What it is over (a pipe, an address)
//! is no matter here.

use crate::listen::{Listener, Switchboard};
use crate::pipe::{Pipe, lock};
use crate::spec::{Keeping, Lifecycle, PinnedTool};
use crate::wire::{Trouble, trouble};
use rmcp::RoleClient;
use rmcp::model::{ProtocolVersion, SubscriptionFilter};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, Peer, RunningService,
    Subscription,
};
use rmcp::transport::Transport;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use windlass_sandbox::{Engaged, Held};

/// How long a server may take to say which revision it speaks.
const PROBE: Duration = Duration::from_secs(5);
/// How long it may take to say that it tells us of changes.
const LISTEN: Duration = Duration::from_secs(5);

/// What a connection says of itself, whoever reads it.
pub(crate) struct Line {
    name: String,
    keeping: Arc<dyn Keeping>,
    closed: watch::Sender<Option<String>>,
    changed: AtomicBool,
}

impl Line {
    pub(crate) fn new(name: &str, keeping: &Arc<dyn Keeping>) -> Arc<Line> {
        Arc::new(Line {
            name: name.to_owned(),
            keeping: Arc::clone(keeping),
            closed: watch::Sender::new(None),
            changed: AtomicBool::new(false),
        })
    }

    /// Writes a line down.
    pub(crate) fn journal(&self, line: &str) {
        self.keeping.journal(&self.name, line);
    }

    /// Nothing more comes; the first reason is the one.
    pub(crate) fn close(&self, why: String) {
        self.closed.send_if_modified(|closed| {
            let first = closed.is_none();
            if first {
                *closed = Some(why);
            }
            first
        });
    }

    /// Waits until nothing more comes, and says why.
    pub(crate) async fn ended(&self) -> String {
        let mut closed = self.closed.subscribe();
        match closed.wait_for(Option::is_some).await {
            Ok(why) => why.clone().unwrap_or_default(),
            Err(_) => "it was ended".to_owned(),
        }
    }

    /// Its tools are no longer what they were.
    pub(crate) fn change(&self) {
        self.changed.store(true, Ordering::Relaxed);
    }
}

/// Why there is no connection.
#[derive(Clone, Debug)]
pub(crate) struct Broken {
    /// What happened.
    pub(crate) why: String,
    /// What the person has to do first, if that is it.
    pub(crate) login: Option<String>,
    /// The server is there, and said what nobody understood.
    odd: bool,
}

impl Broken {
    pub(crate) fn new(why: impl Into<String>) -> Broken {
        Broken { why: why.into(), login: None, odd: false }
    }

    /// True if it may be tried in another way.
    pub(crate) fn is_odd(&self) -> bool {
        self.odd
    }
}

/// A connection.
pub(crate) struct Link {
    running: RunningService<RoleClient, Listener>,
    pub(crate) line: Arc<Line>,
    pub(crate) board: Arc<Switchboard>,
    pub(crate) lifecycle: Lifecycle,
    /// Its tools as it last listed them.
    pub(crate) tools: Mutex<BTreeMap<String, PinnedTool>>,
    held: Option<Arc<Held>>,
    /// How far its complaints were written down.
    heard: Mutex<u64>,
    /// Hears of changes for as long as the connection lasts.
    _listening: JoinSet<()>,
}

impl Link {
    /// Speaks to a program.
    pub(crate) async fn to_servant(
        engaged: Engaged,
        line: Arc<Line>,
        lifecycle: Option<Lifecycle>,
    ) -> Result<Link, Broken> {
        let (input, output, held) = engaged.split();
        let pipe = Pipe::new(output, input, Arc::clone(&line), Arc::downgrade(&held));
        let link = tokio::select! {
            biased;
            link = Link::over(pipe, Arc::clone(&line), lifecycle) => link,
            _ = held.ended() => Err(Broken::new("it exited")),
        };
        match link {
            Ok(mut link) => {
                link.held = Some(held);
                Ok(link)
            }
            Err(mut broken) => {
                let ended = tokio::time::timeout(Duration::from_millis(200), held.ended()).await;
                journal_complaints(&held, &line, &mut 0);
                // Why it ended says more than what was missed because of it.
                if let (false, Ok(_), Some(words)) = (broken.odd, ended, held.last_words()) {
                    broken = Broken::new(words);
                }
                Err(broken)
            }
        }
    }

    /// Speaks over a transport.
    pub(crate) async fn over<T>(
        transport: T,
        line: Arc<Line>,
        lifecycle: Option<Lifecycle>,
    ) -> Result<Link, Broken>
    where
        T: Transport<RoleClient> + 'static,
    {
        let board = Arc::<Switchboard>::default();
        let listener = Listener { board: Arc::clone(&board), line: Arc::clone(&line) };
        let newest = vec![ProtocolVersion::V_2026_07_28];
        let (mode, patience) = match lifecycle {
            Some(Lifecycle::Initialize) => (ClientLifecycleMode::Initialize, None),
            Some(Lifecycle::Discover) => {
                (ClientLifecycleMode::Discover { preferred_versions: newest }, None)
            }
            None => {
                let legacy_version = Some(ProtocolVersion::V_2025_11_25);
                let preferred_versions = newest;
                let mode = ClientLifecycleMode::Auto { preferred_versions, legacy_version };
                (mode, Some(PROBE))
            }
        };
        let meeting = listener.serve_with_lifecycle(transport, mode);
        let met = match patience {
            None => meeting.await.map_err(|error| refused(&error, &line.name)),
            Some(patience) => match tokio::time::timeout(patience, meeting).await {
                Ok(met) => met.map_err(|error| refused(&error, &line.name)),
                Err(_) => {
                    let why = format!("it did not answer within {} s", patience.as_secs());
                    Err(Broken { odd: true, ..Broken::new(why) })
                }
            },
        };
        let running = met?;
        let info = running.peer_info();
        let info = info.as_deref();
        let lifecycle = info.map(|info| Lifecycle::of(&info.protocol_version));
        let tells = info.and_then(|info| info.capabilities.tools.as_ref()?.list_changed);
        let lifecycle = lifecycle.unwrap_or(Lifecycle::Initialize);
        let mut listening = JoinSet::new();
        if lifecycle == Lifecycle::Discover
            && tells == Some(true)
            && let Some(changes) = listen(running.peer()).await
        {
            listening.spawn(follow(changes, Arc::clone(&line)));
        }
        Ok(Link {
            running,
            line,
            board,
            lifecycle,
            tools: Mutex::default(),
            held: None,
            heard: Mutex::new(0),
            _listening: listening,
        })
    }

    pub(crate) fn peer(&self) -> &Peer<RoleClient> {
        self.running.peer()
    }

    /// Why it no longer works, if so.
    pub(crate) fn why_closed(&self) -> Option<String> {
        let said = self.line.closed.borrow().clone();
        // What it started may hold its pipes open after it.
        let said = said.or_else(|| self.held.as_ref()?.last_words());
        said.or_else(|| self.running.is_closed().then(|| "the connection was closed".to_owned()))
    }

    /// True once after its tools have changed.
    pub(crate) fn take_change(&self) -> bool {
        self.line.changed.swap(false, Ordering::Relaxed)
    }

    /// True if the server says it has prompts, or resources.
    pub(crate) fn offers(&self) -> (bool, bool) {
        let info = self.running.peer_info();
        let of = info.as_deref().map(|info| &info.capabilities);
        (of.is_some_and(|of| of.prompts.is_some()), of.is_some_and(|of| of.resources.is_some()))
    }

    /// Writes down what it has complained of since the last time.
    pub(crate) fn note_complaints(&self) {
        if let Some(held) = &self.held {
            journal_complaints(held, &self.line, &mut lock(&self.heard));
        }
    }

    /// The number of its process, if it is one.
    pub(crate) fn pid(&self) -> Option<i32> {
        self.held.as_ref()?.pid()
    }

    /// Ends it.
    pub(crate) async fn end(&self) {
        self.line.close("it was ended".into());
        if let Some(held) = &self.held {
            held.end(Duration::from_secs(1)).await;
        }
    }
}

fn journal_complaints(held: &Held, line: &Line, place: &mut u64) {
    let piece = held.heard_on(*place);
    *place = piece.next;
    for said in piece.text.lines().filter(|said| !said.trim().is_empty()) {
        line.journal(said);
    }
}

async fn listen(peer: &Peer<RoleClient>) -> Option<Subscription> {
    let mut filter = SubscriptionFilter::default();
    filter.tools_list_changed = Some(true);
    tokio::time::timeout(LISTEN, peer.listen(filter)).await.ok()?.ok()
}

/// Hears what a server tells of itself. What it changes in a rush is looked at once.
async fn follow(mut changes: Subscription, line: Arc<Line>) {
    while let Ok(Some(_)) = changes.next().await {
        line.change();
    }
}

/// Why no connection came to be, without everything the server said.
fn refused(error: &ClientInitializeError, name: &str) -> Broken {
    if let Trouble::NeedsLogin { .. } | Trouble::NeedsScope { .. } = trouble(error) {
        let login = Some(format!("run `windlass mcp login {name}`"));
        return Broken { login, ..Broken::new("it wants to know who asks") };
    }
    let (why, odd) = match error {
        ClientInitializeError::ConnectionClosed(_) => ("it closed the connection".into(), false),
        ClientInitializeError::TransportError { error, .. } => {
            (format!("nothing can be sent to it: {error}"), false)
        }
        ClientInitializeError::JsonRpcError(error) => {
            (format!("it refused: {}", crate::call::told(&error.message)), true)
        }
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
            ("it speaks no revision of the protocol that is known here".into(), true)
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => {
            return refused(fallback, name);
        }
        _ => ("its first answer was not understood".into(), true),
    };
    Broken { odd, ..Broken::new(why) }
}
