//! The history of files in a log: the files that a session has seen, its changes, and the changes
//! that were undone.
//!
//! [`FileHistory`] is a fold of the log, like the transcript: a session that was closed or died
//! knows after reopening everything that it knew before.

use crate::call_approval_and_outcome::{BlobRef, CallAuthor, CallOutcome};
use crate::event::Fact;
use crate::file_change::{FileChange, FileVersion};
use crate::ids_and_timestamps::{CallId, LogSeq};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Name of the tool that undoes changes. Only the user calls it.
pub const UNDO_TOOL: &str = "undo";

/// Range of changes to undo, for `SessionQuery::Changes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "scope", rename_all = "snake_case")]
pub enum UndoScope {
    /// Changes of the last turn that changed files.
    LastTurn,
    /// All changes of the session.
    All,
    /// Redoes the changes that were last undone.
    LastUndo,
    /// All changes of the session after a position.
    Since {
        /// Position in the log.
        seq: LogSeq,
    },
}

/// Arguments of the tool [`UNDO_TOOL`]. The log stores only `facts`; the session adds their
/// `changes` when the call is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UndoArguments {
    /// Positions of the facts to undo.
    pub facts: Vec<LogSeq>,
    /// Changes of these facts, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FileChange>,
    /// Files of the same turns that cannot be restored, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_captured: Vec<String>,
    /// Direction of the diff that the user sees.
    #[serde(default)]
    pub direction: DiffDirection,
    /// True if the facts are undos, so that the call is a redo.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_redo: bool,
}

/// Paths of changed files, each list sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedFiles {
    /// Files that did not exist before.
    pub added: Vec<String>,
    /// Files with different content or permissions.
    pub modified: Vec<String>,
    /// Files that no longer exist.
    pub removed: Vec<String>,
}

/// Direction of a diff.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum DiffDirection {
    /// Effect of undoing the changes.
    #[default]
    Reverse,
    /// The changes themselves, as far as they are still in place.
    Forward,
}

/// Key in `ToolOutput::metadata` for the files that an undo left unchanged.
pub const SKIPPED_FILES_KEY: &str = "left";

/// Key in `ToolOutput::metadata` for the files that a command changed without a copy of their earlier
/// content, each with the reason.
pub const NOT_CAPTURED_KEY: &str = "not_captured";

/// Changes made together by one `FilesChanging` fact.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FileHistoryEntry {
    seq: LogSeq,
    turn: u32,
    call: CallId,
    changes: Vec<(FileChange, UndoState)>,
    /// Positions of the facts that these changes undid.
    undoes: Vec<LogSeq>,
}

/// State of a change: applied or undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UndoState {
    Applied,
    Undone,
}

impl UndoState {
    fn inverse(self) -> UndoState {
        match self {
            UndoState::Applied => UndoState::Undone,
            UndoState::Undone => UndoState::Applied,
        }
    }
}

impl FileHistoryEntry {
    fn has_applied_change(&self) -> bool {
        self.changes.iter().any(|(_, state)| *state == UndoState::Applied)
    }
}

/// Kind of a `FileHistoryEntry`.
#[derive(PartialEq, Eq)]
enum FileHistoryEntryKind {
    /// Regular work of the session.
    Change,
    /// Undo of changes.
    Undo,
    /// Undo of an undo.
    Redo,
}

/// The name of a file with instructions for the folder that contains it.
pub const INSTRUCTIONS_FILE_NAME: &str = "AGENTS.md";

/// The folders of files with instructions for some paths of a project.
pub const RULE_FOLDERS: [&str; 2] = [".windlass/rules", ".claude/rules"];

/// Returns true for a file whose text is shown to the model as instructions.
pub fn is_instruction_file(path: &str) -> bool {
    let is_rule = |folder: &&str| {
        path.strip_prefix(*folder)
            .is_some_and(|rest| rest.starts_with('/') && rest.ends_with(".md"))
    };
    path.rsplit('/').next() == Some(INSTRUCTIONS_FILE_NAME) || RULE_FOLDERS.iter().any(is_rule)
}

/// The session's knowledge of files: digests it has seen, changes, and undone changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileHistory {
    seen_digests: BTreeMap<String, BlobRef>,
    /// Log position at which the session last saw each file.
    seen_at: BTreeMap<String, LogSeq>,
    entries: Vec<FileHistoryEntry>,
    /// Files that commands changed without a copy of their earlier content, by turn.
    not_captured: Vec<(u32, String)>,
    turn: u32,
    /// Undo calls in progress, with the facts that they undo.
    undo_calls: HashMap<CallId, Vec<LogSeq>>,
}

