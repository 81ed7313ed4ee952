//! Sessions of a fleet: requests about sessions that another node has, and operations that wait in
//! the database.
//!
//! An operation is done by the node that has its session. If that node cannot be reached, or there
//! is none, the operation is stored first and then acknowledged as queued; its id makes sure that a
//! second delivery changes nothing.

use super::{OpenSession, SessionHub};
use crate::fleet_node::{FleetNode, SessionPlace, storage_error};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use windlass_engine::UnfinishedTurn;
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};
use windlass_protocol::{
    AccessRight, ClientInfo, Fault, OpError, OpId, RequestError, SessionId, SessionOp, SessionQuery,
};
use windlass_server::{Caller, FrontendService};
use windlass_storage::postgres::InboxOp;
use windlass_storage::{Log, ReleaseState, SessionClaim};

/// Limit for another node to answer an operation, before it is queued.
const FORWARD_TIMEOUT: Duration = Duration::from_secs(5);
/// Limit for another node to answer another request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);
/// Limit for a session to answer an operation that was queued, before the next round.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(10);

impl SessionHub {
    /// Answers a request in a fleet: by the node that has the session, or by this process. The session
    /// may move meanwhile, so it is looked for twice.
    pub(super) async fn answer_in_fleet(
        &self,
        caller: &Caller,
        request: FrontendRequest,
    ) -> Result<HostResponse, RequestError> {
        let Some(session) = session_of_request(&request) else {
            return self.answer(caller, request).await;
        };
        if let Some(response) = self.answer_elsewhere(caller, session, &request).await? {
            return Ok(response);
        }
        let answer = self.answer(caller, request.clone()).await;
        let has_moved = matches!(
            answer,
            Ok(HostResponse::OpRejected { error: OpError::Stopped })
                | Err(RequestError::Failed {
                    fault: Fault::SessionBusy { .. } | Fault::SessionMoved { .. },
                })
        );
        if has_moved
            && let Some(response) = self.answer_elsewhere(caller, session, &request).await?
        {
            return Ok(response);
        }
        answer
    }

