//! `bash`: runs a command in the sandbox, to its end or in the background.

mod report;

use async_trait::async_trait;
use report::{interrupted_failure, report_job};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use windlass_protocol::display_text::{pluralize, to_one_line, truncate_chars};
use windlass_protocol::file_history::NOT_CAPTURED_KEY;
use windlass_protocol::{CallDescription, ToolAccess, ToolOutput};
use windlass_sandbox::{Job, JobSpec, PendingFileChange, ProcessExit, StdinMode, WorkingFolder};
use windlass_toolkit::{CallContext, CallFailure, StepContext, Tool, ToolDefinition, UserPresence};

pub(crate) use report::{describe_exit, format_notes};

/// The timeout of a call that sets none.
const DEFAULT_TIMEOUT_MS: u64 = 120_000;

pub(crate) const MAX_TIMEOUT_MS: u64 = 600_000;

/// Interval at which `watch_job` polls the hosts that the command tried to reach.
const HOST_POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Refused hosts reported at once; more of them add no information.
const MAX_SHOWN_REFUSALS: usize = 10;

/// Characters of the last output line shown as progress.
const MAX_PROGRESS_CHARS: usize = 200;

/// Limits the model's summary of a command, which is shown after it.
const MAX_SUMMARY_CHARS: usize = 80;

/// Bytes of new output shown at once. Earlier output is left out.
const MAX_OUTPUT_CHUNK_BYTES: usize = 8 << 10;

/// The `bash` tool.
pub struct BashTool;

/// Input of the `bash` tool.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BashInput {
    /// The command.
    command: String,
    /// Timeout in milliseconds, at most 600000. Not with background.
    #[schemars(range(min = 1))]
    timeout: Option<u64>,
    /// The working folder.
    workdir: Option<String>,
    /// A summary in five to ten words.
    description: Option<String>,
    /// Run in the background and return at once; see job.
    #[serde(default)]
    background: bool,
    /// Allocate a terminal for a program that needs one. Only with background.
    #[serde(default)]
    terminal: bool,
    /// Ask the user to run it without the sandbox. Only if it failed because of the sandbox.
    #[serde(default)]
    outside: bool,
}

impl BashInput {
    fn folder(&self) -> &str {
        self.workdir.as_deref().unwrap_or(".")
    }

    /// Rejects unsupported combinations of options, with a hint on what to use instead.
    fn validate(&self) -> Result<(), CallFailure> {
        if self.command.trim().is_empty() {
            return Err(CallFailure::new("command is empty; set it to the command to run"));
        }
        if self.terminal && !self.background {
            return Err(CallFailure::new("terminal requires background; set background too"));
        }
        if self.background && self.outside {
            return Err(CallFailure::new(
                "a command outside the sandbox cannot run in the background, because it could \
                 receive input that the user did not see; omit background or outside",
            ));
        }
        resolve_timeout(self.timeout, DEFAULT_TIMEOUT_MS).map(drop)
    }

    fn stdin(&self) -> StdinMode {
        match (self.background, self.terminal) {
            (false, _) => StdinMode::Closed,
            (true, false) => StdinMode::Pipe,
            (true, true) => StdinMode::Terminal { rows: 24, cols: 100 },
        }
    }
}

#[async_trait]
impl Tool for BashTool {
    type Input = BashInput;

    fn name(&self) -> &str {
        "bash"
    }

    fn is_served(&self) -> bool {
        true
    }

