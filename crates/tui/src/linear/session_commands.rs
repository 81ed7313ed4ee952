//! The `/` commands of the linear mode that look into the session: `/rewind`, `/tasks`, `/context`
//! and `/find`.

use super::state::{LinearPendingResponse, LinearUi};
use crate::app::status::format_count;
use windlass_protocol::display_text::{pluralize, to_one_line};
use windlass_protocol::frontend_messages::FrontendRequest;
use windlass_protocol::session_stream::OpenSessionState;
use windlass_protocol::{
    ContextUsagePart, LogSeq, MessagePart, MessageRole, PromptHistoryRow, SessionId, SessionOp,
    SessionQuery, Transcript,
};

/// Limit for the prompts that `/rewind` lists and the lines that `/find` prints.
const MAX_LISTED: usize = 20;

impl LinearUi {
    /// Runs `/rewind`: lists the prompts, or goes back to the one with a number.
    pub(super) fn run_rewind_command(&mut self, session: SessionId, arguments: &str) {
        if arguments.is_empty() {
            let query = SessionQuery::Prompts { session: Some(session), limit: None };
            return self
                .send_request(FrontendRequest::Query { query }, LinearPendingResponse::Printed);
        }
        let number = arguments.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        match number.and_then(|number| self.listed_prompts.get(number)) {
            Some((to, _)) => self.send_op(SessionOp::Rewind { to: *to }),
            None => self.print("Unknown number; /rewind lists the prompts."),
        }
    }

    /// Requests the sessions of this folder, to print them with the state of those that are open.
    pub(super) fn request_sessions(&mut self, open_sessions: Vec<OpenSessionState>) {
        self.open_sessions = open_sessions;
        let query = SessionQuery::Sessions { workspace: Some(self.state.host_status.root.clone()) };
        self.send_request(FrontendRequest::Query { query }, LinearPendingResponse::Printed);
    }

    /// Reports a rewind, with the prompt that it took back. The listed numbers are no longer valid.
    pub(super) fn on_rewound(&mut self, to: LogSeq) {
        self.print("Rewound. Files stay as they are.");
        let listed_prompts = std::mem::take(&mut self.listed_prompts);
        if let Some((_, text)) = listed_prompts.iter().find(|(position, _)| *position == to) {
            self.print("The prompt was:");
            self.print_quoted(text, usize::MAX);
        }
    }

    /// Prints the prompts that `/rewind` can go back to, newest first.
    pub(super) fn print_prompts(&mut self, prompts: &[PromptHistoryRow]) {
        // The answer may be about a session that was left meanwhile.
        let prompts = prompts.iter().filter(|row| Some(row.session) == self.state.session);
        let prompts = prompts.filter_map(|row| Some((row.rewind_to?, row.text.clone())));
        self.listed_prompts = prompts.take(MAX_LISTED).collect();
        let lines = self.listed_prompts.iter().enumerate();
        let lines: Vec<String> = lines
            .map(|(index, (_, text))| format!("{}. {}", index + 1, to_one_line(text)))
            .collect();
        for line in &lines {
            self.print_quoted(line, 1);
        }
        self.print(match lines.is_empty() {
            true => "No prompts yet.",
            false => "Type /rewind NUMBER to go back to before one; later messages are dropped.",
        });
    }

    /// Prints the subagents of the session.
    pub(super) fn print_subagents(&mut self) {
        let describe = |child: &crate::session_state::SubagentProgress| {
            let activity = if child.is_done { "done" } else { child.activity.as_str() };
            let calls = pluralize(child.call_count as usize, "call");
            format!("{}, {calls}: {activity}", child.agent)
        };
        let lines: Vec<String> = self.state.subagents.values().map(describe).collect();
        if lines.is_empty() {
            return self.print("No subagents.");
        }
        for line in lines {
            self.print_quoted(&line, 1);
        }
    }

    /// Prints what fills the context window.
    pub(super) fn print_context(&mut self, window: Option<u64>, parts: &[ContextUsagePart]) {
        let total: u64 = parts.iter().map(|part| part.tokens).sum();
        let total = format_count(total);
        self.print(&match window {
            Some(window) => format!("context: {total} of {} tokens", format_count(window)),
            None => format!("context: {total} tokens"),
        });
        for part in parts {
            let line = format!("{}: {}", part.name, format_count(part.tokens));
            self.print_quoted(&line, 1);
        }
    }

    /// Runs `/find`: requests the conversation to search it for a text.
    pub(super) fn run_find_command(&mut self, session: SessionId, text: &str) {
        if text.is_empty() {
            return self.print("Usage: /find TEXT");
        }
        let request = FrontendRequest::Query { query: SessionQuery::Transcript { session } };
        self.send_request(request, LinearPendingResponse::Find(text.to_owned()));
    }

    /// Prints the last lines of prompts and answers that contain a text.
    pub(super) fn print_matches(&mut self, text: &str, transcript: &Transcript) {
        let wanted = text.to_lowercase();
        let mut lines = Vec::new();
        for message in &transcript.messages {
            let speaker = match message.role {
                MessageRole::Assistant => "model",
                MessageRole::User => "you",
                MessageRole::Context => continue,
            };
            for part in &message.parts {
                let MessagePart::Text { text, .. } = part else { continue };
                let found = text.lines().filter(|line| line.to_lowercase().contains(&wanted));
                lines.extend(found.map(|line| format!("{speaker}: {}", line.trim())));
            }
        }
        self.print(&format!("{} found", pluralize(lines.len(), "line")));
        let hidden = lines.len().saturating_sub(MAX_LISTED);
        for line in lines.iter().skip(hidden) {
            self.print_quoted(line, 1);
        }
    }
}
