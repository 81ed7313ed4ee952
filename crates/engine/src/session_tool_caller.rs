//! The `ToolCaller` implementation of a session: passes requests from tool calls to the session and its
//! answers back.

use crate::clock_and_ids::new_stamp;
use crate::driver::side_request::SideRequestModels;
use crate::file_tracker::{self, FileTracker};
use crate::lineage::{Lineage, MAX_SUBAGENT_DEPTH};
use crate::session::{SessionInput, SubagentStart};
use crate::settings::EngineSettings;
use crate::shared_mutex::SharedMutex;
use crate::subagents::{self, PendingSubagent, PendingSubagents};
use crate::turn_budget::MAX_CONCURRENT_SUBAGENTS;
use async_trait::async_trait;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use windlass_protocol::mutex_lock::lock;
use windlass_protocol::{
    BlobRef, CallId, Event, FileChange, LiveEvent, LiveEventRecord, LogPosition, LogSeq,
    PermissionAnswer, SeenFileDigest, SessionId, TodoItem, UserQuestion,
};
use windlass_storage::Log;
use windlass_toolkit::{
    CallFailure, CallIntent, HookJudge, HookRun, PendingFileChange, PermissionReply,
    QuestionEffect, SeenFile, SubagentReport, SubagentRequest, ToolCaller,
};

/// Calls that have declared their `CallIntent` and wait for permission.
pub(crate) type PendingPermits = SharedMutex<HashMap<CallId, oneshot::Sender<PermissionReply>>>;

/// Calls that wait until their `FilesChanging` is recorded.
pub(crate) type PendingRecords = SharedMutex<HashMap<CallId, oneshot::Sender<()>>>;

/// Calls that have asked a `UserQuestion` and wait for the user's answer.
pub(crate) type PendingQuestions = SharedMutex<HashMap<CallId, oneshot::Sender<Vec<Vec<String>>>>>;

/// The `ToolCaller` of a tool call: its connection to the session.
pub(crate) struct SessionToolCaller {
    pub(crate) turn: u32,
    /// Log position of the step that made the call; absent for a call of the user.
    pub(crate) step_seq: Option<LogSeq>,
    pub(crate) call: CallId,
    pub(crate) judge: SideRequestModels,
    pub(crate) session: SessionId,
    /// The call was permitted, so it may have had effects.
    pub(crate) was_permitted: Arc<AtomicBool>,
    pub(crate) log: Arc<dyn Log>,
    pub(crate) inputs: mpsc::Sender<SessionInput>,
    pub(crate) events: broadcast::Sender<Arc<Event>>,
    pub(crate) pending_permits: PendingPermits,
    pub(crate) pending_records: PendingRecords,
    pub(crate) pending_questions: PendingQuestions,
    pub(crate) todos: SharedMutex<Vec<TodoItem>>,
    pub(crate) file_tracker: SharedMutex<FileTracker>,
    /// Files that the call passed to `mark_seen`.
    pub(crate) shown_files: SharedMutex<Vec<SeenFileDigest>>,
    pub(crate) settings: Arc<EngineSettings>,
    pub(crate) lineage: Lineage,
    pub(crate) pending_subagents: PendingSubagents,
}

fn session_closed_answer() -> PermissionAnswer {
    PermissionAnswer::No { reason: Some("the session was closed".into()) }
}

impl SessionToolCaller {
    /// Sends an input to the session, and waits for its `PermissionReply`.
    async fn await_permission(&self, input: SessionInput) -> PermissionReply {
        let (sender, receiver) = oneshot::channel();
        lock(&self.pending_permits).insert(self.call, sender);
        if self.inputs.send(input).await.is_err() {
            return PermissionReply::Answer(session_closed_answer());
        }
        let reply =
            receiver.await.unwrap_or_else(|_| PermissionReply::Answer(session_closed_answer()));
        let permitted = matches!(&reply, PermissionReply::Answer(answer) if answer.is_yes());
        self.was_permitted.store(permitted, Ordering::SeqCst);
        reply
    }

    /// Waits until the session has recorded the changes of the call.
    async fn record_stored_changes(
        &self,
        changes: Vec<FileChange>,
        are_made: bool,
    ) -> Result<(), CallFailure> {
        let (sender, recorded) = oneshot::channel();
        lock(&self.pending_records).insert(self.call, sender);
        let (turn, call) = (self.turn, self.call);
        let input = SessionInput::FilesChanging { turn, call, changes, are_made };
        self.inputs.send(input).await.map_err(|_| call_canceled())?;
        recorded.await.map_err(|_| call_canceled())
    }

    fn emit_live(&self, event: LiveEvent) {
        let live_record = LiveEventRecord { session: self.session, at: new_stamp().at, event };
        let _ = self.events.send(Arc::new(Event::Live(live_record)));
    }
}

fn call_canceled() -> CallFailure {
    CallFailure::new("the call was canceled")
}

#[async_trait]
impl ToolCaller for SessionToolCaller {
    fn message_id(&self) -> Option<String> {
        self.step_seq.map(|seq| format!("msg_{seq:010}"))
    }

    async fn request_permission(&self, intent: CallIntent) -> PermissionReply {
        self.await_permission(SessionInput::PermissionRequested {
            turn: self.turn,
            call: self.call,
            intent,
        })
        .await
    }

    async fn ask_permission(&self, preview: Option<String>) -> PermissionAnswer {
        let input = SessionInput::PreviewReady { turn: self.turn, call: self.call, preview };
        match self.await_permission(input).await {
            PermissionReply::Answer(answer) => answer,
            // `PreviewReady` was just sent; the session does not request it twice.
            PermissionReply::ShowPreview => session_closed_answer(),
        }
    }

