//! The printer of a turn: its events on the terminal, and the answers to its permission requests.

mod delta_redactor;
mod failure_hints;
mod permission_answers;
mod prompt_shell_commands;
mod questions;
mod report;
mod server_wait;

use super::RunOptions;
use super::run_session::{RunEvent, RunEvents, RunSession};
use crate::args::RunOutputFormat;
use crate::telemetry::TelemetryExport;
use crate::terminal::output::{self, RunProgressPrinter};
use crate::terminal::question_queue::{CtrlC, TerminalQuestionQueue};
use delta_redactor::DeltaRedactor;
pub(crate) use report::{summarize_arguments, summarize_outcome};
use std::collections::HashMap;
use std::time::Duration;
use tokio::sync::oneshot;
use windlass_protocol::display_text::{describe_partial_call, model_with_effort};
use windlass_protocol::{
    CallId, CallOutcome, Cost, Event, Fact, FactRecord, Fault, FileHistory, HookPoint, HookVerdict,
    LiveEvent, ModelStreamKind, OpError, OpRequest, OpResult, PermissionAnswer, PromptId,
    SessionOp, TokenUsage, Transcript, TurnEndReason, UnixMillis,
};

/// The work that a run waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunWork {
    /// The turn that was under way, and the prompts that wait.
    Resumed,
    /// The prompt that was sent, until its turn starts.
    Prompt(PromptId),
    /// The direct call that was sent, until its turn starts.
    DirectCall,
    /// A turn that has started.
    Turn(u32),
}

