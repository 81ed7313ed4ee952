//! A transport of JSON messages, one per line, bounded before any other code sees a byte of it: the
//! pipes of a server process, or the events of `http::sse`.
//!
//! A line that is too long ends the connection; invalid lines are counted, and too many of them end
//! it. Unwanted requests and notifications are answered or dropped here, so that a flood of them
//! has no effect. Start reading at [`JsonLineTransport::receive`].

use crate::config::{McpHostCallbacks, PinnedServerDefinitions};
use crate::transport::connection_status::ConnectionStatus;
use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ErrorCode, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::io::StreamReader;
use windlass_protocol::mutex_lock::lock;
use windlass_sandbox::ProcessHandle;

/// A longer line ends the connection.
pub(crate) const MAX_LINE_BYTES: usize = 8 << 20;
/// More invalid lines end the connection.
const MAX_INVALID_LINES: usize = 100;
/// More bytes of invalid lines end the connection.
const MAX_INVALID_BYTES: usize = 1 << 20;
/// Limits the open requests from the server.
const MAX_SERVER_REQUESTS: usize = 8;
/// Limits the `notifications/progress` per second for one call.
const MAX_NOTICES_PER_SECOND: u32 = 20;
/// Limit for a program that closed its output to exit, so that the exit status is known.
const EXIT_TIMEOUT: Duration = Duration::from_millis(500);
/// Limits how much of a line is logged.
const MAX_LOGGED_BYTES: usize = 400;

/// A transport that reads one JSON message per line.
pub(crate) struct JsonLineTransport<R> {
    reader: BufReader<R>,
    /// The line being read.
    line: Vec<u8>,
    outgoing: mpsc::Sender<OutgoingMessage>,
    open_requests: Arc<Mutex<OpenRequests>>,
    status: Arc<ConnectionStatus>,
    /// The process, if there is one. The reference is weak: the transport does not keep it alive.
    process: Option<Weak<ProcessHandle>>,
    invalid_input: (usize, usize),
    notice_counts: NotificationRateCounter,
    /// The writer task; it ends with the transport.
    _writer: JoinSet<()>,
}

/// A message to the server, and the receiver of the result.
pub(crate) struct OutgoingMessage {
    pub(crate) message: ClientJsonRpcMessage,
    done: Option<oneshot::Sender<io::Result<()>>>,
}

impl OutgoingMessage {
    /// Reports whether the message was sent.
    pub(crate) fn report(self, result: io::Result<()>) {
        if let Some(done) = self.done {
            let _ = done.send(result);
        }
    }
}

/// IDs of the open requests, by direction.
#[derive(Default)]
struct OpenRequests {
    sent: HashSet<RequestId>,
    received: HashSet<RequestId>,
}

/// Counts of notifications in the current second.
struct NotificationRateCounter {
    second_start: Instant,
    progress: HashMap<String, u32>,
    log_lines: u32,
}

/// The parts of a JSON-RPC message (`id`, `method`, `params`) that decide how it is handled.
#[derive(Deserialize)]
struct RawMcpMessage<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: Option<String>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

/// The part of `notifications/progress` that names the call.
#[derive(Deserialize)]
struct ProgressTokenParams<'a> {
    #[serde(borrow, rename = "progressToken")]
    token: &'a RawValue,
}

/// The result of parsing a line.
enum LineParseResult {
    Message(Box<ServerJsonRpcMessage>),
    Dropped,
    Invalid(&'static str),
}

impl<R: AsyncRead + Send + Unpin> JsonLineTransport<R> {
    /// Creates a transport from the two pipes of a process.
    pub(crate) fn over_pipes<W>(
        reader: R,
        writer: W,
        status: Arc<ConnectionStatus>,
        process: Weak<ProcessHandle>,
    ) -> JsonLineTransport<R>
    where
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let write = |incoming| write_messages(writer, incoming);
        JsonLineTransport {
            process: Some(process),
            ..JsonLineTransport::new(reader, write, status)
        }
    }

