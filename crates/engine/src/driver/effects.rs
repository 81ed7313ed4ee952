//! Execution of session effects: log appends, tool calls, timers, and answers to waiting calls.

use super::SessionDriver;
use super::request_hooks::{StepTools, load_step_tools};
use super::subagent_task::SubagentTask;
use crate::faults::storage_fault;
use crate::session::{InputTimeAndId, SessionEffect, SessionInput};
use crate::session_tool_caller::SessionToolCaller;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use windlass_protocol::mutex_lock::lock;
use windlass_protocol::{
    AllowedCalls, CallId, CallOutcome, Event, Fact, FactRecord, Fault, HookPoint, LiveEvent,
    LiveEventRecord, OpId, ParentCall, SessionId, TurnEndReason, UnixMillis, todo_list,
};
use windlass_toolkit::{PermissionReply, ToolCall};

impl SessionDriver {
    /// Performs the effects of an input in order.
    ///
    /// If they only start calls, the facts stay unwritten at first. A call that has started waits
    /// for a permit, and the fact that permits it is then written together with them: a command
    /// costs two appends, not three. Hooks of a call run before its permit, so facts are written
    /// before them.
    pub(super) async fn perform_all(
        &mut self,
        stamp: InputTimeAndId,
        effects: Vec<SessionEffect>,
    ) -> Result<(), Fault> {
        let may_wait = self.runtime.hooks.is_empty() && only_starts_calls(&effects);
        for effect in effects {
            if !may_wait && !matches!(effect, SessionEffect::Append(_)) {
                self.write_facts().await?;
            }
            self.perform(stamp, effect);
        }
        if may_wait { Ok(()) } else { self.write_facts().await }
    }

    fn perform(&mut self, stamp: InputTimeAndId, effect: SessionEffect) {
        match effect {
            SessionEffect::Append(facts) => self.queue_facts(stamp, facts),
            SessionEffect::Emit(event) => self.emit_live(stamp.at, event),
            SessionEffect::CallModel { turn, step, model, purpose, system_prompt, messages } => {
                self.call_model((turn, step), &model, purpose, (system_prompt, messages));
            }
            SessionEffect::CancelModel => {
                if let Some(model) = self.model_task.take() {
                    model.abort();
                }
            }
            SessionEffect::CallTool { turn, call: id, tool, arguments, author, allowed_calls } => {
                let session = self.claim.session;
                let call = ToolCall { session, id, author, tool, arguments, allowed_calls };
                self.call_tool(turn, call);
            }
            SessionEffect::ReviewTurnEnd { turn, continuations, condition } => {
                self.review_turn_end(turn, continuations, condition);
            }
            SessionEffect::ConfirmRecorded { call } => {
                if let Some(waiting) = lock(&self.pending_records).remove(&call) {
                    let _ = waiting.send(());
                }
            }
            SessionEffect::StartSubagent { call, session, resumed, allowed_calls } => {
                self.start_subagent(call, (session, resumed), allowed_calls)
            }
            SessionEffect::Reconcile { turn, call, accesses, changes } => {
                let (runtime, caller) =
                    (Arc::clone(&self.runtime), self.session_caller(turn, call));
                self.tasks.spawn(async move {
                    let outcome = runtime.reconcile(accesses, changes, &caller).await;
                    let seen_files = Vec::new();
                    let input = SessionInput::CallSettled { turn, call, outcome, seen_files };
                    let _ = caller.inputs.send(input).await;
                });
            }
            SessionEffect::AnswerOp { result } => self.answer_op(OpId(stamp.id), result),
            SessionEffect::CancelTool { call } => {
                lock(&self.pending_permits).remove(&call);
                lock(&self.pending_questions).remove(&call);
                if let Some(cancel) = self.cancel_tokens.remove(&call) {
                    cancel.cancel();
                }
            }
            SessionEffect::RequestPreview { call } => {
                if let Some(waiting) = lock(&self.pending_permits).remove(&call) {
                    let _ = waiting.send(PermissionReply::ShowPreview);
                }
            }
            SessionEffect::SendPermission { call, answer } => {
                if let Some(waiting) = lock(&self.pending_permits).remove(&call) {
                    // A call stopped by `CancelTool` in the meantime no longer receives.
                    let _ = waiting.send(PermissionReply::Answer(answer));
                }
            }
            SessionEffect::SendAnswers { call, answers } => {
                if let Some(waiting) = lock(&self.pending_questions).remove(&call) {
                    let _ = waiting.send(answers);
                }
            }
            SessionEffect::SaveApprovals { approvals } => {
                (self.settings.save_approvals)(&approvals)
            }
            SessionEffect::EndJob { job } => self.end_job(job),
            SessionEffect::RetryAfter { turn, step, after_ms } => {
                self.send_after(after_ms, SessionInput::RetryTimer { turn, step });
            }
            SessionEffect::StartTurnTimer { turn, after_ms } => {
                self.send_after(after_ms, SessionInput::TurnTimeout { turn })
            }
        }
    }

