//! Reports of the host as text in the linear mode (`/mcp`, `/permissions`, `/lsp`, `/plugins`,
//! `/stats`), and texts to copy (`/copy`).

use super::state::{LinearPendingResponse, LinearUi};
use crate::panel::copy_picker::{self, CopyableText};
use crate::panel::report_list;
use crate::transcript::CopyableMessage;
use windlass_protocol::display_text::{pluralize, to_one_line};
use windlass_protocol::frontend_messages::FrontendRequest;
use windlass_protocol::report::{ReportAction, ReportKind, ReportRow, ReportRowState};
use windlass_protocol::{MessagePart, MessageRole, SessionQuery, Transcript};

/// Limits the texts that `/copy` lists.
const MAX_LISTED_TEXTS: usize = 20;

impl LinearUi {
    /// Runs a report command: without arguments the list, with a number the details of that row,
    /// with `restart` or `revoke` and a number the action.
    pub(super) fn run_report_command(&mut self, report: ReportKind, arguments: &str) {
        let is_statistics = matches!(report, ReportKind::Statistics { .. });
        let (first, second) = arguments.trim().split_once(' ').unwrap_or((arguments.trim(), ""));
        let action = match first {
            "restart" => Some(ReportAction::Restart),
            "revoke" => Some(ReportAction::Revoke),
            _ => None,
        };
        let number = if action.is_some() { second.trim() } else { first };
        if number.is_empty() || is_statistics {
            return self.send_request(
                FrontendRequest::Report { report, settled: true },
                LinearPendingResponse::Report(report),
            );
        }
        let index = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let row = index.and_then(|index| self.listed_report.get(index)).cloned();
        match (row, action) {
            (None, _) => self.print("Unknown number; use the command without one to list all."),
            (Some(row), None) if row.details.is_empty() => {
                self.print("There is nothing more to show about it.");
            }
            (Some(row), None) => self.print_quoted(&row.details, usize::MAX),
            (Some(row), Some(action)) if row.actions.contains(&action) => {
                let request = FrontendRequest::RunReportAction { report, item: row.id, action };
                self.send_request(request, LinearPendingResponse::Report(report));
            }
            (Some(_), Some(_)) => self.print("This item has no such action."),
        }
    }

    /// Prints the rows of a report with their numbers.
    pub(super) fn print_report(&mut self, pending: &LinearPendingResponse, rows: Vec<ReportRow>) {
        let LinearPendingResponse::Report(report) = pending else { return };
        if rows.is_empty() {
            self.print(report_list::empty_text(*report));
        }
        let mut last_group = None;
        for (index, row) in rows.iter().enumerate() {
            if last_group != Some(row.group) && !row.group.title().is_empty() {
                self.print(&format!("{}:", row.group.title()));
            }
            last_group = Some(row.group);
            self.print_quoted(&format!("{}. {}", index + 1, describe_row(row)), 1);
        }
        let has = |action| rows.iter().any(|row| row.actions.contains(&action));
        let name = match report {
            ReportKind::McpServers => "mcp",
            ReportKind::Permissions { .. } => "permissions",
            ReportKind::LanguageServers => "lsp",
            ReportKind::Plugins => "plugins",
            ReportKind::Statistics { .. } => "stats",
        };
        if rows.iter().any(|row| !row.details.is_empty()) {
            self.print(&format!("Type /{name} NUMBER to show more about one."));
        }
        if has(ReportAction::Restart) {
            self.print(&format!("Type /{name} restart NUMBER to restart one."));
        }
        if has(ReportAction::Revoke) {
            self.print(&format!("Type /{name} revoke NUMBER to revoke an approval."));
        }
        self.listed_report = rows;
    }

    /// Runs `/copy`: requests the session to list its answers, prompts and code blocks, or to print
    /// the one with a number.
    pub(super) fn run_copy_command(&mut self, arguments: &str) {
        let Some(session) = self.state.session else {
            return self.print("Nothing to copy yet.");
        };
        let query = SessionQuery::Transcript { session };
        self.send_request(
            FrontendRequest::Query { query },
            LinearPendingResponse::Copy(arguments.trim().parse().ok()),
        );
    }

    /// Prints the texts that can be copied, or one of them alone, so that the terminal can select
    /// it.
    pub(super) fn print_copyable(&mut self, number: Option<usize>, transcript: &Transcript) {
        let mut messages = Vec::new();
        let newest_first: Vec<_> = transcript.messages.iter().collect();
        for message in newest_first.into_iter().rev() {
            let is_answer = match message.role {
                MessageRole::Assistant => true,
                MessageRole::User => false,
                MessageRole::Context => continue,
            };
            for part in message.parts.iter().rev() {
                if let MessagePart::Text { text, .. } = part
                    && !text.trim().is_empty()
                {
                    messages.push(CopyableMessage { is_answer, text: text.clone() });
                }
            }
        }
        let texts = copy_picker::copyable_texts(messages);
        let texts: Vec<CopyableText> = texts.into_iter().take(MAX_LISTED_TEXTS).collect();
        if texts.is_empty() {
            return self.print("Nothing to copy yet.");
        }
        if let Some(text) = number.and_then(|number| texts.get(number.checked_sub(1)?)) {
            return self.print_quoted(&text.text, usize::MAX);
        }
        for (index, text) in texts.iter().enumerate() {
            let first = text.text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
            let size = pluralize(text.text.lines().count(), "line");
            let first = to_one_line(first);
            self.print_quoted(&format!("{}. {}, {size}: {first}", index + 1, text.kind), 1);
        }
        self.print("Type /copy NUMBER to print one of them alone.");
    }
}

/// Describes a row in one line: name, state, columns and note.
fn describe_row(row: &ReportRow) -> String {
    let state = match row.state {
        None
        | Some(
            ReportRowState::Active
            | ReportRowState::Idle
            | ReportRowState::Starting
            | ReportRowState::Off,
        ) => "",
        Some(ReportRowState::Warning) => "warning",
        Some(ReportRowState::Failed) => "error",
    };
    let parts = [row.name.as_str(), state].into_iter();
    let parts = parts.chain(row.columns.iter().map(String::as_str)).chain([row.note.as_str()]);
    let parts: Vec<String> = parts.filter(|part| !part.is_empty()).map(to_one_line).collect();
    parts.join(", ")
}
