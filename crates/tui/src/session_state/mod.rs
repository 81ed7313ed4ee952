//! The state of the session on the screen, folded from its events; the status line and the panels
//! show it.
//!
//! It applies every event as it arrives. When a session is resumed, its last page of records is
//! replayed, and everything older comes from the `Transcript`.

use crate::transcript::call_summary::describe_call;
use std::collections::BTreeMap;
use windlass_protocol::display_text::format_duration;
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse, HostStatus};
use windlass_protocol::transcript::QueuedPrompt;
use windlass_protocol::{
    CallDescription, CallId, ClientInfo, Cost, Event, Fact, FactRecord, Fault, FileChange,
    FileVersion, JobRow, LiveEvent, LogSeq, ModelStreamKind, PermissionMode, QueryReply, SessionId,
    StepPurpose, TodoItem, TokenUsage, Transcript, TurnEndReason, todo_list,
};

/// The number of `jobs` that are kept; running jobs are kept in any case.
const MAX_JOBS: usize = 64;
/// Tolerance for comparing the start of a job, which is computed from its reported age.
const JOB_START_TOLERANCE_MS: u64 = 100;

/// The state of the session on the screen.
#[derive(Clone, Debug, Default)]
pub struct SessionState {
    /// The host's status for this folder.
    pub host_status: HostStatus,
    /// The session, once there is one.
    pub session: Option<SessionId>,
    /// The position of the last fact.
    pub head: LogSeq,
    pub title: String,
    pub agent: String,
    pub mode: PermissionMode,
    /// The model of the last request, or of the next one, as `provider/model`.
    pub model: String,
    /// The number of the current turn and its start time.
    pub turn: Option<(u32, u64)>,
    /// True while an interrupt is requested and the turn has not ended.
    pub stop_requested: bool,
    pub last_turn_end: Option<TurnEndReason>,
    /// The token usage of all steps seen so far, summed from `StepEnded`.
    pub usage: TokenUsage,
    pub cost: Cost,
    /// The tokens of the last request and its answer.
    pub context_tokens: u64,
    pub todos: Vec<TodoItem>,
    /// The changes to each file, for `changed_files`.
    pub(crate) file_changes: BTreeMap<String, (Option<FileVersion>, Option<FileVersion>)>,
    /// The prompts that wait for delivery, oldest first: submitted, but not yet in `TurnStarted` or
    /// `PromptSteered`.
    pub queued_prompts: Vec<QueuedPrompt>,
    /// The subagents by session, with the call that started each and its activity.
    pub subagents: BTreeMap<SessionId, SubagentProgress>,
    /// The known jobs by id, from `JobUpdate` events and job lists.
    pub jobs: BTreeMap<u64, JobRow>,
    /// The current activity in a few words, for the `PromptSeparatorLine`.
    pub activity: String,
    /// The time of the next attempt after a failed request.
    pub retry_at: Option<u64>,
    /// The calls of this turn, each with its summary and phase.
    pub(crate) active_calls: Vec<(CallId, CallDescription, CallPhase)>,
    /// All clients that watch the session, with this one.
    pub clients: Vec<ClientInfo>,
    /// True if another process runs the session, which can only be watched.
    pub is_read_only: bool,
    /// True while the connection to the server is lost.
    pub is_disconnected: bool,
    /// The facts that arrived before the history; `None` once the history was applied.
    pub(crate) early_records: Option<Vec<FactRecord>>,
}

/// The phase of a tool call that has not settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallPhase {
    Requested,
    /// Waits for the answer to its permission request or user question.
    AwaitingUser,
    Running,
}

/// The progress of a subagent, from the facts of its session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SubagentProgress {
    /// The call that started it.
    pub call: Option<CallId>,
    pub agent: String,
    /// The position of its last known fact.
    pub head: LogSeq,
    /// Its current activity in a few words.
    pub activity: String,
    pub call_count: u32,
    pub is_done: bool,
}

impl SessionState {
    /// Returns true while a turn is under way.
    pub fn is_busy(&self) -> bool {
        self.turn.is_some()
    }

    /// Returns true if the last turn failed or reached a limit, so that it can be tried again.
    pub fn can_retry(&self) -> bool {
        let has_failed = matches!(
            self.last_turn_end,
            Some(TurnEndReason::Failed { .. } | TurnEndReason::LimitReached { .. })
        );
        has_failed && !self.is_busy()
    }

