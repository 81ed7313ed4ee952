//! A connection to a server: who asked what, what is on its way to it, and what it says of itself.
//!
//! Nobody waits longer than they said: a question that is dropped or late is called off, and all end
//! at once with the connection. What is sent goes out in the order in which it was said, and a server
//! that does not read is not written to for ever. Start reading at [`Link::meet`], then at
//! [`Link::request`].

use crate::desk::Desk;
use crate::frame::framed;
use crate::hear::{listen, mourn};
use crate::offer::{Offers, registered_as, said};
use crate::place::Encoding;
use crate::reply::Terms;
use crate::say::write;
use crate::work::Work;
use crate::{Keeping, Row};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use windlass_protocol::text::beginning;
use windlass_sandbox::Held;
use windlass_toolkit::bound::plain;

/// So many questions may be open.
const OPEN: usize = 64;
/// So many bytes may be on their way to a server, if it is more than one message.
const QUEUE: usize = 24 << 20;
/// What a message costs besides its bytes.
pub(crate) const MESSAGE: usize = 256;
/// So many questions in a row may stay without an answer while it says nothing at all.
const LATE: u32 = 3;
/// How much of a text of a server is shown on one line.
const SHOWN: usize = 400;
/// How long it may take over each step of its end.
const PARTING: Duration = Duration::from_secs(1);

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Refusal {
    /// The server says so.
    Error {
        /// The number of it.
        code: i64,
        /// Its words.
        message: String,
        /// What it says besides.
        data: Value,
    },
    /// It took longer than whoever asked wanted to wait.
    Late,
    /// The connection has ended, for this reason.
    Lost(String),
}

/// Both ends of a connection, and what the server is told first.
pub(crate) struct Meeting<R, W> {
    pub(crate) reader: R,
    pub(crate) writer: W,
    /// What keeps it running, if it is a program.
    pub(crate) held: Option<Arc<Held>>,
    pub(crate) row: Arc<Row>,
    pub(crate) keeping: Arc<dyn Keeping>,
    /// The root of the workspace.
    pub(crate) workspace: PathBuf,
    /// Where its project begins, as a whole path.
    pub(crate) root: PathBuf,
    pub(crate) terms: Terms,
    /// The parameters of `initialize`.
    pub(crate) first: Value,
    /// After so long without a word it may be given up.
    pub(crate) silence: Duration,
}

/// A connection to a server that has answered `initialize`.
pub(crate) struct Link {
    wire: Arc<Wire>,
    workspace: PathBuf,
    root: PathBuf,
    capabilities: Value,
    encoding: Encoding,
    desk: Arc<Desk>,
    held: Option<Arc<Held>>,
    /// How far its complaints were written down.
    heard: Mutex<u64>,
    /// They end with it.
    _tasks: JoinSet<()>,
}

/// What both ends of a connection know.
pub(crate) struct Wire {
    name: String,
    keeping: Arc<dyn Keeping>,
    pub(crate) terms: Terms,
    silence: Duration,
    outgoing: mpsc::UnboundedSender<Vec<u8>>,
    /// How much is on its way, in bytes.
    pub(crate) queued: AtomicUsize,
    pub(crate) state: Mutex<Exchange>,
    closed: watch::Sender<Option<String>>,
    busy: watch::Sender<Option<String>>,
    /// It is there once the server has answered `initialize`.
    pub(crate) desk: OnceLock<Arc<Desk>>,
}

/// Who asked what, and what the server does.
pub(crate) struct Exchange {
    next: i64,
    pending: HashMap<i64, oneshot::Sender<Result<Value, Refusal>>>,
    pub(crate) offers: Offers,
    work: Work,
    /// When it last said anything.
    heard: Instant,
    /// Questions without an answer in a row, and when the last of them was given up.
    late: (u32, Instant),
}

/// Calls a question off if nobody waits for its answer any more.
struct Asked<'a> {
    wire: &'a Wire,
    id: i64,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        let open = lock(&self.wire.state).pending.remove(&self.id).is_some();
        if open {
            let params = json!({"id": self.id});
            self.wire.notify("$/cancelRequest", params);
        }
    }
}

