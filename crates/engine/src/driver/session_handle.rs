//! Handle of an open session, for everything outside of its loop.

use super::op_ledger::{OpSender, QueuedOp};
use crate::attendance::{Attendance, AttendanceGuard, OpenQuestions};
use crate::clock_and_ids::new_op_id;
use crate::session_watcher::{SessionWatcher, SubscribeRequest};
use crate::settings::ModelResolver;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use windlass_protocol::{
    EventCursor, FactRecord, Fault, LogPosition, LogSeq, ModelChoice, OpError, OpRequest, OpResult,
    SessionId, SessionOp,
};
use windlass_storage::{Log, PageLimit};

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
    /// Epoch of the claim under which the session is open.
    pub epoch: u64,
    pub(super) log: Arc<dyn Log>,
    pub(super) ops: mpsc::Sender<QueuedOp>,
    pub(super) new_models: mpsc::Sender<ModelResolver>,
    pub(super) subscriptions: mpsc::Sender<SubscribeRequest>,
    pub(super) activity: watch::Receiver<SessionActivity>,
    pub(super) attendance: Attendance,
    pub(super) initial_head: LogSeq,
    pub(super) stop: CancellationToken,
    pub(super) stop_after_calls: CancellationToken,
    /// Result of the loop of the session, once it has ended.
    pub(super) end: watch::Receiver<Option<Result<(), Fault>>>,
}

/// Activity of an open session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionActivity {
    /// A turn is under way.
    pub is_busy: bool,
    /// The turn waits for the user, and no call runs meanwhile.
    pub is_waiting: bool,
    /// Last position of the log.
    pub head: LogSeq,
    /// Title of the session.
    pub title: String,
    /// Name of its agent.
    pub agent: String,
    /// Model that the user chose for it.
    pub model: Option<ModelChoice>,
    /// Number of background jobs and subagents that run.
    pub background_count: u32,
}

impl SessionHandle {
    /// Sends an operation, and returns the answer of the session: the last position of the log with
    /// all facts of the operation, or the reason why it was not carried out.
    pub async fn submit(&self, request: OpRequest, sender: Option<OpSender>) -> OpResult {
        let answer = self.queue(request, sender).await;
        // A session that ends answers nothing more.
        answer.await.unwrap_or(Err(OpError::Stopped))
    }

    /// Queues an operation behind the ones before it. The receiver gets the answer.
    pub async fn queue(
        &self,
        request: OpRequest,
        sender: Option<OpSender>,
    ) -> oneshot::Receiver<OpResult> {
        let (reply, answer) = oneshot::channel();
        // If the session has stopped, this drops `reply`.
        let _ = self.ops.send(QueuedOp { request, sender, reply: Some(reply) }).await;
        answer
    }

    /// Queues an operation of a client under a new id. The receiver gets the answer.
    pub async fn queue_op(
        &self,
        op: SessionOp,
        sender: Option<OpSender>,
    ) -> oneshot::Receiver<OpResult> {
        self.queue(OpRequest { id: new_op_id(), op }, sender).await
    }

    /// Queues an operation without waiting for its answer. Returns false if the session has stopped.
    pub async fn send(&self, op: SessionOp) -> bool {
        self.ops.send(new_queued_op(op)).await.is_ok()
    }

    /// Replaces the models of the session by those of another config or API key, under the same
    /// names. A step under way is not affected. Returns false if the session has stopped.
    pub async fn replace_models(&self, resolver: ModelResolver) -> bool {
        self.new_models.send(resolver).await.is_ok()
    }

    /// Returns true if both are handles of the same loop, and not of a session that was opened again.
    pub fn is_same_loop(&self, other: &SessionHandle) -> bool {
        self.end.same_channel(&other.end)
    }

    /// Returns the number of facts that the session had when it was opened.
    pub fn initial_head(&self) -> LogSeq {
        self.initial_head
    }

    /// Returns what the session is doing, and reports changes.
    pub fn activity(&self) -> watch::Receiver<SessionActivity> {
        self.activity.clone()
    }

    /// Returns this position of the log with its epoch, if the log can be read.
    pub async fn log_position(&self, seq: LogSeq) -> LogPosition {
        let position = LogPosition::unchecked(seq);
        self.log.resume_position(self.session, position).await.unwrap_or(position)
    }

    /// Returns the calls of the session and its subagents that wait for the user, and reports
    /// changes.
    pub fn open_questions(&self) -> watch::Receiver<OpenQuestions> {
        self.attendance.open_questions()
    }

    /// Returns the facts that ask the open questions.
    pub async fn read_open_questions(&self) -> Vec<FactRecord> {
        let questions = self.open_questions().borrow().clone();
        let mut records = Vec::new();
        for (session, seq) in questions.into_values() {
            let page =
                self.log.read_page(session, seq.saturating_sub(1), PageLimit::facts(1)).await;
            // A question that cannot be read is asked again when the session is opened again.
            records.extend(page.unwrap_or_default());
        }
        records
    }

    /// Waits until the session has ended, and returns the fault that stopped it, if any.
    pub async fn wait_until_ended(&self) -> Result<(), Fault> {
        let mut end = self.end.clone();
        match end.wait_for(Option::is_some).await {
            Ok(result) => result.clone().unwrap_or(Ok(())),
            Err(_) => {
                let message = "the session ended without a result".to_owned();
                Err(Fault::Internal { message })
            }
        }
    }

    /// Says that a user is present and may be asked, until the guard is dropped. Without any, the
    /// `UnattendedPolicy` of the engine applies.
    pub fn attend(&self) -> AttendanceGuard {
        self.attendance.attend(true)
    }

    /// Says that a client waits for the session and has no user to answer questions, until the guard
    /// is dropped. They are declined while no user is present.
    pub fn attend_without_user(&self) -> AttendanceGuard {
        self.attendance.attend(false)
    }

    /// Watches the session: the facts after `cursor`, then its events as they happen.
    pub async fn watch(&self, cursor: EventCursor) -> SessionWatcher {
        let log = Arc::clone(&self.log);
        SessionWatcher::subscribe(log, self.session, cursor, self.subscriptions.clone()).await
    }

    /// Closes the session when no call is running, or when `limit` has passed. A turn under way
    /// resumes when the session is opened again, and no command is cut off if all end in time.
    pub async fn close_after_calls(&self, limit: Duration) -> Result<(), Fault> {
        self.stop_after_calls.cancel();
        match tokio::time::timeout(limit, self.wait_until_ended()).await {
            Ok(result) => result,
            Err(_) => self.close().await,
        }
    }

    /// Closes the session, and returns the fault that stopped it, if any. A turn under way resumes
    /// when the session is opened again.
    pub async fn close(&self) -> Result<(), Fault> {
        self.stop.cancel();
        self.wait_until_ended().await
    }
}

/// Returns an operation of Windlass itself, with a new id.
pub(super) fn new_queued_op(op: SessionOp) -> QueuedOp {
    let request = OpRequest { id: new_op_id(), op };
    QueuedOp { request, sender: None, reply: None }
}