    fn claude_names(&self) -> &'static [&'static str] {
        &["Bash"]
    }

    fn claude_arguments(&self) -> &'static [(&'static str, &'static str)] {
        &[("background", "run_in_background")]
    }

    fn describe_call(&self, input: &BashInput, _root: &str) -> Option<CallDescription> {
        let summary = input.description.as_deref().unwrap_or_default();
        let summary = truncate_chars(&to_one_line(summary), MAX_SUMMARY_CHARS);
        let note = match (input.background, input.outside) {
            (true, _) => "in the background",
            (false, true) => "outside the sandbox",
            (false, false) => &summary,
        };
        let description = CallDescription::new("Run", "running", &input.command).with_note(note);
        let covers_arguments = !input.command.trim().contains('\n');
        Some(CallDescription { covers_arguments, ..description })
    }

    async fn describe(&self, context: &StepContext) -> ToolDefinition {
        let mut definition = ToolDefinition::for_input::<BashInput>(include_str!("description.md"));
        // Only a user can let a command leave the sandbox.
        let properties = definition.schema.get_mut("properties").and_then(Value::as_object_mut);
        if let Some(properties) = properties.filter(|_| context.user == UserPresence::Absent) {
            properties.remove("outside");
        }
        definition
    }

    fn resolve_paths(&self, input: &mut BashInput, folder: &WorkingFolder) {
        input.workdir = match &input.workdir {
            Some(path) => Some(folder.resolve(path).into_owned()),
            None => folder.path().map(Cow::into_owned),
        };
    }

    fn access(&self, input: &BashInput) -> Vec<ToolAccess> {
        let (command, folder) = (input.command.clone(), input.folder().to_owned());
        let leave = input.outside.then(|| ToolAccess::LeaveSandbox { command: command.clone() });
        leave.into_iter().chain([ToolAccess::RunCommand { command, folder }]).collect()
    }

    async fn run(&self, input: BashInput, cx: &CallContext<'_>) -> Result<ToolOutput, CallFailure> {
        input.validate()?;
        let (session, stdin) = (cx.session, input.stdin());
        let spec = JobSpec { session, command: &input.command, folder: input.folder(), stdin };
        let job = cx.world.start_job(spec).await?;
        if input.background {
            cx.world.follow_job(session, &job);
            let output = background_job_output(&job, input.timeout);
            return finish_call(cx, None, move || output).await;
        }
        let timeout = resolve_timeout(input.timeout, DEFAULT_TIMEOUT_MS)?;
        let mut host_reporter = HostAttemptReporter::default();
        let watching = watch_job(&job, cx, &mut host_reporter);
        let wait_result = tokio::select! {
            biased;
            () = cx.cancel.cancelled() => None,
            result = tokio::time::timeout(timeout, watching) => Some(result),
        };
        let timed_out = match wait_result {
            Some(Ok(())) => None,
            Some(Err(_)) => {
                job.kill().await;
                Some(timeout)
            }
            None => {
                job.kill_in_background().await;
                host_reporter.report_new_hosts(&job, cx);
                finish_call(cx, Some(job.id()), ToolOutput::default).await?;
                return Err(cx.run_blocking(move |_| Ok(interrupted_failure(&job))).await?);
            }
        };
        host_reporter.report_new_hosts(&job, cx);
        if job.exit_report().is_some_and(|exit| exit.exit == ProcessExit::SupervisorLost) {
            return Err(windlass_sandbox::Error::SupervisorLost.into());
        }
        // A command that cannot write has nothing to record and no notes about files.
        if job.has_no_snapshot() {
            let mut output = report_job(&job, timed_out);
            if !job.is_sandboxed() {
                let text = format!("files that `{}` changed outside the sandbox", input.command);
                output.metadata.insert(NOT_CAPTURED_KEY.to_owned(), vec![text].into());
            }
            return Ok(output);
        }
        finish_call(cx, Some(job.id()), move || report_job(&job, timed_out)).await
    }
}

/// Builds the result of a call, and records what its command and those that have ended in the
/// background have changed, so that it can be undone. What cannot be undone is named in the metadata.
async fn finish_call(
    cx: &CallContext<'_>,
    own_job: Option<u64>,
    build_output: impl FnOnce() -> ToolOutput + Send + 'static,
) -> Result<ToolOutput, CallFailure> {
    let has_ended = |job: &Arc<Job>| {
        job.is_gone() || job.exit_report().is_some_and(|report| report.leftover.is_empty())
    };
    let mut jobs = cx.world.jobs(cx.session);
    jobs.retain(|job| Some(job.id()) == own_job || has_ended(job));
    // Both may read files, which must not block the async thread.
    let taken = cx.run_blocking(move |workspace| {
        let mut output = build_output();
        let mut not_captured: Vec<String> = Vec::new();
        let mut changes: BTreeMap<String, PendingFileChange> = BTreeMap::new();
        for job in jobs {
            let taken = workspace.take_job_changes(&job);
            not_captured.extend(taken.not_captured);
            for change in taken.changes {
                // If two commands changed a file, the older one knows its content before both.
                changes.entry(change.path.clone()).or_insert(change);
            }
        }
        if !not_captured.is_empty() {
            output.metadata.insert(NOT_CAPTURED_KEY.to_owned(), not_captured.into());
        }
        Ok((output, changes.into_values().collect::<Vec<_>>()))
    });
    let (mut output, changes) = taken.await?;
    let count = changes.len();
    if count > 0
        && let Err(failure) = cx.caller.record_made_changes(changes).await
    {
        // The command has run, so its output counts all the same.
        let text = format!("{} ({})", pluralize(count, "file"), failure.text);
        output.metadata.insert(NOT_CAPTURED_KEY.to_owned(), vec![text].into());
    }
    Ok(output)
}

