//! Crash recovery: finds out what happened to a call that was changing files when the process died.
//!
//! The log contains the old and the new content of each file. If all files are written, the call is
//! complete; if none is, it did not happen; if some are, they are reverted, so that a batch is
//! never half applied. A file that the call may change but that is not in the log was not reached.
//! Files say nothing about other effects of a call: if it had any, the outcome is unknown.

use crate::call_failure::CallFailure;
use crate::pipeline::ToolRuntime;
use crate::tool_caller::ToolCaller;
use std::sync::Arc;
use windlass_permission::Decision;
use windlass_protocol::{
    BlobRef, CallOutcome, FileChange, FileVersion, PermissionAnswer, ToolAccess, ToolOutput,
};
use windlass_sandbox::{
    CallWorkspace, ChangeRecorder, FileWrite, PendingFileChange, WriteBatchOutcome,
};

/// A `ChangeRecorder` that records nothing: reverted changes are in the log already.
struct NoopChangeRecorder;

impl ChangeRecorder for NoopChangeRecorder {
    fn record_batch(&self, _batch: Vec<PendingFileChange>) -> Result<(), String> {
        Ok(())
    }

    fn close_batch(&self, _end: WriteBatchOutcome) {}
}

/// The version of a file that is on disk.
enum DiskFileVersion {
    Before,
    After,
    /// The file has been changed from outside since.
    Other,
}

impl ToolRuntime {
    /// Determines the `CallOutcome` of an interrupted call, which was permitted before it started.
    pub async fn reconcile(
        &self,
        accesses: Vec<ToolAccess>,
        changes: Vec<FileChange>,
        caller: &dyn ToolCaller,
    ) -> CallOutcome {
        let edited_paths = accesses.iter().filter_map(|access| match access {
            ToolAccess::Edit { path } => Some(path.clone()),
            ToolAccess::Read { .. }
            | ToolAccess::Search { .. }
            | ToolAccess::ReadBlob { .. }
            | ToolAccess::ReadSkill { .. }
            | ToolAccess::RunCommand { .. }
            | ToolAccess::Connect { .. }
            | ToolAccess::Fetch { .. }
            | ToolAccess::LeaveSandbox { .. }
            | ToolAccess::Subagent { .. }
            | ToolAccess::UseTool { .. }
            | ToolAccess::StartProcess { .. }
            | ToolAccess::AcceptDefinition { .. } => None,
        });
        let edited_paths: Vec<String> = edited_paths.collect();
        let grant = match self.policy.decide(accesses.clone(), &[]) {
            Decision::Allowed(grant) => grant,
            Decision::Ask(pending) => match pending.resolve(&PermissionAnswer::Once) {
                Some(grant) => grant,
                None => return CallOutcome::ResultUnknown,
            },
            Decision::Denied { .. } => return CallOutcome::ResultUnknown,
        };
        let workspace = Arc::new(self.workspace.open_granted(grant, Arc::new(NoopChangeRecorder)));
        let changes = merge_changes(changes);
        let reached_edits: Vec<ToolAccess> =
            changes.iter().filter_map(|change| self.edit_access(change)).collect();
        let is_edit = |access: &&ToolAccess| matches!(access, ToolAccess::Edit { .. });
        let unreached_count =
            accesses.iter().filter(is_edit).filter(|edit| !reached_edits.contains(edit)).count();
        let has_other_effects =
            accesses.iter().any(|access| !is_edit(&access) && !access.is_read_only());
        let versions = changes.iter().flat_map(|change| change.before.iter().chain(&change.after));
        let known_blobs: Vec<BlobRef> = versions.map(|version| version.blob.clone()).collect();
        let outcome = match changes.is_empty() || has_other_effects {
            true => CallOutcome::ResultUnknown,
            false => reconcile_files(&workspace, changes, unreached_count, caller)
                .await
                .unwrap_or(CallOutcome::ResultUnknown),
        };
        for path in &edited_paths {
            workspace.remove_stale_temp_files(path, &known_blobs);
        }
        outcome
    }

    /// Returns the `ToolAccess::Edit` that a change needs.
    fn edit_access(&self, change: &FileChange) -> Option<ToolAccess> {
        self.workspace.resolve_access(&ToolAccess::Edit { path: change.path.clone() }).ok()
    }
}

/// Compares the files with the log and reverts a partial batch. `unreached_count` is the
/// number of further files that were not reached.
async fn reconcile_files(
    workspace: &CallWorkspace,
    changes: Vec<FileChange>,
    unreached_count: usize,
    caller: &dyn ToolCaller,
) -> Result<CallOutcome, CallFailure> {
    let mut applied = Vec::new();
    let mut pending = unreached_count;
    for change in &changes {
        match disk_version(workspace, change)? {
            DiskFileVersion::After => applied.push(change),
            DiskFileVersion::Before => pending += 1,
            DiskFileVersion::Other => return Ok(CallOutcome::ResultUnknown),
        }
    }
    let paths: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
    let paths = paths.join(", ");
    if pending == 0 {
        let text = format!("Changed {paths}. (Windlass was stopped before it could report this.)");
        return Ok(CallOutcome::Completed { output: ToolOutput { text, ..ToolOutput::default() } });
    }
    let mut rewrites = Vec::new();
    for change in &applied {
        let [after, before] = caller.file_versions(change).await?;
        let mode = change.before.as_ref().and_then(|version| version.unix_mode);
        rewrites.push(FileWrite { path: change.path.clone(), before, after, mode });
    }
    workspace.write_files(&rewrites)?;
    let text =
        format!("Windlass was stopped before this finished; nothing was changed in {paths}.");
    Ok(CallOutcome::Failed { text })
}

fn disk_version(
    workspace: &CallWorkspace,
    change: &FileChange,
) -> Result<DiskFileVersion, CallFailure> {
    let current =
        workspace.load_file(&change.path)?.map(|content| BlobRef::for_bytes(&content.bytes));
    let is_current = |version: &Option<FileVersion>| {
        version.as_ref().map(|version| &version.blob) == current.as_ref()
    };
    Ok(if is_current(&change.after) {
        DiskFileVersion::After
    } else if is_current(&change.before) {
        DiskFileVersion::Before
    } else {
        DiskFileVersion::Other
    })
}

/// Merges several `FileChange`s of one file into one, from the first version to the last.
fn merge_changes(changes: Vec<FileChange>) -> Vec<FileChange> {
    let mut merged: Vec<FileChange> = Vec::new();
    for change in changes {
        match merged.iter_mut().find(|existing| existing.path == change.path) {
            Some(existing) => existing.after = change.after,
            None => merged.push(change),
        }
    }
    merged
}