    fn send_after(&mut self, after_ms: u64, input: SessionInput) {
        let inputs = self.inputs.clone();
        self.tasks.spawn(async move {
            tokio::time::sleep(std::time::Duration::from_millis(after_ms)).await;
            let _ = inputs.send(input).await;
        });
    }

    fn queue_facts(&mut self, stamp: InputTimeAndId, facts: Vec<Fact>) {
        // `session.head()` may be ahead, since the session has already decided on later facts;
        // `claim.head` is the last position written.
        let first = self.claim.head + self.unwritten_facts.len() as u64 + 1;
        let session = self.claim.session;
        let records = (first..).zip(facts).map(|(seq, fact)| FactRecord {
            epoch: self.claim.epoch,
            origin: self.current_origin.clone(),
            ..FactRecord::new(session, seq, stamp.at, fact)
        });
        self.unwritten_facts.extend(records);
    }

    /// Appends the unwritten facts to the log.
    pub(super) async fn write_facts(&mut self) -> Result<(), Fault> {
        if self.unwritten_facts.is_empty() {
            return Ok(());
        }
        let records = std::mem::take(&mut self.unwritten_facts);
        let result = self.log.append_records(&self.claim, self.claim.head, &records).await;
        self.claim.head = result.map_err(storage_fault)?;
        for record in records {
            self.ops.note_fact(&record);
            self.on_fact(&record.fact);
            self.notify_hooks(&record);
            // There may be no watcher.
            let _ = self.events.send(Arc::new(Event::Fact(record)));
        }
        Ok(())
    }

    /// Updates the driver for a recorded fact.
    fn on_fact(&mut self, fact: &Fact) {
        match fact {
            Fact::TurnStarted { .. } if self.lineage.ancestors.is_empty() => {
                self.lineage.budget.reset(self.session.turn_limits());
            }
            Fact::StepEnded { usage, cost, .. } => {
                self.lineage.budget.spend(usage, *cost);
                self.spend_guard = None;
            }
            // `SessionOp::Interrupt` also cancels the subagents of the turn.
            Fact::TurnInterrupted { .. } => self.subagents.cancel_all(),
            Fact::CallSettled { call, seen_files, outcome } => {
                self.cancel_tokens.remove(call);
                let workspace = &self.runtime.workspace;
                lock(&self.file_tracker).record_seen(seen_files, |path| workspace.stat(path));
                if let Some(todos) = todo_list::todos_in_outcome(outcome) {
                    *lock(&self.todos) = todos.to_vec();
                }
            }
            Fact::Rewound { .. } => self.on_rewind(),
            Fact::OutputsPruned { .. } | Fact::ContextCompacted { .. } => {
                lock(&self.file_tracker).retain_known(self.session.files());
            }
            Fact::StepStarted { .. } => lock(&self.file_tracker).end_instruction_claims(),
            Fact::ModeChanged { mode } => {
                self.runtime = Arc::new(self.runtime.in_mode(*mode));
                self.subagents.set_parent_mode(self.runtime.policy.mode());
            }
            Fact::ApprovalsRevoked => self.subagents.revoke_approvals(),
            Fact::TurnEnded { turn, end } => {
                self.step_tools = StepTools::default();
                self.runtime.workspace.release_memory();
                if (*turn, end) == (1, &TurnEndReason::Completed) {
                    self.request_title();
                }
            }
            _ => {}
        }
    }

