//! Tests of the host with a server that answers what a test tells it to.
#![allow(clippy::disallowed_methods, reason = "the tests prepare files themselves")]

use crate::frontend_host::*;
use async_trait::async_trait;
use futures_util::StreamExt;
use serde_json::json;
use std::sync::Mutex;
use std::time::Duration;
use windlass_protocol::mutex_lock::lock;
use windlass_protocol::session_stream::{
    OpenSessionState, SessionStreamItem, StreamClosing, StreamClosingReason, StreamOpening,
};
use windlass_protocol::{AccessRight, ClientInfo, ClientKind, OpError, RequestError, SessionOp};
use windlass_server::WatchOptions;

const TIMEOUT: Duration = Duration::from_secs(30);

fn session() -> SessionId {
    SessionId(uuid::Uuid::from_u128(7))
}

/// A server: it waits at each request of a kind that a test holds back.
#[derive(Default)]
struct FakeServer {
    requests: Mutex<Vec<FrontendRequest>>,
    /// The answers to operations, in order; accepted once there are none left.
    op_answers: Mutex<VecDeque<HostResponse>>,
    delete_answers: Mutex<Option<tokio::sync::oneshot::Receiver<Result<(), RequestError>>>>,
    session_items: Mutex<Option<mpsc::Receiver<SessionStreamItem>>>,
    host_items: Mutex<Option<mpsc::Receiver<HostStreamItem>>>,
}

#[async_trait]
impl FrontendService for FakeServer {
    async fn request(
        &self,
        _: &Caller,
        request: FrontendRequest,
    ) -> Result<HostResponse, RequestError> {
        lock(&self.requests).push(request.clone());
        match request {
            FrontendRequest::NewSession { .. } | FrontendRequest::OpenSession { .. } => {
                Ok(HostResponse::SessionOpened { session: session(), head: 1, model: None })
            }
            FrontendRequest::DeleteSession { .. } => {
                let answer = lock(&self.delete_answers).take().expect("no request is expected");
                answer.await.unwrap()?;
                Ok(HostResponse::Done)
            }
            FrontendRequest::SessionOp { .. } => Ok(lock(&self.op_answers)
                .pop_front()
                .unwrap_or(HostResponse::OpAccepted { seq: 2 })),
            FrontendRequest::Status { .. } => Ok(HostResponse::Status { status: Box::default() }),
            other => panic!("{other:?}"),
        }
    }

    async fn watch_session(
        &self,
        _: &Caller,
        _: SessionId,
        _: WatchOptions,
    ) -> Result<BoxStream<'static, SessionStreamItem>, RequestError> {
        let items = lock(&self.session_items).take().expect("one stream is expected");
        Ok(futures_util::stream::unfold(items, |mut items| async move {
            items.recv().await.map(|item| (item, items))
        })
        .boxed())
    }

    async fn watch_host(
        &self,
        _: &Caller,
    ) -> Result<BoxStream<'static, HostStreamItem>, RequestError> {
        let items = lock(&self.host_items).take().expect("one stream is expected");
        Ok(futures_util::stream::unfold(items, |mut items| async move {
            items.recv().await.map(|item| (item, items))
        })
        .boxed())
    }
}

/// A front end that is attached to a [`FakeServer`], with an open session.
struct AttachedFrontend {
    server: Arc<FakeServer>,
    requests: mpsc::Sender<FrontendRequestMessage>,
    messages: mpsc::Receiver<HostMessage>,
    session_items: mpsc::Sender<SessionStreamItem>,
    host_items: mpsc::Sender<HostStreamItem>,
    config: tempfile::TempDir,
}

