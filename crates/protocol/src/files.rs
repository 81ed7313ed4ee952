//! Files as a log tells of them: what a session has seen of them, what it has changed, and what
//! of that was taken back.
//!
//! [`Files`] is a fold of the log, like the transcript: a session that was closed, or died, knows
//! after reopening what it knew before.

use crate::call::{Author, BlobRef, Outcome};
use crate::event::{Fact, Seq};
use crate::id::CallId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// The tool by which changes are taken back. Only a person calls it.
pub const UNDO: &str = "undo";

/// What stands at a path at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Version {
    /// Its bytes, kept so that a change can be taken back.
    pub copy: BlobRef,
    /// Who may do what with it, where the system has such a thing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
}

/// What becomes of one file; no version means no file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Relative to the workspace, `/` between parts.
    pub path: String,
    /// What stood there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Version>,
    /// What is to stand there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Version>,
}

/// What a call saw of a file, or left there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sight {
    /// Relative to the workspace, `/` between parts.
    pub path: String,
    /// The digest of its bytes.
    pub digest: BlobRef,
}

/// How much is taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "scope", rename_all = "snake_case")]
pub enum Scope {
    /// What the last turn that changed something changed.
    LastTurn,
    /// Everything the session changed.
    All,
    /// The last thing that was taken back is done again.
    LastUndo,
}

/// What the tool [`UNDO`] is called with: the changes to take back, as the log has them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Undo {
    /// The positions of the facts that are taken back.
    pub facts: Vec<Seq>,
    /// Their changes, oldest first.
    pub changes: Vec<Change>,
    /// How they are shown to a person.
    #[serde(default)]
    pub view: View,
}

/// How changes are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum View {
    /// What taking them back changes.
    #[default]
    Back,
    /// What they changed, as far as it still stands.
    Made,
}

/// Changes that were made together.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    seq: Seq,
    turn: u32,
    changes: Vec<Change>,
    /// The facts that these changes took back.
    undoes: Vec<Seq>,
    taken_back: bool,
}

/// What changes are for.
#[derive(PartialEq, Eq)]
enum Kind {
    /// The session's work.
    Change,
    /// They took changes back.
    Undo,
    /// They took an undo back.
    Redo,
}

/// What a session knows of files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    seen: BTreeMap<String, BlobRef>,
    entries: Vec<Entry>,
    turn: u32,
    /// Calls under way that take something back.
    undoing: HashMap<CallId, Vec<Seq>>,
}

impl Files {
    /// Takes in the next fact.
    pub fn push(&mut self, seq: Seq, fact: &Fact) {
        match fact {
            Fact::TurnStarted { turn, .. } => self.turn = *turn,
            Fact::Called { call, tool, arguments, by: Author::Person, .. } if tool == UNDO => {
                if let Ok(undo) = serde_json::from_str::<Undo>(arguments) {
                    self.undoing.insert(*call, undo.facts);
                }
            }
            Fact::Changing { call, changes } => {
                let undoes = self.undoing.get(call).cloned().unwrap_or_default();
                let (turn, changes) = (self.turn, changes.clone());
                self.entries.push(Entry { seq, turn, changes, undoes, taken_back: false });
            }
            Fact::Settled { call, outcome, seen } => {
                for sight in seen {
                    self.seen.insert(sight.path.clone(), sight.digest.clone());
                }
                let undone = self.undoing.remove(call).unwrap_or_default();
                if matches!(outcome, Outcome::Completed { .. }) {
                    for fact in undone {
                        self.take_back(fact, true);
                    }
                }
            }
            Fact::Opened { .. }
            | Fact::Renamed { .. }
            | Fact::Forked { .. }
            | Fact::Compacted { .. }
            | Fact::Reverted { .. }
            | Fact::Prompted { .. }
            | Fact::StepStarted { .. }
            | Fact::StepEnded { .. }
            | Fact::Retrying { .. }
            | Fact::Interrupted { .. }
            | Fact::TurnEnded { .. }
            | Fact::Said { .. }
            | Fact::Reasoned { .. }
            | Fact::Called { .. }
            | Fact::Asked { .. }
            | Fact::Answered { .. }
            | Fact::Started { .. }
            | Fact::ContextChanged { .. } => {}
        }
    }

    /// Taking an undo back makes what it had taken back count again.
    fn take_back(&mut self, seq: Seq, taken_back: bool) {
        let Some(entry) = self.entries.iter_mut().find(|entry| entry.seq == seq) else { return };
        entry.taken_back = taken_back;
        for fact in entry.undoes.clone() {
            self.take_back(fact, !taken_back);
        }
    }

    /// The digest of a file's bytes as this session last saw or left them.
    pub fn seen(&self) -> &BTreeMap<String, BlobRef> {
        &self.seen
    }

    fn kind(&self, entry: &Entry) -> Kind {
        let Some(first) = entry.undoes.first() else { return Kind::Change };
        let undone = self.entries.iter().find(|entry| entry.seq == *first);
        match undone.map(|entry| entry.undoes.is_empty()) {
            Some(true) | None => Kind::Undo,
            Some(false) => Kind::Redo,
        }
    }

    /// What would be taken back; `None` if there is nothing.
    pub fn undo(&self, scope: Scope) -> Option<Undo> {
        let wanted = if scope == Scope::LastUndo { Kind::Undo } else { Kind::Change };
        let counts = |entry: &&Entry| !entry.taken_back && self.kind(entry) == wanted;
        let last = self.entries.iter().rfind(counts)?;
        let meant = |entry: &&Entry| match scope {
            Scope::LastTurn => entry.turn == last.turn,
            Scope::All => true,
            Scope::LastUndo => entry.seq == last.seq,
        };
        let (mut facts, mut changes) = (Vec::new(), Vec::new());
        for entry in self.entries.iter().filter(counts).filter(meant) {
            facts.push(entry.seq);
            changes.extend(entry.changes.iter().cloned());
        }
        Some(Undo { facts, changes, view: View::default() })
    }
}

#[cfg(test)]
mod tests;
