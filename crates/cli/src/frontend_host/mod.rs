//! The host: answers the requests of a front end and forwards the events of its session.
//!
//! One loop owns the open session. Everything that takes time runs in background tasks, so that no
//! request waits for another. It keeps the invariant that each request is answered exactly once.
//! Start reading at [`FrontendHost::run`]; the answers come from [`HostState`].

pub(crate) mod appearance;
mod attachments;
mod config_and_engines;
mod editor_and_clipboard;
mod login;
mod model_discovery;
mod picker_lists;
mod prompt_shell_commands;
mod report;
mod session_ops;
mod session_switch;
mod settings;
mod status;
mod status_line;
mod tmux_keys;

use crate::custom_command::PreparedCommand;
use crate::setup::{LoadedProject, ProjectContext};
use crate::telemetry::TelemetryExport;
use crate::terminal::output::{self, ProjectNotes};
use crate::terminal::question_queue::{CtrlC, ShutdownSignals};
use crate::{CliExit, args};
use anyhow::bail;
use config_and_engines::HostState;
use prompt_shell_commands::CustomCommandShellRun;
use session_switch::{
    OpenSession, PreparedSessionChange, SessionChangeRequest, SessionChangeResult,
};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use windlass_protocol::frontend_messages::{
    FrontendRequest, FrontendRequestMessage, HostMessage, HostResponse, ServerStatus,
};
use windlass_protocol::report::{ReportAction, ReportKind};
use windlass_protocol::{ClientInfo, ClientKind, DEFAULT_AGENT, Event, Fact, Fault, SessionId};

/// Capacity of the request channel; `MESSAGE_QUEUE_LEN` is that of the message channel.
const REQUEST_QUEUE_LEN: usize = 256;
const MESSAGE_QUEUE_LEN: usize = 1024;
/// When a busy front end leaves this many messages in the `outbox`, the host stops reading session
/// events.
const MAX_OUTBOX_MESSAGES: usize = 256;
/// Time for the session to end when the user quits the UI.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs the terminal UI (`windlass` without a command) until the user quits.
pub(crate) async fn run_tui(args: args::TuiArgs) -> anyhow::Result<CliExit> {
    if !output::is_terminal() {
        bail!(
            "`windlass` needs a terminal, but standard input or output is not one. Use `windlass \
             run \"…\"` instead; `windlass --help` lists all commands"
        );
    }
    let (notes, mut note_receiver) = mpsc::unbounded_channel();
    let send_note = move |text| {
        // After the host has stopped, notes have no receiver.
        let _ = notes.send(text);
    };
    output::divert_notes(Some(Box::new(send_note.clone())));
    let context = ProjectContext::with_notes(ProjectNotes::new(send_note));
    let had_open_session = Arc::new(AtomicBool::new(false));
    let result = run_frontend(args, context, &mut note_receiver, &had_open_session).await;
    output::divert_notes(None);
    while let Ok(text) = note_receiver.try_recv() {
        output::print_note(&text);
    }
    if had_open_session.load(Ordering::Relaxed) {
        output::print_note("To resume: windlass --continue");
    }
    result.map(|()| CliExit::Done)
}

async fn run_frontend(
    args: args::TuiArgs,
    context: ProjectContext,
    note_receiver: &mut mpsc::UnboundedReceiver<String>,
    had_open_session: &Arc<AtomicBool>,
) -> anyhow::Result<()> {
    let state = HostState::load(&args, context)?;
    let session = state.initial_session(&args).await?;
    let settings = &state.setup.config.tui;
    let (options, linear) =
        appearance::screen_options(settings, &args, session, LoadedProject::env_variable);
    let actions = editor_and_clipboard::UserProgramRunner {
        drafts_folder: state.setup.dirs.data.join("drafts"),
    };
    if !linear {
        tmux_keys::note_missing_keys(LoadedProject::env_variable);
    }
    let (requests, request_receiver) = mpsc::channel(REQUEST_QUEUE_LEN);
    let (message_sender, messages) = mpsc::channel(MESSAGE_QUEUE_LEN);
    let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
    // From here on, notes appear in the terminal UI.
    let (_, closed) = mpsc::unbounded_channel();
    let mut host = FrontendHost::new(Arc::new(state), std::mem::replace(note_receiver, closed));
    host.had_open_session = Arc::clone(had_open_session);
    tasks.spawn(host.run((request_receiver, message_sender), stop.clone()));
    tasks.close();
    let mut shutdown_signals = ShutdownSignals::new()?;
    let result = tokio::select! {
        result = async {
            match linear {
                true => {
                    let mut ctrl_c = CtrlC::new()?;
                    let interrupted = async || ctrl_c.wait().await;
                    windlass_tui::linear::run(options, requests, messages, interrupted).await
                }
                false => windlass_tui::run(options, requests, messages, &actions).await,
            }
        } => result,
        () = shutdown_signals.wait() => Ok(()),
    };
    stop.cancel();
    // A session that does not end in time resumes when it is opened again.
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, tasks.wait()).await;
    Ok(result?)
}

