//! The host of one front end: passes its requests on to the sessions of this process or of a server,
//! and its events back.
//!
//! One loop owns the watched session. Requests are answered in background tasks, so that none waits
//! for another, except that operations and changes of the session keep their order. It keeps the
//! invariant that each request is answered exactly once. Start reading at [`FrontendHost::run`].

pub(crate) mod appearance;
mod editor_and_clipboard;
mod event_forwarding;
mod local_requests;
mod op_queue;
mod session_changes;
mod terminal_ui;
mod tmux_keys;

pub(crate) use appearance::ScreenStart;
pub(crate) use terminal_ui::{check_terminal, print_return_hint, run_screen, run_tui};

use event_forwarding::{next_host_item, next_session_item};
use futures_util::stream::BoxStream;
use local_requests::ChosenModel;
pub(crate) use op_queue::OpQueue;
use session_changes::{OpenedSession, SessionChange, WatchedSession};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use windlass_project::StatusLineContent;
use windlass_protocol::frontend_messages::{
    FrontendRequest, FrontendRequestMessage, HostMessage, HostResponse, ListedItemKind,
};
use windlass_protocol::session_stream::HostStreamItem;
use windlass_protocol::{Fault, SessionId};
use windlass_server::{Caller, FrontendService};

/// Capacity of the request channel; `MESSAGE_QUEUE_LEN` is that of the message channel.
const REQUEST_QUEUE_LEN: usize = 256;
const MESSAGE_QUEUE_LEN: usize = 1024;
/// When a busy front end leaves this many messages in the `outbox`, the host stops reading session
/// events.
const MAX_OUTBOX_MESSAGES: usize = 256;

/// Number of requests that the host makes by itself; front ends begin with 1.
const OWN_REQUEST: u64 = 0;

/// Folders of this machine that the user names files in.
pub(crate) struct LocalFolders {
    pub(crate) home: PathBuf,
    /// Relative paths begin here.
    pub(crate) working: PathBuf,
}

/// Settings of the screen at this machine, when the host is a server.
pub(crate) struct LocalSettings {
    /// Folder of the user's config.
    pub(crate) config: PathBuf,
    /// The models of `tui.favorite_models`.
    pub(crate) favorite_models: Vec<String>,
    pub(crate) status_line: Option<StatusLineContent>,
}

/// Treatment of a session when its front end turns to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionOwnership {
    /// The front end is the only one: the session is closed.
    Owned,
    /// The session belongs to a server, where it goes on.
    Shared,
}

/// The result of a background task.
enum TaskResult {
    Answer(u64, Result<HostResponse, Fault>),
    /// The answer to a request that changes the open session, and the stream of its events.
    Opened(u64, Result<OpenedSession, Fault>),
    /// A choice of the model, and the status with it.
    Chosen(u64, Result<(ChosenModel, HostResponse), Fault>),
    /// The answer to a decision about trust.
    TrustAnswered(u64, Result<HostResponse, Fault>),
    /// The watched session was opened again, in a server that started again.
    Reopened(SessionId, Result<(), Fault>),
}

/// The state of a host when its front end has ended.
#[derive(Debug, Default)]
pub(crate) struct HostEnd {
    /// The session that was shown.
    pub(crate) open_session: Option<SessionId>,
    /// The session that was handed over to the server.
    pub(crate) detached_session: Option<SessionId>,
    /// The failure to open the session of the command line.
    pub(crate) opening_failure: Option<Fault>,
}

/// Answers the requests of one front end.
pub(crate) struct FrontendHost {
    service: Arc<dyn FrontendService>,
    caller: Caller,
    ownership: SessionOwnership,
    watched: Option<WatchedSession>,
    host_events: Option<BoxStream<'static, HostStreamItem>>,
    ops: OpQueue,
    folders: LocalFolders,
    /// The agent of new sessions that do not name one.
    default_agent: Option<String>,
    /// The model that the user chose for later sessions.
    chosen_model: ChosenModel,
    /// The model that the user chose for the open session.
    session_model: ChosenModel,
    /// The model of the command line, until the first session is open: it applies to that one even
    /// if its log has another.
    model_of_first_session: Option<String>,
    /// The session of the command line, until it is open: without it, the front end ends.
    required_session: Option<SessionId>,
    end: HostEnd,
    /// The digest of the trust review that the user saw last.
    seen_trust: Option<String>,
    /// Messages that the front end has not received yet.
    outbox: VecDeque<HostMessage>,
    background_tasks: JoinSet<TaskResult>,
    /// The request that each task answers, for an error response if the task panics.
    task_requests: HashMap<Id, u64>,
    /// Session changes, made one after another; the first is under way.
    pending_changes: VecDeque<SessionChange>,
    /// True while the connection to the server is lost.
    is_disconnected: bool,
    /// Notices that the front end was sent.
    shown_notices: BTreeSet<String>,
    /// Settings of the screen, if they are not those of the host.
    local_settings: Option<LocalSettings>,
    /// Notes of this process, if the host is another one.
    local_notes: Option<mpsc::UnboundedReceiver<String>>,
}

