//! The `/` commands of the linear mode.

use super::state::{DeferredSessionAction, LinearPendingResponse, LinearUi};
use crate::app::side_panel::{SERVER_HEADINGS, state_note};
use crate::app::status::session_facts;
use crate::keys::{COMMAND_TABLE, UiCommand, find_slash_command};
use crate::panel::jobs::describe_job;
use crate::panel::session_picker::describe_open_session;
use crate::panel::{report_list, session_tree};
use crate::questions::queue::PreApproval;
use crate::ui_context::UiEffect;
use std::collections::BTreeSet;
use windlass_protocol::display_text::{pluralize, to_one_line};
use windlass_protocol::frontend_messages::{
    DoctorCheckStatus, FrontendRequest, HostResponse, ListRow, ListedItemKind, ModelChoiceScope,
};
use windlass_protocol::{
    DiffDirection, PermissionMode, QueryReply, SessionOp, SessionQuery, TrustDecision, TrustReview,
    UndoScope,
};

/// Costs are stored in millionths of a dollar.
const MICRODOLLARS_PER_DOLLAR: u64 = 1_000_000;

/// The commands that only the screen has. The linear mode names what to do instead, and `/help`
/// leaves them out.
pub(super) const SCREEN_COMMANDS: [UiCommand; 3] =
    [UiCommand::Theme, UiCommand::OpenEditor, UiCommand::ToggleDetails];

impl LinearUi {
    pub(super) fn run_command(&mut self, name: &str, arguments: &str) {
        // Another command discards the undo preview, so that a later `y` cannot confirm it.
        self.pending_undo = None;
        let Some(command) = find_slash_command(name).map(|entry| entry.command) else {
            return self.run_custom_command(name, arguments);
        };
        match command {
            UiCommand::Quit => self.effects.push(UiEffect::Quit),
            UiCommand::Help | UiCommand::CommandPalette => self.print_help(arguments),
            UiCommand::Mode => self.run_mode_command(arguments),
            UiCommand::Sessions => self.run_sessions_command(arguments),
            UiCommand::NewSession => self.start_session(DeferredSessionAction::Nothing),
            UiCommand::Rename if arguments.is_empty() => self.print("Usage: /rename TITLE"),
            UiCommand::Model => self.run_model_command(arguments),
            UiCommand::Retry if self.state.can_continue() => {
                self.send_op(SessionOp::prompt(crate::error_hints::RETRY_PROMPT))
            }
            UiCommand::Retry => self.print("Nothing to retry: the last turn did not fail."),
            UiCommand::Goal => self.run_custom_command("goal", arguments),
            UiCommand::Init => self.run_custom_command("init", arguments),
            UiCommand::Review => self.run_custom_command("review", arguments),
            UiCommand::Agent => self.run_agent_command(arguments),
            UiCommand::Effort => self.run_effort_command(arguments),
            UiCommand::Skills => self.list_items(ListedItemKind::Skills, "No skills found."),
            UiCommand::Hooks => self.list_items(ListedItemKind::Hooks, "No hooks are set."),
            UiCommand::Config => self.list_items(ListedItemKind::Config, "No settings found."),
            UiCommand::Doctor => {
                self.send_request(FrontendRequest::Doctor, LinearPendingResponse::Doctor)
            }
            UiCommand::Login => self.print(
                "An API key typed here could be read by others. Leave with /quit, then run \
                 `windlass auth login PROVIDER` and `windlass --linear --continue`.",
            ),
            UiCommand::Trust => match arguments {
                "yes" | "ask" => {
                    let (decision, message) = match arguments {
                        "ask" => (
                            TrustDecision::TrustAndAsk,
                            "This folder is trusted; the mode stays ask.",
                        ),
                        _ => (TrustDecision::Trust, "This folder is trusted."),
                    };
                    self.send_request(
                        FrontendRequest::SetTrust { decision, seen: None },
                        LinearPendingResponse::SuccessMessage(message.to_owned()),
                    );
                }
                "no" => {
                    let request =
                        FrontendRequest::SetTrust { decision: TrustDecision::Decline, seen: None };
                    self.send_request(
                        request,
                        LinearPendingResponse::SuccessMessage(
                            "This folder is not trusted.".to_owned(),
                        ),
                    );
                }
                _ => {
                    self.send_request(FrontendRequest::ReviewTrust, LinearPendingResponse::Printed)
                }
            },
            UiCommand::Cost => {
                let usage = self.state.usage;
                let cost = self.state.cost.0 as f64 / MICRODOLLARS_PER_DOLLAR as f64;
                match self.state.cost.0 {
                    0 => self.print("Price unknown for this model, or free."),
                    _ => self.print(&format!("This session cost {cost:.4} dollars.")),
                }
                self.print(&format!("Tokens: {} input, {} output.", usage.input, usage.output));
            }
            UiCommand::Todos => {
                let todos: Vec<String> = self.state.todos.iter().map(ToString::to_string).collect();
                match todos.is_empty() {
                    true => self.print("The todo list is empty."),
                    false => self.print_quoted(&todos.join("\n"), usize::MAX),
                }
            }
            UiCommand::SidePanel => self.print_side_panel(),
            UiCommand::Subagents => self.print_subagents(),
            UiCommand::Theme => self.print(
                "Linear mode prints without colors. The theme of the screen is `tui.theme` in the \
                 config.",
            ),
            UiCommand::OpenEditor => self.print(
                "Type the prompt here: a line that ends with \\ continues on the next line. A text \
                 from a file: @FILE attaches it.",
            ),
            UiCommand::ToggleDetails => self.print(
                "Linear mode collapses nothing. `windlass session show` prints the whole session.",
            ),
            UiCommand::CopyAnswer => self.run_copy_command(arguments),
            command => match report_list::report_of(command, arguments, &self.state) {
                Some(report) => self.run_report_command(report, arguments),
                None => self.run_session_command(command, arguments),
            },
        }
    }