    /// Creates a transport from a reader and a task that sends messages, one after the other. The
    /// task ends with the transport.
    pub(crate) fn new<F>(
        reader: R,
        write: impl FnOnce(mpsc::Receiver<OutgoingMessage>) -> F,
        status: Arc<ConnectionStatus>,
    ) -> JsonLineTransport<R>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (outgoing, incoming) = mpsc::channel(64);
        let mut tasks = JoinSet::new();
        tasks.spawn(write(incoming));
        let notice_counts = NotificationRateCounter {
            second_start: Instant::now(),
            progress: HashMap::new(),
            log_lines: 0,
        };
        JsonLineTransport {
            reader: BufReader::with_capacity(64 << 10, reader),
            line: Vec::new(),
            outgoing,
            open_requests: Arc::default(),
            status,
            process: None,
            invalid_input: (0, 0),
            notice_counts,
            _writer: tasks,
        }
    }

    /// Reads until a line is complete. Cancel-safe: bytes read so far stay in `line`.
    async fn read_line(&mut self) -> Result<(), String> {
        loop {
            let buffer = match self.reader.fill_buf().await {
                Ok(buffer) => buffer,
                Err(error) => return Err(format!("could not read its output: {error}")),
            };
            if buffer.is_empty() {
                return Err(String::new());
            }
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let (content, consumed) = match end {
                Some(end) => (buffer.get(..end).unwrap_or_default(), end + 1),
                None => (buffer, buffer.len()),
            };
            if self.line.len() + content.len() > MAX_LINE_BYTES {
                return Err(format!("it sent a line of more than {} MB", MAX_LINE_BYTES >> 20));
            }
            self.line.extend_from_slice(content);
            self.reader.consume(consumed);
            if end.is_some() {
                return Ok(());
            }
        }
    }

    /// Returns the reason for the end of the output; waits `EXIT_TIMEOUT` for the exit status.
    async fn end_reason(&mut self) -> String {
        if !self.line.is_empty() {
            let partial = to_shown_line(&self.line);
            self.status.log_line(&format!("its output ended in the middle of a line: {partial}"));
        }
        let Some(process) = &self.process else { return "it closed its event stream".into() };
        let Some(process) = process.upgrade() else { return "it was stopped".into() };
        let _ = tokio::time::timeout(EXIT_TIMEOUT, process.wait_for_exit()).await;
        process.exit_summary().unwrap_or_else(|| "it closed its output".into())
    }

    fn parse_line(&mut self, line: &[u8]) -> LineParseResult {
        if line.iter().all(u8::is_ascii_whitespace) {
            return LineParseResult::Dropped;
        }
        if std::str::from_utf8(line).is_err() {
            return LineParseResult::Invalid("is not UTF-8 text");
        }
        let Ok(raw_message) = serde_json::from_slice::<RawMcpMessage<'_>>(line) else {
            return LineParseResult::Invalid("is not a JSON-RPC message");
        };
        let id = raw_message.id.and_then(|id| serde_json::from_str::<RequestId>(id.get()).ok());
        match (&raw_message.method, id) {
            (Some(method), None) => {
                if !self.accepts_notification(method, raw_message.params) {
                    return LineParseResult::Dropped;
                }
            }
            (Some(_), Some(id)) => {
                let mut state = lock(&self.open_requests);
                if state.received.len() >= MAX_SERVER_REQUESTS || state.received.contains(&id) {
                    drop(state);
                    self.reject_request(id);
                    return LineParseResult::Dropped;
                }
                state.received.insert(id);
            }
            (None, Some(id)) => {
                if !lock(&self.open_requests).sent.remove(&id) {
                    return LineParseResult::Invalid("answers an unknown request");
                }
            }
            (None, None) => return LineParseResult::Invalid("is not a JSON-RPC message"),
        }
        match serde_json::from_slice(line) {
            Ok(message) => LineParseResult::Message(Box::new(message)),
            Err(_) => LineParseResult::Invalid("is not an MCP message"),
        }
    }

    /// Returns true for a notification that the client handles.
    fn accepts_notification(&mut self, method: &str, params: Option<&RawValue>) -> bool {
        if self.notice_counts.second_start.elapsed() >= Duration::from_secs(1) {
            self.notice_counts = NotificationRateCounter {
                second_start: Instant::now(),
                progress: HashMap::new(),
                log_lines: 0,
            };
        }
        match method {
            "notifications/progress" => {
                let subject = params.and_then(|params| {
                    serde_json::from_str::<ProgressTokenParams<'_>>(params.get()).ok()
                });
                let Some(subject) = subject else { return false };
                if self.notice_counts.progress.len() > 64 || subject.token.get().len() > 256 {
                    return false;
                }
                let count =
                    self.notice_counts.progress.entry(subject.token.get().to_owned()).or_default();
                *count += 1;
                *count <= MAX_NOTICES_PER_SECOND
            }
            "notifications/tools/list_changed" => {
                self.status.mark_tools_changed();
                false
            }
            "notifications/message" => {
                self.notice_counts.log_lines += 1;
                if let (true, Some(params)) =
                    (self.notice_counts.log_lines <= MAX_NOTICES_PER_SECOND, params)
                {
                    self.status.log_line(&to_shown_line(params.get().as_bytes()));
                }
                false
            }
            "notifications/cancelled" => !lock(&self.open_requests).received.is_empty(),
            "notifications/subscriptions/acknowledged" => true,
            _ => false,
        }
    }

    /// Answers a server request that exceeds the limit. The answer is dropped if the server does
    /// not read its input.
    fn reject_request(&self, id: RequestId) {
        let error = ErrorData::new(ErrorCode(-32000), "too many requests at once", None);
        let message: ClientJsonRpcMessage = JsonRpcMessage::error(error, Some(id));
        let _ = self.outgoing.try_send(OutgoingMessage { message, done: None });
    }

    /// Returns the next message for the client, or the reason why there are no more.
    async fn next_message(&mut self) -> Result<ServerJsonRpcMessage, String> {
        loop {
            if let Err(reason) = self.read_line().await {
                return Err(if reason.is_empty() { self.end_reason().await } else { reason });
            }
            let line = std::mem::take(&mut self.line);
            match self.parse_line(&line) {
                LineParseResult::Message(message) => return Ok(*message),
                LineParseResult::Dropped => {}
                LineParseResult::Invalid(problem) => {
                    self.invalid_input =
                        (self.invalid_input.0 + 1, self.invalid_input.1 + line.len());
                    self.status.log_line(&format!("a line {problem}: {}", to_shown_line(&line)));
                    if self.invalid_input.0 > MAX_INVALID_LINES
                        || self.invalid_input.1 > MAX_INVALID_BYTES
                    {
                        return Err("it sent too much invalid output".into());
                    }
                }
            }
        }
    }
}

