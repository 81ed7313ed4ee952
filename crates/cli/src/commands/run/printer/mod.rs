//! The printer of a turn: its events on the terminal, and the answers to its permission requests.

mod delta_redactor;
mod failure_hints;
mod prompt_shell_commands;
mod questions;
mod report;

use super::RunOptions;
use crate::args::RunOutputFormat;
use crate::telemetry::TelemetryExport;
use crate::terminal::output::{self, RunProgressPrinter};
use crate::terminal::permission_question::{RecordedPermissionRequest, describe_request};
use crate::terminal::question_queue::{CtrlC, TerminalQuestion, TerminalQuestionQueue};
use delta_redactor::DeltaRedactor;
pub(crate) use report::{summarize_arguments, summarize_outcome};
use std::collections::HashMap;
use std::time::Duration;
use tokio::sync::oneshot;
use windlass_engine::{SessionHandle, SessionWatcher};
use windlass_protocol::display_text::describe_partial_call;
use windlass_protocol::{
    CallId, CallOutcome, ClientInfo, ClientKind, Cost, Event, Fact, Fault, FileHistory, HookPoint,
    HookVerdict, LiveEvent, ModelStreamKind, OpResult, PermissionAnswer, SessionOp, TokenUsage,
    Transcript, TurnEndReason, UnixMillis,
};
use windlass_toolkit::UserPresence;

/// Prints a turn as it runs, and collects its results.
pub(super) struct TurnPrinter {
    options: RunOptions,
    progress: RunProgressPrinter,
    transcript: Transcript,
    /// The operation that was sent but has not started yet.
    pending_op: Option<SessionOp>,
    /// Receives the session's answer to it.
    op_answer: Option<oneshot::Receiver<OpResult>>,
    client: ClientInfo,
    calls: HashMap<CallId, (String, UnixMillis)>,
    last_outcome: Option<CallOutcome>,
    /// True if the last call was denied because no user is available.
    lacks_approval: bool,
    /// Tokens and cost of this run, and the files that it changed.
    usage: TokenUsage,
    cost: Cost,
    files: FileHistory,
    /// The answer validated against the output schema, or its violations.
    answer: Option<Result<serde_json::Value, String>>,
    /// True for a direct tool call by the user, without a model.
    is_direct_call: bool,
    has_streamed: bool,
    delta_redactor: DeltaRedactor,
    activity: String,
    questions: TerminalQuestionQueue,
    /// Lines from `print_line` held back until the user answers the current question.
    held_lines: Vec<String>,
    pub(super) telemetry_export: Option<TelemetryExport>,
}

/// Waits for the answer to an operation; never resolves without one. `None` means that the session
/// has ended.
async fn next_answer(receiver: &mut Option<oneshot::Receiver<OpResult>>) -> Option<OpResult> {
    match receiver {
        Some(receiver) => receiver.await.ok(),
        None => std::future::pending().await,
    }
}

impl TurnPrinter {
    pub(super) fn new(options: RunOptions, transcript: Transcript) -> TurnPrinter {
        TurnPrinter {
            options,
            progress: RunProgressPrinter::new(),
            transcript,
            is_direct_call: false,
            pending_op: None,
            op_answer: None,
            client: crate::local_client(ClientKind::CommandLine),
            calls: HashMap::new(),
            last_outcome: None,
            lacks_approval: false,
            usage: TokenUsage::default(),
            cost: Cost::default(),
            files: FileHistory::default(),
            answer: None,
            has_streamed: false,
            delta_redactor: DeltaRedactor::default(),
            activity: "waiting for the model".into(),
            questions: TerminalQuestionQueue::default(),
            held_lines: Vec::new(),
            telemetry_export: None,
        }
    }

