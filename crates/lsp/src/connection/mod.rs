//! The JSON-RPC connection to one language server: pending requests, outgoing messages,
//! registrations and progress.
//!
//! No caller waits longer than its limit: a request that is dropped or late is canceled, and all
//! requests fail at once when the connection closes. Messages go out in the order in which they
//! were sent. The connection closes if a server does not read its input. Start reading at
//! [`LspConnection::handshake`], then at [`LspConnection::request`].

pub(crate) mod event_handler;
#[doc(hidden)]
pub mod framing;
pub(crate) mod handshake;
pub(crate) mod progress;
pub(crate) mod reader;
pub(crate) mod registrations;
pub(crate) mod server_requests;
pub(crate) mod writer;

use crate::connection::event_handler::ServerEventHandler;
use crate::connection::framing::encode_frame;
use crate::connection::progress::WorkProgress;
use crate::connection::registrations::{
    RegisteredCapabilities, registration_method, static_capability,
};
use crate::connection::server_requests::ServerWorkspaceInfo;
use crate::positions::PositionEncoding;
use crate::server_log::ServerLog;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use windlass_protocol::display_text::truncate_chars;
use windlass_protocol::mutex_lock::lock;
use windlass_sandbox::ProcessHandle;
use windlass_toolkit::truncate_output::strip_controls;

const MAX_PENDING_REQUESTS: usize = 64;
/// Limit for queued outgoing bytes. A single message may exceed it.
const MAX_QUEUED_BYTES: usize = 24 << 20;
/// Memory that a queued message costs in addition to its bytes.
pub(crate) const MESSAGE_OVERHEAD_BYTES: usize = 256;
/// Number of requests in a row that may stay unanswered while the server sends nothing at all.
const MAX_UNANSWERED_REQUESTS: u32 = 3;
/// Limit for server text shown on one line.
const MAX_SHOWN_CHARS: usize = 400;
/// Limit for each step of a shutdown.
const SHUTDOWN_STEP_TIMEOUT: Duration = Duration::from_secs(1);

/// Reasons for which `LspConnection::request` has no result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LspRequestError {
    /// The server returned a JSON-RPC `error`.
    ServerError {
        /// JSON-RPC error code.
        code: i64,
        message: String,
        /// The `data` of the error.
        data: Value,
    },
    /// The caller's limit passed.
    TimedOut,
    /// The connection closed, with the reason.
    ConnectionLost(String),
}

/// A connection to a server that has answered `initialize`, and the handler of its events.
pub(crate) struct LspConnection<H> {
    shared: Arc<ConnectionShared>,
    workspace: PathBuf,
    root: PathBuf,
    capabilities: Value,
    encoding: PositionEncoding,
    event_handler: Arc<H>,
    process: Option<Arc<ProcessHandle>>,
    /// Offset up to which stderr is logged.
    stderr_position: Mutex<u64>,
    /// `read_messages`, `write_messages` and `close_on_exit`; they stop with the connection.
    _tasks: JoinSet<()>,
}

/// State that `LspConnection` shares with its reader and writer tasks.
pub(crate) struct ConnectionShared {
    server_name: String,
    log: Arc<dyn ServerLog>,
    pub(crate) workspace_info: ServerWorkspaceInfo,
    silence_limit: Duration,
    outgoing: mpsc::UnboundedSender<Vec<u8>>,
    /// Bytes in the `outgoing` queue.
    pub(crate) queued_bytes: AtomicUsize,
    pub(crate) requests: Mutex<LspConnectionState>,
    closed: watch::Sender<Option<String>>,
    busy_text: watch::Sender<Option<String>>,
    /// Set once the server has answered `initialize`.
    pub(crate) event_handler: OnceLock<Arc<dyn ServerEventHandler>>,
}

/// Pending requests of our side, and the registrations and progress of the server.
pub(crate) struct LspConnectionState {
    next_id: i64,
    pending: HashMap<i64, oneshot::Sender<Result<Value, LspRequestError>>>,
    pub(crate) registrations: RegisteredCapabilities,
    progress: WorkProgress,
    /// Time of the server's last message.
    last_message_at: Instant,
    /// Number of unanswered requests in a row, and the time when the last one was given up.
    unanswered: (u32, Instant),
}

/// Sends `$/cancelRequest` if the caller drops a request before its answer.
struct CancelRequestOnDrop<'a> {
    shared: &'a ConnectionShared,
    id: i64,
}

impl Drop for CancelRequestOnDrop<'_> {
    fn drop(&mut self) {
        let is_pending = lock(&self.shared.requests).pending.remove(&self.id).is_some();
        if is_pending {
            let params = json!({"id": self.id});
            self.shared.notify("$/cancelRequest", params);
        }
    }
}

impl<H: ServerEventHandler> LspConnection<H> {
    /// Sends a request and waits up to `limit` for the answer. Dropping the future cancels the
    /// request.
    pub(crate) async fn request(
        &self,
        method: &str,
        params: Value,
        limit: Duration,
    ) -> Result<Value, LspRequestError> {
        self.shared.request(method, params, limit).await
    }

