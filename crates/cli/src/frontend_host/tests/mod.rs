//! Tests of the host with a scripted model over real HTTP, a temporary folder and no terminal.
#![allow(clippy::disallowed_methods, reason = "the tests prepare files themselves")]

mod server;

use super::*;
use crate::session_hub::{HubOptions, MAX_OPEN_SESSIONS, SessionHub};
use crate::setup::ProjectContext;
use crate::workspace_host::{ConfigChange, WorkspaceHost, WorkspaceState};
use futures_util::StreamExt;
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;
use tokio_util::task::TaskTracker;
use windlass_engine::UnattendedPolicy;
use windlass_permission::{Decision, Policy};
use windlass_project::{ApprovalStore, ConfigFlags, Dirs};
use windlass_protocol::frontend_messages::{
    DoctorCheckStatus, HostStatus, ListedItemKind, LoginResult, ModelChoiceScope, ProviderKey,
    TrustState,
};
use windlass_protocol::report::{ReportAction, ReportKind};
use windlass_protocol::report::{ReportGroup, ReportRow, ReportRowState};
use windlass_protocol::session_stream::SessionStreamItem;
use windlass_protocol::{AccessRight, ClientKind, Event, Fact};
use windlass_protocol::{
    OpError, PermissionAnswer, PermissionMode, ProjectApproval, QueryReply, SessionOp,
    SessionQuery, ToolAccess, TrustDecision,
};
use windlass_testkit::{ModelScript, ScriptedModel};

/// Timeout for a message from the host.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(30);

/// A front end without a terminal, connected to a host.
struct TestFrontend {
    folder: tempfile::TempDir,
    model: ScriptedModel,
    requests: mpsc::Sender<FrontendRequestMessage>,
    messages: mpsc::Receiver<HostMessage>,
    hub: Arc<SessionHub>,
    last_id: u64,
    /// Messages received while waiting for a response.
    unhandled: Vec<HostMessage>,
    stop: CancellationToken,
}

impl TestFrontend {
    fn new(replies: &[&str], settings: &str) -> TestFrontend {
        TestFrontend::with_model((replies, settings), None)
    }

