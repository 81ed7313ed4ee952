//! The `Engine`: opens sessions and answers each `SessionQuery` about them.

use crate::agent_definitions::{self, SessionOrigin};
use crate::attendance::UnattendedPolicy;
use crate::clock_and_ids::new_stamp;
use crate::driver::session_handle::SessionHandle;
use crate::driver::{self, AgentBase, DriverDependencies};
use crate::faults::{config_fault, storage_fault};
use crate::file_tracker;
use crate::lineage::Lineage;
use crate::model_handle::ModelHandle;
use crate::session::{Session, SessionConfig};
use crate::session_watcher::SessionWatcher;
use crate::settings::{BeforeRelease, EngineSettings, ModelResolver};
use crate::turn_budget::{SharedQuota, TurnBudget, load_turn_spend};
use async_trait::async_trait;
use std::sync::Arc;
use windlass_protocol::display_text::workspace_name;
use windlass_protocol::file_history::UNDO_TOOL;
use windlass_protocol::{
    BlobRef, CallAuthor, CallId, CallOutcome, DiffDirection, EventCursor, Fact, FactRecord, Fault,
    FileHistory, HookPoint, JobRow, LogPosition, LogSeq, ModelChoice, ModelToolDefinition,
    PermissionAnswer, QueryReply, SessionId, SessionQuery, SessionSummary, Transcript,
    UndoArguments, UndoScope,
};
use windlass_storage::{
    Log, MAX_PAGE_FACTS, PageLimit, SessionClaim, SessionFilter, StorageError, read_all,
};
use windlass_toolkit::hook::run_hooks;
use windlass_toolkit::{
    CallFailure, CallIntent, CombinedHookResult, HookContext, HookPayload, PermissionReply,
    ToolCall, ToolCaller, ToolRuntime,
};

/// Runs the sessions of one workspace: its log, its `ToolRuntime` and the settings.
pub struct Engine {
    pub(crate) log: Arc<dyn Log>,
    pub(crate) runtime: Arc<ToolRuntime>,
    pub(crate) settings: Arc<EngineSettings>,
}

/// The treatment of a turn that was under way when a session is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnfinishedTurn {
    Resume,
    /// It is interrupted, unless it waits for an answer of the user.
    Pause,
}

/// Returns the unfinished turn of a log, unless it waits for an answer of the user.
fn turn_without_question(log: &[FactRecord]) -> Option<u32> {
    let mut turn = None;
    let mut open_questions = std::collections::BTreeSet::new();
    for record in log {
        if let Fact::TurnStarted { turn: started, .. } = &record.fact {
            turn = Some(*started);
        }
        if let Fact::TurnEnded { .. } | Fact::TurnInterrupted { .. } = &record.fact {
            turn = None;
        }
        if let Fact::PermissionAsked { call, .. } | Fact::QuestionAsked { call, .. } = &record.fact
        {
            open_questions.insert(*call);
        }
        if let Fact::PermissionAnswered { call, .. }
        | Fact::QuestionAnswered { call, .. }
        | Fact::CallSettled { call, .. } = &record.fact
        {
            open_questions.remove(call);
        }
    }
    turn.filter(|_| open_questions.is_empty())
}

impl Engine {
    /// Creates an engine from a log, the tools of a workspace, and settings.
    pub fn new(log: Arc<dyn Log>, runtime: Arc<ToolRuntime>, settings: EngineSettings) -> Engine {
        Engine { log, runtime, settings: Arc::new(settings) }
    }

    /// Returns the same engine with other models for the sessions that it opens from now on.
    #[must_use]
    pub fn with_models(&self, model: ModelHandle, name: &str, resolver: ModelResolver) -> Engine {
        let (log, runtime) = (Arc::clone(&self.log), Arc::clone(&self.runtime));
        let mut settings = self.settings.with_model(model, name.into());
        settings.model_resolver = resolver;
        Engine { log, runtime, settings: Arc::new(settings) }
    }

    /// Returns true if sessions that choose no model have one.
    pub fn has_model(&self) -> bool {
        self.settings.model.is_some()
    }

    /// Watches a session that another process may run: the facts after `cursor`, then those that
    /// appear in the log. It does not open the session.
    pub fn watch_log(&self, session: SessionId, cursor: EventCursor) -> SessionWatcher {
        SessionWatcher::of_log(Arc::clone(&self.log), session, cursor)
    }

