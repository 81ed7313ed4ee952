//! `bash`: a command, in the sandbox, to its end or in the background.

mod report;

use async_trait::async_trait;
use report::{interrupted, report};
use schemars::JsonSchema;
use serde::Deserialize;
use std::time::Duration;
use windlass_protocol::{Access, Output};
use windlass_sandbox::{Start, Stdin, Task};
use windlass_toolkit::{Cx, Definition, Failure, Scene, Tool};

pub(crate) use report::{ending, remarked};

/// How long a command may take if it does not say.
const PATIENCE: u64 = 120_000;

/// How long it may take at most.
pub(crate) const LONGEST: u64 = 600_000;

/// How often it is looked which hosts it wanted to reach.
const TICK: Duration = Duration::from_millis(200);

/// How many refusals are shown at once; more of them say nothing new.
const AT_ONCE: usize = 10;

/// How much of its last line is shown while it runs, in characters.
const SHOWN: usize = 200;

/// How much of what it prints is shown at once, in bytes. What came before is left out.
const PIECE: usize = 8 << 10;

/// The tool.
pub struct Bash;

/// What it is called with.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Input {
    /// The command.
    command: String,
    /// How long it may take, in milliseconds; at most 600000. Not for the background.
    #[schemars(range(min = 1))]
    timeout: Option<u64>,
    /// The folder to run it in.
    workdir: Option<String>,
    /// What it does, in five to ten words.
    #[allow(dead_code, reason = "the person reads it in the log")]
    description: Option<String>,
    /// Lets it run on, and returns at once; job looks after it. Not with outside.
    #[serde(default)]
    background: bool,
    /// Gives it a terminal, for a program that wants one; only in the background.
    #[serde(default)]
    terminal: bool,
    /// Asks the person to run it without the sandbox. Only if it failed because of the sandbox.
    #[serde(default)]
    outside: bool,
}

impl Input {
    fn folder(&self) -> &str {
        self.workdir.as_deref().unwrap_or(".")
    }

    /// What cannot be done as it was asked for, and what to ask for instead.
    fn check(&self) -> Result<(), Failure> {
        if self.command.trim().is_empty() {
            return Err(Failure::new("there is no command; say what to run"));
        }
        if self.terminal && !self.background {
            return Err(Failure::new("a terminal is for the background; set background, too"));
        }
        if self.background && self.outside {
            return Err(Failure::new(
                "what runs outside of the sandbox does not run in the background, where more could \
                 be written to it than the person saw; leave out background or outside",
            ));
        }
        patience(self.timeout, PATIENCE).map(drop)
    }

    fn stdin(&self) -> Stdin {
        match (self.background, self.terminal) {
            (false, _) => Stdin::Closed,
            (true, false) => Stdin::Pipe,
            (true, true) => Stdin::Terminal { rows: 24, cols: 100 },
        }
    }
}

#[async_trait]
impl Tool for Bash {
    type Input = Input;

    fn name(&self) -> &str {
        "bash"
    }

    async fn describe(&self, _scene: &Scene) -> Definition {
        Definition::of::<Input>(include_str!("description.md"))
    }

    fn access(&self, input: &Input) -> Vec<Access> {
        let (command, folder) = (input.command.clone(), input.folder().to_owned());
        let leave = input.outside.then(|| Access::Leave { command: command.clone() });
        leave.into_iter().chain([Access::Run { command, folder }]).collect()
    }