    /// Prints the content of the side panel.
    fn print_side_panel(&mut self) {
        for (label, value) in session_facts(&self.state) {
            self.print_quoted(&format!("{label}: {value}"), 1);
        }
        let changed: Vec<String> =
            self.state.changed_files().map(|path| format!("Changed: {path}")).collect();
        self.print_quoted(&changed.join("\n"), usize::MAX);
        for (kind, heading) in SERVER_HEADINGS {
            let servers = self.state.host_status.servers.iter();
            let names = servers.filter(|server| server.kind == kind);
            let names: Vec<String> = names
                .map(|server| format!("{}{}", server.name, state_note(server.state)))
                .collect();
            if !names.is_empty() {
                self.print_quoted(&format!("{heading}: {}", names.join(", ")), 1);
            }
        }
    }

    /// Runs a command that needs a session, such as `/fork` or `/undo`.
    fn run_session_command(&mut self, command: UiCommand, arguments: &str) {
        let Some(session) = self.state.session else {
            return self.print("No session yet; send a prompt first.");
        };
        let changes = |scope, direction| FrontendRequest::Query {
            query: SessionQuery::Changes { session, scope, direction },
        };
        match command {
            UiCommand::Fork => {
                self.send_request(
                    FrontendRequest::ForkSession { session, turn: None },
                    LinearPendingResponse::SessionOpened(DeferredSessionAction::Nothing),
                );
            }
            UiCommand::Rename => {
                self.send_op(SessionOp::RenameSession { title: arguments.to_owned() })
            }
            UiCommand::Compact => self.send_op(SessionOp::Compact),
            UiCommand::Detach => self.run_detach_command(session),
            UiCommand::Undo => self.send_request(
                changes(UndoScope::LastTurn, DiffDirection::Reverse),
                LinearPendingResponse::UndoPreview,
            ),
            UiCommand::Redo => self.send_request(
                changes(UndoScope::LastUndo, DiffDirection::Reverse),
                LinearPendingResponse::UndoPreview,
            ),
            UiCommand::Jobs => {
                let query = SessionQuery::Jobs { session };
                self.send_request(FrontendRequest::Query { query }, LinearPendingResponse::Printed);
            }
            UiCommand::Diff => self.send_request(
                changes(UndoScope::All, DiffDirection::Forward),
                LinearPendingResponse::Printed,
            ),
            UiCommand::Export => {
                let file = arguments.trim().to_owned();
                self.send_request(
                    FrontendRequest::ExportSession { session, file },
                    LinearPendingResponse::WrittenPath,
                );
            }
            UiCommand::Rewind => self.run_rewind_command(session, arguments),
            UiCommand::Context => {
                let query = SessionQuery::Context { session };
                self.send_request(FrontendRequest::Query { query }, LinearPendingResponse::Printed);
            }
            UiCommand::FindText => self.run_find_command(session, arguments),
            // Every `/` command has its own arm.
            _ => self.print("This command has no effect in linear mode."),
        }
    }

    /// Runs a custom command. It opens a session first, because the command may have to run shell
    /// commands.
    fn run_custom_command(&mut self, name: &str, arguments: &str) {
        self.run_in_session(DeferredSessionAction::CustomCommand {
            name: name.to_owned(),
            arguments: arguments.to_owned(),
        });
    }

