//! Execution of session effects: log appends, tool calls, timers, and answers to waiting calls.

use super::SessionDriver;
use super::request_hooks::{StepTools, load_step_tools};
use super::subagent_task::SubagentTask;
use crate::session::{InputTimeAndId, SessionEffect, SessionInput};
use crate::session_tool_caller::SessionToolCaller;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use windlass_protocol::mutex_lock::lock;
use windlass_protocol::{
    CallId, CallOutcome, Event, Fact, FactRecord, Fault, HookPoint, LiveEvent, LiveEventRecord,
    ParentCall, SessionId, TurnEndReason, UnixMillis, todo_list,
};
use windlass_toolkit::{PermissionReply, ToolCall};

impl SessionDriver {
    pub(super) async fn perform(
        &mut self,
        stamp: InputTimeAndId,
        effect: SessionEffect,
    ) -> Result<(), Fault> {
        match effect {
            SessionEffect::Append(facts) => self.append_facts(stamp, facts).await?,
            SessionEffect::Emit(event) => self.emit_live(stamp.at, event),
            SessionEffect::CallModel { turn, step, purpose, system_prompt, messages } => {
                self.call_model((turn, step), purpose, system_prompt, messages);
            }
            SessionEffect::CancelModel => {
                if let Some(model) = self.model_task.take() {
                    model.abort();
                }
            }
            SessionEffect::CallTool { turn, call, tool, arguments, author } => {
                let session = self.claim.session;
                self.call_tool(turn, ToolCall { session, id: call, author, tool, arguments });
            }
            SessionEffect::ConfirmRecorded { call } => {
                if let Some(waiting) = lock(&self.pending_records).remove(&call) {
                    let _ = waiting.send(());
                }
            }
            SessionEffect::StartSubagent { call, session, resumed } => {
                self.start_subagent(call, session, resumed)
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
            SessionEffect::EndJob { job } => self.end_job(stamp.at, job),
            SessionEffect::RetryAfter { turn, step, after_ms } => {
                self.send_after(after_ms, SessionInput::RetryTimer { turn, step });
            }
            SessionEffect::StartTurnTimer { turn, after_ms } => {
                self.send_after(after_ms, SessionInput::TurnTimeout { turn })
            }
        }
        Ok(())
    }

    fn send_after(&mut self, after_ms: u64, input: SessionInput) {
        let inputs = self.inputs.clone();
        self.tasks.spawn(async move {
            tokio::time::sleep(std::time::Duration::from_millis(after_ms)).await;
            let _ = inputs.send(input).await;
        });
    }

    async fn append_facts(&mut self, stamp: InputTimeAndId, facts: Vec<Fact>) -> Result<(), Fault> {
        // `session.head()` may be ahead, since the session has already decided on later facts;
        // `claim.head` is the last position written.
        let expected = self.claim.head;
        let result = self.log.append(&self.claim, expected, stamp.at, &facts).await;
        self.claim.head = result.map_err(|error| Fault::Storage { message: error.to_string() })?;
        for (seq, fact) in (expected + 1..).zip(facts) {
            self.on_fact(&fact);
            let record = FactRecord { session: self.claim.session, seq, at: stamp.at, fact };
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
                self.lineage.budget.reset();
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
            Fact::ModeChanged { mode } => {
                self.runtime = Arc::new(self.runtime.in_mode(*mode));
                self.subagents.set_parent_mode(self.runtime.policy.mode());
            }
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

    fn start_subagent(&mut self, call: CallId, session: SessionId, resumed: bool) {
        let mode = self.runtime.policy.mode();
        let Some((pending, parent_channel)) = self.subagents.accept(call, session, mode) else {
            return;
        };
        let task = SubagentTask {
            session,
            parent: ParentCall { session: self.claim.session, call },
            resumed,
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
        let (runtime, settings) = (Arc::clone(&self.runtime), Arc::clone(&self.settings));
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
            call,
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
