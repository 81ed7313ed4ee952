//! The task that runs a subagent: a session with its own driver, as a task of its parent's driver.
//! The parent's watchers see its events; when the parent ends, the subagent ends too.

use super::op_ledger::QueuedOp;
use super::session_handle::new_queued_op;
use super::{DriverDependencies, build_driver};
use crate::agent_definitions::{AgentDefinition, SessionOrigin, restrict};
use crate::lineage::Lineage;
use crate::model_handle::ModelHandle;
use crate::session::{Session, SessionInput};
use crate::session_watcher::SessionWatcher;
use crate::settings::EngineSettings;
use crate::subagents::{ParentChannel, PendingSubagent};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use windlass_protocol::{
    AllowedCalls, Event, Fact, LiveEvent, LiveEventRecord, MessagePart, MessageRole,
    ModelStreamKind, ParentCall, PermissionMode, PromptDelivery, PromptSettings, SessionId,
    SessionOp, Transcript, TurnEndReason, display_text::truncate_chars,
};
use windlass_storage::{Log, read_all};
use windlass_toolkit::{CallFailure, SubagentReport, SubagentRequest, ToolRuntime};

/// Time that an interrupted subagent gets to stop, before the second `SessionOp::Interrupt` and again
/// after it.
const INTERRUPT_GRACE: Duration = Duration::from_millis(300);

/// Maximum length of a background subagent's answer in the `completion_notice`.
const MAX_REPORT_CHARS: usize = 8_000;

/// Maximum length of a call in a `progress_line`.
const MAX_PROGRESS_CHARS: usize = 80;

/// A task that runs a subagent session.
pub(super) struct SubagentTask {
    pub(super) session: SessionId,
    pub(super) parent: ParentCall,
    /// The same call started this `session` before a crash.
    pub(super) resumed: bool,
    /// Calls that the parent's turn allows.
    pub(super) allowed_calls: Vec<AllowedCalls>,
    pub(super) pending: PendingSubagent,
    pub(super) log: Arc<dyn Log>,
    /// The parent's runtime; `restrict` derives the subagent's own.
    pub(super) runtime: Arc<ToolRuntime>,
    pub(super) settings: Arc<EngineSettings>,
    pub(super) lineage: Lineage,
    pub(super) events: broadcast::Sender<Arc<Event>>,
    pub(super) inputs: mpsc::Sender<SessionInput>,
    pub(super) parent_channel: ParentChannel,
    /// Canceled when the parent closes.
    pub(super) stop: CancellationToken,
}

impl SubagentTask {
    /// Runs the agent until it finishes or has to stop, and reports the result to the call or, in
    /// the background, to the parent.
    pub(super) async fn run(mut self) -> SessionId {
        let (session, background) = (self.session, self.pending.request.background);
        let result = self.run_session().await;
        let SubagentTask { pending, inputs, stop, .. } = self;
        let PendingSubagent { reply, request, slot, .. } = pending;
        drop(slot);
        if background && !stop.is_cancelled() {
            let text = completion_notice(session, &request, &result);
            let _ = inputs.send(SessionInput::note(text)).await;
        }
        // The caller may have been canceled.
        let _ = reply.send(result);
        session
    }

