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
use serde_json::Value;
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
    /// Everything the session changed after a position.
    Since {
        /// The position.
        seq: Seq,
    },
}

/// What the tool [`UNDO`] is called with. The log has the facts only; the session adds their
/// changes when the call is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Undo {
    /// The positions of the facts that are taken back.
    pub facts: Vec<Seq>,
    /// Their changes, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// How they are shown to a person.
    #[serde(default)]
    pub view: View,
}

/// What became of files, path by path, each list sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Changed {
    /// There was no such file.
    pub added: Vec<String>,
    /// It holds something else, or others may do something with it.
    pub changed: Vec<String>,
    /// It is gone.
    pub removed: Vec<String>,
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

/// Under this key the result of an undo names the files it left as they are.
pub const LEFT: &str = "left";

/// Changes that were made together.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    seq: Seq,
    turn: u32,
    call: CallId,
    changes: Vec<(Change, Standing)>,
    /// The facts that these changes took back.
    undoes: Vec<Seq>,
}

/// Whether a change counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Made,
    TakenBack,
}

impl Standing {
    fn other(self) -> Standing {
        match self {
            Standing::Made => Standing::TakenBack,
            Standing::TakenBack => Standing::Made,
        }
    }
}

impl Entry {
    fn stands(&self) -> bool {
        self.changes.iter().any(|(_, standing)| *standing == Standing::Made)
    }
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
    /// Where in the log each of them was seen.
    places: BTreeMap<String, Seq>,
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
                let changes = changes.iter().map(|change| (change.clone(), Standing::Made));
                let (turn, call, changes) = (self.turn, *call, changes.collect());
                self.entries.push(Entry { seq, turn, call, changes, undoes });
            }
            Fact::Settled { call, outcome, seen } => {
                for sight in seen {
                    self.seen.insert(sight.path.clone(), sight.digest.clone());
                    self.places.insert(sight.path.clone(), seq);
                }
                let undone = self.undoing.remove(call).unwrap_or_default();
                if let Outcome::Completed { output } = outcome {
                    let left = output.metadata.get(LEFT).and_then(Value::as_array);
                    let left: Vec<&str> =
                        left.into_iter().flatten().filter_map(Value::as_str).collect();
                    for fact in undone {
                        self.set(fact, Standing::TakenBack, &left);
                    }
                }
            }
            // What the model no longer knows of it has not seen; an older sight of the same file is
            // not kept, so that it reads the file again. What was changed is changed.
            Fact::Reverted { to } => {
                self.places.retain(|_, place| *place <= *to);
                self.seen.retain(|path, _| self.places.contains_key(path));
            }
            Fact::Unchanged { call } => {
                self.entries.pop_if(|entry| entry.call == *call);
            }
            Fact::Opened { .. }
            | Fact::Briefed { .. }
            | Fact::ModeChanged { .. }
            | Fact::Pruned { .. }
            | Fact::Steered { .. }
            | Fact::Inquired { .. }
            | Fact::Replied { .. }
            | Fact::Spawned { .. }
            | Fact::Hooked { .. }
            | Fact::Renamed { .. }
            | Fact::Forked { .. }
            | Fact::Compacted { .. }
            | Fact::Withdrawn { .. }
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

    /// Taking an undo back makes what it had taken back count again. Files that were left alone
    /// stay as they stand.
    fn set(&mut self, seq: Seq, standing: Standing, left: &[&str]) {
        let Ok(at) = self.entries.binary_search_by_key(&seq, |entry| entry.seq) else { return };
        let Some(entry) = self.entries.get_mut(at) else { return };
        for (change, now) in &mut entry.changes {
            if !left.contains(&change.path.as_str()) {
                *now = standing;
            }
        }
        // A fact undoes older ones only, so this ends.
        for fact in entry.undoes.clone().into_iter().filter(|fact| *fact < seq) {
            self.set(fact, standing.other(), left);
        }
    }

    /// The digest of a file's bytes as this session last saw or left them.
    pub fn seen(&self) -> &BTreeMap<String, BlobRef> {
        &self.seen
    }

    /// The paths where something else stands now than before, as far as changes are on record.
    pub fn changed(&self) -> Changed {
        let mut paths: BTreeMap<&str, (Option<&Version>, Option<&Version>)> = BTreeMap::new();
        for (change, _) in self.entries.iter().flat_map(|entry| &entry.changes) {
            let (before, after) = (change.before.as_ref(), change.after.as_ref());
            paths
                .entry(&change.path)
                .and_modify(|(_, last)| *last = after)
                .or_insert((before, after));
        }
        let mut changed = Changed::default();
        for (path, versions) in paths {
            match versions {
                (None, Some(_)) => changed.added.push(path.to_owned()),
                (Some(_), None) => changed.removed.push(path.to_owned()),
                (Some(before), Some(after)) if before != after => {
                    changed.changed.push(path.to_owned());
                }
                (Some(_), Some(_)) | (None, None) => {}
            }
        }
        changed
    }

    fn kind(&self, entry: &Entry) -> Kind {
        let Some(first) = entry.undoes.first() else { return Kind::Change };
        let at = self.entries.binary_search_by_key(first, |entry| entry.seq);
        match at.ok().and_then(|at| self.entries.get(at)).map(|entry| entry.undoes.is_empty()) {
            Some(true) | None => Kind::Undo,
            Some(false) => Kind::Redo,
        }
    }

    /// The facts that would be taken back.
    pub fn undoable(&self, scope: Scope) -> Vec<Seq> {
        let wanted = if scope == Scope::LastUndo { Kind::Undo } else { Kind::Change };
        let counts = |entry: &&Entry| entry.stands() && self.kind(entry) == wanted;
        let Some(last) = self.entries.iter().rfind(counts) else { return Vec::new() };
        let meant = |entry: &&Entry| match scope {
            Scope::LastTurn => entry.turn == last.turn,
            Scope::All => true,
            Scope::LastUndo => entry.seq == last.seq,
            Scope::Since { seq } => entry.seq > seq,
        };
        let facts = self.entries.iter().filter(counts).filter(meant).map(|entry| entry.seq);
        facts.collect()
    }

    /// What taking these facts back takes back: what still stands of them. `None` if nothing does.
    pub fn undo(&self, facts: &[Seq]) -> Option<Undo> {
        let mut changes = Vec::new();
        for fact in facts {
            let at = self.entries.binary_search_by_key(fact, |entry| entry.seq).ok()?;
            let entry = self.entries.get(at).filter(|entry| entry.stands())?;
            let standing = entry.changes.iter().filter(|(_, now)| *now == Standing::Made);
            changes.extend(standing.map(|(change, _)| change.clone()));
        }
        let (facts, view) = (facts.to_vec(), View::default());
        (!changes.is_empty()).then_some(Undo { facts, changes, view })
    }
}

#[cfg(test)]
mod tests;