    fn start_subagent(
        &mut self,
        call: CallId,
        (session, resumed): (SessionId, bool),
        allowed_calls: Vec<AllowedCalls>,
    ) {
        let mode = self.runtime.policy.mode();
        let Some((pending, parent_channel)) = self.subagents.accept(call, session, mode) else {
            return;
        };
        let task = SubagentTask {
            session,
            parent: ParentCall { session: self.claim.session, call },
            resumed,
            allowed_calls,
            pending,
            log: Arc::clone(&self.log),
            runtime: Arc::clone(&self.runtime),
            settings: Arc::clone(&self.settings),
            lineage: self.lineage.clone(),
            events: self.events.clone(),
            inputs: self.inputs.clone(),
            parent_channel,
            stop: self.stop.clone(),
        };
        self.subagents.spawn(task.run());
    }

    pub(super) fn emit_live(&self, at: UnixMillis, event: LiveEvent) {
        let live_record = LiveEventRecord { session: self.claim.session, at, event };
        let _ = self.events.send(Arc::new(Event::Live(live_record)));
    }

    fn call_tool(&mut self, turn: u32, call: ToolCall) {
        let cancel = CancellationToken::new();
        self.cancel_tokens.insert(call.id, cancel.clone());
        let caller = self.session_caller(turn, call.id);
        let step_model = self.session.step_model().unwrap_or(&self.settings.model_name);
        let (runtime, settings) =
            (Arc::clone(&self.runtime), self.settings.for_step_model(step_model));
        let (inputs, step_tools) = (self.inputs.clone(), Arc::clone(&self.step_tools));
        let (id, was_permitted) = (call.id, Arc::clone(&caller.was_permitted));
        let hooks = self.request_hooks(HookPoint::ToolDefinition);
        let shown_files = Arc::clone(&caller.shown_files);
        self.tasks.spawn(async move {
            let mut execution = JoinSet::new();
            execution.spawn(async move {
                // `step_tools` is empty for a call from before a crash or from the user.
                let snapshot =
                    load_step_tools(&step_tools, (&runtime, &settings), hooks.as_ref()).await;
                runtime.execute(snapshot, call, &caller, cancel).await
            });
            let outcome = match execution.join_next().await {
                Some(Ok(outcome)) => outcome,
                // A tool may have had effects before it panicked.
                Some(Err(_)) | None if was_permitted.load(Ordering::SeqCst) => {
                    CallOutcome::ResultUnknown
                }
                Some(Err(_)) | None => {
                    CallOutcome::Failed { text: "The tool failed before it had any effect.".into() }
                }
            };
            let seen_files = std::mem::take(&mut *lock(&shown_files));
            let input = SessionInput::CallSettled { turn, call: id, outcome, seen_files };
            let _ = inputs.send(input).await;
        });
    }

    fn session_caller(&self, turn: u32, call: CallId) -> SessionToolCaller {
        SessionToolCaller {
            turn,
            step_seq: self.session.step_seq(),
            call,
            judge: self.side_request_models(),
            session: self.claim.session,
            was_permitted: Arc::default(),
            log: Arc::clone(&self.log),
            inputs: self.inputs.clone(),
            events: self.events.clone(),
            pending_permits: Arc::clone(&self.pending_permits),
            pending_records: Arc::clone(&self.pending_records),
            pending_questions: Arc::clone(&self.pending_questions),
            todos: Arc::clone(&self.todos),
            file_tracker: Arc::clone(&self.file_tracker),
            shown_files: Arc::default(),
            settings: Arc::clone(&self.settings),
            lineage: self.lineage.clone(),
            pending_subagents: Arc::clone(&self.subagents.pending),
        }
    }
}

/// Returns true if the effects start calls and record that, and nothing else.
fn only_starts_calls(effects: &[SessionEffect]) -> bool {
    let starts_call = |effect: &SessionEffect| matches!(effect, SessionEffect::CallTool { .. });
    effects.iter().any(starts_call)
        && effects.iter().all(|effect| match effect {
            SessionEffect::Append(facts) => !facts.iter().any(Fact::needs_disk_sync),
            effect => starts_call(effect),
        })
}