    /// Returns true if `/retry` can continue the last turn: it failed or was interrupted.
    pub fn can_continue(&self) -> bool {
        let was_interrupted = self.last_turn_end == Some(TurnEndReason::Interrupted);
        self.can_retry() || (was_interrupted && !self.is_busy())
    }

    /// Returns the paths of the files that differ from their version before the first loaded
    /// change.
    pub fn changed_files(&self) -> impl Iterator<Item = &str> {
        let changed = self.file_changes.iter().filter(|(_, (before, after))| before != after);
        changed.map(|(path, _)| path.as_str())
    }

    pub(crate) fn note_changed_files(&mut self, changes: &[FileChange]) {
        for change in changes {
            let entry = self.file_changes.entry(change.path.clone());
            let versions = entry.or_insert_with(|| (change.before.clone(), None));
            versions.1.clone_from(&change.after);
        }
    }

    /// Returns the `NewSession` request with the selected agent.
    pub fn new_session_request(&self) -> FrontendRequest {
        FrontendRequest::new_session(Some(self.agent.clone()).filter(|agent| !agent.is_empty()))
    }

    /// Notes the clients of the session.
    pub fn set_clients(&mut self, session: SessionId, clients: Vec<ClientInfo>, is_live: bool) {
        if self.session == Some(session) {
            (self.clients, self.is_read_only) = (clients, !is_live);
        }
    }

    /// Returns the number of clients that watch the session besides this one.
    pub(crate) fn other_client_count(&self) -> usize {
        self.clients.len().saturating_sub(1)
    }

    /// Notes that the session has stopped.
    pub(crate) fn on_stopped(&mut self) {
        self.turn = None;
        self.jobs.clear();
        self.clients.clear();
        (self.is_read_only, self.is_disconnected) = (false, false);
    }

    /// Applies an `Event` of this session or of one of its subagents.
    pub fn on_event(&mut self, event: &Event, now: u64) {
        match event {
            Event::Fact(record) if Some(record.session) == self.session => {
                if let Some(early) = &mut self.early_records {
                    early.push(record.clone());
                }
                self.on_record(record, now);
            }
            Event::Live(live_record) if Some(live_record.session) == self.session => {
                self.on_live_event(&live_record.event);
            }
            Event::Fact(record) => self.on_subagent_record(record),
            Event::Live(_) => {}
        }
    }

    fn on_record(&mut self, record: &FactRecord, now: u64) {
        self.head = self.head.max(record.seq);
        self.apply_fact(&record.fact, now);
    }

    /// Applies the history of a session that was just opened: its last page of records or its
    /// `Transcript`.
    pub fn on_history_response(&mut self, response: &Result<HostResponse, Fault>, now: u64) {
        match response {
            Ok(HostResponse::Reply { reply: QueryReply::Events { events } }) => {
                self.replay_records(events, now)
            }
            Ok(HostResponse::Reply { reply: QueryReply::Transcript { transcript } }) => {
                self.apply_transcript(transcript);
            }
            Ok(_) | Err(_) => self.early_records = None,
        }
    }

    /// Rebuilds the state from the last page; the page is the whole log if it begins at the start.
    fn replay_records(&mut self, events: &[FactRecord], now: u64) {
        let early = self.early_records.take().unwrap_or_default();
        let last_seq = events.last().map_or(0, |record| record.seq);
        *self = SessionState {
            host_status: std::mem::take(&mut self.host_status),
            session: self.session,
            head: self.head,
            agent: std::mem::take(&mut self.agent),
            model: std::mem::take(&mut self.model),
            mode: self.mode,
            jobs: std::mem::take(&mut self.jobs),
            clients: std::mem::take(&mut self.clients),
            is_read_only: self.is_read_only,
            is_disconnected: self.is_disconnected,
            ..SessionState::default()
        };
        let end = events.last().map_or(0, |record| record.at.0);
        for record in events.iter().chain(early.iter().filter(|record| record.seq > last_seq)) {
            // The age of the record relative to the last one of the page.
            let age = end.saturating_sub(record.at.0);
            self.on_record(record, now.saturating_sub(age));
        }
    }