    /// Returns the same engine with another policy for sessions that no user watches.
    #[must_use]
    pub fn with_unattended(&self, unattended: UnattendedPolicy) -> Engine {
        self.with_settings(|settings| settings.unattended = unattended)
    }

    /// Returns the same engine with limits that its sessions share with others.
    #[must_use]
    pub fn with_shared_quota(&self, quota: Arc<dyn SharedQuota>) -> Engine {
        self.with_settings(|settings| settings.shared_quota = Some(quota))
    }

    /// Returns the same engine with a callback for sessions that end.
    #[must_use]
    pub fn with_before_release(&self, before_release: BeforeRelease) -> Engine {
        self.with_settings(|settings| settings.before_release = Some(before_release))
    }

    fn with_settings(&self, change: impl FnOnce(&mut EngineSettings)) -> Engine {
        let mut settings = (*self.settings).clone();
        change(&mut settings);
        let (log, runtime) = (Arc::clone(&self.log), Arc::clone(&self.runtime));
        Engine { log, runtime, settings: Arc::new(settings) }
    }

    /// Returns the last position of the log of a session; the start if it has no facts.
    pub async fn last_position(&self, session: SessionId) -> Result<LogPosition, Fault> {
        let end = LogPosition::unchecked(LogSeq::MAX);
        let last = self.log.resume_position(session, end).await.map_err(storage_fault)?;
        // A damaged log does not say where it ends, so the session is read from the start.
        Ok(if last == end { LogPosition::START } else { last })
    }

    pub(crate) fn workspace_path(&self) -> String {
        workspace_name(self.runtime.workspace.root())
    }

    /// Starts a session with the default agent. The watcher sees it from its first fact.
    pub async fn start_default_session(&self) -> Result<(SessionHandle, SessionWatcher), Fault> {
        self.start_session(None, None).await
    }

