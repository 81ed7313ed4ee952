//! The pipe to a server that is a program: one JSON message a line, bounded before anybody else sees
//! a byte of it.
//!
//! What is too long ends the connection; what is no message is counted, and ends it if there is too
//! much of it. Requests and notifications that nobody here wants are answered or dropped here, so
//! that a flood of them starts nothing. Start reading at [`Pipe::receive`].

use crate::link::Line;
use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ErrorCode, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;
use windlass_sandbox::Held;

/// How long a line may be.
pub(crate) const LINE: usize = 8 << 20;
/// So many lines may be no messages.
const NOISE: usize = 100;
/// So many bytes may be no messages.
const NOISE_BYTES: usize = 1 << 20;
/// So many requests of the server may be open.
const OPEN: usize = 8;
/// So many notices of progress are heard in a second for one call.
const PROGRESS: u32 = 20;
/// How long we wait for a program that closed its output to end, to learn why.
const END: Duration = Duration::from_millis(500);
/// How much of a line the journal is told.
const SHOWN: usize = 400;

/// A pipe.
pub(crate) struct Pipe<R> {
    reader: BufReader<R>,
    /// The line that is being read.
    line: Vec<u8>,
    outgoing: mpsc::Sender<Outgoing>,
    state: Arc<Mutex<Exchange>>,
    up: Arc<Line>,
    /// The program, which does not run for the pipe's sake.
    held: Weak<Held>,
    noise: (usize, usize),
    heard: Heard,
    /// Ends with the pipe.
    _writer: JoinSet<()>,
}

struct Outgoing {
    bytes: Vec<u8>,
    done: Option<oneshot::Sender<io::Result<()>>>,
}

/// Who has asked whom what.
#[derive(Default)]
struct Exchange {
    asked: HashSet<RequestId>,
    open: HashSet<RequestId>,
}

/// What was heard in this second.
struct Heard {
    since: Instant,
    progress: HashMap<String, u32>,
    journal: u32,
}

/// What can be said of a message at a glance.
#[derive(Deserialize)]
struct Glance<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: Option<String>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

/// What a notice of progress is about.
#[derive(Deserialize)]
struct About<'a> {
    #[serde(borrow, rename = "progressToken")]
    token: &'a RawValue,
}

/// What becomes of a line.
enum Taken {
    Message(Box<ServerJsonRpcMessage>),
    Dropped,
    Noise(&'static str),
}

impl<R: AsyncRead + Send + Unpin> Pipe<R> {
    /// A pipe over both ends of a program.
    pub(crate) fn new<W>(reader: R, writer: W, up: Arc<Line>, held: Weak<Held>) -> Pipe<R>
    where
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let (outgoing, incoming) = mpsc::channel(64);
        let mut tasks = JoinSet::new();
        tasks.spawn(write(writer, incoming));
        let heard = Heard { since: Instant::now(), progress: HashMap::new(), journal: 0 };
        Pipe {
            reader: BufReader::with_capacity(64 << 10, reader),
            line: Vec::new(),
            outgoing,
            state: Arc::default(),
            up,
            held,
            noise: (0, 0),
            heard,
            _writer: tasks,
        }
    }

    /// Reads until a line is whole. What was read so far is kept if it is stopped.
    async fn read_line(&mut self) -> Result<(), String> {
        loop {
            let piece = match self.reader.fill_buf().await {
                Ok(piece) => piece,
                Err(error) => return Err(format!("its output cannot be read: {error}")),
            };
            if piece.is_empty() {
                return Err(String::new());
            }
            let end = piece.iter().position(|byte| *byte == b'\n');
            let (taken, used) = match end {
                Some(end) => (piece.get(..end).unwrap_or_default(), end + 1),
                None => (piece, piece.len()),
            };
            if self.line.len() + taken.len() > LINE {
                return Err(format!("it sent a line of more than {} MB", LINE >> 20));
            }
            self.line.extend_from_slice(taken);
            self.reader.consume(used);
            if end.is_some() {
                return Ok(());
            }
        }
    }

    /// Why nothing more comes, where that is simply the end.
    async fn end(&mut self) -> String {
        if !self.line.is_empty() {
            let half = shown(&self.line);
            self.up.journal(&format!("it ended in the middle of a line: {half}"));
        }
        let Some(held) = self.held.upgrade() else { return "it was ended".into() };
        let _ = tokio::time::timeout(END, held.ended()).await;
        held.last_words().unwrap_or_else(|| "it closed its output".into())
    }