    async fn run_session(&mut self) -> Result<SubagentReport, CallFailure> {
        let failed = |error: windlass_storage::StorageError| CallFailure::new(error.to_string());
        let claim = self.log.claim(self.session).await.map_err(failed)?;
        let records = read_all(&*self.log, self.session, 0).await.map_err(failed)?;
        let agent = Arc::clone(&self.pending.agent);
        let limits = self.lineage.budget.remaining();
        let excluded_tools = &self.settings.subagent_excluded_tools;
        let runtime = restrict(&self.runtime, &agent, SessionOrigin::Call, excluded_tools);
        let mut settings = self.settings.for_agent(&agent, limits);
        settings.system_prompt = settings.system_prompt.for_subagent(runtime.policy.mode());
        // The answer schema applies only to the session that answers the user.
        settings.model = settings.model.map(ModelHandle::without_answer_schema);
        let fallbacks = std::mem::take(&mut settings.fallback_models).into_iter();
        settings.fallback_models =
            fallbacks.map(|(model, name)| (model.without_answer_schema(), name)).collect();
        let settings = Arc::new(settings);
        let mut transcript = Transcript::from_log(&records);
        let (state, is_prompted) = match records.is_empty() {
            true => (
                Session::new(self.opening_fact(&agent), settings.session_config(&self.runtime)),
                false,
            ),
            false => {
                let is_prompted =
                    self.resumed && has_prompt(&transcript, &self.pending.request.prompt);
                (Session::replay(&records, settings.session_config(&self.runtime)), is_prompted)
            }
        };
        drop(records);
        if is_prompted && !state.is_busy() && transcript.queued_prompts.is_empty() {
            return Ok(self.build_report(&transcript));
        }
        let mut ceiling = ModeCeiling::new(runtime.policy.mode(), transcript.mode);
        let (lineage, stop) =
            (self.lineage.for_subagent_of(self.parent.session), self.stop.child_token());
        let log = Arc::clone(&self.log);
        let base = DriverDependencies { log, runtime, settings, lineage, agent_base: None };
        let (channels, mut watcher, driver) =
            build_driver(base, claim, state, (stop.clone(), CancellationToken::new()));
        let allowed_calls = std::mem::take(&mut self.allowed_calls);
        let prompt = SessionOp::Prompt {
            text: self.pending.request.prompt.clone(),
            attachments: Vec::new(),
            delivery: PromptDelivery::default(),
            settings: PromptSettings { allowed_calls, ..PromptSettings::default() },
        };
        if !is_prompted {
            // The channel is still empty, so `try_send` succeeds.
            let _ = channels.ops.try_send(new_queued_op(prompt));
        }
        if self.pending.request.background {
            self.release_caller();
        }
        tokio::pin!(driver);
        let observed = (&mut transcript, &mut ceiling);
        let result = tokio::select! {
            biased;
            result = &mut driver => Some(result),
            () = self.watch_session(&mut watcher, &channels.ops, observed) => None,
        };
        let result = match result {
            Some(result) => result,
            None => {
                stop.cancel();
                driver.await
            }
        };
        match result {
            Ok(()) => Ok(self.build_report(&transcript)),
            Err(fault) => Err(CallFailure::new(format!("The subagent's session failed: {fault}."))),
        }
    }

    fn opening_fact(&self, agent: &AgentDefinition) -> Fact {
        Fact::SessionOpened {
            workspace: self.runtime.workspace.root().display().to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            agent: agent.name.clone(),
            parent: Some(self.parent),
        }
    }

    /// Lets the call that started a background subagent return.
    fn release_caller(&mut self) {
        let (reply, _) = oneshot::channel();
        let caller = std::mem::replace(&mut self.pending.reply, reply);
        let report = SubagentReport { session: self.session, text: String::new(), end: None };
        let _ = caller.send(Ok(report));
    }

    fn build_report(&self, transcript: &Transcript) -> SubagentReport {
        let last =
            transcript.messages.iter().rev().find(|message| message.role == MessageRole::Assistant);
        let text = |part: &MessagePart| match part {
            MessagePart::Text { text, .. } => Some(text.clone()),
            MessagePart::Reasoning { .. } | MessagePart::File(_) | MessagePart::Call(_) => None,
        };
        let text = last.map(|message| message.parts.iter().filter_map(text).collect::<Vec<_>>());
        let end = transcript.last_turn_end.clone().or(Some(TurnEndReason::Interrupted));
        SubagentReport { session: self.session, text: text.unwrap_or_default().join("\n"), end }
    }

    /// Watches the subagent until it has nothing left to do. Forwards its events to the parent's
    /// watchers, and the parent's answers, mode changes and revocations to it.
    async fn watch_session(
        &mut self,
        watcher: &mut SessionWatcher,
        ops: &mpsc::Sender<QueuedOp>,
        (transcript, ceiling): (&mut Transcript, &mut ModeCeiling),
    ) {
        let cancel = self.pending.cancel.clone();
        let mut interrupts_sent = 0;
        let mut grace = None;
        loop {
            tokio::select! {
                biased;
                () = cancel.cancelled(), if interrupts_sent == 0 => {
                    interrupts_sent = 1;
                    grace = Some(Box::pin(tokio::time::sleep(INTERRUPT_GRACE)));
                    let _ = ops.try_send(new_queued_op(SessionOp::interrupt()));
                }
                () = async {
                    match grace.as_mut() {
                        Some(grace) => grace.await,
                        None => std::future::pending().await,
                    }
                } => {
                    if interrupts_sent > 1 {
                        return;
                    }
                    interrupts_sent = 2;
                    grace = Some(Box::pin(tokio::time::sleep(INTERRUPT_GRACE)));
                    let _ = ops.try_send(new_queued_op(SessionOp::interrupt()));
                }
                Ok(()) = self.parent_channel.parent_mode.changed() => {
                    let parent_mode = *self.parent_channel.parent_mode.borrow_and_update();
                    if let Some(mode) = ceiling.follow_parent(parent_mode) {
                        // Unlike an answer, a mode change must not be lost. Waiting is safe: the
                        // subagent keeps receiving.
                        let _ = ops.send(new_queued_op(SessionOp::SetMode { mode })).await;
                    }
                }
                Some(op) = self.parent_channel.ops.recv() => {
                    let _ = ops.try_send(op);
                }
                // After the answers, so that an approval given before is revoked, too. Like a mode
                // change, it must not be lost.
                Ok(()) = self.parent_channel.revocations.changed() => {
                    let _ = ops.send(new_queued_op(SessionOp::RevokeApprovals)).await;
                }
                event = watcher.next() => {
                    let Ok(Some(event)) = event else { return };
                    if self.forward_event(&event, transcript) {
                        return;
                    }
                }
            }
        }
    }