    /// Applies the `Transcript`, which also covers everything older than the last page.
    fn apply_transcript(&mut self, transcript: &Transcript) {
        self.title.clone_from(&transcript.title);
        self.mode = transcript.mode.unwrap_or(self.mode);
        self.todos = transcript.todos();
        (self.usage, self.cost) = (transcript.usage, transcript.cost);
        if !transcript.agent.is_empty() {
            self.agent.clone_from(&transcript.agent);
        }
        if let Some(choice) = &transcript.model_choice {
            self.model.clone_from(&choice.model);
        }
        self.queued_prompts.clone_from(&transcript.queued_prompts);
    }

    /// Applies the `QueryReply::Jobs` list of all jobs, since updates may have been missed.
    pub fn on_jobs_response(&mut self, response: &Result<HostResponse, Fault>) {
        if let Ok(HostResponse::Reply { reply: QueryReply::Jobs { jobs } }) = response {
            jobs.iter().for_each(|job| self.update_job(job));
        }
    }

    fn update_job(&mut self, job: &JobRow) {
        // The response may be older than updates received since, and a job that has ended never
        // runs again. A job with the same id and a later start is a different one: the session was
        // opened again.
        let ended = self.jobs.get(&job.id).filter(|previous| !previous.running);
        if ended.is_none_or(|previous| {
            !job.running || job.started_at.0 > previous.started_at.0 + JOB_START_TOLERANCE_MS
        }) {
            self.jobs.insert(job.id, job.clone());
        }
        let ended = self.jobs.values().find(|job| !job.running).map(|job| job.id);
        if let Some(ended) = ended.filter(|_| self.jobs.len() > MAX_JOBS) {
            self.jobs.remove(&ended);
        }
    }

    fn apply_fact(&mut self, fact: &Fact, now: u64) {
        match fact {
            Fact::SessionOpened { agent, .. } => self.agent.clone_from(agent),
            Fact::ModeChanged { mode } => self.mode = *mode,
            Fact::AgentChanged { agent } => self.agent.clone_from(agent),
            Fact::ModelChanged { model, effort } => {
                self.model.clone_from(model);
                if effort.is_some() {
                    self.host_status.effort.clone_from(effort);
                }
            }
            Fact::SessionRenamed { title } => self.title.clone_from(title),
            Fact::SideRequestEnded { cost, .. } => self.cost += cost.unwrap_or_default(),
            Fact::PromptSubmitted { prompt, text, attachments, delivery, .. } => {
                let (id, text, attachments) = (*prompt, text.clone(), attachments.clone());
                self.queued_prompts.push(QueuedPrompt {
                    id,
                    text,
                    attachments,
                    delivery: *delivery,
                });
            }
            Fact::TurnStarted { turn, prompt } => {
                self.turn = Some((*turn, now));
                self.last_turn_end = None;
                self.active_calls.clear();
                self.queued_prompts.retain(|queued| Some(queued.id) != *prompt);
                self.activity = "starting".into();
            }
            Fact::PromptSteered { prompt, .. } | Fact::PromptWithdrawn { prompt } => {
                self.queued_prompts.retain(|queued| queued.id != *prompt);
            }
            Fact::StepStarted { turn, model, purpose, .. } => {
                // The page with the `TurnStarted` fact may not be loaded.
                self.turn.get_or_insert((*turn, now));
                self.on_model_request(model, *purpose);
            }
            Fact::StepEnded { usage, cost, .. } => {
                self.usage += *usage;
                self.cost += cost.unwrap_or_default();
                if usage.input > 0 {
                    self.context_tokens = usage.input + usage.output;
                }
            }
            Fact::ToolCalled { call, tool, arguments, description, .. } => {
                let description = describe_call(description, tool, arguments).into_owned();
                self.active_calls.push((*call, description, CallPhase::Requested));
            }
            Fact::PermissionAsked { call, .. } | Fact::QuestionAsked { call, .. } => {
                self.set_call_phase(*call, Some(CallPhase::AwaitingUser));
            }
            Fact::PermissionAnswered { call, .. } => {
                self.set_call_phase(*call, Some(CallPhase::Requested))
            }
            Fact::CallStarted { call, .. } | Fact::QuestionAnswered { call, .. } => {
                self.set_call_phase(*call, Some(CallPhase::Running));
            }
            Fact::SubagentStarted { call, session, agent, .. } => {
                let child = SubagentProgress {
                    call: Some(*call),
                    agent: agent.clone(),
                    ..SubagentProgress::default()
                };
                self.subagents.insert(*session, child);
            }
            Fact::CallSettled { call, outcome, .. } => {
                self.set_call_phase(*call, None);
                if let Some(todos) = todo_list::todos_in_outcome(outcome) {
                    self.todos = todos.to_vec();
                }
                let started_by_call = |child: &&mut SubagentProgress| child.call == Some(*call);
                self.subagents
                    .values_mut()
                    .filter(started_by_call)
                    .for_each(|child| child.is_done = true);
            }
            Fact::FilesChanging { changes, .. } => self.note_changed_files(changes),
            Fact::TurnInterrupted { .. } => self.stop_requested = true,
            Fact::TurnEnded { end, .. } => {
                (self.turn, self.stop_requested, self.retry_at) = (None, false, None);
                self.last_turn_end = Some(end.clone());
                self.activity.clear();
                self.active_calls.clear();
            }
            Fact::StepRetrying { model: Some(model), .. } => {
                self.activity = format!("retrying with {model}")
            }
            Fact::StepRetrying { wait_ms, .. } => {
                self.retry_at = Some(now.saturating_add(*wait_ms));
                self.activity = format!("retrying in {}", format_duration(*wait_ms));
            }
            Fact::Rewound { .. } => {
                self.queued_prompts.clear();
                self.active_calls.clear();
            }
            // The size of the compacted context is known after the next request.
            Fact::ContextCompacted { .. } => self.context_tokens = 0,
            Fact::SystemPromptSet { .. }
            | Fact::SessionForked { .. }
            | Fact::OutputsPruned { .. }
            | Fact::ApprovalsRevoked
            | Fact::ModelText { .. }
            | Fact::ModelReasoning { .. }
            | Fact::FilesUnchanged { .. }
            | Fact::HookRan { .. }
            | Fact::ContextChanged { .. }
            | Fact::FactsLost { .. } => {}
        }
    }