/// Returns the timeout of a call, or fails if it exceeds `MAX_TIMEOUT_MS`.
pub(crate) fn resolve_timeout(
    requested: Option<u64>,
    default: u64,
) -> Result<Duration, CallFailure> {
    match requested.unwrap_or(default) {
        timeout if timeout > MAX_TIMEOUT_MS => Err(CallFailure::new(format!(
            "timeout is {timeout} ms, but the maximum is {MAX_TIMEOUT_MS}; run the command in the \
             background, and wait for it with job as often as needed"
        ))),
        timeout => Ok(Duration::from_millis(timeout)),
    }
}

/// Reports hosts that a job tried to reach; counts the `HostAttempt`s already reported.
#[derive(Default)]
struct HostAttemptReporter(usize);

impl HostAttemptReporter {
    /// Reports the decisions made since the last call: all allowed hosts, and at most
    /// `MAX_SHOWN_REFUSALS` refused ones.
    fn report_new_hosts(&mut self, job: &Job, cx: &CallContext<'_>) {
        let mut refused = 0;
        for attempt in job.host_attempts(self.0) {
            self.0 += 1;
            refused += usize::from(attempt.refusal.is_some());
            if attempt.refusal.is_none() || refused <= MAX_SHOWN_REFUSALS {
                cx.caller.report_host(attempt.host, attempt.refusal);
            }
        }
    }
}

/// Waits for the job to exit, and meanwhile reports its output, progress and hosts.
async fn watch_job(job: &Job, cx: &CallContext<'_>, host_reporter: &mut HostAttemptReporter) {
    let mut updates = job.watch_output();
    let mut position = 0;
    let mut tick = tokio::time::interval(HOST_POLL_INTERVAL);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let exit = job.wait_for_exit();
    tokio::pin!(exit);
    loop {
        tokio::select! {
            biased;
            _ = &mut exit => return,
            Ok(()) = updates.changed() => {
                let last = last_line(&updates.borrow_and_update().last_lines);
                if let Some(last) = last {
                    cx.caller.report_progress(job.mask_secrets(&last));
                }
                if let Some(text) = new_output(job, &mut position) {
                    cx.caller.report_output(text);
                }
            }
            _ = tick.tick() => host_reporter.report_new_hosts(job, cx),
        }
    }
}

/// Returns the output printed since `position`, up to `MAX_OUTPUT_CHUNK_BYTES`. A larger amount is
/// cut at the start of a line.
fn new_output(job: &Job, position: &mut u64) -> Option<String> {
    let text = job.output_since(position).into_iter().map(|piece| piece.text).collect();
    Some(truncate_to_tail(text)).filter(|text| !text.is_empty())
}

/// Truncates a long text to its end, from the start of a line.
fn truncate_to_tail(text: String) -> String {
    let start = text.ceil_char_boundary(text.len().saturating_sub(MAX_OUTPUT_CHUNK_BYTES));
    let Some(tail) = text.get(start..).filter(|_| start > 0) else { return text };
    let whole_lines = tail.split_once('\n').map_or(tail, |(_, lines)| lines);
    if whole_lines.is_empty() { tail.to_owned() } else { whole_lines.to_owned() }
}

/// Returns the last line that is not blank, up to `MAX_PROGRESS_CHARS`.
fn last_line(text: &str) -> Option<String> {
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(line.chars().take(MAX_PROGRESS_CHARS).collect())
}

fn background_job_output(job: &Job, timeout: Option<u64>) -> ToolOutput {
    let id = job.id();
    let timeout_note = match timeout {
        Some(_) => " The timeout does not apply there; stop it with kill.",
        None => "",
    };
    ToolOutput {
        text: format!(
            "Job {id} runs in the background. Read its output with job {{\"id\": {id}, \
             \"action\": \"output\"}}.{timeout_note}"
        ),
        started_jobs: vec![id],
        ..ToolOutput::default()
    }
}

#[cfg(test)]
mod tests;
