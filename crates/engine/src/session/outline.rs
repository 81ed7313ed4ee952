//! The outline: what a conversation that is summed up must not lose, written by us and not by a
//! model.
//!
//! The mode, the to-do list, running jobs, touched files and the last prompt are read from the
//! fold, so they are in every summary however well the model sums up.

use super::{Out, Session, steer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use windlass_protocol::text::beginning;
use windlass_protocol::{Fact, Message, Messages, Outcome, Part, Role, Scope, Seq};

/// How many entries of each kind are named, and how long each may be.
const MOST: usize = 60;
const LONGEST: usize = 240;

/// How long the last prompt may be.
const LONGEST_PROMPT: usize = 4_000;

/// How a summary begins.
const SUMMED_UP: &str = "The conversation up to here was summed up to save room.";

/// Where the list of what is to be done stands in a summary.
const TO_DO: &str = "To do";

/// How a message begins that tells what the list is, where the conversation tells otherwise.
const LIST: &str = "The to-do list is now";

/// What is kept of calls for it.
#[derive(Clone, Debug, Default)]
pub(super) struct Outline {
    todos: Vec<String>,
    /// The model may have been told of another list than this one.
    doubtful: bool,
    /// By number, the command of each.
    jobs: BTreeMap<u64, String>,
}

impl Outline {
    /// Takes in how a call of a tool ended.
    pub(super) fn record(&mut self, tool: &str, arguments: &str, outcome: &Outcome) {
        let Outcome::Completed { output } = outcome else { return };
        if let Some(todos) = written(tool, outcome) {
            self.todos = todos;
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
        self.doubtful &= !text.starts_with(LIST);
        let number = |text: &str| {
            let (number, rest) = text.strip_prefix("Job ")?.split_once(' ')?;
            rest.starts_with("has ended").then(|| number.parse().ok()).flatten()
        };
        if let Some(job) = number(text) {
            self.jobs.remove(&job);
        }
    }
}

/// The list that a call wrote.
fn written(tool: &str, outcome: &Outcome) -> Option<Vec<String>> {
    let Outcome::Completed { output } = outcome else { return None };
    let todos = output.metadata.get("todos").and_then(Value::as_array);
    todos.filter(|_| tool == "todowrite").map(|todos| todos.iter().filter_map(todo).collect())
}

/// The list that the last call in a conversation wrote.
fn standing(messages: &Messages) -> Vec<String> {
    let mut parts = messages.iter().rev().flat_map(|message| message.parts.iter().rev());
    parts.find_map(list_of_call).unwrap_or_default()
}

fn list_of_call(part: &Part) -> Option<Vec<String>> {
    match part {
        Part::Call(call) => call.outcome.as_ref().and_then(|it| written(&call.tool, it)),
        Part::Text { .. } | Part::Reasoning { .. } | Part::File(_) => None,
    }
}

/// The last list that a conversation tells of, in whichever way it does, as lines of a message.
fn heard(messages: &Messages) -> Vec<String> {
    let parts = messages.iter().rev().flat_map(|message| {
        let told = message.role == Role::Context;
        message.parts.iter().rev().map(move |part| (told, part))
    });
    let mut lists = parts.filter_map(|(told, part)| match part {
        Part::Text { text, .. } if told && text.starts_with(LIST) => Some(lines_of(text)),
        Part::Text { text, .. } if told && text.starts_with(SUMMED_UP) => {
            let ours = text.split("\nWhat ").next().unwrap_or_default();
            let list = ours.split_once(&format!("\n{TO_DO}:"));
            Some(list.map(|(_, list)| lines_of(list)).unwrap_or_default())
        }
        Part::Call(_) => list_of_call(part).map(|list| lines_of(&message(&list))),
        Part::Text { .. } | Part::Reasoning { .. } | Part::File(_) => None,
    });
    lists.next().unwrap_or_default()
}

/// The lines of a list below its title.
fn lines_of(text: &str) -> Vec<String> {
    let lines = text.lines().skip(1).map_while(|line| line.strip_prefix("- "));
    lines.map(str::to_owned).collect()
}

/// What a list is, in words.
fn message(todos: &[String]) -> String {
    let mut text = String::new();
    list(&mut text, LIST, todos.iter().cloned());
    match text.trim() {
        "" => format!("{LIST} empty."),
        text => text.to_owned(),
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
        let mut text = format!("{SUMMED_UP} This is where it stands.\n");
        if let Some(mode) = self.transcript.mode {
            let _ = writeln!(text, "\n{}", steer::sentence(mode));
        }
        list(&mut text, TO_DO, self.outline.todos.iter().cloned());
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

    /// Tells the list where the model may have been told another one: a summary outlives the calls
    /// behind it that were taken back.
    pub(super) fn tell_todos(&mut self, out: &mut Out) {
        if !std::mem::take(&mut self.outline.doubtful) {
            return;
        }
        let text = message(&self.outline.todos);
        if heard(&self.transcript.for_model()) != lines_of(&text) {
            self.decide(Fact::ContextChanged { text }, out);
        }
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
            Fact::Reverted { .. } => {
                self.outline.todos = standing(&self.transcript.messages);
                self.outline.doubtful = true;
            }
            _ => {}
        }
    }
}
