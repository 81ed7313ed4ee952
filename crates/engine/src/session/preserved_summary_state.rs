//! Summary outline: state that a summary must not lose, written by code and not by a model.
//!
//! The mode, goal, todos, running jobs, touched files and the last prompt are read from the fold, so
//! every summary contains them however well the model summarizes.

use super::active_turn::ActiveTurn;
use super::{EffectList, Session, steering};
use std::collections::BTreeMap;
use std::fmt::Write;
use windlass_protocol::display_text::truncate_chars;
use windlass_protocol::file_history::is_instruction_file;
use windlass_protocol::todo_list::todos_in_outcome;
use windlass_protocol::{
    CallDescription, CallOutcome, ContextChange, Fact, LogSeq, Message, MessagePart, MessageRole,
    TodoItem, UndoScope,
};

/// Maximum number of entries per list, and characters per entry.
const MAX_LIST_ENTRIES: usize = 60;
const MAX_ENTRY_CHARS: usize = 240;

/// Maximum characters that `last_prompt` returns.
const MAX_PROMPT_CHARS: usize = 4_000;

/// Todos and jobs collected from calls for the next `compose_summary`.
#[derive(Clone, Debug, Default)]
pub(super) struct SummaryTodosAndJobs {
    pub(super) todos: Vec<TodoItem>,
    /// The conversation may show other todos to the model; `record_todo_notice` checks it.
    todos_may_differ: bool,
    /// Commands of running jobs, by number.
    jobs: BTreeMap<u64, String>,
}

impl SummaryTodosAndJobs {
    /// Collects todos and jobs from a settled call.
    fn record_call(&mut self, description: &CallDescription, outcome: &CallOutcome) {
        let CallOutcome::Completed { output } = outcome else { return };
        if let Some(todos) = &output.todos {
            self.todos.clone_from(todos);
        }
        for job in &output.started_jobs {
            self.jobs.insert(*job, to_short_line(&description.object));
        }
    }

    /// Updates the outline for a `ContextChanged` notice: todos were sent, or a job ended.
    fn record_change(&mut self, change: &ContextChange) {
        match change {
            ContextChange::Todos { .. } => self.todos_may_differ = false,
            ContextChange::JobEnded { job } => drop(self.jobs.remove(job)),
            ContextChange::Note
            | ContextChange::Mode { .. }
            | ContextChange::TurnConditions
            | ContextChange::TurnContinued
            | ContextChange::Prompt { .. } => {}
        }
    }
}

/// Formats the notice with the current todos.
fn todo_notice(todos: &[TodoItem]) -> String {
    let mut text = String::new();
    write_list(&mut text, "The to-do list is now", todos.iter().map(format_todo));
    match text.trim() {
        "" => "The to-do list is now empty.".to_owned(),
        text => text.to_owned(),
    }
}

fn format_todo(todo: &TodoItem) -> String {
    to_short_line(&todo.to_string())
}

fn to_short_line(text: &str) -> String {
    truncate_chars(&text.split_whitespace().collect::<Vec<_>>().join(" "), MAX_ENTRY_CHARS)
}

fn write_list(text: &mut String, title: &str, entries: impl ExactSizeIterator<Item = String>) {
    let count = entries.len();
    if count == 0 {
        return;
    }
    // Writing to a `String` cannot fail.
    let _ = writeln!(text, "\n{title}:");
    for entry in entries.take(MAX_LIST_ENTRIES) {
        let _ = writeln!(text, "- {entry}");
    }
    if count > MAX_LIST_ENTRIES {
        let _ = writeln!(text, "- and {} more", count - MAX_LIST_ENTRIES);
    }
}

