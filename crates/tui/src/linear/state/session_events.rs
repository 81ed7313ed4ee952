//! Session events of the linear mode: the output lines for facts and live events.

use super::{LinearUi, MAX_READ_LINES};
use crate::error_hints;
use crate::transcript::call_summary;
use windlass_protocol::display_text::{describe_partial_call, format_duration};
use windlass_protocol::{
    CallDescription, CallId, CallOutcome, Event, Fact, LiveEvent, ModelStreamKind, StepPurpose,
    TurnEndReason, UnixMillis,
};

/// The time that a model writes a call before it is announced. Most calls are written faster, and
/// their `call:` line follows at once.
const FIRST_PARTIAL_CALL_MS: u64 = 1_000;
/// The time between two lines about the same call.
const NEXT_PARTIAL_CALL_MS: u64 = 10_000;

impl LinearUi {
    pub(super) fn on_event(&mut self, event: &Event) {
        self.state.on_event(event, 0);
        match event {
            Event::Fact(record) => {
                if let Some(client) = self.questions.answered_by(record) {
                    self.print(&format!("The question was answered by {client}."));
                }
                if Some(record.session) == self.state.session {
                    self.on_fact(&record.fact);
                }
                self.on_question_record(record);
            }
            Event::Live(live_record) if Some(live_record.session) == self.state.session => {
                self.on_live_event(live_record.at, &live_record.event);
            }
            Event::Live(_) => {}
        }
    }

    fn on_live_event(&mut self, at: UnixMillis, event: &LiveEvent) {
        match event {
            LiveEvent::ModelDelta { stream: ModelStreamKind::Text, text } => {
                self.model_text.push_str(text);
                self.read_model_text();
            }
            LiveEvent::PartialStep { texts, .. } => {
                let texts = texts.iter().filter(|text| text.stream == ModelStreamKind::Text);
                self.model_text = texts.map(|text| text.text.as_str()).collect();
                self.read_model_text();
            }
            LiveEvent::PartialCall { index, tool, path, argument_bytes } => {
                let (started_at, printed_at) = self.partial_calls.entry(*index).or_insert((at, at));
                let interval_ms = match printed_at == started_at {
                    true => FIRST_PARTIAL_CALL_MS,
                    false => NEXT_PARTIAL_CALL_MS,
                };
                if at.0.saturating_sub(printed_at.0) >= interval_ms {
                    *printed_at = at;
                    let line = describe_partial_call(tool, path.as_deref(), *argument_bytes);
                    self.print(&format!("writing: {line}"));
                }
            }
            LiveEvent::HostAccess { host, refusal: Some(reason), .. } => {
                self.print(&format!("blocked: {host}, {reason}"));
            }
            LiveEvent::ModelDelta { stream: ModelStreamKind::Reasoning, .. }
            | LiveEvent::HostAccess { refusal: None, .. }
            | LiveEvent::CallProgress { .. }
            | LiveEvent::CommandOutput { .. }
            | LiveEvent::JobUpdate { .. }
            | LiveEvent::HookRan { .. } => {}
        }
    }

    /// Prints the complete paragraphs of the streaming text that were not printed yet.
    fn read_model_text(&mut self) {
        let unread = self.model_text.get(self.read_bytes..).unwrap_or_default();
        if let Some(end) = unread.rfind("\n\n") {
            let paragraphs = unread.get(..end).unwrap_or_default().to_owned();
            self.read_bytes += end + 2;
            self.print_model_text(&paragraphs);
        }
    }

    /// Prints text of the model in full, without the `MAX_READ_LINES` limit.
    fn print_model_text(&mut self, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        if !self.model_text_was_last {
            self.print("model:");
        }
        self.print_quoted(text.trim_matches('\n'), usize::MAX);
        self.model_text_was_last = true;
    }