    /// Watches until the requested work is done. Returns `None` if the session stopped by itself.
    async fn watch_turn(
        &mut self,
        handle: &SessionHandle,
        watcher: &mut SessionWatcher,
        ctrl_c: &mut CtrlC,
    ) -> Result<Option<TurnEndReason>, Fault> {
        let mut idle = Duration::ZERO;
        let mut interrupts = 0;
        loop {
            if !self.questions.is_open() {
                for text in std::mem::take(&mut self.held_lines) {
                    self.progress.write_status(&text);
                }
                self.questions.ask_next();
            }
            let tick = tokio::time::sleep(Duration::from_secs(1));
            tokio::select! {
                biased;
                () = ctrl_c.wait() => {
                    interrupts += 1;
                    match interrupts {
                        1 => self.progress.write_status("\nstopping; press Ctrl+C again to stop \
                                                         immediately"),
                        2 => self.progress.write_status("\nstopping immediately"),
                        _ => return Ok(Some(TurnEndReason::Interrupted)),
                    }
                    handle.queue_op(SessionOp::interrupt(), Some(self.client.clone())).await;
                }
                answer = next_answer(&mut self.op_answer) => {
                    self.op_answer = None;
                    if let Some(Err(error)) = answer {
                        self.progress.write_status(&error.to_string());
                        // A direct call that is rejected never starts a turn; a prompt is rejected
                        // only while one runs.
                        if self.pending_op.take().is_some() && self.is_direct_call {
                            return Ok(Some(TurnEndReason::Denied));
                        }
                    }
                }
                event = watcher.next() => {
                    let event = event.map_err(|error| Fault::Storage { message: error.to_string() })?;
                    let Some(event) = event else { return Ok(None) };
                    idle = Duration::ZERO;
                    for event in self.delta_redactor.redact(event) {
                        if let Some(end) = self.on_event(&event, handle).await {
                            return Ok(Some(end));
                        }
                    }
                }
                op = self.questions.next_answer() => {
                    handle.queue_op(op, Some(self.client.clone())).await;
                }
                () = tick => {
                    idle += Duration::from_secs(1);
                    if self.options.output == RunOutputFormat::Text && !self.questions.is_open() {
                        self.progress.show_waiting(&self.activity, idle);
                    }
                }
            }
        }
    }

    async fn on_event(&mut self, event: &Event, handle: &SessionHandle) -> Option<TurnEndReason> {
        if self.options.output == RunOutputFormat::Events
            && let Ok(json) = serde_json::to_string(event)
        {
            output::print_json(&json);
        }
        match event {
            Event::Live(live_record) if live_record.session != handle.session => None,
            Event::Fact(record) if record.session != handle.session => {
                self.on_subagent_fact(&record.fact, handle).await;
                None
            }
            Event::Live(live_record) => {
                self.on_live_event(&live_record.event);
                None
            }
            Event::Fact(record) => {
                self.telemetry_export.iter_mut().for_each(|export| export.telemetry.push(record));
                self.transcript.push(record.seq, &record.fact);
                self.files.push(record.seq, &record.fact);
                self.on_fact(record.at, &record.fact, handle).await
            }
        }
    }

    /// Handles a fact of a subagent session: `PermissionAsked` must reach the user.
    async fn on_subagent_fact(&mut self, fact: &Fact, handle: &SessionHandle) {
        if let Fact::PermissionAsked {
            call,
            accesses,
            reason,
            preview,
            repair,
            approval_kind,
            ..
        } = fact
        {
            let preview = describe_request(preview.as_deref(), repair.as_ref());
            let reason = &format!("requested by a subagent: {reason}");
            let request = RecordedPermissionRequest {
                accesses,
                reason,
                preview,
                approval_kind: approval_kind.as_ref(),
            };
            self.answer_permission(*call, &request, handle).await;
        }
        if let Fact::PermissionAnswered { call, .. } | Fact::CallSettled { call, .. } = fact {
            self.questions.remove(*call);
        }
    }

    fn on_live_event(&mut self, live: &LiveEvent) {
        if self.options.output != RunOutputFormat::Text {
            return;
        }
        match live {
            // A pipe gets complete texts only, without partial text from before a retry.
            LiveEvent::ModelDelta { stream: ModelStreamKind::Text, .. }
                if !self.progress.is_stdout_terminal || self.has_output_schema() => {}
            LiveEvent::ModelDelta { stream: ModelStreamKind::Text, text } => {
                self.has_streamed = true;
                self.progress.write_answer(text);
            }
            LiveEvent::ModelDelta { stream: ModelStreamKind::Reasoning, .. } => {
                self.activity = "thinking".into()
            }
            LiveEvent::PartialCall { tool, path, argument_bytes, .. } => {
                self.activity = describe_partial_call(tool, path.as_deref(), *argument_bytes);
            }
            LiveEvent::CallProgress { text, .. } => self.activity.clone_from(text),
            LiveEvent::PartialStep { .. }
            | LiveEvent::CommandOutput { .. }
            | LiveEvent::JobUpdate { .. } => {}
            LiveEvent::HostAccess { host, refusal: None, .. } => {
                self.activity = format!("connecting to {host}")
            }
            LiveEvent::HostAccess { host, refusal: Some(reason), .. } => {
                self.print_line(&format!("the sandbox blocked a connection to {host}: {reason}"));
            }
            LiveEvent::HookRan { call, hook, point, verdict, .. } => {
                self.print_hook_verdict(*call, (hook, *point), verdict);
            }
        }
    }

