//! The outline: what a conversation that is summed up must not lose, written by us and not by a
//! model.
//!
//! The mode, the to-do list, running jobs, touched files and the last prompt are read from the
//! fold, so they are in every summary however well the model sums up.

use super::{Session, steer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use windlass_protocol::text::beginning;
use windlass_protocol::{Fact, Message, Outcome, Part, Role, Scope, Seq};

/// How many entries of each kind are named, and how long each may be.
const MOST: usize = 60;
const LONGEST: usize = 240;

/// How long the last prompt may be.
const LONGEST_PROMPT: usize = 4_000;

/// What is kept of calls for it.
#[derive(Clone, Debug, Default)]
pub(super) struct Outline {
    todos: Vec<String>,
    /// By number, the command of each.
    jobs: BTreeMap<u64, String>,
}

impl Outline {
    /// Takes in how a call of a tool ended.
    pub(super) fn record(&mut self, tool: &str, arguments: &str, outcome: &Outcome) {
        let Outcome::Completed { output } = outcome else { return };
        let todos = output.metadata.get("todos").and_then(Value::as_array);
        if let Some(todos) = todos.filter(|_| tool == "todowrite") {
            self.todos = todos.iter().take(MOST).filter_map(todo).collect();
        }
        let job = output.metadata.get("job").and_then(Value::as_u64);
        if let Some(job) = job.filter(|_| tool == "bash") {
            let arguments: Option<Value> = serde_json::from_str(arguments).ok();
            let command = arguments.as_ref().and_then(|given| given.get("command")?.as_str());
            self.jobs.insert(job, line(command.unwrap_or_default()));
        }
    }

    /// Takes in what the model was told.
    pub(super) fn told(&mut self, text: &str) {
        let number = |text: &str| {
            let (number, rest) = text.strip_prefix("Job ")?.split_once(' ')?;
            rest.starts_with("has ended").then(|| number.parse().ok()).flatten()
        };
        if let Some(job) = number(text) {
            self.jobs.remove(&job);
        }
    }
}

fn todo(todo: &Value) -> Option<String> {
    let field = |name: &str| todo.get(name).and_then(Value::as_str);
    let status = field("status").unwrap_or("pending");
    Some(format!("[{}] {}", beginning(status, 20), line(field("content")?)))
}

fn line(text: &str) -> String {
    beginning(&text.split_whitespace().collect::<Vec<_>>().join(" "), LONGEST)
}

fn list(text: &mut String, title: &str, entries: impl ExactSizeIterator<Item = String>) {
    let count = entries.len();
    if count == 0 {
        return;
    }
    // Writing to a String cannot fail.
    let _ = writeln!(text, "\n{title}:");
    for entry in entries.take(MOST) {
        let _ = writeln!(text, "- {entry}");
    }
    if count > MOST {
        let _ = writeln!(text, "- and {} more", count - MOST);
    }
}

impl Session {
    /// What the model is told in place of everything up to a position.
    pub(super) fn outlined(&self, through: Seq, summary: &str) -> String {
        let mut text = String::from(
            "The conversation up to here was summed up to save room. This is where it stands.\n",
        );
        if let Some(mode) = self.transcript.mode {
            let _ = writeln!(text, "\n{}", steer::sentence(mode));
        }
        list(&mut text, "To do", self.outline.todos.iter().cloned());
        let jobs = self.outline.jobs.iter().map(|(id, command)| format!("job {id}: {command}"));
        list(&mut text, "Jobs that were started and have not ended", jobs);
        let changed = self.files.undo(&self.files.undoable(Scope::All));
        let mut changed: Vec<String> =
            changed.into_iter().flat_map(|undo| undo.changes).map(|change| change.path).collect();
        changed.sort_unstable();
        changed.dedup();
        let read = self.files.seen().keys().filter(|path| !changed.contains(path));
        let read: Vec<String> = read.map(|path| line(path)).collect();
        list(&mut text, "Files changed", changed.into_iter().map(|path| line(&path)));
        list(&mut text, "Files read", read.into_iter());
        if let Some(prompt) = self.last_prompt(through) {
            let _ = writeln!(text, "\nWhat the person said last:\n{prompt}");
        }
        let _ = write!(text, "\nWhat happened:\n{}", summary.trim());
        text
    }

    /// The last prompt, if the model will no longer be sent it whole.
    fn last_prompt(&self, through: Seq) -> Option<String> {
        let prompted = |message: &&std::sync::Arc<Message>| message.role == Role::User;
        let last = self.transcript.messages.iter().rfind(prompted)?;
        let text = last.parts.iter().find_map(|part| match part {
            Part::Text { text, .. } => Some(text),
            Part::Reasoning { .. } | Part::File(_) | Part::Call(_) => None,
        })?;
        (last.seq <= through).then(|| beginning(text, LONGEST_PROMPT))
    }

    /// Keeps what a fact has to do with the outline. Comes before the turn takes it in.
    pub(super) fn outline_fact(&mut self, fact: &Fact) {
        match fact {
            Fact::Settled { call, outcome, .. } => {
                if let Some(call) = self.turn.as_mut().and_then(|turn| turn.call(*call)) {
                    self.outline.record(&call.tool, &call.arguments, outcome);
                }
            }
            Fact::ContextChanged { text } => self.outline.told(text),
            _ => {}
        }
    }
}