impl AttachedFrontend {
    async fn new() -> AttachedFrontend {
        let config = tempfile::tempdir().unwrap();
        let (session_items, session_receiver) = mpsc::channel(64);
        let (host_items, host_receiver) = mpsc::channel(64);
        let server = Arc::new(FakeServer {
            session_items: Mutex::new(Some(session_receiver)),
            host_items: Mutex::new(Some(host_receiver)),
            ..FakeServer::default()
        });
        let client = ClientInfo { name: "me".into(), kind: ClientKind::Terminal };
        let workspace = Some("/w".to_owned());
        let caller = Caller {
            client,
            right: AccessRight::Admin,
            workspace,
            through_node: false,
            tenant: None,
        };
        let service: Arc<dyn FrontendService> = Arc::<FakeServer>::clone(&server);
        let folders = LocalFolders { home: "/".into(), working: "/".into() };
        let settings = LocalSettings {
            config: config.path().to_owned(),
            favorite_models: Vec::new(),
            status_line: None,
        };
        let host = FrontendHost::new((service, caller), SessionOwnership::Shared, folders)
            .with_choices(Some("review".into()), None)
            .with_local_settings(settings);
        let (requests, request_receiver) = mpsc::channel(REQUEST_QUEUE_LEN);
        let (message_sender, messages) = mpsc::channel(MESSAGE_QUEUE_LEN);
        tokio_util::task::TaskTracker::new()
            .spawn(host.run((request_receiver, message_sender), CancellationToken::new()));
        let mut frontend =
            AttachedFrontend { server, requests, messages, session_items, host_items, config };
        frontend.send(1, FrontendRequest::new_session(None)).await;
        let opened = frontend.next_message().await;
        assert!(matches!(opened, HostMessage::Response { id: 1, .. }), "{opened:?}");
        frontend.push(opening(true)).await;
        let clients = frontend.next_message().await;
        assert!(matches!(clients, HostMessage::Clients { is_live: true, .. }), "{clients:?}");
        frontend
    }

    async fn send(&self, id: u64, request: FrontendRequest) {
        self.requests.send(FrontendRequestMessage { id, request }).await.unwrap();
    }

    async fn push(&self, item: SessionStreamItem) {
        self.session_items.send(item).await.unwrap();
    }

    async fn next_message(&mut self) -> HostMessage {
        let message = tokio::time::timeout(TIMEOUT, self.messages.recv()).await;
        message.expect("a message arrives in time").expect("the host is running")
    }

    /// Waits until nothing more happens, and returns the messages.
    async fn all_messages(&mut self) -> Vec<HostMessage> {
        let mut all = Vec::new();
        let quiet = Duration::from_millis(200);
        while let Ok(Some(message)) = tokio::time::timeout(quiet, self.messages.recv()).await {
            all.push(message);
        }
        all
    }

    fn opened_again(&self) -> usize {
        let is_opening =
            |request: &&FrontendRequest| matches!(request, FrontendRequest::OpenSession { .. });
        lock(&self.server.requests).iter().filter(is_opening).count()
    }
}

fn opening(is_live: bool) -> SessionStreamItem {
    SessionStreamItem::Opened(StreamOpening {
        session: session(),
        head: 1,
        epoch: None,
        is_busy: false,
        is_live,
        open_questions: Vec::new(),
        clients: Vec::new(),
    })
}

fn closing(reason: StreamClosingReason) -> SessionStreamItem {
    SessionStreamItem::Closing(StreamClosing { reason, retry_ms: None })
}

#[tokio::test]
async fn a_session_that_the_front_end_deletes_is_not_closed_by_another_client() {
    for is_deleted in [true, false] {
        let mut frontend = AttachedFrontend::new().await;
        let (answer, receiver) = tokio::sync::oneshot::channel();
        *lock(&frontend.server.delete_answers) = Some(receiver);
        frontend.send(2, FrontendRequest::DeleteSession { session: session() }).await;
        while lock(&frontend.server.requests).len() < 2 {
            tokio::task::yield_now().await;
        }
        frontend.push(closing(StreamClosingReason::SessionClosed)).await;
        assert_eq!(frontend.all_messages().await, []);
        let result = match is_deleted {
            true => Ok(()),
            false => Err(RequestError::Conflict { text: "no".into() }),
        };
        answer.send(result).unwrap();
        let response = frontend.next_message().await;
        assert!(matches!(response, HostMessage::Response { id: 2, .. }), "{response:?}");
        let rest = frontend.all_messages().await;
        let is_stopped =
            |message: &HostMessage| matches!(message, HostMessage::SessionStopped { .. });
        assert_eq!(rest.iter().any(is_stopped), !is_deleted, "{rest:?}");
    }
}

#[tokio::test]
async fn the_end_of_a_session_names_its_reason() {
    for (reason, text) in [
        (StreamClosingReason::SessionClosed, "closed by another client"),
        (StreamClosingReason::TokenRevoked, "token was revoked"),
    ] {
        let mut frontend = AttachedFrontend::new().await;
        frontend.push(closing(reason)).await;
        let stopped = frontend.next_message().await;
        let HostMessage::SessionStopped { fault, .. } = stopped else { panic!("{stopped:?}") };
        assert!(fault.to_string().contains(text), "{fault}");
    }
}

