//! The session of a run: in this process, or in a server.

use crate::frontend_host::OpQueue;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use windlass_engine::{OpSender, SessionHandle, SessionWatcher, new_op_id};
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};
use windlass_protocol::session_stream::{SessionStreamItem, StreamClosingReason};
use windlass_protocol::{
    ClientInfo, ClientKind, Event, Fault, OpRequest, OpResult, SessionId, SessionOp,
};
use windlass_server::{Caller, FrontendService};

/// Operations that wait to be sent.
const OP_QUEUE_LEN: usize = 16;

/// The session of a run, which takes its operations.
pub(super) struct RunSession {
    pub(super) id: SessionId,
    ops: RunOps,
}

enum RunOps {
    Local(SessionHandle, OpSender),
    Attached {
        ops: mpsc::Sender<(OpRequest, oneshot::Sender<OpResult>)>,
        service: Arc<dyn FrontendService>,
        caller: Caller,
    },
}

/// A message of the session of a run.
pub(super) enum RunEvent {
    Session(Arc<Event>),
    /// The connection to the server is lost. It is made again.
    Disconnected(String),
    Reconnected,
}

/// The events of the session of a run.
pub(super) enum RunEvents {
    Local(SessionWatcher),
    Attached {
        items: BoxStream<'static, SessionStreamItem>,
        /// Failures of operations that did not reach the session.
        faults: mpsc::Receiver<Fault>,
        /// Questions that were asked before the run.
        questions: VecDeque<Arc<Event>>,
        is_disconnected: bool,
        /// Sends the operations; it ends with the run.
        _sender: JoinSet<()>,
    },
}

impl RunSession {
    /// Returns a session of this process.
    pub(super) fn local(handle: SessionHandle, watcher: SessionWatcher) -> (RunSession, RunEvents) {
        let sender = OpSender::local(crate::local_client(ClientKind::CommandLine));
        let session = RunSession { id: handle.session, ops: RunOps::Local(handle, sender) };
        (session, RunEvents::Local(watcher))
    }

    /// Returns a session of a server.
    pub(super) fn attached(
        (service, caller): (Arc<dyn FrontendService>, Caller),
        id: SessionId,
        items: BoxStream<'static, SessionStreamItem>,
    ) -> (RunSession, RunEvents) {
        let (ops, receiver) = mpsc::channel(OP_QUEUE_LEN);
        let (fault_sender, faults) = mpsc::channel(OP_QUEUE_LEN);
        let mut sender = JoinSet::new();
        let queue = OpQueue::new(Arc::clone(&service), caller.clone());
        sender.spawn(send_ops(queue, id, receiver, fault_sender));
        let events = RunEvents::Attached {
            items,
            faults,
            questions: VecDeque::new(),
            is_disconnected: false,
            _sender: sender,
        };
        (RunSession { id, ops: RunOps::Attached { ops, service, caller } }, events)
    }

    /// Queues an operation behind the ones before it. The receiver gets the answer; none if the
    /// operation did not reach the session.
    pub(super) async fn queue_op(&self, op: SessionOp) -> oneshot::Receiver<OpResult> {
        self.queue(OpRequest { id: new_op_id(), op }).await
    }

    /// Like [`RunSession::queue_op`], with an id that becomes that of the prompt.
    pub(super) async fn queue(&self, request: OpRequest) -> oneshot::Receiver<OpResult> {
        match &self.ops {
            RunOps::Local(handle, sender) => handle.queue(request, Some(sender.clone())).await,
            RunOps::Attached { ops, .. } => {
                let (reply, answer) = oneshot::channel();
                // If the sender has ended, this drops `reply`.
                let _ = ops.send((request, reply)).await;
                answer
            }
        }
    }

    /// Returns a client with a user who also watches the session, and may answer its questions.
    pub(super) async fn other_user(&self) -> Option<ClientInfo> {
        let RunOps::Attached { service, caller, .. } = &self.ops else { return None };
        let answer = service.request(caller, FrontendRequest::ListOpenSessions).await;
        let Ok(HostResponse::OpenSessions { sessions }) = answer else { return None };
        let own = sessions.into_iter().find(|state| state.session == self.id)?;
        own.clients.into_iter().find(|client| match client.kind {
            ClientKind::Terminal | ClientKind::WebPage | ClientKind::Editor => true,
            ClientKind::CommandLine | ClientKind::Program => false,
        })
    }
}