    /// Answers a request about a session that this process does not have open. Returns `None` if this
    /// process answers it all the same.
    async fn answer_elsewhere(
        &self,
        caller: &Caller,
        session: SessionId,
        request: &FrontendRequest,
    ) -> Result<Option<HostResponse>, RequestError> {
        let Some(fleet) = &self.options.fleet else { return Ok(None) };
        if self.open_session(session).is_some() {
            return Ok(None);
        }
        let known = self.workspace_of(session).await;
        let place = fleet.place_of(session).await?;
        if let (Err(error), false) = (&known, matches!(place, SessionPlace::Node(..))) {
            // A session that the client may not see does not exist. One without a fact is known to
            // its node only.
            return Err(error.clone());
        }
        if let FrontendRequest::SessionOp { id, op, .. } = request {
            if known.is_ok()
                && let Err(error) = self.check_attachments(caller, session, op).await?
            {
                return Ok(Some(HostResponse::OpRejected { error }));
            }
            let id = id.unwrap_or_else(windlass_engine::new_op_id);
            let answer = self.submit_to(fleet, place, caller, (session, id, op)).await?;
            return Ok(Some(answer));
        }
        match place {
            SessionPlace::NotElsewhere => Ok(None),
            SessionPlace::Node(node, remote) => {
                let answer = remote.request(caller, request.clone());
                let answer = tokio::time::timeout(REQUEST_TIMEOUT, answer).await;
                let answer = answer.unwrap_or_else(|_| Err(unreachable_node(session)));
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
                _ => Err(unreachable_node(session)),
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
                    // The call has not asked its question again yet.
                    Err(OpError::NoQuestion) => {}
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
    /// nothing to do: its node may have ended while it was idle. Queued operations are delivered later.
    pub(crate) async fn resume_due(&self, claim: SessionClaim) -> Result<(), RequestError> {
        let session = claim.session;
        self.open_due(claim).await?;
        let queued = match &self.options.fleet {
            Some(fleet) => fleet.log.queued_ops(session).await.unwrap_or_default(),
            None => Vec::new(),
        };
        if queued.is_empty() {
            self.close_if_idle(session).await;
        }
        Ok(())
    }

    async fn open_due(&self, claim: SessionClaim) -> Result<Arc<OpenSession>, RequestError> {
        let session = claim.session;
        if let Some(folder) = self.checkout_to_open(session).await? {
            let place = (session, &*folder);
            return self.open_in_checkout(place, Some(claim), UnfinishedTurn::Resume).await;
        }
        let workspace = self.workspace_of(session).await?;
        let _state = workspace.keep_state().await;
        let engine = self.with_policy(&*workspace.state().best_engine().await?);
        let lock = self.session_lock(session);
        let _opening = lock.lock().await;
        if let Some(stale) = self.open_session(session) {
            self.remove_stale(&stale);
        }
        let room = match (self.reserve_room().await, &self.options.fleet) {
            (Err(error), Some(fleet)) => {
                // Another node may have room.
                let _ = fleet.log.release(claim, ReleaseState::Due).await;
                return Err(error);
            }
            (room, _) => room?,
        };
        let opened = engine.open_claimed(claim, UnfinishedTurn::Resume, None).await?;
        Ok(self.insert(Arc::clone(&workspace), opened, room))
    }

    /// Gives the operations that wait in the database to a session of this node.
    pub(crate) async fn deliver_queued_ops(&self, session: SessionId) {
        let Some(fleet) = &self.options.fleet else { return };
        let delivery = self.deliver_ops_of(fleet, session);
        match tokio::time::timeout(DELIVERY_TIMEOUT, delivery).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, %session, "queued operations were not delivered");
            }
            Err(_) => tracing::warn!(%session, "a queued operation was not answered"),
        }
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
        for InboxOp { op: id, body } in
            fleet.log.queued_ops(session).await.map_err(storage_error)?
        {
            let Some((op, caller)) = parse_queued_op(&body) else {
                tracing::warn!(%session, op = %id.0, "a queued operation is not readable");
                fleet.log.remove_queued(session, id).await.map_err(storage_error)?;
                continue;
            };
            match self.submit(session, (Some(id), op), &caller).await? {
                Ok(_) => {}
                Err(OpError::Stopped) => return Ok(()),
                // The answer waits until the call asks its question again.
                Err(OpError::NoQuestion) if self.is_resuming(session) => continue,
                Err(error) => tracing::info!(%error, %session, "a queued operation was rejected"),
            }
            fleet.log.remove_queued(session, id).await.map_err(storage_error)?;
        }
        Ok(())
    }

    /// Returns true while a turn is under way that does not wait for the user.
    fn is_resuming(&self, session: SessionId) -> bool {
        let handle = self.open_session(session).and_then(|open| open.handle());
        handle.is_some_and(|handle| {
            let activity = handle.activity().borrow().clone();
            activity.is_busy && !activity.is_waiting
        })
    }
}

/// Returns the error for a request that only another node could answer.
fn unreachable_node(session: SessionId) -> RequestError {
    let text = format!(
        "session {session} is open on another node, which does not answer. Try again later"
    );
    RequestError::Unavailable { text }
}

/// Reads an operation and its client as `submit_to` has stored them.
fn parse_queued_op(body: &str) -> Option<(SessionOp, Caller)> {
    let mut body: serde_json::Value = serde_json::from_str(body).ok()?;
    let mut field = |name: &str| body.get_mut(name).map(serde_json::Value::take);
    let op: SessionOp = serde_json::from_value(field("op")?).ok()?;
    let client: ClientInfo = serde_json::from_value(field("client")?).ok()?;
    let right: AccessRight = serde_json::from_value(field("right")?).ok()?;
    // The node that queued it has checked what it attaches.
    Some((op, Caller { client, right, workspace: None, through_node: true, tenant: None }))
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
