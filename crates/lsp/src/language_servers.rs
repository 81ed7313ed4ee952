//! The public interface to all language servers of a workspace.

use crate::config::LspConfig;
use crate::diagnostics_review::{
    self, DiagnosticsReport, PreChangeDiagnostics, change_notifications,
};
use crate::pool::ServerPool;
use crate::query;
use crate::query::code_query::{CodeQuery, CodeQueryAnswer};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use windlass_protocol::SessionId;
use windlass_sandbox::CallWorkspace;
use windlass_toolkit::process_health::ProcessHealthState;
use windlass_toolkit::{CallContext, CallFailure};

/// The language servers of a workspace. Cheap to clone; the servers stop with the last clone.
#[derive(Clone)]
pub struct LanguageServers(Arc<ServerPool>);

impl LanguageServers {
    /// Creates the pool of servers for a workspace. Starts none.
    pub fn open(config: LspConfig) -> LanguageServers {
        LanguageServers(Arc::new(ServerPool::new(config)))
    }

    /// Opens a file that is being read at its servers, or starts them in the background. Never
    /// waits.
    pub fn open_for_read(&self, granted: &Arc<CallWorkspace>, path: &str) {
        change_notifications::open_for_read(&self.0, granted, path);
    }

    /// Takes a snapshot of the known diagnostics of files that are about to change. Never waits.
    pub fn snapshot_before(
        &self,
        granted: &Arc<CallWorkspace>,
        paths: &[String],
    ) -> PreChangeDiagnostics {
        diagnostics_review::snapshot_before(&self.0, granted, paths)
    }

    /// Sends servers the new texts of files (`None` for removed ones), and waits for their
    /// diagnostics.
    pub async fn review_after(
        &self,
        granted: &Arc<CallWorkspace>,
        session: SessionId,
        before: PreChangeDiagnostics,
        new_texts: Vec<(String, Option<Arc<str>>)>,
        cancel: &CancellationToken,
    ) -> Option<DiagnosticsReport> {
        diagnostics_review::review_after(&self.0, granted, session, before, new_texts, cancel).await
    }

    /// Sends servers the new texts of files (`None` for removed ones) without waiting for
    /// diagnostics.
    pub fn notify_changed(
        &self,
        granted: &Arc<CallWorkspace>,
        new_texts: Vec<(String, Option<Arc<str>>)>,
    ) {
        change_notifications::notify_changed(&self.0, granted, new_texts);
    }

    /// Runs a [`CodeQuery`].
    pub async fn query(
        &self,
        cx: &CallContext<'_>,
        query: CodeQuery,
    ) -> Result<CodeQueryAnswer, CallFailure> {
        query::run_query(&self.0, cx, query).await
    }

    /// Returns name, root and [`ProcessHealthState`] of every server that was requested so far.
    pub fn states(&self) -> Vec<(String, String, ProcessHealthState)> {
        self.0.states()
    }

    /// Stops the servers of this name and starts them again, also those that are
    /// `ProcessHealthState::GivenUp`. The error is a sentence for the user.
    pub async fn restart(&self, name: &str) -> Result<(), String> {
        self.0.restart(name).await
    }

    /// Waits until no server is starting. A start has a time limit.
    pub async fn wait_until_settled(&self) {
        self.0.wait_until_settled().await;
    }

    /// Stops all servers. No server process runs when it returns, and none of them starts again.
    pub async fn close(&self) {
        self.0.close().await;
    }

    /// Sends any request to the first server of a file. For tests.
    #[doc(hidden)]
    pub async fn send_raw_request(
        &self,
        granted: &CallWorkspace,
        path: &str,
        method: &str,
        params: Value,
        limits: (Duration, Duration),
    ) -> Result<Value, String> {
        let (start, answer) = limits;
        let server = self.0.servers_for(granted, path).into_iter().next();
        let server =
            server.ok_or_else(|| self.0.no_server_text(granted, path).unwrap_or_default())?;
        let connection = server.connect(start).await?;
        if let Some(method) = method.strip_prefix("notify:") {
            connection.notify(method, params);
            return Ok(Value::Null);
        }
        connection.request(method, params, answer).await.map_err(|error| format!("{error:?}"))
    }
}
