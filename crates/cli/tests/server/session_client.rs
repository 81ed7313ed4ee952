//! A client of one session: sends operations, and collects the facts that its stream brings.

use crate::support::TestEnv;
use crate::support::server::{caller, connect, soon};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use uuid::Uuid;
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};
use windlass_protocol::session_stream::SessionStreamItem;
use windlass_protocol::{
    CallId, EventCursor, Fact, FactRecord, LogPosition, LogSeq, OpId, OpResult, SessionId,
    SessionOp,
};
use windlass_server::{Caller, ClientAttendance, FrontendService, RemoteHost, WatchOptions};

/// A client of one session.
pub struct SessionClient {
    pub host: RemoteHost,
    pub caller: Caller,
    pub session: SessionId,
    items: BoxStream<'static, SessionStreamItem>,
    /// Facts of the session and its subagents, as they came.
    pub facts: Vec<FactRecord>,
    pub cursor: Option<EventCursor>,
}

impl SessionClient {
    /// Starts a session and watches it from its beginning.
    pub async fn start(env: &TestEnv) -> SessionClient {
        let (host, caller) = (connect(env).await, caller(env));
        let opened = host.request(&caller, FrontendRequest::new_session(None)).await.unwrap();
        let HostResponse::SessionOpened { session, .. } = opened else { panic!("{opened:?}") };
        SessionClient::watch(host, caller, session).await
    }

    /// Opens a session and watches it from its beginning.
    pub async fn open(env: &TestEnv, session: SessionId) -> SessionClient {
        let (host, caller) = (connect(env).await, caller(env));
        let request = FrontendRequest::OpenSession { session, resume: true };
        soon(host.request(&caller, request)).await.unwrap();
        SessionClient::watch(host, caller, session).await
    }

    /// Watches a session from its beginning.
    pub async fn watch(host: RemoteHost, caller: Caller, session: SessionId) -> SessionClient {
        let after = Some(LogPosition::START.into());
        let options = WatchOptions { after, user: ClientAttendance::Present, ..Default::default() };
        let items = soon(host.watch_session(&caller, session, options)).await.unwrap();
        SessionClient { host, caller, session, items, facts: Vec::new(), cursor: None }
    }

    /// Watches a session from the cursor of another client, with the facts that it has.
    pub async fn watch_after(host: RemoteHost, caller: Caller, other: &SessionClient) -> Self {
        let (session, cursor) = (other.session, other.cursor.clone());
        let user = ClientAttendance::Present;
        let options = WatchOptions { after: cursor.clone(), user, ..Default::default() };
        let items = soon(host.watch_session(&caller, session, options)).await.unwrap();
        SessionClient { host, caller, session, items, facts: other.facts.clone(), cursor }
    }

    /// Sends an operation, and returns its answer.
    pub async fn submit(&self, op: SessionOp) -> OpResult {
        self.submit_as(OpId(Uuid::now_v7()), op).await
    }

    /// Sends an operation under an id, and returns its answer.
    pub async fn submit_as(&self, id: OpId, op: SessionOp) -> OpResult {
        let request = FrontendRequest::SessionOp { session: self.session, id: Some(id), op };
        match soon(self.host.request(&self.caller, request)).await.unwrap() {
            HostResponse::OpAccepted { seq } => Ok(seq),
            HostResponse::OpRejected { error } => Err(error),
            other => panic!("{other:?}"),
        }
    }

    /// Returns the next item of the stream, and keeps its fact.
    pub async fn next_item(&mut self) -> SessionStreamItem {
        let item = soon(self.items.next()).await.expect("the stream goes on");
        match &item {
            SessionStreamItem::Fact(record, cursor) => {
                self.facts.push((**record).clone());
                self.cursor = Some(cursor.clone());
            }
            SessionStreamItem::Reset(reset) => self
                .facts
                .retain(|record| record.session != reset.session || record.seq <= reset.to.seq),
            _ => {}
        }
        item
    }

    /// Waits for the next fact that `accepts` returns something for.
    pub async fn wait_for_fact<T>(&mut self, accepts: impl Fn(&FactRecord) -> Option<T>) -> T {
        loop {
            if let SessionStreamItem::Fact(record, _) = self.next_item().await
                && let Some(found) = accepts(&record)
            {
                return found;
            }
        }
    }

    /// Waits for the end of the next turn of the session itself.
    pub async fn wait_for_turn_end(&mut self) {
        let session = self.session;
        let is_end = |record: &FactRecord| {
            (record.session == session && matches!(record.fact, Fact::TurnEnded { .. }))
                .then_some(())
        };
        self.wait_for_fact(is_end).await;
    }

    /// Waits for the next permission request, and returns its call and position.
    pub async fn wait_for_question(&mut self) -> (CallId, LogSeq) {
        self.wait_for_fact(|record| match &record.fact {
            Fact::PermissionAsked { call, .. } => Some((*call, record.seq)),
            _ => None,
        })
        .await
    }
}