    /// Forwards an event to the watchers of the parent. Returns true if the subagent has nothing
    /// left to do.
    fn forward_event(&self, event: &Arc<Event>, transcript: &mut Transcript) -> bool {
        let mut done = false;
        match &**event {
            Event::Live(live_record) => match &live_record.event {
                LiveEvent::ModelDelta {
                    stream: ModelStreamKind::Text | ModelStreamKind::Reasoning,
                    ..
                }
                | LiveEvent::PartialCall { .. }
                | LiveEvent::PartialStep { .. } => return false,
                LiveEvent::CallProgress { .. }
                | LiveEvent::CommandOutput { .. }
                | LiveEvent::HostAccess { .. }
                | LiveEvent::JobUpdate { .. }
                | LiveEvent::HookRan { .. } => {}
            },
            Event::Fact(record) if record.session == self.session => {
                transcript.push(record.seq, &record.fact);
                if let Some(line) = progress_line(&record.fact) {
                    let text = format!("{}: {line}", self.pending.agent.name);
                    let event = LiveEvent::CallProgress { call: self.parent.call, text };
                    let live_record =
                        LiveEventRecord { session: self.parent.session, at: record.at, event };
                    let _ = self.events.send(Arc::new(Event::Live(live_record)));
                }
                let ended = matches!(record.fact, Fact::TurnEnded { .. });
                done = ended && transcript.queued_prompts.is_empty();
            }
            Event::Fact(_) => {}
        }
        let _ = self.events.send(Arc::clone(event));
        done
    }
}

/// The most permissive `PermissionMode` of a subagent: that of its parent, but never more than its initial
/// mode.
struct ModeCeiling {
    max_mode: PermissionMode,
    current_mode: PermissionMode,
}

impl ModeCeiling {
    /// Creates a ceiling from the initial mode and, for a resumed session, the mode it was left in.
    fn new(initial: PermissionMode, last: Option<PermissionMode>) -> ModeCeiling {
        let mode = last.map_or(initial, |last| last.min(initial));
        ModeCeiling { max_mode: mode, current_mode: mode }
    }

    /// Returns the mode to switch to when the parent changes to `parent_mode`, if it differs from
    /// the current one.
    fn follow_parent(&mut self, parent_mode: PermissionMode) -> Option<PermissionMode> {
        let mode = self.max_mode.min(parent_mode);
        (mode != std::mem::replace(&mut self.current_mode, mode)).then_some(mode)
    }
}

/// Describes in one line the current activity of a subagent.
fn progress_line(fact: &Fact) -> Option<String> {
    match fact {
        Fact::StepStarted { .. } => Some("waiting for the model".to_owned()),
        Fact::PermissionAsked { .. } | Fact::QuestionAsked { .. } => {
            Some("waiting for an answer".to_owned())
        }
        Fact::ToolCalled { description, .. } => {
            let activity = description.progress_text().replace(char::is_control, " ");
            Some(truncate_chars(&activity, MAX_PROGRESS_CHARS))
        }
        _ => None,
    }
}

/// Returns true if the session was already given this `prompt`, so that a resumed call does not
/// repeat it.
fn has_prompt(transcript: &Transcript, prompt: &str) -> bool {
    let mut messages =
        transcript.messages.iter().filter(|message| message.role == MessageRole::User);
    let is_prompt =
        |part: &MessagePart| matches!(part, MessagePart::Text { text, .. } if text == prompt);
    transcript.queued_prompts.iter().any(|queued| queued.text == prompt)
        || messages.any(|message| message.parts.iter().any(is_prompt))
}

/// Builds the notice to the parent when a background subagent has ended.
fn completion_notice(
    session: SessionId,
    request: &SubagentRequest,
    result: &Result<SubagentReport, CallFailure>,
) -> String {
    let SubagentRequest { agent, description, .. } = request;
    let (end, text) = match result {
        Ok(SubagentReport { text, end: Some(TurnEndReason::Completed), .. }) => {
            ("has finished", text.as_str())
        }
        Ok(SubagentReport { text, .. }) => ("stopped before it finished", text.as_str()),
        Err(failure) => ("failed", failure.text.as_str()),
    };
    let text = truncate_chars(text, MAX_REPORT_CHARS);
    format!("The subagent {agent} ({description}; session {session}) {end}. Its report:\n{text}")
}
