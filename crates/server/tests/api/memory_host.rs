//! A host that keeps one session in memory.

use async_trait::async_trait;
use base64::Engine;
use futures_util::stream::{self, BoxStream, StreamExt};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::watch;
use uuid::Uuid;
use windlass_protocol::frontend_messages::{
    FrontendRequest, HostResponse, HostStatus, ImageSize, LoginResult,
};
use windlass_protocol::session_stream::{
    HostStreamItem, OpenSessionState, SessionStreamItem, StreamOpening,
};
use windlass_protocol::{
    Attachment, BlobRef, EventCursor, Fact, FactRecord, LiveEvent, LiveEventRecord, LogPosition,
    ModelStreamKind, OpError, OpId, PromptSettings, QueryReply, RequestError, SessionId, SessionOp,
    SessionQuery, TrustReview, TurnEndReason, UnixMillis,
};
use windlass_server::{Caller, FrontendService, WatchOptions};

/// ID of the only session.
pub fn session() -> SessionId {
    SessionId(Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001))
}

/// Epoch of all facts.
pub const EPOCH: u64 = 1_700_000_000_000;

/// A host that keeps one session in memory.
pub struct MemoryHost {
    /// Facts of the session; watchers hear of new ones.
    facts: watch::Sender<Vec<FactRecord>>,
    /// Answers to operations, by id.
    op_answers: Mutex<HashMap<OpId, HostResponse>>,
    /// Number of operations that were received, with repeated ones.
    pub received_ops: AtomicU64,
    /// Number of live events that were taken from endless streams.
    pub taken_live_events: Arc<AtomicU64>,
    /// Callers of all requests.
    pub callers: Mutex<Vec<Caller>>,
    /// Options of all streams.
    pub watches: Mutex<Vec<WatchOptions>>,
    open_sessions: watch::Sender<Vec<SessionId>>,
    /// Notices that every new watcher of the host gets.
    pub notices: Mutex<Vec<String>>,
}

impl MemoryHost {
    pub fn with_facts(count: u64) -> Arc<MemoryHost> {
        let facts = (1..=count).map(|seq| text_fact(seq, &format!("text {seq}"))).collect();
        Arc::new(MemoryHost {
            facts: watch::Sender::new(facts),
            op_answers: Mutex::default(),
            received_ops: AtomicU64::new(0),
            taken_live_events: Arc::default(),
            callers: Mutex::default(),
            watches: Mutex::default(),
            open_sessions: watch::Sender::new(vec![session()]),
            notices: Mutex::default(),
        })
    }

    pub fn facts(&self) -> Vec<FactRecord> {
        self.facts.borrow().clone()
    }

    pub fn set_open_sessions(&self, sessions: Vec<SessionId>) {
        self.open_sessions.send_replace(sessions);
    }

    pub fn add_fact(&self, fact: Fact) -> u64 {
        let mut seq = 0;
        self.facts.send_modify(|facts| {
            seq = facts.len() as u64 + 1;
            facts.push(record(seq, fact));
        });
        seq
    }

    pub fn add_text(&self, text: &str) -> u64 {
        self.add_fact(Fact::ModelText { text: text.to_owned(), provider_signature: None })
    }

    pub fn end_turn(&self) -> u64 {
        self.add_fact(Fact::TurnEnded { turn: 1, end: TurnEndReason::Completed })
    }

    fn answer_op(&self, id: Option<OpId>, op: SessionOp) -> HostResponse {
        self.received_ops.fetch_add(1, Ordering::SeqCst);
        let known = id.and_then(|id| self.op_answers.lock().unwrap().get(&id).cloned());
        if let Some(answer) = known {
            return answer;
        }
        let answer = match op {
            SessionOp::AnswerPermission { .. } => {
                HostResponse::OpRejected { error: OpError::NoQuestion }
            }
            SessionOp::Prompt { text, .. } => {
                HostResponse::OpAccepted { seq: self.add_text(&text) }
            }
            _ => HostResponse::OpAccepted { seq: self.facts.borrow().len() as u64 },
        };
        if let Some(id) = id {
            self.op_answers.lock().unwrap().insert(id, answer.clone());
        }
        answer
    }