impl FrontendHost {
    pub(crate) fn new(
        (service, caller): (Arc<dyn FrontendService>, Caller),
        ownership: SessionOwnership,
        folders: LocalFolders,
    ) -> FrontendHost {
        FrontendHost {
            ops: match ownership {
                SessionOwnership::Owned => OpQueue::new(Arc::clone(&service), caller.clone()),
                SessionOwnership::Shared => {
                    OpQueue::new(Arc::clone(&service), caller.clone()).with_reopening()
                }
            },
            service,
            caller,
            ownership,
            watched: None,
            host_events: None,
            folders,
            default_agent: None,
            chosen_model: ChosenModel::default(),
            session_model: ChosenModel::default(),
            model_of_first_session: None,
            required_session: None,
            end: HostEnd::default(),
            seen_trust: None,
            outbox: VecDeque::new(),
            background_tasks: JoinSet::new(),
            task_requests: HashMap::new(),
            pending_changes: VecDeque::new(),
            is_disconnected: false,
            shown_notices: BTreeSet::new(),
            local_settings: None,
            local_notes: None,
        }
    }

    /// Shows the notes of this process.
    #[must_use]
    pub(crate) fn with_local_notes(
        mut self,
        notes: mpsc::UnboundedReceiver<String>,
    ) -> FrontendHost {
        self.local_notes = Some(notes);
        self
    }

    /// Keeps the settings of the screen at this machine.
    #[must_use]
    pub(crate) fn with_local_settings(mut self, settings: LocalSettings) -> FrontendHost {
        self.local_settings = Some(settings);
        self
    }

    /// Chooses the agent of new sessions, and the model of new sessions and of the first one.
    #[must_use]
    pub(crate) fn with_choices(
        mut self,
        agent: Option<String>,
        model: Option<String>,
    ) -> FrontendHost {
        self.default_agent = agent;
        self.model_of_first_session.clone_from(&model);
        self.chosen_model = ChosenModel { model, effort: None };
        self.session_model = self.chosen_model.clone();
        self
    }

    /// Ends when this session cannot be opened.
    #[must_use]
    pub(crate) fn with_required_session(mut self, session: Option<SessionId>) -> FrontendHost {
        self.required_session = session;
        self
    }

