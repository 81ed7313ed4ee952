//! `job`: reads, awaits, writes to and kills a command in the background.

use crate::bash::{describe_exit, format_notes, resolve_timeout};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use std::time::Duration;
use windlass_protocol::{CallDescription, OutputDisplay, ToolAccess, ToolOutput};
use windlass_sandbox::Job;
use windlass_toolkit::{CallContext, CallFailure, StepContext, Tool, ToolDefinition};

/// The timeout of a `wait` that sets none.
const DEFAULT_WAIT_MS: u64 = 60_000;

/// Time given to a job to react to a `write` before its output is read.
const WRITE_REPLY_TIMEOUT: Duration = Duration::from_millis(300);

/// The `job` tool.
pub struct JobTool;

/// Input of the `job` tool.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JobInput {
    /// Job id.
    id: u64,
    /// The action.
    action: JobAction,
    /// For `write`: the exact input. End a line with a newline.
    input: Option<String>,
    /// For `wait`: milliseconds, at most 600000.
    #[schemars(range(min = 1))]
    timeout: Option<u64>,
}

/// An action on a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobAction {
    /// Return output since the last call.
    Output,
    /// Wait for its end or the timeout, then return new output.
    Wait,
    /// Send it input.
    Write,
    /// Kill it and all it started.
    Kill,
}

impl JobAction {
    fn name(self) -> &'static str {
        match self {
            JobAction::Output => "output",
            JobAction::Wait => "wait",
            JobAction::Write => "write",
            JobAction::Kill => "kill",
        }
    }
}

#[async_trait]
impl Tool for JobTool {
    type Input = JobInput;

    fn name(&self) -> &str {
        "job"
    }

    fn is_served(&self) -> bool {
        true
    }

    fn claude_names(&self) -> &'static [&'static str] {
        &["BashOutput", "KillShell", "KillBash"]
    }

    fn describe_call(&self, input: &JobInput, _root: &str) -> Option<CallDescription> {
        let (id, action) = (input.id, input.action.name());
        let is_polling = matches!(input.action, JobAction::Wait | JobAction::Output);
        let description = CallDescription::new("Job", "checking job", format!("{id} {action}"));
        Some(CallDescription { is_polling, ..description })
    }

    fn permission_key(&self) -> &str {
        "bash"
    }

    async fn describe(&self, _context: &StepContext) -> ToolDefinition {
        ToolDefinition::for_input::<JobInput>(include_str!("description.md"))
    }

    /// Treats a `write` like a command, because a shell may read it. An empty line is no command to
    /// a shell and needs no access.
    fn access(&self, input: &JobInput) -> Vec<ToolAccess> {
        let command = input.input.clone().filter(|_| input.action == JobAction::Write);
        let command = command.filter(|text| !text.trim_matches(['\r', '\n']).is_empty());
        let run = command.map(|command| ToolAccess::RunCommand { command, folder: ".".to_owned() });
        run.into_iter().collect()
    }

    async fn run(&self, input: JobInput, cx: &CallContext<'_>) -> Result<ToolOutput, CallFailure> {
        let Some(job) = cx.world.job(cx.session, input.id) else {
            let jobs = cx.world.jobs(cx.session);
            let jobs: Vec<String> = jobs.iter().map(|job| job.id().to_string()).collect();
            let existing = match jobs.as_slice() {
                [] => "no jobs exist".to_owned(),
                jobs => format!("existing jobs: {}", jobs.join(", ")),
            };
            return Err(CallFailure::new(format!("Job {} not found; {existing}.", input.id)));
        };
        match input.action {
            JobAction::Output => {}
            JobAction::Wait => {
                let exit = tokio::time::timeout(
                    resolve_timeout(input.timeout, DEFAULT_WAIT_MS)?,
                    job.wait_for_exit(),
                );
                tokio::select! {
                    biased;
                    () = cx.cancel.cancelled() => return Err(CallFailure::new("interrupted; the job \
                         is still running")),
                    _ = exit => {}
                }
            }
            JobAction::Write => {
                let text = input.input.as_deref().unwrap_or_default();
                tokio::select! {
                    biased;
                    () = cx.cancel.cancelled() => return Err(CallFailure::new("interrupted; part of \
                         the input may have been sent")),
                    written = job.write_stdin(text.as_bytes()) => written?,
                }
                let _ = tokio::time::timeout(WRITE_REPLY_TIMEOUT, job.wait_for_exit()).await;
            }
            JobAction::Kill => job.kill().await,
        }
        // `final_notes` may inspect files, which must not block the async thread.
        cx.run_blocking(move |_| Ok(render_new_output(&job))).await
    }
}

/// Renders the output since the last read, and the state of the job.
fn render_new_output(job: &Job) -> ToolOutput {
    let mut text = String::new();
    for chunk in job.unread_output() {
        if chunk.dropped_bytes > 0 {
            text.push_str(&format!("\n[... {} bytes were not saved ...]\n", chunk.dropped_bytes));
        }
        text.push_str(&chunk.text);
    }
    if text.is_empty() {
        text.push_str("(no new output)");
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&describe_exit(job.exit_report().as_ref(), None));
    text.push_str(&format_notes(&job.final_notes()));
    let display = OutputDisplay::Terminal { colored_text: None };
    ToolOutput { text, display, ..ToolOutput::default() }
}

#[cfg(test)]
mod tests;
