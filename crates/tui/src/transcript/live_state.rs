//! Live state that is shown but not recorded: streaming model text, output of running commands,
//! activity of subagents.

use super::call_summary;
use crate::render::MarkdownStream;
use std::collections::{BTreeMap, HashMap, VecDeque};
use windlass_protocol::{
    CallId, Fact, LogSeq, ModelStreamKind, PartialCallProgress, SessionId, StreamedText, UnixMillis,
};

/// The bytes of a command's output that are kept.
const MAX_OUTPUT_TAIL_BYTES: usize = 8 << 10;
/// The lines of a subagent's activity that are kept.
const MAX_SUBAGENT_LINES: usize = 8;

/// The live state of a session, built from `LiveEvent`s.
#[derive(Debug, Default)]
pub(super) struct LiveSessionState {
    /// The texts that the model is writing, in order.
    pub streaming: Vec<StreamingText>,
    /// The calls that the model is writing, by `LiveEvent::PartialCall::index`.
    pub partial_calls: BTreeMap<u64, PartialCallState>,
    /// The output of running calls.
    pub call_outputs: HashMap<CallId, LiveCallOutput>,
    /// The activity of the subagents that calls started.
    pub subagents: HashMap<SessionId, SubagentActivity>,
    /// The duration of reasoning that was received live, by the position of its fact.
    pub reasoning_millis: HashMap<LogSeq, u64>,
}

/// A text that the model is still writing.
#[derive(Debug)]
pub(super) struct StreamingText {
    pub stream: ModelStreamKind,
    pub markdown: MarkdownStream,
    pub started_at: UnixMillis,
    pub last_text_at: UnixMillis,
}

/// A call that the model is still writing.
#[derive(Debug, PartialEq)]
pub(super) struct PartialCallState {
    pub tool: String,
    pub path: Option<String>,
    pub argument_bytes: u64,
}

/// The live output of a running call, until its `CallSettled` fact.
#[derive(Debug, Default)]
pub(super) struct LiveCallOutput {
    /// The last progress message, one line.
    pub progress: String,
    /// The end of the output.
    pub output_tail: String,
    /// The network host that it was denied (`HostAccess` with a refusal).
    pub refused_host: Option<String>,
}

/// The activity of a subagent.
#[derive(Debug, Default)]
pub(super) struct SubagentActivity {
    pub call: Option<CallId>,
    pub call_count: u32,
    pub activity: String,
    pub recent_lines: VecDeque<String>,
}

impl LiveSessionState {
    /// Appends a piece of streaming model text.
    pub fn append_text(&mut self, stream: ModelStreamKind, text: &str, at: UnixMillis) {
        match self.streaming.last_mut().filter(|last| last.stream == stream) {
            Some(last) => {
                last.markdown.push(text);
                last.last_text_at = at;
            }
            None => {
                let mut markdown = MarkdownStream::default();
                markdown.push(text);
                self.streaming.push(StreamingText {
                    stream,
                    markdown,
                    started_at: at,
                    last_text_at: at,
                });
            }
        }
    }

    /// Replaces the streaming texts and partial calls by the complete state of the model request.
    pub fn set_partial_step(
        &mut self,
        texts: &[StreamedText],
        calls: &[PartialCallProgress],
        at: UnixMillis,
    ) {
        self.streaming.clear();
        for StreamedText { stream, text } in texts {
            self.append_text(*stream, text, at);
        }
        let state = |call: &PartialCallProgress| PartialCallState {
            tool: call.tool.clone(),
            path: call.path.clone(),
            argument_bytes: call.argument_bytes,
        };
        self.partial_calls = calls.iter().map(|call| (call.index, state(call))).collect();
    }

    /// Returns the partial call at an index of the live items, which follow the streaming texts.
    pub fn partial_call(&self, live_index: usize) -> Option<&PartialCallState> {
        let index = live_index.checked_sub(self.streaming.len())?;
        self.partial_calls.values().nth(index)
    }

    /// Removes the streaming text that became a fact, and returns its index in `streaming`.
    pub fn finish_text(&mut self, stream: ModelStreamKind, seq: LogSeq) -> Option<usize> {
        let index = self.streaming.iter().position(|streaming| streaming.stream == stream)?;
        let streaming = self.streaming.remove(index);
        if stream == ModelStreamKind::Reasoning {
            if self.reasoning_millis.len() > 1_000 {
                self.reasoning_millis.clear();
            }
            self.reasoning_millis
                .insert(seq, streaming.last_text_at.0.saturating_sub(streaming.started_at.0));
        }
        Some(index)
    }

    /// Appends a piece of command output.
    pub fn append_output(&mut self, call: CallId, text: &str) {
        let output = &mut self.call_outputs.entry(call).or_default().output_tail;
        output.push_str(text);
        if output.len() > 2 * MAX_OUTPUT_TAIL_BYTES {
            let tail_start = output.ceil_char_boundary(output.len() - MAX_OUTPUT_TAIL_BYTES);
            let tail = output.get(tail_start..).unwrap_or_default();
            let whole_lines = tail.find('\n').map_or(tail, |end| tail.get(end + 1..).unwrap_or(""));
            *output = whole_lines.to_owned();
        }
    }

    /// Applies a fact of a subagent, and returns the call that started it.
    pub fn on_subagent_fact(&mut self, session: SessionId, fact: &Fact) -> Option<CallId> {
        let child = self.subagents.get_mut(&session)?;
        let mut line = String::new();
        if let Fact::ToolCalled { tool, arguments, description, .. } = fact {
            let description = call_summary::describe_call(description, tool, arguments);
            child.call_count += 1;
            child.activity = description.progress_text();
            line = description.phrase();
        } else if let Fact::ModelText { text, .. } = fact {
            child.activity = "writing".to_owned();
            line = call_summary::first_line(text);
        } else if let Fact::PermissionAsked { .. } | Fact::QuestionAsked { .. } = fact {
            child.activity = "waiting for your answer".to_owned();
        } else if let Fact::PermissionAnswered { .. } | Fact::QuestionAnswered { .. } = fact {
            child.activity = "working".to_owned();
        } else if let Fact::TurnEnded { .. } = fact {
            child.activity.clear();
        } else {
            return None;
        }
        if !line.is_empty() {
            child.recent_lines.push_back(line);
            if child.recent_lines.len() > MAX_SUBAGENT_LINES {
                child.recent_lines.pop_front();
            }
        }
        child.call
    }
}
