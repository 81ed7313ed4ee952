//! Answers to operations: each is answered exactly once, and one that comes again gets its first
//! answer.

use std::collections::{HashMap, VecDeque};
use tokio::sync::oneshot;
use windlass_protocol::{
    AccessRight, ClientInfo, Fact, FactOrigin, FactRecord, LogSeq, OpError, OpId, OpRequest,
    OpResult,
};

/// Number of answers that a session remembers, for operations that come again.
pub(crate) const MAX_REMEMBERED_OPS: usize = 1024;

/// A client that sends an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpSender {
    /// The client, as facts name it.
    pub client: ClientInfo,
    /// Its access right.
    pub right: AccessRight,
}

impl OpSender {
    /// Returns a client that the user at this machine runs.
    pub fn local(client: ClientInfo) -> OpSender {
        OpSender { client, right: AccessRight::Admin }
    }
}

/// An operation in the queue of a session.
pub(crate) struct QueuedOp {
    pub(crate) request: OpRequest,
    /// Client that sent it; `None` for Windlass itself. Facts name the client, so only operations of
    /// a client are remembered when the session is opened again.
    pub(crate) sender: Option<OpSender>,
    /// Receives the answer, if the caller waits for it.
    pub(crate) reply: Option<oneshot::Sender<OpResult>>,
}

/// An operation that is not answered yet.
#[derive(Default)]
struct OpenOp {
    sender: Option<OpSender>,
    replies: Vec<oneshot::Sender<OpResult>>,
}

/// The operations of an open session: those that are not answered yet, and the last answers.
#[derive(Default)]
pub(super) struct OpLedger {
    open: HashMap<OpId, OpenOp>,
    answers: HashMap<OpId, OpResult>,
    /// The keys of `answers`, oldest first.
    answered: VecDeque<OpId>,
    /// The clients that answered questions, oldest first.
    answer_authors: VecDeque<(LogSeq, ClientInfo)>,
}

impl OpLedger {
    /// Creates a ledger that knows the operations of an earlier process, from the log.
    pub(super) fn new(earlier: impl IntoIterator<Item = (OpId, LogSeq)>) -> OpLedger {
        let mut ledger = OpLedger::default();
        for (op, seq) in earlier {
            ledger.remember(op, Ok(seq));
        }
        ledger
    }

    /// Returns the request if it is new. Otherwise it gets the answer of the first one, now or when
    /// that is answered.
    pub(super) fn admit(&mut self, queued: QueuedOp) -> Option<OpRequest> {
        let QueuedOp { request, sender, reply } = queued;
        if let Some(answer) = self.answers.get(&request.id) {
            reply.map(|reply| reply.send(answer.clone()));
            return None;
        }
        let is_new = !self.open.contains_key(&request.id);
        let open = self.open.entry(request.id).or_default();
        open.replies.extend(reply);
        if is_new {
            open.sender = sender;
        }
        is_new.then_some(request)
    }

    /// Returns the origin of the facts of an operation that is not answered yet.
    pub(super) fn origin(&self, op: OpId) -> Option<FactOrigin> {
        let client = self.sender(op)?.client.clone();
        Some(FactOrigin { op, client })
    }

    /// Returns the client that sent an operation that is not answered yet.
    pub(super) fn sender(&self, op: OpId) -> Option<&OpSender> {
        self.open.get(&op)?.sender.as_ref()
    }

    /// Remembers who answered a question.
    pub(super) fn note_fact(&mut self, record: &FactRecord) {
        if let Fact::PermissionAnswered { .. } | Fact::QuestionAnswered { .. } = &record.fact
            && let Some(origin) = &record.origin
        {
            self.answer_authors.push_back((record.seq, origin.client.clone()));
            if self.answer_authors.len() > MAX_REMEMBERED_OPS {
                self.answer_authors.pop_front();
            }
        }
    }

    /// Returns the client that answered a question, by the position of the answer.
    pub(super) fn author_of_answer(&self, seq: LogSeq) -> Option<ClientInfo> {
        let mut authors = self.answer_authors.iter();
        authors.find(|(known, _)| *known == seq).map(|(_, client)| client.clone())
    }

    /// Answers an operation.
    pub(super) fn answer(&mut self, op: OpId, result: OpResult) {
        if self.send_answer(op, &result) {
            self.remember(op, result);
        }
    }

    /// Answers an operation that subagents were asked about. A subagent that has not started again
    /// after a crash may know the question later.
    pub(super) fn answer_forwarded(&mut self, op: OpId, result: OpResult) {
        let is_final = !matches!(result, Err(OpError::NoQuestion));
        if self.send_answer(op, &result) && is_final {
            self.remember(op, result);
        }
    }

    /// Returns true if the operation was not answered yet.
    fn send_answer(&mut self, op: OpId, result: &OpResult) -> bool {
        let Some(open) = self.open.remove(&op) else { return false };
        for reply in open.replies {
            // The sender may have stopped waiting.
            let _ = reply.send(result.clone());
        }
        true
    }

    fn remember(&mut self, op: OpId, result: OpResult) {
        if self.answers.insert(op, result).is_none() {
            self.answered.push_back(op);
        }
        if self.answered.len() > MAX_REMEMBERED_OPS
            && let Some(oldest) = self.answered.pop_front()
        {
            self.answers.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;
    use windlass_protocol::{ClientKind, SessionOp};

    fn queued(id: u128) -> (QueuedOp, oneshot::Receiver<OpResult>) {
        let (reply, receiver) = oneshot::channel();
        let request = OpRequest { id: OpId(Uuid::from_u128(id)), op: SessionOp::Compact };
        let client = ClientInfo { name: "anna".to_owned(), kind: ClientKind::Program };
        (QueuedOp { request, sender: Some(OpSender::local(client)), reply: Some(reply) }, receiver)
    }

    #[test]
    fn an_operation_that_comes_again_gets_the_first_answer() {
        let mut ledger = OpLedger::default();
        let ((first, mut first_reply), (again, mut second_reply)) = (queued(1), queued(1));
        let id = first.request.id;
        assert!(ledger.admit(first).is_some());
        assert!(ledger.admit(again).is_none(), "while the first one is under way");
        assert_eq!(ledger.origin(id).map(|origin| origin.client.name).as_deref(), Some("anna"));
        ledger.answer(id, Err(OpError::NoTurn));
        ledger.answer(id, Ok(7));
        assert_eq!(first_reply.try_recv(), Ok(Err(OpError::NoTurn)));
        assert_eq!(second_reply.try_recv(), Ok(Err(OpError::NoTurn)));
        let (late, mut late_reply) = queued(1);
        assert!(ledger.admit(late).is_none());
        assert_eq!(late_reply.try_recv(), Ok(Err(OpError::NoTurn)));
        assert_eq!(ledger.origin(id), None);
    }

    #[test]
    fn the_oldest_answers_are_forgotten() {
        let ids = (0..=MAX_REMEMBERED_OPS as u128).map(|id| (OpId(Uuid::from_u128(id)), 1));
        let mut ledger = OpLedger::new(ids);
        assert!(ledger.admit(queued(0).0).is_some());
        assert!(ledger.admit(queued(1).0).is_none());
        assert_eq!((ledger.answers.len(), ledger.answered.len()), (1024, 1024));
    }
}
