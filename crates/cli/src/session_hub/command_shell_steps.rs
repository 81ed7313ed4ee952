//! Runs the shell commands of a custom command before its prompt is sent, like `windlass run
//! --command`.
//!
//! Each command is a direct call by the user in the open session: same rules, same sandbox, same
//! log. If one does not run, the prompt is not sent.

use super::OpenSession;
use crate::custom_command::{PreparedCommand, command_output, session_title};
use windlass_engine::{OpSender, SessionHandle};
use windlass_project::TemplateShellCommand;
use windlass_protocol::frontend_messages::HostResponse;
use windlass_protocol::{
    CallOutcome, Event, Fact, Fault, LogPosition, OpRequest, SessionOp, TurnEndReason,
};

/// Returns the prompt of a custom command, after its shell commands have run.
pub(super) async fn prompt_of_command(
    command: PreparedCommand,
    open: Option<&OpenSession>,
    sender: &OpSender,
) -> Result<HostResponse, Fault> {
    let PreparedCommand { text, settings, shell_steps } = command;
    let Some(first) = shell_steps.first() else {
        return Ok(HostResponse::Prompt { text, settings });
    };
    let Some((open, handle)) = open.and_then(|open| Some((open, open.handle()?))) else {
        let message = format!("cannot run `{}`: no session is open", first.command);
        return Err(Fault::Config { message });
    };
    let Ok(_running) = open.command_steps.try_lock() else { return Err(not_run(first)) };
    if handle.activity().borrow().head == 0
        && let Some(title) = session_title(&text)
    {
        // Otherwise the first shell command would become the title.
        handle.send(SessionOp::RenameSession { title }).await;
    }
    let mut outputs = Vec::new();
    for step in &shell_steps {
        outputs.push(run_step(&handle, step, sender).await.ok_or_else(|| not_run(step))?);
    }
    let outputs = shell_steps.iter().zip(outputs.iter().map(String::as_str));
    let text = TemplateShellCommand::insert_outputs(&text, outputs);
    Ok(HostResponse::Prompt { text, settings })
}

fn not_run(step: &TemplateShellCommand) -> Fault {
    let message = format!("prompt not sent, because this command did not run: {}", step.command);
    Fault::Config { message }
}

/// Runs one command, and returns its output if it succeeded in running.
async fn run_step(
    handle: &SessionHandle,
    step: &TemplateShellCommand,
    sender: &OpSender,
) -> Option<String> {
    let head = handle.activity().borrow().head;
    let mut watcher = handle.watch(LogPosition::unchecked(head).into()).await;
    let id = windlass_engine::new_op_id();
    let op = SessionOp::RunPromptCommand { command: step.command.clone() };
    handle.submit(OpRequest { id, op }, Some(sender.clone())).await.ok()?;
    // Other clients may run commands of their own at the same time.
    let (mut own_turn, mut own_call, mut outcome) = (None, None, None);
    while let Ok(Some(event)) = watcher.next().await {
        let Event::Fact(record) = &*event else { continue };
        if record.session != handle.session {
            continue;
        }
        let is_own = record.origin.as_ref().is_some_and(|origin| origin.op == id);
        match &record.fact {
            Fact::TurnStarted { turn, .. } if is_own => own_turn = Some(*turn),
            Fact::ToolCalled { call, .. } if is_own => own_call = Some(*call),
            Fact::CallSettled { call, outcome: settled, .. } if own_call == Some(*call) => {
                outcome = Some(settled.clone());
            }
            Fact::TurnEnded { turn, end } if own_turn == Some(*turn) => {
                return match (outcome, end) {
                    (Some(CallOutcome::Completed { output }), TurnEndReason::Completed) => {
                        Some(command_output(&output))
                    }
                    _ => None,
                };
            }
            _ => {}
        }
    }
    None
}