    async fn run(&self, input: Input, cx: &Cx<'_>) -> Result<Output, Failure> {
        input.check()?;
        let (session, stdin) = (cx.session, input.stdin());
        let start = Start { session, command: &input.command, folder: input.folder(), stdin };
        let task = cx.world.start(start).await?;
        if input.background {
            cx.world.announce(session, &task);
            return Ok(begun(&task, input.timeout));
        }
        let patience = patience(input.timeout, PATIENCE)?;
        let mut trail = Trail::default();
        let ended = tokio::select! {
            biased;
            () = cx.cancel.cancelled() => None,
            ended = tokio::time::timeout(patience, watched(&task, cx, &mut trail)) => Some(ended),
        };
        let stopped = match ended {
            Some(Ok(())) => None,
            Some(Err(_)) => {
                task.kill().await;
                Some(patience)
            }
            None => {
                task.dismiss().await;
                trail.tell(&task, cx);
                return Err(cx.blocking(move |_| Ok(interrupted(&task))).await?);
            }
        };
        trail.tell(&task, cx);
        match task.is_plain() {
            true => Ok(report(&task, stopped)),
            // Looking at files for remarks is not for the thread that everybody waits for.
            false => cx.blocking(move |_| Ok(report(&task, stopped))).await,
        }
    }
}

/// How long something may take, if that is not too long.
pub(crate) fn patience(wanted: Option<u64>, usual: u64) -> Result<Duration, Failure> {
    match wanted.unwrap_or(usual) {
        long if long > LONGEST => Err(Failure::new(format!(
            "timeout is {long} ms, and at most {LONGEST} can be waited for; run it in the \
             background, and wait for it with job as often as it takes"
        ))),
        fine => Ok(Duration::from_millis(fine)),
    }
}

/// How far it was told which hosts a command wanted to reach.
#[derive(Default)]
struct Trail(usize);

impl Trail {
    /// Tells of what was decided since: all that was let through, and a few refusals.
    fn tell(&mut self, task: &Task, cx: &Cx<'_>) {
        let mut refused = 0;
        for reached in task.reached(self.0) {
            self.0 += 1;
            refused += usize::from(reached.refused.is_some());
            if reached.refused.is_none() || refused <= AT_ONCE {
                cx.caller.reached(reached.host, reached.refused);
            }
        }
    }
}

/// Waits for the end, and shows meanwhile what the command says and where it goes.
async fn watched(task: &Task, cx: &Cx<'_>, trail: &mut Trail) {
    let mut news = task.watch();
    let mut place = 0;
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let end = task.ended();
    tokio::pin!(end);
    loop {
        tokio::select! {
            biased;
            _ = &mut end => return,
            Ok(()) = news.changed() => {
                let last = last_line(&news.borrow_and_update().last);
                if let Some(last) = last {
                    cx.caller.progress(task.mask(&last));
                }
                if let Some(text) = printed(task, &mut place) {
                    cx.caller.output(text);
                }
            }
            _ = tick.tick() => trail.tell(task, cx),
        }
    }
}

/// What the command has printed since a place, as far as it is shown at once. A flood is shown from
/// where a line begins.
fn printed(task: &Task, place: &mut u64) -> Option<String> {
    let text = task.heard_on(place).into_iter().map(|piece| piece.text).collect();
    Some(ending_of(text)).filter(|text| !text.is_empty())
}

/// The end of a text that is too long to be shown at once.
fn ending_of(text: String) -> String {
    let cut = text.ceil_char_boundary(text.len().saturating_sub(PIECE));
    let Some(end) = text.get(cut..).filter(|_| cut > 0) else { return text };
    let line = end.split_once('\n').map_or(end, |(_, lines)| lines);
    if line.is_empty() { end.to_owned() } else { line.to_owned() }
}

/// The last line that says something, as far as it is shown.
fn last_line(text: &str) -> Option<String> {
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(line.chars().take(SHOWN).collect())
}

fn begun(task: &Task, timeout: Option<u64>) -> Output {
    let id = task.id();
    let ignored = match timeout {
        Some(_) => " It has no timeout there; end it with kill.",
        None => "",
    };
    Output {
        title: task.command().to_owned(),
        text: format!(
            "Job {id} runs in the background. Read what it says with job {{\"id\": {id}, \
             \"action\": \"output\"}}.{ignored}"
        ),
        metadata: [("job".to_owned(), id.into())].into_iter().collect(),
        ..Output::default()
    }
}

#[cfg(test)]
mod tests;