impl Link {
    /// Says hello. Whoever calls this sees to it that it does not take for ever.
    pub(crate) async fn meet<R, W>(meeting: Meeting<R, W>) -> Result<Link, String>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let Meeting { reader, writer, held, row, keeping, workspace, root, terms, first, silence } =
            meeting;
        let (outgoing, incoming) = mpsc::unbounded_channel();
        let now = Instant::now();
        let exchange = Exchange {
            next: 1,
            pending: HashMap::new(),
            offers: Offers::default(),
            work: Work::default(),
            heard: now,
            late: (0, now),
        };
        let wire = Arc::new(Wire {
            name: row.name.clone(),
            keeping,
            terms,
            silence,
            outgoing,
            queued: AtomicUsize::new(0),
            state: Mutex::new(exchange),
            closed: watch::Sender::new(None),
            busy: watch::Sender::new(None),
            desk: OnceLock::new(),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(write(writer, incoming, Arc::clone(&wire)));
        let weak = held.as_ref().map(Arc::downgrade).unwrap_or_default();
        tasks.spawn(listen(reader, Arc::clone(&wire), weak));
        if let Some(held) = held.clone() {
            tasks.spawn(mourn(held, Arc::clone(&wire)));
        }
        // The limit is somebody else's.
        let hello = wire.request("initialize", first, Duration::from_secs(3_600)).await;
        let mut hello = hello.map_err(|refusal| match refusal {
            Refusal::Error { message, .. } => format!("it refused to start: {message}"),
            Refusal::Late => "it did not answer".to_owned(),
            Refusal::Lost(why) => why,
        })?;
        let capabilities = hello.get_mut("capabilities").map(Value::take);
        let capabilities = capabilities.filter(Value::is_object);
        let capabilities = capabilities.ok_or("its first answer was not understood")?;
        let encoding = match capabilities.get("positionEncoding").and_then(Value::as_str) {
            Some("utf-8") => Encoding::Utf8,
            Some("utf-32") => Encoding::Utf32,
            Some(_) | None => Encoding::Utf16,
        };
        let desk = Arc::new(Desk::new(&workspace, encoding, &row));
        let desk = Arc::clone(wire.desk.get_or_init(|| desk));
        wire.notify("initialized", json!({}));
        if !wire.terms.settings.is_null() {
            let settings = json!({"settings": wire.terms.settings});
            wire.notify("workspace/didChangeConfiguration", settings);
        }
        let heard = Mutex::new(0);
        Ok(Link { wire, workspace, root, capabilities, encoding, desk, held, heard, _tasks: tasks })
    }

    /// Asks, and waits as long as the limit says. If nobody waits any more, the question is called
    /// off.
    pub(crate) async fn request(
        &self,
        method: &str,
        params: Value,
        limit: Duration,
    ) -> Result<Value, Refusal> {
        self.wire.request(method, params, limit).await
    }

    /// Tells it something, in order with what is asked. Nobody hears of it if the connection has
    /// ended.
    pub(crate) fn notify(&self, method: &str, params: Value) {
        self.wire.notify(method, params);
    }

    /// What it counts characters in.
    pub(crate) fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// What it said of itself when it started.
    pub(crate) fn capabilities(&self) -> &Value {
        &self.capabilities
    }

    /// True if it knows a method.
    pub(crate) fn offers(&self, method: &str) -> bool {
        self.options(method).is_some()
    }

    /// What it says of a method, by what it registered last or else when it started; `None` if it
    /// does not know it.
    pub(crate) fn options(&self, method: &str) -> Option<Value> {
        let registered = lock(&self.wire.state).offers.options(registered_as(method)).cloned();
        registered.or_else(|| said(&self.capabilities, method).cloned())
    }

    /// True if it wants to hear of a file, named from the root of the workspace.
    pub(crate) fn watches(&self, path: &str) -> bool {
        let whole = self.workspace.join(path);
        let inner = whole.strip_prefix(&self.root).ok().and_then(Path::to_str);
        let Some(whole) = whole.to_str() else { return false };
        lock(&self.wire.state).offers.watches(whole, inner)
    }

    /// What it works on, in its own words.
    pub(crate) fn busy(&self) -> Option<String> {
        self.wire.busy.borrow().clone()
    }

    /// Waits until it works on nothing; false if that takes longer than the limit.
    pub(crate) async fn idle(&self, limit: Duration) -> bool {
        let mut busy = self.wire.busy.subscribe();
        let idle = busy.wait_for(Option::is_none);
        tokio::time::timeout(limit, idle).await.is_ok_and(|idle| idle.is_ok())
    }

    /// What is open at it, and what it said about that.
    pub(crate) fn desk(&self) -> &Arc<Desk> {
        &self.desk
    }

    /// Why it no longer works, if so.
    pub(crate) fn why_closed(&self) -> Option<String> {
        self.wire.closed.borrow().clone()
    }

    /// Waits until it no longer works.
    pub(crate) async fn closed(&self) {
        let _ = self.wire.closed.subscribe().wait_for(Option::is_some).await;
    }

    /// True if somebody waits for an answer.
    pub(crate) fn asked(&self) -> bool {
        !lock(&self.wire.state).pending.is_empty()
    }

    /// What keeps it running.
    pub(crate) fn held(&self) -> Option<&Arc<Held>> {
        self.held.as_ref()
    }

    /// Writes down what it has complained of since the last time.
    pub(crate) fn note_complaints(&self) {
        let Some(held) = &self.held else { return };
        let mut place = lock(&self.heard);
        let piece = held.heard_on(*place);
        *place = piece.next;
        let lines = piece.text.lines().filter(|line| !line.trim().is_empty());
        lines.take(100).for_each(|line| self.wire.journal(line));
    }

    /// Ends it: it is asked to, then told to, then made to.
    pub(crate) async fn end(&self) {
        if self.why_closed().is_none() {
            let _ = self.request("shutdown", Value::Null, PARTING).await;
            self.notify("exit", Value::Null);
            if let Some(held) = &self.held {
                let _ = tokio::time::timeout(PARTING, held.ended()).await;
            }
        }
        self.close("it was ended");
        self.note_complaints();
        if let Some(held) = &self.held {
            held.end(PARTING).await;
        }
    }

    /// Ends the connection, for a reason that those hear who wait.
    pub(crate) fn close(&self, why: &str) {
        self.wire.close(why.to_owned());
    }
}

impl Wire {
    async fn request(
        &self,
        method: &str,
        params: Value,
        limit: Duration,
    ) -> Result<Value, Refusal> {
        let (answer, answered) = oneshot::channel();
        let since = Instant::now();
        let id = {
            let mut state = lock(&self.state);
            if state.pending.len() >= OPEN {
                let message = "too many questions are open at once".to_owned();
                return Err(Refusal::Error { code: 0, message, data: Value::Null });
            }
            let id = state.next;
            state.next += 1;
            state.pending.insert(id, answer);
            id
        };
        let asked = Asked { wire: self, id };
        let mut message = json!({"jsonrpc": "2.0", "id": id, "method": method});
        if let (Some(message), false) = (message.as_object_mut(), params.is_null()) {
            message.insert("params".into(), params);
        }
        self.send(&message);
        // It may have ended before anybody knew of this question.
        let lost = || Refusal::Lost(self.closed.borrow().clone().unwrap_or_default());
        if self.closed.borrow().is_some() {
            return Err(lost());
        }
        let Ok(answer) = tokio::time::timeout(limit, answered).await else {
            drop(asked);
            self.note_late(since);
            return Err(Refusal::Late);
        };
        answer.unwrap_or_else(|_| Err(lost()))
    }

