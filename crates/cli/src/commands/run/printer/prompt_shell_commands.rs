//! Runs the shell commands whose output goes into a prompt, before the prompt is sent.
//!
//! Each command is a direct call by the user in the same session as the prompt: same rules, same
//! sandbox, same log. If one does not run, the prompt is not sent.

use super::super::run_session::{RunEvents, RunSession};
use super::{RunWork, TurnPrinter, summarize_outcome};
use crate::custom_command::command_output;
use crate::terminal::output;
use crate::terminal::question_queue::CtrlC;
use windlass_project::TemplateShellCommand;
use windlass_protocol::{CallOutcome, Fault, SessionOp, TurnEndReason};

/// The reason why the prompt was not sent.
enum CustomCommandShellError {
    NotRun(TurnEndReason),
    /// The session stopped by itself.
    SessionLost,
}

impl TurnPrinter {
    /// Runs the pre-commands, sends the operation and watches until it is done. Returns `None` if
    /// the session stopped by itself.
    pub(in super::super) async fn run_to_end(
        &mut self,
        session: &RunSession,
        mut events: RunEvents,
        (steps, mut op): (&[TemplateShellCommand], Option<SessionOp>),
    ) -> Result<Option<TurnEndReason>, Fault> {
        let mut ctrl_c =
            CtrlC::new().map_err(|error| Fault::Internal { message: error.to_string() })?;
        let outputs =
            match self.run_pre_commands(steps, (session, &mut events, &mut ctrl_c)).await? {
                Ok(outputs) => outputs,
                Err(CustomCommandShellError::NotRun(end)) => return Ok(Some(end)),
                Err(CustomCommandShellError::SessionLost) => return Ok(None),
            };
        if let Some(SessionOp::Prompt { text, .. }) = &mut op {
            *text = TemplateShellCommand::insert_outputs(
                text,
                steps.iter().zip(outputs.iter().map(String::as_str)),
            );
        }
        self.is_direct_call =
            matches!(op, Some(SessionOp::CallTool { .. } | SessionOp::Undo { .. }));
        self.work = RunWork::Resumed;
        if let Some(op) = op {
            self.send_op(op, session).await;
        }
        self.watch_turn(session, &mut events, &mut ctrl_c).await
    }

    /// Runs the commands one after another and returns the `command_output` of each.
    async fn run_pre_commands(
        &mut self,
        steps: &[TemplateShellCommand],
        (session, events, ctrl_c): (&RunSession, &mut RunEvents, &mut CtrlC),
    ) -> Result<Result<Vec<String>, CustomCommandShellError>, Fault> {
        let mut outputs = Vec::new();
        self.is_direct_call = !steps.is_empty();
        for TemplateShellCommand { command, .. } in steps {
            let op = SessionOp::RunPromptCommand { command: command.clone() };
            self.last_outcome = None;
            self.activity.clone_from(command);
            self.send_op(op, session).await;
            let Some(end) = self.watch_turn(session, events, ctrl_c).await? else {
                return Ok(Err(CustomCommandShellError::SessionLost));
            };
            match (&self.last_outcome, end) {
                (Some(outcome @ CallOutcome::Completed { output }), TurnEndReason::Completed) => {
                    outputs.push(command_output(output));
                    self.print_line(&format!("• {command}: {}", summarize_outcome(outcome)));
                }
                (_, end) => {
                    output::print_note(&format!(
                        "prompt not sent, because this command did not run: {command}"
                    ));
                    // A command that fails to start counts as `Denied`.
                    let end =
                        if end == TurnEndReason::Completed { TurnEndReason::Denied } else { end };
                    return Ok(Err(CustomCommandShellError::NotRun(end)));
                }
            }
        }
        (self.is_direct_call, self.last_outcome) = (false, None);
        self.activity = "waiting for the model".into();
        Ok(Ok(outputs))
    }
}