    fn with_model((replies, settings): (&[&str], &str), model: Option<&str>) -> TestFrontend {
        let chosen_model = model.map(str::to_owned);
        let folder = tempfile::tempdir().unwrap();
        let model = ScriptedModel::start(ModelScript::new(replies.iter().copied()));
        let at = |name: &str| folder.path().join(name);
        for name in ["config", "project/src"] {
            std::fs::create_dir_all(at(name)).unwrap();
        }
        std::fs::write(at("project/README.md"), "# Hello\n").unwrap();
        std::fs::write(at("project/src/a.rs"), "fn a() {}\n").unwrap();
        let comma = if settings.is_empty() { "" } else { "," };
        let config = format!(
            r#"{{"model": "scripted/m", "provider": {{"scripted": {{"api": "openai-chat",
            "base_url": "{}", "api_key": "sk-very-secret", "models": {{"m": {{"context": 4000,
            "efforts": ["low", "high"], "variants": {{"deep": {{"max_output": 77}}}}}}, "n": {{}}, "o": {{}}}}}}}}{comma} {settings}}}"#,
            model.url()
        );
        std::fs::write(at("config/windlass.jsonc"), config).unwrap();
        let (requests, request_receiver) = mpsc::channel(REQUEST_QUEUE_LEN);
        let (message_sender, messages) = mpsc::channel(4);
        let stop = CancellationToken::new();
        let (dirs, root) = test_dirs(folder.path());
        let options = HubOptions {
            roots: None,
            flags: ConfigFlags::default(),
            agent: None,
            unattended: UnattendedPolicy::Wait,
            idle_timeout: None,
            max_open_sessions: MAX_OPEN_SESSIONS,
            room: None,
            fleet: None,
            quota: None,
            checkouts: None,
        };
        let hub = SessionHub::new(dirs, ProjectContext::default(), options);
        let folders = LocalFolders { home: folder.path().to_owned(), working: root.clone() };
        let client = crate::local_client(ClientKind::Terminal);
        let caller = Caller::new(client, AccessRight::Admin);
        let service: Arc<dyn FrontendService> = Arc::<SessionHub>::clone(&hub);
        let host = FrontendHost::new((service, caller), SessionOwnership::Owned, folders)
            .with_choices(None, chosen_model);
        let (host_stop, host_hub) = (stop.clone(), Arc::clone(&hub));
        TaskTracker::new().spawn(async move {
            host_hub.workspace(&root).await.unwrap();
            host.run((request_receiver, message_sender), host_stop).await;
            host_hub.shut_down(Duration::from_secs(10)).await;
        });
        TestFrontend {
            folder,
            model,
            requests,
            messages,
            hub,
            last_id: 0,
            unhandled: Vec::new(),
            stop,
        }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    fn config(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("config/windlass.jsonc")).unwrap()
    }

    async fn send(&mut self, request: FrontendRequest) -> u64 {
        self.last_id += 1;
        self.requests.send(FrontendRequestMessage { id: self.last_id, request }).await.unwrap();
        self.last_id
    }

    async fn next_message(&mut self) -> HostMessage {
        let message = tokio::time::timeout(MESSAGE_TIMEOUT, self.messages.recv()).await;
        message.expect("a message arrives in time").expect("the host is running")
    }

    /// Sends a request and waits for its response. Other messages go to `unhandled`.
    async fn request(&mut self, request: FrontendRequest) -> Result<HostResponse, Fault> {
        let id = self.send(request).await;
        self.wait_for_response(id).await
    }

    async fn wait_for_response(&mut self, request_id: u64) -> Result<HostResponse, Fault> {
        loop {
            match self.next_message().await {
                HostMessage::Response { id, response } if id == request_id => return response,
                other => self.unhandled.push(other),
            }
        }
    }

    async fn status(&mut self) -> HostStatus {
        match self.request(FrontendRequest::status()).await.unwrap() {
            HostResponse::Status { status } => *status,
            other => panic!("{other:?}"),
        }
    }

    async fn new_session(&mut self) -> SessionId {
        match self.request(FrontendRequest::new_session(None)).await.unwrap() {
            HostResponse::SessionOpened { session, .. } => session,
            other => panic!("{other:?}"),
        }
    }

    async fn list_rows(
        &mut self,
        request: FrontendRequest,
    ) -> Vec<windlass_protocol::frontend_messages::ListRow> {
        match self.request(request).await.unwrap() {
            HostResponse::Rows { rows } => rows,
            HostResponse::Models { models } => {
                let row = |model: windlass_protocol::frontend_messages::ModelListItem| {
                    let (name, note) = (model.name, model.note);
                    windlass_protocol::frontend_messages::ListRow {
                        name,
                        note,
                        ..Default::default()
                    }
                };
                models.into_iter().map(row).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    /// Sends a prompt, waits for the end of the turn and returns the text of the model.
    async fn prompt(&mut self, session: SessionId, text: &str) -> String {
        let op = SessionOp::prompt(text);
        let answer = self.request(FrontendRequest::SessionOp { session, id: None, op }).await;
        assert!(matches!(answer, Ok(HostResponse::OpAccepted { .. })), "{answer:?}");
        self.wait_for_turn_end().await
    }

    /// Takes the messages that no test has looked at, the next one last.
    fn take_unhandled(&mut self) -> Vec<HostMessage> {
        let mut unhandled = std::mem::take(&mut self.unhandled);
        unhandled.reverse();
        unhandled
    }

    /// Returns the next fact, of the messages in `unhandled` first.
    async fn next_fact(
        &mut self,
        unhandled: &mut Vec<HostMessage>,
    ) -> windlass_protocol::FactRecord {
        loop {
            let message = match unhandled.pop() {
                Some(message) => message,
                None => self.next_message().await,
            };
            let HostMessage::Event { event } = message else { continue };
            if let Event::Fact(record) = *event {
                return record;
            }
        }
    }

    async fn wait_for_turn_end(&mut self) -> String {
        let mut answer = String::new();
        let mut unhandled = self.take_unhandled();
        loop {
            let record = self.next_fact(&mut unhandled).await;
            if let Fact::ModelText { text, .. } = &record.fact {
                answer.push_str(text);
            }
            if let Fact::TurnEnded { .. } = &record.fact {
                return answer;
            }
        }
    }
}

impl Drop for TestFrontend {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Returns the user directories and the project folder inside `folder`.
fn test_dirs(folder: &std::path::Path) -> (Dirs, PathBuf) {
    let at = |name: &str| folder.join(name);
    let dirs = Dirs {
        home: folder.to_owned(),
        config: at("config"),
        data: at("data"),
        cache: at("cache"),
        plugins: at("plugins"),
        managed_policy: None,
        tenant_policy: None,
        checkouts: std::collections::BTreeMap::new(),
    };
    (dirs, at("project"))
}

#[tokio::test]
async fn a_prompt_is_answered_and_its_session_is_listed() {
    let mut frontend = TestFrontend::new(&["say Hi there", "say Again"], "");
    let status = frontend.status().await;
    assert_eq!(status.model.as_deref(), Some("scripted/m"));
    assert_eq!((status.context_window, status.trust), (Some(4000), TrustState::NotAsked));
    assert_eq!(status.workspace, "~/project");
    let session = frontend.new_session().await;
    assert_eq!(frontend.prompt(session, "hello").await, "Hi there");
    let workspace = Some(status.root);
    let query = SessionQuery::Sessions { workspace };
    let Ok(HostResponse::Reply { reply: QueryReply::Sessions { sessions } }) =
        frontend.request(FrontendRequest::Query { query }).await
    else {
        panic!("no list")
    };
    assert_eq!(sessions.len(), 1);
    assert_eq!(sessions[0].session, session);
    // A reopened session continues, and its earlier events are not sent again.
    let opened =
        frontend.request(FrontendRequest::OpenSession { session, resume: false }).await.unwrap();
    let HostResponse::SessionOpened { head, .. } = opened else { panic!("{opened:?}") };
    assert!(head > 3, "{head}");
    assert_eq!(frontend.prompt(session, "and now?").await, "Again");
}

/// Removes the model from the config, as before the first run.
fn remove_model(frontend: &TestFrontend) {
    let config = frontend.config().replace(r#""model": "scripted/m", "#, "");
    assert!(!config.contains(r#""model":"#), "{config}");
    std::fs::write(frontend.folder.path().join("config/windlass.jsonc"), config).unwrap();
}

#[tokio::test]
async fn without_a_configured_model_the_chosen_one_answers() {
    let mut frontend = TestFrontend::new(&["say Hi"], "");
    remove_model(&frontend);
    let refused = frontend.request(FrontendRequest::new_session(None)).await.unwrap_err();
    assert!(refused.to_string().contains("no model is set"), "{refused}");
    let (model, persist) = ("scripted/n".to_owned(), ModelChoiceScope::Session);
    frontend.request(FrontendRequest::SetModel { model, persist }).await.unwrap();
    let session = frontend.new_session().await;
    assert_eq!(frontend.prompt(session, "hello").await, "Hi");
    assert_eq!(frontend.model.requests()[0]["model"], "n");
    assert!(!frontend.config().contains(r#""model":"#));
}

#[tokio::test]
async fn a_saved_default_model_answers_clients_that_choose_none() {
    let mut frontend = TestFrontend::new(&["say Hi"], "");
    remove_model(&frontend);
    // The engine without a model is built first.
    frontend.request(FrontendRequest::Query { query: SessionQuery::Tools }).await.unwrap();
    let (model, persist) = ("scripted/n".to_owned(), ModelChoiceScope::Config);
    frontend.request(FrontendRequest::SetModel { model, persist }).await.unwrap();
    let client = crate::local_client(ClientKind::Terminal);
    let caller = Caller::new(client, AccessRight::Admin);
    let status = frontend.hub.request(&caller, FrontendRequest::status()).await.unwrap();
    let HostResponse::Status { status } = status else { panic!("{status:?}") };
    assert_eq!(status.model.as_deref(), Some("scripted/n"));
    let request = FrontendRequest::NewSession { agent: None, model: None, effort: None };
    let started = frontend.hub.request(&caller, request).await.unwrap();
    let HostResponse::SessionOpened { session, .. } = started else { panic!("{started:?}") };
    frontend.request(FrontendRequest::OpenSession { session, resume: true }).await.unwrap();
    assert_eq!(frontend.prompt(session, "hello").await, "Hi");
    assert_eq!(frontend.model.requests()[0]["model"], "n");
}

#[tokio::test]
async fn a_session_that_is_not_open_accepts_no_operation() {
    let mut frontend = TestFrontend::new(&["say Hi"], "");
    let first = frontend.new_session().await;
    frontend.prompt(first, "hello").await;
    let second = frontend.new_session().await;
    assert_ne!(first, second);
    let refused = frontend
        .request(FrontendRequest::SessionOp {
            id: None,
            session: first,
            op: SessionOp::Interrupt { turn: None },
        })
        .await;
    assert_eq!(refused, Ok(HostResponse::OpRejected { error: OpError::Stopped }));
    assert_eq!(
        frontend.request(FrontendRequest::DeleteSession { session: first }).await,
        Ok(HostResponse::Done)
    );
    let deleted =
        frontend.request(FrontendRequest::OpenSession { session: first, resume: false }).await;
    assert!(deleted.is_err(), "{deleted:?}");
    // A failed open leaves the current session open.
    let interrupted = frontend
        .request(FrontendRequest::SessionOp {
            id: None,
            session: second,
            op: SessionOp::Interrupt { turn: None },
        })
        .await;
    assert_eq!(interrupted, Ok(HostResponse::OpRejected { error: OpError::NoTurn }));
}

#[tokio::test]
async fn many_requests_at_once_are_each_answered_once() {
    let mut frontend = TestFrontend::new(&[], "");
    let mut pending = std::collections::BTreeSet::new();
    for number in 0..40 {
        let request = match number % 4 {
            0 => FrontendRequest::status(),
            1 => FrontendRequest::List { list: ListedItemKind::Files },
            2 => FrontendRequest::new_session(None),
            _ => FrontendRequest::Query { query: SessionQuery::Sessions { workspace: None } },
        };
        pending.insert(frontend.send(request).await);
    }
    while !pending.is_empty() {
        if let HostMessage::Response { id, response } = frontend.next_message().await {
            assert!(pending.remove(&id), "{id} was answered twice");
            response.unwrap();
        }
    }
}

#[tokio::test]
async fn a_new_model_applies_immediately_and_is_saved_on_request() {
    let mut frontend = TestFrontend::new(&["say One", "say Two"], "// mine\n\"titles\": false");
    let session = frontend.new_session().await;
    frontend.prompt(session, "hello").await;
    let unknown =
        FrontendRequest::SetModel { model: "unknown/x".into(), persist: ModelChoiceScope::Config };
    assert!(frontend.request(unknown).await.is_err());
    assert!(!frontend.config().contains("unknown"));
    let model = FrontendRequest::SetModel {
        model: "scripted/n".into(),
        persist: ModelChoiceScope::Session,
    };
    let answer = frontend.request(model).await.unwrap();
    let HostResponse::Status { status } = answer else { panic!("{answer:?}") };
    assert_eq!(status.model.as_deref(), Some("scripted/n"));
    assert!(frontend.config().contains("\"scripted/m\""), "set for this session only");
    assert_eq!(frontend.prompt(session, "you?").await, "Two");
    assert_eq!(frontend.model.requests()[1]["model"], "n");
    let model =
        FrontendRequest::SetModel { model: "scripted/n".into(), persist: ModelChoiceScope::Config };
    frontend.request(model).await.unwrap();
    let config = frontend.config();
    assert!(config.contains("\"scripted/n\"") && config.contains("// mine"), "{config}");
}

#[tokio::test]
async fn a_folder_is_trusted_only_after_a_review() {
    let mut frontend = TestFrontend::new(&[], "");
    std::fs::write(frontend.root().join("windlass.jsonc"), r#"{"titles": true}"#).unwrap();
    assert!(
        frontend
            .request(FrontendRequest::SetTrust { decision: TrustDecision::Trust, seen: None })
            .await
            .is_err(),
        "trusted without a review"
    );
    let answer = frontend.request(FrontendRequest::ReviewTrust).await.unwrap();
    let HostResponse::TrustReview { review } = answer else { panic!("{answer:?}") };
    let actions = &review.requested_actions;
    assert!(actions.iter().any(|line| line.contains("windlass.jsonc")), "{actions:?}");
    assert_eq!((&review.changes, review.is_home), (&None, false));
    let trusted_mode = review.trusted_mode;
    frontend
        .request(FrontendRequest::SetTrust { decision: TrustDecision::Decline, seen: None })
        .await
        .unwrap();
    assert_eq!(frontend.status().await.trust, TrustState::Declined);
    for (decision, mode) in
        [(TrustDecision::TrustAndAsk, PermissionMode::Ask), (TrustDecision::Trust, trusted_mode)]
    {
        frontend.request(FrontendRequest::ReviewTrust).await.unwrap();
        frontend.request(FrontendRequest::SetTrust { decision, seen: None }).await.unwrap();
        let status = frontend.status().await;
        assert_eq!((status.trust, status.mode), (TrustState::Trusted, mode));
    }
}

#[tokio::test]
async fn revoked_trust_disables_the_settings_of_the_project() {
    let mut frontend = TestFrontend::new(&["say One", "say Two"], "");
    let project = frontend.root().join("windlass.jsonc");
    std::fs::write(&project, r#"{"model": "scripted/n"}"#).unwrap();
    frontend.request(FrontendRequest::ReviewTrust).await.unwrap();
    frontend
        .request(FrontendRequest::SetTrust { decision: TrustDecision::Trust, seen: None })
        .await
        .unwrap();
    let session = frontend.new_session().await;
    frontend.prompt(session, "hello").await;
    assert_eq!(frontend.model.requests()[0]["model"], "n");
    let answer = frontend
        .request(FrontendRequest::SetTrust { decision: TrustDecision::Decline, seen: None })
        .await
        .unwrap();
    let HostResponse::Status { status } = answer else { panic!("{answer:?}") };
    assert_eq!((status.trust, status.model.as_deref()), (TrustState::Declined, Some("scripted/m")));
    // The session continues without the project's settings.
    frontend.prompt(session, "and now?").await;
    assert_eq!(frontend.model.requests()[1]["model"], "m");
    let answer = frontend.request(FrontendRequest::ReviewTrust).await.unwrap();
    let HostResponse::TrustReview { review } = answer else { panic!("{answer:?}") };
    assert_eq!(review.changes, None);
}

/// A session without a prompt cannot be opened again, which must not spare the others.
#[tokio::test]
async fn revoked_trust_reaches_every_session() {
    let mut frontend = TestFrontend::new(&["say One", "say Two", "say Three", "say Four"], "");
    let project = frontend.root().join("windlass.jsonc");
    std::fs::write(&project, r#"{"model": "scripted/n"}"#).unwrap();
    frontend.request(FrontendRequest::ReviewTrust).await.unwrap();
    let trust = FrontendRequest::SetTrust { decision: TrustDecision::Trust, seen: None };
    frontend.request(trust).await.unwrap();
    let client = crate::local_client(ClientKind::Program);
    let caller = Caller::new(client, AccessRight::Admin);
    let start = async || match frontend
        .hub
        .request(&caller, FrontendRequest::new_session(None))
        .await
        .unwrap()
    {
        HostResponse::SessionOpened { session, .. } => session,
        other => panic!("{other:?}"),
    };
    // Session ids grow with time, and the hub goes through the sessions by id.
    let (first, empty, last) = (start().await, start().await, start().await);
    let prompt = async |session| {
        let options = windlass_server::WatchOptions::default();
        let mut items = frontend.hub.watch_session(&caller, session, options).await.unwrap();
        let op = SessionOp::prompt("hello");
        let request = FrontendRequest::SessionOp { session, id: None, op };
        frontend.hub.request(&caller, request).await.unwrap();
        loop {
            let item = tokio::time::timeout(MESSAGE_TIMEOUT, items.next()).await.unwrap().unwrap();
            if let SessionStreamItem::Fact(record, _) = item
                && let Fact::TurnEnded { .. } = record.fact
            {
                break;
            }
        }
    };
    prompt(first).await;
    prompt(last).await;
    let decline = FrontendRequest::SetTrust { decision: TrustDecision::Decline, seen: None };
    frontend.hub.request(&caller, decline).await.unwrap();
    assert!(frontend.hub.open_session(empty).is_none(), "it had the engine of the trusted folder");
    prompt(first).await;
    prompt(last).await;
    let models: Vec<_> =
        frontend.model.requests().iter().map(|request| request["model"].clone()).collect();
    assert_eq!(models, ["n", "n", "m", "m"]);
}

#[tokio::test]
async fn revoked_trust_closes_the_session_if_the_config_cannot_be_read() {
    let mut frontend = TestFrontend::new(&["say One"], "");
    frontend.request(FrontendRequest::ReviewTrust).await.unwrap();
    frontend
        .request(FrontendRequest::SetTrust { decision: TrustDecision::Trust, seen: None })
        .await
        .unwrap();
    let session = frontend.new_session().await;
    frontend.prompt(session, "hello").await;
    std::fs::write(frontend.folder.path().join("config/windlass.jsonc"), "{").unwrap();
    assert!(
        frontend
            .request(FrontendRequest::SetTrust { decision: TrustDecision::Decline, seen: None })
            .await
            .is_err()
    );
    let refused = frontend
        .request(FrontendRequest::SessionOp { session, id: None, op: SessionOp::prompt("still?") })
        .await;
    assert_eq!(refused, Ok(HostResponse::OpRejected { error: OpError::Stopped }));
    assert!(frontend.request(FrontendRequest::new_session(None)).await.is_err());
}

#[tokio::test]
async fn recently_used_models_come_first() {
    let mut frontend = TestFrontend::new(&["say One", "say Two"], "");
    let names = async |frontend: &mut TestFrontend| -> Vec<String> {
        let rows = frontend.list_rows(FrontendRequest::List { list: ListedItemKind::Models }).await;
        rows.into_iter().map(|row| row.name).filter(|name| name.starts_with("scripted")).collect()
    };
    let choose = |model: &str| FrontendRequest::SetModel {
        model: model.into(),
        persist: ModelChoiceScope::Session,
    };
    assert_eq!(names(&mut frontend).await, ["scripted/m", "scripted/n", "scripted/o"]);
    frontend.request(choose("scripted/o")).await.unwrap();
    let session = frontend.new_session().await;
    frontend.prompt(session, "hello").await;
    frontend.request(choose("scripted/m")).await.unwrap();
    assert_eq!(names(&mut frontend).await, ["scripted/m", "scripted/o", "scripted/n"]);
    frontend.prompt(session, "hello").await;
    frontend.request(choose("scripted/n")).await.unwrap();
    assert_eq!(names(&mut frontend).await, ["scripted/n", "scripted/m", "scripted/o"]);
}

#[tokio::test]
async fn files_models_agents_and_commands_are_listed() {
    let mut frontend = TestFrontend::new(&[], "");
    let commands = frontend.folder.path().join("config/commands");
    std::fs::create_dir_all(&commands).unwrap();
    std::fs::write(commands.join("fix.md"), "Fix $ARGUMENTS please.\n").unwrap();
    std::fs::write(commands.join("status.md"), "See !`git status`\n").unwrap();
    let names = |rows: Vec<windlass_protocol::frontend_messages::ListRow>| -> Vec<String> {
        rows.into_iter().map(|row| row.name).collect()
    };
    let files =
        names(frontend.list_rows(FrontendRequest::List { list: ListedItemKind::Files }).await);
    assert_eq!(files, ["README.md", "src/a.rs"]);
    let models =
        names(frontend.list_rows(FrontendRequest::List { list: ListedItemKind::Models }).await);
    assert_eq!(models[..2], ["scripted/m", "scripted/n"]);
    let agents =
        names(frontend.list_rows(FrontendRequest::List { list: ListedItemKind::Agents }).await);
    assert_eq!(agents, ["build"], "plan is a mode");
    let subagents =
        names(frontend.list_rows(FrontendRequest::List { list: ListedItemKind::Subagents }).await);
    assert_eq!(subagents, ["explore", "general"]);
    let settings =
        names(frontend.list_rows(FrontendRequest::List { list: ListedItemKind::Config }).await);
    assert!(settings.contains(&"model".to_owned()), "{settings:?}");
    for list in [ListedItemKind::Skills, ListedItemKind::Hooks] {
        assert_eq!(frontend.list_rows(FrontendRequest::List { list }).await, []);
    }
    let listed =
        names(frontend.list_rows(FrontendRequest::List { list: ListedItemKind::Commands }).await);
    assert_eq!(listed, ["fix", "status"]);
    let command = |name: &str| FrontendRequest::ExpandCommand {
        session: None,
        name: name.into(),
        arguments: "it".into(),
    };
    let expanded = frontend.request(command("fix")).await.unwrap();
    let HostResponse::Prompt { text, .. } = expanded else { panic!("{expanded:?}") };
    assert_eq!(text.trim(), "Fix it please.");
    let error = frontend.request(command("status")).await.unwrap_err().to_string();
    assert!(error.contains("cannot run `git status`: no session is open"), "{error}");
    let init = frontend.request(command("init")).await.unwrap();
    assert!(matches!(init, HostResponse::Prompt { text, .. } if text.contains("AGENTS.md")));
    let review = frontend.request(command("review")).await.unwrap();
    assert!(matches!(review, HostResponse::Prompt { text, .. } if text.starts_with("Review it.")));
    let doctor = frontend.list_rows(FrontendRequest::Doctor).await;
    assert!(doctor.iter().any(|row| row.name == "disk" && row.status == DoctorCheckStatus::Ok));
}

#[tokio::test]
async fn only_tui_settings_are_saved() {
    let mut frontend = TestFrontend::new(&[], "");
    let set = |name: &str| FrontendRequest::SetConfig { name: name.into(), value: json!("paper") };
    assert_eq!(frontend.request(set("tui.theme")).await, Ok(HostResponse::Done));
    assert!(frontend.config().contains("\"theme\": \"paper\""), "{}", frontend.config());
    for name in ["permission", "mode", "tui", "tui.", "sandbox.enabled", ""] {
        assert!(frontend.request(set(name)).await.is_err(), "{name}");
    }
}

#[tokio::test]
async fn an_image_is_stored_and_a_text_file_is_refused() {
    use base64::Engine as _;
    let mut frontend = TestFrontend::new(&[], "");
    let png = b"\x89PNG\r\n\x1a\n0000IHDR".to_vec();
    let bytes = base64::engine::general_purpose::STANDARD.encode(&png);
    let put = FrontendRequest::PutBlob { name: "pasted.png".into(), bytes: bytes.clone() };
    let stored = frontend.request(put).await.unwrap();
    let HostResponse::BlobStored { attachment } = stored else { panic!("{stored:?}") };
    assert_eq!(
        (attachment.name.as_str(), attachment.mime_type.as_str()),
        ("pasted.png", "image/png")
    );
    std::fs::write(frontend.root().join("p.png"), &png).unwrap();
    let stored =
        frontend.request(FrontendRequest::AttachFile { path: "p.png".into() }).await.unwrap();
    let HostResponse::BlobStored { attachment: same } = stored else { panic!("{stored:?}") };
    assert_eq!(same.blob, attachment.blob);
    let text = frontend.request(FrontendRequest::AttachFile { path: "README.md".into() }).await;
    assert!(text.unwrap_err().to_string().contains("the model can read them"));
    assert!(
        frontend.request(FrontendRequest::AttachFile { path: "none.png".into() }).await.is_err()
    );
}

#[tokio::test]
async fn an_api_key_is_never_echoed() {
    let mut frontend = TestFrontend::new(&[], "");
    for key in ["sk hidden", "", "sk-hidden\u{7}"] {
        let login = FrontendRequest::Login {
            provider: "scripted".into(),
            key: ProviderKey(key.to_owned()),
            save_rejected: false,
        };
        let refused = frontend.request(login).await.unwrap_err();
        assert!(!format!("{refused:?}").contains("hidden"), "{refused:?}");
    }
    let login = FrontendRequest::Login {
        provider: "unknown".into(),
        key: ProviderKey("sk-hidden".into()),
        save_rejected: false,
    };
    let refused = frontend.request(login).await.unwrap_err();
    assert!(!format!("{refused:?}{:?}", frontend.unhandled).contains("hidden"), "{refused:?}");
}

#[tokio::test]
async fn a_note_is_sent_once() {
    let mut frontend = TestFrontend::new(&[], "");
    for _ in 0..3 {
        frontend.hub.send_notice(String::new(), "the sandbox is off".to_owned());
    }
    frontend.hub.send_notice(String::new(), "something else".to_owned());
    let mut notices = Vec::new();
    while notices.len() < 2 {
        if let HostMessage::Notice { text } = frontend.next_message().await {
            notices.push(text);
        }
    }
    assert_eq!(notices, ["the sandbox is off", "something else"]);
}

#[tokio::test]
async fn a_front_end_that_reads_no_messages_can_still_send_requests() {
    // The message channel is full, but requests are still accepted.
    let mut frontend = TestFrontend::new(&["say Hi"], "");
    let session = frontend.new_session().await;
    for _ in 0..300 {
        frontend.send(FrontendRequest::status()).await;
    }
    let op = SessionOp::RenameSession { title: "later".into() };
    let last = frontend.send(FrontendRequest::SessionOp { session, id: None, op }).await;
    let answer = frontend.wait_for_response(last).await;
    assert!(matches!(answer, Ok(HostResponse::OpAccepted { .. })), "{answer:?}");
}

#[tokio::test]
async fn a_session_that_does_not_exist_is_not_exported() {
    let mut frontend = TestFrontend::new(&[], "");
    let session = "0192f0c4-7e2a-7d1b-8a34-1f2e3d4c5b6a".parse().unwrap();
    let export = FrontendRequest::ExportSession { session, file: String::new() };
    assert!(frontend.request(export).await.is_err());
}

impl TestFrontend {
    async fn report(&mut self, request: FrontendRequest) -> Vec<ReportRow> {
        match self.request(request).await.unwrap() {
            HostResponse::Report { rows } => rows,
            other => panic!("{other:?}"),
        }
    }

    /// Waits for the next permission request, gives the answer, and waits for the end of the turn.
    /// Returns false if the turn ends without a request.
    async fn answer_permission(&mut self, session: SessionId, answer: PermissionAnswer) -> bool {
        let mut was_asked = false;
        let mut unhandled = self.take_unhandled();
        loop {
            let record = self.next_fact(&mut unhandled).await;
            match record.fact {
                Fact::PermissionAsked { call, .. } => {
                    was_asked = true;
                    let op =
                        SessionOp::AnswerPermission { call, answer: answer.clone(), asked: None };
                    self.send(FrontendRequest::SessionOp { session, id: None, op }).await;
                }
                Fact::TurnEnded { .. } => return was_asked,
                _ => {}
            }
        }
    }

    async fn run_and_answer(&mut self, session: SessionId, answer: PermissionAnswer) -> bool {
        let op = SessionOp::prompt("write it");
        self.request(FrontendRequest::SessionOp { session, id: None, op }).await.unwrap();
        self.answer_permission(session, answer).await
    }
}

#[tokio::test]
async fn revoked_approvals_are_asked_again_in_the_open_session() {
    let touch = r#"call bash {"command": "touch a.txt"}"#;
    let replies: Vec<&str> = [touch, "say Done"].into_iter().cycle().take(10).collect();
    let mut frontend = TestFrontend::new(&replies, r#""mode": "ask""#);
    let session = frontend.new_session().await;
    let report = || ReportKind::Permissions { session: Some(session) };
    assert!(frontend.run_and_answer(session, PermissionAnswer::Session).await);
    assert!(!frontend.run_and_answer(session, PermissionAnswer::Once).await, "it is remembered");
    let rows = frontend.report(FrontendRequest::Report { report: report(), settled: false }).await;
    let groups: Vec<ReportGroup> = rows.iter().map(|row| row.group).collect();
    assert_eq!(groups, [ReportGroup::SessionApprovals], "{rows:?}");
    assert!(rows[0].name.contains("touch a.txt"), "{rows:?}");
    let revoke = |item: &str| FrontendRequest::RunReportAction {
        report: report(),
        item: item.to_owned(),
        action: ReportAction::Revoke,
    };
    let id = rows[0].id.clone();
    assert!(frontend.report(revoke(&id)).await.is_empty());
    assert!(frontend.run_and_answer(session, PermissionAnswer::Project).await, "asked again");
    let rows = frontend.report(FrontendRequest::Report { report: report(), settled: false }).await;
    assert_eq!(rows[0].group, ReportGroup::ProjectApprovals, "{rows:?}");
    let id = rows[0].id.clone();
    assert!(frontend.report(revoke(&id)).await.is_empty());
    assert!(frontend.request(revoke(&id)).await.is_err(), "it is gone");
    assert!(frontend.run_and_answer(session, PermissionAnswer::Once).await, "asked again");
}

#[tokio::test]
async fn usage_is_reported_with_the_price_from_the_config() {
    let settings = r#""agent": {}"#;
    let mut frontend = TestFrontend::new(&["say Hi there"], settings);
    let config = frontend.config().replace(
        r#""m": {"context": 4000,"#,
        r#""m": {"context": 4000, "cost": {"input": 1000000, "output": 2000000}, "limit": {},"#,
    );
    std::fs::write(frontend.folder.path().join("config/windlass.jsonc"), config).unwrap();
    // The model is chosen anew, so that the config is read again.
    let model = "scripted/m".to_owned();
    let switch = FrontendRequest::SetModel { model, persist: ModelChoiceScope::Session };
    frontend.request(switch).await.unwrap();
    let session = frontend.new_session().await;
    assert_eq!(frontend.prompt(session, "hello").await, "Hi there");
    let report = ReportKind::Statistics { days: Some(1) };
    let rows = frontend.report(FrontendRequest::Report { report, settled: false }).await;
    let model = rows.iter().find(|row| row.group == ReportGroup::Models);
    let model = model.unwrap_or_else(|| panic!("{rows:?}"));
    assert_eq!(model.name, "scripted/m");
    assert!(model.columns[2].starts_with('$'), "{model:?}");
}

#[tokio::test]
async fn a_session_that_is_not_open_is_renamed_in_the_log() {
    let mut frontend = TestFrontend::new(&["say Hi", "say Hi"], "");
    let first = frontend.new_session().await;
    frontend.prompt(first, "hello").await;
    let second = frontend.new_session().await;
    frontend.prompt(second, "hello").await;
    for (session, title) in [(first, "the first"), (second, "the second")] {
        let rename = FrontendRequest::RenameSession { session, title: title.into() };
        assert_eq!(frontend.request(rename).await, Ok(HostResponse::Done));
    }
    let mut titles = Vec::new();
    for _ in 0..100 {
        let query = SessionQuery::Sessions { workspace: None };
        let Ok(HostResponse::Reply { reply: QueryReply::Sessions { sessions } }) =
            frontend.request(FrontendRequest::Query { query }).await
        else {
            panic!("no list")
        };
        titles = sessions.into_iter().map(|row| row.title).collect();
        if titles.contains(&"the second".to_owned()) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(titles.contains(&"the first".to_owned()), "{titles:?}");
    assert!(titles.contains(&"the second".to_owned()), "{titles:?}");
}

#[tokio::test]
async fn another_server_is_written_to_the_config_only_if_it_answers() {
    let mut frontend = TestFrontend::new(&[], "");
    let add = |name: &str, base_url: &str, model: &str| FrontendRequest::AddProvider {
        name: name.into(),
        base_url: base_url.into(),
        key: ProviderKey(String::new()),
        model: model.into(),
    };
    for (name, url) in [
        ("openai", "http://127.0.0.1:9/v1"),
        ("scripted", "http://127.0.0.1:9/v1"),
        ("a b", "http://127.0.0.1:9/v1"),
        ("work", "ftp://127.0.0.1/v1"),
        ("work", "http://127.0.0.1:9/v1"),
    ] {
        assert!(frontend.request(add(name, url, "")).await.is_err(), "{name} {url}");
    }
    assert!(!frontend.config().contains("work"), "{}", frontend.config());
    let added = frontend.request(add("work", "http://127.0.0.1:9/v1/", "small")).await;
    let Ok(HostResponse::Login { result: LoginResult::SavedUnchecked { .. } }) = added else {
        panic!("{added:?}")
    };
    let config = frontend.config();
    assert!(config.contains("work") && config.contains("small"), "{config}");
    let model = "work/small".to_owned();
    let switch = FrontendRequest::SetModel { model, persist: ModelChoiceScope::Session };
    assert!(frontend.request(switch).await.is_ok(), "the model is usable at once");
}

#[tokio::test]
async fn a_session_is_exported_as_markdown_under_a_name() {
    let mut frontend = TestFrontend::new(&["say Hi **there**"], "");
    let session = frontend.new_session().await;
    frontend.prompt(session, "hello").await;
    let file = frontend.folder.path().join("talk.md").display().to_string();
    let export = || FrontendRequest::ExportSession { session, file: file.clone() };
    let path = HostResponse::Path { path: file.clone() };
    assert_eq!(frontend.request(export()).await, Ok(path));
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.starts_with("# hello\n"), "{text}");
    assert!(text.contains("## Answer\n\nHi **there**\n"), "{text}");
    assert!(frontend.request(export()).await.is_err(), "no file is overwritten");
}

#[tokio::test]
async fn an_effort_or_variant_applies_to_the_next_request() {
    let mut frontend = TestFrontend::new(&["say One", "say Two"], "");
    let status = frontend.status().await;
    assert_eq!((status.effort, status.efforts.join(" ").as_str()), (None, "deep low high"));
    let set = |effort: &str| FrontendRequest::SetEffort { effort: Some(effort.to_owned()) };
    let session = frontend.new_session().await;
    for (effort, sent) in [("deep", "77"), ("high", "\"high\"")] {
        frontend.request(set(effort)).await.unwrap();
        assert_eq!(frontend.status().await.effort.as_deref(), Some(effort));
        frontend.prompt(session, "hello").await;
        let request = frontend.model.requests().last().unwrap().to_string();
        assert!(request.contains(sent), "{request}");
    }
    let error = frontend.request(set("max")).await.unwrap_err().to_string();
    assert!(error.contains("available: deep, low, high"), "{error}");
}

#[tokio::test]
async fn mentioned_files_and_folders_are_read_within_the_rules() {
    let mut frontend =
        TestFrontend::new(&["say One"], r#""permission": {"read": {"*.key": "deny"}}"#);
    std::fs::write(frontend.root().join("a.key"), "secret").unwrap();
    let text = "see @README.md, (@src/) and @a.key but not @missing or me@src";
    let request =
        FrontendRequest::PreparePrompt { text: text.into(), attachments: Vec::new(), model: None };
    let prepared = frontend.request(request).await.unwrap();
    let HostResponse::PreparedPrompt { attachments, warnings } = prepared else {
        panic!("{prepared:?}")
    };
    let names: Vec<&str> = attachments.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["README.md", "src/"]);
    assert!(warnings.len() == 1 && warnings[0].contains("@a.key is not attached"), "{warnings:?}");
    for (file, content) in attachments.into_iter().zip(["# Hello", "a.rs"]) {
        // A user at the terminal may read all files, whatever session names them.
        let session = SessionId(uuid::Uuid::nil());
        let request = FrontendRequest::GetBlob { session, blob: file.blob };
        let stored = frontend.request(request).await.unwrap();
        let HostResponse::Bytes { bytes } = stored else { panic!("{stored:?}") };
        let bytes = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, bytes);
        let text = String::from_utf8(bytes.unwrap()).unwrap();
        assert!(text.contains(content), "{text}");
    }
}

#[tokio::test]
async fn a_revoked_approval_ends_in_a_policy_whose_engine_is_still_being_built() {
    let frontend = TestFrontend::new(&[], r#""mode": "ask""#);
    let (dirs, root) = test_dirs(frontend.folder.path());
    let edit = ToolAccess::Edit { path: "README.md".into() };
    let ProjectApproval { key, subject } = ProjectApproval::for_access(&edit);
    ApprovalStore::read(&dirs).unwrap().add(&root, &key, &subject, crate::now_millis()).unwrap();
    let state = WorkspaceState::load_at(
        (dirs, root),
        ConfigFlags::default(),
        None,
        Arc::default(),
        ProjectContext::default(),
    );
    let state = Arc::new(state.unwrap());
    let reloaded = state.reload().unwrap();
    let build_policy = |state: &WorkspaceState| {
        let paths = state.setup.machine_paths().unwrap();
        state.setup.build_policy(paths, PermissionMode::Ask).unwrap()
    };
    let asks = |policy: &Policy| matches!(policy.decide(vec![edit.clone()], &[]), Decision::Ask(_));
    let policies = [build_policy(&state), build_policy(&reloaded)];
    assert!(!policies.iter().any(asks), "the approval applies");
    assert!(!state.has_engine());
    let item = format!("{key}\n{subject}");
    let host = WorkspaceHost::new(Arc::clone(&state));
    let change = ConfigChange::RevokeApproval { item };
    host.change(change, async |result| result.response).await.unwrap();
    assert!(policies.iter().all(asks), "the approval is revoked");
    assert!(asks(&build_policy(&state)), "it does not come back");
}

#[tokio::test]
async fn the_servers_are_current_after_a_trust_answer() {
    let settings = r#""mcp": {"gone": {"command": ["/nonexistent/server"]}}"#;
    let mut frontend = TestFrontend::new(&["say Hi"], settings);
    let session = frontend.new_session().await;
    frontend.prompt(session, "hello").await;
    frontend.request(FrontendRequest::ReviewTrust).await.unwrap();
    let decision = TrustDecision::Trust;
    let answer =
        frontend.request(FrontendRequest::SetTrust { decision, seen: None }).await.unwrap();
    let HostResponse::Status { status } = answer else { panic!("{answer:?}") };
    // It starts in the background, and fails.
    let states: Vec<ReportRowState> = status.servers.iter().map(|server| server.state).collect();
    let is_started = matches!(states[..], [ReportRowState::Starting | ReportRowState::Failed]);
    assert!(is_started, "{states:?}");
}

#[tokio::test]
async fn the_model_of_a_command_answers_the_first_prompt_of_a_session() {
    let mut frontend = TestFrontend::new(&["say One", "say Two"], r#""titles": false"#);
    let commands = frontend.folder.path().join("config/commands");
    std::fs::create_dir_all(&commands).unwrap();
    std::fs::write(commands.join("review.md"), "---\nmodel: scripted/n\n---\nLook.\n").unwrap();
    let command = FrontendRequest::ExpandCommand {
        session: None,
        name: "review".into(),
        arguments: "".into(),
    };
    // The session is opened after the command is expanded, then while it is expanded.
    for is_changing in [false, true] {
        let (expanded, session) = match is_changing {
            false => (frontend.request(command.clone()).await, frontend.new_session().await),
            true => {
                let opening = frontend.send(FrontendRequest::new_session(None)).await;
                let expanding = frontend.send(command.clone()).await;
                let (mut expanded, mut opened) = (None, None);
                while expanded.is_none() || opened.is_none() {
                    match frontend.next_message().await {
                        HostMessage::Response { id, response } if id == opening => {
                            opened = Some(response.unwrap());
                        }
                        HostMessage::Response { id, response } if id == expanding => {
                            expanded = Some(response);
                        }
                        _ => {}
                    }
                }
                let Some(HostResponse::SessionOpened { session, .. }) = opened else {
                    panic!("{opened:?}")
                };
                (expanded.unwrap(), session)
            }
        };
        let Ok(HostResponse::Prompt { text, settings }) = expanded else { panic!("{expanded:?}") };
        let (attachments, delivery) = (Vec::new(), Default::default());
        let op = SessionOp::Prompt { text, attachments, delivery, settings };
        frontend.request(FrontendRequest::SessionOp { session, id: None, op }).await.unwrap();
        frontend.wait_for_turn_end().await;
        assert_eq!(frontend.model.requests().last().unwrap()["model"], "n", "{is_changing}");
    }
}

#[tokio::test]
async fn the_model_of_the_command_line_applies_to_the_first_session() {
    let script: (&[&str], _) =
        (&["say One", "say Two", "say Three", "say Four"], r#""titles": false"#);
    let mut frontend = TestFrontend::with_model(script, Some("scripted/n"));
    let workspace = frontend.hub.workspace(&frontend.root()).await.unwrap();
    let engine = workspace.state().engine().await.unwrap();
    let mut sessions = Vec::new();
    for _ in 0..2 {
        let (handle, mut watcher) = engine.start_default_session().await.unwrap();
        handle.send(SessionOp::SetModel { model: "scripted/o".into(), effort: None }).await;
        handle.send(SessionOp::prompt("Hello")).await;
        let is_end = |event: &Event| matches!(event, Event::Fact(record) if matches!(record.fact, Fact::TurnEnded { .. }));
        while !is_end(&watcher.next().await.unwrap().unwrap()) {}
        handle.close().await.unwrap();
        sessions.push(handle.session);
    }
    for (session, expected) in [(sessions[0], "n"), (sessions[1], "o")] {
        let open = FrontendRequest::OpenSession { session, resume: false };
        frontend.request(open).await.unwrap();
        frontend.prompt(session, "Hello").await;
        assert_eq!(frontend.model.requests().last().unwrap()["model"], expected);
    }
}