#[tokio::test]
async fn an_idle_session_is_opened_again_once_after_the_server_started_again() {
    let mut frontend = AttachedFrontend::new().await;
    frontend.push(SessionStreamItem::Disconnected("gone".into())).await;
    frontend.push(opening(false)).await;
    let messages = frontend.all_messages().await;
    assert!(messages.contains(&HostMessage::Reconnected), "{messages:?}");
    assert_eq!(frontend.opened_again(), 1);
    // A session that another process runs stays closed here.
    frontend.push(opening(false)).await;
    frontend.all_messages().await;
    assert_eq!(frontend.opened_again(), 1);
}

#[tokio::test]
async fn an_operation_for_a_session_that_the_server_closed_is_repeated() {
    let mut frontend = AttachedFrontend::new().await;
    let stopped = HostResponse::OpRejected { error: OpError::Stopped };
    lock(&frontend.server.op_answers).push_back(stopped);
    let op = SessionOp::prompt("hello");
    frontend.send(2, FrontendRequest::SessionOp { session: session(), id: None, op }).await;
    let response = frontend.next_message().await;
    let accepted = Ok(HostResponse::OpAccepted { seq: 2 });
    assert_eq!(response, HostMessage::Response { id: 2, response: accepted });
    assert_eq!(frontend.opened_again(), 1);
    let requests = lock(&frontend.server.requests);
    let ids: Vec<_> = requests
        .iter()
        .filter_map(|request| match request {
            FrontendRequest::SessionOp { id, .. } => Some(*id),
            _ => None,
        })
        .collect();
    assert!(ids.len() == 2 && ids[0] == ids[1] && ids[0].is_some(), "{ids:?}");
}

#[tokio::test]
async fn notices_of_the_folder_and_of_the_server_are_shown_once() {
    let mut frontend = AttachedFrontend::new().await;
    let notice = |workspace: &str, text: &str| HostStreamItem::Notice {
        workspace: workspace.into(),
        text: text.into(),
    };
    for item in [
        notice("/w", "own"),
        notice("/other", "not own"),
        notice("", "for all"),
        // A new connection begins with the notices so far.
        notice("/w", "own"),
    ] {
        frontend.host_items.send(item).await.unwrap();
    }
    let shown = ["own", "for all"].map(|text| HostMessage::Notice { text: text.into() });
    assert_eq!(frontend.all_messages().await, shown);
}

#[tokio::test]
async fn other_clients_are_reported_when_they_change() {
    let mut frontend = AttachedFrontend::new().await;
    let bob = ClientInfo { name: "bob".into(), kind: ClientKind::WebPage };
    for (head, clients) in [(2, vec![]), (3, vec![bob.clone()]), (4, vec![bob]), (5, vec![])] {
        let state = OpenSessionState {
            session: session(),
            workspace: "/w".into(),
            title: String::new(),
            is_busy: true,
            open_questions: Vec::new(),
            background_count: 0,
            head,
            clients,
            is_in_server: false,
        };
        frontend.host_items.send(HostStreamItem::Session { state: Box::new(state) }).await.unwrap();
    }
    let counts: Vec<usize> = frontend
        .all_messages()
        .await
        .iter()
        .map(|message| match message {
            HostMessage::Clients { clients, .. } => clients.len(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(counts, [1, 0]);
}

#[tokio::test]
async fn the_agent_and_the_settings_of_the_screen_are_those_of_the_client() {
    let mut frontend = AttachedFrontend::new().await;
    let new_session = lock(&frontend.server.requests)[0].clone();
    let FrontendRequest::NewSession { agent, .. } = new_session else { panic!("{new_session:?}") };
    assert_eq!(agent.as_deref(), Some("review"));
    frontend.send(2, FrontendRequest::status()).await;
    let answer = frontend.next_message().await;
    let HostMessage::Response { response: Ok(HostResponse::Status { status }), .. } = answer else {
        panic!("{answer:?}")
    };
    assert_eq!(status.agent, "review");
    let set = |name: &str| FrontendRequest::SetConfig { name: name.into(), value: json!("paper") };
    frontend.send(3, set("tui.theme")).await;
    let saved = HostMessage::Response { id: 3, response: Ok(HostResponse::Done) };
    assert_eq!(frontend.next_message().await, saved);
    let config = std::fs::read_to_string(frontend.config.path().join("windlass.jsonc")).unwrap();
    assert!(config.contains("paper"), "{config}");
    frontend.send(4, set("model")).await;
    let refused = frontend.next_message().await;
    assert!(matches!(refused, HostMessage::Response { id: 4, response: Err(_) }), "{refused:?}");
}