    fn on_fact(&mut self, fact: &Fact) {
        match fact {
            Fact::StepStarted { purpose, .. } => {
                (self.model_text, self.read_bytes) = (String::new(), 0);
                self.partial_calls.clear();
                self.lacks_answer |= *purpose == StepPurpose::Answer;
            }
            Fact::ModelText { text, .. } => {
                self.lacks_answer &= text.trim().is_empty();
                let read = self.model_text.get(..self.read_bytes).unwrap_or_default();
                let rest = text.strip_prefix(read).unwrap_or(text).to_owned();
                self.print_model_text(&rest);
                (self.model_text, self.read_bytes) = (String::new(), 0);
            }
            Fact::ToolCalled { call, tool, arguments, description, .. } => {
                let line = describe_call(description, tool, arguments);
                self.print(&format!("call: {line}"));
                self.call_lines.insert(*call, line);
            }
            Fact::CallSettled { call, outcome, .. } => self.on_call_settled(*call, outcome),
            Fact::SessionRenamed { title } => self.print(&format!("title: {title}")),
            Fact::ModeChanged { mode } => self.print(&format!("mode: {mode}")),
            Fact::AgentChanged { agent } => self.print(&format!("agent: {agent}")),
            Fact::ModelChanged { model, effort } => {
                let name =
                    windlass_protocol::display_text::model_with_effort(model, effort.as_deref());
                self.print(&format!("model: {name}"));
            }
            Fact::Rewound { to } => self.on_rewound(*to),
            Fact::ContextCompacted { .. } => self.print("The conversation was compacted."),
            Fact::SubagentStarted { agent, .. } => {
                self.print(&format!("The subagent {agent} started."))
            }
            Fact::StepRetrying { fault, model: Some(model), .. } => {
                self.print(&format!("{fault}; retrying with {model}"))
            }
            Fact::StepRetrying { attempt, fault, wait_ms, .. } => {
                let retry_note = format!("retrying in {}", format_duration(*wait_ms));
                match attempt {
                    0 | 1 => self.print(&format!("{}; {retry_note}", fault.without_wait())),
                    _ => self.print(&retry_note),
                }
            }
            Fact::TurnStarted { .. } => self.lacks_answer = false,
            Fact::TurnEnded { end, .. } => self.on_turn_ended(end),
            Fact::FactsLost { reason, .. } => {
                self.print(&format!("A part of this session was lost: {reason}"))
            }
            Fact::SessionOpened { .. }
            | Fact::SystemPromptSet { .. }
            | Fact::SessionForked { .. }
            | Fact::SideRequestEnded { .. }
            | Fact::OutputsPruned { .. }
            | Fact::PromptSubmitted { .. }
            | Fact::PromptWithdrawn { .. }
            | Fact::PromptSteered { .. }
            | Fact::StepEnded { .. }
            | Fact::TurnInterrupted { .. }
            | Fact::ModelReasoning { .. }
            | Fact::PermissionAsked { .. }
            | Fact::PermissionAnswered { .. }
            | Fact::ApprovalsRevoked
            | Fact::CallStarted { .. }
            | Fact::QuestionAsked { .. }
            | Fact::QuestionAnswered { .. }
            | Fact::FilesChanging { .. }
            | Fact::FilesUnchanged { .. }
            | Fact::HookRan { .. }
            | Fact::ContextChanged { .. } => {}
        }
    }

    fn on_call_settled(&mut self, call: CallId, outcome: &CallOutcome) {
        let line = self.call_lines.remove(&call).unwrap_or_else(|| "a call".to_owned());
        let result = match outcome {
            CallOutcome::Completed { .. } => "done",
            CallOutcome::Failed { .. } => "failed",
            CallOutcome::Denied { .. } => "denied",
            CallOutcome::Interrupted { .. } => "stopped",
            CallOutcome::ResultUnknown => "result unknown",
        };
        self.print(&format!("{result}: {line}"));
        self.print_quoted(&call_summary::text_for_user(outcome), MAX_READ_LINES);
    }

    fn on_turn_ended(&mut self, end: &TurnEndReason) {
        match end {
            TurnEndReason::Completed if self.lacks_answer => self.print(error_hints::NO_ANSWER),
            TurnEndReason::Completed => {}
            TurnEndReason::Denied => self.print("Stopped: you denied permission."),
            TurnEndReason::Interrupted if self.lacks_answer => {
                self.print(&format!("stopped. {}.", error_hints::CUT_OFF))
            }
            TurnEndReason::Interrupted => self.print("stopped"),
            TurnEndReason::LoopDetected { repeated_action: reason }
            | TurnEndReason::LimitReached { limit: reason } => {
                self.print(&format!("Stopped: {reason}"));
            }
            TurnEndReason::Failed { fault } => self.print_fault(fault),
        }
        self.print("ready");
    }
}

/// Describes a tool call on one line, in the same words as the screen.
fn describe_call(description: &CallDescription, tool: &str, arguments: &str) -> String {
    let description = call_summary::describe_call(description, tool, arguments);
    let note = match description.note.as_str() {
        "" => String::new(),
        note => format!(", {note}"),
    };
    windlass_protocol::display_text::truncate_chars(&format!("{}{note}", description.phrase()), 200)
}
