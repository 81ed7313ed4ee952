//! The `initialize` handshake that opens a connection.

use crate::connection::event_handler::ServerEventHandler;
use crate::connection::progress::WorkProgress;
use crate::connection::reader::{close_on_exit, read_messages};
use crate::connection::registrations::RegisteredCapabilities;
use crate::connection::server_requests::ServerWorkspaceInfo;
use crate::connection::writer::write_messages;
use crate::connection::{ConnectionShared, LspConnection, LspConnectionState, LspRequestError};
use crate::positions::PositionEncoding;
use crate::server_log::ServerLog;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use windlass_sandbox::ProcessHandle;

/// Both ends of a new connection, and the parameters of `LspConnection::handshake`.
pub(crate) struct HandshakeParams<R, W> {
    pub(crate) reader: R,
    pub(crate) writer: W,
    /// The process behind the connection; `None` if there is no process.
    pub(crate) process: Option<Arc<ProcessHandle>>,
    pub(crate) server_name: String,
    pub(crate) log: Arc<dyn ServerLog>,
    /// Root of the workspace.
    pub(crate) workspace: PathBuf,
    /// Absolute path of the project root.
    pub(crate) root: PathBuf,
    pub(crate) workspace_info: ServerWorkspaceInfo,
    pub(crate) initialize_params: Value,
    /// Time without any message after which the server may be given up.
    pub(crate) silence_limit: Duration,
}

impl<H: ServerEventHandler> LspConnection<H> {
    /// Performs the `initialize` handshake. The caller must bound its time. `new_handler` creates
    /// the handler of events once the server has chosen its `positionEncoding`; earlier events are
    /// dropped.
    pub(crate) async fn handshake<R, W>(
        params: HandshakeParams<R, W>,
        new_handler: impl FnOnce(PositionEncoding) -> H,
    ) -> Result<LspConnection<H>, String>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let HandshakeParams {
            reader,
            writer,
            process,
            server_name,
            log,
            workspace,
            root,
            workspace_info,
            initialize_params,
            silence_limit,
        } = params;
        let (outgoing, incoming) = mpsc::unbounded_channel();
        let now = Instant::now();
        let requests = LspConnectionState {
            next_id: 1,
            pending: HashMap::new(),
            registrations: RegisteredCapabilities::default(),
            progress: WorkProgress::default(),
            last_message_at: now,
            unanswered: (0, now),
        };
        let shared = Arc::new(ConnectionShared {
            server_name,
            log,
            workspace_info,
            silence_limit,
            outgoing,
            queued_bytes: AtomicUsize::new(0),
            requests: Mutex::new(requests),
            closed: watch::Sender::new(None),
            busy_text: watch::Sender::new(None),
            event_handler: OnceLock::new(),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(write_messages(writer, incoming, Arc::clone(&shared)));
        let weak = process.as_ref().map(Arc::downgrade).unwrap_or_default();
        tasks.spawn(read_messages(reader, Arc::clone(&shared), weak));
        if let Some(process) = process.clone() {
            tasks.spawn(close_on_exit(process, Arc::clone(&shared)));
        }
        // The caller bounds the time of the handshake.
        let response =
            shared.request("initialize", initialize_params, Duration::from_secs(3_600)).await;
        let mut response = response.map_err(|error| match error {
            LspRequestError::ServerError { message, .. } => {
                format!("it rejected `initialize`: {message}")
            }
            LspRequestError::TimedOut => "it did not answer".to_owned(),
            LspRequestError::ConnectionLost(reason) => reason,
        })?;
        let capabilities = response.get_mut("capabilities").map(Value::take);
        let capabilities = capabilities.filter(Value::is_object);
        let capabilities = capabilities.ok_or("its answer to `initialize` is invalid")?;
        let encoding = match capabilities.get("positionEncoding").and_then(Value::as_str) {
            Some("utf-8") => PositionEncoding::Utf8,
            Some("utf-32") => PositionEncoding::Utf32,
            Some(_) | None => PositionEncoding::Utf16,
        };
        let event_handler = Arc::new(new_handler(encoding));
        shared.event_handler.get_or_init(|| Arc::<H>::clone(&event_handler));
        shared.notify("initialized", json!({}));
        if !shared.workspace_info.settings.is_null() {
            let settings = json!({"settings": shared.workspace_info.settings});
            shared.notify("workspace/didChangeConfiguration", settings);
        }
        Ok(LspConnection {
            shared,
            workspace,
            root,
            capabilities,
            encoding,
            event_handler,
            process,
            stderr_position: Mutex::new(0),
            _tasks: tasks,
        })
    }
}
