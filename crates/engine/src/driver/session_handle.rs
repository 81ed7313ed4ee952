//! Handle of an open session, for everything outside of its loop.

use super::op_ledger::QueuedOp;
use crate::attendance::{Attendance, AttendanceGuard};
use crate::clock_and_ids::new_stamp;
use crate::model_handle::{ModelHandle, NamedModel};
use crate::session_watcher::{SessionWatcher, SubscribeRequest};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use windlass_protocol::{
    ClientInfo, EventCursor, Fault, LogSeq, OpError, OpId, OpRequest, OpResult, SessionId,
    SessionOp,
};
use windlass_storage::Log;

/// Handle of an open session. All clones are for the same session, which ends when the last one is
/// dropped, or at [`SessionHandle::close`].
#[derive(Clone)]
pub struct SessionHandle {
    /// Id of the session.
    pub session: SessionId,
    /// Name of the agent that the session ran when it was opened.
    pub agent: String,
    /// Number of facts that were found lost when the session was opened.
    pub lost_facts: u64,
    pub(super) log: Arc<dyn Log>,
    pub(super) ops: mpsc::Sender<QueuedOp>,
    pub(super) model_switches: mpsc::Sender<ModelSwitch>,
    pub(super) subscriptions: mpsc::Sender<SubscribeRequest>,
    pub(super) activity: watch::Receiver<SessionActivity>,
    pub(super) attendance: Attendance,
    pub(super) initial_head: LogSeq,
    pub(super) stop: CancellationToken,
    /// Result of the loop of the session, once it has ended.
    pub(super) end: watch::Receiver<Option<Result<(), Fault>>>,
}

/// A change of the models of a session.
pub(super) enum ModelSwitch {
    /// The new model of the session.
    Replace(NamedModel),
    /// A further model, for prompts that name it.
    Offer(NamedModel),
}

/// Activity of an open session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionActivity {
    /// A turn is under way.
    pub is_busy: bool,
    /// Last position of the log.
    pub head: LogSeq,
}

impl SessionHandle {
    /// Sends an operation, and returns the answer of the session: the last position of the log with
    /// all facts of the operation, or the reason why it was not carried out.
    pub async fn submit(&self, request: OpRequest, client: Option<ClientInfo>) -> OpResult {
        let answer = self.queue(request, client).await;
        // A session that ends answers nothing more.
        answer.await.unwrap_or(Err(OpError::Stopped))
    }

    /// Queues an operation behind the ones before it. The receiver gets the answer.
    pub async fn queue(
        &self,
        request: OpRequest,
        client: Option<ClientInfo>,
    ) -> oneshot::Receiver<OpResult> {
        let (reply, answer) = oneshot::channel();
        // If the session has stopped, this drops `reply`.
        let _ = self.ops.send(QueuedOp { request, client, reply: Some(reply) }).await;
        answer
    }

    /// Queues an operation of a client under a new id. The receiver gets the answer.
    pub async fn queue_op(
        &self,
        op: SessionOp,
        client: Option<ClientInfo>,
    ) -> oneshot::Receiver<OpResult> {
        self.queue(OpRequest { id: OpId(new_stamp().id), op }, client).await
    }

    /// Queues an operation without waiting for its answer. Returns false if the session has stopped.
    pub async fn send(&self, op: SessionOp) -> bool {
        self.ops.send(new_queued_op(op)).await.is_ok()
    }

    /// Switches to another model from the next step on; a step under way is not affected. Inputs
    /// sent to the session after this call reach the new model. Returns false if the session has
    /// stopped.
    pub async fn switch_model(&self, model: ModelHandle, name: &str) -> bool {
        self.model_switches.send(ModelSwitch::Replace((model, name.into()))).await.is_ok()
    }

    /// Lets prompts name this model for their turn (`PromptSettings::model`). Returns false if the
    /// session has stopped.
    pub async fn offer_model(&self, model: NamedModel) -> bool {
        self.model_switches.send(ModelSwitch::Offer(model)).await.is_ok()
    }

    /// Returns the number of facts that the session had when it was opened.
    pub fn initial_head(&self) -> LogSeq {
        self.initial_head
    }

    /// Returns what the session is doing, and reports changes.
    pub fn activity(&self) -> watch::Receiver<SessionActivity> {
        self.activity.clone()
    }

    /// Says that a user is present and may be asked, until the guard is dropped. Without any, the
    /// `UnattendedPolicy` of the engine applies.
    pub fn attend(&self) -> AttendanceGuard {
        self.attendance.attend()
    }

    /// Watches the session: the facts after `cursor`, then its events as they happen.
    pub async fn watch(&self, cursor: EventCursor) -> SessionWatcher {
        let log = Arc::clone(&self.log);
        SessionWatcher::subscribe(log, self.session, cursor, self.subscriptions.clone()).await
    }

    /// Closes the session, and returns the fault that stopped it, if any. A turn under way resumes
    /// when the session is opened again.
    pub async fn close(&self) -> Result<(), Fault> {
        self.stop.cancel();
        let mut end = self.end.clone();
        match end.wait_for(Option::is_some).await {
            Ok(result) => result.clone().unwrap_or(Ok(())),
            Err(_) => {
                let message = "the session ended without a result".to_owned();
                Err(Fault::Internal { message })
            }
        }
    }
}

/// Returns an operation of Windlass itself, with a new id.
pub(super) fn new_queued_op(op: SessionOp) -> QueuedOp {
    let request = OpRequest { id: OpId(new_stamp().id), op };
    QueuedOp { request, client: None, reply: None }
}