    fn report_progress(&self, text: String) {
        self.emit_live(LiveEvent::CallProgress { call: self.call, text });
    }

    fn report_output(&self, text: String) {
        self.emit_live(LiveEvent::CommandOutput { call: self.call, text });
    }

    fn report_host(&self, host: String, refusal: Option<String>) {
        self.emit_live(LiveEvent::HostAccess { call: self.call, host, refusal });
    }

    fn hook_judge(&self) -> Option<&dyn HookJudge> {
        Some(&self.judge)
    }

    async fn record_hook(&self, hook_run: HookRun) {
        let (call, hook_runs) = (Some(self.call), vec![hook_run]);
        let _ = self.inputs.send(SessionInput::HooksRan { call, hook_runs }).await;
    }

    async fn put_blob(&self, bytes: Vec<u8>) -> Result<BlobRef, CallFailure> {
        self.log.put_blob(bytes).await.map_err(|error| CallFailure::new(error.to_string()))
    }

    async fn find_blob(&self, prefix: &str) -> Result<Option<BlobRef>, CallFailure> {
        self.log.find_blob(prefix).await.map_err(|error| CallFailure::new(error.to_string()))
    }

    async fn get_blob(&self, blob: &BlobRef) -> Result<Vec<u8>, CallFailure> {
        self.log.get_blob(blob).await.map_err(|error| CallFailure::new(error.to_string()))
    }

    async fn record_changes(&self, batch: Vec<PendingFileChange>) -> Result<(), CallFailure> {
        let changes = file_tracker::store_changes(&*self.log, batch).await?;
        self.record_stored_changes(changes, false).await
    }

    async fn record_made_changes(&self, batch: Vec<PendingFileChange>) -> Result<(), CallFailure> {
        let changes = file_tracker::store_changes(&*self.log, batch).await?;
        lock(&self.file_tracker).mark_changed_by_command(&changes);
        self.record_stored_changes(changes, true).await
    }

    async fn file_version(&self, copy: &BlobRef) -> Result<Vec<u8>, CallFailure> {
        file_tracker::read_version(&*self.log, copy).await
    }

    async fn retract_changes(&self) {
        let input = SessionInput::FilesUnchanged { turn: self.turn, call: self.call };
        let _ = self.inputs.send(input).await;
    }

    async fn ask_user(
        &self,
        questions: Vec<UserQuestion>,
        effect: QuestionEffect,
    ) -> Result<Vec<Vec<String>>, CallFailure> {
        let (sender, answers) = oneshot::channel();
        lock(&self.pending_questions).insert(self.call, sender);
        let (turn, call) = (self.turn, self.call);
        let input = SessionInput::QuestionAsked { turn, call, questions, effect };
        self.inputs.send(input).await.map_err(|_| call_canceled())?;
        answers.await.map_err(|_| call_canceled())
    }

    fn todos(&self) -> Vec<TodoItem> {
        lock(&self.todos).clone()
    }

    fn last_seen(&self, path: &str) -> Option<SeenFile> {
        lock(&self.file_tracker).last_seen(path)
    }

    fn claim_instructions(&self, path: &str) -> bool {
        lock(&self.file_tracker).claim_instructions(path)
    }

    fn mark_seen(&self, path: &str, bytes: &Arc<[u8]>) {
        let seen_file = lock(&self.file_tracker).cache_file(path, bytes);
        lock(&self.shown_files).push(seen_file);
    }

    async fn run_subagent(&self, request: SubagentRequest) -> Result<SubagentReport, CallFailure> {
        let agent = self.settings.agent(&request.agent).filter(|agent| agent.role.is_subagent());
        let Some(agent) = agent.cloned() else {
            let known = self.settings.subagent_summaries().into_iter().map(|summary| summary.name);
            let known = known.collect::<Vec<_>>().join(", ");
            let text = format!("Unknown agent `{}`. Available: {known}.", request.agent);
            return Err(CallFailure::new(text));
        };
        if self.lineage.ancestors.len() >= MAX_SUBAGENT_DEPTH {
            let text = format!(
                "Subagents can be nested at most {MAX_SUBAGENT_DEPTH} levels \
                                deep. Do this task yourself."
            );
            return Err(CallFailure::new(text));
        }
        let Some(slot) = self.lineage.budget.acquire_subagent_slot() else {
            let text = format!(
                "{MAX_CONCURRENT_SUBAGENTS} subagents are already running. Try again when one \
                 has finished."
            );
            return Err(CallFailure::new(text));
        };
        if let Some(session) = request.session {
            let mut lineage = self.lineage.ancestors.to_vec();
            lineage.push(self.session);
            subagents::check_resumable(&*self.log, session, (&request.agent, &lineage)).await?;
        }
        let session = request.session.unwrap_or(SessionId(new_stamp().id));
        let agent_name = request.agent.clone();
        let (reply, report) = oneshot::channel();
        // The guard cancels the subagent when `run_subagent` is dropped. A background subagent
        // releases its caller at once.
        let cancel = CancellationToken::new();
        let guard = cancel.clone().drop_guard();
        let pending = PendingSubagent { agent, request, reply, cancel, slot };
        lock(&self.pending_subagents).insert(self.call, pending);
        let end = self.log.resume_position(session, LogPosition::unchecked(LogSeq::MAX)).await;
        let after = end.map_err(|error| CallFailure::new(error.to_string()))?.seq;
        let subagent = SubagentStart { call: self.call, session, agent: agent_name, after };
        let input = SessionInput::SubagentRequested { turn: self.turn, subagent };
        self.inputs.send(input).await.map_err(|_| call_canceled())?;
        let report = report.await.map_err(|_| call_canceled())?;
        guard.disarm();
        report
    }
}
