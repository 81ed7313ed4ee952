//! Operations of a front end on their way to sessions, in order.
//!
//! The next operation is sent when the one before it is answered, because two requests to a server
//! may overtake each other. An operation that takes long does not hold the others back: it is in the
//! queue of its session by then, and an interrupt must reach the session.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};
use windlass_protocol::{Fault, OpError, OpId, SessionId, SessionOp};
use windlass_server::{Caller, FrontendService};

/// Maximum time that an operation waits for the answer to the one before it.
const MAX_WAIT: Duration = Duration::from_millis(250);

/// An operation with its session, and its id if the front end has chosen one.
type AddressedOp = (SessionId, Option<OpId>, SessionOp);

/// The answer to a request, with its number.
type NumberedAnswer = (u64, Result<HostResponse, Fault>);

/// Sends operations in order, and collects their answers.
pub(crate) struct OpQueue {
    service: Arc<dyn FrontendService>,
    caller: Caller,
    /// True to open a session again that the server has closed, and to repeat the operation.
    reopens: bool,
    waiting: VecDeque<(u64, AddressedOp)>,
    sent: JoinSet<NumberedAnswer>,
    /// The time from which on the next operation does not wait any longer.
    next_at: Option<tokio::time::Instant>,
}

impl OpQueue {
    pub(crate) fn new(service: Arc<dyn FrontendService>, caller: Caller) -> OpQueue {
        let (waiting, sent) = (VecDeque::new(), JoinSet::new());
        OpQueue { service, caller, reopens: false, waiting, sent, next_at: None }
    }

    /// Opens a session again that the server has closed, instead of reporting a stopped one.
    pub(super) fn with_reopening(self) -> OpQueue {
        OpQueue { reopens: true, ..self }
    }

    /// Adds an operation; `id` is the number of its request.
    pub(crate) fn push(&mut self, id: u64, op: AddressedOp) {
        self.waiting.push_back((id, op));
        if self.sent.is_empty() {
            self.send_next();
        }
    }

    fn send_next(&mut self) {
        let Some((id, (session, op_id, op))) = self.waiting.pop_front() else {
            self.next_at = None;
            return;
        };
        let (service, caller) = (Arc::clone(&self.service), self.caller.clone());
        let op_id = op_id.unwrap_or_else(windlass_engine::new_op_id);
        let reopens = self.reopens;
        self.sent.spawn(async move {
            let request = FrontendRequest::SessionOp { session, id: Some(op_id), op };
            let mut answer = service.request(&caller, request.clone()).await;
            let is_stopped =
                matches!(answer, Ok(HostResponse::OpRejected { error: OpError::Stopped }));
            if reopens && is_stopped {
                // The server started again since the session was opened.
                let reopening = FrontendRequest::OpenSession { session, resume: true };
                if service.request(&caller, reopening).await.is_ok() {
                    answer = service.request(&caller, request).await;
                }
            }
            (id, answer.map_err(Fault::from))
        });
        self.next_at = Some(tokio::time::Instant::now() + MAX_WAIT);
    }

    /// Waits for the next answer, and sends further operations meanwhile. It is cancel-safe, and
    /// never resolves to `None` while operations are under way.
    pub(crate) async fn next_answer(&mut self) -> Option<NumberedAnswer> {
        loop {
            let next_at = self.next_at.filter(|_| !self.waiting.is_empty());
            let is_due = async {
                match next_at {
                    Some(next_at) => tokio::time::sleep_until(next_at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                Some(answer) = self.sent.join_next() => {
                    self.send_next();
                    // A crashed request has no answer; the front end goes on without it.
                    if let Ok(answer) = answer {
                        return Some(answer);
                    }
                }
                () = is_due => self.send_next(),
                else => return None,
            }
        }
    }
}