impl RunEvents {
    /// Returns the next event, or `None` if the session has ended.
    pub(super) async fn next(&mut self) -> Result<Option<RunEvent>, Fault> {
        match self {
            RunEvents::Local(watcher) => {
                let event = watcher.next().await;
                let event = event.map_err(|error| Fault::Storage { message: error.to_string() })?;
                Ok(event.map(RunEvent::Session))
            }
            RunEvents::Attached { items, faults, questions, is_disconnected, .. } => loop {
                if let Some(question) = questions.pop_front() {
                    return Ok(Some(RunEvent::Session(question)));
                }
                let item = tokio::select! {
                    biased;
                    Some(fault) = faults.recv() => return Err(fault),
                    item = items.next() => item,
                };
                match item {
                    Some(SessionStreamItem::Opened(opening)) => {
                        let records = opening.open_questions.into_iter();
                        questions.extend(records.map(|record| Arc::new(Event::Fact(record))));
                        if std::mem::take(is_disconnected) {
                            return Ok(Some(RunEvent::Reconnected));
                        }
                    }
                    Some(SessionStreamItem::Disconnected(reason)) => {
                        if !std::mem::replace(is_disconnected, true) {
                            return Ok(Some(RunEvent::Disconnected(reason)));
                        }
                    }
                    Some(item) => {
                        if let Some(event) = to_event(item)? {
                            return Ok(Some(RunEvent::Session(event)));
                        }
                    }
                    None => return Ok(None),
                }
            },
        }
    }
}

/// Returns the event of a stream item, if it has one.
fn to_event(item: SessionStreamItem) -> Result<Option<Arc<Event>>, Fault> {
    match item {
        SessionStreamItem::Fact(record, _) => Ok(Some(Arc::new(Event::Fact(*record)))),
        SessionStreamItem::Live(record) => Ok(Some(Arc::new(Event::Live(*record)))),
        SessionStreamItem::Opened(_)
        | SessionStreamItem::Lagged(_)
        | SessionStreamItem::Disconnected(_) => Ok(None),
        SessionStreamItem::Reset(_) => {
            let message = "the server lost facts of this session; run it again".to_owned();
            Err(Fault::Storage { message })
        }
        SessionStreamItem::Stopped(fault) => Err(fault),
        SessionStreamItem::Closing(closing) => match closing.reason {
            StreamClosingReason::ServerStopping | StreamClosingReason::TurnEnded => Ok(None),
            StreamClosingReason::TokenRevoked => {
                let message = "the server no longer accepts this token".to_owned();
                Err(Fault::Refused { message })
            }
            StreamClosingReason::SessionClosed => {
                let message = "the session was closed by another client".to_owned();
                Err(Fault::Refused { message })
            }
        },
    }
}

/// Sends operations in order until the run ends.
async fn send_ops(
    mut queue: OpQueue,
    session: SessionId,
    mut ops: mpsc::Receiver<(OpRequest, oneshot::Sender<OpResult>)>,
    faults: mpsc::Sender<Fault>,
) {
    let (mut replies, mut last) = (HashMap::new(), 0);
    loop {
        tokio::select! {
            op = ops.recv() => {
                let Some((OpRequest { id, op }, reply)) = op else { return };
                last += 1;
                replies.insert(last, reply);
                queue.push(last, (session, Some(id), op));
            }
            Some((number, answer)) = queue.next_answer() => {
                let Some(reply) = replies.remove(&number) else { continue };
                // The run may have ended.
                let _ = match answer {
                    Ok(HostResponse::OpRejected { error }) => reply.send(Err(error)).is_ok(),
                    Ok(HostResponse::OpAccepted { seq }) => reply.send(Ok(seq)).is_ok(),
                    Ok(_) => false,
                    Err(fault) => faults.send(fault).await.is_ok(),
                };
            }
        }
    }
}