    /// Answers requests until the front end disconnects, `stop` is canceled or the required session
    /// cannot be opened.
    pub(crate) async fn run(
        mut self,
        (mut requests, messages): (
            mpsc::Receiver<FrontendRequestMessage>,
            mpsc::Sender<HostMessage>,
        ),
        stop: CancellationToken,
    ) -> HostEnd {
        match self.service.watch_host(&self.caller).await {
            Ok(events) => self.host_events = Some(events),
            Err(error) => self.note(error.to_string()),
        }
        while self.end.opening_failure.is_none() {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                permit = messages.reserve(), if !self.outbox.is_empty() => {
                    let Ok(permit) = permit else { break };
                    if let Some(message) = self.outbox.pop_front() {
                        permit.send(message);
                    }
                }
                request = requests.recv() => match request {
                    Some(FrontendRequestMessage { id, request }) => self.handle_request(id, request),
                    None => break,
                },
                Some(result) = self.background_tasks.join_next_with_id() => {
                    self.handle_task_result(result);
                }
                Some((id, answer)) = self.ops.next_answer() => {
                    if id != OWN_REQUEST {
                        self.send_answer(id, answer);
                    }
                }
                Some(text) = next_note(&mut self.local_notes) => self.note(text),
                item = next_host_item(&mut self.host_events),
                    if self.outbox.len() < MAX_OUTBOX_MESSAGES =>
                {
                    self.handle_host_item(item);
                }
                item = next_session_item(&mut self.watched),
                    if self.outbox.len() < MAX_OUTBOX_MESSAGES =>
                {
                    self.handle_session_item(item);
                }
            }
        }
        self.background_tasks.abort_all();
        HostEnd { open_session: self.watched.map(|watched| watched.session), ..self.end }
    }

    fn note(&mut self, text: String) {
        self.outbox.push_back(HostMessage::Notice { text });
    }

    fn send_answer(&mut self, id: u64, mut response: Result<HostResponse, Fault>) {
        if let (Ok(HostResponse::Status { status }), Some(agent)) =
            (&mut response, &self.default_agent)
        {
            status.agent.clone_from(agent);
        }
        if let Ok(HostResponse::TrustReview { review }) = &response {
            self.seen_trust = Some(review.digest.clone());
        }
        self.outbox.push_back(HostMessage::Response { id, response });
    }

    /// Answers a request in a background task.
    fn spawn_answer(
        &mut self,
        id: u64,
        answer: impl Future<Output = Result<HostResponse, Fault>> + Send + 'static,
    ) {
        let task = self.background_tasks.spawn(async move { TaskResult::Answer(id, answer.await) });
        self.task_requests.insert(task.id(), id);
    }

    /// Passes a request on.
    fn forward(&mut self, id: u64, request: FrontendRequest) {
        let (service, caller) = (Arc::clone(&self.service), self.caller.clone());
        self.spawn_answer(id, async move { Ok(service.request(&caller, request).await?) });
    }

    fn handle_request(&mut self, id: u64, request: FrontendRequest) {
        let change = match request {
            FrontendRequest::SessionOp { session, id: op_id, op } => {
                return self.ops.push(id, (session, op_id, op));
            }
            FrontendRequest::SetModel { model, persist } => {
                return self.set_model(id, model, persist);
            }
            FrontendRequest::SetEffort { effort } => return self.set_effort(id, effort),
            FrontendRequest::SetTrust { decision, seen } => {
                let seen = seen.or_else(|| self.seen_trust.clone());
                return self.set_trust(id, FrontendRequest::SetTrust { decision, seen });
            }
            FrontendRequest::ExportSession { session, file } => {
                return self.export_session(id, session, file);
            }
            FrontendRequest::AttachFile { path } => return self.attach_file(id, &path),
            FrontendRequest::NewSession { agent, .. } => {
                let ChosenModel { model, effort } = self.chosen_model.clone();
                let agent = agent.or_else(|| self.default_agent.clone());
                FrontendRequest::NewSession { agent, model, effort }
            }
            change @ (FrontendRequest::OpenSession { .. }
            | FrontendRequest::ForkSession { .. }
            | FrontendRequest::CloseSession { .. }
            | FrontendRequest::DetachSession { .. }
            | FrontendRequest::DeleteSession { .. }) => change,
            FrontendRequest::List { list: ListedItemKind::Models } => return self.list_models(id),
            FrontendRequest::SetConfig { name, value } if self.local_settings.is_some() => {
                return self.set_local_option(id, &name, &value);
            }
            FrontendRequest::RunStatusLine { input } if self.local_settings.is_some() => {
                return self.run_local_status_line(id, input);
            }
            request => {
                let request = self.complete(request);
                return self.forward(id, request);
            }
        };
        self.push_change(id, change);
    }

    /// Adds what the front end knows from earlier requests.
    fn complete(&self, request: FrontendRequest) -> FrontendRequest {
        match request {
            FrontendRequest::Status { model: None, effort: None } => {
                let ChosenModel { model, effort } = self.session_model.clone();
                FrontendRequest::Status { model, effort }
            }
            FrontendRequest::PreparePrompt { text, attachments, model: None } => {
                FrontendRequest::PreparePrompt {
                    text,
                    attachments,
                    model: self.session_model.model.clone(),
                }
            }
            FrontendRequest::ExpandCommand { session: None, name, arguments } => {
                let session = self.watched.as_ref().map(|watched| watched.session);
                FrontendRequest::ExpandCommand { session, name, arguments }
            }
            request => request,
        }
    }

    fn handle_task_result(&mut self, result: Result<(Id, TaskResult), JoinError>) {
        let (task, result) = match result {
            Ok(result) => result,
            Err(error) => {
                let message = "the request crashed".to_owned();
                let id = self.task_requests.get(&error.id()).copied().unwrap_or_default();
                let is_change = self.pending_changes.front().is_some_and(|(first, _)| *first == id);
                let fault = Fault::Internal { message };
                match is_change {
                    true => (error.id(), TaskResult::Opened(id, Err(fault))),
                    false => (error.id(), TaskResult::Answer(id, Err(fault))),
                }
            }
        };
        self.task_requests.remove(&task);
        match result {
            TaskResult::Answer(id, answer) => self.send_answer(id, answer),
            TaskResult::Chosen(id, result) => {
                let answer = result.map(|(chosen, response)| {
                    self.apply_choice(chosen);
                    response
                });
                self.send_answer(id, answer);
            }
            TaskResult::Opened(id, result) => self.finish_change(id, result),
            TaskResult::TrustAnswered(id, Ok(HostResponse::Status { .. }))
                if self.session_model.model.is_some() =>
            {
                // The host does not know the model that the user chose meanwhile.
                let ChosenModel { model, effort } = self.session_model.clone();
                self.forward(id, FrontendRequest::Status { model, effort });
            }
            TaskResult::TrustAnswered(id, answer) => self.send_answer(id, answer),
            TaskResult::Reopened(session, result) => self.handle_reopened(session, result),
        }
    }
}

/// Waits for the next note; never resolves without a receiver.
async fn next_note(notes: &mut Option<mpsc::UnboundedReceiver<String>>) -> Option<String> {
    match notes {
        Some(notes) => notes.recv().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