    fn on_model_request(&mut self, model: &String, purpose: StepPurpose) {
        self.retry_at = None;
        self.model.clone_from(model);
        let name = model.rsplit('/').next().unwrap_or(model);
        self.activity = match purpose {
            StepPurpose::Answer => format!("waiting for {name}"),
            StepPurpose::Summary => "compacting".into(),
        };
    }

    /// Updates the phase of a call, or removes it if it has settled. For `activity`, a call that
    /// waits for the user takes precedence over a running one.
    fn set_call_phase(&mut self, call: CallId, phase: Option<CallPhase>) {
        match phase {
            None => self.active_calls.retain(|(id, ..)| *id != call),
            Some(phase) => {
                let matching = self.active_calls.iter_mut().filter(|(id, ..)| *id == call);
                matching.for_each(|(.., current)| *current = phase);
            }
        }
        let first =
            |expected: CallPhase| self.active_calls.iter().find(|(.., phase)| *phase == expected);
        self.activity = match (first(CallPhase::AwaitingUser), first(CallPhase::Running)) {
            (Some(_), _) => "waiting for your answer".into(),
            (None, Some((_, description, _))) => description.progress_text(),
            (None, None) => "working".into(),
        };
    }

    fn on_live_event(&mut self, event: &LiveEvent) {
        match event {
            LiveEvent::ModelDelta { stream, .. } => {
                self.activity = match stream {
                    ModelStreamKind::Text => "writing".into(),
                    ModelStreamKind::Reasoning => "thinking".into(),
                };
            }
            LiveEvent::PartialCall { tool, .. } => self.activity = format!("calling {tool}"),
            LiveEvent::JobUpdate { job } => self.update_job(job),
            LiveEvent::PartialStep { .. }
            | LiveEvent::CallProgress { .. }
            | LiveEvent::CommandOutput { .. }
            | LiveEvent::HostAccess { .. }
            | LiveEvent::HookRan { .. } => {}
        }
    }

    fn on_subagent_record(&mut self, record: &FactRecord) {
        let Some(child) = self.subagents.get_mut(&record.session) else { return };
        let fact = &record.fact;
        child.head = record.seq;
        if let Fact::ToolCalled { tool, arguments, description, .. } = fact {
            child.call_count += 1;
            child.activity = describe_call(description, tool, arguments).progress_text();
        }
        if let Fact::ModelText { .. } = fact {
            child.activity = "writing".into();
        }
        if let Fact::TurnStarted { .. } = fact {
            child.is_done = false;
        }
        if let Fact::TurnEnded { .. } = fact {
            child.is_done = true;
        }
    }
}

#[cfg(test)]
mod tests;