    async fn on_fact(
        &mut self,
        at: UnixMillis,
        fact: &Fact,
        handle: &SessionHandle,
    ) -> Option<TurnEndReason> {
        match fact {
            Fact::PromptSubmitted { .. } | Fact::TurnStarted { prompt: None, .. } => {
                self.pending_op = None
            }
            Fact::StepStarted { model, .. } => {
                self.activity = format!("waiting for {model}");
                self.has_streamed = false;
            }
            Fact::StepEnded { usage, cost, .. } => {
                self.usage += *usage;
                self.cost += cost.unwrap_or_default();
                self.end_line();
            }
            // Text that was not streamed as `ModelDelta`.
            Fact::ModelText { text, .. }
                if !self.has_streamed
                    && !self.has_output_schema()
                    && self.options.output == RunOutputFormat::Text =>
            {
                self.progress.write_answer(text);
            }
            Fact::StepRetrying { fault, model: Some(model), .. } => {
                self.print_line(&format!("{fault}; retrying with {model}"));
            }
            Fact::SideRequestEnded { usage, cost, .. } => {
                self.usage += *usage;
                self.cost += cost.unwrap_or_default();
            }
            Fact::StepRetrying { fault, wait_ms, .. } => {
                let (fault, seconds) = (fault.without_wait(), wait_ms.div_ceil(1000));
                self.print_line(&format!("{fault}; retrying in {seconds} s"));
            }
            Fact::ToolCalled { call, tool, arguments, .. } => {
                let label = format!("{tool} {}", summarize_arguments(arguments));
                self.calls.insert(*call, (label, at));
            }
            Fact::PermissionAsked {
                call,
                accesses,
                reason,
                preview,
                repair,
                approval_kind,
                ..
            } => {
                let preview = describe_request(preview.as_deref(), repair.as_ref());
                let request = RecordedPermissionRequest {
                    accesses,
                    reason,
                    preview,
                    approval_kind: approval_kind.as_ref(),
                };
                self.answer_permission(*call, &request, handle).await;
            }
            Fact::QuestionAsked { call, questions } => {
                self.ask_user(*call, questions, handle).await
            }
            Fact::ModeChanged { mode } => self.print_line(&format!("mode is now {mode}")),
            Fact::AgentChanged { agent } => self.print_line(&format!("agent is now {agent}")),
            Fact::PermissionAnswered { call, .. } | Fact::QuestionAnswered { call, .. } => {
                self.questions.remove(*call);
            }
            Fact::TurnInterrupted { .. } => self.questions.clear(),
            Fact::CallStarted { call, .. } => {
                if let Some((label, started_at)) = self.calls.get_mut(call) {
                    *started_at = at;
                    self.activity.clone_from(label);
                }
            }
            Fact::CallSettled { call, outcome, .. } => self.on_call_settled(at, *call, outcome),
            Fact::HookRan { call, hook, point, verdict, .. } => {
                self.print_hook_verdict(*call, (hook, *point), verdict);
            }
            Fact::TurnEnded { end, .. } => {
                if self.pending_op.is_none() && self.transcript.queued_prompts.is_empty() {
                    return self.is_turn_over(end, handle).await.then(|| end.clone());
                }
            }
            Fact::SessionOpened { .. }
            | Fact::SystemPromptSet { .. }
            | Fact::OutputsPruned { .. }
            | Fact::ApprovalsRevoked
            | Fact::PromptSteered { .. }
            | Fact::SubagentStarted { .. }
            | Fact::SessionRenamed { .. }
            | Fact::SessionForked { .. }
            | Fact::ContextCompacted { .. }
            | Fact::Rewound { .. }
            | Fact::PromptWithdrawn { .. }
            | Fact::TurnStarted { .. }
            | Fact::ModelText { .. }
            | Fact::ModelReasoning { .. }
            | Fact::FilesChanging { .. }
            | Fact::FilesUnchanged { .. }
            | Fact::ContextChanged { .. }
            | Fact::FactsLost { .. } => {}
        }
        None
    }

