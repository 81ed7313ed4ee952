//! Handles messages that a server sends on its own. Each goes to the call that it names, or to the
//! newest active call if it names none.

use crate::transport::connection_status::ConnectionStatus;
use rmcp::ErrorData;
use rmcp::RoleClient;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, FormElicitationCapability, Implementation, ProgressNotificationParam,
    ProgressToken, ProtocolVersion,
};
use rmcp::service::{NotificationContext, RequestContext};
use std::path::Path;
use std::sync::{Arc, Mutex};
use tokio::sync::{mpsc, oneshot};
use windlass_protocol::mutex_lock::lock;

/// A `create_elicitation` request that waits for its reply.
pub(crate) struct PendingElicitation {
    pub(crate) params: ElicitRequestParams,
    pub(crate) reply: oneshot::Sender<ElicitResult>,
}

/// The active calls of an `McpConnection`, oldest first.
#[derive(Default)]
pub(crate) struct ActiveCalls {
    calls: Mutex<(u64, Vec<ActiveCall>)>,
}

struct ActiveCall {
    number: u64,
    token: Option<ProgressToken>,
    elicitations: mpsc::Sender<PendingElicitation>,
    progress: mpsc::Sender<String>,
}

/// The receiving end of one active call, for elicitations and progress; dropping it removes the
/// call from `ActiveCalls`.
pub(crate) struct CallInbox {
    active_calls: Arc<ActiveCalls>,
    number: u64,
    pub(crate) elicitations: mpsc::Receiver<PendingElicitation>,
    pub(crate) progress: mpsc::Receiver<String>,
}

impl ActiveCalls {
    /// Adds a call that is about to be sent.
    pub(crate) fn add_call(self: &Arc<Self>) -> CallInbox {
        let (elicitation_sender, elicitations) = mpsc::channel(8);
        let (progress_sender, progress) = mpsc::channel(32);
        let mut calls = lock(&self.calls);
        calls.0 += 1;
        let number = calls.0;
        calls.1.push(ActiveCall {
            number,
            token: None,
            elicitations: elicitation_sender,
            progress: progress_sender,
        });
        CallInbox { active_calls: Arc::clone(self), number, elicitations, progress }
    }

    fn elicitation_sender(&self) -> Option<mpsc::Sender<PendingElicitation>> {
        lock(&self.calls).1.last().map(|call| call.elicitations.clone())
    }

    fn progress_sender(&self, token: &ProgressToken) -> Option<mpsc::Sender<String>> {
        let calls = lock(&self.calls);
        let matching = calls.1.iter().find(|call| call.token.as_ref() == Some(token));
        // Progress may arrive before the call knows its own token.
        let newest = || calls.1.last().filter(|call| call.token.is_none());
        matching.or_else(newest).map(|call| call.progress.clone())
    }
}

impl CallInbox {
    /// Sets the token under which the server reports progress for this call.
    pub(crate) fn set_progress_token(&self, token: ProgressToken) {
        let mut calls = lock(&self.active_calls.calls);
        if let Some(call) = calls.1.iter_mut().find(|call| call.number == self.number) {
            call.token = Some(token);
        }
    }
}

impl Drop for CallInbox {
    fn drop(&mut self) {
        lock(&self.active_calls.calls).1.retain(|call| call.number != self.number);
    }
}

/// The folder of the workspace, for servers that ask for the roots (`roots/list`).
#[derive(Clone, Debug)]
pub(crate) struct WorkspaceRoot {
    /// The `file:` URL of the folder; `None` if the folder has none.
    url: Option<String>,
}

impl WorkspaceRoot {
    pub(crate) fn new(folder: &Path) -> WorkspaceRoot {
        WorkspaceRoot { url: reqwest::Url::from_file_path(folder).ok().map(String::from) }
    }
}

/// Returns the answer to `roots/list`.
#[expect(deprecated, reason = "the next revision removes roots, but the servers of today use them")]
pub(crate) fn list_roots(root: Option<&WorkspaceRoot>) -> rmcp::model::ListRootsResult {
    let url = root.and_then(|root| root.url.clone());
    rmcp::model::ListRootsResult::new(url.into_iter().map(rmcp::model::Root::new).collect())
}

/// The `ClientHandler` of a connection: handles requests and notifications of the server.
pub(crate) struct McpClientHandler {
    pub(crate) active_calls: Arc<ActiveCalls>,
    pub(crate) status: Arc<ConnectionStatus>,
    /// The folder that the server may learn. A server elsewhere cannot use a path of this machine,
    /// so it gets none.
    pub(crate) root: Option<WorkspaceRoot>,
}

impl ClientHandler for McpClientHandler {
    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let canceled = ElicitResult::new(ElicitationAction::Cancel);
        let Some(sender) = self.active_calls.elicitation_sender() else { return Ok(canceled) };
        let (reply, result) = oneshot::channel();
        if sender.try_send(PendingElicitation { params: request, reply }).is_err() {
            return Ok(canceled);
        }
        Ok(result.await.unwrap_or(canceled))
    }

    #[expect(deprecated, reason = "see `list_roots`")]
    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<rmcp::model::ListRootsResult, ErrorData> {
        Ok(list_roots(self.root.as_ref()))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        if let Some(sender) = self.active_calls.progress_sender(&params.progress_token) {
            let _ = sender.try_send(progress_text(&params));
        }
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.status.mark_tools_changed();
    }

    fn get_info(&self) -> ClientConfig {
        let mut elicitation = ElicitationCapability::default();
        elicitation.form = Some(FormElicitationCapability::default());
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(elicitation);
        if self.root.is_some() {
            capabilities.roots = Some(rmcp::model::RootsCapabilities::default());
        }
        ClientConfig::new(capabilities, Implementation::new("windlass", env!("CARGO_PKG_VERSION")))
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
    }
}

/// Formats a `ProgressNotificationParam` as one line.
fn progress_text(params: &ProgressNotificationParam) -> String {
    let amount = match params.total {
        Some(total) => format!("{} of {total}", params.progress),
        None => params.progress.to_string(),
    };
    let line = match &params.message {
        Some(message) => format!("{amount}: {message}"),
        None => amount,
    };
    let line: String = line.chars().take(500).collect();
    windlass_toolkit::truncate_output::strip_controls(&line)
}