    /// Prints all commands, or those that contain a text.
    fn print_help(&mut self, filter: &str) {
        self.print(
            "Type what to do and press Enter. A line that ends with \\ continues on the \
                    next line.",
        );
        self.print("! runs a shell command. Ctrl-C stops the model; press it twice to quit.");
        let commands = COMMAND_TABLE
            .iter()
            .filter(|entry| entry.is_slash_command && !SCREEN_COMMANDS.contains(&entry.command));
        let lines = commands.map(|entry| format!("/{}: {}", entry.name, entry.description));
        let filter = filter.trim().to_lowercase();
        let lines: Vec<String> =
            lines.filter(|line| line.to_lowercase().contains(&filter)).collect();
        self.print(&lines.join("\n"));
        self.print("Your custom commands also work.");
    }

    fn run_mode_command(&mut self, arguments: &str) {
        let Ok(mode) = arguments.parse::<PermissionMode>() else {
            let max_mode = self.state.host_status.max_mode;
            let available = PermissionMode::ALL.into_iter().filter(|mode| *mode <= max_mode);
            let names: Vec<String> = available.map(|mode| format!("/mode {mode}")).collect();
            let text = format!("mode: {}. Available: {}", self.state.mode, names.join(", "));
            return self.print(&text);
        };
        match self.state.session {
            Some(_) => self.send_op(SessionOp::SetMode { mode }),
            None => {
                self.state.mode = mode;
                self.print(&format!("mode: {mode}"));
            }
        }
    }

    fn list_items(&mut self, list: ListedItemKind, empty_text: &'static str) {
        let pending = LinearPendingResponse::Listing(empty_text);
        self.send_request(FrontendRequest::List { list }, pending);
    }

    /// Switches the agent of the session, or of the next one; lists the agents without a name.
    fn run_agent_command(&mut self, agent: &str) {
        match (agent, self.state.session) {
            ("", _) => {
                self.print(&format!("agent: {}. /agent NAME switches.", self.state.agent));
                self.list_items(ListedItemKind::Agents, "No agents found.");
            }
            (agent, Some(_)) => self.send_op(SessionOp::SetAgent { agent: agent.to_owned() }),
            (agent, None) => {
                agent.clone_into(&mut self.state.agent);
                self.print(&format!("agent: {agent}"));
            }
        }
    }

    /// Switches the reasoning effort or variant; lists them without a name.
    fn run_effort_command(&mut self, effort: &str) {
        let status = &self.state.host_status;
        if effort.is_empty() {
            let current = status.effort.as_deref().unwrap_or("default");
            let efforts: Vec<&str> = status.efforts.iter().map(String::as_str).collect();
            let text = format!("effort: {current}. Available: default, {}", efforts.join(", "));
            return self.print(text.trim_end_matches(", "));
        }
        let request = FrontendRequest::SetEffort {
            effort: Some(effort.to_owned()).filter(|effort| effort != "default"),
        };
        let message = format!("The effort is now {effort}.");
        self.send_request(request, LinearPendingResponse::SuccessMessage(message));
    }

    fn run_model_command(&mut self, model: &str) {
        if model.is_empty() {
            return self.send_request(
                FrontendRequest::List { list: ListedItemKind::Models },
                LinearPendingResponse::Printed,
            );
        }
        let request = FrontendRequest::SetModel {
            model: model.to_owned(),
            persist: ModelChoiceScope::Session,
        };
        self.send_request(
            request,
            LinearPendingResponse::SuccessMessage(format!("The model is now {model}.")),
        );
    }

    fn run_sessions_command(&mut self, arguments: &str) {
        if arguments.is_empty() {
            let request = FrontendRequest::ListOpenSessions;
            return self.send_request(request, LinearPendingResponse::OpenSessions);
        }
        let number = arguments.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        match number.and_then(|number| self.listed_sessions.get(number).copied()) {
            Some(session) => self.send_request(
                FrontendRequest::OpenSession { session, resume: false },
                LinearPendingResponse::SessionOpened(DeferredSessionAction::Nothing),
            ),
            None => self.print("Unknown session number; /sessions lists the sessions."),
        }
    }