    /// Prints the outcome of a call in one line.
    fn on_call_settled(&mut self, at: UnixMillis, call: CallId, outcome: &CallOutcome) {
        self.questions.remove(call);
        if let Some((label, started_at)) = self.calls.remove(&call).filter(|_| !self.is_direct_call)
        {
            let elapsed = report::format_call_duration(at.0.saturating_sub(started_at.0));
            let mark = if report::is_failure(outcome) { "✗" } else { "•" };
            self.print_line(&format!(
                "{mark} {}: {} ({elapsed})",
                label.trim_end(),
                summarize_outcome(outcome)
            ));
        }
        self.print_todo_list(outcome);
        self.lacks_approval &= !matches!(outcome, CallOutcome::Completed { .. });
        self.last_outcome = Some(outcome.clone());
    }

    /// Prints a `HookVerdict` that refused or failed.
    fn print_hook_verdict(
        &mut self,
        call: Option<CallId>,
        hook: (&str, HookPoint),
        verdict: &HookVerdict,
    ) {
        let label = call.and_then(|call| self.calls.get(&call)).map(|(label, _)| label.as_str());
        if let Some(line) = report::describe_hook_verdict(hook, label, verdict) {
            self.print_line(&line);
        }
    }

    fn has_output_schema(&self) -> bool {
        self.options.output_schema.is_some()
    }

    /// Returns true unless the answer violates the `output_schema` and the model gets another
    /// attempt.
    async fn is_turn_over(&mut self, end: &TurnEndReason, handle: &SessionHandle) -> bool {
        let is_answer = *end == TurnEndReason::Completed && !self.is_direct_call;
        let Some(schema) = self.options.output_schema.as_mut().filter(|_| is_answer) else {
            return true;
        };
        let answer = schema.validate(&self.transcript.last_answer());
        let retry_prompt =
            answer.as_ref().err().and_then(|violations| schema.retry_prompt(violations));
        self.answer = Some(answer);
        let Some(text) = retry_prompt else { return true };
        self.print_line("the answer does not match the schema; asking again");
        self.send_op(SessionOp::prompt(text), handle).await;
        false
    }

    /// Sends the next operation of this run.
    async fn send_op(&mut self, op: SessionOp, handle: &SessionHandle) {
        self.pending_op = Some(op.clone());
        self.op_answer = Some(handle.queue_op(op, Some(self.client.clone())).await);
    }

    /// Prints a status line; holds it back while a question is on the screen.
    fn print_line(&mut self, text: &str) {
        match self.options.output {
            RunOutputFormat::Text if self.questions.is_open() => {
                self.held_lines.push(text.to_owned())
            }
            RunOutputFormat::Text => self.progress.write_status(text),
            RunOutputFormat::Json | RunOutputFormat::Events => {}
        }
    }

    fn end_line(&mut self) {
        if self.options.output == RunOutputFormat::Text {
            self.progress.end_line();
        }
    }

    /// Answers a permission request: yes with `--yes`, otherwise by asking the user, or no if no
    /// user is present.
    async fn answer_permission(
        &mut self,
        call: CallId,
        request: &RecordedPermissionRequest<'_>,
        handle: &SessionHandle,
    ) {
        if self.options.yes && !request.leaves_sandbox() {
            let op = SessionOp::answer_permission(call, PermissionAnswer::Once);
            handle.queue_op(op, Some(self.client.clone())).await;
        } else if output::user_presence(self.options.output) == UserPresence::Present {
            self.progress.end_line();
            let question = request.to_prompt(output::terminal_width());
            self.questions.add(call, TerminalQuestion::Permission(question));
        } else {
            let hint = match request.leaves_sandbox() {
                true => "only a user at the terminal can allow it to leave the sandbox",
                false => "use --yes, or allow it in the config",
            };
            let accesses = request.access_lines().join("\n        ");
            let reason = windlass_protocol::display_text::to_one_line(request.reason);
            output::print_note(&format!(
                "denied: {accesses} ({reason}). No user is available to approve it: {hint}"
            ));
            self.lacks_approval = true;
            if self.options.yes {
                // Otherwise the session declines it: see `UnattendedPolicy`.
                let hint = format!("It needs approval because {reason}.");
                let op = SessionOp::answer_permission(call, PermissionAnswer::Unavailable { hint });
                handle.queue_op(op, Some(self.client.clone())).await;
            }
        }
    }
}