impl FileHistory {
    /// Applies the next [`Fact`] of the log.
    pub fn push(&mut self, seq: LogSeq, fact: &Fact) {
        match fact {
            Fact::TurnStarted { turn, .. } => self.turn = *turn,
            Fact::ToolCalled { call, tool, arguments, author: CallAuthor::User, .. }
                if tool == UNDO_TOOL =>
            {
                if let Ok(undo) = serde_json::from_str::<UndoArguments>(arguments) {
                    self.undo_calls.insert(*call, undo.facts);
                }
            }
            Fact::FilesChanging { call, changes } => {
                let undoes = self.undo_calls.get(call).cloned().unwrap_or_default();
                let changes = changes.iter().map(|change| (change.clone(), UndoState::Applied));
                let (turn, call, changes) = (self.turn, *call, changes.collect());
                self.entries.push(FileHistoryEntry { seq, turn, call, changes, undoes });
            }
            Fact::CallSettled { call, outcome, seen_files } => {
                for seen_file in seen_files {
                    self.seen_digests.insert(seen_file.path.clone(), seen_file.digest.clone());
                    self.seen_at.insert(seen_file.path.clone(), seq);
                }
                let undone_facts = self.undo_calls.remove(call).unwrap_or_default();
                if let CallOutcome::Completed { output } = outcome {
                    let texts = |key: &str| -> Vec<&str> {
                        let values = output.metadata.get(key).and_then(Value::as_array);
                        values.into_iter().flatten().filter_map(Value::as_str).collect()
                    };
                    let not_captured = texts(NOT_CAPTURED_KEY);
                    self.not_captured
                        .extend(not_captured.into_iter().map(|text| (self.turn, text.to_owned())));
                    let skipped_paths = texts(SKIPPED_FILES_KEY);
                    for fact in undone_facts {
                        self.set_state(fact, UndoState::Undone, &skipped_paths);
                    }
                }
            }
            // The model has not seen what a rewind removes from its context. An older digest of the
            // same file is not kept, so that the model reads the file again. Changes to files
            // remain.
            Fact::Rewound { to } => {
                self.seen_at.retain(|_, seen_at| *seen_at <= *to);
                self.seen_digests.retain(|path, _| self.seen_at.contains_key(path));
            }
            // The instructions that results ended with may have left the model's context, so they
            // are shown again with the next file that they apply to.
            Fact::OutputsPruned { .. } | Fact::ContextCompacted { .. } => {
                self.seen_at.retain(|path, _| !is_instruction_file(path));
                self.seen_digests.retain(|path, _| !is_instruction_file(path));
            }
            Fact::FilesUnchanged { call } => {
                self.entries.pop_if(|entry| entry.call == *call);
            }
            Fact::SessionOpened { .. }
            | Fact::SystemPromptSet { .. }
            | Fact::ModeChanged { .. }
            | Fact::ApprovalsRevoked
            | Fact::AgentChanged { .. }
            | Fact::ModelChanged { .. }
            | Fact::PromptSteered { .. }
            | Fact::QuestionAsked { .. }
            | Fact::QuestionAnswered { .. }
            | Fact::SubagentStarted { .. }
            | Fact::HookRan { .. }
            | Fact::SessionRenamed { .. }
            | Fact::SideRequestEnded { .. }
            | Fact::SessionForked { .. }
            | Fact::PromptWithdrawn { .. }
            | Fact::PromptSubmitted { .. }
            | Fact::StepStarted { .. }
            | Fact::StepEnded { .. }
            | Fact::StepRetrying { .. }
            | Fact::TurnInterrupted { .. }
            | Fact::TurnEnded { .. }
            | Fact::ModelText { .. }
            | Fact::ModelReasoning { .. }
            | Fact::ToolCalled { .. }
            | Fact::PermissionAsked { .. }
            | Fact::PermissionAnswered { .. }
            | Fact::CallStarted { .. }
            | Fact::ContextChanged { .. }
            | Fact::FactsLost { .. } => {}
        }
    }

