//! `job`: a command in the background, read, awaited, written to and ended.

use crate::bash::{ending, patience, remarked};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use std::time::Duration;
use windlass_protocol::{Access, Display, Output};
use windlass_sandbox::Task;
use windlass_toolkit::{Cx, Definition, Failure, Scene, Tool};

/// How long `wait` waits if it is not told.
const PATIENCE: u64 = 60_000;

/// How long an answer to what was written is waited for.
const ANSWER: Duration = Duration::from_millis(300);

/// The tool.
pub struct Job;

/// What it is called with.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Input {
    /// The job.
    id: u64,
    /// The action.
    action: Action,
    /// For `write`: what to send, exactly. A line ends with a newline.
    input: Option<String>,
    /// For `wait`: how long, in milliseconds; at most 600000.
    #[schemars(range(min = 1))]
    timeout: Option<u64>,
}

/// What can be done with a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Gives what it has said since the last time.
    Output,
    /// Waits until it ends or the time is over, and gives what it said.
    Wait,
    /// Sends it input.
    Write,
    /// Ends it and everything it started.
    Kill,
}

#[async_trait]
impl Tool for Job {
    type Input = Input;

    fn name(&self) -> &str {
        "job"
    }

    fn key(&self) -> &str {
        "bash"
    }

    async fn describe(&self, _scene: &Scene) -> Definition {
        Definition::of::<Input>(include_str!("description.md"))
    }

    /// What is written to a job is judged like a command: a shell may be what reads it. An empty
    /// line tells a shell nothing.
    fn access(&self, input: &Input) -> Vec<Access> {
        let command = input.input.clone().filter(|_| input.action == Action::Write);
        let command = command.filter(|text| !text.trim_matches(['\r', '\n']).is_empty());
        let run = command.map(|command| Access::Run { command, folder: ".".to_owned() });
        run.into_iter().collect()
    }

    async fn run(&self, input: Input, cx: &Cx<'_>) -> Result<Output, Failure> {
        let Some(job) = cx.world.task(cx.session, input.id) else {
            let known = cx.world.tasks(cx.session);
            let known: Vec<String> = known.iter().map(|job| job.id().to_string()).collect();
            let there = match known.as_slice() {
                [] => "there is none".to_owned(),
                known => format!("there is {}", known.join(", ")),
            };
            return Err(Failure::new(format!("There is no job {}; {there}.", input.id)));
        };
        match input.action {
            Action::Output => {}
            Action::Wait => {
                let ended = tokio::time::timeout(patience(input.timeout, PATIENCE)?, job.ended());
                tokio::select! {
                    biased;
                    () = cx.cancel.cancelled() => return Err(Failure::new("interrupted; it runs on")),
                    _ = ended => {}
                }
            }
            Action::Write => {
                let text = input.input.as_deref().unwrap_or_default();
                tokio::select! {
                    biased;
                    () = cx.cancel.cancelled() => return Err(Failure::new("interrupted; a part may have been sent")),
                    written = job.write(text.as_bytes()) => written?,
                }
                let _ = tokio::time::timeout(ANSWER, job.ended()).await;
            }
            Action::Kill => job.kill().await,
        }
        // Looking at files for remarks is not for the thread that everybody waits for.
        cx.blocking(move |_| Ok(news(&job))).await
    }
}

/// What a job has said since somebody last looked, and how it stands.
fn news(job: &Task) -> Output {
    let mut text = String::new();
    for said in job.unread() {
        if said.missed > 0 {
            text.push_str(&format!("\n[... {} bytes were not kept ...]\n", said.missed));
        }
        text.push_str(&said.text);
    }
    if text.is_empty() {
        text.push_str("(nothing new)");
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&ending(job.ending().as_ref(), None));
    text.push_str(&remarked(&job.last_remarks()));
    let display = Display::Terminal { coloured: None };
    Output { title: format!("job {}", job.id()), text, display, ..Output::default() }
}

#[cfg(test)]
mod tests;