    /// Prints a `HostResponse` to a request of this mode.
    pub(super) fn print_response(
        &mut self,
        pending: &LinearPendingResponse,
        response: HostResponse,
    ) {
        match response {
            HostResponse::Reply { reply: QueryReply::Sessions { sessions } } => {
                let rows = session_tree::flatten_tree(&sessions, &BTreeSet::new());
                let rows: Vec<_> = rows.into_iter().take(20).collect();
                self.listed_sessions = rows.iter().map(|row| row.summary.session).collect();
                for (number, row) in rows.iter().enumerate() {
                    let subagents = match row.subagent_count {
                        0 => String::new(),
                        count => format!(", {}", pluralize(count, "subagent")),
                    };
                    let fork = match row.depth {
                        0 => String::new(),
                        _ => format!(", fork, level {}", row.depth),
                    };
                    let title = to_one_line(&row.summary.title);
                    let state = describe_open_session(&self.open_sessions, row.summary.session);
                    let state = state.map(|state| format!(", {state}")).unwrap_or_default();
                    let line = format!("{}. {title}{fork}{subagents}{state}", number + 1);
                    self.print_quoted(&line, 1);
                }
                self.print(match rows.is_empty() {
                    true => "No sessions yet.",
                    false => "Type /sessions NUMBER to open one.",
                });
            }
            HostResponse::Reply { reply: QueryReply::Changes { facts, diff } } => {
                if diff.trim().is_empty() {
                    return self.print("No changes.");
                }
                self.print_quoted(&crate::render::describe_diff(&diff), usize::MAX);
                if *pending == LinearPendingResponse::UndoPreview && !facts.is_empty() {
                    self.pending_undo = Some((facts, diff));
                    self.print("Answer y to do this; anything else changes nothing.");
                }
            }
            HostResponse::Reply { reply: QueryReply::Jobs { jobs } } => {
                for job in &jobs {
                    self.print(&format!("job {}, {}:", job.id, describe_job(job)));
                    self.print_quoted(&job.command, 1);
                    self.print_quoted(&job.output_tail, 3);
                }
                if jobs.is_empty() {
                    self.print("No background commands.");
                }
            }
            HostResponse::Reply { reply: QueryReply::Transcript { transcript } } => match pending {
                LinearPendingResponse::Copy(number) => self.print_copyable(*number, &transcript),
                LinearPendingResponse::Find(text) => self.print_matches(text, &transcript),
                _ => {}
            },
            HostResponse::Reply { reply: QueryReply::Prompts { prompts } } => {
                self.print_prompts(&prompts)
            }
            HostResponse::Reply { reply: QueryReply::Context { context_window, parts, .. } } => {
                self.print_context(context_window, &parts)
            }
            HostResponse::Rows { rows } if *pending == LinearPendingResponse::Doctor => {
                for ListRow { name, note, status } in &rows {
                    let status = match status {
                        DoctorCheckStatus::Ok => "ok",
                        DoctorCheckStatus::Degraded => "warning",
                        DoctorCheckStatus::Broken => "missing",
                    };
                    self.print_quoted(&format!("{name}, {status}: {note}"), 1);
                }
            }
            HostResponse::Rows { rows } => {
                if let (LinearPendingResponse::Listing(empty_text), true) =
                    (pending, rows.is_empty())
                {
                    self.print(empty_text);
                }
                for ListRow { name, note, .. } in &rows {
                    let line = format!("{name}: {note}");
                    self.print_quoted(line.trim_end_matches(": "), 1);
                }
            }
            HostResponse::Models { models } => {
                for model in &models {
                    let marks = [
                        (model.name == self.state.model, " (current)"),
                        (model.is_favorite, " (favorite)"),
                        (model.is_recent, " (recent)"),
                    ];
                    let marks = marks.into_iter().filter(|(is_set, _)| *is_set);
                    let marks: String = marks.map(|(_, mark)| mark).collect();
                    self.print_quoted(&format!("{}{marks}", model.name), 1);
                }
                self.print("Type /model NAME to choose one.");
            }
            HostResponse::Report { rows } => self.print_report(pending, rows),
            HostResponse::TrustReview { review } => self.print_trust(&review),
            _ => {}
        }
    }

    fn print_trust(&mut self, review: &TrustReview) {
        if let Some(warning) = review.warning() {
            self.print(warning);
        }
        if let Some(changes) = review.changes.as_ref().filter(|changes| !changes.is_empty()) {
            self.print(TrustReview::CHANGES_HEADING);
            self.print_quoted(&changes.join("\n"), usize::MAX);
        }
        self.print(&review.introduction("This folder"));
        self.print_quoted(&review.requested_actions.join("\n"), usize::MAX);
        if review.is_trusted() {
            self.print(TrustReview::REVOKE_EFFECTS);
            return self.print("The folder is trusted. Type /trust no to revoke trust.");
        }
        review.effects().iter().for_each(|effect| self.print(effect));
        self.print(review.decline_effect());
        for decision in review.answers() {
            let word = match decision {
                TrustDecision::Trust => "yes",
                TrustDecision::TrustAndAsk => "ask",
                TrustDecision::Decline => "no",
            };
            self.print(&format!("/trust {word}: {}", review.answer_label(decision)));
        }
    }

    /// Handles the line after an undo preview: `y` or `yes` confirms, anything else cancels.
    pub(super) fn confirm_undo(&mut self, text: &str) {
        let Some((facts, diff)) = self.pending_undo.take() else { return };
        match text {
            "y" | "yes" => {
                self.questions.pre_approve(PreApproval::Undo(diff));
                self.send_op(SessionOp::Undo { facts });
            }
            _ => self.print("Canceled: nothing was changed, and nothing was sent to the model."),
        }
    }
}