impl Session {
    /// Composes the message that replaces all messages up to `through`: the outline and the model's
    /// summary.
    pub(super) fn compose_summary(&self, through: LogSeq, summary: &str) -> String {
        let mut text =
            "The conversation so far was summarized to save context. Current state:\n".to_owned();
        if let Some(mode) = self.transcript.mode {
            let _ = writeln!(text, "\n{}", steering::mode_notice(mode));
        }
        if let Some(conditions) = self.turn.as_ref().and_then(ActiveTurn::describe_conditions) {
            let _ = writeln!(text, "\n{conditions}");
        }
        write_list(&mut text, "To do", self.summary_outline.todos.iter().map(format_todo));
        let jobs =
            self.summary_outline.jobs.iter().map(|(id, command)| format!("job {id}: {command}"));
        write_list(&mut text, "Jobs still running", jobs);
        let changed = self.files.undo_arguments(&self.files.undoable_facts(UndoScope::All));
        let mut changed: Vec<String> =
            changed.into_iter().flat_map(|undo| undo.changes).map(|change| change.path).collect();
        changed.sort_unstable();
        changed.dedup();
        let read = self.files.seen_digests().keys();
        let read = read.filter(|path| !changed.contains(path) && !is_instruction_file(path));
        let read: Vec<String> = read.map(|path| to_short_line(path)).collect();
        write_list(
            &mut text,
            "Files changed",
            changed.into_iter().map(|path| to_short_line(&path)),
        );
        write_list(&mut text, "Files read", read.into_iter());
        if let Some(prompt) = self.last_prompt(through) {
            let _ = writeln!(text, "\nWhat the user said last:\n{prompt}");
        }
        let _ = write!(text, "\nWhat happened:\n{}", summary.trim());
        text
    }

    /// Records a todo notice if the model may have seen other todos: a summary survives a rewind
    /// that removes the calls it came from.
    pub(super) fn record_todo_notice(&mut self, out: &mut EffectList) {
        if !std::mem::take(&mut self.summary_outline.todos_may_differ) {
            return;
        }
        let items = &self.summary_outline.todos;
        if self.last_shown_todos() != *items {
            let (text, items) = (todo_notice(items), items.clone());
            self.emit(Fact::ContextChanged { text, change: ContextChange::Todos { items } }, out);
        }
    }

    /// Returns the todos that the conversation showed last, in a call, a notice or a summary.
    fn last_shown_todos(&self) -> Vec<TodoItem> {
        let summary = self.transcript.summary.as_ref();
        let through = summary.map_or(0, |summary| summary.through);
        let in_notice = self.visible_changes().rev().find_map(|(seq, change)| match change {
            ContextChange::Todos { items } => Some((seq, items.as_slice())),
            _ => None,
        });
        let later = self.transcript.messages.iter().rev().take_while(|m| m.seq > through);
        let parts = later
            .flat_map(|message| message.parts.iter().rev().map(move |part| (message.seq, part)));
        let in_call = parts.into_iter().find_map(|(seq, part)| match part {
            MessagePart::Call(call) => Some((seq, todos_in_outcome(call.outcome.as_ref()?)?)),
            MessagePart::Text { .. } | MessagePart::Reasoning { .. } | MessagePart::File(_) => None,
        });
        match in_notice.into_iter().chain(in_call).max_by_key(|(seq, _)| *seq) {
            Some((_, todos)) => todos.to_vec(),
            None => summary.map(|summary| summary.todos.clone()).unwrap_or_default(),
        }
    }

    /// Returns the last prompt, if the summary replaces it.
    fn last_prompt(&self, through: LogSeq) -> Option<String> {
        let is_prompt = |message: &&std::sync::Arc<Message>| message.role == MessageRole::User;
        let last = self.transcript.messages.iter().rfind(is_prompt)?;
        let text = last.parts.iter().find_map(|part| match part {
            MessagePart::Text { text, .. } => Some(text),
            MessagePart::Reasoning { .. } | MessagePart::File(_) | MessagePart::Call(_) => None,
        })?;
        (last.seq <= through).then(|| truncate_chars(text, MAX_PROMPT_CHARS))
    }

    /// Updates the outline for a fact. Runs before the turn applies the fact.
    pub(super) fn update_outline(&mut self, fact: &Fact) {
        match fact {
            Fact::CallSettled { call, outcome, .. } => {
                if let Some(call) = self.turn.as_mut().and_then(|turn| turn.open_call_mut(*call)) {
                    self.summary_outline.record_call(&call.description, outcome);
                }
            }
            Fact::ContextChanged { change, .. } => self.summary_outline.record_change(change),
            Fact::Rewound { .. } => {
                self.summary_outline.todos = self.transcript.todos();
                self.summary_outline.todos_may_differ = true;
            }
            _ => {}
        }
    }
}