    /// Sends a notification, in order with requests. Does nothing if the connection is closed.
    pub(crate) fn notify(&self, method: &str, params: Value) {
        self.shared.notify(method, params);
    }

    /// Returns the `positionEncoding` in which the server counts characters.
    pub(crate) fn encoding(&self) -> PositionEncoding {
        self.encoding
    }

    /// Returns the `capabilities` that the server sent with its `initialize` answer.
    pub(crate) fn capabilities(&self) -> &Value {
        &self.capabilities
    }

    /// Returns true if the server supports a method.
    pub(crate) fn supports(&self, method: &str) -> bool {
        self.method_options(method).is_some()
    }

    /// Returns the options of a method: those registered last, else those of the server's
    /// capabilities; `None` if the server does not support it.
    pub(crate) fn method_options(&self, method: &str) -> Option<Value> {
        let registered =
            lock(&self.shared.requests).registrations.options(registration_method(method)).cloned();
        registered.or_else(|| static_capability(&self.capabilities, method).cloned())
    }

    /// Returns true if the server watches a file. `path` is relative to the workspace.
    pub(crate) fn is_watched(&self, path: &str) -> bool {
        let absolute = self.workspace.join(path);
        let in_root = absolute.strip_prefix(&self.root).ok().and_then(Path::to_str);
        let Some(absolute) = absolute.to_str() else { return false };
        lock(&self.shared.requests).registrations.is_watched(absolute, in_root)
    }

    /// Returns the server's own description of its current work, from `$/progress`.
    pub(crate) fn busy_text(&self) -> Option<String> {
        self.shared.busy_text.borrow().clone()
    }

    /// Waits until the server reports no work; returns false if `limit` passes first.
    pub(crate) async fn wait_until_idle(&self, limit: Duration) -> bool {
        let mut busy = self.shared.busy_text.subscribe();
        let idle = busy.wait_for(Option::is_none);
        tokio::time::timeout(limit, idle).await.is_ok_and(|idle| idle.is_ok())
    }

    /// Returns the handler of the server's events.
    pub(crate) fn event_handler(&self) -> &H {
        &self.event_handler
    }

    /// Returns the reason if the connection is closed.
    pub(crate) fn close_reason(&self) -> Option<String> {
        self.shared.closed.borrow().clone()
    }

    /// Waits until the connection is closed.
    pub(crate) async fn wait_until_closed(&self) {
        let _ = self.shared.closed.subscribe().wait_for(Option::is_some).await;
    }

    /// Returns true if a caller waits for an answer.
    pub(crate) fn has_pending_requests(&self) -> bool {
        !lock(&self.shared.requests).pending.is_empty()
    }

    /// Returns the process behind the connection.
    pub(crate) fn process(&self) -> Option<&Arc<ProcessHandle>> {
        self.process.as_ref()
    }

    /// Logs the stderr output since the last call.
    pub(crate) fn log_stderr(&self) {
        let Some(process) = &self.process else { return };
        let mut position = lock(&self.stderr_position);
        let output = process.stderr_since(*position);
        *position = output.next_offset;
        let lines = output.text.lines().filter(|line| !line.trim().is_empty());
        lines.take(100).for_each(|line| self.shared.log_line(line));
    }

    /// Stops the server: sends `shutdown`, then `exit`, then terminates the process.
    pub(crate) async fn shut_down(&self) {
        if self.close_reason().is_none() {
            let _ = self.request("shutdown", Value::Null, SHUTDOWN_STEP_TIMEOUT).await;
            self.notify("exit", Value::Null);
            if let Some(process) = &self.process {
                let _ = tokio::time::timeout(SHUTDOWN_STEP_TIMEOUT, process.wait_for_exit()).await;
            }
        }
        self.close("it was stopped");
        self.log_stderr();
        if let Some(process) = &self.process {
            process.terminate(SHUTDOWN_STEP_TIMEOUT).await;
        }
    }

    /// Closes the connection with a reason, which pending callers receive as `ConnectionLost`.
    pub(crate) fn close(&self, reason: &str) {
        self.shared.close(reason.to_owned());
    }
}