    fn take(&mut self, line: &[u8]) -> Taken {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Taken::Dropped;
        }
        if std::str::from_utf8(line).is_err() {
            return Taken::Noise("is no text");
        }
        let Ok(glance) = serde_json::from_slice::<Glance<'_>>(line) else {
            return Taken::Noise("is no message");
        };
        let id = glance.id.and_then(|id| serde_json::from_str::<RequestId>(id.get()).ok());
        match (&glance.method, id) {
            (Some(method), None) => {
                if !self.wants(method, glance.params) {
                    return Taken::Dropped;
                }
            }
            (Some(_), Some(id)) => {
                let mut state = lock(&self.state);
                if state.open.len() >= OPEN || state.open.contains(&id) {
                    drop(state);
                    self.refuse(id);
                    return Taken::Dropped;
                }
                state.open.insert(id);
            }
            (None, Some(id)) => {
                if !lock(&self.state).asked.remove(&id) {
                    return Taken::Noise("answers what nobody asked");
                }
            }
            (None, None) => return Taken::Noise("is no message"),
        }
        match serde_json::from_slice(line) {
            Ok(message) => Taken::Message(Box::new(message)),
            Err(_) => Taken::Noise("is no message of this protocol"),
        }
    }

    /// True for a notification that somebody here wants to hear.
    fn wants(&mut self, method: &str, params: Option<&RawValue>) -> bool {
        if self.heard.since.elapsed() >= Duration::from_secs(1) {
            self.heard = Heard { since: Instant::now(), progress: HashMap::new(), journal: 0 };
        }
        match method {
            "notifications/progress" => {
                let about = params.and_then(|it| serde_json::from_str::<About<'_>>(it.get()).ok());
                let Some(about) = about else { return false };
                if self.heard.progress.len() > 64 || about.token.get().len() > 256 {
                    return false;
                }
                let count = self.heard.progress.entry(about.token.get().to_owned()).or_default();
                *count += 1;
                *count <= PROGRESS
            }
            "notifications/tools/list_changed" => {
                self.up.change();
                false
            }
            "notifications/message" => {
                self.heard.journal += 1;
                if let (true, Some(params)) = (self.heard.journal <= PROGRESS, params) {
                    self.up.journal(&shown(params.get().as_bytes()));
                }
                false
            }
            "notifications/cancelled" => !lock(&self.state).open.is_empty(),
            "notifications/subscriptions/acknowledged" => true,
            _ => false,
        }
    }

    /// Answers a request of the server that is one too many. A server that does not read its
    /// answers gets none.
    fn refuse(&self, id: RequestId) {
        let why = ErrorData::new(ErrorCode(-32000), "too many requests at once", None);
        let reply: ClientJsonRpcMessage = JsonRpcMessage::error(why, Some(id));
        if let Ok(bytes) = encoded(&reply) {
            let _ = self.outgoing.try_send(Outgoing { bytes, done: None });
        }
    }

    /// The next message that somebody wants; why there is none if not.
    async fn next(&mut self) -> Result<ServerJsonRpcMessage, String> {
        loop {
            if let Err(why) = self.read_line().await {
                return Err(if why.is_empty() { self.end().await } else { why });
            }
            let line = std::mem::take(&mut self.line);
            match self.take(&line) {
                Taken::Message(message) => return Ok(*message),
                Taken::Dropped => {}
                Taken::Noise(what) => {
                    self.noise = (self.noise.0 + 1, self.noise.1 + line.len());
                    self.up.journal(&format!("a line {what}: {}", shown(&line)));
                    if self.noise.0 > NOISE || self.noise.1 > NOISE_BYTES {
                        return Err("it sent too much that is no message".into());
                    }
                }
            }
        }
    }
}

impl<R: AsyncRead + Send + Unpin + 'static> Transport<RoleClient> for Pipe<R> {
    type Error = io::Error;

    fn send(
        &mut self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        {
            let mut state = lock(&self.state);
            match &item {
                JsonRpcMessage::Request(request) => {
                    state.asked.insert(request.id.clone());
                }
                JsonRpcMessage::Response(response) => {
                    state.open.remove(&response.id);
                }
                JsonRpcMessage::Error(error) => {
                    if let Some(id) = &error.id {
                        state.open.remove(id);
                    }
                }
                JsonRpcMessage::Notification(_) => {}
            }
        }
        let (outgoing, bytes) = (self.outgoing.clone(), encoded(&item));
        async move {
            let (done, written) = oneshot::channel();
            let message = Outgoing { bytes: bytes?, done: Some(done) };
            let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
            outgoing.send(message).await.map_err(|_| closed())?;
            written.await.map_err(|_| closed())?
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        match self.next().await {
            Ok(message) => Some(message),
            Err(why) => {
                // Calls hear of it now, not once everything else has been cleared away.
                self.up.close(why);
                None
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.up.close("it was ended".into());
        Ok(())
    }
}

/// Writes one message after the other, each whole.
async fn write(mut writer: impl AsyncWrite + Unpin, mut incoming: mpsc::Receiver<Outgoing>) {
    while let Some(Outgoing { bytes, done }) = incoming.recv().await {
        let mut result = writer.write_all(&bytes).await;
        if result.is_ok() {
            result = writer.flush().await;
        }
        let failed = result.is_err();
        if let Some(done) = done {
            let _ = done.send(result);
        }
        if failed {
            return;
        }
    }
}

fn encoded(message: &ClientJsonRpcMessage) -> io::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(message)?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line.get(..SHOWN).unwrap_or(line)).into_owned();
    windlass_toolkit::bound::plain(&text).replace(['\n', '\r'], " ")
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