    fn notify(&self, method: &str, params: Value) {
        let mut message = json!({"jsonrpc": "2.0", "method": method});
        if let (Some(message), false) = (message.as_object_mut(), params.is_null()) {
            message.insert("params".into(), params);
        }
        self.send(&message);
    }

    /// Has a message sent. Too much of what nobody reads ends the connection.
    pub(crate) fn send(&self, message: &Value) {
        if self.closed.borrow().is_some() {
            return;
        }
        let bytes = framed(message.to_string().as_bytes());
        let cost = bytes.len() + MESSAGE;
        let before = self.queued.fetch_add(cost, Ordering::Relaxed);
        if before > 0 && before + cost > QUEUE {
            self.close("it does not read what it is sent".into());
            return;
        }
        let _ = self.outgoing.send(bytes);
    }

    /// Hands an answer to who asked. False if nobody ever asked that.
    pub(crate) fn answered(&self, id: i64, answer: Result<Value, Refusal>) -> bool {
        let mut state = lock(&self.state);
        // One that was called off may be answered all the same.
        let known = (1..state.next).contains(&id);
        let waiting = state.pending.remove(&id);
        drop(state);
        if let Some(waiting) = waiting {
            let _ = waiting.send(answer);
        }
        known
    }

    /// It said something.
    pub(crate) fn note_life(&self) {
        let mut state = lock(&self.state);
        (state.heard, state.late.0) = (Instant::now(), 0);
    }

    /// A question has had no answer. One that stays silent is given up.
    fn note_late(&self, since: Instant) {
        let now = Instant::now();
        let mut state = lock(&self.state);
        // Questions that wait side by side count once.
        if state.heard > since || (state.late.0 > 0 && since < state.late.1) {
            return;
        }
        state.late = (state.late.0 + 1, now);
        let silent = now.duration_since(state.heard) >= self.silence;
        let over = state.late.0 >= LATE && silent;
        drop(state);
        if over {
            self.close(format!("it left {LATE} questions in a row without an answer"));
        }
    }

    /// Nothing more comes; the first reason is the one.
    pub(crate) fn close(&self, why: String) {
        let first = self.closed.send_if_modified(|closed| {
            let first = closed.is_none();
            if first {
                *closed = Some(why);
            }
            first
        });
        if first {
            let pending = std::mem::take(&mut lock(&self.state).pending);
            drop(pending);
            self.busy.send_replace(None);
            if let Some(desk) = self.desk.get() {
                desk.lost();
            }
        }
    }

    /// What was pulled from it no longer counts.
    pub(crate) fn refreshed(&self) {
        if let Some(desk) = self.desk.get() {
            desk.refreshed();
        }
    }

    /// Writes a line down.
    pub(crate) fn journal(&self, line: &str) {
        self.keeping.journal(&self.name, &shown(line));
    }

    /// It says what it works on.
    pub(crate) fn progress(&self, params: &Value) {
        let said = {
            let mut state = lock(&self.state);
            state.work.hear(params);
            state.work.said()
        };
        self.busy.send_if_modified(|busy| {
            let new = *busy != said;
            *busy = said;
            new
        });
    }
}

/// A text of a server on one line that hides nothing.
pub(crate) fn shown(text: &str) -> String {
    beginning(&plain(&beginning(text, SHOWN)).replace(['\n', '\r'], " "), SHOWN)
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