    fn answer_query(&self, query: SessionQuery) -> QueryReply {
        match query {
            SessionQuery::Events { after, limit, .. } => {
                let limit = limit.unwrap_or(u32::MAX) as usize;
                let facts = self.facts().into_iter();
                let events = facts.filter(|record| record.seq > after).take(limit).collect();
                QueryReply::Events { events }
            }
            SessionQuery::Prompts { .. } => QueryReply::Prompts { prompts: Vec::new() },
            SessionQuery::Jobs { .. } => QueryReply::Jobs { jobs: Vec::new() },
            SessionQuery::SearchSessions { .. } => QueryReply::SearchHits { hits: Vec::new() },
            SessionQuery::Tools => QueryReply::Tools { tools: Vec::new() },
            _ => QueryReply::Sessions { sessions: Vec::new() },
        }
    }

    fn open_states(sessions: &[SessionId]) -> Vec<OpenSessionState> {
        let state = |session: &SessionId| OpenSessionState {
            session: *session,
            workspace: "/w".to_owned(),
            title: String::new(),
            is_busy: false,
            open_questions: Vec::new(),
            background_count: 0,
            head: 0,
            clients: Vec::new(),
            is_in_server: false,
        };
        sessions.iter().map(state).collect()
    }
}

fn record(seq: u64, fact: Fact) -> FactRecord {
    FactRecord { epoch: EPOCH, ..FactRecord::new(session(), seq, UnixMillis(seq), fact) }
}

fn text_fact(seq: u64, text: &str) -> FactRecord {
    record(seq, Fact::ModelText { text: text.to_owned(), provider_signature: None })
}

/// Bytes of the only blob.
pub const BLOB: &[u8] = b"<script>alert(1)</script>\0\xff";

#[async_trait]
impl FrontendService for MemoryHost {
    async fn request(
        &self,
        caller: &Caller,
        request: FrontendRequest,
    ) -> Result<HostResponse, RequestError> {
        self.callers.lock().unwrap().push(caller.clone());
        Ok(match request {
            FrontendRequest::Status { .. } => {
                HostResponse::Status { status: Box::new(HostStatus::default()) }
            }
            FrontendRequest::Query { query } => {
                HostResponse::Reply { reply: self.answer_query(query) }
            }
            FrontendRequest::ListOpenSessions => HostResponse::OpenSessions {
                sessions: MemoryHost::open_states(&self.open_sessions.borrow()),
            },
            FrontendRequest::SessionOp { session: wanted, id, op } if wanted == session() => {
                self.answer_op(id, op)
            }
            FrontendRequest::SessionOp { .. } => {
                let text = "This session is not open.".to_owned();
                return Err(RequestError::NotFound { text });
            }
            FrontendRequest::NewSession { .. }
            | FrontendRequest::OpenSession { .. }
            | FrontendRequest::ForkSession { .. } => {
                HostResponse::SessionOpened { session: session(), head: 0, model: None }
            }
            FrontendRequest::PutBlob { name, bytes } => {
                let bytes = base64::engine::general_purpose::STANDARD.decode(bytes).unwrap();
                let (mime_type, blob) = ("text/plain".to_owned(), BlobRef::for_bytes(&bytes));
                HostResponse::BlobStored { attachment: Attachment { name, mime_type, blob } }
            }
            FrontendRequest::GetBlob { .. } => HostResponse::Bytes {
                bytes: base64::engine::general_purpose::STANDARD.encode(BLOB),
            },
            FrontendRequest::PreparePrompt { .. } => {
                HostResponse::PreparedPrompt { attachments: Vec::new(), warnings: Vec::new() }
            }
            FrontendRequest::Thumbnail { width, .. } => HostResponse::Thumbnail {
                width,
                bytes: String::new(),
                original_size: ImageSize::default(),
            },
            FrontendRequest::List { .. } | FrontendRequest::Doctor => {
                HostResponse::Rows { rows: Vec::new() }
            }
            FrontendRequest::ExpandCommand { name, .. } => {
                HostResponse::Prompt { text: name, settings: PromptSettings::default() }
            }
            FrontendRequest::RenderSession { .. } => {
                HostResponse::Export { name: "a.md".to_owned(), text: "# A".to_owned() }
            }
            FrontendRequest::Report { .. } | FrontendRequest::RunReportAction { .. } => {
                HostResponse::Report { rows: Vec::new() }
            }
            FrontendRequest::ReviewTrust => {
                HostResponse::TrustReview { review: Box::new(TrustReview::default()) }
            }
            FrontendRequest::SetTrust { .. } => {
                HostResponse::Status { status: Box::new(HostStatus::default()) }
            }
            FrontendRequest::DiscoverProviders => HostResponse::Providers { providers: Vec::new() },
            FrontendRequest::Login { .. } | FrontendRequest::AddProvider { .. } => {
                HostResponse::Login { result: LoginResult::Saved }
            }
            _ => HostResponse::Done,
        })
    }