    /// Starts a session with the named agent, or with the default agent if `agent` is `None`, and
    /// with the model that the user chose for it, if any.
    pub async fn start_session(
        &self,
        agent: Option<&str>,
        model: Option<ModelChoice>,
    ) -> Result<(SessionHandle, SessionWatcher), Fault> {
        let agent = agent.unwrap_or(&self.settings.default_agent);
        if let Some(ModelChoice { model, effort, .. }) = &model {
            (self.settings.model_resolver)(model, effort.as_deref())?;
        }
        let base = self.driver_config(agent, SessionOrigin::User, model.as_ref())?;
        let opening = Fact::SessionOpened {
            workspace: self.workspace_path(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            agent: agent.to_owned(),
            parent: None,
        };
        let session = SessionId(new_stamp().id);
        let claim = self.log.claim(session).await.map_err(storage_fault)?;
        let session = Session::new(opening, base.settings.session_config(&base.runtime));
        let session = session.with_model_choice(model);
        Ok(driver::start_driver(base, claim, session))
    }

    /// Opens an existing session and resumes a turn that was under way.
    pub async fn open(&self, session: SessionId) -> Result<(SessionHandle, SessionWatcher), Fault> {
        self.open_session(session, UnfinishedTurn::Resume).await
    }

    /// Opens an existing session for a user who looks at it first. A turn that was under way is
    /// interrupted, so that no request is sent, unless it waits for an answer of the user.
    pub async fn open_paused(
        &self,
        session: SessionId,
    ) -> Result<(SessionHandle, SessionWatcher), Fault> {
        self.open_session(session, UnfinishedTurn::Pause).await
    }

    async fn open_session(
        &self,
        session: SessionId,
        unfinished_turn: UnfinishedTurn,
    ) -> Result<(SessionHandle, SessionWatcher), Fault> {
        let claim = self.log.claim(session).await.map_err(storage_fault)?;
        self.open_claimed(claim, unfinished_turn, None).await
    }

    /// Opens a session that this process has claimed already. A `note` is for the model.
    pub async fn open_claimed(
        &self,
        mut claim: SessionClaim,
        unfinished_turn: UnfinishedTurn,
        note: Option<String>,
    ) -> Result<(SessionHandle, SessionWatcher), Fault> {
        let session = claim.session;
        if claim.lost_facts > 0 {
            let reason = "the last writes to the log did not survive".to_owned();
            let lost = Fact::FactsLost { count: claim.lost_facts, reason };
            let appended = self.log.append(&claim, claim.head, new_stamp().at, &[lost]).await;
            claim.head = appended.map_err(storage_fault)?;
        }
        if let Some(note) = note {
            let note = Fact::context_note(note);
            let appended = self.log.append(&claim, claim.head, new_stamp().at, &[note]).await;
            claim.head = appended.map_err(storage_fault)?;
        }
        let page = self.log.read(session, 0).await.map_err(storage_fault)?;
        if page.is_empty() {
            return Err(storage_fault(StorageError::SessionNotFound { session }));
        }
        self.check_workspace(session, &Transcript::from_log(page.get(..1).unwrap_or_default()))?;
        let (base, mut state) = self.load_session(session, page).await?;
        if state.is_busy() {
            let log = read_all(&*self.log, session, 0).await.map_err(storage_fault)?;
            if let Some((earlier, spent)) =
                load_turn_spend(&*self.log, &log).await.map_err(storage_fault)?
            {
                base.lineage.budget.resume(state.turn_limits(), earlier, spent);
            }
            let paused_turn = match unfinished_turn {
                UnfinishedTurn::Resume => None,
                UnfinishedTurn::Pause => turn_without_question(&log),
            };
            if let Some(turn) = paused_turn {
                let (head, fact) = (claim.head, Fact::TurnInterrupted { turn });
                let appended = self.log.append(&claim, head, new_stamp().at, &[fact]).await;
                claim.head = appended.map_err(storage_fault)?;
                state.apply_records(&self.log.read(session, head).await.map_err(storage_fault)?);
            }
        }
        Ok(driver::start_driver(base, claim, state))
    }

    /// Builds the `DriverDependencies` of a session that runs this agent.
    pub(crate) fn driver_config(
        &self,
        name: &str,
        started_by: SessionOrigin,
        model: Option<&ModelChoice>,
    ) -> Result<DriverDependencies, Fault> {
        let agent = self.settings.find_agent(name)?;
        let limits = self.settings.limits;
        let base_settings = self.settings.with_model_choice(model);
        let runtime = agent_definitions::restrict(
            &self.runtime,
            &agent,
            started_by,
            &self.settings.subagent_excluded_tools,
        );
        let mut settings = base_settings.for_agent(&agent, limits);
        if model.is_some_and(|choice| !choice.precedes_agent) {
            settings = settings.with_model_choice(model);
        }
        settings.system_prompt = settings.system_prompt.with_mode(runtime.policy.mode());
        Ok(DriverDependencies {
            log: Arc::clone(&self.log),
            runtime,
            settings: Arc::new(settings),
            lineage: Lineage::root(TurnBudget::new(limits, self.settings.shared_quota.clone())),
            agent_base: (started_by == SessionOrigin::User).then(|| AgentBase {
                runtime: Arc::clone(&self.runtime),
                settings: Arc::new(base_settings),
            }),
        })
    }

    /// Rebuilds a session from its log, with the `DriverDependencies` of the agent that it runs now.
    pub(crate) async fn load_session(
        &self,
        session: SessionId,
        page: Vec<FactRecord>,
    ) -> Result<(DriverDependencies, Session), Fault> {
        let opened = Transcript::from_log(page.get(..1).unwrap_or_default());
        let started_by = opened.parent.map_or(SessionOrigin::User, |_| SessionOrigin::Call);
        let base = self.driver_config(&opened.agent, started_by, None)?;
        let config = base.settings.session_config(&base.runtime);
        let mut state = self.replay_session(session, page, config).await.map_err(storage_fault)?;
        let transcript = state.transcript();
        if transcript.agent == opened.agent && transcript.model_choice.is_none() {
            return Ok((base, state));
        }
        let model = transcript.model_choice.as_ref();
        let base = self.driver_config(&transcript.agent, started_by, model)?;
        state.set_config(base.settings.session_config(&base.runtime));
        Ok((base, state))
    }

    /// Rebuilds a session from its log. It fetches the next page while it applies the current one,
    /// so at most two pages are in memory.
    async fn replay_session(
        &self,
        session: SessionId,
        mut page: Vec<FactRecord>,
        config: SessionConfig,
    ) -> Result<Session, StorageError> {
        let mut state = Session::replay(&[], config);
        while let Some(last) = page.last().map(|record| record.seq) {
            let next = self.log.read(session, last);
            let (next, ()) = tokio::join!(next, async { state.apply_records(&page) });
            page = next?;
        }
        Ok(state)
    }

    /// Fails if the session belongs to another folder, since its paths have no meaning here.
    fn check_workspace(&self, session: SessionId, transcript: &Transcript) -> Result<(), Fault> {
        let (workspace, current) = (&transcript.workspace, self.workspace_path());
        if *workspace == current {
            return Ok(());
        }
        let message = format!("session {session} belongs to {workspace}, not to {current}");
        Err(Fault::Config { message })
    }

    /// Answers a `SessionQuery`. Opens and changes nothing.
    pub async fn query(&self, query: SessionQuery) -> Result<QueryReply, Fault> {
        Ok(match query {
            SessionQuery::Sessions { workspace } => {
                QueryReply::Sessions { sessions: self.list_sessions(workspace.as_deref()).await? }
            }
            SessionQuery::SearchSessions { words, workspace } => {
                let sessions = self.list_sessions(workspace.as_deref()).await?;
                QueryReply::SearchHits { hits: self.search_sessions(&words, sessions).await? }
            }
            SessionQuery::Events { session, after, limit } => {
                let limit = limit.map_or(MAX_PAGE_FACTS, |limit| limit as usize);
                let page = self.log.read_page(session, after, PageLimit::facts(limit)).await;
                let events = page.map_err(storage_fault)?;
                if events.is_empty() && after == 0 && limit > 0 {
                    return Err(storage_fault(StorageError::SessionNotFound { session }));
                }
                QueryReply::Events { events }
            }
            SessionQuery::Transcript { session } => {
                let log = read_all(&*self.log, session, 0).await.map_err(storage_fault)?;
                if log.is_empty() {
                    return Err(storage_fault(StorageError::SessionNotFound { session }));
                }
                QueryReply::Transcript { transcript: Box::new(Transcript::from_log(&log)) }
            }
            SessionQuery::Changes { session, scope, direction } => {
                let log = read_all(&*self.log, session, 0).await.map_err(storage_fault)?;
                if log.is_empty() {
                    return Err(storage_fault(StorageError::SessionNotFound { session }));
                }
                self.session_changes(session, &log, scope, direction).await?
            }
            SessionQuery::Prompts { session, limit } => {
                QueryReply::Prompts { prompts: self.list_prompts(session, limit).await? }
            }
            SessionQuery::FindText { session, text } => self.find_text(session, &text).await?,
            SessionQuery::Context { session } => self.context_usage(session).await?,
            SessionQuery::Jobs { session } => {
                let (jobs, now) = (self.runtime.workspace.background_jobs(session), new_stamp().at);
                let row = |job: &Arc<windlass_toolkit::Job>| JobRow {
                    output_tail: job.output_tail(),
                    ..job.row(now)
                };
                QueryReply::Jobs { jobs: jobs.iter().map(row).collect() }
            }
            SessionQuery::Tools => {
                let snapshot = self.runtime.snapshot(&self.settings.step_context()).await;
                QueryReply::Tools { tools: snapshot.listed_summaries() }
            }
        })
    }

    /// Returns the tools that other programs may call (`Tool::is_served`).
    pub async fn served_tools(&self) -> Vec<ModelToolDefinition> {
        self.runtime.snapshot(&self.settings.step_context()).await.served_summaries()
    }

    /// Lists all sessions, or those of one `workspace`, newest first.
    pub(crate) async fn list_sessions(
        &self,
        workspace: Option<&str>,
    ) -> Result<Vec<SessionSummary>, Fault> {
        let is_own = workspace.is_some_and(|workspace| workspace == self.workspace_path());
        let checkouts = self.settings.checkouts_folder.clone().filter(|_| is_own);
        let workspace = workspace.map(str::to_owned);
        let filter = SessionFilter { workspace, checkouts, ..SessionFilter::default() };
        self.log.list(&filter).await.map_err(storage_fault)
    }

    /// Returns the diff of a session's changes, or of undoing them, as `DiffDirection` selects.
    async fn session_changes(
        &self,
        session: SessionId,
        log: &[FactRecord],
        scope: UndoScope,
        direction: DiffDirection,
    ) -> Result<QueryReply, Fault> {
        self.check_workspace(session, &Transcript::from_log(log))?;
        let mut files = FileHistory::default();
        for record in log {
            files.push(record.seq, &record.fact);
        }
        let facts = files.undoable_facts(scope);
        let Some(undo) = files.undo_arguments(&facts) else {
            return Ok(QueryReply::Changes { facts: Vec::new(), diff: String::new() });
        };
        let arguments = serde_json::to_string(&UndoArguments { direction, ..undo })
            .map_err(|error| Fault::Internal { message: error.to_string() })?;
        let (id, tool) = (CallId(new_stamp().id), UNDO_TOOL.to_owned());
        let snapshot = self.runtime.snapshot(&self.settings.step_context()).await;
        let (author, allowed_calls) = (CallAuthor::User, Vec::new());
        let call = ToolCall { session, id, author, tool, arguments, allowed_calls };
        let preview = self.runtime.preview(&snapshot, call, &ReadOnlyToolCaller(&*self.log)).await;
        let to_fault = |outcome: CallOutcome| Fault::Config { message: outcome.text().to_owned() };
        let diff = preview.map_err(to_fault)?.unwrap_or_default();
        Ok(QueryReply::Changes { facts, diff })
    }

    /// Runs the hooks at `HookPoint::Command` on the prompt of a custom command, and returns the
    /// prompt as they left it. The session of the prompt may not exist yet, so nothing is recorded.
    pub async fn run_command_hooks(
        &self,
        command: &str,
        arguments: &str,
        text: String,
    ) -> Result<String, Fault> {
        let hooks = &self.runtime.hooks;
        if !hooks.iter().any(|hook| hook.applies_to(HookPoint::Command, None)) {
            return Ok(text);
        }
        let folder = self.runtime.workspace.root().to_string_lossy().into_owned();
        let session = SessionId(new_stamp().id);
        let mode = self.runtime.policy.mode();
        let (agent, judge) = (None, None);
        let context = HookContext { session, call: None, folder: &folder, mode, agent, judge };
        let (command, arguments) = (command.to_owned(), arguments.to_owned());
        let payload = HookPayload::CommandPrompt { command, arguments, text: text.clone() };
        match run_hooks(hooks, &context, payload).await.1 {
            Ok(CombinedHookResult { payload: HookPayload::CommandPrompt { text, .. }, .. }) => {
                Ok(text)
            }
            Ok(_) => Ok(text),
            Err(denial) => Err(config_fault(denial.to_string())),
        }
    }

    /// Runs a read-only tool call for the user. Calls that require approval are denied, and nothing
    /// is recorded.
    pub async fn call_read_only(&self, tool: &str, arguments: String) -> CallOutcome {
        let (id, tool) = (CallId(new_stamp().id), tool.to_owned());
        let snapshot = self.runtime.snapshot(&self.settings.step_context()).await;
        let session = SessionId(id.0);
        let (author, allowed_calls) = (CallAuthor::User, Vec::new());
        let call = ToolCall { session, id, author, tool, arguments, allowed_calls };
        let cancel = tokio_util::sync::CancellationToken::new();
        self.runtime.execute(&snapshot, call, &ReadOnlyToolCaller(&*self.log), cancel).await
    }

    /// Reads the bytes of a stored `BlobRef`.
    pub async fn get_blob(&self, blob: &BlobRef) -> Result<Vec<u8>, Fault> {
        self.log.get_blob(blob).await.map_err(storage_fault)
    }

    /// Stores the bytes of a file to attach to an `SessionOp::Prompt`.
    pub async fn put_blob(&self, bytes: Vec<u8>) -> Result<BlobRef, Fault> {
        self.log.put_blob(bytes).await.map_err(storage_fault)
    }

    /// Deletes a session and its subagent sessions permanently.
    pub async fn delete(&self, session: SessionId) -> Result<(), Fault> {
        self.log.delete(session).await.map_err(storage_fault)
    }
}

/// A `ToolCaller` that permits reading and previewing only, and changes nothing.
struct ReadOnlyToolCaller<'a>(&'a dyn Log);

#[async_trait]
impl ToolCaller for ReadOnlyToolCaller<'_> {
    async fn request_permission(&self, intent: CallIntent) -> PermissionReply {
        if intent.read_only && intent.ask_reason.is_none() {
            return PermissionReply::Answer(PermissionAnswer::Once);
        }
        let ask_reason = intent.ask_reason;
        let reason =
            ask_reason.map(|reason| format!("approval cannot be requested here, and {reason}"));
        PermissionReply::Answer(PermissionAnswer::No { reason })
    }

    async fn ask_permission(&self, _preview: Option<String>) -> PermissionAnswer {
        PermissionAnswer::No { reason: None }
    }

    async fn put_blob(&self, bytes: Vec<u8>) -> Result<BlobRef, CallFailure> {
        self.0.put_blob(bytes).await.map_err(|error| CallFailure::new(error.to_string()))
    }

    async fn file_version(&self, copy: &BlobRef) -> Result<Vec<u8>, CallFailure> {
        file_tracker::read_version(self.0, copy).await
    }
}
