//! Sessions of a fleet: requests about sessions that another node has, and operations that wait in
//! the database.
//!
//! An operation is done by the node that has its session. If that node cannot be reached, or there
//! is none, the operation is stored first and then acknowledged as queued; its id makes sure that a
//! second delivery changes nothing.

use super::{OpenSession, SessionHub};
use crate::fleet_node::{FleetNode, SessionPlace};
use futures_util::future::join_all;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};
use windlass_protocol::{
    AccessRight, ClientInfo, Fault, OpError, OpId, RequestError, SessionId, SessionOp, SessionQuery,
};
use windlass_server::{Caller, FrontendService};
use windlass_storage::SessionClaim;
use windlass_storage::postgres::InboxOp;

/// Limit for another node to answer an operation, before it is queued.
const FORWARD_TIMEOUT: Duration = Duration::from_secs(5);
/// Limit for a session to answer an operation that was queued, before the next round.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(10);

impl SessionHub {
    /// Answers a request about a session that another node of the fleet has. Returns `None` if this
    /// process answers it.
    pub(super) async fn answer_elsewhere(
        &self,
        caller: &Caller,
        request: &FrontendRequest,
    ) -> Result<Option<HostResponse>, RequestError> {
        let Some(fleet) = &self.options.fleet else { return Ok(None) };
        let Some(session) = session_of_request(request) else { return Ok(None) };
        if self.open_session(session).is_some() {
            return Ok(None);
        }
        // A session that the client may not see does not exist.
        self.workspace_of(session).await?;
        let place = fleet.place_of(session).await?;
        if let FrontendRequest::SessionOp { id, op, .. } = request {
            let id = id.unwrap_or_else(windlass_engine::new_op_id);
            let answer = self.submit_to(fleet, place, caller, (session, id, op)).await?;
            return Ok(Some(answer));
        }
        match place {
            SessionPlace::NotElsewhere => Ok(None),
            SessionPlace::Node(node, remote) => {
                let answer = remote.request(caller, request.clone()).await;
                if let Err(RequestError::Unavailable { .. }) = &answer {
                    fleet.note_failure(node);
                }
                answer.map(Some)
            }
            SessionPlace::Unreachable => match request {
                // Its facts are read from the log, and operations are queued.
                FrontendRequest::OpenSession { .. } => {
                    let engine = self.workspace_of(session).await?.state().inspect_engine().await?;
                    let head = engine.last_position(session).await?.seq;
                    Ok(Some(HostResponse::SessionOpened { session, head, model: None }))
                }
                _ => {
                    let text = format!(
                        "session {session} is open on another node, which does not answer. Try \
                         again later"
                    );
                    Err(RequestError::Unavailable { text })
                }
            },
        }
    }

    /// Sends an operation to the node that has the session, opens the session here, or queues the
    /// operation.
    async fn submit_to(
        &self,
        fleet: &FleetNode,
        place: SessionPlace,
        caller: &Caller,
        (session, id, op): (SessionId, OpId, &SessionOp),
    ) -> Result<HostResponse, RequestError> {
        match place {
            SessionPlace::Node(node, remote) => {
                let request = FrontendRequest::SessionOp { session, id: Some(id), op: op.clone() };
                let answer = remote.request(caller, request);
                match tokio::time::timeout(FORWARD_TIMEOUT, answer).await {
                    // It has just closed the session.
                    Ok(Ok(HostResponse::OpRejected { error: OpError::Stopped })) => {}
                    Ok(Err(RequestError::Unavailable { .. })) | Err(_) => fleet.note_failure(node),
                    Ok(answer) => return answer,
                }
            }
            SessionPlace::Unreachable => {}
            SessionPlace::NotElsewhere => match self.open(session, true).await {
                Ok(_) => match self.submit(session, (Some(id), op.clone()), caller).await? {
                    Ok(seq) => return Ok(HostResponse::OpAccepted { seq }),
                    Err(OpError::Stopped) => {}
                    Err(error) => return Ok(HostResponse::OpRejected { error }),
                },
                Err(RequestError::TooMany { .. } | RequestError::Unavailable { .. }) => {}
                Err(RequestError::Failed {
                    fault: Fault::SessionBusy { .. } | Fault::SessionMoved { .. },
                }) => {}
                Err(error) => return Err(error),
            },
        }
        let Caller { client, right, .. } = caller;
        let body = json!({ "op": op, "client": client, "right": right }).to_string();
        fleet.enqueue(session, &InboxOp { op: id, body }).await?;
        Ok(HostResponse::OpQueued)
    }