    async fn watch_session(
        &self,
        caller: &Caller,
        wanted: SessionId,
        options: WatchOptions,
    ) -> Result<BoxStream<'static, SessionStreamItem>, RequestError> {
        self.callers.lock().unwrap().push(caller.clone());
        self.watches.lock().unwrap().push(options.clone());
        if wanted != session() {
            return Err(RequestError::NotFound { text: "No such session.".to_owned() });
        }
        let mut facts = self.facts.subscribe();
        let head = facts.borrow_and_update().len() as u64;
        let after = options.after.map_or(head, |cursor| cursor.position.seq);
        let opening = SessionStreamItem::Opened(StreamOpening {
            session: wanted,
            head,
            epoch: (head > 0).then_some(EPOCH),
            is_busy: false,
            is_live: true,
            open_questions: Vec::new(),
            clients: vec![caller.client.clone()],
        });
        let opening = stream::iter([opening]);
        if caller.workspace.as_deref() == Some("endless") {
            return Ok(opening.chain(self.endless_live_events()).boxed());
        }
        let following = stream::unfold((facts, after), |(mut facts, after)| async move {
            let index = after as usize;
            facts.wait_for(|facts| facts.len() > index).await.ok()?;
            let record = facts.borrow()[index].clone();
            let position = LogPosition { seq: record.seq, epoch: Some(record.epoch) };
            let item = SessionStreamItem::Fact(Box::new(record), EventCursor::from(position));
            Some((item, (facts, after + 1)))
        });
        Ok(opening.chain(following).boxed())
    }

    async fn watch_host(
        &self,
        _caller: &Caller,
    ) -> Result<BoxStream<'static, HostStreamItem>, RequestError> {
        let sessions = self.open_sessions.borrow().clone();
        let states = MemoryHost::open_states(&sessions).into_iter();
        let items = states.map(|state| HostStreamItem::Session { state: Box::new(state) });
        let notices = self.notices.lock().unwrap().clone().into_iter();
        let notices =
            notices.map(|text| HostStreamItem::Notice { workspace: "/w".to_owned(), text });
        Ok(stream::iter(notices.chain(items).collect::<Vec<_>>()).chain(stream::pending()).boxed())
    }
}

impl MemoryHost {
    fn endless_live_events(&self) -> impl futures_util::Stream<Item = SessionStreamItem> + use<> {
        let taken = Arc::clone(&self.taken_live_events);
        stream::repeat_with(move || {
            taken.fetch_add(1, Ordering::SeqCst);
            SessionStreamItem::Live(Box::new(LiveEventRecord {
                session: session(),
                at: UnixMillis(0),
                event: LiveEvent::ModelDelta {
                    stream: ModelStreamKind::Text,
                    text: "x".repeat(1_000),
                },
            }))
        })
    }
}
