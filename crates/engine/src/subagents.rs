//! The subagents of a session: the pending ones, whose start is not yet recorded, and the running
//! ones. When the session ends, its subagents end too.

use crate::agent_definitions::AgentDefinition;
use crate::driver::op_ledger::{OpSender, QueuedOp};
use crate::shared_mutex::SharedMutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use windlass_protocol::mutex_lock::lock;
use windlass_protocol::{CallId, Fact, OpRequest, OpResult, PermissionMode, SessionId};
use windlass_storage::Log;
use windlass_toolkit::{CallFailure, SubagentReport, SubagentRequest};

/// Time that subagents get to end when their parent closes.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// Maximum number of `SessionOp`s queued for a subagent.
const ANSWER_CHANNEL_CAPACITY: usize = 256;

/// A subagent that starts once `SubagentStarted` is recorded.
pub(crate) struct PendingSubagent {
    pub(crate) agent: Arc<AgentDefinition>,
    pub(crate) request: SubagentRequest,
    pub(crate) reply: oneshot::Sender<Result<SubagentReport, CallFailure>>,
    pub(crate) cancel: CancellationToken,
    pub(crate) slot: OwnedSemaphorePermit,
}

/// Subagents by the call that requested them, until their start is recorded.
pub(crate) type PendingSubagents = SharedMutex<HashMap<CallId, PendingSubagent>>;

/// The parent driver's handle to a running subagent.
struct SubagentHandle {
    /// Forwards answers that may be for a call of this subagent.
    ops: mpsc::Sender<QueuedOp>,
    /// Publishes the `PermissionMode` of the parent session.
    parent_mode: watch::Sender<PermissionMode>,
    /// Marked as changed when the approvals of the parent session are revoked.
    revocations: watch::Sender<()>,
    cancel: CancellationToken,
}

/// Receives answers, mode changes and revocations from the parent.
pub(crate) struct ParentChannel {
    pub(crate) ops: mpsc::Receiver<QueuedOp>,
    pub(crate) parent_mode: watch::Receiver<PermissionMode>,
    pub(crate) revocations: watch::Receiver<()>,
}

/// The subagents of a session, and the tasks that run them.
#[derive(Default)]
pub(crate) struct Subagents {
    pub(crate) pending: PendingSubagents,
    running: HashMap<SessionId, SubagentHandle>,
    tasks: JoinSet<SessionId>,
}

impl Subagents {
    /// Registers a subagent whose start is recorded. Returns its request and its channel to the
    /// parent, which is in `mode`.
    pub(crate) fn accept(
        &mut self,
        call: CallId,
        session: SessionId,
        mode: PermissionMode,
    ) -> Option<(PendingSubagent, ParentChannel)> {
        let pending = lock(&self.pending).remove(&call)?;
        if self.running.contains_key(&session) {
            let text = format!("The subagent in session {session} is still running. Wait for it.");
            let _ = pending.reply.send(Err(CallFailure::new(text)));
            return None;
        }
        let (op_sender, ops) = mpsc::channel(ANSWER_CHANNEL_CAPACITY);
        let (mode_sender, parent_mode) = watch::channel(mode);
        let (revocation_sender, revocations) = watch::channel(());
        let handle = SubagentHandle {
            ops: op_sender,
            parent_mode: mode_sender,
            revocations: revocation_sender,
            cancel: pending.cancel.clone(),
        };
        self.running.insert(session, handle);
        Some((pending, ParentChannel { ops, parent_mode, revocations }))
    }

    /// Spawns the task that runs a subagent; it returns the subagent's session.
    pub(crate) fn spawn(&mut self, task: impl Future<Output = SessionId> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Returns the number of subagents that run.
    pub(crate) fn count(&self) -> usize {
        self.running.len()
    }

    /// Forwards an answer of the user to all subagents, since it may be for a call of one of them;
    /// the others refuse it. Returns their replies.
    pub(crate) fn forward(
        &self,
        request: &OpRequest,
        sender: Option<&OpSender>,
    ) -> Vec<oneshot::Receiver<OpResult>> {
        let send = |subagent: &SubagentHandle| {
            let (reply, receiver) = oneshot::channel();
            let (request, sender) = (request.clone(), sender.cloned());
            // A subagent that no longer receives has no open question, and drops `reply`.
            let _ = subagent.ops.try_send(QueuedOp { request, sender, reply: Some(reply) });
            receiver
        };
        self.running.values().map(send).collect()
    }

    /// Tells all subagents the new mode of their parent.
    pub(crate) fn set_parent_mode(&self, mode: PermissionMode) {
        for subagent in self.running.values() {
            subagent.parent_mode.send_replace(mode);
        }
    }

    /// Revokes the approvals of all subagents, because those of their parent are revoked.
    pub(crate) fn revoke_approvals(&self) {
        self.running.values().for_each(|subagent| subagent.revocations.send_replace(()));
    }

    pub(crate) fn cancel_all(&self) {
        self.running.values().for_each(|subagent| subagent.cancel.cancel());
    }

    /// Waits until a subagent has ended, and removes it. Returns `None` if none runs.
    pub(crate) async fn next_end(&mut self) -> Option<()> {
        let result = self.tasks.join_next().await?;
        if let Ok(session) = result {
            self.running.remove(&session);
        }
        Some(())
    }

    /// Removes the subagents that have ended.
    pub(crate) fn reap(&mut self) {
        while let Some(result) = self.tasks.try_join_next() {
            if let Ok(session) = result {
                self.running.remove(&session);
            }
        }
    }

    /// Waits up to `SHUTDOWN_TIMEOUT` for subagents to end, then aborts them.
    pub(crate) async fn shut_down(&mut self) {
        let all_ended = async { while self.tasks.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, all_ended).await;
        self.tasks.shutdown().await;
    }
}

/// Checks that a call may resume a session: one of `lineage` must have started it, with the same
/// agent.
pub(crate) async fn check_resumable(
    log: &dyn Log,
    session: SessionId,
    (agent, lineage): (&str, &[SessionId]),
) -> Result<(), CallFailure> {
    let records =
        log.read(session, 0).await.map_err(|error| CallFailure::new(error.to_string()))?;
    let unknown = || {
        CallFailure::new(format!(
            "No session {session} was started from here. Leave out session_id to start a new one."
        ))
    };
    match records.first().map(|record| &record.fact) {
        Some(Fact::SessionOpened { parent: Some(parent), agent: session_agent, .. }) => {
            if !lineage.contains(&parent.session) {
                return Err(unknown());
            }
            if session_agent != agent {
                let text = format!(
                    "Session {session} belongs to the agent {session_agent}, not to {agent}."
                );
                return Err(CallFailure::new(text));
            }
            Ok(())
        }
        Some(_) | None => Err(unknown()),
    }
}