    /// Opens a session that this node has claimed because it was due, and closes it again if there is
    /// nothing to do: its node may have ended while it was idle.
    pub(crate) async fn resume_due(&self, claim: SessionClaim) -> Result<(), RequestError> {
        let session = claim.session;
        self.open_due(claim).await?;
        let queued = match &self.options.fleet {
            Some(fleet) => fleet.log.queued_ops(session).await.unwrap_or_default(),
            None => Vec::new(),
        };
        match queued.is_empty() {
            true => self.close_if_idle(session).await,
            false => self.deliver_queued_ops(&[session]).await,
        }
        Ok(())
    }

    async fn open_due(&self, claim: SessionClaim) -> Result<Arc<OpenSession>, RequestError> {
        let session = claim.session;
        let workspace = self.workspace_of(session).await?;
        let _state = workspace.keep_state().await;
        let engine = self.with_policy(&*workspace.state().best_engine().await?);
        let lock = self.session_lock(session);
        let _opening = lock.lock().await;
        let room = self.reserve_room().await?;
        let opened = engine.open_due(claim).await?;
        Ok(self.insert(Arc::clone(&workspace), opened, room))
    }

    /// Gives the operations that wait in the database to the sessions of this node.
    pub(crate) async fn deliver_queued_ops(&self, sessions: &[SessionId]) {
        let Some(fleet) = &self.options.fleet else { return };
        join_all(sessions.iter().map(|session| async move {
            let delivery = self.deliver_ops_of(fleet, *session);
            match tokio::time::timeout(DELIVERY_TIMEOUT, delivery).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    tracing::warn!(%error, %session, "queued operations were not delivered");
                }
                Err(_) => tracing::warn!(%session, "a queued operation was not answered"),
            }
        }))
        .await;
    }

    async fn deliver_ops_of(
        &self,
        fleet: &FleetNode,
        session: SessionId,
    ) -> Result<(), RequestError> {
        if self.open_session(session).is_none() {
            // It is being opened.
            return Ok(());
        }
        let to_fault = |error: windlass_storage::StorageError| {
            RequestError::from(Fault::Storage { message: error.to_string() })
        };
        for InboxOp { op: id, body } in fleet.log.queued_ops(session).await.map_err(to_fault)? {
            match parse_queued_op(&body) {
                Some((op, caller)) => match self.submit(session, (Some(id), op), &caller).await? {
                    Err(OpError::Stopped) => return Ok(()),
                    // A rejection has no other reader than the log.
                    Err(error) => {
                        tracing::info!(%error, %session, "a queued operation was rejected");
                    }
                    Ok(_) => {}
                },
                None => tracing::warn!(%session, op = %id.0, "a queued operation is not readable"),
            }
            fleet.log.remove_queued(session, id).await.map_err(to_fault)?;
        }
        Ok(())
    }
}

/// Reads an operation and its client as `submit_to` has stored them.
fn parse_queued_op(body: &str) -> Option<(SessionOp, Caller)> {
    let mut body: serde_json::Value = serde_json::from_str(body).ok()?;
    let mut field = |name: &str| body.get_mut(name).map(serde_json::Value::take);
    let op: SessionOp = serde_json::from_value(field("op")?).ok()?;
    let client: ClientInfo = serde_json::from_value(field("client")?).ok()?;
    let right: AccessRight = serde_json::from_value(field("right")?).ok()?;
    Some((op, Caller { client, right, workspace: None }))
}

/// Returns the session of a request that only the node that has the session can answer.
fn session_of_request(request: &FrontendRequest) -> Option<SessionId> {
    match request {
        FrontendRequest::SessionOp { session, .. }
        | FrontendRequest::OpenSession { session, .. }
        | FrontendRequest::CloseSession { session }
        | FrontendRequest::DeleteSession { session }
        | FrontendRequest::RenameSession { session, .. }
        | FrontendRequest::ExpandCommand { session: Some(session), .. }
        | FrontendRequest::Query { query: SessionQuery::Jobs { session } } => Some(*session),
        _ => None,
    }
}