impl<R: AsyncRead + Send + Unpin + 'static> Transport<RoleClient> for JsonLineTransport<R> {
    type Error = io::Error;

    fn send(
        &mut self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        {
            let mut state = lock(&self.open_requests);
            match &item {
                JsonRpcMessage::Request(request) => {
                    state.sent.insert(request.id.clone());
                }
                JsonRpcMessage::Response(response) => {
                    state.received.remove(&response.id);
                }
                JsonRpcMessage::Error(error) => {
                    if let Some(id) = &error.id {
                        state.received.remove(id);
                    }
                }
                JsonRpcMessage::Notification(_) => {}
            }
        }
        let outgoing = self.outgoing.clone();
        async move {
            let (done, written) = oneshot::channel();
            let message = OutgoingMessage { message: item, done: Some(done) };
            let broken_pipe = || io::Error::from(io::ErrorKind::BrokenPipe);
            outgoing.send(message).await.map_err(|_| broken_pipe())?;
            written.await.map_err(|_| broken_pipe())?
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        match self.next_message().await {
            Ok(message) => Some(message),
            Err(reason) => {
                // Active calls learn the reason now, not after the cleanup.
                self.status.close(reason);
                None
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.status.close("it was stopped".into());
        Ok(())
    }
}

/// Returns the messages that reach the client if a server writes these bytes, `chunk_bytes` at a
/// time, while requests with the ids 0 to 3 are open. For the fuzzer.
pub fn decode_server_output(data: &[u8], chunk_bytes: usize) -> Vec<String> {
    struct IgnoredCallbacks;
    impl McpHostCallbacks for IgnoredCallbacks {
        fn save_pins(&self, _server: &str, _pinned: &PinnedServerDefinitions) {}
        fn log_line(&self, _server: &str, _line: &str) {}
        fn notify_user(&self, _text: String) {}
    }
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_time().build() else {
        return Vec::new();
    };
    let callbacks: Arc<dyn McpHostCallbacks> = Arc::new(IgnoredCallbacks);
    runtime.block_on(async {
        let chunks = data
            .chunks(chunk_bytes.max(1))
            .map(|chunk| Ok::<_, io::Error>(bytes::Bytes::copy_from_slice(chunk)));
        let reader = StreamReader::new(futures_util::stream::iter(chunks));
        let status = ConnectionStatus::new("fuzz", &callbacks);
        let mut transport =
            JsonLineTransport::over_pipes(reader, tokio::io::sink(), status, Weak::new());
        lock(&transport.open_requests).sent.extend((0..4).map(RequestId::Number));
        let mut messages = Vec::new();
        loop {
            match transport.next_message().await {
                Ok(message) => messages.push(format!("{message:?}")),
                Err(reason) => {
                    messages.push(reason);
                    return messages;
                }
            }
        }
    })
}

/// Writes messages one after the other, each completely.
async fn write_messages(
    mut writer: impl AsyncWrite + Unpin,
    mut incoming: mpsc::Receiver<OutgoingMessage>,
) {
    while let Some(outgoing) = incoming.recv().await {
        let result = write_message(&mut writer, &outgoing.message).await;
        let failed = result.is_err();
        outgoing.report(result);
        if failed {
            return;
        }
    }
}

async fn write_message(
    writer: &mut (impl AsyncWrite + Unpin),
    message: &ClientJsonRpcMessage,
) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(message)?;
    bytes.push(b'\n');
    writer.write_all(&bytes).await?;
    writer.flush().await
}

fn to_shown_line(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line.get(..MAX_LOGGED_BYTES).unwrap_or(line)).into_owned();
    windlass_toolkit::truncate_output::strip_controls(&text).replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::decode_server_output;
    use proptest::prelude::*;

    const PIECES: [&str; 12] = [
        r#"{"jsonrpc":"2.0","id":0,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","id":9,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":5,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":2}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
        "{}",
        "[]",
        "\r",
        "\n",
        "\u{fffd}",
        "{\"id\":",
    ];

    proptest! {
        #[test]
        fn messages_do_not_depend_on_how_the_output_is_cut(
            pieces in prop::collection::vec(prop::sample::select(PIECES.to_vec()), 0..20),
            chunk_bytes in 1_usize..40,
        ) {
            let data = pieces.join("\n");
            let whole = decode_server_output(data.as_bytes(), data.len());
            prop_assert_eq!(decode_server_output(data.as_bytes(), chunk_bytes), whole.clone());
            let answers = whole.iter().filter(|message| message.starts_with("Response")).count();
            prop_assert!(answers <= 4, "each open request is answered at most once: {:?}", whole);
        }
    }
}