/// The result of a background task (`spawn_work`).
enum BackgroundTaskResult {
    Answer(u64, Result<HostResponse, Fault>),
    /// A session change whose slow preparation is done.
    Prepared(u64, Result<Box<PreparedSessionChange>, Fault>),
    /// A custom command whose shell commands have not run yet.
    Prompt(u64, Result<PreparedCommand, Fault>),
    /// A session was opened or reopened.
    Changed(u64, Box<SessionChangeResult>),
    /// The session did not run the current shell command of a custom command.
    PreCommandRejected,
    /// No request waits for the result.
    Nothing,
}

/// Answers the requests of one front end.
struct FrontendHost {
    state: Arc<HostState>,
    /// The front end, as facts name it.
    client: ClientInfo,
    open_session: Option<OpenSession>,
    notes: mpsc::UnboundedReceiver<String>,
    /// Marked as changed when the state of a server changes.
    server_changes: watch::Receiver<()>,
    /// The states of servers that the front end knows.
    sent_servers: Vec<ServerStatus>,
    /// Messages that the front end has not received yet.
    outbox: VecDeque<HostMessage>,
    background_tasks: JoinSet<BackgroundTaskResult>,
    /// The request that each task answers, for an error response if the task panics.
    task_requests: HashMap<Id, u64>,
    /// Session changes, applied one after another; the first is under way.
    pending_changes: VecDeque<(u64, SessionChangeRequest)>,
    /// Notes already sent, to avoid repeats.
    shown_notes: HashSet<String>,
    telemetry_export: Option<TelemetryExport>,
    /// The shell commands that run before the prompt of a custom command.
    pre_commands: Option<CustomCommandShellRun>,
    /// The model that a custom command names for its prompt, until the session of the prompt is open.
    command_model: Option<String>,
    /// The last session in which a turn started.
    last_active_session: Option<SessionId>,
    /// Set if a session was still open when the host stopped.
    had_open_session: Arc<AtomicBool>,
}

impl FrontendHost {
    fn new(state: Arc<HostState>, notes: mpsc::UnboundedReceiver<String>) -> FrontendHost {
        FrontendHost {
            server_changes: state.setup.server_changes().subscribe(),
            sent_servers: Vec::new(),
            state,
            client: crate::local_client(ClientKind::Terminal),
            open_session: None,
            notes,
            outbox: VecDeque::new(),
            background_tasks: JoinSet::new(),
            task_requests: HashMap::new(),
            pending_changes: VecDeque::new(),
            shown_notes: HashSet::new(),
            telemetry_export: TelemetryExport::from_env(LoadedProject::env_variable),
            pre_commands: None,
            command_model: None,
            last_active_session: None,
            had_open_session: Arc::default(),
        }
    }

