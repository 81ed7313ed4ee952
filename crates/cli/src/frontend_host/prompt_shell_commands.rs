//! Runs the shell commands of a custom command before its prompt is sent, like `windlass run
//! --command`.
//!
//! Each command is a direct call by the user in the open session: same rules, same sandbox, same
//! log. If one does not run, the prompt is not sent.

use super::{BackgroundTaskResult, FrontendHost};
use crate::custom_command::{PreparedCommand, command_output, session_title};
use windlass_project::TemplateShellCommand;
use windlass_protocol::frontend_messages::{HostMessage, HostResponse};
use windlass_protocol::{CallOutcome, Event, Fact, Fault, SessionId, SessionOp, TurnEndReason};

/// Shell commands under way for one custom command.
pub(super) struct CustomCommandShellRun {
    /// The request to answer when all commands have run.
    request_id: u64,
    session: SessionId,
    /// The command, whose text is returned then with the outputs in it.
    command: PreparedCommand,
    outputs: Vec<String>,
    /// The turn of the current command, once it has started.
    turn: Option<u32>,
    outcome: Option<CallOutcome>,
}

impl CustomCommandShellRun {
    fn next_step(&self) -> Option<&TemplateShellCommand> {
        self.command.shell_steps.get(self.outputs.len())
    }

    /// Handles a session event. Returns the output when the current command has ended, or an error
    /// if it did not run.
    fn on_event(&mut self, event: &Event) -> Option<Result<String, ()>> {
        match event {
            Event::Fact(record) if record.session == self.session => match &record.fact {
                Fact::TurnStarted { turn, prompt: None } => {
                    (self.turn, self.outcome) = (Some(*turn), None);
                    None
                }
                Fact::CallSettled { outcome, .. } => {
                    self.outcome = Some(outcome.clone());
                    None
                }
                Fact::TurnEnded { turn, end } if self.turn == Some(*turn) => {
                    self.turn = None;
                    Some(match (self.outcome.take(), end) {
                        (Some(CallOutcome::Completed { output }), TurnEndReason::Completed) => {
                            Ok(command_output(&output))
                        }
                        _ => Err(()),
                    })
                }
                _ => None,
            },
            Event::Fact(_) | Event::Live(_) => None,
        }
    }
}

impl FrontendHost {
    /// Answers an `ExpandCommand` request, after the shell commands of the custom command have run.
    pub(super) async fn start_pre_commands(&mut self, id: u64, mut command: PreparedCommand) {
        if let Some(model) = command.model.take() {
            let is_changing = self.open_session.is_none() || !self.pending_changes.is_empty();
            self.command_model = is_changing.then(|| model.1.to_string());
            if let Some(open) = &self.open_session {
                // A stopped session ignores this; its end is reported anyway.
                open.handle.offer_model(model).await;
            }
        }
        let Some(first) = command.shell_steps.first() else {
            let PreparedCommand { text, settings, .. } = command;
            return self.send_answer(id, Ok(HostResponse::Prompt { text, settings }));
        };
        let Some(open) = &self.open_session else {
            let message = format!("cannot run `{}`: no session is open", first.command);
            return self.send_answer(id, Err(Fault::Config { message }));
        };
        let session = open.handle.session;
        let pre_commands = CustomCommandShellRun {
            request_id: id,
            session,
            command,
            outputs: Vec::new(),
            turn: None,
            outcome: None,
        };
        if self.pre_commands.is_some() {
            return self.answer_not_run(&pre_commands);
        }
        if open.handle.initial_head() == 0
            && self.last_active_session != Some(session)
            && let Some(title) = session_title(&pre_commands.command.text)
        {
            // Otherwise the first shell command would become the title.
            open.handle.send(SessionOp::RenameSession { title }).await;
        }
        self.pre_commands = Some(pre_commands);
        self.run_next_step().await;
    }

    /// Offers the `command_model` to a session that was opened since the command was expanded.
    pub(super) async fn offer_command_model(&mut self) {
        let Some(open) = &self.open_session else { return };
        let Some(name) = self.command_model.clone() else { return };
        // A further change may open another session; the first change is the one that is done.
        if self.pending_changes.len() <= 1 {
            self.command_model = None;
        }
        match self.state.command_model(name) {
            Ok(model) => {
                open.handle.offer_model(model).await;
            }
            Err(fault) => self.send_note(format!("the model of the command is not used: {fault}")),
        }
    }

    /// Runs the next command, or answers the request if all have run.
    async fn run_next_step(&mut self) {
        let (Some(pre_commands), Some(open)) = (&self.pre_commands, &self.open_session) else {
            return;
        };
        match pre_commands.next_step() {
            Some(step) => {
                let op = SessionOp::RunPromptCommand { command: step.command.clone() };
                let answer = open.handle.queue_op(op, Some(self.client.clone())).await;
                self.background_tasks.spawn(async move {
                    match answer.await {
                        Ok(Err(_)) => BackgroundTaskResult::PreCommandRejected,
                        Ok(Ok(_)) | Err(_) => BackgroundTaskResult::Nothing,
                    }
                });
            }
            None => {
                let (id, command) = (pre_commands.request_id, &pre_commands.command);
                let outputs =
                    command.shell_steps.iter().zip(pre_commands.outputs.iter().map(String::as_str));
                let text = TemplateShellCommand::insert_outputs(&command.text, outputs);
                let settings = command.settings.clone();
                self.pre_commands = None;
                self.send_answer(id, Ok(HostResponse::Prompt { text, settings }));
            }
        }
    }

    /// Continues with the next command when an event ends the current one.
    pub(super) async fn advance_pre_commands(&mut self, event: &Event) {
        match self.pre_commands.as_mut().and_then(|pre_commands| pre_commands.on_event(event)) {
            None => {}
            Some(Ok(output)) => {
                self.pre_commands
                    .iter_mut()
                    .for_each(|pre_commands| pre_commands.outputs.push(output.clone()));
                self.run_next_step().await;
            }
            Some(Err(())) => self.cancel_pre_commands(),
        }
    }

    /// Drops the remaining commands, because one did not run.
    pub(super) fn cancel_pre_commands(&mut self) {
        if let Some(pre_commands) = self.pre_commands.take() {
            self.answer_not_run(&pre_commands);
        }
    }

    /// Drops the remaining commands if their session is no longer open.
    pub(super) fn drop_pre_commands(&mut self) {
        let open = self.open_session.as_ref().map(|open| open.handle.session);
        if let Some(pre_commands) =
            self.pre_commands.take_if(|pre_commands| Some(pre_commands.session) != open)
        {
            self.answer_not_run(&pre_commands);
        }
    }

    fn answer_not_run(&mut self, pre_commands: &CustomCommandShellRun) {
        let command =
            pre_commands.next_step().map(|step| step.command.as_str()).unwrap_or_default();
        let text = format!("prompt not sent, because this command did not run: {command}");
        self.outbox.push_back(HostMessage::Notice { text });
        self.send_answer(pre_commands.request_id, Ok(HostResponse::Done));
    }
}