impl ConnectionShared {
    async fn request(
        &self,
        method: &str,
        params: Value,
        limit: Duration,
    ) -> Result<Value, LspRequestError> {
        let (sender, answer) = oneshot::channel();
        let sent_at = Instant::now();
        let id = {
            let mut state = lock(&self.requests);
            if state.pending.len() >= MAX_PENDING_REQUESTS {
                let message = "too many requests are pending".to_owned();
                return Err(LspRequestError::ServerError { code: 0, message, data: Value::Null });
            }
            let id = state.next_id;
            state.next_id += 1;
            state.pending.insert(id, sender);
            id
        };
        let guard = CancelRequestOnDrop { shared: self, id };
        let mut message = json!({"jsonrpc": "2.0", "id": id, "method": method});
        if !params.is_null()
            && let Some(message) = message.as_object_mut()
        {
            message.insert("params".into(), params);
        }
        self.send(&message);
        // The connection may have closed before the request was registered.
        let connection_lost =
            || LspRequestError::ConnectionLost(self.closed.borrow().clone().unwrap_or_default());
        if self.closed.borrow().is_some() {
            return Err(connection_lost());
        }
        let Ok(answer) = tokio::time::timeout(limit, answer).await else {
            drop(guard);
            self.mark_unanswered(sent_at);
            return Err(LspRequestError::TimedOut);
        };
        answer.unwrap_or_else(|_| Err(connection_lost()))
    }

    fn notify(&self, method: &str, params: Value) {
        let mut message = json!({"jsonrpc": "2.0", "method": method});
        if !params.is_null()
            && let Some(message) = message.as_object_mut()
        {
            message.insert("params".into(), params);
        }
        self.send(&message);
    }

    /// Queues a message. Closes the connection if more than `MAX_QUEUED_BYTES` are unread.
    pub(crate) fn send(&self, message: &Value) {
        if self.closed.borrow().is_some() {
            return;
        }
        let bytes = encode_frame(message.to_string().as_bytes());
        let cost = bytes.len() + MESSAGE_OVERHEAD_BYTES;
        let before = self.queued_bytes.fetch_add(cost, Ordering::Relaxed);
        if before > 0 && before + cost > MAX_QUEUED_BYTES {
            self.close("it does not read its input".into());
            return;
        }
        let _ = self.outgoing.send(bytes);
    }

    /// Delivers an answer to its caller. Returns false if no request ever had this id.
    pub(crate) fn deliver_answer(&self, id: i64, answer: Result<Value, LspRequestError>) -> bool {
        let mut state = lock(&self.requests);
        // A canceled request may still be answered.
        let is_known = (1..state.next_id).contains(&id);
        let sender = state.pending.remove(&id);
        drop(state);
        if let Some(sender) = sender {
            let _ = sender.send(answer);
        }
        is_known
    }

    /// Records that the server sent a message.
    pub(crate) fn mark_alive(&self) {
        let mut state = lock(&self.requests);
        state.last_message_at = Instant::now();
        state.unanswered.0 = 0;
    }

    /// Records a request without an answer. Closes the connection after `MAX_UNANSWERED_REQUESTS`
    /// if the server stays silent.
    fn mark_unanswered(&self, sent_at: Instant) {
        let now = Instant::now();
        let mut state = lock(&self.requests);
        // Concurrent requests count once.
        if state.last_message_at > sent_at
            || (state.unanswered.0 > 0 && sent_at < state.unanswered.1)
        {
            return;
        }
        state.unanswered = (state.unanswered.0 + 1, now);
        let is_silent = now.duration_since(state.last_message_at) >= self.silence_limit;
        let gives_up = state.unanswered.0 >= MAX_UNANSWERED_REQUESTS && is_silent;
        drop(state);
        if gives_up {
            self.close(format!("it left {MAX_UNANSWERED_REQUESTS} requests in a row unanswered"));
        }
    }

    /// Closes the connection and fails all pending requests. The first reason wins.
    pub(crate) fn close(&self, reason: String) {
        let is_first = self.closed.send_if_modified(|closed| {
            let is_first = closed.is_none();
            if is_first {
                *closed = Some(reason);
            }
            is_first
        });
        if is_first {
            let pending = std::mem::take(&mut lock(&self.requests).pending);
            drop(pending);
            self.busy_text.send_replace(None);
            if let Some(handler) = self.event_handler.get() {
                handler.on_close();
            }
        }
    }

    /// Marks pulled diagnostics as stale (`workspace/diagnostic/refresh`).
    pub(crate) fn on_refresh(&self) {
        if let Some(handler) = self.event_handler.get() {
            handler.on_refresh();
        }
    }

    /// Passes one line of the server to `ServerLog`.
    pub(crate) fn log_line(&self, line: &str) {
        self.log.log_line(&self.server_name, &to_shown_line(line));
    }

    /// Applies a `$/progress` notification.
    pub(crate) fn on_progress(&self, params: &Value) {
        let summary = {
            let mut state = lock(&self.requests);
            state.progress.on_progress(params);
            state.progress.summary()
        };
        self.busy_text.send_if_modified(|busy| {
            let changed = *busy != summary;
            *busy = summary;
            changed
        });
    }
}

/// Converts server text to one line without control characters.
pub(crate) fn to_shown_line(text: &str) -> String {
    truncate_chars(
        &strip_controls(&truncate_chars(text, MAX_SHOWN_CHARS)).replace(['\n', '\r'], " "),
        MAX_SHOWN_CHARS,
    )
}

#[cfg(test)]
mod tests;