    /// Answers requests until the front end disconnects or `stop` is canceled.
    async fn run(
        mut self,
        (mut requests, messages): (
            mpsc::Receiver<FrontendRequestMessage>,
            mpsc::Sender<HostMessage>,
        ),
        stop: CancellationToken,
    ) {
        loop {
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
                    Some(FrontendRequestMessage { id, request }) => self.handle_request(id, request).await,
                    None => break,
                },
                Some(result) = self.background_tasks.join_next_with_id() => {
                    self.handle_work_result(result).await;
                }
                Some(text) = self.notes.recv() => self.send_note(text),
                Ok(()) = self.server_changes.changed() => self.send_servers(),
                event = next_event(&mut self.open_session), if self.outbox.len() < MAX_OUTBOX_MESSAGES => {
                    self.handle_session_event(event).await;
                }
            }
        }
        self.background_tasks.abort_all();
        if let Some(open) = self.open_session.take() {
            self.had_open_session.store(true, Ordering::Relaxed);
            // The log records how the session ended.
            let _ = open.handle.close().await;
        }
        if let Some(export) = &mut self.telemetry_export {
            export.export().await;
        }
    }

    /// Sends a note once: building an engine twice produces the same notes twice.
    fn send_note(&mut self, text: String) {
        let text = text.strip_prefix("note: ").map(str::to_owned).unwrap_or(text);
        if self.shown_notes.insert(text.clone()) {
            self.outbox.push_back(HostMessage::Notice { text });
        }
    }

    /// Runs work in a background task that answers the request `id`.
    fn spawn_work(
        &mut self,
        id: u64,
        work: impl Future<Output = BackgroundTaskResult> + Send + 'static,
    ) {
        let task = self.background_tasks.spawn(work).id();
        self.task_requests.insert(task, id);
    }

    async fn handle_request(&mut self, id: u64, request: FrontendRequest) {
        let change = match request {
            FrontendRequest::SessionOp { session, op } => {
                return self.forward_op(id, session, op).await;
            }
            FrontendRequest::NewSession { agent } => SessionChangeRequest::NewSession { agent },
            FrontendRequest::OpenSession { session } => {
                SessionChangeRequest::OpenSession { session }
            }
            FrontendRequest::ForkSession { session, turn } => {
                SessionChangeRequest::ForkSession { session, turn }
            }
            FrontendRequest::DeleteSession { session } => {
                SessionChangeRequest::DeleteSession { session }
            }
            FrontendRequest::SetModel { model, persist } => {
                SessionChangeRequest::SwitchModel { model, persist }
            }
            FrontendRequest::SetEffort { effort } => SessionChangeRequest::SetEffort { effort },
            FrontendRequest::SetTrust { decision } => {
                SessionChangeRequest::AnswerTrust { decision }
            }
            FrontendRequest::Login { provider, key, save_rejected } => {
                SessionChangeRequest::Login { provider, key, save_rejected }
            }
            FrontendRequest::AddProvider { name, base_url, key, model } => {
                SessionChangeRequest::AddProvider { name, base_url, key, model }
            }
            FrontendRequest::RenameSession { session, title } => {
                return self.rename_session(id, session, title).await;
            }
            FrontendRequest::RunReportAction {
                report: ReportKind::Permissions { .. },
                item,
                action: ReportAction::Revoke,
            } => SessionChangeRequest::RevokeApproval { item },
            FrontendRequest::ExpandCommand { name, arguments } => {
                let state = Arc::clone(&self.state);
                let agent = self.open_session.as_ref().map(|open| open.handle.agent.clone());
                let work = async move {
                    let agent = agent.as_deref().unwrap_or(DEFAULT_AGENT);
                    let prepared = state.expand_command(&name, &arguments, agent).await;
                    BackgroundTaskResult::Prompt(id, prepared)
                };
                return self.spawn_work(id, work);
            }
            request @ (FrontendRequest::Status
            | FrontendRequest::Query { .. }
            | FrontendRequest::PutBlob { .. }
            | FrontendRequest::AttachFile { .. }
            | FrontendRequest::PreparePrompt { .. }
            | FrontendRequest::GetBlob { .. }
            | FrontendRequest::Thumbnail { .. }
            | FrontendRequest::List { .. }
            | FrontendRequest::Doctor
            | FrontendRequest::RunStatusLine { .. }
            | FrontendRequest::ExportSession { .. }
            | FrontendRequest::ReviewTrust
            | FrontendRequest::DiscoverProviders
            | FrontendRequest::Report { .. }
            | FrontendRequest::RunReportAction { .. }
            | FrontendRequest::SetConfig { .. }) => {
                let state = Arc::clone(&self.state);
                if request == FrontendRequest::Status && state.is_ready_to_build() {
                    // The `Status` reply does not wait for the servers; they start in the
                    // background.
                    let state = Arc::clone(&state);
                    self.background_tasks.spawn(async move { state.warm_up().await });
                }
                let work = async move {
                    BackgroundTaskResult::Answer(id, state.answer_request(request).await)
                };
                return self.spawn_work(id, work);
            }
        };
        self.pending_changes.push_back((id, change));
        if self.pending_changes.len() == 1 {
            self.prepare_next_change();
        }
    }

    /// Starts the preparation of the next session change.
    fn prepare_next_change(&mut self) {
        let Some((id, change)) = self.pending_changes.front().cloned() else { return };
        let state = Arc::clone(&self.state);
        let work = async move {
            BackgroundTaskResult::Prepared(
                id,
                session_switch::prepare_change(state, change).await.map(Box::new),
            )
        };
        self.spawn_work(id, work);
    }

    async fn handle_work_result(&mut self, result: Result<(Id, BackgroundTaskResult), JoinError>) {
        let (task, result) = match result {
            Ok((task, result)) => (task, result),
            Err(error) => {
                let message = "the request crashed".to_owned();
                let id = self.task_requests.get(&error.id()).copied().unwrap_or_default();
                (error.id(), BackgroundTaskResult::Answer(id, Err(Fault::Internal { message })))
            }
        };
        self.task_requests.remove(&task);
        match result {
            BackgroundTaskResult::Nothing => {}
            BackgroundTaskResult::PreCommandRejected => self.cancel_pre_commands(),
            BackgroundTaskResult::Answer(id, answer) => {
                self.send_answer(id, answer);
                self.start_next_change(id);
            }
            BackgroundTaskResult::Prompt(id, Err(fault)) => self.send_answer(id, Err(fault)),
            BackgroundTaskResult::Prompt(id, Ok(expanded)) => {
                self.start_pre_commands(id, expanded).await
            }
            BackgroundTaskResult::Prepared(id, Err(fault)) => {
                self.send_answer(id, Err(fault));
                self.start_next_change(id);
            }
            BackgroundTaskResult::Prepared(id, Ok(prepared)) => {
                let open = self.open_session.take();
                self.spawn_work(id, async move {
                    BackgroundTaskResult::Changed(id, Box::new(prepared.apply(open).await))
                });
            }
            BackgroundTaskResult::Changed(id, change) => {
                let SessionChangeResult {
                    state,
                    open_session,
                    keeps_session,
                    missed_events,
                    answer,
                } = *change;
                (self.state, self.open_session) = (state, open_session);
                self.server_changes = self.state.setup.server_changes().subscribe();
                self.offer_command_model().await;
                for event in missed_events {
                    self.forward_event(&event).await;
                }
                if !keeps_session {
                    self.drop_pre_commands();
                }
                self.send_answer(id, answer);
                self.send_servers();
                self.start_next_change(id);
            }
        }
    }

    /// Starts the next session change, if request `id` was the one under way.
    fn start_next_change(&mut self, id: u64) {
        if self.pending_changes.pop_front_if(|(under_way, _)| *under_way == id).is_some() {
            self.prepare_next_change();
        }
    }

    /// Forwards an event to the front end, or reports `SessionStopped`.
    async fn handle_session_event(&mut self, event: Result<Option<Arc<Event>>, String>) {
        let fault = match event {
            Ok(Some(event)) => return self.forward_event(&event).await,
            Ok(None) => None,
            Err(message) => Some(Fault::Storage { message }),
        };
        let Some(open) = self.open_session.take() else { return };
        let session = open.handle.session;
        let close_fault = open.handle.close().await.err();
        let unexpected =
            || Fault::Internal { message: "the session stopped unexpectedly".to_owned() };
        let fault = close_fault.or(fault).unwrap_or_else(unexpected);
        self.outbox.push_back(HostMessage::SessionStopped { session, fault });
        self.drop_pre_commands();
    }

    /// Forwards an event to the front end. Telemetry is exported at `TurnEnded`.
    async fn forward_event(&mut self, event: &Event) {
        self.outbox.push_back(HostMessage::Event { event: Box::new(event.clone()) });
        self.advance_pre_commands(event).await;
        let Event::Fact(record) = event else { return };
        if self.open_session.as_ref().is_none_or(|open| open.handle.session != record.session) {
            return;
        }
        if let Fact::TurnStarted { .. } = &record.fact {
            self.last_active_session = Some(record.session);
        }
        if let (Fact::AgentChanged { agent }, Some(open)) = (&record.fact, &mut self.open_session) {
            open.handle.agent.clone_from(agent);
        }
        let Some(export) = &mut self.telemetry_export else { return };
        export.telemetry.push(record);
        if let Fact::TurnEnded { .. } = &record.fact
            && let Some(sending) = export.export_in_background()
        {
            self.background_tasks.spawn(async move {
                sending.await;
                BackgroundTaskResult::Nothing
            });
        }
    }
}

/// Waits for the next event of the open session; never resolves without one.
async fn next_event(open: &mut Option<OpenSession>) -> Result<Option<Arc<Event>>, String> {
    match open {
        Some(open) => open.watcher.next().await.map_err(|error| error.to_string()),
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
