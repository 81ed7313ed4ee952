//! Operations on the way to the open session, and their answers.

use super::{BackgroundTaskResult, FrontendHost};
use std::sync::Arc;
use windlass_protocol::frontend_messages::HostResponse;
use windlass_protocol::{Fault, OpError, OpResult, SessionId, SessionOp};

impl FrontendHost {
    /// Renames the open session through its writer, and another one in the log.
    pub(super) async fn rename_session(&mut self, id: u64, session: SessionId, title: String) {
        let open = self.open_session.as_ref().filter(|open| open.handle.session == session);
        if let Some(open) = open {
            let op = SessionOp::RenameSession { title };
            let answer = open.handle.queue_op(op, Some(self.client.clone())).await;
            return self.spawn_work(id, async move {
                let result = answer.await.unwrap_or(Err(OpError::Stopped));
                let to_fault = |error: OpError| Fault::Config { message: error.to_string() };
                BackgroundTaskResult::Answer(
                    id,
                    result.map(|_| HostResponse::Done).map_err(to_fault),
                )
            });
        }
        let state = Arc::clone(&self.state);
        self.spawn_work(id, async move {
            let renamed = match state.inspect_engine().await {
                Ok(engine) => engine.rename(session, &title).await,
                Err(fault) => Err(fault),
            };
            BackgroundTaskResult::Answer(id, renamed.map(|_| HostResponse::Done))
        });
    }

    pub(super) async fn forward_op(&mut self, id: u64, session: SessionId, op: SessionOp) {
        let open = self.open_session.as_ref().filter(|open| open.handle.session == session);
        let Some(open) = open else {
            return self.send_answer(id, Ok(op_response(Err(OpError::Stopped))));
        };
        let answer = open.handle.queue_op(op, Some(self.client.clone())).await;
        self.spawn_work(id, async move {
            let result = answer.await.unwrap_or(Err(OpError::Stopped));
            BackgroundTaskResult::Answer(id, Ok(op_response(result)))
        });
    }
}

/// Returns the response to an operation.
fn op_response(result: OpResult) -> HostResponse {
    match result {
        Ok(seq) => HostResponse::OpAccepted { seq },
        Err(error) => HostResponse::OpRejected { error },
    }
}