    /// Sets the state of the changes of a fact. Undoing an undo makes the changes that it undid
    /// count again. Files in `skipped_paths` keep their state.
    fn set_state(&mut self, seq: LogSeq, state: UndoState, skipped_paths: &[&str]) {
        let Ok(index) = self.entries.binary_search_by_key(&seq, |entry| entry.seq) else { return };
        let Some(entry) = self.entries.get_mut(index) else { return };
        for (change, current) in &mut entry.changes {
            if !skipped_paths.contains(&change.path.as_str()) {
                *current = state;
            }
        }
        // The recursion ends, because a fact undoes only older facts.
        for fact in entry.undoes.clone().into_iter().filter(|fact| *fact < seq) {
            self.set_state(fact, state.inverse(), skipped_paths);
        }
    }

    /// Returns the digest of each file's content as this session last read or wrote it.
    pub fn seen_digests(&self) -> &BTreeMap<String, BlobRef> {
        &self.seen_digests
    }

    /// Returns the paths whose current content differs from before the session, as far as the log
    /// records changes.
    pub fn changed_files(&self) -> ChangedFiles {
        let mut paths: BTreeMap<&str, (Option<&FileVersion>, Option<&FileVersion>)> =
            BTreeMap::new();
        for (change, _) in self.entries.iter().flat_map(|entry| &entry.changes) {
            let (before, after) = (change.before.as_ref(), change.after.as_ref());
            paths
                .entry(&change.path)
                .and_modify(|(_, last)| *last = after)
                .or_insert((before, after));
        }
        let mut changed = ChangedFiles::default();
        for (path, versions) in paths {
            match versions {
                (None, Some(_)) => changed.added.push(path.to_owned()),
                (Some(_), None) => changed.removed.push(path.to_owned()),
                (Some(before), Some(after)) if before != after => {
                    changed.modified.push(path.to_owned());
                }
                (Some(_), Some(_)) | (None, None) => {}
            }
        }
        changed
    }

    fn entry_kind(&self, entry: &FileHistoryEntry) -> FileHistoryEntryKind {
        let Some(first) = entry.undoes.first() else { return FileHistoryEntryKind::Change };
        let index = self.entries.binary_search_by_key(first, |entry| entry.seq);
        match index
            .ok()
            .and_then(|index| self.entries.get(index))
            .map(|entry| entry.undoes.is_empty())
        {
            Some(true) | None => FileHistoryEntryKind::Undo,
            Some(false) => FileHistoryEntryKind::Redo,
        }
    }

    /// Returns the positions of the facts that an undo of this scope affects.
    pub fn undoable_facts(&self, scope: UndoScope) -> Vec<LogSeq> {
        let wanted_kind = if scope == UndoScope::LastUndo {
            FileHistoryEntryKind::Undo
        } else {
            FileHistoryEntryKind::Change
        };
        let is_candidate = |entry: &&FileHistoryEntry| {
            entry.has_applied_change() && self.entry_kind(entry) == wanted_kind
        };
        let Some(last) = self.entries.iter().rfind(is_candidate) else { return Vec::new() };
        let is_in_scope = |entry: &&FileHistoryEntry| match scope {
            UndoScope::LastTurn => entry.turn == last.turn,
            UndoScope::All => true,
            UndoScope::LastUndo => entry.seq == last.seq,
            UndoScope::Since { seq } => entry.seq > seq,
        };
        let facts =
            self.entries.iter().filter(is_candidate).filter(is_in_scope).map(|entry| entry.seq);
        facts.collect()
    }

    /// Returns the arguments for undoing these facts: those of their changes that are still
    /// applied. Returns `None` if there are none.
    pub fn undo_arguments(&self, facts: &[LogSeq]) -> Option<UndoArguments> {
        let (mut changes, mut is_redo, mut turns) = (Vec::new(), false, BTreeSet::new());
        for fact in facts {
            let index = self.entries.binary_search_by_key(fact, |entry| entry.seq).ok()?;
            let entry = self.entries.get(index).filter(|entry| entry.has_applied_change())?;
            let applied = entry.changes.iter().filter(|(_, state)| *state == UndoState::Applied);
            changes.extend(applied.map(|(change, _)| change.clone()));
            match self.entry_kind(entry) {
                FileHistoryEntryKind::Change => drop(turns.insert(entry.turn)),
                FileHistoryEntryKind::Undo => is_redo = true,
                FileHistoryEntryKind::Redo => {}
            }
        }
        let not_captured = self.not_captured.iter().filter(|(turn, _)| turns.contains(turn));
        (!changes.is_empty()).then(|| UndoArguments {
            facts: facts.to_vec(),
            changes,
            not_captured: not_captured.map(|(_, text)| text.clone()).collect(),
            direction: DiffDirection::default(),
            is_redo,
        })
    }
}

#[cfg(test)]
mod tests;