/// Prints a turn as it runs, and collects its results.
pub(super) struct TurnPrinter {
    options: RunOptions,
    progress: RunProgressPrinter,
    transcript: Transcript,
    work: RunWork,
    /// The turn that runs, or the last one of this run.
    pub(super) turn: Option<u32>,
    /// Receives the session's answer to it.
    op_answer: Option<oneshot::Receiver<OpResult>>,
    calls: HashMap<CallId, (String, UnixMillis)>,
    last_outcome: Option<CallOutcome>,
    /// True if the last call was denied because no user is available.
    lacks_approval: bool,
    /// Lines to print if no user is found to answer the question of a call.
    declined_lines: HashMap<CallId, Vec<String>>,
    /// Tokens and cost of this run, and the files that it changed.
    usage: TokenUsage,
    cost: Cost,
    files: FileHistory,
    /// The answer validated against the output schema, or its violations.
    answer: Option<Result<serde_json::Value, String>>,
    /// True for a direct tool call by the user, without a model.
    is_direct_call: bool,
    /// The user left, and the turn goes on in the server.
    is_left_running: bool,
    server: server_wait::ServerWait,
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
            work: RunWork::Resumed,
            turn: None,
            op_answer: None,
            calls: HashMap::new(),
            last_outcome: None,
            lacks_approval: false,
            declined_lines: HashMap::new(),
            usage: TokenUsage::default(),
            cost: Cost::default(),
            files: FileHistory::default(),
            answer: None,
            is_left_running: false,
            server: server_wait::ServerWait::new(),
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
        session: &RunSession,
        events: &mut RunEvents,
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
                    if self.server.is_lost() {
                        self.is_left_running = true;
                        return Ok(Some(TurnEndReason::Interrupted));
                    }
                    match interrupts {
                        1 => self.progress.write_status("\nstopping; press Ctrl+C again to stop \
                                                         immediately"),
                        2 => self.progress.write_status("\nstopping immediately"),
                        _ => {
                            self.is_left_running = self.options.is_attached;
                            return Ok(Some(TurnEndReason::Interrupted));
                        }
                    }
                    session.queue_op(self.interrupting_op()).await;
                }
                answer = next_answer(&mut self.op_answer) => {
                    self.op_answer = None;
                    if let Some(Err(error)) = answer {
                        if let (OpError::Invalid { text }, RunWork::Prompt(_)) = (&error, self.work)
                        {
                            return Err(Fault::Config { message: text.clone() });
                        }
                        self.progress.write_status(&error.to_string());
                        // A direct call that is rejected never starts a turn; a prompt is rejected
                        // only while one runs.
                        if self.work == RunWork::DirectCall {
                            return Ok(Some(TurnEndReason::Denied));
                        }
                        self.work = RunWork::Resumed;
                    }
                }
                event = events.next() => {
                    let Some(event) = event? else { return Ok(None) };
                    idle = Duration::ZERO;
                    let event = match event {
                        RunEvent::Session(event) => event,
                        RunEvent::Disconnected(reason) => {
                            self.on_disconnected(&reason);
                            continue;
                        }
                        RunEvent::Reconnected => {
                            self.on_reconnected();
                            continue;
                        }
                    };
                    for event in self.delta_redactor.redact(event) {
                        if let Some(end) = self.on_event(&event, session).await {
                            return Ok(Some(end));
                        }
                    }
                }
                op = self.questions.next_answer() => {
                    session.queue_op(op).await;
                }
                () = tick => {
                    idle += Duration::from_secs(1);
                    if let Some(end) = self.end_without_server()? {
                        return Ok(Some(end));
                    }
                    if self.options.output == RunOutputFormat::Text && !self.questions.is_open() {
                        let activity = self.server.activity().unwrap_or(&self.activity);
                        self.progress.show_waiting(activity, idle);
                    }
                }
            }
        }
    }

    async fn on_event(&mut self, event: &Event, session: &RunSession) -> Option<TurnEndReason> {
        if self.options.output == RunOutputFormat::Events
            && let Ok(json) = serde_json::to_string(event)
        {
            output::print_json(&json);
        }
        match event {
            Event::Live(live_record) if live_record.session != session.id => None,
            Event::Fact(record) if record.session != session.id => {
                self.on_subagent_fact(record, session).await;
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
                self.on_fact(record, session).await
            }
        }
    }

    /// Handles a fact of a subagent session: `PermissionAsked` must reach the user.
    async fn on_subagent_fact(&mut self, record: &FactRecord, session: &RunSession) {
        let fact = &record.fact;
        self.on_permission_asked(record, "requested by a subagent: ", session).await;
        if let Fact::PermissionAnswered { call, .. } | Fact::CallSettled { call, .. } = fact {
            self.questions.remove(*call);
        }
        if let Fact::PermissionAnswered { call, answer } = fact {
            self.on_answered(*call, matches!(answer, PermissionAnswer::Unavailable { .. }));
        }
    }

    /// Notes the turn in which the work of this run is done.
    fn follow_work(&mut self, fact: &Fact) {
        let (turn, is_own) = match fact {
            Fact::TurnStarted { turn, prompt } => {
                self.turn = Some(*turn);
                let is_own = match (self.work, prompt) {
                    (RunWork::Prompt(own), Some(prompt)) => own == *prompt,
                    (RunWork::DirectCall, None) => true,
                    _ => false,
                };
                (*turn, is_own)
            }
            Fact::PromptSteered { turn, prompt } => (*turn, self.work == RunWork::Prompt(*prompt)),
            _ => return,
        };
        if is_own {
            self.work = RunWork::Turn(turn);
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
        record: &FactRecord,
        session: &RunSession,
    ) -> Option<TurnEndReason> {
        let at = record.at;
        match &record.fact {
            Fact::TurnStarted { .. } | Fact::PromptSteered { .. } => self.follow_work(&record.fact),
            Fact::PromptWithdrawn { prompt } if self.work == RunWork::Prompt(*prompt) => {
                return Some(TurnEndReason::Interrupted);
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
            Fact::PermissionAsked { .. } => self.on_permission_asked(record, "", session).await,
            Fact::QuestionAsked { call, questions } => {
                self.ask_user((*call, record.seq), questions, session).await
            }
            Fact::ModeChanged { mode } => self.print_line(&format!("mode is now {mode}")),
            Fact::AgentChanged { agent } => self.print_line(&format!("agent is now {agent}")),
            Fact::ModelChanged { model, effort } => {
                let name = model_with_effort(model, effort.as_deref());
                self.print_line(&format!("model is now {name}"));
            }
            Fact::PermissionAnswered { call, answer } => {
                self.questions.remove(*call);
                self.on_answered(*call, matches!(answer, PermissionAnswer::Unavailable { .. }));
            }
            Fact::QuestionAnswered { call, answers } => {
                self.questions.remove(*call);
                self.on_answered(*call, answers.is_empty());
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
            Fact::TurnEnded { turn, end } => {
                let is_over = match self.work {
                    RunWork::Turn(own) => own == *turn,
                    RunWork::Resumed => self.transcript.queued_prompts.is_empty(),
                    RunWork::Prompt(_) | RunWork::DirectCall => false,
                };
                if is_over {
                    return self.is_turn_over(end, session).await.then(|| end.clone());
                }
            }
            Fact::PromptSubmitted { .. }
            | Fact::SessionOpened { .. }
            | Fact::SystemPromptSet { .. }
            | Fact::OutputsPruned { .. }
            | Fact::ApprovalsRevoked
            | Fact::SubagentStarted { .. }
            | Fact::SessionRenamed { .. }
            | Fact::SessionForked { .. }
            | Fact::ContextCompacted { .. }
            | Fact::Rewound { .. }
            | Fact::PromptWithdrawn { .. }
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
    async fn is_turn_over(&mut self, end: &TurnEndReason, session: &RunSession) -> bool {
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
        self.send_op(self.options.own_prompt(&text), session).await;
        false
    }

    /// Sends the next operation of this run.
    async fn send_op(&mut self, op: SessionOp, session: &RunSession) {
        let id = windlass_engine::new_op_id();
        self.work = match op {
            SessionOp::Prompt { .. } => RunWork::Prompt(PromptId(id.0)),
            _ => RunWork::DirectCall,
        };
        self.op_answer = Some(session.queue(OpRequest { id, op }).await);
    }

    /// Returns the operation that stops the work of this run, and in a server nothing else.
    fn interrupting_op(&self) -> SessionOp {
        match self.work {
            RunWork::Turn(turn) => SessionOp::Interrupt { turn: Some(turn) },
            RunWork::Prompt(prompt)
                if self.options.is_attached
                    && self.transcript.queued_prompts.iter().any(|it| it.id == prompt) =>
            {
                SessionOp::WithdrawPrompt { prompt }
            }
            RunWork::Prompt(_) | RunWork::DirectCall | RunWork::Resumed => {
                SessionOp::Interrupt { turn: self.turn }
            }
        }
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
}
