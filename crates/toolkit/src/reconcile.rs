//! After a crash: what became of a call that was changing files when the process died.
//!
//! The log says what each file held and what it was to hold. If all are done, the call is done; if
//! none is, it is not; if some are, they are taken back, so that a batch is never half applied. A
//! file that the call may change and that is not on record yet is one that was not reached. Files
//! say nothing about what else a call did: where it did more, nobody knows.

use crate::road::Runtime;
use crate::tool::{Caller, Failure};
use std::sync::Arc;
use windlass_permission::Decision;
use windlass_protocol::{Access, Answer, BlobRef, Change, Outcome, Output, Version};
use windlass_sandbox::{End, Ledger, Pending, Rewrite, World};

/// The changes that are taken back are on record already.
struct OnRecord;

impl Ledger for OnRecord {
    fn record(&self, _batch: Vec<Pending>) -> Result<(), String> {
        Ok(())
    }

    fn close(&self, _end: End) {}
}

/// Where a file stands.
enum State {
    Before,
    After,
    /// Somebody else has changed it since.
    Other,
}

impl Runtime {
    /// Finds out what became of a call. It was permitted before it started.
    pub async fn reconcile(
        &self,
        accesses: Vec<Access>,
        changes: Vec<Change>,
        caller: &dyn Caller,
    ) -> Outcome {
        let edits = accesses.iter().filter_map(|access| match access {
            Access::Edit { path } => Some(path.clone()),
            Access::Read { .. }
            | Access::Search { .. }
            | Access::Recall { .. }
            | Access::Skill { .. }
            | Access::Run { .. }
            | Access::Connect { .. }
            | Access::Fetch { .. }
            | Access::Leave { .. }
            | Access::Task { .. }
            | Access::Use { .. }
            | Access::Engage { .. }
            | Access::Accept { .. } => None,
        });
        let edits: Vec<String> = edits.collect();
        let grant = match self.policy.decide(accesses.clone(), &[]) {
            Decision::Allowed(grant) => grant,
            Decision::Ask(question) => match question.answered(&Answer::Once) {
                Some(grant) => grant,
                None => return Outcome::Unknown,
            },
            Decision::Denied { .. } => return Outcome::Unknown,
        };
        let world = Arc::new(self.workspace.open(grant, Arc::new(OnRecord)));
        let changes = joined(changes);
        let reached: Vec<Access> =
            changes.iter().filter_map(|change| self.edit_of(change)).collect();
        let edit = |access: &&Access| matches!(access, Access::Edit { .. });
        let ahead = accesses.iter().filter(edit).filter(|edit| !reached.contains(edit)).count();
        let more = accesses.iter().any(|access| !edit(&access) && !access.read_only());
        let versions = changes.iter().flat_map(|change| change.before.iter().chain(&change.after));
        let known: Vec<BlobRef> = versions.map(|version| version.copy.clone()).collect();
        let outcome = match changes.is_empty() || more {
            true => Outcome::Unknown,
            false => settle(&world, changes, ahead, caller).await.unwrap_or(Outcome::Unknown),
        };
        for path in &edits {
            world.clear_spares(path, &known);
        }
        outcome
    }

    /// The access that a change needs.
    fn edit_of(&self, change: &Change) -> Option<Access> {
        self.workspace.resolve(&Access::Edit { path: change.path.clone() }).ok()
    }
}

/// Looks where the files stand, `ahead` more of which were not reached.
async fn settle(
    world: &World,
    changes: Vec<Change>,
    ahead: usize,
    caller: &dyn Caller,
) -> Result<Outcome, Failure> {
    let mut done = Vec::new();
    let mut pending = ahead;
    for change in &changes {
        match state(world, change)? {
            State::After => done.push(change),
            State::Before => pending += 1,
            State::Other => return Ok(Outcome::Unknown),
        }
    }
    let paths: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
    let paths = paths.join(", ");
    if pending == 0 {
        let text = format!("Changed {paths}. (Windlass was stopped before it could say so.)");
        return Ok(Outcome::Completed { output: Output { text, ..Output::default() } });
    }
    let mut rewrites = Vec::new();
    for change in &done {
        let [after, before] = caller.versions(change).await?;
        let mode = change.before.as_ref().and_then(|version| version.mode);
        rewrites.push(Rewrite { path: change.path.clone(), before, after, mode });
    }
    world.change(&rewrites)?;
    let text =
        format!("Windlass was stopped before this was done; nothing was changed in {paths}.");
    Ok(Outcome::Failed { text })
}

fn state(world: &World, change: &Change) -> Result<State, Failure> {
    let now = world.load(&change.path)?.map(|content| BlobRef::of(&content.bytes));
    let is =
        |version: &Option<Version>| version.as_ref().map(|version| &version.copy) == now.as_ref();
    Ok(if is(&change.after) {
        State::After
    } else if is(&change.before) {
        State::Before
    } else {
        State::Other
    })
}

/// A call that changed a file again and again changed it once, from the first to the last.
fn joined(changes: Vec<Change>) -> Vec<Change> {
    let mut joined: Vec<Change> = Vec::new();
    for change in changes {
        match joined.iter_mut().find(|known| known.path == change.path) {
            Some(known) => known.after = change.after,
            None => joined.push(change),
        }
    }
    joined
}
