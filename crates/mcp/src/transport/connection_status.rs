//! The status of a connection: whether it is closed, and whether the server's tools have changed.

use crate::config::McpHostCallbacks;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::watch;

/// State of an `McpConnection` that the transport, the handler and the calls share.
pub(crate) struct ConnectionStatus {
    server_name: String,
    store: Arc<dyn McpHostCallbacks>,
    closed: watch::Sender<Option<String>>,
    tools_changed: AtomicBool,
}

impl ConnectionStatus {
    pub(crate) fn new(name: &str, store: &Arc<dyn McpHostCallbacks>) -> Arc<ConnectionStatus> {
        Arc::new(ConnectionStatus {
            server_name: name.to_owned(),
            store: Arc::clone(store),
            closed: watch::Sender::new(None),
            tools_changed: AtomicBool::new(false),
        })
    }

    pub(crate) fn server_name(&self) -> &str {
        &self.server_name
    }

    /// Logs a line under `server_name`.
    pub(crate) fn log_line(&self, line: &str) {
        self.store.log_line(&self.server_name, line);
    }

    /// Marks the connection as closed; only the first reason counts.
    pub(crate) fn close(&self, reason: String) {
        self.closed.send_if_modified(|closed| {
            let first = closed.is_none();
            if first {
                *closed = Some(reason);
            }
            first
        });
    }

    /// Returns the reason for the close, if the connection is closed.
    pub(crate) fn close_reason(&self) -> Option<String> {
        self.closed.borrow().clone()
    }

    /// Waits until the connection is closed and returns the reason.
    pub(crate) async fn wait_until_closed(&self) -> String {
        let mut closed = self.closed.subscribe();
        match closed.wait_for(Option::is_some).await {
            Ok(reason) => reason.clone().unwrap_or_default(),
            Err(_) => "it was stopped".to_owned(),
        }
    }

    /// Records a `tools/list_changed` of the server.
    pub(crate) fn mark_tools_changed(&self) {
        self.tools_changed.store(true, Ordering::Relaxed);
    }

    /// Returns true once after each `mark_tools_changed`.
    pub(crate) fn take_tools_changed(&self) -> bool {
        self.tools_changed.swap(false, Ordering::Relaxed)
    }
}
