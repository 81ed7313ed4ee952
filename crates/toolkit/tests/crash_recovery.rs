//! Tests of `ToolRuntime::reconcile`, the recovery of a call that was changing files when the
//! process died.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests create files directly and fail by panicking"
)]

use async_trait::async_trait;
use std::collections::BTreeMap;
use windlass_permission::{PermissionRules, Policy};
use windlass_protocol::{
    BlobRef, CallOutcome, FileChange, FileVersion, PermissionAnswer, ToolAccess,
};
use windlass_sandbox::{PendingFileChange, Workspace};
use windlass_toolkit::{
    CallFailure, CallIntent, PermissionReply, Registry, ToolCaller, ToolRuntime,
};

/// A caller with stored file versions.
#[derive(Default)]
struct StoredVersionsTestCaller(BTreeMap<BlobRef, Vec<u8>>);

#[async_trait]
impl ToolCaller for StoredVersionsTestCaller {
    async fn request_permission(&self, _intent: CallIntent) -> PermissionReply {
        panic!("the user must not be asked again")
    }

    async fn ask_permission(&self, _preview: Option<String>) -> PermissionAnswer {
        panic!("the user must not be asked again")
    }

    async fn record_changes(&self, _batch: Vec<PendingFileChange>) -> Result<(), CallFailure> {
        panic!("the changes are already recorded")
    }

    async fn file_version(&self, copy: &BlobRef) -> Result<Vec<u8>, CallFailure> {
        self.0.get(copy).cloned().ok_or_else(|| CallFailure::new("version not found"))
    }
}

/// Files of a batch with their versions before and after: changed, created, removed, and changed
/// twice.
const BATCH: [(&str, Option<&str>, Option<&str>); 4] = [
    ("changed", Some("old"), Some("new")),
    ("made", None, Some("new")),
    ("removed", Some("old"), None),
    ("again", Some("first"), Some("third")),
];

struct TestEnv {
    folder: tempfile::TempDir,
    runtime: ToolRuntime,
    store: StoredVersionsTestCaller,
    changes: Vec<FileChange>,
}

impl TestEnv {
    fn new() -> TestEnv {
        let folder = tempfile::tempdir().unwrap();
        let runtime = ToolRuntime {
            registry: Registry::default(),
            hooks: Vec::new(),
            // The user approved the call before it started.
            policy: Policy::new(PermissionRules::default()),
            workspace: Workspace::open(folder.path()).unwrap(),
            limits: Default::default(),
        };
        let mut store = StoredVersionsTestCaller::default();
        let mut version = |content: &str| {
            let copy = BlobRef::for_bytes(content.as_bytes());
            store.0.insert(copy.clone(), content.into());
            FileVersion { blob: copy, unix_mode: None }
        };
        let mut changes = Vec::new();
        for (path, before, after) in BATCH {
            let steps = match path {
                "again" => vec![(before, Some("second")), (Some("second"), after)],
                _ => vec![(before, after)],
            };
            for (before, after) in steps {
                let (before, after) = (before.map(&mut version), after.map(&mut version));
                changes.push(FileChange { path: path.into(), before, after });
            }
        }
        TestEnv { folder, runtime, store, changes }
    }

    fn write(&self, path: &str, content: Option<&str>) {
        let path = self.folder.path().join(path);
        match content {
            Some(content) => std::fs::write(path, content).unwrap(),
            None => drop(std::fs::remove_file(path)),
        }
    }

    fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.folder.path().join(path)).ok()
    }

    async fn reconcile(&self) -> CallOutcome {
        self.reconcile_with(&[]).await
    }

    /// Reconciles a call with further accesses.
    async fn reconcile_with(&self, more: &[ToolAccess]) -> CallOutcome {
        let accesses = BATCH.map(|(path, ..)| ToolAccess::Edit { path: path.into() });
        let accesses = accesses.iter().chain(more).cloned().collect();
        self.runtime.reconcile(accesses, self.changes.clone(), &self.store).await
    }
}

#[tokio::test]
async fn a_batch_is_completed_or_reverted_whichever_files_were_written() {
    // Every combination of files that were reached and files that were not.
    for reached in 0_u32..16 {
        let env = TestEnv::new();
        for (bit, (path, before, after)) in BATCH.into_iter().enumerate() {
            env.write(path, if reached & (1 << bit) == 0 { before } else { after });
        }
        let temp_file = format!(".windlass-{}-0.draft", u32::MAX);
        env.write(&temp_file, Some("left by a dead process"));
        let outcome = env.reconcile().await;
        let done = reached == 15;
        match &outcome {
            CallOutcome::Completed { .. } => assert!(done, "{reached:04b}"),
            CallOutcome::Failed { text } => assert!(!done && text.contains("nothing was changed")),
            other => panic!("{reached:04b}: {other:?}"),
        }
        for (path, before, after) in BATCH {
            let expected = if done { after } else { before };
            assert_eq!(env.read(path).as_deref(), expected, "{reached:04b} {path}");
        }
        assert_eq!(env.read(&temp_file), None);
    }
}

#[tokio::test]
async fn files_changed_from_outside_stay_unchanged() {
    let env = TestEnv::new();
    for (path, _, after) in BATCH {
        env.write(path, after);
    }
    env.write("changed", Some("theirs"));
    assert_eq!(env.reconcile().await, CallOutcome::ResultUnknown);
    assert_eq!(env.read("changed").as_deref(), Some("theirs"));
    assert_eq!(env.read("made").as_deref(), Some("new"));
}

#[tokio::test]
async fn a_partial_batch_without_stored_versions_is_unknown() {
    let mut env = TestEnv::new();
    env.store.0.clear();
    env.write("changed", Some("new"));
    env.write("removed", Some("old"));
    env.write("again", Some("first"));
    assert_eq!(env.reconcile().await, CallOutcome::ResultUnknown);
    assert_eq!(env.read("changed").as_deref(), Some("new"));
}

#[tokio::test]
async fn a_batch_with_an_unreached_file_is_reverted() {
    let env = TestEnv::new();
    for (path, _, after) in BATCH {
        env.write(path, after);
    }
    let outcome = env.reconcile_with(&[ToolAccess::Edit { path: "next".into() }]).await;
    assert!(
        matches!(&outcome, CallOutcome::Failed { text } if text.contains("nothing was changed"))
    );
    for (path, before, _) in BATCH {
        assert_eq!(env.read(path).as_deref(), before, "{path}");
    }
}

#[tokio::test]
async fn a_call_that_ran_a_command_is_unknown() {
    for reached in [0, 2, 4] {
        let env = TestEnv::new();
        for (bit, (path, before, after)) in BATCH.into_iter().enumerate() {
            env.write(path, if bit < reached { after } else { before });
        }
        let run = ToolAccess::RunCommand { command: "make".into(), folder: ".".into() };
        assert_eq!(env.reconcile_with(&[run]).await, CallOutcome::ResultUnknown);
        for (bit, (path, before, after)) in BATCH.into_iter().enumerate() {
            let expected = if bit < reached { after } else { before };
            assert_eq!(env.read(path).as_deref(), expected, "{path} was touched");
        }
    }
}
